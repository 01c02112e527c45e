//! The whole state as plain parts: to keep, to compare, and to replay elsewhere.

use super::apply::{check, check_promise, gpus_milli};
use super::demand::{DemandMeter, Level, Placeable};
use super::shares::Shares;
use super::{Admitted, Fault, Pool, PoolRules, Request, Waiting};
use crate::decide::Limit;
use crate::fleet::{GpuPlace, Guarantee, Plan, Spec, Workload};
use crate::policy::Policy;
use crate::shares::{UseMeter, UseParts};
use std::collections::BTreeMap;
use std::sync::Arc;
use vocab::{HourStart, NodeId, Organization, TaskClass, TaskId, Topology, UnixSeconds};

/// A node with its number: that of its place in the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SnapshotNode {
    /// Name of the node.
    pub node: NodeId,
    /// Number of its GPUs.
    pub gpus: u32,
    /// CPU, in thousandths of a core.
    pub cpu_milli: Option<u64>,
    /// Memory, in MiB.
    pub memory_mib: Option<u64>,
    /// Topology of its GPUs.
    pub topology: Option<Arc<Topology>>,
    /// Whether it takes new tasks.
    pub is_open: bool,
    /// Whether it left the pool.
    pub is_gone: bool,
}

/// A task that has its places.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SnapshotRun {
    /// Request of the task.
    pub request: Request,
    /// Node and GPUs of each pod.
    pub places: Vec<(NodeId, GpuPlace)>,
    /// On GPUs that it is lent.
    pub lent: Vec<(NodeId, GpuPlace)>,
    /// When the pods of an elastic task changed last.
    pub resized: Option<UnixSeconds>,
    /// Start of the run.
    pub since: UnixSeconds,
    /// Instant from which it has its GPUs.
    pub starts: UnixSeconds,
    /// Last checkpoint.
    pub saved: UnixSeconds,
    /// Its guarantee, while it lasts.
    pub guarantee: Option<Guarantee>,
    /// Instants at which it was evicted.
    pub evicted: Vec<UnixSeconds>,
}

/// Pods that came and asked for the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SnapshotSpec {
    /// Kind of request.
    pub spec: Spec,
    /// Pods with this request.
    pub pods: u64,
    /// Its weight in the target of fragmentation, which is renewed less often; none outside of the target. A snapshot without
    /// any weight is one from before there were targets.
    pub target_pods: Option<u64>,
}

/// Everything that a pool knows, its policy and rules apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// Instant of the snapshot.
    pub at: UnixSeconds,
    /// Nodes, in the order in which they came.
    pub nodes: Vec<SnapshotNode>,
    /// Limits of spot by guarantee hours.
    pub limits: Vec<Limit>,
    /// HP demand when they were set.
    pub limits_demand_milli: u64,
    /// By their names.
    pub waiting: Vec<Waiting>,
    /// By their names.
    pub running: Vec<SnapshotRun>,
    /// Evictions that still count, on which node.
    pub evictions: Vec<(UnixSeconds, NodeId)>,
    /// Spot runs that ended, and whether by eviction.
    pub runs: Vec<(UnixSeconds, bool)>,
    /// Requests that the pool has seen, for fragmentation scores.
    pub workload: Vec<SnapshotSpec>,
    /// Hour of `demand`.
    pub demand_hour: Option<HourStart>,
    /// HP demand by organization.
    pub demand: Vec<(Organization, Level)>,
    /// HP demand of the pool.
    pub demand_total: Level,
    /// Number of rests after evictions.
    pub rests: u64,
    /// Use of spot by organization, where the policy keeps shares.
    pub shares: UseParts,
}

