//! A Transformer encoder (Vaswani et al. 2017) over patches of the window (PatchTST, Nie et al. 2023).
//!
//! Patches of six hours of the last week and one token for each target attend to each other in two layers of four heads,
//! normalised before each part; what stands at a target's token becomes its mean and deviation. Differences from PatchTST:
//! targets have tokens of their own, which carry the calendar, where the paper flattens all patches into one layer; a
//! window is scaled by its series' deviation in training and begins at its last value (the paper normalises each window by
//! its own moments); no dropout; and the score that descends is that of a Gaussian instead of the squared error.

use super::layers::{Parameters, embed, linear, norm, softplus};
use super::network::{Result, Seen, Shape};
use crate::descent::{Learner, crps, mean_over};
use crate::orglinear::{Batch, Begin, Weights};
use candle_core::{D, Tensor};
use candle_nn::ops::softmax;
use datasets::HourFeatures;

/// Hours of a patch.
pub const PATCH_HOURS: usize = 6;
const HOURS_MOST: usize = 168;
const WIDTH: usize = 32;
const HEADS: usize = 4;
const HIDDEN: usize = 64;
const LAYERS: usize = 2;
/// Keeps the deviation off zero, in the network's scale.
const LEAST_STDDEV: f64 = 1e-3;

const PATCH: &str = "patch";
const LEVEL: &str = "level";
const POSITION: &str = "position";
const SERIES: &str = "series";
const HOUR: &str = "hour_of_day";
const WEEKDAY: &str = "weekday";
const DAY_OFF: &str = "day_off";
const NORM: &str = "norm";
const HEAD: &str = "head";

const fn patches(shape: &Shape) -> usize {
    let hours = if shape.lookback_hours < HOURS_MOST { shape.lookback_hours } else { HOURS_MOST };
    hours / PATCH_HOURS
}

/// Name, shape and initial values of each parameter.
pub fn parameters(shape: &Shape) -> Vec<(String, Vec<usize>, Begin)> {
    let mut all = Parameters::default();
    all.linear(PATCH, PATCH_HOURS, WIDTH);
    all.linear(LEVEL, 1, WIDTH);
    all.embedding(POSITION, patches(shape) + shape.steps, WIDTH);
    all.embedding(SERIES, shape.series, WIDTH);
    all.embedding(HOUR, HourFeatures::HOURS_OF_DAY, WIDTH);
    all.embedding(WEEKDAY, HourFeatures::WEEKDAYS, WIDTH);
    all.embedding(DAY_OFF, 2, WIDTH);
    for layer in 0..LAYERS {
        for part in ["attention", "feed"] {
            all.norm(&format!("layer.{layer}.{part}.norm"), WIDTH);
        }
        for part in ["query", "key", "value", "out"] {
            all.linear(&format!("layer.{layer}.{part}"), WIDTH, WIDTH);
        }
        all.linear(&format!("layer.{layer}.up"), WIDTH, HIDDEN);
        all.linear(&format!("layer.{layer}.down"), HIDDEN, WIDTH);
    }
    all.norm(NORM, WIDTH);
    all.linear(HEAD, WIDTH, 2);
    all.0
}

