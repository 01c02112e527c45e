//! How the recent past corrects forecasts of organizations, by how far they reach.
//!
//! Forecasts over H hours that are issued less than H hours apart share hours, and are missed together; what was missed is known H
//! hours later, when the model has seen it, too. A week has 42 outcomes over 4 h that share no hour, and seven over 24 h. So over more
//! than [`SHORT_HOURS`] order statistics of residuals correct by half, a level that had risen in forecasts of a day ago moves nothing, the
//! model's own quantiles and the last value have as much weight as the corrected ones before any outcome, rises are remembered for
//! longer, and demand of a day and of a week before has a say.

use super::long::SHORT_HOURS;
use super::quantiles::EXPERTS;
use super::residual::WINDOW_HOURS;
use vocab::HorizonHours;

/// Hours before the present that every service has at hand: a model looks back a week at least, and a week more is read.
pub const AT_HAND_HOURS: usize = 2 * WINDOW_HOURS;
/// Part of the order statistics that corrects over more than [`SHORT_HOURS`]. Chosen on validation, as all that differs there.
const CORRECTION_OF_LONG: f64 = 0.5;
/// First weight of a day and of a week before, and what is left for each other expert. Nightly work has most of the weight after a
/// few days; where nothing comes back at its hour, little is lost. Chosen on validation.
const OF_SEASONAL: f64 = 0.03;
const OF_EACH_LONG: f64 = (1.0 - 2.0 * OF_SEASONAL) / 3.0;

/// How forecasts of one horizon are corrected.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reach {
    /// Weights of the experts on an upper quantile before any outcome: corrected, as the model states it, the last value, a day and a
    /// week before.
    pub prior: [f64; EXPERTS],
    /// Days back whose demand of the same hour states something: those that the horizon needs, or none.
    pub days: usize,
    /// Rises count after the issue times of so many hours,
    pub rises_hours: usize,
    /// of one in so many of them.
    pub rises_every: usize,
    /// Part of the order statistics of residuals that corrects.
    pub correction: f64,
    /// Whether a level that has risen moves the distribution.
    pub follows_levels: bool,
}

impl Reach {
    /// Of forecasts over so many hours.
    pub fn over(horizon: HorizonHours) -> Self {
        if horizon.steps() <= SHORT_HOURS {
            return Self {
                prior: [0.7, 0.15, 0.15, 0.0, 0.0],
                days: 0,
                rises_hours: WINDOW_HOURS,
                rises_every: 1,
                correction: 1.0,
                follows_levels: true,
            };
        }
        // The newest of these issue times is a horizon ago.
        let rises_hours = AT_HAND_HOURS.saturating_sub(horizon.steps()).max(WINDOW_HOURS);
        Self {
            prior: [OF_EACH_LONG, OF_EACH_LONG, OF_EACH_LONG, OF_SEASONAL, OF_SEASONAL],
            days: horizon.steps().div_ceil(24),
            rises_hours,
            rises_every: 2,
            correction: CORRECTION_OF_LONG,
            follows_levels: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hours_at_hand_have_all_rises_of_a_horizon_and_a_week_of_them_counts_in_any() {
        let rises_hours = |hours| Reach::over(HorizonHours::new(hours).unwrap()).rises_hours;
        assert_eq!([1, 4, 5, 24, 72, 168].map(rises_hours), [168, 168, 331, 312, 264, 168]);
        for hours in [1, 4, 5, 24, 72, 168] {
            assert!(hours as usize + rises_hours(hours) <= AT_HAND_HOURS, "{hours} h");
            assert!((Reach::over(HorizonHours::new(hours).unwrap()).prior.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        }
    }
}
