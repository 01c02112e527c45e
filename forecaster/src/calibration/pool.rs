//! Evidence of the recent past about one pool's own peak.

use super::residual::{WINDOW_HOURS, rank, slot};
use crate::scores::{actual_peak_gpus, pinball};
use datasets::Panel;
use vocab::{DemandForecast, GuaranteeRate, HorizonHours, HourStart, PoolId};

/// Deviations of a pool are floored here, in GPUs.
const LEAST_DEVIATION_GPUS: f64 = 0.5;
/// Below so many residuals a pool has no order statistic of its own.
const LEAST_RESIDUALS: usize = 8;
/// Shares of the pool's total in the centre that are tried.
const SHARES: [f64; 3] = [0.0, 0.5, 1.0];
/// While there are too few residuals to choose by.
const SHARE_START: f64 = 0.5;
/// z of the total: the 0.9 quantile of a Gaussian.
const TOTAL_DEVIATIONS: f64 = 1.281_551_565_544_600_4;
/// With so many residuals they alone decide; before, the bound of `pooled` has the rest of the weight.
const ENOUGH_RESIDUALS: f64 = 24.0;

/// Residuals of a pool, in deviations of its guesses.
#[derive(Debug, Clone)]
pub struct PoolState {
    /// The pool.
    pub id: PoolId,
    /// `[issue time by slot][hours − 1]`: how far the peak was above the sum of the organizations' quantiles, and how far the
    /// quantile of their total was; NaN where there is none.
    pub residuals: Vec<[f32; 2]>,
    /// The share of the total in the centre; follows from `residuals`.
    share: f64,
    /// `[hours − 1]`, how far the peak was above the centre, sorted; follow from `residuals`.
    sorted: Vec<Vec<f32>>,
}

/// The pool's peak over 1, 2, … hours as its forecasts have it.
#[expect(clippy::struct_field_names, reason = "names carry units")]
struct Guess {
    /// Sum over organizations of the largest 0.9 quantile within the hours: right if all are largest together.
    sum_gpus: f64,
    /// The largest 0.9 quantile of their total, were they independent Gaussians.
    total_gpus: f64,
    /// The largest deviation of independent organizations.
    deviation_gpus: f64,
}

/// None of it has to be right: only its relation to the peak has to last.
fn guesses(raw: &[&DemandForecast], horizon: HorizonHours) -> Vec<Guess> {
    let mut largest = vec![0.0_f64; raw.len()];
    let (mut total_gpus, mut deviation_gpus) = (0.0_f64, LEAST_DEVIATION_GPUS);
    let step = |step: usize| {
        let (mut mean, mut variance) = (0.0, 0.0);
        for (largest, forecast) in largest.iter_mut().zip(raw) {
            let one = &forecast.steps()[step];
            *largest = largest.max(one.quantiles_gpus[1]);
            mean += one.mean_gpus;
            variance += one.stddev_gpus.powi(2);
        }
        deviation_gpus = deviation_gpus.max(variance.sqrt());
        total_gpus = total_gpus.max(mean + TOTAL_DEVIATIONS * variance.sqrt());
        Guess { sum_gpus: largest.iter().sum(), total_gpus, deviation_gpus }
    };
    (0..horizon.steps()).map(step).collect()
}

/// How far the peak was above a centre with this share of the total.
fn above([above_sum, total]: [f32; 2], share: f64) -> f32 {
    (f64::from(above_sum) - share * f64::from(total)) as f32
}

/// The loss of an order statistic of sorted residuals on them, in deviations.
fn least_loss(sorted: &[f32], level: f64) -> f64 {
    let Some(bound) = sorted.get(rank(sorted.len(), level)).copied().map(f64::from) else { return 0.0 };
    sorted.iter().map(|residual| pinball(f64::from(*residual), bound, level)).sum()
}

impl PoolState {
    /// A pool of which nothing is known.
    pub fn new(id: PoolId, horizon: HorizonHours) -> Self {
        let steps = horizon.steps();
        let sorted = vec![Vec::new(); steps];
        Self { id, residuals: vec![[f32::NAN; 2]; WINDOW_HOURS * steps], share: SHARE_START, sorted }
    }

    fn slot_mut(&mut self, issue: HourStart) -> &mut [[f32; 2]] {
        let width = self.residuals.len() / WINDOW_HOURS;
        let start = slot(issue) * width;
        &mut self.residuals[start..start + width]
    }

    /// Forgets the issue hours before the window of `issue`.
    pub fn forget(&mut self, issue: HourStart) {
        self.slot_mut(issue).fill([f32::NAN; 2]);
    }

    /// Learns from the forecasts of an issue hour whose hours are over.
    pub fn learn(&mut self, panel: &Panel, issue: HourStart, raw: &[&DemandForecast], horizon: HorizonHours) {
        let id = self.id.clone();
        for (number, (guess, place)) in guesses(raw, horizon).iter().zip(self.slot_mut(issue)).enumerate() {
            let hours = HorizonHours::new(number as u64 + 1).unwrap_or(horizon);
            if let Some(peak) = actual_peak_gpus(panel, &id, issue, hours) {
                *place = [peak, guess.total_gpus].map(|gpus| ((gpus - guess.sum_gpus) / guess.deviation_gpus) as f32);
            }
        }
    }

