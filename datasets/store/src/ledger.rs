//! The ledger of forecasts: what was said at each issue hour, and how it fared.

use crate::stored::{Stamp, horizon};
use crate::{RunId, StoreError};
use async_trait::async_trait;
use vocab::{ClusterName, HorizonHours, HourStart, UnixSeconds};

/// What the promoted run of a cluster said at one issue hour.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IssuedForecasts {
    pub cluster: ClusterName,
    /// The first hour that the forecasts are about.
    pub issue: HourStart,
    pub run_id: RunId,
    pub issued_at: UnixSeconds,
    /// As the caller writes and reads them.
    pub forecasts: Vec<u8>,
}

/// How the forecasts of one issue hour fared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScoredForecasts {
    pub issue: HourStart,
    pub run_id: RunId,
    /// As the caller writes and reads them.
    pub scores: Vec<u8>,
}

/// What the scores of a run taught.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Calibration {
    pub run_id: RunId,
    /// As the caller writes and reads it.
    pub state: Vec<u8>,
}

#[async_trait]
pub trait LedgerStore {
    /// Keeps the forecasts, unless the issue hour has some: what was said first stays. Answers whether they were kept.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] where the cluster or the run is unknown.
    async fn record_forecasts(&self, issued: &IssuedForecasts) -> Result<bool, StoreError>;

    /// `None` where the service recorded none at that hour, or retention has taken them.
    async fn issued_forecasts(
        &self,
        cluster: &ClusterName,
        issue: HourStart,
    ) -> Result<Option<IssuedForecasts>, StoreError>;

    /// The issue hours of the cluster whose forecasts were not scored yet, ascending, each with the horizon of its run.
    async fn unscored_issues(&self, cluster: &ClusterName) -> Result<Vec<(HourStart, HorizonHours)>, StoreError>;

    /// The last issue hour of the cluster that has forecasts.
    async fn newest_issue(&self, cluster: &ClusterName) -> Result<Option<HourStart>, StoreError>;

    /// Keeps the scores of an issue hour and what they taught, unless it has some: forecasts are scored once, and teach
    /// once. Answers whether they were kept.
    async fn record_scores(
        &self,
        cluster: &ClusterName,
        issue: HourStart,
        scores: &[u8],
        taught: Option<&Calibration>,
    ) -> Result<bool, StoreError>;

    /// What the scores of a run taught; `None` where none did yet.
    async fn calibration(&self, run_id: RunId) -> Result<Option<Vec<u8>>, StoreError>;

    /// Those of the cluster at `from` or later that were scored, by issue hour, ascending.
    async fn scored_forecasts(
        &self,
        cluster: &ClusterName,
        from: HourStart,
    ) -> Result<Vec<ScoredForecasts>, StoreError>;

    /// Forgets those of issue hours before `before`, scored or not, and what was taught to runs that have none left.
    /// Answers how many of the first.
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

pub(crate) fn with_horizons(read: Vec<(Stamp, i64)>) -> Result<Vec<(HourStart, HorizonHours)>, StoreError> {
    read.into_iter().map(|(issue, hours)| Ok((issue.hour()?, horizon("horizon of a run", hours)?))).collect()
}

/// What recorded forecasts hang on, for the error that says that it is missing.
pub(crate) fn owners(issued: &IssuedForecasts) -> String {
    format!("{} with {}", issued.cluster, issued.run_id)
}
