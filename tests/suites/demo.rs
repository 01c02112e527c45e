//! `make demo` without the build.

use serde_json::Value;
use std::process::Command;
use tests::workspace_root;

#[test]
fn the_demo_goes_from_jobs_to_a_quota_and_a_report_and_leaves_no_process() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("demo");
    let ran = Command::new("tests/demo.sh").arg(&out).current_dir(workspace_root()).output().unwrap();
    let answer = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success(), "{answer}\n{}", String::from_utf8_lossy(&ran.stderr));
    for expected in [
        "== Generate: ",
        "== Report: ",
        "== Statement: ",
        " s  Train\n",
        "goodput",
        "GPUs may run spot tasks",
        "Where to look next",
    ] {
        assert!(answer.contains(expected), "{expected:?} is not in {answer}");
    }
    let quota: Value = serde_json::from_str(&std::fs::read_to_string(out.join("quota.json")).unwrap()).unwrap();
    assert_eq!((&quota["capacity_gpus"].as_f64(), &quota["stage"]), (&Some(2_296.0), &"fresh".into()));
    assert!(quota["quota_gpus"].as_f64().unwrap() > 0.0);
    assert!(std::fs::read_to_string(out.join("report/report.html")).unwrap().ends_with("</html>"));
    let statement = std::fs::read_to_string(out.join("statement.csv")).unwrap();
    assert!(statement.lines().count() > 35, "a row for each organization and day: {statement}");
    let url = answer.lines().find_map(|line| line.strip_prefix("$ curl \"")).unwrap();
    let url = url.trim_end_matches('"');
    assert!(ureq::get(url).call().is_err(), "the service is still there: {url}");
}
