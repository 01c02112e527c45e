//! Answer to each Workload. Pure: time is passed in.

use crate::headroom::Offers;
use crate::view::View;
use crate::view::facts::{Life, PodFacts, Uid};
use crate::workloads::{CheckFacts, CheckState, WorkloadFacts};
use placement::{Limit, Refusal, Stage};
use std::collections::BTreeMap;
use vocab::{GpuModel, HorizonHours, MilliGpus, UnixSeconds};

/// GPUs of a Workload that is `Ready` count for so long without its pods: gangs start slowly, since images are
/// pulled and pods are made by the controllers of jobs.
pub const ASSUMED_S: i64 = 600;
/// An eviction gives the reservation back within seconds; after so long it is held.
pub const HELD_AFTER_S: i64 = 120;
/// Kueue evicts a Workload within so long after `Retry`, where it does not keep its reservation.
const RETRY_EVICTS_WITHIN_S: i64 = 10;
/// The first wait of a Workload that does not fit; it doubles with each time. Each try costs Kueue a reservation and an eviction.
pub const RETRY_LEAST_S: u64 = 30;
/// Quotas are renewed every 300 s: a longer wait misses one.
pub const RETRY_MOST_S: u64 = 300;
/// Bytes that Kueue takes in a message.
pub const MESSAGE_MOST: usize = 32_768;

/// Message to a Workload that Kueue admitted before its check was there.
const GOES_ON: &str = "it was admitted before this check was there, and goes on: nothing was asked of the quota";

/// Message to a Workload of HP.
const OF_HP: &str = "it is high-priority: guaranteed hours are for spot, and nothing was asked of the quota";

/// Message to a Workload whose pods hold nothing that is promised.
const OF_NOTHING: &str = "it asks for no GPUs that are counted (gpu_resource, device_classes), and is guaranteed none";

/// Answer to a Workload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// The quota has room.
    Ready {
        /// Text of the answer.
        message: String,
    },
    /// The quota has no room now.
    Retry {
        /// Text of the answer.
        message: String,
        /// Wait until the next try, s.
        after_s: u64,
    },
    /// The Workload can never be guaranteed.
    Rejected {
        /// Text of the answer.
        message: String,
    },
}

impl Answer {
    /// State of the check for this answer.
    #[must_use]
    pub const fn state(&self) -> CheckState {
        match self {
            Self::Ready { .. } => CheckState::Ready,
            Self::Retry { .. } => CheckState::Retry,
            Self::Rejected { .. } => CheckState::Rejected,
        }
    }

    /// At most as many bytes as Kueue takes.
    #[must_use]
    pub fn message(&self) -> &str {
        let (Self::Ready { message } | Self::Retry { message, .. } | Self::Rejected { message }) = self;
        let mut end = message.len().min(MESSAGE_MOST);
        while !message.is_char_boundary(end) {
            end -= 1;
        }
        &message[..end]
    }
}

/// Inputs of the decision.
#[derive(Debug, Clone, Copy)]
pub struct World<'a> {
    /// Cluster.
    pub view: &'a View,
    /// Quotas.
    pub offers: &'a Offers,
    /// GPU models by flavor.
    pub flavors: &'a BTreeMap<String, GpuModel>,
    /// Known number of `Retry` answers by UID.
    pub tries: &'a BTreeMap<String, u32>,
    /// Current time.
    pub now: UnixSeconds,
}

/// Answers to write, and waits to report.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Planned {
    /// Answers, the oldest Workload first.
    pub answers: Vec<(WorkloadFacts, Answer)>,
    /// Slices without room, and why: they are not answered, since any other answer than `Ready` would evict the pods that run.
    pub growing: Vec<(WorkloadFacts, String)>,
    /// The longest that a Workload waits because quota refuses it, s, by pool.
    pub waits_s: BTreeMap<GpuModel, u64>,
}

enum Verdict {
    Ready(BTreeMap<GpuModel, u64>),
    /// `pool` is the one whose quota refuses it, where that is why.
    Later {
        why: String,
        pool: Option<GpuModel>,
    },
    Never {
        why: String,
    },
}

/// GPUs of Workloads that were let through and whose pods are not seen yet.
#[derive(Default)]
struct Assumed(Vec<(GpuModel, HorizonHours, u64)>);

impl Assumed {
    fn add(&mut self, workload: &WorkloadFacts, by_model: &BTreeMap<GpuModel, u64>) {
        let Ok(Some(hours)) = workload.hours else { return };
        self.0.extend(by_model.iter().map(|(model, gpus)| (model.clone(), hours, *gpus)));
    }

