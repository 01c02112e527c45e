//! Facts of Kueue's Workloads that concern Headroom. Read once, when they arrive.

mod asks;
mod store;
#[cfg(test)]
pub(crate) mod tests;

pub use asks::SetAsk;
pub use store::{Store, watch_into};

use crate::cluster::slim::{Condition, Pod, unix_s};
use crate::cluster::workload::{Check, PodSet, Workload};
use crate::names;
use crate::view::View;
use crate::view::facts::{OwnHours, PodFacts, Reading, Uid, controller, gpus_of_pod, selected_model};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use std::collections::BTreeMap;
use vocab::{GpuModel, HorizonHours, UnixSeconds};

/// State of an admission check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CheckState {
    /// Without an answer yet.
    Pending,
    /// Admitted.
    Ready,
    /// To be tried again.
    Retry,
    /// Refused for good.
    Rejected,
}

impl CheckState {
    /// As Kueue writes it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "Pending",
            Self::Ready => "Ready",
            Self::Retry => "Retry",
            Self::Rejected => "Rejected",
        }
    }

    /// One that we do not know is none that we may answer.
    fn parse(text: &str) -> Option<Self> {
        [Self::Pending, Self::Ready, Self::Retry, Self::Rejected].into_iter().find(|state| state.as_str() == text)
    }
}

/// The check that is ours to answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CheckFacts {
    pub state: CheckState,
    pub since: UnixSeconds,
    /// Wait after `Retry`, s.
    pub requeue_after_s: u64,
    /// How often it was `Retry`, as Kueue counts.
    pub retries: u32,
}

/// GPUs of one kind of pods.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetFacts {
    pub name: String,
    /// Whether its pods say themselves how long they ask to be guaranteed.
    pub says_hours: bool,
    /// Number of pods.
    pub count: u32,
    pub gpus: u64,
    /// That Kueue assigned for GPUs.
    pub flavor: Option<String>,
    /// That the pods select.
    pub gpu_model: Option<GpuModel>,
}

/// A Workload.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "conditions of Kueue, which are true or not each by itself")]
pub struct WorkloadFacts {
    /// Namespace.
    pub namespace: String,
    pub name: String,
    pub uid: String,
    /// Version of the object that was read.
    pub resource_version: String,
    /// Time of creation.
    pub created: UnixSeconds,
    /// Those that ask for GPUs: by the counted resource, and by claims once these are read. An error says of which the amount makes no
    /// sense.
    pub sets: Result<Vec<SetFacts>, String>,
    /// All sets of pods, those without GPUs included, in their order.
    pub set_names: Vec<String>,
    /// Their requests, likewise.
    asks: Vec<SetAsk>,
    /// The priority class that Kueue read from its pods, or the default of the cluster where they name none.
    class: Option<String>,
    /// Why GPUs by claims are not known, where they are not.
    pub uncounted: Option<String>,
    /// Whether all pods with GPUs are of a spot class.
    pub is_spot: bool,
    /// Whether it has pods with GPUs, and none of a spot class: they are not evicted, and hours mean nothing to them.
    pub is_hp: bool,
    /// Hours that it asks to be guaranteed; none at will, and none for HP. An error says what makes no sense.
    pub hours: Result<Option<HorizonHours>, String>,
    /// Hours that it or its templates state, or the default, for any class.
    written_hours: Result<Option<HorizonHours>, String>,
    /// Whether it or its templates state hours.
    has_written_hours: bool,
    /// Whether it or its templates state hours, or its class has none, as those at will and of HP.
    pub states_hours: bool,
    /// The object whose controller it was made for.
    pub owner: Option<Uid>,
    /// Namespace and name of the Workload that it takes the place of, with a stroke between them: the slice before it of a job that
    /// grows while it runs.
    pub replaces: Option<String>,
    /// Pods that it was made of: a pod that Kueue queues itself, or those of a pod group.
    pub pods: Vec<Uid>,
    /// Time of the last checkpoint.
    pub saved: Option<UnixSeconds>,
    /// Priority boost, as written.
    pub boost: Option<String>,
    /// ClusterQueue that admitted it; empty without one.
    pub cluster_queue: String,
    /// Whether it is not deactivated.
    pub is_active: bool,
    /// Whether quota is reserved.
    pub has_quota: bool,
    /// Since when Kueue evicts it.
    pub evicted: Option<UnixSeconds>,
    /// Whether it has finished.
    pub is_finished: bool,
    /// Since when.
    pub admitted: Option<UnixSeconds>,
    pub check: Option<CheckFacts>,
}

