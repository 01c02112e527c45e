//! Errors of a Prometheus source.

use crate::gaps::{Gap, listed};
use std::io;
use std::path::{Path, PathBuf};
use vocab::{AmountError, MilliGpus, NameError, UnixSeconds};

/// Part of an answer that cannot become a row.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum DataFault {
    #[error(
        "series {labels} has no label {label}: name another label with {setting}, or change the query so that each series has it"
    )]
    NoLabel { labels: String, label: String, setting: &'static str },
    #[error("series {labels} has no GPU model ({label}): name it with gpu_model (--gpu-model)")]
    NoModel { labels: String, label: String },
    #[error("{first} and {second} are both {what}: write the query as sum by (…) of these labels alone")]
    Twice { what: String, first: String, second: String },
    #[error("series {labels}: {fault}")]
    Name { labels: String, fault: NameError },
    #[error("series {labels}: the organization * is reserved for the pool's own peak")]
    Star { labels: String },
    #[error("{name} is a counter, not demand: use a gauge, or increase({name}[1m])")]
    Counter { name: String },
    #[error("series {labels} at {at}: {fault}")]
    Amount { labels: String, at: UnixSeconds, fault: AmountError },
    #[error("the sum over the organizations at {at} exceeds the limit of {max} GPUs: write a query of GPUs", max = MilliGpus::MOST_STATED_GPUS)]
    Sum { at: UnixSeconds },
    #[error(
        "series {labels} has an unexpected or repeated sample at {at_ms} ms since 1970: does a proxy change the steps of \
         queries?"
    )]
    OffTheGrid { labels: String, at_ms: i64 },
}

/// Remedy of a fault.
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
    /// A file that a setting names.
    #[error("{key}: {}: {why}", file.display())]
    Unread { key: &'static str, file: PathBuf, why: String },
    #[error("{url} is not available: {why}, {attempts} times; query: {query}")]
    Unavailable { url: String, query: String, why: String, attempts: u32 },
    #[error("{url} answers {status}: {why}; query: {query}")]
    Refused { url: String, query: String, status: u16, why: String },
    #[error("{url}: {why}")]
    Foreign { url: String, why: String },
    #[error("{url} cannot answer {query}: {why}")]
    Execution { url: String, query: String, why: String },
    #[error("{url} cannot answer one hour of {query}: {why}; use a query with fewer series, or a longer step")]
    TooHeavy { url: String, query: String, why: String },
    #[error("{url}: {fault}; query: {query}")]
    Data { url: String, query: String, fault: Box<DataFault> },
    #[error(
        "{url} has no sample of the demand from {from} until {until}; query: {query}; check the metrics and the names of \
         priority classes and labels"
    )]
    NothingThere { url: String, query: String, from: String, until: String },
    #[error(
        "{} % of the hours are missing, more than {} %: nothing was stored. Missing: {}; check whether the source was scraped then, \
         or allow more with --max-missing",
        percent(*share), percent(*most), listed(gaps)
    )]
    TooMuchMissing { share: f64, most: f64, gaps: Vec<Gap>, may_pass: bool },
}

fn percent(share: f64) -> String {
    format!("{:.1}", share * 100.0)
}

impl SourceError {
    /// A file that cannot be read.
    pub(crate) fn unread(key: &'static str, file: &Path, fault: &io::Error) -> Self {
        let why = match fault.kind() {
            io::ErrorKind::NotFound => "there is no such file".to_owned(),
            io::ErrorKind::IsADirectory => "it is a folder: name a file".to_owned(),
            _ => fault.to_string(),
        };
        Self::Unread { key, file: file.to_owned(), why }
    }

    /// Remedy of the fault.
    #[must_use]
    pub const fn kind(&self) -> Kind {
        match self {
            Self::Settings { .. } | Self::Unread { .. } | Self::Refused { .. } | Self::Foreign { .. } => Kind::Settings,
            Self::Unavailable { .. } | Self::TooMuchMissing { may_pass: true, .. } => Kind::Unavailable,
            Self::Execution { .. }
            | Self::TooHeavy { .. }
            | Self::Data { .. }
            | Self::NothingThere { .. }
            | Self::TooMuchMissing { .. } => Kind::Data,
        }
    }
}
