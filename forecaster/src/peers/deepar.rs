//! DeepAR (Salinas et al., "DeepAR: probabilistic forecasting with autoregressive recurrent networks", 2020).
//!
//! One recurrent network for all series says the distribution of each hour from the hours before, the calendar and the
//! series' embedding; several hours ahead it goes on from its own draws, and the paths' moments and quantiles are the
//! forecast. Windows are scaled by 1 + their mean, all as there. Ours: one layer of long short-term memory where the paper
//! has three, a context of 72 h so that a processor's core trains it, older hours as lags (24, 48 and 96 h), a location
//! given as a difference to the hour before, a Student-t with four degrees of freedom instead of a Gaussian, whose
//! likelihood jumps of flat series would rule, and draws below zero count as zero. The window has no calendar of past hours: their hour and weekday are counted back from the first
//! target's, and Saturdays and Sundays count as days off.

use super::layers::{Parameters, embed, linear, sigmoid, softplus};
use super::network::{Result, Seen, Shape};
use crate::descent::{Learner, crps, mean_over};
use crate::gaussian::empirical_quantile;
use crate::orglinear::{Batch, Begin, Weights};
use candle_core::{Device, Tensor};
use datasets::HourFeatures;
use datasets::window::Window;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use sha2::{Digest, Sha256};
use std::f64::consts::TAU;
use vocab::{QUANTILE_LEVELS, StepForecast};

/// Hours that the network runs through before the first target.
const CONTEXT_HOURS: usize = 72;
/// Hours before each hour whose values it sees.
const LAGS_HOURS: [usize; 6] = [1, 2, 3, 24, 48, 96];
const LAG_MOST_HOURS: usize = 96;
/// Hours that a window must show.
pub const SEEN_HOURS: usize = CONTEXT_HOURS + LAG_MOST_HOURS;
const CALENDAR_FEATURES: usize = 7;
/// Lags, calendar, logarithm of the scale.
const FEATURES: usize = LAGS_HOURS.len() + CALENDAR_FEATURES + 1;
const EMBEDDING_WIDTH: usize = 4;
const CELLS: usize = 40;
const PATHS: usize = 200;
/// Of the Student-t. Its deviation is √2 times its scale.
const FREEDOM: f64 = 4.0;
/// ln Γ(2) − ln Γ(5/2) + ½ ln 4π.
const LOG_NORMALISER: f64 = 0.980_829_253_011_726_2;
/// Keeps the scale off zero, in windows' means: the likelihood of a constant series has no maximum.
const LEAST_SCALE: f64 = 1e-3;
const LEAST_STDDEV_GPUS: f64 = 1e-3;

const SERIES: &str = "series";
const OF_SERIES: &str = "cell.series";
const OF_FEATURES: &str = "cell.features";
const OF_CELLS: &str = "cell.hidden";
const HEAD: &str = "head";

/// Name, shape and initial values of each parameter.
pub fn parameters(shape: &Shape) -> Vec<(String, Vec<usize>, Begin)> {
    let mut all = Parameters::default();
    all.embedding(SERIES, shape.series, EMBEDDING_WIDTH);
    all.linear(OF_SERIES, EMBEDDING_WIDTH, 4 * CELLS);
    all.matrix(OF_FEATURES, FEATURES, 4 * CELLS);
    all.matrix(OF_CELLS, CELLS, 4 * CELLS);
    all.linear(HEAD, CELLS, 2);
    all.0
}

/// Cells and what they show, `[rows, CELLS]` each.
#[derive(Clone)]
struct State {
    cells: Tensor,
    shown: Tensor,
}

impl State {
    fn zero(rows: usize) -> Result<Self> {
        let zero = Tensor::zeros((rows, CELLS), candle_core::DType::F32, &Device::Cpu)?;
        Ok(Self { cells: zero.clone(), shown: zero })
    }

