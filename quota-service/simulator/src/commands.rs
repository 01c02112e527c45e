//! The commands of the program.

use crate::args::{Arguments, Config, Saturated, Trace};
use crate::compare::show;
use crate::figures::Row;
use crate::inflate::InflateError;
use crate::layout::{Layout, TopologyChoice};
use crate::power::PowerFault;
use crate::predictor::{Plan, PredictorKind};
use crate::quota::QuotaSettings;
use crate::reservations::{Backfill, ReservationsFault};
use crate::run::{Losses, Outcome, RunError, Settings, run};
use crate::saturated;
use crate::stretch::Stretch;
use crate::world::{Shape, World, WorldError};
use command_line::{Exit, Failure, print_notice};
use datasets::Calendar;
use datasets::read::ReadOptions;
use forecaster::ModelKind;
use forecaster::bound::Aggregation;
use placement::policy::Admission;
use placement::pool::PoolRules;
use placement::{Policy, PoolSettings, Promise};
use std::sync::Arc;
use vocab::{GuaranteeRate, HorizonHours, Topology};

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
    #[error(transparent)]
    Reservations(#[from] ReservationsFault),
    #[error("{0}")]
    Predictor(String),
    #[error("{}: {detail}: write what GET /v1/pools/{{id}}/snapshot answers", file.display())]
    Snapshot { file: std::path::PathBuf, detail: String },
    #[error("--topology {}: {why}; write a file with a topology, or one of {}", file.display(), Topology::PRESETS.join(", "))]
    TopologyFile { file: std::path::PathBuf, why: String },
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
            | SimulatorError::Reservations(_)
            | SimulatorError::Snapshot { .. }
            | SimulatorError::TopologyFile { .. } => Exit::DataInvalid,
            SimulatorError::PolicyFile(fault) => fault.exit(),
            SimulatorError::Policy { .. } => Exit::ConfigInvalid,
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
        let (name, policy, weights) = crate::policies::named(&arguments.policy)?;
        return crate::replay::replay(file, &name, (policy.seeded(config.seed), weights), json);
    }
    let trace = arguments.trace.as_ref().ok_or(SimulatorError::NoTrace)?;
    let world = world(trace, config)?;
    warn_of_left_out(&world);
    if arguments.statement.is_some() && arguments.policy == CHRONUS {
        return Err(SimulatorError::Value(format!("--statement: {CHRONUS} keeps no accounts: choose another policy")));
    }
    let prices = crate::statement::prices(arguments.prices.as_deref())?;
    let (name, outcome) = played(&arguments.policy, &world, trace, config)?;
    let rate = has_quota(&arguments.policy, trace, config)?.then_some(trace.guarantee_rate);
    let row = Row { policy: name.clone(), rate, name, runs: vec![outcome.summary], course: outcome.course };
    show(&[row], false, json);
    if let Some(file) = &arguments.statement {
        crate::statement::write(file, &outcome.days, prices.as_ref())?;
        if !json {
            let last = world.jobs.last().map(|job| job.request.submitted);
            crate::statement::show(&outcome.days, last, prices.as_ref(), file);
        }
    }
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
        topology: Arc::new(what.topology.read()?),
    };
    saturated::show(&saturated::run(&scale).map_err(WorldError::from)?, json);
    Ok(())
}

/// Leases are no rule of a pool: they have a run of their own.
pub(crate) const CHRONUS: &str = "chronus";

/// A policy under its name, and how it went.
pub(crate) fn played(
    name: &str,
    world: &World,
    trace: &Trace,
    config: &Config,
) -> Result<(String, Outcome), SimulatorError> {
    if name == CHRONUS {
        if trace.reservations.is_some() {
            let text = format!("--reservations: {CHRONUS} knows no windows: choose another policy");
            return Err(SimulatorError::Value(text));
        }
        return Ok((name.to_owned(), crate::rivals::run::run(world)?));
    }
    let (shown, settings) = settings(name, trace, config)?;
    settings.check(world).map_err(PowerFault::from)?;
    Ok((shown, run(world, &settings)?))
}

