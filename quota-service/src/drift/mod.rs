//! The ledger: records the forecasts of each issue hour, scores them once their hours are over, and reports drift.
//!
//! It scores before a renewal and records after it: a ledger that cannot be read or written costs no quota. What it knows is
//! in the database; what it holds in memory can be read again at any time.

mod explain;
mod ledger;
mod unscored;

pub use explain::explanation;
pub use ledger::{Ledgers, Renewed};

use forecaster::drift::{Judgement, PoolDrift};
use std::collections::BTreeMap;
use std::sync::Arc;
use store::RunId;
use vocab::{ClusterName, PoolId, UnixSeconds};

/// How the forecasts of every cluster fared in the last seven days.
pub type Drifts = BTreeMap<ClusterName, Arc<ClusterDrift>>;

/// How those of one cluster fared.
#[derive(Debug, Clone)]
pub struct ClusterDrift {
    /// The run that is judged: the one that serves.
    pub run: RunId,
    pub pools: BTreeMap<PoolId, PoolReport>,
}

/// How those of one pool fared.
#[derive(Debug, Clone)]
pub struct PoolReport {
    pub drift: PoolDrift,
    /// Of the 0.9 quantile.
    pub coverage: Judgement,
    /// Of the pool's bound at p.
    pub bound: Judgement,
    /// Since when one of them has been outside its band, as far as this service has seen.
    pub outside_since: Option<UnixSeconds>,
}

impl PoolReport {
    /// Whether the coverage of the 0.9 quantile or of the bound has left its band.
    #[must_use]
    pub fn is_outside(&self) -> bool {
        self.coverage.standing.is_outside() || self.bound.standing.is_outside()
    }
}

impl ClusterDrift {
    /// The first pool that has left a band.
    #[must_use]
    pub fn outside(&self) -> Option<&PoolReport> {
        self.pools.values().find(|pool| pool.is_outside())
    }
}

/// Work on a thread of its own, so that requests keep moving. `None` where it broke off, which is a bug.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    let worked = tokio::task::spawn_blocking(work).await;
    worked.inspect_err(|fault| tracing::error!(%fault, "the ledger has panicked, which is a bug")).ok()
}
