//! Residuals of a rolling window, a byte each, and their order statistics.

use vocab::HourStart;

/// Issue times that a window holds: each hour of the week once.
pub const WINDOW_HOURS: usize = 168;
/// A byte that holds no residual.
pub const MISSING: i8 = i8::MIN;
/// Bytes per unit of asinh, and where the scale turns from even steps to even ratios: steps of 0.0125 deviations around
/// zero, of 5 % far out, up to 72 deviations. Against exact residuals pinball losses differ by less than 0.1 %.
const PER_ASINH: f64 = 20.0;
const EVEN_PER_DEVIATION: f64 = 4.0;
const CODES: usize = 256;

/// The byte nearest to a residual in deviations.
pub fn code(residual: f64) -> i8 {
    let limit = f64::from(i8::MAX);
    ((residual * EVEN_PER_DEVIATION).asinh() * PER_ASINH).round().clamp(-limit, limit) as i8
}

/// The residual that a byte stands for, in deviations.
pub fn value(code: i8) -> f64 {
    (f64::from(code) / PER_ASINH).sinh() / EVEN_PER_DEVIATION
}

/// The place of an issue time in a window.
pub fn slot(issue: HourStart) -> usize {
    (issue.unix_s() / 3_600).rem_euclid(WINDOW_HOURS as i64) as usize
}

/// The place, from 0, of the order statistic ⌈(n + 1) p⌉ among `count` sorted residuals; the largest where that is past it.
pub fn rank(count: usize, p: f64) -> usize {
    // A product such as 0.9 × 10 may come out a hair too large.
    let place = ((count as f64 + 1.0) * p - 1e-9).ceil() as usize;
    place.clamp(1, count.max(1)) - 1
}

/// The order statistics of at least one value at levels that rise, each found among those that the last one left above it.
pub fn order_statistics<const LEVELS: usize>(values: &mut [f32], levels: [f64; LEVELS]) -> [f32; LEVELS] {
    let (count, mut from) = (values.len(), 0);
    levels.map(|p| {
        let place = rank(count, p);
        let statistic = *values[from..].select_nth_unstable_by(place - from, f32::total_cmp).1;
        from = place;
        statistic
    })
}

/// How often each byte occurs.
#[derive(Debug, Clone, PartialEq)]
pub struct Counts {
    each: Vec<u32>,
    total: usize,
}

impl Default for Counts {
    fn default() -> Self {
        Self { each: vec![0; CODES], total: 0 }
    }
}

impl Counts {
    /// Number of residuals.
    pub const fn total(&self) -> usize {
        self.total
    }

    /// Forgets all residuals.
    pub fn clear(&mut self) {
        self.each.fill(0);
        self.total = 0;
    }

    /// Adds a residual by its code.
    pub fn add(&mut self, code: i8) {
        if code != MISSING {
            self.each[place(code)] += 1;
            self.total += 1;
        }
    }

    /// Removes a residual by its code.
    pub fn remove(&mut self, code: i8) {
        if code != MISSING {
            self.each[place(code)] -= 1;
            self.total -= 1;
        }
    }

    /// In deviations; `None` without residuals.
    pub fn order_statistic(&self, p: f64) -> Option<f64> {
        if self.total == 0 {
            return None;
        }
        let wanted = rank(self.total, p);
        let mut below = 0;
        let found = self.each.iter().position(|count| {
            below += *count as usize;
            below > wanted
        });
        found.map(|place| value((place as i16 + i16::from(i8::MIN)) as i8))
    }
}

fn place(code: i8) -> usize {
    (i16::from(code) - i16::from(i8::MIN)) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_order_statistic_is_that_of_split_conformal() {
        assert_eq!([(9, 0.9), (10, 0.9), (19, 0.9), (1, 0.9), (0, 0.9)].map(|(n, p)| rank(n, p)), [8, 9, 17, 0, 0]);
        let mut counts = Counts::default();
        assert_eq!(counts.order_statistic(0.9), None);
        for code in [-5, 0, 0, 3, 7, MISSING] {
            counts.add(code);
        }
        assert_eq!((counts.total(), counts.order_statistic(0.5)), (5, Some(0.0)));
        assert_eq!(counts.order_statistic(0.95), Some(value(7)));
        counts.remove(7);
        assert_eq!(counts.order_statistic(0.95), Some(value(3)));
    }

    proptest! {
        #![proptest_config(ProptestConfig { rng_seed: proptest::test_runner::RngSeed::Fixed(7), ..ProptestConfig::default() })]

        #[test]
        fn order_statistics_are_those_of_the_sorted_values(mut values in prop::collection::vec(-9.0..9.0_f32, 1..200)) {
            let found = order_statistics(&mut values, [0.5, 0.9, 0.95, 0.95]);
            values.sort_unstable_by(f32::total_cmp);
            prop_assert_eq!(found, [0.5, 0.9, 0.95, 0.95].map(|p| values[rank(values.len(), p)]));
        }

        #[test]
        fn a_byte_holds_a_residual_to_three_percent(residual in -60.0..60.0_f64) {
            let back = value(code(residual));
            prop_assert!((back - residual).abs() <= 0.03 * residual.abs() + 0.01, "{residual} became {back}");
            prop_assert_ne!(code(residual), MISSING);
        }
    }
}
