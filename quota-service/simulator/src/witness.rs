//! Looking on while a world is played.

use placement::pool::Pool;
use vocab::UnixSeconds;

/// Looks on while a world is played.
pub trait Witness {
    /// Quotas were renewed.
    fn renewed(&mut self, pool: usize, at: UnixSeconds, state: &Pool);
    /// A job was submitted, and everything started that then fits.
    fn submitted(&mut self, job: u32, at: UnixSeconds, state: &Pool);
    /// A job starts, for the first time or again.
    fn started(&mut self, job: u32, at: UnixSeconds);
}

/// Nobody looks on.
pub(crate) struct Nobody;

impl Witness for Nobody {
    fn renewed(&mut self, _: usize, _: UnixSeconds, _: &Pool) {}
    fn submitted(&mut self, _: u32, _: UnixSeconds, _: &Pool) {}
    fn started(&mut self, _: u32, _: UnixSeconds) {}
}
