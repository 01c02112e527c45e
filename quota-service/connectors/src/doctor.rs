//! Checks of a `doctor` that every connector has: Headroom, its token, its pools and quotas, and clocks.

mod token;

use crate::client::{Headroom, HeadroomError};
use crate::clock;
use crate::values::HeadroomUrl;
use command_line::{Check, ago};
use placement::{Stage, Unknown};
use std::collections::{BTreeMap, BTreeSet};
use vocab::{ClusterName, GpuModel, UnixSeconds};
use wire::{PoolList, PoolSummary, StageBody};

const NAME: &str = "headroom";
/// Clocks may differ so far without a word, in seconds.
const SKEW_WARN_S: i64 = 2;
/// From here on Headroom refuses reports as from the future.
const SKEW_FAIL_S: i64 = 60;

/// GPUs by model, as the scheduler's cluster has them.
pub type Gpus = BTreeMap<GpuModel, u64>;

/// A connector, for its fixes.
#[derive(Debug, Clone, Copy)]
pub struct Asker<'a> {
    /// Name of its program.
    pub program: &'a str,
    /// Headroom's name of the cluster.
    pub cluster: Option<&'a ClusterName>,
    /// URL of quota-service.
    pub url: &'a HeadroomUrl,
    /// Setting that names GPU models.
    pub model_setting: &'a str,
    /// Whether `run` reports the nodes: the capacity of each pool.
    pub reports_nodes: bool,
    /// Path of the lease of this cluster, where nothing is written without one.
    pub lease: Option<&'a str>,
}

impl Asker<'_> {
    fn is_of_cluster(&self, pool: &PoolSummary) -> bool {
        self.cluster.is_some_and(|cluster| cluster.as_str() == pool.cluster)
    }

    fn lists(&self, list: &PoolList, model: &GpuModel) -> bool {
        list.pools.iter().any(|pool| self.is_of_cluster(pool) && pool.gpu_model == model.as_str())
    }
}

/// Whether Headroom answers, and the pools and quotas that it has for this cluster; `here` are the GPUs of the cluster itself.
pub async fn headroom(
    asker: Asker<'_>,
    client: Result<Headroom, HeadroomError>,
    here: Option<&Gpus>,
) -> (Vec<Check>, Option<PoolList>) {
    let failed = |fault: &HeadroomError| (vec![refused(NAME, fault, &asker)], None);
    let client = match client {
        Ok(client) => client,
        Err(fault) => return failed(&fault),
    };
    let asked: Result<(PoolList, Option<String>), HeadroomError> = client.get_dated("/v1/pools").await;
    let now = clock::now();
    let (list, date) = match asked {
        Ok(answered) => answered,
        Err(fault) => return failed(&fault),
    };
    let mut checks = vec![Check::ok(NAME, format!("{} answers", asker.url))];
    checks.extend(token::judge(&client, &asker).await);
    let date = date.as_deref().and_then(http_date);
    checks.extend(date.map(|date| skew("clock of headroom", date, now)));
    match out_of_scope(&client, &asker, &list, here).await {
        Some(check) => token::note_scope(check, &mut checks),
        None => checks.extend(pools(asker, &list, here, now)),
    }
    let unlisted = here.into_iter().flat_map(Gpus::keys).filter(|model| !asker.lists(&list, model)).collect::<Vec<_>>();
    token::name_hidden(&client, &asker, &unlisted, &mut checks).await;
    (checks, Some(list))
}

/// Whether pools of this cluster are missing in the list since the token is of others.
async fn out_of_scope(client: &Headroom, asker: &Asker<'_>, list: &PoolList, here: Option<&Gpus>) -> Option<Check> {
    if list.pools.iter().any(|pool| asker.is_of_cluster(pool)) {
        return None;
    }
    let any = GpuModel::parse("any").ok();
    let model = here.and_then(|here| here.keys().next()).or(any.as_ref())?;
    token::hides(client, asker, model).await.map(|fault| token::out_of_scope(&fault, asker))
}

/// A request that failed, and what to do.
fn refused(name: &str, fault: &HeadroomError, asker: &Asker<'_>) -> Check {
    let fix = match fault {
        HeadroomError::Refused { status: 401, .. } => {
            let found = format!("{fault}; write a token into headroom_token_file");
            return Check::fail(name, found, token::command(asker.program, asker.cluster));
        }
        HeadroomError::Refused { status: 403, .. } => "give the token the cluster of this program in its scope",
        HeadroomError::Settings { .. } | HeadroomError::NoId { .. } => "correct the setting",
        HeadroomError::Foreign { .. } => "set headroom_url to the URL of quota-service",
        HeadroomError::Unavailable { .. } | HeadroomError::Refused { .. } => {
            "start quota-service, or set headroom_url to a URL that is reachable from here"
        }
    };
    Check::fail(name, fault, fix)
}

