//! The lease of quota-service under which limits are written: of two connectors of a cluster one writes.
//!
//! Its time is counted on this machine's own clock from before each request, so that it ends here no later than there.

use crate::AGENT;
use axum::http::Method;
use connectors::{Headroom, HeadroomError};
use serving::standing::Standing;
use std::time::{Duration, Instant};
use tokio::sync::watch;
use vocab::ClusterName;
use wire::{ConnectorLease, ConnectorLeaseRequest};

/// Renewals in the time of the lease.
const RENEWALS: u32 = 3;

/// Holder of the lease, as far as it is known here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Held {
    /// Nobody, or it is not known.
    #[default]
    Unknown,
    /// This connector, until then.
    Here(Instant),
    /// Another connector, until then.
    Elsewhere(Instant),
}

impl Held {
    /// Whether it still holds here so long from now.
    #[must_use]
    pub fn holds_for(self, time: Duration) -> bool {
        matches!(self, Self::Here(until) if Instant::now() + time < until)
    }

    /// Whole seconds for which it still holds here.
    fn left_s(self) -> u64 {
        match self {
            Self::Here(until) => until.saturating_duration_since(Instant::now()).as_secs(),
            _ => 0,
        }
    }

    /// Whether another connector holds it now: limits are its business.
    #[must_use]
    pub fn is_elsewhere(self) -> bool {
        matches!(self, Self::Elsewhere(until) if Instant::now() < until)
    }
}

/// Takes the lease and renews it until `stop` is set; then gives it back.
pub async fn run(
    headroom: Headroom,
    (cluster, holder, lease): (ClusterName, String, Duration),
    held: watch::Sender<Held>,
    mut stop: watch::Receiver<bool>,
) {
    let path = path_of(&cluster);
    let request = |holds_s| request(&holder, lease, holds_s);
    let (standing, mut was_held) = (Standing::new(), false);
    loop {
        let sent = Instant::now();
        let body = request(held.borrow().left_s());
        let asked: Result<ConnectorLease, HeadroomError> = headroom.send(Method::PUT, &path, &body).await;
        let is_held = asked.as_ref().is_ok_and(|answer| answer.granted);
        if let Ok(answer) = &asked {
            let now = if is_held {
                Held::Here(sent + lease)
            } else if answer.holder.is_empty() {
                Held::Unknown
            } else {
                Held::Elsewhere(sent + lease)
            };
            held.send_replace(now);
        }
        note(&standing, &asked, (is_held, was_held));
        was_held = is_held || (asked.is_err() && held.borrow().holds_for(Duration::ZERO));
        metrics::gauge!("headroom_slurm_leads").set(f64::from(u8::from(was_held)));
        tokio::select! {
            biased;
            _ = stop.wait_for(|stops| *stops) => break,
            () = tokio::time::sleep(lease / RENEWALS) => {}
        }
    }
    held.send_replace(Held::Unknown);
    if was_held {
        // Another connector need not wait for its end. If it does not arrive, it ends by itself.
        let _ = headroom.send::<ConnectorLease>(Method::DELETE, &path, &request(0)).await;
    }
}

/// Where the lease of a cluster is.
#[must_use]
pub fn path_of(cluster: &ClusterName) -> String {
    format!("/v1/connectors/lease?cluster={}", connectors::report::encoded(cluster.as_str()))
}

fn request(holder: &str, lease: Duration, holds_s: u64) -> ConnectorLeaseRequest {
    ConnectorLeaseRequest { holder: holder.to_owned(), agent: AGENT.to_owned(), lease_s: lease.as_secs(), holds_s }
}

/// The lease for a single write: of a watchdog, which lowers limits only where no connector publishes them.
#[derive(Debug, Clone)]
pub struct Fence {
    /// Client of quota-service.
    pub headroom: Headroom,
    /// Headroom's name of the cluster.
    pub cluster: ClusterName,
    /// Name of this process.
    pub holder: String,
    /// Time of the lease.
    pub lease: Duration,
}

/// Answer to a [`Fence`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Turn {
    /// The lease is ours: nobody else writes until it is given back.
    Ours,
    /// Another process holds it.
    Theirs(String),
    /// Headroom does not answer, or knows of no holder: nobody renews a lease.
    Unknown,
}

impl Fence {
    /// Asks for the lease once.
    pub async fn take(&self) -> Turn {
        let body = request(&self.holder, self.lease, 0);
        match self.headroom.send::<ConnectorLease>(Method::PUT, &path_of(&self.cluster), &body).await {
            Ok(answer) if answer.granted => Turn::Ours,
            Ok(answer) if !answer.holder.is_empty() => Turn::Theirs(answer.holder),
            Ok(_) | Err(_) => Turn::Unknown,
        }
    }

    /// Gives it back. If that does not arrive, it ends by itself.
    pub async fn give_back(&self) {
        let body = request(&self.holder, self.lease, 0);
        let _ = self.headroom.send::<ConnectorLease>(Method::DELETE, &path_of(&self.cluster), &body).await;
    }
}

fn note(standing: &Standing, asked: &Result<ConnectorLease, HeadroomError>, (is_held, was_held): (bool, bool)) {
    let went = asked.as_ref().map(|_| ());
    standing.note(
        "",
        &went,
        |fault| tracing::warn!(%fault, "the lease is not renewed: no limit is written once it has ended"),
        |over| tracing::info!(lasted_s = over.lasted_s, "the lease is answered again"),
    );
    if let Ok(answer) = asked
        && is_held != was_held
    {
        let holder = answer.holder.as_str();
        if is_held {
            tracing::info!(holder, "this connector writes the limits");
        } else {
            tracing::info!(holder, "another connector writes the limits");
        }
    }
}
