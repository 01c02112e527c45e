//! metrics.csv: what the forecasts and the bounds were worth.

use crate::analysis::ModelView;
use crate::forecasts::{ForecastRow, Forecasts};
use crate::measured::RecordingGaps;
use crate::pool_bounds::PoolBounds;
use forecaster::scores::{Scored, Scores, score, score_pool};
use std::collections::BTreeMap;
use vocab::{HorizonHours, PoolId};

pub const COLUMNS: [&str; 8] = ["model", "cluster", "gpu_model", "organization", "step", "metric", "value", "rows"];

/// Scope of a metric. Empty fields mean: over all of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Scope {
    pub model: String,
    pub cluster: String,
    pub gpu_model: String,
    pub organization: String,
    pub step: String,
}

/// A row of metrics.csv.
#[derive(Debug, Clone, PartialEq)]
pub struct Metric {
    pub scope: Scope,
    /// As in metrics.csv, such as `mae_median` or `pool_under:pooled`.
    pub name: String,
    /// In GPUs where the metric is an error, a loss or a bound; else a share or a density.
    pub value: f64,
    /// Rows that it was computed over.
    pub rows: usize,
}

/// Scores of all models: each over everything, then by step, then by series.
pub fn of_forecasts(forecasts: &Forecasts, gaps: &RecordingGaps) -> Vec<Metric> {
    let mut metrics = Vec::new();
    for (number, model) in forecasts.models.iter().enumerate() {
        let mine = forecasts.ordered.iter().map(|place| &forecasts.rows[*place]).filter(|row| row.model == number);
        let rows: Vec<Scored> = mine.filter(|row| !gaps.holds(forecasts, row)).map(scored).collect();
        let scope = Scope { model: model.clone(), ..Scope::default() };
        add(&mut metrics, &scope, &rows);
        for (step, rows) in grouped(&rows, |row| row.step) {
            add(&mut metrics, &Scope { step: step.to_string(), ..scope.clone() }, &rows);
        }
        for (series, rows) in grouped(&rows, |row| row.series) {
            let id = &forecasts.series[series];
            let own = Scope { organization: id.organization.to_string(), ..of_pool(&scope, &id.pool) };
            add(&mut metrics, &own, &rows);
        }
    }
    metrics
}

/// Skill of all models against all baselines; the baseline stands behind a colon.
pub fn of_skill(models: &[ModelView]) -> Vec<Metric> {
    let mut metrics = Vec::new();
    for view in models {
        let scope = Scope { model: view.name.clone(), ..Scope::default() };
        for skill in &view.skills {
            let named = [
                ("skill_mae_median", skill.mae_median),
                ("skill_pinball_q90", skill.pinball_q90),
                ("skill_crps", skill.crps),
            ];
            metrics.extend(named.into_iter().filter_map(|(name, value)| {
                let name = format!("{name}:{}", skill.baseline);
                Some(Metric { scope: scope.clone(), name, value: value?, rows: view.scores.rows })
            }));
        }
    }
    metrics
}

/// Scores of bounds, by pool, hours, model and aggregation; the aggregation stands behind a colon.
pub fn of_bounds(bounds: &PoolBounds) -> Vec<Metric> {
    let mut metrics = Vec::new();
    for (model, aggregation) in &bounds.candidates {
        let mut pairs: BTreeMap<(&PoolId, HorizonHours), Vec<_>> = BTreeMap::new();
        for row in bounds.rows.iter().filter(|row| row.candidate.0 == *model && row.candidate.1 == *aggregation) {
            pairs.entry((&row.pool, row.hours)).or_default().push(row.pair);
        }
        for ((pool, hours), pairs) in pairs {
            let Some(scores) = score_pool(&pairs, bounds.rate) else { continue };
            let scope = of_pool(&Scope { model: model.clone(), ..Scope::default() }, pool);
            let scope = Scope { organization: "*".to_owned(), step: hours.get().to_string(), ..scope };
            let named = [
                ("pool_over_reserved", scores.over_reserved_gpus),
                ("pool_under", 1.0 - scores.coverage),
                ("pool_pinball", scores.pinball_gpus),
                ("pool_shortfall", scores.shortfall_gpus),
            ];
            metrics.extend(named.map(|(name, value)| Metric {
                scope: scope.clone(),
                name: format!("{name}:{aggregation}"),
                value,
                rows: scores.issues,
            }));
        }
    }
    metrics
}

pub fn scored(row: &ForecastRow) -> Scored {
    let step = usize::from(row.step);
    Scored { series: row.series, step, forecast: row.forecast, actual_gpus: row.actual_gpus }
}

fn of_pool(scope: &Scope, pool: &PoolId) -> Scope {
    Scope { cluster: pool.cluster.to_string(), gpu_model: pool.gpu_model.to_string(), ..scope.clone() }
}

fn grouped(rows: &[Scored], by: impl Fn(&Scored) -> usize) -> BTreeMap<usize, Vec<Scored>> {
    let mut groups: BTreeMap<usize, Vec<Scored>> = BTreeMap::new();
    for row in rows {
        groups.entry(by(row)).or_default().push(*row);
    }
    groups
}

fn add(metrics: &mut Vec<Metric>, scope: &Scope, rows: &[Scored]) {
    let Some(scores) = score(rows) else { return };
    metrics.extend(named(&scores).into_iter().filter_map(|(name, value)| {
        Some(Metric { scope: scope.clone(), name: name.to_owned(), value: value?, rows: scores.rows })
    }));
}

/// `None` where there is no demand to divide by.
fn named(scores: &Scores) -> [(&'static str, Option<f64>); 14] {
    [
        ("mae_median", Some(scores.mae_median_gpus)),
        ("mae_mean", Some(scores.mae_mean_gpus)),
        ("rmse_median", Some(scores.rmse_median_gpus)),
        ("rmse_mean", Some(scores.rmse_mean_gpus)),
        ("mape_median", scores.mape_median),
        ("nmae_median", scores.nmae_median),
        ("coverage_q90", Some(scores.coverage[0])),
        ("coverage_q95", Some(scores.coverage[1])),
        ("maqe_q90", Some(scores.maqe[0])),
        ("maqe_q95", Some(scores.maqe[1])),
        ("pinball_q90", Some(scores.pinball_gpus[0])),
        ("pinball_q95", Some(scores.pinball_gpus[1])),
        ("crps", Some(scores.crps_gpus)),
        ("nll", Some(scores.nll)),
    ]
}
