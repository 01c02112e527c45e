//! A real Prometheus, where it is installed.

use crate::free_address;
use serde_json::Value;
use std::fmt::Write;
use std::fs::File;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;

/// Set where a machine without Prometheus is a fault of the machine.
const REQUIRED: &str = "HEADROOM_PROMETHEUS_REQUIRED";
/// Attempts: between the choice of a port and its use another program may take it.
const ATTEMPTS: usize = 3;

/// A Prometheus with data of its own on a free loopback port; ended with this value.
pub struct Prometheus {
    child: Child,
    address: String,
    _folder: TempDir,
}

/// Whether the programs `prometheus` and `promtool` are installed. Where they are not, a line says that `what` was not tested.
///
/// # Panics
/// They are not, and `HEADROOM_PROMETHEUS_REQUIRED` is set.
#[must_use]
pub fn has_prometheus(what: &str) -> bool {
    let runs = |program| {
        let mut command = Command::new(program);
        command.arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|ended| ended.success())
    };
    let is_there = runs("prometheus") && runs("promtool");
    assert!(is_there || std::env::var_os(REQUIRED).is_none(), "{REQUIRED} is set, and there is no prometheus");
    if !is_there {
        println!("not run, since prometheus is not installed: {what}");
    }
    is_there
}

impl Prometheus {
    /// Starts one that scrapes `targets` (`HOST:PORT`, at `/metrics`) every second and evaluates `rule_files` as often, with a
    /// past of `blocks`, a text of OpenMetrics with times (empty for none). `None` where it is not installed, with a line on stderr.
    ///
    /// # Panics
    /// It does not start, or the blocks are no OpenMetrics; or `HEADROOM_PROMETHEUS_REQUIRED` is set and it is not installed.
    #[must_use]
    pub fn start(targets: &[&str], rule_files: &[&Path], blocks: &str) -> Option<Self> {
        if !has_prometheus("what asks a real Prometheus") {
            return None;
        }
        let folder = tempfile::tempdir().expect("a temporary folder");
        std::fs::write(folder.path().join("prometheus.yml"), settings(targets, rule_files))
            .expect("settings are written");
        if !blocks.is_empty() {
            make_blocks(folder.path(), blocks);
        }
        for _ in 0..ATTEMPTS {
            let address = free_address();
            let mut child = spawn(folder.path(), &address);
            if becomes_ready(&mut child, &address) {
                return Some(Self { child, address, _folder: folder });
            }
            let _ = child.kill();
            let _ = child.wait();
        }
        let log = std::fs::read_to_string(folder.path().join("log")).unwrap_or_default();
        panic!("prometheus does not start: {log}")
    }

    /// `http://HOST:PORT`
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The answer to a path.
    ///
    /// # Panics
    /// It does not answer with JSON.
    #[must_use]
    pub fn get(&self, path: &str) -> Value {
        let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
        let mut answer = agent.get(format!("{}{path}", self.url())).call().expect("prometheus answers");
        answer.body_mut().read_json().expect("it answers with JSON")
    }

    /// Labels and value of each series that an expression has now.
    ///
    /// # Panics
    /// The expression is refused.
    #[must_use]
    pub fn query(&self, expression: &str) -> Vec<(Value, f64)> {
        let answer = self.get(&format!("/api/v1/query?query={}", percent_encoded(expression)));
        assert_eq!(answer["status"], "success", "{expression}: {answer}");
        let value = |text: &Value| text.as_str().and_then(|text| text.parse().ok()).expect("values are numbers");
        match &answer["data"]["result"] {
            Value::Array(pair) if answer["data"]["resultType"] == "scalar" => vec![(Value::Null, value(&pair[1]))],
            result => {
                let series = result.as_array().expect("a list of series").iter();
                series.map(|one| (one["metric"].clone(), value(&one["value"][1]))).collect()
            }
        }
    }

    /// As [`query`](Self::query), asked again until `wanted` of it, for half a minute.
    ///
    /// # Panics
    /// It does not come to that.
    #[must_use]
    pub fn query_until(&self, expression: &str, wanted: impl Fn(&[(Value, f64)]) -> bool) -> Vec<(Value, f64)> {
        let mut last = Vec::new();
        for _ in 0..300 {
            last = self.query(expression);
            if wanted(&last) {
                return last;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        panic!("{expression}: {last:?}")
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        // It may have ended already, which is as good.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// JSON is YAML, and knows how to quote.
fn settings(targets: &[&str], rule_files: &[&Path]) -> String {
    let absolute = |path: &&Path| std::path::absolute(path).expect("there is a current folder");
    serde_json::json!({
        "global": { "scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s" },
        "rule_files": rule_files.iter().map(absolute).collect::<Vec<_>>(),
        "scrape_configs": [{ "job_name": "tested", "static_configs": [{ "targets": targets }] }],
    })
    .to_string()
}

fn make_blocks(folder: &Path, open_metrics: &str) {
    let file = folder.join("history.txt");
    std::fs::write(&file, open_metrics).expect("a file is written");
    let made = Command::new("promtool")
        .args(["tsdb", "create-blocks-from", "openmetrics"])
        .args([&file, &folder.join("data")])
        .output()
        .expect("promtool runs");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
}

fn spawn(folder: &Path, address: &str) -> Child {
    let argument = |name: &str, value: &Path| format!("--{name}={}", value.display());
    let log = File::create(folder.join("log")).expect("a file is made");
    Command::new("prometheus")
        .arg(argument("config.file", &folder.join("prometheus.yml")))
        .arg(argument("storage.tsdb.path", &folder.join("data")))
        .arg(format!("--web.listen-address={address}"))
        .args(["--storage.tsdb.retention.time=10y", "--log.level=warn"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log)
        .spawn()
        .expect("prometheus starts")
}

/// Waits for a minute: where much else runs, a start takes its time.
fn becomes_ready(child: &mut Child, address: &str) -> bool {
    for _ in 0..600 {
        if child.try_wait().expect("the child is known").is_some() {
            return false;
        }
        if ureq::get(format!("http://{address}/-/ready")).call().is_ok() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    false
}

fn percent_encoded(text: &str) -> String {
    text.bytes().fold(String::new(), |mut encoded, byte| {
        if byte.is_ascii_alphanumeric() {
            encoded.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(encoded, "%{byte:02X}");
        }
        encoded
    })
}
