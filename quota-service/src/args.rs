//! What the command line says.

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
    /// Settings in force
    Config {
        #[command(subcommand)]
        command: ConfigCommand,
    },
    /// How the GPUs and cores of a machine lie, as PUT /v1/nodes/{id} takes it
    Topology(TopologyFlags),
    /// Who may ask for what
    Token {
        #[command(subcommand)]
        command: TokenCommand,
    },
    /// Backups, and how long things are kept
    Database {
        #[command(subcommand)]
        command: DatabaseCommand,
    },
    /// What was promised to spot tasks, and what became of it
    Promises(PromisesFlags),
    /// Look whether everything is well, and say what mends what is not
    Doctor(DoctorFlags),
    /// Print shell completions
    Completions { shell: Shell },
}

#[derive(Debug, Args)]
#[command(after_long_help = "Examples:\n  \
    quota-service promises\n  \
    quota-service promises --pool earth:A100 --days 7\n  \
    quota-service promises --json --database postgres://headroom@localhost/headroom\n\n\
    Node failures, drains and deletions by their users are told apart: they neither keep nor break a promise.")]
pub struct PromisesFlags {
    /// CLUSTER:GPU_MODEL; every pool with promises if not given
    #[arg(long, value_name = "POOL", value_parser = |text: &str| vocab::PoolId::parse(text))]
    pub pool: Option<vocab::PoolId>,
    /// So many days of UTC, today included
    #[arg(long, value_name = "DAYS", default_value_t = 28, value_parser = clap::value_parser!(u32).range(1..=400))]
    pub days: u32,
}

#[derive(Debug, Args)]
#[command(after_long_help = "Examples:\n  \
    quota-service doctor\n  \
    quota-service doctor --database postgres://headroom@localhost/headroom --json\n  \
    quota-service doctor --listen 0.0.0.0:8080 --strict\n  \
    quota-service doctor --deep\n\n\
    It changes nothing: a database that is missing is not made, and an old one not brought up to date. One line for each check: \
    ok, warn or fail, what was found, and the command or the setting that mends it. Exit code 0 where nothing fails, 1 where \
    something does, 4 where the settings are invalid, 5 where the database cannot be reached.")]
pub struct DoctorFlags {
    /// End with exit code 1 where there is anything to be warned of, too
    #[arg(long)]
    pub strict: bool,
    /// Read the whole database, too: its integrity, and the checksum of every run and snapshot
    #[arg(long)]
    pub deep: bool,
}

#[derive(Debug, Subcommand)]
pub enum DatabaseCommand {
    /// Write everything into one file, while services run
    #[command(after_long_help = "Examples:\n  \
        quota-service database backup headroom.backup\n  \
        quota-service database backup headroom.backup --database postgres://headroom@localhost/headroom\n\n\
        Of Postgres with its program pg_dump; of SQLite a database file.")]
    Backup {
        /// A new file
        file: PathBuf,
    },
    /// Read a backup into an empty database, and check what it holds
    #[command(after_long_help = "Examples:\n  \
        quota-service database restore headroom.backup --database sqlite://restored.db\n  \
        quota-service database restore headroom.backup --database postgres://headroom@localhost/restored\n\n\
        Whoever wrote for a cluster when the backup was made may not go on as before: leases are taken anew.")]
    Restore {
        /// What backup has written
        file: PathBuf,
    },
    /// Bring the database up to this program, and say from which version of its schema
    #[command(after_long_help = "Examples:\n  \
        quota-service database migrate\n  \
        quota-service database migrate --database postgres://headroom@localhost/headroom --json\n\n\
        Services do it when they start, too. A database that is missing is made; one that is newer than this program is refused.")]
    Migrate,
    /// Forget what is older than so many days
    #[command(after_long_help = "Examples:\n  \
        quota-service database retain --usage-days 730 --history-days 90 --dry-run\n  \
        quota-service database retain --usage-days 730 --history-days 90 --tasks-days 30 --audit-days 400\n\n\
        What is not named is kept. The last quota of each pool stays whatever its age. Services do the same by themselves, by the \
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
    /// What the audit keeps of the states of pools that schedulers report
    #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(u32).range(1..=36_500))]
    pub reports_days: Option<u32>,
    /// Say what would be forgotten before which time, and forget nothing
    #[arg(long)]
    pub dry_run: bool,
}

