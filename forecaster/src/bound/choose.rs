//! Which aggregation serves: chosen on the validation part.

use super::aggregate::bounds;
use super::calibration::{PoolCalibration, members};
use super::{Aggregation, BoundError};
use crate::predict::PredictError;
use crate::scores::{PoolPair, PoolScores, actual_peak_gpus, score_pool};
use datasets::{HourRange, Panel};
use vocab::{DemandForecast, GuaranteeRate, HorizonHours};

/// How the bounds of one aggregation fared.
#[derive(Debug, Clone, PartialEq)]
pub struct AggregationScore {
    pub aggregation: Aggregation,
    pub scores: PoolScores,
}

/// Scores one aggregation over the full horizon at the issue times whose peak was measured; `None` where there are none.
///
/// # Errors
/// A bound is no amount of GPUs.
pub fn score(
    calibration: &PoolCalibration,
    aggregation: Aggregation,
    panel: &Panel,
    issues: HourRange,
    rolled: &[Vec<DemandForecast>],
    rate: GuaranteeRate,
    horizon: HorizonHours,
) -> Result<Option<AggregationScore>, PredictError> {
    let members = members(panel, &calibration.pool);
    let mut pairs = Vec::new();
    for (issue, forecasts) in issues.iter().zip(rolled) {
        let Some(peak_gpus) = actual_peak_gpus(panel, &calibration.pool, issue, horizon) else { continue };
        let forecasts: Vec<_> = members.iter().map(|&place| &forecasts[place]).collect();
        let bound = bounds(&forecasts, aggregation, Some(calibration), rate, &[horizon])?;
        pairs.push(PoolPair { issue, bound_gpus: bound[0].bound.as_gpus(), peak_gpus });
    }
    Ok(score_pool(&pairs, rate).map(|scores| AggregationScore { aggregation, scores }))
}

/// The lowest pinball loss among those whose coverage interval reaches p; where none does, or nothing could be scored,
/// the most careful one (DESIGN §4.6).
#[must_use]
pub fn choose(scores: &[AggregationScore], rate: GuaranteeRate) -> Aggregation {
    let reaches = |one: &&AggregationScore| one.scores.coverage_interval[1] >= rate.as_f64();
    let by_loss = |one: &&AggregationScore, other: &&AggregationScore| {
        let loss = one.scores.pinball_gpus.total_cmp(&other.scores.pinball_gpus);
        loss.then(one.aggregation.cmp(&other.aggregation))
    };
    let best = scores.iter().filter(reaches).min_by(by_loss);
    best.map_or(Aggregation::SumOfBounds, |one| one.aggregation)
}

impl From<BoundError> for PredictError {
    fn from(fault: BoundError) -> Self {
        Self::Bound(fault)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scored(aggregation: Aggregation, pinball_gpus: f64, highest_coverage: f64) -> AggregationScore {
        let scores = PoolScores {
            issues: 100,
            coverage: highest_coverage - 0.05,
            coverage_interval: [highest_coverage - 0.1, highest_coverage],
            pinball_gpus,
            over_reserved_gpus: 0.0,
            shortfall_gpus: 0.0,
        };
        AggregationScore { aggregation, scores }
    }

    #[test]
    fn the_lowest_loss_wins_among_those_that_may_keep_the_promise() {
        let careful = scored(Aggregation::SumOfBounds, 11.0, 1.0);
        let good = scored(Aggregation::Pooled, 8.0, 0.93);
        let bold = scored(Aggregation::Independent, 5.0, 0.85);
        assert_eq!(choose(&[careful.clone(), bold.clone(), good], GuaranteeRate::GFS), Aggregation::Pooled);
        assert_eq!(choose(&[careful, bold.clone()], GuaranteeRate::GFS), Aggregation::SumOfBounds);
        assert_eq!(choose(&[bold], GuaranteeRate::GFS), Aggregation::SumOfBounds, "none keeps it");
    }
}
