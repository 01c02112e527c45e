use crate::StoreError;
use crate::etas::EtaMove;
use sqlx::PgConnection;
use std::collections::BTreeSet;

/// The coefficient of a pool, which no other transaction moves until this one ends.
pub(crate) const LOCK_ETA: &str = "SELECT eta_micro FROM etas WHERE cluster = $1 AND gpu_model = $2 FOR UPDATE";

/// Marks outcomes as counted by a move, older ones too. Returns how many of `ids` were not counted before.
pub(crate) async fn spend(
    connection: &mut PgConnection,
    step: &EtaMove,
    ids: &BTreeSet<i64>,
    spent_by: i64,
) -> Result<u64, StoreError> {
    let ids: Vec<i64> = ids.iter().copied().collect();
    let spending = sqlx::query(
        "UPDATE outcomes SET spent_by = $1
         WHERE id = ANY ($2) AND cluster = $3 AND gpu_model = $4 AND spent_by IS NULL",
    );
    let (cluster, gpu_model) = (step.pool.cluster.as_str(), step.pool.gpu_model.as_str());
    let spent = spending.bind(spent_by).bind(&ids).bind(cluster).bind(gpu_model).execute(&mut *connection).await?;
    let older = sqlx::query(
        "UPDATE outcomes SET spent_by = $1
         WHERE cluster = $3 AND gpu_model = $4 AND spent_by IS NULL AND kind IN ('kept', 'broken')
             AND ended_at < (SELECT min(ended_at) FROM outcomes WHERE id = ANY ($2))",
    );
    older.bind(spent_by).bind(&ids).bind(cluster).bind(gpu_model).execute(connection).await?;
    Ok(spent.rows_affected())
}
