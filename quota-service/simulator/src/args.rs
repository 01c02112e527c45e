//! The command line.

use crate::layout::TopologyChoice;
use crate::predictor::PredictorKind;
use crate::saturated::Fill;
use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;
use command_line::{BadValue, Common, ConfigCommand, GLOBAL};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use vocab::{Affinity, ClusterName, Domain, HorizonHours, Strictness, UnixSeconds};

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
    simulate --nodes node_info_df.csv --jobs job_info_df.csv --statement statement.csv --prices prices.toml\n  \
    simulate --snapshot pool.json --policy gfs-noquota\n  \
    simulate compare --nodes node_info_df.csv --jobs job_info_df.csv --policies gfs,gfs:last-value,gfs-noquota,fifo-fair --out compared\n  \
    simulate inflate --nodes openb_node_list_gpu_node.csv --pods openb_pod_list_default.csv --policies fgd,pwr-fgd-0.1\n\n\
    Policies: gfs; its ablations gfs-e (peak of the last week instead of a forecast), gfs-d (eta stays 1), gfs-s (best fit\n\
    alone), gfs-p (random victims), gfs-sp; gfs-topology, which looks at how GPUs lie; gfs-lazer, which puts evictions off\n\
    for a moment; gfs-paper; the control gfs-noquota; rivals yarn-cs, fifo-fair, lyra, chronus; by\n\
    fragmentation and power: fgd, pwr, pwr-fgd-A with A from 0 to 1, pwr-fgd-moving, and beside gfs: gfs-fgd, gfs-pwr;\n\
    best-fit, dot-prod, gpu-packing, gpu-clustering, first-fit, random."
)]
pub struct Arguments {
    #[command(subcommand)]
    pub command: Option<Command>,
    #[command(flatten)]
    pub trace: Option<Trace>,
    /// An answer of GET /v1/pools/{id}/snapshot: what the policy would do with its waiting tasks now
    #[arg(long, value_name = "FILE", conflicts_with = "Trace")]
    pub snapshot: Option<PathBuf>,
    /// Rules by which tasks are placed: a name, or a file with their parts, such as mine.toml
    #[arg(long, value_name = "POLICY|FILE", default_value = "gfs")]
    pub policy: String,
    /// Write where the GPU time went, as CSV by organization and day, or as JSON by organization to a file named *.json
    #[arg(long, value_name = "FILE", conflicts_with = "snapshot")]
    pub statement: Option<PathBuf>,
    /// Prices of GPU time (TOML) for the statement
    #[arg(long, value_name = "FILE", requires = "statement")]
    pub prices: Option<PathBuf>,
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
    /// Ask during a replay when waiting tasks will start, and hold the answers against what happens
    Eta(Box<crate::starts::args::Eta>),
    /// Fill a fleet with pods of a trace until nothing fits: how much is placed, and what it draws
    Inflate(Box<Inflate>),
    /// Preemption in a full cluster, with an eye to topology and without (tables 3 to 5 of the paper)
    Topology(Saturated),
    /// Play jobs on so many GPUs under policies of timing: who is preempted, and when
    Timing(Box<crate::timing::args::Timing>),
    /// Jobs whose GPUs come and go one by one: Cornucopia and its rivals on a list of jobs
    Elastic(Box<crate::elastic::args::Elastic>),
    /// Settings with their values and sources
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

/// A share of 0 to 1.
fn share(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|share| (0.0..=1.0).contains(share));
    number.ok_or_else(|| "write a share of 0 to 1, such as 0.5".to_owned())
}

