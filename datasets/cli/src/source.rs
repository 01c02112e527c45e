//! `datasets ingest --format prometheus`: the query of a source and its summary.

use crate::args::Ingest;
use crate::error::CliError;
use crate::source_flags::SourceFlags;
use command_line::{Progress, print_notice, say};
use datasets::ReadReport;
use prometheus::{Asked, Client, Gap, Reading, Source, SourceSettings, Span};
use serde::Serialize;
use std::collections::BTreeSet;
use std::time::{SystemTime, UNIX_EPOCH};
use store::{Cluster, Store, StoreError};
use vocab::{CapacityRow, ClusterName, HourDemand, HourStart, SeriesId, UnixSeconds};

/// An hour in five: below, a model fills gaps from the hours around; above, what it learned would be its own filling.
const MAX_MISSING: f64 = 0.2;

impl SourceFlags {
    fn source(&self, what: &Ingest, cluster: ClusterName) -> Result<Source, CliError> {
        let default = SourceSettings::default();
        let text = |given: &Option<String>, usual: String| given.clone().unwrap_or(usual);
        let capacity = what.capacity.map(|_| "none".to_owned());
        let settings = SourceSettings {
            url: what.path.to_string_lossy().into_owned(),
            token_file: self.token_file.clone().unwrap_or(default.token_file),
            ca_file: self.ca_file.clone().unwrap_or(default.ca_file),
            timeout_s: self.timeout.unwrap_or(default.timeout_s),
            hp_priority_classes: self.hp_priority_classes.clone(),
            query: text(&self.query, default.query),
            presence_query: text(&self.presence_query, default.presence_query),
            capacity_query: text(&self.capacity_query, capacity.unwrap_or(default.capacity_query)),
            organization_label: text(&self.organization_label, default.organization_label),
            gpu_model_label: text(&self.gpu_model_label, default.gpu_model_label),
            gpu_model: what.gpu_model.as_ref().map_or(default.gpu_model, ToString::to_string),
            step_s: self.step.unwrap_or(default.step_s),
            min_samples: self.min_samples.unwrap_or(default.min_samples),
            ..default
        };
        Ok(settings.source(cluster)?)
    }

    /// The requested hours, and whether their end was moved to the present hour.
    fn asked(&self, source: &Source) -> Result<(Asked, bool), CliError> {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let now = UnixSeconds::new(i64::try_from(since.as_secs()).unwrap_or(i64::MAX));
        let present = now.hour().map_err(CliError::Clock)?;
        let until = self.until.unwrap_or(present).min(present);
        let from = self.from.unwrap_or_else(|| until.plus_hours(-i64::from(source.lookback_hours)));
        if from >= until {
            return Err(CliError::NoHours { from, until });
        }
        let asked = Asked { span: Span { from, until }, may_begin_later: self.from.is_none() };
        Ok((asked, self.until.is_some_and(|wanted| wanted > present)))
    }
}

/// Summary of the hours read from a source.
#[derive(Serialize)]
pub struct SourceSummary {
    url: String,
    /// Requested hours.
    hours: i64,
    missing_hours: i64,
    missing_share: f64,
    /// First hour with data.
    begins: Option<String>,
    /// Samples that are not numbers.
    bad_values: u64,
    gaps: Vec<GapSummary>,
    #[serde(skip)]
    notes: Vec<String>,
}

#[derive(Serialize)]
struct GapSummary {
    gpu_model: Option<String>,
    from: String,
    until: String,
    hours: i64,
    why: String,
}

impl GapSummary {
    fn of(gap: &Gap) -> Self {
        Self {
            gpu_model: gap.gpu_model.as_ref().map(ToString::to_string),
            from: gap.span.from.to_string(),
            until: gap.span.until.to_string(),
            hours: gap.span.hours(),
            why: gap.why.to_string(),
        }
    }
}

