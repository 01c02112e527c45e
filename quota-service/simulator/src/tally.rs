//! The figures of a run.

use crate::cpu;
use crate::fairness::{Fair, Fairness};
use crate::layout::Aligned;
use crate::run::Outcome;
use crate::world::World;
use placement::fleet::Fleet;
use placement::kept::{KeptRate, Period};
use placement::pool::{PeriodEnd, Request};
use placement::shares::Weights;
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use vocab::{HorizonHours, OutcomeKind, TaskClass, UnixSeconds};

/// The figures of a run; the names are those of the field (DESIGN §5). Times are in seconds.
#[derive(Debug, Clone, Serialize)]
pub struct Summary {
    pub hp_queue_mean_s: f64,
    pub hp_queue_p99_s: f64,
    pub hp_jct_mean_s: f64,
    pub hp_jct_p99_s: f64,
    pub spot_jct_mean_s: f64,
    pub spot_queue_mean_s: f64,
    /// Waiting by the GPUs of tasks over all their pods: `hp` and `spot`, each by rising size.
    pub queue_by_size: BTreeMap<&'static str, Vec<SizeQueue>>,
    /// Of HP tasks, those that started on GPUs which spot had to leave for them: a grace period makes these wait.
    pub hp_evicting_share: f64,
    pub evictions: u64,
    /// Evictions of runs.
    pub eviction_rate: f64,
    pub evictions_per_spot_job: f64,
    /// Broken of kept and broken guarantee periods.
    pub guarantee_eviction_rate: f64,
    pub guarantee_periods: u64,
    /// The outcomes of promises, by their hours; none where nothing was promised.
    pub promises: Vec<Promised>,
    /// Of spot: work since the last checkpoint, what a restart takes, and what victims stand still until they have left.
    pub lost_gpu_hours: f64,
    /// Of all GPUs, from the first submission to the last.
    pub allocation_rate: f64,
    pub finished: u64,
    pub left_out: u64,
    pub rests: u64,
    pub cpu_s: f64,
    pub train_cpu_s: f64,
    /// Of the process so far.
    pub peak_rss_mib: Option<f64>,
    /// Of pods with an affinity that started, those whose GPUs lay so; of all, of HP, of spot. Only where some have one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub aligned_share: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hp_aligned_share: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spot_aligned_share: Option<f64>,
    /// Changes of the pods of elastic tasks, and those of them that took some away. Only where there are any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resizes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shrinks: Option<u64>,
    /// HP tasks whose evictions were put off. Only where there are any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deferrals: Option<u64>,
    /// How evenly organizations are served. Only where two or more have spot.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fairness: Option<Fair>,
    /// How long tasks of reserved windows waited: no other figure but the allocation counts them. Only where there are any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reserved_queue_mean_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reserved_queue_p99_s: Option<f64>,
}

/// The outcomes of the promises of so many hours, weighted by GPUs (PROMISE §2).
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Promised {
    pub hours: u8,
    pub periods: u64,
    /// K_H, the Kaplan–Meier survival at H.
    pub kept_rate: f64,
    /// One standard error of it, days left out one after the other.
    pub kept_rate_deviation: Option<f64>,
    /// 1 − K_H.
    pub broken_share: f64,
    /// The same of jobs that take at least H hours without a break; none where there are none.
    pub broken_share_long: Option<f64>,
    /// The same of periods that began while jobs came: what waits at the end of a list is worked off beside less and less HP.
    pub broken_share_loaded: Option<f64>,
}

/// How long tasks of a size waited, all their waits together.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct SizeQueue {
    /// Of a task: `1` for one or a share of one, `2-4` and so on.
    pub gpus: &'static str,
    pub tasks: u64,
    pub p50_s: f64,
    pub p99_s: f64,
    pub max_s: f64,
}

/// Sizes of tasks by their GPUs over all pods, up to so many thousandths each; the last one is for all above.
const SIZES: [(&str, u64); 5] = [("1", 1_000), ("2-4", 4_000), ("5-8", 8_000), ("9-16", 16_000), ("17+", u64::MAX)];

