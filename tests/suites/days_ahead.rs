//! Promises of days: a model of 74 hours, its backtest, and quotas for each of the offered hours.

use serde_json::{Value, json};
use tests::{Listening, program};

const OFFERED: [u8; 8] = [1, 2, 4, 8, 12, 24, 48, 72];

/// 24 days of two organizations and the peak of their pool.
fn made_up(folder: &tempfile::TempDir) -> String {
    let out = folder.path().to_str().unwrap();
    let _ = program("datasets", &["generate", "--days", "24", "--organizations", "2", "--out", out]).ok();
    let url = format!("sqlite://{out}/headroom.db");
    let file = format!("{out}/usage.csv");
    let more = ["--capacity", "300", "--database", &url];
    let _ = program("datasets", &[&["ingest", "--format", "usage", &file], &more[..]].concat()).ok();
    url
}

#[test]
fn promises_of_up_to_three_days_have_forecasts_bounds_and_quotas() {
    let folder = tempfile::tempdir().unwrap();
    let url = made_up(&folder);
    let trained = program("train", &["--horizon", "74h", "--json", "--database", &url]).json();
    assert_eq!((&trained[0]["horizon_hours"], &trained[0]["promoted"]), (&74.into(), &true.into()), "{trained}");
    let service = Listening::start(&["--database", &url, "--as-of", "latest"]);
    let pool = "cluster=demo&gpu_model=A100-SXM4-80GB";
    let settings = "/v1/pools/demo:A100-SXM4-80GB/settings";
    let mut wanted = service.get_until(settings, |status, _| status == 200);
    wanted["offered_hours"] = json!(OFFERED);
    let (status, answer) = service.send("PUT", settings, Some(&wanted)).unwrap();
    assert_eq!(status, 200, "{answer}");
    let bounds = OFFERED.map(|hours| {
        let path = format!("/quota?{pool}&hours={hours}");
        let quota = service.get_until(&path, |status, quota| status == 200 && quota["hours"] == hours);
        let number = |field: &str| quota[field].as_f64().unwrap_or_else(|| panic!("{field}: {quota}"));
        assert!(number("quota_gpus") <= number("inventory_gpus").max(number("used_gpus")) + 1e-6, "{quota}");
        number("demand_bound_gpus")
    });
    assert!(bounds.is_sorted() && bounds[0] > 0.0, "a bound does not fall with the hours: {bounds:?}");
    assert_eq!(service.stop().code, 0);
}

#[test]
fn a_backtest_of_three_days_has_every_step_and_a_bound_of_all_of_them() {
    let folder = tempfile::tempdir().unwrap();
    let url = made_up(&folder);
    let file = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (out, bounds) = (file("forecasts.csv"), file("bounds.csv"));
    let window = ["--from", "2024-03-20T00:00:00+08:00", "--to", "2024-03-23T23:00:00+08:00"];
    let files = ["--model", "orglinear", "--out", &out, "--pool-out", &bounds, "--database", &url, "--json"];
    let report = program("train", &[&["backtest", "--horizon", "72h"], &window[..], &files].concat()).json();
    assert_eq!(report["models"][0]["model"], Value::from("orglinear"));
    let lines = |file: &str| std::fs::read_to_string(file).unwrap().lines().count();
    // 25 issue hours have all their targets inside: two organizations, 72 steps, five aggregations.
    assert_eq!((lines(&out), lines(&bounds)), (1 + 25 * 2 * 72, 1 + 25 * 5));
}
