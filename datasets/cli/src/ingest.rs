//! `datasets ingest`: read, check, store in one transaction, say what happened.

mod summary;

use crate::args::{Ingest, InputFormat, ZeroHours};
use crate::calendar::{self, Named};
use crate::error::CliError;
use crate::gathered::Gathered;
use crate::{slurm, source};
use command_line::print_notice;
use datasets::read::{self, ALIBABA_EPOCH, SkippedRow};
use datasets::{Calendar, CalendarChoice, ReadOptions, ReadReport, Zones};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};
use store::{Cluster, Store, StoreError};
use summary::{ClusterSummary, Summary, tell};
use vocab::{CapacityRow, ClusterName, GpuModel, HourStart, PoolId, UnixSeconds};

/// The zone of the published files that are not in UTC.
const TRACE_ZONE: &str = "Asia/Shanghai";
/// Where a file has one GPU model and does not say which.
const ANY_MODEL: &str = "any";

pub async fn run(what: &Ingest, database: &str, json: bool) -> Result<(), CliError> {
    check_flags(what)?;
    let named = what.calendar.as_deref().map(calendar::named).transpose()?;
    // 1. Read: every fault stops here, before anything is written.
    let stored = stored(database).await?;
    let known = stored.as_deref();
    let default = default_cluster(what, named.as_ref(), known).await?;
    let of_default = calendar_of(known, &default, named.as_ref()).await?;
    let zones = zones(what, known).await?;
    let (mut source, mut records) = (None, None);
    let read = match what.format {
        InputFormat::Prometheus => {
            let (report, summary) = source::read(what, &default, known).await?;
            source = Some(summary);
            Gathered::of_report(report)?
        }
        InputFormat::Slurm => {
            let (report, summary) = slurm::read(what, known).await?;
            records = Some(summary);
            Gathered::of_report(report)?
        }
        _ => read(what, &default, of_default, zones)?,
    };
    let is_gap = what.zero_hours.unwrap_or(what.format.zero_hours()) == ZeroHours::Gap;
    let (mut read, zero_hours) = if is_gap { read.without_zero_hours()? } else { (read, 0) };
    if read.usage.series().next().is_none() {
        let file = what.path.clone();
        return Err(records.map_or(CliError::NoGoodRow { file: file.clone(), bad: read.skipped.len() }, |records| {
            records.nothing(file)
        }));
    }
    read.capacity.extend(capacity(what, &read)?);
    let clusters = clusters(what, &read, &default, known).await?;
    note_hours_ahead(&read);
    let mut summaries = Vec::with_capacity(clusters.len());
    for cluster in &clusters {
        let calendar = calendar_of(known, cluster, named.as_ref()).await?;
        summaries.push(ClusterSummary::of(cluster, &calendar, &read));
    }
    // 2. Write: the calendar first, since clusters name it.
    let store = match stored {
        Some(store) => store,
        None => store::connect(database).await?,
    };
    let own_calendar = match &named {
        Some(named) => calendar::store_days(store.as_ref(), named, &clusters.iter().collect::<Vec<_>>()).await?,
        None => None,
    };
    let mut batches = read.batches();
    let appended = store.append_batches(&clusters, &mut batches, &read.capacity).await?;
    store.close().await;
    // 3. Report.
    let mut summary = Summary::of(&read, &appended, summaries, own_calendar);
    (summary.zero_hours, summary.source, summary.records) = (zero_hours, source, records);
    tell(&summary, &read.skipped, json);
    if what.zero_hours.is_none() {
        batches.outages().tell();
    }
    Ok(())
}

/// The database as it is. `None` where it is yet to be made: a refused ingest leaves no file and no tables.
async fn stored(database: &str) -> Result<Option<Arc<dyn Store>>, StoreError> {
    match store::connect_existing(database).await {
        Err(fault) if fault.may_be_made() => store::check_url(database).map(|()| None),
        opened => opened.map(Some),
    }
}

async fn stored_cluster(store: Option<&dyn Store>, name: &ClusterName) -> Result<Option<Cluster>, StoreError> {
    match store {
        Some(store) => store.cluster(name).await,
        None => Ok(None),
    }
}

