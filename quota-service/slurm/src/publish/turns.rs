//! Turns of large jobs: the job for which room is made in each pool, kept from look to look. And jobs that other limits hold back. Pure.
//!
//! A turn that ends without a start is not repeated at once: [`Retries`] says when.

#[cfg(test)]
mod tests;

use super::retries::Retries;
use super::share::{self, Part};
use super::wanted::Inputs;
use crate::config::Nesting;
use crate::view::{Hold, PoolView, SpotWaiting, family};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use vocab::{GpuModel, HorizonHours, UnixSeconds};

/// A turn ends after other jobs of the QOS took GPUs in so many looks: their priority is higher, and they may come without end.
const LOST_LOOKS: u32 = 8;
/// Or after they took its room so often: each time all has to end again that was in the way, hours where jobs last for hours.
const LOST_ROOMS: u64 = 2;

/// Another limit is believed to hold a job back for so long after Slurm named it: Slurm names ours first while that is reached.
const BELIEVED_S: i64 = 600;

type Key = (GpuModel, Arc<str>);

/// The job whose turn it is in a pool.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Turn {
    qos: Arc<str>,
    /// Number of the job, or of its array.
    family: u32,
    /// GPUs of it, or of one task.
    gpus: u64,
    /// The newest start among its tasks when the turn began.
    newest: Option<UnixSeconds>,
    /// GPUs of its QOS at the last look.
    held: u64,
    /// Looks at which that had grown.
    lost: u32,
    /// GPUs by which it grew in these.
    lost_gpus: u64,
}

/// Jobs of a QOS that another limit holds back.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Refused {
    at: UnixSeconds,
    /// GPUs of its QOS when Slurm named that limit: below this it may let them start.
    held: u64,
    families: BTreeSet<u32>,
}

/// State between two looks. It is small, and a restart begins with the job that waits longest.
#[derive(Debug, Clone, Default)]
pub struct Turns {
    current: BTreeMap<GpuModel, Turn>,
    /// The number of the last turn of each QOS.
    turned: BTreeMap<Key, u64>,
    count: u64,
    refused: BTreeMap<Key, Refused>,
    retries: Retries,
}

/// Waiting jobs of a QOS, as far as a share of the quota helps them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Demand {
    /// GPUs of these jobs.
    pub gpus: u64,
    /// GPUs of the smallest of them.
    pub least: u64,
    /// The job that our limit has held back longest.
    pub first: Option<share::First>,
    /// Number of that job.
    family: u32,
}

impl Turns {
    /// Turns after this look: each stays until its job has begun, is gone, or waits for something else.
    #[must_use]
    pub fn after(mut self, inputs: &Inputs<'_>) -> Self {
        if inputs.config.nesting == Nesting::Accounts {
            return self;
        }
        let promised = inputs.config.limited().promised();
        for (model, pool) in &inputs.view.pools {
            self.note_refused(model, pool, inputs.now);
            self.retries.note((model, pool), |qos| inputs.room(qos, model), inputs.now);
            self.check_current(model, pool, inputs.now);
            let parts = Inputs { turns: &self, ..*inputs }.parts(model, &promised);
            if parts.iter().any(|part| part.turn.is_some_and(|gpus| gpus > part.quota)) {
                self.current.remove(model);
            }
            if !self.current.contains_key(model) {
                self.begin_next(model, pool, (&parts, &promised));
            }
        }
        self
    }

    /// GPUs of the job of a QOS whose turn it is.
    #[must_use]
    pub fn gpus(&self, model: &GpuModel, qos: &str) -> Option<u64> {
        self.current.get(model).filter(|turn| &*turn.qos == qos).map(|turn| turn.gpus)
    }

    /// Jobs of a QOS that wait for our limit or for GPUs, fit the quota of its hours, and do not rest after a try without success. Of
    /// those that another limit holds back as much counts as ran when it did.
    #[must_use]
    pub fn demand(&self, model: &GpuModel, pool: &PoolView, qos: &str, quota: u64) -> Demand {
        let refused = self.refused.get(&(model.clone(), Arc::from(qos)));
        let (mut demand, mut refused_gpus) = (Demand { least: u64::MAX, ..Demand::default() }, 0);
        let mut first: Option<(UnixSeconds, u64, u32)> = None;
        for job in pool.spot_queue.iter().filter(|job| &*job.qos == qos && job.gpus > 0) {
            let needed = gpus_at_once(pool, job);
            let is_refused = refused.is_some_and(|refused| refused.families.contains(&family(job.name)));
            if needed > quota || !(job.hold.counts() || is_refused) || self.retries.rests(model, family(job.name)) {
                continue;
            }
            if is_refused {
                refused_gpus += u64::from(job.gpus);
                continue;
            }
            demand.gpus += u64::from(job.gpus);
            demand.least = demand.least.min(needed);
            if job.hold == Hold::Limit {
                let this = (job.since, needed, family(job.name));
                first = Some(first.map_or(this, |first| first.min(this)));
            }
        }
        if let Some(room) =
            refused.map(|refused| refused.held.saturating_sub(held(pool, qos))).filter(|_| refused_gpus > 0)
        {
            demand.gpus += refused_gpus.min(room);
            demand.least = demand.least.min(1);
        }
        if let Some((since, gpus, number)) = first {
            demand.first = Some(share::First { since, gpus, is_passed: is_passed(pool, qos, since, gpus) });
            demand.family = number;
        }
        demand
    }

