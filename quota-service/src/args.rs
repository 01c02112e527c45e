//! The command line.

pub use crate::config::Config;

use crate::access::command::RoleFlag;
use crate::config::StartAt;
use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;
use command_line::{Common, ConfigCommand, GLOBAL};
use serde::Serialize;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

/// Serve spot quotas over HTTP, with their reasons
#[derive(Debug, Parser)]
#[command(
    name = "quota-service",
    version,
    after_long_help = "Examples:\n  \
    quota-service --database postgres://headroom@localhost/headroom\n  \
    quota-service --as-of latest\n  \
    curl 'http://127.0.0.1:8080/quota?cluster=earth&gpu_model=V100&hours=4'"
)]
pub struct Arguments {
    #[command(subcommand)]
    pub command: Option<Command>,
    #[command(flatten)]
    pub flags: Flags,
    #[command(flatten)]
    pub common: Common,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Settings and where they come from
    Config {
        #[command(subcommand)]
        command: ConfigCommand,
    },
    /// Print this machine's GPU topology, as PUT /v1/nodes/{id} takes it
    Topology(TopologyFlags),
    /// Create, list and revoke access tokens
    Token {
        #[command(subcommand)]
        command: TokenCommand,
    },
    /// Back up, restore, migrate and clean the database
    Database {
        #[command(subcommand)]
        command: DatabaseCommand,
    },
    /// Kept and broken promises to spot tasks
    Promises(PromisesFlags),
    /// Check the installation, and print a fix for each problem
    Doctor(DoctorFlags),
    /// Print shell completions
    Completions { shell: Shell },
}

#[derive(Debug, Args)]
#[command(after_long_help = "Examples:\n  \
    quota-service promises\n  \
    quota-service promises --pool earth:A100 --days 7\n  \
    quota-service promises --json --database postgres://headroom@localhost/headroom\n\n\
    Node failures, drains and deletions by users count separately: they neither keep nor break a promise.")]
pub struct PromisesFlags {
    /// CLUSTER:GPU_MODEL; every pool with promises if not given
    #[arg(long, value_name = "POOL", value_parser = |text: &str| vocab::PoolId::parse(text))]
    pub pool: Option<vocab::PoolId>,
    /// Number of days (UTC), today included
    #[arg(long, value_name = "DAYS", default_value_t = 28, value_parser = clap::value_parser!(u32).range(1..=400))]
    pub days: u32,
}

#[derive(Debug, Args)]
#[command(after_long_help = "Examples:\n  \
    quota-service doctor\n  \
    quota-service doctor --database postgres://headroom@localhost/headroom --json\n  \
    quota-service doctor --listen 0.0.0.0:8080 --strict\n  \
    quota-service doctor --deep\n\n\
    It changes nothing: it creates no database and migrates none. One line for each check: \
    ok, warn or fail, the finding, and the command or the setting that fixes it. Exit code 0 where no check fails, 1 where \
    one does, 4 where the settings are invalid, 5 where the database cannot be reached, 3 where its file is damaged.")]
pub struct DoctorFlags {
    /// Treat warnings as failures
    #[arg(long)]
    pub strict: bool,
    /// Read the whole database: its integrity, and the checksum of every run and snapshot
    #[arg(long)]
    pub deep: bool,
}

#[derive(Debug, Subcommand)]
pub enum DatabaseCommand {
    /// Write the whole database into one file, while services run
    #[command(after_long_help = "Examples:\n  \
        quota-service database backup headroom.backup\n  \
        quota-service database backup headroom.backup --database postgres://headroom@localhost/headroom\n\n\
        Postgres needs its program pg_dump. A backup of SQLite is a database file.")]
    Backup {
        /// A new file
        file: PathBuf,
    },
    /// Read a backup into an empty database, and check its content
    #[command(after_long_help = "Examples:\n  \
        quota-service database restore headroom.backup --database sqlite://restored.db\n  \
        quota-service database restore headroom.backup --database postgres://headroom@localhost/restored\n\n\
        Services take new leases afterwards: a service that wrote when the backup was made has lost its lease.")]
    Restore {
        /// The file of a backup
        file: PathBuf,
    },
    /// Migrate the schema to the version of this program
    #[command(after_long_help = "Examples:\n  \
        quota-service database migrate\n  \
        quota-service database migrate --database postgres://headroom@localhost/headroom --json\n\n\
        A service migrates when it starts. A missing database is created; a newer one than this program is refused.")]
    Migrate,
    /// Delete rows that are older than a number of days
    #[command(after_long_help = "Examples:\n  \
        quota-service database retain --usage-days 730 --dry-run\n  \
        quota-service database retain --usage-days 730 --history-days 7\n\n\
        Rows of other kinds stay, and so does the last quota of each pool. Services do the same every hour, by the \
        settings retain_usage_days and so on.")]
    Retain(RetainFlags),
}

