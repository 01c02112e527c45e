//! Facts of pods and nodes that concern Headroom.

mod ended;
mod hours;
mod node;

pub use super::uid::Uid;
pub use hours::OwnHours;
pub use node::NodeFacts;

use crate::cluster::slim::{Container, Pod, unix_s};
use crate::config::{Config, QualifiedName};
use crate::gangs::{GangKey, gangs_of};
use crate::names;
use crate::quantity::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use std::collections::{BTreeMap, BTreeSet};
use vocab::{GpuModel, HorizonHours, MilliGpus, NameError, NodeId, Organization, TaskClass, UnixSeconds};

/// How pods are read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reading {
    /// Resource that counts GPUs.
    pub gpu_resource: String,
    /// Label of nodes with their GPU model.
    pub gpu_model_label: String,
    /// GPU model without a label or selector.
    pub default_gpu_model: Option<GpuModel>,
    /// Priority classes of spot pods, those at will included.
    pub spot_classes: BTreeSet<String>,
    /// Priority classes of spot pods that are promised nothing and are counted apart; none where all of spot is counted together.
    pub at_will_classes: BTreeSet<String>,
    /// None: the namespace.
    pub organization_label: Option<String>,
    /// Guarantee of spot pods that name none.
    pub default_guarantee: Option<HorizonHours>,
    /// Classes of devices that are GPUs, with their GPU model where it is stated.
    pub device_classes: BTreeMap<String, Option<GpuModel>>,
    /// Whether gangs are counted.
    pub gangs: bool,
}

impl Reading {
    #[must_use]
    pub fn of(config: &Config) -> Self {
        Self {
            gpu_resource: config.gpu_resource.to_string(),
            gpu_model_label: config.gpu_model_label.to_string(),
            default_gpu_model: config.default_gpu_model.get().cloned(),
            spot_classes: config.spot_classes(),
            at_will_classes: config.at_will_priority_classes.0.clone(),
            organization_label: config.organization_label.get().map(QualifiedName::to_string),
            default_guarantee: config.default_guarantee_hours.0,
            device_classes: config.device_classes.0.clone(),
            gangs: config.gangs,
        }
    }
}

/// Where a pod is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Life {
    /// It waits for a node.
    Waits,
    /// It has a node and holds its GPUs.
    Runs,
    /// It succeeded or failed, or was evicted: its GPUs are free.
    Ended,
}

/// A pod that asks for GPUs.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is true or not by itself")]
pub struct PodFacts {
    pub uid: Uid,
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// Whole GPUs.
    pub gpus: u32,
    /// Thousandths of one more GPU: parts of GPUs, of claims alone.
    pub share_milli: u16,
    pub class: TaskClass,
    /// Whether it is of a spot class whose pods are promised nothing and counted apart.
    pub is_at_will: bool,
    /// Asked for; none at will, and none for HP.
    pub guarantee: Option<HorizonHours>,
    /// Why the hours that it states make no sense, where they do not; `guarantee` is the default then.
    pub hours_fault: Option<Box<str>>,
    /// Whether it states hours itself.
    pub own_hours: OwnHours,
    /// Organization.
    pub organization: Organization,
    /// Priority.
    pub priority: i32,
    /// That it selects, where it selects one.
    pub gpu_model: Option<GpuModel>,
    pub node: Option<NodeId>,
    pub life: Life,
    /// Time of creation.
    pub created: UnixSeconds,
    /// When it got its node, as its conditions say.
    pub bound: Option<UnixSeconds>,
    /// When it ended, where it has and its status says when.
    pub ended: Option<UnixSeconds>,
    /// When its work was saved last, as it says.
    pub saved: Option<UnixSeconds>,
    /// Its deletion was asked for.
    pub is_going: bool,
    /// Why it is disrupted, where it is: the reason of its condition `DisruptionTarget`, or of Kueue's `TerminationTarget`.
    pub disruption: Option<String>,
    /// Whether an operator emptied its node when its eviction by a taint was seen, or since: the taint may go before the pod does.
    pub is_emptied: bool,
    /// Whether its eviction was announced by us.
    pub is_announced: bool,
    /// The announced eviction for which it has saved its work, as it says.
    pub ready_for: Option<UnixSeconds>,
    /// Kueue's Workload that it belongs to, where it says so. Of its namespace.
    pub workload: Option<String>,
    /// The object whose controller made it.
    pub owner: Option<Uid>,
    /// Gangs that it belongs to, where gangs are counted.
    pub gangs: Vec<GangKey>,
}

