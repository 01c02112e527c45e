//! Gradient boosting of small regression trees over binned features (Friedman 2001; histograms and growth by the best
//! leaf as in LightGBM, Ke and others 2017), for means and quantiles. Seeded, and the same on any number of cores.

use super::binned::Binned;
use super::forest::{Forest, Node};
use super::grains::Grains;
use super::splits::Tree;
use rand::seq::index;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

/// The target of a forest.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Target {
    /// The mean.
    Mean,
    /// The quantile at this level.
    Quantile(f64),
}

/// How forests grow. Chosen on validation.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Growth {
    /// Trees of a forest.
    pub rounds: usize,
    /// Rounds without progress on validation after which growth ends.
    pub patience: usize,
    /// Learning rate.
    pub rate: f64,
    /// Largest number of leaves.
    pub leaves: usize,
    /// Least number of rows of a leaf.
    pub rows_per_leaf: usize,
    /// Share of the features that a tree may use.
    pub features: f64,
    /// Share of the rows that a tree sees, and the most of them.
    pub rows: f64,
    /// Largest number of rows.
    pub rows_most: usize,
    /// Added to the rows of a leaf when its worth is weighed.
    pub shrinkage: f64,
    /// Forests that are grown apart, from other draws, and averaged.
    pub members: usize,
}

impl Default for Growth {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// Rows to learn from, or to stop by.
pub struct Rows<'a> {
    /// Features in bins.
    pub binned: &'a Binned,
    /// Target of each row.
    pub targets: &'a [f64],
    /// The weight of an error of each row on validation: the scale of its series.
    pub weights: &'a [f64],
}

impl Target {
    /// The best constant of a set of values.
    fn centre(self, values: &mut [f64]) -> f64 {
        match self {
            Self::Mean => values.iter().sum::<f64>() / values.len().max(1) as f64,
            Self::Quantile(level) => quantile(values, level),
        }
    }

    fn gradient(self, residual: f64) -> f64 {
        match self {
            Self::Mean => residual,
            Self::Quantile(level) if residual > 0.0 => level,
            Self::Quantile(level) => level - 1.0,
        }
    }

    fn loss(self, target: f64, guess: f64, weight: f64) -> f64 {
        match self {
            Self::Mean => ((target - guess) * weight).powi(2),
            Self::Quantile(level) => crate::scores::pinball(target, guess, level) * weight,
        }
    }
}

/// The order statistic nearest to the level, without sorting all.
fn quantile(values: &mut [f64], level: f64) -> f64 {
    if values.is_empty() {
        return 0.0;
    }
    let place = (level * (values.len() - 1) as f64).round() as usize;
    *values.select_nth_unstable_by(place, f64::total_cmp).1
}

/// Grows a forest on rows; where there is a validation part, it ends at the round that was best there.
pub fn grow(target: Target, growth: &Growth, learn: &Rows<'_>, validate: Option<&Rows<'_>>, seed: u64) -> Forest {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let base = target.centre(&mut learn.targets.to_vec());
    let mut forest = Forest::new(base);
    let mut guesses = vec![base; learn.targets.len()];
    let mut judged = validate.map(|rows| (rows, vec![base; rows.targets.len()]));
    let mut best = judged.as_ref().map_or(f64::INFINITY, |(rows, guesses)| loss(target, rows, guesses));
    let mut best_trees = 0;
    for round in 1..=growth.rounds {
        let nodes = Growing::new(target, growth, learn, &guesses, &mut rng).finish();
        let tree = Tree::of(&nodes, learn.binned.cuts());
        add(&tree, learn.binned, &mut guesses);
        if let Some((rows, guesses)) = &mut judged {
            add(&tree, rows.binned, guesses);
        }
        forest.push(nodes);
        if let Some((rows, guesses)) = &judged {
            let now = loss(target, rows, guesses);
            if now < best {
                (best, best_trees) = (now, round);
            } else if round - best_trees >= growth.patience {
                break;
            }
        }
    }
    if judged.is_some() {
        forest.truncate(best_trees);
    }
    forest
}

