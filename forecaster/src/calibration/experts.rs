//! Experts on the peak of a pool, and the mixture of what they state.
//!
//! No bound wins everywhere: on demand that is calm for days and then jumps, the last value and what it missed by say more than
//! a model's centre (PROMISE §5). Each expert but the last states a bound of the peak over 1, 2, … hours, calibrated on what it missed by
//! over a week; [`Mixture`] weighs them by the pinball loss of what they stated, a quarter by the pool's own outcomes and the rest by
//! those of all pools of the cluster. A statement is judged by what was known when it was made: residuals of later issue times
//! are left out. Over more than four hours the experts without a model have a [longer memory](super::long), and those with few outcomes
//! less weight.

use super::conformal::ConformalHours;
use super::long::{self, Rises, SHORT_HOURS};
use super::pool::{self, Guess, Known, Residual, order_statistic};
use super::residual::{WINDOW_HOURS, slot};
use crate::mixture::{Losses, Mixture};
use crate::nearness;
use crate::scores::pinball;
use std::fmt;
use vocab::{GuaranteeRate, HorizonHours};

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
    /// A rise linear in what the pool did lately ([`Linear`](super::linear::Linear)), and how far the peak was above it.
    Linear,
    /// The peak as the forecasts have it ([`Guess::peak_gpus`]), without what they missed by, for peaks over more than four hours: a week
    /// holds few of their outcomes.
    ForecastPeak,
}

/// How many experts there are.
pub const EXPERTS: usize = 6;

impl Expert {
    /// All experts, in the order of their numbers.
    pub const ALL: [Self; EXPERTS] =
        [Self::Conformal, Self::ConformalNear, Self::LastValue, Self::LastValueNear, Self::Linear, Self::ForecastPeak];

    /// Whether it states bounds over so many hours.
    #[must_use]
    pub const fn states_over(self, hours: HorizonHours) -> bool {
        !matches!(self, Self::ForecastPeak) || hours.steps() > SHORT_HOURS
    }

    /// Name in answers.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Conformal => "conformal",
            Self::ConformalNear => "conformal-near-hour",
            Self::LastValue => "last-value",
            Self::LastValueNear => "last-value-near-hour",
            Self::Linear => "linear",
            Self::ForecastPeak => "forecast-peak",
        }
    }
}

impl fmt::Display for Expert {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Weights before any outcome, for peaks over a number of hours. A uniform start among unequal experts costs more in a week than it
/// gains (PROMISE §5).
pub const fn prior(hours: usize) -> &'static [f64; EXPERTS] {
    if hours > SHORT_HOURS { &PRIOR } else { &SHORT_PRIOR }
}

/// Over more than four hours a week holds too few outcomes to correct by, and the forecasts as they are have a say.
const PRIOR: [f64; EXPERTS] = [0.36, 0.135, 0.135, 0.135, 0.135, OF_FORECAST_PEAK];
const OF_FORECAST_PEAK: f64 = 0.1;
const SHORT_PRIOR: [f64; EXPERTS] = [0.4, 0.15, 0.15, 0.15, 0.15, 0.0];

/// Guarantee rates at which weights are learned; a rate in between uses those of the nearest one.
pub const LEARNED_RATES: [f64; 5] = [0.5, 0.8, 0.9, 0.95, 0.99];

/// The place of the learned rate nearest to `p`.
pub fn nearest_rate(p: f64) -> usize {
    let apart = |place: &usize| (LEARNED_RATES[*place] - p).abs();
    (0..LEARNED_RATES.len()).min_by(|one, other| apart(one).total_cmp(&apart(other))).unwrap_or(0)
}

/// Weights of the experts for one number of hours, at each of the [`LEARNED_RATES`].
pub type RateMixtures = [Mixture<EXPERTS>; LEARNED_RATES.len()];

/// The weights of a pool of which nothing is known, for so many hours.
pub const fn untaught(hours: usize) -> RateMixtures {
    [Mixture::new(*prior(hours)); LEARNED_RATES.len()]
}

