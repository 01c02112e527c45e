//! The forward pass, with the decomposition folded into the heads.
//!
//! With trend = M·x and cycle = x − M·x, Eq. 6 is x·(W_c + Mᵀ(W_t − W_c)) plus the context: one product with the window
//! instead of three, in training (where M is multiplied with narrow weights, not with every window) and in serving.

use super::config::{AttentionScaling, Config};
use super::decompose;
use super::weights::{self as names, ATTRIBUTES, Layer, Shape, Weights};
use candle_core::{D, Device, Tensor};
use candle_nn::ops::softmax;
use datasets::HourFeatures;

/// Keeps the deviation off zero, in the model's scale: the likelihood of a constant series has no maximum.
const LEAST_STDDEV: f64 = 1e-3;

type Result<T> = std::result::Result<T, candle_core::Error>;

/// The weights of a forward pass.
#[derive(Debug, Clone)]
pub struct Folded {
    mean: Head,
    stddev: Head,
    /// c_o of every series, `[series, ATTRIBUTES × width]`.
    organizations: Tensor,
    hour_of_day: Tensor,
    weekday: Tensor,
    day_off: Tensor,
    calendar_hours: usize,
}

/// `window · of_window + context · of_context + bias`.
#[derive(Debug, Clone)]
struct Head {
    of_window: Tensor,
    of_context: Tensor,
    bias: Tensor,
}

impl Head {
    fn of(weights: &Weights, layer: Layer, shape: &Shape) -> Result<Self> {
        let weight = weights.get(layer.weight)?;
        Ok(Self {
            of_window: weight.narrow(0, 0, shape.lookback_hours)?,
            of_context: weight.narrow(0, shape.lookback_hours, shape.context_width())?,
            bias: weights.get(layer.bias)?.clone(),
        })
    }

    fn apply(&self, inputs: &Tensor, context: &Tensor) -> Result<Tensor> {
        (inputs.matmul(&self.of_window)? + context.matmul(&self.of_context)?)?.broadcast_add(&self.bias)
    }
}

impl Folded {
    /// Folds weights for one use. `average` is Mᵀ of [`decompose::transposed`].
    pub fn with_average(weights: &Weights, shape: &Shape, config: &Config, average: &Tensor) -> Result<Self> {
        let cycle = Head::of(weights, names::CYCLE, shape)?;
        let trend = Head::of(weights, names::TREND, shape)?;
        let difference = (&trend.of_window - &cycle.of_window)?;
        let mean = Head {
            of_window: (&cycle.of_window + average.matmul(&difference)?)?,
            of_context: (cycle.of_context + trend.of_context)?,
            bias: (cycle.bias + trend.bias)?,
        };
        Ok(Self {
            mean,
            stddev: Head::of(weights, names::STDDEV, shape)?,
            organizations: organizations(weights, shape, config)?,
            hour_of_day: weights.get(names::EMBED_HOUR)?.clone(),
            weekday: weights.get(names::EMBED_WEEKDAY)?.clone(),
            day_off: weights.get(names::EMBED_DAY_OFF)?.clone(),
            calendar_hours: shape.calendar_hours,
        })
    }

    /// Folds finished weights for predicting: nothing here is followed for a gradient any more.
    pub fn new(weights: &Weights, shape: &Shape, config: &Config) -> Result<Self> {
        let average = decompose::transposed(shape.lookback_hours, config.moving_average_hours, config.padding)?;
        let folded = Self::with_average(weights, shape, config, &average)?;
        let head = |head: Head| -> Result<Head> {
            Ok(Head {
                of_window: head.of_window.detach().contiguous()?,
                of_context: head.of_context.detach().contiguous()?,
                bias: head.bias.detach(),
            })
        };
        Ok(Self {
            mean: head(folded.mean)?,
            stddev: head(folded.stddev)?,
            organizations: folded.organizations.detach(),
            hour_of_day: folded.hour_of_day.detach(),
            weekday: folded.weekday.detach(),
            day_off: folded.day_off.detach(),
            calendar_hours: folded.calendar_hours,
        })
    }