impl WorkloadFacts {
    /// Reads a Workload; `check` is the name of our admission check.
    #[must_use]
    pub fn read(workload: &Workload, reading: &Reading, check: &str) -> Self {
        let meta = &workload.metadata;
        let (spec, status) = (&workload.spec, &workload.status);
        let own = |text: Option<&String>| text.cloned().unwrap_or_default();
        let is = |kind: &str| condition(&status.conditions, kind).is_some();
        let metas: Vec<&ObjectMeta> =
            std::iter::once(meta).chain(spec.pod_sets.iter().map(|set| &set.template.metadata)).collect();
        let mut facts = Self {
            namespace: own(meta.namespace.as_ref()),
            name: own(meta.name.as_ref()),
            uid: own(meta.uid.as_ref()),
            resource_version: own(meta.resource_version.as_ref()),
            created: UnixSeconds::new(meta.creation_timestamp.as_ref().map_or(0, unix_s)),
            sets: sets(workload, reading),
            set_names: spec.pod_sets.iter().map(|set| set.name.clone()).collect(),
            asks: asks::asks(workload, reading),
            class: spec.pod_class().map(str::to_owned),
            uncounted: None,
            is_spot: false,
            is_hp: false,
            hours: Ok(None),
            written_hours: hours(&metas, reading),
            has_written_hours: hours_texts(&metas).next().is_some(),
            states_hours: false,
            owner: controller(meta),
            replaces: meta.annotations.as_ref().and_then(|all| all.get(names::REPLACES)).cloned(),
            pods: pods(meta),
            saved: metas
                .iter()
                .filter_map(|meta| command_line::instant(annotation_or_label(meta, names::CHECKPOINTED_AT)?).ok())
                .max(),
            boost: meta.annotations.as_ref().and_then(|all| all.get(names::PRIORITY_BOOST)).cloned(),
            cluster_queue: status.admission.cluster_queue.clone(),
            is_active: spec.active != Some(false),
            has_quota: is("QuotaReserved"),
            evicted: condition(&status.conditions, "Evicted").map(since),
            is_finished: is("Finished"),
            admitted: condition(&status.conditions, "Admitted").map(since),
            check: status.admission_checks.iter().find(|one| one.name == check).and_then(check_facts),
        };
        facts.judge(reading, None);
        facts
    }

    /// Reads the hours of the pods that it was made of, where it states none: Kueue copies no annotations of pods to Workloads. Of
    /// different hours the most count, those of pods of other classes than spot included, as in the templates of one Workload. One pod whose
    /// hours make no sense makes all of them an error, which names it.
    pub fn read_pods(&mut self, view: &View) {
        if self.states_hours {
            return;
        }
        let pods: Vec<&PodFacts> = self.pods.iter().filter_map(|uid| view.pod(uid)).collect();
        if let Some(fault) = pods.iter().find_map(|pod| pod.hours_fault.as_deref()) {
            self.hours = Err(fault.to_owned());
        } else if let Some(hours) = pods.iter().map(|pod| pod.guarantee.max(pod.own_hours.hours())).max() {
            self.hours = Ok(hours);
            let count: u64 = self.sets.iter().flatten().map(|set| u64::from(set.count)).sum();
            let says_hours = !(pods.len() as u64 >= count && may_be_written(hours, &pods));
            self.sets.iter_mut().flatten().for_each(|set| set.says_hours = says_hours);
        }
    }

    /// Whether its hours are not known yet, since none of the pods that it was made of has been seen.
    #[must_use]
    pub fn is_unseen(&self, view: &View) -> bool {
        let asks_for_gpus = self.gpus() > 0 || self.uncounted.is_some();
        let is_made_of_pods = !self.states_hours && !self.pods.is_empty() && asks_for_gpus;
        is_made_of_pods && self.pods.iter().all(|uid| view.pod(uid).is_none())
    }

    /// Namespace and name.
    #[must_use]
    pub fn key(&self) -> (String, String) {
        (self.namespace.clone(), self.name.clone())
    }

    /// GPUs over all pods; none where an amount makes no sense.
    #[must_use]
    pub fn gpus(&self) -> u64 {
        self.sets.iter().flatten().map(|set| set.gpus).sum()
    }

    /// GPUs by pool: by the flavor that was assigned, or what is selected, or the pool that `other` names.
    ///
    /// # Errors
    /// It is not known of which pool some of them are.
    pub fn gpus_by_model(
        &self,
        flavors: &BTreeMap<String, GpuModel>,
        other: Option<&GpuModel>,
    ) -> Result<BTreeMap<GpuModel, u64>, String> {
        let mut amounts = BTreeMap::new();
        for set in self.sets.iter().flatten() {
            let by_flavor = set.flavor.as_ref().and_then(|flavor| flavors.get(flavor));
            let Some(model) = by_flavor.or(set.gpu_model.as_ref()).or(other) else {
                return Err(set.flavor.as_ref().map_or_else(
                    || "its pods select no GPU model, and there are several: select one".to_owned(),
                    |flavor| format!("flavor {flavor:?} has no GPU model: write it into flavors"),
                ));
            };
            *amounts.entry(model.clone()).or_insert(0) += set.gpus;
        }
        Ok(amounts)
    }
}

