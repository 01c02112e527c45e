//! `train --jobs` and `train backtest --served --jobs` through the programs, and the service that begins with what they taught.

use serde_json::{Value, json};
use std::fmt::Write;
use tempfile::TempDir;
use tests::fixture::at;
use tests::{Ran, TestDatabase, TestService, on_both_databases, program};

on_both_databases![
    a_service_begins_with_the_jobs_of_the_list_that_its_run_was_trained_with,
    jobs_lower_the_loss_of_a_backtest_where_they_come_irregularly,
    lists_of_jobs_that_do_not_fit_are_refused,
    records_of_slurm_teach_the_same_as_the_list_of_the_same_jobs,
];

const EPOCH: &str = "2024-03-01T00:00:00Z";
const EPOCH_S: i64 = 1_709_251_200;
const DAYS: i64 = 14;

fn path(folder: &TempDir, name: &str) -> String {
    folder.path().join(name).to_str().unwrap().to_owned()
}

/// Organization, pods of 8 GPUs, submission and duration in seconds.
type Job = (&'static str, i64, i64, i64);

/// Two weeks: a job of 24 GPUs for all the time, one of 16 GPUs for six hours each day, and one of 8 GPUs for half an hour each
/// hour.
fn hp_jobs() -> Vec<Job> {
    let daily = (0..DAYS).map(|day| ("speech", 2, day * 86_400 + 28_800, 21_600));
    let hourly = (0..DAYS * 24).map(|hour| ("vision", 1, hour * 3_600 + 900, 1_800));
    std::iter::once(("vision", 3, 0, DAYS * 86_400)).chain(daily).chain(hourly).collect()
}

/// Their list in the form of the GFS trace, with the usage that follows from it.
fn fill(url: &str, folder: &TempDir, hp_jobs: &[Job]) -> String {
    let mut list =
        "job_name,organization,gpu_model,cpu_request,gpu_request,worker_num,submit_time,duration,job_type\n".to_owned();
    for (number, (organization, workers, at, lasts)) in (1..).zip(hp_jobs) {
        writeln!(list, "{number},{organization},A100,8,8,{workers},{at},{lasts},HP").unwrap();
    }
    let (jobs, nodes) = (path(folder, "jobs.csv"), path(folder, "nodes.csv"));
    std::fs::write(&jobs, list).unwrap();
    let mut list = "node_name,gpu_model,gpu_capacity_num,cpu_num\n".to_owned();
    (0..12).for_each(|number| writeln!(list, "n{number},A100,8,64").unwrap());
    std::fs::write(&nodes, list).unwrap();
    let from = ["ingest", "--format", "gfs-jobs", &jobs, "--nodes", &nodes, "--cluster", "demo", "--epoch", EPOCH];
    let _ = program("datasets", &[&from[..], &["--database", url]].concat()).ok();
    jobs
}

fn train(url: &str, more: &[&str]) -> Ran {
    let own = ["--model", "last-value", "--horizon", "6h", "--cluster", "demo", "--database", url];
    program("train", &[&own[..], more].concat())
}

async fn a_service_begins_with_the_jobs_of_the_list_that_its_run_was_trained_with(database: TestDatabase) {
    let folder = tempfile::tempdir().unwrap();
    let jobs = fill(&database.url, &folder, &hp_jobs());
    let trained = train(&database.url, &["--jobs", &jobs, "--epoch", EPOCH, "--json"]).json();
    let run = &trained[0];
    assert_eq!((&run["jobs"], &run["promoted"]), (&json!(1 + DAYS + DAYS * 24), &json!(true)), "{trained}");
    let served = |key: &str| run["scores"][key].as_array().unwrap().clone();
    let losses = |of: &[Value]| of.iter().map(|one| one["pinball_gpus"].as_f64().unwrap()).collect::<Vec<_>>();
    let (hourly, with_jobs) = (losses(&served("served")), losses(&served("served_with_jobs")));
    assert!(with_jobs.len() == 3 && with_jobs[0] < hourly[0], "{hourly:?} {with_jobs:?}");
    // A service that nobody has watched yet: its first renewal draws the next hours.
    let now = at(EPOCH_S + DAYS * 86_400 + 60);
    let service = TestService::start(database.store().await, now).await;
    service.renew().await;
    let job = json!({ "id": "j", "organization": "vision", "gpus": 24, "state": "running", "since": EPOCH });
    let mut body = json!({ "capacity_gpus": 96, "idle_gpus": 72, "as_of": now.to_string() });
    body["hp_jobs"] = json!([job]);
    let _ = service.put("/v1/pools/demo:A100/state", &body).await.expect(200);
    service.renew().await;
    let explained = service.get("/v1/quota/explain?cluster=demo&gpu_model=A100&hours=1").await.expect(200);
    let jobs = &explained["bound"]["live"]["jobs"];
    assert_eq!((&jobs["running"], &jobs["listed"]), (&json!(1), &run["jobs"]), "{explained}");
    let of = |key: &str| jobs[key].as_f64().unwrap();
    assert!((24.0..=40.0).contains(&of("bound_gpus")) && (of("share") - 0.5).abs() < 1e-9, "{jobs}");
}

/// A job of 8 GPUs for all the time, and in three hours of ten one of 16 GPUs that lasts for 5 h 40 min: nothing says when the next
/// one comes. Drawn by a linear congruential generator.
fn irregular() -> Vec<Job> {
    let mut state = 7_u64;
    let mut comes = |_: &i64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % 100 < 30
    };
    let hours: Vec<i64> = (0..DAYS * 24).filter(|hour| comes(hour)).collect();
    let jobs = hours.into_iter().map(|hour| ("vision", 2, hour * 3_600 + 300, 20_400));
    std::iter::once(("speech", 1, 0, DAYS * 86_400)).chain(jobs).collect()
}

