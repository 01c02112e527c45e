//! A typed client of quota-service. Requests and answers are the types of [`wire`].
//!
//! ```no_run
//! use headroom_client::{Client, Options};
//! use std::time::Duration;
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let client = Client::new(Options {
//!     url: "https://headroom.example:8443".parse()?,
//!     token_file: Some("/etc/scheduler/token".into()),
//!     patience: Duration::from_secs(60),
//!     ..Options::default()
//! })?;
//! let pool = client.pool("earth", "A100");
//! let quota = pool.quota(4).await?;
//! println!("{} GPUs may be admitted for {} h until {}", quota.available_gpus, quota.hours, quota.valid_until);
//! # Ok(())
//! # }
//! ```
//!
//! [`Pool::quotas`] follows a quota: it asks with the tag of the last answer, and the service holds the request until the quota
//! changes. [`Pool::events`] reads the events of a pool's tasks. Every write may be repeated, since it names what it writes: a task
//! its id, an outcome its event id, a state its pool. So a request without an answer is sent again for [`Options::patience`].

#![warn(missing_docs)]

mod error;
mod events;
mod exchange;
mod pauses;
mod pool;
mod quotas;
mod tls;
mod url;

#[cfg(test)]
mod tests;

pub use error::ClientError;
pub use events::Events;
pub use exchange::{Client, Options, chain};
pub use hyper::Method;
pub use pauses::Pauses;
pub use pool::{Pool, StatementOf, WhatIf};
pub use quotas::{Quotas, available_gpus};
pub use tls::trusting;
pub use url::ServiceUrl;
pub use wire;
