//! The history of a quota: its amount always, its answer and explanation where they differ from the last.

use std::collections::BTreeMap;
use store::StoredQuota;
use vocab::{HorizonHours, PoolId, UnixSeconds};
use wire::{Explanation, QuotaAnswer};

/// The explanations that were stored last. Empty at each new lease: the first quota of a pool is explained.
#[derive(Debug, Default)]
pub struct History {
    last: BTreeMap<(PoolId, HorizonHours), Explained>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Explained {
    at: UnixSeconds,
    news: String,
}

impl History {
    /// Whether a quota is stored with its explanation: its news are others than those of the last explanation, or that is
    /// older than `every_s`.
    pub fn is_new(&self, quota: &StoredQuota, news: &str, every_s: u64) -> bool {
        let every_s = i64::try_from(every_s).unwrap_or(i64::MAX);
        let last = self.last.get(&(quota.pool.clone(), quota.hours));
        last.is_none_or(|last| {
            // A clock that went back has no age to compare.
            let age_s = quota.computed_at.since_s(last.at);
            last.news != news || age_s >= every_s || age_s < 0
        })
    }

    /// Notes what was stored.
    pub fn note(&mut self, stored: &[(StoredQuota, String)]) {
        for (quota, news) in stored.iter().filter(|(quota, _)| quota.is_explained) {
            let explained = Explained { at: quota.computed_at, news: news.clone() };
            self.last.insert((quota.pool.clone(), quota.hours), explained);
        }
    }

    /// Forgets the pools for which `is_gone`.
    pub fn forget(&mut self, is_gone: impl Fn(&PoolId) -> bool) {
        self.last.retain(|(pool, _), _| !is_gone(pool));
    }
}

/// The parts whose change makes an explanation worth keeping: the reasons of the quota, its run, settings, capacity and overrides.
/// Amounts that move with every report are not among them: the history has the amount, and the arithmetic is the same.
pub fn news(answer: &QuotaAnswer, explanation: &Explanation) -> String {
    let reasons: Vec<&str> = answer.reasons.iter().map(|reason| reason.code.as_str()).collect();
    let overrides = serde_json::to_string(&explanation.overrides).unwrap_or_default();
    let facts = (&answer.run_id, &answer.aggregation, answer.guarantee_rate, answer.eta, answer.capacity_gpus);
    format!("{facts:?} {reasons:?} {} {} {overrides}", explanation.capacity.source, explanation.supply.estimated)
}

#[cfg(test)]
mod tests {
    use super::*;
    use vocab::MilliGpus;

    fn quota(at: i64) -> StoredQuota {
        StoredQuota {
            pool: PoolId::parse("earth:A100").unwrap(),
            hours: HorizonHours::new(4).unwrap(),
            computed_at: UnixSeconds::new(at),
            quota: MilliGpus::from_gpus(4),
            run_id: None,
            settings_version: None,
            answer_json: "{}".to_owned(),
            explanation_json: "{}".to_owned(),
            is_explained: true,
        }
    }

    #[test]
    fn an_explanation_is_kept_when_it_says_something_new_and_once_an_hour() {
        let mut history = History::default();
        assert!(history.is_new(&quota(0), "held by idle", 3_600), "the first");
        history.note(&[(quota(0), "held by idle".to_owned())]);
        assert!(!history.is_new(&quota(30), "held by idle", 3_600));
        assert!(history.is_new(&quota(30), "held by the forecast", 3_600));
        assert!(history.is_new(&quota(3_600), "held by idle", 3_600));
        assert!(history.is_new(&quota(-1), "held by idle", 3_600), "the clock went back");
        history.forget(|pool| pool.cluster.as_str() == "earth");
        assert!(history.is_new(&quota(30), "held by idle", 3_600));
    }
}
