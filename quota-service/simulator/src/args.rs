//! What the command line says.

use crate::predictor::PredictorKind;
use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;
use command_line::{BadValue, Common, ConfigCommand, GLOBAL};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use vocab::{ClusterName, HorizonHours, UnixSeconds};

/// Replay a trace under a policy, on a virtual clock
#[derive(Debug, Parser)]
#[command(
    name = "simulate",
    version,
    args_conflicts_with_subcommands = true,
    after_long_help = "Examples:\n  \
    simulate --nodes node_info_df.csv --jobs job_info_df.csv --policy gfs\n  \
    simulate --nodes node_info_df.csv --jobs job_info_df.csv --policy gfs --spot-scale 2 --guarantee-hours 4 --json\n  \
    simulate --nodes node_info_df.csv --jobs job_info_df.csv --policy gfs --predictor oracle --nodes-minus 25\n  \
    simulate --snapshot pool.json --policy gfs-noquota\n  \
    simulate compare --nodes node_info_df.csv --jobs job_info_df.csv --policies gfs,gfs:last-value,gfs-noquota,fifo-fair --out compared\n\n\
    Policies: gfs and its ablations gfs-e (peak of the last week instead of a forecast), gfs-d (eta stays 1), gfs-s (best fit\n\
    alone), gfs-p (random victims), gfs-sp; gfs-paper; the control gfs-noquota; rivals yarn-cs, fifo-fair, fgd, lyra, chronus."
)]
pub struct Arguments {
    #[command(subcommand)]
    pub command: Option<Command>,
    #[command(flatten)]
    pub trace: Option<Trace>,
    /// What GET /v1/pools/{id}/snapshot answered: what the policy would do with its waiting tasks now
    #[arg(long, value_name = "FILE", conflicts_with = "Trace")]
    pub snapshot: Option<PathBuf>,
    /// Rules by which tasks are placed
    #[arg(long, value_name = "POLICY", default_value = "gfs")]
    pub policy: String,
    #[command(flatten)]
    pub flags: Flags,
    #[command(flatten)]
    pub common: Common,
}

/// Flags that are settings, too.
#[derive(Debug, Clone, Args, Serialize)]
pub struct Flags {
    /// Seed of everything that is drawn or learned
    #[arg(long, global = true, value_name = "N", help_heading = GLOBAL)]
    #[serde(skip_serializing_if = "Option::is_none")]
    seed: Option<u64>,
}

/// Settings of this program.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    pub seed: u64,
}

impl command_line::Config for Config {
    fn check(&self) -> Result<(), BadValue> {
        Ok(())
    }
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run several policies on one trace: a table, and a page of their course
    Compare(Box<Compare>),
    /// Jobs whose GPUs come and go one by one: Cornucopia and its rivals on a list of jobs
    Elastic(Box<crate::elastic::args::Elastic>),
    /// Settings in force
    Config {
        #[command(subcommand)]
        command: ConfigCommand,
    },
    /// Print shell completions
    Completions { shell: Shell },
}

/// A factor that is not negative, and at most a thousand.
fn factor(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|factor| (0.0..=1_000.0).contains(factor));
    number.ok_or_else(|| "write a number of 0 to 1000".to_owned())
}

/// A trace, and how it is replayed.
#[derive(Debug, Clone, Args)]
pub struct Trace {
    /// node_name,gpu_model,gpu_capacity_num,cpu_num
    #[arg(long, value_name = "FILE")]
    pub nodes: PathBuf,
    /// The job list of the GFS trace: job_name,organization,gpu_model,cpu_request,gpu_request,worker_num,submit_time,duration,job_type
    #[arg(long, value_name = "FILE")]
    pub jobs: PathBuf,
    /// What submit_time counts from
    #[arg(long, value_name = "TIME", default_value = "2024-03-01T00:00:00+08:00", value_parser = command_line::instant)]
    pub epoch: UnixSeconds,
    /// Of the cluster, for hours and days in forecasts
    #[arg(long, value_name = "ZONE", default_value = "UTC")]
    pub time_zone: String,
    /// Days off, for forecasts
    #[arg(long, value_name = "CALENDAR", default_value = "weekdays")]
    pub calendar: String,
    /// Name of the cluster
    #[arg(long, value_name = "NAME", default_value = "trace", value_parser = |text: &str| ClusterName::parse(text))]
    pub cluster: ClusterName,
    /// Who says how much HP will need: a model of `train`, or oracle
    #[arg(long, value_name = "MODEL", default_value = "orglinear", value_parser = PredictorKind::parse)]
    pub predictor: PredictorKind,
    /// Hours between two fits of the predictor
    #[arg(long, value_name = "HOURS", default_value = "24h", value_parser = command_line::horizon)]
    pub refit: HorizonHours,
    /// Guarantee that every spot task asks for
    #[arg(long, value_name = "HOURS", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=24))]
    pub guarantee_hours: u64,
    /// Spot jobs for each one of the trace
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0, value_parser = factor, allow_negative_numbers = true)]
    pub spot_scale: f64,
    /// What if the cluster had so many nodes less
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub nodes_minus: usize,
    /// Probability that a guarantee holds
    #[arg(long, value_name = "P", default_value_t = 0.9, value_parser = command_line::guarantee_rate)]
    pub guarantee_rate: f64,
    /// Seconds between two checkpoints of a spot run: what came after the last one is lost with an eviction
    #[arg(long, value_name = "SECONDS", default_value_t = 3_600, value_parser = clap::value_parser!(i64).range(1..))]
    pub checkpoint_s: i64,
    /// Seconds that a restarted task needs before it works again
    #[arg(long, value_name = "SECONDS", default_value_t = 40, value_parser = clap::value_parser!(i64).range(0..))]
    pub restart_s: i64,
    /// The same above 8 GPUs
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(i64).range(0..))]
    pub restart_large_s: i64,
    /// Leave out rows that cannot be read, and list them
    #[arg(long)]
    pub skip_bad_rows: bool,
}

#[derive(Debug, Args)]
#[command(after_long_help = "Examples:\n  \
    simulate compare --nodes node_info_df.csv --jobs job_info_df.csv --policies gfs,gfs-noquota,fifo-fair --out compared\n  \
    simulate compare --nodes node_info_df.csv --jobs job_info_df.csv --policies gfs,gfs:last-value,gfs:oracle --json")]
pub struct Compare {
    #[command(flatten)]
    pub trace: Trace,
    /// By their names, each with a predictor of its own after a colon if need be
    #[arg(long, value_name = "POLICY,…", value_delimiter = ',', required = true)]
    pub policies: Vec<String>,
    /// Folder for compare.html, compare.csv and course.csv
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}
