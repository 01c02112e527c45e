//! A service of a synthetic cluster whose usage ends with the last whole hour: its quotas are fresh by the real clock.

use chrono::{DateTime, SecondsFormat, Timelike, Utc};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::{Mutex, PoisonError};
use tempfile::TempDir;
use tests::{Listening, program};

pub const CLUSTER: &str = "demo";
pub const GPU_MODEL: &str = "A100-SXM4-80GB";
pub const QUOTA: &str = "/quota?cluster=demo&gpu_model=A100-SXM4-80GB&hours=4";

const SECONDS_PER_HOUR: i64 = vocab::SECONDS_PER_HOUR;
const HOURS: i64 = 21 * 24;
const NODES: usize = 16;

/// A database with usage and a run.
pub struct Prepared {
    pub database: String,
    pub folder: TempDir,
}

/// The databases that were made, by the hour in which their usage ends: training takes half a minute of a processor.
static MADE: Mutex<BTreeMap<i64, Vec<u8>>> = Mutex::new(BTreeMap::new());

fn usage(end: i64) -> String {
    let mut csv = "hour,cluster,gpu_model,organization,demand_gpus\n".to_owned();
    for hour in 0..HOURS {
        let at = DateTime::from_timestamp(end - SECONDS_PER_HOUR * (HOURS - hour), 0).unwrap();
        for (organization, base) in [("org-000", 20), ("org-001", 9)] {
            // Higher by day, and no two days quite alike.
            let demand = base + at.hour() / 6 + u32::try_from(hour * 7 % 5).unwrap();
            let at = at.to_rfc3339_opts(SecondsFormat::Secs, true);
            writeln!(csv, "{at},{CLUSTER},{GPU_MODEL},{organization},{demand}").unwrap();
        }
    }
    csv
}

/// The file of a database with usage up to a time, and a run.
fn made(end: i64) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let database = folder.path().join("headroom.db");
    let url = format!("sqlite://{}", database.display());
    let file = folder.path().join("usage.csv");
    std::fs::write(&file, usage(end)).unwrap();
    let of_file = ["ingest", "--format", "usage", file.to_str().unwrap(), "--capacity", "128"];
    let _ = program("datasets", &[&of_file[..], &["--database", &url]].concat()).ok();
    let _ = program("train", &["--horizon", "4h", "--database", &url]).ok();
    assert!(!folder.path().join("headroom.db-wal").exists(), "the file has all of it once its programs have ended");
    std::fs::read(database).unwrap()
}

pub fn prepare() -> Prepared {
    let folder = tempfile::tempdir().unwrap();
    let now = Utc::now().timestamp();
    let end = now - now.rem_euclid(SECONDS_PER_HOUR);
    let mut all = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    let file = folder.path().join("headroom.db");
    std::fs::write(&file, all.entry(end).or_insert_with(|| made(end))).unwrap();
    Prepared { database: format!("sqlite://{}", file.display()), folder }
}

impl Prepared {
    /// The path of a file with a new token of this role.
    pub fn token(&self, role: &str) -> String {
        let arguments = ["token", "create", "--name", role, "--role", role, "--database", &self.database];
        let made = program("quota-service", &arguments).ok();
        let file = self.folder.path().join(format!("{role}.token"));
        std::fs::write(&file, made.stdout).unwrap();
        file.to_str().unwrap().to_owned()
    }

    /// A service on a free port that answers quotas, without tokens.
    pub fn serve(&self) -> Listening {
        let service = Listening::start(&["--database", &self.database]);
        let _ = service.get_until(QUOTA, |status, _| status == 200);
        service
    }
}

fn sent(service: &Listening, method: &str, path: &str, body: &Value) -> Value {
    let (status, answer) = service.send(method, path, Some(body)).expect("the service answers");
    assert_eq!(status, 200, "{method} {path}: {answer}");
    answer
}

/// Nodes, a task of each class that runs, the outcome of a guarantee, and a request that is refused: what a service has to tell of after an hour's work.
pub fn work(service: &Listening) {
    for number in 0..NODES {
        let node = json!({ "cluster": CLUSTER, "gpu_model": GPU_MODEL, "gpus": 8 });
        sent(service, "PUT", &format!("/v1/nodes/n{number}"), &node);
    }
    for (id, class) in [("train-1", "hp"), ("sweep-1", "spot")] {
        let task = json!({
            "cluster": CLUSTER, "gpu_model": GPU_MODEL, "id": id, "organization": "org-000", "class": class,
            "gpus_per_pod": 2, "pods": 2,
        });
        assert_eq!(sent(service, "POST", "/v1/tasks", &task)["status"], "running", "{id}");
    }
    // Of before Headroom placed the pool: it counts the others itself.
    let ended_at = (Utc::now() - chrono::Duration::hours(1)).to_rfc3339_opts(SecondsFormat::Secs, true);
    let outcome = json!({
        "event_id": "e-1", "cluster": CLUSTER, "gpu_model": GPU_MODEL, "guarantee_hours": 1, "kind": "kept",
        "ended_at": ended_at,
    });
    sent(service, "POST", "/v1/outcomes", &json!({ "outcomes": [outcome] }));
    // A refused request is counted, too.
    let (status, answer) = service.get(&QUOTA.replace(CLUSTER, "missing"));
    assert_eq!(status, 404, "{answer}");
}
