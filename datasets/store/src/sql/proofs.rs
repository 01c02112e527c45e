use super::SqlStore;
use crate::StoreError;
use crate::proofs::{PROVE, PROVED, ProofStore};
use crate::stored::whole;
use async_trait::async_trait;

#[async_trait]
impl ProofStore for SqlStore {
    async fn prove_write(&self) -> Result<u64, StoreError> {
        let mut transaction = self.begin_proof().await?;
        let proofs: i64 = sqlx::query_scalar(PROVE).fetch_one(&mut *transaction).await?;
        transaction.commit().await?;
        whole("number of proofs", proofs)
    }

    async fn proved_writes(&self) -> Result<u64, StoreError> {
        whole("number of proofs", sqlx::query_scalar(PROVED).fetch_one(self.pulse()?).await?)
    }
}
