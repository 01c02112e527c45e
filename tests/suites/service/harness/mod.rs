//! Histories of faults: two services on one database, a network that fails, clocks that jump, a disk that is full, services that
//! stand still or are lost, reports that come twice and late. What they do is drawn from a seed; what must hold afterwards is
//! checked by what is in the tables and what clients saw, not by the code that put it there.

mod client;
mod seen;

use super::*;
use client::Clients;
use seen::Seen;
use std::time::Instant;
use tests::{Backend, Fault, Proxy, on_both_databases};
use tokio::time::timeout;

on_both_databases![under_any_faults_nothing_acknowledged_is_lost_or_counted_twice_and_no_quota_rises];

/// Histories of one run, and steps of each; `HEADROOM_SOAK_HISTORIES` asks for more, `HEADROOM_SOAK_SEED` for others.
const HISTORIES: u64 = 2;
const STEPS: u64 = 80;
/// Of a lease: short, so that many change hands in a history.
const PATIENCE: Duration = Duration::from_millis(60);
/// A client gives up after so long, and does not know.
const GIVES_UP: Duration = Duration::from_millis(150);
/// The limit of a service's own work before the history goes on without it.
const GOES_ON: Duration = Duration::from_millis(250);

pub fn number_of(variable: &str, default: u64) -> u64 {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// SplitMix64.
pub struct Random(u64);

impl Random {
    pub fn below(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ mixed >> 31) % below
    }
}

/// A service, its network, and whether it stands still.
struct Replica {
    name: String,
    service: TestService,
    network: Option<Proxy>,
    /// The step at which it goes on.
    still_until: u64,
    /// The step at which its network does.
    failing_until: u64,
}

struct World<'a> {
    database: &'a TestDatabase,
    replicas: Vec<Replica>,
    random: Random,
    clients: Clients,
    seen: Seen,
    step: u64,
    /// The step at which the disk has room again.
    full_until: u64,
    faults: BTreeMap<&'static str, u64>,
}

use std::collections::BTreeMap;

async fn replica(database: &TestDatabase, name: String, now: UnixSeconds) -> Option<Replica> {
    let network = match database.backend {
        Backend::Postgres => Some(Proxy::to(&database.url).await),
        Backend::Sqlite => None,
    };
    let url = network.as_ref().map_or_else(|| database.url.clone(), |network| network.url(&database.url));
    // A database that takes no writes lets nobody start who has to.
    let store = store::connect(&url).await.ok()?;
    let service = TestService::try_start_as(store, now, &name, PATIENCE).await.ok()?;
    Some(Replica { name, service, network, still_until: 0, failing_until: 0 })
}

impl World<'_> {
    fn count(&mut self, fault: &'static str) {
        *self.faults.entry(fault).or_default() += 1;
    }

    /// The work that every service does by itself, and time.
    async fn live(&mut self) {
        for replica in self.replicas.iter().filter(|replica| replica.still_until <= self.step) {
            let service = &replica.service;
            let _ = timeout(GOES_ON, service.service.renewals.update_leases()).await;
            let _ = timeout(GOES_ON, service.follow()).await;
            if self.random.below(4) == 0 {
                let _ = timeout(GOES_ON, service.renew()).await;
            }
        }
        let passed = [1, 5, 60, 300][self.random.below(4) as usize];
        for replica in &self.replicas {
            replica.service.pass_s(passed);
        }
        // Leases are watched by the real time.
        if self.random.below(3) == 0 {
            tokio::time::sleep(PATIENCE / 2).await;
        }
        for replica in &self.replicas {
            let answer = replica.service.get(&quota_path(1)).await;
            let now = replica.service.service.core.clock.now();
            self.seen.quota(&replica.name, now, &answer);
        }
    }

    /// Something goes wrong, or well again.
    async fn fail(&mut self) {
        for replica in self.replicas.iter().filter(|replica| replica.failing_until <= self.step) {
            if let Some(network) = &replica.network {
                network.heal();
            }
        }
        let victim = self.random.below(2) as usize;
        let network = |world: &Self| world.replicas[victim].network.is_some();
        match self.random.below(10) {
            0 if network(self) => self.inject(victim, Fault::BeforeCommit, "connection lost before commit"),
            1 if network(self) => self.inject(victim, Fault::AfterCommit, "connection lost after commit"),
            2 if network(self) => self.inject(victim, Fault::Slow(Duration::from_millis(3)), "slow network"),
            3 if network(self) => self.inject(victim, Fault::Silent, "network silent"),
            4 if network(self) => self.inject(victim, Fault::Gone, "network gone"),
            5 | 6 => {
                self.replicas[victim].still_until = self.step + 2 + self.random.below(12);
                self.count("service stands still");
                tokio::time::sleep(PATIENCE).await;
            }
            7 => self.lose(victim).await,
            8 => {
                let hour = if self.random.below(2) == 0 { 3_600 } else { -3_600 };
                self.replicas[victim].service.set_wall_back_s(hour);
                self.count("clock jumps an hour");
            }
            9 if self.full_until == 0 && self.database.backend == Backend::Postgres => {
                self.full_until = self.step + 1 + self.random.below(6);
                self.fill(true).await;
                self.count("disk full");
            }
            _ => {}
        }
        if self.full_until != 0 && self.full_until <= self.step {
            self.full_until = 0;
            self.fill(false).await;
        }
    }

    fn inject(&mut self, victim: usize, fault: Fault, name: &'static str) {
        self.replicas[victim].failing_until = self.step + 2 + self.random.below(8);
        if let Some(network) = &self.replicas[victim].network {
            network.inject(fault);
        }
        self.count(name);
    }

    /// Makes Postgres refuse every write, as a full disk does, or take them again.
    async fn fill(&self, is_full: bool) {
        // A client that is silent in the middle of a statement holds a lock that is needed here.
        for network in self.replicas.iter().filter_map(|replica| replica.network.as_ref()) {
            network.heal();
        }
        for table in ["journal", "quotas", "outcomes", "usage", "audit", "nodes"] {
            let sql = if is_full {
                format!(
                    "CREATE OR REPLACE FUNCTION disk_is_full() RETURNS trigger LANGUAGE plpgsql AS
                         $$BEGIN RAISE EXCEPTION 'disk full' USING ERRCODE = '53100'; END$$;
                     CREATE TRIGGER full_{table} BEFORE INSERT ON {table} FOR EACH ROW EXECUTE FUNCTION disk_is_full()"
                )
            } else {
                format!("DROP TRIGGER IF EXISTS full_{table} ON {table}")
            };
            self.database.execute(&sql).await;
        }
    }

    /// A service is lost from one moment to the next, and another one starts, under its name or a new one.
    async fn lose(&mut self, victim: usize) {
        let now = self.replicas[1 - victim].service.service.core.clock.now();
        let name = match self.random.below(2) {
            0 => self.replicas[victim].name.clone(),
            _ => format!("s{}", self.step),
        };
        self.count("service lost");
        // The write that it was about is written, or not: nobody waits for it.
        if let Ok(Some(next)) = timeout(Duration::from_secs(8), replica(self.database, name, now)).await {
            self.replicas[victim] = next;
        }
    }

    /// Everything goes well again: leases are taken, and all that clients sent is known.
    async fn heal(&mut self) {
        if self.full_until != 0 {
            self.fill(false).await;
        }
        for replica in &mut self.replicas {
            replica.still_until = 0;
            if let Some(network) = &replica.network {
                network.heal();
            }
        }
        let until = Instant::now() + Duration::from_secs(20);
        let path = format!("/v1/pools/{POOL}/snapshot");
        loop {
            let mut decides = 0;
            for replica in &self.replicas {
                let _ = timeout(GOES_ON, replica.service.service.renewals.update_leases()).await;
                let answer = timeout(GOES_ON, replica.service.get(&path)).await;
                decides += usize::from(answer.is_ok_and(|answer| answer.status == 200));
            }
            if decides == 1 {
                return;
            }
            assert!(Instant::now() < until, "{decides} services decide after everything went well for 20 s");
            tokio::time::sleep(PATIENCE).await;
        }
    }
}

