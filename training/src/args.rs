//! The command line.

mod jobs;
mod served;

pub use jobs::{JobLists, JobsAs};
pub use served::Replay;

use crate::shard::Shard;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;
use command_line::{BadValue, Common, ConfigCommand, GLOBAL};
use forecaster::ModelKind;
use forecaster::calibration::Switch;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::str::FromStr;
use store::RunId;
use vocab::{ClusterName, GuaranteeRate, HorizonHours, HourStart};

/// Train demand forecasts on the usage history in the database, test them on the past, promote them
#[derive(Debug, Parser)]
#[command(
    name = "train",
    version,
    subcommand_negates_reqs = true,
    args_conflicts_with_subcommands = false,
    after_long_help = "Examples:\n  \
    train\n  \
    train --horizon 6h\n  \
    train --cluster earth --promote --min-coverage 0.85\n  \
    train --cluster earth --memory 16GiB\n  \
    train --shard 0/16 --borrow 4 --promote\n  \
    train --cluster earth --usage s3://history/earth/\n  \
    train --cluster gfs --jobs job_info_df.csv --epoch 2024-03-01T00:00:00+08:00\n  \
    train backtest --horizon 4h --from 2020-05-18T00:00:00+08:00 --to 2020-05-24T23:00:00+08:00 --out forecasts.csv --pool-out pool_bounds.csv\n  \
    train runs list"
)]
pub struct Arguments {
    #[command(subcommand)]
    pub command: Option<Command>,
    #[command(flatten)]
    pub train: Train,
    #[command(flatten)]
    pub flags: Flags,
    #[command(flatten)]
    pub common: Common,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Play the past again: forecast every hour of a window from the hours before it, and score
    Backtest(Box<Backtest>),
    /// The gain of each ingredient of the default model: the same window again with one of them less each time
    Ablation(Ablation),
    /// Settings for your own data: tries some around the default ones, judged on validation weeks alone
    Tune(Tune),
    /// The causes of a forecast of the model, before its online corrections: how much each kind of feature added, against the mean of the
    /// week before
    Explain(Explain),
    /// The runs that were trained
    Runs {
        #[command(subcommand)]
        command: RunsCommand,
    },
    /// Settings with their values and sources
    Config {
        #[command(subcommand)]
        command: ConfigCommand,
    },
    /// Print shell completions
    Completions { shell: Shell },
}

/// Flags that are settings, too.
#[derive(Debug, Clone, Args, Serialize)]
pub struct Flags {
    /// sqlite://FILE or postgres://…, as `datasets ingest` filled it; also DATABASE_URL
    #[arg(long, global = true, value_name = "URL", help_heading = GLOBAL)]
    #[serde(skip_serializing_if = "Option::is_none")]
    database: Option<String>,
    /// Seed of initialisation and shuffling
    #[arg(long, global = true, value_name = "N", help_heading = GLOBAL)]
    #[serde(skip_serializing_if = "Option::is_none")]
    seed: Option<u64>,
    /// Guarantee rate p at which pool bounds are calibrated
    #[arg(long, global = true, value_name = "P", value_parser = command_line::guarantee_rate, allow_negative_numbers = true,
        help_heading = GLOBAL)]
    #[serde(skip_serializing_if = "Option::is_none")]
    guarantee_rate: Option<f64>,
}

/// Settings of this program.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    pub database: String,
    pub seed: u64,
    pub guarantee_rate: f64,
}

impl command_line::Config for Config {
    fn check(&self) -> Result<(), BadValue> {
        store::check_url(&self.database).map_err(|fault| BadValue::new("database", fault))?;
        let rate = GuaranteeRate::new(self.guarantee_rate);
        rate.map(drop).map_err(|fault| BadValue::new("guarantee_rate", fault))
    }
}

impl Default for Config {
    fn default() -> Self {
        Self { database: "sqlite://headroom.db".to_owned(), seed: 1, guarantee_rate: GuaranteeRate::GFS.as_f64() }
    }
}

/// How far a model looks back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lookback {
    /// 168 h below 60 days of history, else 672 h.
    Auto,
    Hours(usize),
}

