//! Command line of `notebooks-export`.

use chrono_tz::Tz;
use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use command_line::{BadValue, Common, ConfigCommand, GLOBAL};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::str::FromStr;
use store::RunId;
use vocab::{GuaranteeRate, MilliGpus, PoolId};

/// Export forecast reports: HTML page, notebook, scores as CSV, forecasts as Parquet
#[derive(Debug, Parser)]
#[command(
    name = "notebooks-export",
    version,
    after_long_help = "Examples:\n  \
    train backtest --horizon 4h --from 2020-05-18T00:00:00+08:00 --to 2020-05-24T23:00:00+08:00 --out forecasts.csv --pool-out pool_bounds.csv\n  \
    notebooks-export report --forecasts forecasts.csv --pool-bounds pool_bounds.csv --time-zone Asia/Shanghai --out report\n  \
    notebooks-export report --run run-3 --out report"
)]
pub struct Arguments {
    #[command(subcommand)]
    pub command: Command,
    #[command(flatten)]
    pub flags: Flags,
    #[command(flatten)]
    pub common: Common,
}

/// Flags that set a setting.
#[derive(Debug, Clone, Args, Serialize)]
pub struct Flags {
    /// Database of the runs, sqlite://FILE or postgres://…; also DATABASE_URL
    #[arg(long, global = true, value_name = "URL", help_heading = GLOBAL)]
    #[serde(skip_serializing_if = "Option::is_none")]
    database: Option<String>,
    /// Guarantee rate p of the bounds of runs; bounds in files carry their own
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
    pub guarantee_rate: f64,
}

impl Default for Config {
    fn default() -> Self {
        Self { database: "sqlite://headroom.db".to_owned(), guarantee_rate: GuaranteeRate::GFS.as_f64() }
    }
}

impl command_line::Config for Config {
    fn check(&self) -> Result<(), BadValue> {
        store::check_url(&self.database).map_err(|fault| BadValue::new("database", fault))?;
        let rate = GuaranteeRate::new(self.guarantee_rate);
        rate.map(drop).map_err(|fault| BadValue::new("guarantee_rate", fault))
    }
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Report a backtest, or runs on hours outside their training: report.html, report.ipynb, metrics.csv,
    /// forecasts.parquet
    Report(Report),
    /// Print the settings
    Config {
        #[command(subcommand)]
        command: ConfigCommand,
    },
    /// Print shell completions
    Completions { shell: Shell },
}

/// GPUs of a pool, as typed.
#[derive(Debug, Clone)]
pub struct Capacity {
    pub text: String,
    /// `None` means the only one.
    pub pool: Option<PoolId>,
    pub gpus: MilliGpus,
}

impl FromStr for Capacity {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (pool, gpus) = text.rsplit_once('=').map_or((None, text), |(pool, gpus)| (Some(pool), gpus));
        let pool = pool.map(PoolId::parse).transpose().map_err(|fault| fault.to_string())?;
        let gpus = MilliGpus::parse(gpus).map_err(|fault| fault.to_string())?;
        Ok(Self { text: text.to_owned(), pool, gpus })
    }
}

/// Meaning of an hour in which every series of a cluster with several series is zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ZeroHours {
    /// The recorder failed: the hour is not scored
    Gap,
    /// Nothing ran: zero was the demand
    Demand,
}

#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:\n  \
notebooks-export report --forecasts forecasts.csv --out report\n  \
notebooks-export report --forecasts forecasts.csv --pool-bounds pool_bounds.csv --out report --json\n\n\
Writes to the folder:\n  \
report.html        the page: bands, calibration, errors by step and hour, coverage, bounds, worst hours,\n                     \
skill; one file, without scripts or network, for screen and paper\n  \
report.ipynb       the same scores from the Parquet file, for further work in Jupyter (pandas, pyarrow, scipy, matplotlib)\n  \
metrics.csv        model,cluster,gpu_model,organization,step,metric,value,rows: a row a metric, for each model over all\n                     \
series and steps (names and step empty), for each step, and for each series; with bounds also for\n                     \
each pool (organization *, step = hours), the aggregation after a colon: pool_under:pooled; skill\n                     \
against a baseline likewise: skill_crps:last-value\n  \
forecasts.parquet  the rows of the forecasts, typed; times in UTC\n  \
forecasts.csv, pool_bounds.csv   with --run: the backtest of the runs\n\n\
Errors, quantiles and bounds are in GPUs. MAPE and nMAE are omitted without demand to divide by.\n\
With --zero-hours gap, target hours in which every series of a cluster is zero are counted and not scored.\n\
Bounds and peaks are limited to the known capacity: of the database with --run, else of --capacity.\n\n\
Examples:\n  \
notebooks-export report --forecasts forecasts.csv --pool-bounds pool_bounds.csv --capacity 856 --out report\n  \
notebooks-export report --run run-3 --run run-4 --database postgres://headroom@localhost/headroom --out report")]
pub struct Report {
    /// Runs of one cluster, on the hours of the database after their training, beside the baselines
    #[arg(long, value_name = "RUN", conflicts_with = "forecasts", value_delimiter = ',')]
    pub run: Vec<RunId>,
    /// forecasts.csv of train backtest
    #[arg(long, value_name = "FILE", required_unless_present = "run")]
    pub forecasts: Option<PathBuf>,
    /// pool_bounds.csv of the same backtest
    #[arg(long, value_name = "FILE", requires = "forecasts")]
    pub pool_bounds: Option<PathBuf>,
    /// Capacity of the pool, or POOL=GPUS for each of several: the upper limit of bounds
    #[arg(long, value_name = "[POOL=]GPUS")]
    pub capacity: Vec<Capacity>,
    /// Time zone of the page [default: the cluster's with --run, else UTC]
    #[arg(long, value_name = "ZONE", value_parser = datasets::calendar::zone)]
    pub time_zone: Option<Tz>,
    /// Model of the figures, such as orglinear-paper or run-3 [default: the first that is not a baseline]
    #[arg(long, value_name = "NAME")]
    pub model: Option<String>,
    /// Reference model of the summary [default: last-value, else the first baseline]
    #[arg(long, value_name = "NAME")]
    pub baseline: Option<String>,
    /// Target hours in which every series of a cluster is zero: gap (not recorded, and not scored) or demand
    #[arg(long, value_enum, default_value = "demand")]
    pub zero_hours: ZeroHours,
    /// Heading of the page
    #[arg(long, value_name = "TEXT", default_value = "Forecast report")]
    pub title: String,
    /// Folder for the report; created if missing
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
}
