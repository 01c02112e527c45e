//! Start, listen, stop.

use crate::clock::Clock;
use crate::config::{Config, StartAt, aged_between_renewals};
use crate::error::ServiceError;
use crate::refresh;
use crate::state::{AppState, Options};
use crate::trace::{self, Traces};
use crate::{health, http, metrics, prices, promises, retention, retrain, source, start_times, without_database};
use axum::Router;
use command_line::{colours, say};
use metrics_exporter_prometheus::PrometheusHandle;
use serving::listen::Server;
use serving::signals::{reloads, stop_within};
use serving::tls;
use serving::tls::Tls;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use store::{Store, StoreError};
use tokio::net::{TcpListener, TcpSocket};
use tokio::task::JoinHandle;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, fmt};
use vocab::UnixSeconds;

/// Runs the service until SIGINT or SIGTERM. The programs that it starts read the same settings file.
///
/// # Errors
/// The address cannot be listened on, or the database cannot be opened.
pub async fn run(config: Config, settings_file: Option<PathBuf>, json: bool) -> Result<(), ServiceError> {
    let traces = Traces::of(&config).map_err(|detail| ServiceError::Traces { detail })?;
    start_log(&config, traces.as_ref())?;
    config.check_fallback().map_err(|detail| ServiceError::Fallback { detail })?;
    if let Some(cost) = aged_between_renewals(config.refresh_s) {
        tracing::warn!(
            refresh_s = config.refresh_s,
            "{cost}, where no report renews them earlier; set refresh_s to 600 or less"
        );
    }
    let (grace, render) = (Grace::of(&config), metrics::install());
    let mut stops = stop_within(grace.all).map_err(ServiceError::Signals)?;
    let mut early = None;
    // 1. Start. A signal ends the service once the requests for its last quotas have ended; nothing else is open yet.
    let started = tokio::select! {
        started = start(config, settings_file, json, render, &mut early) => Some(started?),
        _ = stops.wait_for(|stopped| *stopped) => None,
    };
    let Some(Started { state, mut server, mut working }) = started else {
        if let Some(mut server) = early {
            ended("requests for the last quotas", grace.requests, server.end()).await;
        }
        return Ok(());
    };
    // 2. Work.
    let (mut stop, core) = (state.core.stopping.subscribe(), state.core.clone());
    tokio::spawn(async move {
        let _ = stops.wait_for(|stopped| *stopped).await;
        core.stopping.send_replace(true);
    });
    // 3. Stop: no new connections, open requests may end, then the rest is cut.
    tokio::select! {
        _ = stop.wait_for(|stopped| *stopped) => {}
        // It never returns; a service that renews nothing any more must not go on as if it did.
        _ = &mut working.renewing => return Err(ServiceError::NotRenewing),
        // The database file is gone: no answer would be stored any more.
        lost = &mut working.proving => return Err(lost.map_or(ServiceError::NotRenewing, ServiceError::Store)),
    }
    // The writes too whose clients have hung up.
    let requests = async { (server.end().await, state.access.writes.ended().await) };
    if tokio::time::timeout(grace.requests, requests).await.is_err() {
        tracing::warn!("requests are still open after the grace period: they are cut");
    }
    drop(server);
    working.end(&state).await;
    if let Some(traces) = traces {
        traces.end().await;
    }
    tracing::info!("stopped");
    Ok(())
}

/// Part of the grace period for background work, the leases and the database.
const ENDS_WITHIN: Duration = Duration::from_secs(2);
/// The shortest grace period: a second for what is left of requests.
const SHORTEST_GRACE: Duration = Duration::from_secs(3);

/// Time for a stop, from the signal on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Grace {
    /// For open requests.
    requests: Duration,
    /// For everything: the rest is cut.
    all: Duration,
}

impl Grace {
    fn of(config: &Config) -> Self {
        let set = Duration::from_secs(config.shutdown_grace_s);
        let all = set.max(SHORTEST_GRACE);
        Self { requests: set.min(all.saturating_sub(ENDS_WITHIN)), all }
    }
}