fn pools(asker: Asker<'_>, list: &PoolList, here: Option<&Gpus>, now: UnixSeconds) -> Vec<Check> {
    let cluster = asker.cluster.map(ClusterName::as_str);
    let known: Vec<&PoolSummary> = list.pools.iter().filter(|pool| asker.is_of_cluster(pool)).collect();
    if known.is_empty() {
        let others: BTreeSet<&str> = list.pools.iter().map(|pool| pool.cluster.as_str()).collect();
        let others = others.into_iter().collect::<Vec<_>>().join(", ");
        let found =
            format!("Headroom knows no pool of it; it knows: {}", if others.is_empty() { "none" } else { &others });
        let fix = format!("correct cluster, ingest its history, or let {} run report for some weeks", asker.program);
        return vec![Check::fail(format!("cluster {}", cluster.unwrap_or_default()), found, fix)];
    }
    let quota = |pool: &&PoolSummary| unreported(asker, pool, here).unwrap_or_else(|| quota(pool, now));
    let mut checks: Vec<Check> = known.iter().map(quota).collect();
    let models: BTreeSet<GpuModel> = known.iter().filter_map(|pool| GpuModel::parse(&pool.gpu_model).ok()).collect();
    if let Some(here) = here {
        checks.extend(both(asker, &models, here));
        checks.extend(known.iter().filter_map(|pool| capacity(asker, pool, here)));
    }
    checks
}

/// Names that differ by a letter make two halves of one pool.
fn both(asker: Asker<'_>, models: &BTreeSet<GpuModel>, here: &Gpus) -> Vec<Check> {
    let there: Vec<String> = models.iter().map(ToString::to_string).collect();
    let setting = asker.model_setting;
    let strange = here.keys().filter(|model| !models.contains(model)).map(|model| {
        let found = format!("nodes have it, but Headroom knows only {}: it gets no quota", there.join(", "));
        Check::warn(
            format!("model {model}"),
            found,
            format!("ingest the history under this name, or correct {setting}"),
        )
    });
    let absent = models.iter().filter(|model| !here.contains_key(model)).map(|model| {
        let found = "Headroom knows it, but no node of the cluster has it";
        Check::warn(format!("model {model}"), found, format!("correct {setting}, or check for missing nodes"))
    });
    strange.chain(absent).collect()
}

/// Another capacity than ours: the table is old, or two clusters report under one name.
fn capacity(asker: Asker<'_>, pool: &PoolSummary, here: &Gpus) -> Option<Check> {
    let gpus = *here.get(&GpuModel::parse(&pool.gpu_model).ok()?)?;
    let known = pool.capacity_gpus?;
    // Nodes come and go between the two counts.
    let is_near = (known - gpus as f64).abs() <= 0.1 * known.max(gpus as f64);
    let found = format!("Headroom counts {}, the cluster has {gpus}", vocab::gpus(known));
    let fix =
        format!("start {} run, which reports them; check that no other cluster reports under this name", asker.program);
    (!is_near).then(|| Check::warn(format!("capacity {}", pool.id), found, fix))
}

/// A pool whose capacity is not known has no quota. The first report of its nodes brings both, so this says only that none was sent yet.
fn unreported(asker: Asker<'_>, pool: &PoolSummary, here: Option<&Gpus>) -> Option<Check> {
    let model = GpuModel::parse(&pool.gpu_model).ok()?;
    let is_reported = asker.reports_nodes && here?.contains_key(&model);
    if !is_reported || pool.stage.is_some() || *pool.no_quota.as_ref()? != Unknown::Capacity.to_string() {
        return None;
    }
    let program = asker.program;
    let found = format!(
        "there is none before the first report of the nodes, which {program} run sends: its capacity is not known"
    );
    let fix = format!("start {program} run; the quota follows within minutes");
    Some(Check::warn(format!("quota {}", pool.id), found, fix))
}

fn quota(pool: &PoolSummary, now: UnixSeconds) -> Check {
    let name = format!("quota {}", pool.id);
    let computed = pool.computed_at.as_deref().and_then(|text| command_line::instant(text).ok());
    let (Some(stage), Some(computed)) = (pool.stage, computed) else {
        let why = pool.no_quota.as_deref().unwrap_or("none was computed");
        return Check::fail(name, format!("there is none: {why}"), "run quota-service doctor: it prints the cause");
    };
    // The answer may come from a cache, and a clock may stand still: an old quota is old, even if it says fresh.
    let stage = match placement::staleness::stage(computed, now).0 {
        Stage::Conservative => StageBody::Conservative,
        Stage::Stale if stage == StageBody::Fresh => StageBody::Stale,
        Stage::Fresh | Stage::Stale => stage,
    };
    let found = format!("{stage}, computed {}", ago(now.since_s(computed)));
    match stage {
        StageBody::Fresh => Check::ok(name, found),
        StageBody::Stale => Check::warn(name, found, "run quota-service doctor: it prints the cause"),
        StageBody::Conservative => Check::fail(
            name,
            format!("{found}: nothing new is admitted"),
            "run quota-service doctor: it prints the cause",
        ),
    }
}

