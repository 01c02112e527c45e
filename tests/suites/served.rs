//! `train backtest --served` through the programs: what a service would have answered, and what it refuses to play.

use serde_json::Value;
use std::path::Path;
use tempfile::TempDir;
use tests::{Ran, TestDatabase, on_both_databases, program, public_data};

on_both_databases![served_bounds_of_the_past_are_scored_and_stand_beside_other_bounds];

const WINDOW: [&str; 4] = ["--from", "2024-03-17T00:00:00Z", "--to", "2024-03-20T23:00:00Z"];

fn path(folder: &TempDir, name: &str) -> String {
    folder.path().join(name).to_str().unwrap().to_owned()
}

/// A database with synthetic usage of four organizations over 21 days.
fn fill(url: &str, folder: &TempDir) {
    let out = folder.path().to_str().unwrap();
    let _ = program("datasets", &["generate", "--days", "21", "--organizations", "4", "--out", out]).ok();
    let file = path(folder, "usage.csv");
    let _ = program("datasets", &["ingest", "--format", "usage", &file, "--capacity", "300", "--database", url]).ok();
}

fn backtest(url: &str, more: &[&str]) -> Ran {
    let own = ["backtest", "--horizon", "4h", "--model", "last-value", "--database", url];
    program("train", &[&own[..], &WINDOW, more].concat())
}

/// The group of a replay, such as `restart` `0 to 1 h`.
fn group<'a>(replay: &'a Value, hours: u64, by: &str, of: &str) -> &'a Value {
    let mut groups = replay["groups"].as_array().unwrap().iter();
    groups.find(|one| one["hours"] == hours && one["by"] == by && one["of"] == of).unwrap()
}

async fn served_bounds_of_the_past_are_scored_and_stand_beside_other_bounds(database: TestDatabase) {
    let folder = tempfile::tempdir().unwrap();
    fill(&database.url, &folder);
    let (out, pools) = (path(&folder, "f.csv"), path(&folder, "p.csv"));
    let asked = ["--served", "--late", "0h,1h", "--restart-every", "24h", "--out", &out, "--pool-out", &pools];
    let report = backtest(&database.url, &[&asked[..], &["--json"]].concat()).json();
    let replays = report["served"].as_array().unwrap();
    assert_eq!(replays.iter().map(|one| &one["late_s"]).collect::<Vec<_>>(), [0, 3_600]);
    // 93 issue hours of twelve renewals, without those of three restarts; the first hour has nothing to go by where usage is late.
    assert_eq!((&replays[0]["renewals"], &replays[1]["renewals"]), (&1_113.into(), &1_101.into()));
    for replay in replays {
        assert_eq!((&replay["unserved_renewals"], &replay["assumed_capacity_gpus"]), (&0.into(), &Value::Null));
        let all = group(replay, 4, "all", "all");
        let share = |key: &str| all[key].as_f64().unwrap();
        assert!(share("coverage") > 0.5 && share("coverage") <= share("forecast_coverage"), "{all}");
        assert!(share("kept_rate") > 0.8 && share("inventory_gpus") > share("forecast_inventory_gpus"), "{all}");
        assert_eq!(
            group(replay, 4, "restart", "0 to 1 h")["samples"],
            33,
            "eleven renewals after each of three restarts"
        );
    }
    // Both latenesses are scored at the same times.
    let samples = |of: usize| group(&replays[of], 1, "all", "all")["samples"].clone();
    assert_eq!(samples(0), samples(1));
    let rows = std::fs::read_to_string(&pools).unwrap();
    let of =
        |aggregation: &str| rows.lines().filter(|line| line.contains(&format!(",last-value,{aggregation},"))).count();
    assert_eq!((of("served"), of("conformal")), (93, 93));
    let made = path(&folder, "report");
    let files = ["report", "--forecasts", &out, "--pool-bounds", &pools, "--out", &made];
    let _ = program("notebooks-export", &files).ok();
    let metrics = std::fs::read_to_string(Path::new(&made).join("metrics.csv")).unwrap();
    assert!(metrics.contains("pool_under:served"), "{metrics}");
    let tables = backtest(&database.url, &["--served"]).ok().stdout;
    assert!(
        tables.contains("served (promise kept, renewed every 300 s, never restarted, demand known by the hour):"),
        "{tables}"
    );
}

