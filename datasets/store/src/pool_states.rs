//! The last state of each pool that an external scheduler reported.

use crate::StoreError;
use crate::stored::{Stamp, amount, horizon, pool, whole};
use async_trait::async_trait;
use std::collections::BTreeMap;
use std::fmt::Write;
use vocab::{HpJob, Organization, PoolId, PoolState, TaskId, UnixSeconds};

/// A reported state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReceivedState {
    /// The state.
    pub state: PoolState,
    /// The HP jobs behind it, where the scheduler reports them.
    pub hp_jobs: Option<Vec<HpJob>>,
    /// Time of its arrival.
    pub received_at: UnixSeconds,
}

/// Reported states of pools.
#[async_trait]
pub trait PoolStateStore {
    /// Replaces the pool's state and jobs, unless the stored one has a later `as_of`: reports may overtake each other. A stored state
    /// from after `received_at` came from a wrong clock and is always replaced. Returns whether the state was stored.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] if the cluster is unknown.
    async fn put_pool_state(
        &self,
        state: &PoolState,
        hp_jobs: Option<&[HpJob]>,
        received_at: UnixSeconds,
    ) -> Result<bool, StoreError>;

    /// Deletes the pool's state, if it has one.
    async fn delete_pool_state(&self, pool: &PoolId) -> Result<(), StoreError>;

    /// The last state; `None` if none was reported.
    async fn pool_state(&self, pool: &PoolId) -> Result<Option<ReceivedState>, StoreError>;

    /// The last state of every pool that has one, without its jobs.
    async fn pool_states(&self) -> Result<BTreeMap<PoolId, PoolState>, StoreError>;
}

row! {
    pub(crate) struct StateRow {
        pub cluster: String,
        pub gpu_model: String,
        pub capacity_milli: i64,
        pub idle_milli: i64,
        pub longest_quota_wait_s: i64,
        pub as_of: Stamp,
        pub received_at: Stamp,
        pub hp_jobs: Option<String>,
    }
}

/// A state from its rows; `spot` has guarantee hours and thousandths of GPUs.
pub(crate) fn received(row: &StateRow, spot: &[(i64, i64)]) -> Result<ReceivedState, StoreError> {
    let spot = spot.iter().map(|&(hours, milli)| Ok((horizon("guarantee hours", hours)?, amount("spot GPUs", milli)?)));
    let state = PoolState {
        pool: pool(&row.cluster, &row.gpu_model)?,
        capacity: amount("capacity", row.capacity_milli)?,
        idle: amount("idle GPUs", row.idle_milli)?,
        spot_by_guarantee: spot.collect::<Result<_, StoreError>>()?,
        longest_quota_wait_s: whole("longest quota wait", row.longest_quota_wait_s)?,
        as_of: row.as_of.0,
    };
    let hp_jobs = row.hp_jobs.as_deref().map_or(Ok(None), |text| read_jobs(text, state.as_of))?;
    Ok(ReceivedState { state, hp_jobs, received_at: row.received_at.0 })
}

/// The time of the report, and a line for each job: names hold neither tabs nor ends of lines.
pub(crate) fn write_jobs(jobs: &[HpJob], as_of: UnixSeconds) -> String {
    let mut text = String::with_capacity(16 + 64 * jobs.len());
    writeln!(text, "{}", as_of.get()).expect("a string takes any text");
    for HpJob { task, organization, gpus_milli, submitted, started } in jobs {
        let started = started.map_or(String::new(), |started| started.get().to_string());
        let submitted = submitted.get();
        writeln!(text, "{task}\t{organization}\t{gpus_milli}\t{submitted}\t{started}")
            .expect("a string takes any text");
    }
    text
}

/// The jobs of a state; `None` where they belong to an earlier one: an older program replaced the state and left them.
fn read_jobs(text: &str, as_of: UnixSeconds) -> Result<Option<Vec<HpJob>>, StoreError> {
    let (time, lines) = text.split_once('\n').unwrap_or((text, ""));
    if time.parse() != Ok(as_of.get()) {
        return Ok(None);
    }
    let job = |line: &str| {
        let [task, organization, gpus_milli, submitted, started] = line.split('\t').collect::<Vec<_>>()[..] else {
            return None;
        };
        let started = if started.is_empty() { None } else { Some(UnixSeconds::new(started.parse().ok()?)) };
        Some(HpJob {
            task: TaskId::parse(task).ok()?,
            organization: Organization::parse(organization).ok()?,
            gpus_milli: gpus_milli.parse().ok()?,
            submitted: UnixSeconds::new(submitted.parse().ok()?),
            started,
        })
    };
    let damaged = |line: &str| StoreError::corrupt("reported HP jobs", &format!("the line {line:?} is no job"));
    lines.lines().map(|line| job(line).ok_or_else(|| damaged(line))).collect::<Result<_, _>>().map(Some)
}
