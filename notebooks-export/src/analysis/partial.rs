//! Bounds of a part of the issue times of the forecasts.

use super::Material;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use vocab::{HorizonHours, HourStart, PoolId};

/// The bounds of a pool and promise that are of fewer issue times than its forecasts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PartialBounds {
    pub pool: String,
    /// Hours of the promise.
    pub hours: u8,
    /// Issue times with a bound.
    pub issue_times: usize,
    /// Issue times of the pool's forecasts.
    pub forecast_issue_times: usize,
    /// The first issue time with a bound.
    #[serde(serialize_with = "text")]
    pub from: HourStart,
    /// The last issue time with a bound.
    #[serde(serialize_with = "text")]
    pub to: HourStart,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
fn text<S: serde::Serializer>(hour: &HourStart, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(hour)
}

impl PartialBounds {
    /// A sentence; `shown` writes an issue time.
    pub fn sentence(&self, shown: impl Fn(HourStart) -> String) -> String {
        let Self { pool, hours, issue_times, forecast_issue_times, from, to } = self;
        format!(
            "Pool {pool}, promise of {hours} h: the bounds are of {issue_times} of the {forecast_issue_times} issue times of the \
             forecasts, from {} to {}, and their figures say nothing of the others.",
            shown(*from),
            shown(*to)
        )
    }
}

/// All of them, by pool, then hours.
pub fn partial_bounds(material: &Material<'_>) -> Vec<PartialBounds> {
    let mut forecast: BTreeMap<&PoolId, BTreeSet<HourStart>> = BTreeMap::new();
    for row in &material.forecasts.rows {
        forecast.entry(&material.forecasts.series[row.series].pool).or_default().insert(row.issue);
    }
    let mut bounds: BTreeMap<(&PoolId, HorizonHours), BTreeSet<HourStart>> = BTreeMap::new();
    for row in material.bounds.iter().flat_map(|bounds| &bounds.rows) {
        bounds.entry((&row.pool, row.hours)).or_default().insert(row.pair.issue);
    }
    let partial = |((pool, hours), issues): (&(&PoolId, HorizonHours), &BTreeSet<HourStart>)| {
        let all = forecast.get(pool).filter(|all| !all.is_subset(issues))?;
        Some(PartialBounds {
            pool: pool.to_string(),
            hours: hours.get(),
            issue_times: issues.len(),
            forecast_issue_times: all.len(),
            from: *issues.first()?,
            to: *issues.last()?,
        })
    };
    bounds.iter().filter_map(partial).collect()
}
