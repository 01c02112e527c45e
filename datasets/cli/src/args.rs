//! Command line of `datasets`.

use crate::source_flags::SourceFlags;
use chrono_tz::Tz;
use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use command_line::{BadValue, Common, ConfigCommand, GLOBAL};
use serde::{Deserialize, Serialize};
use slurm_records::RulesFlags;
use std::path::PathBuf;
use vocab::{ClusterName, GpuModel, HourStart, MilliGpus, UnixSeconds};

/// Load, inspect and export usage histories
#[derive(Debug, Parser)]
#[command(
    name = "datasets",
    version,
    after_long_help = "Examples:\n  \
    datasets ingest --format usage usage.csv --capacity 856\n  \
    datasets ingest --format helios helios-earth --cluster earth --gpu-model V100\n  \
    datasets ingest --format gfs-jobs job_info_df.csv --nodes node_info_df.csv --cluster gfs --epoch 2024-03-01T00:00:00+08:00\n  \
    datasets ingest --format usage usage.csv --time-zone Europe/Berlin --calendar DE+company.ics\n  \
    datasets ingest --format prometheus http://prometheus:9090 --cluster earth --gpu-model V100 --hp-priority-classes high\n  \
    datasets generate --preset gfs --days 35 --seed 7 --out synthetic --check\n  \
    datasets calendar set --cluster earth CN\n  \
    datasets describe --database postgres://headroom@localhost/headroom"
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
    /// sqlite://FILE (created if missing) or postgres://…; also DATABASE_URL
    #[arg(long, global = true, value_name = "URL", help_heading = GLOBAL)]
    #[serde(skip_serializing_if = "Option::is_none")]
    database: Option<String>,
}

/// Settings of this program.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    pub database: String,
}

impl command_line::Config for Config {
    fn check(&self) -> Result<(), BadValue> {
        store::check_url(&self.database).map_err(|fault| BadValue::new("database", fault))
    }
}

impl Default for Config {
    fn default() -> Self {
        Self { database: "sqlite://headroom.db".to_owned() }
    }
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Read a file of usage or of a public trace into the database
    Ingest(Box<Ingest>),
    /// Summarize the clusters, pools and series of the database
    Describe(Describe),
    /// List and show calendars of days off, and give a cluster one
    Calendar {
        #[command(subcommand)]
        command: CalendarCommand,
    },
    /// Write usage.csv
    Export(Export),
    /// Generate synthetic jobs and usage from a seed
    Generate(Generate),
    /// Print the settings
    Config {
        #[command(subcommand)]
        command: ConfigCommand,
    },
    /// Print shell completions
    Completions { shell: Shell },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum InputFormat {
    /// hour,cluster,gpu_model,organization,demand_gpus and, where it is known, demand_at_end_gpus
    Usage,
    /// The job list of the GFS trace: jobs become hourly HP demand, until the hour of the last submission
    GfsJobs,
    /// A folder of Helios tenants, one vc*.csv each, a row a minute
    Helios,
    /// The hourly file of the Alibaba spot trace, a column a GPU model
    AlibabaHourly,
    /// The job list of Microsoft's Philly cluster (times in minutes, best_effort 1 is spot), as gfs-jobs
    Philly,
    /// The columns of usage.csv in Parquet files: a file, a folder, or s3://BUCKET/PREFIX
    Parquet,
    /// HP demand from a Prometheus, whose URL takes the place of the file
    Prometheus,
    /// Jobs of Slurm: the output of sacct --json, or the path sacct, which runs it
    Slurm,
}

impl InputFormat {
    /// Name on the command line.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Usage => "usage",
            Self::GfsJobs => "gfs-jobs",
            Self::Helios => "helios",
            Self::AlibabaHourly => "alibaba-hourly",
            Self::Philly => "philly",
            Self::Parquet => "parquet",
            Self::Prometheus => "prometheus",
            Self::Slurm => "slurm",
        }
    }

    /// A list of jobs counts time from an epoch that it does not contain.
    pub const fn is_job_list(self) -> bool {
        matches!(self, Self::GfsJobs | Self::Philly)
    }

    /// Whether each row names its cluster.
    pub const fn names_clusters(self) -> bool {
        matches!(self, Self::Usage | Self::Parquet)
    }

    /// Whether the file may hold one GPU model without its name.
    pub const fn names_no_gpu_model(self) -> bool {
        matches!(self, Self::Helios | Self::Philly | Self::Prometheus | Self::Slurm)
    }
}

