//! The probability that HP demand leaves room until an instant.

use super::cluster::{BoundsOf, PoolQuota};
use forecaster::Predict;
use vocab::{GuaranteeRate, HorizonHours, MilliGpus, SECONDS_PER_HOUR, UnixSeconds};

/// Probabilities below and above are answered as these: no bound tells them apart.
const LEAST_AND_MOST: (f64, f64) = (0.01, 0.99);
/// Halvings between the two: to less than a hundredth.
const HALVINGS: usize = 7;

/// The largest p at which the bound of HP demand from now until `until` leaves the other GPUs of the capacity: at most `room`. The demand of
/// hours before a window counts as if it were of the window, so that it is rather too small. `None` beyond the model's horizon.
#[must_use]
pub fn chance_of_room(pool: &PoolQuota, until: UnixSeconds, room: MilliGpus) -> Option<f64> {
    let seconds = until.since_s(pool.issue.instant()).max(1);
    let hours = u64::try_from(seconds).ok()?.div_ceil(SECONDS_PER_HOUR.unsigned_abs());
    let hours = HorizonHours::new(hours).ok().filter(|hours| *hours <= pool.run.trained.horizon())?;
    let of = BoundsOf {
        forecasts: pool.corrected.issued(),
        corrected: &pool.corrected,
        set: Some(pool.aggregation),
        more_steps: 0,
    };
    let holds = |rate: f64| {
        let rate = GuaranteeRate::new(rate).ok()?;
        let bounds = of.at(&pool.id, &[hours], rate).ok()?.bounds;
        Some(bounds.first()?.bound <= room)
    };
    let (mut low, mut high) = LEAST_AND_MOST;
    if holds(high)? {
        return Some(high);
    }
    if !holds(low)? {
        return Some(0.0);
    }
    for _ in 0..HALVINGS {
        let middle = f64::midpoint(low, high);
        if holds(middle)? { low = middle } else { high = middle }
    }
    // The lower end, in hundredths.
    Some((low * 100.0).floor() / 100.0)
}
