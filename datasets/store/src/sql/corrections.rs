use super::audit::insert as insert_audit;
use super::dialect::clusters::lock_clusters;
use super::dialect::outcomes::LOCK_OUTCOME;
use super::dialect::usage::append_in;
use super::{SqlConnection, SqlStore};
use crate::StoreError;
use crate::corrections::{BeforeRow, CorrectionStore, MakeAuditEntry, OutcomeBefore};
use crate::stored::Stamp;
use crate::usage::hour_demand;
use async_trait::async_trait;
use vocab::{EventId, HourDemand, OutcomeKind, UsageRow};

#[async_trait]
impl CorrectionStore for SqlStore {
    async fn correct_usage(
        &self,
        rows: &[UsageRow],
        audit: MakeAuditEntry<'_, Option<HourDemand>>,
    ) -> Result<Vec<Option<HourDemand>>, StoreError> {
        let mut transaction = self.begin().await?;
        lock_clusters(&mut transaction, rows.iter().map(|row| &row.series.pool.cluster)).await?;
        let mut before = Vec::with_capacity(rows.len());
        for row in rows {
            before.push(demand(&mut transaction, row).await?);
        }
        append_in(&mut transaction, rows).await?;
        insert_audit(&mut transaction, &audit(&before)).await?;
        transaction.commit().await?;
        Ok(before)
    }

    async fn correct_outcomes(
        &self,
        corrections: &[(EventId, OutcomeKind)],
        audit: MakeAuditEntry<'_, OutcomeBefore>,
    ) -> Result<Vec<OutcomeBefore>, StoreError> {
        let mut transaction = self.begin().await?;
        let mut before = Vec::with_capacity(corrections.len());
        for (event, kind) in corrections {
            before.push(outcome(&mut transaction, event).await?);
            let setting = sqlx::query("UPDATE outcomes SET kind = $2 WHERE event_id = $1");
            setting.bind(event.as_str()).bind(kind.as_str()).execute(&mut *transaction).await?;
        }
        insert_audit(&mut transaction, &audit(&before)).await?;
        transaction.commit().await?;
        Ok(before)
    }
}

async fn demand(connection: &mut SqlConnection, row: &UsageRow) -> Result<Option<HourDemand>, StoreError> {
    let query = sqlx::query_as::<_, (i64, Option<i64>)>(
        "SELECT demand_milli, at_end_milli FROM usage JOIN series ON series.id = series_id
         WHERE cluster = $1 AND gpu_model = $2 AND organization = $3 AND hour = $4",
    );
    let pool = &row.series.pool;
    let query = query.bind(pool.cluster.as_str()).bind(pool.gpu_model.as_str()).bind(row.series.organization.as_str());
    let found = query.bind(Stamp::from(row.hour)).fetch_optional(connection).await?;
    found.map(|(demand, at_end)| hour_demand(demand, at_end)).transpose()
}

async fn outcome(connection: &mut SqlConnection, event: &EventId) -> Result<OutcomeBefore, StoreError> {
    let query = sqlx::query_as::<_, BeforeRow>(LOCK_OUTCOME);
    let found = query.bind(event.as_str()).fetch_optional(connection).await?;
    found.ok_or_else(|| StoreError::not_found("outcome", event))?.of(event)
}