async fn history(database: &TestDatabase, seed: u64) -> BTreeMap<&'static str, u64> {
    let store = with_usage(database, 500).await;
    promote(store.as_ref(), &cluster("demo"), ModelKind::LastValue, end().hour().unwrap()).await;
    store.close().await;
    let now = end().plus_s(60);
    let mut replicas = Vec::new();
    for name in ["one", "two"] {
        replicas.push(replica(database, name.to_owned(), now).await.expect("the database answers"));
    }
    let mut world = World {
        database,
        replicas,
        random: Random(seed),
        clients: Clients::default(),
        seen: Seen::default(),
        step: 0,
        full_until: 0,
        faults: BTreeMap::new(),
    };
    for number in 0..4 {
        let node = json!({ "cluster": "demo", "gpu_model": "A100", "gpus": 8 });
        let _ = world.replicas[0].service.put(&format!("/v1/nodes/n{number}"), &node).await.expect(200);
    }
    world.replicas[0].service.renew().await;
    for step in 0..STEPS {
        world.step = step;
        if world.random.below(3) == 0 {
            world.fail().await;
        }
        for _ in 0..3 {
            let number = world.random.below(2) as usize;
            let replica = &world.replicas[number];
            if replica.still_until <= step {
                world.clients.act(&replica.service, &mut world.random).await;
            }
        }
        world.live().await;
    }
    world.heal().await;
    tests::check::journal_is_one_line(database).await;
    tests::check::nothing_happened_twice(database).await;
    tests::check::no_gpu_is_given_twice(database).await;
    world.clients.check(database).await;
    world.seen.check(database).await;
    world.faults.insert("steps", STEPS);
    world.faults.insert("acknowledged", world.clients.acknowledged());
    world.faults.insert("quotas seen", world.seen.count());
    for replica in &world.replicas {
        replica.service.leave().await;
    }
    world.faults
}

async fn under_any_faults_nothing_acknowledged_is_lost_or_counted_twice_and_no_quota_rises(database: TestDatabase) {
    let started = Instant::now();
    let histories = number_of("HEADROOM_SOAK_HISTORIES", HISTORIES);
    let first_seed = number_of("HEADROOM_SOAK_SEED", 7);
    let mut faults: BTreeMap<&'static str, u64> = BTreeMap::new();
    for number in 0..histories {
        let fresh = tests::fresh_database(database.backend).await;
        println!("history of seed {}", first_seed + number);
        for (fault, count) in history(&fresh, first_seed + number).await {
            *faults.entry(fault).or_default() += count;
        }
    }
    assert!(faults["acknowledged"] > 20 * histories, "{faults:?}");
    let Ok(file) = std::env::var("HEADROOM_SOAK_OUT") else { return };
    let commit = std::process::Command::new("git").args(["rev-parse", "HEAD"]).output().unwrap().stdout;
    let line = json!({
        "campaign": "faults", "database": database.backend.to_string(), "first_seed": first_seed, "histories": histories,
        "injected": faults, "violations": 0, "seconds": started.elapsed().as_secs(),
        "commit": String::from_utf8(commit).unwrap().trim(),
    });
    let lines = std::fs::read_to_string(&file).unwrap_or_default();
    std::fs::write(&file, format!("{lines}{line}\n")).unwrap();
}
