//! `simulate compare`: policies side by side on one trace, at several guarantee rates and on several draws of its jobs.

use crate::args::{Compare, Config, Trace};
use crate::commands::{CHRONUS, SimulatorError, has_quota, played, settings, warn_of_left_out, world};
use crate::figures::{Row, present};
use crate::files::flat;
use crate::page::Header;
use crate::policies::each_once;
use crate::power::PowerFault;
use crate::spread::Spread;
use crate::world::World;
use command_line::{Progress, print_json, print_text, say, table};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Of the spot jobs in each draw.
const DRAWN_SHARE: f64 = 0.99;

/// `simulate compare`.
///
/// # Errors
/// A policy or rate is none, the trace cannot be read, a run broke off, or the folder cannot be written.
pub fn compare(what: &Compare, config: &Config, json: bool) -> Result<(), SimulatorError> {
    // Wrong arguments are refused before anything runs.
    let mut plans = plans(what, config)?;
    let draws = what.draws.unwrap_or(1);
    let progress = Progress::new("compare", draws * plans.len() as u64);
    let mut header = None;
    for (draw, seed) in (0..draws).map(|draw| (draw, config.seed.wrapping_add(draw))) {
        let config = Config { seed };
        let world = world(&drawn(what), &config)?;
        if draw == 0 {
            warn_of_left_out(&world);
            check(&plans, &world, &config)?;
            header = Some(self::header(what, &world));
        }
        let steps = draw * plans.len() as u64..;
        for (Plan { policy, trace, row }, step) in plans.iter_mut().zip(steps) {
            progress.step(step, row.name.clone());
            let outcome = played(policy, &world, trace, &config)?.1;
            row.runs.push(outcome.summary);
            if draw == 0 {
                row.course = outcome.course;
            }
        }
    }
    progress.done();
    let rows: Vec<Row> = plans.into_iter().map(|plan| plan.row).collect();
    if let (Some(folder), Some(header)) = (&what.out, &header) {
        crate::files::write(folder, &rows, header)?;
    }
    show(&rows, draws > 1 || !what.guarantee_rates.is_empty(), json);
    Ok(())
}

/// A policy at one guarantee rate, and what came of it.
struct Plan {
    /// As it was asked for.
    policy: String,
    trace: Trace,
    row: Row,
}

impl Plan {
    /// `rate` is none where the policy has no quota.
    fn new(policy: &str, rate: Option<f64>, what: &Compare, config: &Config) -> Result<Self, SimulatorError> {
        let guarantee_rate = rate.unwrap_or(what.trace.guarantee_rate);
        let trace = Trace { guarantee_rate, ..what.trace.clone() };
        let shown = if policy == CHRONUS { CHRONUS.to_owned() } else { settings(policy, &trace, config)?.0 };
        let name = match rate {
            Some(rate) if !what.guarantee_rates.is_empty() => format!("{shown}@{rate}"),
            _ => shown.clone(),
        };
        let row = Row { policy: shown, rate, name, runs: Vec::new(), course: Vec::new() };
        Ok(Self { policy: policy.to_owned(), trace, row })
    }
}

/// Each policy with a quota at each rate, and the others once.
fn plans(what: &Compare, config: &Config) -> Result<Vec<Plan>, SimulatorError> {
    let several = &what.guarantee_rates;
    each_once("--guarantee-rates", several).map_err(SimulatorError::Value)?;
    let rates = if several.is_empty() { std::slice::from_ref(&what.trace.guarantee_rate) } else { several };
    let mut plans = Vec::new();
    for policy in &what.policies {
        if !has_quota(policy, &what.trace, config)? {
            plans.push(Plan::new(policy, None, what, config)?);
            continue;
        }
        for rate in rates {
            plans.push(Plan::new(policy, Some(*rate), what, config)?);
        }
    }
    if !several.is_empty() && plans.iter().all(|plan| plan.row.rate.is_none()) {
        let policies = what.policies.join(", ");
        let text =
            format!("--guarantee-rates changes nothing for {policies}: add a policy with a quota, such as gfs:live");
        return Err(SimulatorError::Value(text));
    }
    let names: Vec<&str> = plans.iter().map(|plan| plan.row.name.as_str()).collect();
    each_once("--policies", &names).map_err(SimulatorError::Value)?;
    Ok(plans)
}

/// The power draw of nodes is known where a policy reads it.
fn check(plans: &[Plan], world: &World, config: &Config) -> Result<(), SimulatorError> {
    for plan in plans.iter().filter(|plan| plan.policy != CHRONUS) {
        settings(&plan.policy, &plan.trace, config)?.1.check(world).map_err(PowerFault::from)?;
    }
    Ok(())
}

/// The trace of which each draw is made.
fn drawn(what: &Compare) -> Trace {
    let share = if what.draws.is_some() { DRAWN_SHARE } else { 1.0 };
    Trace { spot_scale: what.trace.spot_scale * share, ..what.trace.clone() }
}

