//! A policy by its name: the order of tasks, what admits spot, where tasks go, and who goes for HP (DESIGN §5).

use crate::fleet::{PreemptionSettings, ScoreRule, Terms, VictimRule};
use crate::shares::ShareSettings;
use vocab::TaskClass;

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

/// The tasks that wait behind one that does not fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Blocking {
    /// Nobody: smaller tasks fill what is left.
    Nobody,
    /// Its class.
    Class,
    /// All that come after it, of either class.
    Everybody,
}

/// The condition of a spot task's start, besides idle GPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// Room in the quota of its guarantee hours.
    Quota,
    /// Nothing: Q = S0 + S_a, the control.
    Idle,
}

/// For how many waiting tasks places are kept, and after which wait. The oldest of a class that cannot start gets a reservation;
/// others of its class pass it only where that does not delay it. How long tasks run is not known, so that nobody passes on the
/// reserved nodes but spot on those of HP, which HP evicts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReservationSettings {
    /// HP tasks with a reservation at the same time; 0 for none.
    pub hp_heads: u32,
    /// The same for spot.
    pub spot_heads: u32,
    /// Seconds that an HP task waits before it gets one.
    pub hp_after_s: u32,
    /// The same for spot.
    pub spot_after_s: u32,
    /// A spot task that asks for more of a quota than this, in hundredths, gets none.
    pub quota_percent: u32,
}

impl ReservationSettings {
    /// Largest number of tasks with a reservation at the same time.
    pub const MOST_HEADS: u32 = 16;
    /// A week.
    pub const MOST_AFTER_S: u32 = 604_800;
    /// No reservations, as in the papers.
    pub const NONE: Self =
        Self { hp_heads: 0, spot_heads: 0, hp_after_s: 600, spot_after_s: 21_600, quota_percent: 50 };
    /// One for HP. One for spot costs other spot more than it brings, so that a pool has it where it asks for it.
    pub const GFS: Self = Self { hp_heads: 1, ..Self::NONE };

    /// How many tasks of a class have one at the same time, and after which wait.
    #[must_use]
    pub const fn of(&self, class: TaskClass) -> (u32, i64) {
        match class {
            TaskClass::Hp => (self.hp_heads, self.hp_after_s as i64),
            TaskClass::Spot => (self.spot_heads, self.spot_after_s as i64),
        }
    }
}

/// When what was chosen happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Timing {
    /// As soon as it is known to fit.
    AtOnce,
    /// HP that would evict waits for a moment, learned from how often GPUs fall idle meanwhile (Lazer). Idle GPUs it takes at
    /// once.
    Lazer {
        /// The seed of its predictor.
        seed: u64,
    },
}

