use super::dialect::sizes::SIZE_BYTES;
use super::{SqlStore, dialect};
use crate::StoreError;
use crate::sizes::{Integrity, Size, SizeRow, SizeStore};
use crate::stored::{Stamp, all, signed, whole};
use async_trait::async_trait;
use vocab::UnixSeconds;

#[async_trait]
impl SizeStore for SqlStore {
    async fn size_bytes(&self) -> Result<u64, StoreError> {
        let bytes: i64 = sqlx::query_scalar(SIZE_BYTES).fetch_one(self.readers()).await?;
        whole("size of the database", bytes)
    }

    async fn note_size(&self, size: Size, forget: UnixSeconds) -> Result<(), StoreError> {
        let mut transaction = self.begin().await?;
        sqlx::query("INSERT INTO sizes (at, bytes) VALUES ($1, $2) ON CONFLICT (at) DO NOTHING")
            .bind(Stamp(size.at))
            .bind(signed("size of the database", size.bytes)?)
            .execute(&mut *transaction)
            .await?;
        sqlx::query("DELETE FROM sizes WHERE at < $1").bind(Stamp(forget)).execute(&mut *transaction).await?;
        transaction.commit().await?;
        Ok(())
    }

    async fn sizes(&self) -> Result<Vec<Size>, StoreError> {
        all(sqlx::query_as::<_, SizeRow>("SELECT at, bytes FROM sizes ORDER BY at").fetch_all(self.readers()).await?)
    }

    async fn integrity(&self) -> Result<Vec<Integrity>, StoreError> {
        dialect::sizes::integrity(self).await
    }
}
