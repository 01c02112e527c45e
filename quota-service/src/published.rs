//! Ready answers, immutable, in memory: a reader takes no lock, waits for no database and computes nothing.

mod following;
mod hold;
mod lowered;

pub use following::TasksNow;
pub use hold::Hold;
pub use lowered::Report;

use crate::engine::{Limits, TaskCounts};
use crate::plan::{self, Held, PoolQuota};
use axum::body::Bytes;
use axum::http::HeaderValue;
use placement::Limit;
use placement::staleness::{Answered, Stage, answered, stage};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::sync::Arc;
use store::EtaMove;
use vocab::{MilliGpus, OutcomeKind, PlacedBy, PoolId, UnixSeconds};
use wire::{Explanation, QuotaAnswer};

/// Everything that is answered, by cluster and GPU model.
#[derive(Default)]
pub struct Published {
    pools: BTreeMap<String, BTreeMap<String, Arc<PublishedPool>>>,
}

/// The answers of a pool.
pub struct PublishedPool {
    pub id: PoolId,
    /// By hours, rising; empty where no quota was ever computed.
    pub answers: Vec<Answer>,
    /// Inputs of the newest quotas; `None` after a restart, until they are renewed.
    pub made_of: Option<Arc<PoolQuota>>,
    pub eta_moves: Vec<EtaMove>,
    /// Explanations of the quotas that were stored before a restart, by hours.
    pub stored_explanations: BTreeMap<u8, Explanation>,
    /// Why the last attempt to renew the quotas failed.
    pub problem: Option<String>,
    /// Whether it failed by a fault of the database or of the service, not for what it was given.
    pub has_failed: bool,
    pub glance: Glance,
}

/// Figures of a pool beside its quotas, as of the last renewal.
#[derive(Debug, Clone, Default)]
pub struct Glance {
    /// How guarantees ended in the last 24 hours.
    pub outcomes_24h: BTreeMap<OutcomeKind, u64>,
    /// Where the tasks of the pool are placed here.
    pub tasks: Option<TaskCounts>,
    /// Which side places them; `None` while it is undecided.
    pub placed_by: Option<PlacedBy>,
    /// C of a pool without a quota, where it is known.
    pub capacity: Option<MilliGpus>,
}

/// The answer for one number of hours, written out for every stage that it may reach.
#[derive(Clone)]
pub struct Answer {
    pub fresh: QuotaAnswer,
    pub computed_at: UnixSeconds,
    /// As last reported.
    pub held: Held,
    by_stage: [Ready; 3],
}

/// Bytes to send.
#[derive(Clone)]
pub struct Ready {
    pub body: Bytes,
    pub etag: HeaderValue,
}

impl Ready {
    fn of(answer: &QuotaAnswer) -> Self {
        let body = answer.to_json();
        let digest = Sha256::digest(&body);
        let etag = format!("\"{}\"", hex::encode(&digest[..8]));
        Self { body: body.into(), etag: HeaderValue::from_str(&etag).expect("hexadecimal digits in quotes") }
    }
}

const STAGES: [Stage; 3] = [Stage::Fresh, Stage::Stale, Stage::Conservative];

impl Answer {
    #[must_use]
    pub fn new(fresh: QuotaAnswer, computed_at: UnixSeconds, held: Held, problem: Option<&str>) -> Self {
        let by_stage = STAGES.map(|stage| Ready::of(&plan::at_stage(&fresh, stage, held, problem)));
        Self { fresh, computed_at, held, by_stage }
    }

    /// The answers of new quotas, in their order. `virtual_time` marks a virtual clock.
    #[must_use]
    pub fn all_of(pool: &PoolQuota, virtual_time: bool) -> Vec<Self> {
        let answer = |one: &placement::Quota| {
            let fresh = plan::answer(pool, one, virtual_time);
            Self::new(fresh, pool.computed_at, Held { spot: one.used, available: one.available }, None)
        };
        pool.quotas.iter().map(answer).collect()
    }

    #[must_use]
    pub fn hours(&self) -> u8 {
        self.fresh.hours
    }

    /// The quota, and GPUs that may still be admitted, as they are answered at `now`.
    #[must_use]
    pub fn amounts(&self, now: UnixSeconds) -> Answered {
        let last = Answered { quota: plan::amount(self.fresh.quota_gpus), available: self.held.available };
        answered(stage(self.computed_at, now).0, last, self.held.spot)
    }

