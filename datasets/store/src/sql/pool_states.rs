use super::SqlStore;
use crate::StoreError;
use crate::error::unless_missing;
use crate::pool_states::{PoolStateStore, ReceivedState, StateRow, received, write_jobs};
use crate::stored::{Stamp, milli, signed};
use async_trait::async_trait;
use sqlx::AssertSqlSafe;
use std::collections::BTreeMap;
use vocab::{HpJob, PoolId, PoolState, UnixSeconds};

#[async_trait]
impl PoolStateStore for SqlStore {
    async fn put_pool_state(
        &self,
        state: &PoolState,
        hp_jobs: Option<&[HpJob]>,
        received_at: UnixSeconds,
    ) -> Result<bool, StoreError> {
        let (cluster, gpu_model) = (state.pool.cluster.as_str(), state.pool.gpu_model.as_str());
        let mut transaction = self.begin().await?;
        let taken = sqlx::query(
            "INSERT INTO pool_states AS stored
                 (cluster, gpu_model, capacity_milli, idle_milli, longest_quota_wait_s, as_of, received_at, hp_jobs)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
             ON CONFLICT (cluster, gpu_model) DO UPDATE
             SET capacity_milli = excluded.capacity_milli, idle_milli = excluded.idle_milli,
                 longest_quota_wait_s = excluded.longest_quota_wait_s,
                 as_of = excluded.as_of, received_at = excluded.received_at, hp_jobs = excluded.hp_jobs
             WHERE stored.as_of <= excluded.as_of OR stored.as_of > excluded.received_at",
        )
        .bind(cluster)
        .bind(gpu_model)
        .bind(milli(state.capacity))
        .bind(milli(state.idle))
        .bind(signed("longest quota wait", state.longest_quota_wait_s)?)
        .bind(Stamp(state.as_of))
        .bind(Stamp(received_at))
        .bind(hp_jobs.map(|jobs| write_jobs(jobs, state.as_of)))
        .execute(&mut *transaction)
        .await
        .map_err(unless_missing("cluster", cluster))?;
        if taken.rows_affected() == 0 {
            transaction.commit().await?;
            return Ok(false);
        }
        let clearing = sqlx::query("DELETE FROM pool_state_spot WHERE cluster = $1 AND gpu_model = $2");
        clearing.bind(cluster).bind(gpu_model).execute(&mut *transaction).await?;
        for (hours, spot) in &state.spot_by_guarantee {
            sqlx::query(
                "INSERT INTO pool_state_spot (cluster, gpu_model, guarantee_hours, spot_milli) VALUES ($1, $2, $3, $4)",
            )
            .bind(cluster)
            .bind(gpu_model)
            .bind(i64::from(hours.get()))
            .bind(milli(*spot))
            .execute(&mut *transaction)
            .await?;
        }
        transaction.commit().await?;
        Ok(true)
    }

    async fn delete_pool_state(&self, pool: &PoolId) -> Result<(), StoreError> {
        let (cluster, gpu_model) = (pool.cluster.as_str(), pool.gpu_model.as_str());
        let mut transaction = self.begin().await?;
        for table in ["pool_state_spot", "pool_states"] {
            let statement = format!("DELETE FROM {table} WHERE cluster = $1 AND gpu_model = $2");
            sqlx::query(AssertSqlSafe(statement)).bind(cluster).bind(gpu_model).execute(&mut *transaction).await?;
        }
        transaction.commit().await?;
        Ok(())
    }

    async fn pool_state(&self, pool: &PoolId) -> Result<Option<ReceivedState>, StoreError> {
        let (cluster, gpu_model) = (pool.cluster.as_str(), pool.gpu_model.as_str());
        // One snapshot for both statements: a state and its spot GPUs must fit together.
        let mut snapshot = self.begin_reading().await?;
        let row: Option<StateRow> = sqlx::query_as(
            "SELECT cluster, gpu_model, capacity_milli, idle_milli, longest_quota_wait_s, as_of, received_at, hp_jobs
             FROM pool_states WHERE cluster = $1 AND gpu_model = $2",
        )
        .bind(cluster)
        .bind(gpu_model)
        .fetch_optional(&mut *snapshot)
        .await?;
        let Some(row) = row else { return Ok(None) };
        let spot: Vec<(i64, i64)> = sqlx::query_as(
            "SELECT guarantee_hours, spot_milli FROM pool_state_spot WHERE cluster = $1 AND gpu_model = $2",
        )
        .bind(cluster)
        .bind(gpu_model)
        .fetch_all(&mut *snapshot)
        .await?;
        received(&row, &spot).map(Some)
    }

    async fn pool_states(&self) -> Result<BTreeMap<PoolId, PoolState>, StoreError> {
        // One snapshot for both statements: a state and its spot GPUs must fit together.
        let mut snapshot = self.begin_reading().await?;
        // Up to 10,000 jobs of each pool are not read.
        let rows: Vec<StateRow> = sqlx::query_as(
            "SELECT cluster, gpu_model, capacity_milli, idle_milli, longest_quota_wait_s, as_of, received_at,
                 CASE WHEN 1 = 0 THEN hp_jobs END AS hp_jobs
             FROM pool_states",
        )
        .fetch_all(&mut *snapshot)
        .await?;
        let spot: Vec<(String, String, i64, i64)> =
            sqlx::query_as("SELECT cluster, gpu_model, guarantee_hours, spot_milli FROM pool_state_spot")
                .fetch_all(&mut *snapshot)
                .await?;
        let mut by_pool: BTreeMap<(String, String), Vec<(i64, i64)>> = BTreeMap::new();
        for (cluster, gpu_model, hours, milli) in spot {
            by_pool.entry((cluster, gpu_model)).or_default().push((hours, milli));
        }
        let state = |row: &StateRow| {
            let spot = by_pool.get(&(row.cluster.clone(), row.gpu_model.clone()));
            received(row, spot.map_or(&[][..], Vec::as_slice)).map(|one| (one.state.pool.clone(), one.state))
        };
        rows.iter().map(state).collect()
    }
}
