//! Corrections of wrong reports. The audit log keeps the values before, in the same transaction.

use crate::{AuditRecord, StoreError};
use async_trait::async_trait;
use vocab::{EventId, HourDemand, OutcomeKind, PoolId, UsageRow};

/// Makes the audit entry of corrections from the values before, one for each correction, in their order.
pub type MakeAuditEntry<'a, T> = &'a (dyn Fn(&[T]) -> AuditRecord + Sync);

/// An outcome as it was before it was corrected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutcomeBefore {
    /// The event that reported it.
    pub event_id: EventId,
    /// Its pool.
    pub pool: PoolId,
    /// How the guarantee period had ended.
    pub kind: OutcomeKind,
    /// Whether a move of eta had counted it: that move stays.
    pub spent: bool,
}

/// Corrections of usage and outcomes.
#[async_trait]
pub trait CorrectionStore {
    /// Replaces or inserts demand. Returns peaks and ends before; `None` for a row that was missing.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] where a cluster is unknown; [`StoreError::Contradiction`] where the rows hold two values for
    /// the same series and hour.
    async fn correct_usage(
        &self,
        rows: &[UsageRow],
        audit: MakeAuditEntry<'_, Option<HourDemand>>,
    ) -> Result<Vec<Option<HourDemand>>, StoreError>;

    /// Replaces the outcomes of guarantee periods. Returns the outcomes before.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] where an event was never reported.
    async fn correct_outcomes(
        &self,
        corrections: &[(EventId, OutcomeKind)],
        audit: MakeAuditEntry<'_, OutcomeBefore>,
    ) -> Result<Vec<OutcomeBefore>, StoreError>;
}

row! {
    pub(crate) struct BeforeRow {
        pub cluster: String,
        pub gpu_model: String,
        pub kind: String,
        pub spent: bool,
    }
}

impl BeforeRow {
    pub(crate) fn of(self, event_id: &EventId) -> Result<OutcomeBefore, StoreError> {
        let pool = crate::stored::pool(&self.cluster, &self.gpu_model)?;
        let kind = crate::outcomes::kind(&self.kind)?;
        Ok(OutcomeBefore { event_id: event_id.clone(), pool, kind, spent: self.spent })
    }
}
