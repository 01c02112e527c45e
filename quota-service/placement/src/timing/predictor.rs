//! How long a preemption is put off: Bayesian optimization over its context (Lazer §4.2).

use super::draw::Draw;
use super::gaussian::{Gaussian, Hyperparameters, INPUTS};
use super::normal::expected_improvement;
use super::search::lowest;

/// h of Eq. 3: no deferral is longer.
pub const DEFERRAL_MOST_MS: i64 = 100_000;
const HOUR_MS: i64 = 3_600_000;
/// M: samples before there is a model (Lazer's footnote 2).
const BOOTSTRAP_SAMPLES: usize = 10;
/// Places from which the best is looked for.
const STARTS: usize = 5;
/// Before the model is good enough.
const UPDATES_LEAST: usize = 100;
/// As a part of the deviation of the values seen: what an improvement must promise to be looked for. The paper says 10 %
/// and not of what; CherryPick, which it cites, stops at 10 % of what is to be improved.
const IMPROVEMENT_LEAST: f64 = 0.1;
/// Then the model stays as it is, whatever else could be found: a decision takes quadratic time.
const UPDATES_MOST: usize = 256;
/// Updates at which the hyperparameters are fitted anew.
const FITS_EVERY: usize = 10;
/// Places at which the lowest mean so far is looked for.
const GRID: usize = 20;

/// c of Eq. 5, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Context {
    /// Between two arrivals, on average over the last hour.
    pub inter_arrival_ms: i64,
    /// Of the newcomer.
    pub remaining_ms: i64,
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

/// What the predictor is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// Latin hypercube samples, before there is a model.
    Bootstrap,
    /// Where the expected improvement is largest.
    Acquisition,
    /// Where the model's mean is lowest; nothing more is learned.
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
}

impl Predictor {
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let model = Gaussian::new(Hyperparameters::default());
        Self { model, stage: Stage::Bootstrap, draw: Draw::new(seed), samples: Vec::new() }
    }

    #[must_use]
    pub const fn stage(&self) -> Stage {
        self.stage
    }

    /// How many values it has learned.
    #[must_use]
    pub const fn updates(&self) -> usize {
        self.model.len()
    }

    /// X of Eq. 3, from `least_ms` (l) to [`DEFERRAL_MOST_MS`] (h).
    pub fn predict(&mut self, context: &Context, least_ms: i64) -> i64 {
        let low = (least_ms as f64 / DEFERRAL_MOST_MS as f64).clamp(0.0, 1.0);
        let at = match self.stage {
            Stage::Bootstrap => low + (1.0 - low) * self.sample(),
            Stage::Acquisition => self.acquire(context, low),
            Stage::Exploitation => self.exploit(context, low),
        };
        ((at * DEFERRAL_MOST_MS as f64).round() as i64).clamp(least_ms.min(DEFERRAL_MOST_MS), DEFERRAL_MOST_MS)
    }

    /// The next sample of a Latin hypercube; where more is asked for before enough is learned, of another one.
    fn sample(&mut self) -> f64 {
        if self.samples.is_empty() {
            self.samples = self.draw.latin(BOOTSTRAP_SAMPLES);
        }
        self.samples.pop().unwrap_or_default()
    }

    fn acquire(&mut self, context: &Context, low: f64) -> f64 {
        let starts = self.starts(low);
        let line = self.model.along(&context.scaled());
        let step = (1.0 - low) / GRID as f64;
        let best = line.best((0..=GRID).map(|number| low + step * number as f64));
        let worth = |at: f64| {
            let (improvement, slope) = expected_improvement(&line.belief(at), best);
            (-improvement, -slope)
        };
        let Some((at, value)) = lowest(worth, starts, [low, 1.0]) else { return low };
        let is_good = self.model.len() >= UPDATES_LEAST && -value < IMPROVEMENT_LEAST;
        if is_good || self.model.len() >= UPDATES_MOST {
            self.stage = Stage::Exploitation;
        }
        at
    }

    fn exploit(&mut self, context: &Context, low: f64) -> f64 {
        let starts = self.starts(low).into_iter().chain([low]);
        let line = self.model.along(&context.scaled());
        lowest(|at| line.mean(at), starts, [low, 1.0]).map_or(low, |(at, _)| at)
    }

    fn starts(&mut self, low: f64) -> Vec<f64> {
        (0..STARTS).map(|_| low + (1.0 - low) * self.draw.unit()).collect()
    }

    /// Learns what came of a deferral: F = 0 where nothing was futile. Does nothing once it exploits what it knows.
    pub fn learn(&mut self, context: &Context, deferral_ms: i64, futile_ms: i64) {
        if self.stage == Stage::Exploitation {
            return;
        }
        let scale = DEFERRAL_MOST_MS as f64;
        let [a, t, l, p] = context.scaled();
        let missed = deferral_ms.abs_diff(futile_ms) as f64 / scale;
        self.model.learn([deferral_ms as f64 / scale, a, t, l, p], missed);
        if self.model.len() >= BOOTSTRAP_SAMPLES && self.model.len().is_multiple_of(FITS_EVERY) {
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
        let (mut predictor, mut draw) = (Predictor::new(seed), Draw::new(seed + 1));
        let mut tried = Vec::new();
        for _ in 0..200 {
            let context = context(if draw.unit() < 0.5 { 1_800_000 } else { 40_000_000 });
            let at = predictor.predict(&context, 0);
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
            let (long, short) = (predictor.predict(&context(40_000_000), 0), predictor.predict(&context(1_800_000), 0));
            assert!(long.abs_diff(70_000) < 6_000 && short.abs_diff(20_000) < 6_000, "seed {seed}: {long} {short}");
            assert!(tried.iter().all(|at| (0..=DEFERRAL_MOST_MS).contains(at)));
            assert_eq!(tried, learned(seed).1, "the same seed, the same choices");
        }
    }

    #[test]
    fn the_first_ten_fall_into_ten_parts_of_the_range() {
        let mut predictor = Predictor::new(5);
        let mut parts: Vec<i64> = (0..10).map(|_| predictor.predict(&context(1), 0) / 10_000).collect();
        parts.sort_unstable();
        assert_eq!(parts, (0..10).collect::<Vec<_>>());
    }

    #[test]
    fn it_stays_above_the_least_and_where_nothing_is_futile_goes_down_to_it() {
        let mut predictor = Predictor::new(9);
        for _ in 0..150 {
            let at = predictor.predict(&context(1_800_000), 15_000);
            assert!(at >= 15_000, "{at}");
            predictor.learn(&context(1_800_000), at, 0);
        }
        assert!(predictor.predict(&context(1_800_000), 15_000) < 18_000);
        assert!(predictor.predict(&context(1_800_000), 0) < 3_000);
        assert_eq!(predictor.predict(&context(1_800_000), 200_000), DEFERRAL_MOST_MS);
    }
}
