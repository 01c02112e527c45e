//! Clients that hang up at random moments of random writes.

mod check;

use crate::http::{Request, connect};
use crate::random::Random;
use crate::service::{
    CLUSTER, GPU_MODEL, POOL, POOL_ID, Service, World, hour_ago, post_task, put_node, rfc3339, task, unix_s,
};
use crate::{Outcome, options::Options, report::Report};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::Write;
use std::time::{Duration, Instant};

const WORKERS: u64 = 8;
/// A worker starts a write every so often at most.
const PAUSE_US: usize = 60_000;
/// Of 100 writes, so many are given up.
const HANGUPS_PERCENT: usize = 70;
/// How long after the request has gone a client hangs up, at most: of each of these a third.
const DELAYS_US: [usize; 3] = [300, 3000, 30_000];
/// Usage batches of one worker: each brings an organization.
const MOST_BATCHES: usize = 40;
pub const BATCH_HOURS: u64 = 10;
pub const BATCH_OUTCOMES: usize = 3;
/// A write that was sent and given up may still be under way.
const SETTLE: Duration = Duration::from_secs(3);

pub fn run(options: &Options, database: &'static str, report: &Report) -> Outcome<()> {
    let world = World::new(options, database)?;
    let mut service = world.serve(&[])?;
    service.with_nodes(6)?;
    let before = check::State::read(&service)?;
    let (began_unix_s, newest) = (unix_s(), check::Audit::newest(&service)?);
    let books = std::thread::scope(|scope| {
        let all: Vec<_> = (0..WORKERS)
            .map(|worker| {
                let service = &service;
                scope.spawn(move || Worker::new(service, options.seed, worker).work(options.seconds, report))
            })
            .collect();
        all.into_iter().map(|worker| worker.join().unwrap_or_default()).collect::<Vec<Book>>()
    });
    std::thread::sleep(SETTLE);
    let after = check::State::read(&service)?;
    let audit = check::Audit::read(&service, began_unix_s, newest)?;
    report.add("audit_entries", audit.len() as u64);
    check::is_whole(&after, report);
    check::is_audited(&service, &books, (&before, &after), &audit, report)?;
    service.kill();
    let service = world.serve(&[])?;
    service.leads()?;
    check::survives(&after, &check::State::read(&service)?, report);
    Ok(())
}

/// The fate of a write, as far as its client knows.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Known {
    #[default]
    Unknown,
    Taken,
    Refused,
}

#[derive(Debug, Default)]
pub struct TaskBook {
    pub submitted: Known,
    /// True of a finish, false of a deletion.
    pub end: Option<(bool, Known)>,
}

#[derive(Debug, Default)]
pub struct NodeBook {
    pub put: Known,
    pub deleted: Option<Known>,
}

/// The requests of one worker.
#[derive(Debug, Default)]
pub struct Book {
    pub tasks: BTreeMap<String, TaskBook>,
    pub nodes: BTreeMap<String, NodeBook>,
    pub batches: Vec<(String, Known)>,
}

struct Worker<'a> {
    service: &'a Service,
    random: Random,
    name: String,
    number: u64,
    book: Book,
    /// Those that no end was sent of.
    open_tasks: Vec<String>,
    open_nodes: Vec<String>,
    overrides: Vec<i64>,
}

impl<'a> Worker<'a> {
    fn new(service: &'a Service, seed: u64, worker: u64) -> Self {
        let (open_tasks, open_nodes, overrides) = (Vec::new(), Vec::new(), Vec::new());
        let (random, name) = (Random::new(seed, worker), format!("w{worker}"));
        Self { service, random, name, number: 0, book: Book::default(), open_tasks, open_nodes, overrides }
    }

    fn work(mut self, seconds: u64, report: &Report) -> Book {
        let started = Instant::now();
        while started.elapsed() < Duration::from_secs(seconds) {
            self.number += 1;
            self.write(report);
            std::thread::sleep(self.random.micros(PAUSE_US));
        }
        self.book
    }

    fn write(&mut self, report: &Report) {
        let name = format!("{}-{}", self.name, self.number);
        match self.random.below(100) {
            0..30 => self.submit(name, report),
            30..52 => self.end(report),
            52..64 => self.node(name, report),
            64..74 => self.delete_node(report),
            74..82 => self.usage(name, report),
            82..90 => drop(self.send(&outcomes(&name), report)),
            90..96 => self.settings(report),
            _ => self.overrides(&name, report),
        }
    }

    fn submit(&mut self, id: String, report: &Report) {
        let pods = 1 + self.random.below(3) as u64;
        let (submitted, _) = self.send(&post_task(&task(&id, "hp", 1.0, pods)), report);
        self.book.tasks.insert(id.clone(), TaskBook { submitted, end: None });
        self.open_tasks.push(id);
    }

