//! Which replica writes: one, by a Lease. [`elector`] decides, this asks the API what it decides.

pub mod elector;
mod fence;
pub mod record;
#[cfg(test)]
mod tests;

pub use fence::{Epoch, Fence, Fenced, epoch_of, stamp};

use crate::calls::{Calls, Fault};
use crate::config::Config;
use crate::names::QUOTA_MANAGER;
use elector::{Answer, Deed, Elector, Times};
use kube::Client;
use metrics::gauge;
use record::{Record, leases};
use serving::standing::Standing;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tracing::{info, warn};

/// Runs for the Lease of the settings until `stop` is set, then gives it back. The receiver holds the epoch while this replica
/// leads; writers ask it through a [`Fence`].
#[must_use]
pub fn run(
    client: Client,
    config: &Config,
    stop: watch::Receiver<bool>,
) -> (watch::Receiver<Option<Epoch>>, JoinHandle<()>) {
    let times = Times {
        lease: Duration::from_secs(config.lease_s),
        renew: Duration::from_secs(config.renew_s),
        retry: Duration::from_secs(config.retry_s),
    };
    let (epochs, lead) = watch::channel(None);
    let (outpaced, seen) = watch::channel(0);
    let run = Run {
        // Half: a call that hangs leaves time for another before the lead is over.
        calls: Calls::new(client, times.renew / 2),
        path: leases(config.lease_namespace.as_str()),
        name: config.lease_name.to_string(),
        lasts_s: config.lease_s,
        identity: config.identity(),
        epochs,
        outpaced: Arc::new(outpaced),
        acquired: record::micro_time(),
        faults: Standing::new(),
    };
    let elector = Elector::new(run.identity.clone(), times);
    (lead, tokio::spawn(run.until(elector, seen, stop)))
}

struct Run {
    calls: Calls,
    path: String,
    name: String,
    lasts_s: u64,
    identity: String,
    epochs: watch::Sender<Option<Epoch>>,
    outpaced: Arc<watch::Sender<u32>>,
    acquired: String,
    faults: Standing,
}

impl Run {
    async fn until(mut self, mut elector: Elector, mut seen: watch::Receiver<u32>, mut stop: watch::Receiver<bool>) {
        gauge!("headroom_leader").set(0.0);
        loop {
            let deed = elector.next(Instant::now());
            self.tell(&elector);
            let sent = Instant::now();
            let ends = self.epochs.borrow().as_ref().map(|epoch| epoch.until);
            tokio::select! {
                biased;
                () = stopped(&mut stop) => break,
                Ok(()) = seen.changed() => elector.outpaced(*seen.borrow_and_update(), Instant::now()),
                // While a call hangs the lead may come to its end.
                () = at(ends) => {}
                answer = self.perform(&deed) => elector.answered(&deed, sent, Instant::now(), answer),
            }
        }
        // Writers stop first: requests that they still send is held back by the version and the epoch of objects.
        let given_back = elector.release(Instant::now());
        self.tell(&elector);
        if let Some(deed) = given_back {
            self.give_back(&deed).await;
        }
    }

    async fn give_back(&self, deed: &Deed) {
        match self.perform(deed).await {
            Answer::Is(_) => info!(lease = self.name, "the lease is given back"),
            // It is taken over once it is old enough.
            Answer::Stale | Answer::Failed { .. } => warn!(lease = self.name, "the lease was not given back"),
        }
    }

    /// Tells writers. A renewal moves the end of an epoch and wakes nobody.
    fn tell(&mut self, elector: &Elector) {
        let now = elector.epoch(Instant::now());
        let (was, is) = (self.epochs.borrow().as_ref().map(Epoch::number), now.map(|(number, _)| number));
        let epoch = now.map(|(number, until)| Epoch::new(number, until, Arc::clone(&self.outpaced)));
        self.epochs.send_if_modified(|current| {
            *current = epoch;
            was != is
        });
        if was == is {
            return;
        }
        gauge!("headroom_leader").set(if is.is_some() { 1.0 } else { 0.0 });
        if let Some(epoch) = is {
            gauge!("headroom_lease_epoch").set(f64::from(epoch));
            self.acquired = record::micro_time();
            info!(lease = self.name, identity = self.identity, epoch, "this replica leads");
        } else {
            warn!(lease = self.name, identity = self.identity, "this replica leads no more");
        }
    }

    async fn perform(&self, deed: &Deed) -> Answer {
        let one = format!("{}/{}", self.path, self.name);
        let went = match deed {
            Deed::Wait { until } => {
                tokio::time::sleep_until((*until).into()).await;
                return Answer::Failed { after: Duration::ZERO };
            }
            Deed::Read => self.calls.get(&one).await,
            Deed::Create(record) => self.calls.create(&self.path, QUOTA_MANAGER, &self.lease(record)).await,
            Deed::Write(record) => self.calls.update(&one, QUOTA_MANAGER, &self.lease(record)).await,
        };
        let (answer, fault) = match went {
            Ok(lease) => (Answer::Is(Some(Record::read(&lease))), Ok(())),
            Err(Fault::Stale { .. }) => (Answer::Stale, Ok(())),
            // A create of it answers so too where the namespace is not there.
            Err(Fault::Absent { .. }) if !matches!(deed, Deed::Create(_)) => (Answer::Is(None), Ok(())),
            Err(Fault::Throttled { after }) => (Answer::Failed { after }, Ok(())),
            Err(fault) => (Answer::Failed { after: Duration::ZERO }, Err(fault)),
        };
        let lease = &one;
        let begins = |fault: &Fault| warn!(lease, %fault, "the lease cannot be read or written");
        self.faults.note("", &fault, begins, |over| info!(lease, lasted_s = over.lasted_s, "the lease answers again"));
        answer
    }

    fn lease(&self, record: &Record) -> serde_json::Value {
        record.lease(&self.name, self.lasts_s, Some(&self.acquired))
    }
}

/// Returns when `stop` is set, or its sender is dropped.
pub async fn stopped(stop: &mut watch::Receiver<bool>) {
    let _ = stop.wait_for(|stop| *stop).await;
}

async fn at(instant: Option<Instant>) {
    match instant {
        Some(instant) => tokio::time::sleep_until(instant.into()).await,
        None => std::future::pending().await,
    }
}
