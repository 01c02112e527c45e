//! HP demand by hour out of a Prometheus: the only client of its HTTP API here.
//!
//! [`Source`] says where to ask what, [`Client`] asks, and [`read`] makes rows of the answers, an hour at a time. What comes
//! of samples is decided in [`hours`], which is pure: a scrape gap is no zero, and an organization without pods is none.

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
pub use gaps::{Gap, Span, Why, told};
pub use probe::{Probe, Probed, ProbedQuery, probe};
pub use promql::{Labels, Queries};
pub use read::{Asked, KNOWN_HOURS, Reading, nothing_there, read};
pub use settings::{BadSource, Source, SourceSettings};
pub use target::Target;
