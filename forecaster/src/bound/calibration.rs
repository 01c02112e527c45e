//! Knowledge of a pool from the validation part.

use super::aggregate::bounds;
use super::shrinkage::{self, Correlation};
use super::{Aggregation, AggregationScore, choose};
use crate::calibration::Issued;
use crate::predict::PredictError;
use crate::scores::{PoolPair, actual_peak_gpus, score_pool};
use datasets::{HourRange, Panel};
use pulp::{Simd, WithSimd};
use std::collections::BTreeMap;
use vocab::{GuaranteeRate, HorizonHours, HourStart, Organization, PoolId};

/// Deviations are floored here when residuals are standardised, in GPUs.
const LEAST_STDDEV_GPUS: f64 = 1e-3;

/// Correlations of standardised residuals, and how each aggregation fared, on the validation part.
#[derive(Debug, Clone, PartialEq)]
pub struct PoolCalibration {
    /// The pool.
    pub pool: PoolId,
    /// Organizations of the correlation, in the order of its rows.
    pub organizations: Vec<Organization>,
    /// Among organizations, row-major in their order, shrunk, ones on the diagonal.
    pub correlation: Vec<f64>,
    /// Stands in for an organization that was not there in training.
    pub mean_correlation: f64,
    /// Between the steps of one issue time, of the pool's standardised total.
    pub step_correlation: f64,
    /// Score of each aggregation on the validation window.
    pub scores: Vec<AggregationScore>,
    /// The aggregation that serves.
    pub chosen: Aggregation,
}

impl PoolCalibration {
    /// Measures a pool on what went out at each of the validation issue times.
    ///
    /// # Errors
    /// A bound is no amount of GPUs.
    pub fn fit(
        pool: &PoolId,
        panel: &Panel,
        issues: HourRange,
        issued: &[Issued],
        rate: GuaranteeRate,
        horizon: HorizonHours,
    ) -> Result<Self, PredictError> {
        let mut residuals = PoolResiduals::new(pool, panel, issues, horizon);
        issues.iter().zip(issued).for_each(|(issue, issued)| residuals.add(panel, issue, issued));
        let mut calibration = residuals.correlated();
        let members = members(panel, pool, issues, horizon);
        let mut pairs = vec![Vec::new(); Aggregation::ALL.len()];
        for (issue, issued) in issues.iter().zip(issued) {
            calibration.pair(&members, panel, issue, issued, rate, horizon, &mut pairs)?;
        }
        calibration.choose(&pairs, rate);
        Ok(calibration)
    }

    /// Adds the bound of each aggregation at an issue time to its pairs, where the peak was measured.
    ///
    /// # Errors
    /// A bound is no amount of GPUs.
    #[expect(clippy::too_many_arguments, reason = "what is scored, at which hour, for which promise")]
    pub(crate) fn pair(
        &self,
        members: &[usize],
        panel: &Panel,
        issue: HourStart,
        issued: &Issued,
        rate: GuaranteeRate,
        horizon: HorizonHours,
        pairs: &mut [Vec<PoolPair>],
    ) -> Result<(), PredictError> {
        let Some(peak_gpus) = actual_peak_gpus(panel, &self.pool, issue, horizon) else { return Ok(()) };
        let forecasts: Vec<_> = members.iter().map(|&place| &issued.forecasts[place]).collect();
        let conformal = issued.conformal.get(&self.pool);
        for (aggregation, pairs) in Aggregation::ALL.into_iter().zip(pairs) {
            let bound = bounds(&forecasts, aggregation, Some(self), conformal, rate, &[horizon])?;
            pairs.push(PoolPair { issue, bound_gpus: bound[0].bound.as_gpus(), peak_gpus });
        }
        Ok(())
    }

    /// Scores the pairs of each aggregation and decides which one serves.
    pub(crate) fn choose(&mut self, pairs: &[Vec<PoolPair>], rate: GuaranteeRate) {
        let scored = Aggregation::ALL.into_iter().zip(pairs).filter_map(|(aggregation, pairs)| {
            score_pool(pairs, rate).map(|scores| AggregationScore { aggregation, scores })
        });
        self.scores = scored.collect();
        self.chosen = choose(&self.scores);
    }

