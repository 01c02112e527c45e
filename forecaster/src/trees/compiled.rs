//! Forests made ready to answer for many rows: no walk through each tree, but comparisons of whole columns (the bit vectors
//! of QuickScorer, Lucchese and others 2015).
//!
//! A split takes away the leaves on its left from the rows that go to the right. What remains after all splits of a tree
//! begins with the leaf that the row reaches. So every split is one pass over a column without a branch. Targets of one window
//! share the splits by features of the window.

use super::forest::{Forest, Node};
use super::lanes::{Columns, Cut, LANES, Ranks, Tree};
use pulp::{Simd, WithSimd};
use std::ops::Range;

/// Leaves of a tree at most: each is a bit of a number of 16.
pub const LEAVES_MOST: usize = 16;
/// Windows that pass all trees together: their columns stay in the cache.
const WINDOWS_AT_ONCE: usize = 256;
/// Thresholds of a feature at most, so that a rank is a byte.
const THRESHOLDS_MOST: usize = u8::MAX as usize;

/// Where the features of a target lie in a row of a window with several targets: features of the window, those of each target, one
/// target after the other, and what follows them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetColumns {
    /// Features of one target.
    pub features: usize,
    /// Those that differ between the targets of a window.
    pub own: Range<usize>,
}

impl TargetColumns {
    /// Rows with one target each.
    #[must_use]
    pub const fn alone(features: usize) -> Self {
        Self { features, own: features..features }
    }

    /// Width of a row with so many targets.
    #[must_use]
    pub const fn width(&self, targets: usize) -> usize {
        self.features + (targets - 1) * (self.own.end - self.own.start)
    }

    /// Place of a feature of a target in such a row.
    const fn place(&self, feature: usize, target: usize, width: usize) -> usize {
        if feature < self.own.start {
            feature
        } else if feature < self.own.end {
            feature + target * (self.own.end - self.own.start)
        } else {
            width - (self.features - feature)
        }
    }

    /// Place of a feature among those of windows, or among those of targets.
    const fn column(&self, feature: usize) -> usize {
        if feature < self.own.start {
            feature
        } else if feature < self.own.end {
            feature - self.own.start
        } else {
            feature - (self.own.end - self.own.start)
        }
    }

    fn is_own(&self, feature: usize) -> bool {
        self.own.contains(&feature)
    }
}

/// Forests over the same rows.
#[derive(Debug, Clone, PartialEq)]
pub struct Compiled {
    columns: TargetColumns,
    bases: Vec<f64>,
    /// One part, or several of forests with more thresholds of a feature than a rank can count.
    parts: Vec<Part>,
}

/// Trees with few enough thresholds.
#[derive(Debug, Clone, PartialEq)]
struct Part {
    /// Thresholds of each feature that is split by, rising. The rank of a value is how many of them are below it.
    thresholds: Vec<Vec<f32>>,
    /// `[forest][tree]`.
    forests: Vec<Vec<Tree>>,
}

