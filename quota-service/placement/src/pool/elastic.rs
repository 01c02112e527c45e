//! Spot tasks that run on fewer pods than they asked for, and on more.

use super::Request;
use crate::elastic::Scaling;
use crate::fleet::{Gang, GpuRequest};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;
use vocab::{TaskClass, TaskId, UnixSeconds};

/// How far the pods of a task may come and go while it runs.
///
/// It owns `min_pods`: they wait, are promised and are evicted like those of any other task. What it has above is lent
/// (Cornucopia's partial preemption, with the minimum for its first claim).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Elastic {
    min_pods: u32,
    max_pods: u32,
    /// Thousandths of the speed on one pod, on 1, 2, 3 … pods; none where none is reported.
    speeds: Option<Arc<[u32]>>,
    /// Where none is reported: measured speeds, in thousandths of any one unit, by its pods (Cornucopia's Alg. 1).
    measured: BTreeMap<u32, u64>,
}

/// Why a task cannot be elastic.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ElasticFault {
    /// The numbers of pods do not rise from least over requested to most.
    #[error("{min} to {max} pods, and {asked} asked for: write 1 ≤ min_pods ≤ pods ≤ max_pods ≤ {most}", most = Elastic::MOST)]
    Order {
        /// The fewest pods.
        min: u32,
        /// Pods of the request.
        asked: u32,
        /// The most pods.
        max: u32,
    },
    /// Only spot tasks are elastic.
    #[error("only spot tasks are elastic: what HP asks for is never taken back")]
    NotSpot,
    /// Pods of an elastic task have whole GPUs.
    #[error("pods of an elastic task need whole GPUs, one at least")]
    NotWhole,
    /// An elastic task has no affinity.
    #[error("an elastic task cannot ask for an affinity: the GPUs that come and go lie anywhere")]
    Affinity,
    #[error(
        "there are {known} speeds for up to {asked} pods: measure it on as many pods as it asks for, or leave speeds out"
    )]
    /// The speeds do not reach to the requested pods.
    Unmeasured {
        /// Numbers of pods with a speed.
        known: usize,
        /// Pods of the request.
        asked: u32,
    },
    #[error(
        "the speed on {pods} pods is 0, or more than {pods} times that on one: write multiples of the speed on one pod"
    )]
    /// A speed is not a positive number.
    Speed {
        /// The number of pods with the refused speed.
        pods: usize,
    },
}

impl Elastic {
    /// Pods of one task at most.
    pub const MOST: u32 = 4_096;

    /// # Errors
    /// The numbers contradict each other.
    pub fn new(min: u32, asked: u32, max: u32, speeds: Option<Vec<u32>>) -> Result<Self, ElasticFault> {
        if min < 1 || min > asked || asked > max || max > Self::MOST {
            return Err(ElasticFault::Order { min, asked, max });
        }
        let mut max_pods = max;
        if let Some(speeds) = &speeds {
            let first = speeds.first().copied().unwrap_or(0);
            let is_none =
                |(pods, speed): (usize, &u32)| *speed == 0 || u64::from(*speed) > u64::from(first) * (pods as u64 + 1);
            if let Some(bad) = speeds.iter().enumerate().position(is_none) {
                return Err(ElasticFault::Speed { pods: bad + 1 });
            }
            if speeds.len() < asked as usize {
                return Err(ElasticFault::Unmeasured { known: speeds.len(), asked });
            }
            max_pods = max.min(speeds.len() as u32);
        }
        debug_assert!(asked <= max_pods, "speeds reach to the request");
        Ok(Self { min_pods: min, max_pods, speeds: speeds.map(Arc::from), measured: BTreeMap::new() })
    }

    /// The same, with what was measured of it.
    #[must_use]
    pub fn with_measured(self, mut measured: BTreeMap<u32, u64>) -> Self {
        // A speed without pods says nothing.
        measured.retain(|pods, _| *pods > 0);
        Self { measured, ..self }
    }

    /// Its measured speeds: thousandths of a unit by its pods.
    #[must_use]
    pub const fn measured(&self) -> &BTreeMap<u32, u64> {
        &self.measured
    }

    /// It has run so fast on so many pods. Where its speeds are given, they count.
    pub fn measure(&mut self, pods: u32, speed_thousandths: u64) {
        if pods > 0 {
            self.measured.insert(pods, speed_thousandths);
        }
    }

    /// Whether such a gang can be elastic.
    ///
    /// # Errors
    /// It is HP, has shares of GPUs, or wants them to lie together.
    pub fn check(gang: &Gang) -> Result<(), ElasticFault> {
        match (gang.class, gang.pod.gpus, gang.pod.affinity) {
            (TaskClass::Hp, ..) => Err(ElasticFault::NotSpot),
            (_, GpuRequest::Share(_) | GpuRequest::Whole(0), _) => Err(ElasticFault::NotWhole),
            (.., Some(_)) => Err(ElasticFault::Affinity),
            _ => Ok(()),
        }
    }

    /// Least number of pods.
    #[must_use]
    pub const fn min_pods(&self) -> u32 {
        self.min_pods
    }

    /// Largest number of pods.
    #[must_use]
    pub const fn max_pods(&self) -> u32 {
        self.max_pods
    }