fn loss(target: Target, rows: &Rows<'_>, guesses: &[f64]) -> f64 {
    let each = rows.targets.iter().zip(guesses).zip(rows.weights);
    each.map(|((actual, guess), weight)| target.loss(*actual, *guess, *weight)).sum()
}

/// Rows that pass a tree together: their columns stay in the cache.
const ROWS_AT_ONCE: usize = 1_024;

/// Adds what a tree says of each row. The rank of a value among the cuts is its bin.
fn add(tree: &Tree, binned: &Binned, guesses: &mut [f64]) {
    pulp::Arch::new().dispatch(|| {
        let mut open = [0; ROWS_AT_ONCE];
        for (block, guesses) in guesses.chunks_mut(ROWS_AT_ONCE).enumerate() {
            let (start, open) = (block * ROWS_AT_ONCE, &mut open[..guesses.len()]);
            tree.add_to(|feature| &binned.column(feature)[start..], open, guesses);
        }
    });
}

/// Packed sums of one leaf: `[feature of the tree][bin]`.
type Histogram = Vec<[i64; Binned::BINS]>;

struct OpenLeaf {
    node: usize,
    /// Places among the rows of the tree.
    rows: Vec<u32>,
    histogram: Histogram,
    split: Option<Split>,
}

#[derive(Clone, Copy)]
struct Split {
    gain: f64,
    /// Place among the features of the tree.
    place: usize,
    bin: u8,
}

/// A tree while it grows, over the rows and features that were drawn for it.
struct Growing<'a> {
    target: Target,
    growth: &'a Growth,
    binned: &'a Binned,
    features: Vec<usize>,
    /// `[feature of the tree][row of the tree]`.
    columns: Vec<Vec<u8>>,
    /// Of the rows of the tree: what is left to explain, and its packed gradients.
    residuals: Vec<f64>,
    packed: Vec<i64>,
    grains: Grains,
    nodes: Vec<Node>,
    open: Vec<OpenLeaf>,
}

impl<'a> Growing<'a> {
    fn new(target: Target, growth: &'a Growth, learn: &Rows<'a>, guesses: &[f64], rng: &mut ChaCha8Rng) -> Self {
        let (binned, features) = (learn.binned, learn.binned.features());
        let drawn = draw(learn.targets.len(), growth, rng);
        let used = ((features as f64 * growth.features).ceil() as usize).clamp(1, features);
        let mut chosen = index::sample(rng, features, used).into_vec();
        chosen.sort_unstable();
        let of_feature = |feature: &usize| {
            let column = binned.column(*feature);
            drawn.iter().map(|row| column[*row]).collect()
        };
        let columns = chosen.iter().map(of_feature).collect();
        let residuals: Vec<f64> = drawn.iter().map(|row| learn.targets[*row] - guesses[*row]).collect();
        let gradients: Vec<f64> = residuals.iter().map(|residual| target.gradient(*residual)).collect();
        let grains = Grains::new(&gradients);
        let packed = gradients.into_iter().map(|gradient| grains.pack(gradient)).collect();
        let (features, nodes, open) = (chosen, vec![Node::Leaf(0.0)], Vec::new());
        let mut growing = Self { target, growth, binned, features, columns, residuals, packed, grains, nodes, open };
        let rows: Vec<u32> = (0..drawn.len() as u32).collect();
        let histogram = growing.histogram(&rows);
        growing.open_leaf(0, rows, histogram);
        growing
    }

    fn finish(mut self) -> Vec<Node> {
        while self.open.len() < self.growth.leaves {
            let gains = self.open.iter().enumerate().filter_map(|(place, leaf)| Some((leaf.split?.gain, place)));
            // Ties go to the older leaf.
            let Some((_, place)) = gains.max_by(|a, b| a.0.total_cmp(&b.0).then(b.1.cmp(&a.1))) else { break };
            self.split(place);
        }
        for leaf in std::mem::take(&mut self.open) {
            self.nodes[leaf.node] = Node::Leaf(self.value(&leaf.rows) as f32);
        }
        self.nodes
    }

