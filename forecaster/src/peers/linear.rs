//! DLinear and NLinear (Zeng et al., "Are transformers effective for time series forecasting?", AAAI 2023).
//!
//! DLinear: a moving average of 25 hours parts the window into trend and season, and a linear layer of each says all
//! steps; NLinear: one linear layer of the window less its last value, which is added again. Layers are shared by all
//! series, the squared error is minimised, ends are padded by their value, all as there. Ours: series are scaled by their
//! training part, Adam descends from layers drawn as linear layers are, and a distribution is made of the point, since
//! they say none: the residuals on the validation part, of each series and step for itself, give the deviation and what is
//! added at each quantile.

use super::layers::Parameters;
use super::network::{NetworkKind, Result, Shape};
use crate::descent::{Learner, mean_over};
use crate::orglinear::{Batch, Begin, Padding, Weights, moving_average_transposed};
use candle_core::Tensor;

const MOVING_AVERAGE_HOURS: usize = 25;
const SEASON: &str = "season";
const TREND: &str = "trend";
const HEAD: &str = "head";

/// Name, shape and initial values of each parameter.
pub fn parameters(shape: &Shape) -> Vec<(String, Vec<usize>, Begin)> {
    let mut all = Parameters::default();
    let names: &[&str] = if shape.kind == NetworkKind::DLinear { &[SEASON, TREND] } else { &[HEAD] };
    for name in names {
        all.linear(name, shape.lookback_hours, shape.steps);
    }
    all.0
}

/// Mᵀ with trend = window · Mᵀ; none where nothing is decomposed.
pub fn average(shape: &Shape) -> Result<Option<Tensor>> {
    let is_decomposed = shape.kind == NetworkKind::DLinear;
    let matrix =
        is_decomposed.then(|| moving_average_transposed(shape.lookback_hours, MOVING_AVERAGE_HOURS, Padding::Edge));
    matrix.transpose()
}

/// One matrix for trend and season: `points = window · weight + bias`, of NLinear with the last value on both sides.
#[derive(Debug, Clone)]
pub struct Folded {
    weight: Tensor,
    bias: Tensor,
    is_from_last: bool,
}

impl Folded {
    /// Layers of the weights.
    pub fn of(weights: &Weights, shape: &Shape, average: Option<&Tensor>) -> Result<Self> {
        let get = |name: &str, part: &str| weights.get(&format!("{name}.{part}"));
        let Some(average) = average else {
            let (weight, bias) = (get(HEAD, "weight")?.clone(), get(HEAD, "bias")?.clone());
            return Ok(Self { weight, bias, is_from_last: shape.kind == NetworkKind::NLinear });
        };
        let (season, trend) = (get(SEASON, "weight")?, get(TREND, "weight")?);
        // (x − xMᵀ)·season + xMᵀ·trend.
        let weight = (season + average.matmul(&(trend - season)?)?)?;
        Ok(Self { weight, bias: (get(SEASON, "bias")? + get(TREND, "bias")?)?, is_from_last: false })
    }

    /// `[windows, steps]` of `[windows, lookback]`, in the network's scale.
    pub fn points(&self, inputs: &Tensor) -> Result<Tensor> {
        if !self.is_from_last {
            return inputs.matmul(&self.weight)?.broadcast_add(&self.bias);
        }
        let last = inputs.narrow(1, inputs.dim(1)? - 1, 1)?;
        let ahead = inputs.broadcast_sub(&last)?.matmul(&self.weight)?.broadcast_add(&self.bias)?;
        ahead.broadcast_add(&last)
    }
}

/// Learns points by their squared error.
pub struct Squared {
    /// Shape of the network.
    pub shape: Shape,
    /// Moving average as a matrix, for `dlinear`.
    pub average: Option<Tensor>,
}

fn squared_error(folded: &Folded, batch: &Batch<'_>) -> Result<Tensor> {
    let error = (&batch.targets - folded.points(&batch.inputs)?)?.sqr()?;
    (error * &batch.counted)?.sum_all()? / batch.count as f64
}

impl Learner for Squared {
    fn loss(&self, weights: &Weights, batch: &Batch<'_>) -> Result<Tensor> {
        squared_error(&Folded::of(weights, &self.shape, self.average.as_ref())?, batch)
    }

    fn validate(&self, weights: &Weights, batches: &[Batch<'_>]) -> Result<f64> {
        let folded = Folded::of(weights, &self.shape, self.average.as_ref())?;
        mean_over(batches, |batch| squared_error(&folded, batch))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use candle_core::Device;
    use std::collections::BTreeMap;

    fn tensor(values: &[f32], rows: usize) -> Tensor {
        Tensor::from_vec(values.to_vec(), (rows, values.len() / rows), &Device::Cpu).unwrap()
    }

    fn points(kind: NetworkKind, named: &[(&str, Tensor)], window: &[f32]) -> Vec<f32> {
        let shape = Shape { kind, lookback_hours: window.len(), steps: 1, series: 1 };
        let weights: BTreeMap<_, _> = named.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        let average = average(&shape).unwrap();
        let folded = Folded::of(&Weights::new(weights), &shape, average.as_ref()).unwrap();
        folded.points(&tensor(window, 1)).unwrap().flatten_all().unwrap().to_vec1().unwrap()
    }

    /// By hand: the average of 25 hours over 4 values with repeated edges.
    #[test]
    fn dlinear_weighs_trend_and_season_apart() {
        let window = [3.0, 6.0, 9.0, 0.0];
        let bias = |value: f32| Tensor::from_vec(vec![value], 1, &Device::Cpu).unwrap();
        let named = [
            ("season.weight", tensor(&[0.0, 0.0, 0.0, 2.0], 4)),
            ("season.bias", bias(0.5)),
            ("trend.weight", tensor(&[0.0, 0.0, 0.0, 1.0], 4)),
            ("trend.bias", bias(0.25)),
        ];
        // Around the last hour: ten times 3 (one in the window, nine before it), 6, 9, and thirteen times 0.
        let trend = (10.0 * 3.0 + 6.0 + 9.0) / 25.0;
        let [point] = points(NetworkKind::DLinear, &named, &window)[..] else { panic!("one step") };
        assert!((point - (trend + 2.0 * (0.0 - trend) + 0.75)).abs() < 1e-5, "{point}");
    }

    #[test]
    fn nlinear_begins_at_the_last_value() {
        let bias = Tensor::from_vec(vec![1.0_f32], 1, &Device::Cpu).unwrap();
        let named = [("head.weight", tensor(&[1.0, 0.0, 5.0], 3)), ("head.bias", bias)];
        assert_eq!(points(NetworkKind::NLinear, &named, &[2.0, 4.0, 7.0]), [7.0 + (2.0 - 7.0) + 1.0]);
    }
}
