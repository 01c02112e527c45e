//! Experts on the peak of a pool, and the mixture of what they state.
//!
//! No bound wins everywhere: on demand that is calm for days and then jumps, the last value and what it missed by say more than
//! a model's centre (PROMISE §5). Each expert states a bound of the peak over 1, 2, … hours; [`Mixture`] weighs them by the
//! pinball loss of what they stated, half by the pool's own outcomes and half by those of all pools of the cluster. A statement
//! is judged by what was known when it was made: residuals of later issue times are left out.

use super::pool::{ConformalHours, Guess, Ranked, Residual, order_statistic};
use super::residual::WINDOW_HOURS;
use crate::mixture::{Mixture, Regrets};
use crate::nearness;
use std::fmt;

/// Experts on the peak of a pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expert {
    /// A centre between sum and total of the organizations, and the order statistics of the pool and of all pools.
    Conformal,
    /// Half of sum and total, and residuals in GPUs, those near the hour of the day before others.
    ConformalNear,
    /// The largest hour before, and how far the peak rose above it.
    LastValue,
    /// The same, rises near the hour of the day before others.
    LastValueNear,
    /// The sum over organizations of their largest 0.9 quantile, as the model states it.
    SumOfQuantiles,
    /// The largest 0.9 quantile of their total as independent Gaussians, as the model states it.
    IndependentTotal,
}

/// How many experts there are.
pub const EXPERTS: usize = 6;

impl Expert {
    /// All experts, in the order of their numbers.
    pub const ALL: [Self; EXPERTS] = [
        Self::Conformal,
        Self::ConformalNear,
        Self::LastValue,
        Self::LastValueNear,
        Self::SumOfQuantiles,
        Self::IndependentTotal,
    ];

    /// Name in answers.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Conformal => "conformal",
            Self::ConformalNear => "conformal-near-hour",
            Self::LastValue => "last-value",
            Self::LastValueNear => "last-value-near-hour",
            Self::SumOfQuantiles => "sum-of-quantiles",
            Self::IndependentTotal => "independent-total",
        }
    }
}

impl fmt::Display for Expert {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Weights before any outcome. A uniform start among unequal experts costs more in a week than it gains (PROMISE §5).
pub const PRIOR: [f64; EXPERTS] = [0.7, 0.06, 0.06, 0.06, 0.06, 0.06];

/// Guarantee rates at which weights are learned; a rate in between uses those of the nearest one.
pub const LEARNED_RATES: [f64; 5] = [0.5, 0.8, 0.9, 0.95, 0.99];

/// Bounds are stated a tenth of the way from p to 1 above p: weights follow the lower bounds while nothing happens, so that a mixture of
/// bounds at p itself holds less often than each of them.
const RAISED: f64 = 0.1;

/// The level at which experts state the bounds of a mixture at `p`.
pub const fn stated_level(p: f64) -> f64 {
    p + RAISED * (1.0 - p)
}

/// The place of the learned rate nearest to `p`.
pub fn nearest_rate(p: f64) -> usize {
    let apart = |place: &usize| (LEARNED_RATES[*place] - p).abs();
    (0..LEARNED_RATES.len()).min_by(|one, other| apart(one).total_cmp(&apart(other))).unwrap_or(0)
}

/// Weights of the experts for one number of hours, at each of the [`LEARNED_RATES`].
pub type RateMixtures = [Mixture<EXPERTS>; LEARNED_RATES.len()];

/// The weights of a pool of which nothing is known.
pub const fn untaught() -> RateMixtures {
    [Mixture::new(PRIOR); LEARNED_RATES.len()]
}

/// The bound of each expert, in GPUs; `None` where it cannot.
pub type Statements = [Option<f64>; EXPERTS];

/// Bound of one expert, and its weight.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stated {
    /// The expert.
    pub expert: Expert,
    /// Its bound, in GPUs; `None` while it knows too little.
    pub bound_gpus: Option<f64>,
    /// Its weight among those that state a bound.
    pub weight: f64,
}

/// Below so many residuals a pool has no order statistic of its own.
const LEAST_OWN_RESIDUALS: usize = 8;

/// Residuals below which an expert that needs its own states nothing.
pub const LEAST_RESIDUALS: usize = 24;