/// Why a pod or node that has GPUs cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FactFault {
    #[error("{what} {name}: it has no UID")]
    NoUid { what: &'static str, name: String },
    #[error("{what} {name}: {resource}: {amount:?}: {detail}")]
    Gpus { what: &'static str, name: String, resource: String, amount: String, detail: String },
    #[error("{what} {name}: {fault}")]
    Name { what: &'static str, name: String, fault: NameError },
    #[error("{what} {name}: {key}: {value:?}: {detail}")]
    Annotation { what: &'static str, name: String, key: &'static str, value: String, detail: String },
    #[error("pod {name}: label {label}: {fault}: it counts for its namespace")]
    Organization { name: String, label: String, fault: NameError },
    #[error("{0}")]
    Other(String),
}

impl FactFault {
    /// Whether the object counts anyway, without what cannot be read.
    #[must_use]
    pub const fn counts_anyway(&self) -> bool {
        matches!(self, Self::Annotation { .. } | Self::Organization { .. })
    }
}

/// GPUs, or replicas of GPUs, of one object at most: more is a mistake of a device plugin.
pub const MOST_GPUS: u64 = u16::MAX as u64;

impl PodFacts {
    /// Reads a pod; `None` where it asks for no GPUs. An annotation that makes no sense is answered beside the facts, which then
    /// are those without it: what a pod writes about itself must not make its GPUs invisible.
    ///
    /// # Errors
    /// It has no UID, or its GPUs or names cannot be read.
    pub fn read(pod: &Pod, reading: &Reading) -> Result<Option<(Self, Vec<FactFault>)>, FactFault> {
        Self::read_claiming(pod, reading, false)
    }

    /// As [`read`](Self::read), with a pod that asks for no GPUs by itself where it `has_claims`.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn read_claiming(
        pod: &Pod,
        reading: &Reading,
        has_claims: bool,
    ) -> Result<Option<(Self, Vec<FactFault>)>, FactFault> {
        let name = format!("{}/{}", text(pod.metadata.namespace.as_ref()), text(pod.metadata.name.as_ref()));
        let gpus = gpus_of_pod(pod, &name, &reading.gpu_resource)?;
        if gpus == 0 && !has_claims {
            return Ok(None);
        }
        let uid = pod.metadata.uid.as_deref().filter(|uid| !uid.is_empty());
        let uid = Uid::of(uid.ok_or_else(|| FactFault::NoUid { what: "pod", name: name.clone() })?);
        let named = |fault| FactFault::Name { what: "pod", name: name.clone(), fault };
        let class = if is_spot(pod, reading) { TaskClass::Spot } else { TaskClass::Hp };
        let mut faults = Vec::new();
        let is_at_will =
            pod.spec.priority_class_name.as_ref().is_some_and(|name| reading.at_will_classes.contains(name));
        // Hours that such a pod writes are not read: its class promises none.
        let may_ask = class == TaskClass::Spot && !is_at_will;
        let guarantee = may_ask.then(|| hours::guarantee(pod, &name, reading, &mut faults)).flatten();
        let hours_fault = faults.first().map(|fault: &FactFault| fault.to_string().into_boxed_str());
        let facts = Self {
            uid,
            namespace: text(pod.metadata.namespace.as_ref()).to_owned(),
            name: text(pod.metadata.name.as_ref()).to_owned(),
            gpus,
            share_milli: 0,
            class,
            is_at_will,
            guarantee,
            hours_fault,
            own_hours: OwnHours::of(pod),
            organization: organization(pod, &name, reading, &mut faults).map_err(named)?,
            priority: pod.spec.priority.unwrap_or(0),
            gpu_model: selected_model(pod, &reading.gpu_model_label).and_then(|model| GpuModel::parse(model).ok()),
            node: pod.spec.node_name.as_deref().map(NodeId::parse).transpose().map_err(named)?,
            life: life(pod),
            created: UnixSeconds::new(pod.metadata.creation_timestamp.as_ref().map_or(0, unix_s)),
            bound: bound(pod),
            ended: ended::of(pod),
            saved: time(pod, &name, names::CHECKPOINTED_AT, &mut faults),
            is_going: pod.metadata.deletion_timestamp.is_some(),
            disruption: disruption(pod),
            is_emptied: false,
            is_announced: annotation_or_label(pod, names::EVICT_AT).is_some(),
            ready_for: time(pod, &name, names::EVICT_READY, &mut faults),
            workload: annotation_or_label(pod, names::WORKLOAD).map(str::to_owned),
            owner: controller(&pod.metadata),
            gangs: if reading.gangs { gangs_of(pod) } else { Vec::new() },
        };
        Ok(Some((facts, faults)))
    }

    /// GPUs that it asks for.
    #[must_use]
    pub fn amount(&self) -> MilliGpus {
        let share = MilliGpus::from_milli(u64::from(self.share_milli)).unwrap_or(MilliGpus::ZERO);
        MilliGpus::from_gpus(self.gpus).saturating_add(share)
    }

    /// From when a promise to it counts: when it got its node, or, if that is unknown, when it was created.
    #[must_use]
    pub fn since(&self) -> UnixSeconds {
        self.bound.unwrap_or(self.created)
    }
}

pub(super) fn text(value: Option<&String>) -> &str {
    value.map_or("", String::as_str)
}

/// Whether the class of a pod is one of spot.
pub(crate) fn is_spot(pod: &Pod, reading: &Reading) -> bool {
    pod.spec.priority_class_name.as_ref().is_some_and(|class| reading.spot_classes.contains(class))
}

/// By the label, or else the namespace: a label is changed while a pod runs, and must not make its GPUs invisible.
pub(crate) fn organization(
    pod: &Pod,
    name: &str,
    reading: &Reading,
    faults: &mut Vec<FactFault>,
) -> Result<Organization, NameError> {
    let labelled = reading.organization_label.as_ref().and_then(|label| {
        let value = pod.metadata.labels.as_ref()?.get(label)?;
        (!value.is_empty()).then_some((label, value))
    });
    if let Some((label, value)) = labelled {
        match Organization::parse(value) {
            Ok(organization) => return Ok(organization),
            Err(fault) => {
                faults.push(FactFault::Organization { name: name.to_owned(), label: label.clone(), fault });
            }
        }
    }
    Organization::parse(text(pod.metadata.namespace.as_ref()))
}

/// The UID of the owner whose controller made an object.
pub(crate) fn controller(meta: &ObjectMeta) -> Option<Uid> {
    let owner = meta.owner_references.iter().flatten().find(|owner| owner.controller == Some(true))?;
    Some(Uid::of(&owner.uid))
}

fn life(pod: &Pod) -> Life {
    match (pod.status.phase.as_str(), &pod.spec.node_name) {
        ("Succeeded" | "Failed", _) => Life::Ended,
        (_, Some(node)) if !node.is_empty() => Life::Runs,
        _ => Life::Waits,
    }
}

fn condition<'a>(pod: &'a Pod, kind: &str) -> Option<&'a crate::cluster::slim::Condition> {
    pod.status.conditions.iter().find(|one| one.kind == kind && one.status == "True")
}

