//! The parts of a policy by their names, and which of them go together.
//!
//! A decision is a pipeline: **order** (who is next, and who waits behind whom) → **admission** (what spot needs to start) →
//! **score** (which node and GPUs) → **victims** (whom to evict) → **timing** (now or later).

use crate::fleet::{PreemptionSettings, ScoreRule, Terms, VictimRule};
use crate::policy::{Admission, Blocking, OrderRule, Policy, ReservationSettings, Timing};
use crate::shares::ShareSettings;

/// Names of the values of one part.
type Names<T, const N: usize> = [(&'static str, T); N];

/// A part that is one of a few values, each with a name.
pub trait Part: Copy + PartialEq + 'static {
    /// The name of the part.
    const PART: &'static str;
    /// All values with their names.
    const ALL: &'static [(&'static str, Self)];

    /// The value of that name.
    ///
    /// # Errors
    /// There is none: the sentence lists those there are.
    fn parse(name: &str) -> Result<Self, String> {
        let found = Self::ALL.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
        found.ok_or_else(|| {
            let names: Vec<&str> = Self::ALL.iter().map(|(name, _)| *name).collect();
            format!("{name:?} is no {}; there are {}", Self::PART, names.join(", "))
        })
    }

    /// The name of this value.
    fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, value)| *value == self).map_or("", |(name, _)| name)
    }
}

const ORDERS: Names<OrderRule, 3> =
    [("small-spot-first", OrderRule::SmallSpotFirst), ("size", OrderRule::Size), ("arrival", OrderRule::Arrival)];

impl Part for OrderRule {
    const PART: &'static str = "order";
    const ALL: &'static [(&'static str, Self)] = &ORDERS;
}

const BLOCKINGS: Names<Blocking, 3> =
    [("nobody", Blocking::Nobody), ("class", Blocking::Class), ("everybody", Blocking::Everybody)];

impl Part for Blocking {
    const PART: &'static str = "kind of blocking";
    const ALL: &'static [(&'static str, Self)] = &BLOCKINGS;
}

impl Part for Admission {
    const PART: &'static str = "admission";
    const ALL: &'static [(&'static str, Self)] = &[("quota", Self::Quota), ("idle", Self::Idle)];
}

impl Part for ScoreRule {
    const PART: &'static str = "score";
    const ALL: &'static [(&'static str, Self)] = &[
        ("gfs", Self::Gfs),
        ("apart", Self::Apart),
        ("fullest", Self::Fullest),
        ("best-fit", Self::BestFit),
        ("dot-prod", Self::DotProd),
        ("gpu-packing", Self::GpuPacking),
        ("gpu-clustering", Self::GpuClustering),
        ("first-fit", Self::FirstFit),
        ("random", Self::Random { seed: 0 }),
        ("fgd", Self::Score(Terms::Fgd)),
        ("pwr", Self::Score(Terms::Pwr)),
        ("pwr-fgd", Self::MIXED),
        ("pwr-fgd-moving", Self::Score(Terms::Moving)),
    ];
}

impl ScoreRule {
    /// A tenth of power, nine of fragmentation: the mix that the paper recommends (PWR §5).
    pub const MIXED: Self = Self::Score(Terms::Mix { alpha_millionths: 100_000 });
}

impl Part for VictimRule {
    const PART: &'static str = "choice of victims";
    const ALL: &'static [(&'static str, Self)] =
        &[("least-waste", Self::LeastWaste), ("tightest", Self::Tightest), ("random", Self::Random { seed: 0 })];
}

impl Part for Timing {
    const PART: &'static str = "timing";
    const ALL: &'static [(&'static str, Self)] = &[("at-once", Self::AtOnce), ("lazer", Self::Lazer { seed: 0 })];
}

/// Parts that do not go together.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum PolicyFault {
    #[error(
        "limits_follow_demand is for admission by quota: with admission \"idle\" there are no limits that could follow"
    )]
    /// Limits cannot follow demand where admission reads no quota.
    LimitsWithoutQuota,
    #[error(
        "idle_first = false is for victims by \"tightest\": \"{victims}\" evicts only where idle GPUs do not suffice"
    )]
    /// Only victims by `tightest` may be evicted before idle GPUs are used.
    EvictsBeforeIdle {
        /// Name of the victim rule.
        victims: &'static str,
    },
    /// This rule for victims does not read the parameter.
    #[error("victims by \"{victims}\" do not look at what is lost: leave {parameter} out, or choose \"least-waste\"")]
    Unread {
        /// Name of the victim rule.
        victims: &'static str,
        /// Name of the parameter that the rule does not read.
        parameter: &'static str,
    },
    /// This rule for victims knows no topology.
    #[error("topology = true is for victims by \"least-waste\": \"{victims}\" does not look at how GPUs lie")]
    Unaligned {
        /// Name of the victim rule.
        victims: &'static str,
    },
    #[error(
        "reservations are for blocking by \"nobody\": with \"{blocking}\" others wait behind the first task as it is"
    )]
    /// A reservation needs tasks that may pass the head of the queue.
    ReservesBehindHead {
        /// Name of the blocking rule.
        blocking: &'static str,
    },
    #[error("shares are for blocking by \"nobody\": with \"{blocking}\" others wait behind the first task as it is")]
    /// Shares order spot tasks by their organizations; blocking by the head of the queue contradicts them.
    SharesBehindHead {
        /// Name of the blocking rule.
        blocking: &'static str,
    },
    /// The half-life of shares is out of its range.
    #[error("half_life_hours is {0}: write a number of 1 to {most}", most = ShareSettings::MOST_HALF_LIFE_HOURS)]
    HalfLife(u32),
    /// A parameter of reservations is out of its range.
    #[error("{parameter} is {value}: write a number of {least} to {most}")]
    Reservations {
        /// Name of the refused parameter.
        parameter: &'static str,
        /// The refused value.
        value: u32,
        /// The least accepted value.
        least: u32,
        /// The largest accepted value.
        most: u32,
    },
    /// The weight of usage is not a number from 0 on.
    #[error("usage_weight is {0}: write a number of 0 to 1000")]
    UsageWeight(f64),
    /// The window of usage is empty.
    #[error("usage_window_s is 0: Eq. 18 needs a window of at least a second")]
    NoWindow,
}

