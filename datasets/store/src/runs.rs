//! Training runs with their checkpoints, and the promotions of each cluster.

use crate::StoreError;
use crate::stored::{Stamp, hash, horizon, valid, whole};
use async_trait::async_trait;
use std::fmt;
use std::str::FromStr;
use vocab::{ClusterName, HorizonHours, HourStart, UnixSeconds};

/// The number of a run, written `run-12`. Numbers grow, with gaps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunId(i64);

/// A text that is not the number of a run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid run {text:?}: expected run-12 or 12")]
pub struct RunIdError {
    /// The text.
    pub text: String,
}

impl RunId {
    /// The run of this number.
    #[must_use]
    pub const fn new(id: i64) -> Self {
        Self(id)
    }

    /// Its number.
    #[must_use]
    pub const fn get(self) -> i64 {
        self.0
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "run-{}", self.0)
    }
}

impl FromStr for RunId {
    type Err = RunIdError;

    fn from_str(text: &str) -> Result<Self, RunIdError> {
        let digits = text.strip_prefix("run-").unwrap_or(text);
        // Digits only: `parse` alone would also take a sign.
        let id = digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok()).flatten();
        id.map(Self).ok_or_else(|| RunIdError { text: text.to_owned() })
    }
}

/// Data, parameters and scores of a training run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunFacts {
    /// The cluster whose usage it was trained on.
    pub cluster: ClusterName,
    /// Kind of the model.
    pub model: String,
    /// Longest horizon of its forecasts.
    pub horizon: HorizonHours,
    /// Hours of usage that a forecast reads.
    pub lookback_hours: u32,
    /// Seed of the training.
    pub seed: u64,
    /// First hour of the data.
    pub data_from: HourStart,
    /// First hour after the data.
    pub data_until: HourStart,
    /// SHA-256 of the data.
    pub data_sha256: [u8; 32],
    /// Number of series in the data.
    pub series: u32,
    /// Chosen aggregations for the bounds of the pools.
    pub aggregation: String,
    /// Parameters of the model, as the trainer writes them.
    pub parameters_json: String,
    /// Scores on held-out hours, as the trainer writes them.
    pub scores_json: String,
    /// Version of the trainer.
    pub code_version: String,
    /// Time of the run.
    pub created_at: UnixSeconds,
    /// Duration of the training, in ms.
    pub train_ms: u64,
}

/// A run to be stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewRun {
    /// Its data, parameters and scores.
    pub facts: RunFacts,
    /// The trained model, in the format of its crate.
    pub checkpoint: Vec<u8>,
}

/// A stored run, without its checkpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunRecord {
    /// Its number.
    pub id: RunId,
    /// Its data, parameters and scores.
    pub facts: RunFacts,
    /// SHA-256 of the checkpoint.
    pub checkpoint_sha256: [u8; 32],
    /// Length of the checkpoint.
    pub checkpoint_bytes: u64,
}

/// One promotion of a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Promotion {
    /// The promoted run.
    pub run_id: RunId,
    /// Time of the promotion.
    pub promoted_at: UnixSeconds,
    /// Its author.
    pub promoted_by: String,
    /// Whether a rollback from a later run promoted it.
    pub rolled_back: bool,
}

/// Training runs and promotions.
#[async_trait]
pub trait RunStore {
    /// Stores a run and its checkpoint.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] if its cluster is unknown.
    async fn insert_run(&self, run: &NewRun) -> Result<RunId, StoreError>;

    /// One run.
    ///
    /// # Errors
    /// [`StoreError::NotFound`].
    async fn run(&self, id: RunId) -> Result<RunRecord, StoreError>;

    /// Runs of one cluster or of all, newest first.
    async fn runs(&self, cluster: Option<&ClusterName>) -> Result<Vec<RunRecord>, StoreError>;

    /// The checkpoint of a run.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] if it does not match its stored checksum; [`StoreError::NotFound`].
    async fn checkpoint(&self, id: RunId) -> Result<Vec<u8>, StoreError>;

    /// Promotes the run in its cluster. To promote it again changes nothing.
    ///
    /// # Errors
    /// [`StoreError::NotFound`].
    async fn promote(&self, id: RunId, at: UnixSeconds, by: &str) -> Result<RunRecord, StoreError>;

    /// Promotes the run if its cluster has no promoted run yet, and returns whether it did: of two first runs at the same
    /// time, one serves.
    ///
    /// # Errors
    /// [`StoreError::NotFound`].
    async fn promote_first(&self, id: RunId, at: UnixSeconds, by: &str) -> Result<bool, StoreError>;

