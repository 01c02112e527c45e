//! Command line.

use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;
use command_line::{Common, ConfigCommand, GLOBAL};
use serde::Serialize;

/// Ask Headroom about spot quota, waiting pods and promises
#[derive(Debug, Parser)]
#[command(
    name = "kubectl-headroom",
    version,
    after_long_help = "Examples:\n  \
    kubectl-headroom quota\n  \
    kubectl-headroom why train-0 --namespace team-a\n  \
    kubectl-headroom promise train-0 --json\n\n\
    On the PATH it is a plugin: kubectl headroom quota is kubectl-headroom quota. It changes nothing.\n\
    Where Headroom is can stand in the kubeconfig: an extension headroom.dev of the context, with url, cluster, tokenFile and caFile,\n\
    and the connector's settings of pods, such as spotPriorityClasses."
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
    /// Print the spot quota of each pool
    #[command(after_long_help = "Examples:\n  \
        kubectl-headroom quota\n  \
        kubectl-headroom quota --gpu-model A100-SXM4-80GB --json")]
    Quota(QuotaFlags),
    /// Say why a pod waits
    #[command(after_long_help = "Examples:\n  \
        kubectl-headroom why train-0\n  \
        kubectl-headroom why train-0 --namespace team-a --json\n\n\
        The quota that it asks for beside what is left, the scheduler's own reason, and its last events.")]
    Why(PodFlags),
    /// Print the promise of a pod: since when, until when, and how often such promises are kept
    #[command(after_long_help = "Examples:\n  \
        kubectl-headroom promise train-0\n  \
        kubectl-headroom promise train-0 --namespace team-a --json")]
    Promise(PodFlags),
    /// Print the quota under another capacity, demand, guarantee rate or eta
    #[command(after_long_help = "Examples:\n  \
        kubectl-headroom what-if --gpu-model A100-SXM4-80GB --hours 4 --capacity-change=-200\n  \
        kubectl-headroom what-if --gpu-model A100-SXM4-80GB --hours 1 --guarantee-rate 0.95 --json")]
    WhatIf(WhatIfFlags),
    /// Print the settings
    Config {
        #[command(subcommand)]
        command: ConfigCommand,
    },
    /// Print shell completions
    Completions { shell: Shell },
}

#[derive(Debug, Clone, Args)]
pub struct QuotaFlags {
    /// Only this GPU model
    #[arg(long, value_name = "MODEL")]
    pub gpu_model: Option<String>,
}

#[derive(Debug, Clone, Args)]
pub struct PodFlags {
    /// Name of the pod
    pub pod: String,
}

#[derive(Debug, Clone, Args)]
pub struct WhatIfFlags {
    /// GPU model of the pool
    #[arg(long, value_name = "MODEL")]
    pub gpu_model: String,
    /// Guarantee, in hours
    #[arg(long, value_name = "H")]
    pub hours: u64,
    /// GPUs added to the capacity; negative ones are taken away
    #[arg(long, value_name = "GPUS", allow_hyphen_values = true)]
    pub capacity_change: Option<f64>,
    /// GPUs added to HP demand, now and in every hour ahead; negative ones are taken away
    #[arg(long, value_name = "GPUS", allow_hyphen_values = true)]
    pub demand_change: Option<f64>,
    /// p, between 0 and 1
    #[arg(long, value_name = "P")]
    pub guarantee_rate: Option<f64>,
    /// The safety coefficient
    #[arg(long, value_name = "ETA")]
    pub eta: Option<f64>,
}

/// Flags that override settings.
#[derive(Debug, Clone, Args, Serialize)]
pub struct Flags {
    /// Path of a kubeconfig
    #[arg(long, global = true, help_heading = GLOBAL, value_name = "FILE")]
    #[serde(skip_serializing_if = "Option::is_none")]
    kubeconfig: Option<String>,
    /// Context of the kubeconfig
    #[arg(long, global = true, help_heading = GLOBAL, value_name = "NAME")]
    #[serde(skip_serializing_if = "Option::is_none")]
    context: Option<String>,
    /// Namespace of the pod [default: that of the context]
    #[arg(long, short, global = true, help_heading = GLOBAL, value_name = "NAME")]
    #[serde(skip_serializing_if = "Option::is_none")]
    namespace: Option<String>,
    /// Headroom's name of this cluster
    #[arg(long, global = true, help_heading = GLOBAL, value_name = "NAME")]
    #[serde(skip_serializing_if = "Option::is_none")]
    cluster: Option<String>,
    /// URL of quota-service
    #[arg(long, global = true, help_heading = GLOBAL, value_name = "URL")]
    #[serde(skip_serializing_if = "Option::is_none")]
    headroom_url: Option<String>,
    /// File with the token for Headroom
    #[arg(long, global = true, help_heading = GLOBAL, value_name = "FILE")]
    #[serde(skip_serializing_if = "Option::is_none")]
    headroom_token_file: Option<String>,
}
