//! Each cluster: its usage, its calendar, its model.

use super::{Check, SECONDS_PER_DAY, ago};
use crate::refresh::own_calendar;
use datasets::Calendar;
use forecaster::Predict;
use placement::staleness::usage_is_missing;
use std::collections::{BTreeMap, BTreeSet};
use store::{Cluster, Store, StoreError};
use vocab::{ClusterName, HorizonHours, HourDemand, HourStart, PoolId, SeriesId, UnixSeconds};

/// A week of usage is looked through.
const LOOKED_AT_HOURS: i64 = vocab::HOURS_PER_WEEK;
/// Time to bring along a calendar, or to install a newer program.
const CALENDAR_WARN_DAYS: i64 = 60;
/// Demand of an organization changes within weeks.
const RUN_WARN_DAYS: i64 = 30;
/// Gaps that are named.
const GAPS_SHOWN: usize = 3;

/// A pool, and what its cluster's model reaches.
pub struct FoundPool {
    pub id: PoolId,
    pub horizon: Option<HorizonHours>,
}

/// Adds what was found; answers the cluster's pools.
pub async fn of(
    store: &dyn Store,
    cluster: &Cluster,
    now: UnixSeconds,
    checks: &mut Vec<Check>,
) -> Result<Vec<FoundPool>, StoreError> {
    checks.push(calendar(store, cluster, now).await?);
    let Ok(present) = now.hour() else { return Ok(Vec::new()) };
    let recorded = recorded(store, &cluster.name, present).await?;
    checks.extend(usage(&cluster.name, &recorded, now));
    let (run, horizon) = run(store, &cluster.name, now).await?;
    checks.push(run);
    let mut pools: BTreeSet<PoolId> = recorded.newest.into_keys().collect();
    pools.extend(store.nodes(&cluster.name).await?.into_iter().map(|node| node.pool));
    pools.extend(store.capacities(&cluster.name).await?.into_iter().map(|row| row.pool));
    Ok(pools.into_iter().map(|id| FoundPool { id, horizon }).collect())
}

async fn calendar(store: &dyn Store, cluster: &Cluster, now: UnixSeconds) -> Result<Check, StoreError> {
    let (name, label) = (&cluster.name, format!("calendar {}", cluster.name));
    let set = format!("datasets calendar set --cluster {name} NAME --time-zone ZONE");
    let own = match own_calendar(store, cluster).await {
        Err(fault @ StoreError::Corrupt { .. }) => return Ok(Check::fail(label, fault, set)),
        read => read?,
    };
    let days = own.as_ref().map(|own| own.days_csv.as_str());
    let calendar = match Calendar::with_own(&cluster.time_zone, &cluster.calendar, days) {
        Ok(calendar) => calendar,
        Err(fault) => return Ok(Check::fail(label, fault, set)),
    };
    let found = format!("{}, {}", calendar.name(), calendar.zone());
    let Some(years) = calendar.covered_years() else { return Ok(Check::ok(label, found)) };
    let end = command_line::instant(&format!("{}-01-01T00:00:00Z", years.end() + 1));
    let end = end.expect("the first second of a year is an instant");
    let found = format!("{found}, days off known until {}-12-31", years.end());
    let left_days = end.since_s(now).div_euclid(SECONDS_PER_DAY);
    if left_days >= CALENDAR_WARN_DAYS {
        return Ok(Check::ok(label, found));
    }
    let own = format!("datasets calendar set --cluster {name} {}+own.csv", calendar.name());
    let found = format!("{found}: {} days are left, then only weekends count", left_days.max(0));
    Ok(Check::warn(label, found, format!("install a newer program, or {own}")))
}

/// Hours of the last week that have a row.
struct Recorded {
    from: HourStart,
    hours: BTreeSet<HourStart>,
    newest: BTreeMap<PoolId, Option<HourStart>>,
    /// The newest row, whenever it is from.
    last: Option<HourStart>,
}

