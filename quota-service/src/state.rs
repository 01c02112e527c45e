//! The parts of the service. [`AppState`] wires them; every module takes the parts that it uses.

use crate::access::Access;
use crate::clock::Clock;
use crate::config::Config;
use crate::core::Core;
use crate::engine::{Engine, Webhook};
use crate::health::Health;
use crate::leases::Leases;
use crate::quotas::Quotas;
use crate::refresh::Renewals;
use crate::start_times::StartTimes;
use axum::extract::FromRef;
use std::ops::Deref;
use std::sync::Arc;
use store::Store;

/// The parts of the service.
pub struct Parts {
    /// Database, clock, settings, leases: what every other part stands on.
    pub core: Arc<Core>,
    /// Answers in memory, and the publications of new ones.
    pub quotas: Arc<Quotas>,
    /// Writers of the pools whose tasks Headroom places.
    pub engine: Arc<Engine>,
    /// Requests for renewals of the quotas.
    pub renewals: Arc<Renewals>,
    /// Forecasts of starts.
    pub start_times: Arc<StartTimes>,
    /// Tokens, and the writes of clients that are under way.
    pub access: Arc<Access>,
    /// State of the database.
    pub health: Arc<Health>,
}

/// A handle to the parts: a clone costs one counter for all parts.
#[derive(Clone)]
pub struct AppState(Arc<Parts>);

/// Options of a service.
pub struct Options {
    pub store: Arc<dyn Store>,
    pub clock: Clock,
    pub config: Config,
    /// Receiver of the events of pools.
    pub webhook: Option<Webhook>,
    /// `None`: leases under the name, the patience and the clusters of the settings.
    pub leases: Option<Leases>,
}

impl Options {
    #[must_use]
    pub const fn new(store: Arc<dyn Store>, clock: Clock, config: Config) -> Self {
        Self { store, clock, config, webhook: None, leases: None }
    }

    #[must_use]
    pub fn webhook(self, webhook: Option<Webhook>) -> Self {
        Self { webhook, ..self }
    }

    #[must_use]
    pub fn leases(self, leases: Option<Leases>) -> Self {
        Self { leases, ..self }
    }
}

impl AppState {
    #[must_use]
    pub fn new(options: Options) -> Self {
        let Options { store, clock, config, webhook, leases } = options;
        let leases = leases.unwrap_or_else(|| {
            if clock.is_virtual() {
                Leases::alone(store.clone(), config.patience())
            } else {
                Leases::new(config.replica_name(), config.patience()).only(config.own_clusters())
            }
        });
        let core = Arc::new(Core::new(store, clock, config, leases));
        let quotas = Arc::new(Quotas::new(core.clone()));
        let engine = Arc::new(Engine::new(core.clone(), quotas.clone(), webhook));
        let renewals = Arc::new(Renewals::new(core.clone(), quotas.clone(), engine.clone()));
        let start_times = Arc::new(StartTimes::new(core.clone(), engine.clone()));
        let access = Arc::new(Access::new(core.clone()));
        Self(Arc::new(Parts { core, quotas, engine, renewals, start_times, access, health: Arc::default() }))
    }
}

impl Deref for AppState {
    type Target = Parts;

    fn deref(&self) -> &Parts {
        &self.0
    }
}

/// Each part is a state that a handler may ask for.
macro_rules! parts {
    ($($field:ident: $part:ty),* $(,)?) => {
        $(impl FromRef<AppState> for Arc<$part> {
            fn from_ref(state: &AppState) -> Self {
                state.$field.clone()
            }
        })*
    };
}

parts! {
    core: Core,
    quotas: Quotas,
    engine: Engine,
    renewals: Renewals,
    start_times: StartTimes,
    access: Access,
    health: Health,
}
