//! A cluster of 5,000 nodes and 100,000 pods through the watches of the program, and through kube's own `reflector::store` of whole pods.
//!
//! The API server is the one for tests, in a process of its own (`cargo build --package fake-kubernetes --release` first); each of the two that
//! are compared runs in one of its own, too, so that memory of the other does not count. Prints, and asserts nothing.
//! `HEADROOM_BENCH_PODS`, `HEADROOM_BENCH_NODES` and `HEADROOM_BENCH_SECONDS` change its size.

use futures_util::StreamExt;
use k8s_openapi::api::core::v1::Pod;
use kube::runtime::{WatchStreamExt, reflector, watcher};
use kube::{Api, Client};
use kubernetes::cluster::connect;
use kubernetes::cluster::watch::{Shared, run};
use kubernetes::config::Config;
use kubernetes::view::View;
use kubernetes::view::facts::Reading;
use placement::Policy;
use serde_json::{Value, json};
use std::error::Error;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use vocab::ClusterName;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Pods that change at once, and how often: 1,000 a second.
const BATCH: usize = 100;
const EVERY: Duration = Duration::from_millis(100);
/// Ticks of a second in /proc/PID/stat, on every Linux that there is.
const TICKS: f64 = 100.0;

fn setting(name: &str, default: usize) -> usize {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// A process that is ended with this.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Process {
    fn start(command: &mut Command) -> Result<Self> {
        Ok(Self(command.stdout(Stdio::piped()).spawn()?))
    }

    /// The first line that it prints.
    fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        BufReader::new(self.0.stdout.take().ok_or("its output was read before")?).read_line(&mut line)?;
        Ok(line.trim().to_owned())
    }

    fn cpu_s(&self) -> Result<f64> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.0.id()))?;
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
        Ok((fields[11].parse::<f64>()? + fields[12].parse::<f64>()?) / TICKS)
    }
}

/// MiB of this process: now, or at most until now.
fn memory_mib(field: &str) -> Result<f64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find(|line| line.starts_with(field)).ok_or("no such field")?;
    Ok(line.split_whitespace().nth(1).ok_or("no number")?.parse::<f64>()? / 1_024.0)
}

/// One request on a connection of its own; answers the body.
fn ask(url: &str, method: &str, path: &str, token: &str, body: &str) -> Result<Value> {
    let address = url.trim_start_matches("http://");
    let mut stream = TcpStream::connect(address)?;
    let length = body.len();
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {token}\r\n\
         content-type: application/json\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
    )?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let (head, body) = answer.split_once("\r\n\r\n").ok_or("no answer")?;
    if head.starts_with("HTTP/1.1 200") { Ok(serde_json::from_str(body)?) } else { Err(answer.into()) }
}

/// The other two processes: what is watched, from nothing until it is whole; then until it is ended.
async fn watch(what: &str, kubeconfig: &str) -> Result<()> {
    let config = Config { kubeconfig: kubeconfig.parse().expect("it is a path"), ..Config::default() };
    let client = connect(&config).await?;
    let (before, start) = (memory_mib("VmRSS")?, Instant::now());
    let watching = if what == "ours" { ours(client, &config).await? } else { peer(client).await? };
    println!(
        "{}",
        json!({
            "sync_ms": start.elapsed().as_millis() as u64, "before_mib": before, "after_mib": memory_mib("VmRSS")?,
            "peak_mib": memory_mib("VmHWM")?, "objects": watching.1,
        })
    );
    watching.0.await?;
    Ok(())
}

type Watching = (tokio::task::JoinHandle<()>, usize);

async fn ours(client: Client, config: &Config) -> Result<Watching> {
    let view = View::new(ClusterName::parse("earth")?, Reading::of(config), Policy::GFS);
    let shared = Shared::new(view, connectors::clock::now);
    let watching = tokio::spawn(run(client, shared.clone()));
    shared.synced().wait_for(|synced| synced.is_whole()).await?;
    let pods = shared.read().pods().len();
    Ok((watching, pods))
}

async fn peer(client: Client) -> Result<Watching> {
    let (reader, writer) = reflector::store::<Pod>();
    let config = watcher::Config::default().page_size(500);
    let events = reflector(writer, watcher::watcher(Api::<Pod>::all(client), config)).default_backoff();
    let watching = tokio::spawn(events.for_each(|_| std::future::ready(())));
    reader.wait_until_ready().await?;
    let pods = reader.state().len();
    // The store lives as long as this process.
    std::mem::forget(reader);
    Ok((watching, pods))
}

