//! A task of a pool as it is stored and answered.

use super::Decided;
use placement::fleet::{PodPlace, PodRequest, Running};
use placement::pool::{Cut, CutReason, NodeLoss, PeriodEnd, Pool, Request, WaitReason};
use serde_json::json;
use sha2::{Digest, Sha256};
use store::{TaskRecord, TaskStatus};
use vocab::{EventId, MilliGpus, NodeId, Outcome, PoolId, TaskId, UnixSeconds};
use wire::{
    AffinityBody, CutCodeBody, ElasticBody, ElasticRecord, PlaceBody, ReasonBody, TaskAnswer, TaskCut, TaskDetail,
    TaskRun, TaskStatusBody, hours_body,
};

/// The reason of a task that waits for the reservation of another one, which it names.
pub const HELD_BACK: &str = "held_back";

/// A task as the pool has it now; `None` where it neither waits nor runs.
pub fn of_pool(pool: &mut Pool, task: &TaskId, cut: Option<TaskCut>, victims: Vec<String>) -> Option<TaskRecord> {
    if let Some((request, running)) = pool.running(task) {
        let run = run_of(pool, task, running);
        let detail = TaskDetail { run: Some(run), victims, ..TaskDetail::default() };
        return Some(record(&request.clone(), TaskStatus::Running, pool.now(), &detail));
    }
    let request = pool.waiting_task(task)?.request.clone();
    let waits = pool.why_it_waits(task).map_or_else(queued, |why| reason(&why));
    let detail = TaskDetail { waits: Some(waits), cut, ..TaskDetail::default() };
    Some(record(&request, TaskStatus::Waiting, pool.now(), &detail))
}

/// A stored task with the reason for which it waits now, where it waits: the stored one is that of its last change.
pub fn as_it_waits(pool: &mut Pool, stored: TaskRecord) -> (TaskRecord, TaskDetail) {
    let detail = detail(&stored);
    if pool.waiting_task(&stored.id).is_none() {
        return (stored, detail);
    }
    let waits = pool.why_it_waits(&stored.id).map_or_else(queued, |why| reason(&why));
    let detail = TaskDetail { waits: Some(waits), ..detail };
    let detail_json = json_of(&detail);
    (TaskRecord { detail_json, ..stored }, detail)
}

fn json_of(detail: &TaskDetail) -> String {
    serde_json::to_string(detail).expect("a detail has strings and numbers")
}

/// A task that has ended, with its last run.
pub fn ended(request: &Request, status: TaskStatus, run: Option<TaskRun>, now: UnixSeconds) -> TaskRecord {
    record(request, status, now, &TaskDetail { run, ..TaskDetail::default() })
}

/// A task as it would be, were it submitted.
pub fn tried(request: &Request, status: TaskStatus, detail: &TaskDetail, now: UnixSeconds) -> TaskRecord {
    record(request, status, now, detail)
}

fn record(request: &Request, status: TaskStatus, now: UnixSeconds, detail: &TaskDetail) -> TaskRecord {
    let Request { gang, organization, submitted, hours, elastic } = request;
    let elastic = elastic.as_ref().map(ElasticRecord::asked);
    TaskRecord {
        id: gang.task.clone(),
        organization: organization.clone(),
        class: gang.class,
        gpus_per_pod: MilliGpus::from_milli(u64::from(gang.pod.gpus.milli())).unwrap_or(MilliGpus::ZERO),
        pods: gang.pods,
        cpu_milli: gang.pod.cpu_milli,
        memory_mib: gang.pod.memory_mib,
        guarantee_hours: *hours,
        affinity: gang.pod.affinity,
        elastic_json: elastic.map(|one| serde_json::to_string(&one).expect("it has numbers")),
        submitted: *submitted,
        status,
        updated: now,
        detail_json: json_of(detail),
    }
}

/// The run of a task.
pub fn run_of(pool: &Pool, task: &TaskId, running: &Running) -> TaskRun {
    TaskRun {
        since: running.since.to_string(),
        starts: pool.starts(task).unwrap_or(running.since).to_string(),
        places: running.places.iter().map(|place| place_of(pool, *place, &running.pod)).collect(),
        lent: running.lent.iter().map(|place| place_of(pool, *place, &running.pod)).collect(),
        saved: running.saved.to_string(),
        guarantee: running.guarantee.map(Into::into),
    }
}

/// Where a pod runs, with what lies beside its GPUs.
pub fn place_of(pool: &Pool, place: PodPlace, pod: &PodRequest) -> PlaceBody {
    let node = &pool.fleet().nodes()[place.node];
    PlaceBody::of(&node.id, place.gpus, pod, node.topology.as_deref())
}

pub fn node_of(pool: &Pool, number: usize) -> NodeId {
    pool.fleet().nodes()[number].id.clone()
}

/// The nodes of a run, each once.
pub fn nodes_of(pool: &Pool, running: &Running) -> Vec<String> {
    let places = running.places.iter().chain(&running.lent);
    let mut nodes: Vec<String> = places.map(|place| node_of(pool, place.node).to_string()).collect();
    nodes.sort_unstable();
    nodes.dedup();
    nodes
}

/// The reason of a task that other tasks come before.
pub fn queued() -> ReasonBody {
    ReasonBody { code: "queued".to_owned(), detail: "its turn comes with the next change of the pool".to_owned() }
}

