//! Ends of promises, from records alone.

use super::*;
use crate::config::Guarantees;
use crate::sightings::Look;
use slurm_records::Rules;

pub(crate) const HOUR: i64 = 1_795_590_000;

pub(crate) fn job(id: u32, state: &str, qos: &str, start: i64, end: i64) -> String {
    let [start, end] = [start, end].map(|time| if time < 0 { 0 } else { HOUR + time });
    format!(
        r#"{{"job_id":{id},"cluster":"t","account":"spot","qos":"{qos}","partition":"gpu","state":{{"current":["{state}"]}},
        "time":{{"submission":{HOUR},"eligible":{HOUR},"start":{start},"end":{end},"elapsed":0}},
        "tres":{{"allocated":[{{"type":"gres","name":"gpu:a100","count":4}}],"requested":[{{"type":"gres","name":"gpu:a100","count":4}}]}}}}"#
    )
}

pub(crate) fn history(jobs: &[String]) -> History {
    let text = format!(r#"{{"jobs":[{}],"meta":{{"plugin":{{"data_parser":"v0.0.42"}}}}}}"#, jobs.join(","));
    History::read("jobs.json", text.as_bytes()).unwrap().0
}

pub(crate) fn reading() -> Reading {
    let qos_hours: Guarantees = "spot1h=1,spot4h=4,free=0".parse().unwrap();
    Reading {
        rules: Rules { spot_qos: qos_hours.names(), ..Rules::default() },
        qos_hours,
        partition_hours: Guarantees::default(),
        untyped: GpuModel::parse("any").unwrap(),
        nesting: crate::config::Nesting::Qos,
    }
}

/// A look of slurmctld at a second of the hour: runs that run, and notices by job and start.
pub(crate) fn seen(jobs: &[String], now: i64, notices: &[((u32, i64), i64)]) -> Sightings {
    let at = |seconds: i64| UnixSeconds::new(HOUR + seconds);
    let run = |&((id, start), notice): &((u32, i64), i64)| ((id, at(start)), at(notice));
    let mut sightings = Sightings::default();
    sightings.add(&Look {
        asked_at: Some(at(now)),
        holding: history(jobs).jobs.iter().filter(|job| job.ended.is_none()).filter_map(run_of).collect(),
        notices: notices.iter().map(run).collect(),
    });
    sightings
}

fn found(jobs: &[String], now: i64) -> Vec<(String, &'static str, i64)> {
    let cluster = ClusterName::parse("earth").unwrap();
    let span = (UnixSeconds::new(HOUR), UnixSeconds::new(HOUR + now));
    let all = outcomes((&history(jobs), &seen(jobs, now, &[])), &reading(), &cluster, span).outcomes;
    all.iter().map(|one| (one.event_id.to_string(), one.kind.as_str(), one.ended_at.get() - HOUR)).collect()
}

#[test]
fn a_promise_ends_by_an_eviction_by_its_hours_or_by_the_job_itself() {
    let jobs = [
        job(1, "PREEMPTED", "spot1h", 100, 900),
        job(2, "PREEMPTED", "spot1h", 100, 3_800),
        job(3, "RUNNING", "spot1h", 100, -1),
        job(4, "RUNNING", "spot4h", 100, -1),
        job(5, "COMPLETED", "spot4h", 100, 200),
        job(6, "NODE_FAIL", "spot4h", 100, 300),
        job(7, "CANCELLED", "spot4h", 100, 400),
        job(8, "PREEMPTED", "free", 100, 500),
        job(9, "CANCELLED", "spot1h", -1, 500),
        job(10, "PREEMPTED", "normal", 100, 500),
    ];
    let expected = [
        (1, "broken", 900),
        (2, "kept", 3_700),
        (3, "kept", 3_700),
        (5, "kept", 200),
        (6, "node_failure", 300),
        (7, "user_deleted", 400),
    ];
    let expected: Vec<(String, &str, i64)> =
        expected.iter().map(|(id, kind, at)| (format!("slurm-{id}-{}-earth-a100", HOUR + 100), *kind, *at)).collect();
    assert_eq!(found(&jobs, 3_900), expected);
    assert!(found(&jobs[2..3], 3_699).is_empty(), "its hour is not over");
}

/// A record of one size of a run of job 1, in seconds of the hour.
pub(crate) fn sized(state: &str, gpus: u32, start: i64, [from, end]: [i64; 2]) -> String {
    let submitted = format!("\"submission\":{}", HOUR + from);
    let record = job(1, state, "spot1h", start, end).replace(&format!("\"submission\":{HOUR}"), &submitted);
    record.replace("\"count\":4", &format!("\"count\":{gpus}"))
}

/// Kind, end in seconds of the hour, and GPUs of the outcomes of these records.
fn ends(jobs: &[String], now: i64) -> Vec<(&'static str, i64, u64)> {
    ends_as(jobs, now, &seen(jobs, now, &[])).0
}

/// The same, and the jobs of runs that wait.
fn ends_as(jobs: &[String], now: i64, sightings: &Sightings) -> (Vec<(&'static str, i64, u64)>, Vec<u32>) {
    let span = (UnixSeconds::new(HOUR), UnixSeconds::new(HOUR + now));
    let all = outcomes((&history(jobs), sightings), &reading(), &ClusterName::parse("earth").unwrap(), span);
    let waiting = all.waiting.iter().map(|run| run.0).collect();
    let all = all.outcomes;
    let one = |one: &Outcome| (one.kind.as_str(), one.ended_at.get() - HOUR, one.gpus.unwrap().milli() / 1_000);
    (all.iter().map(one).collect(), waiting)
}

fn shrunk_at(end: i64) -> String {
    sized("RESIZING", 8, 100, [0, end])
}

#[test]
fn a_run_whose_size_changed_ends_as_its_last_record_says_with_the_most_gpus_that_it_held() {
    let shrunk = shrunk_at(900);
    assert_eq!(ends(&[shrunk.clone(), sized("PREEMPTED", 2, 100, [900, 1_000])], 4_000), [("broken", 1_000, 8)]);
    assert_eq!(ends(&[shrunk.clone(), sized("RUNNING", 2, 100, [900, -1])], 4_000), [("kept", 3_700, 8)]);
    assert_eq!(ends(&[shrunk.clone(), sized("RUNNING", 2, 100, [900, -1])], 3_000), []);
    let grown = [
        shrunk.clone(),
        sized("RESIZING", 2, 100, [900, 950]),
        sized("RESIZING", 1, 100, [950, 950]),
        sized("NODE_FAIL", 16, 100, [950, 1_200]),
    ];
    assert_eq!(ends(&grown, 4_000), [("node_failure", 1_200, 16)]);
    // The record that goes on is not there yet, or never comes: nothing is reported of it before the hours are over.
    assert_eq!(ends(&[shrunk], 9_000), []);
    let late = [sized("RESIZING", 2, 100, [0, 3_700]), sized("PREEMPTED", 8, 100, [3_700, 3_800])];
    assert_eq!(ends(&late[..1], 9_000), [("kept", 3_700, 2)]);
    assert_eq!(ends(&late, 9_000), [("kept", 3_700, 2)], "it grew after its promise");
    let requeued = [
        sized("RESIZING", 8, 100, [0, 900]),
        sized("PREEMPTED", 2, 100, [900, 1_000]),
        sized("PREEMPTED", 4, 1_300, [1_000, 1_400]),
    ];
    assert_eq!(ends(&requeued, 4_000), [("broken", 1_000, 8), ("broken", 1_400, 4)]);
    // A node was lost: what goes on has a start of its own, and is the same run, which was promised its hours from its first start on.
    let lost_node = [shrunk_at(900), sized("PREEMPTED", 2, 900, [900, 3_750])];
    assert_eq!(ends(&lost_node, 4_000), [("kept", 3_700, 8)]);
    let evicted = [shrunk_at(900), sized("PREEMPTED", 2, 900, [900, 1_200])];
    assert_eq!(ends(&evicted, 4_000), [("broken", 1_200, 8)]);
}

#[test]
fn a_record_that_ends_where_it_begins_counts_for_nobody() {
    let repaired = [job(1, "COMPLETED", "spot1h", 100, 100)];
    assert_eq!(ends(&repaired, 4_000), [("drain", 100, 4)], "as sacctmgr ends runaway jobs");
    // The last record of a run that was resized, or went on after a lost node.
    for last in [sized("COMPLETED", 2, 100, [900, 900]), sized("COMPLETED", 2, 900, [900, 900])] {
        assert_eq!(ends(&[shrunk_at(900), last], 4_000), [("drain", 900, 8)]);
    }
    let eligible_late = sized("COMPLETED", 2, 100, [916, 916]);
    assert_eq!(ends(&[shrunk_at(900), eligible_late], 4_000), [("drain", 916, 8)]);
    assert_eq!(ends(&[shrunk_at(900), sized("COMPLETED", 2, 100, [900, 901])], 4_000), [("kept", 901, 8)]);
}

#[test]
fn a_record_of_a_job_that_never_had_gpus_has_no_outcome() {
    let gpus = "\"allocated\":[{\"type\":\"gres\",\"name\":\"gpu:a100\",\"count\":4}]";
    for state in ["FAILED", "COMPLETED", "CANCELLED", "TIMEOUT", "NODE_FAIL"] {
        for end in [100, 130] {
            let refused = job(1, state, "spot1h", 100, end).replace(gpus, "\"allocated\":[]");
            assert_eq!(ends(&[refused], 4_000), [], "{state}");
        }
    }
    // It ran, and ended in the same second.
    assert_eq!(ends(&[job(1, "FAILED", "spot1h", 100, 100)], 4_000), [("kept", 100, 4)]);
    // A size without GPUs of a run that had some.
    let last = sized("COMPLETED", 4, 100, [900, 1_000]).replace(gpus, "\"allocated\":[]");
    assert_eq!(ends(&[shrunk_at(900), last], 4_000), [("kept", 1_000, 8)]);
}

#[test]
fn a_run_that_had_notice_of_its_eviction_and_ends_within_its_promise_is_a_broken_one_however_it_ends() {
    let states = ["COMPLETED", "FAILED", "TIMEOUT", "CANCELLED", "PREEMPTED", "REQUEUED"];
    for state in states {
        let jobs = [job(1, state, "spot1h", 100, 900)];
        assert_eq!(ends_as(&jobs, 1_000, &seen(&jobs, 1_000, &[((1, 100), 880)])).0, [("broken", 900, 4)], "{state}");
    }
    let jobs = [job(1, "COMPLETED", "spot1h", 100, 900)];
    let kept = [("kept", 900, 4)];
    assert_eq!(ends_as(&jobs, 1_000, &seen(&jobs, 1_000, &[((1, 50), 60), ((2, 100), 880)])).0, kept, "another run");
    let late = [job(1, "COMPLETED", "spot1h", 100, 3_710)];
    assert_eq!(ends_as(&late, 4_000, &seen(&late, 4_000, &[((1, 100), 3_690)])).0, [("kept", 3_700, 4)]);
}

#[test]
fn the_end_of_a_run_is_not_reported_before_slurmctld_was_asked_after_it() {
    let jobs = [job(1, "COMPLETED", "spot1h", 100, 900), job(2, "PREEMPTED", "spot1h", 100, 900)];
    let broken = ("broken", 900, 4);
    // A look in the second of the end may have come before the notice, and the end.
    for early in [899, 900, 901] {
        assert_eq!(ends_as(&jobs, 1_000, &seen(&jobs, early, &[])), (vec![broken], vec![1]), "{early}");
    }
    assert_eq!(ends_as(&jobs, 1_000, &seen(&jobs, 902, &[])), (vec![("kept", 900, 4), broken], vec![]));
}

#[test]
fn a_record_running_proves_a_kept_promise_only_where_slurmctld_shows_the_run_after_its_hours() {
    let jobs = [job(1, "RUNNING", "spot1h", 100, -1)];
    let kept = (vec![("kept", 3_700, 4)], vec![]);
    assert_eq!(ends_as(&jobs, 4_000, &seen(&jobs, 3_700, &[])), kept);
    let waits = (vec![], vec![1]);
    assert_eq!(ends_as(&jobs, 4_000, &seen(&jobs, 3_699, &[])), waits, "the look was before");
    assert_eq!(ends_as(&jobs, 4_000, &seen(&[], 4_000, &[])), waits, "slurmctld does not show it");
    let again = [job(1, "RUNNING", "spot1h", 200, -1)];
    assert_eq!(ends_as(&jobs, 4_000, &seen(&again, 4_000, &[])), waits, "slurmctld shows another start");
    // Then the accounting has heard of its end.
    let evicted = [job(1, "PREEMPTED", "spot1h", 100, 900)];
    assert_eq!(ends_as(&evicted, 4_060, &seen(&[], 4_060, &[])), (vec![("broken", 900, 4)], vec![]));
    let ended = [job(1, "COMPLETED", "spot1h", 100, 3_800)];
    assert_eq!(ends_as(&ended, 4_060, &Sightings::default()), kept, "its record is proof");
}
