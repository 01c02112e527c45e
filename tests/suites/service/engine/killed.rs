//! Two services on one database are killed, and stand still, at random points under load: what was acknowledged is there, once,
//! and quotas are answered again within seconds.

use super::*;
use placement::Policy;
use placement::pool::{Pool, PoolRules, Snapshot};
use quota_service::engine::rebuild;
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use store::StoredJournal;
use tests::{Listening, free_address, on_both_databases, send_to};
use wire::{FactRecord, SnapshotRecord};

on_both_databases![acknowledged_writes_outlive_kills_at_random_points];

/// Kills of one run; `HEADROOM_SOAK_KILLS` asks for more, and `HEADROOM_SOAK_SEED` for others.
const KILLS: u64 = 6;
const CLIENTS: u64 = 4;
/// Rounds between two whole checks: each of them reads everything that was ever decided.
const CHECKED_EVERY: u64 = 25;

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

/// Submits, saves, finishes and deletes tasks of its own, at either service, until it is stopped.
fn client(addresses: &[String; 2], name: &str, mut seed: u64, stop: &AtomicBool, acknowledged: &Acknowledged) {
    let mut mine: Vec<String> = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        let address = &addresses[draw(&mut seed, 2) as usize];
        let old = (draw(&mut seed, 3) > 0).then_some(mine.len()).filter(|count| *count > 0);
        let (id, sent) = if let Some(count) = old {
            let id = mine[draw(&mut seed, count as u64) as usize].clone();
            let (method, what) =
                [("POST", "/finish"), ("POST", "/checkpoint"), ("DELETE", "")][draw(&mut seed, 3) as usize];
            let sent = send_to(address, method, &format!("/v1/tasks/{id}{what}?{OF_POOL}"), None);
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
            (id, send_to(address, "POST", "/v1/tasks", Some(&body)))
        };
        match sent {
            Some((200, answer)) => {
                let status = answer["status"].as_str().unwrap().to_owned();
                acknowledged.lock().unwrap().insert(id, status);
            }
            // No service is there, or none writes: it comes back, as the answer asks.
            None | Some((503, _)) => std::thread::sleep(Duration::from_millis(20)),
            Some(_) => {}
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

/// Everything acknowledged is there, and the state is the one that the journal says.
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
    let mut rebuilt = rebuild(&journal, Policy::GFS, rules).unwrap().pool;
    placement::invariants::books_balance(rebuilt.fleet());
    placement::invariants::no_gpu_is_overused(rebuilt.fleet());
    let mut whole = replayed(&StoredJournal { entries: all_entries(&*store, &journal).await, ..journal }, rules);
    let at = rebuilt.now().max(whole.now());
    let (one, other) = (at_same_time(&mut rebuilt, at), at_same_time(&mut whole, at));
    assert_eq!(one, other, "snapshot and journal, against the whole journal");
    let served: SnapshotRecord = serde_json::from_value(served).unwrap();
    let served = Snapshot::try_from(&served).unwrap();
    assert_eq!((served.running, served.waiting, served.nodes), (one.running, one.waiting, one.nodes));
    store.close().await;
    tests::check::journal_is_one_line(database).await;
    tests::check::nothing_happened_twice(database).await;
    tests::check::no_gpu_is_given_twice(database).await;
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

/// The services, each at an address of its own, which is its name, too.
struct Two {
    arguments: [Vec<String>; 2],
    addresses: [String; 2],
    running: [Listening; 2],
}

impl Two {
    fn start(database: &TestDatabase, config: &str) -> Self {
        let addresses = [free_address(), free_address()];
        let arguments = addresses.clone().map(|address| {
            ["--listen", &address, "--database", &database.url, "--config", config].map(str::to_owned).to_vec()
        });
        let running = [Self::one(&arguments[0]), Self::one(&arguments[1])];
        Self { arguments, addresses, running }
    }

    fn one(arguments: &[String]) -> Listening {
        Listening::start(&arguments.iter().map(String::as_str).collect::<Vec<_>>())
    }

    /// Starts one again that was killed. Answers how long it takes until it answers a quota.
    fn again(&mut self, number: usize) -> Duration {
        let started = Instant::now();
        self.running[number] = Self::one(&self.arguments[number]);
        let path = quota_path(1);
        while send_to(&self.addresses[number], "GET", &path, None).is_none_or(|(status, _)| status != 200) {
            assert!(started.elapsed() < Duration::from_secs(30), "no quota after a restart");
            std::thread::sleep(Duration::from_millis(2));
        }
        started.elapsed()
    }
}

/// The figures of a campaign.
#[derive(Default)]
struct Measured {
    restarts: u64,
    pauses: u64,
    /// Until a service answers a quota that was killed.
    first_quota: Vec<Duration>,
    /// Until a task is decided again after one service, or both, were killed.
    decided_again: Vec<Duration>,
}

/// Tells the clients to stop, also where a fault goes wrong.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// How long it takes until a service decides again.
fn until_decided(address: &str, name: &str) -> Duration {
    let started = Instant::now();
    let body = hp(name, 0.5, 1);
    while send_to(address, "POST", "/v1/tasks", Some(&body)).is_none_or(|(status, _)| status != 200) {
        assert!(started.elapsed() < Duration::from_secs(30), "nobody decides after 30 s");
        std::thread::sleep(Duration::from_millis(5));
    }
    started.elapsed()
}

/// One fault: a service is killed, both are, or one stands still for longer than a lease lasts.
fn fault(two: &mut Two, seed: &mut u64, round: u64, measured: &mut Measured) {
    let victim = draw(seed, 2) as usize;
    match draw(seed, 8) {
        0 => {
            two.running[victim].pause(true);
            std::thread::sleep(Duration::from_millis(1_200 + draw(seed, 1_500)));
            two.running[victim].pause(false);
            measured.pauses += 1;
        }
        1 | 2 => {
            two.running[0].kill();
            two.running[1].kill();
            measured.first_quota.extend([two.again(victim), two.again(1 - victim)]);
            measured.decided_again.push(until_decided(&two.addresses[victim], &format!("probe-{round}")));
            measured.restarts += 2;
        }
        _ => {
            two.running[victim].kill();
            measured.decided_again.push(until_decided(&two.addresses[1 - victim], &format!("probe-{round}")));
            measured.first_quota.push(two.again(victim));
            measured.restarts += 1;
        }
    }
}

async fn acknowledged_writes_outlive_kills_at_random_points(database: TestDatabase) {
    let started = Instant::now();
    let (kills, first_seed) = (number_of("HEADROOM_SOAK_KILLS", KILLS), number_of("HEADROOM_SOAK_SEED", 7));
    let mut seed = first_seed;
    drop(serving(&database, 500).await);
    let store = database.store().await;
    for number in 0..4 {
        let body = json!({ "cluster": "demo", "gpu_model": "A100", "gpus": 8 });
        let body: wire::NodeBody = serde_json::from_value(body).unwrap();
        let id = vocab::NodeId::parse(&format!("n{number}")).unwrap();
        store.put_node(&body.parse(id).unwrap()).await.unwrap();
    }
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("headroom.toml");
    std::fs::write(&config, "[quota-service]\nsnapshot_facts = 40\nlog = \"error\"\nlease_s = 1\n").unwrap();
    let mut two = Two::start(&database, config.to_str().unwrap());
    let (acknowledged, mut measured, mut round) = (Acknowledged::default(), Measured::default(), 0);
    while measured.restarts < kills {
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let _end = Stop(&stop);
            let addresses = two.addresses.clone();
            for number in 0..CLIENTS {
                let (addresses, stop, acknowledged) = (addresses.clone(), &stop, &acknowledged);
                let name = format!("r{round}-c{number}");
                let seed = draw(&mut seed, u64::MAX);
                scope.spawn(move || client(&addresses, &name, seed, stop, acknowledged));
            }
            std::thread::sleep(Duration::from_millis(100 + draw(&mut seed, 400)));
            fault(&mut two, &mut seed, round, &mut measured);
        });
        round += 1;
        if round % CHECKED_EVERY == 0 {
            check(&database, &two.running[(round % 2) as usize], &acknowledged).await;
        }
    }
    check(&database, &two.running[0], &acknowledged).await;
    check(&database, &two.running[1], &acknowledged).await;
    let tasks = acknowledged.lock().unwrap().len();
    assert!(tasks as u64 > kills, "only {tasks} tasks were acknowledged");
    report(&database, first_seed, &mut measured, tasks, started.elapsed());
}

