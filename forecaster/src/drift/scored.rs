//! Forecasts, compared with the demand.

use super::issued::{Issued, pool, rate, series};
use crate::bytes::{DamagedBytes, Reader, Writer};
use crate::scores::{TOLERANCE_GPUS, actual_peak_gpus};
use datasets::Panel;
use std::collections::BTreeMap;
use vocab::{ClusterName, DemandForecast, GuaranteeRate, HorizonHours, HourStart, PoolId, SeriesId};

const KIND: [u8; 4] = *b"HRLS";
const FORMAT: u8 = 1;

/// Sums over forecast hours: one for each issue hour and step whose demand was measured.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Tally {
    /// Forecast hours that were scored.
    pub hours: u32,
    /// Forecast hours without a measurement: they are not scored.
    pub unmeasured: u32,
    /// Those at or below the 0.9 quantile.
    pub covered: u32,
    /// Those strictly below it: where demand equals its quantile for days, as at zero, nothing is too high.
    pub below: u32,
    /// Of the median.
    pub abs_error_gpus: f64,
    /// Of the last value that was known at the issue hour.
    pub last_value_abs_error_gpus: f64,
}

impl Tally {
    /// Adds another tally.
    pub fn add(&mut self, more: &Self) {
        self.hours += more.hours;
        self.unmeasured += more.unmeasured;
        self.covered += more.covered;
        self.below += more.below;
        self.abs_error_gpus += more.abs_error_gpus;
        self.last_value_abs_error_gpus += more.last_value_abs_error_gpus;
    }

    /// Mean absolute error of the median, in GPUs; `None` where nothing was scored.
    #[must_use]
    pub fn mae_gpus(&self) -> Option<f64> {
        self.mean(self.abs_error_gpus)
    }

    /// Mean absolute error of the last value on the same hours, in GPUs.
    #[must_use]
    pub fn last_value_mae_gpus(&self) -> Option<f64> {
        self.mean(self.last_value_abs_error_gpus)
    }

    /// Share of hours at or below the 0.9 quantile.
    #[must_use]
    pub fn coverage(&self) -> Option<f64> {
        self.mean(f64::from(self.covered))
    }

    /// Share of hours strictly below the 0.9 quantile.
    #[must_use]
    pub fn below_share(&self) -> Option<f64> {
        self.mean(f64::from(self.below))
    }

    fn mean(&self, sum: f64) -> Option<f64> {
        (self.hours > 0).then(|| sum / f64::from(self.hours))
    }
}

/// Whether the bound of a pool held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BoundOutcome {
    /// The pool.
    pub pool: PoolId,
    /// Hours H of the bound.
    pub hours: HorizonHours,
    /// Guarantee rate p of the bound.
    pub rate: GuaranteeRate,
    /// `None` where an hour was not measured whole.
    pub held: Option<bool>,
}

/// How all forecasts and bounds of one issue hour fared.
#[derive(Debug, Clone, PartialEq)]
pub struct ScoredIssue {
    /// The issue hour.
    pub issue: HourStart,
    /// Hours that the forecasts reached.
    pub horizon: HorizonHours,
    /// Tally of each series.
    pub series: Vec<(SeriesId, Tally)>,
    /// Outcome of each bound.
    pub bounds: Vec<BoundOutcome>,
}

/// Compares forecasts with the panel. Hours that were not measured, or that lie before the panel, are counted and
/// not scored; values before the issue hour play no part.
#[must_use]
pub fn score(issued: &Issued, panel: &Panel) -> ScoredIssue {
    let places: BTreeMap<&SeriesId, usize> =
        panel.series().iter().enumerate().map(|(place, series)| (series.id(), place)).collect();
    let one = |(number, forecast): (usize, &DemandForecast)| {
        let place = places.get(forecast.series()).copied();
        (forecast.series().clone(), tally(issued, number, panel, place))
    };
    let bounds = issued.bounds.iter().map(|bound| BoundOutcome {
        pool: bound.pool.clone(),
        hours: bound.hours,
        rate: bound.rate,
        held: actual_peak_gpus(panel, &bound.pool, issued.issue, bound.hours)
            .map(|peak_gpus| bound.bound.as_gpus() >= peak_gpus - TOLERANCE_GPUS),
    });
    ScoredIssue {
        issue: issued.issue,
        horizon: issued.horizon().unwrap_or(HorizonHours::ONE),
        series: issued.forecasts.iter().enumerate().map(one).collect(),
        bounds: bounds.collect(),
    }
}