/// A service that answers.
struct Started {
    state: AppState,
    server: Server,
    working: Working,
}

/// Opens the database, restores what was answered, begins to work, and answers. `early` has the server of the last quotas while
/// the database is waited for.
async fn start(
    config: Config,
    settings_file: Option<PathBuf>,
    json: bool,
    render: PrometheusHandle,
    early: &mut Option<Server>,
) -> Result<Started, ServiceError> {
    // 1. The files of the settings and the address, then the store and the clock: what is refused creates no database.
    let tls = config.tls().map_err(|detail| ServiceError::Tls { detail })?.map(Arc::new);
    let webhook = config.webhook().map_err(|detail| ServiceError::Webhook { detail })?;
    config.power().map_err(|detail| ServiceError::Power { detail })?;
    config.prices_file.get().map(prices::read).transpose().map_err(|detail| ServiceError::Prices { detail })?;
    config.sources().map_err(|detail| ServiceError::Prometheus { detail })?;
    check_database(&config).await?;
    let bound = bind(config.listen)?;
    let (store, bound) = open(&config, bound, tls.as_ref(), json, render.clone(), early).await?;
    let (clock, address) = (clock(&config, store.as_ref()).await?, config.listen);
    let state = AppState::new(Options::new(store, clock, config).webhook(webhook));
    if let Some(tls) = &tls {
        let ends = |end_s| ::metrics::gauge!("headroom_tls_certificate_end_timestamp_seconds").set(end_s as f64);
        tokio::spawn(tls::watch(tls.clone(), reloads(), ends));
        state.core.set_tls(tls.clone());
    }
    // 2. What was answered before a restart is answered again, at its age, while the first renewal runs.
    refresh::restore(&state.quotas).await?;
    let is_announced = matches!(bound, Bound::Listening(_));
    let listener = bound.listener(address)?;
    let address = listener.local_addr().map_err(|fault| ServiceError::Bind(address, fault))?;
    let working = begin(&state, address, settings_file).await?;
    // 3. Answer. Later requests on the connections of the early server meet the service with its database.
    if !is_announced {
        let as_of = state.core.clock.is_virtual().then(|| state.core.clock.now().to_string());
        announce(address, as_of, tls.is_some(), json);
    }
    let router = http::router(state.clone(), move || render.render());
    let server = match early.take() {
        Some(server) => {
            server.exchange(router);
            server
        }
        None => serving(&state.core.config, &listener, tls, router)?,
    };
    Ok(Started { state, server, working })
}

fn serving(
    config: &Config,
    listener: &std::net::TcpListener,
    tls: Option<Arc<Tls>>,
    router: Router,
) -> Result<Server, ServiceError> {
    let failed = |fault| ServiceError::Bind(config.listen, fault);
    let listener = TcpListener::from_std(listener.try_clone().map_err(failed)?).map_err(failed)?;
    Ok(Server::start(listener, tls, router, config.connection_limits()))
}

/// Refuses what needs a database that others wrote, before one is made.
async fn check_database(config: &Config) -> Result<(), ServiceError> {
    let needs_usage = matches!(config.as_of, StartAt::Latest);
    let needs_tokens = !config.listen.ip().is_loopback();
    if !needs_usage && store::sqlite_file(&config.database)?.is_none() {
        // The tokens are looked for once it is open: a server that does not answer is waited for there.
        return Ok(());
    }
    match store::check_existing(&config.database).await {
        Err(fault) if fault.is_no_database() && needs_usage => Err(fault.into()),
        Err(fault) if fault.may_be_made() && needs_tokens => Err(ServiceError::NoTokens(config.listen)),
        // Other faults are those of the opening.
        _ => Ok(()),
    }
}

