//! The value of one node for one pod by each rule.

use super::{ScoreRule, Target, Terms};
use crate::fleet::evictions::Evictions;
use crate::fleet::{GpuRequest, NodeState, PodRequest, WHOLE_MILLI};
use crate::power::NodePower;
use std::sync::Arc;
use vocab::TaskClass;

/// A node's scores for a pod, the higher the better, and the GPU of a share under each of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seat {
    /// Score of the node; the highest wins.
    pub score: i32,
    /// The score of power, where the rule has two terms.
    pub power: i32,
    /// How well the proportion of what is free fits that of the request, where the rule looks at it.
    pub proportion: i32,
    /// GPU that a share would take.
    pub gpu: u8,
    /// GPU that a share would take by power alone.
    pub power_gpu: u8,
}

impl Seat {
    /// Where the pod does not fit.
    pub const NONE: Self = Self { score: i32::MIN, power: i32::MIN, proportion: 0, gpu: 0, power_gpu: 0 };

    const fn of(score: i32, gpu: u8) -> Self {
        Self { score, gpu, ..Self::NONE }
    }

    /// Whether the pod fits the node at all.
    pub const fn fits(self) -> bool {
        self.score != i32::MIN
    }
}

/// The largest node of the published simulator: what BestFit, DotProd and GpuClustering measure by.
const MOST_CPU_MILLI: i64 = 128_000;
const MOST_GPU_MILLI: i64 = 8_000;
/// The top of every score.
const TOP: i64 = 100;

/// The inputs of scores beside node and pod.
pub struct Ground<'a> {
    /// Rule of the policy.
    pub rule: ScoreRule,
    /// Class of the task.
    pub class: TaskClass,
    /// Request that is scored.
    pub target: &'a Arc<Target>,
    /// By GPU model.
    pub power: &'a [NodePower],
    /// Evictions of the nodes.
    pub evictions: &'a Evictions,
}

/// A node as a pod would leave it.
#[derive(Clone, Copy)]
struct After {
    idle_gpus: u8,
    free_cpu_milli: u64,
}

