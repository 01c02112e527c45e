//! On which node a pod goes, where idle GPUs suffice: the order of GFS, which is kept ([`Index`](super::index)), and scores of
//! other papers, computed where nodes changed and looked through as numbers.

mod cache;
mod seat;
mod target;
#[cfg(test)]
mod tests;

pub use cache::Scores;
pub use target::{Spec, Target, Workload};

use super::index::Key;
use super::{Fleet, Gang, GpuPlace, GpuRequest, PodPlace};
use crate::draw::Draw;
use seat::{Ground, Seat};
use std::cmp::Ordering;

/// On which node a pod goes, where idle GPUs suffice. Scores are whole numbers, of which the highest wins; ties go to the node
/// that was added first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScoreRule {
    /// Algorithm 1 of GFS: fullest, then most of the same class, then evictions.
    Gfs,
    /// The same for spot. HP goes first where the fewest GPUs are without HP, idle or not: spot can be evicted from a node,
    /// HP cannot, so HP that spreads leaves no whole node for large HP.
    Apart,
    /// The node with the least free GPUs for its size, and nothing else.
    Fullest,
    /// The least free CPU and GPU together, as a share of a node of 128 virtual CPUs and 8 GPUs.
    BestFit,
    /// The smallest product of what is free with what is asked for.
    DotProd,
    /// GPUs that are shared already, then idle ones of nodes in use, then idle nodes.
    GpuPacking,
    /// Pods of one size together.
    GpuClustering,
    /// The first node in their order that fits.
    FirstFit,
    /// Any node that fits, drawn, and any GPU of it.
    Random {
        /// The seed of the draws.
        seed: u64,
    },
    /// Least fragmentation, least power, or both.
    Score(Terms),
    /// The same first, and the order of [`Apart`](Self::Apart) among nodes that it holds for equals.
    Beside(Terms),
}

/// The terms of a score.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Terms {
    /// Where fragmentation grows least (FGD), measured against the requests that came so far.
    Fgd,
    /// Where the watts grow least (PWR).
    Pwr,
    /// α · PWR + (1 − α) · FGD.
    Mix {
        /// The weight of power beside fragmentation, in millionths.
        alpha_millionths: u32,
    },
    /// The same, with an α that falls as the pool fills ([`moving_alpha`]), and a term for nodes whose free CPU and GPUs have
    /// the proportion of the request: power alone fills the cheap GPUs first with any request, and then strands the CPU beside
    /// them.
    Moving,
}

const MILLION: u32 = 1_000_000;

impl ScoreRule {
    /// Whether spot stays away from nodes that evict too often.
    #[must_use]
    pub const fn lets_rest(self) -> bool {
        matches!(self, Self::Gfs | Self::Apart | Self::Beside(_))
    }

    /// Whether it has to know what nodes draw.
    #[must_use]
    pub const fn needs_power(self) -> bool {
        matches!(
            self,
            Self::Score(Terms::Pwr | Terms::Mix { .. } | Terms::Moving)
                | Self::Beside(Terms::Pwr | Terms::Mix { .. } | Terms::Moving)
        )
    }

    /// Whether HP is kept apart in the order of nodes.
    pub(super) const fn is_apart(self) -> bool {
        matches!(self, Self::Apart | Self::Beside(_))
    }
}

/// α in millionths, by the share of the pool's GPUs that is taken: 0.2 in an empty pool, 0 in a full one. Where much is free,
/// fragmentation does no harm yet, and there are cheap places to choose from; where little is, the watts are spent already.
#[must_use]
pub fn moving_alpha(used_milli: u64, gpus: u64) -> u32 {
    let all = u128::from(gpus) * 1_000;
    let free = all.saturating_sub(used_milli.into());
    (u128::from(MOVING_ALPHA) * free).checked_div(all).unwrap_or(0) as u32
}