/// Reads a source from the hours that are asked for.
pub async fn read(
    what: &Ingest,
    cluster: &Cluster,
    store: Option<&dyn Store>,
) -> Result<(ReadReport, SourceSummary), CliError> {
    let source = what.source.source(what, cluster.name.clone())?;
    let (asked, is_cut) = what.source.asked(&source)?;
    let client = Client::new(&source)?;
    let known = known(store, &source, asked.span.from).await?;
    let progress = Progress::new(&source.target.to_string(), asked.span.hours().unsigned_abs());
    let step = |hours: i64| progress.step(hours.unsigned_abs(), "hours".to_owned());
    let read = prometheus::read(&client, &source, asked, &known, &step).await;
    progress.done();
    let reading = read?.with_at_most_missing(what.source.max_missing.unwrap_or(MAX_MISSING))?;
    if reading.rows.is_empty() {
        return Err(prometheus::nothing_there(&source, asked.span).into());
    }
    let mut notes = notes(&reading, asked);
    if is_cut {
        notes.push(format!("skipped the hours from {} on: they are not over", asked.span.until));
    }
    let summary = SourceSummary {
        url: source.target.to_string(),
        hours: reading.hours,
        missing_hours: reading.missing_hours,
        missing_share: reading.missing_share(),
        begins: reading.begins.map(|hour| hour.to_string()),
        bad_values: reading.bad_values,
        gaps: reading.gaps.iter().map(GapSummary::of).collect(),
        notes,
    };
    let capacity = new_capacity(store, reading.capacity).await?;
    Ok((ReadReport { rows: reading.rows, capacity, ..ReadReport::default() }, summary))
}

fn notes(reading: &Reading, asked: Asked) -> Vec<String> {
    let mut notes: Vec<String> = reading.gaps.iter().map(|gap| format!("missing: {gap}")).collect();
    if let Some(begins) = reading.begins.filter(|begins| asked.may_begin_later && *begins > asked.span.from) {
        notes.push(format!("the source has no data before {begins}; requested from {}", asked.span.from));
    }
    if reading.bad_values > 0 {
        notes.push(format!("{} samples are not numbers and count as missing", reading.bad_values));
    }
    notes
}

/// Leaves out the first row of a pool where it repeats the stored capacity.
pub async fn new_capacity(store: Option<&dyn Store>, rows: Vec<CapacityRow>) -> Result<Vec<CapacityRow>, StoreError> {
    let Some(store) = store else { return Ok(rows) };
    let mut new: Vec<CapacityRow> = Vec::with_capacity(rows.len());
    let mut last = None;
    for row in rows {
        let is_first = last.replace(row.pool.clone()).as_ref() != Some(&row.pool);
        let before = if is_first { store.capacity_at(&row.pool, row.from).await? } else { None };
        if before.is_none_or(|before| before.capacity != row.capacity) {
            new.push(row);
        }
    }
    Ok(new)
}

/// Series with demand in the days before: they count as zero where the source no longer knows them.
async fn known(store: Option<&dyn Store>, source: &Source, from: HourStart) -> Result<BTreeSet<SeriesId>, StoreError> {
    let mut known = BTreeSet::new();
    let Some(store) = store else { return Ok(known) };
    if store.cluster(&source.cluster).await?.is_none() {
        return Ok(known);
    }
    let sink = &mut |series: &SeriesId, _: HourStart, demand: HourDemand| {
        if !demand.peak.is_zero() && source.covers(&series.pool) && !known.contains(series) {
            known.insert(series.clone());
        }
    };
    store.load_usage(&source.cluster, from.plus_hours(-prometheus::KNOWN_HOURS), from, sink).await?;
    Ok(known)
}

impl SourceSummary {
    /// Prints the gaps on stderr.
    pub fn note(&self) {
        for note in &self.notes {
            print_notice(format_args!("note: {note}"));
        }
    }

    /// Its line of the summary.
    pub fn tell(&self) {
        let Self { hours, missing_hours, missing_share, .. } = self;
        say(format_args!("hours: {hours} read, {missing_hours} missing ({:.1} %)", missing_share * 100.0));
    }
}
