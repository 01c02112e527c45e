use super::{SqlConnection, SqlStore};
use crate::StoreError;
use crate::journal::PlacedPoolId;
use crate::statements::{AccountedDay, StatementDayRow, StatementStore};
use crate::stored::{Stamp, all};
use async_trait::async_trait;
use vocab::{PoolId, UnixSeconds};

#[async_trait]
impl StatementStore for SqlStore {
    async fn statement_days(
        &self,
        from: UnixSeconds,
        to: UnixSeconds,
    ) -> Result<Vec<(PoolId, AccountedDay)>, StoreError> {
        let query = sqlx::query_as::<_, StatementDayRow>(
            "SELECT cluster, gpu_model, day, accounts_json FROM statement_days
             JOIN placed_pools ON placed_pools.id = pool_id
             WHERE day >= $1 AND day < $2 ORDER BY cluster, gpu_model, day",
        );
        all(query.bind(Stamp(from)).bind(Stamp(to)).fetch_all(self.readers()).await?)
    }

    async fn delete_statement_days_before(&self, before: UnixSeconds) -> Result<u64, StoreError> {
        let statement = "DELETE FROM statement_days WHERE (pool_id, day) IN (
                 SELECT pool_id, day FROM statement_days WHERE day < $1 LIMIT $2
             )";
        self.delete_in_batches(statement, before).await
    }
}

/// Inserts or replaces days of a pool.
pub(super) async fn put_days(
    connection: &mut SqlConnection,
    id: PlacedPoolId,
    days: &[AccountedDay],
) -> Result<(), StoreError> {
    for day in days {
        let query = sqlx::query(
            "INSERT INTO statement_days (pool_id, day, accounts_json) VALUES ($1, $2, $3)
             ON CONFLICT (pool_id, day) DO UPDATE SET accounts_json = excluded.accounts_json",
        );
        query.bind(id.0).bind(Stamp(day.day)).bind(&day.accounts_json).execute(&mut *connection).await?;
    }
    Ok(())
}