/// Mean and deviation of each window and step, `[windows, steps]`, in the network's scale.
pub fn heads(weights: &Weights, shape: &Shape, seen: &Seen<'_>) -> Result<(Tensor, Tensor)> {
    let (windows, lookback_hours) = seen.inputs.dims2()?;
    let hours = patches(shape) * PATCH_HOURS;
    let last = seen.inputs.narrow(1, lookback_hours - 1, 1)?;
    let differences = seen.inputs.narrow(1, lookback_hours - hours, hours)?.broadcast_sub(&last)?;
    let patches = differences.reshape((windows, patches(shape), PATCH_HOURS))?;
    let mut tokens = Tensor::cat(&[linear(weights, PATCH, &patches)?, targets(weights, shape, seen, &last)?], 1)?;
    tokens = tokens.broadcast_add(weights.get(POSITION)?)?;
    for layer in 0..LAYERS {
        let part = |name: &str| format!("layer.{layer}.{name}");
        let inner = norm(weights, &part("attention.norm"), &tokens)?;
        tokens = (&tokens + attention(weights, &part, &inner)?)?;
        let inner = norm(weights, &part("feed.norm"), &tokens)?;
        tokens = (&tokens + linear(weights, &part("down"), &linear(weights, &part("up"), &inner)?.relu()?)?)?;
    }
    let of_targets = tokens.narrow(1, tokens.dim(1)? - shape.steps, shape.steps)?.contiguous()?;
    let both = linear(weights, HEAD, &norm(weights, NORM, &of_targets)?)?;
    let mean = both.narrow(2, 0, 1)?.squeeze(2)?.broadcast_add(&last)?;
    let stddev = (softplus(&both.narrow(2, 1, 1)?.squeeze(2)?)? + LEAST_STDDEV)?;
    Ok((mean, stddev))
}

/// A token for each target: its calendar, its series, the level that it begins at, `[windows, steps, WIDTH]`.
fn targets(weights: &Weights, shape: &Shape, seen: &Seen<'_>, last: &Tensor) -> Result<Tensor> {
    let windows = seen.places.len();
    let calendar = |name: &str, of: fn(&HourFeatures) -> u32| {
        let rows = seen.calendars.iter().flat_map(|hours| &hours[..shape.steps]).map(of);
        embed(weights, name, rows)?.reshape((windows, shape.steps, WIDTH))
    };
    let hours =
        (calendar(HOUR, |hour| u32::from(hour.hour_of_day))? + calendar(WEEKDAY, |hour| u32::from(hour.weekday))?)?;
    let hours = (hours + calendar(DAY_OFF, |hour| u32::from(hour.day_off))?)?;
    let series = embed(weights, SERIES, seen.places.iter().map(|&place| place as u32))?;
    hours.broadcast_add(&(series + linear(weights, LEVEL, last)?)?.unsqueeze(1)?)
}

/// Attention of all tokens to all, `[windows, tokens, WIDTH]`.
fn attention(weights: &Weights, part: &impl Fn(&str) -> String, tokens: &Tensor) -> Result<Tensor> {
    let (windows, count, _) = tokens.dims3()?;
    let head_width = WIDTH / HEADS;
    let split = |name: &str| -> Result<Tensor> {
        let all = linear(weights, &part(name), tokens)?.reshape((windows, count, HEADS, head_width))?;
        all.transpose(1, 2)?.contiguous()
    };
    let (query, key, value) = (split("query")?, split("key")?, split("value")?);
    let scores = (query.matmul(&key.transpose(2, 3)?.contiguous()?)? * (1.0 / (head_width as f64).sqrt()))?;
    let mixed = softmax(&scores, D::Minus1)?.matmul(&value)?;
    linear(weights, &part("out"), &mixed.transpose(1, 2)?.contiguous()?.reshape((windows, count, WIDTH))?)
}

/// Learns the continuous ranked probability score.
pub struct Scored {
    /// Shape of the network.
    pub shape: Shape,
}

impl Scored {
    fn score(&self, weights: &Weights, batch: &Batch<'_>) -> Result<Tensor> {
        let seen = Seen { inputs: &batch.inputs, places: &batch.places, calendars: &batch.calendars };
        let (mean, stddev) = heads(weights, &self.shape, &seen)?;
        crps(&mean, &stddev, batch)
    }
}

impl Learner for Scored {
    fn loss(&self, weights: &Weights, batch: &Batch<'_>) -> Result<Tensor> {
        self.score(weights, batch)
    }

    fn validate(&self, weights: &Weights, batches: &[Batch<'_>]) -> Result<f64> {
        mean_over(batches, |batch| self.score(weights, batch))
    }
}
