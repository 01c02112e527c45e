//! Promises and their outcomes: `GET /v1/promises`, `quota-service promises` and metrics.

pub mod kept;
mod show;
mod watch;

pub use kept::Lately;
pub use show::show;
pub use watch::{look, run};

use crate::published::PublishedPool;
use forecaster::watched::{Extreme, Fared, Served};
use kept::{HoursKept, KNOWN_DAYS, MOST_PERIODS};
use placement::evidence::Evidence;
use placement::kept::{KeptRate, Worst};
use std::collections::BTreeMap;
use store::{EndedPeriod, OutcomeCount, Store, StoreError};
use vocab::{GuaranteeRate, HorizonHours, MilliGpus, Outcome, OutcomeKind, PoolId, UnixSeconds};
use wire::{
    BrokenPromise, PromiseDay, PromiseHours, PromiseKept, PromiseReport, PromiseServed, PromiseWorst, ServedBounds,
    ServedExtreme, TaskDetail,
};

const DAY_S: i64 = vocab::SECONDS_PER_DAY;
/// Most broken promises in a report.
const LISTED: u32 = 50;

/// Present promises of a pool, beside the ended ones.
#[derive(Debug, Default)]
pub struct Present {
    /// How many run now.
    open: Option<u64>,
    /// GPUs that spot holds under guarantees of at least so many hours.
    sold: BTreeMap<HorizonHours, MilliGpus>,
    served: Vec<Served>,
}

impl Present {
    #[must_use]
    pub fn of(pool: &PublishedPool) -> Self {
        let sold = pool.answers.iter().filter_map(|answer| {
            let hours = HorizonHours::new(u64::from(answer.hours())).ok()?;
            Some((hours, answer.held.spot))
        });
        Self {
            open: pool.glance.tasks.map(|tasks| tasks.promised),
            sold: sold.collect(),
            served: pool.made_of.as_ref().map(|made_of| made_of.served.clone()).unwrap_or_default(),
        }
    }
}

/// The promises of a pool that ended in the last `days` days of UTC, the present one included. `rate` is p.
///
/// # Errors
/// The database does not answer.
pub async fn report(
    store: &dyn Store,
    pool: &PoolId,
    rate: GuaranteeRate,
    days: u32,
    now: UnixSeconds,
    present: Present,
) -> Result<PromiseReport, StoreError> {
    let today = UnixSeconds::new(now.get().div_euclid(DAY_S) * DAY_S);
    let from = today.plus_s(-DAY_S * (i64::from(days) - 1));
    let counts = store.outcomes_by_day(pool, from).await?;
    // The evidence covers the last weeks for every number of days.
    let known_from = from.min(now.plus_s(-KNOWN_DAYS * DAY_S));
    let ended = store.ended_periods(pool, known_from, MOST_PERIODS).await?;
    let open = present.open;
    // A month of a busy pool is some tenths of a second of work.
    let by_hours = tokio::task::spawn_blocking(move || {
        let complete_from = kept::known_from(&ended, known_from);
        let known = Known { ended: &ended, complete_from, rate, from, now };
        known.by_hours(&present)
    });
    let by_hours = by_hours.await.map_err(|fault| StoreError::Unavailable { reason: fault.to_string() })?;
    let broken = store.outcomes_of_kind(pool, OutcomeKind::Broken, from, LISTED).await?;
    let mut broken_ones = Vec::with_capacity(broken.len());
    for outcome in &broken {
        broken_ones.push(broken_promise(outcome, why(store, outcome).await?));
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

/// Periods that have ended, and what is asked of them.
struct Known<'a> {
    ended: &'a [EndedPeriod],
    /// Since when all of them are there.
    complete_from: UnixSeconds,
    rate: GuaranteeRate,
    /// The first day that is asked for.
    from: UnixSeconds,
    now: UnixSeconds,
}

impl Known<'_> {
    /// By the hours of the promise, each with how often it was kept.
    fn by_hours(&self, present: &Present) -> Vec<PromiseHours> {
        let mut all = kept::by_hours(self.ended);
        // Hours whose last promise ended before the days that are asked for have nothing to say, unless they are offered now.
        all.retain(|hours, ended| ended.is_since(self.from) || present.sold.contains_key(hours));
        for hours in present.sold.keys().copied().chain(present.served.iter().map(|one| one.hours)) {
            all.entry(hours).or_insert_with(|| HoursKept::none(hours));
        }
        all.values().map(|ended| self.of_hours(ended, present)).collect()
    }

    fn of_hours(&self, ended: &HoursKept, present: &Present) -> PromiseHours {
        let hours = ended.hours;
        let asked = ended.since(self.from);
        let kept = KeptRate::of(&asked, hours);
        let evidence = Evidence::of(&ended.periods(), hours, self.rate, self.complete_from, self.now);
        let worst = |one: Worst| PromiseWorst { from: one.from.to_string(), kept_rate: one.rate, periods: one.periods };
        let served = present.served.iter().find(|one| one.hours == hours);
        PromiseHours {
            hours: hours.get(),
            kept: ended.count(OutcomeKind::Kept, self.from),
            broken: ended.count(OutcomeKind::Broken, self.from),
            sold_gpus: present.sold.get(&hours).map(|gpus| gpus.as_gpus()),
            kept_rate: kept.map(|kept| kept.rate),
            kept_rate_deviation: kept.and_then(|kept| kept.deviation),
            kept_rate_unweighted: kept.map(|kept| kept.unweighted),
            last_7_days: KeptRate::of(&ended.since(self.now.plus_s(-7 * DAY_S)), hours).map(kept_of),
            worst_day: Worst::day(&asked, hours).map(worst),
            worst_week: Worst::week(&asked, hours).map(worst),
            e_value: evidence.map(|found| found.e_value),
            e_value_since: evidence.and_then(|found| found.since).map(|since| since.to_string()),
            served: served.map(served_of),
        }
    }
}