impl FromStr for Lookback {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "auto" {
            return Ok(Self::Auto);
        }
        let hours = text.trim_end_matches('h').parse().ok().filter(|hours| (1..=8_760).contains(hours));
        hours.map(Self::Hours).ok_or_else(|| "write auto, or 1h to 8760h".to_owned())
    }
}

/// An amount of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemorySize {
    /// Bytes.
    pub bytes: u64,
}

impl FromStr for MemorySize {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let of = |unit: &str, bytes: u64| text.strip_suffix(unit)?.trim().parse::<u64>().ok()?.checked_mul(bytes);
        let bytes = of("GiB", 1 << 30).or_else(|| of("MiB", 1 << 20)).filter(|bytes| *bytes > 0);
        bytes
            .map(|bytes| Self { bytes })
            .ok_or_else(|| format!("invalid size {text:?}: expected 512MiB, 4GiB or the like"))
    }
}

/// The models by name, so that a misspelt one is answered with the right one and shells complete them.
fn model() -> impl TypedValueParser<Value = ModelKind> {
    PossibleValuesParser::new(ModelKind::ALL.map(ModelKind::as_str)).try_map(|name| ModelKind::parse(&name))
}

fn switch() -> impl TypedValueParser<Value = Switch> {
    PossibleValuesParser::new(Switch::ALL.map(Switch::as_str))
        .map(|name| Switch::ALL.into_iter().find(|one| one.as_str() == name).unwrap_or_default())
}

fn at_least_zero(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number: &f64| number.is_finite() && *number >= 0.0);
    number.ok_or_else(|| "write a number of GPUs, 0 or more".to_owned())
}

fn share(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number| (0.0..=1.0).contains(number));
    number.ok_or_else(|| "write a share between 0 and 1".to_owned())
}

#[derive(Debug, Args)]
pub struct Train {
    /// Hours to forecast; two more than the longest guarantee that the cluster's pools offer if not given
    #[arg(long, value_name = "HOURS", value_parser = command_line::horizon)]
    pub horizon: Option<HorizonHours>,
    /// This cluster only; all if not given, a run for each
    #[arg(long, value_name = "NAME", value_parser = |text: &str| ClusterName::parse(text))]
    pub cluster: Option<ClusterName>,
    /// Every Nth cluster by name from the Kth on, K from 0: one shard for each of N Jobs that share nothing but the database
    #[arg(long, value_name = "K/N", conflicts_with = "cluster")]
    pub shard: Option<Shard>,
    /// Learn from up to 20,000 hours of other clusters' organizations, too, drawn by size and age from at most so many clusters
    #[arg(long, value_name = "CLUSTERS", default_value_t = 0, value_parser = clap::value_parser!(u16).range(0..=1000).map(usize::from))]
    pub borrow: usize,
    /// Read the history from Parquet files with the columns of usage.csv instead of from the database: a file, a folder, or
    /// s3://BUCKET/PREFIX (address and credentials by AWS_ENDPOINT, AWS_ACCESS_KEY_ID and the like). They are put in order in TMPDIR,
    /// 16 bytes for each row. Zones, calendars, capacities and runs stay in the database
    #[arg(long, value_name = "PATH|URL")]
    pub usage: Option<String>,
    /// Memory of one training; a history that needs more is read in parts from a file in TMPDIR, 8 bytes for each series and hour
    #[arg(long, value_name = "SIZE", default_value = "4GiB")]
    pub memory: MemorySize,
    /// Hours that the model sees: auto is 168h below 60 days of history, else 672h
    #[arg(long, value_name = "HOURS", default_value = "auto")]
    pub lookback: Lookback,
    /// Model to train
    #[arg(long, value_name = "MODEL", default_value_t = ModelKind::DEFAULT, value_parser = model())]
    pub model: ModelKind,
    /// Settings of orglinear, trees or network, as `train tune --out` writes them
    #[arg(long, value_name = "FILE")]
    pub settings: Option<PathBuf>,
    /// Learn from hours before this one only
    #[arg(long, value_name = "TIME", value_parser = command_line::hour)]
    pub until: Option<HourStart>,
    /// Promote the run if it passes the gate, else end with exit code 7. A cluster's first run needs no asking
    #[arg(long)]
    pub promote: bool,
    /// Gate: the highest MAE of the median on validation, in GPUs; a run that misses it is kept, not promoted (exit 7)
    #[arg(long, value_name = "GPUS", value_parser = at_least_zero, allow_negative_numbers = true)]
    pub max_mae: Option<f64>,
    /// Gate: the lowest coverage on validation, of the organizations' 0.9 quantile and of the pools' bounds as a service would
    /// have answered them (usage on time, promise peak); as above
    #[arg(long, value_name = "SHARE", value_parser = share, allow_negative_numbers = true)]
    pub min_coverage: Option<f64>,
    // Last: what follows stands under the heading of its flags.
    #[command(flatten)]
    pub jobs: JobLists,
}