    /// One hour on. `series` is what each row's series adds to the gates, `[rows, 4 × CELLS]`.
    fn next(&self, weights: &Weights, series: &Tensor, features: &Tensor) -> Result<Self> {
        let gates = (features.matmul(weights.get(OF_FEATURES)?)? + self.shown.matmul(weights.get(OF_CELLS)?)?)?;
        let gates = (gates + series)?;
        let gate = |number: usize| gates.narrow(1, number * CELLS, CELLS);
        // A forget gate that begins open remembers from the start.
        let kept = (&self.cells * sigmoid(&(gate(0)? + 1.0)?)?)?;
        let cells = (kept + (sigmoid(&gate(1)?)? * gate(2)?.tanh()?)?)?;
        let shown = (sigmoid(&gate(3)?)? * cells.tanh()?)?;
        Ok(Self { cells, shown })
    }

    /// Repeats each row for every path.
    fn fanned(&self) -> Result<Self> {
        Ok(Self { cells: fan(&self.cells)?, shown: fan(&self.shown)? })
    }
}

/// `[rows, width]` to `[rows × PATHS, width]`, the paths of a row side by side.
fn fan(tensor: &Tensor) -> Result<Tensor> {
    let (rows, width) = tensor.dims2()?;
    tensor.unsqueeze(1)?.broadcast_as((rows, PATHS, width))?.reshape((rows * PATHS, width))
}

/// Windows in their scales.
struct Scaled {
    /// 1 + the mean of the context, in GPUs, `[windows]`.
    scales_gpus: Vec<f32>,
    /// `[windows][hour]`: the last [`SEEN_HOURS`], then targets where they are known.
    values: Vec<Vec<f32>>,
}

impl Scaled {
    /// `targets` are `[windows][step]`, empty when predicting.
    fn of(inputs: &Tensor, targets: &[Vec<f32>]) -> Result<Self> {
        let mut scaled = Self { scales_gpus: Vec::new(), values: Vec::new() };
        for (row, window) in inputs.to_vec2::<f32>()?.iter().enumerate() {
            let seen = &window[window.len() - SEEN_HOURS..];
            let scale = 1.0 + seen[LAG_MOST_HOURS..].iter().sum::<f32>() / CONTEXT_HOURS as f32;
            let after = targets.get(row).map_or(&[][..], |targets| targets);
            scaled.values.push(seen.iter().chain(after).map(|gpus| gpus / scale).collect());
            scaled.scales_gpus.push(scale);
        }
        Ok(scaled)
    }

    /// The hour before each of `hours` from hour number `first` of the context on, `[windows, hours]`.
    fn before(&self, first: usize, hours: usize) -> Result<Tensor> {
        let start = LAG_MOST_HOURS + first - 1;
        let before = self.values.iter().flat_map(|values| values[start..start + hours].iter().copied()).collect();
        Tensor::from_vec(before, (self.values.len(), hours), &Device::Cpu)
    }

    /// The network's input of hour number `hour` from the start of the context, `[windows, FEATURES]`.
    fn features(&self, calendars: &[&[HourFeatures]], hour: usize) -> Result<Tensor> {
        let mut features = Vec::with_capacity(self.values.len() * FEATURES);
        for ((values, calendar), scale) in self.values.iter().zip(calendars).zip(&self.scales_gpus) {
            features.extend(LAGS_HOURS.map(|lag| values[LAG_MOST_HOURS + hour - lag]));
            features.extend(clock(calendar, hour));
            features.push(scale.ln());
        }
        Tensor::from_vec(features, (self.values.len(), FEATURES), &Device::Cpu)
    }
}

