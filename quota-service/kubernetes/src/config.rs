//! The settings of the program.

mod check;
mod lists;
#[cfg(test)]
mod tests;
mod urls;
mod values;

pub use connectors::values::{FilePath, GuaranteeHours, HeadroomUrl, LogFilter, LogFormat, Optional, QuotaHours};
pub use lists::{AtWillClasses, DeviceClasses, Flavors, Shares, SpotClasses};
pub use urls::RayUrl;
pub use values::{KueueMode, ObjectName, QualifiedName};

use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::time::Duration;
use vocab::{ClusterName, GpuModel};

/// Settings of this program.
#[expect(clippy::struct_excessive_bools, reason = "each mode is a switch of its own")]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Path of a kubeconfig; empty for the service account of the pod, then `KUBECONFIG`, then ~/.kube/config.
    pub kubeconfig: FilePath,
    /// Context of the kubeconfig; empty for its current one.
    pub context: String,
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
    /// Address of the scheduler extender.
    pub extender_listen: SocketAddr,
    /// Certificate (PEM) of the extender.
    pub tls_certificate_file: FilePath,
    /// Key (PEM) of the extender's certificate.
    pub tls_key_file: FilePath,
    /// Authority (PEM) of the certificates that a scheduler has to show; empty if it needs none.
    pub tls_client_ca_file: FilePath,
    /// Name of the resource that counts GPUs.
    pub gpu_resource: QualifiedName,
    /// Label of nodes with their GPU model.
    pub gpu_model_label: QualifiedName,
    /// Device classes whose devices are GPUs: `CLASS` or `CLASS=GPU_MODEL`, comma between them; empty to count no claims.
    pub device_classes: DeviceClasses,
    /// Count gangs: one promise for each, and the demand of pods that they miss.
    pub gangs: bool,
    /// GPU model of pending pods that select none, and of nodes without the label; empty to leave them out.
    pub default_gpu_model: Optional<GpuModel>,
    /// Priority classes of spot pods, comma between them; all others are HP.
    pub spot_priority_classes: SpotClasses,
    /// Further priority classes of spot pods, which are promised nothing: their GPUs are counted and published apart. Empty to count
    /// spot at will and promised spot together.
    pub at_will_priority_classes: AtWillClasses,
    /// Label of pods with their organization; empty for the namespace.
    pub organization_label: Optional<QualifiedName>,
    /// Guarantee of spot pods that name none, in hours; 0 for none.
    pub default_guarantee_hours: GuaranteeHours,
    /// Report usage, state and outcomes to Headroom.
    pub reporting: bool,
    /// Between two reports.
    pub report_s: u64,
    /// Between two requests for new quotas.
    pub poll_s: u64,
    /// Answer the scheduler.
    pub extender: bool,
    /// Object of Kueue that carries the quota: `off`, `capacity-provider`, `cluster-queue` or `auto`.
    pub kueue: KueueMode,
    /// Answer Kueue's admission check for guaranteed hours.
    pub admission_check: bool,
    /// Write Kueue's priority boost by the age of checkpoints.
    pub priority_boost: bool,
    /// Write a `ResourceQuota` in each namespace of `resource_quota_shares`.
    pub resource_quota: bool,
    /// Write events of what is done to objects, where a mode writes anything.
    pub events: bool,
    /// Evict spot pods, through the eviction API, if HP pods wait for their GPUs.
    pub evict: bool,
    /// GPU models of flavors: `FLAVOR=GPU_MODEL`, comma between them.
    pub flavors: Flavors,
    /// GPU models of the flavors of spot at will, as `flavors`: for Workloads of `at_will_priority_classes`.
    pub at_will_flavors: Flavors,
    /// Name of the `CapacityProvider`.
    pub capacity_provider: ObjectName,
    /// Name of the `ClusterQueue`.
    pub cluster_queue: ObjectName,
    /// Name of the `AdmissionCheck`.
    pub admission_check_name: ObjectName,
    /// H of the quota that is published.
    pub quota_hours: QuotaHours,
    /// `NAMESPACE=SHARE`, comma between them: shares of a pool's quota, together at most 1.
    pub resource_quota_shares: Shares,
    /// Between two rounds that compare and write quotas.
    pub publish_s: u64,
    /// A raise below this many GPUs is not written.
    pub least_change_gpus: u64,
    /// A raise below this share of the published quota is not written.
    pub least_change_ratio: f64,
    /// A quota is raised after it was higher for so long; it is lowered at once.
    pub raise_after_s: u64,
    /// The extender answers neutrally after this time.
    pub extender_deadline_ms: u64,
    /// A pod that passed the filter counts as placed for so long while it is not bound.
    pub assumed_s: u64,
    /// Between the announcement of an eviction and the eviction.
    pub evict_grace_s: u64,
    /// URL that gets notices of evictions, signed; empty for none.
    pub notice_webhook_url: Optional<HeadroomUrl>,
    /// File with the secret that signs notices, of at least 16 bytes.
    pub notice_secret_file: FilePath,
    /// Authority (PEM) of the webhook's certificate; empty for the authorities that the machine trusts.
    pub notice_ca_file: FilePath,
    /// Send notices to pods that name a port for them by annotation.
    pub notice_checkpoint_hooks: bool,
    /// URL of Ray dashboards, with `{cluster}` and `{namespace}`: workers that are victims are drained; empty to drain none.
    pub notice_ray_url: Optional<RayUrl>,
    /// Namespace of the Lease.
    pub lease_namespace: ObjectName,
    /// Name of the Lease.
    pub lease_name: ObjectName,
    /// A lease that is not renewed for so long is taken over.
    pub lease_s: u64,
    /// A leader that cannot renew its lease for so long stops writing.
    pub renew_s: u64,
    /// Between two attempts to get or renew the lease.
    pub retry_s: u64,
    /// Name of this replica; empty for that of its host.
    pub identity: String,
    /// The watchdog lowers quotas after so long without a heartbeat.
    pub watchdog_after_s: u64,
    /// Between two checks of the heartbeat.
    pub watchdog_check_s: u64,
    /// Format of the lines of the log: `text` or `json`.
    pub log_format: LogFormat,
    /// Filter of the log: `error`, `warn`, `info`, `debug`, or a filter such as `kubernetes=debug`.
    pub log: LogFilter,
}