#[derive(Debug, Args)]
#[command(after_long_help = "Examples:\n  \
    train backtest --horizon 4h --from 2020-05-18T00:00:00+08:00 --to 2020-05-24T23:00:00+08:00 --out forecasts.csv --pool-out pool_bounds.csv\n  \
    train backtest --horizon 4h --from 2020-05-18T00:00:00+08:00 --to 2020-05-24T23:00:00+08:00 --model orglinear,last-value --refit 24h --out forecasts.csv\n  \
    train backtest --horizon 4h --from 2020-05-18T00:00:00+08:00 --to 2020-05-24T23:00:00+08:00 --run run-3 --out - | head\n  \
    train backtest --horizon 4h --from 2020-05-18T00:00:00+08:00 --to 2020-05-24T23:00:00+08:00 --model orglinear --served \
    --late 0h,1h --restart-every 24h --minutes helios-earth\n\n\
    With - for a file its rows go to stdout, and the tables to stderr.")]
pub struct Backtest {
    /// Hours to forecast
    #[arg(long, value_name = "HOURS", value_parser = command_line::horizon)]
    pub horizon: HorizonHours,
    /// First issue hour; models learn from the hours before it
    #[arg(long, value_name = "TIME", value_parser = command_line::hour)]
    pub from: HourStart,
    /// Last target hour
    #[arg(long, value_name = "TIME", value_parser = command_line::hour)]
    pub to: HourStart,
    /// This cluster only
    #[arg(long, value_name = "NAME", value_parser = |text: &str| ClusterName::parse(text))]
    pub cluster: Option<ClusterName>,
    /// Models to compare; the promoted run's (else orglinear) and the baselines if not given
    #[arg(long, value_name = "MODEL,…", value_delimiter = ',', value_parser = model())]
    pub model: Vec<ModelKind>,
    /// Hours that the models see
    #[arg(long, value_name = "HOURS", default_value = "auto")]
    pub lookback: Lookback,
    /// Settings of orglinear, trees and network, as `train tune --out` writes them
    #[arg(long, value_name = "FILE", conflicts_with = "run")]
    pub settings: Option<PathBuf>,
    /// Test the model of this run instead of training one; its data must end before --from
    #[arg(long, value_name = "RUN", conflicts_with_all = ["model", "refit", "lookback"])]
    pub run: Option<RunId>,
    /// Train again every so many hours of the window, on all hours before
    #[arg(long, value_name = "HOURS", value_parser = command_line::horizon)]
    pub refit: Option<HorizonHours>,
    /// Correct the forecasts of organizations online: auto as the model's kind and validation say
    #[arg(long, value_name = "WHEN", default_value = Switch::Auto.as_str(), value_parser = switch())]
    pub calibration: Switch,
    /// Forecasts of every issue hour, series and step; - is stdout. May be left out with --served
    #[arg(long, value_name = "FILE", required_unless_present = "served")]
    pub out: Option<PathBuf>,
    /// Bounds of every issue hour, pool and aggregation, not capped by the capacity, with --served also of `served`; - is stdout
    #[arg(long, value_name = "FILE")]
    pub pool_out: Option<PathBuf>,
    #[command(flatten)]
    pub replay: Replay,
}

#[derive(Debug, Args)]
#[command(after_long_help = "Examples:\n  \
    train ablation --horizon 4h --from 2020-05-14T00:00:00+08:00 --to 2020-05-17T23:00:00+08:00\n  \
    train ablation --horizon 4h --from 2020-05-14T00:00:00+08:00 --to 2020-05-17T23:00:00+08:00 --cluster earth --json\n\n\
    It trains some sixteen models.")]
