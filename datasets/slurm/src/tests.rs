//! Histories, queues and nodes as each version prints them, and their demand.
//!
//! The fixtures hold one cluster's jobs in each form: `v0.0.38` and `v0.0.42` as Slurm 22.05.8 and 24.11.5 printed them, the
//! others written by the published schemas. 25.11.7 and 26.05.3 print `v0.0.41` to `v0.0.45` with the same keys and shapes.

mod starts;
mod waiting;

use crate::demand::{Demand, Reading, SpotUse, demand, tasks};
use crate::nodes::Nodes;
use crate::queue::Queue;
use crate::{Form, History, JobName, Phase, Rules};
use proptest::prelude::*;
use std::collections::BTreeMap;
use vocab::{GpuModel, HourStart, TaskClass, UnixSeconds, UsageRow};

fn fixture(name: &str) -> String {
    std::fs::read_to_string(format!("{}/fixtures/{name}.json", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

fn history(text: &str) -> History {
    History::read("jobs.json", text.as_bytes()).unwrap().0
}

fn spot_rules() -> Rules {
    Rules { spot_qos: ["spot1h", "spot4h"].map(str::to_owned).into(), ..Rules::default() }
}

fn hour(unix_s: i64) -> HourStart {
    UnixSeconds::new(unix_s).hour().unwrap()
}

/// The hour of the fixtures, as if it were over.
fn whole_hour(mut history: History) -> (History, Reading) {
    let from = hour(1_795_592_004);
    history.latest = Some(from.plus_hours(1).instant());
    (history, Reading { rules: spot_rules(), from: Some(from), ..Reading::default() })
}

fn amounts(demand: &Demand) -> Vec<String> {
    let text = |row: &UsageRow| format!("{} {} {}", row.series.pool, row.series.organization, row.demand);
    demand.rows.iter().map(text).collect()
}

#[test]
fn one_history_gives_the_same_demand_in_every_form() {
    let expected = [
        "t:a100 * 51.000",
        "t:a100 research 1.000",
        "t:a100 vision 51.000",
        "t:h100 * 2.000",
        "t:h100 engineering 1.000",
        "t:h100 research 1.000",
    ];
    for form in Form::ALL {
        let text = fixture(&format!("sacct-{form}"));
        let (read, stated) = History::read("jobs.json", text.as_bytes()).unwrap();
        assert_eq!((stated, read.skipped.len(), read.jobs_without_gpus), (form, 0, 1));
        let (read, reading) = whole_hour(read);
        let found = demand(&read, &reading).unwrap();
        assert_eq!(amounts(&found), expected, "{form}");
        let evicted = SpotUse { starts: 1, gpu_seconds: 4 * 20, evictions: 1 };
        assert_eq!(found.spot[&(GpuModel::parse("a100").unwrap(), "spot1h".to_owned())], evicted, "{form}");
        assert_eq!(found.untyped_jobs, BTreeMap::new(), "an untyped job has the type on which it ran");
    }
}

#[test]
fn one_queue_is_read_alike_in_every_form() {
    for form in Form::ALL {
        let text = fixture(&format!("squeue-{form}"));
        let (queue, stated) = Queue::read("squeue.json", text.as_bytes()).unwrap();
        assert_eq!((stated, queue.skipped.len(), queue.jobs_without_gpus), (form, 0, 1));
        let of = |name: &str| queue.jobs.iter().find(|job| job.name.to_string() == name).unwrap();
        let untyped = of("17");
        assert_eq!((untyped.requested.untyped(), untyped.allocated.of_type("a100")), (3, 3), "{form}");
        assert_eq!((of("18_0").phase(), of("18_0").most_tasks), (Phase::Holds, Some(3)));
        let waiting = of("18_*");
        assert_eq!(
            (waiting.phase(), waiting.tasks, waiting.most_tasks, waiting.eligible),
            (Phase::Waits, 5, Some(3), None)
        );
        assert_eq!((of("37_*").tasks, of("37_*").most_tasks), (4, None));
        assert_eq!((of("21+0").name, of("21+1").name), (JobName::Component(21, 0), JobName::Component(21, 1)));
        assert_eq!((of("24").eligible, &*of("24").reason), (None, "JobHeldUser"));
    }
}

#[test]
fn nodes_are_read_alike_in_every_form_and_partitions_of_one_model_are_known() {
    let any = GpuModel::parse("any").unwrap();
    for form in Form::ALL {
        let (nodes, stated) = Nodes::read("nodes.json", fixture(&format!("nodes-{form}")).as_bytes()).unwrap();
        assert_eq!((stated, nodes.skipped.len(), nodes.nodes.len()), (form, 0, 4));
        assert!(nodes.nodes.values().all(|node| node.is_open && node.is_up));
        let rows = nodes.capacity(&vocab::ClusterName::parse("t").unwrap(), &any, hour(0)).unwrap();
        let rows: Vec<String> = rows.iter().map(|row| format!("{} {}", row.pool, row.capacity)).collect();
        assert_eq!(rows, ["t:a100 16.000", "t:h100 16.000"]);
        assert!(nodes.only_models(&any).unwrap().is_empty(), "the partition has two");
    }
}

#[test]
fn nodes_that_have_together_more_than_may_be_stated_are_refused() {
    let node = |name: &str| {
        format!(
            r#"{{"name":"{name}","state":["IDLE"],"partitions":["a"],"tres":"gres/gpu:a100=6000000","tres_used":"gres/gpu:a100=0"}}"#
        )
    };
    let list = [node("g1"), node("g2")].join(",");
    let text = format!(r#"{{"meta":{{"plugin":{{"data_parser":"v0.0.41"}}}},"nodes":[{list}]}}"#);
    let (nodes, _) = Nodes::read("nodes.json", text.as_bytes()).unwrap();
    let any = GpuModel::parse("any").unwrap();
    let fault = nodes.capacity(&vocab::ClusterName::parse("t").unwrap(), &any, hour(0)).unwrap_err().to_string();
    assert!(fault.contains("1.2e7 GPUs exceeds the limit of 10000000 GPUs"), "{fault}");
}

#[test]
fn a_node_takes_no_job_while_it_drains_and_is_one_in_all_its_partitions() {
    let node = |state: &str, partition: &str| {
        format!(
            r#"{{"name":"g1","state":{state},"partitions":["{partition}"],"tres":"gres/gpu:a100=8","tres_used":"gres/gpu:a100=2"}}"#
        )
    };
    let read = |list: &str| {
        let text = format!(r#"{{"meta":{{"plugin":{{"data_parser":"v0.0.41"}}}},"nodes":[{list}]}}"#);
        Nodes::read("nodes.json", text.as_bytes()).unwrap().0.nodes.remove("g1").unwrap()
    };
    let open = read(&[node(r#"["MIXED","PLANNED"]"#, "b"), node(r#"["MIXED","PLANNED"]"#, "a")].join(","));
    assert_eq!((open.is_open, open.partitions), (true, vec!["a".to_owned(), "b".to_owned()]));
    // A slurmctld that has just started waits for its nodes to register, for some seconds.
    assert!(read(&node(r#""unknown","state_flags":[]"#, "a")).is_open);
    let states = [
        r#""mixed","state_flags":["DRAIN"]"#,
        r#"["IDLE","DRAIN"]"#,
        r#"["DOWN","NOT_RESPONDING"]"#,
        r#"["IDLE","RESERVED"]"#,
    ];
    let closed = states.map(|state| read(&node(state, "a"))).map(|node| (node.is_open, node.is_up));
    assert_eq!(closed, [(false, true), (false, true), (false, false), (false, true)]);
}

#[test]
fn gpus_in_use_on_a_node_are_those_of_gres_used_where_it_names_them() {
    let used = |gres_used: &str, tres_used: &str| {
        let text = format!(
            r#"{{"meta":{{"plugin":{{"data_parser":"v0.0.38"}}}},"nodes":[{{"name":"g1","state":["IDLE"],"partitions":["a"],
            "tres":"gres/gpu=8,gres/gpu:a100=8","gres_used":{gres_used},"tres_used":"{tres_used}"}}]}}"#
        );
        let (mut nodes, _) = Nodes::read("nodes.json", text.as_bytes()).unwrap();
        assert_eq!(nodes.skipped, []);
        nodes.nodes.remove("g1").unwrap().used.total
    };
    // Of a job that ended while slurmctld was away.
    assert_eq!(used(r#""gpu:a100:0(IDX:N/A)""#, "cpu=1,gres/gpu:a100=8"), 0);
    assert_eq!(used(r#""gpu:a100:1(IDX:0)""#, "gres/gpu=1,gres/gpu:a100=9"), 1, "it left the node out");
    assert_eq!(used(r#""N/A""#, "gres/gpu:a100=8"), 8);
    assert_eq!(used("null", "gres/gpu:a100=8"), 8);
}

/// A history of 24.11 with these jobs.
fn jobs(list: &[&str]) -> String {
    format!(
        r#"{{"jobs":[{}],"meta":{{"plugin":{{"data_parser":"data_parser/v0.0.42"}}}},"errors":[]}}"#,
        list.join(",")
    )
}

/// A job of 2 GPUs; times are seconds after the hour.
fn job(id: u32, state: &str, times: [i64; 4]) -> String {
    let [submitted, eligible, start, end] = times.map(|time| if time < 0 { 0 } else { HOUR + time });
    format!(
        r#"{{"job_id":{id},"cluster":"t","account":"a","qos":"normal","partition":"gpu","state":{{"current":["{state}"]}},
        "time":{{"submission":{submitted},"eligible":{eligible},"start":{start},"end":{end},"elapsed":0}},
        "tres":{{"allocated":[],"requested":[{{"type":"gres","name":"gpu:a100","count":2}}]}}}}"#
    )
}

const HOUR: i64 = 1_795_590_000;
/// None.
const NO: i64 = -1;

fn hours_of(list: &[String], hours: i64) -> Vec<String> {
    let list: Vec<&str> = list.iter().map(String::as_str).collect();
    let mut read = history(&jobs(&list));
    assert_eq!(read.skipped, []);
    read.latest = Some(UnixSeconds::new(HOUR).plus_s(hours * 3_600));
    let reading = Reading { from: Some(hour(HOUR)), ..Reading::default() };
    let found = demand(&read, &reading).unwrap();
    found.rows.iter().filter(|row| row.series.organization.as_str() == "a").map(|row| row.demand.to_string()).collect()
}

#[test]
fn a_job_is_demand_from_its_eligibility_to_its_end_and_one_that_runs_until_now() {
    let ran = job(1, "COMPLETED", [0, 100, 4_000, 7_200]);
    assert_eq!(hours_of(&[ran], 3), ["2.000", "2.000", "0.000"]);
    assert_eq!(hours_of(&[job(1, "RUNNING", [0, 0, 10, NO])], 3), ["2.000"; 3]);
    assert_eq!(hours_of(&[job(1, "PENDING", [0, 3_700, NO, NO])], 3), ["0.000", "2.000", "2.000"]);
    assert_eq!(hours_of(&[job(1, "CANCELLED", [0, 0, NO, 3_700])], 3), ["2.000", "2.000", "0.000"]);
    assert_eq!(hours_of(&[job(1, "CANCELLED", [0, NO, NO, 3_700])], 3), [""; 0], "held for all its life");
}

#[test]
fn a_requeued_job_is_no_demand_between_its_eviction_and_its_next_eligibility() {
    let starts = [job(1, "PREEMPTED", [0, 0, 10, 1_800]), job(1, "COMPLETED", [1_800, 7_300, 7_400, 8_000])];
    assert_eq!(hours_of(&starts, 4), ["2.000", "0.000", "2.000", "0.000"]);
}

/// A record of a run whose size changed: the start is that of the run, submission and eligibility those of the size.
fn sized(state: &str, gpus: u32, start: i64, [from, end]: [i64; 2]) -> String {
    job(1, state, [from, from, start, end]).replace("\"count\":2", &format!("\"count\":{gpus}"))
}

#[test]
fn a_run_whose_size_changed_counts_each_size_for_its_own_time() {
    let shrunk = [sized("RESIZING", 4, 10, [0, 1_800]), sized("RUNNING", 2, 10, [1_800, NO])];
    assert_eq!(hours_of(&shrunk, 2), ["4.000", "2.000"]);
    let grown = [sized("RESIZING", 2, 10, [0, 1_800]), sized("COMPLETED", 4, 10, [1_800, 5_000])];
    assert_eq!(hours_of(&grown, 3), ["4.000", "4.000", "0.000"]);
    let again = [
        sized("RESIZING", 4, 10, [0, 1_800]),
        sized("RESIZING", 8, 10, [1_800, 3_600]),
        sized("RESIZING", 6, 10, [3_600, 3_600]),
        sized("PREEMPTED", 2, 10, [3_600, 9_000]),
        job(1, "PENDING", [9_000, 11_000, NO, NO]),
    ];
    assert_eq!(hours_of(&again, 4), ["8.000", "2.000", "2.000", "2.000"]);
    let lost_node = [sized("RESIZING", 4, 10, [0, 1_800]), sized("COMPLETED", 2, 1_800, [1_800, 5_000])];
    assert_eq!(hours_of(&lost_node, 3), ["4.000", "2.000", "0.000"]);
    // The sizes before it are missing where the records that were asked for begin later.
    assert_eq!(hours_of(&shrunk[..1], 2), ["4.000", "0.000"], "what goes on is not in the accounting yet");
}

#[test]
fn a_run_whose_size_changed_is_one_start_and_its_sizes_are_tasks_one_after_the_other() {
    let list = [
        sized("RESIZING", 4, 10, [0, 1_800]),
        sized("RUNNING", 2, 10, [1_800, NO]),
        sized("PREEMPTED", 2, 10, [1_800, 5_000]),
    ];
    let list = list.map(|one| one.replace("normal", "spot1h"));
    let mut read = history(&jobs(&list.iter().map(String::as_str).collect::<Vec<_>>()));
    assert_eq!((read.repeated, read.jobs.len()), (1, 2));
    read.latest = Some(UnixSeconds::new(HOUR + 7_200));
    let reading = Reading { rules: spot_rules(), from: Some(hour(HOUR)), ..Reading::default() };
    let found = demand(&read, &reading).unwrap();
    let expected = SpotUse { starts: 1, gpu_seconds: 4 * 1_790 + 2 * 3_200, evictions: 1 };
    assert_eq!(found.spot[&(GpuModel::parse("a100").unwrap(), "spot1h".to_owned())], expected);
    let found = tasks(&read, &reading).unwrap();
    let times: Vec<(i64, Option<u64>)> =
        found.iter().map(|task| (task.submitted.get() - HOUR, task.duration_s)).collect();
    assert_eq!(times, [(0, Some(1_790)), (1_800, Some(3_200))]);
}

#[test]
fn hours_are_those_of_the_clock_that_knows_no_daylight_saving() {
    // Berlin has its hour from 02:00 twice on 2027-10-31: 00:00 and 01:00 UTC.
    let night = 1_824_940_800 - HOUR;
    let (start, end) = (night + 1_800, night + 2 * 3_600 + 1);
    let mut read = history(&jobs(&[&job(1, "COMPLETED", [start, start, start, end])]));
    read.latest = Some(UnixSeconds::new(HOUR + night + 4 * 3_600));
    let found = demand(&read, &Reading { from: Some(hour(HOUR + night)), ..Reading::default() }).unwrap();
    assert_eq!(found.rows.iter().filter(|row| !row.series.is_pool_peak()).count(), 4);
    assert_eq!(found.hp_gpu_seconds.values().sum::<u64>(), 2 * (5_401));
}

#[test]
fn the_hours_of_a_file_begin_where_no_job_is_missing_and_end_before_it_was_printed() {
    let list = [job(1, "COMPLETED", [NO, -9_000, -9_000, 100]), job(2, "COMPLETED", [0, 0, 5_000, 9_000])];
    let read = history(&jobs(&[&list[0].replace("\"submission\":0", &format!("\"submission\":{HOUR}")), &list[1]]));
    let found = demand(&read, &Reading::default()).unwrap();
    let hours: Vec<i64> = found.rows.iter().map(|row| row.hour.unix_s() - HOUR).collect();
    assert_eq!(hours, [3_600, 3_600], "one hour, of the account and of the pool");
    let early = Reading { until: Some(hour(HOUR)), ..Reading::default() };
    assert!(demand(&read, &early).unwrap_err().to_string().starts_with("no whole hour between"));
}

#[test]
fn a_job_without_a_type_counts_where_such_jobs_ran_unless_it_is_named() {
    let untyped = |text: String| text.replace("gpu:a100", "gpu");
    let list = [job(1, "COMPLETED", [0, 0, 10, 5_000]), untyped(job(2, "CANCELLED", [0, 0, NO, 5_000]))];
    let read = |reading: &Reading| {
        let list: Vec<&str> = list.iter().map(String::as_str).collect();
        let mut read = history(&jobs(&list));
        read.latest = Some(UnixSeconds::new(HOUR + 7_200));
        demand(&read, &Reading { from: Some(hour(HOUR)), ..reading.clone() }).unwrap().untyped_jobs
    };
    let model = |name: &str| GpuModel::parse(name).unwrap();
    assert_eq!(read(&Reading::default()), [(model("a100"), 1)].into());
    assert_eq!(read(&Reading { untyped: Some(model("h100")), ..Reading::default() }), [(model("h100"), 1)].into());
    let only = Reading { partitions: [("gpu".to_owned(), model("l40"))].into(), ..Reading::default() };
    assert_eq!(read(&only), [(model("l40"), 1)].into());
}

#[test]
fn every_unreadable_record_is_named_and_the_others_are_read() {
    let bad = [
        job(7, "DANCING", [0, 0, 10, 20]),
        job(8, "COMPLETED", [0, 0, 20, 10]),
        job(9, "COMPLETED", [0, 0, 10, NO]),
        job(10, "RUNNING", [NO, 0, 10, NO]),
        job(11, "RUNNING", [0, 0, 10, NO]).replace("\"count\":2", "\"count\":-2"),
        job(12, "RUNNING", [0, 0, 10, NO]).replace("\"job_id\":12", "\"job_id\":\"12\""),
        job(13, "RUNNING", [0, 0, 10, NO]),
    ];
    let read = history(&jobs(&bad.iter().map(String::as_str).collect::<Vec<_>>()));
    let faults: Vec<String> = read.skipped.iter().map(ToString::to_string).collect();
    assert_eq!(read.jobs.len(), 1);
    let begins = [
        "record 1, job 7: state.current: unknown state \"DANCING\"",
        "record 2, job 8: time.end: ",
        "record 3, job 9: time.end: an ended job without its end",
        "record 4, job 10: time.submission: no time",
        "record 5, job 11: tres.requested: gpu:a100: -2 is negative",
        "record 6, 12: job_id: invalid type",
    ];
    assert_eq!(faults.len(), begins.len());
    for (fault, begin) in faults.iter().zip(begins) {
        assert!(fault.starts_with(begin), "{fault}");
    }
}

#[test]
fn records_that_two_answers_share_count_once_and_a_start_replaces_its_wait() {
    let read = |list: &[String]| history(&jobs(&list.iter().map(String::as_str).collect::<Vec<_>>()));
    let mut first = read(&[job(1, "COMPLETED", [0, 0, 10, 20]), job(2, "PENDING", [0, 0, NO, NO])]);
    first.join(read(&[
        job(1, "COMPLETED", [0, 0, 10, 20]),
        job(2, "RUNNING", [0, 0, 50, NO]),
        job(1, "COMPLETED", [30, 30, 40, 50]),
    ]));
    let found: Vec<(u32, i64)> = first.jobs.iter().map(|job| (job.id, job.started.unwrap().get() - HOUR)).collect();
    assert_eq!(found, [(1, 10), (1, 40), (2, 50)]);
}

#[test]
fn a_settings_file_that_is_not_there_is_named_at_once() {
    let programs = crate::command::Programs::new(std::path::Path::new(""), std::time::Duration::from_mins(1));
    let fault = programs.with_conf(Some(std::path::Path::new("/nosuch/slurm.conf"))).text("true", &[]).unwrap_err();
    assert!(
        fault.to_string().contains("there is no file /nosuch/slurm.conf: correct the setting slurm_conf"),
        "{fault}"
    );
}

#[test]
fn a_record_that_stands_twice_in_a_file_counts_once() {
    let one = job(1, "COMPLETED", [0, 100, 200, 3_000]);
    // It was running when the first answer was printed.
    let running = job(1, "RUNNING", [0, 100, 200, NO]);
    let again = job(1, "COMPLETED", [0, 4_000, 4_000, 5_000]);
    let twice = history(&jobs(&[&running, &again, &one, &again]));
    let once = history(&jobs(&[&one, &again]));
    assert_eq!((twice.repeated, once.repeated), (2, 0));
    assert_eq!(twice.jobs, once.jobs);
}

#[test]
fn jobs_become_tasks_with_the_seconds_that_they_ran() {
    let read = history(&fixture("sacct-v0.0.42"));
    let found = tasks(&read, &Reading { rules: spot_rules(), ..Reading::default() }).unwrap();
    let of = |name: &str| found.iter().find(|task| task.id.as_str() == name).unwrap();
    assert_eq!(
        (of("16").duration_s, of("16").submitted.get(), of("16").class),
        (Some(21), 1_795_592_004, TaskClass::Hp)
    );
    assert_eq!(
        (of("19").duration_s, of("19").class, of("19").gpus().to_string()),
        (Some(20), TaskClass::Spot, "4.000".to_owned())
    );
    assert_eq!((of("17").duration_s, of("17").gpu_model.as_str()), (None, "a100"), "it runs");
    assert_eq!(of("37_*").gpus().to_string(), "32.000", "four tasks that wait");
    assert!(found.iter().all(|task| task.id.as_str() != "15_*"), "it never started");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, rng_seed: proptest::test_runner::RngSeed::Fixed(29), ..ProptestConfig::default() })]

    #[test]
    fn demand_agrees_with_a_count_of_every_second(list in prop::collection::vec((0_i64..9_000, 0_i64..2_000, 0_i64..5_000), 1..20)) {
        let texts: Vec<String> = list.iter().enumerate().map(|(id, (submitted, waits, runs))| {
            let started = submitted + 1 + waits;
            job(id as u32 + 1, "COMPLETED", [*submitted + 1, *submitted + 1, started, started + runs])
        }).collect();
        let mut read = history(&jobs(&texts.iter().map(String::as_str).collect::<Vec<_>>()));
        read.latest = Some(UnixSeconds::new(HOUR + 5 * 3_600));
        let found = demand(&read, &Reading { from: Some(hour(HOUR)), ..Reading::default() }).unwrap();
        let at = |second: i64| 2 * list.iter().filter(|(from, waits, runs)| from < &second && second < from + 1 + waits + runs).count() as u64;
        let seconds: Vec<u64> = (0..5 * 3_600).map(at).collect();
        prop_assert_eq!(found.hp_gpu_seconds.values().sum::<u64>(), seconds.iter().sum::<u64>());
        let peaks: Vec<u64> = seconds.chunks(3_600).map(|hour| *hour.iter().max().unwrap() * 1_000).collect();
        let rows: Vec<u64> = found.rows.iter().filter(|row| row.series.is_pool_peak()).map(|row| row.demand.milli()).collect();
        prop_assert_eq!(rows, peaks);
    }
}
