//! The one writer of a pool: takes the calls that wait, decides all of them, writes them in one transaction, and only then answers.

use super::Shared;
use super::call::{Message, Queued, TaskCall};
use super::decide::{TurnContext, TurnReads};
use super::error::EngineError;
use super::state::State;
use super::tally::Tally;
use super::turn::Draft;
use super::views;
use crate::metrics;
use serving::standing::Standing;
use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};
use store::{StoreError, TaskRecord};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch};
use tokio::time::{MissedTickBehavior, timeout};
use vocab::{Organization, PlacedBy, PoolId, TaskId, UnixSeconds};

/// Most calls of one turn: the first of them waits for the last.
const CALLS_IN_A_TURN: usize = 256;
/// Guarantees, rests and hours end by themselves: the writer notices that within this time.
const TICK: Duration = Duration::from_secs(1);
/// Longest wait for the database. Beyond it the callers receive an error, and the writer reads the journal again.
const WRITES_WITHIN: Duration = Duration::from_secs(30);
/// Pools that are read at once, those that calls wait for and the others: a service that takes over thousands would leave the database no
/// connection for anything else.
const BEGIN_AT_ONCE: [usize; 2] = [4, 2];
/// Fragmentation reads every node: less often than a turn, as often as a scrape.
const DESCRIBED_EVERY_S: i64 = 10;

/// Rights to read a pool that is not in memory.
pub struct Begins {
    /// That a call waits for.
    asked: Arc<Semaphore>,
    unasked: Arc<Semaphore>,
}

impl Default for Begins {
    fn default() -> Self {
        let [asked, unasked] = BEGIN_AT_ONCE.map(|pools| Arc::new(Semaphore::new(pools)));
        Self { asked, unasked }
    }
}

pub struct Writer {
    shared: Arc<Shared>,
    /// Refuses writes once the lease is lost.
    store: Arc<dyn store::Store>,
    pool: PoolId,
    queue: mpsc::Receiver<Queued>,
    written: watch::Sender<u64>,
    /// `None` before the journal is read, and after a write with an unknown end.
    state: Option<State>,
    /// Last decision of this writer: a pool that is read again after a fault was watched until then.
    watched: Option<UnixSeconds>,
    described_at: Option<UnixSeconds>,
    /// Organizations whose shares stand in the metrics.
    shares_shown: BTreeSet<Organization>,
    /// Stands while the database fails at every tick.
    stands: Standing,
}

impl Writer {
    pub const fn new(
        shared: Arc<Shared>,
        store: Arc<dyn store::Store>,
        pool: PoolId,
        queue: mpsc::Receiver<Queued>,
        written: watch::Sender<u64>,
    ) -> Self {
        Self {
            shared,
            store,
            pool,
            queue,
            written,
            state: None,
            watched: None,
            described_at: None,
            shares_shown: BTreeSet::new(),
            stands: Standing::new(),
        }
    }

    /// Ends when the last sender is gone.
    pub async fn run(mut self) {
        let mut tick = tokio::time::interval(TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let mut queued = Vec::new();
            tokio::select! {
                taken = self.queue.recv_many(&mut queued, CALLS_IN_A_TURN) => {
                    if taken == 0 {
                        return;
                    }
                }
                _ = tick.tick() => {}
            }
            let ControlFlow::Continue(begins) = self.begin(&mut queued).await else { return };
            if queued.is_empty() {
                queued.push(Queued::pass());
            }
            self.turns(queued).await;
            drop(begins);
            self.describe();
        }
    }

    /// Waits until a pool that is not in memory may be read; adds the calls that came meanwhile to none. Breaks when the last sender is gone.
    async fn begin(&mut self, queued: &mut Vec<Queued>) -> ControlFlow<(), Option<OwnedSemaphorePermit>> {
        if self.state.is_some() {
            return ControlFlow::Continue(None);
        }
        let Begins { asked, unasked } = &self.shared.begins;
        if queued.is_empty() {
            tokio::select! {
                permit = unasked.clone().acquire_owned() => return ControlFlow::Continue(permit.ok()),
                taken = self.queue.recv_many(queued, CALLS_IN_A_TURN) => {
                    if taken == 0 {
                        return ControlFlow::Break(());
                    }
                }
            }
        }
        ControlFlow::Continue(asked.clone().acquire_owned().await.ok())
    }

