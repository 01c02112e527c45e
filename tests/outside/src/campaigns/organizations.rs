//! New organizations by the hundred thousand: what they cost, and whether the service ends on time meanwhile.

use crate::http::{Answer, Request};
use crate::service::{CLUSTER, GPU_MODEL, POOL, Service, World, hour_ago};
use crate::{Outcome, options::Options, report::Report};
use std::fmt::Write;
use std::time::{Duration, Instant};

/// Cost of an organization in the largest request, as a multiple of that in the smallest that can be measured.
const MOST_GROWTH: f64 = 3.0;
/// Less than this says nothing of growth.
const LEAST_CPU_S: f64 = 0.1;
const LEAST_MIB: f64 = 10.0;
/// The time that SIGTERM may take beyond `shutdown_grace_s`.
const MARGIN_S: f64 = 5.0;
/// Quotas are renewed often, so that what a renewal costs shows.
const RENEWALS: [(&str, &str); 1] = [("HEADROOM_REFRESH_S", "3")];

pub fn run(options: &Options, database: &'static str, report: &Report) -> Outcome<()> {
    let (mut cpu, mut memory) = (Vec::new(), Vec::new());
    for &size in &options.sizes {
        let world = World::new(options, database)?;
        let service = world.serve(&RENEWALS)?;
        let before_mib = service.peak_mib();
        let Some(cpu_s) = one_request(&service, size, options, report) else { continue };
        let grown_mib = service.peak_mib() - before_mib;
        report.figure(&format!("grown_mib_{size}"), grown_mib);
        cpu.extend((cpu_s >= LEAST_CPU_S).then_some((size, cpu_s)));
        memory.extend((grown_mib >= LEAST_MIB).then_some((size, grown_mib)));
    }
    is_linear("cpu", &cpu, report);
    is_linear("memory", &memory, report);
    let largest = options.sizes.iter().copied().max().unwrap_or_default();
    let world = World::new(options, database)?;
    terminate_in_the_middle(&world, largest, options, report)
}

fn is_linear(what: &str, costs: &[(usize, f64)], report: &Report) {
    let (Some((small, least)), Some((large, most))) = (costs.first(), costs.last()) else { return };
    let growth = (most / *large as f64) / (least / *small as f64);
    report.figure(&format!("growth_of_{what}_per_organization"), growth);
    if growth > MOST_GROWTH {
        let example = format!("an organization of {large} takes {growth:.1} times the {what} of one of {small}");
        report.violation("cost grows no worse than linearly", example);
    }
}

fn batch(size: usize) -> Request {
    let hour = hour_ago(1);
    let mut body = String::from(r#"{"rows":["#);
    for organization in 0..size {
        let comma = if organization == 0 { "" } else { "," };
        let row = write!(
            body,
            r#"{comma}{{"hour":"{hour}","cluster":"{CLUSTER}","gpu_model":"{GPU_MODEL}","organization":"o{organization}","demand_gpus":0.001}}"#
        );
        row.expect("a string takes every row");
    }
    body += "]}";
    Request { method: "POST", target: "/v1/usage".to_owned(), body: Some(body.into_bytes()) }
}

/// Seconds that the service computes for the request and two renewals; `None` of a refusal, or when time is over.
fn one_request(service: &Service, size: usize, options: &Options, report: &Report) -> Option<f64> {
    let (started, cpu_before) = (Instant::now(), service.cpu_s());
    let limit = Duration::from_secs(options.seconds);
    let answer = service.client(options.seconds).send(&batch(size));
    let answered_s = started.elapsed().as_secs_f64();
    let rule = "new organizations are taken, or refused by 4xx";
    let accepted = judge(answer, size, rule, report);
    report.figure(&format!("answered_s_{size}"), answered_s);
    if !accepted {
        return None;
    }
    let settled_s = settle(service, started, limit);
    let cpu_s = service.cpu_s() - cpu_before;
    report.figure(&format!("cpu_s_{size}"), cpu_s);
    if service.is_gone() {
        report.violation("the service survives", format!("{size} organizations: {}", service.log_end()));
        return None;
    }
    let Some(settled_s) = settled_s else {
        report
            .violation("a request is digested in time", format!("{size} organizations: {cpu_s:.0} s and at it still"));
        return None;
    };
    report.figure(&format!("settled_s_{size}"), settled_s);
    let alive = service.client(10).get("/readyz");
    if !alive.as_ref().is_ok_and(Answer::is_success) {
        report.violation("the service is ready afterwards", format!("{size} organizations: {alive:?}"));
    }
    Some(cpu_s)
}

/// True of a 2xx.
fn judge(answer: Outcome<Answer>, size: usize, rule: &str, report: &Report) -> bool {
    let summary = match answer {
        Ok(answer) if answer.is_success() => {
            report.count("requests_taken");
            return true;
        }
        Ok(answer) if answer.status < 500 => {
            report.count("requests_refused");
            report.figure(&format!("refusal_{size}"), answer.summary());
            return false;
        }
        Ok(answer) => answer.summary(),
        Err(fault) => fault,
    };
    report.violation(rule, format!("{size} organizations: {summary}"));
    false
}

/// Seconds from `started` until quotas were renewed twice, the second time with all that was sent.
fn settle(service: &Service, started: Instant, limit: Duration) -> Option<f64> {
    let (mut client, mut renewals, mut last) = (service.client(limit.as_secs()), 0, None);
    while started.elapsed() < limit && !service.is_gone() {
        let answer = client.get(&format!("/quota?{POOL}&hours=4")).ok();
        let computed_at = answer.and_then(|answer| answer.json()["computed_at"].as_str().map(str::to_owned));
        if computed_at.is_some() && computed_at != last {
            renewals += 1;
            last = computed_at;
        }
        // The first is that which was there.
        if renewals == 3 {
            return Some(started.elapsed().as_secs_f64());
        }
        std::thread::sleep(Duration::from_millis(200));
    }
    None
}

fn terminate_in_the_middle(world: &World, size: usize, options: &Options, report: &Report) -> Outcome<()> {
    let grace_s = world.setting("shutdown_grace_s").and_then(|grace| grace.parse::<f64>().ok()).unwrap_or(10.0);
    let mut service = world.serve(&RENEWALS)?;
    let mut client = service.client(options.seconds);
    let sender = std::thread::spawn(move || client.send(&batch(size)));
    std::thread::sleep(Duration::from_secs(2));
    service.terminate()?;
    let limit = Duration::from_secs_f64(grace_s + MARGIN_S + 30.0);
    let ended = service.wait_for_end(limit);
    report.figure("shutdown_grace_s", grace_s);
    report.figure("ended_after_sigterm_s", ended);
    if ended.is_none_or(|ended| ended > grace_s + MARGIN_S) {
        let example = format!("SIGTERM 2 s into {size} organizations: {ended:?} s, and {grace_s} s of grace");
        report.violation("SIGTERM ends the service within its grace", example);
    }
    service.kill();
    drop(sender.join());
    Ok(())
}
