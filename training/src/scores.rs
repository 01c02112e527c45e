//! Scores as they are kept with a run and printed.

use command_line::table;
use forecaster::bound::AggregationScore;
use forecaster::scores::Scores;
use serde::{Deserialize, Serialize};
use vocab::PoolId;

/// The serde twin of [`Scores`].
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ScoresBody {
    pub rows: usize,
    pub mae_median_gpus: f64,
    pub mae_mean_gpus: f64,
    pub rmse_mean_gpus: f64,
    pub rmse_median_gpus: f64,
    pub mape_median: Option<f64>,
    pub nmae_median: Option<f64>,
    pub coverage_q90: f64,
    pub coverage_q95: f64,
    pub maqe_q90: f64,
    pub maqe_q95: f64,
    pub pinball_q90_gpus: f64,
    pub pinball_q95_gpus: f64,
    pub crps_gpus: f64,
    pub nll: f64,
}

impl From<&Scores> for ScoresBody {
    fn from(scores: &Scores) -> Self {
        Self {
            rows: scores.rows,
            mae_median_gpus: scores.mae_median_gpus,
            mae_mean_gpus: scores.mae_mean_gpus,
            rmse_mean_gpus: scores.rmse_mean_gpus,
            rmse_median_gpus: scores.rmse_median_gpus,
            mape_median: scores.mape_median,
            nmae_median: scores.nmae_median,
            coverage_q90: scores.coverage[0],
            coverage_q95: scores.coverage[1],
            maqe_q90: scores.maqe[0],
            maqe_q95: scores.maqe[1],
            pinball_q90_gpus: scores.pinball_gpus[0],
            pinball_q95_gpus: scores.pinball_gpus[1],
            crps_gpus: scores.crps_gpus,
            nll: scores.nll,
        }
    }
}

/// The serde twin of [`AggregationScore`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PoolScoresBody {
    pub pool: String,
    pub aggregation: String,
    pub issues: usize,
    pub over_reserved_gpus: f64,
    /// Share of issue times with bound < peak.
    pub under: f64,
    /// 90 % interval of `under` over days.
    pub under_interval: [f64; 2],
    pub pinball_gpus: f64,
    pub shortfall_gpus: f64,
}

impl PoolScoresBody {
    #[must_use]
    pub fn of(pool: &PoolId, one: &AggregationScore) -> Self {
        let [low, high] = one.scores.coverage_interval;
        Self {
            pool: pool.to_string(),
            aggregation: one.aggregation.to_string(),
            issues: one.scores.issues,
            over_reserved_gpus: one.scores.over_reserved_gpus,
            under: 1.0 - one.scores.coverage,
            under_interval: [1.0 - high, 1.0 - low],
            pinball_gpus: one.scores.pinball_gpus,
            shortfall_gpus: one.scores.shortfall_gpus,
        }
    }
}

/// Names with their scores, as a table. `train_s` is left out where nothing was trained.
#[must_use]
pub fn scores_table(rows: &[(String, ScoresBody, Option<f64>)]) -> String {
    let mut header =
        vec!["model", "mae_median", "rmse_mean", "pin0.9", "pin0.95", "crps", "cov0.9", "cov0.95", "maqe0.9"];
    let is_timed = rows.iter().any(|(_, _, train_s)| train_s.is_some());
    header.extend(is_timed.then_some("train_s"));
    let row = |(name, scores, train_s): &(String, ScoresBody, Option<f64>)| {
        let mut cells = vec![
            name.clone(),
            format!("{:.3}", scores.mae_median_gpus),
            format!("{:.3}", scores.rmse_mean_gpus),
            format!("{:.3}", scores.pinball_q90_gpus),
            format!("{:.3}", scores.pinball_q95_gpus),
            format!("{:.3}", scores.crps_gpus),
            format!("{:.3}", scores.coverage_q90),
            format!("{:.3}", scores.coverage_q95),
            format!("{:.3}", scores.maqe_q90),
        ];
        cells.extend(is_timed.then(|| train_s.map(|seconds| format!("{seconds:.1}")).unwrap_or_default()));
        cells
    };
    table(&header, &rows.iter().map(row).collect::<Vec<_>>())
}

/// Bounds of pools, as a table.
#[must_use]
pub fn pools_table(rows: &[(String, PoolScoresBody)]) -> String {
    let header = ["pool", "model", "aggregation", "over_reserved", "under", "under_90ci", "pinball"];
    let row = |(model, one): &(String, PoolScoresBody)| {
        vec![
            one.pool.clone(),
            model.clone(),
            one.aggregation.clone(),
            format!("{:.1}", one.over_reserved_gpus),
            format!("{:.3}", one.under),
            format!("[{:.2}, {:.2}]", one.under_interval[0], one.under_interval[1]),
            format!("{:.2}", one.pinball_gpus),
        ]
    };
    table(&header, &rows.iter().map(row).collect::<Vec<_>>())
}
