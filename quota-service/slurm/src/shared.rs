//! Shared state of the program: the last view, reports that wait, and organizations that Headroom knows.

use crate::sightings::Sightings;
use crate::view::{Reading, View};
use connectors::report::{HpJobs, within_a_report};
use connectors::{Holdings, Offers, Reported};
use serving::standing::Standing;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use vocab::{
    ClusterName, GpuModel, HorizonHours, MilliGpus, Organization, Outcome, PoolId, PoolState, UnixSeconds, UsageRow,
};

/// The view with the time at which it was taken.
#[derive(Debug, Clone)]
struct Seen {
    view: Arc<View>,
    at: Instant,
}

#[derive(Debug, Default)]
struct Inner {
    seen: Option<Seen>,
    reading: Option<Arc<Reading>>,
    only_models: BTreeMap<String, GpuModel>,
    rows: Vec<UsageRow>,
    outcomes: Vec<Outcome>,
    known: BTreeMap<PoolId, BTreeSet<Organization>>,
    sightings: Sightings,
}

/// Shared by the tasks of the program.
#[derive(Debug)]
pub struct Shared {
    /// Headroom's name of the cluster.
    pub cluster: ClusterName,
    clock: fn() -> UnixSeconds,
    /// An older view is stale: nothing is reported of it, and no limit rests on it.
    stale_after: Duration,
    inner: Mutex<Inner>,
    unreadable: Standing,
}

impl Shared {
    /// Before the first look.
    #[must_use]
    pub fn new(cluster: ClusterName, clock: fn() -> UnixSeconds, stale_after: Duration) -> Arc<Self> {
        let (inner, unreadable) = (Mutex::default(), Standing::new());
        Arc::new(Self { cluster, clock, stale_after, inner, unreadable })
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Now.
    #[must_use]
    pub fn now(&self) -> UnixSeconds {
        (self.clock)()
    }

    /// A look has ended.
    pub fn saw(&self, view: View, reading: Arc<Reading>, only_models: BTreeMap<String, GpuModel>) {
        for fault in &view.faults {
            self.unreadable(fault);
        }
        let mut inner = self.inner();
        for model in view.pools.keys() {
            let pool = PoolId { cluster: self.cluster.clone(), gpu_model: model.clone() };
            inner.known.entry(pool).or_default();
        }
        inner.sightings.add(&view.look);
        inner.seen = Some(Seen { view: Arc::new(view), at: Instant::now() });
        inner.reading = Some(reading);
        inner.only_models = only_models;
    }

    /// Logs once that a record cannot be read.
    pub fn unreadable(&self, fault: &str) {
        metrics::counter!("headroom_slurm_unreadable_total").increment(1);
        if self.unreadable.begins(fault) {
            tracing::warn!(fault, "a record of Slurm cannot be read: it is not counted");
        }
    }

    /// The last view, where it is not stale.
    #[must_use]
    pub fn view(&self) -> Option<Arc<View>> {
        let seen = self.inner().seen.clone()?;
        (seen.at.elapsed() < self.stale_after).then_some(seen.view)
    }

    /// Spot runs as slurmctld has shown them.
    #[must_use]
    pub fn sightings(&self) -> Sightings {
        self.inner().sightings.clone()
    }

    /// How jobs are read; none before the first look.
    #[must_use]
    pub fn reading(&self) -> Option<Arc<Reading>> {
        self.inner().reading.clone()
    }

    /// Partitions of one GPU model alone.
    #[must_use]
    pub fn only_models(&self) -> BTreeMap<String, GpuModel> {
        self.inner().only_models.clone()
    }

    /// Pools with the organizations that Headroom knows.
    #[must_use]
    pub fn known(&self) -> BTreeMap<PoolId, BTreeSet<Organization>> {
        self.inner().known.clone()
    }

    /// Adds reports.
    pub fn add(&self, rows: Vec<UsageRow>, outcomes: Vec<Outcome>) {
        let mut inner = self.inner();
        for row in rows.iter().filter(|row| !row.series.is_pool_peak()) {
            let organizations = inner.known.entry(row.series.pool.clone()).or_default();
            organizations.insert(row.series.organization.clone());
        }
        // A later row of an hour replaces an earlier one.
        let new: BTreeSet<_> = rows.iter().map(|row| (&row.series, row.hour)).collect();
        inner.rows.retain(|old| !new.contains(&(&old.series, old.hour)));
        inner.rows.extend(rows);
        inner.outcomes.extend(outcomes);
    }

    /// Whether the view is known and not stale.
    ///
    /// # Errors
    /// The reason why it is not.
    pub fn ready(&self) -> Result<(), String> {
        match self.inner().seen.as_ref().map(|seen| seen.at.elapsed()) {
            None => Err("jobs and nodes are not known yet".to_owned()),
            Some(age) if age >= self.stale_after => {
                Err(format!("jobs and nodes were last seen {} s ago: the view is stale", age.as_secs()))
            }
            Some(_) => Ok(()),
        }
    }
}

impl Holdings for Shared {
    fn now(&self) -> UnixSeconds {
        (self.clock)()
    }

    fn promised(&self, model: &GpuModel, hours: HorizonHours) -> MilliGpus {
        let seen = self.inner().seen.clone();
        let gpus = seen.and_then(|seen| Some(seen.view.pools.get(model)?.promised_gpus(hours, (self.clock)())));
        MilliGpus::from_gpus(u32::try_from(gpus.unwrap_or(0)).unwrap_or(u32::MAX))
    }
}

impl Reported for Shared {
    fn now(&self) -> UnixSeconds {
        (self.clock)()
    }

    fn pass_to(&self, _now: UnixSeconds) {}

    fn pools(&self) -> Vec<PoolId> {
        self.inner().known.keys().cloned().collect()
    }

    fn know(&self, pool: &PoolId, organizations: Vec<Organization>) {
        self.inner().known.entry(pool.clone()).or_default().extend(organizations);
    }

    fn take(&self) -> (Vec<UsageRow>, Vec<Outcome>) {
        let mut inner = self.inner();
        (std::mem::take(&mut inner.rows), std::mem::take(&mut inner.outcomes))
    }

    fn put_back(&self, rows: Vec<UsageRow>, outcomes: Vec<Outcome>) {
        let mut inner = self.inner();
        inner.rows.extend(rows);
        inner.outcomes.extend(outcomes);
    }

    fn states(&self, _offers: &Offers, _now: UnixSeconds) -> Vec<(PoolState, HpJobs)> {
        let Some(view) = self.view() else { return Vec::new() };
        // As of the look, and not of now: it is what was seen then.
        let at = view.at.unwrap_or_else(|| (self.clock)());
        let of = |pool: PoolId| {
            let known = view.pools.get(&pool.gpu_model)?;
            Some((known.state(pool, at), within_a_report(known.distinct_hp_jobs())))
        };
        self.pools().into_iter().filter_map(of).collect()
    }
}
