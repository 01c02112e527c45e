//! `datasets describe`: what the database holds, with its gaps.

use crate::args::Describe;
use crate::calendar;
use crate::error::CliError;
use crate::panel;
use command_line::{print_json, print_text, say, table};
use datasets::{Panel, Series};
use serde::Serialize;
use std::collections::BTreeSet;
use store::{Cluster, Store};
use vocab::PoolId;

#[derive(Serialize)]
struct ClusterDescription {
    cluster: String,
    time_zone: String,
    calendar: String,
    /// None where all are known.
    calendar_years: Option<[i32; 2]>,
    /// Where the hours reach beyond these years.
    calendar_warning: Option<String>,
    #[serde(skip)]
    calendar_in_words: String,
    from: String,
    /// The last hour.
    to: String,
    hours: usize,
    /// Hours without a row of any organization.
    recording_gap_hours: Vec<String>,
    pools: Vec<PoolDescription>,
}

#[derive(Serialize)]
struct PoolDescription {
    gpu_model: String,
    organizations: usize,
    /// Whether the pool's own hourly peak is there.
    own_peak: bool,
    capacity_gpus: Option<f64>,
    /// Where demand and capacity hardly are in the same unit.
    capacity_warning: Option<String>,
    mean_demand_gpus: f64,
    peak_demand_gpus: f64,
    /// Hours of organizations without a row, between their first and their last one, in hours that others have.
    missing_rows: usize,
    series: Vec<SeriesDescription>,
}

#[derive(Serialize)]
struct SeriesDescription {
    organization: String,
    measured_hours: usize,
    missing_hours: usize,
    mean_gpus: f64,
    peak_gpus: f64,
}

pub async fn run(what: &Describe, database: &str, json: bool) -> Result<(), CliError> {
    let store = store::connect_existing(database).await?;
    let mut all = Vec::new();
    for cluster in panel::chosen(store.as_ref(), what.cluster.as_ref()).await? {
        if let Some(panel) = panel::load(store.as_ref(), &cluster).await? {
            all.push(describe(store.as_ref(), &cluster, &panel).await?);
        }
    }
    store.close().await;
    if json {
        print_json(&all);
    } else {
        for one in &all {
            print(one, what.series);
        }
    }
    Ok(())
}

async fn describe(store: &dyn Store, cluster: &Cluster, panel: &Panel) -> Result<ClusterDescription, CliError> {
    let pools: BTreeSet<&PoolId> =
        panel.series().iter().chain(panel.pool_peaks()).map(|series| &series.id().pool).collect();
    let mut descriptions = Vec::new();
    for pool in pools {
        let capacity = store.capacity_at(pool, panel.end()).await?;
        descriptions.push(describe_pool(panel, pool, capacity.map(|row| row.capacity.as_gpus())));
    }
    let calendar = panel.calendar();
    let gaps = panel.recording_gap().iter().enumerate().filter(|(_, gap)| **gap);
    Ok(ClusterDescription {
        cluster: cluster.name.to_string(),
        time_zone: cluster.time_zone.clone(),
        calendar: calendar.name(),
        calendar_years: calendar.covered_years().as_ref().map(calendar::pair),
        calendar_warning: calendar::warning(calendar, panel.start(), panel.end().plus_hours(-1)),
        calendar_in_words: calendar::in_words(calendar),
        from: panel.start().to_string(),
        to: panel.end().plus_hours(-1).to_string(),
        hours: panel.hours(),
        recording_gap_hours: gaps.map(|(hour, _)| panel.hour_at(hour).to_string()).collect(),
        pools: descriptions,
    })
}

fn describe_pool(panel: &Panel, pool: &PoolId, capacity_gpus: Option<f64>) -> PoolDescription {
    let own = panel.pool_peaks().iter().find(|series| series.id().pool == *pool);
    let members = panel.series_of(pool);
    let (total, missing_rows): (Vec<f64>, usize) = match own {
        Some(peak) => (measured(peak).collect(), 0),
        None => totals(members, panel.hours()),
    };
    PoolDescription {
        gpu_model: pool.gpu_model.to_string(),
        organizations: members.len(),
        own_peak: own.is_some(),
        capacity_gpus,
        capacity_warning: capacity_gpus.and_then(|capacity_gpus| other_unit(mean(&total), capacity_gpus)),
        mean_demand_gpus: mean(&total),
        peak_demand_gpus: total.iter().copied().fold(0.0, f64::max),
        missing_rows,
        series: members.iter().map(describe_series).collect(),
    }
}

/// Demand that is on average more than twice the capacity: work may wait, but seldom as much for so long.
fn other_unit(mean_gpus: f64, capacity_gpus: f64) -> Option<String> {
    let is_strange = mean_gpus > 2.0 * capacity_gpus;
    is_strange.then(|| {
        format!(
            "demand is {mean_gpus:.1} GPUs on average, and the capacity {capacity_gpus}: check that both count GPUs, and neither nodes nor \
             thousandths"
        )
    })
}

