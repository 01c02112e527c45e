//! The loop that renews the quotas: read, plan, write, publish.

mod cache;
pub mod fallback;
mod follow;
pub mod heat;
mod history;
mod learned;
pub mod limits;
pub mod pace;
mod read;
mod renewals;
mod renewer;
mod rounds;
mod told;
mod write;

pub use follow::Follower;
pub use read::own_calendar;
pub use renewals::Renewals;
pub use renewer::Renewer;
pub use rounds::{run, watch};
pub use write::restore;
