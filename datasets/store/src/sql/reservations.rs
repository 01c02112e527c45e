use super::audit::insert as insert_audit;
use super::dialect::clusters::lock_clusters;
use super::{SqlConnection, SqlStore};
use crate::error::unless_missing;
use crate::reservations::{
    NewReservation, ReservationRecord, ReservationRow, ReservationStore, days_text, ends, not_found,
};
use crate::stored::{Stamp, all, milli, signed};
use crate::{AuditRecord, StoreError};
use async_trait::async_trait;
use vocab::{PoolId, ReservationId, UnixSeconds};

#[async_trait]
impl ReservationStore for SqlStore {
    async fn put_reservation(
        &self,
        asked: &NewReservation,
        audit: &AuditRecord,
    ) -> Result<(ReservationRecord, bool), StoreError> {
        let mut transaction = self.begin().await?;
        // Of two equal requests at the same time, the second gets the reservation of the first.
        lock_clusters(&mut transaction, std::iter::once(&asked.what.pool.cluster)).await?;
        if let Some(equal) = equal(&mut transaction, asked).await? {
            return Ok((equal, false));
        }
        let what = &asked.what;
        let row = sqlx::query_as::<_, ReservationRow>(
            "INSERT INTO reservations
                 (cluster, gpu_model, organization, gpus_milli, from_at, to_at, days, until_at, ends_at, created_by, created_at)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
             RETURNING id, cluster, gpu_model, organization, gpus_milli, from_at, to_at, days, until_at, created_by,
             created_at, withdrawn_by, withdrawn_at",
        )
        .bind(what.pool.cluster.as_str())
        .bind(what.pool.gpu_model.as_str())
        .bind(what.first.organization.as_str())
        .bind(milli(what.first.gpus))
        .bind(Stamp(what.first.from))
        .bind(Stamp(what.first.to))
        .bind(days_text(what))
        .bind(what.repeats.as_ref().and_then(|repeats| repeats.until).map(Stamp))
        .bind(ends(what).map(Stamp))
        .bind(&asked.by)
        .bind(Stamp(asked.at))
        .fetch_one(&mut *transaction)
        .await
        .map_err(unless_missing("cluster", &what.pool.cluster))?;
        let record = row.try_into()?;
        insert_audit(&mut transaction, audit).await?;
        transaction.commit().await?;
        Ok((record, true))
    }

    async fn reservation_record(&self, id: ReservationId) -> Result<ReservationRecord, StoreError> {
        let query = sqlx::query_as::<_, ReservationRow>(
            "SELECT id, cluster, gpu_model, organization, gpus_milli, from_at, to_at, days, until_at, created_by,
             created_at, withdrawn_by, withdrawn_at
             FROM reservations WHERE id = $1",
        );
        let row = query.bind(signed("number of a reservation", id.0)?).fetch_optional(self.readers()).await?;
        row.ok_or_else(|| not_found(id))?.try_into()
    }

    async fn withdraw_reservation(
        &self,
        id: ReservationId,
        at: UnixSeconds,
        by: &str,
    ) -> Result<ReservationRecord, StoreError> {
        let mut transaction = self.begin().await?;
        let row = sqlx::query_as::<_, ReservationRow>(
            "UPDATE reservations
             SET withdrawn_at = coalesce(withdrawn_at, $2), withdrawn_by = coalesce(withdrawn_by, $3)
             WHERE id = $1
             RETURNING id, cluster, gpu_model, organization, gpus_milli, from_at, to_at, days, until_at, created_by,
             created_at, withdrawn_by, withdrawn_at",
        )
        .bind(signed("number of a reservation", id.0)?)
        .bind(Stamp(at))
        .bind(by)
        .fetch_optional(&mut *transaction)
        .await?;
        let record = row.ok_or_else(|| not_found(id))?.try_into()?;
        transaction.commit().await?;
        Ok(record)
    }

    async fn reservations(
        &self,
        of: Option<&PoolId>,
        after: UnixSeconds,
        withdrawn: bool,
    ) -> Result<Vec<ReservationRecord>, StoreError> {
        let query = sqlx::query_as::<_, ReservationRow>(
            "SELECT id, cluster, gpu_model, organization, gpus_milli, from_at, to_at, days, until_at, created_by,
             created_at, withdrawn_by, withdrawn_at
             FROM reservations
             WHERE (ends_at IS NULL OR ends_at > $1) AND ($2 OR withdrawn_at IS NULL)
                 AND (CAST($3 AS text) IS NULL OR (cluster = $3 AND gpu_model = $4))
             ORDER BY id",
        );
        let (cluster, gpu_model) = (of.map(|of| of.cluster.as_str()), of.map(|of| of.gpu_model.as_str()));
        all(query.bind(Stamp(after)).bind(withdrawn).bind(cluster).bind(gpu_model).fetch_all(self.readers()).await?)
    }
}

/// A reservation of an earlier, equal request that is not withdrawn.
async fn equal(
    connection: &mut SqlConnection,
    asked: &NewReservation,
) -> Result<Option<ReservationRecord>, StoreError> {
    let what = &asked.what;
    let rows = sqlx::query_as::<_, ReservationRow>(
        "SELECT id, cluster, gpu_model, organization, gpus_milli, from_at, to_at, days, until_at, created_by,
             created_at, withdrawn_by, withdrawn_at
             FROM reservations
         WHERE cluster = $1 AND gpu_model = $2 AND organization = $3 AND from_at = $4 AND created_by = $5
             AND withdrawn_at IS NULL
         ORDER BY id",
    )
    .bind(what.pool.cluster.as_str())
    .bind(what.pool.gpu_model.as_str())
    .bind(what.first.organization.as_str())
    .bind(Stamp(what.first.from))
    .bind(&asked.by)
    .fetch_all(connection)
    .await?;
    let records: Vec<ReservationRecord> = all(rows)?;
    Ok(records.into_iter().find(|record| record.asked.what == *what))
}
