//! The flags for lists of jobs.

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use slurm_records::RulesFlags;
use std::path::PathBuf;
use vocab::UnixSeconds;

/// Lists of HP jobs.
#[derive(Debug, Clone, Default, Args)]
pub struct JobLists {
    /// Lists of the cluster's jobs, as `datasets ingest` reads them (gfs-jobs, philly, slurm; each file tells its own): when HP jobs come and how long they
    /// last is kept with the run, for a service that knows its HP jobs; validation scores its bounds with them, too. Of a backtest with
    /// --served, the HP jobs that the service knew
    #[arg(long = "jobs", value_name = "FILE", num_args = 1..)]
    pub files: Vec<PathBuf>,
    /// Time zero of --jobs; records of Slurm have none
    #[arg(long, value_name = "TIME", value_parser = command_line::instant, requires = "files")]
    pub epoch: Option<UnixSeconds>,
    #[command(flatten, next_help_heading = "With records of Slurm in --jobs")]
    pub slurm: RulesFlags,
}

/// Knowledge of a service about HP jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum JobsAs {
    /// Each of them.
    #[default]
    Jobs,
    /// The GPUs of all of them.
    Demand,
}

impl JobsAs {
    pub const ALL: [Self; 2] = [Self::Jobs, Self::Demand];

    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Jobs => "jobs",
            Self::Demand => "demand",
        }
    }
}

/// The values by name.
pub(super) fn jobs_as() -> impl TypedValueParser<Value = JobsAs> {
    PossibleValuesParser::new(JobsAs::ALL.map(JobsAs::as_str))
        .map(|name| JobsAs::ALL.into_iter().find(|one| one.as_str() == name).unwrap_or_default())
}