    /// GPUs left of each limit.
    fn leave(&self, model: &GpuModel, limits: &[Limit]) -> Vec<Limit> {
        let of = |limit: &Limit| Limit { quota: limit.quota.left_after(self.gpus(model, limit.hours)), ..*limit };
        limits.iter().map(of).collect()
    }

    /// Those that are promised for at least so many hours.
    fn gpus(&self, model: &GpuModel, least: HorizonHours) -> MilliGpus {
        let counted = self.0.iter().filter(|(of, hours, _)| of == model && *hours >= least);
        let gpus = counted.map(|(_, _, gpus)| gpus).sum::<u64>();
        MilliGpus::from_gpus(u32::try_from(gpus).unwrap_or(u32::MAX))
    }
}

/// Answers those that wait for us, the oldest first.
#[must_use]
pub fn plan(workloads: &[WorkloadFacts], world: &World<'_>) -> Planned {
    let mut planned = Planned::default();
    let running = Running::of(world.view);
    let mut assumed = assumed(workloads, &running, world);
    let mut open: Vec<(&WorkloadFacts, CheckFacts)> =
        workloads.iter().filter_map(|one| Some((one, one.check.filter(|check| is_open(one, check))?))).collect();
    open.sort_by_key(|(one, _)| (one.created, &one.uid));
    let unanswered = workloads.iter().filter(|one| is_unanswered(one));
    planned.answers.extend(unanswered.map(|one| (one.clone(), Answer::Ready { message: GOES_ON.to_owned() })));
    for (workload, check) in open {
        let verdict = verdict(workload, &assumed, &running, world);
        if let Verdict::Later { pool: Some(pool), .. } = &verdict {
            let waits_s = u64::try_from(world.now.since_s(workload.created)).unwrap_or(0);
            let longest = planned.waits_s.entry(pool.clone()).or_insert(0);
            *longest = waits_s.max(*longest);
        }
        if !is_asked(workload, &check, world.now) {
            continue;
        }
        let answer = match verdict {
            Verdict::Ready(by_model) => {
                assumed.add(workload, &by_model);
                Answer::Ready { message: ready(workload) }
            }
            Verdict::Later { why, .. } | Verdict::Never { why } if replaces_running(workload, workloads) => {
                planned.growing.push((workload.clone(), why));
                continue;
            }
            Verdict::Later { why, .. } => {
                let tries = world.tries.get(&workload.uid).copied().unwrap_or(0).max(check.retries);
                Answer::Retry { message: why, after_s: retry_after_s(tries) }
            }
            Verdict::Never { why } => Answer::Rejected { message: why },
        };
        planned.answers.push((workload.clone(), answer));
    }
    planned
}

/// Workloads whose reservation stands though they do not run, and whose GPUs are nobody's. Some versions of Kueue keep it while they evict
/// after a check was set to Retry or Rejected (its #6035); others do not evict before the wait of Retry is over, and reserve again
/// within the same second.
#[must_use]
pub fn held(workloads: &[WorkloadFacts], now: UnixSeconds) -> Vec<&WorkloadFacts> {
    let is_held = |one: &&WorkloadFacts| {
        let Some(check) = one.check.filter(|_| one.has_quota && one.is_active && !one.is_finished) else {
            return false;
        };
        match one.evicted {
            Some(since) => now.since_s(since) >= HELD_AFTER_S,
            None => check.state == CheckState::Retry && is_held_in_retry(&check, now),
        }
    };
    workloads.iter().filter(is_held).collect()
}

/// Measured from the first Retry: each wait begins with a new reservation.
fn is_held_in_retry(check: &CheckFacts, now: UnixSeconds) -> bool {
    let here_s = now.since_s(check.since);
    // More waits than these are longer than any limit.
    let before_s: u64 = (0..check.retries.min(8)).map(retry_after_s).sum();
    here_s >= RETRY_EVICTS_WITHIN_S && here_s + i64::try_from(before_s).unwrap_or(i64::MAX) >= HELD_AFTER_S
}

/// Never nothing: Kueue would try again at once, and again.
#[must_use]
pub fn retry_after_s(tries: u32) -> u64 {
    RETRY_LEAST_S.saturating_mul(1_u64.checked_shl(tries).unwrap_or(u64::MAX)).min(RETRY_MOST_S)
}

