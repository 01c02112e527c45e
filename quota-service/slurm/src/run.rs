//! `headroom-slurm run`: looks, reports and, where the mode says so, limits, until a signal stops it.

use crate::accounting;
use crate::config::{Config, Mode, NoCluster};
use crate::lease::{self, Held};
use crate::publish;
use crate::shared::Shared;
use crate::site::Site;
use crate::view::{Reading, View};
use crate::{AGENT, PROGRAM};
use command_line::{Exit, Failure, say};
use connectors::health::{self, Ready};
use connectors::{Headroom, HeadroomError, Offers, ServiceSettings, clock, offers, report};
use serving::listen::{self, ConnectionLimits};
use serving::signals::stop_within;
use serving::standing::Standing;
use slurm_records::Accounts;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Limits of health and metrics: probes and a Prometheus.
const LIMITS: ConnectionLimits =
    ConnectionLimits { connections: 256, header: Duration::from_secs(30), write: Duration::from_secs(30) };
/// Time for open requests and the return of the lease after a stop signal.
const GRACE: Duration = Duration::from_secs(7);
/// End of the process after a stop signal.
const ENDS_WITHIN: Duration = Duration::from_secs(8);

/// Why the program ended with a failure.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// No client of quota-service.
    #[error(transparent)]
    Headroom(#[from] HeadroomError),
    /// No name of the cluster.
    #[error(transparent)]
    Cluster(#[from] NoCluster),
    /// The address of health and metrics cannot be used.
    #[error("{0}")]
    Listen(String),
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
            RunError::Listen(_) => Exit::Unavailable,
            RunError::BrokeOff(_) | RunError::Signals(_) => Exit::Failure,
            RunError::Headroom(_) | RunError::Cluster(_) | RunError::Log(_) => Exit::ConfigInvalid,
        };
        Self::new(exit, fault)
    }
}

/// Starts the log.
///
/// # Errors
/// A log was started before.
pub fn start_log(config: &Config) -> Result<(), RunError> {
    connectors::log::start(config.log.filter(), config.log_format).map_err(RunError::Log)
}

/// Client of the quota-service of the settings.
///
/// # Errors
/// The authority cannot be read.
pub fn headroom(config: &Config) -> Result<Headroom, HeadroomError> {
    Headroom::new(ServiceSettings {
        url: &config.headroom_url,
        token_file: config.headroom_token_file.get(),
        ca_file: config.headroom_ca_file.get(),
        agent: AGENT,
    })
}

/// Begins to answer health and metrics; answers the address, and the task that ends after `stop`.
///
/// # Errors
/// The address cannot be used.
pub async fn listen(
    config: &Config,
    ready: Ready,
    stop: watch::Receiver<bool>,
) -> Result<(SocketAddr, JoinHandle<()>), RunError> {
    let metrics = health::install(PROGRAM, env!("CARGO_PKG_VERSION"), &crate::help::HELP, &[]);
    let listener = health::listen(config.listen).await.map_err(RunError::Listen)?;
    let address = listener.local_addr().map_err(|fault| RunError::Listen(fault.to_string()))?;
    Ok((address, tokio::spawn(listen::serve(listener, None, health::router(metrics, ready), LIMITS, stop))))
}