/// The experts that state something over so many hours are so many of the first.
pub const fn stating(hours: usize) -> usize {
    if hours > SHORT_HOURS { EXPERTS } else { EXPERTS_BEFORE }
}

/// Experts that older programs knew.
pub const EXPERTS_BEFORE: usize = EXPERTS - 1;

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

/// The share of peaks above the one that the forecasts had at which that expert has no part.
const MOST_ABOVE: f64 = 0.5;

/// Residuals below which an expert that needs its own states nothing.
pub const LEAST_RESIDUALS: usize = 24;

/// Evidence of one pool for one number of hours.
pub struct Evidence<'a> {
    number: usize,
    /// The share of the total in the pool's centre.
    share: f64,
    /// Residuals of the pool above it, sorted.
    own: &'a [f32],
    /// Of all pools of the cluster, sorted.
    all: &'a [f32],
    /// The largest demand of the hour before the issue time.
    latest_gpus: Option<f64>,
    /// Its linear rise.
    linear_rise_gpus: Option<f64>,
    /// Residuals of half sum and half total, in GPUs, with their weights by hour of the day.
    near: Vec<(f32, f64)>,
    /// Rises above the last value, in GPUs, with the same weights.
    rises: Vec<(f32, f64)>,
    /// Rises above the linear one, in GPUs.
    above_linear: Vec<(f32, f64)>,
    /// Hours that the rises cover.
    rise_hours: usize,
    /// Residuals of forecasts, and those of peaks above the one that the forecasts had.
    of_forecasts: [usize; 2],
}

impl<'a> Evidence<'a> {
    /// For the peak over the hours of a place in a tier. `residuals` are those for so many hours, by slot; `long` are rises of a longer
    /// memory, which take the place of those among them.
    pub fn new(
        residuals: impl Iterator<Item = (usize, Residual)>,
        known: &Known<'a>,
        place: usize,
        (latest_gpus, linear_rise_gpus): (Option<f64>, Option<f64>),
        long: Option<Rises>,
    ) -> Self {
        let (number, slot) = (known.tier.start + place, slot(known.issue));
        let [mut near, mut rises, mut above_linear] = [(); 3].map(|()| Vec::with_capacity(WINDOW_HOURS));
        let push = |all: &mut Vec<(f32, f64)>, gpus: f32, weight: f64| {
            if !gpus.is_nan() {
                all.push((gpus, weight));
            }
        };
        let (mut of_forecasts, forecast_peak) = ([0; 2], pool::forecast_peak_above_total(number + 1));
        for (at, residual) in residuals {
            if number >= SHORT_HOURS && !residual.is_none() {
                of_forecasts[0] += 1;
                of_forecasts[1] += usize::from(residual.above_total() > forecast_peak);
            }
            let weight = nearness::weight_of_hours(at as i64 - slot as i64);
            push(&mut near, residual.above_gpus(0.5), weight);
            if long.is_none() {
                push(&mut rises, residual.rise_gpus, weight);
                push(&mut above_linear, residual.above_linear_gpus, weight);
            }
        }
        let (mut rise_hours, mut linear_rise_gpus) = (rises.len(), linear_rise_gpus);
        if let Some(long) = long {
            (rises, above_linear) = (long.above_latest, long.above_linear);
            (rise_hours, linear_rise_gpus) = (long.hours, long.linear_gpus);
        }
        for all in [&mut near, &mut rises, &mut above_linear] {
            all.sort_unstable_by(|one, other| one.0.total_cmp(&other.0));
        }
        Self {
            number,
            share: known.ranked.share,
            own: &known.ranked.sorted[place],
            all: &known.all[place],
            latest_gpus,
            linear_rise_gpus,
            near,
            rises,
            above_linear,
            rise_hours,
            of_forecasts,
        }
    }

