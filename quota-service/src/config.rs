//! The settings of the service.

mod files;
mod period;
mod values;

pub use period::aged_between_renewals;
pub use values::{
    ClusterNames, EventKinds, FilePath, HostNames, LogFilter, LogFormat, OptionalUrl, StartAt, WebhookFormat,
};

use crate::retention;
use crate::retrain::{self, Period};
use crate::trace;
use command_line::BadValue;
use serde::{Deserialize, Serialize};
use serving::listen::ConnectionLimits;
use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use store::{Backend, Store, StoreError};
use vocab::ClusterName;
use wire::bounds::MOST_LEASE_S;

const LAST_HOUR_OF_DAY: u64 = 23;

/// Settings of this program.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    pub database: String,
    pub listen: SocketAddr,
    /// `latest`, a time, or empty for the real clock.
    pub as_of: StartAt,
    /// 300 s, GFS table 4.
    pub refresh_s: u64,
    /// Reports renew the quotas of a cluster at most once in so many seconds; what of them lowers a quota does so at once.
    pub report_refresh_s: u64,
    /// The history keeps a quota's explanation when it says something new, and otherwise once in so many seconds.
    pub explanation_s: u64,
    /// Days for which usage is kept, at least 36; 0 for ever.
    pub retain_usage_days: u32,
    /// Days for which the history of quotas is kept; 0 for ever. So in the next two.
    pub retain_history_days: u32,
    /// Tasks that have ended.
    pub retain_tasks_days: u32,
    /// The audit.
    pub retain_audit_days: u32,
    /// Reported states of pools in the audit: each is outdated by the next.
    pub retain_reports_days: u32,
    /// Days of statements; 0: for ever.
    pub retain_statements_days: u32,
    /// How often promoted runs are looked for. 10 s, DESIGN §5.
    pub promotion_check_s: u64,
    /// Largest body of a request. 16 MiB hold some 100,000 usage rows.
    pub max_body_bytes: usize,
    /// Organizations that one report of usage may name; a name in two pools counts twice.
    pub max_request_organizations: u64,
    /// Organizations that the pools of a cluster may have, gone ones included; a report that would bring more is refused.
    pub max_cluster_organizations: u64,
    /// Connections at once; more wait until one is closed.
    pub max_connections: usize,
    /// Tasks, reports and settings that are taken at once; more are refused, with a time to try again. One token has half of them at most.
    pub max_writes: usize,
    /// Explanations, histories and other reads, quotas apart, that are worked on at once; more are refused, with a time to try again. One
    /// token has half of them at most.
    pub max_reads: usize,
    /// Streams and long polls that are open at once.
    pub max_streams: usize,
    /// How long a client may take to send the head of a request, quiet time on a kept connection included.
    pub header_limit_s: u64,
    /// How long a request may take, its body included; streams and long polls apart.
    pub request_limit_s: u64,
    /// Bytes of bodies on their way, in all: answers that are not read yet, and requests that have not come whole.
    pub max_transit_bytes: u64,
    /// The same of one client: of a token, or of an address where there are none.
    pub max_transit_bytes_per_client: u64,
    /// A client that reads nothing of its answer for so long, or less than 16 KiB a second, loses its connection.
    pub write_timeout_s: u64,
    /// Requests a second of one address, quotas apart; 0 for any number.
    pub max_requests_per_s: u32,
    /// Names under which the service is reached, comma between them, beside those of the loopback and `listen`. Without tokens, or
    /// where there are names, other hosts are refused.
    pub allowed_hosts: HostNames,
    /// Certificate of the service (PEM); with it and a key, HTTPS is spoken, TLS 1.3, and nothing else.
    pub tls_certificate_file: FilePath,
    pub tls_key_file: FilePath,
    /// Certificates (PEM) of the authority whose certificates clients, other services among them, have to show; empty where
    /// they need none.
    pub tls_client_ca_file: FilePath,
    /// File in which the last quotas are kept: they are answered, at their age, where the service starts and its database does
    /// not. Empty for none: then the service ends with exit code 5.
    pub fallback_file: FilePath,
    /// Name of this service among those on the same database, which no other one that runs has; empty for HOST:PORT.
    pub replica: String,
    /// Where other services on the same database reach this one, `http://HOST:PORT`; empty for the address that it listens on.
    pub advertise: OptionalUrl,
    /// Seconds after which the pools of a service that gives no sign of life are written for by another one.
    pub lease_s: u64,
    /// Reported states and outcomes from further ahead of the clock of this service are refused. 300 s: more is a clock that is not
    /// set.
    pub clock_skew_s: u32,
    /// Clusters that this service writes for, comma between them; empty for all. Others are read, and what is decided about them is
    /// forwarded: services on one database may share the clusters among them.
    pub own_clusters: ClusterNames,
    /// Longest time of a stop, from the signal on; less counts as 3 s, of which the last 2 are not
    /// for requests.
    pub shutdown_grace_s: u64,
    /// How often a write is proved, one row; `/readyz` answers 503 while writes fail.
    pub write_proof_s: u64,
    /// An ordinary statement may take so long on Postgres, which cancels it then; on SQLite it waits at most so long, and at most
    /// 5 s, for another program that writes. Migrations, retention, and appends and loads of usage have 10 minutes.
    pub statement_timeout_s: u64,
    /// A database server that says nothing for so long is gone: requests that wait for it are answered 503. Well below the 2 s in
    /// which they are to be.
    pub database_silence_ms: u64,
    /// How often each cluster is trained again: `never`, `daily` or `weekly`; with the last two also when its forecasts
    /// drift, at most once a day.
    pub retrain: Period,
    /// Hour of the cluster's local day at which training begins, 0 to 23.
    pub retrain_at: u64,
    /// A training that takes longer is ended.
    pub retrain_limit_s: u64,
    /// Path of the program `train`; empty for the one beside this program.
    pub train_program: FilePath,
    /// File that names the Prometheus of each cluster whose usage is read out of one; empty for none.
    pub prometheus_file: FilePath,
    /// Facts of a pool after which its state is stored whole and its journal cut.
    pub snapshot_facts: u64,
    /// Where events of pools go, `http://HOST:PORT/PATH` or `https://HOST:PORT/PATH`; empty for none.
    pub webhook_url: OptionalUrl,
    /// Format of their bodies: `json`, or a sentence for the chats `slack` and `teams`.
    pub webhook_format: WebhookFormat,
    /// Their kinds, a comma between them; empty for all.
    pub webhook_kinds: EventKinds,
    /// The event `eta_moved`: the expected start of a waiting task moved by at least so many seconds; 0 for no such event.
    pub eta_moved_s: u64,
    /// File with the secret that signs them; a chat needs none.
    pub webhook_secret_file: FilePath,
    /// Certificates (PEM) of the authority of an https webhook; empty for those that the machine trusts.
    pub webhook_authorities_file: FilePath,
    /// Table of what GPUs and sockets draw, `model,idle_w,full_w,cores`, beside the models that are known; empty for none.
    pub power_file: FilePath,
    /// File of prices of GPU time (TOML), for statements; read for each statement. Empty: statements have no charges.
    pub prices_file: FilePath,
    /// Collector of traces (OTLP over HTTP), `http://HOST:PORT`; empty for none.
    pub otlp_endpoint: OptionalUrl,
    /// Share of the requests without a trace of their caller's, and of the renewals and trainings, that are traced, 0 to 1.
    /// All: quotas, which are most of what is asked, have no spans.
    pub trace_sample_ratio: f64,
    /// How lines of the log are written: `text` or `json`.
    pub log_format: LogFormat,
    /// Filter of the log: `error`, `warn`, `info`, `debug`, or a filter such as `quota_service=debug`.
    pub log: LogFilter,
}

