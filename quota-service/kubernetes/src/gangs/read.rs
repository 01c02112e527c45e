//! Statements of objects about gangs, and the gangs that a pod belongs to.

use super::{GangKey, GangKind};
use crate::cluster::groups::{JobSetSpec, JobSetStatus, LeaderWorkerSetSpec, PodGroupSpec, WorkloadSpec};
use crate::cluster::slim::{Pod, unix_s};
use crate::cluster::workload::{Template, WorkloadSpec as KueueSpec, WorkloadStatus as KueueStatus};
use crate::names;
use crate::view::facts::{Reading, gpus_of_pod, is_spot, organization, selected_model};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use vocab::{GpuModel, Organization, TaskClass, UnixSeconds};

/// Labels of pods by which controllers say whose they are.
const LEADER_WORKER_NAME: &str = "leaderworkerset.sigs.k8s.io/name";
const LEADER_WORKER_GROUP: &str = "leaderworkerset.sigs.k8s.io/group-index";
const JOB_SET: &str = "jobset.sigs.k8s.io/jobset-name";
/// Kueue's labels of pods that it queues themselves: the name of their Workload where they are several, and that it does.
const POD_GROUP: &str = "kueue.x-k8s.io/pod-group-name";
const QUEUED_POD: &str = "kueue.x-k8s.io/managed";
/// Owners of many pods that are no job.
const NO_JOBS: &[&str] = &["ReplicaSet", "StatefulSet", "DaemonSet", "Node"];

/// The gangs of a pod, in the order of their kinds, and the Workload of its owner: Kueue names it on pods only where it places by topology.
#[must_use]
pub fn gangs_of(pod: &Pod) -> Vec<GangKey> {
    let mut gangs = named_gangs(pod);
    let is_queued = pod.metadata.labels.as_ref().is_some_and(|labels| labels.get(QUEUED_POD).is_some());
    let itself = pod.metadata.uid.as_ref().filter(|_| is_queued);
    gangs.extend(itself.into_iter().chain(job_of(pod)).map(|uid| of_owner(uid)));
    gangs
}

/// Whether a pod may take the place of an earlier one of its gang or job, and so have what is left of that one's promise.
#[must_use]
pub fn may_replace(pod: &Pod) -> bool {
    !named_gangs(pod).is_empty() || job_of(pod).is_some()
}

/// UID of the job whose controller made a pod.
fn job_of(pod: &Pod) -> Option<&String> {
    let owner = pod.metadata.owner_references.iter().flatten().find(|owner| owner.controller == Some(true))?;
    (!NO_JOBS.contains(&owner.kind.as_str())).then_some(&owner.uid)
}

/// The Workload of Kueue that this object owns.
fn of_owner(uid: &str) -> GangKey {
    GangKey { kind: GangKind::KueueWorkload, name: format!("owner/{uid}") }
}

/// The gangs that a pod names.
#[must_use]
pub fn named_gangs(pod: &Pod) -> Vec<GangKey> {
    let meta = &pod.metadata;
    let label = |key: &str| {
        let label = meta.labels.as_ref().and_then(|all| all.get(key));
        label.or_else(|| meta.annotations.as_ref()?.get(key)).filter(|name| !name.is_empty())
    };
    let of = |kind: GangKind, name: String| GangKey { kind, name };
    let group = pod.spec.scheduling_group.pod_group_name.clone().filter(|name| !name.is_empty());
    let workload =
        pod.spec.workload_ref.as_ref().filter(|of| !of.name.is_empty()).map(|of| {
            format!("{}/{}/{}", of.name, of.pod_group, of.pod_group_replica_key.as_deref().unwrap_or_default())
        });
    let leader =
        label(LEADER_WORKER_NAME).zip(label(LEADER_WORKER_GROUP)).map(|(name, group)| format!("{name}/{group}"));
    let named = [
        (GangKind::PodGroup, group),
        (GangKind::WorkloadGroup, workload),
        (GangKind::LeaderWorkerGroup, leader),
        (GangKind::JobSet, label(JOB_SET).cloned()),
        (GangKind::KueueWorkload, label(names::WORKLOAD).or_else(|| label(POD_GROUP)).cloned()),
    ];
    named.into_iter().filter_map(|(kind, name)| Some(of(kind, name?))).collect()
}

/// An object that states gangs.
#[derive(Debug, Clone)]
pub enum GangObject {
    /// PodGroup of `scheduling.k8s.io`.
    PodGroup(PodGroupSpec),
    /// Workload of `scheduling.k8s.io/v1alpha1`.
    Workload(WorkloadSpec),
    /// JobSet.
    JobSet(Box<JobSetSpec>, JobSetStatus),
    /// LeaderWorkerSet.
    LeaderWorkerSet(Box<LeaderWorkerSetSpec>),
    /// Workload of Kueue.
    KueueWorkload(Box<KueueSpec>, Box<KueueStatus>),
}

