//! Read-only check of a source.

use crate::client::{Client, Failed};
use crate::gaps::Span;
use crate::hours::Rhythm;
use crate::settings::Source;
use std::collections::BTreeSet;
use vocab::{SECONDS_PER_HOUR, UnixSeconds};

/// Result of a probe.
#[derive(Debug, Clone, PartialEq)]
pub struct Probe {
    /// URL of the source.
    pub url: String,
    /// The version, `unknown` of a server that tells none; or why it is not to be had.
    pub reachable: Result<String, String>,
    /// Empty where it is not to be had.
    pub queries: Vec<ProbedQuery>,
}

/// Answer of one query.
#[derive(Debug, Clone, PartialEq)]
pub struct ProbedQuery {
    /// `demand`, `presence` or `capacity`.
    pub name: &'static str,
    /// PromQL of the query.
    pub query: String,
    /// Answer, or reason of the failure.
    pub outcome: Result<Probed, String>,
}

/// An answer in numbers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Probed {
    /// Series of the answer.
    pub series: usize,
    /// Samples of the answer.
    pub samples: usize,
    /// Times that were asked for.
    pub times: usize,
    /// Of these, those at which any series has a sample.
    pub answered_times: usize,
    /// Warnings of the server.
    pub warnings: Vec<String>,
}

impl Probed {
    /// Of the times that were asked for.
    #[must_use]
    pub fn missing_share(&self) -> f64 {
        if self.times == 0 { 0.0 } else { 1.0 - self.answered_times as f64 / self.times as f64 }
    }
}

/// Asks a source who it is, and each of its queries for the last `hours` hours that are over.
pub async fn probe(source: &Source, now: UnixSeconds, hours: u32) -> Probe {
    let url = source.target.to_string();
    let unreachable = |why: String| Probe { url: url.clone(), reachable: Err(why), queries: Vec::new() };
    let client = match Client::new(source) {
        Ok(client) => client,
        Err(fault) => return unreachable(fault.to_string()),
    };
    let version = match client.version().await {
        Ok(version) => version,
        Err(fault) => return unreachable(fault.to_string()),
    };
    let until = match now.hour() {
        Ok(until) => until,
        Err(fault) => return unreachable(fault.to_string()),
    };
    let span = Span { from: until.plus_hours(-i64::from(hours)), until };
    let (demand, presence) = (Some(&source.queries.demand), source.queries.presence.as_ref());
    let all = [("demand", demand), ("presence", presence), ("capacity", source.queries.capacity.as_ref())];
    let mut queries = Vec::new();
    for (name, query) in all.into_iter().filter_map(|(name, query)| Some((name, query?))) {
        let outcome = ask(&client, source, query, span).await.map_err(|failed| {
            let (Failed::TooHeavy(fault) | Failed::Other(fault)) = failed;
            fault.to_string()
        });
        queries.push(ProbedQuery { name, query: query.clone(), outcome });
    }
    Probe { url, reachable: Ok(version), queries }
}

async fn ask(client: &Client<'_>, source: &Source, query: &str, span: Span) -> Result<Probed, Failed> {
    let step_s = i64::from(source.step_s);
    let answer = client.range(query, span.from.unix_s(), span.until.unix_s() - step_s).await?;
    let rhythm = Rhythm { step_s: source.step_s, least_share: source.min_samples };
    let samples = || answer.series.iter().flat_map(|series| &series.samples);
    let answered: BTreeSet<_> = samples().filter_map(|sample| rhythm.index(span, sample.at_ms)).collect();
    Ok(Probed {
        series: answer.series.len(),
        samples: samples().count(),
        times: (span.hours() * SECONDS_PER_HOUR / step_s) as usize,
        answered_times: answered.len(),
        warnings: answer.warnings,
    })
}