    /// The correlation of two organizations.
    #[must_use]
    pub fn between(&self, one: &Organization, other: &Organization) -> f64 {
        let place = |name: &Organization| self.organizations.iter().position(|known| known == name);
        match (place(one), place(other)) {
            _ if one == other => 1.0,
            (Some(row), Some(column)) => self.correlation[row * self.organizations.len() + column],
            _ => self.mean_correlation,
        }
    }

    /// Correlations among `organizations`: one lookup for many bounds. Those that training did not know correlate alike, so
    /// that they cost no matrix.
    #[must_use]
    pub fn among(&self, organizations: &[&Organization]) -> Correlations {
        let places: BTreeMap<&Organization, usize> =
            self.organizations.iter().enumerate().map(|(place, name)| (name, place)).collect();
        let in_training = |(place, name): (usize, &&Organization)| Some((place, *places.get(*name)?));
        let known: Vec<(usize, usize)> = organizations.iter().enumerate().filter_map(in_training).collect();
        let mut is_known = vec![false; organizations.len()];
        for (place, _) in &known {
            is_known[*place] = true;
        }
        let mut matrix = Vec::with_capacity(known.len() * known.len());
        for (place, (_, row)) in known.iter().enumerate() {
            let row = &self.correlation[row * self.organizations.len()..][..self.organizations.len()];
            matrix.extend(known.iter().map(|(_, column)| row[*column]));
            matrix[place * known.len() + place] = 1.0;
        }
        Correlations {
            matrix,
            known: known.into_iter().map(|(place, _)| place).collect(),
            unknown: (0..organizations.len()).filter(|place| !is_known[*place]).collect(),
            mean: self.mean_correlation,
        }
    }
}

/// Correlations among the organizations of a pool.
#[derive(Debug, Clone, PartialEq)]
pub struct Correlations {
    /// Places of those that were there in training.
    known: Vec<usize>,
    /// Among those, row-major, ones on the diagonal.
    matrix: Vec<f64>,
    /// Places of the others, each of which correlates with every one as they do on average.
    unknown: Vec<usize>,
    mean: f64,
}

impl Correlations {
    /// The variance of the sum of values with these deviations.
    #[must_use]
    pub fn variance(&self, stddevs: &[f64]) -> f64 {
        self.variances(stddevs, stddevs.len(), 1)[0]
    }

    /// The same at each of some steps; `stddevs` are those of so many organizations at each, `[step][organization]`.
    #[must_use]
    pub fn variances(&self, stddevs: &[f64], organizations: usize, steps: usize) -> Vec<f64> {
        let (mut variances, size) = (vec![0.0; steps], self.known.len());
        let mut known = vec![0.0; size * STEPS_AT_ONCE];
        for (place, variances) in variances.chunks_mut(STEPS_AT_ONCE).enumerate().filter(|_| size > 0) {
            let of_steps = &stddevs[place * STEPS_AT_ONCE * organizations..];
            for (known, place) in known.chunks_exact_mut(STEPS_AT_ONCE).zip(&self.known) {
                let of_place = of_steps.iter().skip(*place).step_by(organizations);
                known[..variances.len()].iter_mut().zip(of_place).for_each(|(known, stddev)| *known = *stddev);
            }
            let found = pulp::Arch::new().dispatch(Variances { matrix: &self.matrix, stddevs: &known, size });
            variances.copy_from_slice(&found[..variances.len()]);
        }
        if !self.unknown.is_empty() {
            for (step, variance) in variances.iter_mut().enumerate() {
                *variance = self.with_unknown(*variance, &stddevs[step * organizations..][..organizations]);
            }
        }
        variances
    }

    /// A variance among known organizations, with what those add that training did not know.
    fn with_unknown(&self, among_known: f64, stddevs: &[f64]) -> f64 {
        let sum = |places: &[usize]| places.iter().map(|place| stddevs[*place]).sum::<f64>();
        let squares: f64 = self.unknown.iter().map(|place| stddevs[*place].powi(2)).sum();
        let new = sum(&self.unknown);
        among_known + squares + self.mean * (new.powi(2) - squares) + 2.0 * self.mean * new * sum(&self.known)
    }
}

/// Steps that pass a row of correlations together, each in a lane of its own: no register is as wide as more of them.
const STEPS_AT_ONCE: usize = 8;

/// Variances of sums of values with deviations `[value][STEPS_AT_ONCE]` and a matrix of their correlations.
struct Variances<'a> {
    matrix: &'a [f64],
    stddevs: &'a [f64],
    size: usize,
}

