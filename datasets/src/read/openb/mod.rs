//! Alibaba's GPU-sharing trace of 2023 (`cluster-trace-gpu-v2023`, the one of the FGD paper): nodes, and pods in each of
//! the sets of columns in which they are published.
//!
//! Amounts are those of the files: thousandths of a CPU and of a GPU, MiB, seconds from the start of the trace. GPU
//! models are the codes of the publisher (G2 and G3 are undisclosed).

mod nodes;
mod pods;
#[cfg(test)]
mod tests;

pub use nodes::{OpenbNode, nodes};
pub use pods::{GpuAsk, OpenbPod, PodPhase, Qos, pods};

/// Items of a file, in its order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed<T> {
    pub items: Vec<T>,
    /// Rows that repeat an earlier one of the file in every field.
    pub equal_duplicates: u64,
}
