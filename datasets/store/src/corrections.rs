//! What was reported wrongly, put right: the audit keeps what was there before, in the same transaction.

use crate::{AuditRecord, StoreError};
use async_trait::async_trait;
use vocab::{EventId, MilliGpus, OutcomeKind, PoolId, UsageRow};

/// Makes the entry of the audit from what was there before, one for each correction, in their order.
pub type Tell<'a, T> = &'a (dyn Fn(&[T]) -> AuditRecord + Sync);

/// An outcome as it was before it was corrected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutcomeBefore {
    pub event_id: EventId,
    pub pool: PoolId,
    pub kind: OutcomeKind,
    /// A move of eta had counted it: that move stays.
    pub spent: bool,
}

#[async_trait]
pub trait CorrectionStore {
    /// Replaces demand, or fills it in. Answers what was there before: `None` where nothing was.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] where a cluster is unknown; [`StoreError::Contradiction`] where the rows hold two values for
    /// the same series and hour.
    async fn correct_usage(
        &self,
        rows: &[UsageRow],
        tell: Tell<'_, Option<MilliGpus>>,
    ) -> Result<Vec<Option<MilliGpus>>, StoreError>;

    /// Replaces how guarantee periods ended. Answers how they had ended before.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] where an event was never reported.
    async fn correct_outcomes(
        &self,
        corrections: &[(EventId, OutcomeKind)],
        tell: Tell<'_, OutcomeBefore>,
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