    /// Thousandths of the speed on one pod.
    #[must_use]
    pub fn speeds(&self) -> Option<&[u32]> {
        self.speeds.as_deref()
    }

    /// The gain of one pod more than `pods`, of the first one's; no pod counts more than one before it
    /// ([`Profile::gain`](crate::elastic::Profile::gain)).
    #[must_use]
    pub fn gain(&self, pods: u32) -> Scaling {
        let Some(speeds) = &self.speeds else { return self.measured_gain(pods) };
        let first = u64::from(speeds[0]);
        debug_assert!(first > 0, "a speed of zero is refused");
        let (mut before, mut least) = (0, 1_000_000);
        for speed in speeds.iter().take(pods as usize + 1) {
            let adds = u64::from(speed.saturating_sub(before)) * 1_000_000 / first;
            (before, least) = (*speed, adds.min(least));
        }
        Scaling::of_millionths(least as u32)
    }

    /// The same by what was measured: between two numbers of pods each one adds alike, up to the first and beyond the last one
    /// it is as near as they are. So a task grows pod by pod for as long as that has been worth it.
    fn measured_gain(&self, pods: u32) -> Scaling {
        let Some((first, speed)) = self.measured.first_key_value() else { return Scaling::LINEAR };
        let of_first = (speed / u64::from(*first)).max(1);
        let (mut before, mut least) = ((*first, *speed), 1_000_000);
        for (count, speed) in self.measured.range(first + 1..) {
            if before.0 > pods {
                break;
            }
            let adds = speed.saturating_sub(before.1) / u64::from(count - before.0);
            least = least.min(adds.saturating_mul(1_000_000) / of_first);
            before = (*count, *speed);
        }
        Scaling::of_millionths(least as u32)
    }
}

/// The claims behind a lent pod, the strongest first: up to the request before beyond it, then the larger gain, then fewer pods,
/// then who came first. The weakest gives first.
pub type LoanClaim = (bool, Reverse<Scaling>, u32, UnixSeconds, TaskId);

impl Request {
    /// The pods without which the task does not run: what is placed, promised and evicted as a whole.
    #[must_use]
    pub fn core(&self) -> Gang {
        let pods = self.elastic.as_ref().map_or(self.gang.pods, Elastic::min_pods);
        debug_assert!(pods <= self.gang.pods, "the core is part of the request");
        Gang { pods, ..self.gang.clone() }
    }

    /// The claim on one pod more than `pods`.
    pub(super) fn claim(&self, elastic: &Elastic, pods: u32) -> LoanClaim {
        let gain = Reverse(elastic.gain(pods));
        (pods >= self.gang.pods, gain, pods, self.submitted, self.gang.task.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_one_pod_more_adds_is_never_more_than_what_one_before_did() {
        let bends = Elastic::new(1, 2, 8, Some(vec![500, 1_000, 1_250, 1_200, 1_900])).unwrap();
        let gains: Vec<u32> = (0..6).map(|pods| bends.gain(pods).millionths()).collect();
        assert_eq!(gains, [1_000_000, 1_000_000, 500_000, 0, 0, 0]);
        assert_eq!(bends.max_pods(), 5, "it is measured no further");
        assert_eq!(Elastic::new(1, 2, 4, None).unwrap().gain(3), Scaling::LINEAR);
    }

    #[test]
    fn what_is_measured_says_what_the_next_pod_is_worth() {
        let mut learns = Elastic::new(1, 4, 8, None).unwrap();
        let gains = |of: &Elastic| [1, 2, 3, 4, 7].map(|pods| of.gain(pods).millionths());
        assert_eq!(gains(&learns), [1_000_000; 5], "nothing is known");
        learns.measure(2, 200_000);
        assert_eq!(gains(&learns), [1_000_000; 5], "what is not measured counts as the last one that is");
        learns.measure(4, 300_000);
        assert_eq!(gains(&learns), [1_000_000, 500_000, 500_000, 500_000, 500_000]);
        learns.measure(5, 290_000);
        assert_eq!(gains(&learns), [1_000_000, 500_000, 500_000, 0, 0], "a pod that adds nothing ends it");
        learns.measure(5, 340_000);
        assert_eq!(gains(&learns), [1_000_000, 500_000, 500_000, 400_000, 400_000], "measured again");
    }

    #[test]
    fn numbers_that_contradict_each_other_are_refused() {
        let refused = |min, asked, max, speeds| Elastic::new(min, asked, max, speeds).unwrap_err();
        assert_eq!(refused(0, 2, 4, None), ElasticFault::Order { min: 0, asked: 2, max: 4 });
        assert_eq!(refused(3, 2, 4, None), ElasticFault::Order { min: 3, asked: 2, max: 4 });
        assert_eq!(refused(1, 2, 1, None), ElasticFault::Order { min: 1, asked: 2, max: 1 });
        assert_eq!(refused(1, 2, 5_000, None), ElasticFault::Order { min: 1, asked: 2, max: 5_000 });
        assert_eq!(refused(1, 2, 4, Some(vec![10])), ElasticFault::Unmeasured { known: 1, asked: 2 });
        assert_eq!(refused(1, 2, 4, Some(vec![10, 21])), ElasticFault::Speed { pods: 2 });
        assert_eq!(refused(1, 1, 4, Some(vec![0])), ElasticFault::Speed { pods: 1 });
    }
}
