//! What the recent past says of one pool's own peak.

use super::residual::{WINDOW_HOURS, rank, slot};
use crate::scores::actual_peak_gpus;
use datasets::Panel;
use vocab::{DemandForecast, GuaranteeRate, HorizonHours, HourStart, PoolId};

/// Deviations of a pool are floored here, in GPUs.
const LEAST_DEVIATION_GPUS: f64 = 0.5;
/// Below so many residuals a pool has no order statistic of its own.
const LEAST_RESIDUALS: usize = 8;
/// Weight of a pool's own order statistic beside that of all pools of the cluster.
const OWN_WEIGHT: f64 = 0.5;
/// With so many residuals they alone decide; before, the bound of `pooled` has the rest of the weight.
const ENOUGH_RESIDUALS: f64 = 24.0;

/// Residuals of a pool: (peak − centre) / deviation.
#[derive(Debug, Clone)]
pub struct PoolState {
    pub id: PoolId,
    /// `[issue time by slot][hours − 1]`; NaN where there is none.
    pub residuals: Vec<f32>,
    /// `[hours − 1]`, sorted; follow from `residuals`.
    sorted: Vec<Vec<f32>>,
}

/// The pool's peak over 1, 2, … hours as its forecasts have it.
struct Guess {
    centre_gpus: f64,
    deviation_gpus: f64,
}

/// The centre is the sum over organizations of the largest 0.9 quantile within the hours, the deviation the largest among
/// the hours of that of independent organizations. Neither has to be right: only their relation to the peak has to last.
fn guesses(raw: &[&DemandForecast], horizon: HorizonHours) -> Vec<Guess> {
    let mut largest = vec![0.0_f64; raw.len()];
    let mut deviation = LEAST_DEVIATION_GPUS;
    let step = |step: usize| {
        let mut variance = 0.0;
        for (largest, forecast) in largest.iter_mut().zip(raw) {
            let one = &forecast.steps()[step];
            *largest = largest.max(one.quantiles_gpus[1]);
            variance += one.stddev_gpus.powi(2);
        }
        deviation = deviation.max(variance.sqrt());
        Guess { centre_gpus: largest.iter().sum(), deviation_gpus: deviation }
    };
    (0..horizon.steps()).map(step).collect()
}

impl PoolState {
    pub fn new(id: PoolId, horizon: HorizonHours) -> Self {
        let steps = horizon.steps();
        Self { id, residuals: vec![f32::NAN; WINDOW_HOURS * steps], sorted: vec![Vec::new(); steps] }
    }

    fn slot_mut(&mut self, issue: HourStart) -> &mut [f32] {
        let width = self.residuals.len() / WINDOW_HOURS;
        let start = slot(issue) * width;
        &mut self.residuals[start..start + width]
    }

    pub fn forget(&mut self, issue: HourStart) {
        self.slot_mut(issue).fill(f32::NAN);
    }

    pub fn learn(&mut self, panel: &Panel, issue: HourStart, raw: &[&DemandForecast], horizon: HorizonHours) {
        let id = self.id.clone();
        for (number, (guess, place)) in guesses(raw, horizon).iter().zip(self.slot_mut(issue)).enumerate() {
            let hours = HorizonHours::new(number as u64 + 1).unwrap_or(horizon);
            if let Some(peak) = actual_peak_gpus(panel, &id, issue, hours) {
                *place = ((peak - guess.centre_gpus) / guess.deviation_gpus) as f32;
            }
        }
    }

    pub fn is_forgotten(&self) -> bool {
        self.residuals.iter().all(|residual| residual.is_nan())
    }

    /// Works out what follows from the residuals.
    pub fn settle(&mut self) {
        let steps = self.sorted.len();
        for (number, sorted) in self.sorted.iter_mut().enumerate() {
            sorted.clear();
            sorted.extend(self.residuals.iter().skip(number).step_by(steps).filter(|residual| !residual.is_nan()));
            sorted.sort_unstable_by(f32::total_cmp);
        }
    }

    pub fn sorted(&self, hours: usize) -> &[f32] {
        &self.sorted[hours - 1]
    }

    /// What the bound needs, for forecasts of the pool's organizations at an issue time.
    pub fn conformal(
        &self,
        raw: &[&DemandForecast],
        all: &[Vec<f32>],
        rate: GuaranteeRate,
        horizon: HorizonHours,
    ) -> Conformal {
        let residuals = self.sorted.last().map_or(0, Vec::len);
        let mut calibrated_gpus = f64::NEG_INFINITY;
        let hours = guesses(raw, horizon).into_iter().zip(&self.sorted).zip(all).map(|((guess, own), all)| {
            let Guess { centre_gpus, deviation_gpus } = guess;
            let shared = order_statistic(all, rate).unwrap_or(0.0);
            let own_statistic = order_statistic(own, rate).filter(|_| own.len() >= LEAST_RESIDUALS).unwrap_or(shared);
            let both = OWN_WEIGHT * own_statistic + (1.0 - OWN_WEIGHT) * shared;
            let kept = own.iter().filter(|residual| f64::from(**residual) <= both).count();
            calibrated_gpus = calibrated_gpus.max(centre_gpus + both * deviation_gpus);
            let coverage = kept as f64 / own.len().max(1) as f64;
            let own = own_statistic;
            ConformalHours { centre_gpus, deviation_gpus, own, shared, calibrated_gpus, residuals, coverage }
        });
        Conformal { hours: hours.collect() }
    }
}

/// Of sorted residuals, at the guarantee rate.
pub fn order_statistic(sorted: &[f32], rate: GuaranteeRate) -> Option<f64> {
    sorted.get(rank(sorted.len(), rate.as_f64())).map(|residual| f64::from(*residual))
}

/// What a pool's measured peaks say of its next one, at one guarantee rate: what
/// [`Aggregation::Conformal`](crate::bound::Aggregation::Conformal) needs.
#[derive(Debug, Clone, PartialEq)]
pub struct Conformal {
    /// For the peak over 1, 2, … hours.
    pub hours: Vec<ConformalHours>,
}

/// The peak over so many hours.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ConformalHours {
    /// Sum over organizations of their largest 0.9 quantile within the hours.
    pub centre_gpus: f64,
    pub deviation_gpus: f64,
    /// The order statistic ⌈(n+1)p⌉ of the pool's own residuals, in deviations; that of all pools while there are too few.
    pub own: f64,
    /// That of the residuals of all pools of the cluster.
    pub shared: f64,
    /// Centre and the mean of the two statistics, or what that is over fewer hours, if it is more.
    pub calibrated_gpus: f64,
    /// Own residuals in the window, over the longest hours.
    pub residuals: usize,
    /// The share of them that the mean of the two statistics covers.
    pub coverage: f64,
}

impl ConformalHours {
    /// The bound, where `pooled_gpus` is the one without residuals. It rises with the hours if that does.
    #[must_use]
    pub fn bound_gpus(&self, pooled_gpus: f64) -> f64 {
        let weight = (self.residuals as f64 / ENOUGH_RESIDUALS).min(1.0);
        weight * self.calibrated_gpus + (1.0 - weight) * pooled_gpus
    }
}
