//! Whether the database is there and takes writes, as known from a moment ago: what `/readyz` answers, and why a request that
//! waits for a database that is gone is answered at once.

use crate::core::Core;
use crate::metrics;
use arc_swap::ArcSwapOption;
use serving::standing::Standing;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
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
/// The same where clients write seldom, or wait for each refusal: twice what lies between two of them, so that it does not flap.
const FAILING_FOR_AT_MOST: Duration = Duration::from_mins(1);

/// Why the database refused a write of a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// For every caller to read.
    why: String,
    /// Whether other writes may succeed meanwhile: smaller ones on a full disk, those to other tables where a table is refused.
    is_of_some: bool,
    /// Whether one refusal is no chance: a permission or a table was changed.
    is_changed: bool,
}

impl Refusal {
    /// `None` where the database is not at fault.
    #[must_use]
    pub fn of(fault: &StoreError) -> Option<Self> {
        let is_changed = matches!(fault, StoreError::Denied { .. } | StoreError::Schema { .. });
        let is_of_some = is_changed || matches!(fault, StoreError::Full { .. } | StoreError::NotAudited { .. });
        fault.refuses_writes().then(|| Self { why: shown(fault), is_of_some, is_changed })
    }
}

/// Writes of clients that the database refused, one after the other.
#[derive(Debug)]
struct Refused {
    times: u32,
    last: Instant,
    /// Between the last two.
    apart: Duration,
    why: Refusal,
    /// Whether a write was done since the last of them, of a client or a proof.
    has_written: bool,
}

impl Refused {
    fn is_failing(&self) -> bool {
        let lasts = (self.apart * 2).clamp(FAILING_FOR, FAILING_FOR_AT_MOST);
        let is_over = self.has_written && self.last.elapsed() >= lasts;
        (self.why.is_changed || self.times >= FAILING_WRITES) && !is_over
    }
}

/// State of the database.
#[derive(Debug)]
pub struct Health {
    /// Why it takes no writes; `None` while it does.
    refuses: ArcSwapOption<String>,
    /// Why its server is gone; `None` while it answers.
    gone: watch::Sender<Option<String>>,
    refused: Mutex<Option<Refused>>,
}

impl Default for Health {
    fn default() -> Self {
        Self { refuses: ArcSwapOption::empty(), gone: watch::Sender::new(None), refused: Mutex::default() }
    }
}

impl Health {
    /// Why writes fail at this moment; `None` while they do not.
    #[must_use]
    pub fn problem(&self) -> Option<String> {
        let gone = self.gone.borrow().clone();
        gone.or_else(|| self.refuses.load().as_ref().map(|why| String::clone(why))).or_else(|| self.failing())
    }

    /// Notes that the database refused a write of a client: there may be room for the row of a proof, and none for a task.
    pub fn note_refusal(&self, why: Refusal) {
        let mut refused = self.refused();
        let times = refused.as_ref().map_or(0, |before| before.times).saturating_add(1);
        let apart = refused.as_ref().map_or(Duration::ZERO, |before| before.last.elapsed());
        // A table that was changed stays so, also where something else fails beside it.
        let failing = refused.as_ref().filter(|before| before.is_failing());
        let is_changed = why.is_changed || failing.is_some_and(|before| before.why.is_changed);
        let is_of_some = why.is_of_some || failing.is_some_and(|before| before.why.is_of_some);
        let why = Refusal { is_of_some, is_changed, ..why };
        *refused = Some(Refused { times, last: Instant::now(), apart, why, has_written: false });
        drop(refused);
        self.tell();
    }

    /// Notes that a write of a client was done. On a full disk small ones are while larger ones are refused, and where a table is
    /// refused those to other tables.
    pub fn note_write(&self) {
        let mut refused = self.refused();
        match refused.as_mut().filter(|refused| refused.why.is_of_some && refused.is_failing()) {
            Some(some) => some.has_written = true,
            None => *refused = None,
        }
        drop(refused);
        self.tell();
    }

    fn note_proof(&self, proved: &Result<(), StoreError>) {
        self.refuses.store(proved.as_ref().err().map(|fault| Arc::new(shown(fault))));
        if let Some(refused) = self.refused().as_mut().filter(|_| proved.is_ok()) {
            refused.has_written = true;
        }
        self.tell();
    }

