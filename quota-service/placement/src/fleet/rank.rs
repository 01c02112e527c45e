//! The order of nodes that another scheduler asks for: it weighs ours with its own.

use super::aligned::Rulers;
use super::index::Key;
use super::score::{ScoreRule, Workload};
use super::{Fleet, Gang};
use crate::topology::Alignment;
use vocab::TaskClass;

impl Fleet {
    /// Of these nodes those on which a pod of the gang fits now, in the order in which they would be chosen: the first one is where
    /// the pod would go if there were no others. Answers their numbers.
    #[must_use]
    pub fn rank(&self, gang: &Gang, rule: ScoreRule, workload: &Workload, nodes: &[usize]) -> Vec<usize> {
        debug_assert!(nodes.iter().all(|number| *number < self.nodes.len()), "numbers are of this fleet");
        if self.is_blind_to(gang) {
            return Vec::new();
        }
        if !matches!(rule, ScoreRule::Gfs | ScoreRule::Apart) && self.wish(gang).is_none() {
            return self.order_by(gang, rule, workload, nodes);
        }
        let mut rulers = self.wish(gang).map(Rulers::new);
        let mut order: Vec<(Alignment, Key, usize)> = Vec::with_capacity(nodes.len());
        for number in nodes {
            let node = &self.nodes[*number];
            let is_broken =
                gang.class == TaskClass::Spot && self.evictions.weight(node.evictions) >= self.evictions.breaker();
            if is_broken || !node.fits(&gang.pod) {
                continue;
            }
            let alignment = match &mut rulers {
                Some(rulers) => rulers.best(node, node.idle_mask()),
                None => Some(Alignment::ALIGNED),
            };
            order.extend(alignment.map(|alignment| (alignment, self.key(*number), *number)));
        }
        order.sort_unstable_by(|(alignment, key, _), (other, than, _)| {
            alignment.cmp(other).then_with(|| key.order(than, gang.class))
        });
        order.into_iter().map(|(.., number)| number).collect()
    }
}

/// Scores from `most` to 0 for `count` nodes, of which the first `ranked` are in order: the first one alone gets `most`, so that
/// it stands out at any weight of the others; the rest share the range between by their ranks, and nodes without a rank get 0. Answers
/// the score of a rank.
pub fn graded(ranked: usize, most: u8) -> impl Fn(Option<usize>) -> u8 {
    let steps = usize::from(most.saturating_sub(1));
    move |rank| match rank {
        Some(0) => most,
        Some(rank) => {
            debug_assert!(rank < ranked, "rank {rank} of {ranked}");
            (steps - steps * (rank - 1) / ranked.saturating_sub(1).max(1)) as u8
        }
        None => 0,
    }
}
