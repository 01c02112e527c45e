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
