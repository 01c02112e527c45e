use super::dialect::audit::insert_all;
use super::{SqlConnection, SqlStore};
use crate::StoreError;
use crate::audit::{AuditEntry, AuditOf, AuditRecord, AuditRow, AuditStore};
use crate::stored::{Stamp, all};
use async_trait::async_trait;
use vocab::UnixSeconds;

#[async_trait]
impl AuditStore for SqlStore {
    async fn record_audit(&self, records: &[AuditRecord]) -> Result<(), StoreError> {
        let mut transaction = self.begin().await?;
        insert_all(&mut transaction, records).await?;
        transaction.commit().await?;
        Ok(())
    }

    async fn audit(&self, from: UnixSeconds, to: UnixSeconds, limit: u32) -> Result<Vec<AuditEntry>, StoreError> {
        let query = sqlx::query_as::<_, AuditRow>(
            "SELECT id, at, actor, token_id, action, target, status, detail_json
             FROM audit WHERE at >= $1 AND at < $2 ORDER BY at DESC, id DESC LIMIT $3",
        );
        all(query.bind(Stamp(from)).bind(Stamp(to)).bind(i64::from(limit)).fetch_all(self.readers()).await?)
    }

    async fn delete_audit_before(&self, before: UnixSeconds, of: AuditOf) -> Result<u64, StoreError> {
        self.delete_in_batches(of.delete(), before).await
    }
}

/// Writes an entry in the transaction of the write that it describes.
pub(crate) async fn insert(connection: &mut SqlConnection, record: &AuditRecord) -> Result<(), StoreError> {
    insert_all(connection, &[record]).await
}
