//! The ledger of forecasts: the forecasts of each issue hour, and their scores.

use crate::stored::{Stamp, horizon};
use crate::{RunId, StoreError};
use async_trait::async_trait;
use vocab::{ClusterName, HorizonHours, HourStart, UnixSeconds};

/// Forecasts of the promoted run of a cluster at one issue hour.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IssuedForecasts {
    /// The cluster.
    pub cluster: ClusterName,
    /// First hour of the forecasts.
    pub issue: HourStart,
    /// The run that made them.
    pub run_id: RunId,
    /// Time at which they were made.
    pub issued_at: UnixSeconds,
    /// The forecasts, in the format of the caller.
    pub forecasts: Vec<u8>,
}

/// Scores of the forecasts of one issue hour.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScoredForecasts {
    /// First hour of the forecasts.
    pub issue: HourStart,
    /// The run that made them.
    pub run_id: RunId,
    /// The scores, in the format of the caller.
    pub scores: Vec<u8>,
}

/// Calibration of a run, learned from its scores.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Calibration {
    /// The run.
    pub run_id: RunId,
    /// Its state, in the format of the caller.
    pub state: Vec<u8>,
}

/// An issue hour whose forecasts have no scores yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnscoredIssue {
    /// The issue hour.
    pub issue: HourStart,
    /// The run that made the forecasts.
    pub run_id: RunId,
    /// Its horizon.
    pub horizon: HorizonHours,
}

/// The ledger of forecasts.
#[async_trait]
pub trait LedgerStore {
    /// Stores the forecasts, unless the issue hour has some: the first ones stay. Returns whether they were stored.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] if the cluster or the run is unknown.
    async fn record_forecasts(&self, issued: &IssuedForecasts) -> Result<bool, StoreError>;

    /// The forecasts of an issue hour; `None` if the service recorded none, or retention has deleted them.
    async fn issued_forecasts(
        &self,
        cluster: &ClusterName,
        issue: HourStart,
    ) -> Result<Option<IssuedForecasts>, StoreError>;

    /// Issue hours of the cluster whose forecasts have no scores yet, ascending.
    async fn unscored_issues(&self, cluster: &ClusterName) -> Result<Vec<UnscoredIssue>, StoreError>;

    /// The last issue hour of the cluster with forecasts.
    async fn newest_issue(&self, cluster: &ClusterName) -> Result<Option<HourStart>, StoreError>;

    /// Stores the scores of an issue hour and the calibration that was learned from them, unless the hour has scores:
    /// forecasts are scored once, and learned from once. Returns whether they were stored.
    async fn record_scores(
        &self,
        cluster: &ClusterName,
        issue: HourStart,
        scores: &[u8],
        taught: Option<&Calibration>,
    ) -> Result<bool, StoreError>;

    /// Stores what a run has learned since its last scores.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] if the run is unknown.
    async fn record_calibration(&self, taught: &Calibration) -> Result<(), StoreError>;

    /// State of the calibration of a run; `None` before its first lesson.
    async fn calibration(&self, run_id: RunId) -> Result<Option<Vec<u8>>, StoreError>;

    /// Scores of the cluster of issue hours at `from` or later, ascending.
    async fn scored_forecasts(
        &self,
        cluster: &ClusterName,
        from: HourStart,
    ) -> Result<Vec<ScoredForecasts>, StoreError>;

    /// Deletes the forecasts of issue hours before `before`, scored or not, and the calibrations of runs that have none left.
    /// Returns the number of deleted issue hours.
    async fn delete_issues_before(&self, cluster: &ClusterName, before: HourStart) -> Result<u64, StoreError>;
}

row! {
    pub(crate) struct IssuedRow {
        pub run_id: i64,
        pub issued_at: Stamp,
        pub forecasts: Vec<u8>,
    }
}

impl IssuedRow {
    pub(crate) fn at(self, cluster: &ClusterName, issue: HourStart) -> IssuedForecasts {
        let Self { run_id, issued_at, forecasts } = self;
        IssuedForecasts {
            cluster: cluster.clone(),
            issue,
            run_id: RunId::new(run_id),
            issued_at: issued_at.0,
            forecasts,
        }
    }
}

row! {
    pub(crate) struct ScoredRow {
        pub issue_hour: Stamp,
        pub run_id: i64,
        pub scores: Vec<u8>,
    }
}

impl TryFrom<ScoredRow> for ScoredForecasts {
    type Error = StoreError;

    fn try_from(row: ScoredRow) -> Result<Self, StoreError> {
        Ok(Self { issue: row.issue_hour.hour()?, run_id: RunId::new(row.run_id), scores: row.scores })
    }
}

row! {
    pub(crate) struct UnscoredRow {
        pub issue_hour: Stamp,
        pub run_id: i64,
        pub horizon_hours: i64,
    }
}

impl TryFrom<UnscoredRow> for UnscoredIssue {
    type Error = StoreError;

    fn try_from(row: UnscoredRow) -> Result<Self, StoreError> {
        let horizon = horizon("horizon of a run", row.horizon_hours)?;
        Ok(Self { issue: row.issue_hour.hour()?, run_id: RunId::new(row.run_id), horizon })
    }
}

/// The owners of recorded forecasts, for the error that one of them is missing.
pub(crate) fn owners(issued: &IssuedForecasts) -> String {
    format!("{} with {}", issued.cluster, issued.run_id)
}