/// A pool hour.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Sample {
    pub at_s: i64,
    pub hp_gpus: f64,
    pub spot_gpus: f64,
    pub hp_waiting: u64,
    pub spot_waiting: u64,
    /// Of the shortest guarantee; none under policies without a quota.
    pub quota_gpus: Option<f64>,
    pub eta: Option<f64>,
    /// Since the sample before.
    pub evictions: u64,
}

/// Sums while a run goes on.
#[derive(Debug, Default)]
pub struct Tally {
    start_s: i64,
    until_s: i64,
    queues: [Vec<i64>; 2],
    /// The same by size.
    queues_by_size: [[Vec<i64>; SIZES.len()]; 2],
    jcts: [Vec<i64>; 2],
    runs: u64,
    evictions: u64,
    /// Starts for which others were evicted.
    evicting: u64,
    kept: u64,
    broken: u64,
    /// By hours, with whether the job takes that long.
    periods: BTreeMap<HorizonHours, Vec<(Period, bool)>>,
    lost_milli_gpu_s: u64,
    /// Thousandths in use, since when, and their sum over time up to `until_s`.
    in_use_milli: u64,
    since_s: i64,
    used_milli_gpu_s: u128,
    aligned: Aligned,
    resizes: u64,
    shrinks: u64,
    deferrals: u64,
    /// Of spot tasks that have ended, by organization.
    pub fairness: Fairness,
    /// The weights of organizations under the policy.
    weights: Arc<Weights>,
    /// Waits of tasks of reserved windows.
    reserved: Vec<i64>,
    course: Vec<Sample>,
    sampled_evictions: u64,
}

const fn class(request: &Request) -> usize {
    match request.gang.class {
        TaskClass::Hp => 0,
        TaskClass::Spot => 1,
    }
}

pub(crate) fn milli(request: &Request) -> u64 {
    u64::from(request.gang.pod.gpus.milli()) * u64::from(request.gang.pods)
}

impl Tally {
    #[must_use]
    pub fn new(world: &World, start: UnixSeconds) -> Self {
        let until_s = world.jobs.last().map_or(start.get(), |job| job.request.submitted.get());
        Self { start_s: start.get(), since_s: start.get(), until_s, ..Self::default() }
    }

    /// The weights by which organizations are compared.
    #[must_use]
    pub fn weighing(self, weights: Arc<Weights>) -> Self {
        Self { weights, ..self }
    }

    fn change(&mut self, at_s: i64, change: impl FnOnce(u64) -> u64) {
        let end = at_s.min(self.until_s);
        if end > self.since_s {
            self.used_milli_gpu_s += u128::from(self.in_use_milli) * (end - self.since_s) as u128;
            self.since_s = end;
        }
        self.in_use_milli = change(self.in_use_milli);
    }

    /// `held_milli` is what it has now, in thousandths of a GPU.
    pub fn started(&mut self, at_s: i64, request: &Request, held_milli: u64) {
        self.change(at_s, |used| used + held_milli);
        self.runs += u64::from(request.gang.class == TaskClass::Spot);
    }

    /// A task started; `by_eviction` says whether others were evicted for it.
    pub fn made_room(&mut self, by_eviction: bool) {
        self.evicting += u64::from(by_eviction);
    }

    /// Counts how the pods lie of a task that started.
    pub fn placed(&mut self, fleet: &Fleet, request: &Request) {
        self.aligned.count(fleet, class(request), &request.gang.task);
    }

    /// An eviction is put off.
    pub const fn deferred(&mut self) {
        self.deferrals += 1;
    }

    /// An elastic task has other pods than before.
    pub fn resized(&mut self, at_s: i64, before_milli: u64, now_milli: u64) {
        self.change(at_s, |used| used - before_milli + now_milli);
        self.resizes += 1;
        self.shrinks += u64::from(now_milli < before_milli);
    }

