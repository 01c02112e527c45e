//! Sums of gradients, packed with their counts.

/// Gradients of rows in one number each: the gradient as a whole number of grains above, a count of one in the lowest bits.
/// So one addition counts a row, sums are exact, and what one side of a split has is what the other one lacks.
#[derive(Clone, Copy)]
pub struct Grains {
    per_unit: f64,
}

impl Grains {
    const COUNT_BITS: u32 = 24;
    /// Rows at most, so that they can be counted.
    pub const ROWS_MOST: usize = (1 << Self::COUNT_BITS) - 1;

    /// As fine as sums of that many gradients allow.
    pub fn new(gradients: &[f64]) -> Self {
        let largest = gradients.iter().fold(0.0_f64, |largest, one| largest.max(one.abs()));
        let sum_most = (1_u64 << (i64::BITS - Self::COUNT_BITS - 2)) as f64;
        // Amounts lie far inside these ends; they keep the quotient a number.
        Self { per_unit: sum_most / (largest.clamp(1e-200, 1e200) * gradients.len().max(1) as f64) }
    }

    /// A gradient and one row as a packed number.
    pub fn pack(self, gradient: f64) -> i64 {
        ((gradient * self.per_unit).round() as i64) << Self::COUNT_BITS | 1
    }

    /// Sum of the gradients of a packed number.
    pub fn sum(self, packed: i64) -> f64 {
        (packed >> Self::COUNT_BITS) as f64 / self.per_unit
    }

    /// Number of rows of a packed number.
    pub const fn count(packed: i64) -> u32 {
        (packed & Self::ROWS_MOST as i64) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_and_counts_come_back_and_are_no_matter_of_order() {
        let gradients: Vec<f64> = (0..60_000_i32).map(|k| f64::from(k % 97 - 40) * 0.37).collect();
        let grains = Grains::new(&gradients);
        let all: i64 = gradients.iter().map(|gradient| grains.pack(*gradient)).sum();
        let part: i64 = gradients[..100].iter().rev().map(|gradient| grains.pack(*gradient)).sum();
        for (packed, of) in [(all, &gradients[..]), (part, &gradients[..100]), (all - part, &gradients[100..])] {
            let exact: f64 = of.iter().sum();
            assert_eq!(Grains::count(packed) as usize, of.len());
            assert!(
                (grains.sum(packed) - exact).abs() < 1e-6 * of.len() as f64,
                "{} is not {exact}",
                grains.sum(packed)
            );
        }
        for gradients in [vec![], vec![0.0; 3], vec![1e200; 3], vec![-5e-324; 3]] {
            let grains = Grains::new(&gradients);
            let sum = grains.sum(gradients.iter().map(|gradient| grains.pack(*gradient)).sum());
            let exact: f64 = gradients.iter().sum();
            assert!((sum - exact).abs() <= 1e-6 * exact.abs() + 1e-200, "{sum} is not {exact}");
        }
    }
}
