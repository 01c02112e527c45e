use super::dialect::etas::{LOCK_ETA, SPEND, SPEND_OLDER, id_list};
use super::{SqlConnection, SqlStore};
use crate::error::unless_missing;
use crate::etas::{EtaMove, EtaRecord, EtaRow, EtaStore, MoveRow, moved_meanwhile, spent_meanwhile};
use crate::stored::{Stamp, all, signed};
use crate::{OutcomeId, StoreError};
use async_trait::async_trait;
use std::collections::BTreeSet;
use vocab::PoolId;

#[async_trait]
impl EtaStore for SqlStore {
    async fn eta(&self, pool: &PoolId) -> Result<Option<EtaRecord>, StoreError> {
        sqlx::query_as::<_, EtaRow>(
            "SELECT cluster, gpu_model, eta_micro, moved_at
             FROM etas WHERE cluster = $1 AND gpu_model = $2",
        )
        .bind(pool.cluster.as_str())
        .bind(pool.gpu_model.as_str())
        .fetch_optional(self.readers())
        .await?
        .map(TryInto::try_into)
        .transpose()
    }

    async fn eta_moves(&self, pool: &PoolId, limit: u32) -> Result<Vec<EtaMove>, StoreError> {
        let query = sqlx::query_as::<_, MoveRow>(
            "SELECT cluster, gpu_model, moved_at, from_micro, to_micro, reason, kept, broken
             FROM eta_moves WHERE cluster = $1 AND gpu_model = $2 ORDER BY id DESC LIMIT $3",
        );
        let query = query.bind(pool.cluster.as_str()).bind(pool.gpu_model.as_str()).bind(i64::from(limit));
        all(query.fetch_all(self.readers()).await?)
    }

    async fn apply_eta_move(&self, step: &EtaMove, spent: &[OutcomeId]) -> Result<(), StoreError> {
        let mut transaction = self.begin().await?;
        // 1. Lock the coefficient, and check that it is the one from which the move starts.
        let stored_micro = lock_eta(&mut transaction, step).await?;
        if stored_micro != i64::from(step.from_micro) {
            return Err(moved_meanwhile(step, stored_micro));
        }
        // 2. Insert the move, and mark its outcomes, none of which may be marked.
        let id = insert_move(&mut transaction, step).await?;
        let ids: BTreeSet<i64> = spent.iter().map(|outcome| outcome.get()).collect();
        let unspent = spend(&mut transaction, step, &ids, id).await?;
        if unspent != ids.len() as u64 {
            return Err(spent_meanwhile(step, ids.len(), unspent));
        }
        // 3. Write the new coefficient.
        set_eta(&mut transaction, step).await?;
        transaction.commit().await?;
        Ok(())
    }
}

/// Locks the coefficient and returns it. Before the first move it is the value from which this move starts.
async fn lock_eta(connection: &mut SqlConnection, step: &EtaMove) -> Result<i64, StoreError> {
    sqlx::query(
        "INSERT INTO etas (cluster, gpu_model, eta_micro, moved_at) VALUES ($1, $2, $3, $4)
         ON CONFLICT (cluster, gpu_model) DO NOTHING",
    )
    .bind(step.pool.cluster.as_str())
    .bind(step.pool.gpu_model.as_str())
    .bind(i64::from(step.from_micro))
    .bind(Stamp(step.at))
    .execute(&mut *connection)
    .await
    .map_err(unless_missing("cluster", &step.pool.cluster))?;
    let query = sqlx::query_scalar(LOCK_ETA);
    let query = query.bind(step.pool.cluster.as_str()).bind(step.pool.gpu_model.as_str());
    Ok(query.fetch_one(connection).await?)
}

async fn insert_move(connection: &mut SqlConnection, step: &EtaMove) -> Result<i64, StoreError> {
    let query = sqlx::query_scalar(
        "INSERT INTO eta_moves (cluster, gpu_model, moved_at, from_micro, to_micro, reason, kept, broken)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8) RETURNING id",
    )
    .bind(step.pool.cluster.as_str())
    .bind(step.pool.gpu_model.as_str())
    .bind(Stamp(step.at))
    .bind(i64::from(step.from_micro))
    .bind(i64::from(step.to_micro))
    .bind(&step.reason)
    .bind(signed("kept guarantees", step.kept)?)
    .bind(signed("broken guarantees", step.broken)?);
    Ok(query.fetch_one(connection).await?)
}

/// Marks outcomes as counted by a move, older ones too. Returns how many of `ids` were not counted before.
async fn spend(
    connection: &mut SqlConnection,
    step: &EtaMove,
    ids: &BTreeSet<i64>,
    spent_by: i64,
) -> Result<u64, StoreError> {
    let ids = id_list(ids);
    let (cluster, gpu_model) = (step.pool.cluster.as_str(), step.pool.gpu_model.as_str());
    let spending = sqlx::query(SPEND).bind(spent_by).bind(&ids).bind(cluster).bind(gpu_model);
    let spent = spending.execute(&mut *connection).await?;
    sqlx::query(SPEND_OLDER).bind(spent_by).bind(&ids).bind(cluster).bind(gpu_model).execute(connection).await?;
    Ok(spent.rows_affected())
}

async fn set_eta(connection: &mut SqlConnection, step: &EtaMove) -> Result<(), StoreError> {
    sqlx::query("UPDATE etas SET eta_micro = $3, moved_at = $4 WHERE cluster = $1 AND gpu_model = $2")
        .bind(step.pool.cluster.as_str())
        .bind(step.pool.gpu_model.as_str())
        .bind(i64::from(step.to_micro))
        .bind(Stamp(step.at))
        .execute(connection)
        .await?;
    Ok(())
}