/// Whether another's clock agrees with ours. Dates of HTTP are whole seconds, so one second of difference says nothing.
#[must_use]
pub fn skew(name: &str, theirs: UnixSeconds, ours: UnixSeconds) -> Check {
    let ahead_s = theirs.since_s(ours);
    let found = format!("{} s {} of this machine", ahead_s.abs(), if ahead_s < 0 { "behind that" } else { "ahead" });
    let fix = "run timedatectl set-ntp true on the machine whose clock is wrong";
    match ahead_s.abs() {
        0..=SKEW_WARN_S => Check::ok(name, "agrees with the clock of this machine"),
        SKEW_FAIL_S.. => Check::fail(name, found, fix),
        _ => Check::warn(name, found, fix),
    }
}

/// `Sun, 06 Nov 1994 08:49:37 GMT`, the one form in which servers write dates (RFC 9110 §5.6.7).
#[must_use]
pub fn http_date(text: &str) -> Option<UnixSeconds> {
    const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let parts: Vec<&str> = text.split_whitespace().collect();
    let [_, day, month, year, time, "GMT"] = parts.as_slice() else { return None };
    let month = MONTHS.iter().position(|name| name == month)? + 1;
    command_line::instant(&format!("{year}-{month:02}-{day}T{time}Z")).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use command_line::Status;

    #[test]
    fn a_date_of_http_is_read_and_a_clock_that_differs_is_reported() {
        let date = http_date("Sun, 06 Nov 1994 08:49:37 GMT").unwrap();
        assert_eq!(date.get(), 784_111_777);
        assert_eq!(http_date("yesterday"), None);
        let status = |ahead_s| skew("clock", date.plus_s(ahead_s), date).status;
        assert_eq!([0, 2, -2].map(status), [Status::Ok; 3]);
        assert_eq!([3, -59].map(status), [Status::Warn; 2]);
        assert_eq!([60, -3_600].map(status), [Status::Fail; 2]);
        assert!(skew("clock", date.plus_s(-5), date).found.starts_with("5 s behind"));
    }

    fn pool() -> PoolSummary {
        serde_json::from_value(serde_json::json!({
            "id": "earth:A100", "cluster": "earth", "gpu_model": "A100", "organizations": 1, "offered_hours": [1],
            "capacity_gpus": 64.0, "latest_demand_gpus": 8.0, "quota_gpus_by_hours": {"1": 2.0},
            "computed_quota_gpus_by_hours": {"1": 2.0}, "eta": 1.0, "computed_at": "2026-11-22T10:00:00Z", "stage": "fresh",
            "no_quota": null, "valid_until": null, "guarantee_rate": 0.9, "idle_gpus": 1.0, "spot_gpus_by_hours": {},
            "available_gpus_by_hours": {}, "demand_bound_gpus_by_hours": {}, "hp_demand_gpus": null, "forecast": [],
            "outcomes_24h": {}, "tasks": null, "overrides": 0
        }))
        .unwrap()
    }

    #[test]
    fn a_quota_that_says_fresh_and_was_computed_long_ago_is_old() {
        let computed = command_line::instant("2026-11-22T10:00:00Z").unwrap();
        let pool = pool();
        let at = |age_s: i64| quota(&pool, computed.plus_s(age_s));
        assert_eq!([599, 600, 2_400].map(|age_s| at(age_s).status), [Status::Ok, Status::Warn, Status::Fail]);
        assert!(at(7_200).found.starts_with("conservative, computed 2 h ago"), "{}", at(7_200).found);
    }

    #[test]
    fn a_pool_whose_nodes_were_never_reported_is_a_warning_where_the_connector_reports_them() {
        let why = Some(Unknown::Capacity.to_string());
        let fresh = PoolSummary { stage: None, computed_at: None, no_quota: why, capacity_gpus: None, ..pool() };
        let (url, cluster) = (HeadroomUrl::default(), ClusterName::parse("earth").unwrap());
        let asker = |reports_nodes| Asker {
            program: "headroom-test",
            cluster: Some(&cluster),
            url: &url,
            model_setting: "gpu_model",
            reports_nodes,
            lease: None,
        };
        let (here, elsewhere) = (Gpus::from([(GpuModel::parse("A100").unwrap(), 64)]), Gpus::new());
        let of = |pool: &PoolSummary, reports_nodes, here| {
            let list = PoolList { pools: vec![pool.clone()] };
            pools(asker(reports_nodes), &list, Some(here), UnixSeconds::new(0)).remove(0)
        };
        let check = of(&fresh, true, &here);
        assert_eq!((check.name.as_str(), check.status), ("quota earth:A100", Status::Warn));
        assert_eq!(check.fix.as_deref(), Some("start headroom-test run; the quota follows within minutes"));
        // Nobody reports it, its nodes are elsewhere, or something else is missing.
        assert_eq!(of(&fresh, false, &here).status, Status::Fail);
        assert_eq!(of(&fresh, true, &elsewhere).status, Status::Fail);
        let untrained = PoolSummary { no_quota: Some(Unknown::Demand.to_string()), ..fresh };
        assert_eq!(of(&untrained, true, &here).status, Status::Fail);
    }
}
