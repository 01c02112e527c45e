//! The commands of `simulate elastic`.

use super::args::{Elastic, ElasticCommand, Labels, Profiles, Run};
use super::run::{Costs, Job, run};
use super::show::{Named, figures, show};
use super::{labels, profiles, summary, trace};
use crate::args::Config;
use crate::cpu;
use crate::policies::each_once;
use crate::rivals::elastic::{
    Chronus, Cornucopia, ElasticSrtf, Flow, JobFault, Label, Scheduler, Srtf, Tiresias, TiresiasRules,
};
use crate::rivals::leases::LeaseSettings;
use command_line::{Exit, Failure, OutputFile, print_json, say};
use placement::elastic::ProfileFault;
use std::io::Write;
use std::path::{Path, PathBuf};
use vocab::TaskId;

/// Time on each number of GPUs while a job ramps up: 314 s for the 128 of a job of 64 GPUs (Cornucopia §4.3).
const RAMP_STEP_MS: i64 = 2_450;
/// The one policy that wants deadlines to be read.
pub const CHRONUS: &str = "chronus";
const POLICIES: [&str; 6] = ["cornucopia", "srtf", "srtf-elastic", "tiresias", "elasticflow", CHRONUS];

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
pub enum ElasticError {
    #[error(transparent)]
    Read(#[from] datasets::ReadError),
    #[error("{name:?} is no policy for elastic jobs; there are {}", POLICIES.join(", "))]
    NoPolicy { name: String },
    #[error("{0}")]
    Twice(String),
    #[error("--jobs names the list that is to be replayed; or write labels or profiles")]
    NoJobs,
    #[error("{}: says nothing of job {job}: add a row {job},interactive or {job},batch", file.display())]
    NoLabel { file: PathBuf, job: TaskId },
    #[error("job {job} trains {model:?}, of which there is no profile but of {models}: add its speeds to --profiles")]
    NoProfile { job: TaskId, model: String, models: String },
    #[error("profile of {model}: {fault}")]
    Speeds { model: String, fault: ProfileFault },
    #[error("job {job}: {fault}")]
    Job { job: TaskId, fault: JobFault },
    #[error("{}: {fault}", file.display())]
    Write { file: PathBuf, fault: std::io::Error },
}

impl From<ElasticError> for Failure {
    fn from(fault: ElasticError) -> Self {
        let exit = match &fault {
            ElasticError::NoPolicy { .. } | ElasticError::Twice(_) | ElasticError::NoJobs => Exit::Usage,
            ElasticError::Write { .. } => Exit::Failure,
            _ => Exit::DataInvalid,
        };
        Self::new(exit, fault)
    }
}

/// `simulate elastic`.
///
/// # Errors
/// A file cannot be read or written, or a name is wrong.
pub fn command(what: &Elastic, config: &Config, json: bool) -> Result<(), ElasticError> {
    match (&what.command, &what.run) {
        (Some(ElasticCommand::Labels(what)), _) => write_labels(what, config, json),
        (Some(ElasticCommand::Profiles(what)), _) => write_profiles(what, json),
        (None, Some(what)) => simulate(what, config, json),
        (None, None) => Err(ElasticError::NoJobs),
    }
}

/// A policy by its name.
///
/// # Errors
/// There is none.
pub fn scheduler(name: &str, gpus: u32) -> Result<Box<dyn Scheduler>, ElasticError> {
    Ok(match name {
        "cornucopia" => Box::new(Cornucopia::new(gpus)),
        "srtf" => Box::new(Srtf::new(gpus)),
        "srtf-elastic" => Box::new(ElasticSrtf::new(gpus)),
        "tiresias" => Box::new(Tiresias::new(gpus, TiresiasRules::default())),
        "elasticflow" => Box::new(Flow::new(gpus)),
        CHRONUS => Box::new(Chronus::new(gpus, LeaseSettings::default())),
        _ => return Err(ElasticError::NoPolicy { name: name.to_owned() }),
    })
}

fn simulate(what: &Run, config: &Config, json: bool) -> Result<(), ElasticError> {
    // A wrong name is refused before anything is read.
    for name in &what.policies {
        scheduler(name, 1)?;
    }
    each_once("--policies", &what.policies).map_err(ElasticError::Twice)?;
    each_once("--gpus", &what.gpus).map_err(ElasticError::Twice)?;
    let jobs: Vec<Job> = trace::jobs(what, config.seed)?;
    let ramp_step_ms = if what.ramp_up { RAMP_STEP_MS } else { 0 };
    let costs = Costs { resize_ms: what.resize_s * 1_000, ramp_step_ms };
    let mut all: Vec<Named> = Vec::new();
    for gpus in &what.gpus {
        for name in &what.policies {
            let before = cpu::used();
            let courses = run(&jobs, *gpus, costs, scheduler(name, *gpus)?);
            let cpu_s = cpu::used().saturating_sub(before).as_secs_f64();
            all.push((*gpus, name.clone(), summary(&jobs, &courses, cpu_s)));
        }
    }
    if let Some(folder) = &what.out {
        let fault = |fault| ElasticError::Write { file: folder.clone(), fault };
        std::fs::create_dir_all(folder).map_err(fault)?;
        write(&folder.join("elastic.csv"), &figures(&all))?;
    }
    show(&all, json);
    Ok(())
}

fn write_labels(what: &Labels, config: &Config, json: bool) -> Result<(), ElasticError> {
    let rows = trace::rows(&what.jobs, false, false)?;
    let made = labels::made(&rows, config.seed);
    write(&what.out, &labels::text(&rows, &made, config.seed))?;
    let interactive = made.iter().filter(|label| **label == Label::Interactive).count();
    if json {
        print_json(&serde_json::json!({ "file": what.out, "jobs": rows.len(), "interactive": interactive }));
    } else {
        say(format!("{interactive} of {} jobs are interactive: {}", rows.len(), what.out.display()));
    }
    Ok(())
}

fn write_profiles(what: &Profiles, json: bool) -> Result<(), ElasticError> {
    let made = profiles::made();
    write(&what.out, &profiles::text(&made))?;
    if json {
        print_json(&serde_json::json!({ "file": what.out, "models": made.len() }));
    } else {
        say(format!("{} models: {}", made.len(), what.out.display()));
    }
    Ok(())
}

fn write(file: &Path, text: &str) -> Result<(), ElasticError> {
    let written = OutputFile::create(file).and_then(|mut to| {
        to.write_all(text.as_bytes())?;
        to.finish()
    });
    written.map_err(|fault| ElasticError::Write { file: file.to_owned(), fault })
}
