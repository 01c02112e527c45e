use super::PostgresStore;
use crate::StoreError;
use crate::leases::{Lease, fenced};
use crate::stored::signed;
use sqlx::PgConnection;

/// Counts the beats of leases up, in one statement. Returns the leases that are still held.
pub(crate) async fn beat(store: &PostgresStore, held: &[Lease]) -> Result<Vec<Lease>, StoreError> {
    let clusters: Vec<&str> = held.iter().map(|lease| lease.cluster.as_str()).collect();
    let epochs = held.iter().map(|lease| signed("epoch", lease.epoch)).collect::<Result<Vec<i64>, _>>()?;
    let query = sqlx::query_as::<_, (String, i64)>(
        "UPDATE leases SET beat = beat + 1
         FROM unnest($1::text[], $2::bigint[]) AS held (cluster, epoch)
         WHERE leases.cluster = held.cluster AND leases.epoch = held.epoch AND NOT released
         RETURNING leases.cluster, leases.epoch",
    );
    let still = query.bind(clusters).bind(epochs).fetch_all(&store.beats).await?;
    let is_held = |lease: &&Lease| {
        let matches = |(name, epoch): &(String, i64)| {
            name == lease.cluster.as_str() && u64::try_from(*epoch).is_ok_and(|epoch| epoch == lease.epoch)
        };
        still.iter().any(matches)
    };
    Ok(held.iter().filter(is_held).cloned().collect())
}

/// Proves inside a transaction that a lease is held, and keeps it held until the transaction ends. The beats of the holder do
/// not wait for this lock. A holder that stalls within a statement, such as a COPY, is not an idle session, so its statements
/// get a limit of 10 s.
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
