//! Windows that are sold ahead, as the writer of a pool takes them.

use super::call::SoldBy;
use super::decide::TurnContext;
use super::error::EngineError;
use placement::pool::Command;
use vocab::ReservedWindow;

impl TurnContext<'_> {
    /// Sets the windows that are sold ahead. New ones are refused where promises that were given before reach into them.
    pub(super) fn sell(&mut self, windows: Vec<ReservedWindow>, by: SoldBy) -> Result<(), EngineError> {
        let _ = self.command(&Command::Pass);
        let before = std::mem::replace(&mut self.state.windows, windows);
        self.state.tell_windows();
        let crowded = if by == SoldBy::Store { None } else { self.state.pool.oversold() };
        if crowded.is_some() || by == SoldBy::Trial {
            self.state.windows = before;
            self.state.tell_windows();
        }
        crowded.map_or(Ok(()), |beside| Err(EngineError::Promised { beside }))
    }
}
