//! The fence around writes: an object carries the epoch of its last write, and an older leader writes nothing.

use super::record::MOST_TRANSITIONS;
use crate::names::EPOCH;
use serde_json::Value;
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::watch;

/// The right to write, until an instant of the local monotonic clock.
#[derive(Debug, Clone)]
pub struct Epoch {
    number: u32,
    pub(super) until: Instant,
    /// Takes the epochs above ours that were seen.
    outpaced: Arc<watch::Sender<u32>>,
}

/// Why nothing may be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Fenced {
    /// This replica does not lead.
    #[error("another replica leads, or none does")]
    NotLeading,
    /// The object carries a later epoch.
    #[error(
        "it was written in epoch {theirs}, ours is {ours}: another replica leads, or another release publishes into this object"
    )]
    Outpaced {
        /// Epoch of the object.
        theirs: u32,
        /// Our epoch.
        ours: u32,
    },
}

impl Epoch {
    pub(crate) const fn new(number: u32, until: Instant, outpaced: Arc<watch::Sender<u32>>) -> Self {
        Self { number, until, outpaced }
    }

    /// `leaseTransitions` of the Lease when it became ours.
    #[must_use]
    pub const fn number(&self) -> u32 {
        self.number
    }

    /// Whether it stands at this instant: a process that was stopped wakes up after its end.
    #[must_use]
    pub fn stands_at(&self, now: Instant) -> bool {
        now < self.until
    }
}

/// Asked before each write.
#[derive(Debug, Clone)]
pub struct Fence {
    lead: watch::Receiver<Option<Epoch>>,
}

impl Fence {
    /// A fence for the epochs of this receiver.
    #[must_use]
    pub const fn new(lead: watch::Receiver<Option<Epoch>>) -> Self {
        Self { lead }
    }

    /// The epoch that stands now.
    #[must_use]
    pub fn epoch(&self) -> Option<u32> {
        let lead = self.lead.borrow();
        lead.as_ref().filter(|epoch| epoch.stands_at(Instant::now())).map(Epoch::number)
    }

    /// Whether an object as it was read may be written; answers the epoch to stamp on it. The write must carry the
    /// `resourceVersion` that was read: what another writes between is not seen here.
    ///
    /// # Errors
    /// This replica does not lead, or the object was written in a later epoch; then the elector steps down.
    pub fn check(&self, object: &Value) -> Result<u32, Fenced> {
        let lead = self.lead.borrow();
        let epoch = lead.as_ref().filter(|epoch| epoch.stands_at(Instant::now())).ok_or(Fenced::NotLeading)?;
        let theirs = epoch_of(object);
        if theirs > epoch.number {
            epoch.outpaced.send_if_modified(|seen| {
                let is_more = theirs > *seen;
                *seen = theirs.max(*seen);
                is_more
            });
            return Err(Fenced::Outpaced { theirs, ours: epoch.number });
        }
        Ok(epoch.number)
    }
}

/// The epoch on an object; 0 where there is none. What no Lease can count is no epoch of ours.
#[must_use]
pub fn epoch_of(object: &Value) -> u32 {
    let number = object["metadata"]["annotations"][EPOCH].as_str().and_then(|text| text.parse().ok());
    number.filter(|epoch| *epoch < MOST_TRANSITIONS).unwrap_or(0)
}

/// Writes the epoch on an object.
pub fn stamp(object: &mut Value, epoch: u32) {
    object["metadata"]["annotations"][EPOCH] = epoch.to_string().into();
}
