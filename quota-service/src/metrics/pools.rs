//! The numbers of pools as they are answered now: asked for at each scrape, since an answer ages by itself.

use super::{kept, of_pool, of_pool_and};
use crate::engine::TaskCounts;
use crate::leases::Leases;
use crate::plan::{PoolQuota, has_its_time};
use crate::published::{Answer, PublishedPool};
use metrics::gauge;
use placement::pool::Pool;
use placement::staleness::stage;
use std::collections::BTreeSet;
use vocab::{Organization, OutcomeKind, OverrideKind, PoolId, UnixSeconds};

const MILLI_GPU_S_PER_GPU_HOUR: f64 = 1_000.0 * vocab::SECONDS_PER_HOUR as f64;

/// Answers of pools at `now`.
pub fn describe<'a>(pools: impl Iterator<Item = &'a PublishedPool>, now: UnixSeconds) {
    for pool in pools {
        let id = &pool.id;
        for answer in &pool.answers {
            describe_hours(id, answer, now);
        }
        if let Some(first) = pool.answers.first() {
            gauge!("headroom_eta", &of_pool(id)).set(first.fresh.eta);
            gauge!("headroom_capacity_gpus", &of_pool(id)).set(first.fresh.capacity_gpus);
            gauge!("headroom_idle_gpus", &of_pool(id)).set(first.fresh.idle_gpus);
            gauge!("headroom_guarantee_rate", &of_pool(id)).set(first.fresh.guarantee_rate);
            let computed_at = first.computed_at;
            gauge!("headroom_quota_computed_timestamp_seconds", &of_pool(id)).set(computed_at.get() as f64);
            gauge!("headroom_quota_age_seconds", &of_pool(id)).set(now.since_s(computed_at) as f64);
            // 0 fresh, 1 stale, 2 conservative.
            gauge!("headroom_quota_stage", &of_pool(id)).set(f64::from(stage(computed_at, now).0 as u8));
        }
        if let Some(made_of) = &pool.made_of {
            describe_inputs(made_of, now);
        }
        for (kind, name) in [
            (OutcomeKind::Kept, "headroom_guarantees_kept_24h"),
            (OutcomeKind::Broken, "headroom_guarantees_broken_24h"),
        ] {
            let count = pool.glance.outcomes_24h.get(&kind).copied().unwrap_or(0);
            gauge!(name, &of_pool(id)).set(count as f64);
        }
        gauge!("headroom_pool_without_new_quota", &of_pool(id)).set(f64::from(u8::from(pool.problem.is_some())));
    }
}

fn describe_hours(id: &PoolId, answer: &Answer, now: UnixSeconds) {
    let labels = of_pool_and(id, "hours", &answer.hours());
    let amounts = answer.amounts(now);
    gauge!("headroom_quota_gpus", &labels).set(amounts.quota.as_gpus());
    gauge!("headroom_used_gpus", &labels).set(answer.held.spot.as_gpus());
    gauge!("headroom_available_gpus", &labels).set(amounts.available.as_gpus());
    gauge!("headroom_demand_bound_gpus", &labels).set(answer.fresh.demand_bound_gpus);
    gauge!("headroom_inventory_gpus", &labels).set(answer.fresh.inventory_gpus);
}

