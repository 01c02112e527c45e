//! Ended guarantee periods, each counted once however often it is reported.

use crate::StoreError;
use crate::stored::{Stamp, amount, horizon, pool, valid, whole};
use async_trait::async_trait;
use std::collections::BTreeMap;
use vocab::{EventId, HorizonHours, MilliGpus, NodeId, Outcome, OutcomeKind, PoolId, TaskId, UnixSeconds};

/// Names a recorded outcome to [`EtaStore::apply_eta_move`](crate::EtaStore::apply_eta_move).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OutcomeId(i64);

impl OutcomeId {
    pub(crate) const fn get(self) -> i64 {
        self.0
    }

    /// Outcomes are numbered from 1 in the order in which they were recorded.
    #[must_use]
    pub const fn number(self) -> i64 {
        self.0
    }
}

/// What became of one reported outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recorded {
    New,
    /// The same event with the same content was there: a repetition, counted once.
    Repeated,
    /// The same event was there with another content, which stays as it is.
    Conflicting,
}

/// An outcome that may still move eta: a kept or broken guarantee that no move has counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnspentOutcome {
    pub id: OutcomeId,
    pub guarantee_hours: HorizonHours,
    pub ended_at: UnixSeconds,
    /// As in [`Outcome`].
    pub began_at: Option<UnixSeconds>,
    pub gpus: Option<MilliGpus>,
    pub broken: bool,
}

/// What eta is judged by.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EtaOutcomes {
    /// By their end, newest first.
    pub unspent: Vec<UnspentOutcome>,
    /// When the last guarantee was kept or broken, whether a move has counted it or not.
    pub newest_ended_at: Option<UnixSeconds>,
}

/// Guarantee periods of a pool that ended in one day of UTC, with the same hours and in the same way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutcomeCount {
    pub day: UnixSeconds,
    pub guarantee_hours: HorizonHours,
    pub kind: OutcomeKind,
    pub count: u64,
}

/// A guarantee period that ended, however it did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EndedPeriod {
    pub guarantee_hours: HorizonHours,
    pub kind: OutcomeKind,
    pub ended_at: UnixSeconds,
    /// As in [`Outcome`].
    pub began_at: Option<UnixSeconds>,
    pub gpus: Option<MilliGpus>,
}

#[async_trait]
pub trait OutcomeStore {
    /// Records each event unless its id is known; answers one word for each, in their order. The same batch reported
    /// twice at once is recorded once, and both calls succeed.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] where a cluster is unknown.
    async fn record_outcomes(
        &self,
        outcomes: &[Outcome],
        received_at: UnixSeconds,
    ) -> Result<Vec<Recorded>, StoreError>;

    /// Those that ended at `since` or later, or the newest `at_least` where those are more: however many were reported,
    /// no more are read than a decision looks at.
    async fn eta_outcomes(&self, pool: &PoolId, since: UnixSeconds, at_least: u64) -> Result<EtaOutcomes, StoreError>;

    /// The outcome of the pool that ended last, of any kind.
    async fn newest_outcome(&self, pool: &PoolId) -> Result<Option<Outcome>, StoreError>;

    /// How many of the pool ended at `since` or later, for every kind.
    async fn count_outcomes(&self, pool: &PoolId, since: UnixSeconds)
    -> Result<BTreeMap<OutcomeKind, u64>, StoreError>;

    /// As [`count_outcomes`](Self::count_outcomes), by day and hours, in that order.
    async fn outcomes_by_day(&self, pool: &PoolId, since: UnixSeconds) -> Result<Vec<OutcomeCount>, StoreError>;

    /// Those of every kind that ended at `since` or later, newest first, at most `limit`: what the kept rate is made of.
    async fn ended_periods(
        &self,
        pool: &PoolId,
        since: UnixSeconds,
        limit: u32,
    ) -> Result<Vec<EndedPeriod>, StoreError>;

    /// Those of one kind that ended at `since` or later, newest first, at most `limit`.
    async fn outcomes_of_kind(
        &self,
        pool: &PoolId,
        kind: OutcomeKind,
        since: UnixSeconds,
        limit: u32,
    ) -> Result<Vec<Outcome>, StoreError>;
}

row! {
    pub(crate) struct OutcomeRow {
        pub event_id: String,
        pub cluster: String,
        pub gpu_model: String,
        pub guarantee_hours: i64,
        pub kind: String,
        pub ended_at: Stamp,
        pub began_at: Option<Stamp>,
        pub gpus_milli: Option<i64>,
        pub task: Option<String>,
        pub node: Option<String>,
    }
}

impl TryFrom<OutcomeRow> for Outcome {
    type Error = StoreError;

    fn try_from(row: OutcomeRow) -> Result<Self, StoreError> {
        Ok(Self {
            event_id: valid("event id", EventId::parse(&row.event_id))?,
            pool: pool(&row.cluster, &row.gpu_model)?,
            guarantee_hours: horizon("guarantee hours", row.guarantee_hours)?,
            kind: kind(&row.kind)?,
            ended_at: row.ended_at.0,
            began_at: row.began_at.map(|began| began.0),
            gpus: row.gpus_milli.map(|milli| amount("GPUs of an outcome", milli)).transpose()?,
            task: row.task.map(|task| valid("task", TaskId::parse(&task))).transpose()?,
            node: row.node.map(|node| valid("node", NodeId::parse(&node))).transpose()?,
        })
    }
}

