//! Whether promises were kept, as it was found at the last look, and how the bounds fared that were served.

use super::{of_pool, of_pool_and};
use crate::plan::PoolQuota;
use crate::promises::Lately;
use crate::promises::kept::KeptByPool;
use crate::published::PublishedPool;
use metrics::gauge;
use placement::kept::KeptRate;
use vocab::{HorizonHours, PoolId};

/// Windows of the kept rate.
const WINDOWS: [&str; 4] = ["7d", "28d", "worst_24h", "worst_7d"];
/// Of each number of hours, known to the one that computes alone.
const OF_HOURS: [&str; 5] = [
    "headroom_promise_e_value",
    "headroom_served_bounds_judged",
    "headroom_served_bound_coverage_ratio",
    "headroom_served_broken_share",
    "headroom_bound_lambda",
];

/// Of every number of hours that is offered; NaN where nothing is known.
pub fn describe_kept<'a>(pools: impl Iterator<Item = &'a PublishedPool>, kept: &KeptByPool) {
    for pool in pools {
        let known = kept.get(&pool.id);
        for answer in &pool.answers {
            let hours = answer.hours();
            let lately = known.and_then(|all| all.iter().find(|one| one.hours.get() == hours));
            describe_hours(&pool.id, hours, lately);
            describe_served(&pool.id, hours, pool.made_of.as_deref());
        }
    }
}

fn describe_hours(id: &PoolId, hours: u8, lately: Option<&Lately>) {
    let rate = |kept: Option<KeptRate>| kept.map(|kept| kept.rate);
    let (week, month) = (lately.and_then(|one| one.week), lately.and_then(|one| one.month));
    let (day_least, week_least) = (lately.and_then(|one| one.worst_day), lately.and_then(|one| one.worst_week));
    let rates = [rate(week), rate(month), day_least.map(|day| day.rate), week_least.map(|week| week.rate)];
    for (window, rate) in WINDOWS.into_iter().zip(rates) {
        gauge!("headroom_kept_rate", &of_window(id, hours, window)).set(rate.unwrap_or(f64::NAN));
    }
    for (window, kept) in WINDOWS.into_iter().zip([week, month]) {
        let periods = kept.map_or(f64::NAN, |kept| kept.periods as f64);
        gauge!("headroom_kept_rate_periods", &of_window(id, hours, window)).set(periods);
    }
    let e_value = lately.and_then(|one| one.evidence).map_or(f64::NAN, |found| found.e_value);
    gauge!("headroom_promise_e_value", &of_pool_and(id, "hours", &hours)).set(e_value);
}

fn describe_served(id: &PoolId, hours: u8, made_of: Option<&PoolQuota>) {
    let labels = of_pool_and(id, "hours", &hours);
    let is_of = |of: HorizonHours| of.get() == hours;
    let served = made_of.and_then(|made_of| made_of.served.iter().find(|one| is_of(one.hours)));
    let (coverage, broken) =
        (served.and_then(|one| one.week.coverage()), served.and_then(|one| one.week.broken_share()));
    gauge!("headroom_served_bound_coverage_ratio", &labels).set(coverage.unwrap_or(f64::NAN));
    gauge!("headroom_served_broken_share", &labels).set(broken.unwrap_or(f64::NAN));
    let judged = served.map_or(f64::NAN, |one| one.week.looks as f64);
    gauge!("headroom_served_bounds_judged", &labels).set(judged);
    // A bound that nothing moves is that of the peak.
    let lambda = made_of.map(|made_of| {
        let place = made_of.settings.pool.offered_hours.iter().position(|one| is_of(*one));
        place.and_then(|place| made_of.controlled.get(place)).map_or(1.0, |one| one.lambda)
    });
    gauge!("headroom_bound_lambda", &labels).set(lambda.unwrap_or(f64::NAN));
}

/// A service that wrote for the cluster once does not go on to tell what it knew then.
pub fn forget(pool: &PublishedPool) {
    for answer in &pool.answers {
        for name in OF_HOURS {
            gauge!(name, &of_pool_and(&pool.id, "hours", &answer.hours())).set(f64::NAN);
        }
        for window in WINDOWS {
            gauge!("headroom_kept_rate", &of_window(&pool.id, answer.hours(), window)).set(f64::NAN);
        }
        for window in &WINDOWS[..2] {
            gauge!("headroom_kept_rate_periods", &of_window(&pool.id, answer.hours(), window)).set(f64::NAN);
        }
    }
}

fn of_window(id: &PoolId, hours: u8, window: &str) -> [(&'static str, String); 4] {
    let [cluster, gpu_model] = of_pool(id);
    [cluster, gpu_model, ("hours", hours.to_string()), ("window", window.to_owned())]
}
