//! Sessions that began while the database was read-only: Postgres reads the setting when a session begins, so they stay read-only.

use sqlx::postgres::PgPoolOptions;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// When the database last took a write again.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sessions(Arc<Mutex<Taken>>);

#[derive(Debug, Default)]
struct Taken {
    /// Whether the last proof of a write was refused as read-only.
    is_refused: bool,
    again_at: Option<Instant>,
}

impl Sessions {
    /// Lets a pool close, instead of lending, the sessions that began before the database took writes again.
    pub fn renewed_in(&self, options: PgPoolOptions) -> PgPoolOptions {
        let sessions = self.clone();
        options.before_acquire(move |_, known| {
            let is_good = sessions.begin_writable(known.age);
            Box::pin(std::future::ready(Ok(is_good)))
        })
    }

    /// Notes whether a proof of a write was refused as read-only.
    pub fn note(&self, is_refused: bool) {
        let mut taken = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if taken.is_refused && !is_refused {
            taken.again_at = Some(Instant::now());
        }
        taken.is_refused = is_refused;
    }

    /// Whether a session of this age began after the database took writes again.
    fn begin_writable(&self, age: Duration) -> bool {
        let again_at = self.0.lock().unwrap_or_else(PoisonError::into_inner).again_at;
        again_at.is_none_or(|again_at| age < again_at.elapsed())
    }
}
