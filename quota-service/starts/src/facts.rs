//! A pool as the futures see it: GPUs by node, and tasks by their size.

use crate::kind::{Kind, is_choosy};
use placement::Limit;
use placement::fleet::{GpuPlace, GpuRequest, PodPlace};
use placement::policy::{Admission, Blocking, OrderRule, Policy, Timing};
use placement::pool::{Pool, QueueKey, Request};
use placement::windows::Windows;
use std::collections::BTreeMap;
use vocab::{HorizonHours, Organization, TaskClass, TaskId, UnixSeconds};

/// GPUs of a task: equal pods of whole ones, or of a share of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Size {
    /// Whole GPUs of each pod; 0 for a share.
    pub gpus: u8,
    /// Thousandths of a GPU of each pod, where it asks for a share.
    pub share_milli: u16,
    /// The number of pods.
    pub pods: u32,
}

impl Size {
    /// Of so many pods with this request.
    #[must_use]
    pub const fn of(request: GpuRequest, pods: u32) -> Self {
        match request {
            GpuRequest::Share(share_milli) => Self { gpus: 0, share_milli, pods },
            GpuRequest::Whole(gpus) => Self { gpus: gpus as u8, share_milli: 0, pods },
        }
    }

    /// Of a task that is known by its GPUs alone: as few pods as nodes of so many GPUs allow.
    #[must_use]
    pub fn of_milli(gpus_milli: u64, node_gpus: u8) -> Self {
        let (whole, part) = (gpus_milli / 1_000, (gpus_milli % 1_000) as u16);
        let node = u64::from(node_gpus.max(1));
        if whole == 0 {
            return Self { gpus: 0, share_milli: part, pods: 1 };
        }
        let whole = whole + u64::from(part > 0);
        let pods = whole.div_ceil(node);
        Self { gpus: whole.div_ceil(pods) as u8, share_milli: 0, pods: pods as u32 }
    }

    /// Thousandths of a GPU of one pod.
    #[must_use]
    pub const fn pod_milli(self) -> u32 {
        self.gpus as u32 * 1_000 + self.share_milli as u32
    }

    /// Thousandths of a GPU of all pods.
    #[must_use]
    pub const fn milli(self) -> u64 {
        self.pod_milli() as u64 * self.pods as u64
    }
}

/// A task that runs.
#[derive(Debug, Clone)]
pub(crate) struct RunFacts {
    pub task: TaskId,
    pub kind: u16,
    pub organization: u16,
    pub size: Size,
    pub submitted: UnixSeconds,
    /// Of its pods on whole GPUs: a part of [`PoolFacts::places`].
    pub places: std::ops::Range<u32>,
    /// The start of its present run, and when its work was saved last.
    pub since: UnixSeconds,
    pub saved: UnixSeconds,
    /// Seconds until its guarantee ends; none outside of one.
    pub guaranteed_s: Option<i64>,
}

/// A task that waits.
#[derive(Debug, Clone)]
pub(crate) struct WaitFacts {
    pub task: TaskId,
    pub kind: u16,
    pub organization: u16,
    pub size: Size,
    pub submitted: UnixSeconds,
    pub queued: UnixSeconds,
    /// Seconds for which it may not start.
    pub rests_s: i64,
    /// Whether it is HP demand: not where it does not fit on the empty pool.
    pub is_demand: bool,
    /// How long it runs, where its owner says so, in seconds.
    pub runs_s: Option<f64>,
    /// Whether it is only asked for, and leaves the GPUs that it would get to others.
    pub is_ghost: bool,
    /// Whether it asks for GPUs that lie together: the futures give it any.
    pub is_choosy: bool,
}

/// A task that is not submitted.
#[derive(Debug, Clone)]
pub struct Ask {
    /// The task as it would be submitted.
    pub request: Request,
    /// How long it runs, where its owner says so, in seconds.
    pub runs_s: Option<f64>,
    /// When it is submitted, in seconds from now.
    pub after_s: u32,
}