#[derive(Debug, Args)]
pub struct RetainFlags {
    /// Usage, in days; models look back 35
    #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(u32).range(36..=36_500))]
    pub usage_days: Option<u32>,
    /// Quotas as they were answered
    #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(u32).range(1..=36_500))]
    pub history_days: Option<u32>,
    /// Tasks that have ended
    #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(u32).range(1..=36_500))]
    pub tasks_days: Option<u32>,
    /// The audit
    #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(u32).range(1..=36_500))]
    pub audit_days: Option<u32>,
    /// Reported states of pools in the audit
    #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(u32).range(1..=36_500))]
    pub reports_days: Option<u32>,
    /// Days of statements
    #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(u32).range(1..=36_500))]
    pub statements_days: Option<u32>,
    /// Print what would be deleted, and delete nothing
    #[arg(long)]
    pub dry_run: bool,
}

#[derive(Debug, Subcommand)]
pub enum TokenCommand {
    /// Create a token, and print it once
    Create(NewTokenFlags),
    /// List all tokens, without their secrets
    #[command(after_long_help = "Examples:\n  quota-service token list\n  quota-service token list --json")]
    List,
    /// Revoke a token
    #[command(after_long_help = "Examples:\n  \
        quota-service token revoke 5f0c2a9d1b3e\n  \
        quota-service token revoke 5f0c2a9d1b3e --database postgres://headroom@localhost/headroom\n\n\
        Services refuse it within a fifth of lease_s.")]
    Revoke {
        /// Id of the token, from `token list`
        id: String,
    },
}

#[derive(Debug, Args)]
#[command(after_long_help = "Examples:\n  \
    quota-service token create --name prometheus --role read\n  \
    quota-service token create --name trainer --role place --organization vision --pool earth:A100 --expires-days 90\n\n\
    Once a token exists, every request needs one, except health checks and the OpenAPI document.")]
pub struct NewTokenFlags {
    /// Name of its user, for the list and the audit
    #[arg(long, value_name = "NAME", value_parser = token_name)]
    pub name: String,
    /// Rights of the token
    #[arg(long, value_name = "ROLE")]
    pub role: RoleFlag,
    /// Only tasks and usage of this organization; all if not given
    #[arg(long, value_name = "NAME")]
    pub organization: Option<String>,
    /// CLUSTER or CLUSTER:GPU_MODEL, any number of times; every pool if not given
    #[arg(long, value_name = "POOL")]
    pub pool: Vec<String>,
    /// Days until it expires; never if not given
    #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(u32).range(1..=36_500))]
    pub expires_days: Option<u32>,
}

/// A line of a table, and not an empty one.
fn token_name(text: &str) -> Result<String, String> {
    let name = text.trim();
    if name.is_empty() || name.chars().count() > 100 {
        return Err("write 1 to 100 characters on one line".to_owned());
    }
    vocab::new_text(name).map_err(|fault| fault.to_string())?;
    Ok(name.to_owned())
}

#[derive(Debug, Args)]
#[command(after_long_help = "Examples:\n  \
    quota-service topology --json\n  \
    nvidia-smi topo -m >matrix.txt\n  \
    quota-service topology --nvidia-smi matrix.txt --json\n  \
    quota-service topology --sysfs node-7/sys --nvidia-smi node-7/matrix.txt\n\n\
    Sockets, NUMA nodes, cores and GPUs come from sysfs, NVLink from nvidia-smi: without it, none is known.")]
pub struct TopologyFlags {
    /// /sys of the machine, or a copy of it
    #[arg(long, value_name = "DIR", default_value = "/sys")]
    pub sysfs: PathBuf,
    /// Output of `nvidia-smi topo -m` on the machine
    #[arg(long, value_name = "FILE")]
    pub nvidia_smi: Option<PathBuf>,
}

/// Flags that are also settings.
#[derive(Debug, Clone, Args, Serialize)]
pub struct Flags {
    /// sqlite://FILE (created if missing) or postgres://…; also DATABASE_URL
    #[arg(long, global = true, help_heading = GLOBAL, value_name = "URL")]
    #[serde(skip_serializing_if = "Option::is_none")]
    database: Option<String>,
    /// Address and port. An address that other machines reach needs tokens; port 0 takes a free port
    #[arg(long, global = true, help_heading = GLOBAL, value_name = "ADDRESS")]
    #[serde(skip_serializing_if = "Option::is_none")]
    listen: Option<SocketAddr>,
    /// Virtual clock: starts after the newest usage (latest), or at a time. Every answer is marked, and no result is
    /// stored
    #[arg(long, global = true, help_heading = GLOBAL, value_name = "latest|TIME", value_parser = StartAt::from_str)]
    #[serde(skip_serializing_if = "Option::is_none")]
    as_of: Option<StartAt>,
    /// Seconds between two renewals of the quotas
    #[arg(long, global = true, help_heading = GLOBAL, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    #[serde(skip_serializing_if = "Option::is_none")]
    refresh_s: Option<u64>,
}
