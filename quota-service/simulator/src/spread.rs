//! Differences from run to run.

use serde::Serialize;

/// A mean over seeds, and the deviation of the sample; 0 for one seed.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Spread {
    pub mean: f64,
    pub sd: f64,
}

impl Spread {
    #[must_use]
    pub fn of(values: &[f64]) -> Self {
        let count = values.len().max(1) as f64;
        // The sum of none, and of zeros from below, is −0.
        let mean = (0.0 + values.iter().sum::<f64>()) / count;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        Self { mean, sd: ((0.0 + squares) / (count - 1.0).max(1.0)).sqrt() }
    }

    /// The mean with its deviation.
    #[must_use]
    pub fn text(&self, digits: usize) -> String {
        format!("{:.digits$} ± {:.digits$}", self.mean, self.sd)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_is_the_mean_and_the_deviation_of_the_sample() {
        assert_eq!(Spread::of(&[1.0, 2.0, 3.0]), Spread { mean: 2.0, sd: 1.0 });
        assert_eq!(Spread::of(&[5.0]), Spread { mean: 5.0, sd: 0.0 });
        let zeros = [Spread::of(&[]), Spread::of(&[-0.0])].map(|spread| format!("{} {}", spread.mean, spread.sd));
        assert_eq!(zeros, ["0 0", "0 0"]);
    }
}
