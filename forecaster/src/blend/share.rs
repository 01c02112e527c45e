//! How much of a forecast is the network's, and how much the trees'.
//!
//! Mostly they are level, and their mean is better than either. Where one of them cannot learn a rhythm that the other knows, half of
//! the forecast is wrong every day: trees of few rows cannot cut off a step of demand at the same hour of each workday. So the part that
//! lost clearly more on validation has less of the forecast. One validation week is too little to tell smaller differences.

use crate::network::{Network, WIDE};
use crate::rows::{Features, OUTPUTS, SPREAD, Samples};
use crate::scores::pinball;
use crate::trees::Forests;
use vocab::QUANTILE_LEVELS;

/// Parts whose losses differ by less than this factor are level.
const LEVEL: f64 = 1.1;
/// A part that lost twice as much as the other, beyond that factor, has a sixteenth of its share.
const POWER: i32 = 4;
/// A loss below this, in GPUs, counts as this.
const LEAST_LOSS_GPUS: f64 = 1e-9;

/// The shares of parts that are level.
pub(super) const LEVEL_SHARES: [f64; OUTPUTS] = [0.5; OUTPUTS];

/// The network's share in each output, by the losses of both parts on validation: squares of the mean, pinball losses of quantiles.
/// The spread is shared evenly, since it is one around the mean of both.
pub(super) fn of_network(
    forests: &Forests,
    network: &Network,
    features: &Features,
    judged: &Samples,
) -> [f64; OUTPUTS] {
    let answers = network.say(&judged.rows, features);
    let mut losses = [[0.0; 2]; SPREAD];
    for (part, targets) in judged.targets.iter().enumerate() {
        for (output, losses) in losses.iter_mut().enumerate() {
            let trees = judged.predicted(&forests.steps()[part][output]);
            for (row, target) in targets.iter().enumerate().filter(|(_, target)| !target.is_nan()) {
                let predicted = [trees[row], f64::from(answers[part][row * WIDE + output])];
                for (loss, predicted) in losses.iter_mut().zip(predicted) {
                    *loss += judged.scales[row] * loss_of(output, *target, predicted, judged.scales[row]);
                }
            }
        }
    }
    losses[0] = losses[0].map(f64::sqrt);
    std::array::from_fn(|output| losses.get(output).map_or(LEVEL_SHARES[output], |losses| share(*losses)))
}

/// The loss of an output, in deviations of the series, that were so many GPUs.
fn loss_of(output: usize, target: f64, predicted: f64, scale_gpus: f64) -> f64 {
    match output.checked_sub(1) {
        None => (target - predicted).powi(2) * scale_gpus,
        Some(quantile) => pinball(target, predicted, QUANTILE_LEVELS[quantile]),
    }
}

/// The network's share, where trees and network lost so much.
fn share(losses_gpus: [f64; 2]) -> f64 {
    let [trees, network] = losses_gpus.map(|lost| lost.max(LEAST_LOSS_GPUS));
    let more = trees / network;
    // Nearer to one by the factor up to which they are level.
    let beyond = if more > 1.0 { (more / LEVEL).max(1.0) } else { (more * LEVEL).min(1.0) };
    let odds = beyond.powi(POWER);
    odds / (1.0 + odds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_that_are_nearly_level_share_evenly_and_one_that_lost_clearly_more_has_little() {
        assert_eq!([[5.0, 5.0], [5.4, 5.0], [5.0, 5.4], [0.0, 0.0]].map(share), [0.5; 4]);
        let twice = share([2.2, 1.0]);
        assert!((twice - 16.0 / 17.0).abs() < 1e-12, "{twice}");
        assert!((share([1.0, 2.2]) - (1.0 - twice)).abs() < 1e-12);
        assert!(share([0.0, 1.0]) < 1e-12 && share([1e30, 0.0]) <= 1.0);
    }
}
