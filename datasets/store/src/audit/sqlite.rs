use super::{AuditEntry, AuditOf, AuditRecord, AuditRow, AuditStore};
use crate::StoreError;
use crate::sqlite::SqliteStore;
use crate::stored::{BATCH, Stamp, all};
use async_trait::async_trait;
use sqlx::SqliteConnection;
use std::borrow::Borrow;
use vocab::UnixSeconds;

#[async_trait]
impl AuditStore for SqliteStore {
    async fn record_audit(&self, records: &[AuditRecord]) -> Result<(), StoreError> {
        let mut transaction = self.begin().await?;
        insert_all(&mut transaction, records).await?;
        transaction.commit().await?;
        Ok(())
    }

    async fn audit(&self, from: UnixSeconds, to: UnixSeconds, limit: u32) -> Result<Vec<AuditEntry>, StoreError> {
        let query = sqlx::query_as::<_, AuditRow>(
            "SELECT * FROM audit WHERE at >= $1 AND at < $2 ORDER BY at DESC, id DESC LIMIT $3",
        );
        all(query.bind(Stamp(from)).bind(Stamp(to)).bind(i64::from(limit)).fetch_all(&self.readers).await?)
    }

    async fn delete_audit_before(&self, before: UnixSeconds, of: AuditOf) -> Result<u64, StoreError> {
        let mut deleted = 0;
        loop {
            let deleting = sqlx::query(of.delete());
            let mut transaction = self.begin().await?;
            let batch = deleting.bind(Stamp(before)).bind(BATCH).execute(&mut *transaction).await?.rows_affected();
            transaction.commit().await?;
            deleted += batch;
            if batch < BATCH.unsigned_abs() {
                return Ok(deleted);
            }
        }
    }
}

/// Writes an entry in the transaction of what it tells of.
pub(crate) async fn insert(connection: &mut SqliteConnection, record: &AuditRecord) -> Result<(), StoreError> {
    insert_all(connection, &[record]).await
}

/// Writes entries in the transaction of what they tell of, in their order. The statement is prepared once, and no network lies
/// between.
pub(crate) async fn insert_all<R>(connection: &mut SqliteConnection, records: &[R]) -> Result<(), StoreError>
where
    R: Borrow<AuditRecord> + Sync,
{
    for record in records.iter().map(Borrow::borrow) {
        sqlx::query(
            "INSERT INTO audit (at, actor, token_id, action, target, status, detail_json)
             VALUES ($1, $2, $3, $4, $5, $6, $7)",
        )
        .bind(Stamp(record.at))
        .bind(&record.actor)
        .bind(&record.token_id)
        .bind(&record.action)
        .bind(&record.target)
        .bind(i64::from(record.status))
        .bind(&record.detail_json)
        .execute(&mut *connection)
        .await?;
    }
    Ok(())
}
