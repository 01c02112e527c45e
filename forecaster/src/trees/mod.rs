//! Boosted trees: a forest for the mean, each exported quantile and the spread of each step, over the rows of all series.

mod binned;
mod booster;
mod compiled;
mod fit;
mod forest;
mod grains;

pub use booster::Growth;
pub use forest::{Forest, Node};

use crate::rows::{OUTPUTS, SPREAD};
use compiled::Compiled;

/// The forests of a model.
#[derive(Debug, Clone, PartialEq)]
pub struct Forests {
    /// `[step][OUTPUTS]`.
    steps: Vec<Vec<Forest>>,
    spread_factor: f64,
    compiled: Compiled,
}

impl Forests {
    /// Leaves of a tree at most.
    pub const LEAVES_MOST: usize = Compiled::LEAVES_MOST;

    /// Forests `[step][OUTPUTS]`; what they say of the spread is multiplied by `spread_factor` to make a deviation.
    #[must_use]
    pub fn new(steps: Vec<Vec<Forest>>, spread_factor: f64) -> Self {
        let compiled = Compiled::new(steps.iter().flatten());
        Self { steps, spread_factor, compiled }
    }

    /// Forests of each step.
    #[must_use]
    pub fn steps(&self) -> &[Vec<Forest>] {
        &self.steps
    }

    /// Factor of the spread, from validation.
    #[must_use]
    pub const fn spread_factor(&self) -> f64 {
        self.spread_factor
    }

    /// The predictions of the forests for each row: `[step × OUTPUTS][row]`, the spread as a deviation.
    #[must_use]
    pub fn say(&self, rows: &[f32], features: usize) -> Vec<Vec<f64>> {
        let mut all = self.compiled.say(rows, features);
        for spreads in all.iter_mut().skip(SPREAD).step_by(OUTPUTS) {
            for spread in spreads {
                *spread = spread.max(0.0) * self.spread_factor;
            }
        }
        all
    }
}