/// Opens the database; where it is not there, the last quotas are answered at the bound address until it is, if there is a file
/// of them.
async fn open(
    config: &Config,
    bound: Bound,
    tls: Option<&Arc<Tls>>,
    json: bool,
    render: PrometheusHandle,
    early: &mut Option<Server>,
) -> Result<(Arc<dyn Store>, Bound), ServiceError> {
    let fault = match config.open_database().await {
        Ok(store) => return Ok((store, bound)),
        Err(fault) => fault,
    };
    if !without_database::passes(config, &fault) || config.fallback_file.is_none() || !config.as_of.is_real() {
        return Err(fault.into());
    }
    let listener = bound.listener(config.listen)?;
    let address = listener.local_addr().map_err(|fault| ServiceError::Bind(config.listen, fault))?;
    announce(address, None, tls.is_some(), json);
    *early = Some(serving(config, &listener, tls.cloned(), without_database::routes(config, &fault, render))?);
    Ok((without_database::reached(config).await?, Bound::Listening(listener)))
}

/// Background work of the service.
struct Working {
    watching: JoinHandle<()>,
    pulse: JoinHandle<()>,
    /// Ends where the database is lost.
    proving: JoinHandle<StoreError>,
    renewing: JoinHandle<()>,
    retraining: JoinHandle<()>,
    feeding: JoinHandle<()>,
    retaining: JoinHandle<()>,
    /// Reads alone: it may be cut at any moment.
    keeping: JoinHandle<()>,
    forecasting_starts: JoinHandle<()>,
}

/// Reads who may ask, takes the leases that are free, and begins to work.
async fn begin(state: &AppState, address: SocketAddr, settings_file: Option<PathBuf>) -> Result<Working, ServiceError> {
    if state.access.read_tokens().await? == 0 && !address.ip().is_loopback() {
        return Err(ServiceError::NoTokens(address));
    }
    state.core.leases.reached_at(state.core.config.advertised(address));
    state.renewals.update_leases().await?;
    let sources = state.core.config.sources().map_err(|detail| ServiceError::Prometheus { detail })?;
    let file = state.core.config.fallback_file.get().filter(|_| !state.core.clock.is_virtual());
    if let Some(file) = file {
        tokio::spawn(refresh::fallback::keep(state.quotas.clone(), state.access.clone(), file.to_path_buf()));
    }
    Ok(Working {
        watching: tokio::spawn(refresh::watch(state.renewals.clone(), state.access.clone())),
        pulse: tokio::spawn(health::pulse(state.core.clone(), state.health.clone())),
        proving: tokio::spawn(health::prove(state.core.clone(), state.health.clone())),
        renewing: tokio::spawn(refresh::run(state.renewals.clone())),
        retraining: tokio::spawn(retrain::run(state.renewals.clone(), settings_file)),
        feeding: tokio::spawn(source::run(state.renewals.clone(), sources)),
        retaining: tokio::spawn(retention::run(state.core.clone())),
        keeping: tokio::spawn(promises::run(state.quotas.clone())),
        forecasting_starts: tokio::spawn(start_times::run(state.start_times.clone())),
    })
}

impl Working {
    /// Ends it, and leaves the clusters to other services. What does not end is left: its writes are refused once another
    /// service has taken over.
    async fn end(self, state: &AppState) {
        let part = ENDS_WITHIN / 5;
        let Self { watching, pulse, proving, renewing, retraining, feeding, retaining, keeping, forecasting_starts } =
            self;
        keeping.abort();
        forecasting_starts.abort();
        pulse.abort();
        proving.abort();
        state.renewals.end();
        watching.abort();
        let giving_up_renewals = renewing.abort_handle();
        let giving_up = feeding.abort_handle();
        let giving_up_retention = retaining.abort_handle();
        let ending = async { (renewing.await, watching.await, feeding.await, retaining.await) };
        ended("renewals, feeds and retention", part, ending).await;
        giving_up_renewals.abort();
        giving_up.abort();
        giving_up_retention.abort();
        ended("what was learned of starts", part, state.start_times.save_all()).await;
        ended("writers of pools", part, state.engine.stop()).await;
        ended("the release of leases", part, state.core.leases.release(state.core.store.as_ref())).await;
        // A training that is under way ends with the service. One that broke off has nothing more to end.
        let rest = async { (retraining.await, state.core.store.close().await) };
        ended("the training and the database", part, rest).await;
    }
}