/// Of forecast number `number`, whose series stands at `place` of the panel.
fn tally(issued: &Issued, number: usize, panel: &Panel, place: Option<usize>) -> Tally {
    let mut tally = Tally::default();
    let start = panel.index_of(issued.issue);
    for step in 0..issued.forecasts[number].steps().len() {
        let came = place.zip(start).and_then(|(place, start)| {
            let series = &panel.series()[place];
            let measured = *series.measured().get(start + step)?;
            measured.then(|| series.demand_gpus()[start + step])
        });
        let Some(actual_gpus) = came else {
            tally.unmeasured += 1;
            continue;
        };
        // A number that was written as f32 is as exact as f32 is.
        let [median, quantile] = issued.judged_gpus(number, step);
        let tolerance = TOLERANCE_GPUS + f64::from(f32::EPSILON) * quantile.abs();
        tally.hours += 1;
        tally.covered += u32::from(actual_gpus <= quantile + tolerance);
        tally.below += u32::from(actual_gpus < quantile - tolerance);
        tally.abs_error_gpus += (median - actual_gpus).abs();
        tally.last_value_abs_error_gpus += (issued.last_gpus[number] - actual_gpus).abs();
    }
    tally
}

impl ScoredIssue {
    /// `HRLS`, the format, the cluster, the issue hour, the horizon, then the series (GPU model, organization, the four
    /// counts as bytes, the two sums as f32) and the bounds (GPU model, hours, rate, 0 broken, 1 held, 2 unmeasured).
    #[must_use]
    pub fn to_bytes(&self, cluster: &ClusterName) -> Vec<u8> {
        let mut to = Writer::new(KIND, FORMAT);
        to.name(cluster.as_str());
        to.hour(self.issue);
        to.u8(self.horizon.get());
        to.count(self.series.len());
        for (series, tally) in &self.series {
            to.name(series.pool.gpu_model.as_str());
            to.name(series.organization.as_str());
            for count in [tally.hours, tally.unmeasured, tally.covered, tally.below] {
                to.u8(u8::try_from(count).expect("a forecast has at most 168 steps"));
            }
            to.f32(tally.abs_error_gpus);
            to.f32(tally.last_value_abs_error_gpus);
        }
        to.count(self.bounds.len());
        for one in &self.bounds {
            to.name(one.pool.gpu_model.as_str());
            to.u8(one.hours.get());
            to.u32(one.rate.ppm());
            to.u8(one.held.map_or(2, u8::from));
        }
        to.0
    }

    /// # Errors
    /// The bytes are none of [`Self::to_bytes`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, DamagedBytes> {
        let mut from = Reader::new(bytes, KIND, FORMAT)?;
        let cluster = ClusterName::parse(from.name()?).map_err(DamagedBytes::of)?;
        let issue = from.hour()?;
        let horizon = HorizonHours::new(u64::from(from.u8()?)).map_err(DamagedBytes::of)?;
        let mut last = None;
        let scored = (0..from.count(14)?)
            .map(|_| Ok((series(&mut from, &cluster, &mut last)?, read_tally(&mut from)?)))
            .collect::<Result<_, DamagedBytes>>()?;
        let bounds = (0..from.count(7)?).map(|_| outcome(&mut from, &cluster)).collect::<Result<_, _>>()?;
        from.end()?;
        Ok(Self { issue, horizon, series: scored, bounds })
    }
}

fn read_tally(from: &mut Reader<'_>) -> Result<Tally, DamagedBytes> {
    let mut count = || from.u8().map(u32::from);
    let (hours, unmeasured, covered, below) = (count()?, count()?, count()?, count()?);
    let (abs_error_gpus, last_value_abs_error_gpus) = (from.f32()?, from.f32()?);
    let sums = [abs_error_gpus, last_value_abs_error_gpus];
    if below > covered || covered > hours || sums.iter().any(|sum| !(sum.is_finite() && *sum >= 0.0)) {
        return Err(DamagedBytes("the scores of a series contradict each other".to_owned()));
    }
    Ok(Tally { hours, unmeasured, covered, below, abs_error_gpus, last_value_abs_error_gpus })
}

fn outcome(from: &mut Reader<'_>, cluster: &ClusterName) -> Result<BoundOutcome, DamagedBytes> {
    let pool = pool(cluster, from.name()?)?;
    let hours = HorizonHours::new(u64::from(from.u8()?)).map_err(DamagedBytes::of)?;
    let rate = rate(from.u32()?)?;
    let held = match from.u8()? {
        0 => Some(false),
        1 => Some(true),
        2 => None,
        other => return Err(DamagedBytes(format!("{other} is no outcome of a bound"))),
    };
    Ok(BoundOutcome { pool, hours, rate, held })
}
