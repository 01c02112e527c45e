//! One pool.

use super::facts::{Life, NodeFacts, PodFacts, Uid};
use super::large::{KeptPromise, LargeNodes};
use placement::fleet::{EvictionSettings, Fleet, Gang, GpuRequest, Guarantee, Plan, PodPlace, PodRequest, numbers};
use placement::{Limit, Policy, Refusal, exceeded};
use std::collections::{BTreeMap, BTreeSet};
use vocab::{HorizonHours, MilliGpus, NodeId, PoolId, PoolState, TaskClass, TaskId, UnixSeconds};
use wire::TopologyBody;

/// The nodes of one GPU model with their pods.
#[derive(Debug, Clone)]
pub struct PoolView {
    /// A task is a pod, named by its UID.
    pub fleet: Fleet,
    /// Pods that wait for this model.
    pub waiting: BTreeSet<Uid>,
    /// Pods on their nodes.
    placed: BTreeMap<NodeId, BTreeSet<Uid>>,
    /// Nodes that the fleet does not have.
    large: LargeNodes,
    /// Pods for which their node has no GPU left as we count: the API reported a start before an end.
    crowded: BTreeSet<Uid>,
    /// Whether each node is ready: GPUs of those that are not count for nothing.
    ready: BTreeMap<NodeId, bool>,
}

/// The name of a pod among tasks.
#[must_use]
pub fn task_of(uid: Uid) -> TaskId {
    TaskId::parse(&uid.to_string()).expect("36 characters of a UID are a name")
}

/// Whether a fleet has nodes for so many GPUs: one that does not is left to the scheduler.
#[must_use]
pub fn fits_a_fleet(pod: &PodFacts) -> bool {
    !LargeNodes::is_large(pod.gpus.saturating_add(u32::from(pod.share_milli > 0)))
}

/// Request of a pod to placement.
#[must_use]
pub fn gang_of(pod: &PodFacts) -> Gang {
    // CPU and memory are the scheduler's own business: it offers nodes that have them.
    let request = PodRequest::new(request_of(pod), 0, 0);
    Gang { task: task_of(pod.uid), class: pod.class, pod: request, pods: 1 }
}

/// GPUs of a pod. A part of a GPU beside whole ones takes one of its own: placement knows no request of both.
fn request_of(pod: &PodFacts) -> GpuRequest {
    let whole = u16::try_from(pod.gpus).unwrap_or(u16::MAX - 1);
    match (whole, pod.share_milli) {
        (whole, 0) => GpuRequest::Whole(whole),
        (0, share) => GpuRequest::Share(share),
        (whole, _) => GpuRequest::Whole(whole.saturating_add(1)),
    }
}

fn whole(gpus: u64) -> MilliGpus {
    amount(gpus.saturating_mul(MilliGpus::PER_GPU))
}

pub(super) fn amount(gpus_milli: u64) -> MilliGpus {
    MilliGpus::from_milli(gpus_milli).unwrap_or(MilliGpus::MAX)
}

impl PoolView {
    pub(super) fn new(policy: &Policy) -> Self {
        Self {
            fleet: Fleet::ordered(EvictionSettings::default(), policy.score).looking_at_topology(policy.topology),
            waiting: BTreeSet::new(),
            placed: BTreeMap::new(),
            large: LargeNodes::default(),
            crowded: BTreeSet::new(),
            ready: BTreeMap::new(),
        }
    }

    pub(super) fn add(&mut self, facts: &NodeFacts) {
        if LargeNodes::is_large(facts.gpus) {
            return self.large.set(facts);
        }
        let parsed = facts.topology.as_deref().and_then(|text| serde_json::from_str::<TopologyBody>(text).ok());
        let topology = parsed.and_then(|body| body.parse().ok()).map(std::sync::Arc::new);
        let id = facts.node.clone();
        // A topology of another number of GPUs is left out, and the node counts.
        let laid_out = self.fleet.add_laid_out(id.clone(), facts.gpus, (None, None), topology);
        let added = laid_out.or_else(|_| self.fleet.add(id.clone(), facts.gpus, None, None));
        if let Ok(number) = added {
            self.fleet.open(number, facts.is_open);
            self.ready.insert(id, facts.is_ready);
        }
    }