    /// The part of its weight that each expert has: those of a model know a week at most.
    pub fn trust(&self) -> [f64; EXPERTS] {
        let hours = self.number + 1;
        let of_model = long::trust(hours, self.own.len());
        let of_rises = long::trust(hours, self.rise_hours);
        [of_model, of_model, of_rises, of_rises, of_rises, self.trust_in_forecast_peak()]
    }

    /// It rests on no residuals, and lies lower the surer a model is of itself. Where half of the peaks of the week were above it, it has no
    /// part: a mean with a bound that is far too low is too low.
    fn trust_in_forecast_peak(&self) -> f64 {
        let [all, above] = self.of_forecasts.map(|count| count as f64);
        let above = if all > 0.0 { above / all } else { 0.0 };
        ((MOST_ABOVE - above) / (MOST_ABOVE - (1.0 - GuaranteeRate::GFS.as_f64()))).clamp(0.0, 1.0)
    }

    /// The bounds of the experts at `p`, in GPUs.
    pub fn statements(&self, guess: &Guess, p: f64) -> Statements {
        let own = self.own;
        let has_enough = |count: usize| count >= LEAST_RESIDUALS;
        let (_, _, above) = weighed(own, self.all, p);
        let conformal = || guess.centre_gpus(self.share) + above * guess.deviation_gpus;
        let hours = self.number + 1;
        // Of a longer memory there are as many as state something.
        let weighted = |of: &[(f32, f64)], is_weighted: bool| {
            let is_enough = if hours > SHORT_HOURS { !of.is_empty() } else { has_enough(of.len()) };
            is_enough.then(|| weighted_order_statistic(of, p, is_weighted, (hours, self.rise_hours)))
        };
        let last = |is_weighted| Some(self.latest_gpus? + weighted(&self.rises, is_weighted)?);
        let linear = || Some(self.latest_gpus? + self.linear_rise_gpus? + weighted(&self.above_linear, false)?);
        let near = || has_enough(self.near.len()).then(|| weighted_order_statistic(&self.near, p, true, (1, 1)));
        [
            has_enough(own.len()).then(conformal),
            near().map(|above| guess.centre_gpus(0.5) + above),
            last(false),
            last(true),
            linear(),
            (hours > SHORT_HOURS).then(|| guess.peak_gpus(hours, p)),
        ]
        // Falls of a pool that needs hardly anything reach below none.
        .map(|stated| stated.filter(|gpus| gpus.is_finite()).map(|gpus| if gpus > 0.0 { gpus } else { 0.0 }))
    }
}

/// The least residual that, with those below it, has p of the weight; the next one counts among them with the largest weight, as
/// in weighted conformal prediction (Tibshirani et al. 2019). With equal weights the order statistic ⌈(n + 1) p⌉, or a
/// [higher one](long::correction) where peaks of so many hours and residuals of so many are long. `sorted` is not empty.
fn weighted_order_statistic(
    sorted: &[(f32, f64)],
    p: f64,
    is_weighted: bool,
    (hours, residual_hours): (usize, usize),
) -> f64 {
    let weight = |one: &(f32, f64)| if is_weighted { one.1 } else { 1.0 };
    let all: f64 = sorted.iter().map(weight).sum();
    let most = sorted.iter().map(weight).fold(long::correction(hours, residual_hours, all), f64::max);
    let wanted = (all + most) * p - 1e-9 * all;
    let mut below = 0.0;
    let found = sorted.iter().find(|one| {
        below += weight(one);
        below >= wanted
    });
    found.or(sorted.last()).map_or(0.0, |one| f64::from(one.0))
}

/// Losses of the experts for one number of hours, at each of the [`LEARNED_RATES`].
pub type RateLosses = [Losses<EXPERTS>; LEARNED_RATES.len()];

/// The losses of one outcome at each learned rate, in usual ones and as the part of one of `overlap` outcomes that share the same
/// hours; `statements` are those at each rate.
pub fn losses(
    mixtures: &mut RateMixtures,
    statements: &[Statements; LEARNED_RATES.len()],
    peak_gpus: f64,
    overlap: f64,
) -> RateLosses {
    std::array::from_fn(|rate| {
        let lost = statements[rate].map(|stated| Some(pinball(peak_gpus, stated?, LEARNED_RATES[rate])));
        mixtures[rate].in_usual(&lost).map(|one| one / overlap)
    })
}

