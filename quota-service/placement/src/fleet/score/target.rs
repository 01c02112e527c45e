//! The workload that fragmentation is measured against, and the measure (FGD).

use crate::fleet::{GpuRequest, Models, NodeState, PodRequest, WHOLE_MILLI};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The request of a pod, as fragmentation sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Spec {
    /// CPU, in thousandths of a core.
    pub cpu_milli: u64,
    /// GPUs of a pod.
    pub gpus: GpuRequest,
    /// GPU models on which a pod may run.
    pub models: Models,
}

impl Spec {
    /// Request of a pod as the scores see it.
    #[must_use]
    pub const fn of(pod: &PodRequest) -> Self {
        Self { cpu_milli: pod.cpu_milli, gpus: pod.gpus, models: pod.models }
    }
}

/// Pods that came, by what they asked for, and the target that is made of the most frequent ones.
///
/// The target is renewed when the pods have grown by a tenth, so that scores stay valid in between. When that is follows
/// from how many pods there are, and from nothing else.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Workload {
    counts: BTreeMap<Spec, u64>,
    pods: u64,
    target: Arc<Target>,
}

/// Of the pods, in hundredths: so many the target stands for at least.
const COVERED: u128 = 95;

impl Workload {
    /// With a target of its own time: the weights of the specs that are in it. Without any, the target is that of all counts.
    #[must_use]
    pub fn from_parts(parts: impl IntoIterator<Item = (Spec, u64, Option<u64>)>) -> Self {
        let (mut counts, mut weights) = (BTreeMap::new(), BTreeMap::new());
        for (spec, count, weight) in parts {
            *counts.entry(spec).or_default() += count;
            weights.extend(weight.map(|weight| (spec, weight)));
        }
        let pods = counts.values().sum();
        debug_assert!(weights.keys().all(|spec| counts.contains_key(spec)), "a target is made of counted pods");
        let target = if weights.is_empty() { Target::of(&counts) } else { Target::new(weights.into_iter().collect()) };
        Self { counts, pods, target: Arc::new(target) }
    }

    /// Each spec with its pods, and with its weight in the target, if it is in it.
    pub fn parts(&self) -> impl Iterator<Item = (Spec, u64, Option<u64>)> {
        let weight = |spec: &Spec| self.target.specs.iter().find(|(one, _)| one == spec).map(|(_, weight)| *weight);
        self.counts.iter().map(move |(spec, count)| (*spec, *count, weight(spec)))
    }

    /// Counts pods that came.
    pub fn add(&mut self, spec: Spec, pods: u64) {
        let renewed_at = next_renewal(self.pods);
        *self.counts.entry(spec).or_default() += pods;
        self.pods += pods;
        if self.pods >= renewed_at {
            self.target = Arc::new(Target::of(&self.counts));
        }
    }

    /// Whether the pool has seen no request yet.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.pods == 0
    }

    /// The request that is scored.
    #[must_use]
    pub const fn target(&self) -> &Arc<Target> {
        &self.target
    }
}

/// The least of 1, 2, …, 20, 22, …, each a tenth above the one before, that lies above so many pods.
pub(super) fn next_renewal(pods: u64) -> u64 {
    let mut at = 1;
    while at <= pods {
        at += (at / 10).max(1);
    }
    debug_assert!(at > pods, "the next renewal lies ahead");
    at
}

/// Specs with their weights.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Target {
    /// The most frequent first.
    specs: Vec<(Spec, u64)>,
    weight: u64,
    /// The same by what a GPU has to have free for them, rising; those without a GPU are left out.
    levels: Vec<Level>,
}

/// Specs that need the same of each GPU.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Level {
    milli: u16,
    asks: Vec<(Spec, u16, u64)>,
}

impl Target {
    fn of(counts: &BTreeMap<Spec, u64>) -> Self {
        let mut specs: Vec<(Spec, u64)> = counts.iter().map(|(spec, count)| (*spec, *count)).collect();
        // Of equally frequent ones the larger first.
        specs.sort_by(|(one, a), (other, b)| b.cmp(a).then(other.cmp(one)));
        let all: u128 = specs.iter().map(|(_, count)| u128::from(*count)).sum();
        let mut sum = 0;
        let enough = specs.iter().position(|(_, count)| {
            sum += u128::from(*count);
            sum * 100 >= all * COVERED
        });
        specs.truncate(enough.map_or(0, |last| last + 1));
        debug_assert!(specs.is_empty() == counts.is_empty(), "any count has a target");
        Self::new(specs)
    }

    fn new(mut specs: Vec<(Spec, u64)>) -> Self {
        specs.sort_by(|(one, a), (other, b)| b.cmp(a).then(other.cmp(one)));
        let mut levels: BTreeMap<u16, Vec<(Spec, u16, u64)>> = BTreeMap::new();
        for (spec, weight) in &specs {
            let (milli, gpus) = match spec.gpus {
                GpuRequest::Share(milli) => (milli, 1),
                GpuRequest::Whole(0) => continue,
                GpuRequest::Whole(gpus) => (WHOLE_MILLI, gpus),
            };
            levels.entry(milli).or_default().push((*spec, gpus, *weight));
        }
        let weight = specs.iter().map(|(_, weight)| weight).sum();
        Self { specs, weight, levels: levels.into_iter().map(|(milli, asks)| Level { milli, asks }).collect() }
    }

    /// How many specs there are.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.specs.len()
    }

    /// Whether no request counts.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.specs.is_empty()
    }

    /// Σ of all weights.
    #[must_use]
    pub const fn weight(&self) -> u64 {
        self.weight
    }

    /// The part of these free amounts that the specs could use, in thousandths of a GPU × weight: of all that is free the rest is
    /// fragmentation. A spec that does not fit uses nothing; one that fits, all GPUs that have enough for it.
    pub(super) fn usable(&self, free: &[u16], free_cpu_milli: u64, model: u8) -> u64 {
        let mut usable = 0;
        for Level { milli, asks } in &self.levels {
            let (mut gpus, mut sum) = (0_u16, 0_u64);
            for part in free.iter().filter(|part| *part >= milli) {
                gpus += 1;
                sum += u64::from(*part);
            }
            // The next ones need more of a GPU.
            if gpus == 0 {
                break;
            }
            let fits = |(spec, asked, _): &&(Spec, u16, u64)| {
                gpus >= *asked && free_cpu_milli >= spec.cpu_milli && spec.models.has(model)
            };
            usable += sum * asks.iter().filter(fits).map(|(.., weight)| weight).sum::<u64>();
        }
        usable
    }

    /// F of a node (FGD), in thousandths of a GPU × weight.
    pub(in crate::fleet) fn fragmentation(&self, node: &NodeState) -> u128 {
        let free: Vec<u16> = node.gpus.iter().map(|gpu| gpu.free()).collect();
        let all: u64 = free.iter().map(|part| u64::from(*part)).sum();
        let usable = self.usable(&free, node.free_cpu_milli, node.model);
        debug_assert!(u128::from(usable) <= u128::from(all) * u128::from(self.weight), "no more is used than is free");
        u128::from(all) * u128::from(self.weight) - u128::from(usable)
    }
}
