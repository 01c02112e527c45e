//! When renewals begin: at once where nothing was renewed lately, and otherwise after a least interval, so that the work and
//! the storage of renewals do not grow with the number of reports.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Notify;
use vocab::ClusterName;

/// How soon a change has to show in the quotas.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Haste {
    /// Changes by people, and lost nodes: settings, overrides, corrections, fewer nodes.
    Urgent,
    /// Regular reports of programs. A report that lowers a quota lowers it at once (`Quotas::lower`).
    Report,
}

/// Two urgent renewals of a cluster begin at least so far apart.
const URGENT_EVERY: Duration = Duration::from_secs(1);

/// The longest wait for another try of a renewal that has failed; the first one comes after a second.
const TRIED_AGAIN_WITHIN: Duration = Duration::from_secs(30);

/// The renewals that are wanted, by cluster.
pub struct Pace {
    report_every: Duration,
    tried_again_within: Duration,
    state: Mutex<BTreeMap<ClusterName, Paced>>,
    changed: Notify,
}

#[derive(Debug, Clone, Copy, Default)]
struct Paced {
    begun: Option<Instant>,
    due: Option<Instant>,
    /// Since the last one that succeeded.
    failures: u32,
}

impl Pace {
    #[must_use]
    pub fn new(report_every: Duration, regular_every: Duration) -> Self {
        let tried_again_within = TRIED_AGAIN_WITHIN.min(regular_every);
        Self { report_every, tried_again_within, state: Mutex::default(), changed: Notify::new() }
    }

    /// Asks for a renewal of a cluster; several requests become one, the most urgent of them.
    pub fn want(&self, cluster: &ClusterName, haste: Haste) {
        self.want_at(cluster, haste, Instant::now());
    }

    fn want_at(&self, cluster: &ClusterName, haste: Haste, now: Instant) {
        let every = match haste {
            Haste::Urgent => URGENT_EVERY.min(self.report_every),
            Haste::Report => self.report_every,
        };
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let paced = state.entry(cluster.clone()).or_default();
        let due = paced.begun.map_or(now, |begun| now.max(begun + every));
        if paced.due.is_none_or(|known| due < known) {
            paced.due = Some(due);
            self.changed.notify_one();
        }
    }

    /// Notes that a renewal of a cluster begins: what is asked for from here on is for the next one.
    pub fn begins(&self, cluster: &ClusterName) {
        self.begins_at(cluster, Instant::now());
    }

