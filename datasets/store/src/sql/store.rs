use super::audit::insert as insert_audit;
use super::dialect::leases::prove;
use super::{SqlConnection, SqlStore, SqlTransaction, dialect};
use crate::stored::{BATCH, Stamp, signed};
use crate::{AuditRecord, Backend, Lease, Store, StoreError};
use async_trait::async_trait;
use std::sync::Arc;
use vocab::UnixSeconds;

#[async_trait]
impl Store for SqlStore {
    fn backend(&self) -> Backend {
        dialect::BACKEND
    }

    fn held(&self, lease: Lease) -> Arc<dyn Store> {
        Arc::new(Self { lease: Some(lease), ..self.clone() })
    }

    fn audited(&self, record: AuditRecord) -> Arc<dyn Store> {
        Arc::new(Self { audit: Some(Arc::new(record)), ..self.clone() })
    }

    async fn ping(&self) -> Result<(), StoreError> {
        sqlx::query("SELECT 1").execute(self.ping_connections()).await?;
        Ok(())
    }

    async fn close(&self) {
        self.close_connections().await;
    }
}

impl SqlStore {
    /// Begins a write: it proves the lease and writes the audit entry, where the store has them.
    pub async fn begin(&self) -> Result<SqlTransaction, StoreError> {
        let mut transaction = self.begin_unproved().await?;
        if let Some(lease) = &self.lease {
            prove(&mut transaction, lease).await?;
        }
        self.insert_audit(&mut transaction).await?;
        Ok(transaction)
    }

    /// Writes the audit entry of this write, if it has one.
    pub async fn insert_audit(&self, connection: &mut SqlConnection) -> Result<(), StoreError> {
        match &self.audit {
            Some(record) => insert_audit(connection, record).await,
            None => Ok(()),
        }
    }

    /// The epoch of the lease that writes prove, if there is one.
    pub fn epoch(&self) -> Result<Option<i64>, StoreError> {
        self.lease.as_ref().map(|lease| signed("epoch", lease.epoch)).transpose()
    }

    /// Runs a DELETE whose `$1` is a time and `$2` the size of a batch, one transaction a batch, until no row is left.
    /// Returns the number of deleted rows.
    pub async fn delete_in_batches(&self, statement: &'static str, before: UnixSeconds) -> Result<u64, StoreError> {
        let mut deleted = 0;
        loop {
            let mut transaction = self.begin_long().await?;
            let deleting = sqlx::query(statement).bind(Stamp(before)).bind(BATCH);
            let batch = deleting.execute(&mut *transaction).await?.rows_affected();
            transaction.commit().await?;
            deleted += batch;
            if batch < BATCH.unsigned_abs() {
                return Ok(deleted);
            }
        }
    }
}