    fn end(&mut self, report: &Report) {
        if self.open_tasks.is_empty() {
            return;
        }
        let id = self.open_tasks.swap_remove(self.random.below(self.open_tasks.len()));
        let is_finish = self.random.in_percent(50);
        let request = if is_finish {
            Request::new("POST", format!("/v1/tasks/{id}/finish?{POOL}"))
        } else {
            Request::new("DELETE", format!("/v1/tasks/{id}?{POOL}"))
        };
        let (known, _) = self.send(&request, report);
        self.book.tasks.entry(id).or_default().end = Some((is_finish, known));
    }

    fn node(&mut self, id: String, report: &Report) {
        let (put, _) = self.send(&put_node(&id, 4), report);
        self.book.nodes.insert(id.clone(), NodeBook { put, deleted: None });
        self.open_nodes.push(id);
    }

    fn delete_node(&mut self, report: &Report) {
        if self.open_nodes.is_empty() {
            return;
        }
        let id = self.open_nodes.swap_remove(self.random.below(self.open_nodes.len()));
        let cause = if self.random.in_percent(50) { "failed" } else { "drained" };
        let request = Request::new("DELETE", format!("/v1/nodes/{id}?cluster={CLUSTER}&cause={cause}"));
        let (known, _) = self.send(&request, report);
        self.book.nodes.entry(id).or_default().deleted = Some(known);
    }

    fn usage(&mut self, organization: String, report: &Report) {
        if self.book.batches.len() == MOST_BATCHES {
            return;
        }
        let row = |ago| {
            json!({"hour": hour_ago(ago), "cluster": CLUSTER, "gpu_model": GPU_MODEL, "organization": organization,
                "demand_gpus": 0.001})
        };
        let rows: Vec<Value> = (2..2 + BATCH_HOURS).map(row).collect();
        let (known, _) = self.send(&Request::with_json("POST", "/v1/usage", &json!({"rows": rows})), report);
        self.book.batches.push((organization, known));
    }

    fn settings(&mut self, report: &Report) {
        let target = format!("/v1/pools/{POOL_ID}/settings");
        let Ok(mut settings) = self.service.client(10).get_json(&target) else { return };
        settings["grace_s"] = json!(30 + self.random.below(30));
        self.send(&Request::with_json("PUT", target, &settings), report);
    }

    fn overrides(&mut self, reason: &str, report: &Report) {
        if let Some(id) = self.random.in_percent(50).then(|| self.overrides.pop()).flatten() {
            self.send(&Request::new("DELETE", format!("/v1/overrides/{id}")), report);
            return;
        }
        let (from, to) = (rfc3339(unix_s() + 86_400), rfc3339(unix_s() + 90_000));
        let body = json!({"cluster": CLUSTER, "gpu_model": GPU_MODEL, "kind": "reserve", "gpus": 1, "from": from,
            "to": to, "reason": reason});
        let (_, answer) = self.send(&Request::with_json("POST", "/v1/overrides", &body), report);
        self.overrides.extend(answer["id"].as_i64());
    }

    /// Sends, and hangs up more often than not.
    fn send(&mut self, request: &Request, report: &Report) -> (Known, Value) {
        report.count("writes");
        if self.random.in_percent(HANGUPS_PERCENT) {
            report.count("hangups");
            drop(self.hang_up(request));
            return (Known::Unknown, Value::Null);
        }
        match self.service.client(30).send(request) {
            Ok(answer) if answer.is_success() => (Known::Taken, answer.json()),
            Ok(answer) if answer.status < 500 => (Known::Refused, Value::Null),
            Ok(answer) => {
                report.count(&format!("status_{}", answer.status));
                (Known::Unknown, Value::Null)
            }
            Err(fault) => {
                report.violation("every request that is waited for is answered", fault);
                (Known::Unknown, Value::Null)
            }
        }
    }

    /// After a random byte of the request, or a random while after its last.
    fn hang_up(&mut self, request: &Request) -> std::io::Result<()> {
        let bytes = request.bytes(&self.service.address);
        let is_cut = self.random.in_percent(25);
        let sent = if is_cut { self.random.below(bytes.len()) } else { bytes.len() };
        let mut stream = connect(&self.service.address, Duration::from_secs(10))?;
        stream.write_all(&bytes[..sent])?;
        if !is_cut {
            let delay = DELAYS_US[self.random.below(DELAYS_US.len())];
            std::thread::sleep(self.random.micros(delay));
        }
        Ok(())
    }
}

fn outcomes(name: &str) -> Request {
    let one = |number| {
        json!({"event_id": format!("{name}-{number}"), "cluster": CLUSTER, "gpu_model": GPU_MODEL,
            "guarantee_hours": 4, "kind": "kept", "ended_at": hour_ago(1)})
    };
    let outcomes: Vec<Value> = (0..BATCH_OUTCOMES).map(one).collect();
    Request::with_json("POST", "/v1/outcomes", &json!({"outcomes": outcomes}))
}
