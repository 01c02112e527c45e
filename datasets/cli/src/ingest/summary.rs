//! The report of an ingest.

use crate::calendar::{self, StoredDays};
use crate::gathered::Gathered;
use crate::slurm::SlurmSummary;
use crate::source::SourceSummary;
use command_line::{print_json, print_notice, say, shell_word};
use datasets::Calendar;
use datasets::read::SkippedRow;
use serde::Serialize;
use std::collections::BTreeSet;
use store::{AppendReport, Cluster};

/// The result of an ingest.
#[derive(Serialize)]
pub struct Summary {
    clusters: Vec<ClusterSummary>,
    own_calendar: Option<StoredDays>,
    series: usize,
    from: Option<String>,
    /// The last hour.
    to: Option<String>,
    inserted: u64,
    changed: u64,
    unchanged: u64,
    equal_duplicates: u64,
    /// Jobs that ask for no GPU and are left out.
    jobs_without_gpus: u64,
    capacity_rows: usize,
    /// Hours in which every organization of a cluster was at zero and that were left out as not recorded.
    pub zero_hours: usize,
    skipped: Vec<String>,
    /// Pools of which the file holds no organization.
    pools_of_peaks_only: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<SourceSummary>,
    /// Records of Slurm.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub records: Option<SlurmSummary>,
}

/// A cluster of the rows.
#[derive(Serialize)]
pub struct ClusterSummary {
    name: String,
    time_zone: String,
    calendar: String,
    /// None where all are known.
    calendar_years: Option<[i32; 2]>,
    /// Where the rows reach beyond these years.
    calendar_warning: Option<String>,
    #[serde(skip)]
    calendar_in_words: String,
}

impl ClusterSummary {
    pub fn of(cluster: &Cluster, calendar: &Calendar, read: &Gathered) -> Self {
        let range = read.span(|name| *name == cluster.name);
        Self {
            name: cluster.name.to_string(),
            time_zone: cluster.time_zone.clone(),
            calendar: cluster.calendar.clone(),
            calendar_years: calendar.covered_years().as_ref().map(calendar::pair),
            calendar_warning: range
                .and_then(|(first, last)| calendar.uncovered(first, last))
                .map(|one| one.to_string()),
            calendar_in_words: calendar::in_words(calendar),
        }
    }
}

impl Summary {
    pub fn of(
        read: &Gathered,
        appended: &AppendReport,
        clusters: Vec<ClusterSummary>,
        own_calendar: Option<StoredDays>,
    ) -> Self {
        let series: Vec<_> = read.usage.series().map(|series| series.id).collect();
        let span = read.span(|_| true);
        let of_organizations: BTreeSet<_> =
            series.iter().filter(|series| !series.is_pool_peak()).map(|series| &series.pool).collect();
        let pools: BTreeSet<_> = series.iter().map(|series| &series.pool).collect();
        let pools_of_peaks_only = pools.difference(&of_organizations);
        Self {
            clusters,
            own_calendar,
            series: series.len(),
            from: span.map(|(first, _)| first.to_string()),
            to: span.map(|(_, last)| last.to_string()),
            inserted: appended.usage.inserted,
            changed: appended.usage.changed,
            unchanged: appended.usage.unchanged,
            equal_duplicates: read.equal_duplicates,
            jobs_without_gpus: read.jobs_without_gpus,
            capacity_rows: read.capacity.len(),
            zero_hours: 0,
            skipped: read.skipped.iter().map(skipped_line).collect(),
            pools_of_peaks_only: pools_of_peaks_only.map(ToString::to_string).collect(),
            source: None,
            records: None,
        }
    }
}

fn skipped_line(skipped: &SkippedRow) -> String {
    format!("{}, row {}: {}", skipped.file.display(), skipped.row, skipped.fault)
}

/// Says what happened.
pub fn tell(summary: &Summary, skipped: &[SkippedRow], json: bool) {
    for one in skipped {
        print_notice(format_args!("skipped: {}", skipped_line(one)));
    }
    for pool in &summary.pools_of_peaks_only {
        print_notice(format_args!(
            "note: of pool {pool} the file holds the pool's own peak (*) alone; forecasts need its organizations"
        ));
    }
    if let Some(own) = &summary.own_calendar {
        own.note();
    }
    if let Some(source) = &summary.source {
        source.note();
    }
    if let Some(records) = &summary.records {
        records.note();
    }
    for cluster in &summary.clusters {
        calendar::warn(&cluster.name, cluster.calendar_warning.as_deref());
    }
    if json {
        print_json(summary);
        return;
    }
    let Summary { series, inserted, changed, unchanged, equal_duplicates, capacity_rows, .. } = summary;
    let (from, to) = (summary.from.as_deref().unwrap_or("-"), summary.to.as_deref().unwrap_or("-"));
    say(format_args!("{series} series from {from} to {to}"));
    say(format_args!("rows: {inserted} inserted, {changed} changed, {unchanged} unchanged"));
    match (&summary.source, &summary.records) {
        (Some(source), _) => source.tell(),
        (None, Some(records)) => records.tell(),
        (None, None) => say(format_args!(
            "in the file: {equal_duplicates} equal duplicates, {} bad rows skipped",
            summary.skipped.len()
        )),
    }
    if summary.jobs_without_gpus > 0 {
        say(format_args!("jobs without GPUs: {} skipped", summary.jobs_without_gpus));
    }
    if summary.zero_hours > 0 {
        let hours = summary.zero_hours;
        say(format_args!(
            "hours with every organization at zero: {hours} skipped as not recorded (--zero-hours demand keeps them)"
        ));
    }
    say(format_args!("capacity: {capacity_rows} rows"));
    for cluster in &summary.clusters {
        say(format_args!(
            "cluster {}: time zone {}, calendar {}",
            cluster.name, cluster.time_zone, cluster.calendar_in_words
        ));
        say(format_args!("next: train --cluster {}", shell_word(&cluster.name)));
    }
}
