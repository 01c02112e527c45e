//! B_H from the forecasts of a pool's organizations.

use super::step_quantile::StepQuantile;
use super::{Aggregation, Correlations, PoolCalibration, max_of_steps};
use crate::calibration::{Conformal, ConformalHours, EXPERTS, Stated, mixture_gpus};
use crate::gaussian;
use vocab::{AmountError, DemandForecast, GuaranteeRate, HorizonHours, MilliGpus, Organization};

/// Why there is no bound.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum BoundError {
    /// A forecast has fewer steps than the hours of the bound.
    #[error("a bound over {hours} needs {hours} of forecast, and there are {have} h")]
    ShortForecast {
        /// Hours of the promise.
        hours: HorizonHours,
        /// Steps of the forecast.
        have: usize,
    },
    /// The bound is no amount of GPUs.
    #[error("the bound over {hours} is no amount: {fault}")]
    NoAmount {
        /// Hours of the promise.
        hours: HorizonHours,
        /// Why the bound is no amount of GPUs.
        fault: AmountError,
    },
}

/// The part of one organization in a bound.
#[derive(Debug, Clone, PartialEq)]
pub struct OrganizationShare {
    /// The organization.
    pub organization: Organization,
    /// The step (from 1) at which its own bound is largest.
    pub step: usize,
    /// Mean of its demand at the step, in GPUs.
    pub mean_gpus: f64,
    /// Standard deviation, in GPUs.
    pub stddev_gpus: f64,
    /// Its quantile at p in that step.
    pub bound_gpus: f64,
}

/// The pool's total in one step, as a Gaussian.
///
/// ```
/// use forecaster::bound::StepTotal;
///
/// let total = StepTotal { mean_gpus: 30.0, stddev_gpus: 5.0, lowered_gpus: 2.0 };
/// assert!((total.quantile_gpus(0.9) - 36.407_76).abs() < 1e-5);
/// assert_eq!(total.expected_gpus(), 28.0);
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StepTotal {
    /// Mean of the pool's demand at the step that bounds rest on, in GPUs.
    pub mean_gpus: f64,
    /// Standard deviation, in GPUs.
    pub stddev_gpus: f64,
    /// By how much less the forecasts expect where demand fell within the last hour, in GPUs; a peak may come again, so that bounds do
    /// not follow.
    pub lowered_gpus: f64,
}

impl StepTotal {
    /// The sum of the means of the organizations' forecasts, in GPUs.
    #[must_use]
    pub fn expected_gpus(&self) -> f64 {
        self.mean_gpus - self.lowered_gpus
    }

    /// The quantile at `p`, 0 < p < 1, in GPUs.
    #[must_use]
    pub fn quantile_gpus(&self, p: f64) -> f64 {
        (self.mean_gpus + self.stddev_gpus * gaussian::quantile(p)).max(0.0)
    }
}

/// B_H, with what it is made of.
#[derive(Debug, Clone, PartialEq)]
pub struct PoolBound {
    /// Hours H of the bound.
    pub hours: HorizonHours,
    /// Rounded up.
    pub bound: MilliGpus,
    /// Before rounding.
    pub bound_gpus: f64,
    /// Where the bound over fewer hours was larger, and holds here too.
    pub raised_from_gpus: Option<f64>,
    /// Demand that returns where a day off ends within the hours ([`ConformalHours::returns_gpus`]); the bound is no less.
    pub returns_gpus: Option<f64>,
    /// The deviations that are added to the mean, or under `conformal` to the centre; none for `sum-of-bounds`, which
    /// adds quantiles, nor for `mixture`.
    pub multiplier: Option<f64>,
    /// The step (from 1) that decides; none for `sum-of-bounds`, where each organization has its own, `conformal` and `mixture`.
    pub step: Option<usize>,
    /// Demand of the pool at each step.
    pub totals: Vec<StepTotal>,
    /// Demand of each organization at the step that decides.
    pub shares: Vec<OrganizationShare>,
    /// The evidence of measured peaks, under `conformal` and `mixture`.
    pub conformal: Option<ConformalHours>,
    /// The experts whose bounds were mixed, under `mixture`.
    pub experts: Option<[Stated; EXPERTS]>,
}

