//! Proofs that the database takes writes.

use crate::StoreError;
use async_trait::async_trait;

#[async_trait]
pub trait ProofStore {
    /// Writes one row and commits, as every other write does, but under no lease. Answers the number of proofs so far, those of
    /// all services on the database.
    ///
    /// # Errors
    /// The database takes no writes; [`StoreError::Lost`] where the file of an SQLite database is not the one that was opened,
    /// [`StoreError::Busy`] where another writer is at work for too long, which proves nothing.
    async fn prove_write(&self) -> Result<u64, StoreError>;

    /// The number of proofs so far.
    ///
    /// # Errors
    /// The database does not answer, or [`StoreError::Lost`].
    async fn proved_writes(&self) -> Result<u64, StoreError>;
}

/// The row counts up, so that a service sees the proof of another one.
pub(crate) const PROVE: &str = "UPDATE write_proof SET proofs = proofs + 1 WHERE id = 1 RETURNING proofs";
pub(crate) const PROVED: &str = "SELECT proofs FROM write_proof WHERE id = 1";
