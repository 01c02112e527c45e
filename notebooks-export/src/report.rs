//! `notebooks-export report`.

use crate::analysis::{self, Material, PartialBounds, is_baseline};
use crate::args::{Config, Report};
use crate::error::ExportError;
use crate::measured::RecordingGaps;
use crate::metrics::{self, Metric, Scope};
use crate::page::page;
use crate::source::{self, Source};
use crate::{notebook, output, parquet};
use command_line::{print_json, print_notice, print_text, say, table};
use forecaster::ModelKind;
use serde::Serialize;
use std::path::PathBuf;

/// Metrics of the table on the screen; the file holds all.
const SHOWN: [&str; 7] = ["mae_median", "rmse_mean", "pinball_q90", "pinball_q95", "crps", "coverage_q90", "maqe_q90"];

/// The written files.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Summary {
    pub page: PathBuf,
    pub notebook: PathBuf,
    pub metrics: PathBuf,
    pub forecasts: PathBuf,
    pub models: Vec<String>,
    pub series: usize,
    pub rows: usize,
    /// Rows in recording gaps, which are written and not scored.
    pub recording_gap_rows: usize,
    /// Pools and promises whose bounds are of a part of the issue times of the forecasts.
    pub partial_bounds: Vec<PartialBounds>,
}

/// Reads everything before it writes anything, and says what it did.
///
/// # Errors
/// A file cannot be read or written, or what it holds cannot be scored.
pub fn run(what: &Report, config: &Config, json: bool) -> Result<(), ExportError> {
    let (summary, all) = make(what, config)?;
    for part in &summary.partial_bounds {
        print_notice(format_args!("note: {}", part.sentence(|issue| issue.to_string())));
    }
    if json {
        print_json(&summary);
        return Ok(());
    }
    print_text(&shown(&summary.models, &all));
    say(format_args!(
        "{} forecasts of {} series; {} of them in recording gaps and not scored",
        summary.rows, summary.series, summary.recording_gap_rows
    ));
    say(format_args!("the page to read: {}", summary.page.display()));
    say(format_args!("the notebook: {}", summary.notebook.display()));
    say(format_args!("{} metrics in {}", all.len(), summary.metrics.display()));
    say(format_args!("forecasts in {}", summary.forecasts.display()));
    Ok(())
}

pub fn make(what: &Report, config: &Config) -> Result<(Summary, Vec<Metric>), ExportError> {
    // 1. Read.
    let source = source::read(what, config)?;
    let Source { forecasts, bounds, zone, capacities, serving, .. } = &source;
    let gaps = RecordingGaps::find(forecasts, what.zero_hours)?;
    let recording_gap_rows = forecasts.rows.iter().filter(|row| gaps.holds(forecasts, row)).count();
    if recording_gap_rows == forecasts.rows.len() {
        return Err(ExportError::NothingScored { file: forecasts.file.clone(), rows: recording_gap_rows });
    }
    // 2. Compute.
    let (subject, reference) = chosen(what, &forecasts.models)?;
    let mut all = metrics::of_forecasts(forecasts, &gaps);
    let (gaps, bounds, zone) = (&gaps, bounds.as_ref(), *zone);
    let material = Material { forecasts, gaps, bounds, capacities, serving, zone, subject, reference };
    let models = analysis::models(&material);
    all.extend(metrics::of_skill(&models));
    all.extend(bounds.into_iter().flat_map(metrics::of_bounds));
    // 3. Write.
    output::folder(&what.out)?;
    let summary = Summary {
        page: what.out.join("report.html"),
        notebook: what.out.join("report.ipynb"),
        metrics: what.out.join("metrics.csv"),
        forecasts: what.out.join("forecasts.parquet"),
        models: forecasts.models.clone(),
        series: forecasts.series.len(),
        rows: forecasts.rows.len(),
        recording_gap_rows,
        partial_bounds: analysis::partial_bounds(&material),
    };
    if let Some(played) = &source.played {
        output::copy(played.path(), &what.out, &[source::FORECASTS, source::POOL_BOUNDS])?;
    }
    output::metrics(&all, &summary.metrics)?;
    parquet::write(forecasts, gaps, &summary.forecasts)?;
    notebook::write(&what.title, &forecasts.models[subject], zone, &summary.notebook)?;
    output::text(&summary.page, &page(&material, models, &what.title))?;
    Ok((summary, all))
}

/// The places of the model to show and of the one to measure against, among the models.
fn chosen(what: &Report, models: &[String]) -> Result<(usize, Option<usize>), ExportError> {
    let named = |flag: &'static str, name: &String| {
        let missing = || ExportError::NoModel { flag, name: name.clone(), known: models.to_vec() };
        // `run-3` is enough for `run-3 orglinear-paper`.
        let is_it = |model: &String| model == name || model.split(' ').next() == Some(name);
        models.iter().position(is_it).ok_or_else(missing)
    };
    let subject = match &what.model {
        Some(name) => named("model", name)?,
        None => models.iter().position(|model| !is_baseline(model)).unwrap_or(0),
    };
    let last_value = models.iter().position(|model| model == ModelKind::LastValue.as_str());
    let reference = match &what.baseline {
        Some(name) => Some(named("baseline", name)?),
        None => last_value.or_else(|| models.iter().position(|model| is_baseline(model))),
    };
    Ok((subject, reference))
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