/// Evidence of one pool for one number of hours.
pub struct Evidence<'a> {
    ranked: &'a Ranked,
    number: usize,
    /// Of all pools of the cluster, sorted.
    all: &'a [f32],
    /// The largest demand of the hour before the issue time.
    latest_gpus: Option<f64>,
    /// Residuals of half sum and half total, in GPUs, with their weights by hour of the day.
    near: Vec<(f32, f64)>,
    /// Rises above the last value, in GPUs, with the same weights.
    rises: Vec<(f32, f64)>,
}

impl<'a> Evidence<'a> {
    /// For the peak over `number` + 1 hours from the issue time in `slot`. `residuals` are those for so many hours, by slot;
    /// those of slots that are `left_out` are not known yet.
    pub fn new(
        residuals: impl Iterator<Item = (usize, Residual)>,
        (ranked, number, all): (&'a Ranked, usize, &'a [f32]),
        slot: usize,
        latest_gpus: Option<f64>,
    ) -> Self {
        let (mut near, mut rises) = (Vec::with_capacity(WINDOW_HOURS), Vec::with_capacity(WINDOW_HOURS));
        for (at, residual) in residuals {
            let weight = nearness::weight(at as f64 - slot as f64);
            let gpus = residual.above_gpus(0.5);
            if !gpus.is_nan() {
                near.push((gpus, weight));
            }
            if !residual.rise_gpus.is_nan() {
                rises.push((residual.rise_gpus, weight));
            }
        }
        near.sort_unstable_by(|one, other| one.0.total_cmp(&other.0));
        rises.sort_unstable_by(|one, other| one.0.total_cmp(&other.0));
        Self { ranked, number, all, latest_gpus, near, rises }
    }

    /// The bounds that the experts state for a mixture at `p`, in GPUs.
    pub fn statements(&self, guess: &Guess, p: f64) -> Statements {
        let p = stated_level(p);
        let own = &self.ranked.sorted[self.number];
        let has_enough = |count: usize| count >= LEAST_RESIDUALS;
        let (_, _, above) = weighed(own, self.all, p);
        let conformal = || guess.centre_gpus(self.ranked.share) + above * guess.deviation_gpus;
        let weighted = |of: &[(f32, f64)], is_weighted: bool| {
            has_enough(of.len()).then(|| weighted_order_statistic(of, p, is_weighted))
        };
        let last = |is_weighted| Some(self.latest_gpus? + weighted(&self.rises, is_weighted)?);
        [
            has_enough(own.len()).then(conformal),
            weighted(&self.near, true).map(|above| guess.centre_gpus(0.5) + above),
            last(false),
            last(true),
            Some(guess.sum_gpus),
            Some(guess.total_gpus),
        ]
        .map(|stated| stated.filter(|gpus| gpus.is_finite()))
    }
}

/// The least residual that, with those below it, has p of the weight; the next one counts among them with the largest weight, as
/// in weighted conformal prediction (Tibshirani et al. 2019). With equal weights the order statistic ⌈(n + 1) p⌉. `sorted` is not
/// empty.
fn weighted_order_statistic(sorted: &[(f32, f64)], p: f64, is_weighted: bool) -> f64 {
    let weight = |one: &(f32, f64)| if is_weighted { one.1 } else { 1.0 };
    let all: f64 = sorted.iter().map(weight).sum();
    let most = sorted.iter().map(weight).fold(0.0, f64::max);
    let wanted = (all + most) * p - 1e-9 * all;
    let mut below = 0.0;
    let found = sorted.iter().find(|one| {
        below += weight(one);
        below >= wanted
    });
    found.or(sorted.last()).map_or(0.0, |one| f64::from(one.0))
}

/// The derivative of the pinball loss at p by the bound: the excess share of what an outcome above it costs.
fn slope(bound_gpus: f64, peak_gpus: f64, p: f64) -> f64 {
    if peak_gpus > bound_gpus { -p } else { 1.0 - p }
}

/// Regrets of the mixtures of one number of hours, at each of the [`LEARNED_RATES`].
pub type RateRegrets = [Regrets<EXPERTS>; LEARNED_RATES.len()];

