//! The parameters of an OrgLinear, by name.

use super::config::{CalendarInput, Config};
use candle_core::Tensor;
use datasets::HourFeatures;
use std::collections::BTreeMap;
use vocab::{HorizonHours, SeriesId};

/// Embedding of GPU models.
pub const EMBED_GPU_MODEL: &str = "embedding.gpu_model";
/// Embedding of clusters.
pub const EMBED_CLUSTER: &str = "embedding.cluster";
/// Embedding of organizations.
pub const EMBED_ORGANIZATION: &str = "embedding.organization";
/// Embedding of hours of the day.
pub const EMBED_HOUR: &str = "embedding.hour_of_day";
/// Embedding of weekdays.
pub const EMBED_WEEKDAY: &str = "embedding.weekday";
/// Embedding of days off.
pub const EMBED_DAY_OFF: &str = "embedding.day_off";

/// A linear layer: names of its weight `[in, out]` and bias `[out]`.
#[derive(Clone, Copy)]
pub struct Layer {
    /// Tensor of the weights.
    pub weight: &'static str,
    /// Tensor of the biases.
    pub bias: &'static str,
}

/// Query of the attention.
pub const QUERY: Layer = Layer { weight: "attention.query.weight", bias: "attention.query.bias" };
/// Key of the attention.
pub const KEY: Layer = Layer { weight: "attention.key.weight", bias: "attention.key.bias" };
/// Value of the attention.
pub const VALUE: Layer = Layer { weight: "attention.value.weight", bias: "attention.value.bias" };
/// W_c and b_c of Eq. 5.
pub const CYCLE: Layer = Layer { weight: "cycle.weight", bias: "cycle.bias" };
/// W_t and b_t of Eq. 5.
pub const TREND: Layer = Layer { weight: "trend.weight", bias: "trend.bias" };
/// W_v and b_o of Eq. 7.
pub const STDDEV: Layer = Layer { weight: "stddev.weight", bias: "stddev.bias" };

/// Business attributes of a series: GPU model, cluster, organization.
pub const ATTRIBUTES: usize = 3;
/// Features of a target hour: hour of day, weekday, day off.
pub const CALENDAR_FEATURES: usize = 3;

/// How a parameter begins.
#[derive(Clone, Copy)]
pub enum Begin {
    /// Standard normal, as embeddings do.
    Normal,
    /// Uniform within ±1/√inputs, as linear layers do.
    Uniform { inputs: usize },
    /// The same value everywhere: the heads begin as the mean of the window.
    Constant { value: f64 },
}

/// Sizes that follow from the configuration and the series.
#[derive(Debug, Clone, PartialEq)]
pub struct Shape {
    /// Hours that the model sees.
    pub lookback_hours: usize,
    /// Steps of a forecast.
    pub steps: usize,
    /// Hours whose calendar is encoded.
    pub calendar_hours: usize,
    /// Width of an embedding.
    pub embedding_width: usize,
    /// Width of the attention.
    pub attention_width: usize,
    /// Places of GPU model, cluster and organization in their embeddings, for each series.
    pub attributes: Vec<[u32; ATTRIBUTES]>,
    /// Rows of these three embeddings.
    pub attribute_sizes: [usize; ATTRIBUTES],
}

impl Shape {
    /// Shape for a panel.
    #[must_use]
    pub fn new(config: &Config, horizon: HorizonHours, lookback_hours: usize, series: &[SeriesId]) -> Self {
        let names = |of: fn(&SeriesId) -> &str| {
            let mut places: BTreeMap<&str, u32> = series.iter().map(|id| (of(id), 0)).collect();
            places.values_mut().zip(0..).for_each(|(place, next)| *place = next);
            places
        };
        let of: [fn(&SeriesId) -> &str; ATTRIBUTES] =
            [|id| id.pool.gpu_model.as_str(), |id| id.pool.cluster.as_str(), |id| id.organization.as_str()];
        let places = of.map(names);
        let attributes = series.iter().map(|id| std::array::from_fn(|k| places[k][of[k](id)])).collect();
        let calendar_hours = match config.calendar_input {
            CalendarInput::EachTarget => horizon.steps(),
            CalendarInput::FirstTarget => 1,
        };
        Self {
            lookback_hours,
            steps: horizon.steps(),
            calendar_hours,
            embedding_width: config.embedding_width,
            attention_width: config.attention_width,
            attributes,
            attribute_sizes: places.map(|places| places.len()),
        }
    }

    /// Width of the context behind the window: c_o and c_t of Eq. 5.
    #[must_use]
    pub const fn context_width(&self) -> usize {
        (ATTRIBUTES + CALENDAR_FEATURES * self.calendar_hours) * self.embedding_width
    }

    /// Name, shape and beginning of every parameter, in the order in which they are drawn.
    #[must_use]
    pub fn parameters(&self) -> Vec<(&'static str, Vec<usize>, Begin)> {
        let width = self.embedding_width;
        let mut all = Vec::new();
        let [gpu_models, clusters, organizations] = self.attribute_sizes;
        for (name, rows) in [
            (EMBED_GPU_MODEL, gpu_models),
            (EMBED_CLUSTER, clusters),
            (EMBED_ORGANIZATION, organizations),
            (EMBED_HOUR, HourFeatures::HOURS_OF_DAY),
            (EMBED_WEEKDAY, HourFeatures::WEEKDAYS),
            (EMBED_DAY_OFF, 2),
        ] {
            all.push((name, vec![rows, width], Begin::Normal));
        }
        for (layer, out) in [(QUERY, self.attention_width), (KEY, self.attention_width), (VALUE, width)] {
            all.push((layer.weight, vec![width, out], Begin::Uniform { inputs: width }));
            all.push((layer.bias, vec![out], Begin::Uniform { inputs: width }));
        }
        let inputs = self.lookback_hours + self.context_width();
        for layer in [CYCLE, TREND, STDDEV] {
            let mean_of_window = Begin::Constant { value: 1.0 / self.lookback_hours as f64 };
            all.push((layer.weight, vec![inputs, self.steps], mean_of_window));
            all.push((layer.bias, vec![self.steps], Begin::Uniform { inputs }));
        }
        all
    }
}

/// Every parameter by name.
#[derive(Debug, Clone)]
pub struct Weights(BTreeMap<String, Tensor>);

impl Weights {
    /// Weights from their tensors.
    #[must_use]
    pub const fn new(tensors: BTreeMap<String, Tensor>) -> Self {
        Self(tensors)
    }

    /// All tensors, by name.
    #[must_use]
    pub const fn tensors(&self) -> &BTreeMap<String, Tensor> {
        &self.0
    }

    pub(crate) fn get(&self, name: &str) -> Result<&Tensor, candle_core::Error> {
        self.0.get(name).ok_or_else(|| candle_core::Error::Msg(format!("parameter {name} is missing")))
    }
}
