//! Watches that begin again by themselves, and tell the view.
//!
//! kube's reflector would keep each object beside what we make of it: the view is the store, and objects are dropped as they come.

use super::connect::chain;
use super::slim::{Node, Pod, PriorityClass};
use crate::view::View;
use crate::view::facts::{FactFault, PodFacts, Uid};
use crate::{claims, gangs};
use futures_util::{Stream, StreamExt};
use kube::runtime::watcher::{self, Event, watcher};
use kube::runtime::{WatchStreamExt, watcher::Error};
use kube::{Api, Client};
use serving::standing::Standing;
use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::{Duration, Instant};
use tokio::sync::watch;
use vocab::{GpuModel, NodeId, UnixSeconds};

/// Objects of one answer to a list. A pod of the API has some 5 KB.
const PAGE: u32 = 500;
/// After a longer silence a list may hide peaks that came and went.
const LONGEST_GAP: Duration = Duration::from_mins(1);

/// Watches whose first list is complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Synced {
    /// Nodes.
    pub nodes: bool,
    /// Pods.
    pub pods: bool,
    /// Priority classes.
    pub classes: bool,
    /// Claims and devices; true where they are not counted.
    pub claims: bool,
    /// Gangs; true where they are not counted.
    pub gangs: bool,
}

impl Synced {
    /// Whether all nodes and pods are known.
    #[must_use]
    pub const fn is_whole(self) -> bool {
        self.nodes && self.pods && self.claims && self.gangs
    }
}

/// Called with each changed pod.
type PodObserver = Box<dyn Fn(Uid, Option<&PodFacts>) + Send + Sync>;

/// The view, shared: watches write, all others read.
pub struct Shared {
    view: RwLock<View>,
    synced: watch::Sender<Synced>,
    standing: Standing,
    now: fn() -> UnixSeconds,
    /// Observer of pods.
    seen: std::sync::OnceLock<PodObserver>,
    /// The longest that a Workload waits for quota, s, by pool.
    workload_waits: Mutex<BTreeMap<GpuModel, u64>>,
}

impl Shared {
    #[must_use]
    pub fn new(view: View, now: fn() -> UnixSeconds) -> Arc<Self> {
        let (claims, gangs) = (view.reading().device_classes.is_empty(), !view.reading().gangs);
        let synced = watch::Sender::new(Synced { claims, gangs, ..Synced::default() });
        Arc::new(Self {
            view: RwLock::new(view),
            synced,
            standing: Standing::new(),
            now,
            seen: std::sync::OnceLock::new(),
            workload_waits: Mutex::default(),
        })
    }

    /// Sets the observer, once: it gets each pod that is new or has changed, and, without facts, each deleted pod. The view is
    /// up to date by then, and not locked.
    pub fn tell(&self, seen: impl Fn(Uid, Option<&PodFacts>) + Send + Sync + 'static) {
        let _ = self.seen.set(Box::new(seen));
    }

    pub fn read(&self) -> RwLockReadGuard<'_, View> {
        self.view.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn write(&self) -> RwLockWriteGuard<'_, View> {
        self.view.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// The time of this machine.
    #[must_use]
    pub fn now(&self) -> UnixSeconds {
        (self.now)()
    }

    #[must_use]
    pub fn synced(&self) -> watch::Receiver<Synced> {
        self.synced.subscribe()
    }

    /// The first lists of claims and devices are complete.
    pub fn claims_are_known(&self) {
        self.synced.send_modify(|synced| synced.claims = true);
    }

    /// The first lists of gangs are complete.
    pub fn gangs_are_known(&self) {
        self.synced.send_modify(|synced| synced.gangs = true);
    }

    /// Workloads of Kueue that wait for quota have no pods yet: the answering of their check sets how long they wait, s.
    pub fn set_workload_waits(&self, waits_s: BTreeMap<GpuModel, u64>) {
        *self.workload_waits.lock().unwrap_or_else(PoisonError::into_inner) = waits_s;
    }

    /// The longest that a Workload waits for quota of a pool, s; 0 where none does.
    #[must_use]
    pub fn workload_wait_s(&self, model: &GpuModel) -> u64 {
        let waits = self.workload_waits.lock().unwrap_or_else(PoisonError::into_inner);
        waits.get(model).copied().unwrap_or(0)
    }