impl Ground<'_> {
    /// The value of a node for a pod.
    pub fn seat(&self, node: &NodeState, pod: &PodRequest) -> Seat {
        if !node.fits(pod) || self.is_broken(node) {
            return Seat::NONE;
        }
        let plain = |score: i64| Seat::of(score as i32, fullest(node, pod));
        match self.rule {
            ScoreRule::Fullest => plain(-fullness(node)),
            ScoreRule::BestFit => plain(best_fit(node, pod)),
            ScoreRule::DotProd => plain(dot_prod(node, pod)),
            ScoreRule::GpuPacking => plain(packing(node, pod)),
            ScoreRule::GpuClustering => plain(clustering(node, pod)),
            ScoreRule::Gfs | ScoreRule::Apart | ScoreRule::FirstFit | ScoreRule::Random { .. } => plain(0),
            ScoreRule::Score(terms) | ScoreRule::Beside(terms) => self.terms(terms, node, pod),
        }
    }

    /// GFS keeps spot away from nodes that evict too often, with any terms beside it.
    fn is_broken(&self, node: &NodeState) -> bool {
        let is_kept_away = matches!(self.rule, ScoreRule::Beside(_)) && self.class == TaskClass::Spot;
        is_kept_away && self.evictions.weight(node.evictions) >= self.evictions.breaker()
    }

    fn terms(&self, terms: Terms, node: &NodeState, pod: &PodRequest) -> Seat {
        match terms {
            Terms::Fgd => {
                let (score, gpu) = self.fgd(node, pod);
                Seat::of(score, gpu)
            }
            Terms::Pwr => {
                let (score, gpu) = self.pwr(node, pod);
                Seat::of(score, gpu)
            }
            Terms::Mix { .. } | Terms::Moving => {
                let ((score, gpu), (power, power_gpu)) = (self.fgd(node, pod), self.pwr(node, pod));
                let proportion = if terms == Terms::Moving { proportion(node, pod) } else { 0 };
                Seat { score, power, proportion, gpu, power_gpu }
            }
        }
    }

    /// ⌊100 · sigmoid((F before − F after) / 1000)⌋, and the GPU that makes it best.
    fn fgd(&self, node: &NodeState, pod: &PodRequest) -> (i32, u8) {
        let mut free = [0; GpuRequest::MOST as usize];
        free.iter_mut().zip(&node.gpus).for_each(|(free, gpu)| *free = gpu.free());
        let free = &mut free[..node.gpus.len()];
        let before = self.target.usable(free, node.free_cpu_milli, node.model);
        let free_cpu_milli = left_cpu(node, pod);
        let score = |free: &[u16]| {
            let after = self.target.usable(free, free_cpu_milli, node.model);
            // A free part that is taken is no fragmentation any more; a usable part that no longer is becomes one.
            let taken = i128::from(pod.gpus.milli()) * i128::from(self.target.weight());
            sigmoid_of(taken - i128::from(before) + i128::from(after), self.target.weight())
        };
        match pod.gpus {
            GpuRequest::Whole(count) => {
                let idle = free.iter_mut().filter(|part| **part == WHOLE_MILLI).take(usize::from(count));
                idle.for_each(|part| *part = 0);
                (score(free), 0)
            }
            GpuRequest::Share(milli) => best_gpu(node, milli, |gpu| {
                free[gpu] -= milli;
                let score = score(free);
                free[gpu] += milli;
                score
            }),
        }
    }

    /// Watts before less watts after, and the GPU that makes it best. Nothing where the power is not known.
    fn pwr(&self, node: &NodeState, pod: &PodRequest) -> (i32, u8) {
        let power = self.power.get(usize::from(node.model));
        let now = power.map_or(0, |power| power.watts(node));
        let free_cpu_milli = left_cpu(node, pod);
        let score = |after: After| {
            let then = power.map_or(0, |power| power.with(node, after.idle_gpus, after.free_cpu_milli));
            (now as i64 - then as i64) as i32
        };
        match pod.gpus {
            GpuRequest::Whole(count) => (score(After { idle_gpus: node.idle - count as u8, free_cpu_milli }), 0),
            GpuRequest::Share(milli) => best_gpu(node, milli, |gpu| {
                let idle_gpus = node.idle - u8::from(node.gpus[gpu].is_idle());
                score(After { idle_gpus, free_cpu_milli })
            }),
        }
    }
}

/// CPU that a pod would leave, in thousandths; what is not known stays so.
const fn left_cpu(node: &NodeState, pod: &PodRequest) -> u64 {
    if node.cpu_milli == u64::MAX { u64::MAX } else { node.free_cpu_milli - pod.cpu_milli }
}

/// `sum` / `weight` thousandths of a GPU of fragmentation that go.
fn sigmoid_of(sum: i128, weight: u64) -> i32 {
    let gpus = sum as f64 / (weight.max(1) as f64 * 1_000.0);
    (TOP as f64 / (1.0 + (-gpus).exp())).floor() as i32
}

/// The GPU with room for a share that scores highest, the first of equals. GPUs that are equally free score alike.
fn best_gpu(node: &NodeState, milli: u16, mut score: impl FnMut(usize) -> i32) -> (i32, u8) {
    let mut best = (i32::MIN, 0);
    for (number, gpu) in node.gpus.iter().enumerate().filter(|(_, gpu)| gpu.free() >= milli) {
        if node.gpus[..number].iter().any(|before| before.free() == gpu.free()) {
            continue;
        }
        let score = score(number);
        if score > best.0 {
            best = (score, number as u8);
        }
    }
    best
}

/// The fullest GPU with room for a share.
fn fullest(node: &NodeState, pod: &PodRequest) -> u8 {
    let GpuRequest::Share(milli) = pod.gpus else { return 0 };
    let fits = node.gpus.iter().enumerate().filter(|(_, gpu)| gpu.free() >= milli);
    fits.min_by_key(|(number, gpu)| (gpu.free(), *number)).map_or(0, |(number, _)| number as u8)
}

fn free_milli(node: &NodeState) -> i64 {
    node.gpus.len() as i64 * i64::from(WHOLE_MILLI) - i64::from(node.hp_milli) - i64::from(node.spot_milli)
}

