//! η, the safety coefficient of a pool: feedback from evictions and queueing (GFS Eq. 11, as DESIGN §4.2 corrects it).
//!
//! The paper prints p where the target eviction rate q = 1 − p is meant, and applies the rule every 300 s to one window,
//! which would multiply one burst twelve times an hour. Here each outcome moves eta once.

use crate::invariants;
use crate::kept::Period;
use crate::quota::Quota;
use crate::settings::PoolSettings;
use crate::supply::Supply;
use std::fmt;
use vocab::{GuaranteeRate, HorizonHours, MilliGpus, UnixSeconds};

const MILLION: u64 = 1_000_000;
/// Without outcomes eta drifts toward 1 by at most this part at a time.
const DRIFT_DIVISOR: u64 = 10;

/// Why a text is no eta.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{value} is no eta: write a decimal between 0.000001 and 1000")]
pub struct EtaError {
    /// The value that was refused.
    pub value: f64,
}

/// A safety coefficient, in millionths: decisions are exact in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Eta(u32);

impl Eta {
    /// η = 1: the inventory as it is forecast.
    pub const ONE: Self = Self(MILLION as u32);
    /// The lowest bound that may be set.
    pub const LEAST: Self = Self(1_000);

    /// Eta from millionths.
    #[must_use]
    pub const fn from_micro(micro: u32) -> Self {
        Self(micro)
    }

    /// # Errors
    /// The value, rounded to a millionth, is not above zero and at most 1000.
    pub fn nearest(value: f64) -> Result<Self, EtaError> {
        let micro = (value * MILLION as f64).round();
        if (1.0..=1e9).contains(&micro) { Ok(Self(micro as u32)) } else { Err(EtaError { value }) }
    }

    /// Eta in millionths, as it is stored.
    #[must_use]
    pub const fn micro(self) -> u32 {
        self.0
    }

    /// Eta as a number, for display.
    #[must_use]
    pub fn as_f64(self) -> f64 {
        f64::from(self.0) / MILLION as f64
    }

    /// η · amount, rounded down; at most what an amount holds.
    #[must_use]
    pub fn of(self, amount: MilliGpus) -> MilliGpus {
        amount.scaled_down(u64::from(self.0), MILLION).unwrap_or(MilliGpus::MAX)
    }
}

impl fmt::Display for Eta {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_f64().fmt(f)
    }
}

/// Where eta stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EtaState {
    /// Eta after its last move.
    pub eta: Eta,
    /// When it last moved, or was first watched.
    pub moved_at: UnixSeconds,
}

impl EtaState {
    /// As it counts under these settings, whose bounds may have been drawn closer since it last moved.
    #[must_use]
    pub fn within(self, settings: &PoolSettings) -> Self {
        Self { eta: self.eta.clamp(settings.eta_least, settings.eta_most), ..self }
    }
}

/// The evidence that moves eta. Outcomes are [`recent`] ones since the last move, kept or broken by HP demand; node failures,
/// drains and deletions by the user do not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Feedback {
    /// Guarantees that were kept.
    pub kept: u64,
    /// Guarantees that HP demand broke.
    pub broken: u64,
    /// When the newest such outcome ended, spent or not.
    pub newest_outcome: Option<UnixSeconds>,
    /// l: the longest wait that quota alone causes.
    pub longest_quota_wait_s: u64,
    /// More eta would give more quota: for some offered hours f > 0 and S0 + Sa does not hold the quota. Without this,
    /// eta would wind up while it has no effect.
    pub more_would_help: bool,
}

impl Feedback {
    /// The evidence of outcomes, newest first and not yet spent, and of the quotas that eta gives now for a pool.
    #[must_use]
    pub fn of(
        outcomes: &[Ended],
        newest_outcome: Option<UnixSeconds>,
        supply: &Supply,
        quotas: &[Quota],
        settings: &PoolSettings,
        now: UnixSeconds,
    ) -> Self {
        let recent = recent(outcomes, settings, now);
        let broken = recent.iter().filter(|ended| ended.period.broken).count() as u64;
        Self {
            kept: recent.len() as u64 - broken,
            broken,
            newest_outcome,
            longest_quota_wait_s: supply.longest_quota_wait_s,
            more_would_help: quotas.iter().any(Quota::grows_with_eta),
        }
    }

    const fn outcomes(&self) -> u64 {
        self.kept + self.broken
    }
}

/// An ended guarantee period that counts, not yet spent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended {
    /// Outcomes are numbered from 1 in the order in which they were reported.
    pub number: i64,
    /// Instant at which the period ended.
    pub at: UnixSeconds,
    /// Guarantee hours of the period.
    pub hours: HorizonHours,
    /// How the period ended.
    pub period: Period,
}

