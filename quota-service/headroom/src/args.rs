//! The command line.

use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;
use command_line::{Common, ConfigCommand, GLOBAL};
use serde::Serialize;
use std::net::SocketAddr;

/// Ask a Headroom service for spot quota, submit tasks, follow them, reserve GPUs, see what they cost
#[derive(Debug, Parser)]
#[command(
    name = "headroom",
    version,
    after_long_help = "Examples:\n  \
    headroom quota --hours 4\n  \
    headroom submit --id sweep-1 --organization vision --gpus-per-pod 8 --pods 2 --guarantee-hours 4\n  \
    headroom why sweep-1\n  \
    headroom when sweep-1\n  \
    headroom statement --month 2026-11\n\n\
    The pool is named by --cluster and --gpu-model; where the service shows a single one, by neither."
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
    /// Print how many GPUs spot tasks may hold, and how many of them are free
    Quota(QuotaFlags),
    /// Submit a task; it starts at once, or waits with its reason
    Submit(SubmitFlags),
    /// Explain why a task waits or runs, or how the quota was computed
    Why(WhyFlags),
    /// Print when a task starts, or would start; what each guarantee costs in waiting; what ends in time
    When(WhenFlags),
    /// Take tasks back, waiting or running
    Cancel(CancelFlags),
    /// Follow a task, the events of a pool, or its quota
    Watch(WatchFlags),
    /// Reserve GPUs of a pool for an organization in a window ahead, once or each week
    Reserve(ReserveFlags),
    /// List the reservations of a pool with their next windows, or print them as a calendar
    Reservations(ReservationsFlags),
    /// Withdraw reservations
    Withdraw(WithdrawFlags),
    /// Print where the GPU time of a month went, and what it costs
    Statement(StatementFlags),
    /// Serve the Model Context Protocol, for agents: stdin and stdout, or HTTP
    Mcp(McpFlags),
    /// Print the settings
    Config {
        #[command(subcommand)]
        command: ConfigCommand,
    },
    /// Print shell completions
    Completions { shell: Shell },
}

#[derive(Debug, Clone, Args)]
#[command(after_long_help = "Examples:\n  \
    headroom quota\n  \
    headroom quota --cluster earth --gpu-model A100 --hours 4 --json\n\n\
    Without --hours: one row for each guarantee that is offered, of every pool that the settings allow.")]
pub struct QuotaFlags {
    /// Guarantee hours: with the reasons for the quota
    #[arg(long, value_name = "HOURS", value_parser = clap::value_parser!(u8).range(1..))]
    pub hours: Option<u8>,
}

#[derive(Debug, Clone, Args)]
#[command(after_long_help = "Examples:\n  \
    headroom submit --id sweep-1 --organization vision --gpus-per-pod 8 --pods 2 --guarantee-hours 4\n  \
    headroom submit --organization vision --gpus-per-pod 0.5\n  \
    headroom submit --id train-7 --organization speech --class hp --gpus-per-pod 8 --pods 4 --dry-run\n\n\
    A task is known by its id, so that a submission without an answer may be repeated: the same task again is answered as it \
    stands. Without --id one is drawn, and printed.")]
