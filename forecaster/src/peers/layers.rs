//! Layers of networks.

use super::network::Result;
use crate::orglinear::{Begin, Weights};
use candle_core::{D, Device, Tensor};

/// Parameters by name.
#[derive(Default)]
pub struct Parameters(pub Vec<(String, Vec<usize>, Begin)>);

impl Parameters {
    /// A linear layer `NAME.weight` `[inputs, outputs]` and `NAME.bias` `[outputs]`.
    pub fn linear(&mut self, name: &str, inputs: usize, outputs: usize) {
        let begin = Begin::Uniform { inputs };
        self.0.push((format!("{name}.weight"), vec![inputs, outputs], begin));
        self.0.push((format!("{name}.bias"), vec![outputs], begin));
    }

    /// A linear map without a bias, `NAME` `[inputs, outputs]`.
    pub fn matrix(&mut self, name: &str, inputs: usize, outputs: usize) {
        self.0.push((name.to_owned(), vec![inputs, outputs], Begin::Uniform { inputs }));
    }

    /// An embedding `[rows, width]`.
    pub fn embedding(&mut self, name: &str, rows: usize, width: usize) {
        self.0.push((name.to_owned(), vec![rows, width], Begin::Normal));
    }

    /// A normalisation `NAME.scale` and `NAME.shift`, `[width]` each.
    pub fn norm(&mut self, name: &str, width: usize) {
        self.0.push((format!("{name}.scale"), vec![width], Begin::Constant { value: 1.0 }));
        self.0.push((format!("{name}.shift"), vec![width], Begin::Constant { value: 0.0 }));
    }
}

/// `[…, inputs]` to `[…, outputs]`.
pub fn linear(weights: &Weights, name: &str, inputs: &Tensor) -> Result<Tensor> {
    let weight = weights.get(&format!("{name}.weight"))?;
    let mut dimensions = inputs.dims().to_vec();
    let width = dimensions.pop().unwrap_or(1);
    dimensions.push(weight.dim(1)?);
    let flat = inputs.reshape(((), width))?.matmul(weight)?;
    flat.broadcast_add(weights.get(&format!("{name}.bias"))?)?.reshape(dimensions)
}

/// Rows of an embedding.
pub fn embed(weights: &Weights, name: &str, rows: impl Iterator<Item = u32>) -> Result<Tensor> {
    let rows: Vec<u32> = rows.collect();
    let count = rows.len();
    weights.get(name)?.index_select(&Tensor::from_vec(rows, count, &Device::Cpu)?, 0)
}

/// Layer normalisation over the last dimension.
pub fn norm(weights: &Weights, name: &str, inputs: &Tensor) -> Result<Tensor> {
    let centred = inputs.broadcast_sub(&inputs.mean_keepdim(D::Minus1)?)?;
    let deviation = (centred.sqr()?.mean_keepdim(D::Minus1)? + 1e-5)?.sqrt()?;
    let scaled = centred.broadcast_div(&deviation)?.broadcast_mul(weights.get(&format!("{name}.scale"))?)?;
    scaled.broadcast_add(weights.get(&format!("{name}.shift"))?)
}

/// 1 / (1 + e⁻ˣ), from the hyperbolic tangent: no overflow.
pub fn sigmoid(x: &Tensor) -> Result<Tensor> {
    ((x * 0.5)?.tanh()? + 1.0)? * 0.5
}

/// log(1 + eˣ), without overflow.
pub fn softplus(x: &Tensor) -> Result<Tensor> {
    x.relu()? + (x.abs()?.neg()?.exp()? + 1.0)?.log()?
}
