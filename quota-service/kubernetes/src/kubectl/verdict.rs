//! Why a pod waits. Pure.

use crate::view::facts::{Life, PodFacts};
use vocab::{MilliGpus, TaskClass};
use wire::{PoolSummary, StageBody};

/// Why a pod waits, or that it does not.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// It has its node.
    Runs,
    /// It has ended.
    Ended,
    /// Something holds it back before the scheduler sees it, such as a queue.
    Gated,
    /// It is promised hours, and less quota is left than it asks for.
    OverQuota {
        /// Hours that it asks for.
        hours: u8,
        /// GPUs that may still be admitted for that.
        available_gpus: f64,
    },
    /// It is promised hours, and the quota is too old to admit by.
    OldQuota,
    /// It is promised hours that are not offered.
    NotOffered {
        /// Hours that it asks for.
        hours: u8,
        /// Hours that are.
        offered: Vec<u8>,
    },
    /// Headroom knows no pool of its GPU model.
    NoPool,
    /// Quota does not hold it back: it is for the scheduler to say.
    Scheduler,
}

impl Verdict {
    /// Of a pod in a pool; `is_gated` where its condition says that it is not to be scheduled yet.
    #[must_use]
    pub fn of(pod: &PodFacts, pool: Option<&PoolSummary>, is_gated: bool) -> Self {
        match pod.life {
            Life::Runs => return Self::Runs,
            Life::Ended => return Self::Ended,
            Life::Waits => {}
        }
        if is_gated {
            return Self::Gated;
        }
        let Some(hours) = pod.guarantee.filter(|_| pod.class == TaskClass::Spot) else { return Self::Scheduler };
        let Some(pool) = pool else { return Self::NoPool };
        let hours = hours.get();
        if !pool.offered_hours.contains(&hours) {
            return Self::NotOffered { hours, offered: pool.offered_hours.clone() };
        }
        if pool.stage == Some(StageBody::Conservative) {
            return Self::OldQuota;
        }
        // A promise of so many hours has to fit the quota of each shorter one, too.
        let offered = pool.offered_hours.iter().filter(|offered| **offered <= hours);
        let left = offered.filter_map(|offered| pool.available_gpus_by_hours.get(&offered.to_string()).copied());
        let available_gpus = left.fold(f64::INFINITY, f64::min);
        let fits = MilliGpus::nearest(available_gpus.clamp(0.0, 1e9)).is_ok_and(|left| pod.amount() <= left);
        if available_gpus.is_finite() && fits {
            Self::Scheduler
        } else {
            Self::OverQuota { hours, available_gpus: if available_gpus.is_finite() { available_gpus } else { 0.0 } }
        }
    }

    /// In one word, for programs.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Runs => "runs",
            Self::Ended => "ended",
            Self::Gated => "gated",
            Self::OverQuota { .. } => "over_quota",
            Self::OldQuota => "old_quota",
            Self::NotOffered { .. } => "hours_not_offered",
            Self::NoPool => "no_pool",
            Self::Scheduler => "scheduler",
        }
    }

    /// In a sentence, for people.
    #[must_use]
    pub fn sentence(&self, pod: &PodFacts) -> String {
        let gpus = vocab::gpus(pod.amount().as_gpus());
        match self {
            Self::Runs => "it runs".to_owned(),
            Self::Ended => "it has ended".to_owned(),
            Self::Gated => "it is gated: its queue, or the owner of its scheduling gates, has not let it go".to_owned(),
            Self::OverQuota { hours, available_gpus } => {
                format!(
                    "spot quota is spent: it asks {gpus} for {hours} h, and of that quota {available_gpus} can still be had"
                )
            }
            Self::OldQuota => {
                "the quota is too old to promise by: nothing new is admitted until Headroom renews it".to_owned()
            }
            Self::NotOffered { hours, offered } => {
                let offered: Vec<String> = offered.iter().map(ToString::to_string).collect();
                format!("guarantees of {hours} h are not offered; offered hours: {}", offered.join(", "))
            }
            Self::NoPool => "Headroom knows no pool of its GPU model".to_owned(),
            Self::Scheduler if pod.class == TaskClass::Hp => {
                "it is high-priority, and needs no spot quota: the scheduler has to find room".to_owned()
            }
            Self::Scheduler if pod.guarantee.is_none() => {
                "it is spot at will, and needs no guaranteed quota: the scheduler has to find room".to_owned()
            }
            Self::Scheduler => "its quota is there: the scheduler has to find room".to_owned(),
        }
    }
}