/// Waits for an end, but not for ever.
async fn ended<T>(what: &str, within: Duration, end: impl Future<Output = T>) {
    if tokio::time::timeout(within, end).await.is_err() {
        tracing::warn!(what, "it has not ended in time: it is cut");
    }
}

fn start_log(config: &Config, traces: Option<&Traces>) -> Result<(), ServiceError> {
    let bad = |fault: &dyn std::fmt::Display| ServiceError::Log { detail: fault.to_string() };
    let filter = config.log.filter();
    // Spans go to the collector, and make no line of the log longer.
    let no_spans = format!("{}=off", trace::TARGET).parse().map_err(|fault| bad(&fault))?;
    // A line that stderr does not take is lost; reporting it there would end the program.
    let lines = fmt::layer().with_writer(std::io::stderr).log_internal_errors(false);
    let lines = lines.with_ansi(colours() && !config.logs_json());
    let lines = if config.logs_json() {
        lines.json().flatten_event(true).with_current_span(false).with_span_list(false).boxed()
    } else {
        lines.boxed()
    };
    let mut layers = vec![lines.with_filter(filter.add_directive(no_spans)).boxed()];
    layers.extend(traces.map(|traces| traces.layer().boxed()));
    tracing_subscriber::registry().with(layers).try_init().map_err(|fault| bad(&fault))
}

/// The real clock, or the virtual one of `as_of`.
pub(crate) async fn clock(config: &Config, store: &dyn Store) -> Result<Clock, ServiceError> {
    Ok(match config.as_of {
        StartAt::Real => Clock::real(),
        StartAt::Latest => Clock::starting_at(after_newest_usage(store).await?),
        StartAt::Instant(start, _) => Clock::starting_at(start),
    })
}

async fn after_newest_usage(store: &dyn Store) -> Result<UnixSeconds, ServiceError> {
    let mut newest = None;
    for cluster in store.clusters().await? {
        newest = newest.max(store.usage_range(&cluster.name).await?.map(|(_, last)| last));
    }
    let none = || ServiceError::AsOf {
        detail: "latest needs usage, and the database has none: run datasets ingest".to_owned(),
    };
    newest.map(|hour| hour.plus_hours(1).instant()).ok_or_else(none)
}

/// The address of the service.
enum Bound {
    /// It is this service's, and refuses connections: nothing answers yet.
    Silent(TcpSocket),
    Listening(std::net::TcpListener),
}

/// Most connections that wait to be accepted; the system may allow fewer.
const BACKLOG: u32 = 4_096;

fn bind(address: SocketAddr) -> Result<Bound, ServiceError> {
    let bound = || {
        let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
        // A service that starts again right after its end has the address, too.
        socket.set_reuseaddr(true)?;
        socket.bind(address)?;
        Ok(Bound::Silent(socket))
    };
    bound().map_err(|fault| ServiceError::Bind(address, fault))
}

impl Bound {
    /// From now on connections are accepted. `address` is that of the settings.
    fn listener(self, address: SocketAddr) -> Result<std::net::TcpListener, ServiceError> {
        match self {
            Self::Silent(socket) => socket.listen(BACKLOG).and_then(TcpListener::into_std),
            Self::Listening(listener) => Ok(listener),
        }
        .map_err(|fault| ServiceError::Bind(address, fault))
    }
}

/// Says where the service listens, once it does, and the time of a virtual clock.
fn announce(address: SocketAddr, as_of: Option<String>, is_secure: bool, json: bool) {
    if json {
        let body = serde_json::json!({ "listening": address.to_string(), "as_of": as_of });
        say(body);
    } else {
        let scheme = if is_secure { "https" } else { "http" };
        say(format_args!("listening on {scheme}://{address}"));
        if let Some(now) = as_of {
            say(format_args!("virtual clock, starting at {now}: no result is stored"));
        }
    }
}
