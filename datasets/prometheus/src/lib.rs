//! HP demand by hour from a Prometheus: the only client of its HTTP API.
//!
//! [`Source`] holds URL and queries, [`Client`] sends them, and [`read`] turns the answers into hourly rows. [`hours`] turns
//! samples into hours, and is pure: a scrape gap is missing, and an organization without pods is at zero.

mod answer;
mod capacity;
mod client;
mod error;
mod exchange;
#[cfg(test)]
#[path = "tests/fake.rs"]
mod fake;
mod gaps;
pub mod hours;
mod probe;
mod promql;
mod read;
mod settings;
mod target;

pub use answer::{Answer, AnswerFault, Sample, Series, parse};
pub use client::{Client, Outcome};
pub use error::{DataFault, Kind, SourceError};
pub use exchange::tls as client_tls;
pub use gaps::{Gap, Span, Why, listed};
pub use probe::{Probe, Probed, ProbedQuery, probe};
pub use promql::{Labels, Queries};
pub use read::{Asked, KNOWN_HOURS, Reading, nothing_there, read};
pub use settings::{BadSource, Source, SourceSettings};
pub use target::Target;
