//! Watches that begin again by themselves, and tell the view.
//!
//! kube's reflector would keep each object beside what we make of it: the view is the store, and objects are dropped as they come.

use super::objects::{Event, follow};
pub use super::shared::{Shared, Synced};
use super::slim::{Node, Pod, PriorityClass};
use crate::view::facts::Uid;
use crate::{claims, gangs};
use kube::{Api, Client};
use serving::standing::Standing;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use vocab::NodeId;

/// After a longer silence peaks may have come and gone unseen.
const LONGEST_GAP: Duration = Duration::from_mins(1);
/// Handler of the events of one watch.
trait WatchHandler<K> {
    const RESOURCE: &'static str;
    /// Whether the view is blind without this watch.
    const IS_VIEW: bool;
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
    const IS_VIEW: bool = true;

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
                // Its earlier reading no longer counts.
                if let Some(uid) = pod.metadata.uid.as_deref().map(Uid::of) {
                    view.see_no_pod(uid, pod, now);
                    drop(view);
                    shared.saw(uid, None);
                } else {
                    drop(view);
                }
                shared.unreadable(Self::RESOURCE, &name, &fault);
            }
        }
    }

    fn deleted(&mut self, pod: &Pod, shared: &Shared) {
        let now = shared.now();
        shared.forget(Self::RESOURCE, &name_of(&pod.metadata));
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
    const IS_VIEW: bool = true;

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
                // Its earlier reading no longer counts.
                if let Ok(id) = NodeId::parse(&name) {
                    view.see_no_node(&id, now);
                }
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

/// Whether the priority classes that the settings name are there, and which one is the default of the cluster.
#[derive(Default)]
struct Classes {
    there: BTreeSet<String>,
    /// Of several the lowest holds, as in Kubernetes.
    defaults: BTreeSet<(i32, String)>,
    is_whole: bool,
}

impl Classes {
    fn look(&self, shared: &Shared) {
        if !self.is_whole {
            return;
        }
        let default = self.defaults.first().map(|(_, name)| name.clone());
        let (named, known) = {
            let view = shared.read();
            (view.reading().spot_classes.clone(), view.default_class().map(str::to_owned))
        };
        if known != default {
            shared.write().set_default_class(default);
        }
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
    const IS_VIEW: bool = false;

    fn begin(&mut self) {
        self.there.clear();
        self.defaults.clear();
        self.is_whole = false;
    }

    fn applied(&mut self, class: &PriorityClass, shared: &Shared) {
        let name = name_of(&class.metadata);
        self.defaults.retain(|(_, known)| *known != name);
        if class.is_default {
            self.defaults.insert((class.value, name.clone()));
        }
        self.there.insert(name);
        self.look(shared);
    }

    fn deleted(&mut self, class: &PriorityClass, shared: &Shared) {
        let name = name_of(&class.metadata);
        self.defaults.retain(|(_, known)| *known != name);
        self.there.remove(&name);
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
    tokio::join!(
        claims::watch::run(client.clone(), Arc::clone(&shared)),
        gangs::watch::run(client.clone(), Arc::clone(&shared)),
        keep::<Node, Nodes>(client.clone(), &shared),
        keep::<Pod, Pods>(client.clone(), &shared),
        keep::<PriorityClass, Classes>(client, &shared),
    );
}

async fn keep<K, T>(client: Client, shared: &Shared)
where
    K: kube::Resource<DynamicType = ()> + Clone + serde::de::DeserializeOwned + std::fmt::Debug,
    T: WatchHandler<K> + Default,
{
    let (mut handler, standing) = (T::default(), Standing::new());
    follow(Api::<K>::all(client), move |event| handle(event, &mut handler, shared, &standing)).await;
}

fn handle<K, T: WatchHandler<K>>(event: Event<K>, handler: &mut T, shared: &Shared, standing: &Standing) {
    let resource = T::RESOURCE;
    match event {
        Event::Init => handler.begin(),
        Event::InitApply(object) | Event::Apply(object) => handler.applied(&object, shared),
        Event::Delete(object) => handler.deleted(&object, shared),
        Event::InitDone => {
            handler.synced(shared);
            // A list has what was missed, but no object that came and went since the watch broke off.
            if T::IS_VIEW && shared.lost().get(resource).is_some_and(|since| since.elapsed() > LONGEST_GAP) {
                shared.write().missed();
            }
        }
        Event::Resumed => {
            shared.lost().remove(resource);
            if let Some(over) = standing.is_over("") {
                tracing::info!(resource, lasted_s = over.lasted_s, times = over.times, "the watch works again");
            }
        }
        Event::Lost { since, fault } => {
            metrics::counter!("headroom_kubernetes_watch_faults_total", "resource" => resource).increment(1);
            if T::IS_VIEW {
                let since = *shared.lost().entry(resource).or_insert(since);
                // Hours without a watch are gaps, and no frozen demand. Tries follow each other within seconds.
                if since.elapsed() > LONGEST_GAP {
                    shared.write().missed();
                }
            }
            if standing.begins("") {
                tracing::warn!(resource, fault, "the watch broke off and begins again: a message follows when it does");
            }
        }
    }
}

#[cfg(test)]
mod tests;
