use super::SqlStore;
use crate::StoreError;
use crate::error::is_read_only;
use crate::proofs::{PROVE, PROVED, ProofStore};
use crate::stored::whole;
use async_trait::async_trait;

#[async_trait]
impl ProofStore for SqlStore {
    async fn prove_write(&self) -> Result<u64, StoreError> {
        let mut transaction = self.begin_proof().await?;
        let proved: Result<i64, _> = sqlx::query_scalar(PROVE).fetch_one(&mut *transaction).await;
        if proved.as_ref().is_err_and(is_read_only) {
            // A connection that was opened read-only stays so: the next one takes writes as soon as the database does.
            transaction.closes_unless_committed();
            self.note_read_only(true);
        }
        let proofs = proved?;
        transaction.commit().await?;
        self.note_read_only(false);
        whole("number of proofs", proofs)
    }

    async fn proved_writes(&self) -> Result<u64, StoreError> {
        whole("number of proofs", sqlx::query_scalar(PROVED).fetch_one(self.pulse()?).await?)
    }
}