    fn value(&self, rows: &[u32]) -> f64 {
        let mut residuals: Vec<f64> = rows.iter().map(|row| self.residuals[*row as usize]).collect();
        let count = rows.len() as f64;
        self.growth.rate * self.target.centre(&mut residuals) * count / (count + self.growth.shrinkage)
    }

    fn histogram(&self, rows: &[u32]) -> Histogram {
        let mut histogram = vec![[0; Binned::BINS]; self.features.len()];
        let packed: Vec<i64> = rows.iter().map(|row| self.packed[*row as usize]).collect();
        let add = |bins: &mut [i64; Binned::BINS], bin: u8, one: i64| {
            // No bin is as large as this; the remainder spares a check of bounds.
            bins[usize::from(bin) % Binned::BINS] += one;
        };
        // Two features at a time: additions to one do not wait for those to the other.
        for (sums, columns) in histogram.chunks_mut(2).zip(self.columns.chunks(2)) {
            match (sums, columns) {
                ([first, second], [first_column, second_column]) => {
                    let columns = first_column.iter().zip(second_column);
                    if rows.len() == first_column.len() {
                        for ((one, other), packed) in columns.zip(&packed) {
                            add(first, *one, *packed);
                            add(second, *other, *packed);
                        }
                    } else {
                        for (row, packed) in rows.iter().zip(&packed) {
                            add(first, first_column[*row as usize], *packed);
                            add(second, second_column[*row as usize], *packed);
                        }
                    }
                }
                ([sums], [column]) => {
                    rows.iter().zip(&packed).for_each(|(row, packed)| add(sums, column[*row as usize], *packed));
                }
                _ => unreachable!("pieces of two"),
            }
        }
        histogram
    }

    fn open_leaf(&mut self, node: usize, rows: Vec<u32>, histogram: Histogram) {
        let split = self.best_split(&histogram);
        self.open.push(OpenLeaf { node, rows, histogram, split });
    }

    /// The split that gains most; ties go to the first feature and bin.
    fn best_split(&self, histogram: &Histogram) -> Option<Split> {
        let (least, shrinkage) = (self.growth.rows_per_leaf as u32, self.growth.shrinkage);
        let worth = |sum: f64, count: u32| sum * sum / (f64::from(count) + shrinkage);
        let whole: i64 = histogram.first()?.iter().sum();
        let (all_sum, all_count) = (self.grains.sum(whole), Grains::count(whole));
        let all_worth = worth(all_sum, all_count);
        let mut best: Option<Split> = None;
        for (place, bins) in histogram.iter().enumerate() {
            let mut below = 0;
            for (bin, here) in bins.iter().enumerate().take(Binned::BINS - 1) {
                below += here;
                let count = Grains::count(below);
                if *here == 0 || count < least {
                    continue;
                }
                if all_count - count < least {
                    break;
                }
                let sum = self.grains.sum(below);
                let gain = worth(sum, count) + worth(all_sum - sum, all_count - count) - all_worth;
                if gain > best.map_or(1e-9, |best| best.gain) {
                    best = Some(Split { gain, place, bin: bin as u8 });
                }
            }
        }
        best
    }

    fn split(&mut self, place: usize) {
        let leaf = self.open.remove(place);
        let Some(split) = leaf.split else { return };
        let feature = self.features[split.place];
        let (left, right) = parted(&leaf.rows, &self.columns[split.place], split.bin);
        let first = self.nodes.len();
        let threshold = self.binned.threshold(feature, split.bin);
        self.nodes[leaf.node] = Node::Split { feature: feature as u16, threshold, left: first as u32 };
        self.nodes.extend([Node::Leaf(0.0); 2]);
        // The smaller side is counted, the larger one is what is left.
        let is_left_smaller = left.len() <= right.len();
        let small = self.histogram(if is_left_smaller { &left } else { &right });
        let mut large = leaf.histogram;
        for (all, part) in large.as_flattened_mut().iter_mut().zip(small.as_flattened()) {
            *all -= part;
        }
        let (of_left, of_right) = if is_left_smaller { (small, large) } else { (large, small) };
        self.open_leaf(first, left, of_left);
        self.open_leaf(first + 1, right, of_right);
    }
}

