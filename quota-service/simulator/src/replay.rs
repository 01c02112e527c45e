//! Decisions of a policy about the waiting tasks of a live pool, at the moment of its snapshot.

use crate::commands::SimulatorError;
use command_line::{print_json, print_text, say, table};
use placement::Policy;
use placement::fleet::GpuPlace;
use placement::pool::{Fact, Pool, PoolRules, Snapshot, WaitReason};
use placement::shares::Weights;
use serde::Serialize;
use std::path::Path;
use std::sync::Arc;
use wire::SnapshotRecord;

/// One task that waited.
#[derive(Debug, Serialize)]
struct Waited {
    task: String,
    class: &'static str,
    gpus: f64,
    /// How long it has waited.
    wait_s: i64,
    /// `starts`, or why it waits.
    verdict: String,
    detail: String,
}

/// The pool, and what becomes of its tasks.
#[derive(Debug, Serialize)]
struct Asked {
    policy: String,
    at: String,
    capacity_gpus: f64,
    idle_gpus: f64,
    hp_demand_gpus: f64,
    running: usize,
    waiting: usize,
    evictions: usize,
    tasks: Vec<Waited>,
}

const fn gpus(milli: u64) -> f64 {
    milli as f64 / 1_000.0
}

/// Reads a snapshot as `GET /v1/pools/{id}/snapshot` answers it.
fn read(file: &Path) -> Result<Snapshot, SimulatorError> {
    let refused = |detail: String| SimulatorError::Snapshot { file: file.to_owned(), detail };
    let text = std::fs::read_to_string(file).map_err(|fault| refused(fault.to_string()))?;
    let record: SnapshotRecord = wire::from_json(&text).map_err(|fault| refused(fault.to_string()))?;
    Snapshot::try_from(&record).map_err(|fault| refused(fault.to_string()))
}

/// Lets every waiting task try once more under a policy, which may be another than the pool's own.
///
/// # Errors
/// The file is no snapshot, or one that contradicts itself.
pub fn replay(file: &Path, id: &str, (policy, weights): (Policy, Weights), json: bool) -> Result<(), SimulatorError> {
    if policy.score.needs_power() {
        let why =
            format!("{id} looks at power, and a snapshot does not name its GPU model: choose a policy without it");
        return Err(SimulatorError::Value(why));
    }
    let snapshot = read(file)?;
    let refused =
        |fault: placement::pool::Fault| SimulatorError::Snapshot { file: file.to_owned(), detail: fault.to_string() };
    let pool = Pool::restore(&snapshot, policy, PoolRules::default()).map_err(refused)?;
    let mut pool = pool.with_weights(Arc::new(weights));
    let (capacity, idle) = (pool.capacity(), pool.idle_milli());
    let report = pool.retry(snapshot.at);
    let started: Vec<(&str, String)> = report.facts.iter().filter_map(start).collect();
    let mut tasks = Vec::new();
    for waiting in &snapshot.waiting {
        let gang = &waiting.request.gang;
        let start = started.iter().find(|(task, _)| *task == gang.task.as_str());
        let (verdict, detail) = match start {
            Some((_, detail)) => ("starts".to_owned(), detail.clone()),
            None => why(&mut pool, &gang.task),
        };
        tasks.push(Waited {
            task: gang.task.to_string(),
            class: gang.class.as_str(),
            gpus: gpus(u64::from(gang.pod.gpus.milli()) * u64::from(gang.pods)),
            wait_s: snapshot.at.since_s(waiting.queued),
            verdict,
            detail,
        });
    }
    let asked = Asked {
        policy: id.to_owned(),
        at: snapshot.at.to_string(),
        capacity_gpus: capacity.as_gpus(),
        idle_gpus: gpus(idle),
        hp_demand_gpus: gpus(pool.hp_demand_milli()),
        running: snapshot.running.len(),
        waiting: snapshot.waiting.len(),
        evictions: report.consequences.cuts.len(),
        tasks,
    };
    show(&asked, json);
    Ok(())
}

fn start(fact: &Fact) -> Option<(&str, String)> {
    let Fact::Started { task, places, victims, .. } = fact else { return None };
    let place = |(node, gpus): &(vocab::NodeId, GpuPlace)| match gpus {
        GpuPlace::Share { gpu, milli } => format!("{node} (0.{milli:03} of GPU {gpu})"),
        GpuPlace::Whole { mask } => format!("{node} ({} GPUs)", mask.count_ones()),
    };
    let places: Vec<String> = places.iter().map(place).collect();
    let names: Vec<&str> = victims.iter().map(vocab::TaskId::as_str).collect();
    let goes = if names.is_empty() { String::new() } else { format!("; evicts {}", names.join(", ")) };
    Some((task.as_str(), format!("on {}{goes}", places.join(", "))))
}

fn why(pool: &mut Pool, task: &vocab::TaskId) -> (String, String) {
    match pool.why_it_waits(task) {
        Some(WaitReason::Rests { until }) => ("rests".to_owned(), format!("it was evicted too often; until {until}")),
        Some(WaitReason::Reserved { refusal, reservation }) => {
            (refusal.code().to_owned(), format!("{refusal}; {reservation}"))
        }
        Some(WaitReason::HeldBack { by }) => {
            ("held_back".to_owned(), format!("held back by the reservation of task {by}"))
        }
        Some(WaitReason::Deferred { until }) => ("deferred".to_owned(), format!("it evicts nobody until {until}")),
        Some(WaitReason::Refused(refusal)) => (refusal.code().to_owned(), refusal.to_string()),
        None => ("waits".to_owned(), "behind another task".to_owned()),
    }
}

fn show(asked: &Asked, json: bool) {
    if json {
        print_json(asked);
        return;
    }
    say(format_args!(
        "{} at {}: {} GPUs, {} idle, {} asked for by HP; {} tasks run and {} wait; {} evictions",
        asked.policy,
        asked.at,
        asked.capacity_gpus,
        asked.idle_gpus,
        asked.hp_demand_gpus,
        asked.running,
        asked.waiting,
        asked.evictions
    ));
    let row = |one: &Waited| {
        let (gpus, waited) = (one.gpus.to_string(), one.wait_s.to_string());
        vec![one.task.clone(), one.class.to_owned(), gpus, waited, one.verdict.clone(), one.detail.clone()]
    };
    let header = ["task", "class", "GPUs", "waited s", "verdict", "why, or where"];
    print_text(&table(&header, &asked.tasks.iter().map(row).collect::<Vec<_>>()));
}