impl command_line::Config for Config {
    fn check(&self) -> Result<(), BadValue> {
        store::check_url(&self.database).map_err(|fault| BadValue::new("database", fault))?;
        let positive = [
            ("refresh_s", self.refresh_s),
            ("report_refresh_s", self.report_refresh_s),
            ("explanation_s", self.explanation_s),
            ("promotion_check_s", self.promotion_check_s),
            ("max_body_bytes", self.max_body_bytes as u64),
            ("max_request_organizations", self.max_request_organizations),
            ("max_cluster_organizations", self.max_cluster_organizations),
            ("max_connections", self.max_connections as u64),
            ("max_writes", self.max_writes as u64),
            ("max_reads", self.max_reads as u64),
            ("max_streams", self.max_streams as u64),
            ("header_limit_s", self.header_limit_s),
            ("request_limit_s", self.request_limit_s),
            ("max_transit_bytes", self.max_transit_bytes),
            ("max_transit_bytes_per_client", self.max_transit_bytes_per_client),
            ("write_timeout_s", self.write_timeout_s),
            ("lease_s", self.lease_s),
            ("write_proof_s", self.write_proof_s),
            ("statement_timeout_s", self.statement_timeout_s),
            ("database_silence_ms", self.database_silence_ms),
            ("retrain_limit_s", self.retrain_limit_s),
            ("snapshot_facts", self.snapshot_facts),
        ];
        if let Some((key, _)) = positive.into_iter().find(|(_, value)| *value == 0) {
            return Err(BadValue::new(key, "0 is below 1, the least"));
        }
        if let Some(why) = retention::refused(self.retain_usage_days) {
            return Err(BadValue::new("retain_usage_days", why));
        }
        self.check_replica()?;
        self.check_retraining()?;
        self.check_webhook()?;
        self.check_observed()
    }
}