/// The regrets of one outcome at each learned rate, in usual sizes and as the part of one of `overlap` outcomes that share the same
/// hours; `statements` are those at each rate.
pub fn regrets(
    mixtures: &mut RateMixtures,
    statements: &[Statements; LEARNED_RATES.len()],
    peak_gpus: f64,
    overlap: f64,
) -> RateRegrets {
    std::array::from_fn(|rate| {
        let Some(mixed) = mixtures[rate].mix(&statements[rate]) else { return [0.0; EXPERTS] };
        let slope = slope(mixed, peak_gpus, LEARNED_RATES[rate]);
        mixtures[rate].regrets(&statements[rate], slope).map(|one| one / overlap)
    })
}

/// The mean over pools of their regrets, `[hours − 1]`; each pool with its place.
pub fn mean(all: &[(usize, Vec<RateRegrets>)]) -> Vec<RateRegrets> {
    let count = all.len().max(1) as f64;
    let steps = all.first().map_or(0, |(_, one)| one.len());
    let of =
        |number: usize, rate: usize, k: usize| all.iter().map(|(_, one)| one[number][rate][k]).sum::<f64>() / count;
    let of_hours = |number| std::array::from_fn(|rate| std::array::from_fn(|k| of(number, rate, k)));
    (0..steps).map(of_hours).collect()
}

/// Part of the regrets of all pools in what a pool learns.
const SHARED: f64 = 0.5;

/// Moves the weights of one pool by its own regrets and the mean of those of all pools.
pub fn learn(mixtures: &mut RateMixtures, own: &RateRegrets, mean: &RateRegrets) {
    for (rate, mixture) in mixtures.iter_mut().enumerate() {
        let both = std::array::from_fn(|k| (1.0 - SHARED) * own[rate][k] + SHARED * mean[rate][k]);
        mixture.learn(&both, &PRIOR);
    }
}

/// Residuals from which the learned weights count whole. Before, the conformal bound has the rest in proportion: what a day or two
/// taught about experts says little of the next.
const TRUSTED_RESIDUALS: f64 = 96.0;

/// The experts' bounds with their weights at a guarantee rate, for a pool with so many residuals; the conformal one is stated.
pub fn stated(mixtures: &RateMixtures, statements: &Statements, p: f64, residuals: usize) -> [Stated; EXPERTS] {
    let learned = mixtures[nearest_rate(p)].weights_among(statements).unwrap_or([0.0; EXPERTS]);
    let trust = (residuals as f64 / TRUSTED_RESIDUALS).min(1.0);
    let mut weights = learned.map(|weight| trust * weight);
    weights[0] += 1.0 - trust;
    let one =
        |place: usize| Stated { expert: Expert::ALL[place], bound_gpus: statements[place], weight: weights[place] };
    std::array::from_fn(one)
}

/// The order statistic of a pool's own residuals, that of all pools, and the two weighed, in deviations.
pub fn weighed(own: &[f32], all: &[f32], p: f64) -> (f64, f64, f64) {
    let shared = order_statistic(all, p).unwrap_or(0.0);
    let own = order_statistic(own, p).filter(|_| own.len() >= LEAST_OWN_RESIDUALS).unwrap_or(shared);
    let weight = ConformalHours::OWN_WEIGHT;
    (own, shared, weight * own + (1.0 - weight) * shared)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_weights_give_the_order_statistic_of_conformal_prediction() {
        let sorted: Vec<(f32, f64)> = (1..=19_u8).map(|n| (f32::from(n), 1.2)).collect();
        assert_eq!(weighted_order_statistic(&sorted, 0.9, true), 18.0);
        assert_eq!(weighted_order_statistic(&sorted, 0.9, false), 18.0);
        assert_eq!(weighted_order_statistic(&sorted, 0.999, true), 19.0, "the largest where none is large enough");
        let morning: Vec<(f32, f64)> = (1..=19_u8).map(|n| (f32::from(n), if n > 15 { 1.2 } else { 0.2 })).collect();
        assert_eq!(weighted_order_statistic(&morning, 0.5, true), 17.0);
    }

    #[test]
    fn a_rate_uses_the_weights_of_the_nearest_learned_one() {
        assert_eq!([0.01, 0.5, 0.7, 0.9, 0.93, 0.999].map(nearest_rate), [0, 0, 1, 2, 3, 4]);
    }

    #[test]
    fn the_prior_is_a_distribution_that_begins_with_the_conformal_bound() {
        assert!((PRIOR.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        assert!(PRIOR.iter().all(|one| *one > 0.0 && *one <= PRIOR[0]));
        assert_eq!(Expert::ALL[0], Expert::Conformal);
    }
}