/// The zones of the clusters that are known, for files whose rows name their cluster. One that is given holds for all.
async fn zones(what: &Ingest, store: Option<&dyn Store>) -> Result<Zones, CliError> {
    let mut zones = Zones::new();
    if let Some(store) = store.filter(|_| what.time_zone.is_none() && what.format.names_clusters()) {
        for cluster in store.clusters().await? {
            let zone = datasets::calendar::zone(&cluster.time_zone)
                .map_err(|fault| CliError::ClusterCalendar { cluster: cluster.name.clone(), fault })?;
            zones.insert(cluster.name, zone);
        }
    }
    Ok(zones)
}

/// Hours that are yet to come were measured by nobody.
fn note_hours_ahead(read: &Gathered) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(i64::MAX, |since| since.as_secs().cast_signed());
    if let Some((_, last)) = read.span(|_| true).filter(|(_, last)| last.unix_s() > now) {
        print_notice(format_args!(
            "note: hours up to {last} are ahead of the clock of this machine: check the times of the source, and --time-zone"
        ));
    }
}

/// The calendar that was named, else the one that the cluster has.
async fn calendar_of(
    store: Option<&dyn Store>,
    cluster: &Cluster,
    named: Option<&Named>,
) -> Result<Calendar, CliError> {
    if let Some(named) = named {
        return calendar::resolve(store, &cluster.time_zone, named).await;
    }
    let stored = Named { choice: CalendarChoice::parse(&cluster.calendar)?, file: None };
    calendar::resolve(store, &cluster.time_zone, &stored).await
}

fn check_flags(what: &Ingest) -> Result<(), CliError> {
    let format = what.format;
    let given = [
        ("--cluster", what.cluster.is_some(), !format.names_clusters()),
        ("--epoch", what.epoch.is_some(), format.is_job_list() || format == InputFormat::AlibabaHourly),
        ("--nodes", what.nodes.is_some(), format.is_job_list() || format == InputFormat::Slurm),
        ("--gpu-model", what.gpu_model.is_some(), format.names_no_gpu_model()),
        ("--skip-bad-rows", what.skip_bad_rows, format != InputFormat::Prometheus),
        ("--zero-hours", what.zero_hours.is_some(), format != InputFormat::Prometheus),
    ];
    if let Some((flag, ..)) = given.into_iter().find(|(_, is_given, has_meaning)| *is_given && !has_meaning) {
        return Err(CliError::FlagWithoutMeaning { flag, format: format.as_str() });
    }
    let of_sources = match format {
        InputFormat::Prometheus => what.slurm.given(),
        InputFormat::Slurm => what.source.given_without_slurm(),
        _ => [what.source.given(), what.slurm.given()].concat(),
    };
    if let Some(flag) = of_sources.first() {
        return Err(CliError::FlagWithoutMeaning { flag, format: format.as_str() });
    }
    if format == InputFormat::Prometheus && what.cluster.is_none() {
        return Err(CliError::NeedsCluster);
    }
    if format.is_job_list() && what.epoch.is_none() {
        return Err(CliError::NoEpoch { format: format.as_str() });
    }
    Ok(())
}

/// The cluster of a file that names none, with its zone and calendar: those given, else those stored, else those of the
/// format.
async fn default_cluster(what: &Ingest, named: Option<&Named>, store: Option<&dyn Store>) -> Result<Cluster, CliError> {
    let path = what.path.to_str().and_then(|path| path.rsplit("://").next()).map_or(&*what.path, Path::new);
    let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or("cluster");
    let name = what.cluster.clone().map_or_else(|| ClusterName::parse(stem), Ok)?;
    // The name of a file whose rows name their cluster says nothing about them.
    let stored = if what.format.names_clusters() { None } else { stored_cluster(store, &name).await? };
    let usual = match what.format {
        InputFormat::Helios | InputFormat::AlibabaHourly => TRACE_ZONE,
        _ => "UTC",
    };
    let (stored_zone, stored_calendar) =
        stored.map_or((usual.to_owned(), Calendar::WEEKDAYS.to_owned()), |known| (known.time_zone, known.calendar));
    Ok(Cluster {
        name,
        time_zone: what.time_zone.map_or(stored_zone, |zone| zone.name().to_owned()),
        calendar: named.map_or(stored_calendar, |named| named.choice.to_string()),
    })
}

