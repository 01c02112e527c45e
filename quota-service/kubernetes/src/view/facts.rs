//! Facts of pods and nodes that concern Headroom.

use crate::cluster::slim::{Container, Node, Pod, unix_s};
use crate::config::{Config, QualifiedName};
use crate::names;
use crate::quantity::Quantity;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use vocab::{GpuModel, HorizonHours, NameError, NodeId, Organization, TaskClass, UnixSeconds};

/// The UID of a pod as a number: 16 bytes instead of a string for each of 100,000 pods.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Uid(pub u128);

impl Uid {
    /// Of a UUID, or, of any other text, of its digest: UIDs are only compared.
    #[must_use]
    pub fn of(text: &str) -> Self {
        Self::of_uuid(text.as_bytes()).unwrap_or_else(|| {
            // FNV-1a of 128 bits; UIDs that are no UUIDs come from tests and from other API servers.
            let offset = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d_u128;
            let prime = 0x0000_0000_0100_0000_0000_0000_0000_013b_u128;
            Self(text.bytes().fold(offset, |hash, byte| (hash ^ u128::from(byte)).wrapping_mul(prime)))
        })
    }

    fn of_uuid(text: &[u8]) -> Option<Self> {
        const DASHES: [usize; 4] = [8, 13, 18, 23];
        if text.len() != 36 || DASHES.iter().any(|dash| text[*dash] != b'-') {
            return None;
        }
        let mut value = 0_u128;
        for (place, byte) in text.iter().enumerate() {
            if !DASHES.contains(&place) {
                value = value << 4 | u128::from(char::from(*byte).to_digit(16)?);
            }
        }
        Some(Self(value))
    }
}

/// As the API writes it, where it is a UUID.
impl fmt::Display for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = format!("{:032x}", self.0);
        write!(f, "{}-{}-{}-{}-{}", &text[..8], &text[8..12], &text[12..16], &text[16..20], &text[20..])
    }
}

/// How pods are read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reading {
    /// Resource that counts GPUs.
    pub gpu_resource: String,
    /// Label of nodes with their GPU model.
    pub gpu_model_label: String,
    /// GPU model without a label or selector.
    pub default_gpu_model: Option<GpuModel>,
    /// Priority classes of spot pods.
    pub spot_classes: BTreeSet<String>,
    /// None: the namespace.
    pub organization_label: Option<String>,
    /// Guarantee of spot pods that name none.
    pub default_guarantee: Option<HorizonHours>,
}

impl Reading {
    #[must_use]
    pub fn of(config: &Config) -> Self {
        Self {
            gpu_resource: config.gpu_resource.to_string(),
            gpu_model_label: config.gpu_model_label.to_string(),
            default_gpu_model: config.default_gpu_model.get().cloned(),
            spot_classes: config.spot_priority_classes.names().clone(),
            organization_label: config.organization_label.get().map(QualifiedName::to_string),
            default_guarantee: config.default_guarantee_hours.0,
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
pub struct PodFacts {
    pub uid: Uid,
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
    pub gpus: u32,
    pub class: TaskClass,
    /// Asked for; none at will, and none for HP.
    pub guarantee: Option<HorizonHours>,
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
    /// When its work was saved last, as it says.
    pub saved: Option<UnixSeconds>,
    /// Its deletion was asked for.
    pub is_going: bool,
    /// Why it is disrupted, where it is: the reason of its condition `DisruptionTarget`.
    pub disruption: Option<String>,
    /// Whether its eviction was announced by us.
    pub is_announced: bool,
    /// Kueue's Workload that it belongs to, where it says so. Of its namespace.
    pub workload: Option<String>,
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
}

impl FactFault {
    /// Whether the object counts all the same, without what cannot be read.
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
        let name = format!("{}/{}", text(pod.metadata.namespace.as_ref()), text(pod.metadata.name.as_ref()));
        let gpus = gpus_of_pod(pod, &name, &reading.gpu_resource)?;
        if gpus == 0 {
            return Ok(None);
        }
        let uid = pod.metadata.uid.as_deref().filter(|uid| !uid.is_empty());
        let uid = Uid::of(uid.ok_or_else(|| FactFault::NoUid { what: "pod", name: name.clone() })?);
        let named = |fault| FactFault::Name { what: "pod", name: name.clone(), fault };
        let class = match &pod.spec.priority_class_name {
            Some(class) if reading.spot_classes.contains(class) => TaskClass::Spot,
            _ => TaskClass::Hp,
        };
        let mut faults = Vec::new();
        let guarantee = (class == TaskClass::Spot).then(|| guarantee(pod, &name, reading, &mut faults)).flatten();
        let facts = Self {
            uid,
            namespace: text(pod.metadata.namespace.as_ref()).to_owned(),
            name: text(pod.metadata.name.as_ref()).to_owned(),
            gpus,
            class,
            guarantee,
            organization: organization(pod, &name, reading, &mut faults).map_err(named)?,
            priority: pod.spec.priority.unwrap_or(0),
            gpu_model: selected_model(pod, &reading.gpu_model_label).and_then(|model| GpuModel::parse(model).ok()),
            node: pod.spec.node_name.as_deref().map(NodeId::parse).transpose().map_err(named)?,
            life: life(pod),
            created: UnixSeconds::new(pod.metadata.creation_timestamp.as_ref().map_or(0, unix_s)),
            bound: bound(pod),
            saved: saved(pod, &name, &mut faults),
            is_going: pod.metadata.deletion_timestamp.is_some(),
            disruption: disruption(pod),
            is_announced: annotation_or_label(pod, names::EVICT_AT).is_some(),
            workload: annotation_or_label(pod, names::WORKLOAD).map(str::to_owned),
        };
        Ok(Some((facts, faults)))
    }

    /// From when a promise to it counts: when it got its node, or, if that is unknown, when it was created.
    #[must_use]
    pub fn since(&self) -> UnixSeconds {
        self.bound.unwrap_or(self.created)
    }
}

fn text(value: Option<&String>) -> &str {
    value.map_or("", String::as_str)
}

/// By the label, or else the namespace: a label is changed while a pod runs, and must not make its GPUs invisible.
fn organization(
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
    let reason = condition(pod, "DisruptionTarget").and_then(|one| one.reason.clone());
    // The kubelet says of an eviction for want of memory or disk only this.
    reason.or_else(|| pod.status.reason.clone().filter(|reason| reason == "Evicted"))
}

/// A label counts where there is no annotation: Kueue copies labels to Workloads.
fn annotation_or_label<'a>(pod: &'a Pod, key: &str) -> Option<&'a str> {
    let annotation = pod.metadata.annotations.as_ref().and_then(|all| all.get(key));
    annotation.or_else(|| pod.metadata.labels.as_ref()?.get(key)).map(String::as_str)
}

