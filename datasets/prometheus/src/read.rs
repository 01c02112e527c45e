//! Asks for a span of hours, part by part, and makes rows of the answers.

use crate::answer::Answer;
use crate::capacity::Capacity;
use crate::client::{Client, Failed, shortened};
use crate::error::{DataFault, SourceError};
use crate::gaps::{Gap, Span, Why};
use crate::hours::{Collector, Rhythm};
use crate::settings::Source;
use std::collections::BTreeSet;
use vocab::{CapacityRow, HOURS_PER_WEEK, HourStart, SECONDS_PER_HOUR, SeriesId, UsageRow};

/// Points of a series in one answer. Prometheus refuses more than 11,000.
const POINTS: i64 = 10_000;
/// A part that is answered with a warning is asked for again in halves of no fewer hours.
const WARNED_HOURS: i64 = 6;
/// So many parts in a row without an answer, and the source is given up.
const FAILED_PARTS: u32 = 2;

/// Hours before those that are asked for: a series that had demand in them, and is no longer known, counts as zero. A week:
/// forecasts take two days at zero for a sign that an organization has left, and then nothing need be written of it any more.
pub const KNOWN_HOURS: i64 = HOURS_PER_WEEK;

/// Requested hours.
#[derive(Debug, Clone, Copy)]
pub struct Asked {
    /// Hours that are over.
    pub span: Span,
    /// Whether the source may begin later: the hours before are no gaps then.
    pub may_begin_later: bool,
}

/// Answer of a source.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Reading {
    /// Usage of the complete hours.
    pub rows: Vec<UsageRow>,
    /// Capacity where it changes.
    pub capacity: Vec<CapacityRow>,
    /// Missing hours.
    pub gaps: Vec<Gap>,
    /// First hour with data.
    pub begins: Option<HourStart>,
    /// Requested hours, from the first hour with data where the source may begin later.
    pub hours: i64,
    /// Of these, those of the pool that misses most.
    pub missing_hours: i64,
    /// Samples that are not numbers.
    pub bad_values: u64,
    /// Whether asking again may fill a gap.
    pub may_pass: bool,
}

impl Reading {
    /// Missing hours as a share of the requested ones.
    #[must_use]
    pub fn missing_share(&self) -> f64 {
        if self.hours == 0 { 0.0 } else { self.missing_hours as f64 / self.hours as f64 }
    }

    /// Refuses it where more than a share is missing.
    ///
    /// # Errors
    /// [`SourceError::TooMuchMissing`], with the gaps.
    pub fn with_at_most_missing(self, most: f64) -> Result<Self, SourceError> {
        let share = self.missing_share();
        if share <= most {
            return Ok(self);
        }
        Err(SourceError::TooMuchMissing { share, most, gaps: self.gaps, may_pass: self.may_pass })
    }
}

/// Parts of a span that are asked for one by one, in the order of time.
struct Parts {
    open: Vec<Span>,
}

impl Parts {
    fn of(span: Span, source: &Source) -> Self {
        let hours = (POINTS * i64::from(source.step_s) / SECONDS_PER_HOUR).max(1);
        let mut open = Vec::new();
        let mut from = span.from;
        while from < span.until {
            let until = from.plus_hours(hours).min(span.until);
            open.push(Span { from, until });
            from = until;
        }
        open.reverse();
        Self { open }
    }

    fn split(&mut self, span: Span) {
        let [first, rest] = span.halves();
        self.open.extend([rest, first]);
    }

    fn open_hours(&self) -> i64 {
        self.open.iter().map(|span| span.hours()).sum()
    }
}

/// Answers to the queries of one part.
struct Answers {
    demand: Answer,
    presence: Option<Answer>,
    capacity: Option<Answer>,
}

impl Answers {
    fn warning(&self) -> Option<String> {
        let all = [Some(&self.demand), self.presence.as_ref(), self.capacity.as_ref()];
        all.into_iter().flatten().flat_map(|answer| &answer.warnings).next().cloned()
    }
}

