//! `headroom-kubernetes run`: everything that the settings switch on, until it is told to stop.

use crate::cluster::watch::{self as watches, Shared};
use crate::cluster::{ConnectError, connect};
use crate::config::{Config, KueueMode};
use crate::headroom::{Headroom, HeadroomError, Offers, offers, report};
use crate::view::View;
use crate::view::facts::Reading;
use crate::{clock, health};
use command_line::{Exit, Failure, colours, say};
use placement::Policy;
use serving::listen::{self, ConnectionLimits};
use serving::signals::stopped;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer, fmt};
use vocab::ClusterName;

/// Of health and metrics: probes and a Prometheus.
const LIMITS: ConnectionLimits = ConnectionLimits { connections: 256, header: Duration::from_secs(30) };
/// How long open requests and writers may take after the program was told to stop.
const GRACE: Duration = Duration::from_secs(10);

/// Why the program ended.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error(transparent)]
    Connect(#[from] ConnectError),
    #[error(transparent)]
    Headroom(#[from] HeadroomError),
    #[error("cluster: {0}: set it to Headroom's name of this cluster")]
    Cluster(vocab::NameError),
    #[error("{0}")]
    Listen(String),
    #[error("the log: {0}")]
    Log(String),
}

impl From<RunError> for Failure {
    fn from(fault: RunError) -> Self {
        let exit = match &fault {
            RunError::Connect(ConnectError::Client { .. }) | RunError::Listen(_) => Exit::Unavailable,
            RunError::Connect(_) | RunError::Headroom(_) | RunError::Cluster(_) | RunError::Log(_) => {
                Exit::ConfigInvalid
            }
        };
        Self::new(exit, fault)
    }
}

/// Runs until the program is told to stop.
///
/// # Errors
/// There is no client of the Kubernetes API or of Headroom, or an address cannot be listened on.
pub async fn run(config: Config, json: bool) -> Result<(), RunError> {
    start_log(&config)?;
    let metrics = health::install();
    // 1. What is asked and told.
    let cluster = ClusterName::parse(&config.cluster).map_err(RunError::Cluster)?;
    let client = connect(&config).await?;
    let headroom = Headroom::new(&config)?;
    let shared = Shared::new(View::new(cluster, Reading::of(&config), Policy::GFS), clock::now);
    // 2. Who asks for health is answered before the cluster is read.
    let listener = health::listen(config.listen).await.map_err(RunError::Listen)?;
    let address = listener.local_addr().map_err(|fault| RunError::Listen(fault.to_string()))?;
    let (told, stop) = watch::channel(false);
    let router = health::router(metrics, Some(shared.synced()));
    let serving = tokio::spawn(listen::serve(listener, None, router, LIMITS, stop.clone()));
    announce(address, &config, json);
    // 3. Watch, ask, report.
    let watching = tokio::spawn(watches::run(client.clone(), shared.clone()));
    let config = Arc::new(config);
    let (sender, offers) = watch::channel(Arc::new(Offers::default()));
    let working = tokio::spawn(work(config.clone(), shared.clone(), headroom, sender, offers));
    // 4. Stop: writers first, which give their lease back.
    stopped().await;
    told.send_replace(true);
    working.abort();
    watching.abort();
    if tokio::time::timeout(GRACE, serving).await.is_err() {
        tracing::warn!("requests were still open after the grace period and are cut");
    }
    tracing::info!("stopped");
    Ok(())
}

/// What has to wait until all nodes and pods were told: a view of half a cluster would report half of its demand.
async fn work(
    config: Arc<Config>,
    shared: Arc<Shared>,
    headroom: Headroom,
    sender: watch::Sender<Arc<Offers>>,
    offers: watch::Receiver<Arc<Offers>>,
) {
    let mut synced = shared.synced();
    // The sender lives as long as `shared`.
    let _ = synced.wait_for(|synced| synced.is_whole()).await;
    shared.write().begin(shared.now());
    tell_size(&shared);
    let every = Duration::from_secs(config.poll_s);
    let polling = offers::poll(headroom.clone(), shared.clone(), config.cluster.clone(), every, sender);
    let reporting = async {
        if config.report {
            report::run(headroom, shared.clone(), offers.clone(), Duration::from_secs(config.report_s)).await;
        }
        std::future::pending::<()>().await;
    };
    tokio::join!(polling, reporting, gauges(&shared));
}

fn tell_size(shared: &Shared) {
    let view = shared.read();
    let (nodes, pods, pools) = (view.nodes().len(), view.pods().len(), view.pools().len());
    tracing::info!(nodes, pods, pools, "all nodes and pods with GPUs are known");
}

/// Tells what the cluster looks like to a Prometheus. Never returns.
async fn gauges(shared: &Shared) {
    loop {
        {
            let view = shared.read();
            metrics::gauge!("headroom_kubernetes_nodes").set(view.nodes().len() as f64);
            metrics::gauge!("headroom_kubernetes_pods").set(view.pods().len() as f64);
            metrics::gauge!("headroom_kubernetes_pods_without_model").set(view.without_model.len() as f64);
            for (model, pool) in view.pools() {
                let label = model.to_string();
                let gauge = |name: &'static str, gpus: f64| {
                    metrics::gauge!(name, "gpu_model" => label.clone()).set(gpus);
                };
                gauge("headroom_kubernetes_capacity_gpus", pool.allocatable_gpus() as f64);
                gauge("headroom_kubernetes_spot_gpus", pool.spot_gpus() as f64);
                gauge("headroom_kubernetes_hp_demand_gpus", view.demand_gpus(model).values().sum::<u64>() as f64);
            }
        }
        tokio::time::sleep(Duration::from_secs(5)).await;
    }
}

fn announce(address: SocketAddr, config: &Config, json: bool) {
    let mut modes = Vec::new();
    let named = [
        (config.extender, "extender"),
        (config.kueue_mode() != KueueMode::Off, "kueue"),
        (config.admission_check, "admission_check"),
        (config.priority_boost, "priority_boost"),
        (config.resource_quota, "resource_quota"),
        (config.evict, "evict"),
    ];
    modes.extend(named.into_iter().filter(|(is_on, _)| *is_on).map(|(_, name)| name));
    if json {
        say(serde_json::json!({ "listening": address.to_string(), "modes": modes }));
    } else {
        say(format_args!("listening on http://{address}"));
        if modes.is_empty() {
            say("no mode is on: the cluster is watched and nothing is written to it");
        } else {
            say(format_args!("modes: {}", modes.join(", ")));
        }
    }
}

/// # Errors
/// The filter is none, or a log was begun before.
pub fn start_log(config: &Config) -> Result<(), RunError> {
    let bad = |fault: &dyn std::fmt::Display| RunError::Log(fault.to_string());
    let filter = EnvFilter::try_new(&config.log).map_err(|fault| bad(&fault))?;
    let is_json = config.log_format == "json";
    let lines = fmt::layer().with_writer(std::io::stderr).with_ansi(colours() && !is_json);
    let lines = if is_json {
        lines.json().flatten_event(true).with_current_span(false).with_span_list(false).boxed()
    } else {
        lines.boxed()
    };
    tracing_subscriber::registry().with(lines.with_filter(filter)).try_init().map_err(|fault| bad(&fault))
}