/// Runs until a signal stops the program.
///
/// # Errors
/// There is no client of Headroom, or an address cannot be listened on.
pub async fn run(config: Config, json: bool) -> Result<(), RunError> {
    start_log(&config)?;
    let mut signalled = stop_within(ENDS_WITHIN).map_err(RunError::Signals)?;
    // 1. Clients.
    let cluster = config.cluster()?.clone();
    let headroom = headroom(&config)?;
    let site = Site::new(&config);
    // A look may be late twice before its view is stale.
    let stale_after = Duration::from_secs(3 * config.look_s + config.slurm_command_timeout_s);
    let shared = Shared::new(cluster, clock::now, stale_after);
    // 2. Health is answered before the cluster is read.
    let (stopper, stop) = watch::channel(false);
    let ready: Ready = {
        let shared = shared.clone();
        Arc::new(move || shared.ready())
    };
    let (address, serving) = listen(&config, ready, stop.clone()).await?;
    announce(address, &config, json);
    // 3. Look, poll, report, and write.
    let mut working = tokio::spawn(Parts { config: Arc::new(config), site, shared, headroom, stop }.work());
    // 4. Stop: the lease is given back, so that another connector writes at once.
    let broke_off = tokio::select! {
        _ = signalled.wait_for(|stops| *stops) => None,
        _ = &mut working => Some("the task that looks, reports and writes"),
    };
    stopper.send_replace(true);
    if let Some(what) = broke_off {
        return Err(RunError::BrokeOff(what));
    }
    if tokio::time::timeout(GRACE, async { (serving.await, working.await) }).await.is_err() {
        tracing::warn!("requests or writes were still open after the grace period: they are cut");
    }
    tracing::info!("stopped");
    Ok(())
}

/// Parts of the running program.
struct Parts {
    config: Arc<Config>,
    site: Site,
    shared: Arc<Shared>,
    headroom: Headroom,
    stop: watch::Receiver<bool>,
}

impl Parts {
    async fn work(self) {
        let (config, shared, mut stop) = (self.config.clone(), self.shared.clone(), self.stop.clone());
        let (sender, offers) = watch::channel(Arc::new(Offers::default()));
        let writing = self.begin_writing(&offers);
        let seconds = Duration::from_secs;
        let polling = offers::poll(
            self.headroom.clone(),
            shared.clone(),
            (config.cluster.to_string(), PROGRAM),
            seconds(config.poll_s),
            sender,
        );
        let looking = look_on(self.site.clone(), config.clone(), shared.clone());
        let reporting = async {
            if config.reporting {
                let every = seconds(config.report_s);
                // Dropped at the stop without a last report: the accounting has these outcomes for the next connector, too.
                let reports = report::run(
                    self.headroom.clone(),
                    shared.clone(),
                    offers.clone(),
                    PROGRAM,
                    every,
                    self.stop.clone(),
                );
                tokio::join!(reports, accounting::run(self.site.clone(), config.clone(), shared.clone()));
            } else {
                std::future::pending::<()>().await;
            }
        };
        tokio::select! {
            // First: a task that ends by the stop signal has not broken off.
            biased;
            _ = stop.wait_for(|stops| *stops) => {}
            ((), (), ()) = async { tokio::join!(polling, looking, reporting) } => return,
        }
        for task in writing {
            // A task that broke off has nothing more to end.
            let _ = task.await;
        }
    }

    /// Starts the lease and the writer, where the mode writes.
    fn begin_writing(&self, offers: &watch::Receiver<Arc<Offers>>) -> Vec<JoinHandle<()>> {
        if !self.config.mode.publishes() {
            return Vec::new();
        }
        let (sender, held) = watch::channel(Held::default());
        let who = (self.shared.cluster.clone(), self.config.identity(), Duration::from_secs(self.config.lease_s));
        let leasing = lease::run(self.headroom.clone(), who, sender, self.stop.clone());
        let (site, config, shared) = (self.site.clone(), self.config.clone(), self.shared.clone());
        let publishing = publish::run(site, config, shared, offers.clone(), held, self.stop.clone());
        vec![tokio::spawn(leasing), tokio::spawn(publishing)]
    }
}

/// One look at jobs and nodes.
///
/// # Errors
/// Slurm does not answer, or prints what cannot be read.
pub async fn look(
    site: &Site,
    config: &Config,
    accounts: &Accounts,
) -> Result<(View, Reading, slurm_records::nodes::Nodes), String> {
    let asked_at = clock::now();
    let (queue, nodes) = site.look().await.map_err(|fault| fault.to_string())?;
    let reading = Reading::of(config, accounts.clone());
    let mut view = View::of(&queue, &nodes, &reading, clock::now()).map_err(|fault| fault.to_string())?;
    view.look.asked_at = Some(asked_at);
    Ok((view, reading, nodes))
}

