//! HP demand, hour by hour: the peak of each organization's GPUs, running and waiting, and of the pool's own.

use std::collections::{BTreeMap, BTreeSet};
use vocab::{ClusterName, GpuModel, HourStart, MilliGpus, Organization, PoolId, SeriesId, UnixSeconds, UsageRow};

/// One organization in one pool.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Level {
    pub model: GpuModel,
    pub organization: Organization,
}

/// Demand now, and its peak within the hour, in thousandths of a GPU.
#[derive(Debug, Clone, Copy, Default)]
struct Height {
    now: u64,
    peak: u64,
}

impl Height {
    fn change(&mut self, gpus_milli: u64, adds: bool) {
        self.now = if adds { self.now + gpus_milli } else { self.now.saturating_sub(gpus_milli) };
    }
}

/// The hour that runs, and rows of those that are over.
#[derive(Debug, Clone, Default)]
pub struct HourPeaks {
    hour: Option<HourStart>,
    /// Whether the hour was watched from its start without a gap.
    is_whole: bool,
    /// Whether all nodes and pods are known.
    has_begun: bool,
    /// Since the last look for peaks. A pod that is lifted and put back at one instant was there all the time: peaks are looked for
    /// when time has passed.
    at: Option<UnixSeconds>,
    levels: BTreeMap<Level, Height>,
    pools: BTreeMap<GpuModel, Height>,
    known: BTreeSet<Level>,
    over: Vec<Over>,
    rows: Vec<UsageRow>,
}

/// A series of an hour that is over.
#[derive(Debug, Clone)]
struct Over {
    hour: HourStart,
    model: GpuModel,
    organization: Organization,
    /// Peak of the hour and level at its end, in thousandths of a GPU.
    height: Height,
}

impl HourPeaks {
    pub(super) fn change(&mut self, level: Level, gpus: MilliGpus, adds: bool, now: UnixSeconds) {
        self.pass_to(now);
        self.pools.entry(level.model.clone()).or_default().change(gpus.milli(), adds);
        self.known.insert(level.clone());
        self.levels.entry(level).or_default().change(gpus.milli(), adds);
    }

    /// Time has come to `now`: what was asked for until then counts, and hours end.
    pub(super) fn pass_to(&mut self, now: UnixSeconds) {
        if self.at.is_none_or(|at| at < now) {
            self.look();
            self.at = Some(now);
        }
        let Ok(hour) = HourStart::from_unix_s(now.get() - now.get().rem_euclid(3_600)) else { return };
        match self.hour {
            Some(running) if hour <= running => {}
            Some(running) => {
                self.close(running);
                // Unwatched hours are missing, and the current one began watched if it follows a watched one.
                self.is_whole = self.has_begun && hour == running.plus_hours(1);
                self.hour = Some(hour);
            }
            None => self.hour = Some(hour),
        }
    }

    fn look(&mut self) {
        for height in self.levels.values_mut().chain(self.pools.values_mut()) {
            height.peak = height.peak.max(height.now);
        }
    }

    fn close(&mut self, hour: HourStart) {
        if self.is_whole {
            for level in &self.known {
                let (model, organization) = (level.model.clone(), level.organization.clone());
                let height = self.levels.get(level).copied().unwrap_or_default();
                self.over.push(Over { hour, model, organization, height });
            }
            for (model, height) in &self.pools {
                let organization = Organization::pool_peak();
                self.over.push(Over { hour, model: model.clone(), organization, height: *height });
            }
        }
        for height in self.levels.values_mut().chain(self.pools.values_mut()) {
            height.peak = height.now;
        }
    }

    pub(super) fn begin(&mut self, now: UnixSeconds) {
        self.pass_to(now);
        if !self.has_begun {
            self.has_begun = true;
            self.is_whole = now.get().rem_euclid(3_600) == 0;
        }
    }

    pub(super) const fn missed(&mut self) {
        self.is_whole = false;
    }

    /// A pool is there: without requests its demand is zero.
    pub(super) fn know_pool(&mut self, model: GpuModel) {
        self.pools.entry(model).or_default();
    }

    pub(super) fn know(&mut self, level: Level) {
        self.pools.entry(level.model.clone()).or_default();
        self.known.insert(level);
    }

    pub(super) fn now(&self, model: &GpuModel) -> BTreeMap<Organization, MilliGpus> {
        let here = self.levels.iter().filter(|(level, height)| &level.model == model && height.now > 0);
        here.map(|(level, height)| (level.organization.clone(), amount(height.now))).collect()
    }

    pub(super) fn take(&mut self, cluster: &ClusterName) -> Vec<UsageRow> {
        let over = std::mem::take(&mut self.over).into_iter().map(|over| UsageRow {
            series: SeriesId {
                pool: PoolId { cluster: cluster.clone(), gpu_model: over.model },
                organization: over.organization,
            },
            hour: over.hour,
            demand: amount(over.height.peak),
            at_end: Some(amount(over.height.now)),
        });
        let mut rows = std::mem::take(&mut self.rows);
        rows.extend(over);
        rows
    }

    pub(super) fn put_back(&mut self, rows: Vec<UsageRow>) {
        self.rows.extend(rows);
    }
}

/// More than any cluster has is the most that there is.
fn amount(gpus_milli: u64) -> MilliGpus {
    MilliGpus::from_milli(gpus_milli).unwrap_or(MilliGpus::MAX)
}
