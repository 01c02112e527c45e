//! A database whose file system is full, and has room again.

mod sales;

use self::sales::Sales;
use crate::http::{Client, Request};
use crate::places::{Database, Folder, Postgres, Tmpfs, psql};
use crate::random::Random;
use crate::service::{POOL, Service, World, post_task, task};
use crate::{Outcome, options::Options, report::Report};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const SQLITE_MIB: u64 = 24;
const POSTGRES_MIB: u64 = 64;
const WRITERS: u64 = 2;
/// Within which `/readyz` tells of a disk that is full, or no more.
const READY_LIMIT: Duration = Duration::from_secs(15);
/// Within which writes are taken again: a lease, and the time to notice.
const RECOVERY_LIMIT: Duration = Duration::from_secs(20);
/// Tasks of a writer that have not ended.
const OPEN_TASKS: usize = 4;

/// Where the database lies; the service stops before the server, and the server before the file system goes.
struct Site {
    world: World,
    _server: Option<Postgres>,
    disk: Tmpfs,
}

pub fn run(options: &Options, database: &'static str, report: &Report) -> Outcome<()> {
    let site = match site(options, database) {
        Ok(site) => site,
        Err(reason) if reason.starts_with("not run: ") => {
            report.not_run(reason.trim_start_matches("not run: "));
            return Ok(());
        }
        Err(fault) => return Err(fault),
    };
    let mut service = site.world.serve(&[])?;
    service.with_nodes(4)?;
    let mut random = Random::new(options.seed, 0);
    let full_for = Duration::from_secs((options.seconds / options.cycles.max(1) / 3).clamp(2, 20));
    let ledger = Ledger::default();
    for cycle in 0..options.cycles {
        let left_bytes = random.below(16) as u64 * 4096;
        let recovered = one_cycle(&service, &site.disk, &ledger, (cycle, left_bytes, full_for), report)?;
        if !recovered {
            service.kill();
            service = site.world.serve(&[])?;
            service.leads()?;
            report.count("restarts");
        }
    }
    check(&service, &ledger, "", report)?;
    service.kill();
    let service = site.world.serve(&[])?;
    service.leads()?;
    check(&service, &ledger, " after a restart", report)
}

fn site(options: &Options, database: &'static str) -> Outcome<Site> {
    let not_run = |reason: String| format!("not run: {reason}");
    let folder = Folder::new()?;
    let mib = if database == "sqlite" { SQLITE_MIB } else { POSTGRES_MIB };
    let disk = Tmpfs::mount(&folder.0.join("disk"), mib).map_err(not_run)?;
    if database == "sqlite" {
        let database = Database::sqlite_at(&disk.path);
        return Ok(Site { world: World::with(options, folder, database)?, _server: None, disk });
    }
    let server_folder = folder.0.join("server");
    std::fs::create_dir(&server_folder).map_err(|fault| fault.to_string())?;
    let server = Postgres::start(&server_folder).map_err(not_run)?;
    // Tables lie on the small file system; the server's journal does not, or the server itself would end.
    let space = format!("create tablespace small location '{}'", disk.path.display());
    crate::places::run(std::process::Command::new("chown").arg("postgres").arg(&disk.path))?;
    psql(&server.url, &space)?;
    let database = Database::postgres_on(&server.url, "tablespace small")?;
    Ok(Site { world: World::with(options, folder, database)?, _server: Some(server), disk })
}

/// Acknowledged tasks: task → whether its end was acknowledged, too.
#[derive(Default)]
struct Ledger {
    tasks: Mutex<BTreeMap<String, bool>>,
    sales: Sales,
}

impl Ledger {
    fn note(&self, task: &str, has_ended: bool) {
        let mut tasks = self.tasks.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        tasks.insert(task.to_owned(), has_ended);
    }

    fn all(&self) -> BTreeMap<String, bool> {
        self.tasks.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone()
    }
}

/// True where writes came back by themselves.
fn one_cycle(
    service: &Service,
    disk: &Tmpfs,
    ledger: &Ledger,
    (cycle, left_bytes, full_for): (u64, u64, Duration),
    report: &Report,
) -> Outcome<bool> {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let name = format!("c{cycle}-w{writer}");
            let (stop, client) = (&stop, service.client(30));
            scope.spawn(move || write(client, &name, ledger, stop, report));
        }
        let (stop_sales, client) = (&stop, service.client(30));
        scope.spawn(move || ledger.sales.go_on(client, stop_sales, report));
        std::thread::sleep(Duration::from_secs(1));
        let recovered = fill_and_empty(service, disk, left_bytes, full_for, report);
        stop.store(true, Ordering::Relaxed);
        recovered
    })
}