/// The upper end of the range that the PWR paper recommends.
const MOVING_ALPHA: u32 = 200_000;
/// The weight of the proportion of CPU to GPUs beside the two terms, in millionths: half of the power's.
const MOVING_PROPORTION: i64 = 100_000;

/// The value of a node under one rule: the score, or the sum of two terms.
struct Weighing {
    alpha: i64,
    proportion: i64,
    /// The least score of power, and how far the highest lies above it.
    least: i64,
    range: i64,
}

impl Weighing {
    /// The score alone.
    const SCORE: Self = Self { alpha: 0, proportion: 0, least: 0, range: 0 };

    fn of(rule: ScoreRule, moving: u32, seats: &[Seat]) -> Self {
        let (ScoreRule::Score(terms) | ScoreRule::Beside(terms)) = rule else { return Self::SCORE };
        let (alpha, proportion) = match terms {
            Terms::Mix { alpha_millionths } => (alpha_millionths, 0),
            Terms::Moving => (moving, MOVING_PROPORTION),
            Terms::Fgd | Terms::Pwr => return Self::SCORE,
        };
        let (mut least, mut most) = (i64::MAX, i64::MIN);
        for seat in seats.iter().filter(|seat| seat.fits()) {
            (least, most) = (least.min(seat.power.into()), most.max(seat.power.into()));
        }
        debug_assert!(alpha <= MILLION, "alpha is a share");
        Self { alpha: alpha.into(), proportion, least, range: most.saturating_sub(least) }
    }

    fn value(&self, seat: &Seat) -> i64 {
        if self.alpha == 0 && self.proportion == 0 {
            return seat.score.into();
        }
        debug_assert!(seat.fits(), "only nodes with room have a value");
        let power = if self.range == 0 { 100 } else { (i64::from(seat.power) - self.least) * 100 / self.range };
        self.alpha * power
            + (i64::from(MILLION) - self.alpha) * i64::from(seat.score)
            + self.proportion * i64::from(seat.proportion)
    }

    /// The GPU that the heavier term prefers.
    fn gpu(&self, seat: &Seat) -> u8 {
        if self.alpha > i64::from(MILLION) / 2 { seat.power_gpu } else { seat.gpu }
    }
}

/// Nodes on which the pod fits, rising.
fn fitting(seats: &[Seat]) -> impl Iterator<Item = (usize, &Seat)> {
    seats.iter().enumerate().filter(|(_, seat)| seat.fits())
}

/// The first node with the highest value.
fn best(seats: &[Seat], weighing: &Weighing) -> Option<usize> {
    let mut best = None;
    let mut most = i64::MIN;
    for (node, seat) in fitting(seats) {
        let value = weighing.value(seat);
        if value > most {
            (best, most) = (Some(node), value);
        }
    }
    best
}

impl Fleet {
    /// The place of one pod on what is idle; `number` is its number in the gang.
    pub(super) fn place_by(
        &mut self,
        gang: &Gang,
        rule: ScoreRule,
        workload: &Workload,
        number: u32,
    ) -> Option<PodPlace> {
        if matches!(rule, ScoreRule::Gfs | ScoreRule::Apart) || self.wish(gang).is_some() {
            return self.first_place(gang);
        }
        let moving = moving_alpha(self.used_milli, self.gpus);
        let Self { nodes, scores, power, evictions, .. } = self;
        let ground = Ground { rule, class: gang.class, target: workload.target(), power, evictions };
        let seats = scores.seats(&ground, &gang.pod, nodes);
        if let ScoreRule::Random { seed } = rule {
            let mut draw = Draw::of_task(seed, &gang.task, i64::from(number));
            let fits: Vec<usize> = fitting(seats).map(|(node, _)| node).collect();
            let node = *fits.get(draw.below(fits.len())?)?;
            return self.drawn_place(node, gang.pod.gpus, &mut draw);
        }
        let weighing = Weighing::of(rule, moving, seats);
        let first = best(seats, &weighing)?;
        let (mut node, mut gpu) = (first, weighing.gpu(&seats[first]));
        if matches!(rule, ScoreRule::Beside(_)) {
            let most = weighing.value(&seats[first]);
            let equal = fitting(seats).filter(|(_, seat)| weighing.value(seat) == most);
            let equals: Vec<(usize, u8)> = equal.map(|(node, seat)| (node, weighing.gpu(seat))).collect();
            let order = |one: &(usize, u8), other: &(usize, u8)| self.key(one.0).order(&self.key(other.0), gang.class);
            (node, gpu) = equals.into_iter().min_by(order)?;
        }
        let gpus = match gang.pod.gpus {
            GpuRequest::Share(milli) => GpuPlace::Share { gpu, milli },
            GpuRequest::Whole(_) => self.nodes[node].place(gang.pod.gpus)?,
        };
        debug_assert!(self.nodes[node].fits(&gang.pod), "the scores are of the nodes as they are");
        Some(PodPlace { node, gpus })
    }