    pub(super) fn open(&mut self, facts: &NodeFacts) {
        if self.large.has(&facts.node) {
            self.large.set(facts);
        } else if let Some(number) = self.fleet.number_of(&facts.node) {
            self.fleet.open(number, facts.is_open);
            self.ready.insert(facts.node.clone(), facts.is_ready);
        }
    }

    pub(super) fn remove(&mut self, node: &NodeId) {
        self.large.remove(node);
        if let Some(number) = self.fleet.number_of(node) {
            self.fleet.remove(number);
        }
        self.ready.remove(node);
        self.placed.remove(node);
    }

    /// The pods on a node.
    #[must_use]
    pub fn on(&self, node: &NodeId) -> BTreeSet<Uid> {
        self.placed.get(node).cloned().unwrap_or_default()
    }

    /// The node of a pod, and its GPUs.
    fn place_of(&self, task: &TaskId) -> Option<(NodeId, MilliGpus)> {
        let running = self.fleet.tasks().get(task)?;
        let node = &self.fleet.nodes()[running.places.first()?.node];
        Some((node.id.clone(), MilliGpus::from_milli(running.gpus_milli()).ok()?))
    }

    /// S_a(H): GPUs of spot pods inside a guarantee of at least so many hours.
    #[must_use]
    pub fn promised(&self, hours: HorizonHours) -> MilliGpus {
        let large = self.large.promises();
        let large: u64 = large.range(hours..).map(|(_, gpus)| gpus).sum();
        self.fleet.promised(hours).saturating_add(amount(large))
    }

    /// Why a promise of so many GPUs would exceed a quota; `None` where it keeps all of them.
    #[must_use]
    pub fn over_quota(&self, gpus: MilliGpus, hours: HorizonHours, limits: &[Limit]) -> Option<Refusal> {
        exceeded(|of| self.promised(of), gpus, hours, limits)
    }

    /// Whether a pod fits idle GPUs.
    pub fn fits(&mut self, pod: &PodFacts) -> bool {
        self.large.has_room(pod) || fits_a_fleet(pod) && self.fleet.plan(&gang_of(pod)).is_some()
    }

    /// Takes the promises that have ended by now.
    pub(super) fn take_kept(&mut self, now: UnixSeconds) -> Vec<KeptPromise> {
        self.fleet.pass_to(now);
        let ended = self.fleet.ended_guarantees(now);
        let kept = |(task, guarantee)| KeptPromise { place: self.place_of(&task), task, guarantee };
        let mut kept: Vec<KeptPromise> = ended.into_iter().map(kept).collect();
        kept.extend(self.large.ended(now));
        kept
    }

    pub(super) fn place(&mut self, pod: &PodFacts, now: UnixSeconds) {
        let Some(node) = &pod.node else { return };
        self.placed.entry(node.clone()).or_default().insert(pod.uid);
        if self.try_place(pod, node, now) {
            self.crowded.remove(&pod.uid);
        } else {
            self.crowded.insert(pod.uid);
        }
    }

    fn try_place(&mut self, pod: &PodFacts, node: &NodeId, now: UnixSeconds) -> bool {
        let since = pod.since().min(now);
        let guarantee = pod.guarantee.map(|hours| Guarantee::from(since, hours)).filter(|promise| promise.until > now);
        if self.large.has(node) {
            return self.large.place(pod, node, guarantee);
        }
        let Some(number) = self.fleet.number_of(node) else { return false };
        let gang = gang_of(pod);
        let task = gang.task.clone();
        let Some(gpus) = self.fleet.nodes()[number].place(gang.pod.gpus) else { return false };
        let plan = Plan { gang, places: vec![PodPlace { node: number, gpus }], victims: Vec::new() };
        // Pods are on cordoned nodes, too.
        let is_open = self.fleet.nodes()[number].is_open;
        self.fleet.open(number, true);
        let is_placed = self.fleet.apply(&plan, since, guarantee).is_ok();
        self.fleet.open(number, is_open);
        if let Some(saved) = pod.saved.filter(|_| is_placed) {
            // A clock that runs ahead must not make a pod worth keeping.
            self.fleet.saved(&task, saved.min(now));
        }
        is_placed
    }

