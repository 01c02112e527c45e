//! Clients that ask for much and read nothing.

use crate::http::{Client, connect};
use crate::report::{Report, percentile};
use crate::service::{CLUSTER, POOL, POOL_ID, Service, World, post_task, task};
use crate::{Outcome, options::Options};
use serde_json::json;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Tasks that the snapshot holds, and speeds of each: some megabytes.
const MOST_TASKS: u64 = 2500;
const SPEEDS: u64 = 512;
/// The value of the write timeout, where there is one.
const WRITE_TIMEOUT_S: &str = "5";
/// How long a service without that setting is given.
const PATIENCE_S: u64 = 12;
/// Connections of clients that read, and of the database.
const OTHERS: usize = 10;
/// Beyond the write timeout.
const MARGIN_S: u64 = 5;
/// Large answers that are read at the end, all at once: the places that there are by default.
const PLACES: usize = 16;

pub fn run(options: &Options, database: &'static str, report: &Report) -> Outcome<()> {
    let world = World::new(options, database)?;
    let has_timeout = world.setting("write_timeout_s").is_some();
    report.figure("has_write_timeout_s", has_timeout);
    let settings = if has_timeout { &[("HEADROOM_WRITE_TIMEOUT_S", WRITE_TIMEOUT_S)][..] } else { &[] };
    let service = world.serve(settings)?;
    service.with_nodes(8)?;
    fill(&service, MOST_TASKS.min(250 * options.seconds), report)?;
    let targets = targets(&service, report)?;
    let (before_mib, files_before) = (service.rss_mib(), service.open_files());
    report.figure("rss_before_mib", before_mib);

    let stop = AtomicBool::new(false);
    let (held, watched) = std::thread::scope(|scope| {
        let watcher = scope.spawn(|| watch(&service, &stop));
        let held = hold(&service, &targets, options, report);
        wait_for_places(&service, files_before, has_timeout, report);
        stop.store(true, Ordering::Relaxed);
        (held, watcher.join().unwrap_or_default())
    });
    places_are_free(&service, &targets[0], report);
    drop(held);
    std::thread::sleep(Duration::from_secs(2));
    judge(&service, before_mib, watched, options, report);
    Ok(())
}

/// Elastic tasks that wait, each with a speed for every pod: what a snapshot is made of.
fn fill(service: &Service, tasks: u64, report: &Report) -> Outcome<()> {
    let speeds: Vec<u64> = (1..=SPEEDS).collect();
    let fill = &|first: u64| -> Outcome<()> {
        let mut client = service.client(30);
        for number in (first..tasks).step_by(8) {
            let mut task = task(&format!("t-{number}"), "spot", 1.0, SPEEDS);
            task["elastic"] = json!({"min_pods": SPEEDS / 2, "max_pods": SPEEDS, "speeds": speeds});
            let answer = client.send(&post_task(&task))?;
            if !answer.is_success() {
                return Err(format!("POST /v1/tasks: {}", answer.summary()));
            }
            report.count("tasks");
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let all: Vec<_> = (0..8).map(|first| scope.spawn(move || fill(first))).collect();
        all.into_iter().try_for_each(|worker| worker.join().map_err(|_| "a worker panicked".to_owned())?)
    })
}

/// The largest answers, the largest first.
fn targets(service: &Service, report: &Report) -> Outcome<Vec<String>> {
    let mut client = service.client(30);
    let mut sizes = Vec::new();
    for target in [
        format!("/v1/pools/{POOL_ID}/snapshot"),
        format!("/v1/tasks?{POOL}&status=waiting&limit=1000"),
        format!("/v1/demand?{POOL}&hours=240"),
        format!("/v1/nodes?cluster={CLUSTER}"),
        format!("/v1/quota/explain?{POOL}&hours=4"),
        "/v1/audit?limit=1000".to_owned(),
        "/openapi.json".to_owned(),
    ] {
        let answer = client.get(&target)?;
        if answer.is_success() {
            report.figure(&format!("bytes of {target}"), answer.body.len());
            sizes.push((answer.body.len(), target));
        }
    }
    sizes.sort();
    if sizes.is_empty() {
        return Err("no large answer: the service refuses all of them".to_owned());
    }
    Ok(sizes.into_iter().rev().map(|(_, target)| target).collect())
}

