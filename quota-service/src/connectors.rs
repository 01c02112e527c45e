//! Leases of connectors: of several that join one cluster to Headroom, one writes limits into its scheduler.
//!
//! They are kept in memory by the service that leads the cluster. A service that has begun to lead knows none, and grants one only
//! after the time of a lease, unless the connector that asks says that its own still holds: then no other was granted one.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use vocab::ClusterName;

/// The lease of one cluster.
#[derive(Debug, Clone)]
struct Known {
    /// Epoch of this service's own lease: a lead that was lost and won again knows nothing.
    epoch: u64,
    holder: Option<String>,
    /// Until then the holder has it, or nobody gets it.
    until: Instant,
}

/// A connector that asks.
#[derive(Debug, Clone, Copy)]
pub struct Asker<'a> {
    /// Its name.
    pub holder: &'a str,
    /// Time of the lease.
    pub lease: Duration,
    /// How long its last lease still holds, by its own clock.
    pub holds: Duration,
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// Whether the asker holds the lease.
    pub granted: bool,
    /// The holder; `None` where it is not known.
    pub holder: Option<String>,
    /// Until the lease ends, or may be granted.
    pub left: Duration,
}

/// Leases of all clusters.
#[derive(Debug, Default)]
pub struct Connectors(Mutex<BTreeMap<ClusterName, Known>>);

impl Connectors {
    /// Asks for the lease of a cluster that this service leads in `epoch`.
    pub fn ask(&self, cluster: &ClusterName, epoch: u64, asker: Asker<'_>, now: Instant) -> Answer {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = all.get(cluster).filter(|known| known.epoch == epoch).cloned();
        let known = known.unwrap_or_else(|| Known { epoch, holder: None, until: now + asker.lease });
        let is_over = known.until <= now;
        let granted = match &known.holder {
            Some(holder) => holder == asker.holder || is_over,
            None => is_over || !asker.holds.is_zero(),
        };
        let known = if granted {
            Known { epoch, holder: Some(asker.holder.to_owned()), until: now + asker.lease }
        } else {
            known
        };
        let answer = Answer { granted, holder: known.holder.clone(), left: known.until.saturating_duration_since(now) };
        all.insert(cluster.clone(), known);
        answer
    }

    /// Gives a lease back: the next that asks gets it. One that is another's stays.
    pub fn release(&self, cluster: &ClusterName, epoch: u64, holder: &str, now: Instant) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = all.get_mut(cluster).filter(|known| known.epoch == epoch)
            && known.holder.as_deref() == Some(holder)
        {
            *known = Known { epoch, holder: None, until: now };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEASE: Duration = Duration::from_secs(30);

    struct Case {
        connectors: Connectors,
        start: Instant,
    }

    impl Case {
        fn new() -> Self {
            Self { connectors: Connectors::default(), start: Instant::now() }
        }

        fn ask(&self, at_s: u64, epoch: u64, holder: &str, holds_s: u64) -> bool {
            let asker = Asker { holder, lease: LEASE, holds: Duration::from_secs(holds_s) };
            self.connectors
                .ask(&ClusterName::parse("earth").unwrap(), epoch, asker, self.start + Duration::from_secs(at_s))
                .granted
        }
    }

    #[test]
    fn one_of_two_holds_it_until_it_renews_no_more() {
        let case = Case::new();
        assert!(!case.ask(0, 1, "a", 0), "another may have been granted it before this service began");
        assert!(case.ask(30, 1, "a", 0) && !case.ask(31, 1, "b", 0));
        assert!(case.ask(50, 1, "a", 10) && !case.ask(79, 1, "b", 0));
        assert!(case.ask(80, 1, "b", 0) && !case.ask(81, 1, "a", 0), "30 s after the last renewal");
    }

    #[test]
    fn a_holder_goes_on_under_a_new_leader_and_others_wait() {
        let case = Case::new();
        assert!(case.ask(0, 1, "a", 5));
        assert!(!case.ask(10, 2, "b", 0), "the new leader knows nothing yet");
        assert!(case.ask(11, 2, "a", 19), "its lease still holds by its own clock");
        assert!(!case.ask(40, 2, "b", 0));
    }

    #[test]
    fn a_lease_that_was_given_back_is_granted_at_once_and_that_of_another_stays() {
        let case = Case::new();
        let (cluster, now) = (ClusterName::parse("earth").unwrap(), case.start + Duration::from_secs(40));
        assert!(!case.ask(0, 1, "a", 0) && case.ask(31, 1, "a", 0));
        case.connectors.release(&cluster, 1, "b", now);
        assert!(!case.ask(41, 1, "b", 0));
        case.connectors.release(&cluster, 1, "a", now);
        assert!(case.ask(42, 1, "b", 0));
    }
}
