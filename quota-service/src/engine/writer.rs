//! The one writer of a pool: takes what waits, decides it all, writes it in one transaction, and only then answers.

use super::Shared;
use super::ask::{Ask, EngineError, Reply};
use super::look;
use super::state::State;
use super::tally::Tally;
use super::think::{Looked, Thought};
use super::turn::Draft;
use crate::metrics;
use serving::standing::Standing;
use std::any::Any;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};
use store::{AuditRecord, StoreError, TaskRecord};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{MissedTickBehavior, timeout};
use vocab::{PoolId, TaskId, UnixSeconds};

/// What is decided in one turn at most: a turn that takes longer makes the first of them wait for the last.
const ASKS_IN_A_TURN: usize = 256;
/// Guarantees, rests and hours end by themselves, and are noticed so late at most.
const TICK: Duration = Duration::from_secs(1);
/// A database that says nothing for so long is given up: whoever asked hears so, and what is stored is read again.
const WRITES_WITHIN: Duration = Duration::from_secs(30);
/// Fragmentation is a look at every node: less often than any turn, as often as anybody scrapes.
const DESCRIBED_EVERY_S: i64 = 10;

/// A question with the way back.
#[derive(Debug)]
pub struct Asked {
    pub ask: Ask,
    /// Of an order: written with what is done.
    pub audit: Option<AuditRecord>,
    pub reply: oneshot::Sender<Result<Reply, EngineError>>,
}

pub struct Writer {
    shared: Arc<Shared>,
    /// In the hands of whoever holds the lease.
    store: Arc<dyn store::Store>,
    pool: PoolId,
    asks: mpsc::Receiver<Asked>,
    written: watch::Sender<u64>,
    /// `None` before it was read, and after a write whose fate is not known.
    state: Option<State>,
    /// When this writer decided last: what is read again after a fault was watched until then.
    watched: Option<UnixSeconds>,
    described_at: Option<UnixSeconds>,
    /// Nothing is decided: the database fails every tick.
    stands: Standing,
}

impl Writer {
    pub const fn new(
        shared: Arc<Shared>,
        store: Arc<dyn store::Store>,
        pool: PoolId,
        asks: mpsc::Receiver<Asked>,
        written: watch::Sender<u64>,
    ) -> Self {
        Self {
            shared,
            store,
            pool,
            asks,
            written,
            state: None,
            watched: None,
            described_at: None,
            stands: Standing::new(),
        }
    }

    /// Ends when nobody can ask any more.
    pub async fn run(mut self) {
        let mut tick = tokio::time::interval(TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let mut asked = Vec::new();
            tokio::select! {
                taken = self.asks.recv_many(&mut asked, ASKS_IN_A_TURN) => {
                    if taken == 0 {
                        return;
                    }
                }
                _ = tick.tick() => asked.push(Asked { ask: Ask::Pass, audit: None, reply: oneshot::channel().0 }),
            }
            self.turns(asked).await;
            self.describe();
        }
    }

    /// Tells Prometheus how the nodes stand.
    fn describe(&mut self) {
        let now = self.shared.clock.now();
        let is_due = self.described_at.is_none_or(|at| now.since_s(at) >= DESCRIBED_EVERY_S);
        if let Some(state) = self.state.as_ref().filter(|_| is_due) {
            metrics::describe_nodes(&self.pool, &state.pool);
            metrics::describe_tasks(&self.pool, look::counts(&state.pool));
            self.described_at = Some(now);
        }
    }

    /// One turn; where its content is refused, its halves, and so on: what is at fault is refused alone.
    async fn turns(&mut self, asked: Vec<Asked>) {
        let mut left = vec![asked];
        while let Some(mut asked) = left.pop() {
            let begun = Instant::now();
            let decided = timeout(WRITES_WITHIN, self.decide(&asked)).await;
            metrics::turned(begun.elapsed());
            let late =
                |_| StoreError::Unavailable { reason: format!("no answer within {} s", WRITES_WITHIN.as_secs()) };
            match decided.unwrap_or_else(|silent| Err(late(silent).into())) {
                Ok(answers) => self.answer(asked, answers),
                // What is in memory may not be what is stored: only the latter counts.
                Err(fault) if fault.is_of_content() && asked.len() > 1 => {
                    self.state = None;
                    let second = asked.split_off(asked.len() / 2);
                    tracing::debug!(pool = %self.pool, %fault, "a turn is tried again in halves");
                    left.extend([second, asked]);
                }
                Err(fault) => {
                    self.state = None;
                    self.refuse(asked, &fault);
                }
            }
        }
    }

    fn answer(&self, asked: Vec<Asked>, answers: Vec<Result<Reply, EngineError>>) {
        if let Some(over) = self.stands.is_over("") {
            let (lasted_s, times) = (over.lasted_s, over.times);
            tracing::info!(pool = %self.pool, lasted_s, times, "the pool decides again");
        }
        for (asked, answer) in asked.into_iter().zip(answers) {
            // The client may have gone; it is done all the same.
            let _ = asked.reply.send(answer);
        }
    }