    /// Promotes the run that the current one replaced, and returns it. Each further call goes one promotion further back.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] if there is no earlier promotion; [`StoreError::NotFound`] if the cluster is unknown.
    async fn rollback(&self, cluster: &ClusterName, at: UnixSeconds, by: &str) -> Result<RunRecord, StoreError>;

    /// The promoted run of a cluster.
    async fn promoted(&self, cluster: &ClusterName) -> Result<Option<RunRecord>, StoreError>;

    /// Promotions of a cluster, newest first.
    async fn promotions(&self, cluster: &ClusterName) -> Result<Vec<Promotion>, StoreError>;
}

row! {
    pub(crate) struct RunRow {
        pub id: i64,
        pub cluster: String,
        pub model: String,
        pub horizon_hours: i64,
        pub lookback_hours: i64,
        pub seed: String,
        pub data_from: Stamp,
        pub data_until: Stamp,
        pub data_sha256: Vec<u8>,
        pub series: i64,
        pub aggregation: String,
        pub parameters_json: String,
        pub scores_json: String,
        pub code_version: String,
        pub created_at: Stamp,
        pub train_ms: i64,
        pub sha256: Vec<u8>,
        pub checkpoint_bytes: i64,
    }
}

impl TryFrom<RunRow> for RunRecord {
    type Error = StoreError;

    fn try_from(row: RunRow) -> Result<Self, StoreError> {
        let facts = RunFacts {
            cluster: valid("cluster", ClusterName::parse(&row.cluster))?,
            model: row.model,
            horizon: horizon("horizon of a run", row.horizon_hours)?,
            lookback_hours: whole("lookback of a run", row.lookback_hours)?,
            seed: valid("seed of a run", row.seed.parse())?,
            data_from: row.data_from.hour()?,
            data_until: row.data_until.hour()?,
            data_sha256: sha256("hash of a run's data", &row.data_sha256)?,
            series: whole("number of series of a run", row.series)?,
            aggregation: row.aggregation,
            parameters_json: row.parameters_json,
            scores_json: row.scores_json,
            code_version: row.code_version,
            created_at: row.created_at.0,
            train_ms: whole("training time of a run", row.train_ms)?,
        };
        Ok(Self {
            id: RunId(row.id),
            facts,
            checkpoint_sha256: sha256("hash of a checkpoint", &row.sha256)?,
            checkpoint_bytes: whole("length of a checkpoint", row.checkpoint_bytes)?,
        })
    }
}

row! {
    pub(crate) struct PromotionRow {
        pub id: i64,
        pub run_id: i64,
        pub promoted_at: Stamp,
        pub promoted_by: String,
        pub rolled_back: bool,
        pub previous: Option<i64>,
    }
}

impl From<PromotionRow> for Promotion {
    fn from(row: PromotionRow) -> Self {
        let PromotionRow { run_id, promoted_at, promoted_by, rolled_back, .. } = row;
        Self { run_id: RunId(run_id), promoted_at: promoted_at.0, promoted_by, rolled_back }
    }
}

/// A new row of promotions.
pub(crate) struct NextPromotion<'a> {
    pub cluster: &'a ClusterName,
    pub run_id: RunId,
    pub at: UnixSeconds,
    pub by: &'a str,
    pub rolled_back: bool,
    pub previous: Option<i64>,
}

pub(crate) fn sha256(what: &'static str, read: &[u8]) -> Result<[u8; 32], StoreError> {
    valid(what, read.try_into())
}

/// The bytes of a checkpoint, if they match their stored checksum.
pub(crate) fn verified(id: RunId, stored: Option<(Vec<u8>, Vec<u8>)>) -> Result<Vec<u8>, StoreError> {
    let (expected, bytes) = stored.ok_or_else(|| StoreError::not_found("run", &id))?;
    if hash(&bytes)[..] == expected[..] {
        return Ok(bytes);
    }
    Err(StoreError::corrupt(format!("the checkpoint of {id}"), &"its bytes do not match their stored checksum"))
}

pub(crate) fn nothing_before(cluster: &ClusterName) -> StoreError {
    StoreError::conflict("cluster", cluster, "there is no earlier promotion")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_read_as_it_is_written_or_by_its_number() {
        assert_eq!("run-12".parse(), Ok(RunId(12)));
        assert_eq!("12".parse(), Ok(RunId(12)));
        assert_eq!(RunId(12).to_string(), "run-12");
        for text in ["", "run-", "run--1", "-1", "+1", "run-1x", "99999999999999999999"] {
            assert!(text.parse::<RunId>().is_err(), "{text:?} is not a run");
        }
    }
}
