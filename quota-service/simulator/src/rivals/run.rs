//! A run under leases: [`leases`](crate::rivals::leases) decides in rounds, a renewal costs time.

use crate::cpu;
use crate::rivals::leases::{LeaseChange, LeaseSettings, Leases};
use crate::run::{Outcome, RunError};
use crate::tally::{Tally, milli};
use crate::world::World;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::time::Duration;
use vocab::{SECONDS_PER_HOUR, TaskClass, TaskId, UnixSeconds};

/// Between two rounds, and what a renewal loses (BASELINES §2).
const ROUND_S: i64 = 300;
const RENEWAL_S: i64 = 120;

/// Where a job stands: when it will be done if its lease goes on, or what is left of it.
#[derive(Debug, Clone, Copy)]
struct Progress {
    left_s: i64,
    done_at: i64,
    queued: i64,
    waited_s: i64,
    version: u32,
}

struct Simulation<'a> {
    world: &'a World,
    pools: Vec<Leases>,
    jobs: Vec<Progress>,
    number_of: BTreeMap<&'a TaskId, u32>,
    done: BinaryHeap<Reverse<(i64, u32, u32)>>,
    tally: Tally,
}

/// Runs a world to the end of its last job.
///
/// # Errors
/// A node of the world is none.
pub fn run(world: &World) -> Result<Outcome, RunError> {
    let before = cpu::of_process();
    let Some(first) = world.jobs.first() else {
        return Ok(Tally::new(world, UnixSeconds::new(0)).finish(world, Duration::ZERO, Duration::ZERO, 0));
    };
    let mut pools = Vec::new();
    for (_, nodes) in &world.pools {
        let mut pool = Leases::new(LeaseSettings::default());
        for node in nodes {
            pool.add(node.id.clone(), node.gpus, node.cpu_milli).map_err(placement::pool::Fault::Node)?;
        }
        pools.push(pool);
    }
    let fresh = |left_s| Progress { left_s, done_at: 0, queued: 0, waited_s: 0, version: 0 };
    let start = first.request.submitted;
    let mut simulation = Simulation {
        world,
        pools,
        jobs: world.jobs.iter().map(|job| fresh(job.duration_s)).collect(),
        number_of: world.jobs.iter().zip(0..).map(|(job, number)| (&job.request.gang.task, number)).collect(),
        done: BinaryHeap::new(),
        tally: Tally::new(world, start),
    };
    simulation.play(start.get());
    let cpu = cpu::of_process().saturating_sub(before);
    Ok(simulation.tally.finish(world, cpu, Duration::ZERO, 0))
}

impl Simulation<'_> {
    fn play(&mut self, start: i64) {
        let (mut now, mut next_job) = (start, 0);
        loop {
            while let Some(job) = self.world.jobs.get(next_job).filter(|job| job.request.submitted.get() <= now) {
                let at = job.request.submitted;
                self.finish_until(at.get());
                self.jobs[next_job].queued = at.get();
                self.pools[self.world.pool_of[next_job] as usize].submit(job.request.gang.clone(), at);
                next_job += 1;
            }
            self.finish_until(now);
            for pool in 0..self.pools.len() {
                for change in self.pools[pool].round(UnixSeconds::new(now)) {
                    self.follow(now, &change);
                }
            }
            if (now - start).rem_euclid(SECONDS_PER_HOUR) < ROUND_S {
                let waiting = |class| self.pools.iter().map(|pool| pool.waiting(class) as u64).sum();
                let waiting = [TaskClass::Hp, TaskClass::Spot].map(waiting);
                self.tally.sample(now, self.pools.iter().map(Leases::fleet), waiting, None);
            }
            if next_job == self.world.jobs.len() && self.pools.iter().all(Leases::is_empty) {
                return;
            }
            now += ROUND_S;
        }
    }

    /// Tasks whose work is done by then leave.
    fn finish_until(&mut self, until: i64) {
        while let Some(Reverse((at, number, version))) =
            self.done.peek().copied().filter(|Reverse((at, ..))| *at <= until)
        {
            self.done.pop();
            if self.jobs[number as usize].version != version {
                continue;
            }
            let request = &self.world.jobs[number as usize].request;
            self.tally.finished(at, request, self.jobs[number as usize].waited_s, milli(request));
            self.pools[self.world.pool_of[number as usize] as usize].finish(&request.gang.task);
        }
    }

    fn follow(&mut self, now: i64, change: &LeaseChange) {
        let (LeaseChange::Started { task } | LeaseChange::Renewed { task } | LeaseChange::Ended { task }) = change;
        let number = self.number_of[task];
        let request = &self.world.jobs[number as usize].request;
        let progress = &mut self.jobs[number as usize];
        progress.version += 1;
        match change {
            LeaseChange::Started { .. } => {
                // Its first start loses nothing; a later one begins with what a renewal costs.
                let costs = if progress.version > 1 { RENEWAL_S } else { 0 };
                progress.waited_s += now - progress.queued;
                progress.done_at = now.saturating_add(progress.left_s).saturating_add(costs);
                self.tally.started(now, request, milli(request));
            }
            LeaseChange::Renewed { .. } => progress.done_at = progress.done_at.saturating_add(RENEWAL_S),
            LeaseChange::Ended { .. } => {
                progress.left_s = progress.done_at - now;
                progress.queued = now;
                self.tally.paused(now, request);
                return;
            }
        }
        self.done.push(Reverse((progress.done_at, number, progress.version)));
    }
}
