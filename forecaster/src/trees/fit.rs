//! Growing the forests of a model.

use super::Forests;
use super::binned::Binned;
use super::booster::{Growth, Rows, Target, grow};
use super::compiled::{Compiled, TargetColumns};
use super::forest::Forest;
use crate::gaussian::crps;
use crate::rows::{OUTPUTS, SPREAD, Samples};
use crate::side_by_side::side_by_side;

/// √(π/2): mean absolute error times this is the deviation of a Gaussian.
const DEVIATION_PER_ERROR: f64 = 1.253_314_137_315_500_3;
/// Factors that are tried for the spread.
const FACTORS: [f64; 13] = [0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.35, 1.5, 1.75, 2.0];
/// In the order of a step's forests.
const TARGETS: [Target; OUTPUTS] =
    [Target::Mean, Target::Quantile(0.5), Target::Quantile(0.9), Target::Quantile(0.95), Target::Mean];

impl Growth {
    /// Chosen on validation windows of both public traces.
    pub const DEFAULT: Self = Self {
        rounds: 400,
        patience: 30,
        rate: 0.1,
        leaves: 15,
        rows_per_leaf: 80,
        features: 0.25,
        rows: 0.5,
        rows_most: 60_000,
        shrinkage: 1.0,
        members: 2,
    };
}

/// Everything that forests grow from.
struct Ground<'a> {
    growth: &'a Growth,
    seed: u64,
    learn: &'a Samples,
    binned: &'a Binned,
    validate: Option<(&'a Samples, &'a Binned)>,
}

impl Forests {
    /// Grows on the training data; the validation part ends the growth and sets how wide the spread is.
    #[must_use]
    pub fn fit(growth: &Growth, seed: u64, features: usize, learn: &Samples, validate: &Samples) -> Self {
        let binned = Binned::cut(&learn.rows, features);
        let judged = binned.alike(&validate.rows);
        let validation = Some((validate, &judged));
        let steps = Ground { growth, seed, learn, binned: &binned, validate: validation }.forests(&[]);
        let spread_factor = best_factor(&steps, validate);
        Self::new(steps, spread_factor, features)
    }

    /// Grows once more, from more rows, as many trees as validation had decided.
    #[must_use]
    pub fn refit(&self, growth: &Growth, seed: u64, features: usize, learn: &Samples) -> Self {
        let binned = Binned::cut(&learn.rows, features);
        let rounds: Vec<usize> = self.steps().iter().flatten().map(|forest| forest.trees.len()).collect();
        let ground = Ground { growth, seed, learn, binned: &binned, validate: None };
        Self::new(ground.forests(&rounds), self.spread_factors()[0], features)
    }

    /// Forests that were grown for each group apart as those of one model.
    #[must_use]
    pub fn joined(groups: Vec<Self>, columns: TargetColumns) -> Self {
        let (mut steps, mut factors) = (Vec::new(), Vec::new());
        for group in groups {
            steps.extend(group.steps);
            factors.extend(group.spread_factors);
        }
        Self::of_groups(steps, factors, columns)
    }

    /// Those of one group alone.
    #[must_use]
    pub fn group(&self, group: usize) -> Self {
        Self::new(vec![self.steps[group].clone()], self.spread_factors[group], self.columns.features)
    }
}

impl Ground<'_> {
    /// All forests, `[step][OUTPUTS]`. They do not depend on each other but for the spread on the mean of its
    /// step, so they grow side by side, and the result is the same on any number of cores. `trees` has the number of trees
    /// of each forest where that is decided.
    fn forests(&self, trees: &[usize]) -> Vec<Vec<Forest>> {
        let steps = self.learn.targets.len();
        let each = |job: usize| {
            // The spread learns the errors of the mean, and so comes after it.
            let (step, number) = (job / SPREAD, job % SPREAD);
            let judged = self.validate.map(|(samples, _)| &samples.targets[step][..]);
            self.forest(step * OUTPUTS + number, &self.learn.targets[step], judged, trees)
        };
        let mut first = side_by_side(steps * SPREAD, each).into_iter();
        let mut all: Vec<Vec<Forest>> = (0..steps).map(|_| first.by_ref().take(SPREAD).collect()).collect();
        let spreads = side_by_side(steps, |step| {
            let mean = &all[step][0];
            let judged = self.validate.map(|(samples, _)| samples.errors(step, mean));
            let errors = self.learn.errors(step, mean);
            self.forest(step * OUTPUTS + SPREAD, &errors, judged.as_deref(), trees)
        });
        all.iter_mut().zip(spreads).for_each(|(forests, spread)| forests.push(spread));
        all
    }

    /// The forest at a place of `[step][OUTPUTS]`: the average of several.
    fn forest(&self, place: usize, targets: &[f64], judged: Option<&[f64]>, trees: &[usize]) -> Forest {
        let rows = Rows { binned: self.binned, targets, weights: &self.learn.scales };
        let against = self.validate.zip(judged);
        let against = against.map(|((samples, binned), targets)| Rows { binned, targets, weights: &samples.scales });
        let members = self.growth.members;
        let member = |member: usize| {
            let rounds = trees.get(place).map_or(self.growth.rounds, |trees| trees / members);
            // A stream of its own for each forest.
            let stream = self.seed.wrapping_mul(1_000_003).wrapping_add((place * members + member) as u64);
            let growth = Growth { rounds, ..*self.growth };
            grow(TARGETS[place % OUTPUTS], &growth, &rows, against.as_ref(), stream)
        };
        Forest::mean_of((0..members).map(member).collect())
    }
}

/// The factor of the spread with the least CRPS.
fn best_factor(forests: &[Vec<Forest>], samples: &Samples) -> f64 {
    let mut sums = [0.0; FACTORS.len()];
    for (forests, targets) in forests.iter().zip(&samples.targets) {
        let (means, spreads) = (samples.predicted(&forests[0]), samples.predicted(&forests[SPREAD]));
        for (place, scale) in samples.scales.iter().enumerate() {
            let (mean, spread) = (means[place], spreads[place].max(0.0));
            for (sum, factor) in sums.iter_mut().zip(FACTORS) {
                *sum += crps(targets[place] * scale, mean * scale, (spread * factor * scale).max(1e-3));
            }
        }
    }
    sums.iter().enumerate().min_by(|a, b| a.1.total_cmp(b.1)).map_or(1.0, |(place, _)| FACTORS[place])
}

impl Samples {
    /// The predictions of a forest for each row.
    pub(crate) fn predicted(&self, forest: &Forest) -> Vec<f64> {
        let columns = TargetColumns::alone(self.features());
        Compiled::new(std::iter::once(forest), columns).say(&self.rows, self.features()).remove(0)
    }

    /// How far the mean was off, as a deviation of a Gaussian.
    fn errors(&self, step: usize, mean: &Forest) -> Vec<f64> {
        let targets = self.targets[step].iter().zip(self.predicted(mean));
        targets.map(|(target, mean)| (target - mean).abs() * DEVIATION_PER_ERROR).collect()
    }
}
