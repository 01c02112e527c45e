//! Drift: the forecasts of each issue hour, how they fared once their hours were over, and whether the shares of the last
//! seven days are still those that were promised.
//!
//! [`Issued`] holds the forecasts, [`score`] compares them with the demand, once, [`Window`] keeps the last seven days, and
//! [`judge`] says whether a share has left its band.

mod band;
mod issued;
mod scored;
#[cfg(test)]
mod tests;
mod window;

pub use band::{Judgement, Standing, judge, least_issues};
pub use issued::{Issued, IssuedBound, is_due, is_whole};
pub use scored::{BoundOutcome, ScoredIssue, Tally, score};
pub use window::{BoundRecord, OrganizationDrift, PoolDrift, Window};

/// Hours over which forecasts are judged: seven days, so that every hour of the week counts once.
pub const WINDOW_HOURS: i64 = 168;
/// Hours after which forecasts are forgotten: fourteen days.
pub const KEPT_HOURS: i64 = 336;
/// Usage that comes more than so many hours after that of the rest of its cluster is not waited for: usage older than two
/// hours is a missing input for quotas, too.
pub const LATE_HOURS: i64 = 2;
/// The exported quantile that is held against what came, beside the median: its place and level.
pub(crate) const JUDGED: (usize, f64) = (1, 0.9);
