//! Reports to Headroom: hourly usage, states of pools, outcomes of promises.
//!
//! Each replica reports its view: rows replace each other, an outcome counts once under its id, and an older state is not taken.

use crate::client::{Headroom, HeadroomError};
use crate::offers::Offers;
use axum::http::Method;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serving::standing::Standing;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use vocab::{HpJob, MilliGpus, Organization, Outcome, PoolId, PoolState, TaskId, UnixSeconds, UsageRow};
use wire::bounds::MOST_HP_JOBS;
use wire::{
    DemandAnswer, OutcomeBatch, OutcomeBody, OutcomeReceipt, OutcomeResult, OutcomeResultBody, PoolStateBody,
    UsageBatch, UsageReceipt, UsageRowBody,
};

/// Rows or outcomes of one request.
const BATCH: usize = 5_000;
/// Requests for one batch in a row, each without the items that the one before was refused for.
const TRIES: usize = 8;
/// Refused items of one request that are named in the log.
const LOGGED: usize = 20;
/// Age at which unsent reports are dropped: quotas use no older usage, and a database that was down for a week has other
/// problems.
const KEPT_HOURS: i64 = vocab::HOURS_PER_WEEK;
/// Between tries of a program that is stopped.
const LAST_TRIES_EVERY: Duration = Duration::from_secs(1);
/// Organizations that were seen so long ago are known.
const KNOWN_HOURS: i64 = vocab::HOURS_PER_WEEK;

/// A list of reports.
#[derive(Clone, Copy)]
struct List {
    what: &'static str,
    path: &'static str,
    /// Pointer to its items in a body.
    items: &'static str,
}

const USAGE: List = List { what: "usage", path: "/v1/usage", items: "/rows" };
const OUTCOMES: List = List { what: "outcomes", path: "/v1/outcomes", items: "/outcomes" };

/// The HP jobs of a pool, or their number where it is more than a report takes ([`MOST_HP_JOBS`]).
pub type HpJobs = Result<Vec<HpJob>, usize>;

/// The HP jobs of a pool as a report takes them.
///
/// # Errors
/// They are more than that: their number.
pub fn within_a_report(jobs: BTreeMap<TaskId, HpJob>) -> HpJobs {
    if jobs.len() > MOST_HP_JOBS { Err(jobs.len()) } else { Ok(jobs.into_values().collect()) }
}

/// Facts about the cluster that a connector reports.
pub trait Reported: Send + Sync {
    /// Now, by the clock of this machine.
    fn now(&self) -> UnixSeconds;
    /// Lets time pass: promises and hours end.
    fn pass_to(&self, now: UnixSeconds);
    /// The pools.
    fn pools(&self) -> Vec<PoolId>;
    /// Organizations of a pool that Headroom knows: an hour in which they ask for nothing is a zero, not a gap.
    fn know(&self, pool: &PoolId, organizations: Vec<Organization>);
    /// Takes rows of hours that are over, and promises that have ended.
    fn take(&self) -> (Vec<UsageRow>, Vec<Outcome>);
    /// Puts those back that were not accepted.
    fn put_back(&self, rows: Vec<UsageRow>, outcomes: Vec<Outcome>);
    /// States of the pools under their limits, with their HP jobs or the number of these where they are too many for a report; none of
    /// a pool that is not known now.
    fn states(&self, offers: &Offers, now: UnixSeconds) -> Vec<(PoolState, HpJobs)>;
}

/// Reports at an interval, and once more at `stop`: the next program sees only what ends after its own start. `program` begins the names
/// of metrics.
pub async fn run(
    headroom: Headroom,
    reported: Arc<impl Reported>,
    offers: watch::Receiver<Arc<Offers>>,
    program: &'static str,
    every: Duration,
    mut stop: watch::Receiver<bool>,
) {
    let (started, standing, known) = (reported.now(), Standing::new(), BTreeSet::new());
    let mut reporter = Reporter { headroom, reported, offers, program, started, standing, known };
    loop {
        reporter.report().await;
        tokio::select! {
            () = tokio::time::sleep(every) => {}
            _ = stop.wait_for(|stops| *stops) => break,
        }
    }
    // Until all of it is taken: the caller ends it in time.
    while !reporter.report().await {
        tokio::time::sleep(LAST_TRIES_EVERY).await;
    }
}

struct Reporter<R> {
    headroom: Headroom,
    reported: Arc<R>,
    offers: watch::Receiver<Arc<Offers>>,
    program: &'static str,
    /// Outcomes of before may have been reported by an earlier run.
    started: UnixSeconds,
    standing: Standing,
    /// Pools whose organizations Headroom was asked for.
    known: BTreeSet<PoolId>,
}

impl<R: Reported> Reporter<R> {
    /// Answers whether nothing is left that is to be sent again.
    async fn report(&mut self) -> bool {
        let now = self.reported.now();
        self.reported.pass_to(now);
        self.learn().await;
        let (rows, outcomes) = self.reported.take();
        let rows = self.report_rows(rows, now).await;
        let outcomes = self.report_outcomes(outcomes, now).await;
        let waiting = format!("{}_untold", self.program);
        metrics::gauge!(waiting.clone(), "of" => "usage").set(rows.len() as f64);
        metrics::gauge!(waiting, "of" => "outcomes").set(outcomes.len() as f64);
        let is_all = rows.is_empty() && outcomes.is_empty();
        self.reported.put_back(rows, outcomes);
        self.report_states(now).await;
        is_all
    }

