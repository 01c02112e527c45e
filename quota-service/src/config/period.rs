//! The cost of a long period between renewals.

use placement::staleness::{STALE_S, VALID_S};

/// The cost of a period between two renewals, as a sentence; `None` where quotas are renewed while they are fresh. Limits of age do not
/// follow the period: demand that was not read for so long may have risen, and connectors age quotas alike.
#[must_use]
pub fn aged_between_renewals(refresh_s: u64) -> Option<String> {
    let (fresh_s, held_after_s) = (VALID_S.unsigned_abs(), (VALID_S + STALE_S).unsigned_abs());
    if refresh_s <= fresh_s {
        return None;
    }
    let lost = match refresh_s.checked_sub(held_after_s) {
        Some(lost_s @ 1..) => {
            format!(
                "conservative after {held_after_s} s: nothing new is admitted in the last {lost_s} s of each period"
            )
        }
        _ => format!(
            "their last value stands until the next renewal, and one that fails may hold them after {held_after_s} s"
        ),
    };
    Some(format!("quotas are renewed every {refresh_s} s and fresh for {fresh_s} s; {lost}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_period_beyond_the_ages_of_quotas_says_what_it_costs() {
        assert_eq!([1, 300, 600].map(aged_between_renewals), [None, None, None]);
        let stale = aged_between_renewals(2_400).unwrap();
        assert!(
            stale.starts_with("quotas are renewed every 2400 s and fresh for 600 s; their last value stands"),
            "{stale}"
        );
        let held = aged_between_renewals(3_600).unwrap();
        assert!(held.ends_with("nothing new is admitted in the last 1200 s of each period"), "{held}");
        assert!(aged_between_renewals(u64::MAX).is_some());
    }
}
