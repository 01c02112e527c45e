//! Rises above the latest demand, learned from a pool's own history without a forecast.

use super::linear::{Inputs, Linear};
use super::long::SHORT_HOURS;
use super::pool::PoolState;
use super::recent::{SEEN_HOURS, hourly, inputs};
use super::residual::WINDOW_HOURS;
use super::tiers::Tier;
use crate::scores::actual_peak_gpus;
use datasets::Panel;
use vocab::{HorizonHours, HourStart};

/// Hours of history that a pool learns from when it is new. A training on parts of a history has four weeks in memory; three days less,
/// so that what is known of gaps, and its bytes, are those of a training on all of it.
const HISTORY_HOURS: usize = 25 * 24;

/// A pool before and after one issue time.
struct Outcome {
    inputs: Vec<Inputs>,
    /// `[hours − 1]`, in GPUs; NaN where the hours, or the one before them, were not measured.
    rises_gpus: Vec<f64>,
}

impl PoolState {
    /// Learns the rises of a tier after the issue hours that follow `newest`, up to `issue`, whose hours are over; a tier that is new
    /// learns from the weeks before.
    pub fn learn_history(&mut self, panel: &Panel, newest: Option<HourStart>, issue: HourStart, tier: &Tier) {
        let Some(at) = panel.index_of(issue).filter(|at| *at <= panel.hours()) else { return };
        let Ok(hours) = HorizonHours::new(tier.end as u64) else { return };
        let from = at.saturating_sub(HISTORY_HOURS);
        let is_new = self.linear[tier.clone()].iter().all(Linear::is_untaught);
        let next = newest.filter(|_| !is_new).and_then(|newest| panel.index_of(newest)).map_or(0, |newest| newest + 1);
        let next = next.max(from + 1);
        let (steps, first) = (tier.end, next.saturating_sub(tier.end).max(from + 1));
        let id = self.id.clone();
        // No input reads further back.
        let seen_from = first.saturating_sub(SEEN_HOURS).max(from);
        let seen = hourly(panel, &id, seen_from..at);
        let hour = |hour: usize| actual_peak_gpus(panel, &id, panel.hour_at(hour), HorizonHours::ONE);
        if self.steps() > SHORT_HOURS {
            let measured_gpus = |one| actual_peak_gpus(panel, &id, one, HorizonHours::ONE);
            self.memory.learn(panel.hour_at(from), issue.plus_hours(steps as i64), measured_gpus);
        }
        let measured: Vec<f64> =
            (first - 1..(at + steps).min(panel.hours())).map(|one| hour(one).unwrap_or(f64::NAN)).collect();
        let outcome = |issue: usize| Outcome {
            inputs: inputs(&seen[..issue - seen_from], hours),
            rises_gpus: rises_gpus(&measured[issue - first..], steps),
        };
        let outcomes: Vec<Outcome> = (first..=at).map(outcome).collect();
        for issue in next..=at {
            if issue + WINDOW_HOURS > at {
                self.keep(panel.hour_at(issue), &outcomes[issue - first], tier);
            }
            // One that shares no hour with what is judged by it.
            if let Some(over) = (issue - first).checked_sub(steps) {
                self.learn_rise(&outcomes[over], tier);
            }
        }
    }

    fn keep(&mut self, issue: HourStart, outcome: &Outcome, tier: &Tier) {
        let linear = self.linear.clone();
        for (number, place) in self.slot_mut(issue).iter_mut().enumerate().take(tier.end).skip(tier.start) {
            let rise = outcome.rises_gpus[number];
            let expected = outcome.inputs.get(number).and_then(|inputs| linear[number].rise_gpus(inputs));
            place.rise_gpus = rise as f32;
            place.above_linear_gpus = expected.map_or(f32::NAN, |expected| (rise - expected) as f32);
        }
    }

    fn learn_rise(&mut self, outcome: &Outcome, tier: &Tier) {
        let of_hours = self.linear.iter_mut().zip(&outcome.inputs).zip(&outcome.rises_gpus);
        let of_tier = of_hours.take(tier.end).skip(tier.start);
        of_tier.filter(|(_, rise)| !rise.is_nan()).for_each(|((linear, inputs), rise)| linear.learn(inputs, *rise));
    }
}

/// How far the peak over 1, 2, … hours was above the hour before them, which is the first one.
fn rises_gpus(measured: &[f64], steps: usize) -> Vec<f64> {
    let mut peak = f64::NEG_INFINITY;
    let one = |number: usize| {
        let gpus = measured.get(number + 1).copied().unwrap_or(f64::NAN);
        // An hour that was not measured leaves no peak of all of them.
        peak = if gpus.is_nan() || peak.is_nan() { f64::NAN } else { peak.max(gpus) };
        peak - measured[0]
    };
    (0..steps).map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rise_is_the_peak_of_the_hours_and_none_from_a_gap_on() {
        let rises = rises_gpus(&[10.0, 8.0, 13.0, f64::NAN, 20.0], 5);
        assert_eq!(rises[..2], [-2.0, 3.0]);
        assert!(rises[2..].iter().all(|rise| rise.is_nan()), "{rises:?}");
        assert!(rises_gpus(&[f64::NAN, 8.0], 1)[0].is_nan());
    }
}
