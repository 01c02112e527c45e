//! Alerts of the Slurm connector.

use super::board::metrics;
use super::prometheus::promtool_in_deploy;
use super::text;
use std::collections::BTreeSet;
use tests::workspace_root;

const RULES: &str = "prometheus/slurm-alerts.yml";

fn alerts() -> Vec<String> {
    text(RULES).lines().filter_map(|line| line.trim().strip_prefix("- alert: ")).map(str::to_owned).collect()
}

#[test]
fn every_alert_of_the_slurm_connector_has_a_section_of_its_runbook_and_every_section_an_alert() {
    let page = text("SLURM.md");
    let book = page.split("## Runbook\n").nth(1).unwrap().split("\n## ").next().unwrap();
    let sections: Vec<&str> = book.lines().filter_map(|line| line.strip_prefix("### ")).collect();
    assert_eq!(sections, alerts());
    for alert in alerts() {
        let link = format!("runbook_url: deploy/SLURM.md#{}\n", alert.to_lowercase());
        assert!(text(RULES).contains(&link), "{alert}");
    }
}

#[test]
fn every_alert_of_the_slurm_connector_fires_on_its_fault_and_on_nothing_else() {
    for arguments in [["check", "rules", "slurm-alerts.yml"], ["test", "rules", "slurm-alerts_test.yml"]] {
        let Some((is_good, printed)) = promtool_in_deploy(&arguments) else { return };
        assert!(is_good, "promtool {arguments:?}: {printed}");
    }
    for alert in alerts() {
        assert!(text("prometheus/slurm-alerts_test.yml").contains(&format!("alertname=\"{alert}\"")), "{alert}");
    }
}

#[test]
fn alerts_of_the_slurm_connector_name_metrics_that_it_has() {
    let words = |file: &str| -> Vec<String> {
        let help = std::fs::read_to_string(workspace_root().join(file)).unwrap();
        let texts = help.split("#[cfg(test)]").next().unwrap().split('(');
        texts.filter_map(|rest| rest.trim_start().strip_prefix('"')?.split('"').next()).map(str::to_owned).collect()
    };
    // Connectors share texts by the ends of names.
    let shared = words("quota-service/connectors/src/help.rs").into_iter().filter(|end| end.starts_with('_'));
    let shared = shared.map(|end| format!("headroom_slurm{end}"));
    let known: BTreeSet<String> = words("quota-service/slurm/src/help.rs").into_iter().chain(shared).collect();
    let rules = text(RULES);
    let rules = rules.lines().filter(|line| !line.contains("summary") && !line.contains("description"));
    let named = metrics(&rules.collect::<Vec<_>>().join("\n"));
    let unknown: Vec<&String> = named.difference(&known).collect();
    assert!(unknown.is_empty() && named.len() > 8, "{unknown:?}");
}
