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
    /// `[step][OUTPUTS]`, where steps are grouped `[group][OUTPUTS]`.
    steps: Vec<Vec<Forest>>,
    /// One for all, or one for each group.
    spread_factors: Vec<f64>,
    compiled: Vec<Compiled>,
}

impl Forests {
    /// Leaves of a tree at most.
    pub const LEAVES_MOST: usize = Compiled::LEAVES_MOST;

    /// Forests `[step][OUTPUTS]` over the same rows; what they say of the spread is multiplied by `spread_factor` to make a
    /// deviation.
    #[must_use]
    pub fn new(steps: Vec<Vec<Forest>>, spread_factor: f64) -> Self {
        let compiled = vec![Compiled::new(steps.iter().flatten())];
        Self { steps, spread_factors: vec![spread_factor], compiled }
    }

    /// Forests `[group][OUTPUTS]`, each over rows of its own.
    #[must_use]
    pub fn of_groups(groups: Vec<Vec<Forest>>, spread_factors: Vec<f64>) -> Self {
        let compiled = groups.iter().map(|forests| Compiled::new(forests.iter())).collect();
        Self { steps: groups, spread_factors, compiled }
    }

    /// Forests of each step or group.
    #[must_use]
    pub fn steps(&self) -> &[Vec<Forest>] {
        &self.steps
    }

    /// Factors of the spread, from validation: one for all, or one for each group.
    #[must_use]
    pub fn spread_factors(&self) -> &[f64] {
        &self.spread_factors
    }

    /// The predictions of the forests for each row: `[step × OUTPUTS][row]`, the spread as a deviation.
    #[must_use]
    pub fn say(&self, rows: &[f32], features: usize) -> Vec<Vec<f64>> {
        self.say_of_group(0, rows, features)
    }

    /// The predictions of the forests of one group for rows of it: `[OUTPUTS][row]`.
    #[must_use]
    pub fn say_of_group(&self, group: usize, rows: &[f32], features: usize) -> Vec<Vec<f64>> {
        let mut all = self.compiled[group].say(rows, features);
        for spreads in all.iter_mut().skip(SPREAD).step_by(OUTPUTS) {
            for spread in spreads {
                *spread = spread.max(0.0) * self.spread_factors[group];
            }
        }
        all
    }
}