    fn begins_at(&self, cluster: &ClusterName, now: Instant) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let paced = state.entry(cluster.clone()).or_default();
        *paced = Paced { begun: Some(now), due: None, ..*paced };
    }

    /// Notes that a renewal of a cluster has failed: another one is due after 1, 2, 4 and so on seconds, up to the longest wait.
    pub fn failed(&self, cluster: &ClusterName) {
        self.failed_at(cluster, Instant::now());
    }

    fn failed_at(&self, cluster: &ClusterName, now: Instant) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let paced = state.entry(cluster.clone()).or_default();
        let wait = Duration::from_secs(1 << paced.failures.min(6)).min(self.tried_again_within);
        let again = now + wait;
        // One that is due already would fail at once again.
        paced.due = Some(paced.due.filter(|due| *due > now).map_or(again, |due| due.min(again)));
        paced.failures = paced.failures.saturating_add(1);
        self.changed.notify_one();
    }

    /// Notes that a renewal of a cluster has succeeded.
    pub fn succeeded(&self, cluster: &ClusterName) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.entry(cluster.clone()).or_default().failures = 0;
    }

    /// Whether a renewal of the cluster is wanted now.
    #[must_use]
    pub fn is_due(&self, cluster: &ClusterName) -> bool {
        self.is_due_at(cluster, Instant::now())
    }

    fn is_due_at(&self, cluster: &ClusterName, now: Instant) -> bool {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.get(cluster).and_then(|paced| paced.due).is_some_and(|due| due <= now)
    }

    /// Waits until a renewal is due. Nothing is lost where it is given up.
    pub async fn due(&self) {
        loop {
            let next = {
                let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
                state.values().filter_map(|paced| paced.due).min()
            };
            let changed = self.changed.notified();
            match next {
                Some(due) if due <= Instant::now() => return,
                Some(due) => {
                    tokio::select! {
                        () = tokio::time::sleep_until(due.into()) => return,
                        () = changed => {}
                    }
                }
                None => changed.await,
            }
        }
    }

    /// Forgets what was wanted of clusters that this service does not write for.
    pub fn keep(&self, is_led: impl Fn(&ClusterName) -> bool) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.retain(|cluster, _| is_led(cluster));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVERY: Duration = Duration::from_secs(30);
    const HOUR: Duration = Duration::from_hours(1);

    #[test]
    fn reports_renew_a_cluster_at_once_and_then_at_most_once_in_the_least_interval() {
        let (pace, earth) = (Pace::new(EVERY, HOUR), ClusterName::parse("earth").unwrap());
        let (start, mut renewals) = (Instant::now(), Vec::new());
        // Thirteen reports a second for ten minutes.
        for step in 0..600 * 13 {
            let now = start + Duration::from_secs(step) / 13;
            pace.want_at(&earth, Haste::Report, now);
            if pace.is_due_at(&earth, now) {
                pace.begins_at(&earth, now);
                renewals.push(now);
            }
        }
        assert_eq!(renewals[0], start, "the first one is not held back");
        assert_eq!(renewals.len(), 20);
        assert!(renewals.windows(2).all(|pair| pair[1] - pair[0] >= EVERY), "{renewals:?}");
    }

    #[test]
    fn the_last_report_is_renewed_by_and_what_is_urgent_waits_a_second_at_most() {
        let (pace, earth) = (Pace::new(EVERY, HOUR), ClusterName::parse("earth").unwrap());
        let start = Instant::now();
        let after = |seconds| start + Duration::from_secs(seconds);
        pace.begins_at(&earth, start);
        pace.want_at(&earth, Haste::Report, after(2));
        assert!(!pace.is_due_at(&earth, after(29)) && pace.is_due_at(&earth, after(30)));
        pace.want_at(&earth, Haste::Urgent, after(3));
        assert!(pace.is_due_at(&earth, after(3)), "a second after the last one began");
        pace.begins_at(&earth, after(3));
        pace.want_at(&earth, Haste::Urgent, after(3));
        assert!(!pace.is_due_at(&earth, after(3)) && pace.is_due_at(&earth, after(4)));
        assert!(!pace.is_due_at(&ClusterName::parse("mars").unwrap(), after(60)));
    }

    #[test]
    fn a_failed_renewal_is_tried_again_after_longer_and_longer_waits_until_one_succeeds() {
        let earth = ClusterName::parse("earth").unwrap();
        for (regular, expected) in [(HOUR, [1, 2, 4, 8, 16, 30, 30]), (Duration::from_secs(5), [1, 2, 4, 5, 5, 5, 5])] {
            let pace = Pace::new(EVERY, regular);
            let mut now = Instant::now();
            pace.want_at(&earth, Haste::Urgent, now);
            let mut waits = Vec::new();
            for _ in 0..expected.len() {
                pace.begins_at(&earth, now);
                pace.failed_at(&earth, now);
                let wait =
                    (1..=60).find(|seconds| pace.is_due_at(&earth, now + Duration::from_secs(*seconds))).unwrap();
                waits.push(wait);
                now += Duration::from_secs(wait);
            }
            assert_eq!(waits, expected);
            pace.begins_at(&earth, now);
            pace.succeeded(&earth);
            assert!(!pace.is_due_at(&earth, now + HOUR));
            pace.failed_at(&earth, now);
            assert!(pace.is_due_at(&earth, now + Duration::from_secs(1)), "it begins with the first wait");
        }
    }

    #[test]
    fn a_renewal_that_cannot_begin_does_not_stay_due() {
        let (pace, earth) = (Pace::new(EVERY, HOUR), ClusterName::parse("earth").unwrap());
        let now = Instant::now();
        pace.want_at(&earth, Haste::Urgent, now);
        pace.failed_at(&earth, now);
        assert!(!pace.is_due_at(&earth, now) && pace.is_due_at(&earth, now + Duration::from_secs(1)));
    }
}