/// The calendar of an hour, from the start of the context.
fn clock(calendar: &[HourFeatures], hour: usize) -> [f32; CALENDAR_FEATURES] {
    let (hour_of_day, weekday, day_off) = if let Some(step) = hour.checked_sub(CONTEXT_HOURS) {
        (calendar[step].hour_of_day, calendar[step].weekday, calendar[step].day_off)
    } else {
        let of_week = 24 * i64::from(calendar[0].weekday) + i64::from(calendar[0].hour_of_day);
        let of_week = (of_week - (CONTEXT_HOURS - hour) as i64).rem_euclid(168);
        let weekday = (of_week / 24) as u8;
        ((of_week % 24) as u8, weekday, weekday >= 5)
    };
    let day = TAU * f64::from(hour_of_day) / 24.0;
    let week = TAU * f64::from(weekday) / 7.0;
    let day_off = f64::from(u8::from(day_off));
    let all = [day.sin(), day.cos(), (2.0 * day).sin(), (2.0 * day).cos(), week.sin(), week.cos(), day_off];
    all.map(|one| one as f32)
}

/// The part of the series of each row in the gates.
fn of_series(weights: &Weights, places: &[usize]) -> Result<Tensor> {
    linear(weights, OF_SERIES, &embed(weights, SERIES, places.iter().map(|&place| place as u32))?)
}

/// Location and scale of the Student-t, `[windows, hours]` each, in windows' scales, of what the cells show, `[windows,
/// hours, CELLS]`, and the hours before.
fn head(weights: &Weights, shown: &Tensor, before: &Tensor) -> Result<(Tensor, Tensor)> {
    let both = linear(weights, HEAD, shown)?;
    let scale = (softplus(&both.narrow(2, 1, 1)?.squeeze(2)?)? + LEAST_SCALE)?;
    Ok(((both.narrow(2, 0, 1)?.squeeze(2)? + before)?, scale))
}

/// Learns the likelihood of every hour of the context and the horizon, each given the hours before it.
pub struct Autoregressive;

impl Autoregressive {
    /// Location and scale of all hours, `[windows, hours]`, in windows' scales; the windows.
    fn unrolled(weights: &Weights, batch: &Batch<'_>) -> Result<(Tensor, Tensor, Scaled)> {
        let scaled = Scaled::of(&batch.inputs, &batch.targets.to_vec2()?)?;
        let hours = CONTEXT_HOURS + batch.targets.dim(1)?;
        let series = of_series(weights, &batch.places)?;
        let mut state = State::zero(batch.places.len())?;
        let mut shown = Vec::with_capacity(hours);
        for hour in 0..hours {
            state = state.next(weights, &series, &scaled.features(&batch.calendars, hour)?)?;
            shown.push(state.shown.clone());
        }
        let (location, scale) = head(weights, &Tensor::stack(&shown, 1)?, &scaled.before(0, hours)?)?;
        Ok((location, scale, scaled))
    }
}

impl Learner for Autoregressive {
    fn loss(&self, weights: &Weights, batch: &Batch<'_>) -> Result<Tensor> {
        let (location, scale, scaled) = Self::unrolled(weights, batch)?;
        let (rows, hours) = location.dims2()?;
        let actual = scaled.values.iter().flat_map(|values| values[LAG_MOST_HOURS..].iter().copied()).collect();
        let actual = Tensor::from_vec(actual, (rows, hours), &Device::Cpu)?;
        let mut counted = Vec::with_capacity(rows * hours);
        for (measured, targets) in batch.measured.iter().zip(batch.counted.to_vec2::<f32>()?) {
            let context = &measured[measured.len() - CONTEXT_HOURS..];
            counted.extend(context.iter().map(|measured| f32::from(u8::from(*measured))));
            counted.extend(targets);
        }
        let count: f32 = counted.iter().sum();
        let counted = Tensor::from_vec(counted, (rows, hours), &Device::Cpu)?;
        let z = ((actual - location)? / &scale)?;
        let tail = ((z.sqr()? / FREEDOM)? + 1.0)?.log()?;
        let each = (scale.log()? + (tail * (0.5 * (FREEDOM + 1.0)))?)?;
        ((each * counted)?.sum_all()? / f64::from(count))? + LOG_NORMALISER
    }

