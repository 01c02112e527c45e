//! An expert that knows the HP jobs of a pool: it draws the next hours from them.
//!
//! Where Headroom places the tasks, demand is not a series of numbers: it is known which HP jobs run and since when, which wait,
//! and how long earlier ones ran. [`JobHistory`] keeps what was seen of them. [`peaks`] draws paths of the pool's HP demand
//! from it: each running job ends by the hazard of its organization and size at its age, and jobs arrive as they did in a
//! past window, whole, so that bursts stay bursts. The peaks of the paths within H hours are the distribution of the peak,
//! and [`bounds`] is its p-quantile.
//!
//! [`JobExpert`] keeps a history, and mixes these bounds with others in the proportion that earlier losses suggest.
//! Rejected variants and their figures are in DECISIONS.md of the crate.

mod arrivals;
mod history;
mod listed;
mod past;
mod paths;
mod saved;
mod share;
mod survival;

pub use arrivals::{Arrival, Arrivals, WINDOW_S};
pub use history::{JobHistory, SeenJobs};
pub use listed::DroppedJobs;
pub use past::{ListedJob, MOST_JOBS, PastJobs};
pub use share::SharedBound;
pub use survival::{Curve, Survival};

use share::Share;
use vocab::{GuaranteeRate, HorizonHours, HpJob, UnixSeconds};

/// Paths of a draw. A prime, so that each stride visits every path once.
pub const PATHS: usize = 199;

/// All that is known of a pool's jobs.
#[derive(Debug, Clone, Copy)]
pub struct Known<'a> {
    /// Those that were watched, until now.
    pub history: &'a JobHistory,
    /// Those of a list, where there is one.
    pub past: Option<&'a PastJobs>,
    /// Whether arrivals are drawn from windows of an hour until enough of four hours are known. They know nothing of busier hours
    /// of the day.
    pub is_early: bool,
}

/// The peaks of HP demand over some hours, one for each path.
#[derive(Debug, Clone, PartialEq)]
pub struct Peaks {
    /// Hours from now.
    pub hours: HorizonHours,
    /// In GPUs, from the lowest to the highest.
    pub sorted_gpus: Vec<f64>,
}

impl Peaks {
    /// The ⌈(n+1)p⌉-th smallest peak, in GPUs; the largest where there is none.
    #[must_use]
    pub fn quantile_gpus(&self, rate: GuaranteeRate) -> f64 {
        let count = self.sorted_gpus.len();
        let rank = ((count as f64 + 1.0) * rate.as_f64() - 1e-9).ceil() as usize;
        self.sorted_gpus.get(rank.clamp(1, count.max(1)) - 1).copied().unwrap_or(0.0)
    }

    /// The mean peak, in GPUs.
    #[must_use]
    pub fn mean_gpus(&self) -> f64 {
        self.sorted_gpus.iter().sum::<f64>() / self.sorted_gpus.len().max(1) as f64
    }
}

/// Draws the peaks of HP demand within each of `offered` from now on. The history has to have observed `now`; `demand_milli` is
/// the HP demand of this moment in thousandths of a GPU: what of it is not in the history stays as it is. None until
/// arrivals were watched for seven hours and three quarters; with `is_early` those of up to 4 h after one and three quarters.
#[must_use]
pub fn peaks(
    known: Known<'_>,
    now: UnixSeconds,
    demand_milli: u64,
    offered: &[HorizonHours],
    seed: u64,
) -> Option<Vec<Peaks>> {
    let longest = offered.iter().copied().max()?;
    let paths = paths::Paths::draw(known, now, demand_milli, longest, seed)?;
    Some(paths.peaks(offered))
}

/// The p-quantiles of the peaks within each of `offered`, in GPUs: they do not decrease with the hours.
#[must_use]
pub fn bounds(
    known: Known<'_>,
    now: UnixSeconds,
    demand_milli: u64,
    offered: &[HorizonHours],
    (rate, seed): (GuaranteeRate, u64),
) -> Option<Vec<f64>> {
    let peaks = peaks(known, now, demand_milli, offered, seed)?;
    Some(peaks.iter().map(|one| one.quantile_gpus(rate)).collect())
}

/// The history of a pool's jobs, and the weight that its bounds have beside others.
#[derive(Debug, Clone, PartialEq)]
pub struct JobExpert {
    history: JobHistory,
    share: Share,
}

impl JobExpert {
    /// An expert of a pool of which nothing is known.
    #[must_use]
    pub fn new(rate: GuaranteeRate, offered: &[HorizonHours]) -> Self {
        Self { history: JobHistory::default(), share: Share::new(rate, offered) }
    }

    /// For another rate and other hours: the jobs stay known.
    #[must_use]
    pub fn made_for(self, rate: GuaranteeRate, offered: &[HorizonHours]) -> Self {
        Self { history: self.history, share: self.share.made_for(rate, offered) }
    }

    /// Draws the bounds of the HP jobs that were observed last, `now`, and mixes each of `others_gpus` (one for each of the offered
    /// hours, or of the first of them) with them. `past` are the jobs of a list, where there is one; `is_early` is as in [`Known`]. `seed`
    /// and what was learned decide the draws. Where others are missing the bounds of the jobs stand alone. The result does not decrease with the
    /// hours, if the others do not; it has the hours of which any bound is known.
    pub fn mix(
        &mut self,
        (now, demand_milli): (UnixSeconds, u64),
        (past, is_early): (Option<&PastJobs>, bool),
        others_gpus: &[f64],
        seed: u64,
    ) -> Vec<SharedBound> {
        let known = Known { history: &self.history, past, is_early };
        let bounds = bounds(known, now, demand_milli, &self.share.offered(), (self.share.rate(), seed));
        self.share.mix(now, demand_milli, others_gpus, bounds.as_deref())
    }

    /// Learns the HP jobs of this moment, of a pool whose tasks are placed here.
    pub fn observe(&mut self, now: UnixSeconds, jobs: &[HpJob]) {
        self.history.observe(now, jobs);
    }

    /// Learns the HP jobs that another scheduler lists, as in [`JobHistory::observe_listed`].
    pub fn observe_listed(&mut self, now: UnixSeconds, jobs: &[HpJob]) {
        self.history.observe_listed(now, jobs);
    }

    /// As in [`JobHistory::end_dropped`].
    pub fn end_dropped(&mut self, until: UnixSeconds) {
        self.history.end_dropped(until);
    }

    /// The jobs that were seen.
    #[must_use]
    pub const fn history(&self) -> &JobHistory {
        &self.history
    }
}

#[cfg(test)]
mod tests;
