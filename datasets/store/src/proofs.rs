//! Proofs that the database takes writes.

use crate::StoreError;
use async_trait::async_trait;

/// Proofs that the database takes writes.
#[async_trait]
pub trait ProofStore {
    /// Writes one row and commits, as every other write does, but under no lease. Returns the number of proofs so far, those of
    /// all services on the database.
    ///
    /// # Errors
    /// The database takes no writes; [`StoreError::Lost`] if the file of an SQLite database is not the one that was opened;
    /// [`StoreError::Busy`] if another writer takes too long, which proves nothing.
    async fn prove_write(&self) -> Result<u64, StoreError>;

    /// The number of proofs so far.
    ///
    /// # Errors
    /// The database does not answer, or [`StoreError::Lost`].
    async fn proved_writes(&self) -> Result<u64, StoreError>;
}

impl StoreError {
    /// Whether the database took no write for a reason of its own, and not for what was to be written.
    #[must_use]
    pub const fn refuses_writes(&self) -> bool {
        let is_closed =
            matches!(self, Self::Lost { .. } | Self::Denied { .. } | Self::Tls { .. } | Self::Schema { .. });
        self.is_retryable() || is_closed || matches!(self, Self::Full { .. } | Self::NotAudited { .. })
    }
}

/// Counts up, so that a service sees the proofs of others.
pub(crate) const PROVE: &str = "UPDATE write_proof SET proofs = proofs + 1 WHERE id = 1 RETURNING proofs";
pub(crate) const PROVED: &str = "SELECT proofs FROM write_proof WHERE id = 1";
