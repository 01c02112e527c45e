//! The limits of a pool are those of the quotas served, at every turn.

use super::decide::TurnContext;
use placement::Limit;
use placement::pool::Command;
use wire::ReasonBody;

/// The limits of a pool by the quotas served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Limits {
    /// They are these.
    Set(Vec<Limit>),
    /// The quotas are too old to promise by.
    Held,
    /// Nothing: none was computed since the start, and the stored ones are not too old.
    Kept,
}

impl TurnContext<'_> {
    /// The limits by the quotas served, where they are not those of the pool: a quota becomes too old between two renewals, which may be an
    /// hour apart, and a pool that has just been read, or whose quotas have just been published, has others. Announced before time passes: a
    /// promise that has ended since the last turn, which may be one of another leader, is renewed by the limits of now.
    pub(super) fn announce_limits(&mut self, served: Limits) -> Option<Vec<Limit>> {
        let limits = match served {
            Limits::Set(limits) => limits,
            Limits::Held => self.state.pool.held_limits(),
            Limits::Kept => return None,
        };
        if self.state.limits() == limits {
            return None;
        }
        for pool in [Some(&mut self.state.pool), self.state.shadow.as_mut()].into_iter().flatten() {
            pool.set_limits_next(limits.clone());
        }
        Some(limits)
    }

    /// Takes the limits over before the first call is answered, for the nodes as they are now.
    pub(super) fn take_limits(&mut self, limits: Option<Vec<Limit>>) {
        let Some(limits) = limits else { return };
        if let Err(fault) = self.done(&Command::SetLimits(limits)) {
            let pool = &self.state.placed.pool;
            tracing::warn!(%pool, %fault, "the pool goes on with its limits of before: the next turn sets them");
        }
    }

    /// Why a task waits; where a quota of zero is the reason, with its cause.
    pub(super) fn with_cause(&self, why: ReasonBody) -> ReasonBody {
        match &self.held {
            Some(cause) if why.code == "over_quota" => ReasonBody { detail: format!("{}; {cause}", why.detail), ..why },
            _ => why,
        }
    }
}