fn affinity(text: &str) -> Result<Affinity, String> {
    let known = || {
        let names = |names: &[&str]| names.join(", ");
        let domains = names(&Domain::ALL.map(Domain::as_str));
        format!("write one of {domains}, with :{} if need be", names(&Strictness::ALL.map(Strictness::as_str)))
    };
    Affinity::parse(text).ok_or_else(known)
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
    /// The zero of submit_time
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
    /// The source of the HP forecast: a model of `train`, live, jobs, or oracle
    #[arg(long, value_name = "MODEL", default_value = "orglinear", value_parser = PredictorKind::parse)]
    pub predictor: PredictorKind,
    /// Whether a trained predictor knows the HP jobs that run and wait, as a service does that places them; unknown: their demand alone
    #[arg(long, value_name = "WHAT", default_value = "known", value_parser = ["known", "unknown"])]
    pub hp_jobs: String,
    /// Hours between two fits of the predictor
    #[arg(long, value_name = "HOURS", default_value = "24h", value_parser = command_line::horizon)]
    pub refit: HorizonHours,
    /// Guarantee that every spot task asks for, 1h to 168h
    #[arg(long, value_name = "HOURS", default_value = "1h", value_parser = command_line::horizon)]
    pub guarantee_hours: HorizonHours,
    /// Spot jobs for each one of the trace
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0, value_parser = factor, allow_negative_numbers = true)]
    pub spot_scale: f64,
    /// Play a cluster with so many nodes less
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub nodes_minus: usize,
    /// Probability that a guarantee holds
    #[arg(long, value_name = "P", default_value_t = 0.9, value_parser = command_line::guarantee_rate)]
    pub guarantee_rate: f64,
    /// The event whose probability is set: kept, that a promised GPU stays where it is, or peak, that HP demand stays below the
    /// bound, as in the papers. gfs-paper always has peak
    #[arg(long, value_name = "PROMISE", default_value = "kept", value_parser = ["kept", "peak"])]
    pub promise: String,
    /// Seconds between two checkpoints of a spot run: what came after the last one is lost with an eviction
    #[arg(long, value_name = "SECONDS", default_value_t = 3_600, value_parser = clap::value_parser!(i64).range(1..))]
    pub checkpoint_s: i64,
    /// Seconds that a restarted task needs before it works again
    #[arg(long, value_name = "SECONDS", default_value_t = 40, value_parser = clap::value_parser!(i64).range(0..))]
    pub restart_s: i64,
    /// The same above 8 GPUs
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(i64).range(0..))]
    pub restart_large_s: i64,
    /// Seconds that an evicted task has before its GPUs are free, as `grace_s` of a pool: so long HP waits for them. Work
    /// since the last checkpoint is lost anyway
    #[arg(long, value_name = "SECONDS", default_value_t = 0, allow_negative_numbers = true,
        value_parser = clap::value_parser!(i64).range(0..=86_400))]
    pub grace_s: i64,
    /// Share of the spot jobs of whole GPUs that are elastic: pods of one GPU each, from one of them to twice as many as asked for
    #[arg(long, value_name = "SHARE", value_parser = share, allow_negative_numbers = true)]
    pub elastic: Option<f64>,
    /// The same jobs come in pods of one GPU, and neither shrink nor grow: what splitting alone is worth
    #[arg(long, requires = "elastic")]
    pub elastic_control: bool,
    /// How fast elastic jobs are by their GPUs: a model of the file that `simulate elastic profiles` writes; without it, linear
    #[arg(long, value_name = "MODEL", requires = "elastic")]
    pub elastic_model: Option<String>,
    /// Seconds for which an elastic job stands still when its pods change (Horovod needs less than 10, Cornucopia section 4.1)
    #[arg(long, value_name = "SECONDS", default_value_t = 10, value_parser = clap::value_parser!(i64).range(0..=86_400))]
    pub resize_s: i64,
    /// How every node is laid out: rtx4090-8, a100-8, or a file as PUT /v1/nodes/{id} takes it
    #[arg(long, value_name = "PRESET|FILE", value_parser = crate::layout::topology)]
    pub topology: Option<TopologyChoice>,
    /// Affinity of every pod with 2 GPUs up to half a node: numa, socket or nvlink-island; with :guaranteed it waits rather
    /// than lie otherwise
    #[arg(long, value_name = "DOMAIN[:guaranteed]", value_parser = affinity, requires = "topology")]
    pub affinity: Option<Affinity>,
    /// Power draw of GPUs and sockets, beside the built-in table: model,idle_w,full_w,cores
    #[arg(long, value_name = "FILE")]
    pub power: Option<PathBuf>,
    /// GPUs that are sold ahead: a JSON list of what POST /v1/reservations takes. HP jobs of their organizations fill each window
    #[arg(long, value_name = "FILE")]
    pub reservations: Option<PathBuf>,
    /// Use of reserved GPUs by spot: edge, until each window begins; none, nothing at any time; unannounced, as if nobody
    /// had reserved, though the jobs come
    #[arg(long, value_name = "HOW", default_value = "edge", value_parser = ["edge", "none", "unannounced"], requires = "reservations")]
    pub backfill: String,
    /// Leave out rows that cannot be read, and list them
    #[arg(long)]
    pub skip_bad_rows: bool,
}

