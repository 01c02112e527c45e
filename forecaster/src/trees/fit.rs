//! Growing the forests of a model.

use super::binned::Binned;
use super::booster::{Growth, Rows, Target, grow};
use super::features::Features;
use super::forest::Forest;
use super::samples::{Samples, sized_series};
use super::{FORESTS_PER_STEP, Parts, Trees};
use crate::fit::{Fit, FitError};
use crate::gaussian::crps;
use datasets::HourRange;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// √(π/2): mean absolute error times this is the deviation of a Gaussian.
const DEVIATION_PER_ERROR: f64 = 1.253_314_137_315_500_3;
/// Factors that are tried for the spread.
const FACTORS: [f64; 13] = [0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.35, 1.5, 1.75, 2.0];
/// In the order of a step's forests.
const TARGETS: [Target; FORESTS_PER_STEP] =
    [Target::Mean, Target::Quantile(0.5), Target::Quantile(0.9), Target::Quantile(0.95), Target::Mean];
/// Learns the errors of the mean, and so comes after it.
const SPREAD: usize = 4;

impl Growth {
    /// Chosen on validation windows of both public traces.
    pub const DEFAULT: Self = Self {
        rounds: 400,
        patience: 40,
        rate: 0.05,
        leaves: 15,
        rows_per_leaf: 80,
        features: 0.25,
        rows: 0.5,
        rows_most: 60_000,
        shrinkage: 1.0,
        members: 3,
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

impl Trees {
    /// Grows on the training part; the validation part ends the growth and sets how wide the spread is.
    ///
    /// # Errors
    /// The lookback is too short, or nothing was measured.
    pub fn fit(growth: &Growth, what: &Fit<'_>) -> Result<Self, FitError> {
        let need = Features::LOOKBACK_HOURS_LEAST;
        if what.spec.lookback_hours < need {
            return Err(FitError::ShortLookback { have: what.spec.lookback_hours, need });
        }
        let series = sized_series(what);
        let plan = Features::new(what.spec.lookback_hours, what.spec.horizon);
        let learn = Samples::of(what, &plan, &series, what.split.train)?;
        let validate = Samples::of(what, &plan, &series, what.split.validation)?;
        let binned = Binned::cut(&learn.rows, plan.count());
        let judged = binned.alike(&validate.rows);
        let (seed, validation) = (what.spec.seed, Some((&validate, &judged)));
        let forests = Ground { growth, seed, learn: &learn, binned: &binned, validate: validation }.forests(&[]);
        let spread_factor = best_factor(&forests, &validate);
        let (horizon, lookback_hours) = (what.spec.horizon, what.spec.lookback_hours);
        Ok(Self::from_parts(Parts { horizon, lookback_hours, series, spread_factor, forests }))
    }

    /// Grows once more, on training and validation part together, with as many trees as validation had decided.
    ///
    /// # Errors
    /// Nothing was measured.
    pub fn refit(&self, growth: &Growth, what: &Fit<'_>) -> Result<Self, FitError> {
        let parts = self.parts();
        let all = HourRange { from: what.split.train.from, to: what.split.validation.to };
        let learn = Samples::of(what, &self.features, &parts.series, all)?;
        let binned = Binned::cut(&learn.rows, self.features.count());
        let rounds: Vec<usize> = self.forests.iter().flatten().map(|forest| forest.trees.len()).collect();
        let ground = Ground { growth, seed: what.spec.seed, learn: &learn, binned: &binned, validate: None };
        Ok(Self::from_parts(Parts { forests: ground.forests(&rounds), ..parts }))
    }
}

impl Ground<'_> {
    /// All forests, `[step][FORESTS_PER_STEP]`. They do not depend on each other but for the spread on the mean of its
    /// step, so they grow side by side, and the result is the same on any number of cores. `trees` has the number of trees
    /// of each forest where that is decided.
    fn forests(&self, trees: &[usize]) -> Vec<Vec<Forest>> {
        let steps = self.learn.targets.len();
        let each = |job: usize| {
            let (step, number) = (job / SPREAD, job % SPREAD);
            let judged = self.validate.map(|(samples, _)| &samples.targets[step][..]);
            self.forest(step * FORESTS_PER_STEP + number, &self.learn.targets[step], judged, trees)
        };
        let mut first = side_by_side(steps * SPREAD, each).into_iter();
        let mut all: Vec<Vec<Forest>> = (0..steps).map(|_| first.by_ref().take(SPREAD).collect()).collect();
        let spreads = side_by_side(steps, |step| {
            let mean = &all[step][0];
            let judged = self.validate.map(|(samples, _)| samples.errors(step, mean));
            let errors = self.learn.errors(step, mean);
            self.forest(step * FORESTS_PER_STEP + SPREAD, &errors, judged.as_deref(), trees)
        });
        all.iter_mut().zip(spreads).for_each(|(forests, spread)| forests.push(spread));
        all
    }

    /// The forest at a place of `[step][FORESTS_PER_STEP]`: the average of several.
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
            grow(TARGETS[place % FORESTS_PER_STEP], &growth, &rows, against.as_ref(), stream)
        };
        Forest::mean_of((0..members).map(member).collect())
    }
}

/// The factor of the spread with the least CRPS.
fn best_factor(forests: &[Vec<Forest>], samples: &Samples) -> f64 {
    let mut sums = [0.0; FACTORS.len()];
    for (place, scale) in samples.scales.iter().enumerate() {
        let row = samples.row(place);
        for (forests, targets) in forests.iter().zip(&samples.targets) {
            let (mean, spread) = (forests[0].predict(row), forests[SPREAD].predict(row).max(0.0));
            for (sum, factor) in sums.iter_mut().zip(FACTORS) {
                *sum += crps(targets[place] * scale, mean * scale, (spread * factor * scale).max(1e-3));
            }
        }
    }
    sums.iter().enumerate().min_by(|a, b| a.1.total_cmp(b.1)).map_or(1.0, |(place, _)| FACTORS[place])
}

impl Samples {
    /// How far the mean was off, as a deviation of a Gaussian.
    fn errors(&self, step: usize, mean: &Forest) -> Vec<f64> {
        let targets = self.targets[step].iter().enumerate();
        targets.map(|(place, target)| (target - mean.predict(self.row(place))).abs() * DEVIATION_PER_ERROR).collect()
    }
}

/// Runs jobs on all cores; results come in the order of the jobs, and each job knows nothing of the others.
fn side_by_side<T: Send>(jobs: usize, each: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let next = AtomicUsize::new(0);
    let done: Mutex<Vec<Option<T>>> = Mutex::new((0..jobs).map(|_| None).collect());
    let work = || {
        loop {
            let job = next.fetch_add(1, Ordering::Relaxed);
            if job >= jobs {
                break;
            }
            let result = each(job);
            done.lock().expect("no thread panics while it holds this")[job] = Some(result);
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    std::thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(work))));
    let done = done.into_inner().expect("no thread panicked");
    done.into_iter().map(|result| result.expect("every job was done")).collect()
}
