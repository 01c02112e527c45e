//! Answers of trees and network, mixed row by row. Where steps are grouped, trees and network answer some of them, and those in
//! between lie on a curve through these.

use super::Blend;
use crate::network::WIDE;
use crate::rows::OUTPUTS;
use crate::trees::ByFeature;

/// The outputs of one step for one row.
pub(super) type StepOutputs = [f64; OUTPUTS];

/// The answers of the parts for some rows.
pub(super) struct Answers {
    /// `[answered step × OUTPUTS][row]`; none without trees.
    trees: Option<Vec<Vec<f64>>>,
    /// `[answered step]`, each `[row][WIDE]`; none without a network.
    network: Option<Vec<Vec<f32>>>,
    /// The network's share in each output where there are both.
    network_share: StepOutputs,
    rows: usize,
    answered: usize,
    /// Of each step of the horizon.
    curve: Vec<OnCurve>,
}

impl Blend {
    /// The answers for rows of windows.
    pub(super) fn say(&self, rows: &[f32]) -> Answers {
        let (width, groups) = (self.features.count(), self.features.step_groups());
        let (forests, network) = (self.forests.as_ref(), self.network.as_ref());
        let (trees, network, answered) = if groups.is_empty() {
            let network = network.map(|network| network.say(rows, &self.features));
            (forests.map(|forests| forests.say(rows, width)), network, (0..self.horizon.steps()).collect())
        } else {
            let network = network.map(|network| network.say_of_targets(rows, &self.features));
            let by_feature = forests.map(|forests| (forests, ByFeature::of(rows, width)));
            let trees = by_feature.map(|(forests, rows)| {
                let mut targets = 0..0;
                let of_group = |(group, steps): (usize, Vec<usize>)| {
                    targets = targets.end..targets.end + steps.len();
                    forests.say_of_group(group, &rows, targets.clone()).into_iter().flatten()
                };
                groups.answered().enumerate().flat_map(of_group).collect()
            });
            (trees, network, groups.answered().flatten().collect::<Vec<usize>>())
        };
        Answers {
            trees,
            network,
            network_share: self.network_share,
            rows: rows.len() / width,
            answered: answered.len(),
            curve: (0..self.horizon.steps()).map(|step| OnCurve::of(step, &answered)).collect(),
        }
    }
}

impl Answers {
    /// Passes the outputs of each step, row by row.
    pub(super) fn each_row(&self, mut then: impl FnMut(usize, &[StepOutputs])) {
        let (mut answered, mut steps) = (Vec::with_capacity(self.answered), Vec::with_capacity(self.curve.len()));
        for row in 0..self.rows {
            answered.clear();
            answered.extend((0..self.answered).map(|place| self.mixed(place, row)));
            steps.clear();
            steps.extend(self.curve.iter().map(|one| one.outputs(&answered)));
            then(row, &steps);
        }
    }

    /// The weighted mean of both parts for one answered step of one row.
    fn mixed(&self, place: usize, row: usize) -> StepOutputs {
        let of_trees = |trees: &[Vec<f64>]| std::array::from_fn(|output| trees[place * OUTPUTS + output][row]);
        let of_network = |network: &[Vec<f32>]| -> StepOutputs {
            let outputs = &network[place][row * WIDE..][..OUTPUTS];
            std::array::from_fn(|output| f64::from(outputs[output]))
        };
        match (&self.trees, &self.network) {
            (Some(trees), Some(network)) => {
                let (trees, network, shares): (StepOutputs, _, _) =
                    (of_trees(trees), of_network(network), self.network_share);
                std::array::from_fn(|output| shares[output] * network[output] + (1.0 - shares[output]) * trees[output])
            }
            (Some(trees), None) => of_trees(trees),
            (None, Some(network)) => of_network(network),
            (None, None) => [0.0; OUTPUTS],
        }
    }
}

/// Answered steps that a curve passes: two before, two after.
const AROUND: usize = 4;

/// Where a step lies: it is answered itself, or lies on the curve of third degree through the answered steps around it. Before the
/// first answered step it is as that one.
#[derive(Debug)]
enum OnCurve {
    /// The place of an answered step.
    Answered(usize),
    /// The place of the first answered step around it, and the weight of each of them.
    Between(usize, Vec<f64>),
}

impl OnCurve {
    fn of(step: usize, answered: &[usize]) -> Self {
        let after = answered.partition_point(|one| *one < step);
        if after == 0 || answered.get(after) == Some(&step) {
            return Self::Answered(after);
        }
        let first = after.saturating_sub(AROUND / 2).min(answered.len().saturating_sub(AROUND));
        Self::Between(first, weights(step, &answered[first..(first + AROUND).min(answered.len())]))
    }

    /// The outputs of the step by those of the answered ones.
    fn outputs(&self, answered: &[StepOutputs]) -> StepOutputs {
        match self {
            Self::Answered(place) => answered[*place],
            Self::Between(first, weights) => {
                let mut sums = [0.0; OUTPUTS];
                for (outputs, weight) in answered[*first..].iter().zip(weights) {
                    sums.iter_mut().zip(outputs).for_each(|(sum, value)| *sum += weight * value);
                }
                sums
            }
        }
    }
}

/// Weights of values at some steps in the value at another one (Lagrange).
fn weights(step: usize, at: &[usize]) -> Vec<f64> {
    let weight = |one: &usize| {
        let others = at.iter().filter(|other| *other != one);
        others.map(|other| (step as f64 - *other as f64) / (*one as f64 - *other as f64)).product()
    };
    at.iter().map(weight).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_between_answered_ones_lie_on_a_curve_of_third_degree() {
        let curve = |step: f64| 0.01 * step.powi(3) - 0.4 * step.powi(2) + 3.0 * step - 7.0;
        let answered = [1, 2, 4, 8, 12, 15, 18];
        let answers = answered.map(|step| [curve(f64::from(step)), 5.0, 0.0, 0.0, 0.0]);
        let answered = answered.map(|step| step as usize);
        for step in 1..=18_u8 {
            let outputs = OnCurve::of(usize::from(step), &answered).outputs(&answers);
            assert!((outputs[0] - curve(f64::from(step))).abs() < 1e-9, "{step}: {outputs:?}");
            assert!((outputs[1] - 5.0).abs() < 1e-9);
        }
        assert_eq!(OnCurve::of(0, &answered).outputs(&answers), answers[0]);
    }

    #[test]
    fn few_answered_steps_make_a_simpler_curve() {
        let answers = [[1.0; OUTPUTS], [4.0; OUTPUTS]];
        assert_eq!(OnCurve::of(2, &[1, 4]).outputs(&answers)[0], 2.0);
    }
}