impl Policy {
    /// # Errors
    /// Two parts contradict each other, or a parameter is out of range.
    pub fn check(&self) -> Result<(), PolicyFault> {
        let PreemptionSettings { usage_weight, usage_window_s, .. } = self.preemption;
        if self.admission == Admission::Idle && self.limits_follow_demand {
            return Err(PolicyFault::LimitsWithoutQuota);
        }
        if !self.idle_first && !matches!(self.victims, VictimRule::Tightest) {
            return Err(PolicyFault::EvictsBeforeIdle { victims: self.victims.name() });
        }
        if self.topology && self.victims != VictimRule::LeastWaste {
            return Err(PolicyFault::Unaligned { victims: self.victims.name() });
        }
        let ReservationSettings { hp_heads, spot_heads, hp_after_s, spot_after_s, quota_percent } = self.reservations;
        if hp_heads.max(spot_heads) > 0 && self.blocking != Blocking::Nobody {
            return Err(PolicyFault::ReservesBehindHead { blocking: self.blocking.name() });
        }
        if let Some(ShareSettings { half_life_hours }) = self.shares {
            if self.blocking != Blocking::Nobody {
                return Err(PolicyFault::SharesBehindHead { blocking: self.blocking.name() });
            }
            if !(1..=ShareSettings::MOST_HALF_LIFE_HOURS).contains(&half_life_hours) {
                return Err(PolicyFault::HalfLife(half_life_hours));
            }
        }
        let bounds = [
            ("hp_heads", hp_heads, 0, ReservationSettings::MOST_HEADS),
            ("spot_heads", spot_heads, 0, ReservationSettings::MOST_HEADS),
            ("hp_after_s", hp_after_s, 0, ReservationSettings::MOST_AFTER_S),
            ("spot_after_s", spot_after_s, 0, ReservationSettings::MOST_AFTER_S),
            ("quota_percent", quota_percent, 1, 100),
        ];
        if let Some((parameter, value, least, most)) =
            bounds.into_iter().find(|(_, value, least, most)| !(least..=most).contains(&value))
        {
            return Err(PolicyFault::Reservations { parameter, value, least, most });
        }
        if !(0.0..=1_000.0).contains(&usage_weight) {
            return Err(PolicyFault::UsageWeight(usage_weight));
        }
        if usage_window_s == 0 {
            return Err(PolicyFault::NoWindow);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_reads_back_by_its_name() {
        fn all<T: Part + std::fmt::Debug>() {
            for (name, value) in T::ALL {
                assert_eq!((T::parse(name), value.name()), (Ok(*value), *name));
            }
        }
        all::<OrderRule>();
        all::<Blocking>();
        all::<Admission>();
        all::<ScoreRule>();
        all::<VictimRule>();
        all::<Timing>();
        let message = OrderRule::parse("fifo").unwrap_err();
        assert_eq!(message, "\"fifo\" is no order; there are small-spot-first, size, arrival");
    }

    #[test]
    fn parts_that_contradict_each_other_are_refused() {
        let gfs = Policy::GFS;
        let refused = |policy: Policy| policy.check().unwrap_err();
        assert!(Policy::IDS.iter().filter_map(|id| Policy::parse(id)).all(|policy| policy.check().is_ok()));
        assert_eq!(refused(Policy { admission: Admission::Idle, ..gfs }), PolicyFault::LimitsWithoutQuota);
        let victims = "least-waste";
        assert_eq!(refused(Policy { idle_first: false, ..gfs }), PolicyFault::EvictsBeforeIdle { victims });
        let tightest = Policy { topology: true, victims: VictimRule::Tightest, ..gfs };
        assert_eq!(refused(tightest), PolicyFault::Unaligned { victims: "tightest" });
        let weighs = |usage_weight| Policy { preemption: PreemptionSettings { usage_weight, ..gfs.preemption }, ..gfs };
        assert_eq!(refused(weighs(-1.0)), PolicyFault::UsageWeight(-1.0));
        assert!(weighs(f64::NAN).check().is_err());
        let shares = |half_life_hours| Some(ShareSettings { half_life_hours });
        assert!(Policy { shares: shares(24), ..gfs }.check().is_ok());
        for hours in [0, 2_161] {
            assert_eq!(refused(Policy { shares: shares(hours), ..gfs }), PolicyFault::HalfLife(hours));
        }
        let behind =
            Policy { shares: shares(24), blocking: Blocking::Class, reservations: ReservationSettings::NONE, ..gfs };
        assert_eq!(refused(behind), PolicyFault::SharesBehindHead { blocking: "class" });
        let at_once = PreemptionSettings { usage_window_s: 0, ..gfs.preemption };
        assert_eq!(refused(Policy { preemption: at_once, ..gfs }), PolicyFault::NoWindow);
    }
}
