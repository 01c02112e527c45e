//! Quotas as they were answered, with their explanations.

use crate::stored::{Stamp, amount, horizon, pool};
use crate::{NewLearned, RunId, StoreError};
use async_trait::async_trait;
use vocab::{ClusterName, HorizonHours, MilliGpus, PoolId, UnixSeconds};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredQuota {
    pub pool: PoolId,
    pub hours: HorizonHours,
    pub computed_at: UnixSeconds,
    pub quota: MilliGpus,
    /// `None` where no model was asked.
    pub run_id: Option<RunId>,
    pub answer_json: String,
    pub explanation_json: String,
    /// Whether the history keeps the answer and its explanation, too, and not the amount alone. The last quota of a pool and
    /// horizon has both in any case; an entry of the history without them has empty texts.
    pub is_explained: bool,
}

#[async_trait]
pub trait QuotaStore {
    /// Writes quotas, and what was learned of pools when they were made: all of it, or nothing.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] where a cluster or a run is unknown.
    async fn insert_quotas(&self, quotas: &[StoredQuota], learned: &[NewLearned]) -> Result<(), StoreError>;

    /// The last one stored for each pool and horizon, in their order; of one cluster or of all. The last stored, not
    /// the one with the latest `computed_at`: a clock may have jumped back.
    async fn latest_quotas(&self, cluster: Option<&ClusterName>) -> Result<Vec<StoredQuota>, StoreError>;

    /// A number that grows whenever a quota is stored; `None` before the first.
    async fn newest_quota(&self) -> Result<Option<i64>, StoreError>;

    /// Those computed at `from` or later and before `to`, newest first, at most `limit`.
    async fn quota_history(
        &self,
        pool: &PoolId,
        hours: HorizonHours,
        from: UnixSeconds,
        to: UnixSeconds,
        limit: u32,
    ) -> Result<Vec<StoredQuota>, StoreError>;

    /// Forgets those computed before `before`, except the last one stored for each pool and horizon, which is what a
    /// service falls back on; in batches, so that writers wait for none of them for long. Answers how many.
    async fn delete_quotas_before(&self, before: UnixSeconds) -> Result<u64, StoreError>;
}

/// The last quotas: from beside their pointer, or, where a program of another version moved it, from the history, in which that one
/// stores them whole.
pub(crate) const LATEST: &str =
    "SELECT quotas.cluster, quotas.gpu_model, quotas.hours, quotas.computed_at, quotas.quota_milli, quotas.run_id,
         CASE WHEN whole_id = quota_id THEN newest_quotas.answer_json ELSE quotas.answer_json END AS answer_json,
         CASE WHEN whole_id = quota_id THEN newest_quotas.explanation_json ELSE quotas.explanation_json END
             AS explanation_json
     FROM newest_quotas JOIN quotas ON quotas.id = newest_quotas.quota_id
     WHERE $1 IS NULL OR newest_quotas.cluster = $1
     ORDER BY newest_quotas.cluster, newest_quotas.gpu_model, newest_quotas.hours";

row! {
    pub(crate) struct QuotaRow {
        pub cluster: String,
        pub gpu_model: String,
        pub hours: i64,
        pub computed_at: Stamp,
        pub quota_milli: i64,
        pub run_id: Option<i64>,
        pub answer_json: String,
        pub explanation_json: String,
    }
}

impl TryFrom<QuotaRow> for StoredQuota {
    type Error = StoreError;

    fn try_from(row: QuotaRow) -> Result<Self, StoreError> {
        Ok(Self {
            pool: pool(&row.cluster, &row.gpu_model)?,
            hours: horizon("hours of a quota", row.hours)?,
            computed_at: row.computed_at.0,
            quota: amount("quota", row.quota_milli)?,
            run_id: row.run_id.map(RunId::new),
            answer_json: row.answer_json,
            is_explained: !row.explanation_json.is_empty(),
            explanation_json: row.explanation_json,
        })
    }
}

/// Answer and explanation as the history keeps them.
pub(crate) fn kept(quota: &StoredQuota) -> (&str, &str) {
    if quota.is_explained { (&quota.answer_json, &quota.explanation_json) } else { ("", "") }
}

/// In the order of pools and hours, so that two writers cannot wait for each other; what is stored for the same pool
/// and hours keeps its order.
pub(crate) fn in_order(quotas: &[StoredQuota]) -> Vec<&StoredQuota> {
    let mut ordered: Vec<_> = quotas.iter().collect();
    ordered.sort_by_key(|quota| (&quota.pool, quota.hours));
    ordered
}

/// What a quota hangs on, for the error that says that it is missing.
pub(crate) fn owners(quota: &StoredQuota) -> String {
    match quota.run_id {
        Some(run) => format!("{} with {run}", quota.pool.cluster),
        None => quota.pool.cluster.to_string(),
    }
}