/// The bounds of a pool over each of `offered` hours, which rise; non-decreasing in H. `forecasts` are those of its
/// organizations at one issue time, `conformal` what [`Calibrator::conformal`](crate::calibration::Calibrator::conformal)
/// says of the pool. Without organizations every bound is zero.
///
/// ```
/// use forecaster::bound::{Aggregation, bounds};
/// use forecaster::gaussian;
/// use vocab::{DemandForecast, ForecastOrigin, GuaranteeRate, HorizonHours, HourStart};
/// use vocab::{Organization, PoolId, QUANTILE_LEVELS, SeriesId, StepForecast};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let forecast = |name: &str, mean_gpus: f64, stddev_gpus: f64| -> Result<_, Box<dyn std::error::Error>> {
///     let series = SeriesId { pool: PoolId::parse("earth:V100")?, organization: Organization::parse(name)? };
///     let quantiles_gpus = QUANTILE_LEVELS.map(|p| mean_gpus + stddev_gpus * gaussian::quantile(p));
///     let step = StepForecast { mean_gpus, stddev_gpus, quantiles_gpus };
///     Ok(DemandForecast::new(series, HourStart::from_unix_s(0)?, ForecastOrigin::Model, vec![step])?)
/// };
/// let (vision, speech) = (forecast("vision", 10.0, 3.0)?, forecast("speech", 20.0, 4.0)?);
/// let milli_gpus = |aggregation| {
///     let offered = [HorizonHours::ONE];
///     bounds(&[&vision, &speech], aggregation, None, None, GuaranteeRate::GFS, &offered).map(|all| all[0].bound.milli())
/// };
/// // z is 1.2816 at p = 0.9. GFS Eq. 9 adds the quantiles, 30 + 7 z; independent deviations add as √(3² + 4²), 30 + 5 z.
/// assert_eq!(milli_gpus(Aggregation::SumOfBounds)?, 38_971);
/// assert_eq!(milli_gpus(Aggregation::Independent)?, 36_408);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// A forecast is shorter than the longest offered hours, or a bound exceeds what an amount holds.
pub fn bounds(
    forecasts: &[&DemandForecast],
    aggregation: Aggregation,
    calibration: Option<&PoolCalibration>,
    conformal: Option<&Conformal>,
    rate: GuaranteeRate,
    offered: &[HorizonHours],
) -> Result<Vec<PoolBound>, BoundError> {
    let aggregator = Aggregator {
        forecasts,
        aggregation,
        calibration,
        conformal: conformal.filter(|_| Aggregation::LEARNING.contains(&aggregation) && !forecasts.is_empty()),
        measured: conformal.filter(|_| !forecasts.is_empty()),
        rate,
        correlation: correlation(forecasts, aggregation, calibration),
    };
    let mut bounds: Vec<PoolBound> = Vec::with_capacity(offered.len());
    if let Some((short, hours)) = aggregator.short(offered) {
        return Err(BoundError::ShortForecast { hours, have: short.steps().len() });
    }
    let totals = aggregator.totals(offered.last().map_or(0, |longest| longest.steps()));
    let shares = aggregator.shares(offered);
    for (&hours, shares) in offered.iter().zip(shares) {
        let mut bound = aggregator.bound(hours, &totals, shares);
        if let Some(shorter) = bounds.last().filter(|shorter| shorter.bound_gpus > bound.bound_gpus) {
            bound.raised_from_gpus = Some(bound.bound_gpus);
            bound.bound_gpus = shorter.bound_gpus;
        }
        let no_amount = |fault| BoundError::NoAmount { hours, fault };
        bound.bound = super::amount(bound.bound_gpus).map_err(no_amount)?;
        bounds.push(bound);
    }
    Ok(bounds)
}

fn correlation(
    forecasts: &[&DemandForecast],
    aggregation: Aggregation,
    calibration: Option<&PoolCalibration>,
) -> Option<Correlations> {
    let names: Vec<_> = forecasts.iter().map(|forecast| &forecast.series().organization).collect();
    let is_pooled = matches!(aggregation, Aggregation::Pooled | Aggregation::Conformal | Aggregation::Mixture);
    calibration.filter(|_| is_pooled).map(|known| known.among(&names))
}

struct Aggregator<'a> {
    forecasts: &'a [&'a DemandForecast],
    aggregation: Aggregation,
    calibration: Option<&'a PoolCalibration>,
    /// For those that learn.
    conformal: Option<&'a Conformal>,
    /// The same, of which all know what returns where a day off ends.
    measured: Option<&'a Conformal>,
    rate: GuaranteeRate,
    /// Among the organizations, for `pooled` and those that learn; none stands for independence.
    correlation: Option<Correlations>,
}