#[derive(Debug, Args)]
#[command(after_long_help = "Examples:\n  \
    simulate topology --cycles 100 --preemptions 50 --seed 0\n  \
    simulate topology --fill lowest --share-of-b 0 --json\n\n\
    100 nodes of 8 GPUs are filled with 20 instances of workload A (8 GPUs), 40 of B (4), 200 of C (2) and 80 of D (1), the\n\
    largest first, each on a node drawn from those with room. Then instances of B, which may evict C and D, and of C, which may\n\
    evict D, are decided on one by one, each against the same full cluster. A hit has its GPUs in one socket.")]
pub struct Saturated {
    /// Times that the cluster is filled again
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
    pub cycles: u32,
    /// Preemptors in each cycle
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    pub preemptions: u32,
    /// Of a hundred preemptors so many are of workload B, the others of C
    #[arg(long, value_name = "PERCENT", default_value_t = 50, value_parser = clap::value_parser!(u32).range(0..=100))]
    pub share_of_b: u32,
    /// Which GPUs of its node an instance gets when the cluster is filled
    #[arg(long, value_name = "HOW", default_value = "random", value_enum)]
    pub fill: Fill,
    /// How every node is laid out, of 8 GPUs: rtx4090-8, a100-8, or a file as PUT /v1/nodes/{id} takes it
    #[arg(long, value_name = "PRESET|FILE", default_value = "rtx4090-8", value_parser = crate::layout::topology)]
    pub topology: TopologyChoice,
}

#[derive(Debug, Args)]
#[command(after_long_help = "Examples:\n  \
    simulate compare --nodes node_info_df.csv --jobs job_info_df.csv --policies gfs,gfs-noquota,fifo-fair --out compared\n  \
    simulate compare --nodes node_info_df.csv --jobs job_info_df.csv --policies gfs,gfs:last-value,gfs:oracle --json\n  \
    simulate compare --nodes node_info_df.csv --jobs job_info_df.csv --policies gfs:live,gfs-noquota --guarantee-rates 0.5,0.8,0.9,0.95 --draws 5 --grace-s 60 --out compared\n  \
    simulate compare --nodes node_info_df.csv --jobs job_info_df.csv --policies gfs --elastic 1")]
pub struct Compare {
    #[command(flatten)]
    pub trace: Trace,
    /// By their names or files, each with a predictor of its own after a colon if need be
    #[arg(long, value_name = "POLICY,…", value_delimiter = ',', required = true)]
    pub policies: Vec<String>,
    /// The price of a promise: play each policy that has a quota at each of these probabilities, the others once
    #[arg(long, value_name = "P,…", value_delimiter = ',', value_parser = command_line::guarantee_rate,
        conflicts_with = "guarantee_rate", allow_negative_numbers = true)]
    pub guarantee_rates: Vec<f64>,
    /// Play everything so many times, from the seed on, each time without one in a hundred of the spot jobs, drawn again:
    /// means, and the deviations that say how much a figure moves by chance
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(2..=1_000))]
    pub draws: Option<u64>,
    /// Folder for compare.html, compare.csv, price.csv and course.csv
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(after_long_help = "Examples:\n  \
    simulate inflate --nodes openb_node_list_gpu_node.csv --pods openb_pod_list_default.csv --policies fgd,best-fit,pwr-fgd-0.1 --out inflated\n  \
    simulate inflate --nodes nodes.csv --pods pods.csv --policies fgd,pwr-fgd-moving --seeds 1 --power power.csv --json\n\n\
    Each seed draws an order of the pods and of the nodes. Pods of the trace come in that order, then any of them again, until they\n\
    have asked for 130 % of all GPUs; none leaves. GRAR: GPUs placed of those asked for. EOPC: the watts of all nodes.\n\
    A table of power: model,idle_w,full_w,cores with a row for each GPU model that is not known, and a row cpu for the sockets.")]
pub struct Inflate {
    /// sn,cpu_milli,memory_mib,gpu,model
    #[arg(long, value_name = "FILE")]
    pub nodes: PathBuf,
    /// name,cpu_milli,num_gpu,gpu_milli and the other columns of the openb trace
    #[arg(long, value_name = "FILE")]
    pub pods: PathBuf,
    /// By their names or files
    #[arg(long, value_name = "POLICY,…", value_delimiter = ',', required = true)]
    pub policies: Vec<String>,
    /// Runs of each policy, from the seed on
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=1_000))]
    pub seeds: u64,
    /// Power draw of GPUs and sockets, beside the built-in table
    #[arg(long, value_name = "FILE")]
    pub power: Option<PathBuf>,
    /// Folder for inflate.html, inflate.csv and curves.csv
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}
