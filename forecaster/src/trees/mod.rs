//! Boosted trees: a forest for the mean, each exported quantile and the spread of each step, over the rows of all series.

mod binned;
mod booster;
mod compiled;
mod fit;
mod forest;
mod grains;
mod lanes;
mod splits;

pub use booster::Growth;
pub use forest::{Forest, Node};

use crate::rows::{OUTPUTS, SPREAD};
pub use compiled::{ByFeature, TargetColumns};
use compiled::{Compiled, LEAVES_MOST};
use std::ops::Range;

/// The forests of a model.
#[derive(Debug, Clone, PartialEq)]
pub struct Forests {
    /// `[step][OUTPUTS]`, where steps are grouped `[group][OUTPUTS]`.
    steps: Vec<Vec<Forest>>,
    /// One for all, or one for each group.
    spread_factors: Vec<f64>,
    columns: TargetColumns,
    compiled: Vec<Compiled>,
}

impl Forests {
    /// Leaves of a tree at most.
    pub const LEAVES_MOST: usize = LEAVES_MOST;

    /// Forests `[step][OUTPUTS]` over the same rows of so many features; what they say of the spread is multiplied by
    /// `spread_factor` to make a deviation.
    #[must_use]
    pub fn new(steps: Vec<Vec<Forest>>, spread_factor: f64, features: usize) -> Self {
        let columns = TargetColumns::alone(features);
        let compiled = vec![Compiled::new(steps.iter().flatten(), columns.clone())];
        Self { steps, spread_factors: vec![spread_factor], columns, compiled }
    }

    /// Forests `[group][OUTPUTS]`, each over targets of its own.
    #[must_use]
    pub fn of_groups(groups: Vec<Vec<Forest>>, spread_factors: Vec<f64>, columns: TargetColumns) -> Self {
        let compiled = groups.iter().map(|forests| Compiled::new(forests.iter(), columns.clone())).collect();
        Self { steps: groups, spread_factors, columns, compiled }
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
        let mut all = self.compiled[0].say(rows, features);
        all.chunks_mut(OUTPUTS).for_each(|of_step| self.widen(0, of_step));
        all
    }

    /// The predictions of the forests of one group for some targets of rows of windows: `[target][OUTPUTS][row]`.
    #[must_use]
    pub fn say_of_group(&self, group: usize, rows: &ByFeature, targets: Range<usize>) -> Vec<Vec<Vec<f64>>> {
        let mut all = self.compiled[group].say_of_targets(rows, targets);
        for of_target in &mut all {
            self.widen(group, of_target);
        }
        all
    }

    /// Makes deviations of spreads.
    fn widen(&self, group: usize, outputs: &mut [Vec<f64>]) {
        for spread in &mut outputs[SPREAD] {
            *spread = spread.max(0.0) * self.spread_factors[group];
        }
    }
}