pub(crate) fn kind(text: &str) -> Result<OutcomeKind, StoreError> {
    OutcomeKind::parse(text).ok_or_else(|| StoreError::corrupt("kind of an outcome", &format!("{text:?} is none")))
}

/// The first outcome of each event. By event id: two batches that arrive at once then meet at their first common event,
/// and neither waits for the other twice.
pub(crate) fn first_of_each(outcomes: &[Outcome]) -> BTreeMap<&EventId, &Outcome> {
    let mut first = BTreeMap::new();
    for outcome in outcomes {
        first.entry(&outcome.event_id).or_insert(outcome);
    }
    first
}

/// One word for each reported outcome. `stored` holds what the database now has of every reported event, and whether
/// this call put it there.
pub(crate) fn judge(outcomes: &[Outcome], mut stored: BTreeMap<EventId, (Outcome, bool)>) -> Vec<Recorded> {
    let words = outcomes.iter().map(|outcome| {
        let (known, is_new) = stored.get_mut(&outcome.event_id).expect("every reported event was read back");
        match (is_same(known, outcome), std::mem::take(is_new)) {
            (true, true) => Recorded::New,
            (true, false) => Recorded::Repeated,
            (false, _) => Recorded::Conflicting,
        }
    });
    words.collect()
}

/// Whether a repetition says what is stored. A reporter that has learned to say since when and of how many GPUs a promise was
/// says no other thing than before.
pub(crate) fn is_same(known: &Outcome, repeated: &Outcome) -> bool {
    let (began_at, gpus) = (known.began_at.and(repeated.began_at), known.gpus.and(repeated.gpus));
    *known == Outcome { began_at: began_at.or(known.began_at), gpus: gpus.or(known.gpus), ..repeated.clone() }
}

row! {
    /// A row of an outcome that is unspent.
    pub(crate) struct UnspentRow {
        pub id: i64,
        pub kind: String,
        pub guarantee_hours: i64,
        pub ended_at: Stamp,
        pub began_at: Option<Stamp>,
        pub gpus_milli: Option<i64>,
    }
}

row! {
    pub(crate) struct PeriodRow {
        pub kind: String,
        pub guarantee_hours: i64,
        pub ended_at: Stamp,
        pub began_at: Option<Stamp>,
        pub gpus_milli: Option<i64>,
    }
}

impl TryFrom<PeriodRow> for EndedPeriod {
    type Error = StoreError;

    fn try_from(row: PeriodRow) -> Result<Self, StoreError> {
        Ok(Self {
            guarantee_hours: horizon("guarantee hours", row.guarantee_hours)?,
            kind: kind(&row.kind)?,
            ended_at: row.ended_at.0,
            began_at: row.began_at.map(|began| began.0),
            gpus: row.gpus_milli.map(|milli| amount("GPUs of an outcome", milli)).transpose()?,
        })
    }
}

/// Those unspent, newest first, and the end of the newest of all.
pub(crate) fn eta_outcomes(rows: &[UnspentRow], newest: Option<Stamp>) -> Result<EtaOutcomes, StoreError> {
    let one = |row: &UnspentRow| {
        Ok(UnspentOutcome {
            id: OutcomeId(row.id),
            guarantee_hours: horizon("guarantee hours", row.guarantee_hours)?,
            ended_at: row.ended_at.0,
            began_at: row.began_at.map(|began| began.0),
            gpus: row.gpus_milli.map(|milli| amount("GPUs of an outcome", milli)).transpose()?,
            broken: kind(&row.kind)? == OutcomeKind::Broken,
        })
    };
    let unspent = rows.iter().map(one).collect::<Result<_, StoreError>>()?;
    Ok(EtaOutcomes { unspent, newest_ended_at: newest.map(|stamp| stamp.0) })
}

/// Seconds of a day of UTC.
pub(crate) const DAY_S: i64 = 86_400;

/// Rows of day since 1970, hours, kind and count.
pub(crate) fn counts_by_day(rows: &[(i64, i64, String, i64)]) -> Result<Vec<OutcomeCount>, StoreError> {
    let one = |(day, hours, text, count): &(i64, i64, String, i64)| {
        Ok(OutcomeCount {
            day: UnixSeconds::new(day.saturating_mul(DAY_S)),
            guarantee_hours: horizon("guarantee hours", *hours)?,
            kind: kind(text)?,
            count: whole("number of outcomes", *count)?,
        })
    };
    rows.iter().map(one).collect()
}

/// Rows of kind and count.
pub(crate) fn counts(rows: &[(String, i64)]) -> Result<BTreeMap<OutcomeKind, u64>, StoreError> {
    let mut counts = BTreeMap::from(OutcomeKind::ALL.map(|kind| (kind, 0)));
    for (text, count) in rows {
        counts.insert(kind(text)?, whole("number of outcomes", *count)?);
    }
    Ok(counts)
}
