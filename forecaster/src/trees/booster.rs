//! Gradient boosting of small regression trees over binned features (Friedman 2001; histograms and growth by the best
//! leaf as in LightGBM, Ke and others 2017), for means and quantiles. Seeded, and the same on any number of cores.

use super::binned::Binned;
use super::forest::{Forest, Node};
use rand::SeedableRng;
use rand::seq::index;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

/// What a forest is to predict.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Target {
    Mean,
    /// The quantile at this level.
    Quantile(f64),
}

/// How forests grow. Chosen on validation.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Growth {
    pub rounds: usize,
    /// Rounds without progress on validation after which growth ends.
    pub patience: usize,
    pub rate: f64,
    pub leaves: usize,
    pub rows_per_leaf: usize,
    /// Share of the features that a tree may use.
    pub features: f64,
    /// Share of the rows that a tree sees, and the most of them.
    pub rows: f64,
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
    pub binned: &'a Binned,
    pub targets: &'a [f64],
    /// What an error of each row weighs on validation: the scale of its series.
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

    fn gradient(self, target: f64, guess: f64) -> f64 {
        match self {
            Self::Mean => target - guess,
            Self::Quantile(level) if target > guess => level,
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
        let tree = Growing::new(target, growth, learn, &guesses, &mut rng).finish();
        tree.add_to(learn.binned, &mut guesses);
        if let Some((rows, guesses)) = &mut judged {
            tree.add_to(rows.binned, guesses);
        }
        forest.push(tree.into_nodes(learn.binned));
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

/// A tree with bins in place of thresholds.
struct BinnedTree(Vec<BinnedNode>);

#[derive(Clone, Copy)]
enum BinnedNode {
    /// Rows whose bin is at most `bin` go to `left`, the others to `left + 1`.
    Split {
        feature: usize,
        bin: u8,
        left: usize,
    },
    Leaf(f64),
}

impl BinnedTree {
    fn add_to(&self, binned: &Binned, guesses: &mut [f64]) {
        for (row, guess) in guesses.iter_mut().enumerate() {
            let mut place = 0;
            *guess += loop {
                match self.0[place] {
                    BinnedNode::Leaf(value) => break value,
                    BinnedNode::Split { feature, bin, left } => {
                        place = left + usize::from(binned.bin(feature, row) > bin);
                    }
                }
            };
        }
    }

    fn into_nodes(self, binned: &Binned) -> Vec<Node> {
        let node = |node: BinnedNode| match node {
            BinnedNode::Leaf(value) => Node::Leaf(value as f32),
            BinnedNode::Split { feature, bin, left } => {
                Node::Split { feature: feature as u16, threshold: binned.threshold(feature, bin), left: left as u32 }
            }
        };
        self.0.into_iter().map(node).collect()
    }
}

/// Sums of one leaf by feature and bin.
type Histogram = Vec<(f64, u32)>;

struct OpenLeaf {
    node: usize,
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

/// A tree while it grows.
struct Growing<'a> {
    target: Target,
    growth: &'a Growth,
    learn: &'a Rows<'a>,
    guesses: &'a [f64],
    gradients: Vec<f64>,
    features: Vec<usize>,
    nodes: Vec<BinnedNode>,
    open: Vec<OpenLeaf>,
}

impl<'a> Growing<'a> {
    fn new(target: Target, growth: &'a Growth, learn: &'a Rows<'a>, guesses: &'a [f64], rng: &mut ChaCha8Rng) -> Self {
        let (rows, features) = (learn.targets.len(), learn.binned.features());
        let seen = ((rows as f64 * growth.rows) as usize).clamp(1, growth.rows_most.min(rows.max(1)));
        let mut picked: Vec<u32> = index::sample(rng, rows, seen.min(rows)).iter().map(|row| row as u32).collect();
        picked.sort_unstable();
        let used = ((features as f64 * growth.features).ceil() as usize).clamp(1, features);
        let mut chosen = index::sample(rng, features, used).into_vec();
        chosen.sort_unstable();
        let gradients = learn.targets.iter().zip(guesses).map(|(actual, guess)| target.gradient(*actual, *guess));
        let mut growing = Self {
            target,
            growth,
            learn,
            guesses,
            gradients: gradients.collect(),
            features: chosen,
            nodes: vec![BinnedNode::Leaf(0.0)],
            open: Vec::new(),
        };
        let histogram = growing.histogram(&picked);
        growing.open_leaf(0, picked, histogram);
        growing
    }

    fn finish(mut self) -> BinnedTree {
        while self.open.len() < self.growth.leaves {
            let gains = self.open.iter().enumerate().filter_map(|(place, leaf)| Some((leaf.split?.gain, place)));
            // Ties go to the older leaf.
            let Some((_, place)) = gains.max_by(|a, b| a.0.total_cmp(&b.0).then(b.1.cmp(&a.1))) else { break };
            self.split(place);
        }
        for leaf in std::mem::take(&mut self.open) {
            self.nodes[leaf.node] = BinnedNode::Leaf(self.value(&leaf.rows));
        }
        BinnedTree(self.nodes)
    }

    fn value(&self, rows: &[u32]) -> f64 {
        let residual = |row: &u32| self.learn.targets[*row as usize] - self.guesses[*row as usize];
        let mut residuals: Vec<f64> = rows.iter().map(residual).collect();
        let count = rows.len() as f64;
        self.growth.rate * self.target.centre(&mut residuals) * count / (count + self.growth.shrinkage)
    }

    fn histogram(&self, rows: &[u32]) -> Histogram {
        let bins = Binned::BINS;
        let mut histogram = vec![(0.0, 0_u32); self.features.len() * bins];
        for (place, feature) in self.features.iter().enumerate() {
            let column = self.learn.binned.column(*feature);
            let sums = &mut histogram[place * bins..(place + 1) * bins];
            for row in rows {
                let (sum, count) = &mut sums[usize::from(column[*row as usize])];
                *sum += self.gradients[*row as usize];
                *count += 1;
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
        let mut best: Option<Split> = None;
        for (place, bins) in histogram.chunks(Binned::BINS).enumerate() {
            let (all_sum, all_count) = bins.iter().fold((0.0, 0), |(sum, count), bin| (sum + bin.0, count + bin.1));
            let (mut sum, mut count) = (0.0, 0);
            for (bin, here) in bins.iter().enumerate().take(Binned::BINS - 1) {
                (sum, count) = (sum + here.0, count + here.1);
                if here.1 == 0 || count < least {
                    continue;
                }
                if all_count - count < least {
                    break;
                }
                let gain = worth(sum, count) + worth(all_sum - sum, all_count - count) - worth(all_sum, all_count);
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
        let column = self.learn.binned.column(feature);
        let (left, right): (Vec<u32>, Vec<u32>) =
            leaf.rows.into_iter().partition(|row| column[*row as usize] <= split.bin);
        let first = self.nodes.len();
        self.nodes[leaf.node] = BinnedNode::Split { feature, bin: split.bin, left: first };
        self.nodes.extend([BinnedNode::Leaf(0.0); 2]);
        // The smaller side is counted, the larger one is what is left.
        let is_left_smaller = left.len() <= right.len();
        let small = self.histogram(if is_left_smaller { &left } else { &right });
        let large: Histogram =
            leaf.histogram.iter().zip(&small).map(|(all, part)| (all.0 - part.0, all.1 - part.1)).collect();
        let (of_left, of_right) = if is_left_smaller { (small, large) } else { (large, small) };
        self.open_leaf(first, left, of_left);
        self.open_leaf(first + 1, right, of_right);
    }
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
            assert!((above - high).abs() < 0.1, "{target:?} {above}");
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
