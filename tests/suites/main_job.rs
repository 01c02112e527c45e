//! The main job through the programs, as a user runs it: file, database, run, backtest, quota. On both databases.

use serde_json::Value;
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use tests::fixture::put_clusters;
use tests::{
    Backend, Listening, Ran, TestDatabase, on_both_databases, program, program_to_closed_pipe, program_to_file,
    program_with,
};

on_both_databases![
    a_file_becomes_a_quota,
    a_refused_file_leaves_nothing_behind_and_one_with_skipped_rows_the_rest,
    a_second_ingest_counts_changed_rows,
    a_later_run_serves_only_when_it_is_promoted_and_a_rollback_brings_the_first_one_back,
    a_run_that_has_seen_the_window_is_not_tested_on_it,
    a_run_is_reported_on_the_hours_that_it_has_not_seen,
    a_gate_that_is_missed_ends_with_exit_code_seven_and_keeps_the_run,
    a_run_that_would_leave_pools_without_a_quota_is_not_promoted_over_another,
    a_cluster_without_usage_is_skipped_unless_it_is_named,
];

/// A folder with usage.csv: 12 synthetic organizations over 21 days.
fn made_up() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().to_str().unwrap();
    let _ = program("datasets", &["generate", "--days", "21", "--organizations", "4", "--out", out]).ok();
    let file = folder.path().join("usage.csv");
    (folder, file)
}

fn run(database: &TestDatabase, name: &str, arguments: &[&str]) -> Ran {
    program(name, &[arguments, &["--database", &database.url]].concat())
}

fn ingest(database: &TestDatabase, file: &Path, more: &[&str]) -> Ran {
    run(database, "datasets", &[&["ingest", "--format", "usage", file.to_str().unwrap()], more].concat())
}

fn path(folder: &TempDir, name: &str) -> String {
    folder.path().join(name).to_str().unwrap().to_owned()
}

async fn a_file_becomes_a_quota(database: TestDatabase) {
    let (folder, file) = made_up();
    let summary = ingest(&database, &file, &["--capacity", "300", "--json"]).json();
    assert_eq!((&summary["inserted"], &summary["series"]), (&Value::from(4 * 21 * 24), &Value::from(4)));
    let trained = run(&database, "train", &["--horizon", "4h", "--json"]).json();
    assert_eq!((&trained[0]["run_id"], &trained[0]["promoted"]), (&"run-1".into(), &true.into()));
    let (out, pools) = (path(&folder, "f.csv"), path(&folder, "p.csv"));
    let window = ["--from", "2024-03-20T00:00:00+08:00", "--to", "2024-03-20T23:00:00+08:00"];
    let files = ["--out", &out, "--pool-out", &pools, "--json"];
    let report = run(&database, "train", &[&["backtest", "--horizon", "4h"], &window[..], &files].concat()).json();
    let models: Vec<_> = report["models"].as_array().unwrap().iter().map(|model| &model["model"]).collect();
    assert_eq!(models, ["orglinear", "last-value", "seasonal-24h", "seasonal-168h", "peak-week"]);
    let lines = |file: &str| std::fs::read_to_string(file).unwrap().lines().count();
    assert_eq!((lines(&out), lines(&pools)), (1 + 5 * 21 * 4 * 4, 1 + 5 * 5 * 21));
    // Of each model 4 organizations, 4 steps, 24 hours of the day and a pool.
    assert_eq!(report["coverage"].as_array().unwrap().len(), 5 * (4 + 4 + 24 + 1));
    assert_report_agrees(&folder, [&out, &pools], &report);
    let service = Listening::start(&["--database", &database.url, "--as-of", "latest"]);
    let quota = service.get_until("/quota?cluster=demo&gpu_model=A100-SXM4-80GB&hours=4", |status, _| status == 200);
    assert_eq!(
        (&quota["capacity_gpus"], &quota["run_id"], &quota["as_of"]),
        (&300.0.into(), &"run-1".into(), &"2024-03-21T16:00:00Z".into())
    );
    let stopped = service.stop();
    assert_eq!(stopped.code, 0, "{}", stopped.stderr);
}