    pub fn evicted(&mut self, at_s: i64, held_milli: u64, lost_milli_gpu_s: u64) {
        self.change(at_s, |used| used - held_milli);
        self.evictions += 1;
        self.lost_milli_gpu_s += lost_milli_gpu_s;
    }

    pub fn finished(&mut self, at_s: i64, request: &Request, waited_s: i64, held_milli: u64) {
        self.change(at_s, |used| used - held_milli);
        self.queues[class(request)].push(waited_s);
        let size = SIZES.iter().position(|(_, most)| milli(request) <= *most).unwrap_or(SIZES.len() - 1);
        self.queues_by_size[class(request)][size].push(waited_s);
        self.jcts[class(request)].push(at_s - request.submitted.get());
    }

    /// A task of a reserved window has finished.
    pub fn reserved(&mut self, at_s: i64, waited_s: i64, held_milli: u64) {
        self.change(at_s, |used| used - held_milli);
        self.reserved.push(waited_s);
    }

    /// A guarantee period ended; `duration_s` is what its job takes without a break.
    pub fn ended(&mut self, end: &PeriodEnd, duration_s: i64) {
        let is_long = duration_s >= end.hours.seconds();
        self.periods.entry(end.hours).or_default().push((end.period, is_long));
        match end.kind {
            OutcomeKind::Kept => self.kept += 1,
            OutcomeKind::Broken => self.broken += 1,
            OutcomeKind::NodeFailure | OutcomeKind::Drain | OutcomeKind::UserDeleted => {}
        }
    }

    /// A lease ended before the task did: nothing is lost, and nobody was evicted.
    pub fn paused(&mut self, at_s: i64, request: &Request) {
        self.change(at_s, |used| used - milli(request));
    }

    /// Adds a point to the course: tasks that wait, HP and spot; quota in GPUs and eta, where there are any.
    pub fn sample<'a>(
        &mut self,
        at_s: i64,
        fleets: impl Iterator<Item = &'a Fleet>,
        [hp_waiting, spot_waiting]: [u64; 2],
        quota: Option<(f64, f64)>,
    ) {
        let (mut hp_gpus, mut spot_gpus) = (0.0, 0.0);
        for node in fleets.flat_map(Fleet::nodes) {
            hp_gpus += f64::from(node.hp_milli) / 1_000.0;
            spot_gpus += f64::from(node.spot_milli) / 1_000.0 + f64::from(node.lent.count_ones());
        }
        self.course.push(Sample {
            at_s: at_s - self.start_s,
            hp_gpus,
            spot_gpus,
            hp_waiting,
            spot_waiting,
            quota_gpus: quota.map(|(gpus, _)| gpus),
            eta: quota.map(|(_, eta)| eta),
            evictions: self.evictions - self.sampled_evictions,
        });
        self.sampled_evictions = self.evictions;
    }

    #[must_use]
    pub fn finish(mut self, world: &World, cpu: Duration, train_cpu: Duration, rests: u64) -> Outcome {
        self.change(self.until_s, |used| used);
        let window_s = (self.until_s - self.start_s).max(1);
        let all = u128::from(world.gpus()) * 1_000 * window_s as u128;
        let queue_by_size = by_size(&mut self.queues_by_size);
        let [hp_queue, spot_queue] = &mut self.queues;
        let [hp_jct, spot_jct] = &mut self.jcts;
        let share = |part: u64, of: u64| if of == 0 { 0.0 } else { part as f64 / of as f64 };
        let [aligned_share, hp_aligned_share, spot_aligned_share] = self.aligned.shares();
        let summary = Summary {
            hp_queue_mean_s: mean(hp_queue),
            hp_queue_p99_s: percentile(hp_queue, 99),
            hp_jct_mean_s: mean(hp_jct),
            hp_jct_p99_s: percentile(hp_jct, 99),
            spot_jct_mean_s: mean(spot_jct),
            spot_queue_mean_s: mean(spot_queue),
            queue_by_size,
            // HP is never evicted: each task starts once.
            hp_evicting_share: share(self.evicting, hp_jct.len() as u64),
            evictions: self.evictions,
            eviction_rate: share(self.evictions, self.runs),
            evictions_per_spot_job: share(self.evictions, spot_jct.len() as u64),
            guarantee_eviction_rate: share(self.broken, self.kept + self.broken),
            guarantee_periods: self.kept + self.broken,
            promises: promised(&self.periods, self.until_s),
            lost_gpu_hours: self.lost_milli_gpu_s as f64 / 3_600_000.0,
            allocation_rate: self.used_milli_gpu_s as f64 / (all as f64).max(1.0),
            finished: (hp_jct.len() + spot_jct.len()) as u64,
            left_out: world.left_out.len() as u64,
            rests,
            cpu_s: cpu.as_secs_f64(),
            train_cpu_s: train_cpu.as_secs_f64(),
            peak_rss_mib: cpu::peak_rss_mib(),
            aligned_share,
            hp_aligned_share,
            spot_aligned_share,
            resizes: (self.resizes > 0).then_some(self.resizes),
            shrinks: (self.resizes > 0).then_some(self.shrinks),
            deferrals: (self.deferrals > 0).then_some(self.deferrals),
            fairness: self.fairness.figures(&self.weights),
            reserved_queue_mean_s: (!self.reserved.is_empty()).then(|| mean(&self.reserved)),
            reserved_queue_p99_s: (!self.reserved.is_empty()).then(|| percentile(&mut self.reserved, 99)),
        };
        Outcome { summary, course: self.course, days: BTreeMap::new() }
    }
}