pub struct SubmitFlags {
    /// Id of the task, never used before in the pool
    #[arg(long, value_name = "ID")]
    pub id: Option<String>,
    /// Organization of the task [default: the setting default_organization]
    #[arg(long, value_name = "NAME")]
    pub organization: Option<String>,
    /// High priority, or spot
    #[arg(long, value_name = "CLASS", default_value = "spot", value_parser = ["hp", "spot"])]
    pub class: String,
    /// GPUs of each pod: whole ones, or a share of one such as 0.25
    #[arg(long, value_name = "GPUS", default_value_t = 1.0, allow_negative_numbers = true, value_parser = finite)]
    pub gpus_per_pod: f64,
    /// Number of pods, placed all or none
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub pods: u32,
    /// Hours for which a spot task is promised its GPUs; without them it runs at will
    #[arg(long, value_name = "HOURS")]
    pub guarantee_hours: Option<u64>,
    /// Thousandths of a virtual CPU of each pod
    #[arg(long, value_name = "MILLI", default_value_t = 0)]
    pub cpu_milli: u64,
    /// Memory of each pod, in MiB
    #[arg(long, value_name = "MIB", default_value_t = 0)]
    pub memory_mib: u64,
    /// Fewest pods on which an elastic spot task runs; a guarantee holds for these
    #[arg(long, value_name = "N")]
    pub min_pods: Option<u32>,
    /// Most pods of an elastic task [default: twice --pods]
    #[arg(long, value_name = "N", requires = "min_pods")]
    pub max_pods: Option<u32>,
    /// Print the decision on a submission now, and submit nothing
    #[arg(long)]
    pub dry_run: bool,
}

#[derive(Debug, Clone, Args)]
#[command(after_long_help = "Examples:\n  \
    headroom why sweep-1\n  \
    headroom why --hours 4 --json\n\n\
    With a task: its state, the reason, and the promises of the pool. Without: the quota step by step.")]
pub struct WhyFlags {
    /// Id of a task; without it, the quota is explained
    pub task: Option<String>,
    /// Guarantee hours of the quota that is explained
    #[arg(long, value_name = "HOURS", default_value_t = 1, conflicts_with = "task",
        value_parser = clap::value_parser!(u8).range(1..))]
    pub hours: u8,
}

#[derive(Debug, Clone, Args)]
#[command(after_long_help = "Examples:\n  \
    headroom when sweep-1\n  \
    headroom when --organization vision --gpus-per-pod 8 --pods 2 --guarantee-hours 4\n  \
    headroom when --organization vision --gpus-per-pod 8 --prices\n  \
    headroom when --organization vision --gpus-per-pod 8 --runs 3h --ends-by 2026-11-26T18:00:00Z --probability 0.9\n\n\
    With a task: its start. Without: the start of a task that is not submitted; with --prices, or with --ends-by, one line for each \
    class and guarantee. Nothing is submitted.")]
pub struct WhenFlags {
    /// Id of a task that waits or runs
    #[arg(conflicts_with_all = ["organization", "class", "gpus_per_pod", "pods", "guarantee_hours", "prices", "runs", "ends_by"])]
    pub task: Option<String>,
    /// Organization of the task [default: the setting default_organization]
    #[arg(long, value_name = "NAME")]
    pub organization: Option<String>,
    /// High priority, or spot
    #[arg(long, value_name = "CLASS", default_value = "spot", value_parser = ["hp", "spot"])]
    pub class: String,
    /// GPUs of each pod: whole ones, or a share of one such as 0.25
    #[arg(long, value_name = "GPUS", default_value_t = 1.0, allow_negative_numbers = true, value_parser = finite)]
    pub gpus_per_pod: f64,
    /// Number of pods, placed all or none
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub pods: u32,
    /// Hours for which a spot task is promised its GPUs; without them it runs at will
    #[arg(long, value_name = "HOURS")]
    pub guarantee_hours: Option<u64>,
    /// Print what each class and guarantee costs in waiting
    #[arg(long, conflicts_with_all = ["class", "guarantee_hours"])]
    pub prices: bool,
    /// How long the task runs, such as 90m or 3h: prints when it ends
    #[arg(long, value_name = "TIME", value_parser = seconds, conflicts_with_all = ["class", "guarantee_hours"])]
    pub runs: Option<u64>,
    /// When the task is to have ended, RFC 3339: prints which class and guarantee end in time, and the latest submission
    #[arg(long, value_name = "TIME", requires = "runs")]
    pub ends_by: Option<String>,
    /// Probability with which the task is to end in time [default: 0.9]
    #[arg(long, value_name = "P", requires = "ends_by", value_parser = finite)]
    pub probability: Option<f64>,
}