/// Whether hours may be written on all pods of a group, some of which state none. Kueue ends a Workload for good where a pod states
/// others, or in other words, and pods of one kind are written alike.
fn may_be_written(hours: Option<HorizonHours>, pods: &[&PodFacts]) -> bool {
    let agrees = |pod: &&PodFacts| match pod.own_hours {
        OwnHours::Silent => !pod.is_at_will,
        OwnHours::Digits(own) => Some(own) == hours,
        OwnHours::Words(_) | OwnHours::Other => false,
    };
    pods.iter().any(|pod| pod.guarantee != hours) && pods.iter().all(agrees)
}

fn condition<'a>(conditions: &'a [Condition], kind: &str) -> Option<&'a Condition> {
    conditions.iter().find(|one| one.kind == kind && one.status == "True")
}

fn since(condition: &Condition) -> UnixSeconds {
    UnixSeconds::new(condition.last_transition_time.as_ref().map_or(0, unix_s))
}

fn check_facts(check: &Check) -> Option<CheckFacts> {
    Some(CheckFacts {
        state: CheckState::parse(&check.state)?,
        since: UnixSeconds::new(check.last_transition_time.as_ref().map_or(0, unix_s)),
        requeue_after_s: check.requeue_after_seconds.unwrap_or(0),
        retries: check.retry_count.unwrap_or(0),
    })
}

fn annotation_or_label<'a>(meta: &'a ObjectMeta, key: &str) -> Option<&'a str> {
    let annotation = meta.annotations.as_ref().and_then(|all| all.get(key));
    annotation.or_else(|| meta.labels.as_ref()?.get(key)).map(String::as_str)
}

fn pods(meta: &ObjectMeta) -> Vec<Uid> {
    let owners = meta.owner_references.iter().flatten();
    owners.filter(|owner| owner.kind == "Pod" && owner.api_version == "v1").map(|owner| Uid::of(&owner.uid)).collect()
}

/// The hours that the Workload and its templates state.
fn hours_texts<'a>(metas: &[&'a ObjectMeta]) -> impl Iterator<Item = &'a str> {
    metas.iter().filter_map(|meta| annotation_or_label(meta, names::GUARANTEE_HOURS))
}

/// Of different hours the most: pods are promised what they state themselves. One that makes no sense makes all of them an error.
fn hours(metas: &[&ObjectMeta], reading: &Reading) -> Result<Option<HorizonHours>, String> {
    let one = |text: &str| match text {
        "0" => Ok(None),
        _ => HorizonHours::parse(text)
            .map(Some)
            .map_err(|fault| format!("{}: {text:?}: {fault}", names::GUARANTEE_HOURS)),
    };
    let stated: Vec<_> = hours_texts(metas).map(one).collect::<Result<_, _>>()?;
    Ok(stated.into_iter().max().unwrap_or(reading.default_guarantee))
}

/// The pod that a template makes, as far as it is read.
fn pod_of(set: &PodSet) -> Pod {
    Pod { metadata: set.template.metadata.clone(), spec: set.template.spec.clone(), ..Pod::default() }
}

fn sets(workload: &Workload, reading: &Reading) -> Result<Vec<SetFacts>, String> {
    let assigned = &workload.status.admission.pod_set_assignments;
    let mut sets = Vec::new();
    for set in &workload.spec.pod_sets {
        let pod = pod_of(set);
        let each = gpus_of_pod(&pod, &set.name, &reading.gpu_resource).map_err(|fault| fault.to_string())?;
        let assignment = assigned.iter().find(|one| one.name == set.name);
        let count = assignment.and_then(|one| one.count).unwrap_or(set.count);
        let gpus = u64::from(each) * u64::from(count);
        if gpus > 0 {
            let selected = selected_model(&pod, &reading.gpu_model_label);
            let gpu_model = selected.and_then(|model| GpuModel::parse(model).ok());
            let flavor = assignment.and_then(|one| one.flavors.get(&reading.gpu_resource)).cloned();
            let says_hours = annotation_or_label(&set.template.metadata, names::GUARANTEE_HOURS).is_some();
            sets.push(SetFacts { name: set.name.clone(), says_hours, count, gpus, flavor, gpu_model });
        }
    }
    Ok(sets)
}
