//! The loop that renews the quotas: read, plan, write, publish.

mod bases;
mod cache;
mod failures;
pub mod fallback;
mod follow;
mod followed;
mod followed_reports;
mod history;
mod learned;
pub mod limits;
pub mod pace;
mod read;
mod renewals;
mod renewer;
mod rounds;
pub mod utilization;
mod write;

pub use follow::Follower;
pub use read::{history_of, own_calendar};
pub use renewals::Renewals;
pub use renewer::Renewer;
pub use rounds::{run, watch};
pub use write::restore;
