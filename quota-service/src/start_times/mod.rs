//! When waiting tasks start: what the futures of their pool say, beside how earlier forecasts fared.
//!
//! The engine hands out the facts of a pool within its turn; futures are played outside of it, on a thread of their own, so that
//! no decision waits for a forecast. What was learned of a pool is stored every few minutes ([`rounds`]).

mod answer;
mod known;
mod prices;
mod rounds;

pub use prices::Wanted;
pub use rounds::run;

use crate::core::Core;
use crate::engine::{Engine, EngineError, Facts, ReadFacts};
use known::Known;
use placement::pool::Request;
use serving::standing::Standing;
use starts::{Ask, Kind, StartExpert};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use store::{StoreError, TaskRecord};
use vocab::{PoolId, TaskClass, TaskId};
use wire::{StartAnswer, StartCoverageBody, TaskAnswer, TaskStatusBody};

/// The forecasts of all pools that this service places.
pub struct StartTimes {
    core: Arc<Core>,
    engine: Arc<Engine>,
    pools: Mutex<BTreeMap<PoolId, Arc<RwLock<Known>>>>,
    /// Pools whose starts are not forecast, each logged at the beginning and the end.
    faults: Standing,
}

impl StartTimes {
    #[must_use]
    pub fn new(core: Arc<Core>, engine: Arc<Engine>) -> Self {
        Self { core, engine, pools: Mutex::default(), faults: Standing::new() }
    }

    /// When a task of a pool starts, or has started.
    ///
    /// # Errors
    /// The pool has no such task, the task has ended, or the database does not answer.
    pub async fn of_task(&self, pool: &PoolId, task: &TaskId) -> Result<StartAnswer, EngineError> {
        let (known, present) = self.read(pool, ReadFacts { task: Some(task.clone()), asked: Vec::new() }).await?;
        let Facts { facts, waits, .. } = *present;
        if let Some((kind, since)) = facts.run_of(task) {
            return Ok(answer::running(pool, task, kind, (since, facts.at())));
        }
        let Some(kind) = facts.waits(task) else { return Err(self.why_not(pool, task).await?) };
        let (of, task) = (pool.clone(), task.clone());
        computed(move || {
            write(&known).observe(&facts);
            let forecast = read(&known).expert.of_waiting(&facts, &task, seed(&of));
            let forecast = forecast.ok_or_else(|| EngineError::UnknownTask { task: task.clone() })?;
            let mut known = write(&known);
            known.expert.watch(&facts, &task, &forecast);
            known.note(&task, facts.at(), &forecast);
            let about = answer::About { pool: &of, task: Some(&task), kind, status: Some(TaskStatusBody::Waiting) };
            Ok(answer::forecast(&about, (&facts, &known.expert), &forecast, waits))
        })
        .await
    }

    /// When a task would start that is not submitted.
    ///
    /// # Errors
    /// The pool cannot take the task, or the database does not answer.
    pub async fn of_new(&self, pool: &PoolId, request: Request) -> Result<StartAnswer, EngineError> {
        let (known, present) = self.read(pool, ReadFacts { task: None, asked: vec![request.clone()] }).await?;
        let Facts { facts, mut refusals, .. } = *present;
        let (of, refusal) = (pool.clone(), refusals.pop().flatten());
        computed(move || {
            let kind = Kind::of(&request);
            let about = answer::About { pool: &of, task: None, kind, status: None };
            let Some(refusal) = refusal else { return Ok(answer::at_once(&about, facts.at())) };
            write(&known).observe(&facts);
            let known = read(&known);
            let forecast = known.expert.of_new(&facts, &[Ask::now(request)], seed(&of)).pop();
            let forecast = forecast.ok_or_else(|| broken("no future was played"))?;
            Ok(answer::forecast(&about, (&facts, &known.expert), &forecast, Some(refusal)))
        })
        .await
    }

