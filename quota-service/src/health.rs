//! Whether the database is there and takes writes, as known from a moment ago: what `/readyz` answers, and why a request that
//! waits for a database that is gone is answered at once.

use crate::core::Core;
use crate::metrics;
use arc_swap::ArcSwapOption;
use serving::standing::Standing;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use store::{Backend, StoreError};
use tokio::sync::watch;

/// A proof that takes longer waits for another writer, or for a server that is gone.
const PROVES_WITHIN: Duration = Duration::from_secs(3);
/// Behind other writers a proof may be late: an append of a year holds SQLite. What was proved stands so long.
const PROOF_STANDS: Duration = Duration::from_mins(1);
/// Between two questions whether the server of the database is there.
const PULSE_EVERY: Duration = Duration::from_millis(250);
/// Answers from memory are sent by then, with the database or without it.
const FROM_MEMORY_WITHIN: Duration = Duration::from_millis(200);

/// So many writes of clients in a row that the database refuses are no chance.
const FAILING_WRITES: u32 = 3;
/// How long after the last of them: without another one the proof decides again.
const FAILING_FOR: Duration = Duration::from_secs(10);

/// State of the database.
#[derive(Debug)]
pub struct Health {
    /// Why it takes no writes; `None` while it does.
    refuses: ArcSwapOption<String>,
    /// Why its server is gone; `None` while it answers.
    gone: watch::Sender<Option<String>>,
    /// Writes of clients that failed since the last one that did not, and when the last of them did.
    failed: Mutex<Option<(u32, Instant)>>,
}

impl Default for Health {
    fn default() -> Self {
        Self { refuses: ArcSwapOption::empty(), gone: watch::Sender::new(None), failed: Mutex::default() }
    }
}

impl Health {
    /// Why writes fail at this moment; `None` while they do not.
    #[must_use]
    pub fn problem(&self) -> Option<String> {
        let gone = self.gone.borrow().clone();
        gone.or_else(|| self.refuses.load().as_ref().map(|why| String::clone(why))).or_else(|| self.failing())
    }

    /// Notes how a write of a client ended: there may be room for the row of a proof, and none for a task.
    pub fn note_write(&self, is_written: bool) {
        let mut failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        *failed = (!is_written).then(|| (failed.map_or(1, |(times, _)| times.saturating_add(1)), Instant::now()));
    }

    fn failing(&self) -> Option<String> {
        let failed = *self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        let (times, last) = failed?;
        let fails = times >= FAILING_WRITES && last.elapsed() < FAILING_FOR;
        fails.then(|| format!("the last {times} writes were refused by the database"))
    }

    /// Ends, with the reason, once the database is gone and what needs no database is answered.
    pub async fn gone(&self) -> String {
        let mut gone = self.gone.subscribe();
        loop {
            // The sender is part of this value.
            if gone.wait_for(Option::is_some).await.is_err() {
                std::future::pending::<()>().await;
            }
            tokio::time::sleep(FROM_MEMORY_WITHIN).await;
            if let Some(why) = gone.borrow().clone() {
                return why;
            }
        }
    }

    fn note_gone(&self, now: Option<String>) {
        self.gone.send_if_modified(|gone| {
            let changed = gone.is_some() != now.is_some();
            *gone = now;
            changed
        });
    }
}

/// Proves writes, and remembers what was proved.
struct Prover {
    /// The number of proofs of all services when this one looked last.
    seen: Option<u64>,
    proved_at: Instant,
    standing: Standing,
}

impl Default for Prover {
    fn default() -> Self {
        Self { seen: None, proved_at: Instant::now(), standing: Standing::new() }
    }
}

impl Prover {
    /// Proves a write, and notes what came of it.
    ///
    /// # Errors
    /// [`StoreError::Lost`]: the file of the database is not the one that was opened, and the service has to end.
    pub async fn prove(&mut self, core: &Core, health: &Health) -> Result<(), StoreError> {
        let late = || StoreError::Busy { reason: format!("no write in {} s", PROVES_WITHIN.as_secs()) };
        let proved = tokio::time::timeout(PROVES_WITHIN, self.proof(core)).await.unwrap_or_else(|_| Err(late()));
        if proved.is_ok() {
            self.proved_at = Instant::now();
        } else if matches!(proved, Err(StoreError::Busy { .. })) && self.proved_at.elapsed() < PROOF_STANDS {
            return Ok(());
        }
        metrics::database_takes_writes(proved.is_ok());
        health.refuses.store(proved.as_ref().err().map(|fault| Arc::new(shown(fault))));
        self.standing.note(
            "",
            &proved,
            |fault| tracing::error!(%fault, "the database takes no writes: /readyz answers 503 until it does"),
            |over| tracing::info!(lasted_s = over.lasted_s, times = over.times, "the database takes writes again"),
        );
        match proved {
            Err(fault @ StoreError::Lost { .. }) => Err(fault),
            _ => Ok(()),
        }
    }

    /// A service that follows takes the proofs of the others, as long as there are new ones: on SQLite each write locks the file.
    async fn proof(&mut self, core: &Core) -> Result<(), StoreError> {
        let follows = core.leases.follows() && core.leases.led_clusters().is_empty();
        if follows {
            let proofs = core.store.proved_writes().await?;
            if self.seen.replace(proofs).is_some_and(|seen| seen != proofs) {
                return Ok(());
            }
        }
        self.seen = Some(core.store.prove_write().await?);
        Ok(())
    }
}

/// Reason that every caller may read: `/readyz` needs no token, and must not show paths and users.
fn shown(fault: &StoreError) -> String {
    match fault {
        StoreError::Unavailable { .. } | StoreError::Busy { .. } | StoreError::Full { .. } => fault.to_string(),
        StoreError::Lost { reason, .. } => format!("the database file is not the one that was opened: {reason}"),
        _ => "the database refuses a write: see the log of the service".to_owned(),
    }
}

/// Proves a write every `write_proof_s`. Returns once the service has to end: its database is lost.
pub async fn prove(core: Arc<Core>, health: Arc<Health>) -> StoreError {
    if core.clock.is_virtual() {
        // Nothing is stored.
        std::future::pending::<()>().await;
    }
    let mut prover = Prover::default();
    let mut regular = tokio::time::interval(Duration::from_secs(core.config.write_proof_s));
    regular.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        regular.tick().await;
        if let Err(lost) = prover.prove(&core, &health).await {
            return lost;
        }
    }
}

/// Asks the server of the database, on a connection of its own, whether it is there. Never returns. A file is always there.
pub async fn pulse(core: Arc<Core>, health: Arc<Health>) {
    if core.store.backend() == Backend::Sqlite {
        std::future::pending::<()>().await;
    }
    let limit = Duration::from_millis(core.config.database_silence_ms);
    let silent = format!("no answer for {} ms", limit.as_millis());
    loop {
        let gone = match tokio::time::timeout(limit, core.store.ping()).await {
            Ok(Err(StoreError::Unavailable { reason })) => Some(reason),
            // It answers, if only to refuse.
            Ok(_) => None,
            Err(_) => Some(silent.clone()),
        };
        health.note_gone(gone);
        tokio::time::sleep(PULSE_EVERY).await;
    }
}
