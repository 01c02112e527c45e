use super::{AuditEntry, AuditOf, AuditRecord, AuditRow, AuditStore};
use crate::StoreError;
use crate::postgres::PostgresStore;
use crate::stored::{BATCH, Stamp, all};
use async_trait::async_trait;
use sqlx::PgConnection;
use std::borrow::Borrow;
use vocab::UnixSeconds;

#[async_trait]
impl AuditStore for PostgresStore {
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
        all(query.bind(Stamp(from)).bind(Stamp(to)).bind(i64::from(limit)).fetch_all(&self.pool).await?)
    }

    async fn delete_audit_before(&self, before: UnixSeconds, of: AuditOf) -> Result<u64, StoreError> {
        let mut deleted = 0;
        loop {
            let deleting = sqlx::query(of.delete());
            let mut transaction = self.begin_long().await?;
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
pub(crate) async fn insert(connection: &mut PgConnection, record: &AuditRecord) -> Result<(), StoreError> {
    insert_all(connection, &[record]).await
}

/// Writes entries in the transaction of what they tell of, in their order and in one statement.
pub(crate) async fn insert_all<R>(connection: &mut PgConnection, records: &[R]) -> Result<(), StoreError>
where
    R: Borrow<AuditRecord> + Sync,
{
    if records.is_empty() {
        return Ok(());
    }
    let each = || records.iter().map(Borrow::borrow);
    let texts = |text: fn(&AuditRecord) -> &str| each().map(text).collect::<Vec<_>>();
    let optional = |text: fn(&AuditRecord) -> Option<&str>| each().map(text).collect::<Vec<_>>();
    sqlx::query(
        "INSERT INTO audit (at, actor, token_id, action, target, status, detail_json)
         SELECT * FROM unnest($1::timestamptz[], $2::text[], $3::text[], $4::text[], $5::text[], $6::bigint[], $7::text[])",
    )
    .bind(each().map(|record| Stamp(record.at)).collect::<Vec<_>>())
    .bind(texts(|record| &record.actor))
    .bind(optional(|record| record.token_id.as_deref()))
    .bind(texts(|record| &record.action))
    .bind(texts(|record| &record.target))
    .bind(each().map(|record| i64::from(record.status)).collect::<Vec<_>>())
    .bind(optional(|record| record.detail_json.as_deref()))
    .execute(connection)
    .await?;
    Ok(())
}