/// Opens connections that ask and read no more than the status, for half of the time, or ten seconds.
fn hold(service: &Service, targets: &[String], options: &Options, report: &Report) -> Vec<TcpStream> {
    let (started, limit) = (Instant::now(), Duration::from_secs((options.seconds / 2).max(10)));
    let mut held = Vec::new();
    let mut attempt = 0;
    while held.len() < options.clients && started.elapsed() < limit {
        // Three of four ask for the largest.
        let target = &targets[if attempt % 4 == 3 { attempt / 4 % targets.len() } else { 0 }];
        attempt += 1;
        match open(service, target) {
            Ok((stream, 200)) => {
                report.count("held");
                held.push(stream);
            }
            Ok((_, status)) => {
                report.count(&format!("refused_{status}"));
                std::thread::sleep(Duration::from_millis(50));
            }
            Err(_) => report.count("connections_failed"),
        }
    }
    held
}

fn open(service: &Service, target: &str) -> std::io::Result<(TcpStream, u16)> {
    let mut stream = connect(&service.address, Duration::from_secs(10))?;
    // A response that the kernel holds whole ends at once, and is not on its way.
    let request = format!("GET {target} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n\r\n", service.address);
    stream.write_all(request.as_bytes())?;
    let mut first = [0; 12];
    stream.read_exact(&mut first)?;
    let status = std::str::from_utf8(&first[9..]).ok().and_then(|status| status.parse().ok());
    Ok((stream, status.unwrap_or(0)))
}

/// RSS by time and the times of `/quota`, until it is stopped.
fn watch(service: &Service, stop: &AtomicBool) -> (f64, Vec<f64>, u64) {
    let (mut peak_mib, mut times_ms, mut failed): (f64, _, _) = (0.0, Vec::new(), 0);
    let mut client = service.client(30);
    while !stop.load(Ordering::Relaxed) {
        let asked = Instant::now();
        match client.get(&format!("/quota?{POOL}&hours=4")) {
            Ok(_) => times_ms.push(asked.elapsed().as_secs_f64() * 1000.0),
            Err(_) => failed += 1,
        }
        peak_mib = peak_mib.max(service.rss_mib());
        std::thread::sleep(Duration::from_millis(20));
    }
    (peak_mib, times_ms, failed)
}

/// Connections that nobody reads are ended once the write timeout is over.
fn wait_for_places(service: &Service, before: usize, has_timeout: bool, report: &Report) {
    let timeout_s = if has_timeout { WRITE_TIMEOUT_S.parse().unwrap_or(PATIENCE_S) } else { PATIENCE_S };
    let limit = Duration::from_secs(timeout_s + MARGIN_S);
    // Some are those of clients that read, and of the database.
    let closed = service.wait_for(limit, |_| service.open_files() <= before + OTHERS);
    report.figure("unread_ended_after_s", closed);
    if closed.is_none() {
        let open = service.open_files() - before.min(service.open_files());
        let example = format!("{open} connections more than before are open after {} s", limit.as_secs());
        report.violation("a response that nobody reads ends with its write timeout", example);
    }
}

/// Once the write timeout is over, clients that read are answered whole, those of the same address too.
fn places_are_free(service: &Service, target: &str, report: &Report) {
    let read = |mut client: Client| client.get(target).is_ok_and(|answer| answer.is_success());
    let round = || {
        std::thread::scope(|scope| {
            let all: Vec<_> = (0..PLACES).map(|_| scope.spawn(|| read(service.client(30)))).collect();
            all.into_iter().map(|reader| reader.join().unwrap_or(false)).filter(|ok| *ok).count()
        })
    };
    let (begun, limit) = (Instant::now(), Duration::from_secs(PATIENCE_S + MARGIN_S));
    let mut answered = round();
    while answered < PLACES / 2 && begun.elapsed() < limit {
        std::thread::sleep(Duration::from_millis(500));
        answered = round();
    }
    report.figure("answered_afterwards", answered);
    report.figure("answered_after_s", begun.elapsed().as_secs_f64());
    if answered < PLACES / 2 {
        report.violation("places are free after the write timeout", format!("{answered} of {PLACES} answered"));
    }
}

fn judge(service: &Service, before: f64, watched: (f64, Vec<f64>, u64), options: &Options, report: &Report) {
    let (peak, mut times_ms, failed) = watched;
    let after = service.rss_mib();
    let p99_ms = percentile(&mut times_ms, 99);
    report.add("quotas", times_ms.len() as u64);
    report.figure("rss_peak_mib", peak);
    report.figure("rss_after_mib", after);
    report.figure("quota_p50_ms", percentile(&mut times_ms, 50));
    report.figure("quota_p99_ms", p99_ms);
    if peak - before > options.rss_mib as f64 {
        let example = format!("{before:.0} MiB before, {peak:.0} MiB at the peak, {after:.0} MiB after");
        report.violation("unread responses take bounded memory", example);
    }
    if failed > 0 || p99_ms.is_none_or(|p99_ms| p99_ms > options.quota_ms) {
        report.violation("quotas are answered meanwhile", format!("p99 {p99_ms:?} ms, {failed} without an answer"));
    }
}