/// The outcomes that eta is judged by: those of the last `outcome_window_s` (Eq. 11 has the last H hours), or the newest
/// `min_outcomes` where fewer ended in that time. Older ones would hide a burst behind a quiet month.
#[must_use]
pub fn recent<'a>(newest_first: &'a [Ended], settings: &PoolSettings, now: UnixSeconds) -> &'a [Ended] {
    let since = now.plus_s(-settings.outcome_window_s);
    let lately = newest_first.partition_point(|ended| ended.at >= since);
    let enough = usize::try_from(settings.min_outcomes).unwrap_or(usize::MAX);
    &newest_first[..lately.max(enough).min(newest_first.len())]
}

/// Why eta moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MoveReason {
    /// e > 1.5 q.
    ManyBroken {
        /// Promises kept since the last move.
        kept: u64,
        /// Promises broken by HP demand since the last move.
        broken: u64,
        /// p of the pool.
        target: GuaranteeRate,
    },
    /// e < 0.5 q and l > θ.
    FewBrokenLongWaits {
        /// Promises kept since the last move.
        kept: u64,
        /// Promises broken by HP demand since the last move.
        broken: u64,
        /// Seconds of the longest wait for quota.
        longest_quota_wait_s: u64,
    },
    /// No outcome for H hours and l > θ: without a step toward 1 a quota that admits nobody would never learn.
    NoOutcomesLongWaits {
        /// Seconds of the longest wait for quota.
        longest_quota_wait_s: u64,
    },
}

/// Why eta stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HoldReason {
    /// Fewer outcomes than a move needs.
    FewOutcomes {
        /// Outcomes since the last move.
        have: u64,
        /// Outcomes that a move needs.
        need: u64,
    },
    /// It moved less than H hours ago.
    MovedLately {
        /// The time of the last move.
        moved_at: UnixSeconds,
    },
    /// The eviction rate is near its target, or low without long waits.
    WithinTarget,
    /// It would rise, and that would change nothing.
    RisingWouldNotHelp,
    /// It is at the bound that it would pass.
    AtBound,
    /// Outcomes of promises move the bound itself: eta beside it made more of them break for the same quota.
    BoundLearns,
}

/// The next value of eta.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EtaDecision {
    /// Eta stays, for this reason.
    Hold(HoldReason),
    /// The new value, and why.
    Move {
        /// The next eta.
        to: Eta,
        /// The evidence for the move.
        reason: MoveReason,
        /// Whether all outcomes so far are spent: they were judged. Too few to be judged stay for the next time.
        spends: bool,
    },
}

/// Decides whether eta moves. `state` lies within the bounds of the settings ([`EtaState::within`]).
#[must_use]
pub fn decide(state: &EtaState, feedback: &Feedback, settings: &PoolSettings, now: UnixSeconds) -> EtaDecision {
    let patience_s = settings.longest_hours().seconds();
    if now.since_s(state.moved_at) < patience_s {
        return EtaDecision::Hold(HoldReason::MovedLately { moved_at: state.moved_at });
    }
    let long_waits = feedback.longest_quota_wait_s > settings.max_quota_wait_s;
    let silent = feedback.newest_outcome.is_none_or(|newest| now.since_s(newest) >= patience_s);
    let judged = feedback.outcomes() >= settings.min_outcomes;
    let followed = if judged {
        follow(state, feedback, settings, long_waits)
    } else {
        EtaDecision::Hold(HoldReason::FewOutcomes { have: feedback.outcomes(), need: settings.min_outcomes })
    };
    match followed {
        // Outcomes from before the silence that call for no change must not keep a pool that admits nobody from learning.
        EtaDecision::Hold(why) if silent && long_waits && why != HoldReason::RisingWouldNotHelp => {
            drift(state, feedback, settings, judged)
        }
        followed => followed,
    }
}

/// Eq. 11, in integers: e = broken / outcomes, q in millionths.
fn follow(state: &EtaState, feedback: &Feedback, settings: &PoolSettings, long_waits: bool) -> EtaDecision {
    let target = settings.guarantee_rate;
    let (kept, broken) = (feedback.kept, feedback.broken);
    // q · outcomes and e · outcomes, both in millionths.
    let wanted = u128::from(target.target_eviction_ppm()) * u128::from(feedback.outcomes());
    let seen = u128::from(MILLION) * u128::from(broken);
    if 2 * seen > 3 * wanted {
        // η · q/e, and no less than half of η.
        let to = scaled(state.eta, wanted, seen).max(Eta(state.eta.0.div_ceil(2)));
        debug_assert!(to <= state.eta, "many broken guarantees lower eta");
        return finish(state, to, MoveReason::ManyBroken { kept, broken, target }, true, settings);
    }
    if 2 * seen < wanted && long_waits {
        if !feedback.more_would_help {
            return EtaDecision::Hold(HoldReason::RisingWouldNotHelp);
        }
        // η · (1.5 − e/q), which is at most 1.5.
        let to = scaled(state.eta, 3 * wanted - 2 * seen, 2 * wanted);
        debug_assert!(to >= state.eta, "few broken guarantees raise eta");
        let longest_quota_wait_s = feedback.longest_quota_wait_s;
        let reason = MoveReason::FewBrokenLongWaits { kept, broken, longest_quota_wait_s };
        return finish(state, to, reason, true, settings);
    }
    EtaDecision::Hold(HoldReason::WithinTarget)
}

