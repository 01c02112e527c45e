//! Command line.

pub use crate::config::Config;

use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;
use command_line::{Common, ConfigCommand, GLOBAL};
use serde::Serialize;
use std::net::SocketAddr;

/// Join a Slurm cluster to Headroom: watch its jobs, report them, write spot limits
#[derive(Debug, Parser)]
#[command(
    name = "headroom-slurm",
    version,
    after_long_help = "Examples:\n  \
    headroom-slurm show --cluster earth\n  \
    HEADROOM_SPOT_QOS=spot1h=1,spot4h=4 headroom-slurm run --cluster earth --headroom-url http://quota-service:8080\n  \
    headroom-slurm doctor --cluster earth\n\n\
    Nothing is written to Slurm until mode is publish or publish+hook."
)]
pub struct Arguments {
    #[command(subcommand)]
    pub command: Command,
    #[command(flatten)]
    pub flags: Flags,
    #[command(flatten)]
    pub common: Common,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Watch the cluster, report to Headroom, and write limits if mode says so
    #[command(after_long_help = "Examples:\n  \
        headroom-slurm run --cluster earth\n  \
        headroom-slurm run --cluster earth --headroom-url https://quota-service:8080\n\n\
        With mode = \"publish\" in its settings it writes limits. It ends on SIGTERM and gives its lease back.")]
    Run,
    /// Lower spot limits to the GPUs that spot jobs hold when they are no longer renewed
    Watchdog(WatchdogFlags),
    /// Print pools, demand, spot jobs and limits of the cluster; writes nothing and sends nothing to Headroom
    #[command(after_long_help = "Examples:\n  \
        headroom-slurm show --cluster earth\n  \
        headroom-slurm show --cluster earth --json")]
    Show,
    /// Check everything that the modes need, and print a fix for each problem
    Doctor(DoctorFlags),
    /// Print the settings
    Config {
        #[command(subcommand)]
        command: ConfigCommand,
    },
    /// Print shell completions
    Completions { shell: Shell },
}

#[derive(Debug, Clone, Copy, Args)]
#[command(after_long_help = "Examples:\n  \
    headroom-slurm watchdog --cluster earth\n  \
    headroom-slurm watchdog --once --json\n\n\
    With --once it compares the heartbeat with that of its last call, lowers limits if it has stood still for \
    watchdog_after_s, and ends: for cron or a timer, every minute.")]
pub struct WatchdogFlags {
    /// Check once, and end
    #[arg(long)]
    pub once: bool,
}

#[derive(Debug, Clone, Copy, Args)]
#[command(after_long_help = "Examples:\n  \
    headroom-slurm doctor --cluster earth\n  \
    headroom-slurm doctor --cluster earth --json --strict\n\n\
    It changes nothing. One line for each check: ok, warn or fail, the finding, and the command or the setting that fixes \
    it. Exit code 0 without a failure, 1 with one, 4 with invalid settings.")]
pub struct DoctorFlags {
    /// Treat warnings as failures: exit code 1
    #[arg(long)]
    pub strict: bool,
}

/// Flags that override settings.
#[derive(Debug, Clone, Args, Serialize)]
pub struct Flags {
    /// Headroom's name of this cluster
    #[arg(long, global = true, help_heading = GLOBAL, value_name = "NAME")]
    #[serde(skip_serializing_if = "Option::is_none")]
    cluster: Option<String>,
    /// URL of quota-service
    #[arg(long, global = true, help_heading = GLOBAL, value_name = "URL")]
    #[serde(skip_serializing_if = "Option::is_none")]
    headroom_url: Option<String>,
    /// Folder of Slurm's programs
    #[arg(long, global = true, help_heading = GLOBAL, value_name = "DIR")]
    #[serde(skip_serializing_if = "Option::is_none")]
    slurm_bin: Option<String>,
    /// Slurm's settings file
    #[arg(long, global = true, help_heading = GLOBAL, value_name = "FILE")]
    #[serde(skip_serializing_if = "Option::is_none")]
    slurm_conf: Option<String>,
    /// Address and port of health and metrics. Port 0 takes a free one
    #[arg(long, global = true, help_heading = GLOBAL, value_name = "ADDRESS")]
    #[serde(skip_serializing_if = "Option::is_none")]
    listen: Option<SocketAddr>,
}
