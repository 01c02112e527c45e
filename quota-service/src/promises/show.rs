//! `quota-service promises`.

use super::{Present, report};
use crate::access::command::failed;
use crate::args::PromisesFlags;
use crate::clock::Clock;
use crate::settings;
use command_line::{Exit, Failure, print_json, print_text, say, table};
use placement::evidence::Evidence;
use serde_json::json;
use store::Store;
use vocab::PoolId;
use wire::{PromiseHours, PromiseReport};

/// Prints the promises of one pool, or of every one that has had any.
///
/// # Errors
/// The database does not answer, or the pool is unknown.
pub async fn show(flags: &PromisesFlags, database: &str, json: bool) -> Result<(), Failure> {
    let store = store::connect_existing(database).await.map_err(failed)?;
    let now = Clock::real().now();
    let mut reports = Vec::new();
    for pool in pools(store.as_ref(), flags.pool.as_ref()).await? {
        let rate = settings::load(store.as_ref(), &pool).await.map_err(failed)?.pool.guarantee_rate;
        let report = report(store.as_ref(), &pool, rate, flags.days, now, Present::default()).await.map_err(failed)?;
        if report.sold > 0 || flags.pool.is_some() {
            reports.push(report);
        }
    }
    store.close().await;
    if json {
        print_json(&json!({ "promises": reports }));
        return Ok(());
    }
    if reports.is_empty() {
        say(format_args!("no promise has ended in the last {} days", flags.days));
        return Ok(());
    }
    let rate = |rate: Option<f64>| rate.map_or_else(|| "-".to_owned(), |rate| format!("{rate:.4}"));
    let row = |one: &PromiseReport| {
        let numbers = [one.sold, one.kept, one.broken, one.sold - one.kept - one.broken].map(|n| n.to_string());
        let [sold, kept, broken, other] = numbers;
        let (pool, target) = (format!("{}:{}", one.cluster, one.gpu_model), format!("{:.4}", one.target_eviction_rate));
        vec![pool, sold, kept, broken, other, rate(one.guarantee_eviction_rate), target]
    };
    let rows: Vec<_> = reports.iter().map(row).collect();
    print_text(&table(&["pool", "ended", "kept", "broken", "other", "e", "target"], &rows));
    let rows: Vec<_> = reports.iter().flat_map(kept_rows).collect();
    let names =
        ["pool", "hours", "kept rate", "±", "by period", "7 days", "worst 24 h", "worst 7 days", "e", "promised"];
    print_text(&table(&names, &rows));
    for (report, one) in reports.iter().flat_map(|report| report.by_hours.iter().map(move |one| (report, one))) {
        if let Some(words) = failing(report, one) {
            say(words);
        }
    }
    for one in reports.iter().flat_map(|report| &report.broken_ones) {
        let task = one.task.as_deref().unwrap_or(&one.event_id);
        say(format_args!("{} broke {} h of {task}: {}", one.ended_at, one.hours, one.why));
    }
    Ok(())
}

/// How often the promises of each number of hours were kept.
fn kept_rows(report: &PromiseReport) -> Vec<Vec<String>> {
    let rate = |rate: Option<f64>| rate.map_or_else(|| "-".to_owned(), |rate| format!("{rate:.4}"));
    let row = |one: &PromiseHours| {
        vec![
            format!("{}:{}", report.cluster, report.gpu_model),
            one.hours.to_string(),
            rate(one.kept_rate),
            rate(one.kept_rate_deviation),
            rate(one.kept_rate_unweighted),
            rate(one.last_7_days.as_ref().map(|week| week.kept_rate)),
            rate(one.worst_day.as_ref().map(|day| day.kept_rate)),
            rate(one.worst_week.as_ref().map(|week| week.kept_rate)),
            one.e_value.map_or_else(|| "-".to_owned(), |value| format!("{value:.2}")),
            rate(Some(report.guarantee_rate)),
        ]
    };
    report.by_hours.iter().map(row).collect()
}

/// That the promise of so many hours fails, where chance does not explain what was broken.
fn failing(report: &PromiseReport, one: &PromiseHours) -> Option<String> {
    let value = one.e_value.filter(|value| *value >= Evidence::ALARM)?;
    let since = one.e_value_since.as_deref().unwrap_or("the last weeks");
    Some(format!(
        "{}:{}: the promise of {} h fails since {since} (e = {value:.0}): more is broken than {} allows and chance explains",
        report.cluster, report.gpu_model, one.hours, report.guarantee_rate,
    ))
}

/// The pool that is asked for, or all with outcomes or quotas.
async fn pools(store: &dyn Store, asked: Option<&PoolId>) -> Result<Vec<PoolId>, Failure> {
    let mut known = std::collections::BTreeSet::new();
    for cluster in store.clusters().await.map_err(failed)? {
        known.extend(store.capacities(&cluster.name).await.map_err(failed)?.into_iter().map(|row| row.pool));
        known.extend(store.nodes(&cluster.name).await.map_err(failed)?.into_iter().map(|node| node.pool));
        let series = store.describe_usage(&cluster.name).await.map_err(failed)?;
        known.extend(series.into_iter().map(|one| one.series.pool));
    }
    match asked {
        None => Ok(known.into_iter().collect()),
        Some(pool) if known.contains(pool) => Ok(vec![pool.clone()]),
        Some(pool) => {
            let known: Vec<_> = known.iter().map(ToString::to_string).collect();
            let what = format!("there is no pool {pool}; there are: {}", known.join(", "));
            Err(Failure::new(Exit::Usage, what))
        }
    }
}
