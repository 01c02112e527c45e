//! Evictions by HP jobs: their order, hard promises, and the outcomes that come of them.

use super::stub::Stub;
use super::{connector, until};
use serde_json::Value;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};
use tests::{Lent, slurm};

fn fill(slurm: &Lent, qos: &str, account: &str, gpus: u32) -> u32 {
    let arguments = [format!("--account={account}"), format!("--qos={qos}"), format!("--gres=gpu:a100:{gpus}")];
    let job = slurm.submit(&arguments.iter().map(String::as_str).collect::<Vec<_>>(), 600);
    slurm.until_state(job, "R");
    job
}

fn hp(slurm: &Lent, gpus: u32) -> u32 {
    slurm.submit(&["--account=vision", &format!("--gres=gpu:a100:{gpus}")], 600)
}

#[test]
fn shorter_promises_are_broken_first_and_each_outcome_is_reported_once() {
    let Some(slurm) = slurm("soft evictions") else { return };
    let stub = Stub::start();
    // Two nodes of eight: one with the long job, one with the short one; the short one began later.
    let long = fill(&slurm, "spot4h", "spot-4h", 8);
    let short = fill(&slurm, "spot1h", "spot", 8);
    let observer = connector(&slurm, "run", &stub.url, &[]);
    let start = Instant::now();
    let first = hp(&slurm, 8);
    slurm.until_state(first, "R");
    println!("an HP job has the GPUs of a soft spot job after {:.1} s", start.elapsed().as_secs_f64());
    assert_eq!((slurm.state(short).split(' ').next(), slurm.state(long).split(' ').next()), (Some("PD"), Some("R")));
    let second = hp(&slurm, 8);
    slurm.until_state(second, "R");
    assert_eq!(slurm.state(long).split(' ').next(), Some("PD"));
    // Both are broken promises, each once, although the accounting is read each second.
    let mine = [short.to_string(), long.to_string()];
    let is_mine = |one: &Value| one["kind"] == "broken" && mine.iter().any(|job| one["task"] == **job);
    let broken = || stub.outcomes().into_iter().filter(is_mine).collect::<Vec<Value>>();
    until("two broken promises", || (broken().len() == 2).then_some(()));
    std::thread::sleep(Duration::from_secs(3));
    let mut found: Vec<(String, u64, f64)> = broken()
        .iter()
        .map(|one| {
            (
                one["task"].as_str().unwrap().to_owned(),
                one["guarantee_hours"].as_u64().unwrap(),
                one["gpus"].as_f64().unwrap(),
            )
        })
        .collect();
    found.sort_by_key(|(_, hours, _)| *hours);
    assert_eq!(found, [(short.to_string(), 1, 8.0), (long.to_string(), 4, 8.0)]);
    // Another process, which knows nothing of the first, reports them under the same ids.
    let ids = || stub.outcomes().iter().map(|one| one["event_id"].as_str().unwrap().to_owned()).collect::<Vec<_>>();
    let before: BTreeSet<String> = ids().into_iter().collect();
    assert_eq!(before.len(), ids().len());
    assert_eq!(observer.stop().code, 0);
    let count = ids().len();
    let _again = connector(&slurm, "run", &stub.url, &[]);
    until("reports of the second process", || (ids().len() > count).then_some(()));
    assert_eq!(ids().into_iter().collect::<BTreeSet<_>>(), before);
}

/// Exemption of a hard promise, s.
const EXEMPT_S: u64 = 12;

#[test]
fn a_hard_promise_is_not_broken_inside_its_time_and_hp_waits() {
    let Some(slurm) = slurm("hard promises") else { return };
    let exempt = format!("preemptexempttime=00:00:{EXEMPT_S}");
    let _ = slurm.run("sacctmgr", &["-i", "modify", "qos", "spot1h", "set", &exempt]);
    // Before either of them starts: a busy machine only makes the time longer.
    let before = Instant::now();
    let jobs = [fill(&slurm, "spot1h", "spot", 8), fill(&slurm, "spot1h", "spot", 8)];
    let start = Instant::now();
    let first = hp(&slurm, 8);
    slurm.until_state(first, "R");
    let (waited, exempt) = (start.elapsed(), before.elapsed());
    println!(
        "an HP job has the GPUs of a hard spot job after {:.1} s; it is exempt for {EXEMPT_S} s",
        waited.as_secs_f64()
    );
    // Slurm counts whole seconds.
    assert!(exempt > Duration::from_secs(EXEMPT_S - 1), "{exempt:?}");
    assert_eq!(jobs.iter().filter(|job| slurm.state(**job) == "R None").count(), 1);
}

#[test]
fn a_promise_is_broken_by_an_eviction_after_a_change_of_size_and_by_one_that_the_job_had_notice_of() {
    let Some(slurm) = slurm("a shrunk job, and one with notice") else { return };
    let stub = Stub::start();
    let _observer = connector(&slurm, "run", &stub.url, &[]);
    let of = |job: u32| {
        let name = job.to_string();
        let is_its = |one: &Value| one["task"] == *name;
        let found: Vec<Value> = stub.outcomes().into_iter().filter(is_its).collect();
        found.iter().map(|one| (one["kind"].as_str().unwrap().to_owned(), one["gpus"].as_f64().unwrap())).collect()
    };
    let outcome_of = |job: u32| -> Vec<(String, f64)> {
        until("the outcome", || Some(of(job)).filter(|found: &Vec<(String, f64)>| !found.is_empty())).0
    };
    let broken = |gpus: f64| vec![("broken".to_owned(), gpus)];
    // 1. From two nodes to one, and evicted there.
    let shrunk = slurm.submit(&["--account=spot", "--qos=spot1h", "--nodes=2", "--gres=gpu:a100:8"], 600);
    slurm.until_state(shrunk, "R");
    std::thread::sleep(Duration::from_secs(2));
    let _ = slurm.run("scontrol", &["update", &format!("jobid={shrunk}"), "NumNodes=1"]);
    let hp_jobs = [hp(&slurm, 8), hp(&slurm, 8)];
    for job in hp_jobs {
        slurm.until_state(job, "R");
    }
    assert_eq!(outcome_of(shrunk), broken(16.0));
    let _ = slurm.run("scancel", &hp_jobs.map(|job| job.to_string()).each_ref().map(String::as_str));
    let _ = slurm.run("scancel", &[&shrunk.to_string()]);
    // 2. With notice, of which it makes use.
    let _ = slurm.run("sacctmgr", &["-i", "modify", "qos", "spot4h", "set", "gracetime=40"]);
    let saves = "--wrap=trap 'exit 0' USR1; sleep 600 & wait";
    let arguments =
        ["--account=spot-4h", "--qos=spot4h", "--nodes=2", "--gres=gpu:a100:8", "--signal=B:USR1@30", saves];
    let noticed = slurm.submit(&arguments, 600);
    slurm.until_state(noticed, "R");
    let first = hp(&slurm, 8);
    slurm.until_state(first, "R");
    let states = slurm.run("sacct", &["-nXP", "-j", &noticed.to_string(), "-o", "state"]);
    assert_eq!(states.trim(), "COMPLETED");
    assert_eq!(outcome_of(noticed), broken(16.0));
}