impl Ask {
    /// A task that is submitted now.
    #[must_use]
    pub const fn now(request: Request) -> Self {
        Self { request, runs_s: None, after_s: 0 }
    }
}

/// The rules of a policy that the futures follow.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rules {
    pub order: OrderRule,
    pub blocking: Blocking,
    pub admission: Admission,
    /// Seconds after which the oldest HP task has nodes kept for it; none where no policy keeps any.
    pub hp_reserved_after_s: Option<i64>,
}

impl Rules {
    fn of(policy: &Policy) -> Self {
        let (heads, after_s) = policy.reservations.of(TaskClass::Hp);
        Self {
            order: policy.order,
            blocking: policy.blocking,
            admission: policy.admission,
            hp_reserved_after_s: (heads > 0 && policy.blocking == Blocking::Nobody).then_some(after_s),
        }
    }
}

/// A pool at one moment.
#[derive(Debug, Clone)]
pub struct PoolFacts {
    pub(crate) at: UnixSeconds,
    pub(crate) rules: Rules,
    /// Whether HP may be put off by a policy of timing, which the futures do not know.
    pub(crate) is_timed: bool,
    /// Whether a waiting or running task shrinks and grows.
    pub(crate) has_elastic: bool,
    /// Whether organizations take turns by fair shares, which those of the futures do not.
    pub(crate) has_shares: bool,
    /// Windows that are sold ahead: the futures keep their GPUs from spot.
    pub(crate) windows: Windows,
    pub(crate) limits: Vec<Limit>,
    pub(crate) demand_milli: u64,
    pub(crate) capacity_milli: u64,
    /// Idle GPUs, and whether new pods may come: by node.
    pub(crate) idle: Vec<u8>,
    pub(crate) open: Vec<bool>,
    /// GPUs of the largest node.
    pub(crate) node_gpus: u8,
    /// Free parts of shared GPUs.
    pub(crate) parts_milli: u64,
    /// The node of each shared GPU.
    pub(crate) shared: Vec<u32>,
    pub(crate) kinds: Vec<Kind>,
    pub(crate) organizations: Vec<Organization>,
    pub(crate) running: Vec<RunFacts>,
    pub(crate) places: Vec<(u32, u8)>,
    /// In the order of the policy.
    pub(crate) waiting: Vec<WaitFacts>,
}

/// Numbers of what was seen.
struct Numbers<T>(BTreeMap<T, u16>);

impl<T: Ord + Clone> Numbers<T> {
    /// The last number stands for all that come after 65,535 others.
    fn of(&mut self, one: &T) -> u16 {
        if let Some(number) = self.0.get(one) {
            return *number;
        }
        let next = u16::try_from(self.0.len()).unwrap_or(u16::MAX);
        self.0.insert(one.clone(), next);
        next
    }

    fn all(self) -> Vec<T> {
        let mut all: Vec<(u16, T)> = self.0.into_iter().map(|(one, number)| (number, one)).collect();
        all.sort_by_key(|(number, _)| *number);
        all.into_iter().map(|(_, one)| one).collect()
    }
}

