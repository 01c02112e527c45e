//! Where demand fell within the last hour, its level at the end says more of the next hours than its peak.
//!
//! Models see peaks, and so do forecasts. How much of a fall the forecast of each step has left out is learned for all organizations
//! together, by least squares of what demand came to below the mean and the median on how far it had fallen, both in deviations. The
//! factors fade with the step by themselves. Upper quantiles stay: they are of peaks that may come again, and lose nothing by it
//! (DECISIONS.md, "Means and medians follow the level at the end of an hour").

use datasets::Panel;
use vocab::{HorizonHours, HourStart, StepForecast};

/// Numbers of a state for each step, as they are stored.
pub const STORED_NUMBERS: usize = 3;
/// Falls are in deviations of the forecast, floored here, in GPUs.
const LEAST_DEVIATION_GPUS: f64 = 0.5;
/// A longer fall, in deviations, counts as one of this length with what came of it in proportion: without it the falls of a few
/// organizations that hold nearly still decide for all.
const MOST_DEVIATIONS: f64 = 3.0;
/// Squared deviations of falls without any effect that factors start from.
const PRIOR: f64 = 20.0;
/// 0.5^(1/168): outcomes lose half of their weight in a week.
const DECAY: f64 = 0.995_882_624;

/// Knowledge of one step: sums of squares of falls, and of products of falls with how far demand came below mean and median, in
/// squared deviations; they fade.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct Sums {
    squares: f64,
    means: f64,
    medians: f64,
}

/// The parts of a fall by which a mean and a median go down.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Parts {
    pub mean: f64,
    pub median: f64,
}

impl Parts {
    /// Before any outcome.
    pub const NONE: Self = Self { mean: 0.0, median: 0.0 };
}

/// How far means and medians follow falls, for each step.
#[derive(Debug, Clone, PartialEq)]
pub struct Fallen {
    steps: Vec<Sums>,
}

/// A fall, and by how much the demand of a step came to lie below the mean and the median that are issued without it, in GPUs.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::struct_field_names, reason = "they carry their unit")]
pub struct Below {
    pub fallen_gpus: f64,
    pub mean_gpus: f64,
    pub median_gpus: f64,
}

impl Fallen {
    /// One that has seen nothing, and so changes nothing.
    pub fn new(horizon: HorizonHours) -> Self {
        Self { steps: vec![Sums::default(); horizon.steps()] }
    }

    /// Whether no fall was seen yet.
    pub fn is_untaught(&self) -> bool {
        self.steps.iter().all(|sums| *sums == Sums::default())
    }

    /// Time goes on by an issue time.
    pub fn fade(&mut self) {
        for Sums { squares, means, medians } in &mut self.steps {
            for sum in [squares, means, medians] {
                *sum *= DECAY;
            }
        }
    }

    /// Learns what became of a step.
    pub fn learn(&mut self, step: usize, forecast: &StepForecast, below: &Below) {
        let deviation = forecast.stddev_gpus.max(LEAST_DEVIATION_GPUS);
        let fallen = below.fallen_gpus / deviation;
        let shortened = (MOST_DEVIATIONS / fallen).min(1.0);
        let (fallen, per_gpu) = (fallen * shortened, shortened / deviation);
        if let Some(sums) = self.steps.get_mut(step) {
            sums.squares += fallen * fallen;
            sums.means += fallen * below.mean_gpus * per_gpu;
            sums.medians += fallen * below.median_gpus * per_gpu;
        }
    }

    /// The parts of a fall by which the mean and the median of a step go down.
    pub fn parts(&self, step: usize) -> Parts {
        self.steps.get(step).map_or(Parts::NONE, |sums| {
            let part = |products: f64| (products / (sums.squares + PRIOR)).clamp(0.0, 1.0);
            Parts { mean: part(sums.means), median: part(sums.medians) }
        })
    }

    /// Each step's sums.
    pub fn numbers(&self) -> impl Iterator<Item = f64> {
        self.steps.iter().flat_map(|sums| [sums.squares, sums.means, sums.medians])
    }

    /// From each step's sums; `None` where they are none.
    pub fn from_numbers(steps: Vec<[f64; STORED_NUMBERS]>) -> Option<Self> {
        let is_sound = |[squares, means, medians]: &[f64; STORED_NUMBERS]| {
            squares.is_finite() && means.is_finite() && medians.is_finite() && *squares >= 0.0
        };
        let sums = |[squares, means, medians]: [f64; STORED_NUMBERS]| Sums { squares, means, medians };
        steps.iter().all(is_sound).then(|| Self { steps: steps.into_iter().map(sums).collect() })
    }
}

/// How far demand of a series of the panel fell within the hour before an issue time, in GPUs; zero where that is not known.
pub fn fallen_gpus(panel: &Panel, place: usize, issue: HourStart) -> f64 {
    let before = panel.index_of(issue).and_then(|hour| hour.checked_sub(1));
    before.map_or(0.0, |hour| panel.series()[place].fallen_gpus(hour))
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEP: StepForecast = StepForecast { mean_gpus: 20.0, stddev_gpus: 2.0, quantiles_gpus: [20.0, 23.0, 24.0] };

    fn below(fallen_gpus: f64, mean_gpus: f64, median_gpus: f64) -> Below {
        Below { fallen_gpus, mean_gpus, median_gpus }
    }

    #[test]
    fn parts_are_those_by_which_demand_came_out_lower_and_start_at_none() {
        let mut fallen = Fallen::new(HorizonHours::ONE);
        assert_eq!((fallen.parts(0), fallen.is_untaught()), (Parts::NONE, true));
        for gpus in [1.0, 2.0, 4.0].repeat(500) {
            fallen.learn(0, &STEP, &below(gpus, 0.5 * gpus, 0.75 * gpus));
        }
        let Parts { mean, median } = fallen.parts(0);
        assert!((mean - 0.5).abs() < 0.02 && (median - 0.75).abs() < 0.02, "{mean} {median}");
        assert_eq!(fallen.parts(1), Parts::NONE, "there is one step");
    }

    #[test]
    fn a_part_is_between_none_and_all_of_a_fall() {
        let of = |below_gpus: f64| {
            let mut fallen = Fallen::new(HorizonHours::ONE);
            (0..1_000).for_each(|_| fallen.learn(0, &STEP, &below(2.0, below_gpus, below_gpus)));
            fallen.parts(0)
        };
        assert_eq!(of(-3.0), Parts::NONE);
        assert_eq!(of(9.0), Parts { mean: 1.0, median: 1.0 });
    }

    #[test]
    fn one_long_fall_weighs_no_more_than_one_of_three_deviations() {
        let mut fallen = Fallen::new(HorizonHours::ONE);
        (0..100).for_each(|_| fallen.learn(0, &STEP, &below(2.0, 1.0, 1.0)));
        let before = fallen.parts(0).mean;
        fallen.learn(0, &STEP, &below(500.0, 0.0, 0.0));
        let after = fallen.parts(0).mean;
        assert!(after < before && after > 0.9 * before, "{before} {after}");
    }

    #[test]
    fn outcomes_lose_half_of_their_weight_in_a_week() {
        let mut fallen = Fallen::new(HorizonHours::ONE);
        fallen.learn(0, &STEP, &below(2.0, 1.0, 1.0));
        let before: Vec<f64> = fallen.numbers().collect();
        (0..168).for_each(|_| fallen.fade());
        let halves = fallen.numbers().zip(before).all(|(now, then)| (now / then - 0.5).abs() < 1e-6);
        assert!(halves);
    }
}
