//! The settings of the program.

mod check;
mod lists;

use serde::{Deserialize, Serialize};
use std::net::SocketAddr;
use std::time::Duration;

pub use check::HeadroomUrl;
pub use lists::{Shares, flavors, shares, spot_classes};

/// The modes of `kueue`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KueueMode {
    Off,
    /// Through a `CapacityProvider`, which has to be there.
    CapacityProvider,
    /// By server-side apply on a `ClusterQueue` of our own.
    ClusterQueue,
    /// The first where the cluster has it, else the second.
    Auto,
}

impl KueueMode {
    /// Each with its name in settings.
    pub const ALL: [(Self, &'static str); 4] = [
        (Self::Off, "off"),
        (Self::CapacityProvider, "capacity-provider"),
        (Self::ClusterQueue, "cluster-queue"),
        (Self::Auto, "auto"),
    ];

    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|(_, name)| *name == text).map(|(mode, _)| mode)
    }
}

/// Settings of this program.
#[expect(clippy::struct_excessive_bools, reason = "each mode is a switch of its own")]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Path of a kubeconfig; empty for the service account of the pod, then `KUBECONFIG`, then ~/.kube/config.
    pub kubeconfig: String,
    /// Context of the kubeconfig; empty for its current one.
    pub context: String,
    /// Headroom's name of this cluster.
    pub cluster: String,
    pub headroom_url: String,
    /// File with the token for Headroom; read again for each connection that it refuses. Empty for none.
    pub headroom_token_file: String,
    /// Authority (PEM) of Headroom's certificate; empty for those that the machine trusts.
    pub headroom_ca_file: String,
    /// Health and metrics.
    pub listen: SocketAddr,
    /// The scheduler extender.
    pub extender_listen: SocketAddr,
    pub tls_certificate_file: String,
    pub tls_key_file: String,
    /// Whose certificates the scheduler has to show; empty where it needs none.
    pub tls_client_ca_file: String,
    /// Name of the resource that counts GPUs.
    pub gpu_resource: String,
    /// Label of nodes that says their GPU model.
    pub gpu_model_label: String,
    /// GPU model of pods that wait and select none, and of nodes without the label; empty to leave them out.
    pub default_gpu_model: String,
    /// Priority classes of spot pods, comma between them; all others are HP.
    pub spot_priority_classes: String,
    /// Label of pods that says their organization; empty for the namespace.
    pub organization_label: String,
    /// Guarantee of spot pods that name none, in hours; 0 for none.
    pub default_guarantee_hours: u64,
    /// Whether usage, state and outcomes are told to Headroom.
    pub reporting: bool,
    pub report_s: u64,
    /// Between two looks for new quotas.
    pub poll_s: u64,
    /// Answer the scheduler.
    pub extender: bool,
    /// `off`, `capacity-provider`, `cluster-queue` or `auto`.
    pub kueue: String,
    /// Answer Kueue's admission check for guaranteed hours.
    pub admission_check: bool,
    /// Write Kueue's priority boost by the age of checkpoints.
    pub priority_boost: bool,
    /// Write a `ResourceQuota` in each namespace of `resource_quota_shares`.
    pub resource_quota: bool,
    /// Evict spot pods, through the eviction API, where HP pods wait for their GPUs.
    pub evict: bool,
    /// `FLAVOR=GPU_MODEL`, comma between them.
    pub flavors: String,
    pub capacity_provider: String,
    pub cluster_queue: String,
    pub admission_check_name: String,
    /// H of the quota that is published.
    pub quota_hours: u64,
    /// `NAMESPACE=SHARE`, comma between them: shares of a pool's quota, together at most 1.
    pub resource_quota_shares: String,
    /// Between two looks whether a quota has to be written.
    pub publish_s: u64,
    /// A raise below this many GPUs is not written.
    pub least_change_gpus: u64,
    /// Nor one below this share of what is published.
    pub least_change_ratio: f64,
    /// For so long a quota has to have been higher before it is raised; it is lowered at once.
    pub raise_after_s: u64,
    /// After which the extender answers neutrally.
    pub extender_deadline_ms: u64,
    /// For so long a pod that passed the filter counts as placed while no bind is seen.
    pub assumed_s: u64,
    /// Between the announcement of an eviction and the eviction.
    pub evict_grace_s: u64,
    pub lease_namespace: String,
    pub lease_name: String,
    /// After which a lease that is not renewed is taken over.
    pub lease_s: u64,
    /// After which who leads and could not renew stops to write.
    pub renew_s: u64,
    /// Between two tries.
    pub retry_s: u64,
    /// Name of this replica; empty for that of its host.
    pub identity: String,
    /// A heartbeat that stands still for so long lowers the quotas.
    pub watchdog_after_s: u64,
    /// Between two looks at the heartbeat.
    pub watchdog_check_s: u64,
    /// How lines of the log are written: `text` or `json`.
    pub log_format: String,
    /// What is logged: `error`, `warn`, `info`, `debug`, or a filter such as `kubernetes=debug`.
    pub log: String,
}