    fn note_refused(&mut self, model: &GpuModel, pool: &PoolView, now: UnixSeconds) {
        self.refused.retain(|(of, _), refused| of != model || now.since_s(refused.at) < BELIEVED_S);
        let waiting: BTreeSet<u32> = pool.spot_queue.iter().map(|job| family(job.name)).collect();
        for (_, refused) in self.refused.iter_mut().filter(|((of, _), _)| of == model) {
            refused.families.retain(|number| waiting.contains(number));
        }
        let mut seen: BTreeMap<&Arc<str>, BTreeSet<u32>> = BTreeMap::new();
        for job in pool.spot_queue.iter().filter(|job| job.hold == Hold::OtherLimit) {
            seen.entry(&job.qos).or_default().insert(family(job.name));
        }
        for (qos, families) in seen {
            let held = held(pool, qos);
            let refused = self.refused.entry((model.clone(), qos.clone()));
            let refused = refused.or_insert(Refused { at: now, held, families: BTreeSet::new() });
            (refused.at, refused.held) = (now, held);
            refused.families.extend(families);
        }
    }

    fn check_current(&mut self, model: &GpuModel, pool: &PoolView, now: UnixSeconds) {
        let Some(mut turn) = self.current.remove(model) else { return };
        let has_begun = newest_start(pool, &turn.qos, Some(turn.family)) > turn.newest;
        let waits = |job: &&SpotWaiting| family(job.name) == turn.family && job.qos == turn.qos && job.hold.counts();
        let held = held(pool, &turn.qos);
        turn.lost += u32::from(held > turn.held);
        turn.lost_gpus += held.saturating_sub(turn.held);
        turn.held = held;
        let is_lost = turn.lost >= LOST_LOOKS || turn.lost_gpus >= LOST_ROOMS * turn.gpus.max(1);
        if !has_begun && is_lost {
            self.retries.fail((model, pool), (&turn.qos, turn.family), now);
        }
        if has_begun || self.retries.rests(model, turn.family) {
            self.count += 1;
            self.turned.insert((model.clone(), turn.qos), self.count);
        } else if pool.spot_queue.iter().any(|job| waits(&job)) {
            self.current.insert(model.clone(), turn);
        }
    }

    fn begin_next(&mut self, model: &GpuModel, pool: &PoolView, (parts, promised): (&[Part], &[(HorizonHours, &str)])) {
        let turned = |(_, name): &(_, &str)| self.turned.get(&(model.clone(), Arc::from(*name))).copied().unwrap_or(0);
        let Some(at) = share::next(parts, &promised.iter().map(turned).collect::<Vec<_>>()) else { return };
        let qos: Arc<str> = Arc::from(promised[at].1);
        let demand = self.demand(model, pool, &qos, parts[at].quota);
        let Some(first) = demand.first else { return };
        let (newest, held) = (newest_start(pool, &qos, Some(demand.family)), held(pool, &qos));
        let turn = Turn { qos, family: demand.family, gpus: first.gpus, newest, held, lost: 0, lost_gpus: 0 };
        self.current.insert(model.clone(), turn);
    }
}

/// GPUs that a job needs to begin: those of all its components of this QOS, where it is a heterogeneous one.
pub(super) fn gpus_at_once(pool: &PoolView, job: &SpotWaiting) -> u64 {
    let slurm_records::JobName::Component(number, _) = job.name else { return u64::from(job.task) };
    let all = pool.spot_queue.iter().filter(|other| family(other.name) == number && other.qos == job.qos);
    all.map(|job| u64::from(job.task)).sum()
}

/// GPUs of the jobs of a QOS that run.
fn held(pool: &PoolView, qos: &str) -> u64 {
    pool.spot.iter().filter(|job| &*job.qos == qos).map(|job| u64::from(job.gpus)).sum()
}

/// The newest start of a QOS, or of one of its jobs and arrays.
pub(super) fn newest_start(pool: &PoolView, qos: &str, number: Option<u32>) -> Option<UnixSeconds> {
    let jobs =
        pool.spot.iter().filter(|job| &*job.qos == qos && number.is_none_or(|number| family(job.name) == number));
    jobs.map(|job| job.started).max()
}

/// Whether a smaller job of the QOS runs that came later.
fn is_passed(pool: &PoolView, qos: &str, since: UnixSeconds, gpus: u64) -> bool {
    pool.spot.iter().any(|job| &*job.qos == qos && job.eligible > since && u64::from(job.gpus) < gpus)
}