impl Compiled {
    /// Forests that are evaluated together, over rows with these columns.
    pub fn new<'a>(forests: impl Iterator<Item = &'a Forest> + Clone, columns: TargetColumns) -> Self {
        let all: Vec<&Forest> = forests.collect();
        let bases = all.iter().map(|forest| forest.base).collect();
        let trees =
            all.iter().enumerate().flat_map(|(place, forest)| forest.trees.iter().map(move |tree| (place, tree)));
        let trees: Vec<(usize, &Vec<Node>)> = trees.collect();
        let mut parts = Vec::new();
        let mut rest = &trees[..];
        while !rest.is_empty() {
            let (thresholds, count) = thresholds(rest, columns.features);
            let mut of_forests = vec![Vec::new(); all.len()];
            for (place, nodes) in &rest[..count] {
                of_forests[*place].push(tree(nodes, &thresholds, &columns));
            }
            parts.push(Part { thresholds, forests: of_forests });
            rest = &rest[count..];
        }
        Self { columns, bases, parts }
    }

    /// The predictions of each forest for each row: `[forest][row]`.
    pub fn say(&self, rows: &[f32], features: usize) -> Vec<Vec<f64>> {
        self.say_of_targets(&ByFeature::of(rows, features), 0..1).into_iter().flatten().collect()
    }

    /// The predictions for some targets of rows of windows: `[target][forest][row]`.
    pub fn say_of_targets(&self, rows: &ByFeature, targets: Range<usize>) -> Vec<Vec<Vec<f64>>> {
        let of_target = || self.bases.iter().map(|base| vec![*base; rows.count]).collect();
        let mut all: Vec<Vec<Vec<f64>>> = targets.clone().map(|_| of_target()).collect();
        for start in (0..rows.count).step_by(WINDOWS_AT_ONCE) {
            let block = start..(start + WINDOWS_AT_ONCE).min(rows.count);
            for part in &self.parts {
                let columns = part.ranked(&self.columns, rows, &block, targets.clone());
                for (forest, trees) in part.forests.iter().enumerate() {
                    let sums = columns.sums(trees);
                    for (sums, predicted) in sums.chunks(columns.groups).zip(&mut all) {
                        let rows = predicted[forest][block.clone()].iter_mut().zip(sums.as_flattened());
                        rows.for_each(|(predicted, sum)| *predicted += f64::from(*sum));
                    }
                }
            }
        }
        all
    }
}

/// Rows turned into columns: `[feature][row]`. Each group of steps ranks the columns once more, and rows are far apart in memory.
pub struct ByFeature {
    values: Vec<f32>,
    /// Features of a row.
    width: usize,
    /// Number of rows.
    count: usize,
}

impl ByFeature {
    /// Rows that are read together: their values of a feature are one line of the cache.
    const AT_ONCE: usize = 16;

    /// From rows of so many features.
    #[must_use]
    pub fn of(rows: &[f32], width: usize) -> Self {
        let count = rows.len() / width;
        let mut values = vec![0.0; count * width];
        for (block, rows) in rows.chunks(Self::AT_ONCE * width).enumerate() {
            let start = block * Self::AT_ONCE;
            for (feature, column) in values.chunks_exact_mut(count.max(1)).enumerate() {
                let of_rows = rows.iter().skip(feature).step_by(width);
                column[start..].iter_mut().zip(of_rows).for_each(|(place, value)| *place = *value);
            }
        }
        Self { values, width, count }
    }

    fn column(&self, feature: usize, rows: &Range<usize>) -> &[f32] {
        &self.values[feature * self.count..][rows.clone()]
    }
}

impl Part {
    /// The ranks of the features of some rows and of some of their targets.
    fn ranked(&self, columns: &TargetColumns, all: &ByFeature, rows: &Range<usize>, targets: Range<usize>) -> Columns {
        let groups = Columns::groups_for(rows.len());
        let ranked = |is_own: bool, target: usize| {
            let features = (0..columns.features).filter(|feature| columns.is_own(*feature) == is_own);
            let mut ranks: Vec<Ranks> = Vec::new();
            for feature in features {
                let values = all.column(columns.place(feature, target, all.width), rows);
                append_ranks(values, &self.thresholds[feature], groups, &mut ranks);
            }
            ranks
        };
        Columns {
            groups,
            of_window: ranked(false, 0),
            of_targets: targets.map(|target| ranked(true, target)).collect(),
        }
    }
}

/// Appends the ranks of a column, as whole groups: how many thresholds are below each value.
fn append_ranks(values: &[f32], thresholds: &[f32], groups: usize, to: &mut Vec<Ranks>) {
    let start = to.len();
    to.resize(start + groups, [i8::MIN; LANES]);
    if !thresholds.is_empty() {
        pulp::Arch::new().dispatch(Ranking { values, thresholds, ranks: &mut to[start..] });
    }
}

/// Counts thresholds below values. No closure: the compiler may leave its code outside, for the narrowest registers.
struct Ranking<'a> {
    values: &'a [f32],
    thresholds: &'a [f32],
    ranks: &'a mut [Ranks],
}