    /// Of these nodes those on which a pod fits, in the order in which [`place_by`](Self::place_by) would choose them. Answers their
    /// numbers.
    pub(super) fn order_by(&self, gang: &Gang, rule: ScoreRule, workload: &Workload, nodes: &[usize]) -> Vec<usize> {
        let Self { power, evictions, .. } = self;
        let ground = Ground { rule, class: gang.class, target: workload.target(), power, evictions };
        let seats: Vec<Seat> = nodes.iter().map(|node| ground.seat(&self.nodes[*node], &gang.pod)).collect();
        if let ScoreRule::Random { seed } = rule {
            let mut draw = Draw::of_task(seed, &gang.task, 0);
            let mut fits: Vec<usize> = fitting(&seats).map(|(place, _)| nodes[place]).collect();
            fits.sort_unstable();
            return std::iter::from_fn(|| Some(fits.remove(draw.below(fits.len())?))).collect();
        }
        let weighing = Weighing::of(rule, moving_alpha(self.used_milli, self.gpus), &seats);
        let is_beside = matches!(rule, ScoreRule::Beside(_));
        let mut order: Vec<(i64, usize, Option<Key>)> = fitting(&seats)
            .map(|(place, seat)| (weighing.value(seat), nodes[place], is_beside.then(|| self.key(nodes[place]))))
            .collect();
        order.sort_unstable_by(|(value, node, key), (other, of, than)| {
            let by_key = key.zip(*than).map_or(Ordering::Equal, |(key, than)| key.order(&than, gang.class));
            other.cmp(value).then(by_key).then(node.cmp(of))
        });
        order.into_iter().map(|(_, node, _)| node).collect()
    }

    /// Any GPU of a node with room for a share.
    fn drawn_place(&self, node: usize, request: GpuRequest, draw: &mut Draw) -> Option<PodPlace> {
        let GpuRequest::Share(milli) = request else {
            return Some(PodPlace { node, gpus: self.nodes[node].place(request)? });
        };
        let gpus = self.nodes[node].gpus.iter().zip(0..);
        let fits: Vec<u8> = gpus.filter(|(gpu, _)| gpu.free() >= milli).map(|(_, number)| number).collect();
        let gpu = *fits.get(draw.below(fits.len())?)?;
        Some(PodPlace { node, gpus: GpuPlace::Share { gpu, milli } })
    }

    /// F of the pool (FGD): thousandths of a GPU that are free and that a pod of the target could not use, on average.
    #[must_use]
    pub fn fragmentation_milli(&self, target: &Target) -> u64 {
        let there = self.nodes.iter().filter(|node| !node.is_gone);
        let sum: u128 = there.map(|node| target.fragmentation(node)).sum();
        let fragmentation_milli = (sum / u128::from(target.weight().max(1))) as u64;
        debug_assert!(fragmentation_milli <= self.gpus * 1_000, "only GPUs of the pool lie in fragments");
        fragmentation_milli
    }
}
