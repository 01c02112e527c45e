//! Computed quotas, with the answers and explanations that clients received.

use crate::stored::{Stamp, amount, horizon, pool, whole};
use crate::{NewLearned, RunId, StoreError};
use async_trait::async_trait;
use vocab::{ClusterName, HorizonHours, MilliGpus, PoolId, UnixSeconds};

/// A quota of a pool, as it was computed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredQuota {
    /// The pool.
    pub pool: PoolId,
    /// Guarantee hours (H) of the quota.
    pub hours: HorizonHours,
    /// Time of the computation.
    pub computed_at: UnixSeconds,
    /// The quota in GPUs.
    pub quota: MilliGpus,
    /// The run whose forecasts were used; `None` if no model was.
    pub run_id: Option<RunId>,
    /// Version of the pool's settings that it was computed with; `None` where the pool had none.
    pub settings_version: Option<i64>,
    /// The answer to clients.
    pub answer_json: String,
    /// The explanation.
    pub explanation_json: String,
    /// Whether the history keeps answer and explanation, and not only the amount. The last quota of a pool and horizon
    /// always has both; an entry of the history without them has empty texts.
    pub is_explained: bool,
}

/// The lease and the settings behind stored quotas.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoredUnder {
    /// The lease of the cluster that they were stored under.
    pub epoch: u64,
    /// Version of the pool's settings that they know; `None` where it had none.
    pub settings_version: Option<i64>,
}

/// The stored quotas of a pool as numbers: the first moves with each renewal, the others with what quotas rest on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuotaBasis {
    /// The pool.
    pub pool: PoolId,
    /// Number of its newest quota.
    pub quota_id: i64,
    /// Time of their computation.
    pub computed_at: UnixSeconds,
    /// The lease and the settings behind them; `None` if an earlier program, or one without a lease, has stored them.
    pub stored_under: Option<StoredUnder>,
    /// Version of its settings, if it has any.
    pub settings_version: Option<i64>,
    /// Number of its newest override, if it ever had one.
    pub override_id: Option<i64>,
    /// Number of its overrides that were withdrawn.
    pub withdrawn: i64,
    /// When an override was made or withdrawn last.
    pub overridden_at: Option<UnixSeconds>,
}

/// Quotas and their history.
#[async_trait]
pub trait QuotaStore {
    /// Writes quotas, and the learned state from which they were computed, in one transaction.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] if a cluster or a run is unknown.
    async fn insert_quotas(&self, quotas: &[StoredQuota], learned: &[NewLearned]) -> Result<(), StoreError>;

    /// The last stored quota of each pool and horizon, in their order, of one cluster or of all. The last stored, not the
    /// one with the latest `computed_at`: a clock may have jumped back.
    async fn latest_quotas(&self, cluster: Option<&ClusterName>) -> Result<Vec<StoredQuota>, StoreError>;

    /// A number that grows whenever a quota is stored; `None` before the first.
    async fn newest_quota(&self) -> Result<Option<i64>, StoreError>;

    /// Basis of the newest quotas of each pool that has some, as of one moment.
    async fn quota_bases(&self) -> Result<Vec<QuotaBasis>, StoreError>;

    /// Quotas computed at `from` or later and before `to`, newest first, at most `limit`.
    async fn quota_history(
        &self,
        pool: &PoolId,
        hours: HorizonHours,
        from: UnixSeconds,
        to: UnixSeconds,
        limit: u32,
    ) -> Result<Vec<StoredQuota>, StoreError>;

    /// When the first quota of a pool and horizon was computed; `None` where there is none.
    async fn first_quota_at(&self, pool: &PoolId, hours: HorizonHours) -> Result<Option<UnixSeconds>, StoreError>;

    /// Deletes quotas computed before `before`, in batches, so that writers do not wait long. Of each pool and
    /// horizon the last stored quota stays, on which a service falls back, and the first one, from which the wait for the first
    /// move of eta counts. Returns the number of deleted quotas.
    async fn delete_quotas_before(&self, before: UnixSeconds) -> Result<u64, StoreError>;
}

