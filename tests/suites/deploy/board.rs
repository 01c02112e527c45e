//! Names in the Grafana board and the rules are names of the service.

use super::served::{prepare, work};
use super::text;
use serde_json::Value;
use std::collections::BTreeSet;
use std::process::Command;
use std::time::Duration;
use tests::workspace_root;

/// Metrics that are there only once an event has happened, and the event. Each is in the sources anyway.
pub const LATER: [(&str, &str); 21] = [
    ("headroom_eta_moves_total", "a hundred outcomes"),
    ("headroom_retrain_attempts_total", "a training on schedule"),
    ("headroom_retrain_last_exit_code", "a training on schedule"),
    ("headroom_refresh_failures_total", "a renewal fails"),
    ("headroom_audit_failures_total", "a write cannot be written down"),
    ("headroom_webhook_refused_total", "a webhook refuses an event for good"),
    ("headroom_tls_certificate_end_timestamp_seconds", "a certificate is set"),
    ("headroom_ledger_failures_total", "a ledger cannot be kept"),
    ("headroom_issues_scored_total", "the hours of a forecast are over"),
    ("headroom_forecast_mae_gpus", "the hours of a forecast are over"),
    ("headroom_forecast_last_value_mae_gpus", "the hours of a forecast are over"),
    ("headroom_forecast_coverage_ratio", "the hours of a forecast are over"),
    ("headroom_bound_coverage_ratio", "the hours of a forecast are over"),
    ("headroom_forecasts_scored", "the hours of a forecast are over"),
    ("headroom_forecasts_unmeasured", "the hours of a forecast are over"),
    ("headroom_forecast_drifts", "the hours of a forecast are over"),
    ("headroom_prometheus_queries_total", "usage is read from Prometheus"),
    ("headroom_prometheus_last_success_timestamp_seconds", "usage is read from Prometheus"),
    ("headroom_prometheus_gaps_total", "usage is read from Prometheus"),
    ("headroom_start_coverage_ratio", "a minute after the first task of a pool"),
    ("headroom_start_pinball_loss_seconds", "a minute after the first task of a pool"),
];

pub fn board() -> Value {
    serde_json::from_str(&text("grafana/headroom.json")).unwrap()
}

/// The panels that show something.
pub fn panels(board: &Value) -> impl Iterator<Item = &Value> {
    board["panels"].as_array().unwrap().iter().filter(|panel| panel["type"] != "row")
}

/// Title and expression of each query of the board.
pub fn queries(board: &Value) -> Vec<(String, String)> {
    let of_panel = |panel: &Value| {
        let title = panel["title"].as_str().unwrap().to_owned();
        let targets = panel["targets"].as_array().unwrap().clone();
        targets.into_iter().map(move |target| (title.clone(), target["expr"].as_str().unwrap().to_owned()))
    };
    panels(board).flat_map(of_panel).collect()
}

/// Metrics that a text names, histograms by the name that they have as a whole. Names of recording rules have colons.
pub fn metrics(text: &str) -> BTreeSet<String> {
    let words = text.split(|letter: char| !letter.is_ascii_alphanumeric() && !"_:".contains(letter));
    let names = words.filter(|word| word.starts_with("headroom_"));
    names.map(|name| name.strip_suffix("_bucket").unwrap_or(name).to_owned()).collect()
}

fn named() -> BTreeSet<String> {
    let board = board();
    let variables = board["templating"]["list"].as_array().unwrap().iter();
    let mut all: Vec<String> = queries(&board).into_iter().map(|(_, expression)| expression).collect();
    all.extend(variables.filter_map(|one| one["definition"].as_str()).map(str::to_owned));
    all.extend(["prometheus/rules.yml", "prometheus/alerts.yml"].map(text));
    metrics(&all.join("\n"))
}

/// Metrics of a scrape, and their kinds.
fn exposed(scrape: &str) -> BTreeSet<String> {
    let kinds = scrape.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    kinds.filter_map(|kind| kind.split(' ').next()).map(str::to_owned).collect()
}

#[test]
fn every_metric_that_the_board_and_the_rules_name_is_one_of_the_service() {
    let named = named();
    assert!(named.len() > 40, "only {} metrics are named: does the test look at the right places?", named.len());
    let later: BTreeSet<String> = LATER.iter().map(|(name, _)| (*name).to_owned()).collect();
    let wanted = &named - &later;
    let prepared = prepare();
    let service = prepared.serve();
    work(&service);
    let mut missing = wanted.clone();
    for _ in 0..100 {
        let (_, scrape) = service.get("/metrics");
        missing = &wanted - &exposed(scrape.as_str().unwrap());
        if missing.is_empty() {
            break;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    assert!(missing.is_empty(), "the service does not tell {missing:?}");
}

#[test]
fn later_metrics_are_in_the_sources_and_are_queried() {
    let named = named();
    let listed = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard", "*.rs"])
        .current_dir(workspace_root())
        .output()
        .unwrap();
    let paths = String::from_utf8(listed.stdout).unwrap();
    let of_programs = |path: &&str| path.starts_with("quota-service/") || path.starts_with("datasets/");
    let read = |path: &str| std::fs::read_to_string(workspace_root().join(path)).unwrap_or_default();
    let sources: String = paths.lines().filter(of_programs).map(read).collect();
    for (name, when) in LATER {
        assert!(sources.contains(&format!("\"{name}\"")), "{name}, there once {when}, is in no source");
        assert!(named.contains(name), "{name} is neither on the board nor in the rules: take it out here");
    }
}

#[test]
fn names_of_metrics_are_distinguished_from_those_of_rules_and_labels() {
    let text = r#"sum by (le) (rate(headroom_a_seconds_bucket{job="headroom"}[1h])) / pool:headroom_b:ratio + headroom_c_total"#;
    assert_eq!(metrics(text), ["headroom_a_seconds", "headroom_c_total"].map(str::to_owned).into());
}

#[test]
fn every_panel_has_a_description_and_the_board_is_tied_to_no_instance() {
    let board = board();
    let mut ids = BTreeSet::new();
    assert!(board["id"].is_null(), "an id is that of one Grafana");
    for panel in panels(&board) {
        let title = panel["title"].as_str().unwrap();
        assert!(!title.is_empty() && ids.insert(panel["id"].as_u64().unwrap()), "{title}: an id that is there twice");
        assert!(panel["description"].as_str().is_some_and(|text| text.len() > 20), "{title} has no description");
        assert!(panel["fieldConfig"]["defaults"]["unit"].is_string(), "{title} has no unit");
        let place = |side: &str| panel["gridPos"][side].as_u64().unwrap();
        assert!(place("x") + place("w") <= 24, "{title} is wider than the board");
        for target in panel["targets"].as_array().unwrap() {
            assert_eq!(target["datasource"]["uid"], "${datasource}", "{title}");
        }
    }
    assert!(ids.len() > 30, "only {} panels", ids.len());
}
