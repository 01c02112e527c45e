//! What was promised, and what became of it: `GET /v1/promises` and `quota-service promises`.

use crate::access::command::failed;
use crate::args::PromisesFlags;
use crate::clock::Clock;
use crate::refresh::settings;
use command_line::{Exit, Failure, print_json, print_text, say, table};
use placement::kept::{KeptRate, Period, WorstDay};
use serde_json::json;
use std::collections::BTreeMap;
use store::{EndedPeriod, OutcomeCount, Store, StoreError};
use vocab::{GuaranteeRate, HorizonHours, Outcome, OutcomeKind, PoolId, UnixSeconds};
use wire::{BrokenPromise, PromiseDay, PromiseHours, PromiseReport, PromiseWorstDay, TaskDetail};

const DAY_S: i64 = 86_400;
/// Periods that kept rates are made of, the newest: those of a month at 7,000 a day.
const MOST_PERIODS: u32 = 200_000;
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
    let rows: Vec<_> = reports.iter().flat_map(kept_rows).collect();
    print_text(&table(&["pool", "hours", "kept rate", "±", "by period", "worst day", "from", "promised"], &rows));
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
        let (pool, worst) = (format!("{}:{}", report.cluster, report.gpu_model), one.worst_day.as_ref());
        vec![
            pool,
            one.hours.to_string(),
            rate(one.kept_rate),
            rate(one.kept_rate_deviation),
            rate(one.kept_rate_unweighted),
            rate(worst.map(|day| day.kept_rate)),
            worst.map_or_else(|| "-".to_owned(), |day| day.from.clone()),
            rate(Some(report.guarantee_rate)),
        ]
    };
    report.by_hours.iter().map(row).collect()
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
    let ended = store.ended_periods(pool, from, MOST_PERIODS).await?;
    // A month of a busy pool is some tenths of a second of work.
    let by_hours = tokio::task::spawn_blocking(move || by_hours(&ended));
    let by_hours = by_hours.await.map_err(|fault| StoreError::Unavailable { reason: fault.to_string() })?;
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
        by_hours,
        days: (0..i64::from(days)).map(|day| one_day(&counts, from.plus_s(day * DAY_S))).collect(),
        broken_ones,
    })
}

/// By the hours of the promise, each with how often it was kept.
fn by_hours(ended: &[EndedPeriod]) -> Vec<PromiseHours> {
    let mut all: BTreeMap<HorizonHours, Vec<&EndedPeriod>> = BTreeMap::new();
    for one in ended {
        all.entry(one.guarantee_hours).or_default().push(one);
    }
    all.into_iter().map(|(hours, ended)| of_hours(hours, &ended)).collect()
}

fn of_hours(hours: HorizonHours, ended: &[&EndedPeriod]) -> PromiseHours {
    let of_kind = |kind| ended.iter().filter(|one| one.kind == kind).count() as u64;
    let period = |one: &&EndedPeriod| {
        Period::reported(hours, one.ended_at, one.began_at, one.gpus, one.kind == OutcomeKind::Broken)
    };
    let periods: Vec<Period> = ended.iter().map(period).collect();
    let (kept, worst) = (KeptRate::of(&periods, hours), WorstDay::of(&periods, hours));
    PromiseHours {
        hours: hours.get(),
        kept: of_kind(OutcomeKind::Kept),
        broken: of_kind(OutcomeKind::Broken),
        kept_rate: kept.map(|kept| kept.rate),
        kept_rate_deviation: kept.and_then(|kept| kept.deviation),
        kept_rate_unweighted: kept.map(|kept| kept.unweighted),
        worst_day: worst.map(|day| PromiseWorstDay {
            from: day.from.to_string(),
            kept_rate: day.rate,
            periods: day.periods,
        }),
    }
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
