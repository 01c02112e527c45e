//! Which aggregation serves.

use super::{Aggregation, BoundError};
use crate::predict::PredictError;
use crate::scores::PoolScores;

/// How the bounds of one aggregation fared.
#[derive(Debug, Clone, PartialEq)]
pub struct AggregationScore {
    /// The aggregation.
    pub aggregation: Aggregation,
    /// Its scores on the validation window.
    pub scores: PoolScores,
}

/// The mixture of experts, where the pool's peak was measured on the validation part; else the sum of bounds, which needs none.
///
/// Scores of one validation week do not choose: it has seven outcomes of a day that share no hour, and two of three days. What fitted them
/// better did so by chance, and is corrected by nothing until the next training, while the mixture follows what becomes of its experts.
#[must_use]
pub const fn choose(scores: &[AggregationScore]) -> Aggregation {
    if scores.is_empty() { Aggregation::SumOfBounds } else { Aggregation::Mixture }
}

impl From<BoundError> for PredictError {
    fn from(fault: BoundError) -> Self {
        Self::Bound(fault)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mixture_serves_where_a_peak_was_measured_though_another_bound_fitted_that_week_better() {
        let scored = |aggregation, pinball_gpus| {
            let scores = PoolScores {
                issues: 168,
                days: 7,
                coverage: 0.9,
                coverage_interval: [0.8, 0.95],
                pinball_gpus,
                over_reserved_gpus: 0.0,
                shortfall_gpus: 0.0,
            };
            AggregationScore { aggregation, scores }
        };
        let scores = [scored(Aggregation::Independent, 5.0), scored(Aggregation::Mixture, 17.0)];
        assert_eq!(choose(&scores), Aggregation::Mixture);
        assert_eq!(choose(&[]), Aggregation::SumOfBounds);
    }
}
