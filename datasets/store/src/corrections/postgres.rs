use super::{BeforeRow, CorrectionStore, OutcomeBefore, Tell};
use crate::StoreError;
use crate::audit::postgres::insert as insert_audit;
use crate::postgres::PostgresStore;
use crate::stored::{Stamp, amount};
use crate::usage::postgres::append_in;
use async_trait::async_trait;
use sqlx::PgConnection;
use std::collections::BTreeSet;
use vocab::{EventId, MilliGpus, OutcomeKind, UsageRow};

#[async_trait]
impl CorrectionStore for PostgresStore {
    async fn correct_usage(
        &self,
        rows: &[UsageRow],
        tell: Tell<'_, Option<MilliGpus>>,
    ) -> Result<Vec<Option<MilliGpus>>, StoreError> {
        let mut transaction = self.begin().await?;
        // As an append does: what is read now is what it will replace.
        let clusters: BTreeSet<&str> = rows.iter().map(|row| row.series.pool.cluster.as_str()).collect();
        sqlx::query("SELECT 1 FROM clusters WHERE name = ANY ($1) ORDER BY name FOR UPDATE")
            .bind(clusters.into_iter().collect::<Vec<_>>())
            .execute(&mut *transaction)
            .await?;
        let mut before = Vec::with_capacity(rows.len());
        for row in rows {
            before.push(demand(&mut transaction, row).await?);
        }
        append_in(&mut transaction, rows).await?;
        insert_audit(&mut transaction, &tell(&before)).await?;
        transaction.commit().await?;
        Ok(before)
    }

    async fn correct_outcomes(
        &self,
        corrections: &[(EventId, OutcomeKind)],
        tell: Tell<'_, OutcomeBefore>,
    ) -> Result<Vec<OutcomeBefore>, StoreError> {
        let mut transaction = self.begin().await?;
        let mut before = Vec::with_capacity(corrections.len());
        for (event, kind) in corrections {
            before.push(outcome(&mut transaction, event).await?);
            let setting = sqlx::query("UPDATE outcomes SET kind = $2 WHERE event_id = $1");
            setting.bind(event.as_str()).bind(kind.as_str()).execute(&mut *transaction).await?;
        }
        insert_audit(&mut transaction, &tell(&before)).await?;
        transaction.commit().await?;
        Ok(before)
    }
}

async fn demand(connection: &mut PgConnection, row: &UsageRow) -> Result<Option<MilliGpus>, StoreError> {
    let query = sqlx::query_scalar::<_, i64>(
        "SELECT demand_milli FROM usage JOIN series ON series.id = series_id
         WHERE cluster = $1 AND gpu_model = $2 AND organization = $3 AND hour = $4",
    );
    let pool = &row.series.pool;
    let query = query.bind(pool.cluster.as_str()).bind(pool.gpu_model.as_str()).bind(row.series.organization.as_str());
    let found = query.bind(Stamp::from(row.hour)).fetch_optional(connection).await?;
    found.map(|milli| amount("demand", milli)).transpose()
}

async fn outcome(connection: &mut PgConnection, event: &EventId) -> Result<OutcomeBefore, StoreError> {
    let query = sqlx::query_as::<_, BeforeRow>(
        "SELECT cluster, gpu_model, kind, spent_by IS NOT NULL AS spent FROM outcomes WHERE event_id = $1 FOR UPDATE",
    );
    let found = query.bind(event.as_str()).fetch_optional(connection).await?;
    found.ok_or_else(|| StoreError::not_found("outcome", event))?.of(event)
}
