//! The cluster as the Kubernetes API tells it.

pub mod connect;
pub mod slim;
pub mod workload;
pub mod watch;

pub use connect::{ConnectError, connect};