    /// Whether all issue hours are forgotten.
    pub fn is_forgotten(&self) -> bool {
        self.residuals.iter().all(|[residual, _]| residual.is_nan())
    }

    /// Works out what follows from the residuals: the centre is the one whose bounds would have lost least.
    pub fn settle(&mut self) {
        let measured = self.sorted_by(SHARE_START);
        self.share = SHARE_START;
        self.sorted = measured;
        if (self.sorted.last().map_or(0, Vec::len) as f64) < ENOUGH_RESIDUALS {
            return;
        }
        let level = GuaranteeRate::GFS.as_f64();
        let loss = |sorted: &[Vec<f32>]| sorted.iter().map(|sorted| least_loss(sorted, level)).sum::<f64>();
        let tried = SHARES.map(|share| (share, self.sorted_by(share)));
        let best = tried.into_iter().min_by(|(_, one), (_, other)| loss(one).total_cmp(&loss(other)));
        (self.share, self.sorted) = best.expect("there are shares");
    }

    /// `[hours − 1]`, how far the peak was above a centre with this share, sorted.
    fn sorted_by(&self, share: f64) -> Vec<Vec<f32>> {
        let steps = self.sorted.len();
        let of_hours = |number: usize| {
            let all = self.residuals.iter().skip(number).step_by(steps).map(|residual| above(*residual, share));
            let mut sorted: Vec<f32> = all.filter(|residual| !residual.is_nan()).collect();
            sorted.sort_unstable_by(f32::total_cmp);
            sorted
        };
        (0..steps).map(of_hours).collect()
    }

    /// Scores of a number of hours, rising.
    pub fn sorted(&self, hours: usize) -> &[f32] {
        &self.sorted[hours - 1]
    }

    /// The inputs of the bound, for forecasts of the pool's organizations at an issue time.
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
            let Guess { sum_gpus, total_gpus, deviation_gpus } = guess;
            let total_share = self.share;
            let centre_gpus = (1.0 - total_share) * sum_gpus + total_share * total_gpus;
            let shared = order_statistic(all, rate).unwrap_or(0.0);
            let own_statistic = order_statistic(own, rate).filter(|_| own.len() >= LEAST_RESIDUALS).unwrap_or(shared);
            let weight = ConformalHours::OWN_WEIGHT;
            let both = weight * own_statistic + (1.0 - weight) * shared;
            let kept = own.iter().filter(|residual| f64::from(**residual) <= both).count();
            calibrated_gpus = calibrated_gpus.max(centre_gpus + both * deviation_gpus);
            let coverage = kept as f64 / own.len().max(1) as f64;
            let own = own_statistic;
            let centre = Centre { sum_gpus, total_gpus, total_share, centre_gpus };
            ConformalHours { centre, deviation_gpus, own, shared, calibrated_gpus, residuals, coverage }
        });
        Conformal { hours: hours.collect() }
    }
}

/// Of sorted residuals, at the guarantee rate.
pub fn order_statistic(sorted: &[f32], rate: GuaranteeRate) -> Option<f64> {
    sorted.get(rank(sorted.len(), rate.as_f64())).map(|residual| f64::from(*residual))
}

/// The evidence of a pool's measured peaks about its next one, at one guarantee rate: what
/// [`Aggregation::Conformal`](crate::bound::Aggregation::Conformal) needs.
#[derive(Debug, Clone, PartialEq)]
pub struct Conformal {
    /// For the peak over 1, 2, … hours.
    pub hours: Vec<ConformalHours>,
}

/// Where the bound of a peak begins: between what is right if all organizations are largest together, and if they are
/// independent. The share is the one whose bounds would have lost least over the window.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Centre {
    /// Sum over organizations of their largest 0.9 quantile within the hours.
    pub sum_gpus: f64,
    /// The largest 0.9 quantile of their total within the hours, were they independent Gaussians.
    pub total_gpus: f64,
    /// Share of the total; the sum has the rest.
    pub total_share: f64,
    /// Centre of the bound, in GPUs.
    pub centre_gpus: f64,
}

/// The peak over so many hours.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ConformalHours {
    /// Parts of the centre.
    pub centre: Centre,
    /// Scale of the scores, in GPUs.
    pub deviation_gpus: f64,
    /// The order statistic ⌈(n+1)p⌉ of the pool's own residuals, in deviations; that of all pools while there are too few.
    pub own: f64,
    /// That of the residuals of all pools of the cluster.
    pub shared: f64,
    /// Centre and the weighted mean of the two statistics in deviations, or what that is over fewer hours, if it is more.
    pub calibrated_gpus: f64,
    /// Own residuals in the window, over the longest hours.
    pub residuals: usize,
    /// The share of them that the weighted mean of the two statistics covers.
    pub coverage: f64,
}

impl ConformalHours {
    /// Weight of a pool's own order statistic beside that of all pools of the cluster. Chosen on validation: with a half,
    /// losses of six pools were 1 % larger; with none, one of the six broke its promise in three of twenty hours.
    pub const OWN_WEIGHT: f64 = 0.35;

    /// The bound, where `pooled_gpus` is the one without residuals. It rises with the hours if that does.
    #[must_use]
    pub fn bound_gpus(&self, pooled_gpus: f64) -> f64 {
        let weight = (self.residuals as f64 / ENOUGH_RESIDUALS).min(1.0);
        weight * self.calibrated_gpus + (1.0 - weight) * pooled_gpus
    }
}
