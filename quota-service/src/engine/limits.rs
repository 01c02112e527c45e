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
    /// Takes the limits over before the first call is answered: a quota becomes too old between two renewals, which may be an hour apart,
    /// and a pool that has just been read, or whose quotas have just been published, has others than those served.
    pub(super) fn take_limits(&mut self, served: Limits) {
        let limits = match served {
            Limits::Set(limits) => limits,
            Limits::Held => self.state.pool.held_limits(),
            Limits::Kept => return,
        };
        if self.state.limits() == limits {
            return;
        }
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