#[derive(Debug, Subcommand)]
pub enum TokenCommand {
    /// Make a token, and print it once
    Create(NewTokenFlags),
    /// Every token that was ever made, without its secret
    #[command(after_long_help = "Examples:\n  quota-service token list\n  quota-service token list --json")]
    List,
    /// Take a token out of force
    #[command(after_long_help = "Examples:\n  \
        quota-service token revoke 5f0c2a9d1b3e\n  \
        quota-service token revoke 5f0c2a9d1b3e --database postgres://headroom@localhost/headroom\n\n\
        Services refuse it at their next beat, a fifth of lease_s.")]
    Revoke {
        /// As `token list` shows it
        id: String,
    },
}

#[derive(Debug, Args)]
#[command(after_long_help = "Examples:\n  \
    quota-service token create --name prometheus --role read\n  \
    quota-service token create --name trainer --role place --organization vision --pool earth:A100 --expires-days 90\n\n\
    Once a token was made, every request needs one, health checks and the OpenAPI document apart.")]
pub struct NewTokenFlags {
    /// Who will use it, for the list and the audit
    #[arg(long, value_name = "NAME", value_parser = token_name)]
    pub name: String,
    /// What it is good for
    #[arg(long, value_name = "ROLE")]
    pub role: RoleFlag,
    /// Tasks and usage of this organization alone; all if not given
    #[arg(long, value_name = "NAME")]
    pub organization: Option<String>,
    /// CLUSTER or CLUSTER:GPU_MODEL, any number of times; every pool if not given
    #[arg(long, value_name = "POOL")]
    pub pool: Vec<String>,
    /// Days after which it is out of force; never if not given
    #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(u32).range(1..=36_500))]
    pub expires_days: Option<u32>,
}

/// A line of a table, and not an empty one.
fn token_name(text: &str) -> Result<String, String> {
    let name = text.trim();
    if name.is_empty() || name.chars().count() > 100 || name.chars().any(char::is_control) {
        return Err("write 1 to 100 characters on one line".to_owned());
    }
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
    /// The machine's /sys, or a copy of it
    #[arg(long, value_name = "DIR", default_value = "/sys")]
    pub sysfs: PathBuf,
    /// What `nvidia-smi topo -m` prints there
    #[arg(long, value_name = "FILE")]
    pub nvidia_smi: Option<PathBuf>,
}

/// Flags that are settings, too.
#[derive(Debug, Clone, Args, Serialize)]
pub struct Flags {
    /// sqlite://FILE (created if missing) or postgres://…; also DATABASE_URL
    #[arg(long, global = true, help_heading = GLOBAL, value_name = "URL")]
    #[serde(skip_serializing_if = "Option::is_none")]
    database: Option<String>,
    /// Address and port; other machines are listened to only where there are tokens. Port 0 takes a free one
    #[arg(long, global = true, help_heading = GLOBAL, value_name = "ADDRESS")]
    #[serde(skip_serializing_if = "Option::is_none")]
    listen: Option<SocketAddr>,
    /// Virtual clock: starts after the newest usage (latest), or at a time. Marked in every answer; nothing of what is
    /// computed is stored
    #[arg(long, global = true, help_heading = GLOBAL, value_name = "latest|TIME", value_parser = StartAt::from_str)]
    #[serde(skip_serializing_if = "Option::is_none")]
    as_of: Option<StartAt>,
    /// Seconds between two computations of the quotas
    #[arg(long, global = true, help_heading = GLOBAL, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    #[serde(skip_serializing_if = "Option::is_none")]
    refresh_s: Option<u64>,
}
