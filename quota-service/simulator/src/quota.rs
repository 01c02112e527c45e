//! The quota of a simulated pool, renewed by the cycle of the service.

use crate::predictor::{Forecasts, Oracle};
use crate::run::Settings;
use cycle::{Inputs, Learned, decide, hp_jobs};
use forecaster::PredictError;
use placement::eta::{Ended, EtaState};
use placement::pool::{PeriodEnd, Pool};
use placement::{Known, Limit, PoolSettings, Quota};
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
    /// Whether HP jobs do, beside it.
    pub jobs: bool,
}

/// Outcomes beyond this many are never read.
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
    /// Outcomes so far.
    numbered: i64,
    last: Vec<Quota>,
    /// None where live demand takes no part.
    learned: Option<Learned>,
}

impl QuotaLoop {
    #[must_use]
    pub fn new(settings: &Settings, start: UnixSeconds, oracle: Option<Oracle>) -> Self {
        Self { oracle, ..Self::begun(settings.quota.clone(), settings.offered.clone(), start) }
    }

    /// That nobody tells what will come.
    #[must_use]
    pub fn begun(quota: QuotaSettings, offered: Vec<HorizonHours>, start: UnixSeconds) -> Self {
        let learned = quota.live.then(|| Learned::new(quota.pool.guarantee_rate, &offered));
        let eta = EtaState { eta: quota.pool.eta_start, moved_at: start };
        let (unspent, newest, numbered, last) = (VecDeque::new(), None, 0, Vec::new());
        Self { settings: quota, offered, oracle: None, eta, unspent, newest, numbered, last, learned }
    }

    /// A guarantee period ended.
    pub fn outcome(&mut self, end: &PeriodEnd) {
        if !matches!(end.kind, OutcomeKind::Kept | OutcomeKind::Broken) {
            return;
        }
        self.numbered += 1;
        self.unspent.push_front(Ended { number: self.numbered, at: end.at, hours: end.hours, period: end.period });
        self.unspent.truncate(MOST_OUTCOMES);
        self.newest = self.newest.max(Some(end.at));
    }

    /// GPUs of the shortest guarantee, as last renewed.
    #[must_use]
    pub fn quota_gpus(&self) -> f64 {
        self.last.first().map_or(0.0, |quota| quota.quota.as_gpus())
    }

    /// As last renewed, one for each of the offered hours.
    #[must_use]
    pub fn quotas(&self) -> &[Quota] {
        &self.last
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
        let hp_demand = pool.hp_demand();
        let jobs = self.settings.jobs.then(|| hp_jobs(pool));
        let state = Some(pool.state(id.clone()));
        let windows = pool.windows(self.settings.refresh_s);
        let known = Known { state, latest_demand: Some(hp_demand), windows, ..Known::default() };
        let forecast = match (&self.oracle, forecasts) {
            (Some(oracle), _) => Some(oracle.bounds(now, &self.offered)),
            // Before a model is trained what demand does from moment to moment says more than the rule for a cold start.
            (None, Some(forecasts)) if self.learned.is_some() && !forecasts.is_trained() => None,
            (None, Some(forecasts)) => forecasts.bounds(id, now, &self.offered)?,
            (None, None) => None,
        };
        let decided = decide(Inputs {
            now,
            known: &known,
            settings: &self.settings.pool,
            forecast: forecast.as_deref(),
            is_placed_here: true,
            hp_demand: Some(hp_demand),
            hp_jobs: jobs.as_deref(),
            past_jobs: None,
            last_usage: &[],
            measured_until: now,
            calibrated_hours: 0,
            learned: self.learned.as_mut(),
            overrides: &[],
            eta: self.eta,
            unspent: self.unspent.make_contiguous(),
            newest_outcome: self.newest,
            eta_is_fixed: self.settings.eta_fixed,
        });
        // A pool knows its own state: it is of this moment.
        let Ok(decided) = decided else { return Ok(self.limits(&[])) };
        if decided.quotas.is_empty() {
            return Ok(self.limits(&[]));
        }
        if let Some(moved) = decided.moved {
            self.eta = moved.to;
            if moved.spends {
                self.unspent.clear();
            }
        }
        self.last = decided.quotas;
        Ok(self.limits(&self.last))
    }

    /// Of all offered hours. Those of which nothing is known yet have none to promise.
    fn limits(&self, known: &[Quota]) -> Vec<Limit> {
        let of =
            |hours| known.iter().find(|quota| quota.hours == hours).map_or(MilliGpus::ZERO, |one| one.scaled_inventory);
        self.offered.iter().map(|hours| Limit { hours: *hours, quota: of(*hours) }).collect()
    }
}
