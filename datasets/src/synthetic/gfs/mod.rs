//! A synthetic cluster, calibrated to the published figures of the GFS trace.
//!
//! Nothing of the trace itself is here: `published` holds its summary tables. From them follow
//!
//! 1. the `table` of expected jobs by organization, GPU model, class, size and length, raked (`rake`) to every published
//!    count of jobs, sum of GPUs and sum of GPU-seconds;
//! 2. the jobs (`draw`), drawn from it in strata, their durations (`durations`) moved inside their buckets until the sums of
//!    GPU-seconds hold for the jobs drawn;
//! 3. which of them stand (`standing`) at second 0, and when (`arrivals`) the others come;
//! 4. usage, by the [sweep](crate::sweep) that reads any job list.
//!
//! Shares are over all jobs made, those that stand at the beginning with them, each with its nominal duration, which may
//! reach past the window, as they are over the trace's. What is published tells sums over one or two columns and nothing of
//! what goes with what, nor of order in time. That jobs come in projects, what a gang is like on each model, and how an
//! organization's week differs from another's is ours, and so is how hard the result is to forecast.
//!
//! In a window of weeks half of the nominal GPU-seconds lie past its end. Demand then is 50 to 80 % of each model's fleet,
//! with peaks above it where gangs are large. The longer the window the more of them it holds: over the trace's 184 days
//! demand on A10 exceeds the fleet most of the time, as it does in the trace itself, where it averages 139 %.
//!
//! Chance has one stream for each organization and model, so that none depends on what another drew; what ties them
//! together are the last calibration of durations, the chance to stand at the beginning and the hours of the day, each a
//! factor that all share.

mod arrivals;
mod cells;
/// Comparison with the published figures.
pub mod check;
mod draw;
mod durations;
mod made;
mod plan;
/// Published figures.
pub mod published;
mod rake;
mod standing;
mod table;

pub use made::{Job, Made};

use published::Shape;
use vocab::{ClusterName, HourStart, SECONDS_PER_DAY, SECONDS_PER_HOUR};

/// The trace's clock, Asia/Shanghai, which has no daylight saving.
const OFFSET_S: i64 = 8 * SECONDS_PER_HOUR;
/// [`SECONDS_PER_HOUR`] and [`SECONDS_PER_DAY`] as the jobs count: their times are seconds of a window, in 32 bits.
const HOUR_S: u32 = SECONDS_PER_HOUR as u32;
const DAY_S: u32 = SECONDS_PER_DAY as u32;

/// Which cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shares {
    /// 4,278 nodes of six models, jobs as in the trace.
    Trace,
    /// 287 nodes of 8 A100, jobs as in the paper's table 3: by class, request and gang, with the mean durations that follow
    /// from table 5. What goes with what is as on the A100 of the trace, but no gang has more than 64 GPUs, no job
    /// lasts longer than 20 days, and the jobs are as large as brings HP demand to about 70 % of the GPUs: none of the three
    /// is published.
    A100,
}

/// Parameters of a synthetic cluster.
#[derive(Debug, Clone)]
pub struct GfsCluster {
    /// Published shares to follow.
    pub shares: Shares,
    /// Name of the cluster.
    pub cluster: ClusterName,
    /// First hour.
    pub start: HourStart,
    /// Days of jobs.
    pub days: u32,
    /// Those of the trace, largest first. Fewer: the smaller ones are left out, with their jobs. More: the
    /// smallest quarter comes again under new names. Neither changes the jobs of the others.
    pub organizations: u32,
    /// Seed: the same seed gives the same jobs.
    pub seed: u64,
}

impl GfsCluster {
    /// The same seed gives the same cluster.
    #[must_use]
    pub fn make(&self) -> Made {
        Made { what: self.clone(), jobs: plan::jobs(self) }
    }

    /// Organizations of the published tables that this cluster has.
    #[must_use]
    pub const fn published_organizations(shares: Shares) -> u32 {
        match shares {
            Shares::Trace => 84,
            Shares::A100 => 39,
        }
    }

    /// Local hour of the first hour.
    pub(crate) const fn first_local_hour(&self) -> u32 {
        ((self.start.unix_s() + OFFSET_S).rem_euclid(SECONDS_PER_DAY) / SECONDS_PER_HOUR) as u32
    }

    /// Weekday of the first hour, Monday 0.
    pub(crate) const fn first_weekday(&self) -> u32 {
        // 1970-01-01 was a Thursday.
        ((self.start.unix_s() + OFFSET_S).div_euclid(SECONDS_PER_DAY) + 3).rem_euclid(7) as u32
    }

    /// Node shapes of the cluster.
    #[must_use]
    pub const fn fleet(&self) -> &'static [Shape] {
        match self.shares {
            Shares::Trace => &published::FLEET,
            Shares::A100 => &published::FLEET_A100,
        }
    }
}

#[cfg(test)]
mod tests;