    pub(super) fn lift(&mut self, pod: &PodFacts) {
        let Some(node) = pod.node.as_ref().filter(|_| pod.life == Life::Runs) else { return };
        let is_empty = self.placed.get_mut(node).is_some_and(|here| {
            here.remove(&pod.uid);
            here.is_empty()
        });
        if is_empty {
            self.placed.remove(node);
        }
        if self.crowded.remove(&pod.uid) {
            return;
        }
        if self.large.has(node) {
            self.large.lift(pod.uid, node);
        } else {
            self.fleet.finish(&task_of(pod.uid));
        }
    }

    /// Pods for which their node had no room.
    pub(super) fn crowded(&self) -> impl Iterator<Item = &Uid> {
        self.crowded.iter()
    }

    /// Pods of a node for which it had no room.
    pub(super) fn crowded_on(&self, node: &NodeId) -> Vec<Uid> {
        if self.crowded.is_empty() {
            return Vec::new();
        }
        let here = self.placed.get(node).into_iter().flatten();
        here.filter(|uid| self.crowded.contains(uid)).copied().collect()
    }

    /// GPUs of spot pods, at will or promised, rounded up.
    #[must_use]
    pub fn spot_gpus(&self) -> u64 {
        let spot = self.fleet.tasks().values().filter(|running| running.class == TaskClass::Spot);
        let in_fleet: u64 = spot.map(placement::fleet::Running::gpus_milli).sum();
        (in_fleet + self.large.spot_milli()).div_ceil(MilliGpus::PER_GPU)
    }

    /// GPUs that could be used: all of nodes that are open, and what runs on others that are ready.
    #[must_use]
    pub fn allocatable_gpus(&self) -> u64 {
        let there = self.fleet.nodes().iter().filter(|node| !node.is_gone);
        there
            .map(|node| {
                let idle = u64::from(node.idle_mask().count_ones());
                match (node.is_open, self.ready.get(&node.id)) {
                    (true, _) => node.gpus.len() as u64,
                    (false, Some(true)) => node.gpus.len() as u64 - idle,
                    (false, _) => 0,
                }
            })
            .sum::<u64>()
            + self.large.allocatable_gpus()
    }

    /// GPUs on nodes that take pods, without a pod.
    #[must_use]
    pub fn idle_gpus(&self) -> u64 {
        let open = self.fleet.nodes().iter().filter(|node| node.takes_pods());
        open.map(|node| numbers(node.idle_mask()).count() as u64).sum::<u64>() + self.large.idle_gpus()
    }

    pub(super) fn state(&self, pool: PoolId, waits_s: u64, now: UnixSeconds) -> PoolState {
        let (capacity, idle) = (whole(self.allocatable_gpus()), whole(self.idle_gpus()));
        // Pods on nodes that are not ready keep their promises, and are in no capacity: reported GPUs stay within it.
        let mut left = capacity.left_after(idle);
        let mut within = |gpus: MilliGpus| {
            let reported = gpus.min(left);
            left = left.left_after(reported);
            reported
        };
        let mut promises: BTreeMap<HorizonHours, MilliGpus> = self.fleet.promises().collect();
        for (hours, gpus) in self.large.promises() {
            let of_fleet = promises.entry(hours).or_default();
            *of_fleet = of_fleet.saturating_add(amount(gpus));
        }
        let spot_by_guarantee = promises.into_iter().map(|(hours, gpus)| (hours, within(gpus))).collect();
        PoolState { pool, capacity, idle, spot_by_guarantee, longest_quota_wait_s: waits_s, as_of: now }
    }
}
