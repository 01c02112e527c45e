//! The cluster as the Kubernetes API tells it.

pub mod connect;
pub mod dra;
pub mod follow;
pub mod groups;
pub mod objects;
pub mod served;
mod shared;
pub mod slim;
pub mod watch;
pub mod workload;

pub use connect::{ConnectError, connect};
