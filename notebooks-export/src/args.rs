//! What the command line says.

use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;
use command_line::{Common, ConfigCommand};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Reports of forecasts: scores as CSV, forecasts as Parquet
#[derive(Debug, Parser)]
#[command(
    name = "notebooks-export",
    version,
    after_long_help = "Examples:\n  \
    train backtest --horizon 4h --from 2020-05-18T00:00:00+08:00 --to 2020-05-24T23:00:00+08:00 --out forecasts.csv --pool-out pool_bounds.csv\n  \
    notebooks-export report --forecasts forecasts.csv --pool-bounds pool_bounds.csv --out report\n  \
    python -c \"import pandas; print(pandas.read_parquet('report/forecasts.parquet').dtypes)\""
)]
pub struct Arguments {
    #[command(subcommand)]
    pub command: Command,
    #[command(flatten)]
    pub common: Common,
}

/// Settings of this program: it has none. A key of its section in the settings file is refused.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Score a backtest: metrics.csv, and forecasts.parquet for notebooks
    Report(Report),
    /// Settings in force
    Config {
        #[command(subcommand)]
        command: ConfigCommand,
    },
    /// Print shell completions
    Completions { shell: Shell },
}

#[derive(Debug, Args)]
#[command(after_long_help = "\
Writes to the folder:\n  \
metrics.csv        model,cluster,gpu_model,organization,step,metric,value,rows: a row a metric, for each model over all\n                     \
series and steps (names and step empty), for each step, and for each series; with --pool-bounds also\n                     \
for each pool (organization *, step = hours), the aggregation after a colon: pool_under:pooled\n  \
forecasts.parquet  the rows of the forecasts, typed; times in UTC\n\n\
Errors, quantiles and bounds are in GPUs. MAPE and nMAE are left out where there is no demand to divide by.\n\
Target hours in which every series of a cluster is zero are recording gaps: they are counted and not scored.\n\
Bounds are scored as they stand in the file; train backtest caps them at the capacity that its database knows.")]
pub struct Report {
    /// forecasts.csv of train backtest
    #[arg(long, value_name = "FILE")]
    pub forecasts: PathBuf,
    /// pool_bounds.csv of the same backtest
    #[arg(long, value_name = "FILE")]
    pub pool_bounds: Option<PathBuf>,
    /// Folder for the report; made if missing
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
}