/// The report reads what the backtest wrote, and comes to the same scores.
fn assert_report_agrees(folder: &TempDir, [forecasts, bounds]: [&str; 2], backtest: &Value) {
    let made = path(folder, "report");
    let files = ["report", "--forecasts", forecasts, "--pool-bounds", bounds, "--out", &made, "--json"];
    assert_eq!(program("notebooks-export", &files).json()["recording_gap_rows"], 0);
    let metrics = std::fs::read_to_string(Path::new(&made).join("metrics.csv")).unwrap();
    for model in backtest["models"].as_array().unwrap() {
        let start = format!("{},,,,,mae_median,", model["model"].as_str().unwrap());
        let value = metrics.lines().find_map(|line| line.strip_prefix(&start)?.split(',').next()).unwrap();
        let (ours, theirs): (f64, f64) = (value.parse().unwrap(), model["scores"]["mae_median_gpus"].as_f64().unwrap());
        assert!((ours - theirs).abs() < 1e-9 * theirs, "{start} {ours} against {theirs}");
    }
}

async fn a_run_is_reported_on_the_hours_that_it_has_not_seen(database: TestDatabase) {
    let (folder, file) = made_up();
    let _ = ingest(&database, &file, &["--time-zone", "Asia/Shanghai", "--capacity", "300"]).ok();
    let _ = run(&database, "train", &["--horizon", "4h", "--until", "2024-03-21T00:00:00+08:00"]).ok();
    let _ = run(&database, "train", &["--horizon", "4h"]).ok();
    let out = path(&folder, "report");
    let summary = run(&database, "notebooks-export", &["report", "--run", "run-1", "--out", &out, "--json"]).json();
    assert_eq!(summary["models"][0], "run-1 orglinear");
    assert_eq!(summary["rows"], 5 * 21 * 4 * 4, "one day, 21 issue hours, 4 organizations, 4 steps, 5 models");
    let page = std::fs::read_to_string(Path::new(&out).join("report.html")).unwrap();
    let facts = run(&database, "train", &["runs", "show", "run-1", "--json"]).json()["aggregation"].to_string();
    let serves = facts.trim_matches('"').split('=').next_back().unwrap().to_owned();
    let serves = format!("the {serves} bound, which serves, held at");
    for expected in ["Thu 21 Mar 2024, 00:00 to Thu 21 Mar 2024, 23:00", "Asia/Shanghai", "line capacity", &serves] {
        assert!(page.contains(expected), "{expected}");
    }
    let seen = run(&database, "notebooks-export", &["report", "--run", "run-2", "--out", &path(&folder, "other")]);
    assert_eq!(seen.code, 3);
    assert!(
        seen.stderr.contains("it has seen all but less than 4h. Train one that leaves hours out"),
        "{}",
        seen.stderr
    );
    assert!(!folder.path().join("other").exists(), "a refused report leaves nothing");
}

async fn a_refused_file_leaves_nothing_behind_and_one_with_skipped_rows_the_rest(database: TestDatabase) {
    let (_folder, file) = made_up();
    let mut text = std::fs::read_to_string(&file).unwrap();
    text.push_str("2024-03-01T00:30:00Z,demo,A100,late,1\n2024-03-01T00:00:00Z,demo,A100,late,-1\n");
    std::fs::write(&file, text).unwrap();
    let refused = ingest(&database, &file, &[]);
    assert_eq!(refused.code, 3);
    assert!(refused.stderr.contains("usage.csv, row 2018: column hour: "), "{}", refused.stderr);
    let empty = run(&database, "datasets", &["describe"]);
    let (code, nothing) = match database.backend {
        Backend::Sqlite => (3, "there is no database file"),
        Backend::Postgres => (3, "it has no tables of Headroom"),
    };
    assert_eq!((empty.code, empty.stderr.contains(nothing)), (code, true), "{}", empty.stderr);
    let lenient = ingest(&database, &file, &["--skip-bad-rows", "--json"]);
    assert!(lenient.stderr.contains("row 2019: column demand_gpus: -1 GPUs is negative"), "{}", lenient.stderr);
    assert_eq!(lenient.json()["inserted"], 4 * 21 * 24);
}

