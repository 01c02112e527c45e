//! How long a preemption is put off: Bayesian optimization over its context (Lazer §4.2).

use super::gaussian::{Gaussian, Hyperparameters, INPUTS};
use super::normal::expected_improvement;
use super::search::lowest;
use crate::draw::Draw;

/// h of Eq. 3: no deferral is longer.
pub const DEFERRAL_MOST_MS: i64 = 100_000;
const HOUR_MS: i64 = vocab::SECONDS_PER_HOUR * 1_000;
/// M: samples before there is a model (Lazer's footnote 2).
const BOOTSTRAP_SAMPLES: usize = 10;
/// Places from which the best is looked for.
const STARTS: usize = 5;
/// Before the model is good enough.
const UPDATES_LEAST: usize = 100;
/// As a part of the deviation of the values seen: what an improvement must promise to be looked for. The paper says 10 %
/// and not of what; CherryPick, which it cites, stops at 10 % of what is to be improved.
const IMPROVEMENT_LEAST: f64 = 0.1;
/// In how many decisions in a row: a model that is good in one context may know nothing of a rarer one.
const CALM_LEAST: usize = 10;
/// Then it exploits its knowledge, and searches no more.
const UPDATES_MOST: usize = 256;
/// Updates at which the hyperparameters are fitted again: these while it explores, and those once it exploits.
const FITS_EVERY: usize = 20;
const LATER_FITS_EVERY: usize = 256;
/// Values that are kept where it learns on, and how many more there may be before the oldest are forgotten.
const KEPT: usize = 160;
const KEPT_MORE: usize = 16;
/// X as the model sees it: parts of h.
const RANGE: [f64; 2] = [0.0, 1.0];
/// Places at which the lowest mean so far is looked for.
const GRID: usize = 20;

/// c of Eq. 5, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Context {
    /// Between two arrivals, on average over the last hour.
    pub inter_arrival_ms: i64,
    /// Of the newcomer.
    pub remaining_ms: i64,
    /// Loading time of the newcomer, in ms.
    pub load_ms: i64,
    /// The largest among those who would be paused.
    pub save_ms: i64,
}

impl Context {
    /// Each part on about 0 to 1. All of them span decades, or are 0, so their logarithms count.
    fn scaled(&self) -> [f64; INPUTS - 1] {
        let scaled = |ms: i64, most_ms: i64| {
            let seconds = |ms: i64| ms.max(0) as f64 / 1_000.0;
            seconds(ms).ln_1p() / seconds(most_ms).ln_1p()
        };
        [
            scaled(self.inter_arrival_ms, HOUR_MS),
            scaled(self.remaining_ms, 30 * 24 * HOUR_MS),
            scaled(self.load_ms, DEFERRAL_MOST_MS),
            scaled(self.save_ms, DEFERRAL_MOST_MS),
        ]
    }
}

/// The phase of the predictor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// Latin hypercube samples, before there is a model.
    Bootstrap,
    /// Where the expected improvement is largest.
    Acquisition,
    /// Where the model's mean is lowest.
    Exploitation,
}

/// Learns X ↦ |X − F| in its context, and says the next X.
#[derive(Debug, Clone)]
pub struct Predictor {
    model: Gaussian,
    stage: Stage,
    draw: Draw,
    /// Samples of the current hypercube that are left.
    samples: Vec<f64>,
    /// Decisions since an improvement worth looking for was expected.
    calm: usize,
    updates: usize,
    /// Whether it learns on while it exploits, and from each outcome at a second X. As printed it does neither; but the
    /// first hundred decisions may hold few of a context that is frequent later, and F tells |X − F| of every X.
    learns_on: bool,
}

impl Predictor {
    /// A predictor without samples; `learns_on` keeps it learning after its first stage.
    #[must_use]
    pub fn new(seed: u64, learns_on: bool) -> Self {
        let model = Gaussian::new(Hyperparameters::default());
        let (stage, draw) = (Stage::Bootstrap, Draw::new(seed));
        Self { model, stage, draw, samples: Vec::new(), calm: 0, updates: 0, learns_on }
    }

    /// Stage of learning.
    #[must_use]
    pub const fn stage(&self) -> Stage {
        self.stage
    }

    /// How many values it has learned.
    #[must_use]
    pub const fn updates(&self) -> usize {
        self.updates
    }

    /// Whether it wants to know what comes of deferrals.
    #[must_use]
    pub fn learns(&self) -> bool {
        self.learns_on || self.stage != Stage::Exploitation
    }

    /// X of Eq. 3, from 0 (l) to [`DEFERRAL_MOST_MS`] (h).
    pub fn predict(&mut self, context: &Context) -> i64 {
        let at = match self.stage {
            Stage::Bootstrap => self.sample(),
            Stage::Acquisition => self.acquire(context),
            Stage::Exploitation => self.exploit(context),
        };
        debug_assert!(at.is_finite(), "a search answers a place of its range");
        ((at * DEFERRAL_MOST_MS as f64).round() as i64).clamp(0, DEFERRAL_MOST_MS)
    }

    /// The next sample of a Latin hypercube; where more is asked for before enough is learned, of another one.
    fn sample(&mut self) -> f64 {
        if self.samples.is_empty() {
            self.samples = self.draw.latin(BOOTSTRAP_SAMPLES);
        }
        self.samples.pop().unwrap_or_default()
    }

    fn acquire(&mut self, context: &Context) -> f64 {
        let starts = self.starts();
        let line = self.model.along(&context.scaled());
        let best = line.best((0..=GRID).map(|number| number as f64 / GRID as f64));
        let worth = |at: f64| {
            let (improvement, slope) = expected_improvement(&line.belief(at), best);
            (-improvement, -slope)
        };
        let (at, value) = lowest(worth, starts, RANGE).unwrap_or_default();
        self.calm = if -value < IMPROVEMENT_LEAST { self.calm + 1 } else { 0 };
        let is_good = self.updates >= UPDATES_LEAST && self.calm >= CALM_LEAST;
        if is_good || self.updates >= UPDATES_MOST {
            self.stage = Stage::Exploitation;
        }
        at
    }

