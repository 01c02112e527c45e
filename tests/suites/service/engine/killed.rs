//! The program is killed at random points under load: what it acknowledged is there, and nothing else decides.

use super::*;
use placement::Policy;
use placement::pool::{Pool, PoolRules, Snapshot};
use quota_service::engine::rebuild;
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use store::StoredJournal;
use tests::{Listening, on_both_databases};
use wire::{FactRecord, SnapshotRecord};

on_both_databases![what_was_acknowledged_outlives_kills_at_random_points];

/// Kills of one run; `HEADROOM_SOAK_KILLS` asks for more, and `HEADROOM_SOAK_SEED` for others.
const KILLS: u64 = 5;
const CLIENTS: u64 = 4;

/// Task → what was acknowledged of it last.
type Acknowledged = Mutex<BTreeMap<String, String>>;

fn number_of(variable: &str, default: u64) -> u64 {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// SplitMix64.
fn draw(seed: &mut u64, below: u64) -> u64 {
    *seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *seed;
    mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    (mixed ^ mixed >> 31) % below
}

/// Submits, saves, finishes and deletes tasks of its own until it is told to stop.
fn client(service: &Listening, name: &str, mut seed: u64, stop: &AtomicBool, acknowledged: &Acknowledged) {
    let mut mine: Vec<String> = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        let old = (draw(&mut seed, 3) > 0).then_some(mine.len()).filter(|count| *count > 0);
        let (id, sent) = if let Some(count) = old {
            let id = mine[draw(&mut seed, count as u64) as usize].clone();
            let (method, what) =
                [("POST", "/finish"), ("POST", "/checkpoint"), ("DELETE", "")][draw(&mut seed, 3) as usize];
            let sent = service.send(method, &format!("/v1/tasks/{id}{what}?{OF_POOL}"), None);
            (id, sent)
        } else {
            let id = format!("{name}-{}", mine.len());
            let pods = draw(&mut seed, 3) as u32 + 1;
            let gpus = [0.5, 1.0, 4.0][draw(&mut seed, 3) as usize];
            let mut body = if draw(&mut seed, 2) == 0 { hp(&id, gpus, pods) } else { spot(&id, gpus, pods, None) };
            if body["class"] == "spot" && gpus >= 1.0 && draw(&mut seed, 2) == 0 {
                body["elastic"] = json!({ "min_pods": 1 });
            }
            mine.push(id.clone());
            (id, service.send("POST", "/v1/tasks", Some(&body)))
        };
        if let Some((200, answer)) = sent {
            acknowledged.lock().unwrap().insert(id, answer["status"].as_str().unwrap().to_owned());
        }
    }
}

/// The pool that follows from all facts from the first one on.
fn replayed(journal: &StoredJournal, rules: PoolRules) -> Pool {
    let mut pool = Pool::new(Policy::GFS, rules);
    for entry in &journal.entries {
        let facts: Vec<FactRecord> = serde_json::from_str(&entry.facts_json).unwrap();
        for fact in &facts {
            pool.apply(entry.at, &fact.try_into().unwrap()).unwrap();
        }
    }
    pool
}

/// After a restart: everything acknowledged is there, and the state is the one that the journal says.
async fn check(database: &TestDatabase, service: &Listening, acknowledged: &Acknowledged) {
    let served = service.get_until("/v1/pools/demo:A100/snapshot", |status, _| status == 200);
    let store = database.store().await;
    let acknowledged = acknowledged.lock().unwrap().clone();
    for (id, status) in &acknowledged {
        let known = store.task_record(&pool(POOL), &vocab::TaskId::parse(id).unwrap()).await.unwrap();
        let now = known.unwrap_or_else(|| panic!("{id} was acknowledged as {status} and is lost")).status.as_str();
        let has_ended = ["finished", "deleted"].contains(&status.as_str());
        assert!(!has_ended || now == status, "{id} was acknowledged as {status} and is {now}");
    }
    let journal = store.open_journal(&pool(POOL)).await.unwrap();
    let rules = PoolRules { grace_s: 30, ..PoolRules::default() };
    let (mut rebuilt, ..) = rebuild(&journal, Policy::GFS, rules).unwrap();
    placement::invariants::books_balance(rebuilt.fleet());
    placement::invariants::no_gpu_is_overused(rebuilt.fleet());
    let mut whole = replayed(&StoredJournal { entries: all_entries(&*store, &journal).await, ..journal }, rules);
    let at = rebuilt.now().max(whole.now());
    let (one, other) = (at_same_time(&mut rebuilt, at), at_same_time(&mut whole, at));
    assert_eq!(one, other, "snapshot and journal, against the whole journal");
    let served: SnapshotRecord = serde_json::from_value(served).unwrap();
    let served = Snapshot::try_from(&served).unwrap();
    assert_eq!((served.running, served.waiting, served.nodes), (one.running, one.waiting, one.nodes));
}