fn ready(workload: &WorkloadFacts) -> String {
    match workload.hours {
        Ok(Some(_)) if workload.gpus() == 0 => OF_NOTHING.to_owned(),
        Ok(Some(hours)) => format!("{} guaranteed for {hours}", vocab::gpus(workload.gpus()).verb("is", "are")),
        _ if workload.is_hp => OF_HP.to_owned(),
        _ => "it asks for no hours, and runs at will".to_owned(),
    }
}

/// Whether its check is not answered for good. After `Ready` it is never touched: another answer would evict what runs.
fn is_open(workload: &WorkloadFacts, check: &CheckFacts) -> bool {
    let waits = matches!(check.state, CheckState::Pending | CheckState::Retry);
    waits && workload.is_active && !workload.is_finished && workload.admitted.is_none()
}

/// Whether it is admitted, and its check waits: Kueue resets one that was deleted and made again, or is new in its ClusterQueue.
/// Nothing else would ever answer it, and `Ready` changes nothing.
fn is_unanswered(workload: &WorkloadFacts) -> bool {
    let waits = workload.check.as_ref().is_some_and(|check| check.state == CheckState::Pending);
    let goes_on = workload.is_active && !workload.is_finished && workload.evicted.is_none() && workload.has_quota;
    waits && goes_on && workload.admitted.is_some()
}

/// Whether Kueue waits for us now. While it evicts a Workload the reservation stands for a moment longer, and an answer then would
/// stay for ever: Kueue has reset the check by then, and looks at it no more.
fn is_asked(workload: &WorkloadFacts, check: &CheckFacts, now: UnixSeconds) -> bool {
    let after_s = i64::try_from(check.requeue_after_s).unwrap_or(i64::MAX);
    let is_due = check.state == CheckState::Pending || check.since.plus_s(after_s) <= now;
    workload.has_quota && workload.evicted.is_none() && is_due
}

/// Whether pods of a slice before it run. Kueue has finished that slice when the new one got its reservation, and stops all pods where
/// it evicts the new one.
fn replaces_running(workload: &WorkloadFacts, workloads: &[WorkloadFacts]) -> bool {
    let mut next = workload.replaces.as_deref();
    // One after another, as often as the job grew; no longer than there are Workloads.
    for _ in 0..=workloads.len() {
        let Some(name) = next else { return false };
        let is_named = |one: &&WorkloadFacts| name.split_once('/') == Some((&one.namespace, &one.name));
        match workloads.iter().find(is_named) {
            Some(before) if before.admitted.is_none() => next = before.replaces.as_deref(),
            // Of one that has gone nobody knows.
            _ => return true,
        }
    }
    true
}

/// Thousandths of GPUs of running pods that are promised hours; a pod without is in no promise of the fleet.
struct Running<'a> {
    view: &'a View,
    by_workload: BTreeMap<(&'a str, &'a str), u64>,
    by_owner: BTreeMap<Uid, u64>,
}

impl<'a> Running<'a> {
    fn of(view: &'a View) -> Self {
        let (mut by_workload, mut by_owner) = (BTreeMap::new(), BTreeMap::new());
        for pod in view.pods().values().filter(|pod| Self::counts(pod)) {
            if let Some(workload) = pod.workload.as_deref() {
                *by_workload.entry((&*pod.namespace, workload)).or_default() += pod.amount().milli();
            }
            if let Some(owner) = pod.owner {
                *by_owner.entry(owner).or_default() += pod.amount().milli();
            }
        }
        Self { view, by_workload, by_owner }
    }

    fn counts(pod: &PodFacts) -> bool {
        pod.life == Life::Runs && pod.guarantee.is_some()
    }

    /// Those of a Workload, or, of a slice, of its job: whole ones, since parts are asked for rounded up.
    fn gpus_of(&self, workload: &WorkloadFacts) -> u64 {
        let named = self.by_workload.get(&(&*workload.namespace, &*workload.name)).copied().unwrap_or(0);
        let owned = workload.owner.and_then(|owner| self.by_owner.get(&owner)).copied().unwrap_or(0);
        let own = workload.pods.iter().filter_map(|uid| self.view.pod(uid)).filter(|pod| Self::counts(pod));
        named.max(owned).max(own.map(|pod| pod.amount().milli()).sum()) / MilliGpus::PER_GPU
    }
}

/// Without those that are counted already.
fn less(mut by_model: BTreeMap<GpuModel, u64>, mut counted: u64) -> BTreeMap<GpuModel, u64> {
    for gpus in by_model.values_mut() {
        let here = counted.min(*gpus);
        counted -= here;
        *gpus -= here;
    }
    by_model
}

