//! Tasks that wait, those that ask for the same together: if one of them does not fit, none does.

use super::{Elastic, Request, Waiting};
use crate::fleet::{Gang, PodRequest};
use crate::policy::OrderRule;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use vocab::{HorizonHours, Organization, TaskClass, TaskId, UnixSeconds};

/// Everything that decides whether a task fits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Shape {
    /// Class of the task.
    pub class: TaskClass,
    /// The request of each pod.
    pub pod: PodRequest,
    /// Those without which it does not run.
    pub pods: u32,
    /// The guarantee that it asks for.
    pub hours: Option<HorizonHours>,
    /// Those that it asks for.
    asked_pods: u32,
    /// Whether it may evict nobody yet.
    is_deferred: bool,
}

impl Shape {
    /// Key of a waiting task.
    pub fn of(waiting: &Waiting) -> Self {
        let Request { gang: Gang { class, pod, pods: asked_pods, .. }, hours, .. } = waiting.request;
        let pods = waiting.request.elastic.as_ref().map_or(asked_pods, Elastic::min_pods);
        Self { class, pod, pods, hours, asked_pods, is_deferred: waiting.deferral.is_some() }
    }
}

/// Tasks of one key come in the order of their submission, with any request (DESIGN §4.9).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// HP before spot.
    pub class: TaskClass,
    size: Reverse<u64>,
    pods: Reverse<u32>,
}

impl Key {
    /// Key of a task with so many pods of so many thousandths of a GPU each.
    #[must_use]
    pub fn of(rule: OrderRule, class: TaskClass, gpus_per_pod_milli: u32, pods: u32) -> Self {
        let (size, pods) = match rule {
            OrderRule::Size => (u64::from(gpus_per_pod_milli), pods),
            OrderRule::SmallSpotFirst if class == TaskClass::Spot => {
                (u64::MAX - u64::from(gpus_per_pod_milli) * u64::from(pods), 0)
            }
            OrderRule::Arrival | OrderRule::SmallSpotFirst => (0, 0),
        };
        Self { class, size: Reverse(size), pods: Reverse(pods) }
    }
}

/// A task among those of its shape.
pub type Head = (UnixSeconds, TaskId);
type Group = BTreeMap<Shape, BTreeSet<Head>>;

/// Tasks that are tried, by key and shape.
#[derive(Debug, Clone, Default)]
struct Groups(BTreeMap<Key, Group>);

impl Groups {
    fn insert(&mut self, key: Key, shape: Shape, head: Head) {
        self.0.entry(key).or_default().entry(shape).or_default().insert(head);
    }

    fn remove(&mut self, key: Key, shape: &Shape, head: &Head) {
        let Some(group) = self.0.get_mut(&key) else { return };
        if let Some(tasks) = group.get_mut(shape) {
            tasks.remove(head);
            if tasks.is_empty() {
                group.remove(shape);
            }
        }
        debug_assert!(group.values().all(|tasks| !tasks.is_empty()), "a shape without tasks stays in the queue");
        if group.is_empty() {
            self.0.remove(&key);
        }
    }
}

const fn number(class: TaskClass) -> usize {
    match class {
        TaskClass::Hp => 0,
        TaskClass::Spot => 1,
    }
}

fn heads(group: &Group) -> BTreeSet<(Head, Shape)> {
    group.iter().filter_map(|(shape, tasks)| Some((tasks.first()?.clone(), *shape))).collect()
}

/// Waiting tasks in the order of their policy.
#[derive(Debug, Clone)]
pub struct Queue {
    rule: OrderRule,
    groups: Groups,
    /// Spot by organization; none where the policy keeps no shares.
    of: Option<BTreeMap<Organization, Groups>>,
    tasks: BTreeMap<TaskId, Waiting>,
    /// By class: those that are tried, by the time for which they have waited.
    ages: [BTreeSet<Head>; 2],
}

impl Queue {
    /// An empty queue; `by_share` where spot is served by organization.
    pub fn new(rule: OrderRule, by_share: bool) -> Self {
        let (groups, of) = (Groups::default(), by_share.then(BTreeMap::new));
        Self { rule, groups, of, tasks: BTreeMap::new(), ages: [BTreeSet::new(), BTreeSet::new()] }
    }

    fn key(&self, shape: &Shape) -> Key {
        Key::of(self.rule, shape.class, shape.pod.gpus.milli(), shape.asked_pods)
    }

    /// All waiting tasks, in order.
    pub fn all(&self) -> impl Iterator<Item = &Waiting> {
        self.tasks.values()
    }

    /// A waiting task by its id.
    pub fn get(&self, task: &TaskId) -> Option<&Waiting> {
        self.tasks.get(task)
    }

