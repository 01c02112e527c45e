//! The running service has models trained again: by the hour of the day, and when its forecasts drift.

use super::*;
use forecaster::drift::Issued;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use store::{IssuedForecasts, RunId};
use tempfile::TempDir;
use tests::{Backend, Listening, on_both_databases, program, program_with};
use vocab::{DemandForecast, ForecastOrigin, Organization, SeriesId, StepForecast};

on_both_databases![
    a_run_that_was_due_while_the_service_was_down_is_trained_later_and_promoted,
    drift_has_a_model_trained_again_before_it_is_due,
    a_run_that_misses_the_gate_is_kept_and_no_fault,
];

const RECENT_DAYS: i64 = 21;
const METRICS: &str = "/metrics";

pub fn present_hour() -> HourStart {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    at(i64::try_from(since.as_secs()).unwrap()).hour().unwrap()
}

/// Usage until the present hour and a first run, which `train` has trained "hours ago".
pub async fn with_run(database: &TestDatabase, hours_ago: i64) -> Arc<dyn Store> {
    let store = database.store().await;
    let calendar = datasets::Calendar::WEEKDAYS.to_owned();
    let demo = Cluster { name: cluster("demo"), time_zone: "Asia/Shanghai".to_owned(), calendar };
    store.put_cluster(&demo).await.unwrap();
    let start = present_hour().plus_hours(-24 * RECENT_DAYS);
    let made_up = SmallCluster {
        cluster: cluster("demo"),
        gpu_model: GpuModel::parse("A100").unwrap(),
        start,
        days: u32::try_from(RECENT_DAYS).unwrap(),
        organizations: 3,
        seed: 7,
    };
    let capacity = CapacityRow { pool: pool(POOL), from: start, capacity: MilliGpus::from_gpus(500) };
    store.append(&made_up.usage(), &[capacity]).await.unwrap();
    let first = ["--horizon", "4h", "--model", "last-value", "--database", &database.url];
    let _ = program("train", &first).ok();
    let created_at = match database.backend {
        Backend::Postgres => format!("created_at - interval '{hours_ago} hours'"),
        Backend::Sqlite => format!("created_at - {}", hours_ago * 3_600),
    };
    database.execute(&format!("UPDATE runs SET created_at = {created_at}")).await;
    store
}

/// A settings file with what is set, beside quick renewals.
fn settings(folder: &TempDir, lines: &str) -> String {
    let file = folder.path().join("headroom.toml");
    let quick = "refresh_s = 1\npromotion_check_s = 1\nshutdown_grace_s = 1";
    std::fs::write(&file, format!("[quota-service]\n{quick}\n{lines}\n")).unwrap();
    file.to_str().unwrap().to_owned()
}

fn start(database: &TestDatabase, folder: &TempDir, lines: &str) -> Listening {
    Listening::start(&["--database", &database.url, "--config", &settings(folder, lines)])
}

