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
        self.chosen = choose(&self.scores, rate);
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
        let known: Vec<f64> = (0..steps)
            .flat_map(|step| self.known.iter().map(move |place| stddevs[step * organizations + place]))
            .collect();
        let mut variances = vec![0.0; steps];
        let size = self.known.len();
        for (known, variances) in known.chunks(STEPS_AT_ONCE * size.max(1)).zip(variances.chunks_mut(STEPS_AT_ONCE)) {
            pulp::Arch::new().dispatch(Variances { matrix: &self.matrix, stddevs: known, size, of_steps: variances });
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

/// Steps that pass a row of correlations together: it is read once for all of them.
const STEPS_AT_ONCE: usize = 8;

/// Variances of sums of values with deviations `[step][value]` and a matrix of their correlations.
struct Variances<'a> {
    matrix: &'a [f64],
    stddevs: &'a [f64],
    size: usize,
    of_steps: &'a mut [f64],
}

impl WithSimd for Variances<'_> {
    type Output = ();

    #[expect(clippy::inline_always, reason = "it is compiled for these registers, in the caller")]
    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) {
        for (place, correlations) in self.matrix.chunks_exact(self.size).enumerate() {
            for (stddevs, variance) in self.stddevs.chunks_exact(self.size).zip(&mut *self.of_steps) {
                *variance += stddevs[place] * dot(correlations, stddevs);
            }
        }
    }
}

/// The sum of products, in sums of their own that a processor adds side by side.
#[expect(clippy::inline_always, reason = "it is compiled for these registers, in the caller")]
#[inline(always)]
fn dot(one: &[f64], other: &[f64]) -> f64 {
    let mut sums = [0.0; 8];
    let (ones, others) = (one.chunks_exact(8), other.chunks_exact(8));
    let rest: f64 = ones.remainder().iter().zip(others.remainder()).map(|(a, b)| a * b).sum();
    for (ones, others) in ones.zip(others) {
        for (sum, (a, b)) in sums.iter_mut().zip(ones.iter().zip(others)) {
            *sum += a * b;
        }
    }
    sums.iter().sum::<f64>() + rest
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
                let forecast = issued.forecasts[place].steps()[step];
                let residual = came[member].demand_gpus[step] - forecast.mean_gpus;
                total += residual;
                let deviation = forecast.stddev_gpus.max(LEAST_STDDEV_GPUS);
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