/// Reads a span of hours. `known` are series that count as zero where they are absent, though none of them answers;
/// `progress` receives the number of hours read.
///
/// # Errors
/// The source does not answer at all, twice in a row, refuses, or answers what no rows can be made of. A part that is not
/// answered beside others that are is a gap.
pub async fn read(
    client: &Client<'_>,
    source: &Source,
    asked: Asked,
    known: &BTreeSet<SeriesId>,
    progress: &(dyn Fn(i64) + Send + Sync),
) -> Result<Reading, SourceError> {
    let rhythm = Rhythm { step_s: source.step_s, least_share: source.min_samples };
    let mut collector = Collector::new(&source.cluster, &source.queries.labels, rhythm);
    let mut capacity = Capacity::default();
    let mut parts = Parts::of(asked.span, source);
    let (mut failed_in_row, mut may_pass) = (0, false);
    while let Some(span) = parts.open.pop() {
        match ask(client, source, span).await {
            Ok(answers) => {
                failed_in_row = 0;
                match answers.warning() {
                    Some(_) if span.hours() > WARNED_HOURS => parts.split(span),
                    Some(text) => {
                        may_pass = true;
                        collector.missed(span, &Why::Warned(text));
                    }
                    None => take(&mut collector, &mut capacity, client, source, span, &answers)?,
                }
            }
            Err(Failed::TooHeavy(_)) if span.hours() > 1 => parts.split(span),
            Err(Failed::Other(fault @ SourceError::Unavailable { .. })) => {
                failed_in_row += 1;
                if failed_in_row == FAILED_PARTS || !collector.has_any() {
                    return Err(fault);
                }
                may_pass = true;
                collector.missed(span, &Why::Failed(fault.to_string()));
            }
            Err(Failed::TooHeavy(fault) | Failed::Other(fault)) => return Err(fault),
        }
        progress(asked.span.hours() - parts.open_hours());
    }
    let hours = collector.finish(asked.span, known, asked.may_begin_later);
    let from = if asked.may_begin_later { hours.begins.unwrap_or(asked.span.until) } else { asked.span.from };
    Ok(Reading {
        rows: hours.rows,
        capacity: capacity.rows(&source.cluster),
        gaps: hours.gaps,
        begins: hours.begins,
        hours: (Span { from, ..asked.span }).hours(),
        missing_hours: hours.missing_hours,
        bad_values: hours.bad_values,
        may_pass,
    })
}

async fn ask(client: &Client<'_>, source: &Source, span: Span) -> Result<Answers, Failed> {
    let (from_s, to_s) = (span.from.unix_s(), span.until.unix_s() - i64::from(source.step_s));
    let demand = client.range(&source.queries.demand, from_s, to_s).await?;
    let mut others = Vec::new();
    for query in [&source.queries.presence, &source.queries.capacity] {
        others.push(match query {
            Some(query) => Some(client.range(query, from_s, to_s).await?),
            None => None,
        });
    }
    let capacity = others.pop().flatten();
    Ok(Answers { demand, presence: others.pop().flatten(), capacity })
}

fn take(
    collector: &mut Collector<'_>,
    capacity: &mut Capacity,
    client: &Client<'_>,
    source: &Source,
    span: Span,
    answers: &Answers,
) -> Result<(), SourceError> {
    let rhythm = Rhythm { step_s: source.step_s, least_share: source.min_samples };
    let of = |query: &str| {
        let (url, query) = (client.url(), shortened(query));
        move |fault: DataFault| SourceError::Data { url, query, fault: Box::new(fault) }
    };
    collector.take(span, &answers.demand, answers.presence.as_ref()).map_err(of(&source.queries.demand))?;
    match (&answers.capacity, &source.queries.capacity) {
        (Some(answer), Some(query)) => capacity.take(span, answer, &source.queries.labels, rhythm).map_err(of(query)),
        _ => Ok(()),
    }
}

/// That no sample was found.
#[must_use]
pub fn nothing_there(source: &Source, span: Span) -> SourceError {
    SourceError::NothingThere {
        url: source.target.to_string(),
        query: shortened(&source.queries.demand),
        from: span.from.to_string(),
        until: span.until.to_string(),
    }
}

#[cfg(test)]
mod tests;
