//! Bounds of the forecasts at every issue time, as the cycle of a service makes them.

use cycle::{ForecastBound, Forecasted, forecast_bounds};
use datasets::Panel;
use forecaster::bound::{BoundError, PoolCalibration};
use forecaster::calibration::Issued;
use placement::staleness::USAGE_MAX_AGE_S;
use std::collections::{BTreeMap, BTreeSet};
use vocab::{GuaranteeRate, HorizonHours, HourStart, PoolId, SECONDS_PER_HOUR};

/// Usage that is older serves nobody, so a promise covers no more steps beyond its own than these ([`cycle::more_steps`]).
const MOST_MORE_STEPS: u8 = (USAGE_MAX_AGE_S / SECONDS_PER_HOUR) as u8;
const _: () = assert!(USAGE_MAX_AGE_S % SECONDS_PER_HOUR == 0, "a promise within the hour would cover one step more");

/// Of one pool, by issue time and by the steps that a promise covers beyond its own hours.
pub type PoolBounds = BTreeMap<(HourStart, u8), Vec<ForecastBound>>;

/// The issued forecasts, and their model.
pub struct AtIssue<'a> {
    pub panel: &'a Panel,
    pub issue: HourStart,
    pub issued: &'a Issued,
    /// The choices of validation for each pool.
    pub calibrations: &'a [PoolCalibration],
    pub horizon: HorizonHours,
}

/// Of the pools of a cluster.
#[derive(Debug, Clone)]
pub struct ForecastBounds {
    rate: GuaranteeRate,
    offered: Vec<HorizonHours>,
    by_pool: BTreeMap<PoolId, PoolBounds>,
}

impl ForecastBounds {
    #[must_use]
    pub const fn new(rate: GuaranteeRate, offered: Vec<HorizonHours>) -> Self {
        Self { rate, offered, by_pool: BTreeMap::new() }
    }

    /// The pools with what the forecasts bound of them.
    #[must_use]
    pub const fn by_pool(&self) -> &BTreeMap<PoolId, PoolBounds> {
        &self.by_pool
    }

    /// Adds an issue time. Forecasts come in the order of the panel.
    ///
    /// # Errors
    /// A bound exceeds what an amount holds.
    pub fn add(&mut self, at: &AtIssue<'_>) -> Result<(), BoundError> {
        let pools: BTreeSet<&PoolId> = at.panel.series().iter().map(|series| &series.id().pool).collect();
        for pool in pools {
            let of_pool = self.by_pool.entry(pool.clone()).or_default();
            for more_steps in 0..=MOST_MORE_STEPS {
                let of = Forecasted {
                    members: &at.issued.forecasts[at.panel.places_of(pool)],
                    conformal: at.issued.conformal.get(pool),
                    calibration: at.calibrations.iter().find(|one| one.pool == *pool),
                    aggregation: None,
                    horizon: at.horizon,
                    more_steps,
                };
                let all = forecast_bounds(&of, &self.offered, self.rate)?;
                let bounds = self.offered.iter().zip(&all).map(|(hours, one)| ForecastBound::of(*hours, one));
                of_pool.insert((at.issue, more_steps), bounds.collect());
            }
        }
        Ok(())
    }
}
