//! Safety coefficients of pools and how they moved.

use crate::stored::{Stamp, pool, whole};
use crate::{OutcomeId, StoreError};
use async_trait::async_trait;
use vocab::{PoolId, UnixSeconds};

/// The coefficient of a pool after its last move.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EtaRecord {
    pub pool: PoolId,
    /// Millionths.
    pub eta_micro: u32,
    pub moved_at: UnixSeconds,
}

/// One move of a pool's coefficient, in millionths, with what caused it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EtaMove {
    pub pool: PoolId,
    pub at: UnixSeconds,
    pub from_micro: u32,
    pub to_micro: u32,
    pub reason: String,
    /// Guarantee periods counted by this move, by how they ended.
    pub kept: u64,
    pub broken: u64,
}

#[async_trait]
pub trait EtaStore {
    /// `None` where it has never moved: then its initial value holds, which is a setting.
    async fn eta(&self, pool: &PoolId) -> Result<Option<EtaRecord>, StoreError>;

    /// Newest first, at most `limit`.
    async fn eta_moves(&self, pool: &PoolId, limit: u32) -> Result<Vec<EtaMove>, StoreError>;

    /// Writes the move and the new coefficient, and marks the outcomes as spent: each one moves eta once. Those of the
    /// pool that ended before all of them are spent with them: the move looked past them, and no later one looks back.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] where the stored coefficient is no longer `from_micro`, or where an outcome is spent
    /// already, is of another pool or is unknown; [`StoreError::NotFound`] where the cluster is unknown.
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
    let reason = format!("it is {stored_micro} millionths, not {} as this move supposes", step.from_micro);
    StoreError::conflict("eta of", &step.pool, reason)
}

pub(crate) fn spent_meanwhile(step: &EtaMove, wanted: usize, unspent: u64) -> StoreError {
    let reason = format!("of {wanted} outcomes only {unspent} of this pool are still unspent");
    StoreError::conflict("eta of", &step.pool, reason)
}