async fn jobs_lower_the_loss_of_a_backtest_where_they_come_irregularly(database: TestDatabase) {
    let folder = tempfile::tempdir().unwrap();
    let jobs = fill(&database.url, &folder, &irregular());
    let window = ["--from", "2024-03-11T00:00:00Z", "--to", "2024-03-14T20:00:00Z", "--database", &database.url];
    let loss = |known: &str| {
        let what = ["--jobs", &jobs, "--jobs-as", known, "--json"];
        let report = program("train", &[&BACKTEST[..], &window, &what].concat()).json();
        let replay = &report["served"][0];
        assert_eq!((&replay["has_minutes"], &replay["has_jobs"]), (&json!(true), &json!(known == "jobs")));
        let mut groups = replay["groups"].as_array().unwrap().iter();
        let all = groups.find(|one| one["hours"] == 4 && one["by"] == "all").unwrap();
        all["pinball_gpus"].as_f64().unwrap()
    };
    let (with_jobs, alone) = (loss("jobs"), loss("demand"));
    assert!(with_jobs < 0.85 * alone, "{with_jobs} with jobs, {alone} without");
    // By the peaks of a part of the jobs every promise would be kept.
    let part = folder.path().join("part.csv");
    let listed = std::fs::read_to_string(&jobs).unwrap();
    std::fs::write(&part, listed.lines().take(2).collect::<Vec<_>>().join("\n")).unwrap();
    for known in ["jobs", "demand"] {
        let what = ["--jobs", part.to_str().unwrap(), "--jobs-as", known];
        let refused = program("train", &[&BACKTEST[..], &window, &what].concat());
        assert!(refused.code == 3 && refused.stderr.contains("times the GPUs of the usage"), "{refused:?}");
    }
}

/// A service that was played, but for its window and its jobs.
const BACKTEST: [&str; 10] =
    ["backtest", "--horizon", "4h", "--model", "last-value", "--served", "--promise", "peak", "--epoch", EPOCH];

async fn lists_of_jobs_that_do_not_fit_are_refused(database: TestDatabase) {
    let folder = tempfile::tempdir().unwrap();
    let jobs = fill(&database.url, &folder, &hp_jobs());
    let window = ["--from", "2024-03-12T00:00:00Z", "--to", "2024-03-14T22:00:00Z", "--database", &database.url];
    let philly = path(&folder, "philly.csv");
    std::fs::write(&philly, "job_id,user,num_gpu,submit_time,duration,best_effort\n1,u,1,5,10,0\n").unwrap();
    let of_others = path(&folder, "others.csv");
    std::fs::write(&of_others, std::fs::read_to_string(&jobs).unwrap().replace("A100", "H800")).unwrap();
    for (more, code, why) in [
        (&["--jobs", &jobs][..], 2, "--epoch"),
        (&["--jobs", &of_others, "--epoch", EPOCH], 3, "--jobs has no HP job of a GPU model of cluster demo"),
        (&["--jobs", "missing.csv", "--epoch", EPOCH], 3, "missing.csv"),
        (
            &["--jobs", &jobs, "--epoch", "2030-01-01T00:00:00Z"],
            3,
            "where the usage of cluster demo ends: check the times of the lists (--epoch",
        ),
        (&["--jobs", &jobs, "--epoch", "2023-03-01T00:00:00Z"], 3, "no HP job in the eight weeks before"),
    ] {
        let ran = train(&database.url, more);
        assert!(ran.code == code && ran.stderr.contains(why), "{} {}", ran.code, ran.stderr);
    }
    let of_philly = train(&database.url, &["--jobs", &philly, "--epoch", EPOCH, "--json"]).ok();
    assert!(of_philly.stderr.contains("bounds with jobs are not scored"), "{}", of_philly.stderr);
    let of_philly = of_philly.json();
    let scored = &of_philly[0]["scores"]["served_with_jobs"];
    assert!(scored.as_array().is_none_or(Vec::is_empty), "one job is not all of the usage: {scored}");
    assert_eq!(of_philly[0]["jobs"], 1, "the one GPU model of the cluster is that of its jobs");
    let unplayed = ["backtest", "--horizon", "4h", "--out", "-", "--jobs", &jobs, "--epoch", EPOCH];
    let ran = program("train", &[&unplayed[..], &window].concat());
    assert!(ran.code == 2 && ran.stderr.contains("--jobs is for what a service would have answered"), "{}", ran.stderr);
}