pub struct Ablation {
    /// Hours to forecast
    #[arg(long, value_name = "HOURS", value_parser = command_line::horizon)]
    pub horizon: HorizonHours,
    /// First issue hour; models learn from the hours before it
    #[arg(long, value_name = "TIME", value_parser = command_line::hour)]
    pub from: HourStart,
    /// Last target hour
    #[arg(long, value_name = "TIME", value_parser = command_line::hour)]
    pub to: HourStart,
    /// This cluster only
    #[arg(long, value_name = "NAME", value_parser = |text: &str| ClusterName::parse(text))]
    pub cluster: Option<ClusterName>,
    /// Hours that the models see
    #[arg(long, value_name = "HOURS", default_value = "auto")]
    pub lookback: Lookback,
}

#[derive(Debug, Args)]
#[command(after_long_help = "Examples:\n  \
    train tune --horizon 4h --out settings.json\n  \
    train tune --horizon 4h --cluster earth --trials 30 --until 2020-05-18T00:00:00+08:00 --json\n\n\
    What it writes is for train --settings and train backtest --settings. The same seed tries the same settings.")]
pub struct Tune {
    /// Hours to forecast
    #[arg(long, value_name = "HOURS", value_parser = command_line::horizon)]
    pub horizon: HorizonHours,
    /// The cluster, where there are several
    #[arg(long, value_name = "NAME", value_parser = |text: &str| ClusterName::parse(text))]
    pub cluster: Option<ClusterName>,
    /// Settings to try, the default ones among them
    #[arg(long, value_name = "N", default_value_t = 12, value_parser = clap::value_parser!(u16).range(1..=1000).map(usize::from))]
    pub trials: usize,
    /// Hours that the model sees
    #[arg(long, value_name = "HOURS", default_value = "auto")]
    pub lookback: Lookback,
    /// Look at hours before this one only
    #[arg(long, value_name = "TIME", value_parser = command_line::hour)]
    pub until: Option<HourStart>,
    /// Where the best settings go, if they are better than the default ones by more than chance
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(after_long_help = "Examples:\n  \
    train explain --organization vc8oj\n  \
    train explain --run run-3 --gpu-model V100 --organization vc8oj --at 2020-05-20T09:00:00+08:00 --json")]
pub struct Explain {
    /// The run; the one that serves if not given
    #[arg(long, value_name = "RUN")]
    pub run: Option<RunId>,
    /// The cluster, where there are several
    #[arg(long, value_name = "NAME", value_parser = |text: &str| ClusterName::parse(text))]
    pub cluster: Option<ClusterName>,
    /// The GPU model, where the organization uses several
    #[arg(long, value_name = "MODEL")]
    pub gpu_model: Option<String>,
    /// The organization
    #[arg(long, value_name = "NAME")]
    pub organization: String,
    /// Issue hour of the forecast; the newest if not given
    #[arg(long, value_name = "TIME", value_parser = command_line::hour)]
    pub at: Option<HourStart>,
}

#[derive(Debug, Subcommand)]
pub enum RunsCommand {
    /// The newest first
    #[command(after_long_help = "Examples:\n  train runs list\n  train runs list --cluster earth --json")]
    List {
        /// This cluster only
        #[arg(long, value_name = "NAME", value_parser = |text: &str| ClusterName::parse(text))]
        cluster: Option<ClusterName>,
    },
    /// Everything that is known of a run
    #[command(after_long_help = "Examples:\n  train runs show run-3\n  train runs show run-3 --json")]
    Show { run: RunId },
    /// Two runs side by side
    #[command(after_long_help = "Examples:\n  train runs compare run-3 run-4\n  train runs compare 3 4 --json")]
    Compare { one: RunId, other: RunId },
    /// Let a run serve its cluster
    #[command(after_long_help = "Examples:\n  train runs promote run-4\n  train runs promote 4 --json")]
    Promote { run: RunId },
    /// Let the run serve again that served before the present one
    #[command(
        after_long_help = "Examples:\n  train runs rollback --cluster earth\n  train runs rollback --cluster earth --json"
    )]
    Rollback {
        #[arg(long, value_name = "NAME", value_parser = |text: &str| ClusterName::parse(text))]
        cluster: ClusterName,
    },
}
