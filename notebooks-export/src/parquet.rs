//! forecasts.parquet: the rows of the forecasts with types, for data frames.

use crate::error::ExportError;
use crate::forecasts::{ForecastRow, Forecasts};
use crate::measured::RecordingGaps;
use command_line::OutputFile;
use polars::prelude::{
    Column, DataFrame, DataType, IntoColumn, NamedFrom, ParquetWriter, PolarsError, Series, TimeUnit, TimeZone,
};
use std::path::Path;
use vocab::HourStart;

const MILLIS_PER_SECOND: i64 = 1_000;

/// Writes the rows in the order of the file. Times are UTC in milliseconds; a column `recording_gap` tells the rows that
/// are not scored.
pub fn write(forecasts: &Forecasts, gaps: &RecordingGaps, file: &Path) -> Result<(), ExportError> {
    let failed = |source| ExportError::Parquet { file: file.to_owned(), source };
    let mut frame = frame(forecasts, gaps).map_err(failed)?;
    let not_written = |source| ExportError::Write { file: file.to_owned(), source };
    let mut output = OutputFile::create(file).map_err(not_written)?;
    ParquetWriter::new(&mut output).finish(&mut frame).map_err(failed)?;
    output.finish().map_err(not_written)
}

fn frame(forecasts: &Forecasts, gaps: &RecordingGaps) -> Result<DataFrame, PolarsError> {
    let rows = &forecasts.rows;
    let text = |name: &str, of: &dyn Fn(&ForecastRow) -> String| {
        let values: Vec<String> = rows.iter().map(of).collect();
        Series::new(name.into(), values).into_column()
    };
    let gpus = |name: &str, of: &dyn Fn(&ForecastRow) -> f64| {
        let values: Vec<f64> = rows.iter().map(of).collect();
        Series::new(name.into(), values).into_column()
    };
    let steps: Vec<u32> = rows.iter().map(|row| u32::from(row.step)).collect();
    let in_gap: Vec<bool> = rows.iter().map(|row| gaps.holds(forecasts, row)).collect();
    let id = |row: &ForecastRow| &forecasts.series[row.series];
    let columns = vec![
        times("issue_time", rows.iter().map(|row| row.issue))?,
        times("target_time", rows.iter().map(ForecastRow::target))?,
        Series::new("step".into(), steps).into_column(),
        text("cluster", &|row| id(row).pool.cluster.to_string()),
        text("gpu_model", &|row| id(row).pool.gpu_model.to_string()),
        text("organization", &|row| id(row).organization.to_string()),
        text("model", &|row| forecasts.models[row.model].clone()),
        gpus("mean", &|row| row.forecast.mean_gpus),
        gpus("stddev", &|row| row.forecast.stddev_gpus),
        gpus("q0.5", &|row| row.forecast.quantiles_gpus[0]),
        gpus("q0.9", &|row| row.forecast.quantiles_gpus[1]),
        gpus("q0.95", &|row| row.forecast.quantiles_gpus[2]),
        gpus("actual", &|row| row.actual_gpus),
        Series::new("recording_gap".into(), in_gap).into_column(),
    ];
    DataFrame::new(rows.len(), columns)
}

fn times(name: &str, hours: impl Iterator<Item = HourStart>) -> Result<Column, PolarsError> {
    let millis: Vec<i64> = hours.map(|hour| hour.unix_s() * MILLIS_PER_SECOND).collect();
    let utc = DataType::Datetime(TimeUnit::Milliseconds, Some(TimeZone::UTC));
    Ok(Series::new(name.into(), millis).cast(&utc)?.into_column())
}
