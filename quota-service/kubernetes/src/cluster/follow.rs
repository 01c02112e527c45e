//! Watches of kinds that may be served or not, in the newest version that we read.

use super::objects::{Event, follow};
use super::served::{ListFault, Wanted, in_words, served};
use super::watch::Shared;
use crate::view::View;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{ApiResource, ListParams, Object};
use kube::{Api, Client};
use serde::de::DeserializeOwned;
use serving::standing::Standing;
use std::collections::BTreeSet;
use std::fmt::Debug;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use vocab::UnixSeconds;

/// Objects of one answer to a list.
const PAGE: u32 = 500;
/// Kinds that are not served are looked for again after this.
const LOOKS_AGAIN: Duration = Duration::from_mins(5);
/// Discovery that failed is tried again after this.
const TRIES_AGAIN: Duration = Duration::from_secs(2);

/// A kind of objects that the view counts.
pub trait Counted {
    /// The kind, and the versions of it that we read.
    const WANTED: Wanted;
    /// Its spec.
    type Spec: Clone + Debug + Default + DeserializeOwned + Send + 'static;
    /// Its status.
    type Status: Clone + Debug + Default + DeserializeOwned + Send + 'static;
    /// Tells the view: it is there or has changed, or, without content, it has gone. Of an object that has gone the metadata have
    /// namespace and name alone.
    ///
    /// # Errors
    /// It is not understood.
    fn tell(
        view: &mut View,
        meta: &ObjectMeta,
        content: Option<(Self::Spec, Option<Self::Status>)>,
        now: UnixSeconds,
    ) -> Result<(), String>;
    /// Counts what was reported; `at_once` after a list is complete.
    fn settle(view: &mut View, at_once: bool, now: UnixSeconds);
}

/// Namespace and name.
type Key = (String, String);

fn key_of(meta: &ObjectMeta) -> Key {
    (meta.namespace.clone().unwrap_or_default(), meta.name.clone().unwrap_or_default())
}

/// Lists all objects of a kind once. Answers those that are not understood.
///
/// # Errors
/// The API cannot be reached, or refuses.
pub async fn list<K: Counted>(client: &Client, view: &mut View, now: UnixSeconds) -> Result<Vec<String>, ListFault> {
    list_in::<K>(client, view, None, now).await
}

/// Lists the objects of one namespace, or all of them, once. Answers those that are not understood.
///
/// # Errors
/// The API cannot be reached, or refuses.
pub async fn list_in<K: Counted>(
    client: &Client,
    view: &mut View,
    namespace: Option<&str>,
    now: UnixSeconds,
) -> Result<Vec<String>, ListFault> {
    let failed = |fault: kube::Error| ListFault::of(K::WANTED.plural, &fault);
    let Some(resource) = served(client, K::WANTED).await.map_err(failed)? else { return Ok(Vec::new()) };
    let api: Api<Object<K::Spec, K::Status>> = match namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    };
    let (mut token, mut faults) = (None, Vec::new());
    loop {
        let params = ListParams { limit: Some(PAGE), continue_token: token.take(), ..ListParams::default() };
        let page = api.list(&params).await.map_err(failed)?;
        for object in page.items {
            let read = K::tell(view, &object.metadata, Some((object.spec, object.status)), now);
            faults.extend(read.err());
        }
        token = page.metadata.continue_.filter(|token| !token.is_empty());
        if token.is_none() {
            K::settle(view, true, now);
            return Ok(faults);
        }
    }
}

/// Counts the kinds whose first list is not complete.
pub struct Lists {
    /// The view.
    pub shared: Arc<Shared>,
    missing: Mutex<usize>,
    are_known: fn(&Shared),
}

impl Lists {
    /// Of so many kinds; `are_known` is called once all are listed.
    #[must_use]
    pub fn new(shared: Arc<Shared>, kinds: usize, are_known: fn(&Shared)) -> Self {
        Self { shared, missing: Mutex::new(kinds), are_known }
    }

    fn one_is_known(&self) {
        let mut missing = self.missing.lock().unwrap_or_else(PoisonError::into_inner);
        *missing = missing.saturating_sub(1);
        if *missing == 0 {
            (self.are_known)(&self.shared);
        }
    }
}