impl WithSimd for Variances<'_> {
    type Output = [f64; STEPS_AT_ONCE];

    #[expect(clippy::inline_always, reason = "it is compiled for these registers, in the caller")]
    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> Self::Output {
        let mut found = [0.0; STEPS_AT_ONCE];
        let (variances, _) = S::as_mut_simd_f64s(&mut found);
        let (stddevs, _) = S::as_simd_f64s(self.stddevs);
        let registers = variances.len();
        for (place, correlations) in self.matrix.chunks_exact(self.size).enumerate() {
            for (register, variance) in variances.iter_mut().enumerate() {
                let products = simd.mul_f64s(
                    stddevs[place * registers + register],
                    dot(simd, correlations, stddevs, (registers, register)),
                );
                *variance = simd.add_f64s(*variance, products);
            }
        }
        found
    }
}

/// Adds products to sums, each a variable of its own: those of an array may be written to memory after each product.
macro_rules! add_products {
    (($simd:ident, $ones:ident, $others:ident, $registers:ident, $register:ident) $($sum:ident $place:literal)*) => {
        $(
            let one = $simd.splat_f64s($ones[$place]);
            $sum = $simd.add_f64s($sum, $simd.mul_f64s(one, $others[$place * $registers + $register]));
        )*
    };
}

/// Sums of products with one register of so many of each value, in eight sums of their own that a processor adds side by side, and the
/// rest.
#[expect(clippy::inline_always, reason = "it is compiled for these registers, in the caller")]
#[inline(always)]
fn dot<S: Simd>(simd: S, one: &[f64], other: &[S::f64s], (registers, register): (usize, usize)) -> S::f64s {
    let zero = simd.splat_f64s(0.0);
    let [mut s0, mut s1, mut s2, mut s3, mut s4, mut s5, mut s6, mut s7] = [zero; 8];
    let (ones, others) = (one.chunks_exact(8), other.chunks_exact(8 * registers));
    let mut rest = zero;
    for (one, other) in ones.remainder().iter().zip(others.remainder().chunks_exact(registers)) {
        rest = simd.add_f64s(rest, simd.mul_f64s(simd.splat_f64s(*one), other[register]));
    }
    for (ones, others) in ones.zip(others) {
        add_products!((simd, ones, others, registers, register) s0 0 s1 1 s2 2 s3 3 s4 4 s5 5 s6 6 s7 7);
    }
    let mut sum = s0;
    for next in [s1, s2, s3, s4, s5, s6, s7, rest] {
        sum = simd.add_f64s(sum, next);
    }
    sum
}

/// Of a pool with more organizations than this only so many, evenly spaced, are correlated, and the others are taken to do as
/// these do on average: a matrix of all of them would grow with their square. 32 MB hold one of so many.
const MOST_CORRELATED: usize = 2_000;

fn correlated(members: Vec<usize>) -> Vec<usize> {
    let every = members.len().div_ceil(MOST_CORRELATED).max(1);
    members.into_iter().step_by(every).collect()
}

/// Places in the panel of a pool's organizations that were measured in any hour that was forecast: one that had left
/// before, or came after, would leave no hour in which all were measured.
pub fn members(panel: &Panel, pool: &PoolId, issues: HourRange, horizon: HorizonHours) -> Vec<usize> {
    let first = panel.index_of(issues.from).unwrap_or(0).min(panel.hours());
    let end = (first + issues.hours() + horizon.steps()).min(panel.hours());
    let was_measured = |place: &usize| panel.series()[*place].measured()[first..end].contains(&true);
    panel.places_of(pool).filter(was_measured).collect()
}

/// Residuals of a pool's organizations, issue time by issue time.
pub(crate) struct PoolResiduals {
    pool: PoolId,
    members: Vec<usize>,
    organizations: Vec<Organization>,
    horizon: HorizonHours,
    /// `[member][step][issue time]`, in deviations.
    standardised: Vec<Vec<Vec<f64>>>,
    /// `[step][issue time]`, of the total, in GPUs.
    total: Vec<Vec<f64>>,
    issues: usize,
}