/// A pod of a set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetPod {
    /// Thousandths of a GPU that it asks for as a resource.
    pub gpus_milli: u64,
    /// Templates of claims, by name.
    pub templates: Vec<String>,
    /// Class.
    pub class: TaskClass,
    /// Organization.
    pub organization: Organization,
    /// GPU model that it selects.
    pub model: Option<GpuModel>,
}

/// Pods of a gang that are alike.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GangSet {
    /// Number.
    pub count: u64,
    /// Each of them.
    pub pod: SetPod,
}

/// The size of a gang.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Size {
    /// So many pods, which are as those that are there.
    Pods(u64),
    /// These pods.
    Sets(Vec<GangSet>),
}

/// Statement of an object about a gang.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stated {
    /// UID of the object.
    pub uid: String,
    /// UIDs of its owners.
    pub owners: Vec<String>,
    /// Size.
    pub size: Size,
    /// Tells one run of the gang from the next, where the object does.
    pub attempt: Option<String>,
    /// Whether it asks for no pods: it is over, or held back.
    pub is_over: bool,
    /// Why Kueue evicts it, where it does: the reason of its condition `Evicted`.
    pub evicted: Option<String>,
    /// The last eviction by Kueue that is over.
    pub last_eviction: Option<PastEviction>,
}

/// An eviction after which Kueue has reserved quota again. Its pods may still take their time to end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PastEviction {
    /// Its reason; empty where only its end was seen, unless that says that it was a preemption.
    pub reason: String,
    /// When quota was reserved again: pods that got their node before are those that were evicted.
    pub over: UnixSeconds,
}

impl Stated {
    /// Gangs of an object. An amount or name that makes no sense leaves a set out: pods of it are reported once they are there.
    #[must_use]
    pub fn read(meta: &ObjectMeta, object: &GangObject, reading: &Reading) -> Vec<(GangKey, Self)> {
        let [name, namespace] = [&meta.name, &meta.namespace].map(|text| text.clone().unwrap_or_default());
        let owners = meta.owner_references.iter().flatten().map(|owner| owner.uid.clone()).collect();
        let stated = |size: Size| Self {
            uid: meta.uid.clone().unwrap_or_default(),
            owners,
            size,
            attempt: None,
            is_over: false,
            evicted: None,
            last_eviction: None,
        };
        let key = |kind: GangKind, name: String| GangKey { kind, name };
        let sets = |sets: Vec<(u64, &Template)>| {
            let read = |(count, template)| Some(GangSet { count, pod: set_pod(template, &namespace, reading)? });
            Size::Sets(sets.into_iter().filter_map(read).collect())
        };
        match object {
            GangObject::PodGroup(spec) => {
                let gang = spec.scheduling_policy.gang.as_ref();
                let size = gang.map(|gang| Size::Pods(u64::from(gang.min_count)));
                size.map(|size| (key(GangKind::PodGroup, name), stated(size))).into_iter().collect()
            }
            GangObject::Workload(spec) => {
                let groups =
                    spec.pod_groups.iter().filter_map(|group| Some((&group.name, group.policy.gang.as_ref()?)));
                let one = |(group, gang): (&String, &crate::cluster::groups::GangPolicy)| {
                    (key(GangKind::WorkloadGroup, format!("{name}/{group}")), u64::from(gang.min_count))
                };
                let base = stated(Size::Pods(0));
                groups.map(one).map(|(key, count)| (key, Self { size: Size::Pods(count), ..base.clone() })).collect()
            }
            GangObject::JobSet(spec, status) => {
                let jobs = spec.replicated_jobs.iter().map(|jobs| {
                    let job = &jobs.template.spec;
                    let each = job.parallelism.unwrap_or(1).min(job.completions.unwrap_or(u32::MAX));
                    (u64::from(jobs.replicas.unwrap_or(1)) * u64::from(each), &job.template)
                });
                let base = stated(sets(jobs.collect()));
                let is_over = spec.suspend || !status.terminal_state.is_empty();
                vec![(
                    key(GangKind::JobSet, name),
                    Self { attempt: Some(status.restarts.to_string()), is_over, ..base },
                )]
            }
            GangObject::LeaderWorkerSet(spec) => {
                let template = &spec.leader_worker_template;
                let workers = u64::from(template.size.unwrap_or(1).max(1)) - 1;
                let leader = template.leader_template.as_ref().unwrap_or(&template.worker_template);
                let base = stated(sets(vec![(1, leader), (workers, &template.worker_template)]));
                let groups = 0..spec.replicas.unwrap_or(1);
                groups
                    .map(|group| (key(GangKind::LeaderWorkerGroup, format!("{name}/{group}")), base.clone()))
                    .collect()
            }
            GangObject::KueueWorkload(spec, status) => {
                kueue(stated(Size::Pods(0)), spec, status, sets).by_name_and_owners(name)
            }
        }
    }

