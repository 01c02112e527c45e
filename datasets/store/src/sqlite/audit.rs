use crate::StoreError;
use crate::audit::{AuditRecord, not_audited};
use crate::stored::Stamp;
use sqlx::SqliteConnection;
use std::borrow::Borrow;

/// Writes entries in the transaction of the writes that they describe, in their order. One statement each: it is prepared once,
/// and there is no network.
pub(crate) async fn insert_all<R>(connection: &mut SqliteConnection, records: &[R]) -> Result<(), StoreError>
where
    R: Borrow<AuditRecord> + Sync,
{
    for record in records.iter().map(Borrow::borrow) {
        sqlx::query(
            "INSERT INTO audit (at, actor, token_id, action, target, status, detail_json)
             VALUES ($1, $2, $3, $4, $5, $6, $7)",
        )
        .bind(Stamp(record.at))
        .bind(&record.actor)
        .bind(&record.token_id)
        .bind(&record.action)
        .bind(&record.target)
        .bind(i64::from(record.status))
        .bind(&record.detail_json)
        .execute(&mut *connection)
        .await
        .map_err(not_audited)?;
    }
    Ok(())
}