/// The rows that a tree sees, rising: every row has the same chance, and they are as many as asked for on average.
fn draw(rows: usize, growth: &Growth, rng: &mut ChaCha8Rng) -> Vec<usize> {
    let most = growth.rows_most.min(Grains::ROWS_MOST) as f64;
    let share = growth.rows.min(most / rows.max(1) as f64);
    if share >= 1.0 {
        return (0..rows).collect();
    }
    let below = (share * f64::from(u16::MAX)) as u16;
    let mut coins = vec![0_u16; rows];
    rng.fill(&mut coins[..]);
    let drawn: Vec<usize> = (0..rows).filter(|row| coins[*row] < below).collect();
    if drawn.is_empty() { (0..rows).collect() } else { drawn }
}

/// Rows whose bin is at most `bin`, and the others, without a branch that depends on them.
fn parted(rows: &[u32], column: &[u8], bin: u8) -> (Vec<u32>, Vec<u32>) {
    let (mut left, mut right) = (vec![0; rows.len()], vec![0; rows.len()]);
    let (mut lefts, mut rights) = (0, 0);
    for row in rows {
        let is_left = usize::from(column[*row as usize] <= bin);
        left[lefts] = *row;
        right[rights] = *row;
        lefts += is_left;
        rights += 1 - is_left;
    }
    left.truncate(lefts);
    right.truncate(rights);
    (left, right)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two features; the target follows the first: below 50 it is spread evenly over 0 to 1, from 50 on over 10 to 12.
    fn rows() -> (Vec<f32>, Vec<f64>) {
        let row = |index: u16| [f32::from(index % 100), f32::from(index * 7 % 13)];
        let target = |index: u16| {
            let even = f64::from(index / 100) / 39.0;
            if index % 100 < 50 { even } else { 10.0 + 2.0 * even }
        };
        ((0..4_000).flat_map(row).collect(), (0..4_000).map(target).collect())
    }

    fn grown(target: Target, seed: u64, judged: bool) -> Forest {
        let (features, targets) = rows();
        let (binned, weights) = (Binned::cut(&features, 2), vec![1.0; targets.len()]);
        let rows = Rows { binned: &binned, targets: &targets, weights: &weights };
        grow(target, &Growth { features: 1.0, ..Growth::DEFAULT }, &rows, judged.then_some(&rows), seed)
    }

    #[test]
    fn a_forest_learns_the_quantile_on_both_sides_of_a_step() {
        for (target, low, high) in
            [(Target::Mean, 0.5, 11.0), (Target::Quantile(0.5), 0.5, 11.0), (Target::Quantile(0.9), 0.9, 11.8)]
        {
            let forest = grown(target, 1, true);
            let (below, above) = (forest.predict(&[20.0, 3.0]), forest.predict(&[80.0, 3.0]));
            assert!((below - low).abs() < 0.06, "{target:?} {below}");
            assert!((above - high).abs() < 0.15, "{target:?} {above}");
        }
    }

    #[test]
    fn the_same_seed_grows_the_same_forest_and_another_one_another() {
        assert_eq!(grown(Target::Mean, 1, false), grown(Target::Mean, 1, false));
        assert_ne!(grown(Target::Mean, 1, false), grown(Target::Mean, 2, false));
    }

    #[test]
    fn growth_ends_where_validation_gets_no_better() {
        let (features, targets) = rows();
        let binned = Binned::cut(&features, 2);
        let (weights, constant) = (vec![1.0; targets.len()], vec![5.75; targets.len()]);
        let learn = Rows { binned: &binned, targets: &targets, weights: &weights };
        let judge = Rows { binned: &binned, targets: &constant, weights: &weights };
        let forest = grow(Target::Mean, &Growth::DEFAULT, &learn, Some(&judge), 1);
        assert!(forest.trees.is_empty(), "the constant, 5.75, was best: {}", forest.trees.len());
        assert!((forest.base - 5.75).abs() < 1e-9);
    }
}