/// The median, and the longest, in seconds.
fn seconds(of: &mut [Duration]) -> Value {
    of.sort_unstable();
    let at = |index: usize| of.get(index).map(Duration::as_secs_f64);
    json!({ "count": of.len(), "p50": at(of.len() / 2), "p99": at(of.len() * 99 / 100), "longest": at(of.len().wrapping_sub(1)) })
}

/// The results of a soak, in the file that `HEADROOM_SOAK_OUT` names.
fn report(database: &TestDatabase, seed: u64, measured: &mut Measured, tasks: usize, took: Duration) {
    let Ok(file) = std::env::var("HEADROOM_SOAK_OUT") else { return };
    let commit = std::process::Command::new("git").args(["rev-parse", "HEAD"]).output().unwrap().stdout;
    let line = json!({
        "campaign": "kill", "database": database.backend.to_string(), "seed": seed, "restarts": measured.restarts,
        "pauses": measured.pauses, "acknowledged_tasks": tasks, "lost": 0, "twice": 0,
        "first_quota_s": seconds(&mut measured.first_quota), "decided_again_s": seconds(&mut measured.decided_again),
        "lease_s": 1, "seconds": took.as_secs(), "commit": String::from_utf8(commit).unwrap().trim(),
    });
    let lines = std::fs::read_to_string(&file).unwrap_or_default();
    std::fs::write(&file, format!("{lines}{line}\n")).unwrap();
}
