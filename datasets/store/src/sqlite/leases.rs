use super::SqliteStore;
use crate::StoreError;
use crate::leases::{Lease, fenced};
use crate::stored::signed;
use sqlx::SqliteConnection;

/// Counts the beats of leases up, in one transaction. Returns the leases that are still held.
pub(crate) async fn beat(store: &SqliteStore, held: &[Lease]) -> Result<Vec<Lease>, StoreError> {
    let mut transaction = store.begin_unproved().await?;
    let mut still = Vec::with_capacity(held.len());
    for lease in held {
        let query = sqlx::query("UPDATE leases SET beat = beat + 1 WHERE cluster = $1 AND epoch = $2 AND NOT released");
        let query = query.bind(lease.cluster.as_str()).bind(signed("epoch", lease.epoch)?);
        if query.execute(&mut *transaction).await?.rows_affected() == 1 {
            still.push(lease.clone());
        }
    }
    transaction.commit().await?;
    Ok(still)
}

/// Proves that a lease is held, inside a transaction that holds the lock of the database.
pub(crate) async fn prove(connection: &mut SqliteConnection, lease: &Lease) -> Result<(), StoreError> {
    let query = sqlx::query("SELECT 1 FROM leases WHERE cluster = $1 AND epoch = $2 AND NOT released");
    let query = query.bind(lease.cluster.as_str()).bind(signed("epoch", lease.epoch)?);
    if query.fetch_optional(connection).await?.is_none() {
        return Err(fenced(lease));
    }
    Ok(())
}
