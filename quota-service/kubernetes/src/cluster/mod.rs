//! The cluster as the Kubernetes API tells it.

pub mod connect;
pub mod slim;
pub mod watch;
pub mod workload;

pub use connect::{ConnectError, connect};
