//! Forests made ready to answer for many rows: no walk through each tree, but comparisons of whole columns (the bit vectors
//! of QuickScorer, Lucchese and others 2015).
//!
//! A split takes away the leaves on its left from the rows that go to the right. What remains after all splits of a tree
//! begins with the leaf that the row reaches. So every split is one pass over a column without a branch.

use super::forest::{Forest, Node};

/// Rows that pass all trees together: their columns stay in the cache.
pub const ROWS_AT_ONCE: usize = 1_024;

/// The leaves of a tree that a row may still reach, the left-most one in the lowest bit.
pub type Leaves = u16;

#[derive(Debug, Clone, Copy, PartialEq)]
struct Split {
    feature: u16,
    /// Rows whose rank is larger go to the right.
    rank: u16,
    /// The leaves that they can no longer reach.
    takes: Leaves,
}

/// A tree as splits by ranks.
#[derive(Debug, Clone, PartialEq)]
pub struct Tree {
    splits: Vec<Split>,
    leaves: [f32; Compiled::LEAVES_MOST],
}

/// Forests over the same rows.
#[derive(Debug, Clone, PartialEq)]
pub struct Compiled {
    /// Thresholds of each feature that is split by, rising. The rank of a value is how many of them are below it.
    thresholds: Vec<Vec<f32>>,
    forests: Vec<(f64, Vec<Tree>)>,
}

impl Compiled {
    /// Leaves of a tree at most.
    pub const LEAVES_MOST: usize = Leaves::BITS as usize;

    /// Forests that are evaluated together.
    pub fn new<'a>(forests: impl Iterator<Item = &'a Forest> + Clone) -> Self {
        let mut thresholds: Vec<Vec<f32>> = Vec::new();
        for node in forests.clone().flat_map(|forest| forest.trees.iter().flatten()) {
            if let Node::Split { feature, threshold, .. } = *node {
                let feature = usize::from(feature);
                thresholds.resize(thresholds.len().max(feature + 1), Vec::new());
                thresholds[feature].push(threshold);
            }
        }
        for of_feature in &mut thresholds {
            of_feature.sort_unstable_by(f32::total_cmp);
            of_feature.dedup();
        }
        let tree = |nodes: &Vec<Node>| Tree::of(nodes, &thresholds);
        let forests = forests.map(|forest| (forest.base, forest.trees.iter().map(tree).collect())).collect();
        Self { thresholds, forests }
    }

    /// The predictions of each forest for each row: `[forest][row]`.
    pub fn say(&self, rows: &[f32], features: usize) -> Vec<Vec<f64>> {
        // Instructions of the widest registers that the processor has; the numbers are the same with any.
        pulp::Arch::new().dispatch(|| self.say_here(rows, features))
    }

    #[expect(clippy::inline_always, reason = "it is compiled once for each width of registers, in the caller")]
    #[inline(always)]
    fn say_here(&self, rows: &[f32], features: usize) -> Vec<Vec<f64>> {
        let count = rows.len() / features;
        let mut predicted: Vec<Vec<f64>> = self.forests.iter().map(|(base, _)| vec![*base; count]).collect();
        let mut ranks = vec![0_u16; self.thresholds.len() * ROWS_AT_ONCE];
        let mut open = [Leaves::MAX; ROWS_AT_ONCE];
        for (block, rows) in rows.chunks(ROWS_AT_ONCE * features).enumerate() {
            let count = rows.len() / features;
            self.rank(rows, features, &mut ranks);
            for ((_, trees), predicted) in self.forests.iter().zip(&mut predicted) {
                let predicted = &mut predicted[block * ROWS_AT_ONCE..][..count];
                for tree in trees {
                    tree.add_to(|feature| &ranks[feature * ROWS_AT_ONCE..], &mut open[..count], predicted);
                }
            }
        }
        predicted
    }

    fn rank(&self, rows: &[f32], features: usize, ranks: &mut [u16]) {
        for (feature, thresholds) in self.thresholds.iter().enumerate().filter(|(_, of)| !of.is_empty()) {
            let column = &mut ranks[feature * ROWS_AT_ONCE..][..ROWS_AT_ONCE];
            for (rank, row) in column.iter_mut().zip(rows.chunks_exact(features)) {
                *rank = thresholds.partition_point(|threshold| *threshold < row[feature]) as u16;
            }
        }
    }
}