/// Every entry from the first one on: nothing is forgotten for the first hundred thousand.
async fn all_entries(store: &dyn store::Store, journal: &StoredJournal) -> Vec<store::JournalEntry> {
    let all = store.journal_entries(journal.placed.id, 0).await.unwrap();
    assert_eq!(all.first().map(|entry| entry.seq), Some(1));
    all
}

fn at_same_time(pool: &mut Pool, at: UnixSeconds) -> Snapshot {
    pool.pass(at);
    pool.snapshot()
}

async fn what_was_acknowledged_outlives_kills_at_random_points(database: TestDatabase) {
    let started = Instant::now();
    let (kills, first_seed) = (number_of("HEADROOM_SOAK_KILLS", KILLS), number_of("HEADROOM_SOAK_SEED", 7));
    let mut seed = first_seed;
    let store = with_usage(&database, 500).await;
    for number in 0..4 {
        let body = json!({ "cluster": "demo", "gpu_model": "A100", "gpus": 8 });
        let body: wire::NodeBody = serde_json::from_value(body).unwrap();
        let id = vocab::NodeId::parse(&format!("n{number}")).unwrap();
        store.put_node(&body.parse(id).unwrap()).await.unwrap();
    }
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("headroom.toml");
    std::fs::write(&config, "[quota-service]\nsnapshot_facts = 40\nlog = \"error\"\n").unwrap();
    let arguments = ["--database", &database.url, "--config", config.to_str().unwrap()];
    let acknowledged = Acknowledged::default();
    for kill in 0..kills {
        let service = Listening::start(&arguments);
        check_if_placed(&database, &service, &acknowledged).await;
        let stop = AtomicBool::new(false);
        let wait = Duration::from_millis(200 + draw(&mut seed, 600));
        std::thread::scope(|scope| {
            for number in 0..CLIENTS {
                let (service, stop, acknowledged) = (&service, &stop, &acknowledged);
                let name = format!("k{kill}-c{number}");
                let seed = draw(&mut seed, u64::MAX);
                scope.spawn(move || client(service, &name, seed, stop, acknowledged));
            }
            std::thread::sleep(wait);
            service.kill();
            stop.store(true, Ordering::Relaxed);
        });
    }
    let service = Listening::start(&arguments);
    check(&database, &service, &acknowledged).await;
    let tasks = acknowledged.lock().unwrap().len();
    assert!(tasks as u64 > kills, "only {tasks} tasks were acknowledged");
    report(&database, first_seed, kills, tasks, started.elapsed());
}

async fn check_if_placed(database: &TestDatabase, service: &Listening, acknowledged: &Acknowledged) {
    if !acknowledged.lock().unwrap().is_empty() {
        check(database, service, acknowledged).await;
    }
}

/// What a soak leaves behind, in the file that `HEADROOM_SOAK_OUT` names.
fn report(database: &TestDatabase, seed: u64, kills: u64, tasks: usize, took: Duration) {
    let Ok(file) = std::env::var("HEADROOM_SOAK_OUT") else { return };
    let commit = std::process::Command::new("git").args(["rev-parse", "HEAD"]).output().unwrap().stdout;
    let line = json!({
        "campaign": "kill", "database": database.backend.to_string(), "seed": seed, "kills": kills,
        "acknowledged_tasks": tasks, "lost": 0, "seconds": took.as_secs(),
        "commit": String::from_utf8(commit).unwrap().trim(),
    });
    let lines = std::fs::read_to_string(&file).unwrap_or_default();
    std::fs::write(&file, format!("{lines}{line}\n")).unwrap();
}