/// A record of `sacct`; times are seconds after the beginning, and none where they are missing.
fn record(id: usize, (account, qos): (&str, &str), gpus: i64, times: [Option<i64>; 3]) -> Value {
    let [eligible, start, end] = times.map(|time| time.map_or(0, |time| EPOCH_S + time));
    let state = match times {
        [_, None, _] => "PENDING",
        [_, _, None] => "RUNNING",
        _ => "COMPLETED",
    };
    json!({
        "job_id": id, "cluster": "t", "account": account, "qos": qos, "partition": "gpu", "state": { "current": [state] },
        "time": { "submission": eligible, "eligible": eligible, "start": start, "end": end, "elapsed": 0 },
        "tres": { "allocated": [], "requested": [{ "type": "gres", "name": "gpu:A100", "count": gpus }] },
    })
}

async fn records_of_slurm_teach_the_same_as_the_list_of_the_same_jobs(database: TestDatabase) {
    let folder = tempfile::tempdir().unwrap();
    let list = fill(&database.url, &folder, &hp_jobs());
    let file = path(&folder, "sacct.json");
    let write = |jobs: &[Value]| {
        let meta = json!({ "plugin": { "data_parser": "data_parser/v0.0.42" } });
        let document = json!({ "jobs": jobs, "meta": meta, "errors": [] });
        std::fs::write(&file, format!("\n{document}")).unwrap();
    };
    let mut jobs: Vec<Value> = (1..)
        .zip(hp_jobs())
        .map(|(id, (account, workers, at, lasts))| {
            record(id, (account, "normal"), 8 * workers, [Some(at), Some(at), Some(at + lasts)])
        })
        .collect();
    jobs.push(record(900, ("speech", "spot1h"), 64, [Some(0), Some(0), Some(86_400)]));
    jobs.push(record(901, ("speech", "normal"), 8, [Some(DAYS * 86_400 - 60), None, None]));
    write(&jobs);
    let of_list = train(&database.url, &["--jobs", &list, "--epoch", EPOCH, "--json"]).json();
    let of_records = train(&database.url, &["--jobs", &file, "--spot-qos", "spot1h", "--json"]).json();
    for key in ["jobs", "scores"] {
        assert_eq!(of_records[0][key], of_list[0][key], "spot jobs and jobs that wait teach nothing");
    }
    // One that runs since an hour is known to have run so far.
    let running =
        record(902, ("speech", "normal"), 8, [Some(DAYS * 86_400 - 3_600), Some(DAYS * 86_400 - 3_000), None]);
    jobs.push(running);
    write(&jobs);
    let with_running = train(&database.url, &["--jobs", &file, "--spot-qos", "spot1h", "--json"]).json();
    assert_eq!(with_running[0]["jobs"], json!(1 + of_list[0]["jobs"].as_u64().unwrap()));
    jobs[2]["time"]["submission"] = json!("yesterday");
    let bad = path(&folder, "bad.json");
    std::fs::write(&bad, std::fs::read_to_string(&file).unwrap().replace("v0.0.42", "v0.0.99")).unwrap();
    write(&jobs);
    for (more, code, why) in [
        (&["--jobs", &file][..], 3, "sacct.json, record 3, job 3: time.submission: invalid type"),
        (&["--jobs", &bad], 3, "v0.0.99"),
        (&["--jobs", &file, "--epoch", EPOCH], 2, "--epoch: for lists of gfs-jobs and philly, and --jobs names none"),
        (&["--jobs", &list, "--epoch", EPOCH, "--spot-qos", "spot1h"], 2, "--spot-qos: for records of Slurm"),
        (&["--spot-qos", "spot1h"], 2, "--spot-qos: for records of Slurm, and --jobs names none: leave it out"),
    ] {
        let ran = train(&database.url, more);
        assert!(ran.code == code && ran.stderr.contains(why), "{} {}", ran.code, ran.stderr);
    }
}