fn header(what: &Compare, world: &World) -> Header {
    let trace = &what.trace;
    let name =
        |path: &std::path::Path| path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    let rates: Vec<String> = match what.guarantee_rates.as_slice() {
        [] => vec![trace.guarantee_rate.to_string()],
        rates => rates.iter().map(f64::to_string).collect(),
    };
    let draws = what.draws.map_or_else(String::new, |draws| {
        format!(
            " Means and deviations over {draws} draws of {} % of the spot jobs; what is shown by the hour is of the first one.",
            100.0 * DRAWN_SHARE
        )
    });
    let how = format!(
        "{} jobs of {} on {} GPUs, pools: {} ({}); jobs left out because no node could ever run them: {}. Spot asks for {} h, comes × {} of \
         the trace, loses what came after its last checkpoint ({} s apart) when evicted, has {} s until its GPUs are free, and needs {} s to \
         restart ({} s above 8 GPUs). What is promised: {}, with p of {}.{draws}",
        world.jobs.len(),
        name(&trace.jobs),
        world.gpus(),
        world.pools.len(),
        name(&trace.nodes),
        world.left_out.len(),
        trace.guarantee_hours.get(),
        trace.spot_scale,
        trace.checkpoint_s,
        trace.grace_s,
        trace.restart_s,
        trace.restart_large_s,
        trace.promise,
        rates.join(", "),
    );
    Header { trace: name(&trace.jobs), how, gpus: world.gpus() }
}

/// Columns whose heads alone do not say what they are.
const EXPLAINED: [&str; 6] = ["HP evicts", "e", "aligned", "Jain", "max-min", "worst slowdown"];

/// Prints rows; where there are many, how long tasks of each size waited is left to the files.
pub fn show(rows: &[Row], is_brief: bool, json: bool) {
    if json {
        let all: BTreeMap<&str, Value> = rows.iter().map(|row| (row.name.as_str(), as_json(row))).collect();
        print_json(&all);
        return;
    }
    let shown: Vec<_> = present(rows).collect();
    let header: Vec<&str> = ["policy"].into_iter().chain(shown.iter().map(|figure| figure.head)).collect();
    let cells = |row: &Row| {
        let cells = shown.iter().map(|figure| row.cell(figure));
        std::iter::once(row.name.clone()).chain(cells).collect::<Vec<_>>()
    };
    print_text(&table(&header, &rows.iter().map(cells).collect::<Vec<_>>()));
    if !is_brief {
        let header = ["policy", "class", "GPUs", "tasks", "queue p50 s", "p99 s", "longest s"];
        print_text(&table(&header, &by_size(rows)));
    }
    let explained: Vec<String> = shown
        .iter()
        .filter(|figure| EXPLAINED.contains(&figure.head))
        .map(|one| format!("{}: {}", one.head, one.meaning))
        .collect();
    say(format_args!(
        "times are means in seconds; broken: of the guarantee periods; 1 − K: of promised GPUs, by Kaplan–Meier survival; long: the same of jobs \
         that take as long as the promise; loaded: of promises that began while jobs came; {}",
        explained.join("; ")
    ));
}

/// The figures of the run; of several draws the mean and deviation of each.
fn as_json(row: &Row) -> Value {
    let rate = row.rate.map(|rate| ("guarantee_rate".to_owned(), Value::from(rate)));
    if let [run] = row.runs.as_slice() {
        let mut figures = serde_json::to_value(run).unwrap_or_default();
        if let Some(figures) = figures.as_object_mut() {
            figures.extend(rate);
        }
        return figures;
    }
    let spread = |spread: Spread| serde_json::to_value(spread).unwrap_or_default();
    let figures: Map<String, Value> = spreads(row).into_iter().map(|(name, of)| (name, spread(of))).collect();
    let draws = ("draws".to_owned(), Value::from(row.runs.len()));
    Value::Object([draws].into_iter().chain(rate).chain([("figures".to_owned(), Value::Object(figures))]).collect())
}

/// Every figure of a summary by its path, such as `queue_by_size.hp.2-4.p99_s`, over the draws that have it.
#[must_use]
pub fn spreads(row: &Row) -> BTreeMap<String, Spread> {
    let mut values: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for run in &row.runs {
        flat("", &serde_json::to_value(run).unwrap_or_default(), &mut |name, value| {
            values.entry(name.to_owned()).or_default().extend(value.as_f64());
        });
    }
    values.into_iter().filter(|(_, of)| !of.is_empty()).map(|(name, of)| (name, Spread::of(&of))).collect()
}

/// How long tasks of each size waited.
fn by_size(rows: &[Row]) -> Vec<Vec<String>> {
    let mut lines = Vec::new();
    for row in rows {
        for (class, sizes) in row.runs.iter().flat_map(|run| &run.queue_by_size) {
            lines.extend(sizes.iter().map(|one| {
                let seconds = [one.p50_s, one.p99_s, one.max_s].map(|seconds| format!("{seconds:.0}"));
                let named = [row.name.clone(), (*class).to_owned(), one.gpus.to_owned(), one.tasks.to_string()];
                named.into_iter().chain(seconds).collect()
            }));
        }
    }
    lines
}
