//! The server as a program, until it is interrupted.

use anyhow::Context;
use clap::Parser;
use fake_kubernetes::{FakeKubernetes, Size};
use std::path::PathBuf;

/// A Kubernetes API server in memory, for trials and tests. It prints where it listens, and ends when it is interrupted.
#[derive(Debug, Parser)]
#[command(
    name = "fake-kubernetes",
    after_long_help = "Examples:\n  fake-kubernetes --kubeconfig-out kubeconfig --kueue\n  fake-kubernetes --port 6443 --nodes 5000 --pods 100000"
)]
struct Args {
    /// Port of the loopback; 0 takes a free one.
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// Where a kubeconfig with URL and token is written.
    #[arg(long, value_name = "FILE")]
    kubeconfig_out: Option<PathBuf>,
    /// Nodes it has from the start.
    #[arg(long, default_value_t = 0)]
    nodes: usize,
    /// Pods it has from the start.
    #[arg(long, default_value_t = 0)]
    pods: usize,
    /// Serve the kinds of Kueue, dynamic quota among them.
    #[arg(long)]
    kueue: bool,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    let fake =
        FakeKubernetes::start_on(args.port).await.with_context(|| format!("cannot listen on port {}", args.port))?;
    if args.kueue {
        fake.install_kueue();
        fake.install_dynamic_quota("orchestratedFlavors");
    }
    if args.nodes > 0 || args.pods > 0 {
        fake.load(&Size { nodes: args.nodes, pods: args.pods, ..Size::default() });
    }
    if let Some(path) = &args.kubeconfig_out {
        std::fs::write(path, fake.kubeconfig()).with_context(|| format!("cannot write {}", path.display()))?;
    }
    println!("listening on {}", fake.url);
    tokio::signal::ctrl_c().await.context("cannot wait for an interrupt")
}