#[derive(Debug, Clone, Args)]
#[command(after_long_help = "Examples:\n  \
    headroom cancel sweep-1\n  \
    headroom cancel sweep-1 sweep-2 --json")]
pub struct CancelFlags {
    /// Ids of tasks
    #[arg(required = true)]
    pub tasks: Vec<String>,
}

#[derive(Debug, Clone, Args)]
#[command(after_long_help = "Examples:\n  \
    headroom watch sweep-1 --until running\n  \
    headroom watch --json\n  \
    headroom watch --quota --hours 4 --count 1\n\n\
    With a task: its state at each change, until it has ended. Without: the events of the pool, from now on. One line each; with \
    --json one line of JSON each. While the service is away it goes on where it was.")]
pub struct WatchFlags {
    /// Id of a task; without it, every event of the pool
    pub task: Option<String>,
    /// End once the task runs, or has ended
    #[arg(long, value_name = "STATE", default_value = "ended", value_parser = ["running", "ended"], requires = "task")]
    pub until: String,
    /// Follow the quota instead
    #[arg(long, conflicts_with = "task")]
    pub quota: bool,
    /// Guarantee hours of the quota
    #[arg(long, value_name = "HOURS", default_value_t = 1, requires = "quota",
        value_parser = clap::value_parser!(u8).range(1..))]
    pub hours: u8,
    /// End after so many lines
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,
}

#[derive(Debug, Clone, Args)]
#[command(after_long_help = "Examples:\n  \
    headroom reserve --organization vision --gpus 16 --from 2026-12-07T09:00:00+01:00 --to 2026-12-07T17:00:00+01:00 --dry-run\n  \
    headroom reserve --organization vision --gpus 16 --from 2026-12-07T09:00:00+01:00 --to 2026-12-07T17:00:00+01:00 --days MO,TH\n\n\
    In a window the GPUs are for the HP tasks of the organization; until then spot uses them. With --dry-run: the probability that the HP \
    demand of others leaves the GPUs, and nothing is stored. The same reservation again is answered as it is stored.")]
pub struct ReserveFlags {
    /// Organization that gets the GPUs [default: the setting default_organization]
    #[arg(long, value_name = "NAME")]
    pub organization: Option<String>,
    /// GPUs of each window
    #[arg(long, value_name = "GPUS", allow_negative_numbers = true, value_parser = finite)]
    pub gpus: f64,
    /// Begin of the first window, RFC 3339
    #[arg(long, value_name = "TIME")]
    pub from: String,
    /// End of the first window, RFC 3339
    #[arg(long, value_name = "TIME")]
    pub to: String,
    /// Days of the week on which a window begins, that of --from among them, at the local time of the cluster
    #[arg(long, value_name = "DAYS", value_delimiter = ',', ignore_case = true,
        value_parser = ["MO", "TU", "WE", "TH", "FR", "SA", "SU"])]
    pub days: Vec<String>,
    /// No window begins at this time or later, RFC 3339
    #[arg(long, value_name = "TIME", requires = "days")]
    pub until: Option<String>,
    /// Print the windows with their probability, and store nothing
    #[arg(long)]
    pub dry_run: bool,
}

#[derive(Debug, Clone, Args)]
#[command(after_long_help = "Examples:\n  \
    headroom reservations\n  \
    headroom reservations 7\n  \
    headroom reservations --past --json\n  \
    headroom reservations --ics >reserved.ics\n\n\
    One row each, with the next window. With a number: all of its next windows, eight at most.")]
pub struct ReservationsFlags {
    /// Number of one reservation
    #[arg(value_name = "NUMBER", conflicts_with_all = ["past", "ics"])]
    pub id: Option<u64>,
    /// Also those that are over or withdrawn
    #[arg(long)]
    pub past: bool,
    /// Print the windows of the next 12 weeks as iCalendar
    #[arg(long, conflicts_with = "json")]
    pub ics: bool,
}

