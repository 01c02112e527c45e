//! Outcomes: ended guarantee periods, each counted once however often it is reported.

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

    /// Its number: from 1, in the order in which outcomes were recorded.
    #[must_use]
    pub const fn number(self) -> i64 {
        self.0
    }
}

/// Result of one reported outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recorded {
    /// The event was unknown, and is now stored.
    New,
    /// The event was stored with the same content: a repetition, counted once.
    Repeated,
    /// The event was stored with other content, which stays.
    Conflicting,
}

/// An outcome that may still move eta: a kept or broken guarantee that no move has counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnspentOutcome {
    /// Its number, for the move that counts it.
    pub id: OutcomeId,
    /// The promised hours.
    pub guarantee_hours: HorizonHours,
    /// End of the period.
    pub ended_at: UnixSeconds,
    /// Begin of the period, if it was reported.
    pub began_at: Option<UnixSeconds>,
    /// GPUs of the promise, if they were reported.
    pub gpus: Option<MilliGpus>,
    /// Whether the guarantee was broken, not kept.
    pub broken: bool,
}

/// The outcomes that decide a move of eta.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EtaOutcomes {
    /// By their end, newest first.
    pub unspent: Vec<UnspentOutcome>,
    /// Time of the last kept or broken guarantee, counted by a move or not.
    pub newest_ended_at: Option<UnixSeconds>,
}

/// Number of guarantee periods of a pool that ended on one day, with the same hours and of the same kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutcomeCount {
    /// Begin of the day, in UTC.
    pub day: UnixSeconds,
    /// The promised hours.
    pub guarantee_hours: HorizonHours,
    /// How the periods ended.
    pub kind: OutcomeKind,
    /// Number of periods.
    pub count: u64,
}

/// An ended guarantee period of any kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EndedPeriod {
    /// The promised hours.
    pub guarantee_hours: HorizonHours,
    /// How it ended.
    pub kind: OutcomeKind,
    /// End of the period.
    pub ended_at: UnixSeconds,
    /// Begin of the period, if it was reported.
    pub began_at: Option<UnixSeconds>,
    /// GPUs of the promise, if they were reported.
    pub gpus: Option<MilliGpus>,
}

/// Outcomes of guarantee periods.
#[async_trait]
pub trait OutcomeStore {
    /// Stores each event whose id is unknown. Returns one result for each outcome, in their order. If the same batch is
    /// reported twice at once, it is stored once and both calls succeed.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] if a cluster is unknown.
    async fn record_outcomes(
        &self,
        outcomes: &[Outcome],
        received_at: UnixSeconds,
    ) -> Result<Vec<Recorded>, StoreError>;

    /// Unspent outcomes that ended at `since` or later, or the newest `at_least` if those are more: a decision reads no
    /// others, however many were reported.
    async fn eta_outcomes(&self, pool: &PoolId, since: UnixSeconds, at_least: u64) -> Result<EtaOutcomes, StoreError>;

    /// The outcome of the pool that ended last, of any kind.
    async fn newest_outcome(&self, pool: &PoolId) -> Result<Option<Outcome>, StoreError>;

    /// Number of outcomes of each kind that ended at `since` or later.
    async fn count_outcomes(&self, pool: &PoolId, since: UnixSeconds)
    -> Result<BTreeMap<OutcomeKind, u64>, StoreError>;

    /// As [`count_outcomes`](Self::count_outcomes), by day, then guarantee hours, then kind.
    async fn outcomes_by_day(&self, pool: &PoolId, since: UnixSeconds) -> Result<Vec<OutcomeCount>, StoreError>;

    /// Periods of every kind that ended at `since` or later, newest first, at most `limit`. The kept rate is computed from
    /// them.
    async fn ended_periods(
        &self,
        pool: &PoolId,
        since: UnixSeconds,
        limit: u32,
    ) -> Result<Vec<EndedPeriod>, StoreError>;

    /// Outcomes of one kind that ended at `since` or later, newest first, at most `limit`.
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
    OutcomeKind::parse(text)
        .ok_or_else(|| StoreError::corrupt("kind of an outcome", &format!("unknown value {text:?}")))
}

/// The first outcome of each event, in the order of event ids: two batches that arrive at once then meet at their first
/// common event, and cannot deadlock.
pub(crate) fn first_of_each(outcomes: &[Outcome]) -> BTreeMap<&EventId, &Outcome> {
    let mut first = BTreeMap::new();
    for outcome in outcomes {
        first.entry(&outcome.event_id).or_insert(outcome);
    }
    first
}

/// The result of each reported outcome. `stored` holds the stored outcome of each reported event, and whether this call
/// inserted it.
pub(crate) fn judge(outcomes: &[Outcome], mut stored: BTreeMap<EventId, (Outcome, bool)>) -> Vec<Recorded> {
    let results = outcomes.iter().map(|outcome| {
        let (known, is_new) = stored.get_mut(&outcome.event_id).expect("every reported event was read back");
        match (is_same(known, outcome), std::mem::take(is_new)) {
            (true, true) => Recorded::New,
            (true, false) => Recorded::Repeated,
            (false, _) => Recorded::Conflicting,
        }
    });
    results.collect()
}

/// Whether a repetition has the content that is stored. Begin and GPUs of the promise count only if both have them: a newer
/// version of a reporter may add them.
fn is_same(known: &Outcome, repeated: &Outcome) -> bool {
    let (began_at, gpus) = (known.began_at.and(repeated.began_at), known.gpus.and(repeated.gpus));
    *known == Outcome { began_at: began_at.or(known.began_at), gpus: gpus.or(known.gpus), ..repeated.clone() }
}

row! {
    /// An unspent outcome.
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

/// Unspent outcomes, newest first, and the end of the newest outcome of all.
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
pub(crate) const DAY_S: i64 = vocab::SECONDS_PER_DAY;

/// From rows of day since 1970, hours, kind and count.
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

/// From rows of kind and count.
pub(crate) fn counts(rows: &[(String, i64)]) -> Result<BTreeMap<OutcomeKind, u64>, StoreError> {
    let mut counts = BTreeMap::from(OutcomeKind::ALL.map(|kind| (kind, 0)));
    for (text, count) in rows {
        counts.insert(kind(text)?, whole("number of outcomes", *count)?);
    }
    Ok(counts)
}