/// The jobs and nodes of a trace, as its flags change them.
pub(crate) fn world(trace: &Trace, config: &Config) -> Result<World, SimulatorError> {
    let calendar = calendar(trace)?;
    let options = ReadOptions {
        cluster: trace.cluster.clone(),
        gpu_model: vocab::GpuModel::parse("any").map_err(|fault| SimulatorError::Value(fault.to_string()))?,
        calendar,
        skip_bad_rows: trace.skip_bad_rows,
        zones: datasets::Zones::new(),
    };
    let shape = Shape {
        epoch: trace.epoch,
        hours: Some(trace.guarantee_hours),
        spot_scale: trace.spot_scale,
        nodes_minus: trace.nodes_minus,
        seed: config.seed,
    };
    let mut world = World::read(&trace.nodes, &trace.jobs, &options, &shape)?;
    world.lay_out(&Layout {
        topology: trace.topology.as_ref().map(TopologyChoice::read).transpose()?,
        affinity: trace.affinity,
    })?;
    if let Some(share) = trace.elastic {
        let stretch =
            Stretch { share, control: trace.elastic_control, model: trace.elastic_model.as_deref(), seed: config.seed };
        world.stretch(&stretch).map_err(SimulatorError::Value)?;
    }
    if let Some(file) = &trace.reservations {
        let reservations = crate::reservations::read(file, &options.calendar)?;
        world.reserve(&reservations, Backfill::parse(&trace.backfill), &options.calendar)?;
    }
    Ok(world)
}

pub(crate) fn warn_of_left_out(world: &World) {
    if let Some((task, why)) = world.left_out.first() {
        print_notice(format_args!(
            "warning: {} left out, the first one {task}: {why}",
            vocab::count(world.left_out.len(), "job").verb("is", "are")
        ));
    }
}

fn calendar(trace: &Trace) -> Result<Calendar, SimulatorError> {
    Calendar::parse(&trace.time_zone, &trace.calendar).map_err(|fault| SimulatorError::Value(fault.to_string()))
}

/// Whether spot is admitted within a quota, so that a guarantee rate means something.
pub(crate) fn has_quota(name: &str, trace: &Trace, config: &Config) -> Result<bool, SimulatorError> {
    Ok(name != CHRONUS && settings(name, trace, config)?.1.policy.admission == Admission::Quota)
}

/// POLICY, or POLICY:PREDICTOR: what is shown as its name, and its settings.
pub(crate) fn settings(name: &str, trace: &Trace, config: &Config) -> Result<(String, Settings), SimulatorError> {
    let (id, after, predictor) = match name.split_once(':') {
        Some((id, predictor)) => {
            let kind = PredictorKind::parse(predictor).map_err(SimulatorError::Predictor)?;
            (id, format!(":{predictor}"), kind)
        }
        None => (name, String::new(), trace.predictor),
    };
    let (shown, policy, weights) = crate::policies::named(id)?;
    let (predictor, aggregation) = match (id, predictor) {
        ("gfs-e", _) => (PredictorKind::Model(ModelKind::PeakWeek), Some(Aggregation::SumOfBounds)),
        ("gfs-paper", PredictorKind::Model(ModelKind::OrgLinear)) => {
            (PredictorKind::Model(ModelKind::OrgLinearPaper), Some(Aggregation::SumOfBounds))
        }
        (_, predictor) => (predictor, None),
    };
    let rate = GuaranteeRate::new(trace.guarantee_rate).map_err(|fault| SimulatorError::Value(fault.to_string()))?;
    let shorter = [1, 2, 4].into_iter().filter_map(|hours| HorizonHours::new(hours).ok());
    let mut offered: Vec<HorizonHours> = shorter.filter(|hours| *hours < trace.guarantee_hours).collect();
    offered.push(trace.guarantee_hours);
    let longest = offered.last().copied().unwrap_or(HorizonHours::ONE);
    let horizon = HorizonHours::new(u64::from(longest.get()).max(4)).unwrap_or(longest);
    let kind = if let PredictorKind::Model(kind) = predictor { kind } else { ModelKind::LastValue };
    let promise = if id == "gfs-paper" { Promise::Peak } else { Promise::parse(&trace.promise).unwrap_or_default() };
    let pool =
        PoolSettings { guarantee_rate: rate, promise, offered_hours: offered.clone(), ..PoolSettings::default() };
    let follows = policy.limits_follow_demand && predictor.is_live();
    let settings = Settings {
        policy: Policy { limits_follow_demand: follows, ..policy },
        weights: Arc::new(weights),
        predictor,
        plan: Plan { kind, horizon, rate, seed: config.seed, refit_hours: i64::from(trace.refit.get()), aggregation },
        calendar: calendar(trace)?,
        quota: QuotaSettings {
            pool: if id == "gfs-paper" { pool } else { pool.calibrated() },
            refresh_s: 300,
            eta_fixed: id == "gfs-d",
            live: predictor.is_live(),
            jobs: predictor.knows_jobs(trace.hp_jobs == "known"),
        },
        offered,
        losses: Losses {
            checkpoint_s: trace.checkpoint_s,
            restart_s: trace.restart_s,
            restart_large_s: trace.restart_large_s,
            resize_s: trace.resize_s,
        },
        rules: PoolRules { grace_s: trace.grace_s, ..PoolRules::default() },
        power: crate::power::table(trace.power.as_deref())?,
        seed: config.seed,
    };
    Ok((shown + &after, settings))
}
