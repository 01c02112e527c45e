//! The plan of one cluster: forecasts, bounds, eta, quotas.

use super::forecasts::{Corrected, Forecasts, Predictions, Remembered};
use super::overrides::asked;
use crate::published::Answer;
use crate::settings::ServedSettings;
use cycle::{
    Decided, ForecastBound, Forecasted, Inputs, Learned, ListFault, Moving, decide, last_usage, latest_demand,
    more_steps, reported,
};
use datasets::{Calendar, Panel};
use forecaster::bound::{Aggregation, BoundError, PoolBound};
use forecaster::calibration::Calibrator;
use forecaster::risk::Controlled;
use forecaster::watched::Served;
use forecaster::{Predict, PredictError, Trained, side_by_side};
use placement::eta::{Ended, EtaDecision, EtaState};
use placement::overrides::Overridden;
use placement::{CapacitySource, Known, Quota, SettingsError, Supply, Unknown, staleness};
use std::sync::Arc;
use store::{OutcomeId, OverrideRecord, RunId};
use vocab::{
    DemandForecast, ForecastOrigin, GuaranteeRate, HorizonHours, HourStart, HpJob, MilliGpus, Organization, PlacedBy,
    PoolId, UnixSeconds,
};

/// The promoted run of a cluster.
#[derive(Clone)]
pub struct Run {
    pub id: RunId,
    pub trained: Arc<Trained>,
}

/// Inputs of a pool.
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
    pub is_placed_here: bool,
    /// HP GPUs, running and waiting, now; known where the pool's tasks are placed here, or its scheduler reports its HP jobs.
    pub hp_demand: Option<MilliGpus>,
    /// The HP jobs behind it, where they are known.
    pub hp_jobs: Option<Vec<HpJob>>,
    /// Learned state; none under a virtual clock, where nothing may be learned.
    pub learned: Option<Learned>,
    /// That end after this moment, by number.
    pub overrides: Vec<OverrideRecord>,
}

/// Inputs of a cluster.
pub struct ClusterInputs {
    /// Hours before the present one.
    pub panel: Arc<Panel>,
    pub run: Run,
    /// Calibrator of the recent scores of the run; `None`: that of its training.
    pub calibrator: Option<Arc<Calibrator>>,
    pub pools: Vec<PoolInputs>,
    pub now: UnixSeconds,
    /// Whether the clock is virtual: nothing may be learned then, eta stays as it is, and answers carry their time.
    pub virtual_time: bool,
    /// Forecasts of the last plan.
    pub remembered: Option<Remembered>,
}

/// Why a pool has no new quota. The last one stands and ages.
#[derive(Debug, thiserror::Error)]
pub enum NoQuota {
    #[error("the cluster has no promoted run: train --cluster NAME")]
    NoRun,
    #[error(
        "the newest usage ends at {newest_end}, more than two hours ago: report the hours since, zeros included; for old data start quota-service --as-of latest"
    )]
    OldUsage { newest_end: UnixSeconds },
    #[error(
        "the newest usage ends at {newest_end}, more than two hours ago: Headroom measures the pool, and its quota is back once a full \
         hour is measured; for one before, have an admin state the hours since, zeros included: POST /v1/usage/corrections"
    )]
    OldUsageHere { newest_end: UnixSeconds },
    #[error("no hour of usage is measured: ingest it or report it")]
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

impl NoQuota {
    /// Whether this published problem stays until an operator acts: no renewal cures it by itself.
    #[must_use]
    pub fn awaits_operator(problem: &str) -> bool {
        [Self::NoRun, Self::NoUsage].iter().any(|lasting| lasting.to_string() == problem)
    }
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
    /// Its forecasts, and what corrected them.
    pub corrected: Corrected,
    pub bounds: Vec<PoolBound>,
    /// How the bounds were mixed with what demand does from moment to moment.
    pub moving: Option<Moving>,
    /// A fault of the HP jobs that the pool's scheduler reports.
    pub list_fault: Option<ListFault>,
    /// How they were moved to keep the promise, for each of the offered hours; empty where they were not.
    pub controlled: Vec<Controlled>,
    /// The largest p that what was measured can tell, for each of the offered hours.
    pub supported: Vec<f64>,
    /// How the bounds that were served before fared, by hours; empty where nothing is learned.
    pub served: Vec<Served>,
    /// HP GPUs, running and waiting, when it was computed, where they were known from moment to moment.
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
    /// Organizations that are expected to report usage; none where the pool's tasks are placed here, which measures all of them.
    pub reporting_organizations: usize,
    /// Those of them that have not reported the hour before the issue time.
    pub not_reported: Vec<Organization>,
}

