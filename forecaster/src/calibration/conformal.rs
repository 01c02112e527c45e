//! The evidence of a pool's measured peaks about its next one.

use super::experts::{EXPERTS, Stated};

/// With so many residuals they alone decide; before, the bound of `pooled` has the rest of the weight.
pub const ENOUGH_RESIDUALS: f64 = 24.0;

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
    /// Own residuals in the window, over the longest hours that are learned with these.
    pub residuals: usize,
    /// The share of them that the weighted mean of the two statistics covers.
    pub coverage: f64,
    /// The bounds of the experts with their weights; the first is the conformal one, before [`Self::bound_gpus`]. All weights are zero
    /// where the experts were not asked for so many hours.
    pub experts: [Stated; EXPERTS],
    /// Demand of the pool that returns within the hours where a day off ends: the bound is no less. `None` where none does.
    pub returns_gpus: Option<f64>,
}

impl ConformalHours {
    /// Weight of a pool's own order statistic beside that of all pools of the cluster. Chosen on validation: with a half,
    /// losses of six pools were 1 % larger; with none, one of the six broke its promise in three of twenty hours.
    pub const OWN_WEIGHT: f64 = 0.35;

    /// The bound, where `pooled_gpus` is the one without residuals. It rises with the hours if that does.
    #[must_use]
    pub fn bound_gpus(&self, pooled_gpus: f64) -> f64 {
        self.leaning(self.calibrated_gpus, pooled_gpus)
    }

    /// Whether there are so many residuals that nothing leans on the bound without them.
    #[must_use]
    pub fn stands_alone(&self) -> bool {
        self.residuals as f64 >= ENOUGH_RESIDUALS
    }

    /// A calibrated bound that leans on the one without residuals while there are few of them.
    fn leaning(&self, calibrated_gpus: f64, pooled_gpus: f64) -> f64 {
        let weight = (self.residuals as f64 / ENOUGH_RESIDUALS).min(1.0);
        weight * calibrated_gpus + (1.0 - weight) * pooled_gpus
    }

    /// The experts as they count, where `pooled_gpus` is the bound without residuals; `None` where they were not asked for so many
    /// hours.
    #[must_use]
    pub fn stated(&self, pooled_gpus: f64) -> Option<[Stated; EXPERTS]> {
        let mut experts = self.experts;
        experts[0].bound_gpus = experts[0].bound_gpus.map(|stated| self.leaning(stated, pooled_gpus));
        experts.iter().any(|one| one.weight > 0.0).then_some(experts)
    }
}

/// The mixture of the experts' bounds, in GPUs.
#[must_use]
pub fn mixture_gpus(experts: &[Stated; EXPERTS]) -> f64 {
    experts.iter().filter_map(|one| Some(one.weight * one.bound_gpus?)).sum()
}
