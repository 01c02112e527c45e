//! Helios "Earth": one file a tenant, one row a minute.

use super::table::{Extra, Row, Table};
use super::{ReadError, ReadOptions, ReadReport, RowFault, SkippedRow};
use crate::time;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use vocab::{CapacityRow, HourDemand, HourStart, MilliGpus, Organization, PoolId, SeriesId, UnixSeconds, UsageRow};

const COLUMNS: [&str; 4] = ["time", "total_gpu_num", "running_gpu_num", "pending_gpu_num"];
const SECONDS_PER_MINUTE: i64 = 60;
/// How many minutes before the end of an hour its last row may be, for it to be the end: 5.
const MOST_LEFT_MIN: i64 = 5;

/// Content of one tenant's file.
struct Tenant {
    organization: Organization,
    by_minute: BTreeMap<i64, MilliGpus>,
    capacity: BTreeMap<HourStart, MilliGpus>,
}

/// The demand of the tenants together in each minute, and how many of them have the minute.
type Sums = BTreeMap<i64, (MilliGpus, usize)>;

/// Reads a folder of `vc*.csv`, or one such file. Demand is running + pending; each organization's row is its peak within
/// the hour; organization `*` is the peak of the sum, over the minutes that every tenant's file has. Capacity is the sum
/// of `total_gpu_num` over the tenants, a row for each hour in which it changes.
///
/// # Errors
/// A file cannot be read, a column is missing, there is no tenant, the capacity of all exceeds the limit of amounts, or (unless bad
/// rows may be skipped) a row is bad.
pub fn helios(path: &Path, options: &ReadOptions) -> Result<ReadReport, ReadError> {
    let mut report = ReadReport::default();
    let (mut tenants, mut sums) = (Vec::new(), Sums::new());
    for file in tenant_files(path)? {
        tenants.push(read_tenant(&file, &mut sums, options, &mut report.skipped)?);
    }
    let pool = PoolId { cluster: options.cluster.clone(), gpu_model: options.gpu_model.clone() };
    for tenant in &tenants {
        let series = SeriesId { pool: pool.clone(), organization: tenant.organization.clone() };
        report.rows.extend(hourly_peaks(&series, tenant.by_minute.iter().map(|(minute, demand)| (*minute, *demand))));
    }
    report.rows.extend(hourly_peaks(&SeriesId::pool_peak(pool.clone()), pool_minutes(sums, tenants.len())));
    report.capacity = capacity_rows(path, &pool, &tenants)?;
    Ok(report)
}

/// The pool's demand of each minute that every tenant's file has, in GPUs and in the order of time: what is known from moment
/// to moment, where [`helios`] keeps the peak of each hour. `paths` are folders or files, as [`helios`] takes them.
///
/// # Errors
/// A file cannot be read, a column is missing, there is no tenant, or a row is bad.
pub fn helios_minutes(paths: &[PathBuf], options: &ReadOptions) -> Result<Vec<(UnixSeconds, MilliGpus)>, ReadError> {
    let mut files = Vec::new();
    for path in paths {
        files.extend(tenant_files(path)?);
    }
    let (mut skipped, mut sums) = (Vec::new(), Sums::new());
    for file in &files {
        read_tenant(file, &mut sums, options, &mut skipped)?;
    }
    let at = |(minute, demand)| (UnixSeconds::new(minute * SECONDS_PER_MINUTE), demand);
    Ok(pool_minutes(sums, files.len()).into_iter().map(at).collect())
}

fn tenant_files(path: &Path) -> Result<Vec<PathBuf>, ReadError> {
    let io = |source| ReadError::Io { file: path.to_owned(), source };
    if !std::fs::metadata(path).map_err(io)?.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut files = Vec::new();
    for entry in std::fs::read_dir(path).map_err(io)? {
        let file = entry.map_err(io)?.path();
        let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if name.starts_with("vc") && file.extension().is_some_and(|extension| extension == "csv") {
            files.push(file);
        }
    }
    if files.is_empty() {
        return Err(ReadError::NoTenants { folder: path.to_owned() });
    }
    files.sort();
    Ok(files)
}