/// Meaning of an hour in which every organization of a cluster is at zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ZeroHours {
    /// The recorder failed: the rows are left out, and the hour counts as not recorded
    Gap,
    /// Nothing ran: zero is the demand
    Demand,
}

impl InputFormat {
    /// Default of `--zero-hours`: the recorder of Helios wrote zeros on 2020-05-10.
    pub const fn zero_hours(self) -> ZeroHours {
        match self {
            Self::Helios => ZeroHours::Gap,
            Self::Usage
            | Self::GfsJobs
            | Self::AlibabaHourly
            | Self::Philly
            | Self::Parquet
            | Self::Prometheus
            | Self::Slurm => ZeroHours::Demand,
        }
    }
}

#[derive(Debug, Args)]
#[command(after_long_help = "Examples:\n  \
    datasets ingest --format usage usage.csv --time-zone Europe/Berlin --capacity 856\n  \
    datasets ingest --format helios helios-earth --cluster earth --gpu-model V100\n  \
    datasets ingest --format gfs-jobs job_info_df.csv --nodes node_info_df.csv --cluster gfs --epoch 2024-03-01T00:00:00+08:00\n  \
    datasets ingest --format parquet s3://history/earth/ --time-zone Europe/Berlin\n  \
    datasets ingest --format philly trace_job_Philly_MIX1.csv --cluster philly --gpu-model V100 --epoch 2017-10-02T00:00:00Z\n  \
    datasets ingest --format prometheus http://prometheus:9090 --cluster earth --gpu-model V100 --hp-priority-classes high,system\n  \
    datasets ingest --format prometheus https://thanos.example:10902 --cluster earth --gpu-model-label label_nvidia_com_gpu_product \\\n  \
    \u{20}   --gpu-model V100 --hp-priority-classes high --from 2026-10-01T00:00:00Z --token-file token\n  \
    datasets ingest --format prometheus http://prometheus:9090 --cluster earth --gpu-model V100 --organization-label team \\\n  \
    \u{20}   --query 'sum by (team) (scheduler_hp_gpus)' --presence-query 'up{job=\"scheduler\"}'\n  \
    datasets ingest --format slurm sacct --cluster earth --spot-qos spot1h,spot4h --from 2026-10-01T00:00:00Z\n  \
    datasets ingest --format slurm sacct.json --nodes nodes.json --cluster earth --spot-partitions scavenge\n\n\
    usage.csv holds hour,cluster,gpu_model,organization,demand_gpus; organization * is the pool's own hourly peak.\n\
    A sixth column, demand_at_end_gpus, may hold the demand at the end of the hour, or nothing where it is not known.\n\
    parquet: the same columns; hours are timestamps or text, further columns are ignored. s3:// takes address and credentials\n\
    from AWS_ENDPOINT, AWS_REGION, AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and the like; a storage that is silent for\n\
    twice AWS_TIMEOUT (30s) is given up.\n\
    A job counts from its submission, for its duration: the lists do not contain waiting times.\n\
    prometheus: an hour is the peak of its samples. An hour with too few samples, or with a partial answer, is missing,\n\
    not zero. An organization that is absent while others are present is at zero. Repeated hours change nothing.\n\
    philly: a request above 8 GPUs counts as equal workers. Jobs without GPUs are skipped and counted.\n\
    slurm: sacct.json is the output of sacct --allusers --duplicates --allocations --starttime=TIME --json. A job counts\n\
    from when it is eligible until it ends; held jobs and the rest of an array over its limit do not.")]
