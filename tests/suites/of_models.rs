//! Answers of the default model beside forecasts: causes of a forecast, gains of its ingredients, settings that suit.

use crate::peers::made_up;
use serde_json::Value;
use tests::program;

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

#[test]
fn an_explanation_adds_up_to_the_forecast_that_it_explains() {
    let folder = tempfile::tempdir().unwrap();
    let url = made_up(&folder);
    let _ = program("train", &["--horizon", "4h", "--database", &url]).ok();
    let explain = ["explain", "--organization", "org-000", "--database", &url];
    let explained = program("train", &[&explain[..], &["--json"]].concat()).json();
    let last = number(&explained["last_gpus"]);
    let steps = explained["steps"].as_array().unwrap();
    assert_eq!(steps.len(), 4 * 3, "steps and levels");
    for step in steps {
        let parts = step["contributions"].as_array().unwrap();
        assert_eq!(parts.len(), 8);
        let sum = parts.iter().map(|part| number(&part["gpus"])).sum::<f64>();
        let whole = last + number(&step["usual_change_gpus"]) + sum + number(&step["held_gpus"]);
        assert!((whole - number(&step["forecast_gpus"])).abs() < 0.01, "{whole}: {step}");
    }
    assert!(program("train", &explain).ok().stdout.contains("the same hours on the days before"));
    let refused = program("train", &["explain", "--organization", "nobody", "--database", &url]);
    assert_eq!(refused.code, 2, "{refused:?}");
    assert!(refused.stderr.contains("it knows") && refused.stderr.contains("org-000"), "{refused:?}");
}

#[test]
fn an_ablation_leaves_one_ingredient_out_each_time() {
    let folder = tempfile::tempdir().unwrap();
    let url = made_up(&folder);
    let window = ["--from", "2024-03-16T00:00:00+08:00", "--to", "2024-03-16T23:00:00+08:00"];
    let rows =
        program("train", &[&["ablation", "--horizon", "4h", "--json", "--database", &url], &window[..]].concat())
            .json();
    let rows = rows.as_array().unwrap();
    assert_eq!(rows[0]["variant"], "orglinear");
    let crps = |row: &Value| number(&row["scores"]["crps_gpus"]);
    let named = |name: &str| crps(rows.iter().find(|row| row["variant"] == name).unwrap());
    assert!(named("without calibration") > 0.0);
    for name in ["without the network", "without the trees", "without days", "last-value"] {
        assert!((named(name) - crps(&rows[0])).abs() > 1e-9, "{name} is the whole model");
    }
}

#[test]
fn settings_are_tried_written_and_taken_and_those_of_other_models_refused() {
    let folder = tempfile::tempdir().unwrap();
    let url = made_up(&folder);
    let tuned = program("train", &["tune", "--horizon", "4h", "--trials", "2", "--json", "--database", &url]).json();
    let trials = tuned["trials"].as_array().unwrap();
    assert_eq!((trials.len(), number(&trials[0]["loss"])), (2, 1.0), "the default settings come first");
    let file = folder.path().join("settings.json");
    std::fs::write(&file, trials[1]["settings"].to_string()).unwrap();
    let file = file.to_str().unwrap();
    let train = ["--horizon", "4h", "--json", "--database", &url, "--settings", file];
    assert!(program("train", &train).json()[0]["run_id"].is_string(), "what tune writes is what train takes");
    let other = program("train", &[&train[..], &["--model", "dlinear"]].concat());
    assert_eq!(other.code, 2, "{other:?}");
    let none = program("train", &["--horizon", "4h", "--database", &url, "--settings", "/none.json"]);
    assert_eq!(none.code, 3, "{}", none.stderr);
    assert!(none.stderr.contains("--settings /none.json: there is no such file"), "{}", none.stderr);
    assert!(other.stderr.contains("--settings is for orglinear, trees, network"), "{other:?}");
    std::fs::write(file, "{\"growth\": {\"leaves\": 40}}").unwrap();
    let bad = program("train", &train);
    assert_eq!(bad.code, 4, "{bad:?}");
    assert!(bad.stderr.contains("growth.leaves is 40, and must be 2 to 16"), "{bad:?}");
}

#[test]
fn a_run_that_is_asked_for_with_another_cluster_says_where_it_was_trained() {
    let folder = tempfile::tempdir().unwrap();
    let url = made_up(&folder);
    let file = folder.path().join("usage.csv");
    let text = std::fs::read_to_string(&file).unwrap().replace(",demo,", ",earth,");
    std::fs::write(&file, text).unwrap();
    let ingest = ["ingest", "--format", "usage", file.to_str().unwrap(), "--database", &url];
    let _ = program("datasets", &ingest).ok();
    let until = ["--cluster", "demo", "--until", "2024-03-16T00:00:00+08:00"];
    let _ = program("train", &[&["--horizon", "4h", "--database", &url], &until[..]].concat()).ok();
    let window = ["--from", "2024-03-16T00:00:00+08:00", "--to", "2024-03-16T23:00:00+08:00", "--out", "/dev/null"];
    let backtest = [&["backtest", "--horizon", "4h", "--database", &url][..], &window].concat();
    let explain = ["explain", "--organization", "org-000", "--database", &url];
    for asked in [&backtest[..], &explain] {
        let with = |cluster: &str| program("train", &[asked, &["--run", "run-1", "--cluster", cluster]].concat()).ok();
        let (own, other) = (with("demo"), with("earth"));
        assert!(!own.stderr.contains("note:"), "{}", own.stderr);
        let note = "note: run-1 was trained on cluster demo, not on earth: ";
        assert!(other.stderr.contains(note), "{}", other.stderr);
    }
}