impl PoolFacts {
    /// The facts of a pool now.
    #[must_use]
    pub fn of(pool: &Pool) -> Self {
        let (now, policy) = (pool.now(), pool.policy());
        let mut facts = Self::of_nodes(pool);
        let (mut kinds, mut organizations) = (Numbers(BTreeMap::new()), Numbers(BTreeMap::new()));
        for (task, running) in pool.fleet().tasks() {
            let Some((request, _)) = pool.running(task) else { continue };
            let run = RunFacts {
                task: task.clone(),
                kind: kinds.of(&Kind::of(request)),
                organization: organizations.of(&request.organization),
                size: Size::of(running.pod.gpus, running.places.len() as u32),
                submitted: request.submitted,
                places: facts.place(&running.places),
                since: running.since,
                saved: running.saved,
                guaranteed_s: running.guarantee.map(|guarantee| guarantee.until.since_s(now)),
            };
            facts.has_elastic |= request.elastic.is_some();
            facts.running.push(run);
        }
        for waiting in pool.waiting() {
            let request = &waiting.request;
            let core = request.core();
            facts.has_elastic |= request.elastic.is_some();
            facts.waiting.push(WaitFacts {
                task: core.task.clone(),
                kind: kinds.of(&Kind::of(request)),
                organization: organizations.of(&request.organization),
                size: Size::of(core.pod.gpus, core.pods),
                submitted: request.submitted,
                queued: waiting.queued,
                rests_s: waiting.rests_until.map_or(0, |until| until.since_s(now)),
                is_demand: request.gang.class == TaskClass::Hp && pool.is_demand(&core.task),
                runs_s: None,
                is_ghost: false,
                is_choosy: is_choosy(&core.pod),
            });
        }
        facts.share(pool);
        (facts.kinds, facts.organizations) = (kinds.all(), organizations.all());
        let place = |one: &WaitFacts| (key(policy.order, facts.kinds[usize::from(one.kind)], one.size), one.submitted);
        facts.waiting.sort_by(|one, other| (place(one), &one.task).cmp(&(place(other), &other.task)));
        facts
    }

    fn of_nodes(pool: &Pool) -> Self {
        let nodes = pool.fleet().nodes();
        Self {
            at: pool.now(),
            rules: Rules::of(pool.policy()),
            is_timed: pool.policy().timing != Timing::AtOnce,
            has_elastic: false,
            has_shares: pool.policy().shares.is_some(),
            windows: pool.windows(0),
            limits: pool.limits_now(),
            demand_milli: pool.hp_demand_milli(),
            capacity_milli: pool.capacity().milli(),
            idle: nodes.iter().map(|node| if node.is_gone { 0 } else { node.idle }).collect(),
            open: nodes.iter().map(placement::fleet::NodeState::takes_pods).collect(),
            node_gpus: nodes.iter().filter(|node| !node.is_gone).map(|node| node.gpus.len() as u8).max().unwrap_or(0),
            parts_milli: 0,
            shared: Vec::new(),
            kinds: Vec::new(),
            organizations: Vec::new(),
            running: Vec::new(),
            places: Vec::new(),
            waiting: Vec::new(),
        }
    }

    /// GPUs in use that no pod has whole are shared; what shares leave of them is free.
    fn share(&mut self, pool: &Pool) {
        let mut whole = vec![0_usize; self.open.len()];
        for (node, gpus) in &self.places {
            whole[*node as usize] += usize::from(*gpus);
        }
        for (number, node) in pool.fleet().nodes().iter().enumerate().filter(|(_, node)| node.takes_pods()) {
            let used = node.gpus.iter().filter(|gpu| !gpu.is_idle());
            self.parts_milli += used.clone().map(|gpu| u64::from(gpu.free())).sum::<u64>();
            let shared = used.count().saturating_sub(whole[number]);
            self.shared.extend(std::iter::repeat_n(number as u32, shared));
        }
    }

    /// Notes the places of pods on whole GPUs.
    fn place(&mut self, places: &[PodPlace]) -> std::ops::Range<u32> {
        let from = self.places.len() as u32;
        for place in places {
            if let GpuPlace::Whole { mask } = place.gpus {
                self.places.push((place.node as u32, mask.count_ones() as u8));
            }
        }
        from..self.places.len() as u32
    }

    /// The moment of the facts.
    #[must_use]
    pub const fn at(&self) -> UnixSeconds {
        self.at
    }

    /// HP demand, in thousandths of a GPU.
    #[must_use]
    pub const fn demand_milli(&self) -> u64 {
        self.demand_milli
    }

    /// The names of running tasks, and seconds since the start of their present run.
    pub fn running(&self) -> impl Iterator<Item = (&TaskId, i64)> {
        self.running.iter().map(|run| (&run.task, self.at.since_s(run.since)))
    }

