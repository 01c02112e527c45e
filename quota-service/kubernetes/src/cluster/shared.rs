//! State that watches write and all others read.

use crate::events::Events;
use crate::view::View;
use crate::view::facts::{FactFault, PodFacts, Uid};
use serving::standing::Standing;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;
use vocab::{GpuModel, UnixSeconds};

/// After so long without a watch of nodes or pods the view is stale: nothing new is promised, published or evicted by it.
const STALE_AFTER: Duration = Duration::from_secs(30);

/// Watches whose first list is complete.
#[expect(clippy::struct_excessive_bools, reason = "each is a watch of its own")]
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
    /// Whether all nodes and pods are known, and what is counted with them.
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
    pub(super) synced: watch::Sender<Synced>,
    /// Resources whose watch is broken, and their last sign of life.
    lost: Mutex<BTreeMap<&'static str, Instant>>,
    pub(super) standing: Standing,
    now: fn() -> UnixSeconds,
    /// Observer of pods.
    seen: std::sync::OnceLock<PodObserver>,
    events: std::sync::OnceLock<Events>,
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
            lost: Mutex::default(),
            standing: Standing::new(),
            now,
            seen: std::sync::OnceLock::new(),
            events: std::sync::OnceLock::new(),
            workload_waits: Mutex::default(),
        })
    }

    /// Sets the observer, once: it gets each pod that is new or has changed, and, without facts, each deleted pod. The view is
    /// up to date by then, and not locked.
    pub fn tell(&self, seen: impl Fn(Uid, Option<&PodFacts>) + Send + Sync + 'static) {
        let _ = self.seen.set(Box::new(seen));
    }

    /// Sets, once, where events go.
    pub fn set_events(&self, events: Events) {
        let _ = self.events.set(events);
    }

    /// Where events go; nothing is written before it is set.
    #[must_use]
    pub fn events(&self) -> Events {
        self.events.get().cloned().unwrap_or_default()
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

    pub(super) fn lost(&self) -> std::sync::MutexGuard<'_, BTreeMap<&'static str, Instant>> {
        self.lost.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The resource whose watch has been broken for longest, and for how long; none while nodes and pods are watched.
    #[must_use]
    pub fn blind_for(&self) -> Option<(&'static str, Duration)> {
        let oldest = self.lost().iter().map(|(resource, since)| (*since, *resource)).min();
        oldest.map(|(since, resource)| (resource, since.elapsed()))
    }

    /// Whether the view is too old to promise, publish or evict by.
    #[must_use]
    pub fn is_stale(&self) -> bool {
        self.blind_for().is_some_and(|(_, lasts)| lasts > STALE_AFTER)
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

    pub(super) fn saw(&self, uid: Uid, pod: Option<&PodFacts>) {
        if let Some(seen) = self.seen.get() {
            seen(uid, pod);
        }
    }

    /// Logs an object that cannot be read, whole or in part, once, and again when it can be.
    pub(super) fn unreadable(&self, resource: &'static str, name: &str, fault: &FactFault) {
        metrics::counter!("headroom_kubernetes_unread_total", "resource" => resource).increment(1);
        if !self.standing.begins(&format!("{resource}/{name}")) {
            return;
        }
        if fault.counts_anyway() {
            tracing::warn!(resource, %fault, "it counts, without what cannot be read; a message follows when it can be");
        } else {
            tracing::warn!(resource, %fault, "unreadable: it does not count; a message follows when it can be read");
        }
    }

    pub(super) fn readable(&self, resource: &'static str, name: &str) {
        if self.standing.is_over(&format!("{resource}/{name}")).is_some() {
            tracing::info!(resource, name, "it can be read again");
        }
    }

    /// An object that is deleted is faulty no longer.
    pub(super) fn forget(&self, resource: &'static str, name: &str) {
        let _ = self.standing.is_over(&format!("{resource}/{name}"));
    }
}
