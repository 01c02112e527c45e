//! Fairness among organizations: how much longer than their work their spot tasks take.

use placement::pool::Request;
use placement::shares::Weights;
use serde::Serialize;
use std::collections::BTreeMap;
use vocab::{Organization, TaskClass};

/// Sums of an organization's spot tasks that have ended.
#[derive(Debug, Clone, Copy, Default)]
struct Sums {
    /// GPU-seconds in thousandths from submission to end, and of them those that work took.
    took: u128,
    worked: u128,
}

/// Sums by organization.
#[derive(Debug, Default)]
pub struct Fairness(BTreeMap<Organization, Sums>);

/// How evenly spot is served; organizations without spot are left out.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Fair {
    /// Jain's index of served shares, each an organization's GPU time of work over that from submission to end per unit of its
    /// weight: 1 where all are alike, 1/n where one has everything (Jain, Chiu and Hawe 1984).
    pub jain: f64,
    /// The least of these shares by the largest.
    pub max_min: f64,
    /// The largest slowdown of an organization: GPU time from submission to end by that of work.
    pub slowdown_max: f64,
}

impl Fairness {
    /// A task has ended `took_s` after its submission; `worked_s` is what it takes without a break.
    pub fn ended(&mut self, request: &Request, took_s: i64, worked_s: i64) {
        if request.gang.class == TaskClass::Spot {
            let gpus_milli = u128::from(crate::tally::milli(request));
            let seconds = |seconds: i64| u128::try_from(seconds).unwrap_or(0);
            let sums = self.0.entry(request.organization.clone()).or_default();
            sums.took += gpus_milli * seconds(took_s.max(worked_s));
            sums.worked += gpus_milli * seconds(worked_s);
        }
    }

    /// The figures; none for fewer than two organizations.
    #[must_use]
    pub fn figures(&self, weights: &Weights) -> Option<Fair> {
        let of = |(organization, sums): (&Organization, &Sums)| {
            let served = sums.worked as f64 / sums.took as f64;
            (served, served / f64::from(weights.of(organization)))
        };
        let shares: Vec<(f64, f64)> = self.0.iter().filter(|(_, sums)| sums.worked > 0).map(of).collect();
        if shares.len() < 2 {
            return None;
        }
        let weighted = || shares.iter().map(|(_, weighted)| *weighted);
        let (sum, squares) = (weighted().sum::<f64>(), weighted().map(|share| share * share).sum::<f64>());
        let (least, most) = weighted().fold((f64::MAX, 0.0_f64), |(least, most), one| (least.min(one), most.max(one)));
        let slowest = shares.iter().map(|(served, _)| *served).fold(f64::MAX, f64::min);
        let jain = sum * sum / (shares.len() as f64 * squares);
        Some(Fair { jain, max_min: least / most, slowdown_max: 1.0 / slowest })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use placement::fleet::{Gang, GpuRequest, PodRequest};
    use vocab::{TaskId, UnixSeconds};

    fn request(organization: &str) -> Request {
        let task = TaskId::parse("task").unwrap();
        let gang = Gang { task, class: TaskClass::Spot, pod: PodRequest::new(GpuRequest::Whole(2), 0, 0), pods: 1 };
        let organization = Organization::parse(organization).unwrap();
        Request { gang, organization, submitted: UnixSeconds::new(0), hours: None, elastic: None }
    }

    #[test]
    fn organizations_that_wait_alike_are_served_alike() {
        let mut sums = Fairness::default();
        sums.ended(&request("a"), 100, 50);
        assert_eq!(sums.figures(&Weights::default()), None, "one organization");
        sums.ended(&request("b"), 400, 200);
        assert_eq!(sums.figures(&Weights::default()), Some(Fair { jain: 1.0, max_min: 1.0, slowdown_max: 2.0 }));
        sums.ended(&request("c"), 100, 100);
        let fair = sums.figures(&Weights::default()).unwrap();
        assert_eq!((fair.jain, fair.max_min, fair.slowdown_max), (4.0 / (3.0 * 1.5), 0.5, 2.0));
    }
}
