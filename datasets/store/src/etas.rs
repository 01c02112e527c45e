//! Safety coefficients (eta) of pools, and their moves.

use crate::stored::{Stamp, pool, whole};
use crate::{OutcomeId, StoreError};
use async_trait::async_trait;
use vocab::{PoolId, UnixSeconds};

/// The coefficient of a pool after its last move.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EtaRecord {
    /// The pool.
    pub pool: PoolId,
    /// The coefficient in millionths.
    pub eta_micro: u32,
    /// Time of the last move.
    pub moved_at: UnixSeconds,
}

/// One move of a pool's coefficient, and its cause.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EtaMove {
    /// The pool.
    pub pool: PoolId,
    /// Time of the move.
    pub at: UnixSeconds,
    /// The coefficient before, in millionths.
    pub from_micro: u32,
    /// The coefficient after, in millionths.
    pub to_micro: u32,
    /// The cause, as the caller writes it.
    pub reason: String,
    /// Kept guarantee periods that this move counted.
    pub kept: u64,
    /// Broken guarantee periods that this move counted.
    pub broken: u64,
}

/// Safety coefficients of pools.
#[async_trait]
pub trait EtaStore {
    /// The coefficient of a pool; `None` before its first move, while the initial value of the settings is valid.
    async fn eta(&self, pool: &PoolId) -> Result<Option<EtaRecord>, StoreError>;

    /// Moves of a pool, newest first, at most `limit`.
    async fn eta_moves(&self, pool: &PoolId, limit: u32) -> Result<Vec<EtaMove>, StoreError>;

    /// Writes the move and the new coefficient, and marks the outcomes as spent: each one moves eta once. Outcomes of the
    /// pool that ended before all of them are spent too: the move passed over them, and no later move goes back.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] if the stored coefficient is no longer `from_micro`, or if an outcome is spent already, is
    /// of another pool or is unknown; [`StoreError::NotFound`] if the cluster is unknown.
    async fn apply_eta_move(&self, step: &EtaMove, spent: &[OutcomeId]) -> Result<(), StoreError>;
}

row! {
    pub(crate) struct EtaRow {
        pub cluster: String,
        pub gpu_model: String,
        pub eta_micro: i64,
        pub moved_at: Stamp,
    }
}

impl TryFrom<EtaRow> for EtaRecord {
    type Error = StoreError;

    fn try_from(row: EtaRow) -> Result<Self, StoreError> {
        let pool = pool(&row.cluster, &row.gpu_model)?;
        Ok(Self { pool, eta_micro: whole("eta", row.eta_micro)?, moved_at: row.moved_at.0 })
    }
}

row! {
    pub(crate) struct MoveRow {
        pub cluster: String,
        pub gpu_model: String,
        pub moved_at: Stamp,
        pub from_micro: i64,
        pub to_micro: i64,
        pub reason: String,
        pub kept: i64,
        pub broken: i64,
    }
}

impl TryFrom<MoveRow> for EtaMove {
    type Error = StoreError;

    fn try_from(row: MoveRow) -> Result<Self, StoreError> {
        Ok(Self {
            pool: pool(&row.cluster, &row.gpu_model)?,
            at: row.moved_at.0,
            from_micro: whole("eta before a move", row.from_micro)?,
            to_micro: whole("eta after a move", row.to_micro)?,
            reason: row.reason,
            kept: whole("kept guarantees", row.kept)?,
            broken: whole("broken guarantees", row.broken)?,
        })
    }
}

pub(crate) fn moved_meanwhile(step: &EtaMove, stored_micro: i64) -> StoreError {
    let reason = format!("it is {stored_micro} millionths, expected {}", step.from_micro);
    StoreError::conflict("eta of", &step.pool, reason)
}

pub(crate) fn spent_meanwhile(step: &EtaMove, wanted: usize, unspent: u64) -> StoreError {
    let reason = format!("only {unspent} of {wanted} outcomes of this pool are unspent");
    StoreError::conflict("eta of", &step.pool, reason)
}
