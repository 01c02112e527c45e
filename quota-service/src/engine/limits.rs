//! The limits with which a pool begins.

use super::decide::TurnContext;
use placement::Limit;
use placement::pool::Command;

impl TurnContext<'_> {
    /// Gives a pool that has just been read the limits of the quotas served now, also where a read asked for it first: the next renewal,
    /// which sets limits otherwise, may be minutes away.
    pub(super) fn begin_with(&mut self, limits: Option<Vec<Limit>>) {
        let Some(limits) = limits.filter(|limits| self.state.limits() != limits) else { return };
        if let Err(fault) = self.done(&Command::SetLimits(limits)) {
            let pool = &self.state.placed.pool;
            tracing::warn!(%pool, %fault, "the pool begins without limits: the next renewal sets them");
        }
    }
}
