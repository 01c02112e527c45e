//! Jobs that do not begin although there is room for them: their room goes to others, and they are tried again later. Pure.
//!
//! GPUs may be free and in pieces, other jobs may have a higher priority, or Slurm may count more GPUs than the job names. No room
//! under our limit helps then, and each try has GPUs of the quota idle: so the distance between two tries grows.

use super::turns::{gpus_at_once, newest_start};
use crate::view::{Hold, PoolView, SpotWaiting, family};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use vocab::{GpuModel, UnixSeconds};

/// Room goes to others after so long without a start. Slurm tries each job of its queue within a minute, as a default.
const UNUSED_S: i64 = 120;
/// First distance between two tries.
const FIRST_S: i64 = 600;
/// Distances double up to this one.
const LONGEST_S: i64 = 7_200;

/// Tries of a job that has failed.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Retry {
    /// The newest start among its tasks at the last failure.
    newest: Option<UnixSeconds>,
    failures: u32,
    /// Time of the next try; none once that has come.
    until: Option<UnixSeconds>,
}

/// Room that a job does not take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Unused {
    since: UnixSeconds,
    /// The newest start of its QOS then.
    newest: Option<UnixSeconds>,
}

/// Jobs that were tried without success, by the number of the job or of its array.
#[derive(Debug, Clone, Default)]
pub struct Retries {
    failed: BTreeMap<(GpuModel, u32), Retry>,
    unused: BTreeMap<(GpuModel, Arc<str>, u32), Unused>,
}

impl Retries {
    /// Whether a job waits for its next try.
    #[must_use]
    pub fn rests(&self, model: &GpuModel, number: u32) -> bool {
        self.failed.get(&(model.clone(), number)).is_some_and(|retry| retry.until.is_some())
    }

    /// Notes the jobs of a look, with the room that the limit of each QOS leaves.
    pub fn note(
        &mut self,
        (model, pool): (&GpuModel, &PoolView),
        room: impl Fn(&str) -> Option<u64>,
        now: UnixSeconds,
    ) {
        self.forget(model, pool);
        for (_, retry) in self.failed.iter_mut().filter(|((of, _), _)| of == model) {
            retry.until = retry.until.filter(|until| *until > now);
        }
        let before = std::mem::take(&mut self.unused);
        let (of_model, others) = before.into_iter().partition(|((of, ..), _)| of == model);
        self.unused = others;
        let (before, users): (BTreeMap<_, Unused>, _) = (of_model, self.users(model, pool));
        let rooms: BTreeMap<&Arc<str>, (u64, Option<UnixSeconds>)> = pool
            .spot_queue
            .iter()
            .map(|job| &job.qos)
            .collect::<BTreeSet<_>>()
            .into_iter()
            .filter_map(|qos| Some((qos, (room(qos)?, newest_start(pool, qos, None)))))
            .collect();
        for job in pool.spot_queue.iter().filter(|job| job.hold.counts() && job.gpus > 0) {
            let (Some((room, newest)), number) = (rooms.get(&job.qos), family(job.name)) else { continue };
            let has_room = gpus_at_once(pool, job) <= *room && !self.rests(model, number);
            if !has_room || users.iter().all(|user| *user == number) {
                continue;
            }
            let key = (model.clone(), job.qos.clone(), number);
            let same = before.get(&key).filter(|unused| unused.newest == *newest).copied();
            let unused = same.unwrap_or(Unused { since: now, newest: *newest });
            if now.since_s(unused.since) >= UNUSED_S {
                self.fail((model, pool), (&job.qos, number), now);
            } else {
                self.unused.insert(key, unused);
            }
        }
    }

    /// A job was tried and did not begin.
    pub fn fail(&mut self, (model, pool): (&GpuModel, &PoolView), (qos, number): (&str, u32), now: UnixSeconds) {
        let newest = newest_start(pool, qos, Some(number));
        let key = (model.clone(), number);
        let retry = self.failed.entry(key).or_insert(Retry { newest, failures: 0, until: None });
        if retry.until.is_none() {
            let distance_s = FIRST_S.saturating_mul(1 << retry.failures.min(16)).min(LONGEST_S);
            (retry.newest, retry.until) = (newest, Some(now.plus_s(distance_s)));
            retry.failures += 1;
        }
    }

    /// Jobs that could use the room of another one: our limit alone holds them back.
    fn users(&self, model: &GpuModel, pool: &PoolView) -> BTreeSet<u32> {
        let idle = pool.idle_gpus();
        let could = |job: &&SpotWaiting| job.hold == Hold::Limit && job.gpus > 0 && gpus_at_once(pool, job) <= idle;
        let users = pool.spot_queue.iter().filter(could).map(|job| family(job.name));
        users.filter(|number| !self.rests(model, *number)).collect()
    }

    /// Forgets jobs that wait no more, and arrays of which a task has begun.
    fn forget(&mut self, model: &GpuModel, pool: &PoolView) {
        let waiting: BTreeMap<u32, &Arc<str>> =
            pool.spot_queue.iter().map(|job| (family(job.name), &job.qos)).collect();
        self.failed.retain(|(of, number), retry| {
            let waits = waiting.get(number);
            of != model || waits.is_some_and(|qos| newest_start(pool, qos, Some(*number)) <= retry.newest)
        });
    }
}
