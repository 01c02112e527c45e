//! What the program does.

use crate::args::{Arguments, Compare, Config, Saturated, Trace};
use crate::inflate::InflateError;
use crate::layout::Layout;
use crate::page::Told;
use crate::power::PowerFault;
use crate::predictor::{Plan, PredictorKind};
use crate::quota::QuotaSettings;
use crate::run::{Losses, Outcome, RunError, Settings, run};
use crate::saturated;
use crate::stretch::Stretch;
use crate::tally::Summary;
use crate::world::{Shape, World, WorldError};
use command_line::{Exit, Failure, print_json, print_text, say, table};
use datasets::Calendar;
use datasets::read::ReadOptions;
use forecaster::ModelKind;
use forecaster::bound::Aggregation;
use placement::pool::PoolRules;
use placement::{Policy, PoolSettings, Promise};
use std::collections::BTreeMap;
use std::sync::Arc;
use vocab::{GuaranteeRate, HorizonHours};

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
pub enum SimulatorError {
    #[error(transparent)]
    World(#[from] WorldError),
    #[error(transparent)]
    Run(#[from] RunError),
    #[error("{name:?} is no policy; there are {}, {CHRONUS}", Policy::IDS.join(", "))]
    NoPolicy { name: String },
    #[error(transparent)]
    PolicyFile(#[from] command_line::ConfigError),
    #[error("{}{}: {}", file.display(), key(fault), fault.detail)]
    Policy { file: std::path::PathBuf, fault: wire::FieldFault },
    #[error(transparent)]
    Inflate(#[from] InflateError),
    #[error(transparent)]
    Power(#[from] PowerFault),
    #[error("{0}")]
    Predictor(String),
    #[error("{}: {detail}: write what GET /v1/pools/{{id}}/snapshot answers", file.display())]
    Snapshot { file: std::path::PathBuf, detail: String },
    #[error("--nodes and --jobs name the trace that is to be replayed, --snapshot a live pool")]
    NoTrace,
    #[error("{0}")]
    Value(String),
    #[error("{}: {fault}", file.display())]
    Write { file: std::path::PathBuf, fault: std::io::Error },
}

/// A JSON pointer as a key of TOML.
fn key(fault: &wire::FieldFault) -> String {
    let key = fault.pointer.trim_start_matches('/').replace('/', ".");
    if key.is_empty() { key } else { format!(", key {key}") }
}

impl From<SimulatorError> for Failure {
    fn from(fault: SimulatorError) -> Self {
        let exit = match &fault {
            SimulatorError::World(WorldError::Read(_) | WorldError::Node(_) | WorldError::Topology(_))
            | SimulatorError::Inflate(
                InflateError::Read(_) | InflateError::Node(_) | InflateError::Power(PowerFault::Read(_)),
            )
            | SimulatorError::Power(PowerFault::Read(_))
            | SimulatorError::Snapshot { .. } => Exit::DataInvalid,
            SimulatorError::PolicyFile(_) | SimulatorError::Policy { .. } => Exit::ConfigInvalid,
            SimulatorError::Run(_) | SimulatorError::Write { .. } => Exit::Failure,
            _ => Exit::Usage,
        };
        Self::new(exit, fault)
    }
}

/// `simulate`.
///
/// # Errors
/// The trace cannot be read or the run broke off.
pub fn one(arguments: &Arguments, config: &Config, json: bool) -> Result<(), SimulatorError> {
    if let Some(file) = &arguments.snapshot {
        let (name, policy) = crate::policies::named(&arguments.policy)?;
        return crate::replay::replay(file, &name, policy.seeded(config.seed), json);
    }
    let trace = arguments.trace.as_ref().ok_or(SimulatorError::NoTrace)?;
    let world = world(trace, config)?;
    let named = [played(&arguments.policy, &world, trace, config)?];
    show(&named, json);
    Ok(())
}

/// `simulate compare`.
///
/// # Errors
/// The trace cannot be read, a run broke off, or the folder cannot be written.
pub fn compare(what: &Compare, config: &Config, json: bool) -> Result<(), SimulatorError> {
    let world = world(&what.trace, config)?;
    // A name that is wrong is told before anything runs.
    for name in what.policies.iter().filter(|name| *name != CHRONUS) {
        settings(name, &what.trace, config)?.1.check(&world).map_err(PowerFault::from)?;
    }
    let mut named = Vec::new();
    for name in &what.policies {
        named.push(played(name, &world, &what.trace, config)?);
    }
    if let Some(folder) = &what.out {
        crate::files::write(folder, &named, &told(&what.trace, &world))?;
    }
    show(&named, json);
    Ok(())
}

/// `simulate topology`.
///
/// # Errors
/// The topology is not of 8 GPUs.
pub fn topology(what: &Saturated, config: &Config, json: bool) -> Result<(), SimulatorError> {
    let scale = saturated::Scale {
        cycles: what.cycles,
        preemptions: what.preemptions,
        share_of_b: what.share_of_b,
        fill: what.fill,
        seed: config.seed,
        topology: Arc::new(what.topology.clone()),
    };
    saturated::show(&saturated::run(&scale).map_err(WorldError::from)?, json);
    Ok(())
}

/// Leases are no rule of a pool: they have a run of their own.
const CHRONUS: &str = "chronus";

/// What is shown as its name, and how it went.
fn played(name: &str, world: &World, trace: &Trace, config: &Config) -> Result<(String, Outcome), SimulatorError> {
    if name == CHRONUS {
        return Ok((name.to_owned(), crate::chronus::run(world)?));
    }
    let (shown, settings) = settings(name, trace, config)?;
    settings.check(world).map_err(PowerFault::from)?;
    Ok((shown, run(world, &settings)?))
}

fn told(trace: &Trace, world: &World) -> Told {
    let name =
        |path: &std::path::Path| path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    let how = format!(
        "{} jobs of {} on {} GPUs, pools: {} ({}); jobs left out because no node could ever run them: {}. Spot asks for {} h, comes × {} of \
         the trace, loses what came after its last checkpoint ({} s apart) when evicted, and needs {} s to restart ({} s above 8 GPUs). Guarantee rate {}.",
        world.jobs.len(),
        name(&trace.jobs),
        world.gpus(),
        world.pools.len(),
        name(&trace.nodes),
        world.left_out.len(),
        trace.guarantee_hours,
        trace.spot_scale,
        trace.checkpoint_s,
        trace.restart_s,
        trace.restart_large_s,
        trace.guarantee_rate,
    );
    Told { trace: name(&trace.jobs), how, gpus: world.gpus() }
}

fn world(trace: &Trace, config: &Config) -> Result<World, SimulatorError> {
    let calendar = calendar(trace)?;
    let options = ReadOptions {
        cluster: trace.cluster.clone(),
        gpu_model: vocab::GpuModel::parse("any").map_err(|fault| SimulatorError::Value(fault.to_string()))?,
        calendar,
        skip_bad_rows: trace.skip_bad_rows,
    };
    let hours = HorizonHours::new(trace.guarantee_hours).map_err(|fault| SimulatorError::Value(fault.to_string()))?;
    let shape = Shape {
        epoch: trace.epoch,
        hours: Some(hours),
        spot_scale: trace.spot_scale,
        nodes_minus: trace.nodes_minus,
        seed: config.seed,
    };
    let mut world = World::read(&trace.nodes, &trace.jobs, &options, &shape)?;
    world.lay_out(&Layout { topology: trace.topology.clone(), affinity: trace.affinity })?;
    if let Some(share) = trace.elastic {
        let stretch =
            Stretch { share, control: trace.elastic_control, model: trace.elastic_model.as_deref(), seed: config.seed };
        world.stretch(&stretch).map_err(SimulatorError::Value)?;
    }
    if !world.left_out.is_empty() {
        let (task, why) = &world.left_out[0];
        eprintln!("warning: {} jobs are left out, the first one {task}: {why}", world.left_out.len());
    }
    Ok(world)
}

fn calendar(trace: &Trace) -> Result<Calendar, SimulatorError> {
    Calendar::parse(&trace.time_zone, &trace.calendar).map_err(|fault| SimulatorError::Value(fault.to_string()))
}

/// POLICY, or POLICY:PREDICTOR: what is shown as its name, and its settings.
fn settings(name: &str, trace: &Trace, config: &Config) -> Result<(String, Settings), SimulatorError> {
    let (id, after, predictor) = match name.split_once(':') {
        Some((id, predictor)) => {
            let kind = PredictorKind::parse(predictor).map_err(SimulatorError::Predictor)?;
            (id, format!(":{predictor}"), kind)
        }
        None => (name, String::new(), trace.predictor),
    };
    let (shown, policy) = crate::policies::named(id)?;
    let (predictor, aggregation) = match (id, predictor) {
        ("gfs-e", _) => (PredictorKind::Model(ModelKind::PeakWeek), Some(Aggregation::SumOfBounds)),
        ("gfs-paper", PredictorKind::Model(ModelKind::OrgLinear)) => {
            (PredictorKind::Model(ModelKind::OrgLinearPaper), Some(Aggregation::SumOfBounds))
        }
        (_, predictor) => (predictor, None),
    };
    let rate = GuaranteeRate::new(trace.guarantee_rate).map_err(|fault| SimulatorError::Value(fault.to_string()))?;
    let offered: Vec<HorizonHours> = [1, 2, 4, trace.guarantee_hours]
        .into_iter()
        .filter(|hours| *hours <= trace.guarantee_hours)
        .filter_map(|hours| HorizonHours::new(hours).ok())
        .collect::<std::collections::BTreeSet<_>>()
        .into_iter()
        .collect();
    let longest = offered.last().copied().unwrap_or(HorizonHours::ONE);
    let horizon = HorizonHours::new(u64::from(longest.get()).max(4)).unwrap_or(longest);
    let kind = if let PredictorKind::Model(kind) = predictor { kind } else { ModelKind::LastValue };
    let promise = if id == "gfs-paper" { Promise::Peak } else { Promise::parse(&trace.promise).unwrap_or_default() };
    let pool =
        PoolSettings { guarantee_rate: rate, promise, offered_hours: offered.clone(), ..PoolSettings::default() };
    let follows = policy.limits_follow_demand && predictor.is_live();
    let settings = Settings {
        policy: Policy { limits_follow_demand: follows, ..policy },
        predictor,
        plan: Plan { kind, horizon, rate, seed: config.seed, refit_hours: i64::from(trace.refit.get()), aggregation },
        calendar: calendar(trace)?,
        quota: QuotaSettings {
            pool: if id == "gfs-paper" { pool } else { pool.calibrated() },
            refresh_s: 300,
            eta_fixed: id == "gfs-d",
            live: predictor.is_live(),
        },
        offered,
        losses: Losses {
            checkpoint_s: trace.checkpoint_s,
            restart_s: trace.restart_s,
            restart_large_s: trace.restart_large_s,
            resize_s: trace.resize_s,
        },
        rules: PoolRules::default(),
        power: crate::power::table(trace.power.as_deref())?,
        seed: config.seed,
    };
    Ok((shown + &after, settings))
}

/// Nothing where nothing was promised.
fn broken(one: &Summary) -> String {
    if one.guarantee_periods == 0 { String::new() } else { format!("{:.4}", one.guarantee_eviction_rate) }
}

fn share(share: Option<f64>) -> String {
    share.map_or_else(String::new, |share| format!("{share:.4}"))
}

fn show(named: &[(String, Outcome)], json: bool) {
    if json {
        let all: BTreeMap<&str, &Summary> = named.iter().map(|(name, run)| (name.as_str(), &run.summary)).collect();
        print_json(&all);
        return;
    }
    let header = [
        "policy",
        "HP queue s",
        "HP JCT s",
        "spot JCT s",
        "spot queue s",
        "evictions",
        "e",
        "broken",
        "1 − K",
        "long",
        "lost GPU h",
        "allocation",
        "finished",
        "CPU s",
        "train CPU s",
        "aligned",
        "resizes",
    ];
    let row = |(name, run): &(String, Outcome)| {
        let one = &run.summary;
        vec![
            name.clone(),
            format!("{:.1}", one.hp_queue_mean_s),
            format!("{:.0}", one.hp_jct_mean_s),
            format!("{:.0}", one.spot_jct_mean_s),
            format!("{:.0}", one.spot_queue_mean_s),
            one.evictions.to_string(),
            format!("{:.3}", one.eviction_rate),
            broken(one),
            share(one.promises.last().map(|one| one.broken_share)),
            share(one.promises.last().and_then(|one| one.broken_share_long)),
            format!("{:.0}", one.lost_gpu_hours),
            format!("{:.3}", one.allocation_rate),
            one.finished.to_string(),
            format!("{:.2}", one.cpu_s),
            format!("{:.2}", one.train_cpu_s),
            one.aligned_share.map_or_else(String::new, |share| format!("{share:.4}")),
            one.resizes.map_or_else(String::new, |resizes| resizes.to_string()),
        ]
    };
    print_text(&table(&header, &named.iter().map(row).collect::<Vec<_>>()));
    print_text(&table(&["policy", "class", "GPUs", "tasks", "queue p50 s", "p99 s", "longest s"], &by_size(named)));
    say("times are means in seconds; e: evictions of runs; broken: of the guarantee periods; 1 − K: of \
         promised GPUs, by Kaplan–Meier survival; long: the same of jobs that take as long as the promise; aligned: of pods with an affinity");
}

/// How long tasks of each size waited.
fn by_size(named: &[(String, Outcome)]) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    for (name, run) in named {
        for (class, sizes) in &run.summary.queue_by_size {
            rows.extend(sizes.iter().map(|one| {
                let seconds = [one.p50_s, one.p99_s, one.max_s].map(|seconds| format!("{seconds:.0}"));
                let named = [name.clone(), (*class).to_owned(), one.gpus.to_owned(), one.tasks.to_string()];
                named.into_iter().chain(seconds).collect()
            }));
        }
    }
    rows
}
