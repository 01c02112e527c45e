//! What must always hold, as named functions: called by the code, the property tests and the simulator alike.

use crate::eta::{Eta, EtaState};
use crate::quota::Quota;
use crate::settings::PoolSettings;

/// Q_H ≤ f·η, Q_H ≤ S0 + Sa, f ≤ C, and available + used covers the quota unless spot holds more than it.
///
/// # Panics
/// When it does not hold.
pub fn quota_stays_inside_its_limits(quota: &Quota) {
    assert!(quota.quota <= quota.scaled_inventory, "a quota exceeds its scaled inventory: {quota:?}");
    assert!(quota.quota <= quota.ceiling, "a quota exceeds what is idle or spot: {quota:?}");
    assert!(quota.inventory <= quota.capacity, "an inventory exceeds the capacity: {quota:?}");
    assert!(quota.available <= quota.quota, "more is available than the quota: {quota:?}");
}

/// Q₁ ≥ Q₂ ≥ Q₄, and so is what they leave: a longer promise is never easier to get.
///
/// # Panics
/// When it does not hold.
pub fn longer_guarantees_get_no_more(quotas: &[Quota]) {
    let falls = quotas.is_sorted_by(|one, next| one.hours < next.hours && one.quota >= next.quota);
    assert!(falls, "quotas rise with the guarantee hours: {quotas:?}");
    let available_falls = quotas.is_sorted_by(|one, next| one.available >= next.available);
    assert!(available_falls, "more is available with longer guarantees: {quotas:?}");
}

/// η stays between its bounds, and a move stays within half and one and a half of where it was.
///
/// # Panics
/// When it does not hold.
pub fn eta_moves_within_bounds(before: &EtaState, after: Eta, settings: &PoolSettings) {
    assert!((settings.eta_least..=settings.eta_most).contains(&after), "eta {after} left its bounds");
    let (from, to) = (u64::from(before.eta.micro()), u64::from(after.micro()));
    assert!(2 * to + 2 >= from && 2 * to <= 3 * from, "eta jumped from {} to {after}", before.eta);
}
