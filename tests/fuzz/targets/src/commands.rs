//! Requests of clients to a pool, one after the other.

use crate::is_one_line;
use placement::pool::{Command, Fact, Pool, PoolRules, Snapshot};
use placement::{Limit, Policy, invariants};
use serde::{Deserialize, Serialize};
use vocab::{NodeId, TaskId, UnixSeconds};
use wire::{FactRecord, LimitRecord, NodeBody, NodeLossBody, PolicyBody, SnapshotRecord, SpeedBody, TaskBody};

const START: UnixSeconds = UnixSeconds::new(1_700_000_000);
/// More would find no more, and take longer.
const MOST_STEPS: usize = 60;
/// A year between two requests: every hour that passes is closed one by one.
const LONGEST_S: i64 = 366 * vocab::SECONDS_PER_DAY;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct History {
    policy: Option<String>,
    #[serde(default)]
    policy_parts: Option<PolicyBody>,
    steps: Vec<Step>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Step {
    after_s: u32,
    ask: Ask,
}

/// Bodies as they come in; paths have the names.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum Ask {
    Node(Box<NodeBody>),
    Remove { node: String, cause: String },
    Task(Box<TaskBody>),
    Finish(String),
    Delete(String),
    Save(String),
    Speed { task: String, body: SpeedBody },
    Limits(Vec<LimitRecord>),
    Pass,
}

/// However it is asked, no invariant breaks, the facts alone give the same state, and so does its snapshot.
pub fn commands(data: &[u8]) {
    let Ok(history) = serde_json::from_slice::<History>(data) else { return };
    let of_parts = history.policy_parts.and_then(|parts| parts.parse("").ok());
    let policy = of_parts.or_else(|| Policy::parse(history.policy.as_deref()?)).unwrap_or(Policy::GFS);
    let rules = PoolRules { grace_s: 30, ..PoolRules::default() };
    let (mut pool, mut mirror) = (Pool::new(policy, rules), Pool::new(policy, rules));
    let mut now = START;
    for Step { after_s, ask } in history.steps.into_iter().take(MOST_STEPS) {
        now = now.plus_s(i64::from(after_s).min(LONGEST_S));
        for command in of(&ask, &pool, now) {
            let (report, done) = pool.handle(now, &command);
            if let Err(fault) = done {
                is_one_line(&fault.to_string());
            }
            mirror.apply(now, &Fact::Saved { task: TaskId::parse("nobody").expect("a name") }).expect_err("time alone");
            for fact in report.facts {
                let written: FactRecord = again(&FactRecord::from(&fact));
                assert_eq!(Fact::try_from(&written).as_ref(), Ok(&fact), "as the journal keeps it");
                mirror.apply(now, &fact).expect("a fact that was decided follows from the state");
            }
            holds(&pool);
        }
    }
    let snapshot = pool.snapshot();
    assert_eq!(mirror.snapshot(), snapshot, "facts alone are the state");
    let back = Snapshot::try_from(&again::<SnapshotRecord>(&SnapshotRecord::from(&snapshot)));
    assert_eq!(back.as_ref(), Ok(&snapshot), "as it is stored");
    let restored = Pool::restore(&snapshot, policy, rules).expect("a pool restores from its own snapshot");
    assert_eq!(restored.snapshot(), snapshot);
    holds(&restored);
}

/// Invariants between two decisions.
pub fn holds(pool: &Pool) {
    invariants::no_gpu_is_overused(pool.fleet());
    invariants::books_balance(pool.fleet());
    assert!(pool.idle_milli() <= pool.capacity().milli(), "more is idle than there is");
    for waiting in pool.waiting() {
        let task = &waiting.request.gang.task;
        assert!(pool.running(task).is_none(), "{task} waits and runs");
    }
}

pub fn again<T: Serialize + serde::de::DeserializeOwned>(value: &T) -> T {
    let text = serde_json::to_string(value).expect("strings and integers are written");
    serde_json::from_str(&text).expect("what is written is read")
}

/// The commands that the engine makes of a request; none where it is refused before.
fn of(ask: &Ask, pool: &Pool, now: UnixSeconds) -> Vec<Command> {
    let task = |name: &str| TaskId::parse(name).ok();
    let one = |command: Option<Command>| command.into_iter().collect();
    match ask {
        Ask::Node(body) => nodes(body, pool).unwrap_or_default(),
        Ask::Remove { node, cause } => {
            let cause = serde_json::from_value::<NodeLossBody>(cause.as_str().into()).ok();
            let (node, cause) = (NodeId::parse(node).ok(), cause.map(Into::into));
            one(node.zip(cause).map(|(node, cause)| Command::RemoveNode { node, cause }))
        }
        Ask::Task(body) => one(body.parse(now).ok().map(|(_, request)| Command::Submit(request))),
        Ask::Finish(name) => one(task(name).map(|task| Command::Finish { task })),
        Ask::Delete(name) => one(task(name).map(|task| Command::Delete { task })),
        Ask::Save(name) => one(task(name).map(|task| Command::Save { task })),
        Ask::Speed { task: name, body } => one(task(name).zip(body.parse().ok()).map(|(task, (pods, speed))| {
            let speed_thousandths = speed;
            Command::Measure { task, pods, speed_thousandths }
        })),
        Ask::Limits(limits) => {
            let limits: Vec<Limit> = limits.iter().filter_map(|limit| Limit::try_from(limit).ok()).collect();
            one(limits.is_sorted_by(|one, next| one.hours < next.hours).then_some(Command::SetLimits(limits)))
        }
        Ask::Pass => vec![Command::Pass],
    }
}

/// A node that is not there comes; one that is there opens or closes.
fn nodes(body: &NodeBody, pool: &Pool) -> Option<Vec<Command>> {
    let node = body.parse(NodeId::parse(body.id.as_deref()?).ok()?).ok()?;
    // The store comes first, and holds no more.
    let is_stored = |amount: Option<u64>| amount.is_none_or(|amount| i64::try_from(amount).is_ok());
    if !is_stored(node.cpu_milli) || !is_stored(node.memory_mib) {
        return None;
    }
    let mut commands = Vec::new();
    if pool.fleet().number_of(&node.id).is_none() {
        let (gpus, cpu_milli, memory_mib, topology) = (node.gpus, node.cpu_milli, node.memory_mib, node.topology);
        commands.push(Command::AddNode { node: node.id.clone(), gpus, cpu_milli, memory_mib, topology });
    }
    commands.push(Command::OpenNode { node: node.id, is_open: !node.drains });
    Some(commands)
}