/// Inputs of the quotas of a pool.
fn describe_inputs(made_of: &PoolQuota, now: UnixSeconds) {
    let id = &made_of.id;
    let demand = made_of.hp_demand.unwrap_or(made_of.supply.latest_demand);
    gauge!("headroom_hp_demand_gpus", &of_pool(id)).set(demand.as_gpus());
    gauge!("headroom_usage_newest_timestamp_seconds", &of_pool(id)).set(made_of.issue.unix_s() as f64);
    gauge!("headroom_organizations", &of_pool(id)).set(made_of.corrected.issued().len() as f64);
    gauge!("headroom_cold_organizations", &of_pool(id)).set(made_of.cold_organizations as f64);
    gauge!("headroom_eta_least", &of_pool(id)).set(made_of.settings.pool.eta_least.as_f64());
    gauge!("headroom_eta_most", &of_pool(id)).set(made_of.settings.pool.eta_most.as_f64());
    let learned_until = made_of.run.trained.data.to.instant();
    gauge!("headroom_run_age_seconds", "cluster" => id.cluster.to_string()).set(now.since_s(learned_until) as f64);
    for (index, total) in made_of.bounds.last().iter().flat_map(|bound| &bound.totals).enumerate() {
        let labels = of_pool_and(id, "step", &(index + 1));
        gauge!("headroom_forecast_mean_gpus", &labels).set(total.expected_gpus());
        gauge!("headroom_forecast_stddev_gpus", &labels).set(total.stddev_gpus);
    }
    let sold = made_of.supply.sold.last_key_value().map_or(0.0, |(_, sold)| sold.gpus.as_gpus());
    gauge!("headroom_reserved_gpus", &of_pool(id)).set(sold);
    for kind in OverrideKind::ALL {
        let now_mine = made_of.overrides.iter().filter(|one| one.asked.what.kind == kind && has_its_time(one, now));
        // Not `sum`, which is minus zero of nothing.
        let gpus = now_mine.fold(0.0, |sum, one| sum + one.asked.what.gpus.as_gpus());
        gauge!("headroom_override_gpus", &of_pool_and(id, "kind", &kind.as_str())).set(gpus);
    }
}

/// Known to the one that computes alone. A service that wrote for the cluster once does not go on to tell what it knew then.
const OF_WHO_COMPUTES: [&str; 14] = [
    "headroom_hp_demand_gpus",
    "headroom_usage_newest_timestamp_seconds",
    "headroom_organizations",
    "headroom_cold_organizations",
    "headroom_eta_least",
    "headroom_eta_most",
    "headroom_guarantees_kept_24h",
    "headroom_guarantees_broken_24h",
    "headroom_forecast_mae_gpus",
    "headroom_forecast_last_value_mae_gpus",
    "headroom_bound_coverage_ratio",
    "headroom_forecasts_scored",
    "headroom_forecasts_unmeasured",
    "headroom_forecast_drifts",
];

/// Which clusters this service writes for; of the others it tells nothing that only the one who writes knows. To be called last.
pub fn describe_leads<'a>(pools: impl Iterator<Item = &'a PublishedPool>, leases: &Leases) {
    let mut clusters = BTreeSet::new();
    for pool in pools {
        clusters.insert(&pool.id.cluster);
        if leases.led(&pool.id.cluster).is_none() {
            for name in OF_WHO_COMPUTES {
                gauge!(name, &of_pool(&pool.id)).set(f64::NAN);
            }
            gauge!("headroom_forecast_coverage_ratio", &of_pool_and(&pool.id, "level", &"0.9")).set(f64::NAN);
            kept::forget(pool);
        }
    }
    for cluster in clusters {
        let leads = leases.led(cluster).is_some();
        if !leads {
            gauge!("headroom_run_age_seconds", "cluster" => cluster.to_string()).set(f64::NAN);
        }
        gauge!("headroom_leads", "cluster" => cluster.to_string()).set(f64::from(u8::from(leads)));
    }
}

/// How the nodes of a pool stand whose tasks are placed here. Where it is not known what its GPUs draw there are no watts.
/// `shown` are the organizations whose shares stand in the metrics: one that has none any more becomes NaN, once.
pub fn describe_nodes(id: &PoolId, pool: &Pool, shown: &mut BTreeSet<Organization>) {
    gauge!("headroom_fragmentation_gpus", &of_pool(id)).set(pool.fragmentation_milli() as f64 / 1_000.0);
    if let Some(watts) = pool.watts() {
        gauge!("headroom_power_watts", &of_pool(id)).set(watts as f64);
    }
    describe_shares(id, pool.use_levels(), shown);
}