fn read(what: &Ingest, cluster: &Cluster, calendar: Calendar, zones: Zones) -> Result<Gathered, CliError> {
    let options = ReadOptions {
        cluster: cluster.name.clone(),
        gpu_model: what.gpu_model.clone().map_or_else(|| GpuModel::parse(ANY_MODEL), Ok)?,
        calendar,
        skip_bad_rows: what.skip_bad_rows,
        zones,
    };
    let report = match what.format {
        InputFormat::Usage => return Gathered::of_usage(&what.path, &options),
        InputFormat::Parquet => return Gathered::of_parquet(&what.path.to_string_lossy(), &options),
        InputFormat::Helios => read::helios(&what.path, &options)?,
        InputFormat::AlibabaHourly => {
            let published = command_line::instant(ALIBABA_EPOCH).expect("the published epoch is a time");
            let epoch = what.epoch.unwrap_or(published);
            let on_the_hour = HourStart::from_unix_s(epoch.get()).map_err(CliError::Epoch)?;
            read::alibaba_hourly(&what.path, on_the_hour, &options)?
        }
        InputFormat::GfsJobs => read::gfs_jobs(&what.path, epoch_of_jobs(what)?, &options)?.report,
        InputFormat::Philly => read::philly(&what.path, epoch_of_jobs(what)?, &options)?.report,
        // They have readers of their own.
        InputFormat::Prometheus | InputFormat::Slurm => ReadReport::default(),
    };
    let mut read = Gathered::of_report(report)?;
    if let Some(file) = &what.nodes {
        read.capacity = node_capacity(file, &read.pools(), &options, &mut read.skipped)?;
    }
    Ok(read)
}

fn epoch_of_jobs(what: &Ingest) -> Result<UnixSeconds, CliError> {
    what.epoch.ok_or(CliError::NoEpoch { format: what.format.as_str() })
}

/// The capacity of each GPU model of a node list, from the first hour on. A list without a single GPU of the jobs' models
/// belongs to another cluster, or the jobs have no model name.
fn node_capacity(
    file: &Path,
    pools: &BTreeMap<PoolId, HourStart>,
    options: &ReadOptions,
    skipped: &mut Vec<SkippedRow>,
) -> Result<Vec<CapacityRow>, CliError> {
    let (nodes, bad) = read::gfs_nodes(file, options)?;
    skipped.extend(bad);
    let Some(from) = pools.values().min().copied() else { return Ok(Vec::new()) };
    let capacity = read::capacity_by_model(&nodes, from).map_err(CliError::Nodes)?;
    let models = |pools: BTreeSet<&PoolId>| pools.iter().map(|pool| pool.gpu_model.to_string()).collect::<Vec<_>>();
    let of_jobs: BTreeSet<_> = pools.keys().collect();
    if !capacity.iter().any(|row| of_jobs.contains(&row.pool)) {
        let (jobs, nodes) =
            (models(of_jobs).join(", "), models(capacity.iter().map(|row| &row.pool).collect()).join(", "));
        return Err(CliError::NodesOfOtherModels { file: file.to_owned(), jobs, nodes });
    }
    Ok(capacity)
}

/// The capacity of `--capacity`, from the first hour of the pool.
fn capacity(what: &Ingest, read: &Gathered) -> Result<Option<CapacityRow>, CliError> {
    let Some(capacity) = what.capacity else { return Ok(None) };
    let first = read.pools();
    if first.len() > 1 {
        let names: Vec<_> = first.keys().map(ToString::to_string).collect();
        return Err(CliError::CapacityOfMany { pools: names.len(), names: names.join(", ") });
    }
    Ok(first.into_iter().next().map(|(pool, from)| CapacityRow { pool, from, capacity }))
}

/// The clusters to create or change: those of the rows, each with the zone and calendar that hold for it.
async fn clusters(
    what: &Ingest,
    read: &Gathered,
    default: &Cluster,
    store: Option<&dyn Store>,
) -> Result<Vec<Cluster>, CliError> {
    let mut clusters = Vec::new();
    for name in read.clusters() {
        let stored = stored_cluster(store, &name).await?;
        let is_stored = stored.is_some();
        let (zone, calendar) = stored
            .map_or((default.time_zone.clone(), default.calendar.clone()), |known| (known.time_zone, known.calendar));
        if let Some(given) = what.time_zone.filter(|given| is_stored && given.name() != zone) {
            print_notice(format_args!("note: cluster {name} had the time zone {zone}, and has {given} from now on"));
        }
        clusters.push(Cluster {
            name,
            time_zone: what.time_zone.map_or(zone, |zone| zone.name().to_owned()),
            // Where one was named it is the default's.
            calendar: if what.calendar.is_some() { default.calendar.clone() } else { calendar },
        });
    }
    Ok(clusters)
}