fn bound(pod: &Pod) -> Option<UnixSeconds> {
    let scheduled = condition(pod, "PodScheduled").and_then(|one| one.last_transition_time.as_ref());
    scheduled.or(pod.status.start_time.as_ref()).map(|time| UnixSeconds::new(unix_s(time)))
}

fn disruption(pod: &Pod) -> Option<String> {
    let reason = condition(pod, "DisruptionTarget").and_then(|one| Some(one.reason.as_ref()?.to_string()));
    let by_kueue = || {
        let reason = condition(pod, names::TERMINATION_TARGET)?.reason.as_ref()?.to_string();
        reason.starts_with(names::KUEUE_EVICTS).then_some(reason)
    };
    reason
        .or_else(by_kueue)
        .or_else(|| pod.status.reason.as_deref().filter(|reason| is_of_node(reason)).map(|_| EVICTED.to_owned()))
}

/// Reason of the kubelet for an eviction for want of memory or disk.
const EVICTED: &str = "Evicted";

/// Whether the kubelet says by this reason that the node could not run the pod, or no longer: it does not set a condition then.
fn is_of_node(reason: &str) -> bool {
    let is_named =
        [EVICTED, "UnexpectedAdmissionError", "NodeAffinity", "NodeLost", "NodeShutdown", "Shutdown"].contains(&reason);
    is_named || reason.starts_with("OutOf")
}

