//! Facts of the view, as quota-service takes them.

use super::jobs::hp_jobs;
use super::{Offers, report::HpJobs};
use crate::cluster::watch::Shared;
use connectors::{Holdings, Reported};
use vocab::{GpuModel, HorizonHours, MilliGpus, Organization, Outcome, PoolId, PoolState, UnixSeconds, UsageRow};

impl Holdings for Shared {
    fn now(&self) -> UnixSeconds {
        self.now()
    }

    fn promised(&self, model: &GpuModel, hours: HorizonHours) -> MilliGpus {
        self.read().pools().get(model).map_or(MilliGpus::ZERO, |pool| pool.promised(hours))
    }
}

impl Reported for Shared {
    fn now(&self) -> UnixSeconds {
        self.now()
    }

    fn pass_to(&self, now: UnixSeconds) {
        self.write().pass_to(now);
    }

    fn pools(&self) -> Vec<PoolId> {
        let view = self.read();
        view.pools().keys().map(|model| view.pool_id(model)).collect()
    }

    fn know(&self, pool: &PoolId, organizations: Vec<Organization>) {
        self.write().know(&pool.gpu_model, organizations);
    }

    fn take(&self) -> (Vec<UsageRow>, Vec<Outcome>) {
        let mut view = self.write();
        (view.take_rows(), view.take_outcomes())
    }

    fn put_back(&self, rows: Vec<UsageRow>, outcomes: Vec<Outcome>) {
        self.write().put_back(rows, outcomes);
    }

    fn states(&self, offers: &Offers, now: UnixSeconds) -> Vec<(PoolState, HpJobs)> {
        // A state as of now would be a wrong one.
        if self.is_stale() {
            return Vec::new();
        }
        let mut view = self.write();
        let mut jobs = hp_jobs(&view);
        let models: Vec<GpuModel> = view.pools().keys().cloned().collect();
        let of = |model: GpuModel| {
            let limits = offers.pools.get(&model).map(|offer| offer.limits.as_slice()).unwrap_or_default();
            let waits_s = view.longest_quota_wait_s(&model, limits, now).max(self.workload_wait_s(&model));
            let state = view.state(&model, waits_s, now)?;
            Some((state, jobs.remove(&model).unwrap_or_else(|| Ok(Vec::new()))))
        };
        models.into_iter().filter_map(of).collect()
    }
}