    /// The bytes to send at `now`.
    #[must_use]
    pub fn at(&self, now: UnixSeconds) -> &Ready {
        let (stage, _) = stage(self.computed_at, now);
        &self.by_stage[STAGES.iter().position(|known| *known == stage).unwrap_or(STAGES.len() - 1)]
    }
}

impl PublishedPool {
    /// New quotas with [their answers](Answer::all_of).
    #[must_use]
    pub fn of(quota: PoolQuota, answers: Vec<Answer>, eta_moves: Vec<EtaMove>) -> Self {
        Self {
            id: quota.id.clone(),
            answers,
            eta_moves,
            stored_explanations: BTreeMap::new(),
            problem: None,
            has_failed: false,
            glance: Glance::default(),
            made_of: Some(Arc::new(quota)),
        }
    }

    /// The limits of the tasks that are placed here, f · η: that promises fit into what is idle, placement sees for itself. `None`
    /// where no quota was computed since the start.
    #[must_use]
    pub fn limits(&self) -> Option<Vec<Limit>> {
        let limit = |quota: &placement::Quota| Limit { hours: quota.hours, quota: quota.scaled_inventory };
        Some(self.made_of.as_ref()?.quotas.iter().map(limit).collect())
    }

    /// Whether it has answers of before the start alone, and no renewal has been tried since.
    #[must_use]
    pub const fn awaits_renewal(&self) -> bool {
        !self.answers.is_empty() && self.made_of.is_none() && self.problem.is_none()
    }

    /// The same, where renewals have failed since.
    #[must_use]
    pub const fn has_only_failed(&self) -> bool {
        !self.answers.is_empty() && self.made_of.is_none() && self.has_failed
    }

    /// Why there is no newer quota.
    #[must_use]
    pub fn why_none(&self) -> String {
        self.problem.clone().unwrap_or_else(|| "the first computation is running: retry".to_owned())
    }

    #[must_use]
    pub fn answer(&self, hours: u8) -> Option<&Answer> {
        self.answers.iter().find(|answer| answer.hours() == hours)
    }

    /// The same answers, with what spot tasks hold now and why the last attempt to renew them failed. `spot` is S_a(H) by
    /// hours, where it is known.
    #[must_use]
    pub fn with_problem(&self, problem: Option<String>, spot: &dyn Fn(u8) -> Option<MilliGpus>) -> Self {
        // A task counts among all shorter guarantees: what they leave is all that a longer one leaves.
        let mut least = None;
        let mut renewed = |answer: &Answer| {
            let spot = spot(answer.hours()).unwrap_or(answer.held.spot);
            let left = plan::amount(answer.fresh.quota_gpus).left_after(spot);
            let left = left.min(plan::amount(answer.fresh.available_gpus));
            let available = least.map_or(left, |least: MilliGpus| least.min(left));
            least = Some(available);
            Answer::new(answer.fresh.clone(), answer.computed_at, Held { spot, available }, problem.as_deref())
        };
        let answers = self.answers.iter().map(&mut renewed).collect();
        Self { problem, has_failed: false, ..self.with_answers(answers) }
    }

    /// [`Self::with_problem`] after a fault of the database or of the service.
    #[must_use]
    pub fn failed(&self, problem: String) -> Self {
        Self { has_failed: true, ..self.with_problem(Some(problem), &|_| None) }
    }

    /// The same pool, placed by this side.
    #[must_use]
    pub fn with_side(&self, side: PlacedBy) -> Self {
        let glance = Glance { placed_by: Some(side), ..self.glance.clone() };
        Self { glance, ..self.with_answers(self.answers.clone()) }
    }

    /// The same pool with other answers.
    fn with_answers(&self, answers: Vec<Answer>) -> Self {
        Self {
            id: self.id.clone(),
            answers,
            made_of: self.made_of.clone(),
            eta_moves: self.eta_moves.clone(),
            stored_explanations: self.stored_explanations.clone(),
            problem: self.problem.clone(),
            has_failed: self.has_failed,
            glance: self.glance.clone(),
        }
    }

