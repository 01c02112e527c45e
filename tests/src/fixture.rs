//! Values written as text, for tests only: what cannot be read is a mistake in the test, and panics.

use chrono::NaiveDateTime;
use std::fmt::Write;
use store::{Cluster, OutcomeId, Store};
use vocab::{
    CapacityRow, ClusterName, EventId, HorizonHours, HourDemand, HourStart, MilliGpus, Organization, Outcome,
    OutcomeKind, PoolId, SeriesId, UnixSeconds, UsageRow,
};

/// # Panics
/// The text is no name.
#[must_use]
pub fn cluster(name: &str) -> ClusterName {
    ClusterName::parse(name).expect("a cluster")
}

/// # Panics
/// The text is not `CLUSTER:GPU_MODEL`.
#[must_use]
pub fn pool(text: &str) -> PoolId {
    PoolId::parse(text).expect("a pool")
}

/// # Panics
/// The text is not `CLUSTER:GPU_MODEL:ORGANIZATION`.
#[must_use]
pub fn series(text: &str) -> SeriesId {
    let (pool, organization) = text.rsplit_once(':').expect("CLUSTER:GPU_MODEL:ORGANIZATION");
    SeriesId { pool: self::pool(pool), organization: Organization::parse(organization).expect("an organization") }
}

/// # Panics
/// The text is not `2024-02-29T23`.
#[must_use]
pub fn hour(text: &str) -> HourStart {
    let instant = NaiveDateTime::parse_from_str(&format!("{text}:00"), "%Y-%m-%dT%H:%M").expect("2024-02-29T23");
    HourStart::from_unix_s(instant.and_utc().timestamp()).expect("an hour after 1970")
}

/// # Panics
/// The text is no decimal.
#[must_use]
pub fn gpus(text: &str) -> MilliGpus {
    MilliGpus::parse(text).expect("an amount")
}

#[must_use]
pub fn at(unix_s: i64) -> UnixSeconds {
    UnixSeconds::new(unix_s)
}

/// # Panics
/// Not 1 to 168.
#[must_use]
pub fn hours(hours: u64) -> HorizonHours {
    HorizonHours::new(hours).expect("1 to 168 hours")
}

/// Lines of `CLUSTER:GPU_MODEL:ORGANIZATION HOUR GPUS`; `5>3` GPUs fell to 3 by the end of the hour.
///
/// # Panics
/// A line is not that.
#[must_use]
pub fn usage(text: &str) -> Vec<UsageRow> {
    let row = |[series, hour, demand]: [&str; 3]| {
        let (peak, at_end) = demand.split_once('>').map_or((demand, None), |(peak, at_end)| (peak, Some(gpus(at_end))));
        HourDemand { peak: gpus(peak), at_end }.row(self::series(series), self::hour(hour))
    };
    lines(text).map(row).collect()
}

/// Lines of `CLUSTER:GPU_MODEL HOUR GPUS`.
///
/// # Panics
/// A line is not that.
#[must_use]
pub fn capacity(text: &str) -> Vec<CapacityRow> {
    let row = |[pool, from, capacity]: [&str; 3]| CapacityRow {
        pool: self::pool(pool),
        from: hour(from),
        capacity: gpus(capacity),
    };
    lines(text).map(row).collect()
}

/// Lines of `EVENT CLUSTER:GPU_MODEL KIND`; each ends one second after the one before it, beginning at `ended_at`.
///
/// # Panics
/// A line is not that.
#[must_use]
pub fn outcomes(text: &str, ended_at: i64) -> Vec<Outcome> {
    let outcome = |([event, pool, kind], second): ([&str; 3], i64)| Outcome {
        event_id: EventId::parse(event).expect("an event id"),
        pool: self::pool(pool),
        guarantee_hours: HorizonHours::ONE,
        kind: OutcomeKind::parse(kind).expect("kept, broken, …"),
        ended_at: at(ended_at + second),
        began_at: None,
        gpus: None,
        task: None,
        node: None,
    };
    lines(text).zip(0..).map(outcome).collect()
}

fn lines(text: &str) -> impl Iterator<Item = [&str; 3]> {
    let words = |line| str::split_whitespace(line).collect::<Vec<_>>().try_into().expect("three words in a line");
    text.lines().map(str::trim).filter(|line| !line.is_empty()).map(words)
}

/// # Panics
/// The store refuses.
pub async fn put_clusters(store: &dyn Store, names: &[&str]) {
    for name in names {
        let cluster =
            Cluster { name: cluster(name), time_zone: "Asia/Shanghai".to_owned(), calendar: "weekdays".to_owned() };
        store.put_cluster(&cluster).await.expect("a cluster is put");
    }
}

/// The rows that the store hands out between two hours, as lines of [`usage`].
///
/// # Panics
/// The store refuses.
pub async fn loaded(store: &dyn Store, name: &str, from: &str, to: &str) -> String {
    let mut text = String::new();
    let mut line = |series: &SeriesId, hour: HourStart, demand: HourDemand| {
        let fallen = demand.at_end.filter(|at_end| *at_end != demand.peak);
        let (hour, at_end) = (hour.to_string(), fallen.map(|at_end| format!(">{at_end}")).unwrap_or_default());
        writeln!(text, "{series} {} {}{at_end}", &hour[..13], demand.peak).expect("a String takes any text");
    };
    store.load_usage(&cluster(name), hour(from), hour(to), &mut line).await.expect("usage is loaded");
    text
}

/// The outcomes of a pool that may still move eta, in the order in which they ended.
///
/// # Panics
/// The database does not answer.
pub async fn unspent_ids(store: &dyn Store, of: &str) -> Vec<OutcomeId> {
    let outcomes = store.eta_outcomes(&pool(of), at(0), 0).await.expect("the database answers");
    outcomes.unspent.iter().rev().map(|one| one.id).collect()
}