/// A path's answer, asked again until `wanted`, for a minute: a training takes its time.
fn until(service: &Listening, path: &str, wanted: impl Fn(&str) -> bool) -> String {
    let mut last = String::new();
    for _ in 0..600 {
        let body = service.get(path).1;
        last = body.as_str().map_or_else(|| body.to_string(), str::to_owned);
        if wanted(&last) {
            return last;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    panic!("{path}: {last}")
}

fn serves(run: &'static str) -> impl Fn(&str) -> bool {
    move |answer| answer.contains(&format!("\"run_id\":\"{run}\"")) && answer.contains("\"stage\":\"fresh\"")
}

fn has(line: &'static str) -> impl Fn(&str) -> bool {
    move |metrics| metrics.lines().any(|found| found == line)
}

const PROMOTED: &str = "headroom_retrain_attempts_total{cluster=\"demo\",outcome=\"promoted\"} 1";

async fn a_run_that_was_due_while_the_service_was_down_is_trained_later_and_promoted(database: TestDatabase) {
    let store = with_run(&database, 72).await;
    let folder = tempfile::tempdir().unwrap();
    let service = start(&database, &folder, "retrain = \"daily\"");
    let _ = until(&service, &quota_path(4), serves("run-2"));
    let metrics = until(&service, METRICS, has(PROMOTED));
    assert!(has("headroom_retrain_running{cluster=\"demo\"} 0")(&metrics), "{metrics}");
    assert!(has("headroom_retrain_last_exit_code{cluster=\"demo\"} 0")(&metrics), "{metrics}");
    assert!(metrics.contains("headroom_retrain_last_success_timestamp_seconds{cluster=\"demo\"} 1"), "{metrics}");
    std::thread::sleep(Duration::from_secs(2));
    let ran = service.stop().ok();
    assert!(ran.stderr.contains("retraining begins cluster=demo why=it was due at"), "{}", ran.stderr);
    let again = start(&database, &folder, "retrain = \"daily\"");
    let _ = until(&again, &quota_path(4), serves("run-2"));
    std::thread::sleep(Duration::from_secs(2));
    let runs = store.runs(None).await.unwrap();
    assert_eq!(runs.len(), 2, "the newest run says when the next is due, after a restart, too");
    assert_eq!(runs[0].facts.model, "last-value", "the model that the operator has chosen");
    let promotions = store.promotions(&cluster("demo")).await.unwrap();
    assert_eq!((promotions.len(), promotions[0].promoted_by.as_str()), (2, "train"));
}

/// The forecasts recorded for run-1 at an hour: no demand at all, ever.
fn nothing_expected(issue: HourStart) -> Vec<u8> {
    let step = StepForecast { mean_gpus: 0.0, stddev_gpus: 0.0, quantiles_gpus: [0.0; 3] };
    let forecast = |name: &str| {
        let series = SeriesId { pool: pool(POOL), organization: Organization::parse(name).unwrap() };
        DemandForecast::new(series, issue, ForecastOrigin::Model, vec![step; 4]).unwrap()
    };
    let forecasts: Vec<_> = ["org-000", "org-001", "org-002"].map(forecast).to_vec();
    let corrected_gpus = vec![Vec::new(); 3];
    let issued = Issued { issue, forecasts, corrected_gpus, last_gpus: vec![0.0; 3], bounds: Vec::new() };
    issued.to_bytes(&cluster("demo"))
}

async fn drift_has_a_model_trained_again_before_it_is_due(database: TestDatabase) {
    let store = with_run(&database, 30).await;
    for hours_ago in 5..40 {
        let issue = present_hour().plus_hours(-hours_ago);
        let (cluster, issued_at) = (cluster("demo"), issue.instant());
        let forecasts = nothing_expected(issue);
        let row = IssuedForecasts { cluster, issue, run_id: RunId::new(1), issued_at, forecasts };
        assert!(store.record_forecasts(&row).await.unwrap());
    }
    let folder = tempfile::tempdir().unwrap();
    let service = start(&database, &folder, "retrain = \"weekly\"");
    let _ = until(&service, &quota_path(4), serves("run-2"));
    let metrics = until(&service, METRICS, |metrics| has(PROMOTED)(metrics) && metrics.contains("forecasts_scored{"));
    let pool = "cluster=\"demo\",gpu_model=\"A100\"";
    for line in [
        format!("headroom_forecast_coverage_ratio{{{pool},level=\"0.9\"}} 0"),
        format!("headroom_forecasts_scored{{{pool}}} 420"),
        format!("headroom_forecasts_unmeasured{{{pool}}} 0"),
        format!("headroom_bound_coverage_ratio{{{pool}}} NaN"),
        "headroom_issues_scored_total{cluster=\"demo\"} 35".to_owned(),
    ] {
        assert!(metrics.lines().any(|found| found == line), "{line} is missing: {metrics}");
    }
    for name in ["headroom_forecast_mae_gpus{", "headroom_forecast_last_value_mae_gpus{"] {
        assert!(metrics.contains(name), "{name} is missing: {metrics}");
    }
    let drifts = format!("headroom_forecast_drifts{{{pool}}} 0");
    let _ = until(&service, METRICS, |metrics| metrics.lines().any(|found| found == drifts));
    let explained = until(&service, &quota_path(4).replace("/quota", "/v1/quota/explain"), |_| true);
    let explained: Value = serde_json::from_str(&explained).unwrap();
    assert_eq!(explained["drift"]["coverage"]["standing"], "too_few_hours", "run-2 is judged by what it says itself");
    let printed = service.stop().ok().stderr;
    assert!(printed.contains("why=the forecasts of pool demo:A100 drift"), "{printed}");
    assert_eq!(printed.matches("WARN").count(), 1, "{printed}");
    assert_eq!(store.runs(None).await.unwrap().len(), 2, "once a day at most");
}

async fn a_run_that_misses_the_gate_is_kept_and_no_fault(database: TestDatabase) {
    let store = with_run(&database, 72).await;
    let mut scores: Value = serde_json::from_str(&store.run(RunId::new(1)).await.unwrap().facts.scores_json).unwrap();
    scores["model"]["pinball_q90_gpus"] = 1e-6.into();
    // As of an older version, and without a model to replay: the scores alone are the measure.
    scores["hours"] = Value::Array(Vec::new());
    database.execute(&format!("UPDATE runs SET scores_json = '{scores}'")).await;
    let folder = tempfile::tempdir().unwrap();
    let service = start(&database, &folder, "retrain = \"daily\"");
    let kept = "headroom_retrain_attempts_total{cluster=\"demo\",outcome=\"kept\"} 1";
    // The two are set one after the other: a scrape may come between them.
    let code = "headroom_retrain_last_exit_code{cluster=\"demo\"} 7";
    let _ = until(&service, METRICS, |metrics| has(kept)(metrics) && has(code)(metrics));
    let _ = until(&service, &quota_path(4), serves("run-1"));
    let printed = service.stop().ok().stderr;
    assert!(printed.contains("missed the gate") && !printed.contains("ERROR"), "{printed}");
    assert_eq!(store.runs(None).await.unwrap().len(), 2);
}

/// A program in place of `train`.
fn script(folder: &TempDir, body: &str) -> PathBuf {
    let file = folder.path().join("train.sh");
    std::fs::write(&file, format!("#!/bin/sh\n{body}\n")).unwrap();
    std::fs::set_permissions(&file, Permissions::from_mode(0o755)).unwrap();
    file
}

async fn with_script(folder: &TempDir, body: &str, more: &str) -> (TestDatabase, Listening) {
    let database = tests::fresh_database(Backend::Sqlite).await;
    let _ = with_run(&database, 72).await;
    let lines = format!("retrain = \"daily\"\ntrain_program = \"{}\"\n{more}", script(folder, body).display());
    let service = start(&database, folder, &lines);
    (database, service)
}

const FAILED: &str = "headroom_retrain_attempts_total{cluster=\"demo\",outcome=\"failed\"} 1";

#[tokio::test]
async fn a_training_that_fails_is_logged_and_quotas_go_on() {
    let folder = tempfile::tempdir().unwrap();
    let body =
        "echo \"$@\" > $0.arguments; echo \"$HEADROOM_DATABASE\" > $0.database; echo 'no luck today' >&2; exit 3";
    let (database, service) = with_script(&folder, body, "").await;
    let metrics = until(&service, METRICS, has(FAILED));
    assert!(has("headroom_retrain_last_exit_code{cluster=\"demo\"} 3")(&metrics), "{metrics}");
    std::thread::sleep(Duration::from_secs(3));
    let _ = until(&service, METRICS, has(FAILED));
    let _ = until(&service, &quota_path(4), serves("run-1"));
    let printed = service.stop().ok().stderr;
    assert!(
        printed.contains("retraining has failed")
            && printed.contains("exit code 3")
            && printed.contains("no luck today"),
        "{printed}"
    );
    let written = |what: &str| std::fs::read_to_string(folder.path().join(format!("train.sh.{what}"))).unwrap();
    let file = folder.path().join("headroom.toml");
    let arguments = format!("--horizon 4h --cluster demo --promote --model last-value --config {}\n", file.display());
    assert_eq!(written("arguments"), arguments);
    assert_eq!(written("database").trim(), database.url, "in the environment, where not everyone reads it");
}

#[tokio::test]
async fn a_training_that_hangs_holds_nothing_up_and_ends_with_the_service() {
    let folder = tempfile::tempdir().unwrap();
    let (_database, service) = with_script(&folder, "echo $$ > $0.pid; exec sleep 600", "").await;
    let _ = until(&service, METRICS, has("headroom_retrain_running{cluster=\"demo\"} 1"));
    let computed = |answer: &str| serde_json::from_str::<Value>(answer).unwrap()["computed_at"].clone();
    let before = until(&service, &quota_path(4), serves("run-1"));
    let _ = until(&service, &quota_path(4), |answer| computed(answer) != computed(&before));
    let pid = std::fs::read_to_string(folder.path().join("train.sh.pid")).unwrap();
    let process = PathBuf::from(format!("/proc/{}", pid.trim()));
    assert!(process.exists());
    let printed = service.stop().ok().stderr;
    assert!(!process.exists(), "it outlived the service");
    assert!(printed.contains("retraining was stopped with the service"), "{printed}");
}

#[tokio::test]
async fn a_training_that_takes_too_long_is_ended() {
    let folder = tempfile::tempdir().unwrap();
    let (_database, service) = with_script(&folder, "exec sleep 600", "retrain_limit_s = 1").await;
    let metrics = until(&service, METRICS, has(FAILED));
    assert!(has("headroom_retrain_last_exit_code{cluster=\"demo\"} -1")(&metrics), "{metrics}");
    let printed = service.stop().ok().stderr;
    assert!(printed.contains("ended after 1 s, the limit"), "{printed}");
}

#[test]
fn a_program_to_train_with_that_is_none_is_refused_with_its_place_where_it_would_be_started() {
    let refused = |path: &str, why: &str| {
        let variables = [("HEADROOM_RETRAIN", "daily"), ("HEADROOM_TRAIN_PROGRAM", path)];
        let ran = program_with("quota-service", &["config", "show"], &variables);
        assert_eq!(ran.code, 4, "{ran:?}");
        assert!(ran.stderr.starts_with("error: HEADROOM_TRAIN_PROGRAM: ") && ran.stderr.contains(why), "{ran:?}");
        assert!(ran.stderr.contains("write the path of the program train, or retrain = \"never\""), "{ran:?}");
        let _ = program_with("quota-service", &["config", "show"], &variables[1..]).ok();
        let _ = program_with("quota-service", &["config", "show", "--as-of", "latest"], &variables).ok();
    };
    let folder = tempfile::tempdir().unwrap();
    let text = folder.path().join("notes.txt");
    std::fs::write(&text, "no program").unwrap();
    refused("/missing/train", "/missing/train cannot be started: No such file or directory");
    refused(text.to_str().unwrap(), "notes.txt is no program");
    let _ = program_with("quota-service", &["config", "show"], &[("HEADROOM_RETRAIN", "weekly")]).ok();
}
