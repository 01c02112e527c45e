//! What was promised, and what became of it: `GET /v1/promises` and `quota-service promises`.

use crate::access::command::failed;
use crate::args::PromisesFlags;
use crate::clock::Clock;
use crate::refresh::settings;
use command_line::{Exit, Failure, print_json, print_text, say, table};
use serde_json::json;
use std::collections::BTreeMap;
use store::{OutcomeCount, Store, StoreError};
use vocab::{GuaranteeRate, HorizonHours, Outcome, OutcomeKind, PoolId, UnixSeconds};
use wire::{BrokenPromise, PromiseDay, PromiseHours, PromiseReport, TaskDetail};

const DAY_S: i64 = 86_400;
/// Broken promises that are told one by one.
const TOLD: u32 = 50;

/// Prints the promises of one pool, or of every one that has had any.
///
/// # Errors
/// The database does not answer, or the pool is unknown.
pub async fn show(flags: &PromisesFlags, database: &str, json: bool) -> Result<(), Failure> {
    let store = store::connect(database).await.map_err(failed)?;
    let now = Clock::real().now();
    let mut reports = Vec::new();
    for pool in pools(store.as_ref(), flags.pool.as_ref()).await? {
        let rate = settings(store.as_ref(), &pool).await.map_err(failed)?.pool.guarantee_rate;
        let report = report(store.as_ref(), &pool, rate, flags.days, now, None).await.map_err(failed)?;
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
    for one in reports.iter().flat_map(|report| &report.broken_ones) {
        let task = one.task.as_deref().unwrap_or(&one.event_id);
        say(format_args!("{} broke {} h of {task}: {}", one.ended_at, one.hours, one.why));
    }
    Ok(())
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

/// The promises of a pool that ended in the last `days` days of UTC, the present one included. `rate` is p, `open` how many
/// run now, where that is known.
///
/// # Errors
/// The database does not answer.
pub async fn report(
    store: &dyn Store,
    pool: &PoolId,
    rate: GuaranteeRate,
    days: u32,
    now: UnixSeconds,
    open: Option<u64>,
) -> Result<PromiseReport, StoreError> {
    let today = UnixSeconds::new(now.get().div_euclid(DAY_S) * DAY_S);
    let from = today.plus_s(-DAY_S * (i64::from(days) - 1));
    let counts = store.outcomes_by_day(pool, from).await?;
    let broken = store.outcomes_of_kind(pool, OutcomeKind::Broken, from, TOLD).await?;
    let mut broken_ones = Vec::with_capacity(broken.len());
    for outcome in &broken {
        broken_ones.push(told(outcome, why(store, outcome).await?));
    }
    let sum =
        |is: &dyn Fn(&OutcomeCount) -> bool| counts.iter().filter(|one| is(one)).map(|one| one.count).sum::<u64>();
    let of_kind = |kind| sum(&move |one| one.kind == kind);
    let (kept, broken) = (of_kind(OutcomeKind::Kept), of_kind(OutcomeKind::Broken));
    let judged = kept + broken;
    Ok(PromiseReport {
        cluster: pool.cluster.to_string(),
        gpu_model: pool.gpu_model.to_string(),
        from: from.to_string(),
        to: now.to_string(),
        guarantee_rate: rate.as_f64(),
        target_eviction_rate: f64::from(rate.target_eviction_ppm()) / 1e6,
        sold: sum(&|_| true) + open.unwrap_or(0),
        kept,
        broken,
        open,
        guarantee_eviction_rate: (judged > 0).then(|| broken as f64 / judged as f64),
        by_kind: OutcomeKind::ALL.map(|kind| (kind.as_str().to_owned(), of_kind(kind))).into(),
        by_hours: by_hours(&counts),
        days: (0..i64::from(days)).map(|day| one_day(&counts, from.plus_s(day * DAY_S))).collect(),
        broken_ones,
    })
}

fn by_hours(counts: &[OutcomeCount]) -> Vec<PromiseHours> {
    let mut all: BTreeMap<HorizonHours, PromiseHours> = BTreeMap::new();
    for one in counts {
        let hours = one.guarantee_hours;
        let of = all.entry(hours).or_insert(PromiseHours { hours: hours.get(), kept: 0, broken: 0 });
        match one.kind {
            OutcomeKind::Kept => of.kept += one.count,
            OutcomeKind::Broken => of.broken += one.count,
            OutcomeKind::NodeFailure | OutcomeKind::Drain | OutcomeKind::UserDeleted => {}
        }
    }
    all.into_values().collect()
}

fn one_day(counts: &[OutcomeCount], day: UnixSeconds) -> PromiseDay {
    let text = day.to_string();
    let date = text.split_once('T').map_or(text.as_str(), |(date, _)| date).to_owned();
    let mut told = PromiseDay { day: date, kept: 0, broken: 0, other: 0 };
    for one in counts.iter().filter(|one| one.day == day) {
        match one.kind {
            OutcomeKind::Kept => told.kept += one.count,
            OutcomeKind::Broken => told.broken += one.count,
            OutcomeKind::NodeFailure | OutcomeKind::Drain | OutcomeKind::UserDeleted => told.other += one.count,
        }
    }
    told
}

fn told(outcome: &Outcome, why: String) -> BrokenPromise {
    BrokenPromise {
        event_id: outcome.event_id.to_string(),
        ended_at: outcome.ended_at.to_string(),
        hours: outcome.guarantee_hours.get(),
        task: outcome.task.as_ref().map(ToString::to_string),
        node: outcome.node.as_ref().map(ToString::to_string),
        why,
    }
}

/// Who took its GPUs, as long as the task remembers: until its next run.
async fn why(store: &dyn Store, outcome: &Outcome) -> Result<String, StoreError> {
    let record = match &outcome.task {
        Some(task) => store.task_record(&outcome.pool, task).await?,
        None => None,
    };
    let detail = record.and_then(|record| serde_json::from_str::<TaskDetail>(&record.detail_json).ok());
    let cut = detail.and_then(|detail| detail.cut).filter(|cut| cut.at == outcome.ended_at.to_string());
    Ok(cut.map_or_else(
        || "HP demand evicted it inside its guarantee".to_owned(),
        |cut| format!("HP task {} took its GPUs inside its guarantee", cut.by),
    ))
}