/// Of each organization what it holds, in thousandths of a GPU, and its level, in thousandths of a GPU-second.
fn describe_shares<'a>(
    id: &PoolId,
    levels: impl Iterator<Item = (&'a Organization, u64, u64)>,
    shown: &mut BTreeSet<Organization>,
) {
    let mut gone = std::mem::take(shown);
    for (organization, held_milli, level_milli_gpu_s) in levels {
        let level_gpu_hours = level_milli_gpu_s as f64 / MILLI_GPU_S_PER_GPU_HOUR;
        describe_share(id, organization, held_milli as f64 / 1_000.0, level_gpu_hours);
        let known = gone.take(organization);
        shown.insert(known.unwrap_or_else(|| organization.clone()));
    }
    for organization in gone {
        describe_share(id, &organization, f64::NAN, f64::NAN);
    }
}

fn describe_share(id: &PoolId, organization: &Organization, held_gpus: f64, level_gpu_hours: f64) {
    let labels = of_pool_and(id, "organization", organization);
    gauge!("headroom_spot_share_gpus", &labels).set(held_gpus);
    gauge!("headroom_spot_share_level_gpu_hours", &labels).set(level_gpu_hours);
}

/// How many tasks wait and run.
pub fn describe_tasks(id: &PoolId, counts: TaskCounts) {
    let TaskCounts { hp_waiting, hp_running, spot_waiting, spot_running, .. } = counts;
    for (class, status, count) in [
        ("hp", "waiting", hp_waiting),
        ("hp", "running", hp_running),
        ("spot", "waiting", spot_waiting),
        ("spot", "running", spot_running),
    ] {
        let [cluster, gpu_model] = of_pool(id);
        let labels = [cluster, gpu_model, ("class", class.to_owned()), ("status", status.to_owned())];
        gauge!("headroom_tasks", &labels).set(count as f64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use metrics_exporter_prometheus::PrometheusBuilder;

    #[test]
    fn a_conservative_quota_has_no_available_gpus() {
        let pool = crate::published::tests::published(&[(4, 40.0, 10.0)]);
        let recorder = PrometheusBuilder::new().build_recorder();
        let values = |age_s: i64| {
            let now = pool.answers[0].computed_at.plus_s(age_s);
            metrics::with_local_recorder(&recorder, || describe(std::iter::once(&pool), now));
            let text = recorder.handle().render();
            let of = |name: &str| {
                let start = format!("{name}{{cluster=\"earth\",gpu_model=\"A100\",hours=\"4\"}} ");
                text.lines().find_map(|line| line.strip_prefix(&start)).map(str::to_owned).unwrap()
            };
            ["headroom_quota_gpus", "headroom_used_gpus", "headroom_available_gpus"].map(of)
        };
        assert_eq!(values(0), ["40", "10", "30"]);
        assert_eq!(values(2_400), ["10", "10", "0"]);
    }

    #[test]
    fn a_share_that_is_gone_becomes_nan_and_does_not_stay_as_it_was() {
        let id = PoolId::parse("c:A100").unwrap();
        let [anna, bert] = ["anna", "bert"].map(|name| Organization::parse(name).unwrap());
        let recorder = PrometheusBuilder::new().build_recorder();
        let mut shown = BTreeSet::new();
        let line = |name: &str, organization: &str| {
            let wanted = format!("{name}{{cluster=\"c\",gpu_model=\"A100\",organization=\"{organization}\"}} ");
            let text = recorder.handle().render();
            text.lines().find_map(|line| line.strip_prefix(&wanted)).map(str::to_owned)
        };
        metrics::with_local_recorder(&recorder, || {
            describe_shares(&id, [(&anna, 2_000, 7_200_000), (&bert, 500, 3_600_000)].into_iter(), &mut shown);
            assert_eq!(line("headroom_spot_share_gpus", "bert").as_deref(), Some("0.5"));
            describe_shares(&id, std::iter::once((&anna, 1_000, 3_600_000)), &mut shown);
        });
        assert_eq!(line("headroom_spot_share_level_gpu_hours", "anna").as_deref(), Some("1"));
        for name in ["headroom_spot_share_gpus", "headroom_spot_share_level_gpu_hours"] {
            assert_eq!(line(name, "bert").as_deref(), Some("NaN"));
        }
        assert_eq!(shown, BTreeSet::from([anna]));
    }
}