fn kept_of(kept: KeptRate) -> PromiseKept {
    let KeptRate { rate, deviation, periods, broken, .. } = kept;
    PromiseKept { kept_rate: rate, kept_rate_deviation: deviation, periods, broken }
}

fn served_of(served: &Served) -> PromiseServed {
    let bounds = |fared: &Fared| ServedBounds {
        looks: fared.looks,
        coverage: fared.coverage(),
        broken_share: fared.broken_share(),
    };
    let extreme = |one: Option<Extreme>| one.map(|one| ServedExtreme { from: one.from.to_string(), value: one.value });
    PromiseServed {
        last_24_hours: bounds(&served.day),
        last_7_days: bounds(&served.week),
        last_28_days: bounds(&served.month),
        least_covered_day: extreme(served.least_covered_day),
        least_covered_week: extreme(served.least_covered_week),
        most_broken_day: extreme(served.most_broken_day),
        most_broken_week: extreme(served.most_broken_week),
    }
}

fn one_day(counts: &[OutcomeCount], day: UnixSeconds) -> PromiseDay {
    let text = day.to_string();
    let date = text.split_once('T').map_or(text.as_str(), |(date, _)| date).to_owned();
    let mut sums = PromiseDay { day: date, kept: 0, broken: 0, other: 0 };
    for one in counts.iter().filter(|one| one.day == day) {
        match one.kind {
            OutcomeKind::Kept => sums.kept += one.count,
            OutcomeKind::Broken => sums.broken += one.count,
            OutcomeKind::NodeFailure | OutcomeKind::Drain | OutcomeKind::UserDeleted => sums.other += one.count,
        }
    }
    sums
}

fn broken_promise(outcome: &Outcome, why: String) -> BrokenPromise {
    BrokenPromise {
        event_id: outcome.event_id.to_string(),
        ended_at: outcome.ended_at.to_string(),
        hours: outcome.guarantee_hours.get(),
        task: outcome.task.as_ref().map(ToString::to_string),
        node: outcome.node.as_ref().map(ToString::to_string),
        why,
    }
}

/// Task that took its GPUs, as long as the record has it: until its next run.
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