    /// The score of the Gaussian with the same moments, of the targets alone: the context has been learned from.
    fn validate(&self, weights: &Weights, batches: &[Batch<'_>]) -> Result<f64> {
        mean_over(batches, |batch| {
            let (location, scale, scaled) = Self::unrolled(weights, batch)?;
            let (rows, steps) = batch.targets.dims2()?;
            let gpus = Tensor::from_vec(scaled.scales_gpus, (rows, 1), &Device::Cpu)?;
            let in_gpus = |of: &Tensor| of.narrow(1, CONTEXT_HOURS, steps)?.broadcast_mul(&gpus);
            crps(&in_gpus(&location)?, &(in_gpus(&scale)? * 2.0_f64.sqrt())?, batch)
        })
    }
}

/// The generator of a window's paths: the same for the same seed, series and issue time, with any other series beside it.
pub fn draws(seed: u64, window: &Window<'_>) -> ChaCha8Rng {
    let mut hash = Sha256::new();
    hash.update(seed.to_le_bytes());
    hash.update(window.issue.unix_s().to_le_bytes());
    hash.update(window.series.to_string());
    ChaCha8Rng::from_seed(hash.finalize().into())
}

/// A Student-t with four degrees of freedom: a normal over the root of a mean of four squared ones.
fn student_t(rng: &mut ChaCha8Rng) -> f64 {
    // 1 − u is in (0, 1], so that the logarithms are finite.
    let [a, b, c]: [f64; 3] = std::array::from_fn(|_| 1.0 - rng.random::<f64>());
    let angle: f64 = rng.random();
    let normal = (-2.0 * a.ln()).sqrt() * (TAU * angle).cos();
    let squares = (-2.0 * (b * c).ln()).max(f64::MIN_POSITIVE);
    normal / (squares / FREEDOM).sqrt()
}

/// Draws paths through the horizon; the steps of every window.
pub fn sample(
    weights: &Weights,
    shape: &Shape,
    seen: &Seen<'_>,
    mut draws: Vec<ChaCha8Rng>,
) -> Result<Vec<Vec<StepForecast>>> {
    let mut scaled = Scaled::of(seen.inputs, &[])?;
    let series = of_series(weights, seen.places)?;
    let mut state = State::zero(draws.len())?;
    for hour in 0..=CONTEXT_HOURS {
        state = state.next(weights, &series, &scaled.features(seen.calendars, hour)?)?;
    }
    let (location, scale) = head(weights, &state.shown.unsqueeze(1)?, &scaled.before(CONTEXT_HOURS, 1)?)?;
    let (location, scale) = (fan(&location)?, fan(&scale)?);
    let mut steps = vec![drawn(&location, &scale, &mut draws)?];
    (state, scaled) = (state.fanned()?, scaled.fanned());
    let (series, calendars) = (fan(&series)?, fanned(seen.calendars));
    for hour in CONTEXT_HOURS + 1..CONTEXT_HOURS + shape.steps {
        scaled.values.iter_mut().zip(&steps[steps.len() - 1]).for_each(|(values, draw)| values.push(*draw));
        state = state.next(weights, &series, &scaled.features(&calendars, hour)?)?;
        let (location, scale) = head(weights, &state.shown.unsqueeze(1)?, &scaled.before(hour, 1)?)?;
        steps.push(drawn(&location, &scale, &mut draws)?);
    }
    let window = |row: usize| {
        let paths = row * PATHS..(row + 1) * PATHS;
        let scale = f64::from(scaled.scales_gpus[paths.start]);
        steps.iter().map(|step| summary(&step[paths.clone()], scale)).collect()
    };
    Ok((0..draws.len()).map(window).collect())
}

/// Repeats each for every path.
fn fanned<T: Clone>(each: &[T]) -> Vec<T> {
    each.iter().flat_map(|one| std::iter::repeat_n(one.clone(), PATHS)).collect()
}

impl Scaled {
    fn fanned(&self) -> Self {
        Self { scales_gpus: fanned(&self.scales_gpus), values: fanned(&self.values) }
    }
}

/// A value for each path, in windows' scales. Demand is never negative.
fn drawn(location: &Tensor, scale: &Tensor, draws: &mut [ChaCha8Rng]) -> Result<Vec<f32>> {
    let (location, scale): (Vec<f32>, Vec<f32>) = (location.flatten_all()?.to_vec1()?, scale.flatten_all()?.to_vec1()?);
    let draw = |(path, (location, scale)): (usize, (&f32, &f32))| {
        let draw = student_t(&mut draws[path / PATHS]);
        (f64::from(*location) + f64::from(*scale) * draw).max(0.0) as f32
    };
    Ok(location.iter().zip(&scale).enumerate().map(draw).collect())
}

fn summary(paths: &[f32], scale_gpus: f64) -> StepForecast {
    let mut gpus: Vec<f64> = paths.iter().map(|path| f64::from(*path) * scale_gpus).collect();
    gpus.sort_by(f64::total_cmp);
    let mean_gpus = gpus.iter().sum::<f64>() / gpus.len() as f64;
    let variance = gpus.iter().map(|path| (path - mean_gpus).powi(2)).sum::<f64>() / gpus.len() as f64;
    let quantiles_gpus = QUANTILE_LEVELS.map(|level| empirical_quantile(&gpus, level).unwrap_or(mean_gpus));
    StepForecast { mean_gpus, stddev_gpus: variance.sqrt().max(LEAST_STDDEV_GPUS), quantiles_gpus }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_have_the_quantiles_of_a_student_t_with_four_degrees_of_freedom() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let mut draws: Vec<f64> = (0..100_000).map(|_| student_t(&mut rng)).collect();
        draws.sort_by(f64::total_cmp);
        // scipy.stats.t(4).ppf.
        for (level, expected) in [(0.05, -2.131_85), (0.5, 0.0), (0.9, 1.533_21), (0.95, 2.131_85)] {
            let found = empirical_quantile(&draws, level).unwrap();
            assert!((found - expected).abs() < 0.04, "{level}: {found}");
        }
    }