    /// A waiting task with its start as it was forecast last.
    #[must_use]
    pub fn with_start(&self, pool: &PoolId, task: TaskAnswer) -> TaskAnswer {
        let expected = || {
            let (known, id) = (self.pools().get(pool).cloned()?, TaskId::parse(&task.id).ok()?);
            // While futures are played the last forecast is not waited for.
            let known = known.try_read().ok()?;
            known.expected.get(&id).map(|expected| expected.body(None))
        };
        let start = (task.status == TaskStatusBody::Waiting).then(expected).flatten();
        TaskAnswer { start, ..task }
    }

    /// How forecasts of a pool's starts fared, by class; nothing of a class with few, and of a pool that is placed elsewhere.
    ///
    /// # Errors
    /// A thread broke.
    pub async fn coverage(&self, pool: &PoolId) -> Result<Vec<StartCoverageBody>, EngineError> {
        let Some(known) = self.pools().get(pool).cloned() else { return Ok(Vec::new()) };
        // While a round plays futures it has to be waited for.
        computed(move || {
            let known = read(&known);
            let of = |class| Some(answer::coverage_body(class, &known.expert.coverage(class)?));
            Ok([TaskClass::Hp, TaskClass::Spot].into_iter().filter_map(of).collect())
        })
        .await
    }

    /// Why a task that neither waits nor runs has no start.
    async fn why_not(&self, pool: &PoolId, task: &TaskId) -> Result<EngineError, StoreError> {
        let record = self.core.store.task_record(pool, task).await?;
        let ended = |record: TaskRecord| EngineError::HasEnded { task: task.clone(), status: record.status };
        Ok(record.map_or_else(|| EngineError::UnknownTask { task: task.clone() }, ended))
    }

    async fn read(&self, pool: &PoolId, read: ReadFacts) -> Result<(Arc<RwLock<Known>>, Box<Facts>), EngineError> {
        let facts = self.engine.ask(pool, read).await?;
        Ok((self.known(pool).await?, facts))
    }

    /// Knowledge of a pool: as it is in memory, as it was stored, or nothing.
    async fn known(&self, pool: &PoolId) -> Result<Arc<RwLock<Known>>, StoreError> {
        if let Some(known) = self.pools().get(pool) {
            return Ok(known.clone());
        }
        let stored = self.core.store.starts(pool).await?;
        let expert = stored.map(|bytes| StartExpert::from_bytes(&bytes)).transpose();
        let expert = expert.unwrap_or_else(|fault| {
            tracing::warn!(%pool, %fault, "what was learned of starts cannot be read: it begins again");
            None
        });
        let known = Arc::new(RwLock::new(Known::of(expert.unwrap_or_default())));
        Ok(self.pools().entry(pool.clone()).or_insert(known).clone())
    }

    fn pools(&self) -> MutexGuard<'_, BTreeMap<PoolId, Arc<RwLock<Known>>>> {
        self.pools.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn write(known: &RwLock<Known>) -> RwLockWriteGuard<'_, Known> {
    known.write().unwrap_or_else(PoisonError::into_inner)
}

fn read(known: &RwLock<Known>) -> RwLockReadGuard<'_, Known> {
    known.read().unwrap_or_else(PoisonError::into_inner)
}

/// Plays futures on a thread of their own.
async fn computed<T: Send + 'static>(
    play: impl FnOnce() -> Result<T, EngineError> + Send + 'static,
) -> Result<T, EngineError> {
    tokio::task::spawn_blocking(play).await.unwrap_or_else(|fault| Err(broken(&fault.to_string())))
}

fn broken(detail: &str) -> EngineError {
    EngineError::Broken { detail: detail.to_owned() }
}

/// One seed for each pool: what differs between two answers is the pool, not the draw.
fn seed(pool: &PoolId) -> u64 {
    // FNV-1a: the same on every machine and in every version.
    pool.to_string()
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325, |seed, byte| (seed ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}