impl Config {
    #[must_use]
    pub const fn connection_limits(&self) -> ConnectionLimits {
        ConnectionLimits {
            connections: self.max_connections,
            header: Duration::from_secs(self.header_limit_s),
            write: Duration::from_secs(self.write_timeout_s),
        }
    }

    /// After how long a service that gives no sign of life is given up.
    #[must_use]
    pub const fn patience(&self) -> Duration {
        Duration::from_secs(self.lease_s)
    }

    /// Opens the database, with the limit of its statements. It has to take writes, where the clock is real.
    ///
    /// # Errors
    /// As [`store::connect_within`], and where it takes no writes.
    pub async fn open_database(&self) -> Result<Arc<dyn Store>, StoreError> {
        let limit = Duration::from_secs(self.statement_timeout_s);
        let store = store::connect_within(&self.database, limit).await?;
        // SQLite has written on the way.
        if self.as_of.is_real() && store.backend() == Backend::Postgres {
            store.prove_write().await?;
        }
        Ok(store)
    }

    /// The clusters that this service writes for; empty for all.
    #[must_use]
    pub fn own_clusters(&self) -> BTreeSet<ClusterName> {
        self.own_clusters.0.clone()
    }

    /// The name of this service among those on its database: of a machine and a port there is one that runs.
    #[must_use]
    pub fn replica_name(&self) -> String {
        if !self.replica.is_empty() {
            return self.replica.clone();
        }
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        match (host.trim(), self.listen.port()) {
            // Of a port that is not known yet there may be many.
            (host, 0) => format!("{host}#{}", std::process::id()),
            (host, port) => format!("{host}:{port}"),
        }
    }

    /// Where other services reach this one, which listens at `address`; empty where no address is known.
    #[must_use]
    pub fn advertised(&self, address: SocketAddr) -> String {
        match (self.advertise.as_str(), address.ip().is_unspecified()) {
            ("", true) => String::new(),
            ("", false) if self.tls_certificate_file.is_none() => format!("http://{address}"),
            ("", false) => format!("https://{address}"),
            (set, _) => set.trim_end_matches('/').to_owned(),
        }
    }

    /// Checks that the file of the last quotas could be written.
    ///
    /// # Errors
    /// Its folder is missing, or it is a folder itself.
    pub fn check_fallback(&self) -> Result<(), String> {
        if self.fallback_file.get().is_some_and(Path::is_dir) {
            return Err(format!("{}: it is a folder: name a file in it", self.fallback_file));
        }
        match self.fallback_file.get().and_then(Path::parent) {
            Some(folder) if !folder.as_os_str().is_empty() && !folder.is_dir() => {
                Err(format!("{}: the folder {} is missing: make it", self.fallback_file, folder.display()))
            }
            _ => Ok(()),
        }
    }

    fn check_replica(&self) -> Result<(), BadValue> {
        if self.lease_s > MOST_LEASE_S {
            return Err(BadValue::new(
                "lease_s",
                format!("{} s: nobody would lead for so long after a loss; write at most {MOST_LEASE_S}", self.lease_s),
            ));
        }
        if self.replica.chars().count() > 200 {
            return Err(BadValue::new("replica", "write at most 200 characters on one line"));
        }
        vocab::new_text(&self.replica).map_err(|fault| BadValue::new("replica", fault.to_string()))?;
        let Some(uri) = self.advertise.get() else { return Ok(()) };
        let refused = |why: &str| Err(BadValue::new("advertise", format!("{:?}: {why}", self.advertise.as_str())));
        if uri.host().is_none() || uri.path() != "/" {
            return refused("write http://HOST:PORT");
        }
        match uri.scheme_str() {
            Some("http") => Ok(()),
            Some("https") if !self.tls_certificate_file.is_none() => Ok(()),
            Some("https") => refused("there is no tls_certificate_file: write http://HOST:PORT"),
            _ => refused("write http://HOST:PORT"),
        }
    }

