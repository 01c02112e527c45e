//! Alerts, board and artefact of the connector.

use super::board::{metrics, panels, queries};
use super::prometheus::promtool_in_deploy;
use super::{file, text};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use tests::workspace_root;

const RULES: &str = "prometheus/kubernetes-alerts.yml";

fn alerts() -> Vec<String> {
    text(RULES).lines().filter_map(|line| line.trim().strip_prefix("- alert: ")).map(str::to_owned).collect()
}

fn board() -> Value {
    serde_json::from_str(&text("grafana/kubernetes.json")).unwrap()
}

#[test]
fn every_alert_of_the_connector_has_a_section_of_its_runbook_and_every_section_an_alert() {
    let page = text("KUBERNETES.md");
    let book = page.split("## Runbook\n").nth(1).unwrap().split("\n## ").next().unwrap();
    let sections: Vec<&str> = book.lines().filter_map(|line| line.strip_prefix("### ")).collect();
    assert_eq!(sections, alerts());
    for alert in alerts() {
        assert!(
            text(RULES).contains(&format!("runbook_url: deploy/KUBERNETES.md#{}\n", alert.to_lowercase())),
            "{alert}"
        );
    }
}

#[test]
fn every_alert_of_the_connector_fires_on_its_fault_and_on_nothing_else() {
    for arguments in [["check", "rules", "kubernetes-alerts.yml"], ["test", "rules", "kubernetes-alerts_test.yml"]] {
        let Some((content, printed)) = promtool_in_deploy(&arguments) else { return };
        assert!(content, "promtool {arguments:?}: {printed}");
    }
    for alert in alerts() {
        assert!(text("prometheus/kubernetes-alerts_test.yml").contains(&format!("alertname=\"{alert}\"")), "{alert}");
    }
}

#[test]
fn board_and_alerts_of_the_connector_name_metrics_that_it_has() {
    let words = |file: &str| -> Vec<String> {
        let help = std::fs::read_to_string(workspace_root().join(file)).unwrap();
        let texts = help.split("#[cfg(test)]").next().unwrap().split('(');
        texts.filter_map(|rest| rest.trim_start().strip_prefix('"')?.split('"').next()).map(str::to_owned).collect()
    };
    // Connectors share texts by the ends of names.
    let shared = words("quota-service/connectors/src/help.rs").into_iter().filter(|end| end.starts_with('_'));
    let shared = shared.map(|end| format!("headroom_kubernetes{end}"));
    let known: BTreeSet<String> = words("quota-service/kubernetes/src/help.rs").into_iter().chain(shared).collect();
    let expressions: Vec<String> = queries(&board()).into_iter().map(|(_, expression)| expression).collect();
    let expressions = expressions.join("\n");
    let rules: Vec<String> = text(RULES)
        .lines()
        .filter(|line| !line.contains("summary") && !line.contains("description"))
        .map(str::to_owned)
        .collect();
    let of_board = metrics(&expressions);
    let named = &of_board | &metrics(&rules.join("\n"));
    let unknown: Vec<&String> = named.difference(&known).collect();
    assert!(unknown.is_empty() && named.len() > 15, "{unknown:?}");
    let build_info = "headroom_kubernetes_build_info".to_owned();
    let unseen: Vec<&String> =
        known.difference(&of_board).filter(|name| !name.contains("epoch") && **name != build_info).collect();
    assert!(unseen.is_empty(), "the board does not show {unseen:?}");
}

#[test]
fn panels_of_the_connector_do_not_overlap_and_are_described() {
    let board = board();
    let mut cells = BTreeSet::new();
    for panel in panels(&board) {
        assert!(panel["description"].as_str().is_some_and(|text| text.ends_with('.')), "{}", panel["title"]);
        let at = |field: &str| panel["gridPos"][field].as_u64().unwrap();
        for cell in (at("y")..at("y") + at("h")).flat_map(|y| (at("x")..at("x") + at("w")).map(move |x| (x, y))) {
            assert!(cell.0 < 24 && cells.insert(cell), "{} overlaps at {cell:?}", panel["title"]);
        }
    }
}

/// Packs the chart. Answers what is printed.
fn packed(folder: &Path) -> String {
    let output = Command::new("python3").arg(file("chart/package.py")).arg(folder).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_chart_is_packed_as_an_oci_artefact_with_the_same_bytes_each_time() {
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let digest = |folder: &Path| packed(folder).split(' ').nth(1).unwrap().trim().to_owned();
    assert_eq!(digest(one.path()), digest(two.path()));
    let read = |name: &str| std::fs::read(one.path().join(name)).unwrap();
    let blob = |descriptor: &Value| {
        let digest = descriptor["digest"].as_str().unwrap().strip_prefix("sha256:").unwrap();
        let bytes = read(&format!("oci/blobs/sha256/{digest}"));
        assert_eq!(hex::encode(Sha256::digest(&bytes)), digest);
        assert_eq!(descriptor["size"], bytes.len());
        bytes
    };
    let index: Value = serde_json::from_slice(&read("oci/index.json")).unwrap();
    let manifest: Value = serde_json::from_slice(&blob(&index["manifests"][0])).unwrap();
    let config: Value = serde_json::from_slice(&blob(&manifest["config"])).unwrap();
    assert_eq!((&config["name"], &config["apiVersion"]), (&Value::from("headroom"), &Value::from("v2")));
    let layer = &manifest["layers"][0];
    assert_eq!(layer["mediaType"], "application/vnd.cncf.helm.chart.content.v1.tar+gzip");
    let version = config["version"].as_str().unwrap();
    assert_eq!(blob(layer), read(&format!("headroom-{version}.tgz")));
    let listed =
        Command::new("tar").arg("tzf").arg(one.path().join(format!("headroom-{version}.tgz"))).output().unwrap();
    let listed = String::from_utf8(listed.stdout).unwrap();
    for name in ["headroom/Chart.yaml", "headroom/values.schema.json", "headroom/templates/connector/rbac.yaml"] {
        assert!(listed.lines().any(|line| line == name), "{name}: {listed}");
    }
}