    fn exploit(&mut self, context: &Context) -> f64 {
        let starts = self.starts();
        let line = self.model.along(&context.scaled());
        lowest(|at| line.mean(at), starts, RANGE).map_or(0.0, |(at, _)| at)
    }

    fn starts(&mut self) -> [f64; STARTS] {
        std::array::from_fn(|_| self.draw.unit())
    }

    /// Learns what came of a deferral: F = 0 where nothing was futile.
    pub fn learn(&mut self, context: &Context, deferral_ms: i64, futile_ms: i64) {
        if !self.learns() {
            return;
        }
        debug_assert!(deferral_ms >= 0 && futile_ms >= 0, "times are not negative");
        let other_ms = (self.draw.unit() * DEFERRAL_MOST_MS as f64) as i64;
        for at_ms in [Some(deferral_ms), self.learns_on.then_some(other_ms)].into_iter().flatten() {
            let scale = DEFERRAL_MOST_MS as f64;
            let [a, t, l, p] = context.scaled();
            self.model.learn([at_ms as f64 / scale, a, t, l, p], at_ms.abs_diff(futile_ms) as f64 / scale);
        }
        self.updates += 1;
        if self.learns_on && self.model.len() >= KEPT + KEPT_MORE {
            self.model.keep_latest(KEPT);
        }
        self.refine();
    }

    /// Fits the hyperparameters when it is time.
    fn refine(&mut self) {
        let is_due = match self.stage {
            Stage::Bootstrap => self.updates >= BOOTSTRAP_SAMPLES,
            Stage::Acquisition => self.updates.is_multiple_of(FITS_EVERY),
            Stage::Exploitation => self.updates.is_multiple_of(LATER_FITS_EVERY),
        };
        if is_due {
            self.model.fit();
            self.stage = self.stage.max(Stage::Acquisition);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn context(remaining_ms: i64) -> Context {
        Context { inter_arrival_ms: 39_000, remaining_ms, load_ms: 42_000, save_ms: 8_000 }
    }

    /// F is 70 s for long jobs and 20 s for short ones, with five seconds more or less.
    fn futile_ms(remaining_ms: i64, draw: &mut Draw) -> i64 {
        let middle = if remaining_ms > 3_600_000 { 70_000 } else { 20_000 };
        middle + (10_000.0 * (draw.unit() - 0.5)) as i64
    }

    fn learned(seed: u64) -> (Predictor, Vec<i64>) {
        let (mut predictor, mut draw) = (Predictor::new(seed, false), Draw::new(seed + 1));
        let mut tried = Vec::new();
        for _ in 0..200 {
            let context = context(if draw.unit() < 0.5 { 1_800_000 } else { 40_000_000 });
            let at = predictor.predict(&context);
            let futile_ms = futile_ms(context.remaining_ms, &mut draw);
            predictor.learn(&context, at, futile_ms);
            tried.push(at);
        }
        (predictor, tried)
    }

    #[test]
    fn it_finds_the_optimum_of_a_known_function_in_each_context_from_its_seed() {
        for seed in [1, 2, 3] {
            let (mut predictor, tried) = learned(seed);
            assert_eq!(predictor.stage(), Stage::Exploitation, "seed {seed}");
            assert!((UPDATES_LEAST..UPDATES_MOST).contains(&predictor.updates()), "{}", predictor.updates());
            let (long, short) = (predictor.predict(&context(40_000_000)), predictor.predict(&context(1_800_000)));
            assert!(long.abs_diff(70_000) < 6_000 && short.abs_diff(20_000) < 6_000, "seed {seed}: {long} {short}");
            assert!(tried.iter().all(|at| (0..=DEFERRAL_MOST_MS).contains(at)));
            assert_eq!(tried, learned(seed).1, "the same seed, the same choices");
        }
    }

    #[test]
    fn the_first_ten_fall_into_ten_parts_of_the_range() {
        let mut predictor = Predictor::new(5, false);
        let mut parts: Vec<i64> = (0..10).map(|_| predictor.predict(&context(1)) / 10_000).collect();
        parts.sort_unstable();
        assert_eq!(parts, (0..10).collect::<Vec<_>>());
    }

    #[test]
    fn where_nothing_is_futile_it_goes_down_to_zero() {
        let mut predictor = Predictor::new(9, false);
        for _ in 0..150 {
            let at = predictor.predict(&context(1_800_000));
            predictor.learn(&context(1_800_000), at, 0);
        }
        assert!(predictor.predict(&context(1_800_000)) < 3_000);
    }

    #[test]
    fn it_follows_a_cluster_that_changes_unless_it_is_to_stop() {
        for (learns_on, expected_ms) in [(true, 60_000_i64), (false, 20_000)] {
            let (mut predictor, mut draw) = (Predictor::new(4, learns_on), Draw::new(5));
            for step in 0..700 {
                let middle = if step < 200 { 20_000 } else { 60_000 };
                let at = predictor.predict(&context(1));
                predictor.learn(&context(1), at, middle + (10_000.0 * (draw.unit() - 0.5)) as i64);
            }
            let at = predictor.predict(&context(1));
            assert!(at.abs_diff(expected_ms) < 8_000, "{learns_on}: {at}");
            assert_eq!(predictor.updates() == 700, learns_on);
            assert!(!learns_on || predictor.model.len() < KEPT + KEPT_MORE);
        }
    }
}
