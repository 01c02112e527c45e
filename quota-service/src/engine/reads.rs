//! Calls that read a pool as it is now. Time passes first.

use super::call::{Accounted, Facts, Placed, ReadFacts};
use super::decide::TurnContext;
use super::error::EngineError;
use super::{record, views};
use placement::Decision;
use placement::policy::Blocking;
use placement::pool::{Command, Pool, Request};
use starts::PoolFacts;
use vocab::PlacedBy;
use wire::ReasonBody;

/// Quotas are renewed within this time, usually: a promise between two renewals reaches as much further. The pool itself compares each
/// promise with the windows.
const RENEWED_WITHIN_S: i64 = 300;

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
                windows: pool.windows(RENEWED_WITHIN_S),
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

    /// The facts that starts are forecast from, now.
    ///
    /// # Errors
    /// The pool cannot take one of the tasks that are not submitted.
    pub(super) fn facts(&mut self, read: &ReadFacts) -> Result<Box<Facts>, EngineError> {
        let _ = self.command(&Command::Pass);
        read.asked.iter().try_for_each(|request| self.admit(request))?;
        let is_shadow = self.state.shadow.is_some();
        let pool = self.state.shadow.as_mut().unwrap_or(&mut self.state.pool);
        let waits = read.task.as_ref().filter(|task| pool.waiting_task(task).is_some());
        let waits =
            waits.cloned().map(|task| pool.why_it_waits(&task).map_or_else(record::queued, |why| record::reason(&why)));
        let refusals = read.asked.iter().map(|request| refusal(pool, request)).collect();
        Ok(Box::new(Facts { facts: PoolFacts::of(pool), is_shadow, waits, refusals }))
    }
}

/// Why a task would wait, were it submitted now.
fn refusal(pool: &mut Pool, request: &Request) -> Option<ReasonBody> {
    match pool.decide_on(request) {
        Decision::Wait(refusal) => Some(ReasonBody { code: refusal.code().to_owned(), detail: refusal.to_string() }),
        Decision::Start { .. } => {
            let blocks = |class| match pool.policy().blocking {
                Blocking::Nobody => false,
                Blocking::Class => class == request.gang.class,
                Blocking::Everybody => true,
            };
            pool.waiting().any(|waiting| blocks(waiting.request.gang.class)).then(record::queued)
        }
    }
}