/// Lets so many pods change, 1,000 a second: answers CPU seconds of the watcher by event, and its share of a core.
fn changes(watcher: &Process, url: &str, token: &str, seconds: usize) -> Result<(f64, f64)> {
    let mut list = ask(url, "GET", &format!("/api/v1/pods?limit={BATCH}"), token, "")?;
    let mut pods: Vec<Value> = list["items"].as_array_mut().map(std::mem::take).ok_or("no pods")?;
    let (mut sent, start, cpu) = (0, Instant::now(), watcher.cpu_s()?);
    let until = Duration::from_secs(seconds as u64);
    while start.elapsed() < until {
        let next = start + EVERY * u32::try_from(sent / BATCH + 1)?;
        for pod in &mut pods {
            pod["apiVersion"] = "v1".into();
            pod["kind"] = "Pod".into();
            let at = format!("2026-01-01T{:02}:{:02}:00Z", sent / BATCH / 60 % 24, sent / BATCH % 60);
            pod["metadata"]["annotations"]["headroom.dev/checkpointed-at"] = at.into();
        }
        ask(url, "POST", "/fake/objects", token, &Value::from(pods.clone()).to_string())?;
        sent += pods.len();
        std::thread::sleep(next.saturating_duration_since(Instant::now()));
    }
    let (took, cpu) = (start.elapsed().as_secs_f64(), watcher.cpu_s()? - cpu);
    println!("    {sent} changes in {took:.1} s: {:.0} a second", sent as f64 / took);
    Ok((cpu / sent as f64, cpu / took))
}

fn program() -> Result<PathBuf> {
    let own = std::env::current_exe()?;
    let folder = own.parent().and_then(Path::parent).ok_or("this program is in no folder")?;
    let program = folder.join("fake-kubernetes");
    if program.exists() { Ok(program) } else { Err("cargo build --package fake-kubernetes --release first".into()) }
}

fn compare() -> Result<()> {
    let (nodes, pods) = (setting("HEADROOM_BENCH_NODES", 5_000), setting("HEADROOM_BENCH_PODS", 100_000));
    let seconds = setting("HEADROOM_BENCH_SECONDS", 10);
    let folder = tempfile::tempdir()?;
    let kubeconfig = folder.path().join("kubeconfig");
    let mut server = Process::start(Command::new(program()?).arg("--kubeconfig-out").arg(&kubeconfig))?;
    let line = server.line()?;
    let url = line.strip_prefix("listening on ").ok_or("the server does not listen")?;
    let text = std::fs::read_to_string(&kubeconfig)?;
    let token = text.lines().find_map(|line| line.trim().strip_prefix("token: ")).ok_or("no token")?;
    // As many GPUs as pods: a node that is overfull is another case.
    let size = json!({ "nodes": nodes, "pods": pods, "gpus_per_node": pods.div_ceil(nodes.max(1)), "namespaces": 100 });
    let start = Instant::now();
    ask(url, "POST", "/fake/cluster", token, &size.to_string())?;
    println!("{nodes} nodes, {pods} pods, made in {:.1} s", start.elapsed().as_secs_f64());
    let mut figures = Vec::new();
    for what in ["ours", "peer"] {
        let mut watcher =
            Process::start(Command::new(std::env::current_exe()?).args(["watch", what]).arg(&kubeconfig))?;
        let answer: Value = serde_json::from_str(&watcher.line()?)?;
        let number = |field: &str| answer[field].as_f64().unwrap_or(0.0);
        let growth = number("after_mib") - number("before_mib");
        let bytes = growth * 1_048_576.0 / number("objects");
        println!("{what}: {} pods in {:.1} s", number("objects"), number("sync_ms") / 1e3);
        println!(
            "    memory {:.0} MiB before, {:.0} after, {:.0} at most: {bytes:.0} bytes for each pod",
            number("before_mib"),
            number("after_mib"),
            number("peak_mib")
        );
        let (by_event, share) = changes(&watcher, url, token, seconds)?;
        println!("    {:.0} us of CPU for each change, {:.1} % of a core", by_event * 1e6, share * 100.0);
        figures.push([number("sync_ms"), growth, by_event]);
    }
    let ratio = |at: usize| figures[1][at] / figures[0][at];
    println!("peer / ours: sync {:.2}, memory {:.2}, CPU of a change {:.2}", ratio(0), ratio(1), ratio(2));
    Ok(())
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.as_slice() {
        [word, what, kubeconfig] if word == "watch" => {
            tokio::runtime::Runtime::new()?.block_on(watch(what, kubeconfig))
        }
        _ => compare(),
    }
}
