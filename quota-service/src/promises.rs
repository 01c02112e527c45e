//! What was promised, and what became of it: `GET /v1/promises` and `quota-service promises`.

use std::collections::BTreeMap;
use store::{OutcomeCount, Store, StoreError};
use vocab::{GuaranteeRate, HorizonHours, Outcome, OutcomeKind, PoolId, UnixSeconds};
use wire::{BrokenPromise, PromiseDay, PromiseHours, PromiseReport, TaskDetail};

const DAY_S: i64 = 86_400;
/// Broken promises that are told one by one.
const TOLD: u32 = 50;

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