impl WithSimd for Ranking<'_> {
    type Output = ();

    #[expect(clippy::inline_always, reason = "it is compiled for these registers, in the caller")]
    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) {
        for (ranks, values) in self.ranks.iter_mut().zip(self.values.chunks(LANES)) {
            let mut lanes = [0.0_f32; LANES];
            lanes[..values.len()].copy_from_slice(values);
            let mut counts = [0_i32; LANES];
            for threshold in self.thresholds {
                for (count, value) in counts.iter_mut().zip(&lanes) {
                    // A sum that is checked would be made one by one. There are few thresholds.
                    *count = count.wrapping_add(i32::from(threshold < value));
                }
            }
            for (rank, count) in ranks.iter_mut().zip(counts) {
                *rank = signed(count as usize);
            }
        }
    }
}

/// A rank counted from −128.
const fn signed(rank: usize) -> i8 {
    (rank as u8 ^ 0x80) as i8
}

/// The thresholds of each feature of the first trees whose ranks fit in a byte, and the number of these trees.
fn thresholds(trees: &[(usize, &Vec<Node>)], features: usize) -> (Vec<Vec<f32>>, usize) {
    let mut thresholds: Vec<Vec<f32>> = vec![Vec::new(); features];
    for (place, (_, nodes)) in trees.iter().enumerate() {
        let splits = nodes.iter().filter_map(|node| match *node {
            Node::Split { feature, threshold, .. } => Some((usize::from(feature), threshold)),
            Node::Leaf(_) => None,
        });
        let splits: Vec<(usize, f32)> = splits.collect();
        let is_full = |feature: usize| thresholds[feature].len() + LEAVES_MOST > THRESHOLDS_MOST;
        if splits.iter().any(|(feature, _)| is_full(*feature)) {
            // The first tree always fits.
            return (thresholds, place);
        }
        for (feature, threshold) in splits {
            let of_feature = &mut thresholds[feature];
            let at = of_feature.partition_point(|one| one.total_cmp(&threshold).is_lt());
            if of_feature.get(at).is_none_or(|one| one.total_cmp(&threshold).is_ne()) {
                of_feature.insert(at, threshold);
            }
        }
    }
    (thresholds, trees.len())
}

/// A tree whose thresholds are among those of each feature.
fn tree(nodes: &[Node], thresholds: &[Vec<f32>], columns: &TargetColumns) -> Tree {
    let mut cuts = [[Vec::new(), Vec::new()], [Vec::new(), Vec::new()]];
    let leaves = leaves(nodes, &mut |feature, threshold, takes| {
        let rank = signed(thresholds[feature].partition_point(|one| one.total_cmp(&threshold).is_lt()));
        let of_column = &mut cuts[usize::from(columns.is_own(feature))];
        let feature = columns.column(feature) as u16;
        for (cuts, takes) in of_column.iter_mut().zip(takes.to_le_bytes()).filter(|(_, takes)| *takes != 0) {
            cuts.push(Cut { feature, rank, takes });
        }
    });
    let [of_window, of_target] = cuts;
    Tree::new(of_window, of_target, leaves)
}

/// Receives feature, threshold and the leaves that rows above it can no longer reach, the left-most one in the lowest bit.
pub type SplitVisit<'a> = &'a mut dyn FnMut(usize, f32, u16);

/// The leaves of a tree from left to right; each split is passed on.
pub fn leaves(nodes: &[Node], visit: SplitVisit<'_>) -> [f32; LEAVES_MOST] {
    let mut leaves = [0.0; LEAVES_MOST];
    walk(nodes, 0, 0, &mut leaves, visit);
    leaves
}

