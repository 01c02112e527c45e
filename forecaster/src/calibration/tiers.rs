//! Which numbers of hours a forecast teaches at a time.
//!
//! A forecast over 74 hours whose peaks taught once all of its hours are over would leave the bound of one hour without its last three days,
//! and after each training without any outcome of the new model for as long. So peaks over up to [`SHORT_HOURS`] teach when these are over, and
//! those over up to twice as many when those are: no peak over more than four waits for longer than twice its own hours, and a tier is learned by itself.

use super::long::SHORT_HOURS;
use std::ops::Range;
use vocab::HorizonHours;

/// Places `[hours − 1]` of a tier, whose peaks are learned once `end` hours are over.
pub type Tier = Range<usize>;

/// The tiers of a horizon: up to 4 hours, up to 8, up to 16, …; the last ends with it.
pub fn tiers(horizon: HorizonHours) -> Vec<Tier> {
    let (steps, mut all) = (horizon.steps(), Vec::new());
    let (mut start, mut end) = (0, SHORT_HOURS);
    while start < steps {
        all.push(start..end.min(steps));
        (start, end) = (end, 2 * end);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiers_cover_the_horizon_and_none_waits_for_longer_than_twice_its_hours() {
        let of = |hours| tiers(HorizonHours::new(hours).unwrap());
        let ends = |hours| of(hours).iter().map(|tier| tier.end).collect::<Vec<_>>();
        assert_eq!((ends(1), ends(4), ends(5)), (vec![1], vec![4], vec![4, 5]));
        assert_eq!((ends(26), ends(74)), (vec![4, 8, 16, 26], vec![4, 8, 16, 32, 64, 74]));
        for hours in 1..=168 {
            let all = of(hours);
            assert!(all.windows(2).all(|pair| pair[0].end == pair[1].start) && all[0].start == 0);
            assert_eq!(all.last().unwrap().end as u64, hours);
            assert!(all[1..].iter().all(|tier| tier.end <= 2 * tier.start));
        }
    }
}