    /// Why Kueue evicts, or has evicted, a pod that got its node then.
    #[must_use]
    pub fn evicts(&self, began: UnixSeconds) -> Option<&str> {
        let past = || self.last_eviction.as_ref().filter(|past| began < past.over).map(|past| past.reason.as_str());
        self.evicted.as_deref().or_else(past)
    }

    /// The next state of an object does not name the reason of an eviction before it.
    pub fn remember(&mut self, before: &Self) {
        let Some(past) = self.last_eviction.as_mut() else { return };
        let known = before.last_eviction.as_ref().filter(|known| known.over == past.over).map(|known| &known.reason);
        if let Some(reason) = before.evicted.as_ref().or(known) {
            past.reason.clone_from(reason);
        }
    }

    /// A Workload of Kueue, as pods name it: by its name, or by their owner, which is also its.
    fn by_name_and_owners(self, name: String) -> Vec<(GangKey, Self)> {
        let by_owner = |owner: &String| {
            let (uid, owners) = (format!("{}/{owner}", self.uid), vec![self.uid.clone()]);
            (of_owner(owner), Self { uid, owners, size: Size::Sets(Vec::new()), ..self.clone() })
        };
        let mut gangs: Vec<(GangKey, Self)> = self.owners.iter().map(by_owner).collect();
        gangs.push((GangKey { kind: GangKind::KueueWorkload, name }, self));
        gangs
    }
}

fn kueue<'a>(
    base: Stated,
    spec: &'a KueueSpec,
    status: &KueueStatus,
    sets: impl Fn(Vec<(u64, &'a Template)>) -> Size,
) -> Stated {
    let is = |kind: &str| status.conditions.iter().find(|one| one.kind == kind && one.status == "True");
    let assigned = |name: &str| status.admission.pod_set_assignments.iter().find(|one| one.name == name)?.count;
    let sized = spec.pod_sets.iter().map(|set| (u64::from(assigned(&set.name).unwrap_or(set.count)), &set.template));
    let admitted =
        is("Admitted").and_then(|one| one.last_transition_time.as_ref()).map(|time| unix_s(time).to_string());
    let is_over = spec.active == Some(false) || is("Finished").is_some();
    let evicted = is("Evicted").map(|one| one.reason.as_ref().map(ToString::to_string).unwrap_or_default());
    Stated { size: sets(sized.collect()), attempt: admitted, is_over, evicted, last_eviction: past(status), ..base }
}

/// The condition stays, and says when it was taken back: the reason is then that of the reservation. Kueue takes back its condition of a
/// preemption with it.
fn past(status: &KueueStatus) -> Option<PastEviction> {
    let over = |kind: &str| {
        let condition = status.conditions.iter().find(|one| one.kind == kind && one.status == "False")?;
        Some(unix_s(condition.last_transition_time.as_ref()?))
    };
    let evicted = over("Evicted")?;
    // Both are of one write, whose two times may lie on both sides of a second.
    let is_preempted = over(names::KUEUE_PREEMPTS).is_some_and(|preempted| (evicted - preempted).abs() <= 1);
    let reason = if is_preempted { names::KUEUE_PREEMPTS.to_owned() } else { String::new() };
    Some(PastEviction { reason, over: UnixSeconds::new(evicted) })
}

/// The pod that a template makes, as far as it is read.
fn set_pod(template: &Template, namespace: &str, reading: &Reading) -> Option<SetPod> {
    let mut pod = Pod { metadata: template.metadata.clone(), spec: template.spec.clone(), ..Pod::default() };
    pod.metadata.namespace = Some(namespace.to_owned());
    let gpus = gpus_of_pod(&pod, namespace, &reading.gpu_resource).ok()?;
    let named = template.spec.resource_claims.iter().filter_map(|claim| claim.resource_claim_template_name.clone());
    Some(SetPod {
        gpus_milli: u64::from(gpus) * 1_000,
        templates: named.collect(),
        class: if is_spot(&pod, reading) { TaskClass::Spot } else { TaskClass::Hp },
        organization: organization(&pod, "", reading, &mut Vec::new()).ok()?,
        model: selected_model(&pod, &reading.gpu_model_label).and_then(|model| GpuModel::parse(model).ok()),
    })
}
