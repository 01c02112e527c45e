//! Events of a pool, read back from its journal.

use std::fmt;
use store::{PlacedPoolId, Store, StoreError};
use wire::EventBody;

/// Entries that are read at once.
const ENTRIES: u32 = 200;

/// The place of an event: its entry, and its place in that.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cursor {
    pub seq: u64,
    pub index: usize,
}

impl Cursor {
    /// Behind everything up to an entry.
    #[must_use]
    pub const fn after(seq: u64) -> Self {
        Self { seq, index: usize::MAX }
    }

    /// Reads `SEQ.INDEX`, the id of an event; an entry that no database counts to has none.
    #[must_use]
    pub fn parse(id: &str) -> Option<Self> {
        let (seq, index) = id.split_once('.')?;
        let seq = seq.parse().ok().filter(|seq: &u64| i64::try_from(*seq).is_ok())?;
        Some(Self { seq, index: index.parse().ok()? })
    }
}

/// As [`Cursor::parse`] reads it.
impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.seq, self.index)
    }
}

/// The next events behind a place, in their order.
///
/// # Errors
/// The database does not answer, or holds what is no event.
pub async fn events_after(
    store: &dyn Store,
    pool: PlacedPoolId,
    cursor: Cursor,
) -> Result<Vec<(Cursor, EventBody)>, StoreError> {
    // The entry of the event itself may hold more.
    let entries = store.entries_with_events(pool, cursor.seq.saturating_sub(1), ENTRIES).await?;
    let mut found = Vec::new();
    for entry in entries {
        let events: Vec<EventBody> = serde_json::from_str(&entry.events_json).map_err(|fault| StoreError::Corrupt {
            what: format!("the events of entry {}", entry.seq),
            reason: fault.to_string(),
        })?;
        let placed = events.into_iter().enumerate().map(|(index, event)| (Cursor { seq: entry.seq, index }, event));
        found.extend(placed.filter(|(at, _)| *at > cursor));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_of_an_event_is_its_place() {
        assert_eq!(Cursor::parse("12.3"), Some(Cursor { seq: 12, index: 3 }));
        assert!(Cursor::parse("12.3") < Some(Cursor::after(12)) && Cursor::after(12) < Cursor { seq: 13, index: 0 });
        assert_eq!(Cursor::parse(&Cursor::after(12).to_string()), Some(Cursor::after(12)));
        for text in ["", "12", "x.1", "1.-1", "9223372036854775808.0"] {
            assert_eq!(Cursor::parse(text), None, "{text:?}");
        }
    }
}
