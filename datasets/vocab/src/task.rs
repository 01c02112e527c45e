//! Tasks as they are submitted.

use crate::{GpuModel, MilliGpus, Organization, TaskId, UnixSeconds};

/// Whether a task may be evicted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TaskClass {
    /// High priority: cannot be evicted.
    Hp,
    /// May be evicted by HP work.
    Spot,
}

impl TaskClass {
    /// As it is written in requests and rows.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Hp => "hp",
            Self::Spot => "spot",
        }
    }

    /// Reads the text of `as_str`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Hp, Self::Spot].into_iter().find(|class| class.as_str() == text)
    }
}

/// Why a task was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TaskError {
    #[error("a task needs at least one pod")]
    NoPods,
    #[error("{gpus_per_pod} GPUs × {pods} pods exceeds the limit of one task")]
    TooLarge { gpus_per_pod: MilliGpus, pods: u32 },
}

/// A request for `pods` pods with `gpus_per_pod` GPUs each, all or none (a gang where there is more than one).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task {
    /// Id of the task.
    pub id: TaskId,
    /// Organization of the task.
    pub organization: Organization,
    /// Requested GPU model.
    pub gpu_model: GpuModel,
    /// HP or spot.
    pub class: TaskClass,
    /// Submission time.
    pub submitted: UnixSeconds,
    /// Runtime; `None` where it is unknown.
    pub duration_s: Option<u64>,
    /// Thousandths of a virtual CPU that each pod asks for; zero where the source does not say.
    pub cpu_milli_per_pod: u64,
    gpus_per_pod: MilliGpus,
    pods: u32,
    gpus: MilliGpus,
}

impl Task {
    /// # Errors
    /// No pods, or more GPUs than an amount holds.
    #[expect(clippy::too_many_arguments, reason = "a task is these eight facts; each has its own type")]
    pub fn new(
        id: TaskId,
        organization: Organization,
        gpu_model: GpuModel,
        class: TaskClass,
        submitted: UnixSeconds,
        duration_s: Option<u64>,
        gpus_per_pod: MilliGpus,
        pods: u32,
    ) -> Result<Self, TaskError> {
        if pods == 0 {
            return Err(TaskError::NoPods);
        }
        let gpus = gpus_per_pod.checked_mul(pods).ok_or(TaskError::TooLarge { gpus_per_pod, pods })?;
        let cpu_milli_per_pod = 0;
        Ok(Self {
            id,
            organization,
            gpu_model,
            class,
            submitted,
            duration_s,
            cpu_milli_per_pod,
            gpus_per_pod,
            pods,
            gpus,
        })
    }

    /// GPUs of each pod.
    #[must_use]
    pub const fn gpus_per_pod(&self) -> MilliGpus {
        self.gpus_per_pod
    }

    /// Pods of the task.
    #[must_use]
    pub const fn pods(&self) -> u32 {
        self.pods
    }

    /// GPUs over all pods.
    #[must_use]
    pub const fn gpus(&self) -> MilliGpus {
        self.gpus
    }
}