fn fill_and_empty(
    service: &Service,
    disk: &Tmpfs,
    left_bytes: u64,
    full_for: Duration,
    report: &Report,
) -> Outcome<bool> {
    disk.fill(left_bytes)?;
    report.count("filled");
    let refused = report.counted("refused");
    let is_full = service.wait_for(READY_LIMIT, |_| report.counted("refused") > refused + 4).is_some();
    if is_full {
        report.count("times_full");
        let printed = service.wait_for(READY_LIMIT, is_unready);
        if printed.is_none() {
            report.violation("/readyz is 503 while no write can be taken", format!("for {READY_LIMIT:?}"));
        }
    }
    std::thread::sleep(full_for);
    disk.empty()?;
    let taken = report.counted("acknowledged");
    let recovery = service.wait_for(RECOVERY_LIMIT, |_| report.counted("acknowledged") > taken + 4);
    let Some(recovery_s) = recovery else {
        report.violation("writes are taken again without a restart", service.log_end());
        return Ok(false);
    };
    report.figure("last_recovery_s", recovery_s);
    let ready = service.wait_for(READY_LIMIT, |client| client.get("/readyz").is_ok_and(|answer| answer.is_success()));
    if ready.is_none() {
        report.violation("/readyz is 200 once writes are taken", service.log_end());
    }
    Ok(true)
}

fn is_unready(client: &mut Client) -> bool {
    client.get("/readyz").is_ok_and(|answer| answer.status == 503)
}

/// Tasks come and go; what is acknowledged is noted.
fn write(mut client: Client, name: &str, ledger: &Ledger, stop: &AtomicBool, report: &Report) {
    let (mut number, mut open) = (0, Vec::new());
    while !stop.load(Ordering::Relaxed) {
        number += 1;
        let id = format!("{name}-{number}");
        if acknowledged(&mut client, &post_task(&padded(&id)), report).is_some() {
            ledger.note(&id, false);
            open.push(id);
        }
        if open.len() > OPEN_TASKS {
            let id: String = open.remove(0);
            let delete = Request::new("DELETE", format!("/v1/tasks/{id}?{POOL}"));
            if acknowledged(&mut client, &delete, report).is_some() {
                ledger.note(&id, true);
            }
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A task with a name that takes room.
fn padded(id: &str) -> Value {
    let mut task = task(id, "hp", 1.0, 1);
    task["organization"] = json!(format!("vision-{}", "x".repeat(80)));
    task
}

/// The body of a success.
fn acknowledged(client: &mut Client, request: &Request, report: &Report) -> Option<Value> {
    match client.send(request) {
        Ok(answer) if answer.is_success() => {
            report.count("acknowledged");
            Some(answer.json())
        }
        Ok(answer) => {
            report.count("refused");
            report.count(&format!("status_{}", answer.status));
            if ![503, 507].contains(&answer.status) {
                let what = format!("{} {}: {}", request.method, request.target, answer.summary());
                report.violation("a full disk is answered by 503 or 507", what);
            }
            None
        }
        Err(fault) => {
            report.count("refused");
            report.violation("every request is answered", fault);
            None
        }
    }
}

fn check(service: &Service, ledger: &Ledger, when: &str, report: &Report) -> Outcome<()> {
    ledger.sales.check(service, when, report)?;
    let mut client = service.client(30);
    let all = ledger.all();
    report.figure("tasks_acknowledged", all.len());
    for (task, has_ended) in all {
        let answer = client.get(&format!("/v1/tasks/{task}?{POOL}"))?;
        if !answer.is_success() {
            report.violation(&format!("what was acknowledged is there{when}"), format!("{task}: {}", answer.summary()));
            continue;
        }
        let status = answer.json()["status"].as_str().unwrap_or_default().to_owned();
        if has_ended && ["running", "waiting"].contains(&status.as_str()) {
            report.violation(&format!("a deletion that was acknowledged holds{when}"), format!("{task}: {status}"));
        }
    }
    Ok(())
}
