//! The quota of a simulated pool, renewed as the service does: supply, bounds, eta, quotas.

use crate::predictor::{Forecasts, Oracle};
use crate::run::Settings;
use forecaster::PredictError;
use forecaster::live::LiveBound;
use placement::eta::{self, Ended, EtaDecision, EtaState, Feedback};
use placement::pool::{PeriodEnd, Pool};
use placement::{Bound, Known, Limit, PoolSettings, Quota, Supply, quotas, supply};
use std::collections::VecDeque;
use vocab::{HorizonHours, MilliGpus, OutcomeKind, PoolId, UnixSeconds};

/// How quotas are renewed.
#[derive(Debug, Clone)]
pub struct QuotaSettings {
    pub pool: PoolSettings,
    /// Between two renewals: 300 s, GFS table 4.
    pub refresh_s: i64,
    /// Whether eta stays 1 (the ablation `gfs-d`).
    pub eta_fixed: bool,
    /// Whether live demand takes part in the bounds.
    pub live: bool,
}

/// Outcomes beyond this many are never looked at.
const MOST_OUTCOMES: usize = 20_000;

/// The state of one pool's quota.
#[derive(Debug)]
pub struct QuotaLoop {
    settings: QuotaSettings,
    offered: Vec<HorizonHours>,
    oracle: Option<Oracle>,
    eta: EtaState,
    /// Newest first.
    unspent: VecDeque<Ended>,
    newest: Option<UnixSeconds>,
    last: Vec<Quota>,
    live: LiveBound,
}

impl QuotaLoop {
    #[must_use]
    pub fn new(settings: &Settings, start: UnixSeconds, oracle: Option<Oracle>) -> Self {
        let (quota, offered) = (settings.quota.clone(), settings.offered.clone());
        let live = LiveBound::new(quota.pool.guarantee_rate, &offered);
        let eta = EtaState { eta: quota.pool.eta_start, moved_at: start };
        Self { settings: quota, offered, oracle, eta, unspent: VecDeque::new(), newest: None, last: Vec::new(), live }
    }

    /// A guarantee period ended.
    pub fn outcome(&mut self, end: &PeriodEnd) {
        let broken = match end.kind {
            OutcomeKind::Kept => false,
            OutcomeKind::Broken => true,
            OutcomeKind::NodeFailure | OutcomeKind::Drain | OutcomeKind::UserDeleted => return,
        };
        self.unspent.push_front(Ended { at: end.at, broken });
        self.unspent.truncate(MOST_OUTCOMES);
        self.newest = self.newest.max(Some(end.at));
    }

    /// GPUs of the shortest guarantee, as last renewed.
    #[must_use]
    pub fn quota_gpus(&self) -> f64 {
        self.last.first().map_or(0.0, |quota| quota.quota.as_gpus())
    }

    #[must_use]
    pub fn eta(&self) -> f64 {
        self.eta.eta.as_f64()
    }

    /// The quotas from now on. What is idle limits them through placement itself, at every moment: a limit is f · η.
    ///
    /// # Errors
    /// A bound is no amount.
    pub fn renew(
        &mut self,
        id: &PoolId,
        pool: &mut Pool,
        forecasts: Option<&mut Forecasts>,
        now: UnixSeconds,
    ) -> Result<Vec<Limit>, PredictError> {
        let latest_demand = pool.hp_demand();
        let state = Some(pool.state(id.clone()));
        let known = Known { state, latest_demand: Some(latest_demand), ..Known::default() };
        // A pool knows its own state: it is of this moment.
        let Ok(supply) = supply(&known, &self.settings.pool, now) else { return Ok(self.nothing()) };
        let bounds = match (&self.oracle, forecasts) {
            (Some(oracle), _) => Some(oracle.bounds(now, &self.offered)),
            (None, Some(forecasts)) => forecasts.bounds(id, now, &self.offered)?,
            (None, None) => None,
        };
        let bounds = if self.settings.live { self.mixed(bounds, latest_demand, now) } else { bounds };
        let Some(bounds) = bounds else { return Ok(self.nothing()) };
        let bounds = not_below(bounds, latest_demand);
        let unmoved = quotas(&supply, &bounds, self.eta.eta);
        let has_moved = self.decide_eta(&unmoved, &supply, now);
        self.last = if has_moved { quotas(&supply, &bounds, self.eta.eta) } else { unmoved };
        Ok(self.last.iter().map(|quota| Limit { hours: quota.hours, quota: quota.scaled_inventory }).collect())
    }

    /// Forecast bounds mixed with what demand does from moment to moment.
    fn mixed(&mut self, forecast: Option<Vec<Bound>>, demand: MilliGpus, now: UnixSeconds) -> Option<Vec<Bound>> {
        let gpus: Option<Vec<f64>> = forecast.as_ref().map(|all| all.iter().map(|one| one.bound.as_gpus()).collect());
        let mixed = self.live.mix(now, demand.milli(), gpus.as_deref());
        if mixed.is_empty() {
            return forecast;
        }
        let offered = self.offered.iter().zip(mixed);
        Some(offered.map(|(hours, one)| Bound { hours: *hours, bound: one.demand_bound(demand) }).collect())
    }

    /// Before the first hour is over nothing is known.
    fn nothing(&self) -> Vec<Limit> {
        self.offered.iter().map(|hours| Limit { hours: *hours, quota: MilliGpus::ZERO }).collect()
    }

    /// Whether eta moved.
    fn decide_eta(&mut self, unmoved: &[Quota], supply: &Supply, now: UnixSeconds) -> bool {
        if self.settings.eta_fixed {
            return false;
        }
        let (outcomes, settings) = (self.unspent.make_contiguous(), &self.settings.pool);
        let feedback = Feedback::of(outcomes, self.newest, supply, unmoved, settings, now);
        let state = self.eta.within(&self.settings.pool);
        match eta::decide(&state, &feedback, &self.settings.pool, now) {
            EtaDecision::Move { to, spends, .. } => {
                self.eta = EtaState { eta: to, moved_at: now };
                if spends {
                    self.unspent.clear();
                }
                true
            }
            EtaDecision::Hold(_) => false,
        }
    }
}

/// A bound below what is already needed is wrong.
fn not_below(bounds: Vec<Bound>, demand: MilliGpus) -> Vec<Bound> {
    bounds.into_iter().map(|one| Bound { bound: one.bound.max(demand), ..one }).collect()
}
