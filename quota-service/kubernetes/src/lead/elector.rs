//! Leader election from reads and writes of the Lease, and their times. Pure: instants are passed in.
//!
//! Why two never lead at once. The leader counts from when its last successful renewal was *sent*, and stops after `renew`.
//! A follower counts from when it *received* a new record, and takes over after `lease`, which is longer, and only if that record
//! still stands (compare and swap). The renewal was written between the two instants. A Lease that was
//! deleted is created again without a leader: its creator waits as the others do. No clock of another machine is believed.
//!
//! A machine whose monotonic clock stands still while it sleeps may believe too long that it leads: for that there is the
//! [fence](super::Fence).

use super::record::{MOST_TRANSITIONS, Record};
use std::time::{Duration, Instant};

/// `retry` < `renew` < `lease`, which the settings are held to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Times {
    /// Age at which a silent lease is taken over.
    pub lease: Duration,
    /// Longest lead after the last successful renewal.
    pub renew: Duration,
    /// Between two requests.
    pub retry: Duration,
}

/// Next action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Deed {
    Wait {
        until: Instant,
    },
    /// Read the Lease.
    Read,
    /// The Lease is not there.
    Create(Record),
    /// With the version in it as the precondition.
    Write(Record),
}

/// How a deed went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// The current record, or `None`; after a write, the written one.
    Is(Option<Record>),
    /// Another wrote before.
    Stale,
    /// Not known whether it was done; not to be tried again before this has passed.
    Failed {
        /// Least wait before the next request.
        after: Duration,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum State {
    /// Nothing is known.
    New,
    /// The Lease is not there.
    Absent,
    /// This record has stood since we received it first.
    Follows { record: Record, since: Instant },
    /// We hold this record; the last renewal that went well was sent then.
    Leads { record: Record, renewed: Instant },
}

/// One replica.
#[derive(Debug, Clone)]
pub struct Elector {
    identity: String,
    times: Times,
    state: State,
    next: Option<Instant>,
    /// The Lease may have another record than we know.
    must_read: bool,
    /// An epoch that was seen on an object: ours has to be above.
    floor: u32,
}

impl Elector {
    /// A replica that knows nothing yet.
    #[must_use]
    pub const fn new(identity: String, times: Times) -> Self {
        Self { identity, times, state: State::New, next: None, must_read: false, floor: 0 }
    }

    /// The epoch in which this replica leads, and until when it may believe so without a renewal.
    #[must_use]
    pub fn epoch(&self, now: Instant) -> Option<(u32, Instant)> {
        let State::Leads { record, renewed, .. } = &self.state else { return None };
        let until = *renewed + self.times.renew;
        (now < until).then_some((record.transitions, until))
    }

    /// The action for now. Ends a lead that has expired.
    pub fn next(&mut self, now: Instant) -> Deed {
        if let State::Leads { record, .. } = &self.state
            && self.epoch(now).is_none()
        {
            // Ours, but too old: we wait as for any other record, from now on.
            self.state = State::Follows { record: record.clone(), since: now };
        }
        if let Some(until) = self.next.filter(|until| now < *until) {
            return Deed::Wait { until };
        }
        if self.must_read {
            return Deed::Read;
        }
        match &self.state {
            State::New => Deed::Read,
            State::Absent => Deed::Create(self.claim(0, String::new())),
            State::Leads { record, .. } => Deed::Write(record.clone()),
            State::Follows { record, since } => {
                let is_free = record.holder.is_empty() || now >= *since + self.times.lease;
                if !is_free || record.transitions.max(self.floor) >= MOST_TRANSITIONS {
                    return Deed::Read;
                }
                Deed::Write(self.claim(record.transitions.max(self.floor) + 1, record.version.clone()))
            }
        }
    }

    fn claim(&self, transitions: u32, version: String) -> Record {
        Record { holder: self.identity.clone(), transitions: transitions.max(self.floor), version }
    }

    /// How a deed went that was begun at `sent` and is answered `now`.
    pub fn answered(&mut self, deed: &Deed, sent: Instant, now: Instant, answer: Answer) {
        if matches!(deed, Deed::Wait { .. }) {
            return;
        }
        self.next = Some(now + self.times.retry);
        self.must_read = false;
        match (deed, answer) {
            (Deed::Write(wanted), Answer::Is(Some(record))) => {
                let is_ours = wanted.holder == self.identity && record.holder == self.identity;
                self.next = Some(sent + self.times.retry);
                if is_ours {
                    self.state = State::Leads { record, renewed: sent };
                } else {
                    self.observe(record, now);
                }
            }
            (Deed::Read | Deed::Create(_), Answer::Is(Some(record))) => self.observe(record, now),
            (Deed::Read | Deed::Write(_), Answer::Is(None)) => {
                // The leader of the deleted record may not be replaced before it knows: see `Create`.
                self.state = State::Absent;
                self.next = None;
            }
            (_, Answer::Stale) => self.must_read = true,
            (_, Answer::Failed { after }) => {
                self.next = Some(now + self.times.retry.max(after));
                self.must_read = true;
            }
            (Deed::Wait { .. } | Deed::Create(_), Answer::Is(_)) => {}
        }
    }

    fn observe(&mut self, seen: Record, now: Instant) {
        match &mut self.state {
            // A renewal whose answer was lost: it is still ours, though not younger than we know.
            State::Leads { record, .. } if seen.holder == self.identity && seen.transitions == record.transitions => {
                *record = seen;
                self.next = None;
            }
            State::Follows { record, since } if record.version == seen.version => {
                if now >= *since + self.times.lease {
                    self.next = None;
                }
            }
            _ => {
                // One that was given back is taken at once.
                if seen.holder.is_empty() {
                    self.next = None;
                }
                self.state = State::Follows { record: seen, since: now };
            }
        }
    }

    /// An object carries an epoch above ours: another leads, or the Lease was lost. Our next epoch is above it.
    pub fn outpaced(&mut self, epoch: u32, now: Instant) {
        self.floor = self.floor.max(epoch);
        if let State::Leads { record, .. } = &self.state
            && record.transitions < epoch
        {
            self.state = State::Follows { record: record.clone(), since: now };
        }
    }

    /// Stops leading; answers what gives the Lease back.
    pub fn release(&mut self, now: Instant) -> Option<Deed> {
        let State::Leads { record, .. } = &self.state else { return None };
        let record = record.clone();
        let given_back = Record { holder: String::new(), ..record.clone() };
        self.state = State::Follows { record, since: now };
        Some(Deed::Write(given_back))
    }
}
