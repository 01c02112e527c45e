//! The settings of the program.

mod check;
mod lists;
#[cfg(test)]
mod tests;

pub use lists::{Guarantees, Mode, Names, Nesting};

use connectors::values::{FilePath, HeadroomUrl, LogFilter, LogFormat, Optional};
use serde::{Deserialize, Serialize};
use slurm_records::command::Programs;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::LazyLock;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use vocab::{ClusterName, GpuModel, HorizonHours};

/// Settings of this program.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Folder of Slurm's programs; empty for the search path.
    pub slurm_bin: FilePath,
    /// Slurm's settings file (`SLURM_CONF`); empty for its usual place.
    pub slurm_conf: FilePath,
    /// Time limit of a program of Slurm.
    pub slurm_command_timeout_s: u64,
    /// Time limit of `sacct`, which reads hours of jobs.
    pub accounting_timeout_s: u64,
    /// Headroom's name of this cluster.
    pub cluster: Optional<ClusterName>,
    /// URL of quota-service.
    pub headroom_url: HeadroomUrl,
    /// File with the token for Headroom; read again for each request. Empty for none.
    pub headroom_token_file: FilePath,
    /// Authority (PEM) of Headroom's certificate; empty for the authorities that the machine trusts.
    pub headroom_ca_file: FilePath,
    /// Address of health and metrics.
    pub listen: SocketAddr,
    /// Writes to Slurm: none (`observe`), limits (`publish`), or the file of the hook, too (`publish+hook`).
    pub mode: Mode,
    /// QOS of spot jobs with the hours that they are promised: `QOS=HOURS`, comma between them; 0 hours for no promise.
    pub spot_qos: Guarantees,
    /// Partitions of spot jobs whose QOS is not among `spot_qos`: `PARTITION=HOURS`, comma between them.
    pub spot_partitions: Guarantees,
    /// QOS of HP jobs; with no HP QOS and no HP partition, every job that is not spot is HP.
    pub hp_qos: Names,
    /// Partitions of HP jobs.
    pub hp_partitions: Names,
    /// QOS whose jobs Slurm does not evict inside their hours (`PreemptExemptTime`).
    pub hard_qos: Names,
    /// Level of the organizations below the account `root`; 0 for the account itself.
    pub account_level: u32,
    /// GPU model of GPUs without a type.
    pub gpu_model: Optional<GpuModel>,
    /// Which limits carry the quota: those of the `qos`, side by side, or those of a chain of `accounts`.
    pub nesting: Nesting,
    /// The chain, outermost first: `ACCOUNT=HOURS`, comma between them.
    pub spot_accounts: Guarantees,
    /// Whether a limit may fall below what spot jobs hold: they stay, and what ends is not replaced.
    pub drain: bool,
    /// Report usage, state and outcomes to Headroom.
    pub reporting: bool,
    /// Between two looks at jobs and nodes.
    pub look_s: u64,
    /// Between two requests for new quotas.
    pub poll_s: u64,
    /// Between two reports of the state.
    pub report_s: u64,
    /// Between two looks at the accounting: usage and outcomes.
    pub accounting_s: u64,
    /// Between two rounds that compare and write limits.
    pub publish_s: u64,
    /// A raise below this many GPUs is not written.
    pub least_change_gpus: u64,
    /// A raise below this share of the published limit is not written.
    pub least_change_ratio: f64,
    /// A limit is raised after it was higher for so long; it is lowered at once.
    pub raise_after_s: u64,
    /// The lease of Headroom ends so long after its last renewal.
    pub lease_s: u64,
    /// Name of this process, to which its number and start are added; empty for that of its host.
    pub identity: String,
    /// File that is written after each round in which all limits stand as they should.
    pub heartbeat_file: FilePath,
    /// The watchdog lowers limits after so long without a heartbeat.
    pub watchdog_after_s: u64,
    /// Between two looks at the heartbeat.
    pub watchdog_check_s: u64,
    /// File for `job_submit.lua`, with the free quota.
    pub quota_file: FilePath,
    /// The quota file is stale after so long.
    pub hook_valid_s: u64,
    /// Let `job_submit.lua` refuse spot jobs that name no GPU type, where there are several.
    pub require_type: bool,
    /// Format of the lines of the log: `text` or `json`.
    pub log_format: LogFormat,
    /// Filter of the log: `error`, `warn`, `info`, `debug`, or a filter such as `slurm=debug`.
    pub log: LogFilter,
}