/// Waits until the kind is served. A cluster without it has no objects of it.
async fn found<K: Counted>(client: &Client, lists: &Lists, is_known: &mut bool) -> ApiResource {
    let (standing, resource) = (Standing::new(), K::WANTED.plural);
    loop {
        match served(client, K::WANTED).await {
            Ok(Some(resource)) => return resource,
            Ok(None) => {
                if !std::mem::replace(is_known, true) {
                    let group = K::WANTED.group;
                    tracing::info!(resource, group, "the API does not serve this kind: none is counted until it does");
                    lists.one_is_known();
                }
                tokio::time::sleep(LOOKS_AGAIN).await;
            }
            Err(fault) => {
                if standing.begins("") {
                    let fault = in_words(&fault);
                    tracing::warn!(
                        resource,
                        fault,
                        "the API does not say whether it serves this kind: it is asked again"
                    );
                }
                tokio::time::sleep(TRIES_AGAIN).await;
            }
        }
    }
}

/// Watches a kind until it is dropped.
pub async fn watch<K: Counted>(client: &Client, lists: &Lists) {
    let mut follower = Follower::<K>::new();
    let resource = found::<K>(client, lists, &mut follower.is_known).await;
    let api = Api::<Object<K::Spec, K::Status>>::all_with(client.clone(), &resource);
    let resource = K::WANTED.plural;
    follow(api, move |event| {
        if let Event::Lost { since, fault } = &event {
            lists.shared.lost().entry(resource).or_insert(*since);
            metrics::counter!("headroom_kubernetes_watch_faults_total", "resource" => resource).increment(1);
            if follower.standing.begins("") {
                tracing::warn!(resource, fault, "the watch broke off and begins again: a message follows when it does");
            }
        }
        follower.take(event, lists);
    })
    .await;
}

/// Memory of one watch.
struct Follower<K> {
    standing: Standing,
    there: BTreeSet<Key>,
    listed: BTreeSet<Key>,
    is_known: bool,
    kind: PhantomData<K>,
}

impl<K: Counted> Follower<K> {
    fn new() -> Self {
        let (there, listed) = (BTreeSet::new(), BTreeSet::new());
        Self { standing: Standing::new(), there, listed, is_known: false, kind: PhantomData }
    }

    fn take(&mut self, event: Event<Object<K::Spec, K::Status>>, lists: &Lists) {
        let shared = &lists.shared;
        match event {
            Event::Lost { .. } => {}
            Event::Resumed => {
                shared.lost().remove(K::WANTED.plural);
                if let Some(over) = self.standing.is_over("") {
                    tracing::info!(resource = K::WANTED.plural, lasted_s = over.lasted_s, "the watch works again");
                }
            }
            Event::Init => self.listed.clear(),
            Event::InitApply(object) => {
                self.listed.insert(key_of(&object.metadata));
                self.tell(shared, &object.metadata, Some((object.spec, object.status)), false);
            }
            Event::InitDone => {
                let gone: Vec<Key> = self.there.difference(&self.listed).cloned().collect();
                for (namespace, name) in gone {
                    let meta = ObjectMeta { namespace: Some(namespace), name: Some(name), ..ObjectMeta::default() };
                    self.tell(shared, &meta, None, false);
                }
                self.there = std::mem::take(&mut self.listed);
                K::settle(&mut shared.write(), true, shared.now());
                if !std::mem::replace(&mut self.is_known, true) {
                    lists.one_is_known();
                }
            }
            Event::Apply(object) => {
                self.there.insert(key_of(&object.metadata));
                self.tell(shared, &object.metadata, Some((object.spec, object.status)), true);
            }
            Event::Delete(object) => {
                self.there.remove(&key_of(&object.metadata));
                self.tell(shared, &object.metadata, None, true);
            }
        }
    }

    fn tell(&self, shared: &Shared, meta: &ObjectMeta, content: Option<(K::Spec, Option<K::Status>)>, settles: bool) {
        let (namespace, name) = key_of(meta);
        let now = shared.now();
        let mut view = shared.write();
        let read = K::tell(&mut view, meta, content, now);
        if settles {
            K::settle(&mut view, false, now);
        }
        drop(view);
        let resource = K::WANTED.plural;
        self.standing.note(
            &format!("{namespace}/{name}"),
            &read,
            |fault| tracing::warn!(resource, namespace, name, %fault, "not understood: it does not count"),
            |_| tracing::info!(resource, namespace, name, "understood again: it counts"),
        );
    }
}
