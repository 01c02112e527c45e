//! The database, the clock, the settings and the leases of the service: what every other part stands on.

use crate::clock::Clock;
use crate::config::Config;
use crate::connectors::Connectors;
use crate::leases::Leases;
use serving::tls::Tls;
use std::sync::{Arc, OnceLock};
use store::Store;
use tokio::sync::watch;
use vocab::UnixSeconds;

pub struct Core {
    pub store: Arc<dyn Store>,
    pub clock: Clock,
    pub config: Config,
    /// Clusters that this service writes for.
    pub leases: Leases,
    /// Leases of connectors, which this service grants for clusters that it leads.
    pub connectors: Connectors,
    /// Start of the service: the age of an eta that has never moved.
    pub started_at: UnixSeconds,
    /// One change of reservations at a time: windows are sold against all others.
    pub reservations: tokio::sync::Mutex<()>,
    /// Whether the service is stopping: long polls and streams end at once.
    pub stopping: watch::Sender<bool>,
    /// Certificate of this service, towards clients and other services.
    tls: OnceLock<Arc<Tls>>,
}

impl Core {
    #[must_use]
    pub fn new(store: Arc<dyn Store>, clock: Clock, config: Config, leases: Leases) -> Self {
        let started_at = clock.now();
        let (stopping, connectors) = (watch::Sender::new(false), Connectors::default());
        let reservations = tokio::sync::Mutex::new(());
        Self { store, clock, config, leases, connectors, started_at, reservations, stopping, tls: OnceLock::new() }
    }

    /// Sets the certificate; only the first call counts.
    pub fn set_tls(&self, tls: Arc<Tls>) {
        let _ = self.tls.set(tls);
    }

    /// The certificate of this service; `None` without HTTPS.
    #[must_use]
    pub fn tls(&self) -> Option<&Arc<Tls>> {
        self.tls.get()
    }
}
