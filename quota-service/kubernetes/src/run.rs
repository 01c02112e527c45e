//! `headroom-kubernetes run`: all modes that the settings switch on, until a signal stops it.

use crate::cluster::watch::{self as watches, Shared};
use crate::cluster::{ConnectError, connect};
use crate::config::{Config, NoCluster};
use crate::events::Events;
use crate::extender::{ExtenderError, ExtenderState, Listening};
use crate::headroom::{self, Headroom, HeadroomError, Offers, PROGRAM, offers, report};
use crate::notice::NoticeError;
use crate::publish::Wanted;
use crate::view::View;
use crate::view::facts::Reading;
use crate::{admission, boost, evict, health, lead, notice, publish};
use command_line::{Exit, Failure, say};
use connectors::clock;
use kube::Client;
use placement::Policy;
use serving::listen::{self, ConnectionLimits};
use serving::signals::{reloads, stop_within};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use vocab::MilliGpus;

/// Limits of health and metrics: probes and a Prometheus.
const LIMITS: ConnectionLimits =
    ConnectionLimits { connections: 256, header: Duration::from_secs(30), write: Duration::from_secs(30) };
/// Time for open requests and writers after a stop signal.
const GRACE: Duration = Duration::from_secs(7);
/// End of the process after a stop signal: before Kubernetes kills it, after 10 s (`terminationGracePeriodSeconds` of the watchdog).
const ENDS_WITHIN: Duration = Duration::from_secs(8);

