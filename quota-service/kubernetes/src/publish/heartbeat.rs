//! The heartbeat: a Lease that changes while the published quotas are the decided ones. The watchdog reads it.

use crate::calls::{Calls, Fault};
use crate::config::Config;
use crate::lead::record::{Record, leases};
use crate::names::QUOTA_MANAGER;

/// Renews it.
#[derive(Debug)]
pub struct Heartbeat {
    collection: String,
    name: String,
    identity: String,
    lasts_s: u64,
    known: Option<Record>,
}

/// Path and name of the heartbeat of these settings.
#[must_use]
pub fn of(config: &Config) -> (String, String) {
    (leases(config.lease_namespace.as_str()), config.heartbeat_name())
}

impl Heartbeat {
    #[must_use]
    pub fn new(config: &Config) -> Self {
        let (collection, name) = of(config);
        Self { collection, name, identity: config.identity(), lasts_s: config.watchdog_after_s, known: None }
    }

    /// One beat in this epoch. None where a later epoch has beaten.
    ///
    /// # Errors
    /// The Lease was not written; the next beat reads it again.
    pub async fn beat(&mut self, calls: &Calls, epoch: u32) -> Result<(), Fault> {
        let path = format!("{}/{}", self.collection, self.name);
        let known = match self.known.take() {
            Some(known) => Some(known),
            None => calls.find(&path).await?.map(|lease| Record::read(&lease)),
        };
        if known.as_ref().is_some_and(|known| known.transitions > epoch) {
            return Ok(());
        }
        let version = known.as_ref().map(|known| known.version.clone()).unwrap_or_default();
        let record = Record { holder: self.identity.clone(), transitions: epoch, version };
        let lease = record.lease(&self.name, self.lasts_s, None);
        let written = match known {
            Some(_) => calls.update(&path, QUOTA_MANAGER, &lease).await?,
            None => calls.create(&self.collection, QUOTA_MANAGER, &lease).await?,
        };
        self.known = Some(Record::read(&written));
        Ok(())
    }
}
