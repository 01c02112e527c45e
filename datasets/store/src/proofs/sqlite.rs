use super::{PROVE, PROVED, ProofStore};
use crate::StoreError;
use crate::sqlite::SqliteStore;
use crate::stored::whole;
use async_trait::async_trait;

#[async_trait]
impl ProofStore for SqliteStore {
    async fn prove_write(&self) -> Result<u64, StoreError> {
        self.check_file()?;
        let mut transaction = self.begin_unproved().await?;
        let proofs: i64 = sqlx::query_scalar(PROVE).fetch_one(&mut *transaction).await?;
        transaction.commit().await?;
        whole("number of proofs", proofs)
    }

    async fn proved_writes(&self) -> Result<u64, StoreError> {
        self.check_file()?;
        whole("number of proofs", sqlx::query_scalar(PROVED).fetch_one(&self.readers).await?)
    }
}