/// Why the program ended with a failure.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// No client of the Kubernetes API.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// No client of quota-service.
    #[error(transparent)]
    Headroom(#[from] HeadroomError),
    /// No name of the cluster.
    #[error(transparent)]
    Cluster(#[from] NoCluster),
    /// Notices of evictions cannot be given.
    #[error(transparent)]
    Notice(#[from] NoticeError),
    /// The address of health and metrics cannot be used.
    #[error("{0}")]
    Listen(String),
    /// The extender cannot listen.
    #[error(transparent)]
    Extender(#[from] ExtenderError),
    /// The log cannot start.
    #[error("the log: {0}")]
    Log(String),
    /// Signals cannot be received.
    #[error("signals cannot be received: {0}")]
    Signals(std::io::Error),
    /// A task ended by itself.
    #[error("{0} broke off: read the log for the cause, and start the program again")]
    BrokeOff(&'static str),
}

impl From<RunError> for Failure {
    fn from(fault: RunError) -> Self {
        let exit = match &fault {
            RunError::Connect(ConnectError::Client { .. })
            | RunError::Listen(_)
            | RunError::Extender(ExtenderError::Bind { .. }) => Exit::Unavailable,
            RunError::BrokeOff(_) | RunError::Signals(_) => Exit::Failure,
            RunError::Extender(_) | RunError::Notice(_) => Exit::ConfigInvalid,
            RunError::Connect(_) | RunError::Headroom(_) | RunError::Cluster(_) | RunError::Log(_) => {
                Exit::ConfigInvalid
            }
        };
        Self::new(exit, fault)
    }
}

/// Runs until a signal stops the program.
///
/// # Errors
/// There is no client of the Kubernetes API or of Headroom, or an address cannot be listened on.
pub async fn run(config: Config, json: bool) -> Result<(), RunError> {
    start_log(&config)?;
    let metrics = health::install();
    let mut signalled = stop_within(ENDS_WITHIN).map_err(RunError::Signals)?;
    if config.evict {
        notice::check(&config)?;
    }
    // 1. Clients.
    let cluster = config.cluster()?.clone();
    let client = connect(&config).await?;
    let headroom = headroom::client(&config)?;
    let shared = Shared::new(View::new(cluster, Reading::of(&config), Policy::GFS), clock::now);
    // 2. Health is answered before the cluster is read.
    let listener = health::listen(config.listen).await.map_err(RunError::Listen)?;
    let address = listener.local_addr().map_err(|fault| RunError::Listen(fault.to_string()))?;
    let extender = if config.extender { Some(Listening::bind(&config).await?) } else { None };
    let extends = extender.as_ref().and_then(|listening| listening.address().ok());
    let (stopper, stop) = watch::channel(false);
    let router = health::router(metrics, Some(shared.clone()));
    let serving = tokio::spawn(listen::serve(listener, None, router, LIMITS, stop.clone()));
    announce(address, extends, &config, json);
    // 3. Watch, poll, report, and run the modes.
    let mut watching = tokio::spawn(watches::run(client.clone(), shared.clone()));
    let parts = Parts { config: Arc::new(config), client, shared, headroom, extender, stop };
    let mut working = tokio::spawn(parts.work());
    // 4. Stop: the lease is given back, so that another replica writes at once.
    let broke_off = tokio::select! {
        _ = signalled.wait_for(|stops| *stops) => None,
        // Neither ends by itself: a program without one of them must not run on.
        _ = &mut watching => Some("the watch of the cluster"),
        _ = &mut working => Some("the task that polls, reports and writes"),
    };
    stopper.send_replace(true);
    if let Some(what) = broke_off {
        return Err(RunError::BrokeOff(what));
    }
    if tokio::time::timeout(GRACE, async { (serving.await, working.await) }).await.is_err() {
        tracing::warn!("requests or writes were still open after the grace period: they are cut");
    }
    watching.abort();
    tracing::info!("stopped");
    Ok(())
}

/// Parts of the running program.
struct Parts {
    config: Arc<Config>,
    client: Client,
    shared: Arc<Shared>,
    headroom: Headroom,
    extender: Option<Listening>,
    stop: watch::Receiver<bool>,
}

impl Parts {
    /// Waits until all nodes and pods are known, since a view of half a cluster would report half of its demand; then begins. Returns
    /// after a stop signal, when all writers have ended.
    async fn work(mut self) {
        let (mut synced, mut stop) = (self.shared.synced(), self.stop.clone());
        tokio::select! {
            _ = synced.wait_for(|synced| synced.is_whole()) => {}
            _ = stop.wait_for(|stops| *stops) => return,
        }
        self.shared.write().begin(self.shared.now());
        tell_size(&self.shared);
        let (sender, offers) = watch::channel(Arc::new(Offers::default()));
        let mut writing = self.begin_writing(&offers);
        writing.extend(self.begin_extending(&offers));
        let logging = publish::hours::log_changes(self.config.clone(), offers.clone(), self.stop.clone());
        writing.push(tokio::spawn(logging));
        let every = Duration::from_secs(self.config.poll_s);
        let cluster = (self.config.cluster.to_string(), PROGRAM);
        let polling = offers::poll(self.headroom.clone(), self.shared.clone(), cluster, every, sender);
        let reporting = Duration::from_secs(self.config.report_s);
        if self.config.reporting {
            let (headroom, shared, stop) = (self.headroom.clone(), self.shared.clone(), self.stop.clone());
            let reports = report::run(headroom, shared, offers.clone(), PROGRAM, reporting, stop);
            writing.push(tokio::spawn(reports));
        }
        let passing = async {
            if self.config.reporting {
                std::future::pending::<()>().await;
            }
            let_pass(&self.shared, reporting).await;
        };
        tokio::select! {
            // First: a task that ends by the stop signal has not broken off.
            biased;
            _ = stop.wait_for(|stops| *stops) => {}
            ((), (), ()) = async { tokio::join!(polling, passing, gauges(&self.shared)) } => return,
            () = any_ends(&mut writing) => return,
        }
        for task in writing {
            // A task that broke off has nothing more to end.
            let _ = task.await;
        }
    }

    /// Starts the leader election and the writers, if any mode writes.
    fn begin_writing(&self, offers: &watch::Receiver<Arc<Offers>>) -> Vec<JoinHandle<()>> {
        if !self.config.writes() {
            return Vec::new();
        }
        let events = Events::start(self.client.clone(), &self.config, self.stop.clone());
        self.shared.set_events(events.clone());
        let (lead, leading) = lead::run(self.client.clone(), &self.config, self.stop.clone());
        let mut tasks = vec![leading];
        if self.config.publishes() {
            let (sender, wanted) = watch::channel(Arc::new(Wanted::default()));
            tasks.push(tokio::spawn(publish::want(
                self.config.clone(),
                self.shared.clone(),
                offers.clone(),
                sender,
                self.stop.clone(),
            )));
            let (client, config, stop) = (self.client.clone(), self.config.clone(), self.stop.clone());
            tasks.push(tokio::spawn(publish::run(client, config, wanted, lead.clone(), events, stop)));
        }
        macro_rules! begin {
            ($is_on:ident, $run:path) => {
                if self.config.$is_on {
                    let (client, config, shared) = (self.client.clone(), self.config.clone(), self.shared.clone());
                    let inputs = (offers.clone(), lead.clone(), self.stop.clone());
                    tasks.push(tokio::spawn($run(client, config, shared, inputs.0, inputs.1, inputs.2)));
                }
            };
        }
        begin!(admission_check, admission::run);
        begin!(priority_boost, boost::run);
        begin!(evict, evict::run);
        tasks
    }

    /// Answers the scheduler. Before the cluster is known it gets no connection, and goes on without us.
    fn begin_extending(&mut self, offers: &watch::Receiver<Arc<Offers>>) -> Option<JoinHandle<()>> {
        let listening = self.extender.take()?;
        let state = ExtenderState::new(&self.config, self.shared.clone(), offers.clone(), Arc::new(clock::now));
        let observer = state.clone();
        self.shared.tell(move |uid, pod| observer.seen(uid, pod));
        // Pods that changed between the read of the view and the first event.
        state.renew();
        Some(tokio::spawn(listening.serve(state, reloads(), self.stop.clone())))
    }
}

/// Returns when one of the tasks has ended.
async fn any_ends(tasks: &mut [JoinHandle<()>]) {
    if tasks.is_empty() {
        return std::future::pending().await;
    }
    let _ = futures_util::future::select_all(tasks.iter_mut()).await;
}

/// Without reports: promises still end, and their rows and outcomes are dropped. Never returns.
async fn let_pass(shared: &Shared, every: Duration) {
    loop {
        {
            let mut view = shared.write();
            view.pass_to(shared.now());
            view.take_rows();
            view.take_outcomes();
        }
        tokio::time::sleep(every).await;
    }
}

fn tell_size(shared: &Shared) {
    let view = shared.read();
    let (nodes, pods, pools) = (view.nodes().len(), view.pods().len(), view.pools().len());
    tracing::info!(nodes, pods, pools, "all nodes and pods with GPUs are known");
}

/// Sets the gauges of the cluster. Never returns.
async fn gauges(shared: &Shared) {
    loop {
        {
            let view = shared.read();
            let blind_s = shared.blind_for().map_or(0.0, |(_, lasts)| lasts.as_secs_f64());
            metrics::gauge!("headroom_kubernetes_view_blind_seconds").set(blind_s);
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
                let demand = view.demand(model).into_values().fold(MilliGpus::ZERO, MilliGpus::saturating_add);
                gauge("headroom_kubernetes_hp_demand_gpus", demand.as_gpus());
            }
        }
        tokio::time::sleep(Duration::from_secs(5)).await;
    }
}

fn announce(address: SocketAddr, extender: Option<SocketAddr>, config: &Config, json: bool) {
    let mut modes = Vec::new();
    let named = [
        (config.extender, "extender"),
        (config.kueue.is_on(), "kueue"),
        (config.admission_check, "admission_check"),
        (config.priority_boost, "priority_boost"),
        (config.resource_quota, "resource_quota"),
        (config.evict, "evict"),
    ];
    modes.extend(named.into_iter().filter(|(is_on, _)| *is_on).map(|(_, name)| name));
    if json {
        let extender = extender.map(|address| address.to_string());
        say(serde_json::json!({ "listening": address.to_string(), "extender": extender, "modes": modes }));
    } else {
        say(format_args!("listening on http://{address}"));
        if let Some(address) = extender {
            say(format_args!("the scheduler extender listens on {address}"));
        }
        if modes.is_empty() {
            say("no mode is on: the cluster is watched and nothing is written to it");
        } else {
            say(format_args!("modes: {}", modes.join(", ")));
        }
    }
}

/// Starts the log.
///
/// # Errors
/// A log was started before.
pub fn start_log(config: &Config) -> Result<(), RunError> {
    // The client of the Kubernetes API logs each failed request as an error: in an outage a line a second, beside ours.
    connectors::log::start(config.log.filter_after("kube_client=off"), config.log_format).map_err(RunError::Log)
}

/// Runs the watchdog; with `once`, until the heartbeat beats or is old.
///
/// # Errors
/// There is no client, or, with `once`, the check failed.
pub async fn watchdog(config: Config, once: bool, json: bool) -> Result<(), Failure> {
    start_log(&config)?;
    let metrics = health::install();
    let client = connect(&config).await.map_err(RunError::from)?;
    let (stopper, stop) = watch::channel(false);
    if once {
        let lowered = crate::watchdog::run(client, &config, true, stop).await;
        let lowered = lowered.map_err(|fault| Failure::new(Exit::Unavailable, fault))?;
        if json {
            say(serde_json::json!({ "lowered": lowered }));
        } else {
            say(format_args!("{lowered} objects were lowered"));
        }
        return Ok(());
    }
    let listener = health::listen(config.listen).await.map_err(RunError::Listen)?;
    let address = listener.local_addr().map_err(|fault| RunError::Listen(fault.to_string()))?;
    announce(address, None, &config, json);
    let serving = tokio::spawn(listen::serve(listener, None, health::router(metrics, None), LIMITS, stop.clone()));
    let mut signalled = stop_within(ENDS_WITHIN).map_err(RunError::Signals)?;
    tokio::spawn(async move {
        let _ = signalled.wait_for(|stops| *stops).await;
        stopper.send_replace(true);
    });
    let looked = crate::watchdog::run(client, &config, false, stop).await;
    looked.map_err(|fault| Failure::new(Exit::Unavailable, fault))?;
    let _ = tokio::time::timeout(GRACE, serving).await;
    Ok(())
}
