//! The request of a pod to a node.

use crate::topology::Affinity;
use vocab::MilliGpus;

/// Why a request was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// The amount is neither whole GPUs nor a share of one.
    #[error("{gpus} GPUs a pod are neither a share below one GPU nor whole GPUs: ask for {next} or split the pods")]
    Broken {
        /// The refused request of a pod.
        gpus: MilliGpus,
        /// The next larger number of whole GPUs.
        next: u64,
    },
    /// The amount is above [`GpuRequest::MOST`].
    #[error("{gpus} GPUs a pod are more than a node may have, {most}", most = GpuRequest::MOST)]
    TooMany {
        /// The refused request of a pod.
        gpus: MilliGpus,
    },
}

/// GPUs of one pod: a share of one, or whole ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum GpuRequest {
    /// Thousandths, 1 to 999, all on one GPU.
    Share(u16),
    /// Whole GPUs.
    Whole(u16),
}

impl GpuRequest {
    /// GPUs of a node at most: one bit each.
    pub const MOST: u16 = 64;

    /// # Errors
    /// More than one GPU and not whole, or more than a node may have.
    pub fn of(gpus: MilliGpus) -> Result<Self, RequestError> {
        let milli = gpus.milli();
        match (milli / 1_000, milli % 1_000) {
            (0, share @ 1..) => Ok(Self::Share(share as u16)),
            (whole, 0) if whole <= u64::from(Self::MOST) => Ok(Self::Whole(whole as u16)),
            (_, 0) => Err(RequestError::TooMany { gpus }),
            (whole, _) => Err(RequestError::Broken { gpus, next: whole + 1 }),
        }
    }

    /// Thousandths of a GPU.
    #[must_use]
    pub const fn milli(self) -> u32 {
        match self {
            Self::Share(milli) => milli as u32,
            Self::Whole(gpus) => gpus as u32 * 1_000,
        }
    }
}

/// GPU models of a fleet that a pod takes, one bit each. The nodes of a pool are of one model; only a trace that is placed
/// on several pools at once has more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Models(u32);

impl Models {
    /// Any will do.
    pub const ANY: Self = Self(u32::MAX);
    /// Models that a fleet may have.
    pub const MOST: u8 = 32;

    /// Those of these numbers, each below [`MOST`](Self::MOST).
    #[must_use]
    pub fn of(numbers: impl IntoIterator<Item = u8>) -> Self {
        Self(numbers.into_iter().fold(0, |bits, number| bits | 1_u32.checked_shl(u32::from(number)).unwrap_or(0)))
    }

    /// Whether a GPU model is among these, by its number.
    #[must_use]
    pub const fn has(self, number: u8) -> bool {
        number < Self::MOST && self.0 >> number & 1 == 1
    }
}

/// The request of one pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct PodRequest {
    /// GPUs of the pod.
    pub gpus: GpuRequest,
    /// Zero where the task does not say.
    pub cpu_milli: u64,
    /// Zero where the task does not say.
    pub memory_mib: u64,
    /// GPU models on which the pod may run.
    pub models: Models,
    /// Where its GPUs are to lie together; none where that is the same to it.
    pub affinity: Option<Affinity>,
}

impl PodRequest {
    /// One that takes any model, and GPUs that lie anywhere on the node.
    #[must_use]
    pub const fn new(gpus: GpuRequest, cpu_milli: u64, memory_mib: u64) -> Self {
        Self { gpus, cpu_milli, memory_mib, models: Models::ANY, affinity: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_and_whole_gpus_are_requests_and_nothing_between() {
        let of = |text: &str| GpuRequest::of(MilliGpus::parse(text).unwrap());
        assert_eq!(of("0.25"), Ok(GpuRequest::Share(250)));
        assert_eq!(of("8"), Ok(GpuRequest::Whole(8)));
        assert_eq!(of("0"), Ok(GpuRequest::Whole(0)));
        assert_eq!(of("64"), Ok(GpuRequest::Whole(64)));
        assert!(of("1.5").unwrap_err().to_string().contains("ask for 2 or split"));
        assert!(of("65").unwrap_err().to_string().contains("more than a node may have, 64"));
    }
}