async fn a_second_ingest_counts_changed_rows(database: TestDatabase) {
    let (_folder, file) = made_up();
    let counts = |ran: Ran| {
        let summary = ran.json();
        ["inserted", "changed", "unchanged"].map(|key| summary[key].as_u64().unwrap())
    };
    assert_eq!(counts(ingest(&database, &file, &["--json"])), [2016, 0, 0]);
    assert_eq!(counts(ingest(&database, &file, &["--json"])), [0, 0, 2016]);
    let text = std::fs::read_to_string(&file).unwrap();
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    lines[1] = lines[1].rsplit_once(',').map(|(series, _)| format!("{series},999.5")).unwrap();
    lines.push("2030-01-01T00:00:00Z,demo,A100-SXM4-80GB,org-000,1".to_owned());
    std::fs::write(&file, lines.join("\n")).unwrap();
    assert_eq!(counts(ingest(&database, &file, &["--json"])), [1, 1, 2015]);
    let exported = run(&database, "datasets", &["export", "--out", "-"]).ok().stdout;
    assert!(exported.contains("2024-02-29T16:00:00Z,demo,A100-SXM4-80GB,org-000,999.5\n"), "a later ingest replaces");
}

async fn a_later_run_serves_only_when_it_is_promoted_and_a_rollback_brings_the_first_one_back(database: TestDatabase) {
    let (_folder, file) = made_up();
    let _ = ingest(&database, &file, &[]).ok();
    let train = |seed: &str, more: &[&str]| {
        let all = [&["--horizon", "4h", "--model", "last-value", "--seed", seed, "--json"], more].concat();
        run(&database, "train", &all).json()[0]["promoted"].clone()
    };
    assert_eq!([train("1", &[]), train("2", &[]), train("3", &["--promote"])], [true, false, true]);
    let serving = || {
        let runs = run(&database, "train", &["runs", "list", "--json"]).json();
        let promoted = runs.as_array().unwrap().iter().find(|one| one["promoted"] == true).cloned();
        promoted.unwrap()["run_id"].clone()
    };
    assert_eq!(serving(), "run-3");
    let _ = run(&database, "train", &["runs", "rollback", "--cluster", "demo"]).ok();
    assert_eq!(serving(), "run-1");
    let compared = run(&database, "train", &["runs", "compare", "run-1", "2"]).ok().stdout;
    assert!(compared.lines().any(|line| line.starts_with("seed") && line.ends_with("differs")), "{compared}");
}

async fn a_run_that_has_seen_the_window_is_not_tested_on_it(database: TestDatabase) {
    let (folder, file) = made_up();
    let _ = ingest(&database, &file, &[]).ok();
    let until = |until: &str| {
        let _ = run(&database, "train", &["--horizon", "4h", "--model", "last-value", "--until", until]).ok();
    };
    until("2024-03-19T00:00:00Z");
    until("2024-03-21T00:00:00Z");
    let test = |id: &str| {
        let out = path(&folder, "f.csv");
        let window = ["--from", "2024-03-19T00:00:00Z", "--to", "2024-03-19T23:00:00Z", "--run", id, "--out", &out];
        run(&database, "train", &[&["backtest", "--horizon", "4h"], &window[..]].concat())
    };
    assert_eq!(test("run-1").code, 0);
    let leaks = test("run-2");
    assert_eq!(leaks.code, 3);
    assert!(leaks.stderr.contains("run-2 learned from hours until 2024-03-21T00:00:00Z"), "{}", leaks.stderr);
}

