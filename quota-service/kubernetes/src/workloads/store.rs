//! Current Workloads, by a watch.

use super::WorkloadFacts;
use crate::cluster::objects::{Event, follow};
use crate::cluster::workload::Workload;
use crate::view::facts::Reading;
use kube::{Api, Client};
use serving::standing::Standing;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::watch;

type Key = (String, String);

#[derive(Debug, Default)]
struct Kept {
    there: BTreeMap<Key, WorkloadFacts>,
    /// Objects of the running list so far.
    listed: BTreeMap<Key, WorkloadFacts>,
}

/// Workloads by namespace and name.
#[derive(Debug)]
pub struct Store {
    kept: Mutex<Kept>,
    reading: Reading,
    check: String,
    /// Rises with each change; 0 until the first list is complete.
    changes: watch::Sender<u64>,
}

impl Store {
    /// An empty one; `check` is the name of our admission check.
    #[must_use]
    pub fn new(reading: Reading, check: &str) -> Arc<Self> {
        let (kept, changes) = (Mutex::default(), watch::Sender::new(0));
        Arc::new(Self { kept, reading, check: check.to_owned(), changes })
    }

    fn kept(&self) -> std::sync::MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All Workloads, by namespace and name; `None` until the first list is complete.
    #[must_use]
    pub fn all(&self) -> Option<Vec<WorkloadFacts>> {
        let is_whole = *self.changes.borrow() > 0;
        is_whole.then(|| self.kept().there.values().cloned().collect())
    }

    /// Receiver that wakes at each change.
    #[must_use]
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Stores the answer of a write before the watch reports it: the next round must not decide on the old state.
    pub fn wrote(&self, answer: serde_json::Value) {
        if let Ok(workload) = serde_json::from_value::<Workload>(answer) {
            self.set(&workload);
        }
    }

    fn set(&self, workload: &Workload) {
        let facts = WorkloadFacts::read(workload, &self.reading, &self.check);
        let mut kept = self.kept();
        let key = facts.key();
        // The watch reports versions that we have written over since. Versions are numbers; where they are not, the watch is right in the end.
        let is_older = kept.there.get(&key).is_some_and(|known| {
            let number = |facts: &WorkloadFacts| facts.resource_version.parse::<u64>().ok();
            known.uid == facts.uid
                && number(&facts).zip(number(known)).is_some_and(|(reported, known)| reported < known)
        });
        if !is_older {
            kept.there.insert(key, facts);
        }
    }

    /// Stores an event of the watch.
    pub fn tell(&self, event: Event<Workload>) {
        let is_listed = matches!(event, Event::InitDone);
        match event {
            Event::Init => self.kept().listed.clear(),
            Event::InitApply(workload) => {
                let facts = WorkloadFacts::read(&workload, &self.reading, &self.check);
                self.kept().listed.insert(facts.key(), facts);
            }
            Event::InitDone => {
                let mut kept = self.kept();
                kept.there = std::mem::take(&mut kept.listed);
            }
            Event::Apply(workload) => self.set(&workload),
            Event::Delete(workload) => {
                let key = WorkloadFacts::read(&workload, &self.reading, &self.check).key();
                self.kept().there.remove(&key);
            }
            Event::Resumed | Event::Lost { .. } => return,
        }
        self.changes.send_if_modified(|count| {
            let is_reported = is_listed || *count > 0;
            *count += u64::from(is_reported);
            is_reported
        });
    }
}

/// Keeps a store up to date. Never returns.
pub async fn watch_into(client: Client, store: Arc<Store>) {
    let standing = Standing::new();
    follow(Api::<Workload>::all(client), move |event| {
        match &event {
            Event::Resumed => {
                if let Some(over) = standing.is_over("") {
                    tracing::info!(lasted_s = over.lasted_s, times = over.times, "Workloads are watched again");
                }
            }
            Event::Lost { fault, .. } => {
                metrics::counter!("headroom_kubernetes_watch_faults_total", "resource" => "workloads").increment(1);
                if standing.begins("") {
                    tracing::warn!(
                        fault,
                        "Workloads (kueue.x-k8s.io/v1beta2) are not watched: check that Kueue is installed and that this identity may list them; a message follows when they are"
                    );
                }
            }
            _ => {}
        }
        store.tell(event);
    })
    .await;
}
