//! Everything that can go wrong between here and a Prometheus.

use crate::gaps::{Gap, told};
use vocab::{AmountError, NameError, UnixSeconds};

/// What an answer holds that no row can be made of.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum DataFault {
    #[error(
        "series {labels} has no label {label}: name another one with {setting}, or write the query so that each series has it"
    )]
    NoLabel { labels: String, label: String, setting: &'static str },
    #[error("series {labels} names no GPU model ({label}): gpu_model, --gpu-model, says what such series are of")]
    NoModel { labels: String, label: String },
    #[error("{first} and {second} are both {what}: write the query as sum by (…) of these labels alone")]
    Twice { what: String, first: String, second: String },
    #[error("series {labels}: {fault}")]
    Name { labels: String, fault: NameError },
    #[error("series {labels}: the organization * stands for the pool's own peak, and is no name of one")]
    Star { labels: String },
    #[error("{name} counts up and is no demand: ask for a gauge, or for increase({name}[1m])")]
    Counter { name: String },
    #[error("series {labels} at {at}: {fault}")]
    Amount { labels: String, at: UnixSeconds, fault: AmountError },
    #[error("the sum over the organizations at {at} is more GPUs than one amount may hold")]
    Sum { at: UnixSeconds },
    #[error(
        "series {labels} has a sample at {at_ms} ms since 1970, which was not asked for, or twice: is something between that \
         changes the steps of queries?"
    )]
    OffTheGrid { labels: String, at_ms: i64 },
}

/// What to do about a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The settings have to change.
    Settings,
    /// The data, or the query that makes them.
    Data,
    /// Trying again may help.
    Unavailable,
}

/// A fault of a source, with the place and the query. No URL in it holds a secret.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum SourceError {
    #[error("{key}: {why}")]
    Settings { key: &'static str, why: String },
    #[error("{url} is not to be had: {why}, {attempts} times; asked for {query}")]
    Unavailable { url: String, query: String, why: String, attempts: u32 },
    #[error("{url} answers {status}: {why}; asked for {query}")]
    Refused { url: String, query: String, status: u16, why: String },
    #[error("{url}: {why}")]
    Foreign { url: String, why: String },
    #[error("{url} cannot answer {query}: {why}")]
    Execution { url: String, query: String, why: String },
    #[error("{url} cannot answer even an hour of {query}: {why}; write a query of fewer series, or a longer step")]
    TooHeavy { url: String, query: String, why: String },
    #[error("{url}: {fault}; asked for {query}")]
    Data { url: String, query: String, fault: Box<DataFault> },
    #[error(
        "{url} has no sample of the demand from {from} until {until}: asked for {query}; are the metrics there, and are these \
         the names of priority classes and labels?"
    )]
    NothingThere { url: String, query: String, from: String, until: String },
    #[error(
        "{} % of the hours are missing, more than {} %: nothing was stored. Missing: {}; see whether the source was scraped then, \
         or allow more with --max-missing",
        percent(*share), percent(*most), told(gaps)
    )]
    TooMuchMissing { share: f64, most: f64, gaps: Vec<Gap>, may_pass: bool },
}

fn percent(share: f64) -> String {
    format!("{:.1}", share * 100.0)
}

impl SourceError {
    #[must_use]
    pub const fn kind(&self) -> Kind {
        match self {
            Self::Settings { .. } | Self::Refused { .. } | Self::Foreign { .. } => Kind::Settings,
            Self::Unavailable { .. } | Self::TooMuchMissing { may_pass: true, .. } => Kind::Unavailable,
            Self::Execution { .. }
            | Self::TooHeavy { .. }
            | Self::Data { .. }
            | Self::NothingThere { .. }
            | Self::TooMuchMissing { .. } => Kind::Data,
        }
    }
}
