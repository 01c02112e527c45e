//! The clock of this machine.

use std::time::{SystemTime, UNIX_EPOCH};
use vocab::UnixSeconds;

/// Now. Before 1970 there is nothing.
#[must_use]
pub fn now() -> UnixSeconds {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    UnixSeconds::new(i64::try_from(since.as_secs()).unwrap_or(i64::MAX))
}
