//! A policy by its name: the order of tasks, what admits spot, where tasks go, and who goes for HP (DESIGN §5).

use crate::fleet::{PreemptionSettings, ScoreRule, VictimRule};

/// In which order tasks are tried; HP before spot in each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OrderRule {
    /// HP as it comes; spot with the fewest GPUs over all pods first, then earlier ones. What is left of a quota is small:
    /// it starts many small tasks or keeps a large one waiting.
    SmallSpotFirst,
    /// Larger requests first, then more pods, then earlier ones (GFS §3.4.2).
    Size,
    /// Earlier ones first.
    Arrival,
}

/// Who waits behind a task that does not fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Blocking {
    /// Nobody: smaller tasks fill what is left.
    Nobody,
    /// Its class.
    Class,
    /// All that come after it, of either class.
    Everybody,
}

/// What a spot task needs to start, besides idle GPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// Room in the quota of its guarantee hours.
    Quota,
    /// Nothing: Q = S0 + S_a, the control.
    Idle,
}

/// How tasks are placed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Policy {
    pub order: OrderRule,
    pub blocking: Blocking,
    pub admission: Admission,
    pub score: ScoreRule,
    pub victims: VictimRule,
    /// Whether HP looks for idle GPUs before it evicts.
    pub idle_first: bool,
    pub preemption: PreemptionSettings,
    /// Whether HP demand that comes between two renewals of the quota takes from it.
    pub limits_follow_demand: bool,
    /// Whether the topology of nodes counts: where GPUs lie, and what tasks ask of that. A policy that does not look at it
    /// takes no heed of best-effort affinity, and lets tasks wait whose affinity is guaranteed.
    pub topology: bool,
}

impl Policy {
    /// GFS as DESIGN §4 has it, with what the simulator showed to be better.
    pub const GFS: Self = Self {
        order: OrderRule::SmallSpotFirst,
        blocking: Blocking::Nobody,
        admission: Admission::Quota,
        score: ScoreRule::Apart,
        victims: VictimRule::LeastWaste,
        idle_first: true,
        preemption: PreemptionSettings { usage_weight: 0.5, usage_window_s: 86_400, keeps_guarantees: true },
        limits_follow_demand: true,
        topology: false,
    };

    /// GFS as the paper prints it, where that makes sense (DESIGN §4).
    pub const PAPER: Self = Self {
        order: OrderRule::Size,
        score: ScoreRule::Gfs,
        preemption: PreemptionSettings { keeps_guarantees: false, ..Self::GFS.preemption },
        limits_follow_demand: false,
        ..Self::GFS
    };

    /// The names of all policies.
    pub const IDS: [&'static str; 13] = [
        "gfs",
        "gfs-topology",
        "gfs-paper",
        "gfs-noquota",
        "gfs-e",
        "gfs-d",
        "gfs-s",
        "gfs-p",
        "gfs-sp",
        "yarn-cs",
        "fifo-fair",
        "fgd",
        "lyra",
    ];

    /// The rules of a policy; the ablations `gfs-e` and `gfs-d` differ from `gfs` in forecast and eta alone.
    #[must_use]
    pub fn parse(id: &str) -> Option<Self> {
        let gfs = Self::GFS;
        let arrival = Self { order: OrderRule::Arrival, blocking: Blocking::Class, admission: Admission::Idle, ..gfs };
        let fair = Self { score: ScoreRule::BestFit, victims: VictimRule::Tightest, ..arrival };
        Some(match id {
            "gfs" | "gfs-e" | "gfs-d" => gfs,
            "gfs-topology" => Self { topology: true, ..gfs },
            "gfs-paper" => Self::PAPER,
            "gfs-noquota" => Self { admission: Admission::Idle, ..gfs },
            "gfs-s" => Self { score: ScoreRule::BestFit, ..gfs },
            "gfs-p" => Self { victims: VictimRule::Random { seed: 0 }, ..gfs },
            "gfs-sp" => Self { score: ScoreRule::BestFit, victims: VictimRule::Random { seed: 0 }, ..gfs },
            "yarn-cs" => Self { idle_first: false, ..fair },
            "fifo-fair" => fair,
            "fgd" => Self { score: ScoreRule::Fgd, ..fair },
            "lyra" => Self {
                blocking: Blocking::Everybody,
                admission: Admission::Idle,
                score: ScoreRule::BestFit,
                ..Self::PAPER
            },
            _ => return None,
        })
    }

    /// The same with this seed, where something is drawn.
    #[must_use]
    pub const fn seeded(self, seed: u64) -> Self {
        match self.victims {
            VictimRule::Random { .. } => Self { victims: VictimRule::Random { seed }, ..self },
            _ => self,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_a_policy_and_no_other() {
        assert!(Policy::IDS.iter().all(|id| Policy::parse(id).is_some()));
        assert_eq!(Policy::parse("best"), None);
    }
}
