//! How bounds were moved to keep the promise, in words and numbers.

use super::cluster::PoolQuota;
use forecaster::risk::LAMBDA_MOST;
use placement::{Quota, Reason};
use vocab::GuaranteeRate;
use wire::KeptExplanation;

/// How the bound of the peak was moved to keep the promise.
pub fn kept_sentence(pool: &PoolQuota, place: usize) -> String {
    let Some(KeptExplanation { peak_bound_gpus, lambda }) = kept_explanation(pool, place) else { return String::new() };
    let why = "by how many promises were broken lately, or would have been by what was measured";
    if lambda > 1.0 {
        let part = (lambda - 1.0) / (LAMBDA_MOST - 1.0);
        return format!(
            "; above the bound of the peak, {peak_bound_gpus:.3}, by {part:.3} of the way to all GPUs, {why}"
        );
    }
    if lambda < 1.0 {
        return format!(
            "; {lambda:.3} of the way from what HP needs now to the bound of the peak, {peak_bound_gpus:.3}, {why}"
        );
    }
    "; the bound of the peak, until more is known of what is kept".to_owned()
}

/// How the bound of a number of hours was moved; none where it was not.
pub fn kept_explanation(pool: &PoolQuota, place: usize) -> Option<KeptExplanation> {
    let moved = pool.controlled.get(place)?;
    Some(KeptExplanation { peak_bound_gpus: moved.peak_gpus, lambda: moved.lambda })
}

/// Where what was measured cannot tell p.
pub fn not_supported(pool: &PoolQuota, quota: &Quota) -> Option<Reason> {
    not_supported_at(pool, quota, pool.settings.pool.guarantee_rate)
}

/// The same at another p.
pub fn not_supported_at(pool: &PoolQuota, quota: &Quota, rate: GuaranteeRate) -> Option<Reason> {
    let (settings, hours) = (&pool.settings.pool, quota.hours);
    let place = settings.offered_hours.iter().position(|offered| *offered == hours)?;
    let supported_ppm = (pool.supported.get(place)? * 1e6).round() as u32;
    (supported_ppm < rate.ppm()).then_some(Reason::RateNotSupported { hours, rate, supported_ppm })
}
