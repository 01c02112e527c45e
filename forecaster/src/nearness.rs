//! How much what was measured at one hour of the day says about another.

use std::sync::LazyLock;

/// As a Gaussian of so many hours, and as the part below in any case. Chosen, as the part, on Helios and Philly at once: there is
/// more to lose than to gain by less.
const NEAR_HOURS: f64 = 1.5;
const ANY_HOUR: f64 = 0.2;
const DAY_HOURS: f64 = 24.0;

/// The weights of whole hours apart.
static OF_HOURS: LazyLock<[f64; DAY_HOURS as usize]> =
    LazyLock::new(|| std::array::from_fn(|apart| weight(apart as f64)));

/// [`weight`] at whole hours apart.
pub(crate) fn weight_of_hours(apart: i64) -> f64 {
    OF_HOURS[apart.rem_euclid(DAY_HOURS as i64) as usize]
}

/// The weight of a measurement at an hour of the day that is so many hours apart, in either direction and over any days.
pub(crate) fn weight(apart_hours: f64) -> f64 {
    let apart = apart_hours.rem_euclid(DAY_HOURS);
    let hours = apart.min(DAY_HOURS - apart) / NEAR_HOURS;
    ANY_HOUR + (-0.5 * hours * hours).exp()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_hours_weigh_most_across_midnight_too() {
        assert_eq!(weight(0.0), 1.2);
        assert_eq!((weight(23.0), weight(-25.0)), (weight(1.0), weight(1.0)));
        assert!((-50..50).all(|apart| weight_of_hours(apart) == weight(apart as f64)));
        assert!(weight(12.0) < 0.201 && weight(2.0) > weight(3.0));
    }
}