impl PoolQuota {
    /// The source of the capacity. Nobody reports the state of a pool that Headroom places: it is that of its nodes.
    #[must_use]
    pub fn capacity_source(&self) -> CapacitySource {
        match (self.settings.placed_by, self.supply.capacity_source) {
            (Some(PlacedBy::Headroom), CapacitySource::ReportedState) => CapacitySource::Nodes,
            (_, source) => source,
        }
    }
}

/// Result for a pool.
pub struct PoolPlan {
    pub id: PoolId,
    pub outcome: Result<PoolQuota, NoQuota>,
    /// Of each of the quotas, ready to be sent.
    pub answers: Vec<Answer>,
    pub moved: Option<EtaMoved>,
    /// For the next renewal.
    pub learned: Option<Learned>,
}

/// Result for a cluster.
pub struct ClusterPlan {
    /// In the order of the pools.
    pub pools: Vec<PoolPlan>,
    /// Forecasts of every series; `None` without any.
    pub predictions: Option<Predictions>,
    /// The same, for the next plan.
    pub remembered: Option<Remembered>,
}

/// Computes the quotas of every pool of a cluster, on all cores; on any number of them they are the same.
#[must_use]
pub fn plan(inputs: &ClusterInputs) -> ClusterPlan {
    let forecasts = Forecasts::of(inputs);
    let pools = side_by_side(inputs.pools.len(), |pool| plan_pool(inputs, &inputs.pools[pool], &forecasts));
    let predictions = if let Forecasts::Ready { predictions, .. } = forecasts { Some(predictions) } else { None };
    let remembered = predictions.as_ref().map(|predictions| Remembered::of(inputs, predictions));
    ClusterPlan { pools, predictions, remembered }
}

/// Reports of a pool that Headroom places are refused.
const fn old_usage(pool: &PoolInputs, newest_end: UnixSeconds) -> NoQuota {
    if pool.is_placed_here { NoQuota::OldUsageHere { newest_end } } else { NoQuota::OldUsage { newest_end } }
}

fn plan_pool(inputs: &ClusterInputs, pool: &PoolInputs, forecasts: &Forecasts) -> PoolPlan {
    let failed =
        |why| PoolPlan { id: pool.id.clone(), outcome: Err(why), answers: Vec::new(), moved: None, learned: None };
    match forecasts {
        Forecasts::NoUsage => failed(NoQuota::NoUsage),
        Forecasts::OldUsage { newest_end } => failed(old_usage(pool, *newest_end)),
        Forecasts::Rejected(fault) => failed(NoQuota::Model(fault.clone())),
        Forecasts::Ready { predictions, hours_late } => {
            // Other pools of the cluster may be ahead: one that fell silent must not look fresh beside them.
            match inputs.panel.newest_measured_of(&pool.id) {
                None => return failed(NoQuota::NoUsage),
                Some(newest) if staleness::usage_is_missing(newest.plus_hours(1).instant(), inputs.now) => {
                    return failed(old_usage(pool, newest.plus_hours(1).instant()));
                }
                Some(_) => {}
            }
            quota(inputs, pool, predictions, *hours_late).unwrap_or_else(failed)
        }
    }
}

fn quota(
    inputs: &ClusterInputs,
    pool: &PoolInputs,
    predictions: &Predictions,
    hours_late: u8,
) -> Result<PoolPlan, NoQuota> {
    let (issue, now, id) = (predictions.issue, inputs.now, pool.id.clone());
    let corrected = predictions.of_pool(inputs, &id);
    let forecasts = corrected.issued();
    let settings = &pool.settings.pool;
    settings.check(Some(inputs.run.trained.horizon()))?;
    let known = Known { latest_demand: latest_demand(&inputs.panel, &id, issue), ..pool.known.clone() };
    let (mut learned, (_, more_steps)) = (pool.learned.clone(), more_steps(issue, now));
    let of = BoundsOf { forecasts, corrected: &corrected, set: pool.settings.aggregation, more_steps };
    let AtRate { aggregation, bounds, calibrated_hours } =
        of.at(&id, &settings.offered_hours, settings.guarantee_rate)?;
    let decided = decided(inputs, pool, &known, (issue, &bounds, calibrated_hours), learned.as_mut())?;
    let moved = eta_moved(pool, &decided);
    let Decided { supply, moving, hp_demand, list_fault, controlled, supported, demand, quotas, eta_decision, .. } =
        decided;
    let reported = (!pool.is_placed_here).then(|| reported(&inputs.panel, &id, issue));
    let cold_organizations = forecasts.iter().filter(|one| one.origin() == ForecastOrigin::ColdStart).count();
    let quota = PoolQuota {
        id: id.clone(),
        run: inputs.run.clone(),
        computed_at: now,
        supply,
        settings: pool.settings.clone(),
        aggregation,
        corrected,
        bounds,
        moving,
        list_fault,
        controlled,
        supported,
        served: learned.as_ref().map(|learned| learned.served(now)).unwrap_or_default(),
        hp_demand,
        demand,
        overrides: pool.overrides.clone(),
        quotas,
        eta_decision,
        issue,
        calendar: inputs.panel.calendar().clone(),
        hours_late,
        more_steps,
        cold_organizations,
        reporting_organizations: reported.as_ref().map_or(0, |reported| reported.organizations),
        not_reported: reported.iter().flat_map(|reported| &reported.missing).copied().cloned().collect(),
    };
    let answers = Answer::all_of(&quota, inputs.virtual_time);
    Ok(PoolPlan { id, outcome: Ok(quota), answers, moved, learned })
}