async fn recorded(store: &dyn Store, cluster: &ClusterName, present: HourStart) -> Result<Recorded, StoreError> {
    let range = store.measured_range(cluster).await?;
    let week = present.plus_hours(-LOOKED_AT_HOURS);
    let from = range.map_or(week, |(first, _)| first.max(week));
    let (mut hours, mut newest) = (BTreeSet::new(), BTreeMap::new());
    let sink = &mut |series: &SeriesId, hour: HourStart, _: HourDemand| {
        let known: &mut Option<HourStart> = newest.entry(series.pool.clone()).or_default();
        hours.insert(hour);
        *known = (*known).max(Some(hour));
    };
    store.load_usage(cluster, from, present, sink).await?;
    Ok(Recorded { from, hours, newest, last: range.map(|(_, last)| last) })
}

fn usage(cluster: &ClusterName, recorded: &Recorded, now: UnixSeconds) -> Vec<Check> {
    let label = format!("usage {cluster}");
    let ingest = format!("datasets ingest --format usage FILE with rows of {cluster}, or POST /v1/usage");
    let Some(newest) = recorded.hours.last() else {
        let found = match recorded.last {
            None => "there is none".to_owned(),
            Some(last) => format!("none in the last week: the newest hour is that of {}", last.instant()),
        };
        return vec![Check::fail(label, found, ingest)];
    };
    let end = newest.plus_hours(1).instant();
    let found = format!("the newest hour ended {}", ago(now.since_s(end)));
    if usage_is_missing(end, now) {
        return vec![Check::fail(label, format!("{found}: no quota is computed from that"), ingest)];
    }
    let mut checks = vec![Check::ok(label, found)];
    for (pool, newest) in &recorded.newest {
        let end = newest.map(|hour| hour.plus_hours(1).instant());
        if end.is_none_or(|end| usage_is_missing(end, now)) {
            let since = end.map_or_else(|| "for a week".to_owned(), |end| format!("since {end}"));
            checks.push(Check::fail(format!("usage {pool}"), format!("no demand was measured {since}"), &*ingest));
        }
    }
    checks.extend(gaps(cluster, recorded, *newest, &ingest));
    checks
}

fn gaps(cluster: &ClusterName, recorded: &Recorded, newest: HourStart, ingest: &str) -> Option<Check> {
    let count = newest.hours_since(recorded.from);
    let missing: Vec<HourStart> =
        (0..count).map(|hours| recorded.from.plus_hours(hours)).filter(|hour| !recorded.hours.contains(hour)).collect();
    if missing.is_empty() {
        return None;
    }
    let shown: Vec<String> = missing.iter().take(GAPS_SHOWN).map(|hour| hour.instant().to_string()).collect();
    let more = if missing.len() > GAPS_SHOWN { ", …" } else { "" };
    let found = format!(
        "{} missing of the last week: {}{more}",
        vocab::count(missing.len(), "hour").verb("is", "are"),
        shown.join(", ")
    );
    Some(Check::warn(format!("gaps {cluster}"), found, ingest))
}

/// The promoted run, and how far its model looks ahead.
async fn run(
    store: &dyn Store,
    cluster: &ClusterName,
    now: UnixSeconds,
) -> Result<(Check, Option<HorizonHours>), StoreError> {
    let label = format!("run {cluster}");
    let train = format!("train --cluster {} --promote", command_line::shell_word(cluster.as_str()));
    let Some(run) = store.promoted(cluster).await? else {
        return Ok((Check::fail(label, "none was promoted", train), None));
    };
    let again = format!("train runs rollback --cluster {cluster}, or {train}");
    let loaded = match store.checkpoint(run.id).await {
        Ok(bytes) => forecaster::checkpoint::load(&bytes).map_err(|fault| fault.to_string()),
        Err(fault @ StoreError::Corrupt { .. }) => Err(fault.to_string()),
        Err(fault) => return Err(fault),
    };
    let trained = match loaded {
        Ok(trained) => trained,
        Err(why) => return Ok((Check::fail(label, format!("{} cannot serve: {why}", run.id), again), None)),
    };
    let age_s = now.since_s(run.facts.data_until.instant());
    let (id, model, horizon) = (run.id, &run.facts.model, trained.horizon());
    let found = format!("{id}, {model}, {horizon} ahead, learned until {}", ago(age_s));
    let check = if age_s > RUN_WARN_DAYS * SECONDS_PER_DAY {
        Check::warn(label, found, format!("{train}, or set retrain = \"weekly\""))
    } else {
        Check::ok(label, found)
    };
    Ok((check, Some(horizon)))
}