    fn refused(&self) -> MutexGuard<'_, Option<Refused>> {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn failing(&self) -> Option<String> {
        let refused = self.refused();
        let failing = refused.as_ref().filter(|refused| refused.is_failing())?;
        Some(format!("writes are refused by the database: {}", failing.why.why))
    }

    /// The metrics say what `/readyz` says.
    fn tell(&self) {
        metrics::database_takes_writes(self.problem().is_none());
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
        self.tell();
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
        health.note_proof(&proved);
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
    let silent = format!(
        "no answer for {} ms: it is down or too busy, or has no connection left (max_connections, or the limit of its user)",
        limit.as_millis()
    );
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

#[cfg(test)]
mod tests {
    use super::*;
    use metrics_exporter_prometheus::PrometheusBuilder;

    fn full() -> StoreError {
        StoreError::Full { reason: "no space left on device".to_owned() }
    }

    /// As if the last refusal were so long ago.
    fn pass(health: &Health, time: Duration) {
        let mut refused = health.refused();
        let refused = refused.as_mut().unwrap();
        refused.last = refused.last.checked_sub(time).unwrap();
    }

    #[test]
    fn a_full_disk_is_named_and_writes_that_fit_do_not_end_it() {
        let health = Health::default();
        let refuse = || health.note_refusal(Refusal::of(&full()).unwrap());
        (0..2).for_each(|_| refuse());
        health.note_write();
        (0..2).for_each(|_| refuse());
        assert_eq!(health.problem(), None, "no three in a row");
        refuse();
        health.note_write();
        health.note_proof(&Ok(()));
        let why = health.problem().unwrap();
        assert!(why.contains("no space left on device"), "{why}");
        refuse();
        pass(&health, FAILING_FOR);
        assert!(health.problem().is_some(), "nothing was written since");
        health.note_proof(&Ok(()));
        assert_eq!(health.problem(), None);
    }

    #[test]
    fn refusals_that_are_far_apart_do_not_flap_between_them() {
        let health = Health::default();
        for _ in 0..3 {
            health.note_refusal(Refusal::of(&full()).unwrap());
            health.note_proof(&Ok(()));
            pass(&health, Duration::from_secs(14));
        }
        assert!(health.problem().is_some(), "the next one is due");
        pass(&health, Duration::from_secs(15));
        assert_eq!(health.problem(), None);
    }

    #[test]
    fn a_write_that_is_done_after_silence_ends_it_and_faults_of_others_are_none() {
        let health = Health::default();
        let silent = StoreError::Unavailable { reason: "no answer for 1000 ms".to_owned() };
        (0..3).for_each(|_| health.note_refusal(Refusal::of(&silent).unwrap()));
        assert!(health.problem().unwrap().contains("no answer for 1000 ms"));
        health.note_write();
        assert_eq!(health.problem(), None);
        let fenced = StoreError::Fenced { cluster: "earth".to_owned(), epoch: 1 };
        assert_eq!(Refusal::of(&fenced), None);
        let denied = StoreError::Denied { reason: "password of headroom".to_owned() };
        assert!(!Refusal::of(&denied).unwrap().why.contains("headroom"), "secrets stay in the log");
    }

    #[test]
    fn a_table_that_is_refused_is_a_problem_at_once_and_until_writes_to_it_are_no_longer_refused() {
        let health = Health::default();
        let denied = StoreError::Denied { reason: "permission denied for table tasks (42501)".to_owned() };
        health.note_refusal(Refusal::of(&denied).unwrap());
        health.note_write();
        health.note_proof(&Ok(()));
        assert!(health.problem().is_some(), "writes to other tables are taken");
        let busy = StoreError::Busy { reason: "a lock".to_owned() };
        health.note_refusal(Refusal::of(&busy).unwrap());
        health.note_write();
        health.note_proof(&Ok(()));
        assert!(health.problem().is_some(), "another fault between two of them changes nothing");
        pass(&health, FAILING_FOR);
        assert_eq!(health.problem(), None, "nobody was refused for ten seconds, and another write was taken");
    }

    #[test]
    fn the_metric_of_writes_follows_what_is_ready() {
        let recorder = PrometheusBuilder::new().build_recorder();
        let rendered = recorder.handle();
        let shows = |value: u8| rendered.render().contains(&format!("headroom_database_takes_writes {value}"));
        ::metrics::with_local_recorder(&recorder, || {
            let health = Health::default();
            health.note_proof(&Ok(()));
            assert!(shows(1));
            health.note_gone(Some("connection refused".to_owned()));
            assert!(shows(0), "the server is gone");
            health.note_gone(None);
            assert!(shows(1));
            (0..3).for_each(|_| health.note_refusal(Refusal::of(&full()).unwrap()));
            assert!(shows(0), "the disk is full");
        });
    }
}
