//! The tables and the JSON of what would have been served.

use super::score::{By, Group, groups};
use super::{PoolReplay, scored_from};
use crate::args::{Backtest, JobsAs, Replay};
use command_line::table;
use datasets::HourRange;
use serde::Serialize;
use std::collections::BTreeMap;
use vocab::{GuaranteeRate, HorizonHours};

/// The answers of a service for one pool, under one model and lateness.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ReplayBody {
    pub model: String,
    pub pool: String,
    pub promise: &'static str,
    pub renewal_s: i64,
    /// How long after its end the usage of an hour was known.
    pub late_s: i64,
    pub restart_every_hours: Option<u8>,
    pub restart_state: &'static str,
    /// Whether demand was known minute by minute.
    pub has_minutes: bool,
    /// Whether HP jobs were known.
    pub has_jobs: bool,
    /// Where none is known: a quarter more than the largest demand.
    pub assumed_capacity_gpus: Option<f64>,
    pub renewals: usize,
    /// Renewals that gave no quota, since usage was too old or missing.
    pub unserved_renewals: usize,
    pub groups: Vec<GroupBody>,
}

/// Scores of some of the samples, for one number of hours.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GroupBody {
    pub hours: u8,
    /// `all`, `hour` (of the day, local) or `restart` (time since the last one).
    pub by: &'static str,
    pub of: String,
    pub samples: usize,
    /// Their peaks were not measured, or reach beyond the window.
    pub unmeasured: usize,
    /// Share of served bounds at or above the peak.
    pub coverage: f64,
    /// 90 % interval over days; of `all` only.
    pub coverage_interval: Option<[f64; 2]>,
    /// Share of GPUs kept, had every inventory been sold whole; none where there was nothing to sell.
    pub kept_rate: Option<f64>,
    pub inventory_gpus: f64,
    pub pinball_gpus: f64,
    /// Of the forecast's own bound at the same times.
    pub forecast_coverage: f64,
    pub forecast_kept_rate: Option<f64>,
    pub forecast_inventory_gpus: f64,
    pub forecast_pinball_gpus: f64,
}

impl ReplayBody {
    pub fn of(model: &str, what: &Backtest, issues: HourRange, rate: GuaranteeRate, replay: &PoolReplay) -> Self {
        let asked: &Replay = &what.replay;
        let groups = groups(&replay.replayed.samples, scored_from(asked, issues), rate);
        Self {
            model: model.to_owned(),
            pool: replay.pool.to_string(),
            promise: asked.promise.as_str(),
            renewal_s: asked.renewal,
            late_s: replay.late_s,
            restart_every_hours: asked.restart_every.map(HorizonHours::get),
            restart_state: asked.restart_state.as_str(),
            has_minutes: !asked.minutes.is_empty() || !asked.jobs.files.is_empty(),
            has_jobs: !asked.jobs.files.is_empty() && asked.jobs_as == JobsAs::Jobs,
            assumed_capacity_gpus: replay.assumed_capacity.map(vocab::MilliGpus::as_gpus),
            renewals: replay.replayed.renewals,
            unserved_renewals: replay.replayed.unserved,
            groups: bodies(&groups),
        }
    }

    fn of_kind<'a>(&'a self, hours: u8, by: &'a str) -> impl Iterator<Item = &'a GroupBody> {
        self.groups.iter().filter(move |one| one.hours == hours && one.by == by)
    }
}

/// Groups of which nothing was measured say nothing, and are left out.
fn bodies(groups: &BTreeMap<(HorizonHours, By), Group>) -> Vec<GroupBody> {
    let body = |((hours, by), group): (&(HorizonHours, By), &Group)| {
        let (served, forecast) = (&group.served, &group.forecast);
        Some(GroupBody {
            hours: hours.get(),
            by: by.as_str(),
            of: by.of(),
            samples: served.samples,
            unmeasured: group.unmeasured,
            coverage: served.coverage()?,
            coverage_interval: (*by == By::All).then(|| group.coverage_interval()),
            kept_rate: served.kept_rate(),
            inventory_gpus: served.inventory_gpus()?,
            pinball_gpus: served.pinball_gpus()?,
            forecast_coverage: forecast.coverage()?,
            forecast_kept_rate: forecast.kept_rate(),
            forecast_inventory_gpus: forecast.inventory_gpus()?,
            forecast_pinball_gpus: forecast.pinball_gpus()?,
        })
    };
    groups.iter().filter_map(body).collect()
}

/// The columns in front of every row.
fn names(body: &ReplayBody, hours: u8) -> Vec<String> {
    let late = format!("{:.1} h", body.late_s as f64 / 3_600.0);
    vec![body.pool.clone(), body.model.clone(), late, format!("{hours}h")]
}

fn share(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.3}"))
}

