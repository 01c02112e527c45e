//! `headroom-kubernetes` as an operator runs it, between a Kubernetes API server in memory and a service that answers quotas.

mod gitops;
mod installed;
mod joined;
mod kubectl;
mod outage;
mod quotas;

use fake_kubernetes::{FakeKubernetes, Size, node, pod};
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tests::{Listening, Ran, program_with};

pub const MODEL: &str = "NVIDIA-A100-SXM4-80GB";
pub const CLUSTER: &str = "demo";
/// How long is waited for what has to come.
const PATIENCE: Duration = Duration::from_mins(1);

/// A cluster, and a folder with what reaches it.
pub struct Site {
    pub cluster: FakeKubernetes,
    pub folder: TempDir,
}

impl Site {
    /// A cluster of so many nodes of eight GPUs of one model, without pods.
    pub async fn new(nodes: usize) -> Self {
        let cluster = FakeKubernetes::start().await;
        let size = Size { nodes, pods: 0, models: vec![MODEL.to_owned()], ..Size::default() };
        cluster.load(&size);
        for number in 0..nodes {
            cluster.put(node(number, &size));
        }
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("kubeconfig"), cluster.kubeconfig()).unwrap();
        Self { cluster, folder }
    }

    pub fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }

    /// The flags that every command takes.
    pub fn flags(&self) -> Vec<String> {
        ["--cluster", CLUSTER, "--kubeconfig", &self.path("kubeconfig")].map(str::to_owned).to_vec()
    }

    pub fn ran(&self, arguments: &[&str], variables: &[(&str, &str)]) -> Ran {
        let flags = self.flags();
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        program_with("headroom-kubernetes", &[arguments, &flags].concat(), variables)
    }

    /// A replica that runs, with these settings beside.
    pub fn connector(&self, command: &str, headroom: &str, variables: &[(&str, &str)]) -> Listening {
        let flags = self.flags();
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        let own = [command, "--listen", "127.0.0.1:0", "--extender-listen", "127.0.0.1:0", "--json"];
        let all = [&own[..], &["--headroom-url", headroom], &flags].concat();
        let quick = [("HEADROOM_POLL_S", "1"), ("HEADROOM_REPORT_S", "1"), ("HEADROOM_PUBLISH_S", "1")];
        Listening::of("headroom-kubernetes", &all, &[&quick, variables].concat())
    }

    /// Puts pods of one GPU on the nodes, one after the other; spot ones are promised an hour.
    pub fn pods(&self, numbers: std::ops::Range<usize>, is_spot: bool) {
        for number in numbers {
            self.cluster.put(self.pod(number, is_spot));
        }
    }

    pub fn pod(&self, number: usize, is_spot: bool) -> Value {
        let size = Size { nodes: self.cluster.list("nodes").len(), models: vec![MODEL.to_owned()], ..Size::default() };
        let mut made = pod(number, &Size { spot_each: usize::from(is_spot), ..size });
        let bound = chrono::Utc::now().to_rfc3339_opts(chrono::SecondsFormat::Secs, true);
        made["metadata"]["creationTimestamp"] = json!(bound);
        for condition in made["status"]["conditions"].as_array_mut().unwrap() {
            condition["lastTransitionTime"] = json!(bound);
        }
        if is_spot {
            made["metadata"]["annotations"] = json!({ "headroom.dev/guarantee-hours": "1" });
        }
        made
    }
}

/// Waits until something is so, and answers it.
pub async fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    while start.elapsed() < PATIENCE {
        if let Some(found) = look() {
            return found;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("{what}: not within {} s", PATIENCE.as_secs())
}