pub fn reason(why: &WaitReason) -> ReasonBody {
    match why {
        WaitReason::Rests { until } => {
            let detail = format!("its last run was cut; it may start again from {until} on");
            ReasonBody { code: "rests".to_owned(), detail }
        }
        WaitReason::Deferred { until } => {
            let detail = format!("it would have to evict: it does so from {until} on, unless GPUs fall idle before");
            ReasonBody { code: "deferred".to_owned(), detail }
        }
        WaitReason::Reserved { refusal, reservation } => {
            ReasonBody { code: refusal.code().to_owned(), detail: format!("{refusal}; {reservation}") }
        }
        WaitReason::HeldBack { by } => {
            ReasonBody { code: HELD_BACK.to_owned(), detail: format!("held back by the reservation of task {by}") }
        }
        WaitReason::Refused(refusal) => ReasonBody { code: refusal.code().to_owned(), detail: refusal.to_string() },
    }
}

/// How a run was cut; `deadline` is until when its task may save its work.
pub fn cut(cut: &Cut, now: UnixSeconds, deadline: UnixSeconds) -> TaskCut {
    let (code, by) = match &cut.why {
        CutReason::EvictedBy { task } => (CutCodeBody::Evicted, task.to_string()),
        CutReason::ClearedFor { organization, .. } => (CutCodeBody::Reserved, organization.to_string()),
        CutReason::Lost { node, cause: NodeLoss::Failed } => (CutCodeBody::NodeFailed, node.to_string()),
        CutReason::Lost { node, cause: NodeLoss::Drained } => (CutCodeBody::NodeDrained, node.to_string()),
    };
    TaskCut { at: now.to_string(), code, by, deadline: deadline.to_string() }
}

/// A guarantee period that ended, under an id of its own: pool, task, begin of the run, end of the period, and how it ended;
/// the next period may be broken in the very second in which one was kept.
pub fn outcome(pool: &PoolId, end: &PeriodEnd) -> Outcome {
    let text = format!("{pool}/{}/{}/{}/{}", end.task, end.since.get(), end.at.get(), end.kind.as_str());
    let event_id = EventId::parse(&text).unwrap_or_else(|_| {
        let digest = format!("sha256/{}", hex::encode(Sha256::digest(text.as_bytes())));
        EventId::parse(&digest).expect("hexadecimal digits are a name")
    });
    Outcome {
        event_id,
        pool: pool.clone(),
        guarantee_hours: end.hours,
        kind: end.kind,
        ended_at: end.at,
        began_at: Some(end.period.began),
        gpus: MilliGpus::from_milli(end.period.gpus_milli).ok(),
        task: Some(end.task.clone()),
        node: None,
    }
}

/// Audit detail of a call for a task.
pub fn audited(Decided { record, is_shadow }: &Decided) -> String {
    let detail = json!({
        "task": record.id.as_str(),
        "organization": record.organization.as_str(),
        "class": record.class.as_str(),
        "gpus_per_pod": record.gpus_per_pod.as_gpus(),
        "pods": record.pods,
        "guarantee_hours": hours_body(record.guarantee_hours),
        "status": record.status.as_str(),
        "shadow": is_shadow,
    });
    detail.to_string()
}

/// A stored task as it is answered.
#[must_use]
pub fn answer(pool: &PoolId, Decided { record, is_shadow }: &Decided) -> TaskAnswer {
    TaskAnswer {
        cluster: pool.cluster.to_string(),
        gpu_model: pool.gpu_model.to_string(),
        id: record.id.to_string(),
        organization: record.organization.to_string(),
        class: record.class.into(),
        gpus_per_pod: record.gpus_per_pod.as_gpus(),
        pods: record.pods,
        cpu_milli: record.cpu_milli,
        memory_mib: record.memory_mib,
        guarantee_hours: hours_body(record.guarantee_hours),
        affinity: record.affinity.map(AffinityBody::from),
        elastic: record.elastic_json.as_deref().and_then(|json| elastic_of(json, record.pods)),
        submitted: record.submitted.to_string(),
        status: status(record.status),
        updated: record.updated.to_string(),
        shadow: *is_shadow,
        detail: detail(record),
        start: None,
    }
}

/// The stored detail of a task; empty where it cannot be read, so that the task is still shown.
pub fn detail(record: &TaskRecord) -> TaskDetail {
    serde_json::from_str(&record.detail_json).unwrap_or_else(|fault| {
        tracing::warn!(task = %record.id, %fault, "the stored detail of a task cannot be read: it is shown as empty");
        TaskDetail::default()
    })
}

const fn status(of: TaskStatus) -> TaskStatusBody {
    match of {
        TaskStatus::Waiting => TaskStatusBody::Waiting,
        TaskStatus::Running => TaskStatusBody::Running,
        TaskStatus::Finished => TaskStatusBody::Finished,
        TaskStatus::Deleted => TaskStatusBody::Deleted,
    }
}

/// As the client asked for it; what is stored was checked when it came.
fn elastic_of(json: &str, pods: u32) -> Option<ElasticBody> {
    let record: ElasticRecord = serde_json::from_str(json).ok()?;
    record.parse(pods).ok().map(|elastic| ElasticBody::from(&elastic))
}

/// Whether a record is of the same request, whenever that came.
pub fn is_of(record: &TaskRecord, request: &Request) -> bool {
    let asked = tried(request, record.status, &TaskDetail::default(), record.updated);
    let same = TaskRecord { submitted: record.submitted, detail_json: record.detail_json.clone(), ..asked };
    same == *record
}