/// The mean over pools of their losses, `[hours − 1]`; each pool with its place.
pub fn mean(all: &[(usize, Vec<RateLosses>)]) -> Vec<RateLosses> {
    let count = all.len().max(1) as f64;
    let steps = all.first().map_or(0, |(_, one)| one.len());
    let of =
        |number: usize, rate: usize, k: usize| all.iter().map(|(_, one)| one[number][rate][k]).sum::<f64>() / count;
    let of_hours = |number| std::array::from_fn(|rate| std::array::from_fn(|k| of(number, rate, k)));
    (0..steps).map(of_hours).collect()
}

/// Part of the losses of all pools in what a pool learns.
const SHARED: f64 = 0.75;

/// Moves the weights of one pool by its own losses and the mean of those of all pools.
pub fn learn(mixtures: &mut RateMixtures, own: &RateLosses, mean: &RateLosses, hours: usize) {
    for (rate, mixture) in mixtures.iter_mut().enumerate() {
        let both = std::array::from_fn(|k| (1.0 - SHARED) * own[rate][k] + SHARED * mean[rate][k]);
        mixture.learn(&both, prior(hours));
    }
}

/// The experts' bounds with their weights at a guarantee rate, of which each has a part; the conformal one is stated.
pub fn stated(mixtures: &RateMixtures, statements: &Statements, trust: &[f64; EXPERTS], p: f64) -> [Stated; EXPERTS] {
    let weights = mixtures[nearest_rate(p)].weights_among(statements).unwrap_or([0.0; EXPERTS]);
    let weights = trusted(weights, trust);
    std::array::from_fn(|place| Stated {
        expert: Expert::ALL[place],
        bound_gpus: statements[place],
        weight: weights[place],
    })
}

/// Weights of which each expert has a part; as they are where all parts are the same, and where nothing is left.
fn trusted(weights: [f64; EXPERTS], trust: &[f64; EXPERTS]) -> [f64; EXPERTS] {
    let parts: [f64; EXPERTS] = std::array::from_fn(|place| weights[place] * trust[place]);
    let all: f64 = parts.iter().sum();
    let is_same = trust.iter().all(|one| *one == trust[0]);
    if is_same || all <= 0.0 { weights } else { parts.map(|part| part / all) }
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
        assert_eq!(weighted_order_statistic(&sorted, 0.9, true, (4, 19)), 18.0);
        assert_eq!(weighted_order_statistic(&sorted, 0.9, false, (4, 19)), 18.0);
        assert_eq!(
            weighted_order_statistic(&sorted, 0.999, true, (4, 19)),
            19.0,
            "the largest where none is large enough"
        );
        let morning: Vec<(f32, f64)> = (1..=19_u8).map(|n| (f32::from(n), if n > 15 { 1.2 } else { 0.2 })).collect();
        assert_eq!(weighted_order_statistic(&morning, 0.5, true, (4, 19)), 17.0);
    }

    #[test]
    fn a_rate_uses_the_weights_of_the_nearest_learned_one() {
        assert_eq!([0.01, 0.5, 0.7, 0.9, 0.93, 0.999].map(nearest_rate), [0, 0, 1, 2, 3, 4]);
    }

    #[test]
    fn the_prior_is_a_distribution_that_begins_with_the_conformal_bound() {
        for hours in [1, SHORT_HOURS, SHORT_HOURS + 1, 72] {
            let prior = prior(hours);
            assert!((prior.iter().sum::<f64>() - 1.0).abs() < 1e-12);
            let (stating, silent) = prior.split_at(stating(hours));
            assert!(stating.iter().all(|one| *one > 0.0 && *one <= prior[0]) && silent.iter().all(|one| *one == 0.0));
        }
        assert_eq!(Expert::ALL[0], Expert::Conformal);
    }
}