fn assumed(workloads: &[WorkloadFacts], running: &Running<'_>, world: &World<'_>) -> Assumed {
    let mut assumed = Assumed::default();
    let is_young = |since: UnixSeconds| world.now.since_s(since) < ASSUMED_S;
    let let_through = |workload: &WorkloadFacts| match workload.check {
        Some(check) if check.state == CheckState::Ready => Some(check.since),
        _ => workload.admitted.filter(|_| is_unanswered(workload)),
    };
    for workload in workloads {
        if workload.is_finished || workload.evicted.is_some() || !let_through(workload).is_some_and(is_young) {
            continue;
        }
        if let Ok(by_model) = workload.gpus_by_model(world.flavors, other_model(world.view).as_ref()) {
            assumed.add(workload, &less(by_model, running.gpus_of(workload)));
        }
    }
    assumed
}

/// The model of pods that select none: the default, or the only one.
fn other_model(view: &View) -> Option<GpuModel> {
    view.reading().default_gpu_model.clone().or_else(|| match view.pools().keys().collect::<Vec<_>>().as_slice() {
        [only] => Some((*only).clone()),
        _ => None,
    })
}

fn verdict(workload: &WorkloadFacts, assumed: &Assumed, running: &Running<'_>, world: &World<'_>) -> Verdict {
    let later = |why: String| Verdict::Later { why, pool: None };
    if workload.is_unseen(world.view) {
        let unseen = || "none of its pods is seen yet, which state its hours".to_owned();
        return later(workload.uncounted.clone().unwrap_or_else(unseen));
    }
    let hours = match &workload.hours {
        Err(why) => return Verdict::Never { why: why.clone() },
        Ok(None) => return Verdict::Ready(BTreeMap::new()),
        Ok(Some(hours)) => *hours,
    };
    if let Err(why) = &workload.sets {
        return Verdict::Never { why: why.clone() };
    }
    // Its pods would be promised hours as soon as they are counted.
    if let Some(why) = &workload.uncounted {
        return later(why.clone());
    }
    let by_model = match workload.gpus_by_model(world.flavors, other_model(world.view).as_ref()) {
        Ok(by_model) => by_model,
        Err(why) => return later(why),
    };
    // Pods of a slice before it keep their promises, and only those that are new get one.
    let by_model = if workload.replaces.is_some() { less(by_model, running.gpus_of(workload)) } else { by_model };
    let refused = by_model.iter().find_map(|(model, gpus)| refusal(model, *gpus, hours, assumed, world));
    refused.unwrap_or(Verdict::Ready(by_model))
}

/// Why one pool does not take so many GPUs.
fn refusal(model: &GpuModel, gpus: u64, hours: HorizonHours, assumed: &Assumed, world: &World<'_>) -> Option<Verdict> {
    let later = |why: String| Some(Verdict::Later { why, pool: None });
    let Some(offer) = world.offers.pools.get(model) else {
        return later(format!("Headroom has no quota of {model} yet"));
    };
    if offer.stage == Stage::Conservative {
        let at = offer.computed_at;
        return later(format!(
            "the quota of {model} was computed at {at} and not renewed since: nothing new is promised"
        ));
    }
    let Some(pool) = world.view.pools().get(model) else { return later(format!("there is no node of {model}")) };
    // All pods of a Workload together: only their sum counts against quota.
    let gpus = MilliGpus::from_gpus(u32::try_from(gpus).unwrap_or(u32::MAX));
    match pool.over_quota(gpus, hours, &assumed.leave(model, &offer.limits))? {
        // Those of Workloads that were let through are promised, too.
        Refusal::OverQuota { hours, quota, promised, asked } => {
            let granted = assumed.gpus(model, hours);
            let (quota, promised) = (quota.saturating_add(granted), promised.saturating_add(granted));
            let why = format!("{model}: {}", Refusal::OverQuota { hours, quota, promised, asked });
            Some(Verdict::Later { why, pool: Some(model.clone()) })
        }
        // Other hours are offered after a change of settings, not after a wait.
        refusal @ Refusal::NotOffered { .. } if !offer.limits.is_empty() => {
            Some(Verdict::Never { why: format!("{model}: {refusal}") })
        }
        refusal => Some(Verdict::Later { why: format!("{model}: {refusal}"), pool: Some(model.clone()) }),
    }
}