/// A tenth of the way at most, and not past 1.
fn drift(state: &EtaState, feedback: &Feedback, settings: &PoolSettings, judged: bool) -> EtaDecision {
    let tenth = (u64::from(state.eta.0) / DRIFT_DIVISOR).max(1) as u32;
    let to = match state.eta.cmp(&Eta::ONE) {
        std::cmp::Ordering::Equal => return EtaDecision::Hold(HoldReason::WithinTarget),
        std::cmp::Ordering::Less if !feedback.more_would_help => {
            return EtaDecision::Hold(HoldReason::RisingWouldNotHelp);
        }
        std::cmp::Ordering::Less => Eta(state.eta.0 + tenth).min(Eta::ONE),
        std::cmp::Ordering::Greater => Eta(state.eta.0 - tenth).max(Eta::ONE),
    };
    let reason = MoveReason::NoOutcomesLongWaits { longest_quota_wait_s: feedback.longest_quota_wait_s };
    finish(state, to, reason, judged, settings)
}

fn finish(state: &EtaState, to: Eta, reason: MoveReason, spends: bool, settings: &PoolSettings) -> EtaDecision {
    let to = to.clamp(settings.eta_least, settings.eta_most);
    if to == state.eta {
        return EtaDecision::Hold(HoldReason::AtBound);
    }
    debug_assert!(settings.eta_least <= settings.eta_most, "bounds of eta are in order");
    invariants::eta_moves_within_bounds(state, to, settings);
    EtaDecision::Move { to, reason, spends }
}

/// η · numerator / denominator, rounded down.
fn scaled(eta: Eta, numerator: u128, denominator: u128) -> Eta {
    Eta(u32::try_from(u128::from(eta.0) * numerator / denominator).unwrap_or(u32::MAX))
}

impl MoveReason {
    /// Stable name for programs.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::ManyBroken { .. } => "many_broken",
            Self::FewBrokenLongWaits { .. } => "few_broken_long_waits",
            Self::NoOutcomesLongWaits { .. } => "no_outcomes_long_waits",
        }
    }
}

impl fmt::Display for MoveReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ManyBroken { kept, broken, target } => write!(
                f,
                "{broken} of {} guarantees were broken, more than one and a half times the {} that a rate of {target} \
                 allows",
                kept + broken,
                f64::from(target.target_eviction_ppm()) / MILLION as f64
            ),
            Self::FewBrokenLongWaits { kept, broken, longest_quota_wait_s } => write!(
                f,
                "{broken} of {} guarantees were broken, less than half of what is allowed, and quota makes a task wait \
                 {longest_quota_wait_s} s",
                kept + broken
            ),
            Self::NoOutcomesLongWaits { longest_quota_wait_s } => {
                write!(f, "no guarantee ended lately, and quota makes a task wait {longest_quota_wait_s} s")
            }
        }
    }
}

impl HoldReason {
    /// Stable name for programs.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::FewOutcomes { .. } => "few_outcomes",
            Self::MovedLately { .. } => "moved_lately",
            Self::WithinTarget => "within_target",
            Self::RisingWouldNotHelp => "rising_would_not_help",
            Self::AtBound => "at_bound",
            Self::BoundLearns => "bound_learns",
        }
    }
}

impl fmt::Display for HoldReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::FewOutcomes { have, need } => write!(f, "{have} guarantees ended, and a move needs {need}"),
            Self::MovedLately { moved_at } => {
                write!(f, "it has stood since {moved_at}, and changes at most once per longest guarantee")
            }
            Self::WithinTarget => f.write_str("the share of broken guarantees calls for no change"),
            Self::RisingWouldNotHelp => f.write_str("it would rise, and no quota with it"),
            Self::AtBound => f.write_str("it is at its bound"),
            Self::BoundLearns => f.write_str("what became of promises moves the bound instead of eta"),
        }
    }
}

#[cfg(test)]
mod tests;