async fn a_gate_that_is_missed_ends_with_exit_code_seven_and_keeps_the_run(database: TestDatabase) {
    let (_folder, file) = made_up();
    let _ = ingest(&database, &file, &[]).ok();
    let train =
        |more: &[&str]| run(&database, "train", &[&["--horizon", "4h", "--model", "last-value"], more].concat());
    assert_eq!(train(&[]).code, 0);
    let missed = train(&["--promote", "--max-mae", "0.001"]);
    assert_eq!(missed.code, 7);
    assert!(missed.stderr.contains("run-2 is kept but not promoted: its MAE of"), "{}", missed.stderr);
    assert_eq!(train(&["--min-coverage", "1"]).code, 7, "a threshold counts for a run that is not to be promoted, too");
    assert_eq!(train(&["--promote", "--max-mae", "1000", "--min-coverage", "0.1"]).code, 0);
}

async fn a_run_that_would_leave_pools_without_a_quota_is_not_promoted_over_another(database: TestDatabase) {
    let (_folder, file) = made_up();
    let _ = ingest(&database, &file, &["--capacity", "300"]).ok();
    let train = |more: &[&str]| run(&database, "train", &[&["--model", "last-value"], more].concat());
    assert_eq!(train(&["--horizon", "4h"]).code, 0);
    for refused in [train(&["--horizon", "2h", "--promote"]), run(&database, "train", &["runs", "promote", "run-2"])] {
        let expected = "run-2 is kept but not promoted: ";
        assert!(refused.code == 7 && refused.stderr.contains(expected), "{refused:?}");
        assert!(refused.stderr.contains("guarantees of up to 4h are offered"), "{refused:?}");
    }
    let serves_already = run(&database, "train", &["runs", "promote", "run-1"]);
    assert_eq!(serves_already.code, 0, "{serves_already:?}");
    assert_eq!(train(&["--horizon", "5h"]).code, 0);
    // The digest of another checkpoint, as if bytes had changed.
    let damage = "UPDATE checkpoints SET sha256 = (SELECT sha256 FROM checkpoints WHERE run_id = 1) WHERE run_id = 3";
    database.execute(damage).await;
    let damaged = run(&database, "train", &["runs", "promote", "run-3"]);
    assert!(damaged.code == 3 && damaged.stderr.contains("run-3"), "{damaged:?}");
}

/// A fresh SQLite file with synthetic usage in `folder`.
fn sqlite_with_usage(folder: &TempDir, file: &Path) -> String {
    let url = format!("sqlite://{}", path(folder, "headroom.db"));
    let _ = program("datasets", &["ingest", "--format", "usage", file.to_str().unwrap(), "--database", &url]).ok();
    url
}