#[derive(Debug, Clone, Args)]
#[command(after_long_help = "Examples:\n  \
    headroom withdraw 7\n  \
    headroom withdraw 7 8 --json\n\n\
    Quotas follow at once. A second withdrawal changes nothing.")]
pub struct WithdrawFlags {
    /// Numbers of reservations, as headroom reservations lists them
    #[arg(required = true, value_name = "NUMBER")]
    pub ids: Vec<u64>,
}

#[derive(Debug, Clone, Args)]
#[command(after_long_help = "Examples:\n  \
    headroom statement\n  \
    headroom statement --month 2026-11 --organization vision\n  \
    headroom statement --month 2026-11 --by day --csv >statement.csv\n\n\
    GPU-hours; deploy/STATEMENTS.md has the words. Of the pools that the settings allow.")]
pub struct StatementFlags {
    /// Month of UTC, YYYY-MM [default: the present one]
    #[arg(long, value_name = "MONTH")]
    pub month: Option<String>,
    /// One row for the month, or for each day
    #[arg(long, value_name = "SPAN", default_value = "month", value_parser = ["month", "day"])]
    pub by: String,
    /// Only this organization
    #[arg(long, value_name = "NAME")]
    pub organization: Option<String>,
    /// Print CSV
    #[arg(long, conflicts_with_all = ["json", "opencost"])]
    pub csv: bool,
    /// Print rows with the columns of OpenCost's CSV export, by day
    #[arg(long, conflicts_with = "json")]
    pub opencost: bool,
}

#[derive(Debug, Clone, Args)]
#[command(after_long_help = "Examples:\n  \
    headroom mcp --api https://headroom.example:8443 --api-token-file token\n  \
    headroom mcp --http 127.0.0.1:8090\n\n\
    Its tools read: pools, quota, why, when, what_if, promises, statement, reservations. With --allow-writes also submit, cancel, \
    reserve and withdraw. Over HTTP it listens on this machine alone, at /mcp.")]
pub struct McpFlags {
    /// Address and port for streamable HTTP, of the loopback; port 0 takes a free one. Without it, stdin and stdout
    #[arg(long, value_name = "ADDRESS")]
    pub http: Option<SocketAddr>,
    /// Offer the tools that submit and cancel tasks, and that sell and withdraw reservations
    #[arg(long)]
    pub allow_writes: bool,
}

fn finite(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|number| number.is_finite());
    number.ok_or_else(|| "expected a number such as 8 or 0.25".to_owned())
}

/// Seconds of a time such as 90m, 3h or 5400s.
fn seconds(text: &str) -> Result<u64, String> {
    let unit_s = |unit: char| [('s', 1), ('m', 60), ('h', 3_600)].into_iter().find(|known| known.0 == unit);
    let known = text.chars().last().and_then(unit_s).and_then(|(unit, unit_s)| {
        let number: u64 = text.strip_suffix(unit)?.parse().ok()?;
        number.checked_mul(unit_s)
    });
    known.filter(|seconds| *seconds > 0).ok_or_else(|| "expected a time such as 90m, 3h or 5400s".to_owned())
}

/// Flags that override settings.
#[derive(Debug, Clone, Args, Serialize)]
pub struct Flags {
    /// URL of quota-service
    #[arg(long, global = true, help_heading = GLOBAL, value_name = "URL")]
    #[serde(skip_serializing_if = "Option::is_none")]
    api: Option<String>,
    /// File with the token
    #[arg(long, global = true, help_heading = GLOBAL, value_name = "FILE")]
    #[serde(skip_serializing_if = "Option::is_none")]
    api_token_file: Option<String>,
    /// Cluster of the pool
    #[arg(long, global = true, help_heading = GLOBAL, value_name = "NAME")]
    #[serde(skip_serializing_if = "Option::is_none")]
    cluster: Option<String>,
    /// GPU model of the pool
    #[arg(long, global = true, help_heading = GLOBAL, value_name = "NAME")]
    #[serde(skip_serializing_if = "Option::is_none")]
    gpu_model: Option<String>,
}
