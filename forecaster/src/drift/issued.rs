//! The forecasts of one issue hour.

use super::{JUDGED, KEPT_HOURS, LATE_HOURS};
use crate::bytes::{DamagedBytes, Reader, Writer};
use datasets::{Panel, Series};
use vocab::{
    ClusterName, DemandForecast, ForecastOrigin, GpuModel, GuaranteeRate, HorizonHours, HourStart, MilliGpus,
    Organization, PoolId, SeriesId, StepForecast,
};

const KIND: [u8; 4] = *b"HRLF";
const FORMAT: u8 = 1;
/// A series that was not measured in any of so many hours is not waited for.
const SILENT_HOURS: usize = 24;
const NUMBERS_PER_STEP: usize = 5;
const ORIGINS: [ForecastOrigin; 3] = [ForecastOrigin::Model, ForecastOrigin::ColdStart, ForecastOrigin::Left];

/// The bound of a pool's demand, as it was issued.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IssuedBound {
    /// The pool.
    pub pool: PoolId,
    /// Hours from the issue hour that it covers.
    pub hours: HorizonHours,
    /// The guarantee rate at which it should hold.
    pub rate: GuaranteeRate,
    /// B_H as it was issued, in GPUs.
    pub bound: MilliGpus,
}

/// All forecasts and bounds of a cluster at one issue hour.
#[derive(Debug, Clone, PartialEq)]
pub struct Issued {
    /// The issue hour.
    pub issue: HourStart,
    /// Of every series, as the model gave them, all of the same number of steps.
    pub forecasts: Vec<DemandForecast>,
    /// The median and the 0.9 quantile of each step as they were issued, where they were corrected before; else empty.
    pub corrected_gpus: Vec<Vec<[f64; 2]>>,
    /// Demand of each series in the hour before, as it was known then: the forecast of "the last value stays".
    pub last_gpus: Vec<f64>,
    /// Bound of each pool.
    pub bounds: Vec<IssuedBound>,
}

impl Issued {
    /// A model's forecasts of the series of a panel, in the panel's order, and the issued ones.
    #[must_use]
    pub fn of(
        panel: &Panel,
        issue: HourStart,
        raw: Vec<DemandForecast>,
        issued: &[DemandForecast],
        bounds: Vec<IssuedBound>,
    ) -> Self {
        let before = panel.index_of(issue).and_then(|index| index.checked_sub(1));
        let last = |series: &Series| before.and_then(|hour| series.demand_gpus().get(hour).copied()).unwrap_or(0.0);
        let last_gpus = panel.series().iter().map(last).collect();
        let judged = |step: &StepForecast| [step.quantiles_gpus[0], step.quantiles_gpus[JUDGED.0]];
        let corrected = |(raw, issued): (&DemandForecast, &DemandForecast)| {
            let is_corrected = raw.steps() != issued.steps();
            issued.steps().iter().filter(|_| is_corrected).map(judged).collect()
        };
        let corrected_gpus = raw.iter().zip(issued).map(corrected).collect();
        Self { issue, forecasts: raw, corrected_gpus, last_gpus, bounds }
    }

    /// The median and the 0.9 quantile of a series in a step (from 0), as they were issued.
    pub(super) fn judged_gpus(&self, series: usize, step: usize) -> [f64; 2] {
        let corrected = self.corrected_gpus.get(series).and_then(|steps| steps.get(step));
        let raw = &self.forecasts[series].steps()[step].quantiles_gpus;
        corrected.copied().unwrap_or([raw[0], raw[JUDGED.0]])
    }

    /// Steps of the forecasts; none without series.
    #[must_use]
    pub fn horizon(&self) -> Option<HorizonHours> {
        HorizonHours::new(self.forecasts.first()?.steps().len() as u64).ok()
    }

    /// `HRLF`, the format, the cluster, the issue hour, the number of steps, then the series (GPU model, organization,
    /// origin, the last value and five numbers a step as f32, 1 and two numbers a step where it was corrected, else 0) and the bounds (GPU model, hours, rate, thousandths of a
    /// GPU). A name is its length and its bytes. The order of quantiles survives the rounding to f32.
    #[must_use]
    pub fn to_bytes(&self, cluster: &ClusterName) -> Vec<u8> {
        let mut to = Writer::new(KIND, FORMAT);
        to.name(cluster.as_str());
        to.hour(self.issue);
        to.u8(self.horizon().map_or(0, HorizonHours::get));
        to.count(self.forecasts.len());
        for ((forecast, last_gpus), corrected) in self.forecasts.iter().zip(&self.last_gpus).zip(&self.corrected_gpus) {
            to.name(forecast.series().pool.gpu_model.as_str());
            to.name(forecast.series().organization.as_str());
            let origin = ORIGINS.iter().position(|origin| *origin == forecast.origin()).unwrap_or(0);
            to.u8(origin as u8);
            to.f32(*last_gpus);
            for step in forecast.steps() {
                to.f32(step.mean_gpus);
                to.f32(step.stddev_gpus);
                step.quantiles_gpus.into_iter().for_each(|quantile| to.f32(quantile));
            }
            to.u8(u8::from(!corrected.is_empty()));
            corrected.iter().flatten().for_each(|quantile| to.f32(*quantile));
        }
        to.count(self.bounds.len());
        for one in &self.bounds {
            to.name(one.pool.gpu_model.as_str());
            to.u8(one.hours.get());
            to.u32(one.rate.ppm());
            to.u64(one.bound.milli());
        }
        to.0
    }