    /// Asks once which organizations Headroom knows, so that none falls silent when this program starts again.
    async fn learn(&mut self) {
        for pool in self.reported.pools() {
            if self.known.contains(&pool) {
                continue;
            }
            let path = format!("/v1/demand?{}&hours={KNOWN_HOURS}", query(&pool));
            match self.headroom.get::<DemandAnswer>(&path).await {
                Ok(answer) => {
                    let named =
                        answer.organizations.iter().filter_map(|one| Organization::parse(&one.organization).ok());
                    self.reported.know(&pool, named.filter(|name| !name.is_pool_peak()).collect());
                    self.known.insert(pool);
                }
                // A pool that it does not know has no organizations.
                Err(HeadroomError::Refused { status: 404, .. }) => {
                    self.known.insert(pool);
                }
                Err(_) => {}
            }
        }
    }

    async fn report_rows(&self, mut rows: Vec<UsageRow>, now: UnixSeconds) -> Vec<UsageRow> {
        let before = rows.len();
        rows.retain(|row| now.since_s(row.hour.instant()) < KEPT_HOURS * 3_600);
        self.lost("usage", before - rows.len(), "Headroom did not accept it for a week");
        let mut left = Vec::new();
        for batch in rows.chunks(BATCH) {
            let body = |rows: &[UsageRow]| UsageBatch { rows: rows.iter().map(row_body).collect() };
            let name = |row: &UsageRow| format!("{} at {}", row.series, row.hour);
            left.extend(self.deliver(USAGE, batch, (body, name), |_: &UsageReceipt| {}).await);
        }
        left
    }

    async fn report_outcomes(&self, mut outcomes: Vec<Outcome>, now: UnixSeconds) -> Vec<Outcome> {
        let before = outcomes.len();
        outcomes.retain(|outcome| now.since_s(outcome.ended_at) < KEPT_HOURS * 3_600);
        self.lost("outcomes", before - outcomes.len(), "Headroom did not accept them for a week");
        let mut left = Vec::new();
        for batch in outcomes.chunks(BATCH) {
            let body = |outcomes: &[Outcome]| OutcomeBatch { outcomes: outcomes.iter().map(outcome_body).collect() };
            let name = |outcome: &Outcome| outcome.event_id.to_string();
            let took = |receipt: &OutcomeReceipt| self.note_conflicts(receipt, batch);
            left.extend(self.deliver(OUTCOMES, batch, (body, name), took).await);
        }
        left
    }

    /// Sends a batch; answers what has to be sent again. Of a refusal that names items, these alone are dropped.
    async fn deliver<T: Clone, B: Serialize, A: DeserializeOwned>(
        &self,
        list: List,
        batch: &[T],
        (body, name): (impl Fn(&[T]) -> B, impl Fn(&T) -> String),
        took: impl Fn(&A),
    ) -> Vec<T> {
        let mut rest = batch.to_vec();
        for _ in 0..TRIES {
            let body = body(&rest);
            let went = self.headroom.send::<A>(Method::POST, list.path, &body).await.map(|answer| took(&answer));
            let refused = went.as_ref().err().map(|fault| refused(fault, list.items, rest.len())).unwrap_or_default();
            if refused.is_empty() {
                return if self.noted(list.what, &went, rest.len()) { rest } else { Vec::new() };
            }
            for (index, why) in refused.iter().take(LOGGED) {
                tracing::error!(what = list.what, item = name(&rest[*index]), why, "Headroom refuses a report");
            }
            self.lost(list.what, refused.len(), "Headroom refuses them as invalid; the others are sent again");
            let mut index = 0..;
            rest.retain(|_| index.next().is_none_or(|index| !refused.contains_key(&index)));
            if rest.is_empty() {
                return rest;
            }
        }
        // The others wait for the next report.
        rest
    }

    async fn report_states(&self, now: UnixSeconds) {
        let offers = self.offers.borrow().clone();
        for (state, jobs) in self.reported.states(&offers, now) {
            let jobs = self.reportable(&state.pool, jobs);
            let (pool, body) = (&state.pool, PoolStateBody::from(&state).with_jobs(jobs.as_deref()));
            let path = format!("/v1/pools/{}/state", encoded(&pool.to_string()));
            let went = self.headroom.send::<Value>(Method::PUT, &path, &body).await.map(drop);
            self.standing.note(
                &format!("state/{pool}"),
                &went,
                |fault| tracing::warn!(%pool, %fault, "Headroom does not accept the state of the pool: a message follows when it does"),
                |over| tracing::info!(%pool, lasted_s = over.lasted_s, "Headroom accepts the state of the pool again"),
            );
        }
    }

