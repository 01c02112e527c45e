use crate::StoreError;
use crate::error::unless_missing;
use crate::leases::{Lease, LeaseRecord, LeaseRow, LeaseStore, fenced};
use crate::postgres::PostgresStore;
use crate::stored::{all, signed};
use crate::transaction::Transaction;
use async_trait::async_trait;
use sqlx::PgConnection;
use vocab::ClusterName;

#[async_trait]
impl LeaseStore for PostgresStore {
    async fn leases(&self) -> Result<Vec<LeaseRecord>, StoreError> {
        all(sqlx::query_as::<_, LeaseRow>("SELECT * FROM leases ORDER BY cluster").fetch_all(&self.beats).await?)
    }

    async fn beat(&self, held: &[Lease]) -> Result<Vec<Lease>, StoreError> {
        let clusters: Vec<&str> = held.iter().map(|lease| lease.cluster.as_str()).collect();
        let epochs = held.iter().map(|lease| signed("epoch", lease.epoch)).collect::<Result<Vec<i64>, _>>()?;
        let query = sqlx::query_as::<_, (String, i64)>(
            "UPDATE leases SET beat = beat + 1
             FROM unnest($1::text[], $2::bigint[]) AS held (cluster, epoch)
             WHERE leases.cluster = held.cluster AND leases.epoch = held.epoch AND NOT released
             RETURNING leases.cluster, leases.epoch",
        );
        let still = query.bind(clusters).bind(epochs).fetch_all(&self.beats).await?;
        let is_held = |lease: &&Lease| {
            let told = |(name, epoch): &(String, i64)| {
                name == lease.cluster.as_str() && u64::try_from(*epoch).is_ok_and(|epoch| epoch == lease.epoch)
            };
            still.iter().any(told)
        };
        Ok(held.iter().filter(is_held).cloned().collect())
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
            let inserting = query.bind(cluster.as_str()).bind(holder).bind(address).execute(&self.beats).await;
            let done = inserting.map_err(unless_missing("cluster", cluster))?.rows_affected();
            return Ok((done == 1).then(|| Lease { cluster: cluster.clone(), epoch: 1 }));
        };
        let mut transaction = Transaction::begin(&self.beats, "BEGIN").await?;
        // Whoever waits longer sees it again at the next beat.
        sqlx::query("SET LOCAL lock_timeout = '1s'").execute(&mut *transaction).await?;
        // Stronger than what an update takes: it waits for the writes that have proved the epoch before.
        let locking = sqlx::query("SELECT 1 FROM leases WHERE cluster = $1 FOR UPDATE").bind(cluster.as_str());
        locking.execute(&mut *transaction).await?;
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
        sqlx::query("UPDATE leases SET epoch = epoch + 1, released = true").execute(&self.beats).await?;
        Ok(())
    }

    async fn release_lease(&self, lease: &Lease) -> Result<(), StoreError> {
        sqlx::query("UPDATE leases SET released = true, beat = beat + 1 WHERE cluster = $1 AND epoch = $2")
            .bind(lease.cluster.as_str())
            .bind(signed("epoch", lease.epoch)?)
            .execute(&self.beats)
            .await?;
        Ok(())
    }
}

/// Proves inside a transaction that a lease is held, and keeps it held until the transaction has ended. The lock is one that
/// the beats of the holder do not wait for. A holder that stands still in the middle of a statement, a COPY say, is no session
/// that is idle: its statements have a limit of their own.
pub(crate) async fn prove(connection: &mut PgConnection, lease: &Lease) -> Result<(), StoreError> {
    let query = sqlx::query(
        "SELECT set_config('statement_timeout', '10s', true) FROM leases
         WHERE cluster = $1 AND epoch = $2 AND NOT released FOR KEY SHARE",
    );
    let query = query.bind(lease.cluster.as_str()).bind(signed("epoch", lease.epoch)?);
    if query.fetch_optional(connection).await?.is_none() {
        return Err(fenced(lease));
    }
    Ok(())
}