impl Default for Config {
    fn default() -> Self {
        let empty = String::new;
        Self {
            kubeconfig: empty(),
            context: empty(),
            cluster: empty(),
            headroom_url: "http://127.0.0.1:8080".to_owned(),
            headroom_token_file: empty(),
            headroom_ca_file: empty(),
            listen: SocketAddr::from(([127, 0, 0, 1], 8_081)),
            extender_listen: SocketAddr::from(([127, 0, 0, 1], 8_443)),
            tls_certificate_file: empty(),
            tls_key_file: empty(),
            tls_client_ca_file: empty(),
            gpu_resource: "nvidia.com/gpu".to_owned(),
            gpu_model_label: "nvidia.com/gpu.product".to_owned(),
            default_gpu_model: empty(),
            spot_priority_classes: "spot".to_owned(),
            organization_label: empty(),
            default_guarantee_hours: 0,
            reporting: true,
            report_s: 30,
            poll_s: 5,
            extender: false,
            kueue: "off".to_owned(),
            admission_check: false,
            priority_boost: false,
            resource_quota: false,
            evict: false,
            flavors: empty(),
            capacity_provider: "headroom-spot".to_owned(),
            cluster_queue: "headroom-spot".to_owned(),
            admission_check_name: "headroom-guarantee".to_owned(),
            quota_hours: 1,
            resource_quota_shares: empty(),
            publish_s: 15,
            least_change_gpus: 1,
            least_change_ratio: 0.02,
            raise_after_s: 120,
            extender_deadline_ms: 100,
            assumed_s: 30,
            evict_grace_s: 30,
            lease_namespace: "headroom-system".to_owned(),
            lease_name: "headroom-kubernetes".to_owned(),
            lease_s: 15,
            renew_s: 10,
            retry_s: 2,
            identity: empty(),
            watchdog_after_s: 60,
            watchdog_check_s: 5,
            log_format: "text".to_owned(),
            log: "info".to_owned(),
        }
    }
}

impl Config {
    /// Where quotas go in Kueue.
    #[must_use]
    pub fn kueue_mode(&self) -> KueueMode {
        KueueMode::parse(&self.kueue).unwrap_or(KueueMode::Off)
    }

    /// Whether anything is written to the Kubernetes API.
    #[must_use]
    pub fn writes(&self) -> bool {
        let publishes = self.kueue_mode() != KueueMode::Off || self.resource_quota;
        publishes || self.admission_check || self.priority_boost || self.evict
    }

    /// The name of this replica.
    #[must_use]
    pub fn identity(&self) -> String {
        if !self.identity.is_empty() {
            return self.identity.clone();
        }
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        match host.trim() {
            // Of a pod the host name is its own; elsewhere the process tells them apart.
            "" => format!("process-{}", std::process::id()),
            host => format!("{host}-{}", std::process::id()),
        }
    }

    #[must_use]
    pub const fn publish_every(&self) -> Duration {
        Duration::from_secs(self.publish_s)
    }
}
