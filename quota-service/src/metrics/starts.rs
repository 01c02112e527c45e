//! How forecasts of starts fared.

use super::of_pool;
use ::starts::Coverage;
use metrics::gauge;
use vocab::{PoolId, TaskClass};

/// Of both classes of a pool; NaN where few forecasts were scored.
pub fn describe_starts(pool: &PoolId, coverage: impl Fn(TaskClass) -> Option<Coverage>) {
    for class in [TaskClass::Hp, TaskClass::Spot] {
        let coverage = coverage(class);
        let of = |value: fn(&Coverage) -> f64| coverage.as_ref().map_or(f64::NAN, value);
        let shares = [("0.5", of(|one| one.of_50)), ("0.9", of(|one| one.of_90))];
        for (interval, share) in shares {
            let [cluster, gpu_model] = of_pool(pool);
            let class = ("class", class.as_str().to_owned());
            let labels = [cluster, gpu_model, class, ("interval", interval.to_owned())];
            gauge!("headroom_start_coverage_ratio", &labels).set(share);
        }
        let labels = super::of_pool_and(pool, "class", &class.as_str());
        gauge!("headroom_start_pinball_loss_seconds", &labels).set(of(|one| one.pinball_s));
        gauge!("headroom_starts_scored", &labels).set(of(|one| one.scored as f64));
    }
}
