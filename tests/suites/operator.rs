//! A new operator's path, with the programs alone: install, token, nodes, usage, training, quota, what if, override, doctor.

use serde_json::{Value, json};
use std::time::{SystemTime, UNIX_EPOCH};
use tests::{Listening, Ran, TestDatabase, on_both_databases, program, workspace_root};
use vocab::{HourStart, UnixSeconds};

on_both_databases![a_new_operator_comes_from_nothing_to_a_quota_that_follows_overrides];

const OF_POOL: &str = "cluster=demo&gpu_model=A100-SXM4-80GB";
const DAYS: i64 = 21;

/// Where an operator works: a folder with the settings file of `deploy`, and a database.
struct Site {
    folder: tempfile::TempDir,
    url: String,
}

impl Site {
    fn run(&self, name: &str, arguments: &[&str]) -> Ran {
        let config = self.path("headroom.toml");
        program(name, &[arguments, &["--database", &self.url, "--config", &config]].concat())
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }

    /// The checks of `doctor` by name, and how it ended.
    fn doctor(&self) -> (i32, Vec<(String, String)>) {
        let ran = self.run("quota-service", &["doctor", "--json"]);
        let report: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|fault| panic!("{fault}: {ran:?}"));
        let text = |check: &Value, field: &str| check[field].as_str().unwrap().to_owned();
        let checks = report["checks"].as_array().unwrap();
        (ran.code, checks.iter().map(|check| (text(check, "name"), text(check, "status"))).collect())
    }

    fn token(&self, name: &str, role: &str) -> String {
        let made = self.run("quota-service", &["token", "create", "--name", name, "--role", role, "--json"]).json();
        made["token"].as_str().unwrap().to_owned()
    }
}

fn of_status(checks: &[(String, String)], status: &str) -> Vec<String> {
    checks.iter().filter(|(_, is)| is == status).map(|(name, _)| name.clone()).collect()
}

/// The hour that runs now.
fn present() -> HourStart {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    UnixSeconds::new(now as i64).hour().unwrap()
}

/// Synthetic usage that ends `DAYS` days after its start, in the folder.
fn usage_until(site: &Site, end: HourStart) -> String {
    let start = end.plus_hours(-24 * DAYS).to_string();
    let (days, out) = (DAYS.to_string(), site.path("synthetic"));
    let arguments = ["generate", "--days", &days, "--organizations", "4", "--start", &start, "--out", &out];
    let _ = program("datasets", &arguments).ok();
    site.path("synthetic/usage.csv")
}

async fn a_new_operator_comes_from_nothing_to_a_quota_that_follows_overrides(database: TestDatabase) {
    // 1. Install: programs, and the settings file of deploy beside them.
    let site = Site { folder: tempfile::tempdir().unwrap(), url: database.url.clone() };
    std::fs::copy(workspace_root().join("deploy/headroom.toml"), site.path("headroom.toml")).unwrap();
    let (code, checks) = site.doctor();
    assert!(code != 0 && !of_status(&checks, "fail").is_empty(), "there is nothing yet: {checks:?}");
    // 2. A token for each who asks.
    let (admin, scheduler) = (site.token("anna", "admin"), site.token("scheduler", "report"));
    // 3. Usage, and a model that learns from it.
    let end = present();
    let usage = usage_until(&site, end);
    let _ = site.run("datasets", &["ingest", "--format", "usage", &usage]).ok();
    let trained = site.run("train", &["--horizon", "4h", "--json"]).json();
    assert_eq!(trained[0]["promoted"], true, "{trained}");
    // 4. The service, and nodes.
    let config = site.path("headroom.toml");
    let service = Listening::start(&["--database", &database.url, "--config", &config, "--refresh-s", "1"]);
    assert_eq!(service.get(&format!("/quota?{OF_POOL}&hours=4")).0, 401, "nobody is let in without a token");
    for node in 0..40 {
        let body = json!({ "cluster": "demo", "gpu_model": "A100-SXM4-80GB", "gpus": 8 });
        let sent = service.send_as(&scheduler, "PUT", &format!("/v1/nodes/n{node}"), Some(&body)).unwrap();
        assert_eq!(sent.0, 200, "{sent:?}");
    }
    // 5. A quota, with its reasons.
    let quota = until(&service, &admin, &format!("/quota?{OF_POOL}&hours=4"), |quota| quota["capacity_gpus"] == 320.0);
    assert_eq!(quota["stage"], "fresh", "{quota}");
    // 6. What if a rack of ten nodes has to go?
    let path = format!("/v1/quota/what-if?{OF_POOL}&hours=4&capacity_change_gpus=-80");
    let (status, what_if) = service.get_as(&admin, &path);
    assert_eq!((status, &what_if["then"]["capacity_gpus"]), (200, &json!(240.0)), "{what_if}");
    // 7. A launch that no history knows.
    let launch = json!({
        "cluster": "demo", "gpu_model": "A100-SXM4-80GB", "kind": "reserve", "gpus": 16,
        "from": end.to_string(), "to": end.plus_hours(48).to_string(), "reason": "the launch on Tuesday",
    });
    let refused = service.send_as(&scheduler, "POST", "/v1/overrides", Some(&launch)).unwrap();
    assert_eq!(refused.0, 403, "{refused:?}");
    let made = service.send_as(&admin, "POST", "/v1/overrides", Some(&launch)).unwrap();
    assert_eq!((made.0, &made.1["by"]), (201, &json!("anna")), "{made:?}");
    let path = format!("/v1/quota/explain?{OF_POOL}&hours=4");
    let explained = until(&service, &admin, &path, |explained| explained["overrides"] != json!([]));
    assert_eq!(explained["overrides"][0]["reason"], "the launch on Tuesday");
    // 8. Is everything well? The service listens, and doctor says so.
    let (code, checks) = site.doctor();
    assert_eq!((code, of_status(&checks, "fail")), (0, Vec::<String>::new()), "{checks:?}");
    let promises = site.run("quota-service", &["promises", "--pool", "demo:A100-SXM4-80GB", "--json"]).json();
    assert_eq!(promises["promises"][0]["sold"], 0, "nothing was promised yet: {promises}");
    let ended = service.stop();
    assert_eq!(ended.code, 0, "{}", ended.stderr);
}

/// The answer to a path, asked again until it is as wanted, for half a minute.
fn until(service: &Listening, token: &str, path: &str, wanted: impl Fn(&Value) -> bool) -> Value {
    let mut last = (0, Value::Null);
    for _ in 0..300 {
        last = service.get_as(token, path);
        if last.0 == 200 && wanted(&last.1) {
            return last.1;
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    panic!("{path}: {last:?}")
}