/// The settings that are nothing, off or the first of their kind, by name, and the others.
macro_rules! with_defaults {
    ([$($unset:ident)*] $($key:ident: $value:expr,)*) => {
        Self { $($unset: Default::default(),)* $($key: $value,)* }
    };
}

impl Default for Config {
    fn default() -> Self {
        let name = |text: &str| text.parse().expect("the name is a DNS subdomain");
        let label = |text: &str| text.parse().expect("the label has a domain and a name");
        with_defaults! {
            [
                kubeconfig context cluster headroom_url headroom_token_file headroom_ca_file tls_certificate_file tls_key_file
                tls_client_ca_file device_classes gangs default_gpu_model spot_priority_classes at_will_priority_classes
                organization_label default_guarantee_hours extender kueue admission_check priority_boost resource_quota evict
                flavors at_will_flavors quota_hours resource_quota_shares notice_webhook_url notice_secret_file notice_ca_file
                notice_checkpoint_hooks notice_ray_url identity log_format log
            ]
            listen: SocketAddr::from(([127, 0, 0, 1], 8_081)),
            extender_listen: SocketAddr::from(([127, 0, 0, 1], 8_443)),
            gpu_resource: label("nvidia.com/gpu"),
            gpu_model_label: label("nvidia.com/gpu.product"),
            reporting: true,
            report_s: 30,
            poll_s: 5,
            events: true,
            capacity_provider: name("headroom-spot"),
            cluster_queue: name("headroom-spot"),
            admission_check_name: name("headroom-guarantee"),
            publish_s: 15,
            least_change_gpus: 1,
            least_change_ratio: 0.02,
            raise_after_s: 120,
            extender_deadline_ms: 100,
            assumed_s: 30,
            evict_grace_s: 30,
            lease_namespace: name("headroom-system"),
            lease_name: name("headroom-kubernetes"),
            lease_s: 15,
            renew_s: 10,
            retry_s: 2,
            watchdog_after_s: 60,
            watchdog_check_s: 5,
        }
    }
}

/// No name of the cluster is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "`cluster` is not set: pass --cluster NAME or set HEADROOM_CLUSTER, the name that Headroom has for this cluster"
)]
pub struct NoCluster;

impl Config {
    /// Headroom's name of this cluster.
    ///
    /// # Errors
    /// The setting is empty.
    pub fn cluster(&self) -> Result<&ClusterName, NoCluster> {
        self.cluster.get().ok_or(NoCluster)
    }

    /// Priority classes of all spot pods.
    #[must_use]
    pub fn spot_classes(&self) -> BTreeSet<String> {
        self.spot_priority_classes.names().union(&self.at_will_priority_classes.0).cloned().collect()
    }

    /// Whether spot at will is counted and published apart.
    #[must_use]
    pub fn is_apart(&self) -> bool {
        !self.at_will_priority_classes.0.is_empty()
    }

    /// Whether any quota is published.
    #[must_use]
    pub fn publishes(&self) -> bool {
        self.kueue.is_on() || self.resource_quota
    }

    /// Whether anything is written to the Kubernetes API.
    #[must_use]
    pub fn writes(&self) -> bool {
        self.publishes() || self.admission_check || self.priority_boost || self.evict
    }

    /// Name of the Lease that carries the heartbeat of the published quotas.
    #[must_use]
    pub fn heartbeat_name(&self) -> String {
        format!("{}-heartbeat", self.lease_name)
    }

    /// Name of this replica.
    #[must_use]
    pub fn identity(&self) -> String {
        if !self.identity.is_empty() {
            return self.identity.clone();
        }
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        match host.trim() {
            // The host name of a pod is unique; on other machines the process id makes the difference.
            "" => format!("process-{}", std::process::id()),
            host => format!("{host}-{}", std::process::id()),
        }
    }

    /// Time between two rounds of the publisher.
    #[must_use]
    pub const fn publish_every(&self) -> Duration {
        Duration::from_secs(self.publish_s)
    }
}
