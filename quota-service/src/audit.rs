//! The audit: a write is acknowledged once it is written down who did it.

use crate::metrics;
use serving::said::Standing;
use std::sync::Arc;
use store::{AuditRecord, Store};
use tokio::sync::{mpsc, oneshot};

/// Entries that are written in one transaction at most.
const AT_ONCE: usize = 256;
/// Entries that may wait to be written.
const WAITING: usize = 4_096;

type Waiting = (AuditRecord, oneshot::Sender<Result<(), String>>);

/// Writes entries down, those that come at once in one transaction.
pub struct Audit {
    queue: mpsc::Sender<Waiting>,
}

impl Audit {
    /// Begins to write, and ends when nobody is left to write for.
    #[must_use]
    pub fn on(store: Arc<dyn Store>) -> Self {
        let (queue, waiting) = mpsc::channel(WAITING);
        tokio::spawn(write(store, waiting));
        Self { queue }
    }

    /// Returns once the entry is durable.
    ///
    /// # Errors
    /// It could not be written.
    pub async fn record(&self, record: AuditRecord) -> Result<(), String> {
        let (done, written) = oneshot::channel();
        let ended = || "the service is stopping".to_owned();
        self.queue.send((record, done)).await.map_err(|_| ended())?;
        written.await.map_err(|_| ended())?
    }
}

async fn write(store: Arc<dyn Store>, mut waiting: mpsc::Receiver<Waiting>) {
    let (mut taken, standing) = (Vec::new(), Standing::new());
    while waiting.recv_many(&mut taken, AT_ONCE).await > 0 {
        let (records, done): (Vec<_>, Vec<_>) = taken.drain(..).unzip();
        let written = store.record_audit(&records).await.map_err(|fault| {
            if standing.begins("") {
                tracing::warn!(%fault, "the audit is not written: what it would tell is not acknowledged");
            }
            metrics::audit_failed();
            fault.to_string()
        });
        if let Some(over) = written.as_ref().ok().and_then(|()| standing.is_over("")) {
            tracing::info!(lasted_s = over.lasted_s, times = over.times, "the audit is written again");
        }
        for done in done {
            // Whoever waited may have gone.
            let _ = done.send(written.clone());
        }
    }
}