pub struct Ingest {
    /// File, folder for helios and parquet, URL for prometheus and parquet; for slurm a file, - for stdin, or the path of sacct,
    /// which is run
    #[arg(value_name = "PATH|URL")]
    pub path: PathBuf,
    /// Format of the input
    #[arg(long, value_enum)]
    pub format: InputFormat,
    /// Cluster of a file without a cluster column [default: the name of the file or folder]; required for prometheus
    #[arg(long, value_name = "NAME", value_parser = |text: &str| ClusterName::parse(text))]
    pub cluster: Option<ClusterName>,
    /// GPU model of a file without one (helios, philly) [default: any]; for prometheus, of series without one; for slurm, of
    /// jobs without a GPU type [default: the type on which most jobs of their partition run]
    #[arg(long, value_name = "MODEL", value_parser = |text: &str| GpuModel::parse(text))]
    pub gpu_model: Option<GpuModel>,
    /// IANA time zone of the cluster, for times without an offset [default: the stored zone, else Asia/Shanghai for helios
    /// and alibaba-hourly, else UTC]
    #[arg(long, value_name = "ZONE", value_parser = datasets::calendar::zone)]
    pub time_zone: Option<Tz>,
    /// Days off of the cluster: weekdays, CN, US, DE, GB, JP, IN, your own CSV or iCal file, or both, as in CN+company.csv
    /// [default: the stored calendar, else weekdays]; see datasets calendar
    #[arg(long, value_name = "NAME|FILE")]
    pub calendar: Option<String>,
    /// Time zero of gfs-jobs and philly (required there), or of alibaba-hourly (2024-03-01T00:00:00+08:00 if not given)
    #[arg(long, value_name = "TIME", value_parser = command_line::instant)]
    pub epoch: Option<UnixSeconds>,
    /// GPUs of the pool, for a file with one pool
    #[arg(long, value_name = "GPUS", value_parser = |text: &str| MilliGpus::stated(MilliGpus::parse(text)), allow_negative_numbers = true)]
    pub capacity: Option<MilliGpus>,
    /// Node list (node_name,gpu_model,gpu_capacity_num,cpu_num) of gfs-jobs or philly: the capacity of each GPU model; for
    /// slurm, the output of scontrol show nodes --json (22.05: sinfo --json) [default: asked for where sacct is run]
    #[arg(long, value_name = "FILE")]
    pub nodes: Option<PathBuf>,
    /// Hours in which every organization of a cluster is at zero: gap (not recorded) or demand [default: gap for helios,
    /// else demand]
    #[arg(long, value_enum)]
    pub zero_hours: Option<ZeroHours>,
    /// Skip and list bad rows instead of refusing the file
    #[arg(long)]
    pub skip_bad_rows: bool,
    #[command(flatten)]
    pub source: SourceFlags,
    #[command(flatten, next_help_heading = "With --format slurm")]
    pub slurm: RulesFlags,
}

#[derive(Debug, Subcommand)]
#[command(
    after_long_help = "A file of your own is CSV with the header date,kind,name (kind: off, or work for a make-up \
    working day; a first line such as # years: 2020-2026 says which years it is complete for), or iCal with all-day \
    events (category WORKDAY for a make-up working day). It is stored under the file's name without its ending.\n\n\
    Examples:\n  \
    datasets calendar list\n  \
    datasets calendar show CN --year 2024\n  \
    datasets calendar show company.ics\n  \
    datasets calendar set --cluster earth CN\n  \
    datasets calendar set --cluster earth CN+company.csv --time-zone Asia/Shanghai"
)]
pub enum CalendarCommand {
    /// List built-in and own calendars, with the years they cover
    #[command(after_long_help = "Examples:\n  datasets calendar list\n  datasets calendar list --json")]
    List,
    /// Print the named days of a calendar, of a file before it is stored, or of a cluster
    Show(ShowCalendar),
    /// Give a cluster another calendar; runs keep the old one until they are trained again
    Set(SetCalendar),
}

#[derive(Debug, Args)]
#[command(after_long_help = "Examples:\n  \
    datasets calendar show CN --year 2024\n  \
    datasets calendar show company.ics\n  \
    datasets calendar show --cluster earth --json")]
pub struct ShowCalendar {
    /// Name or file; or give --cluster
    #[arg(value_name = "NAME|FILE", required_unless_present = "cluster", conflicts_with = "cluster")]
    pub calendar: Option<String>,
    /// The calendar of this cluster
    #[arg(long, value_name = "NAME", value_parser = |text: &str| ClusterName::parse(text))]
    pub cluster: Option<ClusterName>,
    /// This year only
    #[arg(long, value_name = "YEAR", value_parser = clap::value_parser!(i32).range(1970..=2199))]
    pub year: Option<i32>,
}

#[derive(Debug, Args)]
#[command(after_long_help = "Examples:\n  \
    datasets calendar set --cluster earth CN\n  \
    datasets calendar set --cluster earth CN+company.csv --time-zone Asia/Shanghai")]
