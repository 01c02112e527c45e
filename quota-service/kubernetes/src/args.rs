//! Command line.

pub use crate::config::Config;

use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;
use command_line::{Common, ConfigCommand, GLOBAL};
use serde::Serialize;
use std::net::SocketAddr;

/// Join a Kubernetes cluster to Headroom: watch it, answer its scheduler, write spot quotas
#[derive(Debug, Parser)]
#[command(
    name = "headroom-kubernetes",
    version,
    after_long_help = "Examples:\n  \
    headroom-kubernetes show --kubeconfig ~/.kube/config --cluster earth\n  \
    headroom-kubernetes run --cluster earth --headroom-url http://quota-service:8080\n  \
    headroom-kubernetes doctor --cluster earth\n\n\
    Nothing is written to the Kubernetes API until a mode is switched on (kueue, resource_quota, admission_check, \
    priority_boost, evict)."
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
    /// Watch the cluster, report to Headroom, and run the active modes
    #[command(after_long_help = "Examples:\n  \
        headroom-kubernetes run --cluster earth\n  \
        HEADROOM_EXTENDER=true headroom-kubernetes run --cluster earth --kubeconfig admin.conf\n  \
        headroom-kubernetes run --cluster earth --headroom-url https://quota-service:8080\n\n\
        It ends on SIGTERM and gives its lease back.")]
    Run,
    /// Lower published quotas to the GPUs that spot holds when they are no longer renewed
    Watchdog(WatchdogFlags),
    /// Print pools, demand and guarantees of the cluster; writes nothing and sends nothing to Headroom
    #[command(after_long_help = "Examples:\n  \
        headroom-kubernetes show --cluster earth\n  \
        headroom-kubernetes show --cluster earth --kubeconfig admin.conf --json")]
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
    headroom-kubernetes watchdog --cluster earth\n  \
    headroom-kubernetes watchdog --once --json\n\n\
    With --once it watches the heartbeat for watchdog_after_s, lowers quotas if it is still, and ends: for a CronJob.")]
pub struct WatchdogFlags {
    /// Check once, and end
    #[arg(long)]
    pub once: bool,
}

#[derive(Debug, Clone, Copy, Args)]
#[command(after_long_help = "Examples:\n  \
    headroom-kubernetes doctor --cluster earth\n  \
    headroom-kubernetes doctor --kubeconfig admin.conf --cluster earth --json --strict\n\n\
    It changes nothing. One line for each check: ok, warn or fail, the finding, and the rule or the setting that fixes it. \
    Exit code 0 without a failure, 1 with one, 4 with invalid settings.")]
pub struct DoctorFlags {
    /// Treat warnings as failures: exit code 1
    #[arg(long)]
    pub strict: bool,
}

/// Flags that override settings.
#[derive(Debug, Clone, Args, Serialize)]
pub struct Flags {
    /// Path of a kubeconfig; a server URL and a token suffice
    #[arg(long, global = true, help_heading = GLOBAL, value_name = "FILE")]
    #[serde(skip_serializing_if = "Option::is_none")]
    kubeconfig: Option<String>,
    /// Headroom's name of this cluster
    #[arg(long, global = true, help_heading = GLOBAL, value_name = "NAME")]
    #[serde(skip_serializing_if = "Option::is_none")]
    cluster: Option<String>,
    /// URL of quota-service
    #[arg(long, global = true, help_heading = GLOBAL, value_name = "URL")]
    #[serde(skip_serializing_if = "Option::is_none")]
    headroom_url: Option<String>,
    /// Address and port of health and metrics. Port 0 takes a free one
    #[arg(long, global = true, help_heading = GLOBAL, value_name = "ADDRESS")]
    #[serde(skip_serializing_if = "Option::is_none")]
    listen: Option<SocketAddr>,
    /// Address and port of the scheduler extender. Port 0 takes a free one
    #[arg(long, global = true, help_heading = GLOBAL, value_name = "ADDRESS")]
    #[serde(skip_serializing_if = "Option::is_none")]
    extender_listen: Option<SocketAddr>,
}
