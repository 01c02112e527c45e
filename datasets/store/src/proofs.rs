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

/// Counts up, so that a service sees the proofs of others.
pub(crate) const PROVE: &str = "UPDATE write_proof SET proofs = proofs + 1 WHERE id = 1 RETURNING proofs";
pub(crate) const PROVED: &str = "SELECT proofs FROM write_proof WHERE id = 1";