pub struct SetCalendar {
    /// Name or file
    #[arg(value_name = "NAME|FILE")]
    pub calendar: String,
    /// The cluster
    #[arg(long, value_name = "NAME", value_parser = |text: &str| ClusterName::parse(text))]
    pub cluster: ClusterName,
    /// IANA time zone of the cluster
    #[arg(long, value_name = "ZONE", value_parser = datasets::calendar::zone)]
    pub time_zone: Option<Tz>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Preset {
    /// One pool of A100 GPUs, usage only; calibrated to no trace
    Small,
    /// 4,278 nodes of six GPU models; jobs and usage with the published shares of the GFS trace
    Gfs,
    /// 287 nodes of 8 A100; jobs and usage with the shares of the GFS paper's table 3
    GfsA100,
}

#[derive(Debug, Args)]
#[command(after_long_help = "Examples:\n  \
    datasets generate --preset gfs --days 35 --seed 7 --out synthetic\n  \
    datasets generate --preset gfs-a100 --check\n  \
    datasets ingest --format gfs-jobs synthetic/job_info_df.csv --nodes synthetic/node_info_df.csv --cluster gfs \\\n  \
    \u{20}   --epoch 2024-03-01T00:00:00+08:00 --time-zone Asia/Shanghai")]
pub struct Generate {
    /// Kind of cluster
    #[arg(long, value_enum, default_value = "small")]
    pub preset: Preset,
    /// Days of jobs and usage
    #[arg(long, value_name = "DAYS", default_value_t = 35, value_parser = clap::value_parser!(u32).range(1..=3_650))]
    pub days: u32,
    /// Organizations [default: 12 for small, 84 for gfs, 39 for gfs-a100]. Fewer: the largest ones; more: the smallest are
    /// repeated
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub organizations: Option<u32>,
    /// The same seed gives the same bytes
    #[arg(long, value_name = "N", default_value_t = 7)]
    pub seed: u64,
    /// First hour: RFC 3339, or a date in the zone of the trace, Asia/Shanghai
    #[arg(long, value_name = "TIME", default_value = "2024-03-01", value_parser = start)]
    pub start: HourStart,
    /// Folder for usage.csv and, except for small, job_info_df.csv and node_info_df.csv; created if missing
    #[arg(long, value_name = "DIR", required_unless_present = "check")]
    pub out: Option<PathBuf>,
    /// Compare the generated with the published figures; exit code 1 if they differ too much
    #[arg(long)]
    pub check: bool,
}

/// A date stands for its midnight.
fn start(text: &str) -> Result<HourStart, String> {
    let is_date = text.trim().len() == "2024-03-01".len();
    let time = if is_date { format!("{}T00:00:00+08:00", text.trim()) } else { text.to_owned() };
    command_line::hour(&time).map_err(|fault| format!("{fault}, or a date such as 2024-03-01"))
}

#[derive(Debug, Args)]
#[command(after_long_help = "Examples:\n  \
    datasets describe\n  \
    datasets describe --cluster earth --series\n  \
    datasets describe --json --database postgres://headroom@localhost/headroom")]
pub struct Describe {
    /// This cluster only
    #[arg(long, value_name = "NAME", value_parser = |text: &str| ClusterName::parse(text))]
    pub cluster: Option<ClusterName>,
    /// A line for each series instead of one for each pool
    #[arg(long)]
    pub series: bool,
}

#[derive(Debug, Args)]
#[command(after_long_help = "Examples:\n  \
    datasets export --cluster earth --out usage.csv\n  \
    datasets export --from 2020-05-18T00:00:00+08:00 --until 2020-05-25T00:00:00+08:00 --out - | head")]
pub struct Export {
    /// This cluster only
    #[arg(long, value_name = "NAME", value_parser = |text: &str| ClusterName::parse(text))]
    pub cluster: Option<ClusterName>,
    /// First hour
    #[arg(long, value_name = "TIME", value_parser = command_line::hour)]
    pub from: Option<HourStart>,
    /// End: hours before this one
    #[arg(long, value_name = "TIME", value_parser = command_line::hour)]
    pub until: Option<HourStart>,
    /// Output file; - is stdout
    #[arg(long, value_name = "FILE", default_value = "usage.csv")]
    pub out: PathBuf,
}