    /// Sets the metrics of the nodes.
    fn describe(&mut self) {
        let now = self.shared.core.clock.now();
        let is_due = self.described_at.is_none_or(|at| now.since_s(at) >= DESCRIBED_EVERY_S);
        if let Some(state) = self.state.as_ref().filter(|_| is_due) {
            metrics::describe_nodes(&self.pool, &state.pool, &mut self.shares_shown);
            metrics::describe_tasks(&self.pool, views::counts(&state.pool));
            if state.side() == Some(PlacedBy::Headroom) {
                metrics::describe_gpu_time(&self.pool, &state.accounts.total(state.pool.now()));
            }
            self.described_at = Some(now);
        }
    }

    /// One turn. Where its content is refused, its halves, and so on: only the call at fault is refused.
    async fn turns(&mut self, queued: Vec<Queued>) {
        let mut left = vec![queued];
        while let Some(mut queued) = left.pop() {
            let begun = Instant::now();
            let decided = timeout(WRITES_WITHIN, self.decide(&mut queued)).await;
            metrics::turned(begun.elapsed());
            let late =
                |_| StoreError::Unavailable { reason: format!("no answer within {} s", WRITES_WITHIN.as_secs()) };
            match decided.unwrap_or_else(|silent| Err(late(silent).into())) {
                Ok(()) => self.acknowledge(queued),
                // The state in memory may differ from the journal: only the journal counts.
                Err(fault) if fault.is_of_content() && queued.len() > 1 => {
                    self.state = None;
                    let second = queued.split_off(queued.len() / 2);
                    tracing::debug!(pool = %self.pool, %fault, "the turn is tried again in halves");
                    left.extend([second, queued]);
                }
                Err(fault) => {
                    self.state = None;
                    self.refuse(queued, &fault);
                }
            }
        }
    }

    fn acknowledge(&self, queued: Vec<Queued>) {
        if let Some(over) = self.stands.is_over("") {
            let (lasted_s, times) = (over.lasted_s, over.times);
            tracing::info!(pool = %self.pool, lasted_s, times, "the pool decides again");
        }
        for one in queued {
            one.acknowledge();
        }
    }

    fn refuse(&self, queued: Vec<Queued>, fault: &TurnFault) {
        if fault.is_of_content() {
            tracing::warn!(pool = %self.pool, %fault, call = ?queued.first().map(|one| &one.message), "a call is refused");
        } else if self.stands.begins("") {
            tracing::warn!(pool = %self.pool, %fault, "the pool decides nothing until its journal can be read again");
        } else {
            tracing::debug!(pool = %self.pool, %fault, "the pool decided nothing in this turn");
        }
        for one in queued {
            one.refuse(fault.answer());
        }
    }