/// Accounts, where organizations are their parents.
///
/// # Errors
/// The accounting does not answer, or its list cannot be read.
pub async fn accounts(site: &Site, config: &Config) -> Result<Accounts, String> {
    if config.account_level == 0 {
        return Ok(Accounts::default());
    }
    let text = site.accounts().await.map_err(|fault| fault.to_string())?;
    Accounts::parse(&text, config.account_level).map_err(|fault| fault.to_string())
}

/// Looks again and again. Never returns.
async fn look_on(site: Site, config: Arc<Config>, shared: Arc<Shared>) {
    let standing = Standing::new();
    let mut known: Option<Accounts> = None;
    loop {
        let went = look_once(&site, &config, &shared, &mut known).await;
        metrics::gauge!("headroom_slurm_controller_up").set(f64::from(u8::from(went.is_ok())));
        standing.note(
            "",
            &went,
            |fault| tracing::warn!(fault, "jobs and nodes cannot be read: limits stay as they are"),
            |over| tracing::info!(lasted_s = over.lasted_s, "jobs and nodes are read again"),
        );
        tokio::time::sleep(Duration::from_secs(config.look_s)).await;
    }
}

async fn look_once(site: &Site, config: &Config, shared: &Shared, known: &mut Option<Accounts>) -> Result<(), String> {
    // Accounts that are new since are found where the accounting answers; else those of before are good enough.
    match accounts(site, config).await {
        Ok(accounts) => *known = Some(accounts),
        Err(fault) if known.is_none() => return Err(fault),
        Err(_) => {}
    }
    let (view, reading, nodes) = look(site, config, known.as_ref().unwrap_or(&Accounts::default())).await?;
    gauges(&view);
    let only = nodes.only_models(&reading.untyped).map_err(|fault| fault.to_string())?;
    shared.saw(view, Arc::new(reading), only);
    Ok(())
}

fn gauges(view: &View) {
    metrics::gauge!("headroom_slurm_jobs").set(view.jobs as f64);
    metrics::gauge!("headroom_slurm_nodes").set(view.nodes as f64);
    metrics::gauge!("headroom_slurm_untyped_jobs").set(view.untyped_waiting as f64);
    let now = clock::now();
    for (model, pool) in &view.pools {
        let label = model.to_string();
        let gauge = |name: &'static str, value: f64| metrics::gauge!(name, "gpu_model" => label.clone()).set(value);
        gauge("headroom_slurm_capacity_gpus", pool.capacity_gpus() as f64);
        gauge("headroom_slurm_idle_gpus", pool.idle_gpus() as f64);
        gauge("headroom_slurm_spot_gpus", pool.spot_gpus() as f64);
        let demand: u64 = pool.hp.values().map(|demand| demand.running_gpus + demand.waiting_gpus).sum();
        gauge("headroom_slurm_hp_demand_gpus", demand as f64);
        // Under hard promises nobody is evicted inside them: what they cost is this wait.
        let waits_s = pool.hp_waits_since.map_or(0, |since| now.since_s(since).max(0));
        gauge("headroom_slurm_hp_wait_seconds", waits_s as f64);
    }
}

/// Prints where the program listens, and what it writes.
pub fn announce(address: SocketAddr, config: &Config, json: bool) {
    if json {
        say(serde_json::json!({ "listening": address.to_string(), "mode": config.mode.to_string() }));
        return;
    }
    say(format_args!("listening on http://{address}"));
    if config.mode == Mode::Observe {
        say("mode observe: the cluster is watched and nothing is written to it");
    } else {
        let limited = config.limited().promised();
        let limited: Vec<String> = limited.iter().map(|(hours, name)| format!("{name}={}", hours.get())).collect();
        say(format_args!("mode {}: limits of {}", config.mode, limited.join(",")));
    }
}