    /// # Errors
    /// The bytes are none of [`Self::to_bytes`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, DamagedBytes> {
        let mut from = Reader::new(bytes, KIND, FORMAT)?;
        let cluster = ClusterName::parse(from.name()?).map_err(DamagedBytes::of)?;
        let issue = from.hour()?;
        let steps = usize::from(from.u8()?);
        let count = from.count(8 + steps * NUMBERS_PER_STEP * 4)?;
        let (mut forecasts, mut last_gpus) = (Vec::with_capacity(count), Vec::with_capacity(count));
        let mut corrected_gpus = Vec::with_capacity(count);
        let mut pool = None;
        for _ in 0..count {
            let series = series(&mut from, &cluster, &mut pool)?;
            let origin = ORIGINS.get(usize::from(from.u8()?)).copied();
            let origin = origin.ok_or_else(|| DamagedBytes("an origin is unknown".to_owned()))?;
            last_gpus.push(from.f32()?);
            let of_steps = (0..steps).map(|_| step(&mut from)).collect::<Result<_, _>>()?;
            forecasts.push(DemandForecast::new(series, issue, origin, of_steps).map_err(DamagedBytes::of)?);
            let corrected = if from.u8()? == 0 { 0 } else { steps };
            corrected_gpus.push((0..corrected).map(|_| judged(&mut from)).collect::<Result<_, _>>()?);
        }
        let bounds = (0..from.count(14)?).map(|_| bound(&mut from, &cluster)).collect::<Result<_, _>>()?;
        from.end()?;
        Ok(Self { issue, forecasts, corrected_gpus, last_gpus, bounds })
    }
}

/// The next series. Those of a pool lie together and share its names.
pub(super) fn series(
    from: &mut Reader<'_>,
    cluster: &ClusterName,
    last: &mut Option<PoolId>,
) -> Result<SeriesId, DamagedBytes> {
    let gpu_model = from.name()?;
    let pool = match last.take().filter(|pool| pool.gpu_model.as_str() == gpu_model) {
        Some(pool) => pool,
        None => self::pool(cluster, gpu_model)?,
    };
    *last = Some(pool.clone());
    Ok(SeriesId { pool, organization: Organization::parse(from.name()?).map_err(DamagedBytes::of)? })
}

pub(super) fn pool(cluster: &ClusterName, gpu_model: &str) -> Result<PoolId, DamagedBytes> {
    Ok(PoolId { cluster: cluster.clone(), gpu_model: GpuModel::parse(gpu_model).map_err(DamagedBytes::of)? })
}

fn step(from: &mut Reader<'_>) -> Result<StepForecast, DamagedBytes> {
    let (mean_gpus, stddev_gpus) = (from.f32()?, from.f32()?);
    Ok(StepForecast { mean_gpus, stddev_gpus, quantiles_gpus: [from.f32()?, from.f32()?, from.f32()?] })
}

fn judged(from: &mut Reader<'_>) -> Result<[f64; 2], DamagedBytes> {
    let quantiles = [from.f32()?, from.f32()?];
    if quantiles.iter().all(|quantile| quantile.is_finite()) {
        return Ok(quantiles);
    }
    Err(DamagedBytes("a corrected quantile is not finite".to_owned()))
}

pub(super) fn rate(ppm: u32) -> Result<GuaranteeRate, DamagedBytes> {
    GuaranteeRate::new(f64::from(ppm) / f64::from(GuaranteeRate::MILLION)).map_err(DamagedBytes::of)
}

fn bound(from: &mut Reader<'_>, cluster: &ClusterName) -> Result<IssuedBound, DamagedBytes> {
    let pool = pool(cluster, from.name()?)?;
    let hours = HorizonHours::new(u64::from(from.u8()?)).map_err(DamagedBytes::of)?;
    Ok(IssuedBound { pool, hours, rate: rate(from.u32()?)?, bound: from.amount()? })
}

/// Whether an hour has all the usage that may be expected: every series that was measured in any of the 24 hours before
/// is measured in it. A recording gap is not whole.
#[must_use]
pub fn is_whole(panel: &Panel, hour: HourStart) -> bool {
    let Some(index) = panel.index_of(hour).filter(|index| *index < panel.hours()) else { return false };
    let lately = index.saturating_sub(SILENT_HOURS)..index;
    let all = || panel.series().iter().chain(panel.pool_peaks());
    let came = |series: &Series| series.measured()[index] || !series.measured()[lately.clone()].contains(&true);
    all().all(came) && all().any(|series| series.measured()[index])
}

/// Whether the forecasts of `issue` can be scored: their hours are over and whole, or the panel has gone on for
/// [`LATE_HOURS`] after them, and what has not come by then is not waited for.
#[must_use]
pub fn is_due(panel: &Panel, issue: HourStart, horizon: HorizonHours) -> bool {
    let end = issue.plus_hours(i64::from(horizon.get()));
    let Some(known_until) = panel.newest_measured().map(|newest| newest.plus_hours(1)) else { return false };
    // Rows that lie that far back will not come any more; the panel may not even reach them.
    if known_until.hours_since(issue) > KEPT_HOURS || known_until.hours_since(end) >= LATE_HOURS {
        return true;
    }
    known_until >= end && (0..i64::from(horizon.get())).all(|step| is_whole(panel, issue.plus_hours(step)))
}
