//! Which aggregation serves: chosen on the validation part.

use super::{Aggregation, BoundError};
use crate::predict::PredictError;
use crate::scores::PoolScores;
use vocab::GuaranteeRate;

/// How the bounds of one aggregation fared.
#[derive(Debug, Clone, PartialEq)]
pub struct AggregationScore {
    /// The aggregation.
    pub aggregation: Aggregation,
    /// Its scores on the validation window.
    pub scores: PoolScores,
}

/// Below so many days the interval over days says next to nothing, and the coverage itself has to reach p.
const DAYS_OF_AN_INTERVAL: usize = 7;

/// The largest loss of bounds that learn on the validation part, as a share of the lowest one's. They are the only
/// ones that start knowing nothing there, while correlations were measured on these very hours, and they go on learning.
/// On validation windows of the public traces they lost up to 1.3 times the lowest loss in the week that decides, and over
/// the weeks after it the least of all, or at most 2 % more than that.
const WHILE_LEARNING: f64 = 1.5;

/// The mixture of experts, else conformal bounds, where their coverage interval reaches p and their loss is not out of proportion; else the
/// mixture even so, where it was scored over a week. A bound that does not learn may have fitted that week by chance, and nothing
/// corrects it afterwards until the next training.
///
/// On less than a week: the lowest pinball loss among those whose coverage reaches p. Where none does, the one that kept the promise most
/// often; where nothing could be scored, the sum of bounds.
#[must_use]
pub fn choose(scores: &[AggregationScore], rate: GuaranteeRate) -> Aggregation {
    let is_of_a_week = |one: &&AggregationScore| one.scores.days >= DAYS_OF_AN_INTERVAL;
    let may_keep = |one: &&AggregationScore| {
        let coverage = if is_of_a_week(one) { one.scores.coverage_interval[1] } else { one.scores.coverage };
        coverage >= rate.as_f64()
    };
    let by_loss = |one: &&AggregationScore, other: &&AggregationScore| {
        let loss = one.scores.pinball_gpus.total_cmp(&other.scores.pinball_gpus);
        loss.then(one.aggregation.cmp(&other.aggregation))
    };
    let by_coverage = |one: &&AggregationScore, other: &&AggregationScore| {
        other.scores.coverage.total_cmp(&one.scores.coverage).then_with(|| by_loss(one, other))
    };
    let best = scores.iter().filter(may_keep).min_by(by_loss).or_else(|| scores.iter().min_by(by_coverage));
    let may_learn = |one: &&AggregationScore| {
        let least = best.map_or(0.0, |best| best.scores.pinball_gpus);
        one.scores.coverage_interval[1] >= rate.as_f64() && one.scores.pinball_gpus <= WHILE_LEARNING * least
    };
    let of = |learning: Aggregation| scores.iter().filter(may_learn).find(|one| one.aggregation == learning);
    let learning = Aggregation::LEARNING.into_iter().find_map(of);
    let mixture = || scores.iter().filter(is_of_a_week).find(|one| one.aggregation == Aggregation::Mixture);
    learning.or_else(mixture).or(best).map_or(Aggregation::SumOfBounds, |one| one.aggregation)
}

impl From<BoundError> for PredictError {
    fn from(fault: BoundError) -> Self {
        Self::Bound(fault)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scored(aggregation: Aggregation, pinball_gpus: f64, coverage: f64, days: usize) -> AggregationScore {
        let scores = PoolScores {
            issues: 24 * days,
            days,
            coverage,
            coverage_interval: [coverage - 0.1, coverage + 0.05],
            pinball_gpus,
            over_reserved_gpus: 0.0,
            shortfall_gpus: 0.0,
        };
        AggregationScore { aggregation, scores }
    }

    fn chosen(days: usize, tried: &[(Aggregation, f64, f64)]) -> Aggregation {
        let scores: Vec<_> = tried.iter().map(|&(name, loss, coverage)| scored(name, loss, coverage, days)).collect();
        choose(&scores, GuaranteeRate::GFS)
    }

    const CAREFUL: (Aggregation, f64, f64) = (Aggregation::SumOfBounds, 11.0, 1.0);
    const GOOD: (Aggregation, f64, f64) = (Aggregation::Pooled, 8.0, 0.88);
    const BOLD: (Aggregation, f64, f64) = (Aggregation::Independent, 5.0, 0.8);

    #[test]
    fn the_lowest_loss_wins_among_those_that_may_keep_the_promise() {
        assert_eq!(chosen(7, &[CAREFUL, BOLD, GOOD]), Aggregation::Pooled);
        assert_eq!(chosen(7, &[CAREFUL, BOLD]), Aggregation::SumOfBounds);
    }

    #[test]
    fn on_less_than_a_week_the_coverage_itself_has_to_reach_the_promise() {
        assert_eq!(chosen(3, &[CAREFUL, BOLD, GOOD]), Aggregation::SumOfBounds);
    }

    #[test]
    fn conformal_bounds_serve_unless_they_break_the_promise_or_lose_out_of_proportion() {
        let conformal = |loss, coverage| (Aggregation::Conformal, loss, coverage);
        for days in [3, 7] {
            assert_eq!(chosen(days, &[CAREFUL, GOOD, conformal(9.0, 0.87)]), Aggregation::Conformal);
            assert_eq!(chosen(days, &[CAREFUL, conformal(9.0, 0.8)]), Aggregation::SumOfBounds);
            assert_eq!(chosen(days, &[CAREFUL, conformal(17.0, 0.95)]), Aggregation::SumOfBounds);
        }
    }

    #[test]
    fn the_mixture_serves_after_a_week_though_another_bound_fitted_it_better() {
        let mixture = |loss, coverage| (Aggregation::Mixture, loss, coverage);
        for (loss, coverage) in [(17.0, 0.95), (9.0, 0.8)] {
            assert_eq!(chosen(7, &[CAREFUL, GOOD, mixture(loss, coverage)]), Aggregation::Mixture);
            assert_eq!(chosen(3, &[CAREFUL, GOOD, mixture(loss, coverage)]), Aggregation::SumOfBounds);
        }
        let conformal = (Aggregation::Conformal, 9.0, 0.9);
        assert_eq!(chosen(7, &[CAREFUL, conformal, mixture(17.0, 0.95)]), Aggregation::Conformal);
    }

    #[test]
    fn where_none_may_keep_it_the_most_careful_serves() {
        assert_eq!(chosen(7, &[BOLD, (Aggregation::SumOfBounds, 4.0, 0.7)]), Aggregation::Independent);
        assert_eq!(choose(&[], GuaranteeRate::GFS), Aggregation::SumOfBounds);
    }
}