    /// Mean (Eq. 6) and deviation (Eq. 7) of each window and step, `[windows, steps]`, in the model's scale.
    ///
    /// `inputs` is `[windows, lookback]`; `places[k]` the series of window k; `targets[k]` the calendar of its targets.
    pub fn heads(&self, inputs: &Tensor, places: &[usize], targets: &[&[HourFeatures]]) -> Result<(Tensor, Tensor)> {
        let places: Vec<u32> = places.iter().map(|&place| place as u32).collect();
        let places = Tensor::from_vec(places, inputs.dim(0)?, &Device::Cpu)?;
        let organizations = self.organizations.index_select(&places, 0)?;
        let context = Tensor::cat(&[organizations, self.calendar(targets)?], 1)?;
        let stddev = softplus(&self.stddev.apply(inputs, &context)?)?;
        Ok((self.mean.apply(inputs, &context)?, (stddev + LEAST_STDDEV)?))
    }

    /// c_t: `[windows, calendar hours × features × width]`.
    fn calendar(&self, targets: &[&[HourFeatures]]) -> Result<Tensor> {
        let embed = |table: &Tensor, of: fn(&HourFeatures) -> u32| {
            let ids: Vec<u32> = targets.iter().flat_map(|hours| &hours[..self.calendar_hours]).map(of).collect();
            let count = ids.len();
            table.index_select(&Tensor::from_vec(ids, count, &Device::Cpu)?, 0)
        };
        let hour_of_day = embed(&self.hour_of_day, |hour| u32::from(hour.hour_of_day))?;
        let weekday = embed(&self.weekday, |hour| u32::from(hour.weekday))?;
        let day_off = embed(&self.day_off, |hour| u32::from(hour.day_off))?;
        Tensor::cat(&[hour_of_day, weekday, day_off], 1)?.reshape((targets.len(), ()))
    }
}

/// c_o of Eq. 4: attention among the embedded attributes of each series, concatenated.
fn organizations(weights: &Weights, shape: &Shape, config: &Config) -> Result<Tensor> {
    let (series, width) = (shape.attributes.len(), shape.embedding_width);
    let tables = [names::EMBED_GPU_MODEL, names::EMBED_CLUSTER, names::EMBED_ORGANIZATION];
    let mut tokens = Vec::with_capacity(ATTRIBUTES);
    for (attribute, table) in tables.into_iter().enumerate() {
        let ids: Vec<u32> = shape.attributes.iter().map(|of| of[attribute]).collect();
        tokens.push(weights.get(table)?.index_select(&Tensor::from_vec(ids, series, &Device::Cpu)?, 0)?);
    }
    let tokens = Tensor::stack(&tokens, 1)?.reshape((series * ATTRIBUTES, width))?;
    let project = |layer: Layer| -> Result<Tensor> {
        let flat = tokens.matmul(weights.get(layer.weight)?)?.broadcast_add(weights.get(layer.bias)?)?;
        flat.reshape((series, ATTRIBUTES, ()))
    };
    let (query, key, value) = (project(names::QUERY)?, project(names::KEY)?, project(names::VALUE)?);
    let scores = query.matmul(&key.transpose(1, 2)?.contiguous()?)?;
    let scale = 1.0 / (shape.attention_width as f64).sqrt();
    let attention = match config.attention_scaling {
        AttentionScaling::BeforeSoftmax => softmax(&(scores * scale)?, D::Minus1)?,
        AttentionScaling::AfterSoftmax => (softmax(&scores, D::Minus1)? * scale)?,
    };
    attention.matmul(&value)?.reshape((series, ATTRIBUTES * width))
}

/// log(1 + eˣ) of Eq. 7, without overflow.
fn softplus(x: &Tensor) -> Result<Tensor> {
    x.relu()? + (x.abs()?.neg()?.exp()? + 1.0)?.log()?
}
