//! The plan of one cluster: forecasts, bounds, eta, quotas.

use super::live::{Live, demand_bounds};
use super::overrides::asked;
use crate::settings::ServedSettings;
use datasets::{Calendar, Panel};
use forecaster::bound::{Aggregation, BoundError, PoolBound, bounds};
use forecaster::calibration::Calibrator;
use forecaster::live::LiveBound;
use forecaster::scores::actual_peak_gpus;
use forecaster::{Predict, PredictError, Trained, forecast};
use placement::eta::{self, Ended, EtaDecision, EtaState, Feedback};
use placement::overrides::{Overridden, overridden};
use placement::{Bound, Known, PoolSettings, Quota, SettingsError, Supply, Unknown, quotas, staleness, supply};
use std::ops::Range;
use std::sync::Arc;
use store::{OutcomeId, OverrideRecord, RunId};
use vocab::{DemandForecast, ForecastOrigin, GuaranteeRate, HorizonHours, HourStart, MilliGpus, PoolId, UnixSeconds};

/// The promoted run of a cluster.
#[derive(Clone)]
pub struct Run {
    pub id: RunId,
    pub trained: Arc<Trained>,
}

/// What is known of a pool.
#[derive(Debug, Clone)]
pub struct PoolInputs {
    pub id: PoolId,
    /// `latest_demand` is filled in from the panel.
    pub known: Known,
    pub settings: ServedSettings,
    /// As it is stored; the settings may have drawn its bounds closer since.
    pub eta: EtaState,
    /// Outcomes that may still move eta, newest first.
    pub unspent: Vec<(OutcomeId, Ended)>,
    pub newest_outcome: Option<UnixSeconds>,
    /// HP GPUs, running and waiting, now; known where the pool's tasks are placed here.
    pub hp_demand: Option<MilliGpus>,
    /// What was learned from HP demand before; none where it is not known.
    pub live: Option<LiveBound>,
    /// That end after this moment, by number.
    pub overrides: Vec<OverrideRecord>,
}

/// What is known of a cluster.
pub struct ClusterInputs {
    /// Hours before the present one.
    pub panel: Arc<Panel>,
    pub run: Run,
    /// What the recent past taught about the run's forecasts; `None` for what its training did.
    pub calibrator: Option<Arc<Calibrator>>,
    pub pools: Vec<PoolInputs>,
    pub now: UnixSeconds,
    /// Whether eta stays where it is, whatever it should do: under a virtual clock nothing may be learned for real.
    pub eta_frozen: bool,
}