    /// Reads, decides, writes. On an error nothing may be acknowledged.
    async fn decide(&mut self, queued: &mut [Queued]) -> Result<(), TurnFault> {
        let (store, now) = (self.store.clone(), self.shared.core.clock.now());
        // 1. Read: the pool, where it is not in memory; tasks that it has no more; nodes, where they changed.
        let is_new = self.state.is_none();
        let state = match &mut self.state {
            Some(state) => state,
            none => {
                let power = self.shared.power.of(&self.pool.gpu_model).ok();
                none.insert(State::load(store.as_ref(), &self.pool, power, self.watched, now).await?)
            }
        };
        let takes_in = is_new || queued.iter().any(Queued::changes_nodes);
        let reads = TurnReads {
            records: known(state, store.as_ref(), queued).await?,
            nodes: if takes_in { Some(store.pool_nodes(&self.pool).await?) } else { None },
        };
        // 2. Decide.
        let (limits, held) = (self.shared.quotas.limits(&self.pool, now), self.shared.quotas.why_held(&self.pool));
        let (draft, tally) = (Draft::new(&self.pool, state.seq), Tally::default());
        let mut context = TurnContext { now, state, draft, tally, reads, held };
        catch_unwind(AssertUnwindSafe(|| context.answer_all(queued, limits)))
            .map_err(|panic| TurnFault::of(panic.as_ref()))?;
        let TurnContext { tally, draft, .. } = context;
        let (turn, facts) = draft.finish();
        // 3. Write.
        if turn != store::Turn::default() {
            store.append_turn(&state.placed, state.seq, &turn, now).await?;
            state.seq = turn.entries.last().map_or(state.seq, |entry| entry.seq);
            state.facts = state.facts.saturating_add(facts);
            tally.record(&self.pool);
            for outcome in &turn.outcomes {
                metrics::outcome(outcome);
            }
        }
        if let Some(shown) = state.shown() {
            self.shared.quotas.follow_tasks(&shown, &|| views::counts(&state.pool));
        }
        state.end_downtime(store.as_ref()).await?;
        // Until the hours of a downtime are behind, a fault must not make watched ones of them.
        self.watched = if state.downtime.is_none() { Some(now) } else { self.watched };
        if state.facts >= self.shared.core.config.snapshot_facts
            && let Err(fault) = state.save(store.as_ref()).await
        {
            tracing::warn!(pool = %self.pool, %fault, "the snapshot failed: the journal is not cut");
        }
        self.written.send_if_modified(|seq| std::mem::replace(seq, state.seq) != state.seq);
        Ok(())
    }
}

/// Reason why a turn has done nothing.
#[derive(Debug, thiserror::Error)]
enum TurnFault {
    #[error(transparent)]
    Store(Arc<StoreError>),
    /// A bug: the decision panicked.
    #[error("the decision has panicked: {0}")]
    Panicked(String),
}

impl From<StoreError> for TurnFault {
    fn from(fault: StoreError) -> Self {
        Self::Store(Arc::new(fault))
    }
}

impl TurnFault {
    fn of(panic: &(dyn Any + Send)) -> Self {
        let text = panic.downcast_ref::<&str>().map(ToString::to_string);
        Self::Panicked(text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default())
    }

    /// Whether an order is at fault, and not the database: the same again is refused again.
    fn is_of_content(&self) -> bool {
        match self {
            Self::Store(fault) => fault.is_of_content(),
            Self::Panicked(_) => true,
        }
    }

    /// The answer to every caller of the turn.
    fn answer(&self) -> EngineError {
        let detail = self.to_string();
        match self {
            Self::Panicked(_) => EngineError::Broken { detail },
            Self::Store(fault) if fault.is_of_content() => EngineError::Refused { detail },
            // Of what is stored beside the order: it is read again, and the same order may be taken then.
            Self::Store(fault) if matches!(**fault, StoreError::Conflict { .. } | StoreError::NotFound { .. }) => {
                EngineError::Unavailable { detail }
            }
            Self::Store(fault) => EngineError::Turn(fault.clone()),
        }
    }
}

/// Records of the tasks of the calls that the pool does not have.
async fn known(
    state: &State,
    store: &dyn store::Store,
    queued: &[Queued],
) -> Result<BTreeMap<TaskId, TaskRecord>, StoreError> {
    let of = |call: &TaskCall| match call {
        TaskCall::Submit(request) => Some(request.gang.task.clone()),
        TaskCall::Finish(task) | TaskCall::Delete(task) | TaskCall::Checkpoint(task) | TaskCall::Speed(task, ..) => {
            Some(task.clone())
        }
        TaskCall::DryRun(_) | TaskCall::Shadow(_) => None,
    };
    let gone = |task: &TaskId| state.pool.running(task).is_none() && state.pool.waiting_task(task).is_none();
    let needed = |one: &Queued| match &one.message {
        Message::Task(call, _) => of(call).filter(&gone),
        Message::Explain(task, _) => Some(task.clone()),
        _ => None,
    };
    let mut tasks: Vec<TaskId> = queued.iter().filter_map(needed).collect();
    tasks.sort_unstable();
    tasks.dedup();
    if tasks.is_empty() {
        return Ok(BTreeMap::new());
    }
    let records = store.task_records(state.placed.id, &tasks).await?;
    Ok(records.into_iter().map(|record| (record.id.clone(), record)).collect())
}
