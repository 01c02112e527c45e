//! How long the view is blind after an outage of the API server, beside kube's own watcher with its own pauses.
//!
//! `cargo bench -p kubernetes --bench recovery --profile dev`; HEADROOM_BENCH_OUTAGES sets the outages, in seconds.

use fake_kubernetes::FakeKubernetes;
use futures_util::StreamExt;
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client};
use kubernetes::cluster::connect;
use kubernetes::cluster::slim::Node;
use kubernetes::cluster::watch::{Shared, run};
use kubernetes::config::Config;
use kubernetes::view::View;
use kubernetes::view::facts::Reading;
use placement::Policy;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use vocab::{ClusterName, UnixSeconds};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

fn node(number: usize) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": { "name": format!("n{number}"), "labels": { "nvidia.com/gpu.product": "A100" } },
        "status": { "allocatable": { "nvidia.com/gpu": "8" }, "conditions": [{ "type": "Ready", "status": "True" }] },
    })
}

/// Seconds until something is so.
async fn until(mut is_so: impl FnMut() -> bool) -> f64 {
    let start = Instant::now();
    while !is_so() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    start.elapsed().as_secs_f64()
}

async fn compare(outages_s: &[u64]) -> Result<()> {
    let fake = FakeKubernetes::start().await;
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("kubeconfig");
    std::fs::write(&file, fake.kubeconfig())?;
    let config = Config { kubeconfig: file.to_str().ok_or("a path is text")?.parse()?, ..Config::default() };
    let client: Client = connect(&config).await?;
    let view = View::new(ClusterName::parse("earth")?, Reading::of(&config), Policy::GFS);
    let shared = Shared::new(view, || UnixSeconds::new(1_793_600_000));
    let ours = tokio::spawn(run(client.clone(), shared.clone()));
    let seen = Arc::new(AtomicUsize::new(0));
    let counter = seen.clone();
    let events = watcher::watcher(Api::<Node>::all(client), watcher::Config::default()).default_backoff();
    let peer = tokio::spawn(events.for_each(move |event| {
        counter.fetch_add(usize::from(event.is_ok()), Ordering::Relaxed);
        std::future::ready(())
    }));
    fake.put(node(0));
    until(|| shared.read().nodes().len() == 1 && seen.load(Ordering::Relaxed) > 0).await;
    println!("outage   blind after its end: ours, kube's watcher");
    for (number, outage_s) in outages_s.iter().enumerate() {
        fake.go_down();
        tokio::time::sleep(Duration::from_secs(*outage_s)).await;
        let (is_stale, before) = (shared.is_stale(), seen.load(Ordering::Relaxed));
        fake.put(node(number + 1));
        fake.come_up();
        let (ours, peer) = tokio::join!(
            until(|| shared.read().nodes().len() == number + 2 && shared.blind_for().is_none()),
            until(|| seen.load(Ordering::Relaxed) > before)
        );
        println!(
            "{outage_s:>5} s   {ours:>6.2} s, {peer:>6.2} s{}",
            if is_stale { "   (the view was stale)" } else { "" }
        );
    }
    ours.abort();
    peer.abort();
    Ok(())
}

fn main() -> Result<()> {
    let outages = std::env::var("HEADROOM_BENCH_OUTAGES").unwrap_or_else(|_| "3,31,120".to_owned());
    let outages: Vec<u64> = outages.split(',').map(str::parse).collect::<std::result::Result<_, _>>()?;
    tokio::runtime::Runtime::new()?.block_on(compare(&outages))
}
