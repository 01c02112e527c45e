//! Calls that read a pool as it is now. Time passes first.

use super::call::{Accounted, Placed};
use super::decide::TurnContext;
use super::views;
use placement::pool::Command;
use vocab::PlacedBy;

impl TurnContext<'_> {
    /// The pool to cut quota from, now.
    pub(super) fn placed(&mut self) -> Option<Box<Placed>> {
        let _ = self.command(&Command::Pass);
        let id = self.state.placed.pool.clone();
        let places = match self.state.side() {
            Some(side) => side == PlacedBy::Headroom,
            None => self.state.pool.has_had_tasks(),
        };
        let pool = &mut self.state.pool;
        places.then(|| {
            let (tasks, nodes) = (views::counts(pool), views::nodes(pool));
            Box::new(Placed {
                state: pool.state(id),
                hp_demand: pool.hp_demand(),
                hp_jobs: cycle::hp_jobs(pool),
                tasks,
                nodes,
            })
        })
    }

    /// The days that are not stored, now. The tasks of an external scheduler are not seen here.
    pub(super) fn accounted(&mut self) -> Accounted {
        let _ = self.command(&Command::Pass);
        if self.state.side() != Some(PlacedBy::Headroom) {
            return Accounted::default();
        }
        let now = self.state.pool.now();
        Accounted { until: Some(now), days: self.state.accounts.present(now) }
    }
}