    /// A pool without a quota.
    #[must_use]
    pub const fn without_quota(id: PoolId, problem: String) -> Self {
        Self {
            id,
            answers: Vec::new(),
            made_of: None,
            eta_moves: Vec::new(),
            stored_explanations: BTreeMap::new(),
            problem: Some(problem),
            has_failed: false,
            glance: Glance { outcomes_24h: BTreeMap::new(), tasks: None, placed_by: None, capacity: None },
        }
    }
}

impl Published {
    #[must_use]
    pub fn pool(&self, cluster: &str, gpu_model: &str) -> Option<&Arc<PublishedPool>> {
        self.pools.get(cluster)?.get(gpu_model)
    }

    /// The limits that a pool has at this time.
    #[must_use]
    pub fn limits(&self, id: &PoolId, now: UnixSeconds) -> Limits {
        let pool = self.pool(id.cluster.as_str(), id.gpu_model.as_str());
        let Some((pool, answer)) = pool.and_then(|pool| Some((pool, pool.answers.first()?))) else {
            return Limits::Kept;
        };
        if stage(answer.computed_at, now).0 == Stage::Conservative {
            return Limits::Held;
        }
        pool.limits().map_or(Limits::Kept, Limits::Set)
    }

    pub fn pools(&self) -> impl Iterator<Item = &Arc<PublishedPool>> {
        self.pools.values().flat_map(BTreeMap::values)
    }

    /// The ids of all pools.
    #[must_use]
    pub fn ids(&self) -> Vec<String> {
        self.pools().map(|pool| pool.id.to_string()).collect()
    }

    /// Whether any quota can be answered.
    #[must_use]
    pub fn has_quota(&self) -> bool {
        self.pools().any(|pool| !pool.answers.is_empty())
    }

    /// These pools, in place of those of the same id.
    #[must_use]
    pub fn with(&self, pools: impl IntoIterator<Item = Arc<PublishedPool>>) -> Self {
        let mut all = self.pools.clone();
        for pool in pools {
            let of_cluster = all.entry(pool.id.cluster.to_string()).or_default();
            of_cluster.insert(pool.id.gpu_model.to_string(), pool);
        }
        Self { pools: all }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use serde_json::json;
    use vocab::{HorizonHours, PoolState};

    /// A pool by hours, quota and GPUs of spot, computed at midnight of 2024-03-01.
    pub(crate) fn published(quotas: &[(u8, f64, f64)]) -> PublishedPool {
        let answer = |&(hours, quota, used): &(u8, f64, f64)| {
            let fresh: QuotaAnswer = serde_json::from_value(json!({
                "cluster": "earth", "gpu_model": "A100", "hours": hours, "guarantee_rate": 0.9, "quota_gpus": quota,
                "used_gpus": used, "available_gpus": quota - used, "inventory_gpus": 100.0, "capacity_gpus": 128.0,
                "demand_bound_gpus": 28.0, "eta": 1.0, "idle_gpus": 90.0, "aggregation": "sum", "run_id": null,
                "computed_at": "2024-03-01T00:00:00Z", "valid_until": "2024-03-01T00:05:00Z", "stage": "fresh",
                "stale": false, "reasons": [],
            }))
            .unwrap();
            let held = Held { spot: plan::amount(used), available: plan::amount(quota - used) };
            Answer::new(fresh, UnixSeconds::new(1_709_251_200), held, None)
        };
        PublishedPool {
            id: PoolId::parse("earth:A100").unwrap(),
            answers: quotas.iter().map(answer).collect(),
            made_of: None,
            eta_moves: Vec::new(),
            stored_explanations: BTreeMap::new(),
            problem: None,
            has_failed: false,
            glance: Glance::default(),
        }
    }

    pub(crate) fn reported(idle: u32, spot: &[(HorizonHours, u32)]) -> Report {
        let state = PoolState {
            pool: PoolId::parse("earth:A100").unwrap(),
            capacity: MilliGpus::from_gpus(128),
            idle: MilliGpus::from_gpus(idle),
            spot_by_guarantee: spot.iter().map(|(hours, gpus)| (*hours, MilliGpus::from_gpus(*gpus))).collect(),
            longest_quota_wait_s: 0,
            as_of: UnixSeconds::new(1_709_251_260),
        };
        Report::new(state, None)
    }
}