#[test]
fn a_file_of_a_source_that_is_missing_ends_with_exit_code_three_and_its_path() {
    let folder = tempfile::tempdir().unwrap();
    let (path, into) = (folder.path().to_str().unwrap(), format!("sqlite://{}/h.db", folder.path().display()));
    let source = ["ingest", "--format", "prometheus", "--cluster", "earth", "--query", "up", "--gpu-model", "A100"];
    for flag in ["--token-file", "--ca-file"] {
        for (file, why) in [("/none", "there is no such file"), (path, "it is a folder: name a file")] {
            let ran =
                program("datasets", &[&source[..], &[flag, file, "--database", &into, "https://127.0.0.1:1"]].concat());
            let named = ran.stderr.contains(&format!("{file}: {why}"));
            assert_eq!((ran.code, named), (3, true), "{flag} {file}: {}", ran.stderr);
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_bytes_on_one_thread_and_on_four() {
    let (folder, file) = made_up();
    let url = sqlite_with_usage(&folder, &file);
    let sha = |seed: &str, threads: &str| {
        let arguments = ["--horizon", "4h", "--seed", seed, "--json", "--database", &url];
        let trained = program_with("train", &arguments, &[("RAYON_NUM_THREADS", threads)]).json();
        trained[0]["checkpoint_sha256"].as_str().unwrap().to_owned()
    };
    let one = sha("1", "1");
    assert_eq!(one, sha("1", "4"));
    assert_ne!(one, sha("2", "1"));
}

#[test]
fn every_kind_of_failure_has_its_exit_code_and_a_remedy() {
    let (folder, file) = made_up();
    let url = sqlite_with_usage(&folder, &file);
    let config = path(&folder, "wrong.toml");
    std::fs::write(&config, "[train]\nsede = 1\n").unwrap();
    let file = file.to_str().unwrap();
    let backtest = ["backtest", "--horizon", "4h", "--from", "2024-03-19T00:00:00Z", "--to", "2024-03-19T23:00:00Z"];
    let cases: [(&str, &[&str], i32, &str); 18] = [
        ("train", &["--horizon", "4x"], 2, "write 4h"),
        ("train", &["--horizon", "4h", "--model", "orglinaer"], 2, "a similar value exists: 'orglinear'"),
        ("train", &["--horizon", "4h", "--cluster", "mars", "--database", &url], 2, "there are demo"),
        ("datasets", &["ingest", "--format", "gfs-jobs", file], 2, "needs --epoch"),
        (
            "datasets",
            &["ingest", "--format", "gfs-jobs", file, "--epoch", "2024-03-01T00:00:00Z"],
            3,
            "column job_name is missing",
        ),
        ("train", &["--horizon", "4h", "--max-mae", "NaN"], 2, "write a number of GPUs"),
        ("train", &["--horizon", "4h", "--min-coverage", "2"], 2, "write a share between 0 and 1"),
        (
            "train",
            &["--horizon", "168h", "--until", "2024-03-10T00:00:00Z", "--database", &url],
            3,
            "72 h lookback, and 191 h each",
        ),
        ("train", &[&backtest[..], &["--out", "same.csv", "--pool-out", "same.csv"]].concat(), 2, "name the same file"),
        ("train", &["--horizon", "4h", "--config", &config], 4, "did you mean \"seed\"?"),
        ("train", &["runs", "rollback", "--cluster", "mars", "--database", &url], 2, "there are demo"),
        ("train", &["runs", "list", "--cluster", "mars", "--database", &url], 2, "there are demo"),
        ("quota-service", &["--as-of", "9999-12-31T23:00:00Z"], 2, "'--as-of <latest|TIME>'"),
        ("quota-service", &["--refresh-s", "0"], 2, "'--refresh-s <SECONDS>'"),
        ("train", &["--horizon", "4h", "--guarantee-rate", "1.5"], 2, "'--guarantee-rate <P>'"),
        ("quota-service", &["--listen", "0.0.0.0:0"], 4, "there is no token: make one first"),
        ("datasets", &["describe", "--database", "postgres://nobody@127.0.0.1:1/x"], 5, "check that it runs"),
        ("datasets", &["describe", "--database", "mysql://x"], 4, "write sqlite://PATH or postgres://"),
    ];
    for (name, arguments, code, printed) in cases {
        let ran =
            program_with(name, arguments, &[("HEADROOM_DATABASE", &format!("sqlite://{}", path(&folder, "other.db")))]);
        assert_eq!(ran.code, code, "{name} {arguments:?}: {ran:?}");
        assert!(ran.stderr.contains(printed), "{name} {arguments:?}: {}", ran.stderr);
    }
}

#[test]
fn a_refused_command_leaves_the_files_alone_that_it_would_have_written() {
    let (folder, file) = made_up();
    let url = sqlite_with_usage(&folder, &file);
    let out = path(&folder, "precious.csv");
    std::fs::write(&out, "precious").unwrap();
    let window = ["--from", "2025-03-19T00:00:00Z", "--to", "2025-03-19T23:00:00Z"];
    let backtest = [&["backtest", "--horizon", "4h", "--out", &out, "--database", &url], &window[..]].concat();
    assert_eq!(program("train", &backtest).code, 3);
    assert_eq!(program("datasets", &["export", "--cluster", "mars", "--out", &out, "--database", &url]).code, 2);
    assert_eq!(std::fs::read_to_string(&out).unwrap(), "precious");
}

#[test]
fn a_reader_that_goes_away_early_is_no_failure_and_a_full_disk_is_one() {
    let (folder, file) = made_up();
    let url = sqlite_with_usage(&folder, &file);
    for arguments in [&["describe", "--database", &url][..], &["completions", "bash"], &["config", "show"]] {
        let (code, stderr) = program_to_closed_pipe("datasets", arguments);
        assert_eq!((code, stderr.as_str()), (0, ""), "{arguments:?}");
        let full = program_to_file("datasets", arguments, Path::new("/dev/full"));
        assert_eq!(full.code, 1, "{full:?}");
        assert!(full.stderr.starts_with("error: stdout: No space left"), "{full:?}");
    }
}

#[test]
fn a_cluster_that_cannot_be_trained_keeps_no_other_from_it() {
    let (folder, file) = made_up();
    let url = sqlite_with_usage(&folder, &file);
    let short = path(&folder, "short.csv");
    let rows = "hour,cluster,gpu_model,organization,demand_gpus\n2024-03-01T00:00:00Z,aaa,A100,o,1\n";
    std::fs::write(&short, rows).unwrap();
    let _ = program("datasets", &["ingest", "--format", "usage", &short, "--database", &url]).ok();
    let trained = program("train", &["--horizon", "4h", "--model", "last-value", "--json", "--database", &url]);
    assert_eq!(trained.code, 3, "{trained:?}");
    assert!(trained.stderr.contains("cluster aaa: the history"), "{trained:?}");
    let reports: Value = serde_json::from_str(&trained.stdout).unwrap();
    assert_eq!((&reports[0]["cluster"], &reports[0]["promoted"]), (&"demo".into(), &true.into()));
}

async fn a_cluster_without_usage_is_skipped_unless_it_is_named(database: TestDatabase) {
    let url = &database.url;
    put_clusters(&*database.store().await, &["aaa"]).await;
    let train = ["--horizon", "4h", "--model", "last-value", "--json", "--database", url];
    let alone = program("train", &train);
    assert_eq!(alone.code, 3, "there is nothing to train: {alone:?}");
    let (_folder, file) = made_up();
    let _ = program("datasets", &["ingest", "--format", "usage", file.to_str().unwrap(), "--database", url]).ok();
    let beside = program("train", &train);
    let reports: Vec<Value> = serde_json::from_str(&beside.stdout).unwrap();
    assert_eq!((beside.code, reports.len(), &reports[0]["cluster"]), (0, 1, &"demo".into()), "{beside:?}");
    assert!(beside.stderr.contains("note: cluster aaa has no usage of any organization"), "{beside:?}");
    let named = program("train", &[&train[..], &["--cluster", "aaa"]].concat());
    assert_eq!(named.code, 3, "{named:?}");
    assert!(named.stderr.contains("error: cluster aaa has no usage of any organization"), "{named:?}");
}

#[test]
fn a_service_that_is_stopped_answers_waiting_requests() {
    let (folder, file) = made_up();
    let url = sqlite_with_usage(&folder, &file);
    let _ = program(
        "datasets",
        &["ingest", "--format", "usage", file.to_str().unwrap(), "--capacity", "300", "--database", &url],
    )
    .ok();
    let _ = program("train", &["--horizon", "4h", "--model", "last-value", "--database", &url]).ok();
    let service = Listening::start(&["--database", &url, "--as-of", "latest"]);
    let path = "/quota?cluster=demo&gpu_model=A100-SXM4-80GB&hours=4";
    let etag = service.get_until(path, |status, _| status == 200);
    assert!(etag.is_object());
    let waiting = service.poll(&format!("{path}&wait=60s"));
    std::thread::sleep(std::time::Duration::from_millis(300));
    let stopped = service.stop();
    assert_eq!((stopped.code, waiting.join().unwrap()), (0, 304), "{}", stopped.stderr);
    assert!(!stopped.stderr.contains("are cut"), "{}", stopped.stderr);
}

#[test]
fn a_short_history_is_refused_with_both_lengths() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().to_str().unwrap();
    let _ = program("datasets", &["generate", "--days", "5", "--organizations", "2", "--out", out]).ok();
    let url = sqlite_with_usage(&folder, &folder.path().join("usage.csv"));
    let ran = program("train", &["--horizon", "4h", "--database", &url]);
    assert_eq!(ran.code, 3);
    assert!(ran.stderr.contains("has 120 h before ") && ran.stderr.contains("training needs 126 h"), "{}", ran.stderr);
}
