//! The heartbeat: a Lease that changes while the published quotas are the decided ones, but for those that it names. The watchdog reads it.

use crate::calls::{Calls, Fault};
use crate::config::Config;
use crate::lead::record::{Record, leases};
use crate::names::{NOT_RENEWED, QUOTA_MANAGER};
use serde_json::Value;
use std::collections::BTreeSet;

/// Renews it.
#[derive(Debug)]
pub struct Heartbeat {
    collection: String,
    name: String,
    identity: String,
    lasts_s: u64,
    /// As it was written last, with the epoch of that.
    known: Option<(Record, u32)>,
}

/// Path and name of the heartbeat of these settings.
#[must_use]
pub fn of(config: &Config) -> (String, String) {
    (leases(config.lease_namespace.as_str()), config.heartbeat_name())
}

/// Quotas that a heartbeat excepts, by their labels.
#[must_use]
pub fn not_renewed(lease: &Value) -> BTreeSet<String> {
    let named = lease["metadata"]["annotations"][NOT_RENEWED].as_str().unwrap_or_default().split(',');
    named.filter(|label| !label.is_empty()).map(str::to_owned).collect()
}

impl Heartbeat {
    #[must_use]
    pub fn new(config: &Config) -> Self {
        let (collection, name) = of(config);
        Self { collection, name, identity: config.identity(), lasts_s: config.watchdog_after_s, known: None }
    }

    /// One beat in this epoch, which excepts the quotas of these labels. None where a later epoch has beaten.
    ///
    /// # Errors
    /// The Lease was not written; the next beat reads it again.
    pub async fn beat(&mut self, calls: &Calls, epoch: u32, excepted: &BTreeSet<String>) -> Result<(), Fault> {
        // Beats of another replica since an earlier lead are not known from then.
        let known = self.known.take().filter(|(_, of)| *of == epoch).map(|(record, _)| record);
        match self.beat_after(calls, epoch, excepted, known).await {
            Err(Fault::Stale { .. }) => self.beat_after(calls, epoch, excepted, None).await,
            went => went,
        }
    }

    async fn beat_after(
        &mut self,
        calls: &Calls,
        epoch: u32,
        excepted: &BTreeSet<String>,
        known: Option<Record>,
    ) -> Result<(), Fault> {
        let path = format!("{}/{}", self.collection, self.name);
        let known = match known {
            Some(known) => Some(known),
            None => calls.find(&path).await?.map(|lease| Record::read(&lease)),
        };
        if known.as_ref().is_some_and(|known| known.transitions > epoch) {
            return Ok(());
        }
        let version = known.as_ref().map(|known| known.version.clone()).unwrap_or_default();
        let record = Record { holder: self.identity.clone(), transitions: epoch, version };
        let mut lease = record.lease(&self.name, self.lasts_s, None);
        if !excepted.is_empty() {
            let named: Vec<&str> = excepted.iter().map(String::as_str).collect();
            lease["metadata"]["annotations"][NOT_RENEWED] = named.join(",").into();
        }
        let written = match known {
            Some(_) => calls.update(&path, QUOTA_MANAGER, &lease).await?,
            None => calls.create(&self.collection, QUOTA_MANAGER, &lease).await?,
        };
        self.known = Some((Record::read(&written), epoch));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{client, config};
    use fake_kubernetes::FakeKubernetes;
    use serde_json::json;
    use std::time::Duration;

    #[tokio::test]
    async fn a_replica_that_leads_again_beats_on_what_the_other_one_wrote() {
        let fake = FakeKubernetes::start().await;
        fake.put(json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "headroom-system" } }));
        let none = BTreeSet::new();
        let calls = Calls::new(client(&fake).await, Duration::from_secs(5));
        let (mut a, mut b) = (Heartbeat::new(&config("a")), Heartbeat::new(&config("b")));
        for (epoch, is_a) in [(1, true), (2, false), (3, true)] {
            let beats = if is_a { &mut a } else { &mut b };
            assert_eq!(beats.beat(&calls, epoch, &none).await, Ok(()), "epoch {epoch}");
            assert_eq!(beats.beat(&calls, epoch, &none).await, Ok(()));
        }
        assert!(fake.writes().iter().all(|one| one.status < 300), "no write on a version of long ago");
        assert_eq!(b.beat(&calls, 2, &none).await, Ok(()), "an earlier epoch beats no more");
        let lease = fake.get("leases", "headroom-system", "headroom-kubernetes-heartbeat").unwrap();
        assert_eq!((&lease["spec"]["holderIdentity"], &lease["spec"]["leaseTransitions"]), (&json!("a"), &json!(3)));
        // Another writer in between: it is read again at once.
        fake.patch(
            "leases",
            "headroom-system",
            "headroom-kubernetes-heartbeat",
            &json!({ "metadata": { "labels": { "x": "y" } } }),
        );
        assert_eq!(a.beat(&calls, 3, &none).await, Ok(()));
    }
}