/// How tasks are placed: the parts of the pipeline, in its order ([`pipeline`](crate::pipeline)).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Policy {
    /// Order of the queue.
    pub order: OrderRule,
    /// Tasks that a waiting task blocks.
    pub blocking: Blocking,
    /// Reservations against starvation.
    pub reservations: ReservationSettings,
    /// Fair shares of spot among organizations; none where only the order above counts.
    pub shares: Option<ShareSettings>,
    /// Rule by which spot is admitted.
    pub admission: Admission,
    /// Rule by which nodes are ranked.
    pub score: ScoreRule,
    /// Rule by which victims are chosen.
    pub victims: VictimRule,
    /// Rule by which evictions are deferred.
    pub timing: Timing,
    /// Whether HP looks for idle GPUs before it evicts.
    pub idle_first: bool,
    /// Parameters of preemption.
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
        reservations: ReservationSettings::GFS,
        shares: None,
        admission: Admission::Quota,
        score: ScoreRule::Apart,
        victims: VictimRule::LeastWaste,
        timing: Timing::AtOnce,
        idle_first: true,
        preemption: PreemptionSettings {
            usage_weight: 0.5,
            usage_window_s: vocab::SECONDS_PER_DAY as u64,
            keeps_guarantees: true,
        },
        limits_follow_demand: true,
        topology: false,
    };

    /// GFS as the paper prints it, where that makes sense (DESIGN §4).
    pub const PAPER: Self = Self {
        order: OrderRule::Size,
        reservations: ReservationSettings::NONE,
        score: ScoreRule::Gfs,
        preemption: PreemptionSettings { keeps_guarantees: false, ..Self::GFS.preemption },
        limits_follow_demand: false,
        ..Self::GFS
    };

    /// The names of all policies; `pwr-fgd-` goes with any α from 0 to 1.
    pub const IDS: [&'static str; 27] = [
        "gfs",
        "gfs-topology",
        "gfs-lazer",
        "gfs-paper",
        "gfs-noquota",
        "gfs-e",
        "gfs-d",
        "gfs-s",
        "gfs-p",
        "gfs-sp",
        "yarn-cs",
        "fifo-fair",
        "lyra",
        "fgd",
        "pwr",
        "pwr-fgd-0.05",
        "pwr-fgd-0.1",
        "pwr-fgd-0.2",
        "pwr-fgd-moving",
        "best-fit",
        "dot-prod",
        "gpu-packing",
        "gpu-clustering",
        "first-fit",
        "random",
        "gfs-fgd",
        "gfs-pwr",
    ];

    /// The rules of a policy; the ablations `gfs-e` and `gfs-d` differ from `gfs` in forecast and eta alone.
    #[must_use]
    pub fn parse(id: &str) -> Option<Self> {
        let gfs = Self::GFS;
        // Ablations and the control are published without reservations.
        let plain = Self { reservations: ReservationSettings::NONE, ..gfs };
        let idle = Self { admission: Admission::Idle, limits_follow_demand: false, ..plain };
        let arrival = Self { order: OrderRule::Arrival, blocking: Blocking::Class, ..idle };
        let fair = Self { score: ScoreRule::Fullest, victims: VictimRule::Tightest, ..arrival };
        let scored = |score| Self { score, ..fair };
        Some(match id {
            "gfs" => gfs,
            "gfs-e" | "gfs-d" => plain,
            "gfs-topology" => Self { topology: true, ..gfs },
            "gfs-lazer" => Self { timing: Timing::Lazer { seed: 0 }, ..gfs },
            "gfs-paper" => Self::PAPER,
            "gfs-noquota" => idle,
            "gfs-s" => Self { score: ScoreRule::Fullest, ..plain },
            "gfs-p" => Self { victims: VictimRule::Random { seed: 0 }, ..plain },
            "gfs-sp" => Self { score: ScoreRule::Fullest, victims: VictimRule::Random { seed: 0 }, ..plain },
            "yarn-cs" => Self { idle_first: false, ..fair },
            "fifo-fair" => fair,
            "fgd" => scored(ScoreRule::Score(Terms::Fgd)),
            "pwr" => scored(ScoreRule::Score(Terms::Pwr)),
            "pwr-fgd-moving" => scored(ScoreRule::Score(Terms::Moving)),
            "best-fit" => scored(ScoreRule::BestFit),
            "dot-prod" => scored(ScoreRule::DotProd),
            "gpu-packing" => scored(ScoreRule::GpuPacking),
            "gpu-clustering" => scored(ScoreRule::GpuClustering),
            "first-fit" => scored(ScoreRule::FirstFit),
            "random" => scored(ScoreRule::Random { seed: 0 }),
            "gfs-fgd" => Self { score: ScoreRule::Beside(Terms::Fgd), ..plain },
            "gfs-pwr" => Self { score: ScoreRule::Beside(Terms::Pwr), ..plain },
            "lyra" => Self {
                blocking: Blocking::Everybody,
                admission: Admission::Idle,
                score: ScoreRule::Fullest,
                ..Self::PAPER
            },
            _ => scored(ScoreRule::Score(Terms::Mix { alpha_millionths: alpha(id.strip_prefix("pwr-fgd-")?)? })),
        })
    }

    /// The same with this seed, where something is drawn.
    #[must_use]
    pub const fn seeded(self, seed: u64) -> Self {
        let victims = match self.victims {
            VictimRule::Random { .. } => VictimRule::Random { seed },
            victims => victims,
        };
        let score = match self.score {
            ScoreRule::Random { .. } => ScoreRule::Random { seed },
            score => score,
        };
        let timing = match self.timing {
            Timing::Lazer { .. } => Timing::Lazer { seed },
            timing @ Timing::AtOnce => timing,
        };
        Self { score, victims, timing, ..self }
    }
}

/// A share from 0 to 1, in millionths: digits with at most six behind the point.
fn alpha(text: &str) -> Option<u32> {
    let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number(whole) || !is_number(part) || part.len() > 6 {
        return None;
    }
    let millionths = whole.parse::<u32>().ok()?.checked_mul(1_000_000)?;
    let millionths = millionths.checked_add(format!("{part:0<6}").parse().ok()?)?;
    (millionths <= 1_000_000).then_some(millionths)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_a_policy_and_no_other() {
        assert!(Policy::IDS.iter().all(|id| Policy::parse(id).is_some()));
        assert_eq!(Policy::parse("best"), None);
    }

    #[test]
    fn alpha_is_any_share_from_0_to_1() {
        let alpha = |id: &str| match Policy::parse(id)?.score {
            ScoreRule::Score(Terms::Mix { alpha_millionths }) => Some(alpha_millionths),
            _ => None,
        };
        assert_eq!(
            ["0", "0.05", "0.1", "1", "1.0", "0.000001"].map(|text| alpha(&format!("pwr-fgd-{text}"))),
            [Some(0), Some(50_000), Some(100_000), Some(1_000_000), Some(1_000_000), Some(1),]
        );
        let none = ["", "1.1", "-0.1", ".1", "0.", "0.0000001", "0,1", "x", "5000"];
        assert!(none.iter().all(|text| Policy::parse(&format!("pwr-fgd-{text}")).is_none()));
    }
}
