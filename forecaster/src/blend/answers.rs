//! Answers for steps that are grouped: some of them by trees and network, those in between on a curve through them.

use super::Blend;
use crate::trees::ByFeature;

impl Blend {
    /// The joint prediction of the parts for rows of windows, `[step × OUTPUTS][row]`.
    pub(super) fn say_by_groups(&self, rows: &[f32]) -> Vec<Vec<f64>> {
        let (width, groups) = (self.features.count(), self.features.step_groups());
        let network = self.network.as_ref().map(|network| network.say_of_targets(rows, &self.features));
        let mut of_network = network.into_iter().flatten();
        let by_feature = self.forests.as_ref().map(|_| ByFeature::of(rows, width));
        let (mut steps, mut answers) = (Vec::new(), Vec::new());
        for (group, of_group) in groups.answered().enumerate() {
            let targets = steps.len()..steps.len() + of_group.len();
            let trees = self.forests.as_ref().zip(by_feature.as_ref());
            let trees = trees.map(|(forests, rows)| forests.say_of_group(group, rows, targets));
            let mut of_trees = trees.into_iter().flatten();
            for step in of_group {
                steps.push(step);
                answers.push(self.mixed(of_trees.next(), of_network.next()));
            }
        }
        (0..self.horizon.steps()).flat_map(|step| on_the_curve(step, &steps, &answers)).collect()
    }
}

/// Answered steps that a curve passes: two before, two after.
const AROUND: usize = 4;

/// The outputs of a step: its own, or on the curve of third degree through those of the answered steps around it. Before the first
/// answered step they are those of that step.
fn on_the_curve(step: usize, answered: &[usize], answers: &[Vec<Vec<f64>>]) -> Vec<Vec<f64>> {
    let after = answered.partition_point(|one| *one < step);
    if after == 0 || answered.get(after) == Some(&step) {
        return answers[after].clone();
    }
    let first = after.saturating_sub(AROUND / 2).min(answered.len().saturating_sub(AROUND));
    let around = first..(first + AROUND).min(answered.len());
    let weights = weights(step, &answered[around.clone()]);
    let output = |output: usize| {
        let mut sums = vec![0.0; answers[first][output].len()];
        for (answers, weight) in answers[around.clone()].iter().zip(&weights) {
            sums.iter_mut().zip(&answers[output]).for_each(|(sum, value)| *sum += weight * value);
        }
        sums
    };
    (0..answers[first].len()).map(output).collect()
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
        let answers = answered.map(|step| vec![vec![curve(f64::from(step)), 5.0]]);
        let answered = answered.map(|step| step as usize);
        for step in 1..=18_u8 {
            let outputs = on_the_curve(usize::from(step), &answered, &answers);
            assert!((outputs[0][0] - curve(f64::from(step))).abs() < 1e-9, "{step}: {outputs:?}");
            assert!((outputs[0][1] - 5.0).abs() < 1e-9);
        }
        assert_eq!(on_the_curve(0, &answered, &answers), answers[0]);
    }

    #[test]
    fn few_answered_steps_make_a_simpler_curve() {
        let answers = [vec![vec![1.0]], vec![vec![4.0]]];
        assert_eq!(on_the_curve(2, &[1, 4], &answers)[0][0], 2.0);
    }
}