/// Why a pool has no new quota. The last one stands and ages.
#[derive(Debug, thiserror::Error)]
pub enum NoQuota {
    #[error("the cluster has no promoted run: train --horizon 4h")]
    NoRun,
    #[error("the newest usage ends at {newest_end}, more than two hours ago: report the hours since, zeros included")]
    OldUsage { newest_end: UnixSeconds },
    #[error("no hour of its organizations' usage was measured: ingest or report it")]
    NoUsage,
    #[error(transparent)]
    Unknown(#[from] Unknown),
    #[error("the pool's settings do not fit the run: {0}")]
    Settings(#[from] SettingsError),
    #[error("the model was rejected: {0}")]
    Model(Arc<PredictError>),
    #[error(transparent)]
    Bound(#[from] BoundError),
}

/// A move of eta that has to be written before the quota may be published.
#[derive(Debug, Clone)]
pub struct EtaMoved {
    pub from: EtaState,
    pub decision: EtaDecision,
    pub spent: Vec<OutcomeId>,
    pub kept: u64,
    pub broken: u64,
}

/// The quotas of a pool, with everything that they were made of.
#[derive(Clone)]
pub struct PoolQuota {
    pub id: PoolId,
    pub run: Run,
    pub computed_at: UnixSeconds,
    pub supply: Supply,
    pub settings: ServedSettings,
    pub aggregation: Aggregation,
    /// As they are issued, in the order of their series.
    pub forecasts: Vec<DemandForecast>,
    /// What was done to each, where anything was.
    pub corrected: Corrected,
    pub bounds: Vec<PoolBound>,
    /// How the bounds were mixed with what demand does from moment to moment.
    pub live: Option<Live>,
    /// HP GPUs, running and waiting, when it was computed; known where the pool's tasks are placed here.
    pub hp_demand: Option<MilliGpus>,
    /// The bounds that the quotas are cut from, with what people asked for.
    pub demand: Vec<Overridden>,
    /// Those overrides that the inputs had, by number.
    pub overrides: Vec<OverrideRecord>,
    pub quotas: Vec<Quota>,
    pub eta_decision: EtaDecision,
    pub issue: HourStart,
    pub calendar: Calendar,
    /// Hours between the issue time and the present hour: usage that has not come yet.
    pub hours_late: u8,
    /// Forecast steps that a promise covers beyond its own number of hours: those of late usage, and one where it starts
    /// within an hour and so ends within another.
    pub more_steps: u8,
    pub cold_organizations: usize,
}

/// The forecasts as the model gave them, and what corrected them.
#[derive(Clone)]
pub struct Corrected {
    /// Of the whole cluster.
    all_raw: Arc<Vec<DemandForecast>>,
    /// Those of the pool.
    places: Range<usize>,
    calibrator: Option<Arc<Calibrator>>,
    run: Run,
}

impl Corrected {
    /// The pool's forecasts as the model gave them.
    #[must_use]
    pub fn raw(&self) -> &[DemandForecast] {
        &self.all_raw[self.places.clone()]
    }

    #[must_use]
    pub fn calibrator(&self) -> &Calibrator {
        self.calibrator.as_deref().unwrap_or(&self.run.trained.calibrator)
    }
}

/// What was computed for a pool.
pub struct PoolPlan {
    pub id: PoolId,
    pub outcome: Result<PoolQuota, NoQuota>,
    pub moved: Option<EtaMoved>,
}

/// What was computed for a cluster.
pub struct ClusterPlan {
    /// In the order of the pools.
    pub pools: Vec<PoolPlan>,
    /// What was said of every series; `None` where nothing could be.
    pub said: Option<Said>,
}

/// The forecasts of a cluster, in the order of its panel.
pub struct Said {
    pub issue: HourStart,
    /// As the model gave them.
    pub raw: Arc<Vec<DemandForecast>>,
    /// As they are issued.
    pub issued: Vec<DemandForecast>,
}

/// Computes the quotas of every pool of a cluster.
#[must_use]
pub fn plan(inputs: &ClusterInputs) -> ClusterPlan {
    let forecasts = Forecasts::of(inputs);
    let pools = inputs.pools.iter().map(|pool| plan_pool(inputs, pool, &forecasts)).collect();
    let said = if let Forecasts::Ready { said, .. } = forecasts { Some(said) } else { None };
    ClusterPlan { pools, said }
}

/// The forecasts of a cluster, or why there are none.
enum Forecasts {
    Ready { said: Said, hours_late: u8 },
    NoUsage,
    OldUsage { newest_end: UnixSeconds },
    Rejected(Arc<PredictError>),
}

impl Forecasts {
    /// From the hour after the newest measured one, if that is recent enough.
    fn of(inputs: &ClusterInputs) -> Self {
        let Some(newest) = inputs.panel.newest_measured() else { return Self::NoUsage };
        let issue = newest.plus_hours(1);
        if staleness::usage_is_missing(issue.instant(), inputs.now) {
            return Self::OldUsage { newest_end: issue.instant() };
        }
        let late = inputs.now.hour().map_or(0, |present| present.hours_since(issue));
        match forecast(inputs.run.trained.as_ref(), &inputs.panel, issue) {
            Ok(raw) => {
                let issued = inputs.calibrator().apply(&raw);
                let said = Said { issue, raw: Arc::new(raw), issued };
                Self::Ready { said, hours_late: u8::try_from(late).unwrap_or(0) }
            }
            Err(fault) => Self::Rejected(Arc::new(fault)),
        }
    }
}

impl ClusterInputs {
    fn calibrator(&self) -> &Calibrator {
        self.calibrator.as_deref().unwrap_or(&self.run.trained.calibrator)
    }
}

impl Said {
    /// Forecasts come in the order of the panel.
    fn of_pool(&self, inputs: &ClusterInputs, pool: &PoolId) -> Corrected {
        Corrected {
            all_raw: self.raw.clone(),
            places: inputs.panel.places_of(pool),
            calibrator: inputs.calibrator.clone(),
            run: inputs.run.clone(),
        }
    }
}

fn plan_pool(inputs: &ClusterInputs, pool: &PoolInputs, forecasts: &Forecasts) -> PoolPlan {
    let failed = |why| PoolPlan { id: pool.id.clone(), outcome: Err(why), moved: None };
    match forecasts {
        Forecasts::NoUsage => failed(NoQuota::NoUsage),
        Forecasts::OldUsage { newest_end } => failed(NoQuota::OldUsage { newest_end: *newest_end }),
        Forecasts::Rejected(fault) => failed(NoQuota::Model(fault.clone())),
        Forecasts::Ready { said, hours_late } => {
            // Other pools of the cluster may be ahead: one that fell silent must not look fresh beside them.
            match inputs.panel.newest_measured_of(&pool.id) {
                None => return failed(NoQuota::NoUsage),
                Some(newest) if staleness::usage_is_missing(newest.plus_hours(1).instant(), inputs.now) => {
                    return failed(NoQuota::OldUsage { newest_end: newest.plus_hours(1).instant() });
                }
                Some(_) => {}
            }
            match quota(inputs, pool, said, *hours_late) {
                Ok((quota, moved)) => PoolPlan { id: pool.id.clone(), outcome: Ok(quota), moved },
                Err(why) => failed(why),
            }
        }
    }
}

fn quota(
    inputs: &ClusterInputs,
    pool: &PoolInputs,
    said: &Said,
    hours_late: u8,
) -> Result<(PoolQuota, Option<EtaMoved>), NoQuota> {
    let issue = said.issue;
    let corrected = said.of_pool(inputs, &pool.id);
    let forecasts = said.issued[corrected.places.clone()].to_vec();
    let settings = &pool.settings.pool;
    settings.check(Some(inputs.run.trained.horizon()))?;
    // 1. Supply.
    let latest_demand = latest_demand(&inputs.panel, &pool.id, issue);
    let supply = supply(&Known { latest_demand, ..pool.known.clone() }, settings, inputs.now)?;
    // 2. Bounds, over the steps that the promises cover.
    let calibration = inputs.run.trained.calibration(&pool.id);
    let chosen = calibration.map_or(Aggregation::SumOfBounds, |known| known.chosen);
    let aggregation = pool.settings.aggregation.unwrap_or(chosen);
    let more_steps = hours_late + u8::from(inputs.now.hour().is_ok_and(|hour| hour.instant() != inputs.now));
    let rate = settings.guarantee_rate;
    let pool_bounds = forecast_bounds(&pool.id, (&forecasts, &corrected), aggregation, settings, more_steps, rate)?;
    let live = Live::of(pool, &pool_bounds, inputs.now);
    let overridden = bounded(pool, &pool_bounds, live.as_ref(), &supply, inputs.now);
    let demand: Vec<Bound> = overridden.iter().map(|one| one.bound).collect();
    // Under bounds that follow what is measured eta only brakes.
    let settings = &if live.is_some() { settings.calibrated() } else { settings.clone() };
    // 3. Eta, judged by the quotas that it gives now; then the quotas that it gives next.
    let eta = pool.eta.within(settings);
    let unmoved = quotas(&supply, &demand, eta.eta);
    let (eta_decision, moved) = decide_eta(pool, settings, &eta, &unmoved, &supply, inputs.now);
    let moved = moved.filter(|_| !inputs.eta_frozen);
    let quotas = match eta_decision {
        EtaDecision::Move { to, .. } if moved.is_some() => quotas(&supply, &demand, to),
        _ => unmoved,
    };
    let cold_organizations = forecasts.iter().filter(|one| one.origin() == ForecastOrigin::ColdStart).count();
    let quota = PoolQuota {
        id: pool.id.clone(),
        run: inputs.run.clone(),
        computed_at: inputs.now,
        supply,
        settings: pool.settings.clone(),
        aggregation,
        forecasts,
        corrected,
        bounds: pool_bounds,
        live,
        hp_demand: pool.hp_demand,
        demand: overridden,
        overrides: pool.overrides.clone(),
        quotas,
        eta_decision,
        issue,
        calendar: inputs.panel.calendar().clone(),
        hours_late,
        more_steps,
        cold_organizations,
    };
    Ok((quota, moved))
}

/// The bounds of forecasts at a guarantee rate, over the steps that the promises cover. They come with what corrected them.
///
/// # Errors
/// A bound exceeds what an amount holds.
pub(super) fn forecast_bounds(
    pool: &PoolId,
    (forecasts, corrected): (&[DemandForecast], &Corrected),
    aggregation: Aggregation,
    settings: &PoolSettings,
    more_steps: u8,
    rate: GuaranteeRate,
) -> Result<Vec<PoolBound>, BoundError> {
    let trained = &corrected.run.trained;
    let offered = settings.offered_hours.iter();
    let steps: Vec<_> = offered.map(|hours| covered(*hours, more_steps, trained.horizon())).collect();
    let (members, raw): (Vec<_>, Vec<_>) = (forecasts.iter().collect(), corrected.raw().iter().collect());
    let conformal = corrected.calibrator().conformal_of(pool, &raw, rate);
    bounds(&members, aggregation, trained.calibration(pool), conformal.as_ref(), rate, &steps)
}

/// The bounds with overrides. What HP work holds now is known to the moment where tasks are placed here.
fn bounded(
    pool: &PoolInputs,
    forecast: &[PoolBound],
    live: Option<&Live>,
    supply: &Supply,
    now: UnixSeconds,
) -> Vec<Overridden> {
    let needed = pool.hp_demand.unwrap_or(supply.latest_demand);
    let bounds = demand_bounds(&pool.settings.pool, forecast, live, needed);
    overridden(&bounds, &asked(&pool.overrides), needed, now)
}

/// The forecast steps that a guarantee of `hours` from now covers. Where the forecast ends before, its last step stands
/// for the rest.
fn covered(hours: HorizonHours, more_steps: u8, horizon: HorizonHours) -> HorizonHours {
    HorizonHours::new(u64::from(hours.get()) + u64::from(more_steps)).map_or(horizon, |steps| steps.min(horizon))
}

/// HP demand in the hour before `issue`, as far as it is an amount.
fn latest_demand(panel: &Panel, pool: &PoolId, issue: HourStart) -> Option<MilliGpus> {
    let newest = issue.plus_hours(-1);
    let measured = actual_peak_gpus(panel, pool, newest, HorizonHours::ONE);
    let filled = || {
        let hour = panel.index_of(newest)?;
        panel.series_of(pool).iter().map(|series| series.demand_gpus()[hour]).reduce(|sum, demand| sum + demand)
    };
    measured.or_else(filled).and_then(|gpus| MilliGpus::nearest(gpus).ok())
}

fn decide_eta(
    pool: &PoolInputs,
    settings: &PoolSettings,
    eta: &EtaState,
    quotas: &[Quota],
    supply: &Supply,
    now: UnixSeconds,
) -> (EtaDecision, Option<EtaMoved>) {
    let ended: Vec<Ended> = pool.unspent.iter().map(|(_, ended)| *ended).collect();
    let feedback = Feedback::of(&ended, pool.newest_outcome, supply, quotas, settings, now);
    let decision = eta::decide(eta, &feedback, settings, now);
    let EtaDecision::Move { spends, .. } = decision else { return (decision, None) };
    let spent = pool.unspent.iter().filter(|_| spends).map(|(id, _)| *id).collect();
    // From where it is stored: that is what the move is held against when it is written.
    let Feedback { kept, broken, .. } = feedback;
    (decision, Some(EtaMoved { from: pool.eta, decision, spent, kept, broken }))
}