    fn check_observed(&self) -> Result<(), BadValue> {
        if self.otlp_endpoint.get().is_some() {
            trace::check_endpoint(self.otlp_endpoint.as_str()).map_err(|why| BadValue::new("otlp_endpoint", why))?;
        }
        let ratio = self.trace_sample_ratio;
        if !(0.0..=1.0).contains(&ratio) {
            return Err(BadValue::new("trace_sample_ratio", format!("{ratio} is no share: write 0 to 1")));
        }
        Ok(())
    }

    /// Whether each line of the log is an object of JSON.
    #[must_use]
    pub fn logs_json(&self) -> bool {
        self.log_format == LogFormat::Json
    }

    /// The program is looked for only where it would be started.
    fn check_retraining(&self) -> Result<(), BadValue> {
        if self.retrain_at > LAST_HOUR_OF_DAY {
            let why = format!("{} is no hour of a day: write 0 to {LAST_HOUR_OF_DAY}", self.retrain_at);
            return Err(BadValue::new("retrain_at", why));
        }
        if self.retrain == Period::Never || !self.as_of.is_real() {
            return Ok(());
        }
        retrain::program(self.train_program.get()).map(drop).map_err(|why| BadValue::new("train_program", why))
    }
}

impl Config {
    /// The defaults, but for settings whose text is not constant.
    const CONSTANT: Self = Self {
        database: String::new(),
        listen: SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8_080),
        as_of: StartAt::Real,
        refresh_s: 300,
        report_refresh_s: 30,
        explanation_s: 3_600,
        retain_usage_days: 0,
        retain_history_days: 28,
        retain_tasks_days: 28,
        retain_audit_days: 90,
        retain_reports_days: 3,
        retain_statements_days: 1_100,
        promotion_check_s: 10,
        max_body_bytes: 16 * 1_024 * 1_024,
        max_request_organizations: 10_000,
        max_cluster_organizations: 20_000,
        max_connections: 16_384,
        max_writes: 1_024,
        max_reads: 16,
        max_streams: 12_000,
        header_limit_s: 60,
        request_limit_s: 30,
        max_transit_bytes: 256 * 1_024 * 1_024,
        max_transit_bytes_per_client: 64 * 1_024 * 1_024,
        write_timeout_s: 30,
        max_requests_per_s: 0,
        allowed_hosts: HostNames(Vec::new()),
        tls_certificate_file: FilePath::NONE,
        tls_key_file: FilePath::NONE,
        tls_client_ca_file: FilePath::NONE,
        fallback_file: FilePath::NONE,
        replica: String::new(),
        advertise: OptionalUrl::NONE,
        lease_s: 5,
        clock_skew_s: 300,
        own_clusters: ClusterNames(BTreeSet::new()),
        shutdown_grace_s: 10,
        write_proof_s: 5,
        statement_timeout_s: 20,
        database_silence_ms: 1_200,
        retrain: Period::Never,
        retrain_at: 3,
        retrain_limit_s: 6 * 3_600,
        train_program: FilePath::NONE,
        prometheus_file: FilePath::NONE,
        snapshot_facts: 10_000,
        webhook_url: OptionalUrl::NONE,
        webhook_format: WebhookFormat::Json,
        webhook_kinds: EventKinds::ALL,
        eta_moved_s: 1_800,
        webhook_secret_file: FilePath::NONE,
        webhook_authorities_file: FilePath::NONE,
        power_file: FilePath::NONE,
        prices_file: FilePath::NONE,
        otlp_endpoint: OptionalUrl::NONE,
        trace_sample_ratio: 1.0,
        log_format: LogFormat::Text,
        log: LogFilter::NOTHING,
    };
}

impl Default for Config {
    fn default() -> Self {
        Self { database: "sqlite://headroom.db".to_owned(), log: LogFilter::default(), ..Self::CONSTANT }
    }
}