/// Decision of the cycle on a pool whose forecasts have these bounds.
fn decided(
    inputs: &ClusterInputs,
    pool: &PoolInputs,
    known: &Known,
    (issue, bounds, calibrated_hours): (HourStart, &[PoolBound], usize),
    learned: Option<&mut Learned>,
) -> Result<Decided, Unknown> {
    let settings = &pool.settings.pool;
    let offered = settings.offered_hours.iter().zip(bounds);
    let forecast: Vec<_> = offered.map(|(hours, one)| ForecastBound::of(*hours, one)).collect();
    let unspent: Vec<Ended> = pool.unspent.iter().map(|(_, ended)| *ended).collect();
    // Reported jobs alone are held against it.
    let usage = pool.hp_jobs.as_ref().map_or_else(Vec::new, |_| last_usage(&inputs.panel, &pool.id, issue));
    decide(Inputs {
        now: inputs.now,
        known,
        settings,
        forecast: Some(&forecast),
        is_placed_here: pool.is_placed_here,
        hp_demand: pool.hp_demand,
        hp_jobs: pool.hp_jobs.as_deref(),
        past_jobs: inputs.run.trained.jobs.get(&pool.id),
        last_usage: &usage,
        measured_until: issue.instant(),
        calibrated_hours,
        learned,
        overrides: &asked(&pool.overrides),
        eta: pool.eta,
        unspent: &unspent,
        newest_outcome: pool.newest_outcome,
        eta_is_fixed: inputs.virtual_time,
    })
}

/// A move of eta, to be written.
fn eta_moved(pool: &PoolInputs, decided: &Decided) -> Option<EtaMoved> {
    let moved = decided.moved?;
    let spent = pool.unspent.iter().filter(|_| moved.spends).map(|(id, _)| *id).collect();
    let (kept, broken) = (moved.feedback.kept, moved.feedback.broken);
    Some(EtaMoved { from: moved.from, decision: decided.eta_decision, spent, kept, broken })
}

/// The forecasts of a pool, of which bounds are made.
pub(super) struct BoundsOf<'a> {
    pub forecasts: &'a [DemandForecast],
    pub corrected: &'a Corrected,
    /// The aggregation of the settings.
    pub set: Option<Aggregation>,
    pub more_steps: u8,
}

impl BoundsOf<'_> {
    /// The bounds at a guarantee rate.
    ///
    /// # Errors
    /// A bound exceeds what an amount holds.
    pub fn at(&self, pool: &PoolId, offered: &[HorizonHours], rate: GuaranteeRate) -> Result<AtRate, BoundError> {
        let trained = &self.corrected.run.trained;
        let raw: Vec<_> = self.corrected.raw().iter().collect();
        let (calibrator, recent) = (self.corrected.calibrator(), &self.corrected.recent);
        let covered = |hours: &HorizonHours| cycle::covered(*hours, self.more_steps, trained.horizon());
        let asked: Vec<_> = offered.iter().map(covered).collect();
        let conformal = calibrator.conformal_of(pool, &raw, recent, rate, Some(&asked));
        let of = Forecasted {
            members: self.forecasts,
            conformal: conformal.as_ref(),
            calibration: trained.calibration(pool),
            aggregation: self.set,
            horizon: trained.horizon(),
            more_steps: self.more_steps,
        };
        let (aggregation, bounds) = (of.aggregation(), cycle::forecast_bounds(&of, offered, rate)?);
        let longest = conformal.as_ref().and_then(|known| known.hours.last());
        Ok(AtRate { aggregation, bounds, calibrated_hours: longest.map_or(0, |longest| longest.residuals) })
    }
}

/// The bounds of a pool's forecasts at a guarantee rate.
pub(super) struct AtRate {
    /// How organizations became one bound.
    pub aggregation: Aggregation,
    /// One for each of the offered hours.
    pub bounds: Vec<PoolBound>,
    /// Hours whose measured peaks they are calibrated on.
    pub calibrated_hours: usize,
}
