//! forecasts.csv (DESIGN §5), read and checked.

use crate::error::{ExportError, RowFault};
use crate::grid::{self, GridFault};
use crate::number::Numbered;
use crate::pool_bounds::Backtest;
use crate::table::{self, Table};
use std::path::{Path, PathBuf};
use training::backtest::FORECAST_COLUMNS;
use vocab::{ClusterName, GpuModel, HourStart, Organization, PoolId, SeriesId, StepForecast};

/// Differences of GPUs up to this are rounding: a thousandth of the smallest amount.
pub const ROUNDING_GPUS: f64 = 1e-6;

/// One forecast hour and what came.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ForecastRow {
    /// Its row in the file.
    pub row: u64,
    /// Its place among [`Forecasts::models`].
    pub model: usize,
    /// Its place among [`Forecasts::series`].
    pub series: usize,
    pub issue: HourStart,
    /// From 1.
    pub step: u8,
    pub forecast: StepForecast,
    pub actual_gpus: f64,
}

impl ForecastRow {
    /// The hour that is forecast.
    pub fn target(&self) -> HourStart {
        self.issue.plus_hours(i64::from(self.step) - 1)
    }
}

/// The forecasts of one or more models, all over the same series, issue times and steps.
#[derive(Debug)]
pub struct Forecasts {
    pub file: PathBuf,
    /// In the order in which the file names them first, as are the series.
    pub models: Vec<String>,
    pub series: Vec<SeriesId>,
    /// In the order of the file.
    pub rows: Vec<ForecastRow>,
    /// Places among the rows, by model, series, issue time and step.
    pub ordered: Vec<usize>,
}

impl Forecasts {
    /// # Errors
    /// The file cannot be read, its header is another one, a row is bad or there twice, or a model lacks rows that
    /// another one has.
    pub fn read(file: &Path) -> Result<Self, ExportError> {
        let (mut models, mut series, mut rows) = (Numbered::default(), Numbered::default(), Vec::new());
        Table::open(file, FORECAST_COLUMNS)?.each(|row, fields| {
            rows.push(parse(row, fields, &mut models, &mut series)?);
            Ok(())
        })?;
        let (models, series) = (models.into_values(), series.into_values());
        let ordered = grid::ordered(&rows, |row| row.model, |row| (row.series, row.issue, row.step));
        let mut forecasts = Self { file: file.to_owned(), models, series, rows, ordered: Vec::new() };
        forecasts.ordered = ordered.map_err(|fault| forecasts.explain(&fault))?;
        Ok(forecasts)
    }

    /// The backtest of the rows; there is a row at least.
    pub fn backtest(&self) -> Backtest {
        let issues = || self.rows.iter().map(|row| row.issue);
        let first = self.rows[0].issue;
        Backtest {
            pools: self.series.iter().map(|series| series.pool.clone()).collect(),
            models: self.models.iter().cloned().collect(),
            issues: (issues().fold(first, HourStart::min), issues().fold(first, HourStart::max)),
            horizon: self.rows.iter().map(|row| row.step).max().unwrap_or_default(),
        }
    }

    fn explain(&self, fault: &GridFault) -> ExportError {
        let model = |row: &ForecastRow| format!("model {}", self.models[row.model]);
        let what = |row: &ForecastRow| {
            format!("forecast of {} issued {}, step {}", self.series[row.series], row.issue, row.step)
        };
        let (row, fault) = match *fault {
            GridFault::Twice { first, second } => {
                let (first, second) = (&self.rows[first], &self.rows[second]);
                let what = format!("{}: the {}", model(second), what(second));
                (second, RowFault::Twice { what, first_row: first.row })
            }
            GridFault::Uneven { there, having_rows, lacking, lacking_rows } => {
                let (there, lacking) = (&self.rows[there], model(&self.rows[lacking]));
                (
                    there,
                    RowFault::Uneven { what: what(there), having: model(there), having_rows, lacking, lacking_rows },
                )
            }
        };
        table::at(&self.file, row.row, fault)
    }
}

fn parse(
    row: u64,
    fields: [&str; 13],
    models: &mut Numbered<String>,
    all_series: &mut Numbered<SeriesId>,
) -> Result<ForecastRow, RowFault> {
    let [issue, target, step, cluster, gpu_model, organization, model, mean, stddev, q50, q90, q95, actual] = fields;
    let (issue, target) = (table::hour("issue_time", issue)?, table::hour("target_time", target)?);
    let step = table::hours("step", step)?.get();
    let ahead = i64::from(step) - 1;
    if target.hours_since(issue) != ahead {
        return Err(RowFault::Target { issue, step, target, expected: issue.plus_hours(ahead) });
    }
    let pool = PoolId {
        cluster: table::name("cluster", cluster, ClusterName::parse)?,
        gpu_model: table::name("gpu_model", gpu_model, GpuModel::parse)?,
    };
    let series = SeriesId { pool, organization: table::name("organization", organization, Organization::parse)? };
    let quantiles_gpus = [table::gpus("q0.5", q50)?, table::gpus("q0.9", q90)?, table::gpus("q0.95", q95)?];
    let [q50, q90, q95] = quantiles_gpus;
    if q50 > q90 + ROUNDING_GPUS || q90 > q95 + ROUNDING_GPUS {
        return Err(RowFault::Crossing { q50, q90, q95 });
    }
    let forecast = StepForecast {
        mean_gpus: table::gpus("mean", mean)?,
        stddev_gpus: table::gpus_from_zero("stddev", stddev)?,
        quantiles_gpus,
    };
    let actual_gpus = table::gpus_from_zero("actual", actual)?;
    let (model, series) = (models.number(table::label("model", model)?), all_series.number(series));
    Ok(ForecastRow { row, model, series, issue, step, forecast, actual_gpus })
}
