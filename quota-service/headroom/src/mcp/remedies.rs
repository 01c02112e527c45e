//! Remedies by the stable codes of reasons, refusals and problems.

/// Code and remedy, by code.
const REMEDIES: [(&str, &str); 87] = [
    (
        "above_fair_share",
        "wait until organizations with less use have started, or have an admin raise your weight in `shares`",
    ),
    ("affinity", "nothing is to be done: take the start as rough"),
    ("at_bound", "widen eta_least and eta_most of the pool's settings, or leave it"),
    ("bad-body", "correct the fields that `errors` names"),
    ("bad-path", "percent-encode the name"),
    ("bad-prices", "have an operator correct prices_file of quota-service"),
    ("bad-query", "correct the argument that `detail` names"),
    ("bad-settings", "correct the setting that `detail` names"),
    ("bad-token", "ask an admin for a new token, and put it into api_token_file"),
    ("beyond_horizon", "ask again later, or ask for fewer GPUs or a shorter guarantee"),
    ("bound_learns", "nothing is to be done: promises that end move the bound"),
    ("cold_start", "wait three days of usage: a new organization is bounded by its peak until then"),
    ("conservative", "find out why the quotas are not renewed: nothing new is promised until they are"),
    ("deferred", "wait until the time that `detail` names, or until GPUs fall idle"),
    ("demand_above_capacity", "wait until high-priority demand falls, or add capacity"),
    ("demand_beyond_amounts", "have an operator correct the usage of the pool's organizations: it states GPUs"),
    ("demand_may_fill_pool", "ask for a shorter guarantee, or run at will"),
    ("elastic_tasks", "nothing is to be done: take the start as rough"),
    ("estimated", "have the scheduler report the state of the pool, so that held and idle GPUs are known"),
    ("fair_shares", "nothing is to be done: take the start as rough"),
    ("few_broken_long_waits", "nothing is to be done: eta has been raised"),
    ("few_jobs", "wait until more tasks of the class have ended, or take the start as rough"),
    ("few_outcomes", "wait until more promises have ended"),
    ("fits_never", "ask for fewer GPUs or pods, or add nodes"),
    ("forbidden", "ask an admin for a token with another role or scope"),
    ("forecast_ends_early", "train with a longer horizon"),
    ("foreign-answer", "check the setting api: something else than quota-service answers there"),
    ("guarantee_not_offered", "choose guarantee hours that the pool offers"),
    ("held_back", "wait: a task that has waited for long has nodes reserved"),
    ("held_by_hp", "wait until high-priority tasks end, or choose another pool"),
    ("held_by_idle", "wait until GPUs fall idle: the forecast would allow more"),
    ("held_by_shorter_guarantee", "ask for fewer GPUs: a longer guarantee counts in the shorter ones, too"),
    ("hp_jobs_missing", "have the scheduler report all HP jobs of the pool, or none"),
    ("inputs_missing", "have an operator find out why usage is missing"),
    ("inventory", "nothing is to be done: this much stays free with the guarantee rate"),
    ("kept_for_reservation", "wait until the time that `detail` names, or choose another pool"),
    ("many_broken", "nothing is to be done: eta has been lowered"),
    ("moved_lately", "wait: eta moves again after the longest guarantee"),
    ("no-nodes", "register the nodes of the pool: PUT /v1/nodes/{id}"),
    ("no-quota", "have an operator do what `detail` says: waiting does not help"),
    ("no-quota-yet", "try again in some seconds"),
    ("no-token", "set api_token_file to a file with a token"),
    ("no_capacity", "register nodes, or report a capacity"),
    ("no_outcomes_long_waits", "nothing is to be done: eta approaches 1"),
    ("not-found", "check the name or number: the tool `reservations` lists those of a pool"),
    ("not-the-writer", "try again in a second: another replica takes over"),
    ("not-written", "try again in a second: nothing was done"),
    ("not_aligned", "ask for an affinity that is no condition, or wait"),
    ("not_calibrated", "wait until more forecasts have been compared with a start, or take the interval as rough"),
    ("not_renewed", "find out why the quota is not renewed; the last one stands for a while"),
    ("nothing_idle", "wait until GPUs fall idle: spot evicts nobody"),
    ("over_committed", "submit nothing new: more is promised than the quota allows by now"),
    ("over_quota", "ask for fewer GPUs or a shorter guarantee, or run at will"),
    ("overloaded", "try again after retry_after_s"),
    ("oversold", "choose another time or fewer GPUs: other reservations have them"),
    ("placed-outside", "submit to the scheduler that places this pool"),
    ("promised", "choose a later begin or fewer GPUs: spot was promised them"),
    ("queued", "wait: its turn comes with the next change of the pool"),
    ("quota_conservative", "find out why the quotas are not renewed: nothing new is promised until they are"),
    ("rate_not_supported", "nothing is to be done: the guarantee rate is shown once promises have ended"),
    ("reaches_reservation", "ask for a guarantee that ends before the time that `detail` names, or run at will"),
    ("released", "nothing is to be done: an override releases GPUs"),
    ("reservations", "nothing is to be done: take the start as rough"),
    ("reserved", "nothing is to be done: an override reserves GPUs for high-priority work"),
    ("reserved_ahead", "ask for a guarantee that ends before the window of the reservation"),
    ("rests", "wait until the time that `detail` names: it was evicted too often"),
    ("rising_would_not_help", "nothing is to be done: another limit holds the quota"),
    ("scaled_by_eta", "nothing is to be done: eta follows the promises that were kept and broken"),
    ("seen_in_training", "nothing is to be done: these hours are not scored"),
    ("store-unavailable", "try again in some seconds: the database does not answer"),
    ("task-differs", "choose another id: a task of this id has another request"),
    ("task-state", "read the task first: the request does not fit its state"),
    ("tasks_since_renewal", "wait for the next renewal: it computes again how much may be admitted"),
    ("timed_policy", "nothing is to be done: take the start as rough"),
    ("too-many", "send fewer requests a second"),
    ("too-many-reservations", "withdraw a reservation, or let one repeat"),
    ("unavailable", "check that quota-service runs and that the setting api is its URL"),
    ("unknown-cluster", "choose a cluster of `known`"),
    ("unknown-hours", "choose guarantee hours of `known`"),
    ("unknown-organization", "choose an organization of `known`"),
    ("unknown-pool", "choose a pool of `known`, or call the tool pools"),
    ("unknown-task", "check the id and the pool"),
    ("unknown_arrivals", "wait until the pool was watched for longer, or take the start as the earliest"),
    ("usage_incomplete", "have an operator find out who does not report: `not_reported` of the explanation names them"),
    ("virtual-clock", "ask a service on the real clock: tasks are not placed under a virtual one"),
    ("which-pool", "name cluster and gpu_model: the tool pools lists them"),
    ("within_target", "nothing is to be done: as many promises are kept as were to be"),
];

/// The remedy of a code; `None` where the detail says all.
pub fn of(code: &str) -> Option<&'static str> {
    let found = REMEDIES.binary_search_by_key(&code, |(known, _)| known).ok()?;
    Some(REMEDIES[found].1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_code_stands_once_and_is_found() {
        assert!(REMEDIES.is_sorted_by(|a, b| a.0 < b.0), "they are searched");
        assert!(REMEDIES.iter().all(|(code, remedy)| of(code) == Some(remedy)));
        assert_eq!(of("brand-new"), None);
    }
}
