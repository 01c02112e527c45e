//! The cluster as the Kubernetes API tells it.

pub mod connect;
pub mod dra;
pub mod follow;
pub mod groups;
pub mod served;
pub mod slim;
pub mod watch;
pub mod workload;

pub use connect::{ConnectError, connect};
