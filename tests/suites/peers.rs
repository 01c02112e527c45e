//! Peers through the programs: one table beside each other, and any of them may serve.

use serde_json::Value;
use tests::{Listening, program};

/// A database of three synthetic organizations over 17 days.
pub fn made_up(folder: &tempfile::TempDir) -> String {
    let out = folder.path().to_str().unwrap();
    let _ = program("datasets", &["generate", "--days", "17", "--organizations", "3", "--out", out]).ok();
    let url = format!("sqlite://{out}/headroom.db");
    let file = format!("{out}/usage.csv");
    let more = ["--capacity", "300", "--database", &url];
    let _ = program("datasets", &[&["ingest", "--format", "usage", &file], &more[..]].concat()).ok();
    url
}

#[test]
fn peers_stand_in_one_table_beside_the_last_value() {
    let folder = tempfile::tempdir().unwrap();
    let url = made_up(&folder);
    let models = ["last-value", "dlinear", "nlinear", "transformer", "auto-ets"];
    let out = folder.path().join("forecasts.csv");
    let window = ["--from", "2024-03-16T00:00:00+08:00", "--to", "2024-03-16T23:00:00+08:00"];
    let what = ["--horizon", "4h", "--model", &models.join(","), "--out", out.to_str().unwrap()];
    let report = program("train", &[&["backtest", "--database", &url, "--json"], &window[..], &what].concat()).json();
    let rows: Vec<(&str, f64)> = (report["models"].as_array().unwrap().iter())
        .map(|row| (row["model"].as_str().unwrap(), row["scores"]["crps_gpus"].as_f64().unwrap()))
        .collect();
    assert_eq!(rows.iter().map(|(model, _)| *model).collect::<Vec<_>>(), models);
    for (place, (model, crps)) in rows.iter().enumerate() {
        assert!(*crps > 0.0 && rows[..place].iter().all(|(_, other)| other != crps), "{model} forecasts for itself");
    }
    assert_eq!(std::fs::read_to_string(out).unwrap().lines().count(), 1 + models.len() * 21 * 3 * 4);
}

#[test]
fn a_peer_serves_as_any_model_does() {
    let folder = tempfile::tempdir().unwrap();
    let url = made_up(&folder);
    let train = ["--horizon", "4h", "--model", "deepar", "--json", "--database", &url];
    let trained = program("train", &train).json();
    assert_eq!((&trained[0]["model"], &trained[0]["promoted"]), (&Value::from("deepar"), &Value::from(true)));
    let service = Listening::start(&["--database", &url, "--as-of", "latest"]);
    let quota = service.get_until("/quota?cluster=demo&gpu_model=A100-SXM4-80GB&hours=4", |status, _| status == 200);
    assert_eq!(quota["run_id"], "run-1");
    let bound = quota["demand_bound_gpus"].as_f64().unwrap();
    assert!(bound > 0.0 && bound < 300.0, "{bound}");
    assert_eq!(service.stop().code, 0);
}