/// The leaves below a node, of which `first` is the left-most one.
fn walk(
    nodes: &[Node],
    place: usize,
    first: usize,
    leaves: &mut [f32; LEAVES_MOST],
    visit: SplitVisit<'_>,
) -> Range<usize> {
    match nodes[place] {
        Node::Leaf(value) => {
            leaves[first] = value;
            first..first + 1
        }
        Node::Split { feature, threshold, left } => {
            let below = walk(nodes, left as usize, first, leaves, visit);
            let above = walk(nodes, left as usize + 1, below.end, leaves, visit);
            visit(usize::from(feature), threshold, below.clone().map(|leaf| 1_u16 << leaf).sum());
            below.start..above.end
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    /// A tree of up to sixteen leaves over five features, thresholds on a grid so that values meet them.
    fn tree(rng: &mut ChaCha8Rng, grid: i32) -> Vec<Node> {
        let mut nodes = vec![Node::Leaf(0.0)];
        for _ in 0..rng.random_range(0..16) {
            let leaves: Vec<usize> = (0..nodes.len()).filter(|k| matches!(nodes[*k], Node::Leaf(_))).collect();
            let place = leaves[rng.random_range(0..leaves.len())];
            let (feature, threshold) = (rng.random_range(0..5), rng.random_range(-grid..grid) as f32);
            nodes[place] = Node::Split { feature, threshold, left: nodes.len() as u32 };
            nodes.extend([Node::Leaf(rng.random()), Node::Leaf(rng.random())]);
        }
        nodes
    }

    fn forests(rng: &mut ChaCha8Rng, trees: usize, grid: i32) -> Vec<Forest> {
        let forest =
            |number: i32| Forest { base: f64::from(number), trees: (0..trees).map(|_| tree(rng, grid)).collect() };
        (0..6).map(forest).collect()
    }

    /// Sums of leaves are single-precision numbers.
    fn assert_near(predicted: &[f64], walked: &[f64]) {
        assert_eq!(predicted.len(), walked.len());
        for (one, other) in predicted.iter().zip(walked) {
            assert!((one - other).abs() <= 1e-5 * other.abs().max(1.0), "{one} is not {other}");
        }
    }

    #[test]
    fn compiled_forests_answer_as_a_walk_through_the_trees_does() {
        let mut rng = ChaCha8Rng::seed_from_u64(5);
        let forests = forests(&mut rng, 20, 3);
        let rows: Vec<f32> = (0..5 * 2_500).map(|_| rng.random_range(-8..8) as f32 * 0.5).collect();
        let predicted = Compiled::new(forests.iter(), TargetColumns::alone(5)).say(&rows, 5);
        for (forest, predicted) in forests.iter().zip(predicted) {
            let walked: Vec<f64> = rows.chunks_exact(5).map(|row| forest.predict(row)).collect();
            assert_near(&predicted, &walked);
        }
    }

    #[test]
    fn each_target_of_a_window_has_features_of_its_own() {
        let mut rng = ChaCha8Rng::seed_from_u64(6);
        let forests = forests(&mut rng, 20, 3);
        // Features 1 to 3 are those of a target; a row has three targets.
        let columns = TargetColumns { features: 5, own: 1..4 };
        let width = columns.width(3);
        let rows: Vec<f32> = (0..width * 300).map(|_| rng.random_range(-8..8) as f32 * 0.5).collect();
        let predicted = Compiled::new(forests.iter(), columns).say_of_targets(&ByFeature::of(&rows, width), 1..3);
        for (target, predicted) in (1..3).zip(predicted) {
            for (forest, predicted) in forests.iter().zip(predicted) {
                let of_target = |row: &[f32]| {
                    let own = &row[1 + 3 * target..][..3];
                    forest.predict(&[row[0], own[0], own[1], own[2], row[width - 1]])
                };
                assert_near(&predicted, &rows.chunks_exact(width).map(of_target).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn thresholds_beyond_a_byte_of_ranks_are_answered_in_parts() {
        let mut rng = ChaCha8Rng::seed_from_u64(7);
        let forests = forests(&mut rng, 150, 4_000);
        let compiled = Compiled::new(forests.iter(), TargetColumns::alone(5));
        assert!(compiled.parts.len() > 1);
        let rows: Vec<f32> = (0..5 * 300).map(|_| rng.random_range(-4_000..4_000) as f32 + 0.5).collect();
        for (forest, predicted) in forests.iter().zip(compiled.say(&rows, 5)) {
            let walked: Vec<f64> = rows.chunks_exact(5).map(|row| forest.predict(row)).collect();
            assert_near(&predicted, &walked);
        }
    }

    #[test]
    fn forests_without_trees_say_their_base() {
        let compiled = Compiled::new([Forest::new(2.5)].iter(), TargetColumns::alone(2));
        assert_eq!(compiled.say(&[1.0, 2.0, 3.0, 4.0], 2), [[2.5, 2.5]]);
    }
}
