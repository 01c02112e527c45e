use super::{PROVE, PROVED, ProofStore};
use crate::StoreError;
use crate::postgres::PostgresStore;
use crate::stored::whole;
use crate::transaction::Transaction;
use async_trait::async_trait;

#[async_trait]
impl ProofStore for PostgresStore {
    async fn prove_write(&self) -> Result<u64, StoreError> {
        let mut transaction = Transaction::begin(&self.pulse, "BEGIN").await?;
        // A service that proves at the same moment proves it for both.
        sqlx::query("SET LOCAL lock_timeout = '1s'").execute(&mut *transaction).await?;
        let proofs: i64 = sqlx::query_scalar(PROVE).fetch_one(&mut *transaction).await?;
        transaction.commit().await?;
        whole("number of proofs", proofs)
    }

    async fn proved_writes(&self) -> Result<u64, StoreError> {
        whole("number of proofs", sqlx::query_scalar(PROVED).fetch_one(&self.pulse).await?)
    }
}
