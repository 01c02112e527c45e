use super::{SqlStore, dialect};
use crate::StoreError;
use crate::error::unless_missing;
use crate::leases::{Lease, LeaseRecord, LeaseRow, LeaseStore};
use crate::stored::{all, signed};
use async_trait::async_trait;
use vocab::ClusterName;

#[async_trait]
impl LeaseStore for SqlStore {
    async fn leases(&self) -> Result<Vec<LeaseRecord>, StoreError> {
        let query = sqlx::query_as::<_, LeaseRow>(
            "SELECT cluster, holder, address, epoch, beat, released
             FROM leases ORDER BY cluster",
        );
        all(query.fetch_all(self.lease_readers()).await?)
    }

    async fn beat(&self, held: &[Lease]) -> Result<Vec<Lease>, StoreError> {
        dialect::leases::beat(self, held).await
    }

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
                 VALUES ($1, $2, $3, 1, 0, false) ON CONFLICT (cluster) DO NOTHING",
            );
            let inserting = query.bind(cluster.as_str()).bind(holder).bind(address).execute(self.lease_writer()?).await;
            let done = inserting.map_err(unless_missing("cluster", cluster))?.rows_affected();
            return Ok((done == 1).then(|| Lease { cluster: cluster.clone(), epoch: 1 }));
        };
        let mut transaction = self.begin_taking(cluster).await?;
        let next = seen.lease.epoch + 1;
        let done = sqlx::query(
            "UPDATE leases SET holder = $4, address = $5, epoch = $6, beat = 0, released = false
             WHERE cluster = $1 AND epoch = $2 AND beat = $3",
        )
        .bind(cluster.as_str())
        .bind(signed("epoch", seen.lease.epoch)?)
        .bind(signed("beat", seen.beat)?)
        .bind(holder)
        .bind(address)
        .bind(signed("epoch", next)?)
        .execute(&mut *transaction)
        .await?;
        transaction.commit().await?;
        Ok((done.rows_affected() == 1).then(|| Lease { cluster: cluster.clone(), epoch: next }))
    }

    async fn outdate_leases(&self) -> Result<(), StoreError> {
        let outdating = sqlx::query("UPDATE leases SET epoch = epoch + 1, released = true");
        outdating.execute(self.lease_writer()?).await?;
        Ok(())
    }

    async fn release_lease(&self, lease: &Lease) -> Result<(), StoreError> {
        sqlx::query("UPDATE leases SET released = true, beat = beat + 1 WHERE cluster = $1 AND epoch = $2")
            .bind(lease.cluster.as_str())
            .bind(signed("epoch", lease.epoch)?)
            .execute(self.lease_writer()?)
            .await?;
        Ok(())
    }
}