    /// Adds a task; one that rests is not tried.
    pub fn insert(&mut self, waiting: Waiting) {
        if waiting.rests_until.is_none() {
            let (shape, task) = (Shape::of(&waiting), waiting.request.gang.task.clone());
            if waiting.deferral.is_none() {
                self.ages[number(shape.class)].insert((waiting.queued, task.clone()));
            }
            let (key, head) = (self.key(&shape), (waiting.request.submitted, task));
            if let Some(of) = self.of.as_mut().filter(|_| shape.class == TaskClass::Spot) {
                of.entry(waiting.request.organization.clone()).or_default().insert(key, shape, head.clone());
            }
            self.groups.insert(key, shape, head);
        }
        let before = self.tasks.insert(waiting.request.gang.task.clone(), waiting);
        debug_assert!(before.is_none(), "a task waits twice: {before:?}");
        debug_assert!(self.tried() <= self.tasks.len(), "more tasks are tried than wait");
    }

    /// Number of tasks that are tried.
    fn tried(&self) -> usize {
        self.groups.0.values().flat_map(BTreeMap::values).map(BTreeSet::len).sum()
    }

    /// Takes a task out of the queue.
    pub fn remove(&mut self, task: &TaskId) -> Option<Waiting> {
        let waiting = self.tasks.remove(task)?;
        let shape = Shape::of(&waiting);
        self.ages[number(shape.class)].remove(&(waiting.queued, task.clone()));
        let (key, head) = (self.key(&shape), (waiting.request.submitted, task.clone()));
        self.groups.remove(key, &shape, &head);
        let organization = &waiting.request.organization;
        if let Some(of) = &mut self.of
            && let Some(groups) = of.get_mut(organization)
        {
            groups.remove(key, &shape, &head);
            if groups.0.is_empty() {
                of.remove(organization);
            }
        }
        debug_assert!(self.ages.iter().all(|ages| ages.iter().all(|(_, other)| other != task)), "{task} has an age");
        Some(waiting)
    }

    /// Organizations with spot that is tried, where the policy keeps shares.
    pub fn organizations(&self) -> impl Iterator<Item = &Organization> {
        self.of.iter().flat_map(BTreeMap::keys)
    }

    /// The first spot task of each shape of an organization, in the order of the policy.
    pub fn heads_of(&self, organization: &Organization) -> impl Iterator<Item = (&TaskId, &Shape)> {
        let groups = self.of.as_ref().and_then(|of| of.get(organization));
        groups.into_iter().flat_map(|groups| groups.0.values()).flat_map(|group| {
            let mut heads: Vec<(&Head, &Shape)> =
                group.iter().filter_map(|(shape, tasks)| Some((tasks.first()?, shape))).collect();
            heads.sort_unstable();
            heads.into_iter().map(|((_, task), shape)| (task, shape))
        })
    }

    /// Tasks of a class that are tried, neither at rest nor put off: since when each waits, the one that waits longest first.
    pub fn oldest(&self, class: TaskClass) -> impl Iterator<Item = &Head> {
        self.ages[number(class)].iter()
    }

    /// Whether others wait for the very same.
    pub fn has_alike(&self, shape: &Shape) -> bool {
        self.groups.0.get(&self.key(shape)).and_then(|group| group.get(shape)).is_some_and(|tasks| tasks.len() > 1)
    }

    /// The first key, or the next one after a key.
    pub fn key_after(&self, key: Option<Key>) -> Option<Key> {
        let from = key.map_or(Bound::Unbounded, Bound::Excluded);
        self.groups.0.range((from, Bound::Unbounded)).next().map(|(key, _)| *key)
    }

    /// The first task of each shape of a key.
    pub fn heads(&self, key: Key) -> BTreeSet<(Head, Shape)> {
        self.groups.0.get(&key).map(heads).unwrap_or_default()
    }

    /// The first task of a shape.
    pub fn head(&self, key: Key, shape: &Shape) -> Option<Head> {
        self.groups.0.get(&key)?.get(shape)?.first().cloned()
    }

    /// The first task of each shape: what it asks for, and since when it waits.
    pub fn first_of_each_shape(&self) -> impl Iterator<Item = (Gang, Option<HorizonHours>, UnixSeconds)> {
        let shapes = self.groups.0.values().flat_map(BTreeMap::values);
        shapes.filter_map(|tasks| {
            let head = &tasks.first()?.1;
            debug_assert!(self.tasks.contains_key(head), "{head} is in a group and does not wait");
            let first = &self.tasks[head];
            Some((first.request.core(), first.request.hours, first.queued))
        })
    }
}
