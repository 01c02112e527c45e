//! Why the service could not start, or could not compute.

use command_line::{Exit, Failure};
use std::net::SocketAddr;
use store::StoreError;

#[derive(Debug, thiserror::Error)]
pub enum ServiceError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("{0} cannot be listened on: {1}; choose another address (--listen), or end what listens there (ss -ltnp)")]
    Bind(SocketAddr, std::io::Error),
    #[error("the renewal of the quotas has ended, which is a bug: see the log; the service stops, restart it")]
    NotRenewing,
    #[error(
        "listen: {0} is reachable from other machines, and there is no token: make one first with `quota-service token create \
         --name NAME --role admin`, or use 127.0.0.1 or [::1]"
    )]
    NoTokens(SocketAddr),
    #[error("as_of: {detail}")]
    AsOf { detail: String },
    #[error("{detail}")]
    Webhook { detail: String },
    #[error("{detail}")]
    Tls { detail: String },
    #[error("fallback_file: {detail}")]
    Fallback { detail: String },
    #[error("power_file: {detail}")]
    Power { detail: String },
    #[error("prices_file: {detail}")]
    Prices { detail: String },
    #[error("prometheus_file: {detail}")]
    Prometheus { detail: String },
    #[error("cannot receive signals of the system: {0}")]
    Signals(std::io::Error),
    #[error("log: {detail}")]
    Log { detail: String },
    #[error("otlp_endpoint: {detail}")]
    Traces { detail: String },
}

impl From<ServiceError> for Failure {
    fn from(fault: ServiceError) -> Self {
        use ServiceError::{
            AsOf, Bind, Fallback, Log, NoTokens, NotRenewing, Power, Prices, Prometheus, Signals, Store, Tls, Traces,
            Webhook,
        };
        let exit = match &fault {
            AsOf { .. }
            | Fallback { .. }
            | NoTokens(_)
            | Log { .. }
            | Power { .. }
            | Prices { .. }
            | Prometheus { .. }
            | Tls { .. }
            | Traces { .. }
            | Webhook { .. }
            | Store(StoreError::BadUrl { .. }) => Exit::ConfigInvalid,
            Store(fault) if fault.is_retryable() || matches!(fault, StoreError::Lost { .. }) => Exit::Unavailable,
            Store(fault) if fault.is_bad_data() => Exit::DataInvalid,
            Store(_) | Bind(..) | NotRenewing | Signals(_) => Exit::Failure,
        };
        Self::new(exit, fault)
    }
}
