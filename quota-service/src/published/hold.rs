//! Answers by which nothing is promised, and why.

use super::{Answer, PublishedPool};
use crate::plan::Held;
use vocab::MilliGpus;
use wire::ReasonBody;

/// Why nothing is promised by the quotas of a pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hold {
    /// Settings or overrides were changed after the quotas were computed.
    Change,
    /// The service that leads has taken the lease of the cluster, and has computed none since.
    NotRenewed,
}

impl Hold {
    /// Whether a reason says that nothing is promised, and why.
    pub(super) fn is_code(code: &str) -> bool {
        [Self::Change, Self::NotRenewed].iter().any(|hold| hold.code() == code)
    }

    const fn code(self) -> &'static str {
        match self {
            Self::Change => "change_not_in_quota",
            Self::NotRenewed => "not_renewed_since_takeover",
        }
    }

    /// The cause in words.
    #[must_use]
    pub const fn detail(self) -> &'static str {
        match self {
            Self::Change => {
                "a change of settings or overrides is not in the quota yet: nothing new is promised until a renewal, which is \
                 under way or tried again"
            }
            Self::NotRenewed => {
                "the service that leads the cluster has started or taken over, and has not renewed the quota yet: nothing new is \
                 promised until a renewal, which is under way or tried again"
            }
        }
    }
}

impl PublishedPool {
    /// The same quotas, by which nothing more is admitted, with the reason; `None` where they say so already.
    #[must_use]
    pub fn held_back(&self, why: Hold) -> Option<Self> {
        let has_reason = |answer: &Answer| answer.fresh.reasons.iter().any(|reason| reason.code == why.code());
        if self.answers.iter().all(|answer| has_reason(answer) && answer.held.available == MilliGpus::ZERO) {
            return None;
        }
        let held_back = |answer: &Answer| {
            let mut fresh = answer.fresh.clone();
            fresh.available_gpus = 0.0;
            if !has_reason(answer) {
                fresh.reasons.push(ReasonBody { code: why.code().to_owned(), detail: why.detail().to_owned() });
            }
            let held = Held { available: MilliGpus::ZERO, ..answer.held };
            Answer::new(fresh, answer.computed_at, held, self.problem.as_deref())
        };
        Some(self.with_answers(self.answers.iter().map(held_back).collect()))
    }
}