impl Aggregator<'_> {
    /// The first of the offered hours that a forecast does not reach, with that forecast.
    fn short(&self, offered: &[HorizonHours]) -> Option<(&DemandForecast, HorizonHours)> {
        let of = |hours: &HorizonHours| {
            let short = self.forecasts.iter().find(|forecast| forecast.steps().len() < hours.steps())?;
            Some((*short, *hours))
        };
        offered.iter().find_map(of)
    }

    /// Totals of so many steps, which all forecasts have.
    fn totals(&self, steps: usize) -> Vec<StepTotal> {
        let organizations = self.forecasts.len();
        let mut sums = vec![StepTotal { mean_gpus: 0.0, stddev_gpus: 0.0, lowered_gpus: 0.0 }; steps];
        let mut stddevs = vec![0.0; steps * organizations];
        for (place, forecast) in self.forecasts.iter().enumerate() {
            for (step, one) in forecast.steps()[..steps].iter().enumerate() {
                let mean_gpus = forecast.mean_for_bounds_gpus(step);
                sums[step].mean_gpus += mean_gpus;
                sums[step].lowered_gpus += mean_gpus - one.mean_gpus;
                stddevs[step * organizations + place] = one.stddev_gpus;
            }
        }
        let independent =
            |step: usize| stddevs[step * organizations..][..organizations].iter().map(|one| one.powi(2)).sum();
        let variances: Vec<f64> = match &self.correlation {
            None => (0..steps).map(independent).collect(),
            Some(known) => known.variances(&stddevs, organizations, steps),
        };
        let total = |(sum, variance): (StepTotal, f64)| StepTotal { stddev_gpus: variance.max(0.0).sqrt(), ..sum };
        sums.into_iter().zip(variances).map(total).collect()
    }

    /// The part of each organization in the bound over each of the offered hours.
    fn shares(&self, offered: &[HorizonHours]) -> Vec<Vec<OrganizationShare>> {
        let quantile = StepQuantile::at(self.rate);
        let mut all: Vec<_> = offered.iter().map(|_| Vec::with_capacity(self.forecasts.len())).collect();
        for forecast in self.forecasts {
            let (mut largest, mut passed) = ((f64::NEG_INFINITY, 0), 0);
            let mut steps = forecast.steps().iter().enumerate();
            for (hours, shares) in offered.iter().zip(&mut all) {
                for (place, step) in steps.by_ref().take(hours.steps() - passed) {
                    let gpus = quantile.gpus(step, forecast.mean_for_bounds_gpus(place));
                    if gpus > largest.0 {
                        largest = (gpus, place);
                    }
                }
                passed = hours.steps();
                let (bound_gpus, place) = largest;
                let stddev_gpus = forecast.steps()[place].stddev_gpus;
                let mean_gpus = forecast.mean_for_bounds_gpus(place);
                let organization = forecast.series().organization.clone();
                shares.push(OrganizationShare { organization, step: place + 1, mean_gpus, stddev_gpus, bound_gpus });
            }
        }
        all
    }

    fn bound(&self, hours: HorizonHours, totals: &[StepTotal], shares: Vec<OrganizationShare>) -> PoolBound {
        let totals = totals[..hours.steps()].to_vec();
        let conformal = self.conformal.and_then(|known| known.hours.get(hours.steps() - 1)).copied();
        let is_mixed = self.aggregation == Aggregation::Mixture;
        // Experts with enough residuals do not lean on the bound without them; it is worked out for others alone.
        let mut experts =
            conformal.filter(|known| is_mixed && known.stands_alone()).and_then(|known| known.stated(0.0));
        let (mut bound_gpus, mut step, mut multiplier) = (0.0, None, None);
        if experts.is_none() {
            multiplier = self.multiplier(hours);
            (bound_gpus, step) = match multiplier {
                None => (shares.iter().map(|share| share.bound_gpus).sum(), None),
                Some(z) => largest(totals.iter().map(|total| total.mean_gpus + z * total.stddev_gpus)),
            };
            experts = conformal.filter(|_| is_mixed).and_then(|known| known.stated(bound_gpus));
        }
        if let Some(experts) = &experts {
            (bound_gpus, multiplier, step) = (mixture_gpus(experts), None, None);
        } else if let Some(known) = conformal {
            bound_gpus = known.bound_gpus(bound_gpus);
            (multiplier, step) = (Some((bound_gpus - known.centre.centre_gpus) / known.deviation_gpus), None);
        }
        let returns_gpus = self.measured.and_then(|known| known.hours.get(hours.steps() - 1)?.returns_gpus);
        PoolBound {
            hours,
            bound: MilliGpus::ZERO,
            bound_gpus: returns_gpus.map_or(bound_gpus, |returns| bound_gpus.max(returns)),
            raised_from_gpus: None,
            returns_gpus,
            multiplier,
            step,
            totals,
            shares,
            conformal,
            experts,
        }
    }

    fn multiplier(&self, hours: HorizonHours) -> Option<f64> {
        let p = self.rate.as_f64();
        match self.aggregation {
            Aggregation::SumOfBounds => None,
            Aggregation::Independent => Some(gaussian::quantile(p)),
            Aggregation::Pooled | Aggregation::Conformal | Aggregation::Mixture => {
                let between_steps = self.calibration.map_or(0.0, |known| known.step_correlation);
                Some(max_of_steps::quantile(p, hours.steps(), between_steps))
            }
        }
    }
}

/// The largest value and its step, from 1.
fn largest(values: impl Iterator<Item = f64>) -> (f64, Option<usize>) {
    let numbered = values.enumerate().map(|(index, value)| (value, Some(index + 1)));
    numbered.reduce(|best, next| if next.0 > best.0 { next } else { best }).unwrap_or((0.0, None))
}

#[cfg(test)]
mod tests;