fn read_tenant(
    file: &Path,
    sums: &mut Sums,
    options: &ReadOptions,
    skipped: &mut Vec<SkippedRow>,
) -> Result<Tenant, ReadError> {
    let stem = file.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    let named = |fault| RowFault::Name { column: "(file name)".to_owned(), fault };
    let organization = Organization::parse(stem).map_err(|fault| ReadError::Row {
        file: file.to_owned(),
        row: 0,
        fault: named(fault),
    })?;
    let mut tenant = Tenant { organization, by_minute: BTreeMap::new(), capacity: BTreeMap::new() };
    let mut table = Table::open(file, &COLUMNS, Extra::Ignored)?;
    let rows = table.each(options, skipped, |row| take(&mut tenant, sums, row, options))?;
    if rows == 0 {
        return Err(ReadError::NoRows { file: file.to_owned() });
    }
    Ok(tenant)
}

fn take(tenant: &mut Tenant, sums: &mut Sums, row: &Row<'_>, options: &ReadOptions) -> Result<(), RowFault> {
    let text = row.text("time");
    let at = time::parse(text, options.calendar.zone())
        .map_err(|fault| RowFault::Time { column: "time".to_owned(), fault })?;
    let hour = at.hour().map_err(|fault| RowFault::Hour { column: "time".to_owned(), fault })?;
    let minute = at.get().div_euclid(SECONDS_PER_MINUTE);
    if tenant.by_minute.last_key_value().is_some_and(|(last, _)| *last >= minute) {
        return Err(RowFault::NotRising { text: text.to_owned() });
    }
    let (running, pending) = (row.gpus("running_gpu_num")?, row.gpus("pending_gpu_num")?);
    let capacity = row.gpus("total_gpu_num")?;
    let too_large = || vocab::AmountError::TooLarge { gpus: running.as_gpus() + pending.as_gpus() };
    let demand = MilliGpus::stated(running.checked_add(pending).ok_or_else(too_large))
        .map_err(|fault| RowFault::Amount { column: "pending_gpu_num".to_owned(), fault })?;
    let (sum, tenants) = sums.get(&minute).copied().unwrap_or_default();
    let too_large = || RowFault::TenantsTogether { gpus: sum.as_gpus() + demand.as_gpus() };
    sums.insert(minute, (sum.checked_add(demand).ok_or_else(too_large)?, tenants + 1));
    tenant.by_minute.insert(minute, demand);
    tenant.capacity.insert(hour, capacity);
    Ok(())
}

/// The sum over tenants in each minute that all of them have.
fn pool_minutes(sums: Sums, tenants: usize) -> Vec<(i64, MilliGpus)> {
    sums.into_iter().filter(|(_, (_, count))| *count == tenants).map(|(minute, (sum, _))| (minute, sum)).collect()
}

fn hourly_peaks(series: &SeriesId, minutes: impl IntoIterator<Item = (i64, MilliGpus)>) -> Vec<UsageRow> {
    let mut hours: BTreeMap<HourStart, HourDemand> = BTreeMap::new();
    for (minute, demand) in minutes {
        let hour = UnixSeconds::new(minute * SECONDS_PER_MINUTE).hour().expect("checked when the row was read");
        let known = hours.entry(hour).or_insert(HourDemand::of_peak(demand));
        known.peak = known.peak.max(demand);
        // Of the last minutes one may be missing; an hour that breaks off earlier has no end that is known.
        let left_min = (hour.plus_hours(1).unix_s() - minute * SECONDS_PER_MINUTE) / SECONDS_PER_MINUTE;
        known.at_end = (left_min <= MOST_LEFT_MIN).then_some(demand);
    }
    hours.into_iter().map(|(hour, demand)| demand.row(series.clone(), hour)).collect()
}

fn capacity_rows(path: &Path, pool: &PoolId, tenants: &[Tenant]) -> Result<Vec<CapacityRow>, ReadError> {
    let hours: BTreeSet<HourStart> = tenants.iter().flat_map(|tenant| tenant.capacity.keys().copied()).collect();
    let mut rows: Vec<CapacityRow> = Vec::new();
    for hour in hours {
        // A tenant without a row in this hour still owns what it owned.
        let owned = |tenant: &Tenant| tenant.capacity.range(..=hour).next_back().map(|(_, capacity)| *capacity);
        let total = tenants.iter().filter_map(owned).try_fold(MilliGpus::ZERO, MilliGpus::checked_add);
        let capacity = total.ok_or_else(|| ReadError::Capacity { folder: path.to_owned(), hour })?;
        if rows.last().is_none_or(|last| last.capacity != capacity) {
            rows.push(CapacityRow { pool: pool.clone(), from: hour, capacity });
        }
    }
    Ok(rows)
}