    /// The HP jobs of a pool, unless they are too many for a report.
    fn reportable(&self, pool: &PoolId, jobs: HpJobs) -> Option<Vec<HpJob>> {
        self.standing.note(
            &format!("jobs/{pool}"),
            &jobs.as_ref().map(drop),
            |jobs| tracing::warn!(%pool, jobs, most = MOST_HP_JOBS, "too many HP jobs to report: the bounds of the pool follow its usage alone"),
            |over| tracing::info!(%pool, lasted_s = over.lasted_s, "the HP jobs of the pool are reported again"),
        );
        jobs.ok()
    }

    /// Logs once of outcomes that another one was stored for their promise before; of many in one answer the first. Those of before the
    /// start are settled: the scheduler's record may have changed since an earlier run reported them, and every start reads it again. Times
    /// are whole seconds, so that of the start may be one of before.
    fn note_conflicts(&self, receipt: &OutcomeReceipt, batch: &[Outcome]) {
        let before = batch.iter().filter(|one| one.ended_at <= self.started).map(|one| one.event_id.as_str());
        let before: BTreeSet<&str> = before.collect();
        let (settled, others): (Vec<&str>, Vec<&str>) = conflicting(receipt).partition(|one| before.contains(one));
        for one in settled.iter().take(LOGGED) {
            tracing::debug!(
                event_id = one,
                conflicts = settled.len(),
                "another outcome of this promise was reported before this program started, and stays"
            );
        }
        let begins = |one: &&str| self.standing.begins(&format!("conflict/{one}"));
        let all: Vec<&str> = others.into_iter().filter(begins).collect();
        for one in all.iter().take(LOGGED) {
            tracing::warn!(
                event_id = one,
                conflicts = all.len(),
                "another outcome of this promise was reported before and stays: compare it with the scheduler's record"
            );
        }
    }

    /// Whether the report has to be sent again.
    fn noted(&self, what: &'static str, went: &Result<(), HeadroomError>, count: usize) -> bool {
        self.standing.note(
            what,
            went,
            |fault| tracing::warn!(what, %fault, "Headroom does not accept the report: it is sent again"),
            |over| tracing::info!(what, lasted_s = over.lasted_s, "Headroom accepts the reports again"),
        );
        let Err(fault) = went else { return false };
        if !fault.is_retryable() {
            self.lost(what, count, "Headroom refuses it as invalid");
        }
        fault.is_retryable()
    }

    fn lost(&self, what: &'static str, count: usize, why: &str) {
        if count > 0 {
            metrics::counter!(format!("{}_lost_total", self.program), "of" => what).increment(count as u64);
            tracing::error!(what, count, why, "reports are dropped");
        }
    }
}

/// Items of a batch that a refusal names, with their faults.
fn refused(fault: &HeadroomError, items: &str, count: usize) -> BTreeMap<usize, String> {
    let HeadroomError::Refused { status: 400 | 422, problem: Some(problem), .. } = fault else {
        return BTreeMap::new();
    };
    let mut named = BTreeMap::new();
    for error in &problem.errors {
        let of_item = error.pointer.strip_prefix(items).and_then(|rest| rest.strip_prefix('/'));
        let index = of_item.and_then(|rest| rest.split('/').next()?.parse::<usize>().ok());
        if let Some(index) = index.filter(|index| *index < count) {
            named.entry(index).or_insert_with(|| error.detail.clone());
        }
    }
    named
}

/// Outcomes that contradict what is stored.
fn conflicting(receipt: &OutcomeReceipt) -> impl Iterator<Item = &str> {
    let is_other = |one: &&OutcomeResult| one.result == OutcomeResultBody::Conflicting;
    receipt.outcomes.iter().filter(is_other).map(|one| one.event_id.as_str())
}

fn row_body(row: &UsageRow) -> UsageRowBody {
    UsageRowBody {
        hour: row.hour.instant().to_string(),
        cluster: row.series.pool.cluster.to_string(),
        gpu_model: row.series.pool.gpu_model.to_string(),
        organization: row.series.organization.to_string(),
        demand_gpus: row.demand.as_gpus(),
        demand_at_end_gpus: row.at_end.map(vocab::MilliGpus::as_gpus),
    }
}

fn outcome_body(outcome: &Outcome) -> OutcomeBody {
    OutcomeBody {
        event_id: outcome.event_id.to_string(),
        cluster: outcome.pool.cluster.to_string(),
        gpu_model: outcome.pool.gpu_model.to_string(),
        guarantee_hours: u64::from(outcome.guarantee_hours.get()),
        kind: outcome.kind.into(),
        ended_at: outcome.ended_at.to_string(),
        began_at: outcome.began_at.as_ref().map(ToString::to_string),
        gpus: outcome.gpus.map(MilliGpus::as_gpus),
        task: outcome.task.as_ref().map(ToString::to_string),
        node: outcome.node.as_ref().map(ToString::to_string),
    }
}

fn query(pool: &PoolId) -> String {
    format!("cluster={}&gpu_model={}", encoded(pool.cluster.as_str()), encoded(pool.gpu_model.as_str()))
}

/// For a path or a query: all but letters, digits and a few others as `%XX`.
#[must_use]
pub fn encoded(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let one = |byte: u8| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    text.bytes().map(one).collect()
}

#[cfg(test)]
mod tests;
