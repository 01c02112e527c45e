use crate::StoreError;
use crate::audit::{AuditRecord, not_audited};
use crate::stored::Stamp;
use sqlx::PgConnection;
use std::borrow::Borrow;

/// Writes entries in the transaction of the writes that they describe, in their order and in one statement.
pub(crate) async fn insert_all<R>(connection: &mut PgConnection, records: &[R]) -> Result<(), StoreError>
where
    R: Borrow<AuditRecord> + Sync,
{
    if records.is_empty() {
        return Ok(());
    }
    let each = || records.iter().map(Borrow::borrow);
    let texts = |text: fn(&AuditRecord) -> &str| each().map(text).collect::<Vec<_>>();
    let optional = |text: fn(&AuditRecord) -> Option<&str>| each().map(text).collect::<Vec<_>>();
    sqlx::query(
        "INSERT INTO audit (at, actor, token_id, action, target, status, detail_json)
         SELECT * FROM unnest($1::timestamptz[], $2::text[], $3::text[], $4::text[], $5::text[], $6::bigint[], $7::text[])",
    )
    .bind(each().map(|record| Stamp(record.at)).collect::<Vec<_>>())
    .bind(texts(|record| &record.actor))
    .bind(optional(|record| record.token_id.as_deref()))
    .bind(texts(|record| &record.action))
    .bind(texts(|record| &record.target))
    .bind(each().map(|record| i64::from(record.status)).collect::<Vec<_>>())
    .bind(optional(|record| record.detail_json.as_deref()))
    .execute(connection)
    .await
    .map_err(not_audited)?;
    Ok(())
}