/// CPU that is free, in thousandths; none where it is not known, so that it decides nothing.
fn free_cpu(node: &NodeState) -> i64 {
    if node.cpu_milli == u64::MAX { 0 } else { node.free_cpu_milli as i64 }
}

/// The free share in millionths, so that nodes of any size compare.
fn fullness(node: &NodeState) -> i64 {
    free_milli(node) * 1_000 / node.gpus.len().max(1) as i64
}

/// 100 · (1 − Σ over CPU and GPU of ½ · (free − request) / most).
fn best_fit(node: &NodeState, pod: &PodRequest) -> i64 {
    let cpu_milli = (free_cpu(node) - pod.cpu_milli as i64).max(0);
    let gpu_milli = free_milli(node) - i64::from(pod.gpus.milli());
    let whole = 2 * MOST_CPU_MILLI;
    TOP * (whole - cpu_milli - gpu_milli * (MOST_CPU_MILLI / MOST_GPU_MILLI)) / whole
}

/// 100 · (1 − ½ · Σ over CPU and GPU of free · request / most²).
fn dot_prod(node: &NodeState, pod: &PodRequest) -> i64 {
    let per = i128::from(MOST_CPU_MILLI / MOST_GPU_MILLI);
    let cpus = i128::from(free_cpu(node)) * i128::from(pod.cpu_milli);
    let gpus = i128::from(free_milli(node)) * i128::from(pod.gpus.milli()) * per * per;
    let whole = 2 * i128::from(MOST_CPU_MILLI).pow(2);
    (i128::from(TOP) * (whole - cpus - gpus) / whole) as i64
}

/// ⌊100 · cosine⌋ of what is free and what is asked for, each as a share of a node of 128 virtual CPUs and 8 GPUs.
fn proportion(node: &NodeState, pod: &PodRequest) -> i32 {
    let per = (MOST_CPU_MILLI / MOST_GPU_MILLI) as f64;
    let free = [free_cpu(node) as f64, free_milli(node) as f64 * per];
    let asked = [pod.cpu_milli as f64, f64::from(pod.gpus.milli()) * per];
    let product = free[0] * asked[0] + free[1] * asked[1];
    // The cosine with nothing is zero.
    let lengths = free[0].hypot(free[1]) * asked[0].hypot(asked[1]);
    let cosine = product / lengths.max(1.0);
    debug_assert!((0.0..1.000_001).contains(&cosine), "no amount is negative: {cosine}");
    (TOP as f64 * cosine).floor() as i32
}

/// First GPUs that are shared already, the fullest best: 100 to 50. Then idle GPUs of a node in use, the fewer the better: 50
/// to 33. Then an idle node, the smaller the better: 33 to 0.
fn packing(node: &NodeState, pod: &PodRequest) -> i64 {
    if pod.gpus.milli() == 0 {
        return 0;
    }
    if usize::from(node.idle) == node.gpus.len() {
        return (TOP / 3 - i64::from(node.idle)).max(0);
    }
    match pod.gpus {
        GpuRequest::Whole(gpus) => (TOP / 2 - i64::from(gpus)).max(TOP / 3),
        GpuRequest::Share(_) => {
            let free = node.gpus[usize::from(fullest(node, pod))].free();
            if free == WHOLE_MILLI { TOP / 2 - 1 } else { (TOP - i64::from(free) / 10 / 10).max(TOP / 2) }
        }
    }
}

/// A quarter of the score for being full; three for a node that has pods of this size alone, two where it has others beside
/// them, one where it has none at all.
fn clustering(node: &NodeState, pod: &PodRequest) -> i64 {
    let size = match pod.gpus {
        GpuRequest::Share(_) => 0,
        GpuRequest::Whole(0) => return 0,
        GpuRequest::Whole(gpus) => gpus,
    };
    let quarters = match (node.sizes.iter().any(|(of, _)| *of == size), node.sizes.len()) {
        (true, 1) => 3,
        (true, _) => 2,
        (false, 0) => 1,
        (false, _) => 0,
    };
    debug_assert!(quarters < 4, "the last quarter is of fullness");
    TOP / 4 * (MOST_GPU_MILLI - free_milli(node)) / MOST_GPU_MILLI + quarters * (TOP / 4)
}