impl PoolResiduals {
    /// Without any issue time yet.
    pub(crate) fn new(pool: &PoolId, panel: &Panel, issues: HourRange, horizon: HorizonHours) -> Self {
        let members = correlated(members(panel, pool, issues, horizon));
        let organizations = members.iter().map(|&place| panel.series()[place].id().organization.clone()).collect();
        Self {
            pool: pool.clone(),
            standardised: vec![vec![Vec::new(); horizon.steps()]; members.len()],
            total: vec![Vec::new(); horizon.steps()],
            members,
            organizations,
            horizon,
            issues: 0,
        }
    }

    /// Adds an issue time, if every member was measured at every step.
    pub(crate) fn add(&mut self, panel: &Panel, issue: HourStart, issued: &Issued) {
        let outcome = |&place: &usize| datasets::window::outcome(panel, place, issue, self.horizon);
        let came: Option<Vec<_>> = self.members.iter().map(outcome).collect();
        let Some(came) = came.filter(|all| all.iter().all(|one| !one.measured.contains(&false))) else { return };
        self.issues += 1;
        for step in 0..self.horizon.steps() {
            let mut total = 0.0;
            for (member, &place) in self.members.iter().enumerate() {
                let forecast = &issued.forecasts[place];
                let residual = came[member].demand_gpus[step] - forecast.mean_for_bounds_gpus(step);
                total += residual;
                let deviation = forecast.steps()[step].stddev_gpus.max(LEAST_STDDEV_GPUS);
                self.standardised[member][step].push(residual / deviation);
            }
            self.total[step].push(total);
        }
    }

    /// The calibration that follows from them; no aggregation is scored yet.
    pub(crate) fn correlated(self) -> PoolCalibration {
        let samples: Vec<Vec<f64>> = self.standardised.iter().map(|steps| steps.concat()).collect();
        let independent = self.issues as f64 / self.horizon.steps() as f64;
        let Correlation { matrix, mean } = shrinkage::correlation(&samples, independent);
        PoolCalibration {
            step_correlation: self.step_correlation(),
            pool: self.pool,
            organizations: self.organizations,
            correlation: matrix,
            mean_correlation: mean,
            scores: Vec::new(),
            chosen: Aggregation::SumOfBounds,
        }
    }

    /// The mean correlation between two steps of the total.
    fn step_correlation(&self) -> f64 {
        let steps = self.total.len();
        let pairs = (0..steps).flat_map(|one| (one + 1..steps).map(move |other| (one, other)));
        let each: Vec<f64> = pairs.map(|(one, other)| shrinkage::pair(&self.total[one], &self.total[other])).collect();
        if each.is_empty() { 1.0 } else { (each.iter().sum::<f64>() / each.len() as f64).clamp(0.0, 1.0) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As one processor lane adds them: eight sums, the rest, and the sum of these.
    fn alone(one: &[f64], other: &[f64]) -> f64 {
        let whole = one.len() / 8 * 8;
        let product = |at: usize| one[at] * other[at];
        let eight = (0..8).map(|first| (first..whole).step_by(8).map(product).sum::<f64>());
        eight.sum::<f64>() + (whole..one.len()).map(product).sum::<f64>()
    }

    #[test]
    fn variances_of_many_steps_are_the_bits_of_each_alone() {
        for (size, steps) in [(1, 1), (7, 3), (21, 8), (32, 19)] {
            let matrix: Vec<f64> = (0..size * size).map(|at| (at * 31 % 17) as f64 / 17.0 - 0.3).collect();
            let stddevs: Vec<f64> = (0..size * steps).map(|at| (at * 37 % 101) as f64 * 0.13 + 0.1).collect();
            let known = Correlations { matrix, known: (0..size).rev().collect(), unknown: Vec::new(), mean: 0.0 };
            for (step, variance) in known.variances(&stddevs, size, steps).into_iter().enumerate() {
                let of_step: Vec<f64> = stddevs[step * size..][..size].iter().rev().copied().collect();
                let rows = known.matrix.chunks(size).zip(&of_step).map(|(row, one)| one * alone(row, &of_step));
                assert_eq!(variance.to_bits(), rows.sum::<f64>().to_bits(), "{size} organizations, step {step}");
            }
        }
        let none = Correlations { matrix: Vec::new(), known: Vec::new(), unknown: vec![0], mean: 0.0 };
        assert_eq!(none.variances(&[2.0, 3.0], 1, 2), [4.0, 9.0]);
    }
}