    fn saw(&self, uid: Uid, pod: Option<&PodFacts>) {
        if let Some(seen) = self.seen.get() {
            seen(uid, pod);
        }
    }

    /// Logs an unreadable object once, and again when it can be read.
    fn unreadable(&self, resource: &'static str, name: &str, fault: &FactFault) {
        metrics::counter!("headroom_kubernetes_unread_total", "resource" => resource).increment(1);
        if self.standing.begins(&format!("{resource}/{name}")) {
            tracing::warn!(resource, %fault, "unreadable: it does not count; a message follows when it can be read");
        }
    }

    fn readable(&self, resource: &'static str, name: &str) {
        if self.standing.is_over(&format!("{resource}/{name}")).is_some() {
            tracing::info!(resource, name, "readable again: it counts");
        }
    }
}

/// Handler of the events of one watch.
trait WatchHandler<K> {
    const RESOURCE: &'static str;
    /// A list begins.
    fn begin(&mut self);
    /// An object is listed, new or changed.
    fn applied(&mut self, object: &K, shared: &Shared);
    /// An object was deleted.
    fn deleted(&mut self, object: &K, shared: &Shared);
    /// The list is complete.
    fn synced(&mut self, shared: &Shared);
}

#[derive(Default)]
struct Pods {
    seen: BTreeSet<Uid>,
}

fn name_of(meta: &k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta) -> String {
    let name = meta.name.as_deref().unwrap_or_default();
    meta.namespace.as_ref().map_or_else(|| name.to_owned(), |namespace| format!("{namespace}/{name}"))
}

impl WatchHandler<Pod> for Pods {
    const RESOURCE: &'static str = "pods";

    fn begin(&mut self) {
        self.seen.clear();
    }

    fn applied(&mut self, pod: &Pod, shared: &Shared) {
        let name = name_of(&pod.metadata);
        let now = shared.now();
        let mut view = shared.write();
        match view.see_pod(pod, now) {
            Ok(None) => {}
            Ok(Some(seen)) => {
                self.seen.insert(seen.uid);
                drop(view);
                if let Some(facts) = &seen.facts {
                    shared.saw(seen.uid, Some(facts));
                }
                match seen.faults.first() {
                    Some(fault) => shared.unreadable(Self::RESOURCE, &name, fault),
                    None => shared.readable(Self::RESOURCE, &name),
                }
            }
            Err(fault) => {
                drop(view);
                shared.unreadable(Self::RESOURCE, &name, &fault);
            }
        }
    }

    fn deleted(&mut self, pod: &Pod, shared: &Shared) {
        let now = shared.now();
        let mut view = shared.write();
        let Some(uid) = pod.metadata.uid.as_deref().map(Uid::of) else { return };
        let facts = view.see_no_pod(uid, pod, now);
        drop(view);
        shared.readable(Self::RESOURCE, &name_of(&pod.metadata));
        if facts.is_some() {
            // How it was last says why it went.
            shared.saw(uid, facts.as_ref());
        }
        shared.saw(uid, None);
    }

    fn synced(&mut self, shared: &Shared) {
        shared.write().see_all_pods(&self.seen, shared.now());
        self.seen.clear();
        shared.synced.send_modify(|synced| synced.pods = true);
    }
}

#[derive(Default)]
struct Nodes {
    seen: BTreeSet<NodeId>,
}

impl WatchHandler<Node> for Nodes {
    const RESOURCE: &'static str = "nodes";

    fn begin(&mut self) {
        self.seen.clear();
    }

    fn applied(&mut self, node: &Node, shared: &Shared) {
        let name = name_of(&node.metadata);
        let now = shared.now();
        let mut view = shared.write();
        match view.see_node(node, now) {
            Ok(id) => self.seen.extend(id),
            Err(fault) => {
                drop(view);
                return shared.unreadable(Self::RESOURCE, &name, &fault);
            }
        }
        drop(view);
        shared.readable(Self::RESOURCE, &name);
    }

    fn deleted(&mut self, node: &Node, shared: &Shared) {
        if let Ok(id) = NodeId::parse(&name_of(&node.metadata)) {
            shared.write().see_no_node(&id, shared.now());
        }
    }