/// A label counts where there is no annotation: Kueue copies labels to Workloads.
fn annotation_or_label<'a>(pod: &'a Pod, key: &str) -> Option<&'a str> {
    let annotation = pod.metadata.annotations.as_ref().and_then(|all| all.get(key));
    annotation.or_else(|| pod.metadata.labels.as_ref()?.get(key)).map(String::as_str)
}

fn time(pod: &Pod, name: &str, key: &'static str, faults: &mut Vec<FactFault>) -> Option<UnixSeconds> {
    let value = annotation_or_label(pod, key)?;
    match command_line::instant(value) {
        Ok(at) => Some(at),
        Err(fault) => {
            faults.push(annotation(name, key, value, fault));
            None
        }
    }
}

fn annotation(name: &str, key: &'static str, value: &str, detail: String) -> FactFault {
    FactFault::Annotation { what: "pod", name: name.to_owned(), key, value: value.to_owned(), detail }
}

/// GPUs that the scheduler counts for a pod: those of its containers and sidecars together, or those of an init container and the
/// sidecars started before it, where that is more; with those that its runtime takes.
pub(crate) fn gpus_of_pod(pod: &Pod, name: &str, resource: &str) -> Result<u32, FactFault> {
    let of = |container: &Container| {
        // Of an extended resource the limit is the request.
        let asked = container.resources.requests.get(resource).or_else(|| container.resources.limits.get(resource));
        asked.map_or(Ok(0), |amount| gpus("pod", name, resource, amount))
    };
    let (mut sidecars, mut starting) = (0_u32, 0_u32);
    for container in &pod.spec.init_containers {
        let asked = of(container)?;
        if container.restart_policy.as_deref() == Some("Always") {
            sidecars = sidecars.saturating_add(asked);
        } else {
            starting = starting.max(sidecars.saturating_add(asked));
        }
    }
    let mut running = sidecars;
    for container in &pod.spec.containers {
        running = running.saturating_add(of(container)?);
    }
    let overhead = pod.spec.overhead.get(resource).map_or(Ok(0), |amount| gpus("pod", name, resource, amount))?;
    let all = running.max(starting).saturating_add(overhead);
    if u64::from(all) > MOST_GPUS {
        return Err(too_many("pod", name, resource, &all.to_string()));
    }
    Ok(all)
}

fn too_many(what: &'static str, name: &str, resource: &str, amount: &str) -> FactFault {
    let (name, resource, amount) = (name.to_owned(), resource.to_owned(), amount.to_owned());
    FactFault::Gpus { what, name, resource, amount, detail: format!("expected at most {MOST_GPUS} GPUs") }
}

/// A quantity that counts, rounded up as the scheduler does.
pub(super) fn gpus(what: &'static str, name: &str, resource: &str, amount: &str) -> Result<u32, FactFault> {
    let count = Quantity::parse(amount).map_err(|fault| FactFault::Gpus {
        what,
        name: name.to_owned(),
        resource: resource.to_owned(),
        amount: amount.to_owned(),
        detail: fault.to_string(),
    })?;
    u32::try_from(count.ceil())
        .ok()
        .filter(|count| u64::from(*count) <= MOST_GPUS)
        .ok_or_else(|| too_many(what, name, resource, amount))
}

/// The GPU model that a pod selects, by its selector or by an affinity that leaves one.
pub(crate) fn selected_model<'a>(pod: &'a Pod, label: &str) -> Option<&'a str> {
    if let Some(model) = pod.spec.node_selector.get(label) {
        return Some(model);
    }
    let terms = &pod.spec.affinity.node_affinity.required.node_selector_terms;
    let mut models = terms.iter().map(|term| {
        let required = term.match_expressions.iter().find(|one| one.key == label && one.operator == "In");
        required.and_then(|one| if let [model] = one.values.as_slice() { Some(model.as_str()) } else { None })
    });
    // Terms are alternatives: all have to leave the same one.
    let first = models.next()??;
    models.all(|model| model == Some(first)).then_some(first)
}
