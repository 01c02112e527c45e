//! The board and the rules, asked of a real Prometheus that scrapes a real service.

use super::board::{LATER, board, metrics, queries};
use super::served::{CLUSTER, GPU_MODEL, QUOTA, prepare, work};
use super::{alerts, file};
use serde_json::Value;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;
use tests::{Listening, Prometheus, has_prometheus};

/// The values that Grafana puts in the place of its variables.
fn filled_in(expression: &str) -> String {
    expression.replace("$cluster", CLUSTER).replace("$gpu_model", GPU_MODEL).replace("$__rate_interval", "1m")
}

/// The output of `promtool`, and whether it is content.
fn promtool(arguments: &[&str], input: &str) -> (bool, String) {
    let mut command = Command::new("promtool");
    command.args(arguments).current_dir(file("prometheus"));
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let printed = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&printed).into_owned())
}

/// The same for files of the folder; `None` without Prometheus.
pub fn promtool_in_deploy(arguments: &[&str]) -> Option<(bool, String)> {
    has_prometheus("alert rules on synthetic series").then(|| promtool(arguments, ""))
}

#[test]
fn every_alert_fires_on_its_fault_and_on_nothing_else() {
    if !has_prometheus("alert rules on synthetic series") {
        return;
    }
    for arguments in [
        ["check", "rules", "rules.yml", "alerts.yml"].as_slice(),
        &["check", "config", "--syntax-only", "prometheus.yml", "compose.yml"],
        &["test", "rules", "alerts_test.yml"],
    ] {
        let (content, printed) = promtool(arguments, "");
        assert!(content, "promtool {arguments:?}: {printed}");
    }
    let tested = super::text("prometheus/alerts_test.yml");
    for alert in alerts() {
        assert!(tested.contains(&format!("alertname=\"{alert}\"")), "{alert} is tested on nothing");
    }
}

#[test]
fn metrics_follow_the_conventions_of_prometheus() {
    if !has_prometheus("the manners of the metrics") {
        return;
    }
    let prepared = prepare();
    let service = prepared.serve();
    work(&service);
    let (_, scrape) = service.get("/metrics");
    let (content, printed) = promtool(&["check", "metrics"], scrape.as_str().unwrap());
    assert!(content, "promtool check metrics: {printed}");
}

/// A Prometheus that has seen the service a few times, if it is installed.
fn watching(service: &Listening) -> Option<Prometheus> {
    let rules = ["prometheus/rules.yml", "prometheus/alerts.yml"].map(file);
    let rules: Vec<&Path> = rules.iter().map(AsRef::as_ref).collect();
    let prometheus = Prometheus::start(&[&service.address], &rules, "")?;
    let _ = prometheus.query_until("count_over_time(headroom_capacity_gpus[1m]) > 2", |series| !series.is_empty());
    Some(prometheus)
}

#[test]
fn every_query_of_the_board_and_every_rule_is_answered() {
    let prepared = prepare();
    let service = prepared.serve();
    work(&service);
    let Some(prometheus) = watching(&service) else { return };
    for (title, expression) in queries(&board()) {
        let comes_later = LATER.iter().any(|(name, _)| metrics(&expression).contains(*name));
        let expression = filled_in(&expression);
        assert!(!expression.contains('$'), "{title}: {expression} has a variable that is not filled in");
        if comes_later {
            // That it is understood is all that can be asked.
            let _ = prometheus.query(&expression);
        } else {
            let _ = prometheus.query_until(&expression, |series| !series.is_empty());
        }
    }
    let rules = evaluated(&prometheus);
    assert!(rules.len() > alerts().len(), "recording rules and {} alerts: {}", alerts().len(), rules.len());
    for rule in rules {
        assert_eq!(rule["health"], "ok", "{}: {}", rule["name"], rule["lastError"]);
    }
}

/// The rules once each was evaluated.
fn evaluated(prometheus: &Prometheus) -> Vec<Value> {
    for _ in 0..300 {
        let answer = prometheus.get("/api/v1/rules");
        let groups = answer["data"]["groups"].as_array().unwrap();
        let rules: Vec<Value> = groups.iter().flat_map(|group| group["rules"].as_array().unwrap().clone()).collect();
        if !rules.is_empty() && rules.iter().all(|rule| rule["health"] != "unknown") {
            return rules;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    panic!("some rules are not evaluated")
}

#[test]
fn the_board_shows_the_answers_of_quota() {
    let prepared = prepare();
    let service = prepared.serve();
    let Some(prometheus) = watching(&service) else { return };
    let board = board();
    for (title, legend, field) in [
        ("Quota and use", "quota {{hours}} h", "quota_gpus"),
        ("Quota and use", "used {{hours}} h", "used_gpus"),
        ("Quota left", "{{hours}} h", "available_gpus"),
        ("Demand against capacity", "bound {{hours}} h", "demand_bound_gpus"),
        ("Demand against capacity", "idle", "idle_gpus"),
        ("Capacity", "capacity", "capacity_gpus"),
        ("Eta", "eta", "eta"),
    ] {
        let expression = filled_in(&expression_of(&board, title, legend));
        let of_hours = |labels: &Value| labels["hours"].is_null() || labels["hours"] == "4";
        // The quota may be renewed in between, so both are asked until they agree.
        let _ = prometheus.query_until(&expression, |series| {
            let answered = service.get(QUOTA).1[field].as_f64().unwrap();
            let shown: Vec<f64> =
                series.iter().filter(|(labels, _)| of_hours(labels)).map(|(_, value)| *value).collect();
            shown.len() == 1 && (shown[0] - answered).abs() < 1e-9
        });
    }
}

fn expression_of(board: &Value, title: &str, legend: &str) -> String {
    let panel = super::board::panels(board).find(|panel| panel["title"] == title);
    let panel = panel.unwrap_or_else(|| panic!("there is no panel {title}"));
    let target = panel["targets"].as_array().unwrap().iter().find(|target| target["legendFormat"] == legend);
    target.unwrap_or_else(|| panic!("{title} has no {legend}"))["expr"].as_str().unwrap().to_owned()
}
