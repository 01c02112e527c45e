//! Parameters drawn from our own seeded generator: candle's CPU backend cannot be seeded.

use super::weights::{Begin, Weights};
use candle_core::{Device, Tensor, Var};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use std::f64::consts::TAU;

/// Draws every parameter (name, shape, beginning), in their order; they are variables, so that training can move them.
pub fn draw<N: Into<String>>(
    parameters: Vec<(N, Vec<usize>, Begin)>,
    rng: &mut ChaCha8Rng,
) -> Result<(Weights, Vec<Var>), candle_core::Error> {
    let mut tensors = std::collections::BTreeMap::new();
    let mut variables = Vec::new();
    for (name, dimensions, begin) in parameters {
        let count = dimensions.iter().product();
        let values: Vec<f32> = (0..count).map(|_| draw_one(begin, rng) as f32).collect();
        let variable = Var::from_tensor(&Tensor::from_vec(values, dimensions, &Device::Cpu)?)?;
        tensors.insert(name.into(), variable.as_tensor().clone());
        variables.push(variable);
    }
    Ok((Weights::new(tensors), variables))
}

fn draw_one(begin: Begin, rng: &mut ChaCha8Rng) -> f64 {
    match begin {
        Begin::Constant { value } => value,
        Begin::Uniform { inputs } => (2.0 * rng.random::<f64>() - 1.0) / (inputs as f64).sqrt(),
        Begin::Normal => normal(rng),
    }
}

/// Box and Muller; 1 − u is in (0, 1], so that the logarithm is finite.
pub(crate) fn normal(rng: &mut ChaCha8Rng) -> f64 {
    let (radius, angle): (f64, f64) = (1.0 - rng.random::<f64>(), rng.random());
    (-2.0 * radius.ln()).sqrt() * (TAU * angle).cos()
}
