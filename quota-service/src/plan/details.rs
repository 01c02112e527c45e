//! Figures of a pool beside its quotas.

use super::cluster::PoolQuota;
use super::explain::step_number;
use super::overrides::overrides_at;
use forecaster::bound::StepTotal;
use std::collections::{BTreeMap, BTreeSet};
use vocab::{HourStart, MilliGpus, UnixSeconds};
use wire::{Explanation, PoolForecastStep};

/// Figures of a pool, of the quotas that this service computed, or of those that it read from the database.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Details {
    /// Organizations whose demand was forecast.
    pub organizations: usize,
    /// HP demand of the last measured hour.
    pub latest_demand_gpus: Option<f64>,
    /// HP GPUs, running and waiting, where they are known.
    pub hp_demand_gpus: Option<f64>,
    /// The pool's demand by hours ahead, over the longest hours that are offered.
    pub forecast: Vec<PoolForecastStep>,
    /// Overrides whose time is now.
    pub overrides: usize,
}

impl Details {
    /// Of quotas that were computed here.
    #[must_use]
    pub fn computed(pool: &PoolQuota, now: UnixSeconds) -> Self {
        let totals = pool.bounds.last().map(|bound| bound.totals.as_slice()).unwrap_or_default();
        Self {
            organizations: pool.corrected.issued().len(),
            latest_demand_gpus: Some(pool.supply.latest_demand.as_gpus()),
            hp_demand_gpus: pool.hp_demand.map(MilliGpus::as_gpus),
            forecast: forecast(pool.issue, totals.iter().copied()),
            overrides: overrides_at(pool, now),
        }
    }

    /// Of the explanations of stored quotas, by hours. Overrides that reach into none of these hours are not among them.
    #[must_use]
    pub fn stored(by_hours: &BTreeMap<u8, Explanation>, now: UnixSeconds) -> Self {
        let Some((_, longest)) = by_hours.last_key_value() else { return Self::default() };
        let issue = command_line::hour(&longest.forecast.issue_time).ok();
        let totals = longest.bound.totals.iter();
        let totals = totals.map(|one| StepTotal {
            mean_gpus: one.mean_gpus,
            stddev_gpus: one.stddev_gpus,
            lowered_gpus: one.lowered_gpus,
        });
        let has_its_time = |from: &str, to: &str| {
            let times = command_line::instant(from).ok().zip(command_line::instant(to).ok());
            times.is_some_and(|(from, to)| from <= now && now < to)
        };
        let overrides = by_hours.values().flat_map(|one| &one.overrides);
        let overrides = overrides.filter(|one| has_its_time(&one.from, &one.to)).map(|one| one.id);
        Self {
            organizations: longest.forecast.organization_count,
            latest_demand_gpus: Some(longest.supply.latest_demand_gpus),
            hp_demand_gpus: longest.bound.live.as_ref().map(|live| live.hp_demand_gpus),
            forecast: issue.map(|issue| forecast(issue, totals)).unwrap_or_default(),
            overrides: overrides.collect::<BTreeSet<_>>().len(),
        }
    }
}

fn forecast(issue: HourStart, totals: impl Iterator<Item = StepTotal>) -> Vec<PoolForecastStep> {
    let step = |(index, total): (usize, StepTotal)| PoolForecastStep {
        step: step_number(index + 1),
        target_time: issue.plus_hours(index as i64).to_string(),
        mean_gpus: total.expected_gpus(),
        stddev_gpus: total.stddev_gpus,
        q90_gpus: total.quantile_gpus(0.9),
    };
    totals.enumerate().map(step).collect()
}
