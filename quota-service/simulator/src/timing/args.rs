//! The command line of `simulate timing`.

use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// The schedulers' knowledge of a job's duration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Durations {
    /// It is known when the job comes
    Known,
    /// It is estimated from the jobs of its organization that have finished
    History,
}

#[derive(Debug, Args)]
#[command(after_long_help = "Examples:\n  \
    simulate timing --jobs trace_job_Philly_MIX1.csv --gpus 1232 --policies lazer,srtf,sjf\n  \
    simulate timing --jobs trace_job_Philly_MIX1.csv --gpus 512 --durations history --phases phases.csv --json\n\n\
    Policies: lazer (deferrals by Bayesian optimization), lazer-paper (as printed, idle GPUs counted), srtf, sjf, srtf at\n\
    intervals (srtf-60, srtf-360, srtf-600), tiresias.\n\n\
    Phases: a table model,load_s,load_large_s,save_s; large is above 8 GPUs, and the model * stands for all others.")]
pub struct Timing {
    /// The job list of the Philly trace: job_id,user,num_gpu,submit_time,model_name,duration,best_effort,…
    #[arg(long, value_name = "FILE")]
    pub jobs: PathBuf,
    /// How many GPUs the cluster has
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub gpus: u32,
    /// By their names
    #[arg(
        long,
        value_name = "POLICY,…",
        value_delimiter = ',',
        default_value = "lazer,srtf,sjf,srtf-60,srtf-360,srtf-600,tiresias"
    )]
    pub policies: Vec<String>,
    /// How long models load and save, instead of the built-in table
    #[arg(long, value_name = "FILE")]
    pub phases: Option<PathBuf>,
    /// The schedulers' knowledge of durations
    #[arg(long, value_name = "WHAT", value_enum, default_value = "known")]
    pub durations: Durations,
    /// The trace has whole minutes: each job comes at a second of its minute that is drawn from the seed, up to this one
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u32).range(0..=60))]
    pub spread_s: u32,
    /// Folder for timing.csv and deferrals.csv
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Leave out rows that cannot be read, and list them
    #[arg(long)]
    pub skip_bad_rows: bool,
}