    fn refuse(&self, asked: Vec<Asked>, fault: &TurnFault) {
        if fault.is_of_content() {
            tracing::warn!(pool = %self.pool, %fault, ask = ?asked.first().map(|asked| &asked.ask), "an order is refused");
        } else if self.stands.begins("") {
            tracing::warn!(pool = %self.pool, %fault, "nothing is decided until what is stored can be read again");
        } else {
            tracing::debug!(pool = %self.pool, %fault, "nothing was decided");
        }
        if matches!(fault, TurnFault::Store(StoreError::NotAudited { .. })) {
            metrics::audit_failed();
        }
        for asked in asked {
            let _ = asked.reply.send(Err(fault.answer()));
        }
    }

    /// Read, think, write. An error means that nothing may be acknowledged.
    async fn decide(&mut self, asked: &[Asked]) -> Result<Vec<Result<Reply, EngineError>>, TurnFault> {
        let (store, now) = (self.store.clone(), self.shared.clock.now());
        // 1. Read: the pool, where it is not in memory; tasks that it has no more; nodes, where they changed.
        let is_new = self.state.is_none();
        let state = match &mut self.state {
            Some(state) => state,
            none => {
                let power = self.shared.power.of(&self.pool.gpu_model).ok();
                none.insert(State::load(store.as_ref(), &self.pool, power, self.watched, now).await?)
            }
        };
        let takes_in = is_new || asked.iter().any(|one| matches!(one.ask, Ask::TakeInNodes | Ask::RemoveNode(..)));
        let looked = Looked {
            records: known(state, store.as_ref(), asked).await?,
            nodes: if takes_in { Some(store.pool_nodes(&self.pool).await?) } else { None },
        };
        // 2. Think.
        let mut thought =
            Thought { now, draft: Draft::new(&self.pool, state.seq), tally: Tally::default(), state, looked };
        let answers =
            catch_unwind(AssertUnwindSafe(|| thought.answers(asked))).map_err(|panic| TurnFault::of(panic.as_ref()))?;
        let Thought { tally, draft, .. } = thought;
        let (turn, facts) = draft.finish();
        // 3. Write.
        if turn != store::Turn::default() {
            store.append_turn(&state.placed, state.seq, &turn, now).await?;
            state.seq = turn.entries.last().map_or(state.seq, |entry| entry.seq);
            state.facts = state.facts.saturating_add(facts);
            tally.tell(&self.pool);
            for outcome in &turn.outcomes {
                metrics::outcome(outcome);
            }
        }
        state.end_downtime(store.as_ref()).await?;
        // Until the hours of a downtime are behind, a fault must not make watched ones of them.
        self.watched = if state.downtime.is_none() { Some(now) } else { self.watched };
        if state.facts >= self.shared.snapshot_facts
            && let Err(fault) = state.save(store.as_ref()).await
        {
            tracing::warn!(pool = %self.pool, %fault, "the journal was not cut");
        }
        self.written.send_if_modified(|seq| std::mem::replace(seq, state.seq) != state.seq);
        Ok(answers)
    }
}

/// Why nothing of a turn was done.
#[derive(Debug, thiserror::Error)]
enum TurnFault {
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A bug: the decision broke off.
    #[error("the decision broke off: {0}")]
    Panicked(String),
}

impl TurnFault {
    fn of(panic: &(dyn Any + Send)) -> Self {
        let text = panic.downcast_ref::<&str>().map(ToString::to_string);
        Self::Panicked(text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default())
    }

    /// Whether an order is at fault, and not the database: the same again is refused again.
    const fn is_of_content(&self) -> bool {
        match self {
            Self::Store(fault) => fault.is_of_content(),
            Self::Panicked(_) => true,
        }
    }

    /// What everybody hears who asked.
    fn answer(&self) -> EngineError {
        let detail = self.to_string();
        match self {
            Self::Panicked(_) => EngineError::Broken { detail },
            Self::Store(fault) if fault.is_of_content() => EngineError::Refused { detail },
            Self::Store(_) => EngineError::Unavailable { detail },
        }
    }
}

/// Records of the tasks that are asked for and that the pool does not have.
async fn known(
    state: &State,
    store: &dyn store::Store,
    asked: &[Asked],
) -> Result<BTreeMap<TaskId, TaskRecord>, StoreError> {
    let of = |ask: &Ask| match ask {
        Ask::Submit(request) => Some(request.gang.task.clone()),
        Ask::Finish(task) | Ask::Delete(task) | Ask::Save(task) | Ask::Measure(task, ..) => Some(task.clone()),
        _ => None,
    };
    let gone = |task: &TaskId| state.pool.running(task).is_none() && state.pool.waiting_task(task).is_none();
    let explained = |ask: &Ask| if let Ask::Explain(task) = ask { Some(task.clone()) } else { None };
    let asks = || asked.iter().map(|one| &one.ask);
    let mut tasks: Vec<TaskId> = asks().filter_map(of).filter(gone).collect();
    tasks.extend(asks().filter_map(explained));
    tasks.sort_unstable();
    tasks.dedup();
    if tasks.is_empty() {
        return Ok(BTreeMap::new());
    }
    let records = store.task_records(state.placed.id, &tasks).await?;
    Ok(records.into_iter().map(|record| (record.id.clone(), record)).collect())
}