#[test]
fn a_quota_no_service_serves_is_not_played() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite://{}", path(&folder, "headroom.db"));
    fill(&url, &folder);
    let minutes = path(&folder, "vc1.csv");
    let header = "time,total_gpu_num,running_gpu_num,pending_gpu_num";
    std::fs::write(&minutes, format!("{header}\n2020-05-18 00:00:00,8,1,0\n")).unwrap();
    let (out, pools) = (path(&folder, "f.csv"), path(&folder, "p.csv"));
    let cases: [(&[&str], i32, &str); 9] = [
        (&["--served", "--late", "3h"], 2, "no quota is served by usage that is older than 2 h"),
        (&["--served", "--renewal", "7m"], 2, "write 60s to 1h"),
        (&["--served", "--restart-state", "gone"], 2, "kept, lost"),
        (&["--served", "--offered", "6h"], 2, "--offered: 6h are offered, and forecasts reach 4h only"),
        (&["--served", "--minutes", &minutes], 3, "--minutes has no minute of cluster demo between"),
        (&["--served", "--pool-out", &pools, "--late", "1h"], 2, "add 0h to --late"),
        (&["--served", "--pool-out", &pools, "--offered", "1h"], 2, "4h is not offered: add it to --offered"),
        (&["--late", "1h", "--out", &out], 2, "--served"),
        (&[], 2, "--out <FILE>"),
    ];
    for (more, code, printed) in cases {
        let ran = backtest(&url, more);
        assert_eq!(ran.code, code, "{more:?}: {ran:?}");
        assert!(ran.stderr.contains(printed), "{more:?}: {}", ran.stderr);
    }
    assert!(!Path::new(&out).exists() && !Path::new(&pools).exists(), "a refused command leaves nothing");
}

#[test]
fn on_helios_demand_of_the_minute_is_served_and_measured() {
    let name = "on_helios_demand_of_the_minute_is_served_and_measured";
    let Some(data) = public_data(name, "helios-earth") else { return };
    let folder = tempfile::tempdir().unwrap();
    let (url, data) = (format!("sqlite://{}", path(&folder, "headroom.db")), data.to_str().unwrap());
    let ingest =
        ["ingest", "--format", "helios", data, "--cluster", "earth", "--gpu-model", "V100", "--database", &url];
    let _ = program("datasets", &ingest).ok();
    let window = ["--from", "2020-05-14T00:00:00+08:00", "--to", "2020-05-17T23:00:00+08:00"];
    let own = ["backtest", "--horizon", "4h", "--model", "last-value", "--served", "--promise", "peak", "--json"];
    let play = |more: &[&str]| program("train", &[&own[..], &window, &["--database", &url], more].concat()).json();
    let (by_hour, by_minute) = (play(&[]), play(&["--minutes", data]));
    let all = |report: &Value| group(&report["served"][0], 1, "all", "all").clone();
    let (by_hour, by_minute) = (all(&by_hour), all(&by_minute));
    // 93 issue hours of twelve renewals; by the hour the peak of the last promises would lie outside the window.
    assert_eq!((&by_minute["samples"], &by_minute["unmeasured"]), (&1_116.into(), &0.into()));
    let share = |one: &Value, key: &str| one[key].as_f64().unwrap();
    assert!(share(&by_minute, "coverage") > 0.85, "{by_minute}");
    // The peak of the hour in which a promise begins may lie before it.
    assert!(share(&by_hour, "forecast_coverage") <= share(&by_minute, "forecast_coverage"), "{by_hour} {by_minute}");
}