impl Default for Config {
    fn default() -> Self {
        let path = |text: &str| text.parse::<FilePath>().unwrap_or_else(|never| match never {});
        Self {
            slurm_bin: FilePath::default(),
            slurm_conf: FilePath::default(),
            slurm_command_timeout_s: 10,
            accounting_timeout_s: 120,
            cluster: Optional::default(),
            headroom_url: HeadroomUrl::default(),
            headroom_token_file: FilePath::default(),
            headroom_ca_file: FilePath::default(),
            listen: SocketAddr::from(([127, 0, 0, 1], 8_082)),
            mode: Mode::Observe,
            spot_qos: Guarantees::default(),
            spot_partitions: Guarantees::default(),
            hp_qos: Names::default(),
            hp_partitions: Names::default(),
            hard_qos: Names::default(),
            account_level: 0,
            gpu_model: Optional::default(),
            nesting: Nesting::Qos,
            spot_accounts: Guarantees::default(),
            drain: true,
            reporting: true,
            look_s: 30,
            poll_s: 5,
            report_s: 30,
            accounting_s: 60,
            publish_s: 30,
            least_change_gpus: 1,
            least_change_ratio: 0.02,
            raise_after_s: 120,
            lease_s: 30,
            identity: String::new(),
            heartbeat_file: path("/var/lib/headroom-slurm/heartbeat"),
            watchdog_after_s: 180,
            watchdog_check_s: 10,
            quota_file: path("/var/lib/headroom-slurm/quota"),
            hook_valid_s: 180,
            require_type: true,
            log_format: LogFormat::Text,
            log: LogFilter::default(),
        }
    }
}

/// No name of the cluster is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "`cluster` is not set: pass --cluster NAME or set HEADROOM_CLUSTER, the name that Headroom has for this cluster"
)]
pub struct NoCluster;

/// GPU model of GPUs without a type, where none is named.
const ANY_MODEL: &str = "any";

impl Config {
    /// Headroom's name of this cluster.
    ///
    /// # Errors
    /// The setting is empty.
    pub fn cluster(&self) -> Result<&ClusterName, NoCluster> {
        self.cluster.get().ok_or(NoCluster)
    }

    /// Slurm's programs.
    #[must_use]
    pub fn programs(&self) -> Programs {
        let folder = self.slurm_bin.get().unwrap_or(Path::new(""));
        Programs::new(folder, Duration::from_secs(self.slurm_command_timeout_s)).with_conf(self.slurm_conf.get())
    }

    /// GPU model of GPUs without a type.
    #[must_use]
    pub fn untyped(&self) -> GpuModel {
        self.gpu_model.get().cloned().unwrap_or_else(|| GpuModel::parse(ANY_MODEL).expect("a word is a name"))
    }

    /// Limits that carry the quota, with their hours: of QOS, or of accounts.
    #[must_use]
    pub const fn limited(&self) -> &Guarantees {
        match self.nesting {
            Nesting::Qos => &self.spot_qos,
            Nesting::Accounts => &self.spot_accounts,
        }
    }

    /// The longest promise of a spot job.
    #[must_use]
    pub fn spot_hours(&self) -> Option<HorizonHours> {
        self.spot_qos.0.values().chain(self.spot_partitions.0.values()).copied().flatten().max()
    }

    /// Name of this process. No other process has it, also where two machines have the same settings: a lease is of one.
    #[must_use]
    pub fn identity(&self) -> String {
        static BEGAN_MS: LazyLock<u128> =
            LazyLock::new(|| SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis());
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let name = [self.identity.as_str(), host.trim()].into_iter().find(|name| !name.is_empty());
        format!("{}-{}-{:x}", name.unwrap_or("process"), std::process::id(), *BEGAN_MS)
    }
}