fn guarantee(pod: &Pod, name: &str, reading: &Reading, faults: &mut Vec<FactFault>) -> Option<HorizonHours> {
    match annotation_or_label(pod, names::GUARANTEE_HOURS) {
        None => reading.default_guarantee,
        Some("0") => None,
        Some(value) => match HorizonHours::parse(value) {
            Ok(hours) => Some(hours),
            Err(fault) => {
                faults.push(annotation(name, names::GUARANTEE_HOURS, value, fault.to_string()));
                reading.default_guarantee
            }
        },
    }
}

fn saved(pod: &Pod, name: &str, faults: &mut Vec<FactFault>) -> Option<UnixSeconds> {
    let value = annotation_or_label(pod, names::CHECKPOINTED_AT)?;
    match command_line::instant(value) {
        Ok(at) => Some(at),
        Err(fault) => {
            faults.push(annotation(name, names::CHECKPOINTED_AT, value, fault));
            None
        }
    }
}

fn annotation(name: &str, key: &'static str, value: &str, detail: String) -> FactFault {
    FactFault::Annotation { what: "pod", name: name.to_owned(), key, value: value.to_owned(), detail }
}

/// GPUs that the scheduler counts for a pod: those of its containers and sidecars together, or those of an init container and the
/// sidecars started before it, where that is more.
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
    let all = running.max(starting);
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
fn gpus(what: &'static str, name: &str, resource: &str, amount: &str) -> Result<u32, FactFault> {
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

/// A node with GPUs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeFacts {
    pub node: NodeId,
    pub gpu_model: Option<GpuModel>,
    pub gpus: u32,
    /// Whether new pods may come: it is ready and not cordoned.
    pub is_open: bool,
    /// Whether it answers. What runs on one that does not may go on, or be lost.
    pub is_ready: bool,
    /// How its GPUs lie, as JSON.
    pub topology: Option<String>,
}

impl NodeFacts {
    /// Reads a node; `None` where it has no GPUs.
    ///
    /// # Errors
    /// Its GPUs or names cannot be read.
    pub fn read(node: &Node, reading: &Reading) -> Result<Option<Self>, FactFault> {
        let name = text(node.metadata.name.as_ref());
        let resource = &reading.gpu_resource;
        let count =
            node.status.allocatable.get(resource).map_or(Ok(0), |amount| gpus("node", name, resource, amount))?;
        if count == 0 {
            return Ok(None);
        }
        let named = |fault| FactFault::Name { what: "node", name: name.to_owned(), fault };
        let labels: Option<&BTreeMap<String, String>> = node.metadata.labels.as_ref();
        let model = labels.and_then(|labels| labels.get(&reading.gpu_model_label)).filter(|model| !model.is_empty());
        let model = model.map(|model| GpuModel::parse(model)).transpose().map_err(named)?;
        let is_ready = node.status.conditions.iter().any(|one| one.kind == "Ready" && one.status == "True");
        Ok(Some(Self {
            node: NodeId::parse(name).map_err(named)?,
            gpu_model: model.or_else(|| reading.default_gpu_model.clone()),
            gpus: count,
            is_open: is_ready && !node.spec.unschedulable,
            is_ready,
            topology: node.metadata.annotations.as_ref().and_then(|all| all.get(names::TOPOLOGY)).cloned(),
        }))
    }
}