impl Pool {
    /// The state as it is now.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        let node = |node: &crate::fleet::NodeState| SnapshotNode {
            node: node.id.clone(),
            gpus: node.gpus.len() as u32,
            cpu_milli: (node.cpu_milli != u64::MAX).then_some(node.cpu_milli),
            memory_mib: (node.memory_mib != u64::MAX).then_some(node.memory_mib),
            topology: node.topology.clone(),
            is_open: node.is_open,
            is_gone: node.is_gone,
        };
        let id = |number: usize| self.fleet.nodes()[number].id.clone();
        let run = |(task, admitted): (&TaskId, &Admitted)| {
            let running = &self.fleet.tasks()[task];
            SnapshotRun {
                request: admitted.request.clone(),
                places: running.places.iter().map(|place| (id(place.node), place.gpus)).collect(),
                lent: running.lent.iter().map(|place| (id(place.node), place.gpus)).collect(),
                resized: admitted.resized,
                since: running.since,
                starts: admitted.starts,
                saved: running.saved,
                guarantee: running.guarantee,
                evicted: admitted.evicted.clone(),
            }
        };
        debug_assert_eq!(self.requests.len(), self.fleet.tasks().len(), "each running task has its request");
        let (demand_hour, organizations, demand_total) = self.demand.parts();
        Snapshot {
            at: self.now,
            nodes: self.fleet.nodes().iter().map(node).collect(),
            limits: self.limits.clone(),
            limits_demand_milli: self.limits_demand_milli,
            waiting: self.queue.all().cloned().collect(),
            running: self.requests.iter().map(run).collect(),
            evictions: self.fleet.evictions().map(|(at, node)| (at, node.clone())).collect(),
            runs: self.runs.iter().copied().collect(),
            workload: self
                .workload
                .parts()
                .map(|(spec, pods, target_pods)| SnapshotSpec { spec, pods, target_pods })
                .collect(),
            demand_hour,
            demand: organizations.iter().map(|(name, level)| (name.clone(), *level)).collect(),
            demand_total,
            rests: self.rests,
            shares: self.shares.as_ref().map(|shares| shares.parts(self.now)).unwrap_or_default(),
        }
    }

    /// A pool in the state of a snapshot.
    ///
    /// # Errors
    /// The snapshot contradicts itself: two tasks hold the same GPU or have one name, a node is missing or gone under its
    /// tasks, or the demand is not that of the tasks.
    pub fn restore(snapshot: &Snapshot, policy: Policy, rules: PoolRules) -> Result<Self, Fault> {
        let mut pool = Self::new(policy, rules);
        for one in &snapshot.nodes {
            pool.fleet.add_laid_out(
                one.node.clone(),
                one.gpus,
                (one.cpu_milli, one.memory_mib),
                one.topology.clone(),
            )?;
        }
        debug_assert_eq!(pool.fleet.nodes().len(), snapshot.nodes.len(), "nodes keep their numbers");
        for (at, node) in &snapshot.evictions {
            let number = pool.number_of(node)?;
            pool.fleet.recall_eviction(number, *at);
        }
        snapshot.running.iter().try_for_each(|run| pool.restore_run(run))?;
        for (number, one) in snapshot.nodes.iter().enumerate() {
            pool.fleet.open(number, one.is_open);
            if one.is_gone {
                let has_lent = !pool.fleet.borrowers(number).is_empty();
                if has_lent || !pool.fleet.remove(number).is_empty() {
                    return Err(Fault::UnknownNode { node: one.node.clone() });
                }
            }
        }
        for waiting in &snapshot.waiting {
            check(&waiting.request)?;
            let task = &waiting.request.gang.task;
            if pool.requests.contains_key(task) || pool.queue.get(task).is_some() {
                return Err(Fault::Known { task: task.clone() });
            }
            if let Some(until) = waiting.rests_until {
                pool.resting.insert((until, waiting.request.gang.task.clone()));
            }
            if let Some(deferral) = &waiting.deferral {
                pool.deferred.insert((deferral.until, waiting.request.gang.task.clone()));
            }
            pool.queue.insert(waiting.clone());
        }
        debug_assert_eq!(pool.requests.len(), snapshot.running.len(), "every running task came back");
        pool.limits.clone_from(&snapshot.limits);
        pool.limits_demand_milli = snapshot.limits_demand_milli;
        pool.runs = snapshot.runs.iter().copied().collect();
        let evicted = pool.runs.iter().filter(|(_, was_evicted)| *was_evicted).count() as u64;
        pool.history = crate::fleet::History { evicted, finished: pool.runs.len() as u64 - evicted };
        let parts = snapshot.workload.iter().map(|one| (one.spec, one.pods, one.target_pods));
        pool.workload = Workload::from_parts(parts);
        let organizations: BTreeMap<_, _> = snapshot.demand.iter().cloned().collect();
        pool.restore_demand(snapshot.demand_hour, organizations, snapshot.demand_total)?;
        pool.nurse_demand(snapshot.at);
        pool.rests = snapshot.rests;
        pool.restore_shares(snapshot);
        pool.now = snapshot.at;
        // A look too many finds nothing.
        pool.grow_at = Some(snapshot.at);
        pool.fleet.pass_to(snapshot.at);
        Ok(pool)
    }

    /// Tasks take from the demand what they have added to it: it has to be there. Snapshots from before unplaceable tasks were no
    /// demand have them in it: they are taken out.
    fn restore_demand(
        &mut self,
        hour: Option<HourStart>,
        mut levels: BTreeMap<Organization, Level>,
        mut total: Level,
    ) -> Result<(), Fault> {
        let mut placeable = Placeable::default();
        let (mut asked, mut beyond) = (BTreeMap::new(), BTreeMap::new());
        for request in self.requests.values().map(|admitted| &admitted.request).filter(|one| is_hp(one)) {
            *asked.entry(request.organization.clone()).or_default() += gpus_milli(request);
        }
        for request in self.queue.all().map(|waiting| &waiting.request).filter(|one| is_hp(one)) {
            if placeable.holds(&self.fleet, request) {
                *asked.entry(request.organization.clone()).or_default() += gpus_milli(request);
            } else {
                *beyond.entry(request.organization.clone()).or_default() += gpus_milli(request);
                self.unplaceable.insert(request.gang.task.clone());
            }
        }
        if let Some(organization) = differs(&levels, total, &asked) {
            let lower = |level: &mut Level, milli: u64| {
                level.milli = level.milli.saturating_sub(milli);
                level.peak_milli = level.peak_milli.saturating_sub(milli).max(level.milli);
            };
            for (organization, milli) in &beyond {
                lower(levels.entry(organization.clone()).or_default(), *milli);
                lower(&mut total, *milli);
            }
            if differs(&levels, total, &asked).is_some() {
                return Err(Fault::OtherDemand { organization });
            }
        }
        self.demand = DemandMeter::from_parts(hour, levels, total);
        Ok(())
    }

    fn restore_shares(&mut self, snapshot: &Snapshot) {
        let Some(settings) = self.policy.shares else { return };
        let mut meter = UseMeter::from_parts(settings, snapshot.at, &snapshot.shares);
        for request in self.requests.values().map(|admitted| &admitted.request).filter(|one| !is_hp(one)) {
            let run = &self.fleet.tasks()[&request.gang.task];
            meter.hold(&request.organization, run.gpus_milli(), snapshot.at);
        }
        self.shares = Some(Box::new(Shares::new(meter)));
    }

    fn restore_run(&mut self, run: &SnapshotRun) -> Result<(), Fault> {
        check(&run.request)?;
        check_promise(&run.request, run.guarantee)?;
        let gang = run.request.core();
        let (places, lent) = (self.places_of(&gang, &run.places)?, self.places_of(&gang, &run.lent)?);
        let task = gang.task.clone();
        if run.request.elastic.is_none() && !lent.is_empty() {
            return Err(Fault::NotElastic { task });
        }
        self.fleet.apply(&Plan { gang, places: places.clone(), victims: Vec::new() }, run.since, run.guarantee)?;
        if !lent.is_empty() {
            self.fleet.resize(&task, places, lent)?;
        }
        self.fleet.saved(&task, run.saved);
        if run.request.elastic.is_some() {
            self.borrowing.insert(task.clone());
        }
        debug_assert!(!self.requests.contains_key(&task), "the fleet refuses a second task of one name");
        let SnapshotRun { request, starts, evicted, resized, .. } = run.clone();
        self.requests.insert(task, Admitted { request, starts, evicted, resized });
        Ok(())
    }
}

fn is_hp(request: &Request) -> bool {
    request.gang.class == TaskClass::Hp
}

/// The first organization whose level is not what its tasks ask for; `*` where the total is not their sum.
fn differs(
    levels: &BTreeMap<Organization, Level>,
    total: Level,
    asked: &BTreeMap<Organization, u64>,
) -> Option<Organization> {
    let level = |organization: &Organization| levels.get(organization).copied().unwrap_or_default().milli;
    let of = |organization: &Organization| asked.get(organization).copied().unwrap_or(0);
    let mut named = asked.keys().chain(levels.keys());
    let other = named.find(|organization| level(organization) != of(organization)).cloned();
    other.or_else(|| (total.milli != asked.values().sum::<u64>()).then(Organization::pool_peak))
}