/// Over all times with the worst local hours, by time since a restart where there was one, and what was not served or scored.
#[must_use]
pub fn tables(replays: &[ReplayBody]) -> String {
    let Some(first) = replays.first() else { return String::new() };
    let restarts = first.restart_every_hours.map_or_else(
        || "never restarted".to_owned(),
        |hours| format!("restarted every {hours} h, what was learned {}", first.restart_state),
    );
    let source = match (first.has_jobs, first.has_minutes) {
        (true, _) => "HP jobs known",
        (false, true) => "demand known by the minute",
        (false, false) => "demand known by the hour",
    };
    let (promise, renewal_s) = (first.promise, first.renewal_s);
    let head = format!("served (promise {promise}, renewed every {renewal_s} s, {restarts}, {source}):\n");
    head + &of_all(replays) + &since_restart(replays) + &left_out(replays)
}

fn of_all(replays: &[ReplayBody]) -> String {
    let header = [
        "pool",
        "model",
        "late",
        "hours",
        "samples",
        "coverage",
        "90ci",
        "worst_hour",
        "kept",
        "worst_hour",
        "inventory",
        "pinball",
        "fc_coverage",
        "fc_kept",
        "fc_inventory",
        "fc_pinball",
    ];
    let row = |body: &ReplayBody, one: &GroupBody| {
        let hours = || body.of_kind(one.hours, "hour");
        let covered = hours().min_by(|a, b| a.coverage.total_cmp(&b.coverage));
        let kept = hours().filter(|one| one.kept_rate.is_some());
        let kept = kept.min_by(|a, b| a.kept_rate.unwrap_or(1.0).total_cmp(&b.kept_rate.unwrap_or(1.0)));
        let [low, high] = one.coverage_interval.unwrap_or_default();
        let at = |value: Option<f64>, of: Option<&GroupBody>| {
            format!("{} at {}", share(value), of.map_or("-", |one| one.of.as_str()))
        };
        let mut cells = names(body, one.hours);
        cells.extend([
            one.samples.to_string(),
            share(Some(one.coverage)),
            format!("[{low:.2}, {high:.2}]"),
            at(covered.map(|one| one.coverage), covered),
            share(one.kept_rate),
            at(kept.and_then(|one| one.kept_rate), kept),
            format!("{:.1}", one.inventory_gpus),
            format!("{:.2}", one.pinball_gpus),
            share(Some(one.forecast_coverage)),
            share(one.forecast_kept_rate),
            format!("{:.1}", one.forecast_inventory_gpus),
            format!("{:.2}", one.forecast_pinball_gpus),
        ]);
        cells
    };
    let all = |body| ReplayBody::of_all(body).map(move |one| row(body, one));
    table(&header, &replays.iter().flat_map(all).collect::<Vec<_>>())
}

impl ReplayBody {
    fn of_all(&self) -> impl Iterator<Item = &GroupBody> {
        self.groups.iter().filter(|one| one.by == "all")
    }
}

fn since_restart(replays: &[ReplayBody]) -> String {
    let of = |body: &ReplayBody, one: &GroupBody| {
        let mut cells = names(body, one.hours);
        cells.extend([
            one.of.clone(),
            one.samples.to_string(),
            share(Some(one.coverage)),
            share(one.kept_rate),
            share(Some(one.forecast_coverage)),
            share(one.forecast_kept_rate),
        ]);
        cells
    };
    let all = |body| move |one| of(body, one);
    let restarts = |body: &'static str| body == "restart";
    let rows: Vec<_> =
        replays.iter().flat_map(|body| body.groups.iter().filter(move |one| restarts(one.by)).map(all(body))).collect();
    if rows.is_empty() {
        return String::new();
    }
    let header =
        ["pool", "model", "late", "hours", "since_restart", "samples", "coverage", "kept", "fc_coverage", "fc_kept"];
    table(&header, &rows)
}

/// Renewals without a quota, times without a peak, capacities that nobody stated.
fn left_out(replays: &[ReplayBody]) -> String {
    let line = |body: &ReplayBody| {
        let unmeasured: usize = body.of_all().map(|one| one.unmeasured).sum();
        let late_h = body.late_s as f64 / 3_600.0;
        let mut text = Vec::new();
        if body.unserved_renewals > 0 {
            let (unserved, renewals) = (body.unserved_renewals, body.renewals);
            text.push(format!("{unserved} of {renewals} renewals gave no quota, since usage was too old or missing"));
        }
        if unmeasured > 0 {
            text.push(format!(
                "{unmeasured} bounds are not scored, since their peak was not measured within the window"
            ));
        }
        if let Some(gpus) = body.assumed_capacity_gpus {
            text.push(format!(
                "no capacity is known, and {gpus:.0} GPUs are assumed, a quarter above the largest demand"
            ));
        }
        let of = format!("{} {}, {late_h:.1} h late", body.pool, body.model);
        (!text.is_empty()).then(|| format!("{of}: {}\n", text.join("; ")))
    };
    replays.iter().filter_map(line).collect()
}