    fn synced(&mut self, shared: &Shared) {
        shared.write().see_all_nodes(&self.seen, shared.now());
        self.seen.clear();
        shared.synced.send_modify(|synced| synced.nodes = true);
    }
}

/// Whether the priority classes that the settings name are there.
#[derive(Default)]
struct Classes {
    there: BTreeSet<String>,
    is_whole: bool,
}

impl Classes {
    fn look(&self, shared: &Shared) {
        if !self.is_whole {
            return;
        }
        let named = shared.read().reading().spot_classes.clone();
        for class in named {
            let of = format!("priorityclasses/{class}");
            if self.there.contains(&class) {
                if shared.standing.is_over(&of).is_some() {
                    tracing::info!(class, "the priority class of spot pods is there");
                }
            } else if shared.standing.begins(&of) {
                tracing::warn!(
                    class,
                    "there is no such priority class: pods of it cannot be made (spot_priority_classes)"
                );
            }
        }
    }
}

impl WatchHandler<PriorityClass> for Classes {
    const RESOURCE: &'static str = "priorityclasses";

    fn begin(&mut self) {
        self.there.clear();
        self.is_whole = false;
    }

    fn applied(&mut self, class: &PriorityClass, shared: &Shared) {
        self.there.insert(name_of(&class.metadata));
        self.look(shared);
    }

    fn deleted(&mut self, class: &PriorityClass, shared: &Shared) {
        self.there.remove(&name_of(&class.metadata));
        self.look(shared);
    }

    fn synced(&mut self, shared: &Shared) {
        self.is_whole = true;
        self.look(shared);
        shared.synced.send_modify(|synced| synced.classes = true);
    }
}

/// Watches nodes, pods and priority classes until it is dropped.
pub async fn run(client: Client, shared: Arc<Shared>) {
    let config = watcher::Config::default().page_size(PAGE);
    let nodes = watcher(Api::<Node>::all(client.clone()), config.clone()).default_backoff();
    let pods = watcher(Api::<Pod>::all(client.clone()), config.clone()).default_backoff();
    let classes = watcher(Api::<PriorityClass>::all(client.clone()), config).default_backoff();
    tokio::join!(
        claims::watch::run(client.clone(), Arc::clone(&shared)),
        gangs::watch::run(client, Arc::clone(&shared)),
        follow(nodes, Nodes::default(), &shared),
        follow(pods, Pods::default(), &shared),
        follow(classes, Classes::default(), &shared),
    );
}

async fn follow<K, T: WatchHandler<K>>(
    events: impl Stream<Item = Result<Event<K>, Error>>,
    mut handler: T,
    shared: &Shared,
) {
    let mut events = pin!(events);
    let (standing, mut lost): (Standing, Option<Instant>) = (Standing::new(), None);
    while let Some(event) = events.next().await {
        match event {
            Err(fault) => {
                metrics::counter!("headroom_kubernetes_watch_faults_total", "resource" => T::RESOURCE).increment(1);
                // Hours without a watch are gaps, and no frozen demand. Tries follow each other within a minute.
                if lost.get_or_insert_with(Instant::now).elapsed() > LONGEST_GAP {
                    shared.write().missed();
                }
                if standing.begins("") {
                    let fault = chain(&fault);
                    tracing::warn!(
                        resource = T::RESOURCE,
                        fault,
                        "the watch broke off and begins again: a message follows when it does"
                    );
                }
            }
            Ok(event) => {
                if let Some(over) = standing.is_over("") {
                    tracing::info!(
                        resource = T::RESOURCE,
                        lasted_s = over.lasted_s,
                        times = over.times,
                        "the watch works again"
                    );
                }
                let is_listed = matches!(event, Event::InitDone);
                let is_listing = matches!(event, Event::Init | Event::InitApply(_));
                match event {
                    Event::Init => handler.begin(),
                    Event::InitApply(object) | Event::Apply(object) => handler.applied(&object, shared),
                    Event::Delete(object) => handler.deleted(&object, shared),
                    Event::InitDone => handler.synced(shared),
                }
                // A watch gets missed changes when it goes on, but no object that came and went between two lists.
                if is_listed && lost.is_some_and(|since| since.elapsed() > LONGEST_GAP) {
                    shared.write().missed();
                }
                if !is_listing {
                    lost = None;
                }
            }
        }
    }
}