    #[test]
    fn the_calendar_of_past_hours_is_counted_back_from_the_first_target() {
        let monday = HourFeatures { hour_of_day: 1, weekday: 0, day_off: false };
        let calendar = [monday; 4];
        let sunday = clock(&calendar, CONTEXT_HOURS - 2);
        assert_eq!(sunday[6], 1.0, "Sunday 23:00");
        let target = clock(&calendar, CONTEXT_HOURS);
        assert_eq!((target[6], target[4]), (0.0, 0.0), "Monday 1:00");
        assert!((f64::from(sunday[0]) - (TAU * 23.0 / 24.0).sin()).abs() < 1e-6);
    }

    #[test]
    fn each_hour_sees_the_hours_before_it_and_none_after() {
        let inputs: Vec<f32> = (0..SEEN_HOURS).map(|hour| hour as f32).collect();
        let inputs = Tensor::from_vec(inputs, (1, SEEN_HOURS), &Device::Cpu).unwrap();
        let scaled = Scaled::of(&inputs, &[vec![500.0, 600.0]]).unwrap();
        let scale = scaled.scales_gpus[0];
        assert_eq!(scale, 1.0 + (96..168).sum::<i32>() as f32 / 72.0);
        let calendar = [HourFeatures { hour_of_day: 0, weekday: 0, day_off: false }; 2];
        let lags = |hour| scaled.features(&[&calendar], hour).unwrap().to_vec2::<f32>().unwrap()[0][..6].to_vec();
        let gpus = |of: [f32; 6]| of.map(|gpus| gpus / scale).to_vec();
        assert_eq!(lags(0), gpus([95.0, 94.0, 93.0, 72.0, 48.0, 0.0]));
        assert_eq!(lags(CONTEXT_HOURS), gpus([167.0, 166.0, 165.0, 144.0, 120.0, 72.0]));
        assert_eq!(lags(CONTEXT_HOURS + 1)[..2], gpus([500.0, 167.0, 0.0, 0.0, 0.0, 0.0])[..2]);
    }
}
