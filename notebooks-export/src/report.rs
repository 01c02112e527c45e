//! `notebooks-export report`.

use crate::args::Report;
use crate::error::ExportError;
use crate::forecasts::Forecasts;
use crate::measured::RecordingGaps;
use crate::metrics::{self, Metric, Scope};
use crate::pool_bounds::PoolBounds;
use crate::{output, parquet};
use command_line::{print_json, print_text, say, table};
use serde::Serialize;
use std::path::PathBuf;

/// Metrics of the table on the screen; the file holds all.
const SHOWN: [&str; 7] = ["mae_median", "rmse_mean", "pinball_q90", "pinball_q95", "crps", "coverage_q90", "maqe_q90"];

/// What was written.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Summary {
    pub metrics: PathBuf,
    pub forecasts: PathBuf,
    pub models: Vec<String>,
    pub series: usize,
    pub rows: usize,
    /// Rows in recording gaps, which are written and not scored.
    pub recording_gap_rows: usize,
}

/// Reads everything before it writes anything, and says what it did.
///
/// # Errors
/// A file cannot be read or written, or what it holds cannot be scored.
pub fn run(what: &Report, json: bool) -> Result<(), ExportError> {
    let (summary, all) = make(what)?;
    if json {
        print_json(&summary);
        return Ok(());
    }
    print_text(&shown(&summary.models, &all));
    say(format_args!(
        "{} forecasts of {} series; {} of them in recording gaps and not scored",
        summary.rows, summary.series, summary.recording_gap_rows
    ));
    say(format_args!("{} metrics in {}", all.len(), summary.metrics.display()));
    say(format_args!("forecasts in {}", summary.forecasts.display()));
    Ok(())
}

pub fn make(what: &Report) -> Result<(Summary, Vec<Metric>), ExportError> {
    let forecasts = Forecasts::read(&what.forecasts)?;
    let gaps = RecordingGaps::find(&forecasts)?;
    let recording_gap_rows = forecasts.rows.iter().filter(|row| gaps.holds(&forecasts, row)).count();
    if recording_gap_rows == forecasts.rows.len() {
        return Err(ExportError::NothingScored { file: forecasts.file, rows: recording_gap_rows });
    }
    let bounds = what.pool_bounds.as_deref().map(PoolBounds::read).transpose()?;
    let mut all = metrics::of_forecasts(&forecasts, &gaps);
    all.extend(bounds.iter().flat_map(metrics::of_bounds));
    output::folder(&what.out)?;
    let summary = Summary {
        metrics: what.out.join("metrics.csv"),
        forecasts: what.out.join("forecasts.parquet"),
        models: forecasts.models.clone(),
        series: forecasts.series.len(),
        rows: forecasts.rows.len(),
        recording_gap_rows,
    };
    output::metrics(&all, &summary.metrics)?;
    parquet::write(&forecasts, &gaps, &summary.forecasts)?;
    Ok((summary, all))
}

/// The models against each other, over everything.
fn shown(models: &[String], all: &[Metric]) -> String {
    let value = |model: &String, name: &str| {
        let scope = Scope { model: model.clone(), ..Scope::default() };
        let found = all.iter().find(|one| one.name == name && one.scope == scope);
        found.map(|one| format!("{:.3}", one.value)).unwrap_or_default()
    };
    let row = |model: &String| -> Vec<String> {
        std::iter::once(model.clone()).chain(SHOWN.iter().map(|name| value(model, name))).collect()
    };
    let header: Vec<&str> = std::iter::once("model").chain(SHOWN).collect();
    table(&header, &models.iter().map(row).collect::<Vec<_>>())
}
