use crate::StoreError;
use crate::error::unless_missing;
use crate::leases::{Lease, LeaseRecord, LeaseRow, LeaseStore, fenced};
use crate::sqlite::SqliteStore;
use crate::stored::{all, signed};
use async_trait::async_trait;
use sqlx::SqliteConnection;
use vocab::ClusterName;

#[async_trait]
impl LeaseStore for SqliteStore {
    async fn leases(&self) -> Result<Vec<LeaseRecord>, StoreError> {
        all(sqlx::query_as::<_, LeaseRow>("SELECT * FROM leases ORDER BY cluster").fetch_all(&self.readers).await?)
    }

    async fn beat(&self, held: &[Lease]) -> Result<Vec<Lease>, StoreError> {
        let mut transaction = self.begin_unproved().await?;
        let mut still = Vec::with_capacity(held.len());
        for lease in held {
            let query =
                sqlx::query("UPDATE leases SET beat = beat + 1 WHERE cluster = $1 AND epoch = $2 AND NOT released");
            let query = query.bind(lease.cluster.as_str()).bind(signed("epoch", lease.epoch)?);
            if query.execute(&mut *transaction).await?.rows_affected() == 1 {
                still.push(lease.clone());
            }
        }
        transaction.commit().await?;
        Ok(still)
    }

    /// The one lock of the database lets no write be under way.
    async fn take_lease(
        &self,
        cluster: &ClusterName,
        seen: Option<&LeaseRecord>,
        holder: &str,
        address: &str,
    ) -> Result<Option<Lease>, StoreError> {
        let Some(seen) = seen else {
            let query = sqlx::query(
                "INSERT INTO leases (cluster, holder, address, epoch, beat, released)
                 VALUES ($1, $2, $3, 1, 0, 0) ON CONFLICT (cluster) DO NOTHING",
            );
            let inserting = query.bind(cluster.as_str()).bind(holder).bind(address).execute(self.writer()?).await;
            let done = inserting.map_err(unless_missing("cluster", cluster))?.rows_affected();
            return Ok((done == 1).then(|| Lease { cluster: cluster.clone(), epoch: 1 }));
        };
        let next = seen.lease.epoch + 1;
        let done = sqlx::query(
            "UPDATE leases SET holder = $4, address = $5, epoch = $6, beat = 0, released = 0
             WHERE cluster = $1 AND epoch = $2 AND beat = $3",
        )
        .bind(cluster.as_str())
        .bind(signed("epoch", seen.lease.epoch)?)
        .bind(signed("beat", seen.beat)?)
        .bind(holder)
        .bind(address)
        .bind(signed("epoch", next)?)
        .execute(self.writer()?)
        .await?;
        Ok((done.rows_affected() == 1).then(|| Lease { cluster: cluster.clone(), epoch: next }))
    }

    async fn outdate_leases(&self) -> Result<(), StoreError> {
        sqlx::query("UPDATE leases SET epoch = epoch + 1, released = 1").execute(self.writer()?).await?;
        Ok(())
    }

    async fn release_lease(&self, lease: &Lease) -> Result<(), StoreError> {
        sqlx::query("UPDATE leases SET released = 1, beat = beat + 1 WHERE cluster = $1 AND epoch = $2")
            .bind(lease.cluster.as_str())
            .bind(signed("epoch", lease.epoch)?)
            .execute(self.writer()?)
            .await?;
        Ok(())
    }
}

/// Proves inside a transaction, which holds the lock of the database, that a lease is held.
pub(crate) async fn prove(connection: &mut SqliteConnection, lease: &Lease) -> Result<(), StoreError> {
    let query = sqlx::query("SELECT 1 FROM leases WHERE cluster = $1 AND epoch = $2 AND NOT released");
    let query = query.bind(lease.cluster.as_str()).bind(signed("epoch", lease.epoch)?);
    if query.fetch_optional(connection).await?.is_none() {
        return Err(fenced(lease));
    }
    Ok(())
}