/// Demand of all organizations in each hour that any of them has, and the rows that are missing: an organization has no demand before its
/// first row and after its last, and an hour between them without a row counts with the last that is known, as in a quota.
fn totals(members: &[Series], hours: usize) -> (Vec<f64>, usize) {
    let span = |series: &Series| {
        let measured = series.measured();
        let first = measured.iter().position(|measured| *measured)?;
        Some(first..=measured.iter().rposition(|measured| *measured)?)
    };
    let present: Vec<_> = members.iter().filter_map(|series| Some((series, span(series)?))).collect();
    let mut missing_rows = 0;
    let total = |hour: usize| {
        let there = || present.iter().filter(|(_, span)| span.contains(&hour)).map(|(series, _)| series);
        let missing = there().filter(|series| !series.measured()[hour]).count();
        if missing == there().count() {
            return None;
        }
        missing_rows += missing;
        Some(there().map(|series| series.demand_gpus()[hour]).sum())
    };
    ((0..hours).filter_map(total).collect(), missing_rows)
}

fn describe_series(series: &Series) -> SeriesDescription {
    let demand: Vec<f64> = measured(series).collect();
    SeriesDescription {
        organization: series.id().organization.to_string(),
        measured_hours: demand.len(),
        missing_hours: series.measured().iter().filter(|measured| !**measured).count(),
        mean_gpus: mean(&demand),
        peak_gpus: demand.iter().copied().fold(0.0, f64::max),
    }
}

fn measured(series: &Series) -> impl Iterator<Item = f64> {
    series.demand_gpus().iter().zip(series.measured()).filter(|(_, measured)| **measured).map(|(gpus, _)| *gpus)
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

fn print(one: &ClusterDescription, by_series: bool) {
    calendar::warn(&one.cluster, one.calendar_warning.as_deref());
    for pool in &one.pools {
        if let Some(warning) = &pool.capacity_warning {
            command_line::print_notice(format_args!("warning: {}:{}: {warning}", one.cluster, pool.gpu_model));
        }
        if pool.missing_rows > 0 {
            let rows = vocab::count(pool.missing_rows as u64, "row").verb("is", "are");
            command_line::print_notice(format_args!(
                "note: {}:{}: {rows} missing in hours that other organizations have; each counts with the last that is known of its \
                 organization, also where a source leaves rows of zero out",
                one.cluster, pool.gpu_model
            ));
        }
    }
    say(format_args!(
        "cluster {} ({}, calendar {}): {} h from {} to {}, {} recording-gap hours",
        one.cluster,
        one.time_zone,
        one.calendar_in_words,
        one.hours,
        one.from,
        one.to,
        one.recording_gap_hours.len()
    ));
    if by_series {
        let header = ["gpu_model", "organization", "measured_h", "missing_h", "mean_gpus", "peak_gpus"];
        let rows = one.pools.iter().flat_map(|pool| pool.series.iter().map(|series| series_row(pool, series)));
        print_text(&table(&header, &rows.collect::<Vec<_>>()));
        return;
    }
    let header = ["gpu_model", "organizations", "own_peak", "capacity_gpus", "mean_gpus", "peak_gpus"];
    let row = |pool: &PoolDescription| {
        vec![
            pool.gpu_model.clone(),
            pool.organizations.to_string(),
            if pool.own_peak { "yes" } else { "no" }.to_owned(),
            pool.capacity_gpus.map_or_else(|| "unknown".to_owned(), |gpus| gpus.to_string()),
            format!("{:.1}", pool.mean_demand_gpus),
            format!("{:.1}", pool.peak_demand_gpus),
        ]
    };
    print_text(&table(&header, &one.pools.iter().map(row).collect::<Vec<_>>()));
}

fn series_row(pool: &PoolDescription, series: &SeriesDescription) -> Vec<String> {
    vec![
        pool.gpu_model.clone(),
        series.organization.clone(),
        series.measured_hours.to_string(),
        series.missing_hours.to_string(),
        format!("{:.1}", series.mean_gpus),
        format!("{:.1}", series.peak_gpus),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use datasets::{Calendar, PanelBuilder};
    use vocab::{ClusterName, HourStart, Organization, SeriesId};

    #[test]
    fn a_missing_row_counts_with_the_last_one_and_is_counted() {
        let (start, pool) = (HourStart::from_unix_s(0).unwrap(), PoolId::parse("earth:V100").unwrap());
        let calendar = Calendar::parse("UTC", Calendar::WEEKDAYS).unwrap();
        let mut builder = PanelBuilder::new(ClusterName::parse("earth").unwrap(), calendar, start, start.plus_hours(5));
        // The third hour has no row at all; the second organization has no row in the second, and is gone in the last.
        for (name, rows) in [("a", &[0, 1, 3, 4][..]), ("b", &[0, 3])] {
            let id = SeriesId { pool: pool.clone(), organization: Organization::parse(name).unwrap() };
            for hour in rows {
                builder.push(&id, start.plus_hours(*hour), 2.0 + *hour as f64).unwrap();
            }
        }
        let panel = builder.finish().unwrap();
        let pool = describe_pool(&panel, &pool, None);
        assert_eq!((pool.mean_demand_gpus, pool.peak_demand_gpus), ((4.0 + 5.0 + 10.0 + 6.0) / 4.0, 10.0));
        assert_eq!(pool.missing_rows, 1);
    }

    #[test]
    fn demand_that_is_hardly_in_the_unit_of_the_capacity_is_named() {
        assert_eq!(other_unit(671.4, 856.0), None);
        assert_eq!(other_unit(1_600.0, 856.0), None, "work waits");
        let nodes = other_unit(174.7, 50.0).unwrap();
        assert!(nodes.starts_with("demand is 174.7 GPUs on average, and the capacity 50:"), "{nodes}");
        assert!(other_unit(174_749.0, 512.0).is_some(), "thousandths");
    }
}
