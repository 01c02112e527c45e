use super::{SqlConnection, SqlStore};
use crate::error::unless_missing;
use crate::ledger::{
    Calibration, IssuedForecasts, IssuedRow, LedgerStore, ScoredForecasts, ScoredRow, UnscoredIssue, UnscoredRow,
    owners,
};
use crate::stored::{Stamp, all};
use crate::{RunId, StoreError};
use async_trait::async_trait;
use vocab::{ClusterName, HourStart};

#[async_trait]
impl LedgerStore for SqlStore {
    async fn record_forecasts(&self, issued: &IssuedForecasts) -> Result<bool, StoreError> {
        let mut transaction = self.begin().await?;
        let done = sqlx::query(
            "INSERT INTO issued_forecasts (cluster, issue_hour, run_id, issued_at, forecasts)
             VALUES ($1, $2, $3, $4, $5) ON CONFLICT (cluster, issue_hour) DO NOTHING",
        )
        .bind(issued.cluster.as_str())
        .bind(Stamp::from(issued.issue))
        .bind(issued.run_id.get())
        .bind(Stamp(issued.issued_at))
        .bind(&issued.forecasts)
        .execute(&mut *transaction)
        .await
        .map_err(unless_missing("cluster", owners(issued)))?;
        transaction.commit().await?;
        Ok(done.rows_affected() == 1)
    }

    async fn issued_forecasts(
        &self,
        cluster: &ClusterName,
        issue: HourStart,
    ) -> Result<Option<IssuedForecasts>, StoreError> {
        let query = sqlx::query_as::<_, IssuedRow>(
            "SELECT run_id, issued_at, forecasts FROM issued_forecasts WHERE cluster = $1 AND issue_hour = $2",
        );
        let query = query.bind(cluster.as_str()).bind(Stamp::from(issue));
        Ok(query.fetch_optional(self.readers()).await?.map(|row| row.at(cluster, issue)))
    }

    async fn unscored_issues(&self, cluster: &ClusterName) -> Result<Vec<UnscoredIssue>, StoreError> {
        let query = sqlx::query_as::<_, UnscoredRow>(
            "SELECT issue_hour, run_id, horizon_hours FROM issued_forecasts JOIN runs ON runs.id = run_id
             WHERE issued_forecasts.cluster = $1 AND scores IS NULL ORDER BY issue_hour",
        );
        all(query.bind(cluster.as_str()).fetch_all(self.readers()).await?)
    }

    async fn newest_issue(&self, cluster: &ClusterName) -> Result<Option<HourStart>, StoreError> {
        let query = sqlx::query_scalar("SELECT max(issue_hour) FROM issued_forecasts WHERE cluster = $1");
        let newest: Option<Stamp> = query.bind(cluster.as_str()).fetch_one(self.readers()).await?;
        newest.map(Stamp::hour).transpose()
    }

    async fn record_scores(
        &self,
        cluster: &ClusterName,
        issue: HourStart,
        scores: &[u8],
        taught: Option<&Calibration>,
    ) -> Result<bool, StoreError> {
        let mut transaction = self.begin().await?;
        let updating = sqlx::query(
            "UPDATE issued_forecasts SET scores = $3 WHERE cluster = $1 AND issue_hour = $2 AND scores IS NULL",
        );
        let updating = updating.bind(cluster.as_str()).bind(Stamp::from(issue)).bind(scores);
        if updating.execute(&mut *transaction).await?.rows_affected() == 0 {
            return Ok(false);
        }
        if let Some(taught) = taught {
            put_calibration(&mut transaction, taught).await?;
        }
        transaction.commit().await?;
        Ok(true)
    }

    async fn record_calibration(&self, taught: &Calibration) -> Result<(), StoreError> {
        let mut transaction = self.begin().await?;
        put_calibration(&mut transaction, taught).await?;
        Ok(transaction.commit().await?)
    }

    async fn calibration(&self, run_id: RunId) -> Result<Option<Vec<u8>>, StoreError> {
        let query = sqlx::query_scalar("SELECT state FROM calibrations WHERE run_id = $1");
        Ok(query.bind(run_id.get()).fetch_optional(self.readers()).await?)
    }

    async fn scored_forecasts(
        &self,
        cluster: &ClusterName,
        from: HourStart,
    ) -> Result<Vec<ScoredForecasts>, StoreError> {
        let query = sqlx::query_as::<_, ScoredRow>(
            "SELECT issue_hour, run_id, scores FROM issued_forecasts
             WHERE cluster = $1 AND issue_hour >= $2 AND scores IS NOT NULL ORDER BY issue_hour",
        );
        all(query.bind(cluster.as_str()).bind(Stamp::from(from)).fetch_all(self.readers()).await?)
    }

    async fn delete_issues_before(&self, cluster: &ClusterName, before: HourStart) -> Result<u64, StoreError> {
        let mut transaction = self.begin_long().await?;
        let deleting = sqlx::query("DELETE FROM issued_forecasts WHERE cluster = $1 AND issue_hour < $2");
        let deleting = deleting.bind(cluster.as_str()).bind(Stamp::from(before));
        let deleted = deleting.execute(&mut *transaction).await?.rows_affected();
        let orphans = sqlx::query(
            "DELETE FROM calibrations
             WHERE run_id IN (SELECT id FROM runs WHERE cluster = $1)
                 AND run_id NOT IN (SELECT run_id FROM issued_forecasts WHERE cluster = $1)",
        );
        orphans.bind(cluster.as_str()).execute(&mut *transaction).await?;
        transaction.commit().await?;
        Ok(deleted)
    }
}

async fn put_calibration(connection: &mut SqlConnection, taught: &Calibration) -> Result<(), StoreError> {
    let inserting = sqlx::query(
        "INSERT INTO calibrations (run_id, state) VALUES ($1, $2)
         ON CONFLICT (run_id) DO UPDATE SET state = excluded.state",
    );
    let inserting = inserting.bind(taught.run_id.get()).bind(&taught.state);
    inserting.execute(connection).await.map_err(unless_missing("run", taught.run_id))?;
    Ok(())
}