impl Tree {
    /// A tree whose thresholds are among those of each feature.
    pub fn of(nodes: &[Node], thresholds: &[Vec<f32>]) -> Self {
        let mut tree = Self { splits: Vec::new(), leaves: [0.0; Compiled::LEAVES_MOST] };
        tree.grow(nodes, 0, 0, thresholds);
        tree
    }

    /// Adds the leaves below a node, from left to right, from `first` on; answers which those are.
    fn grow(&mut self, nodes: &[Node], place: usize, first: usize, thresholds: &[Vec<f32>]) -> std::ops::Range<usize> {
        match nodes[place] {
            Node::Leaf(value) => {
                self.leaves[first] = value;
                first..first + 1
            }
            Node::Split { feature, threshold, left } => {
                let below = self.grow(nodes, left as usize, first, thresholds);
                let above = self.grow(nodes, left as usize + 1, below.end, thresholds);
                let rank = thresholds[usize::from(feature)].partition_point(|one| *one < threshold) as u16;
                let takes: Leaves = below.clone().map(|leaf| 1 << leaf).sum();
                self.splits.push(Split { feature, rank, takes });
                below.start..above.end
            }
        }
    }

    /// Adds the leaf that each row reaches. `ranks` answers the ranks of a feature, as many as `predicted` at least; `open` is
    /// room to work in, as long as `predicted`.
    #[expect(clippy::inline_always, reason = "it is compiled once for each width of registers, in the caller")]
    #[inline(always)]
    pub fn add_to<'a, T: Copy + Into<u16> + 'a>(
        &self,
        ranks: impl Fn(usize) -> &'a [T],
        open: &mut [Leaves],
        predicted: &mut [f64],
    ) {
        open.fill(Leaves::MAX);
        for &Split { feature, rank: most, takes } in &self.splits {
            for (open, rank) in open.iter_mut().zip(ranks(usize::from(feature))) {
                // All ones or all zeros, without a branch, so that the compiler takes many rows at once.
                let goes_right = Leaves::from((*rank).into() > most).wrapping_neg();
                *open &= !(goes_right & takes);
            }
        }
        for (predicted, open) in predicted.iter_mut().zip(open) {
            // A leaf remains to every row, so the remainder only spares a check.
            *predicted += f64::from(self.leaves[open.trailing_zeros() as usize % Compiled::LEAVES_MOST]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    /// A tree of up to sixteen leaves over five features, thresholds on a grid so that values meet them.
    fn tree(rng: &mut ChaCha8Rng) -> Vec<Node> {
        let mut nodes = vec![Node::Leaf(0.0)];
        for _ in 0..rng.random_range(0..16) {
            let leaves: Vec<usize> = (0..nodes.len()).filter(|k| matches!(nodes[*k], Node::Leaf(_))).collect();
            let place = leaves[rng.random_range(0..leaves.len())];
            let (feature, threshold) = (rng.random_range(0..5), rng.random_range(-3..3) as f32);
            nodes[place] = Node::Split { feature, threshold, left: nodes.len() as u32 };
            nodes.extend([Node::Leaf(rng.random()), Node::Leaf(rng.random())]);
        }
        nodes
    }

    #[test]
    fn compiled_forests_answer_as_a_walk_through_the_trees_does() {
        let mut rng = ChaCha8Rng::seed_from_u64(5);
        let forests: Vec<Forest> = (0..6)
            .map(|number| Forest { base: f64::from(number), trees: (0..20).map(|_| tree(&mut rng)).collect() })
            .collect();
        let rows: Vec<f32> = (0..5 * 2_500).map(|_| rng.random_range(-8..8) as f32 * 0.5).collect();
        let predicted = Compiled::new(forests.iter()).say(&rows, 5);
        for (forest, predicted) in forests.iter().zip(predicted) {
            let walked: Vec<f64> = rows.chunks_exact(5).map(|row| forest.predict(row)).collect();
            assert_eq!(predicted, walked);
        }
    }

    #[test]
    fn forests_without_trees_say_their_base() {
        let predicted = Compiled::new([Forest::new(2.5)].iter()).say(&[1.0, 2.0, 3.0, 4.0], 2);
        assert_eq!(predicted, [[2.5, 2.5]]);
    }
}