    /// The names of waiting tasks, in the order of the policy.
    pub fn waiting(&self) -> impl Iterator<Item = &TaskId> {
        self.waiting.iter().map(|waiting| &waiting.task)
    }

    /// A task that runs: its kind, and the start of its present run.
    #[must_use]
    pub fn run_of(&self, task: &TaskId) -> Option<(Kind, UnixSeconds)> {
        let run = self.running.iter().find(|run| run.task == *task)?;
        Some((self.kinds[usize::from(run.kind)], run.since))
    }

    /// The kind of a task that waits.
    #[must_use]
    pub fn waits(&self, task: &TaskId) -> Option<Kind> {
        self.place_of(task).map(|place| self.kind_of(place))
    }

    /// The kind of the waiting task at a place.
    pub(crate) fn kind_of(&self, place: usize) -> Kind {
        self.kinds[usize::from(self.waiting[place].kind)]
    }

    pub(crate) fn class_of(&self, run: &RunFacts) -> TaskClass {
        self.kinds[usize::from(run.kind)].class
    }

    /// Whether the pool offers the guarantee of a kind, if it asks for one.
    pub(crate) fn is_offered(&self, kind: Kind) -> bool {
        kind.hours.is_none_or(|hours| self.limits.iter().any(|limit| limit.hours == hours))
    }

    /// The GPUs that windows sell within a guarantee that begins in so many seconds, beyond what their organizations use now; in
    /// thousandths of a GPU.
    pub(crate) fn sold_milli(&self, hours: HorizonHours, after_s: u32) -> u64 {
        let from = self.at.plus_s(i64::from(after_s));
        if self.windows.all.is_empty() {
            0
        } else {
            self.windows.within(from, from.plus_s(hours.seconds())).unused.milli()
        }
    }

    /// The place of a task among those that wait.
    #[must_use]
    pub fn place_of(&self, task: &TaskId) -> Option<usize> {
        self.waiting.iter().position(|waiting| waiting.task == *task)
    }

    /// Adds a task that is not submitted, as if it waited last of all that ask for the same. Answers its place; those of later
    /// tasks move.
    pub(crate) fn ask(&mut self, ask: &Ask, is_ghost: bool) -> usize {
        let (core, kind) = (ask.request.core(), Kind::of(&ask.request));
        let kind = known_or_new(&mut self.kinds, &kind);
        let organization = known_or_new(&mut self.organizations, &ask.request.organization);
        let wait = WaitFacts {
            task: core.task,
            kind,
            organization,
            size: Size::of(core.pod.gpus, core.pods),
            submitted: self.at.plus_s(i64::from(ask.after_s)),
            queued: self.at.plus_s(i64::from(ask.after_s)),
            rests_s: i64::from(ask.after_s),
            is_demand: false,
            runs_s: ask.runs_s,
            is_ghost,
            is_choosy: is_choosy(&core.pod),
        };
        let place_of =
            |one: &WaitFacts| (key(self.rules.order, self.kinds[usize::from(one.kind)], one.size), one.submitted);
        let place = self.waiting.partition_point(|one| place_of(one) <= place_of(&wait));
        self.waiting.insert(place, wait);
        place
    }
}

/// The number of one that is known, or that is added: the last one stands for all that come after 65,535 others.
fn known_or_new<T: PartialEq + Clone>(all: &mut Vec<T>, one: &T) -> u16 {
    let place = all.iter().position(|known| known == one).unwrap_or(all.len());
    let Ok(number) = u16::try_from(place) else { return u16::MAX };
    if place == all.len() {
        all.push(one.clone());
    }
    number
}

/// The place in the queue by kind and size, as `placement` orders it.
pub(crate) fn key(order: OrderRule, kind: Kind, size: Size) -> QueueKey {
    QueueKey::of(order, kind.class, size.pod_milli(), size.pods)
}
