//! B_H: the upper bound, at the guarantee rate p, of a pool's HP demand over the next H hours.

mod aggregate;
mod calibration;
mod choose;
mod max_of_steps;
mod shrinkage;
mod step_quantile;

pub use aggregate::{BoundError, OrganizationShare, PoolBound, StepTotal, bounds};
pub use calibration::{Correlations, PoolCalibration};
pub(crate) use calibration::{PoolResiduals, members};
pub use choose::{AggregationScore, choose};

use std::fmt;

/// A name that is no aggregation.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{name:?} is no aggregation; there are {}", Aggregation::ALL.map(Aggregation::as_str).join(", "))]
pub struct UnknownAggregation {
    /// The name that was refused.
    pub name: String,
}

/// How the forecasts of organizations become one bound (DESIGN §4.6).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Aggregation {
    /// The sum over organizations of the largest quantile at p among the steps: GFS Eq. 9. It holds as if all
    /// organizations peaked at once, and so reserves far more than they need.
    SumOfBounds,
    /// The quantile at p of a sum of independent Gaussians, the largest among the steps: what the released code does.
    Independent,
    /// The quantile of a sum of Gaussians with the shrunk correlation of validation residuals, corrected for taking the
    /// maximum over H steps.
    Pooled,
    /// Calibrated on the pool's own measured peaks: an order statistic of their residuals over a week. As `pooled` where
    /// there are none yet.
    Conformal,
    /// Experts on the peak, `conformal` among them, weighed online by how their bounds fared (PROMISE §5).
    Mixture,
}

impl Aggregation {
    /// All aggregations.
    pub const ALL: [Self; 5] = [Self::SumOfBounds, Self::Independent, Self::Pooled, Self::Conformal, Self::Mixture];
    /// Those that learn from measured peaks.
    pub const LEARNING: [Self; 2] = [Self::Mixture, Self::Conformal];

    /// Name in settings and answers.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::SumOfBounds => "sum-of-bounds",
            Self::Independent => "independent",
            Self::Pooled => "pooled",
            Self::Conformal => "conformal",
            Self::Mixture => "mixture",
        }
    }

    /// # Errors
    /// The name is no aggregation.
    pub fn parse(name: &str) -> Result<Self, UnknownAggregation> {
        Self::ALL
            .into_iter()
            .find(|aggregation| aggregation.as_str() == name)
            .ok_or_else(|| UnknownAggregation { name: name.to_owned() })
    }
}

impl fmt::Display for Aggregation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A bound as an amount. Above any capacity, the largest amount leaves as little to spot as the bound does.
fn amount(gpus: f64) -> Result<vocab::MilliGpus, vocab::AmountError> {
    match vocab::MilliGpus::rounded_up(gpus.max(0.0)) {
        Err(vocab::AmountError::TooLarge { .. }) if gpus.is_finite() => Ok(vocab::MilliGpus::MAX),
        amount => amount,
    }
}

#[cfg(test)]
mod tests {
    use super::{Aggregation, amount, bounds};
    use vocab::{
        DemandForecast, ForecastOrigin, GuaranteeRate, HorizonHours, HourStart, MilliGpus, Organization, PoolId,
        SeriesId, StepForecast,
    };

    #[test]
    fn a_bound_above_all_amounts_is_the_largest_one_and_what_is_no_number_is_none() {
        assert_eq!(amount(1.149e9), Ok(MilliGpus::MAX));
        assert_eq!(amount(-3.0), Ok(MilliGpus::ZERO));
        assert!(amount(f64::INFINITY).is_err());
    }

    #[test]
    fn organizations_whose_bounds_exceed_all_amounts_together_have_the_largest_one() {
        let step = StepForecast { mean_gpus: 9e8, stddev_gpus: 0.0, quantiles_gpus: [9e8; 3] };
        let forecast = |name: &str| {
            let organization = Organization::parse(name).unwrap();
            let series = SeriesId { pool: PoolId::parse("earth:V100").unwrap(), organization };
            DemandForecast::new(series, HourStart::from_unix_s(0).unwrap(), ForecastOrigin::Model, vec![step]).unwrap()
        };
        let (all, offered) = (["a", "b"].map(forecast), [HorizonHours::new(1).unwrap()]);
        let refs: Vec<_> = all.iter().collect();
        let bounds = bounds(&refs, Aggregation::SumOfBounds, None, None, GuaranteeRate::GFS, &offered).unwrap();
        assert_eq!(bounds[0].bound, MilliGpus::MAX);
    }
}
