//! The cluster as the Kubernetes API tells it.

pub mod connect;
pub mod follow;
mod shared;
pub mod slim;
pub mod watch;
pub mod workload;

pub use connect::{ConnectError, connect};