fn promised(periods: &BTreeMap<HorizonHours, Vec<(Period, bool)>>, until_s: i64) -> Vec<Promised> {
    let one = |(hours, periods): (&HorizonHours, &Vec<(Period, bool)>)| {
        let of = |is_wanted: &dyn Fn(&Period, bool) -> bool| {
            let wanted = periods.iter().filter(|(period, is_long)| is_wanted(period, *is_long));
            KeptRate::of(&wanted.map(|(period, _)| *period).collect::<Vec<_>>(), *hours)
        };
        let (all, long) = (of(&|_, _| true)?, of(&|_, is_long| is_long));
        let loaded = of(&|period, _| period.began.get() < until_s);
        Some(Promised {
            hours: hours.get(),
            periods: all.periods,
            kept_rate: all.rate,
            kept_rate_deviation: all.deviation,
            broken_share: 1.0 - all.rate,
            broken_share_long: long.map(|long| 1.0 - long.rate),
            broken_share_loaded: loaded.map(|loaded| 1.0 - loaded.rate),
        })
    };
    periods.iter().filter_map(one).collect()
}

/// By class and size; sizes of which there is no task are left out.
fn by_size(queues: &mut [[Vec<i64>; SIZES.len()]; 2]) -> BTreeMap<&'static str, Vec<SizeQueue>> {
    let of_size = |((size, _), waits): (&(&'static str, u64), &mut Vec<i64>)| {
        let [p50_s, p99_s, max_s] = [50, 99, 100].map(|hundredths| percentile(waits, hundredths));
        let queue = SizeQueue { gpus: size, tasks: waits.len() as u64, p50_s, p99_s, max_s };
        (queue.tasks > 0).then_some(queue)
    };
    let of_class = |waits: &mut [Vec<i64>; SIZES.len()]| SIZES.iter().zip(waits).filter_map(of_size).collect();
    ["hp", "spot"].into_iter().zip(queues.iter_mut().map(of_class)).collect()
}

fn mean(values: &[i64]) -> f64 {
    values.iter().map(|value| *value as f64).sum::<f64>() / values.len().max(1) as f64
}

/// The least value that at least so many hundredths do not exceed.
fn percentile(values: &mut [i64], hundredths: usize) -> f64 {
    values.sort_unstable();
    let rank = (values.len() * hundredths).div_ceil(100).max(1) - 1;
    values.get(rank).map_or(0.0, |value| *value as f64)
}