/// The last quotas. Texts come from `newest_quotas`, or, if a program of another version moved the pointer, from the
/// history, where that program stores them.
pub(crate) const LATEST: &str =
    "SELECT quotas.cluster, quotas.gpu_model, quotas.hours, quotas.computed_at, quotas.quota_milli, quotas.run_id,
         quotas.settings_version,
         CASE WHEN whole_id = quota_id THEN newest_quotas.answer_json ELSE quotas.answer_json END AS answer_json,
         CASE WHEN whole_id = quota_id THEN newest_quotas.explanation_json ELSE quotas.explanation_json END
             AS explanation_json
     FROM newest_quotas JOIN quotas ON quotas.id = newest_quotas.quota_id
     WHERE $1 IS NULL OR newest_quotas.cluster = $1
     ORDER BY newest_quotas.cluster, newest_quotas.gpu_model, newest_quotas.hours";

/// One statement, so that no renewal comes between its parts.
pub(crate) const BASES: &str = "SELECT newest.cluster, newest.gpu_model, newest.quota_id, newest.computed_at,
         known.lease_epoch, known.settings_version AS known_settings_version,
         (SELECT version FROM pool_settings
          WHERE pool_settings.cluster = newest.cluster AND pool_settings.gpu_model = newest.gpu_model)
             AS settings_version,
         (SELECT max(overrides.id) FROM overrides
          WHERE overrides.cluster = newest.cluster AND overrides.gpu_model = newest.gpu_model) AS override_id,
         (SELECT count(overrides.withdrawn_at) FROM overrides
          WHERE overrides.cluster = newest.cluster AND overrides.gpu_model = newest.gpu_model) AS withdrawn,
         (SELECT max(overrides.created_at) FROM overrides
          WHERE overrides.cluster = newest.cluster AND overrides.gpu_model = newest.gpu_model) AS made_at,
         (SELECT max(overrides.withdrawn_at) FROM overrides
          WHERE overrides.cluster = newest.cluster AND overrides.gpu_model = newest.gpu_model) AS withdrawn_at
     FROM (SELECT newest_quotas.cluster, newest_quotas.gpu_model, max(quotas.id) AS quota_id,
               max(quotas.computed_at) AS computed_at
           FROM newest_quotas JOIN quotas ON quotas.id = newest_quotas.quota_id
           GROUP BY newest_quotas.cluster, newest_quotas.gpu_model) AS newest
         JOIN quotas AS known ON known.id = newest.quota_id";

row! {
    pub(crate) struct BasisRow {
        pub cluster: String,
        pub gpu_model: String,
        pub quota_id: i64,
        pub computed_at: Stamp,
        pub lease_epoch: Option<i64>,
        pub known_settings_version: Option<i64>,
        pub settings_version: Option<i64>,
        pub override_id: Option<i64>,
        pub withdrawn: i64,
        pub made_at: Option<Stamp>,
        pub withdrawn_at: Option<Stamp>,
    }
}

impl TryFrom<BasisRow> for QuotaBasis {
    type Error = StoreError;

    fn try_from(row: BasisRow) -> Result<Self, StoreError> {
        let epoch = row.lease_epoch.map(|epoch| whole("lease of a quota", epoch)).transpose()?;
        Ok(Self {
            pool: pool(&row.cluster, &row.gpu_model)?,
            quota_id: row.quota_id,
            computed_at: row.computed_at.0,
            stored_under: epoch.map(|epoch| StoredUnder { epoch, settings_version: row.known_settings_version }),
            settings_version: row.settings_version,
            override_id: row.override_id,
            withdrawn: row.withdrawn,
            overridden_at: [row.made_at, row.withdrawn_at].into_iter().flatten().map(|stamp| stamp.0).max(),
        })
    }
}

row! {
    pub(crate) struct QuotaRow {
        pub cluster: String,
        pub gpu_model: String,
        pub hours: i64,
        pub computed_at: Stamp,
        pub quota_milli: i64,
        pub run_id: Option<i64>,
        pub settings_version: Option<i64>,
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
            settings_version: row.settings_version,
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

/// In the order of pools and hours, so that two writers cannot deadlock; quotas of the same pool and hours keep their
/// order.
pub(crate) fn in_order(quotas: &[StoredQuota]) -> Vec<&StoredQuota> {
    let mut ordered: Vec<_> = quotas.iter().collect();
    ordered.sort_by_key(|quota| (&quota.pool, quota.hours));
    ordered
}

/// The owners of a quota, for the error that one of them is missing.
pub(crate) fn owners(quota: &StoredQuota) -> String {
    match quota.run_id {
        Some(run) => format!("{} with {run}", quota.pool.cluster),
        None => quota.pool.cluster.to_string(),
    }
}
