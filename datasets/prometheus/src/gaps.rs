//! Hours that are missing, and why.

use std::fmt;
use vocab::{GpuModel, HourStart};

/// Gaps that are listed one by one.
const LISTED_GAPS: usize = 20;

/// Hours from `from` on, before `until`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// First hour.
    pub from: HourStart,
    /// The hour after the last one.
    pub until: HourStart,
}

impl Span {
    /// Number of hours.
    #[must_use]
    pub fn hours(self) -> i64 {
        self.until.hours_since(self.from).max(0)
    }

    /// Each hour.
    pub fn each(self) -> impl Iterator<Item = HourStart> {
        (0..self.hours()).map(move |hour| self.from.plus_hours(hour))
    }

    /// The first half, and the rest.
    #[must_use]
    pub fn halves(self) -> [Self; 2] {
        let middle = self.from.plus_hours(self.hours() / 2);
        [Self { from: self.from, until: middle }, Self { from: middle, until: self.until }]
    }
}

/// Why an hour is missing.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Why {
    NoSample,
    /// The fewest of the hours that a gap spans.
    TooFewSamples {
        fewest: u32,
        of: u32,
    },
    /// Values that are not numbers.
    BadValues,
    Warned(String),
    Failed(String),
}

impl Why {
    /// The reason of this hour and the next one, if they share one gap.
    fn with(self, next: &Self) -> Option<Self> {
        match (self, next) {
            (Self::TooFewSamples { fewest, of }, Self::TooFewSamples { fewest: other, .. }) => {
                Some(Self::TooFewSamples { fewest: fewest.min(*other), of })
            }
            (one, other) => (one == *other).then_some(one),
        }
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSample => f.write_str("no sample"),
            Self::TooFewSamples { fewest, of } => write!(f, "{fewest} of {of} samples"),
            Self::BadValues => f.write_str("values that are not numbers"),
            Self::Warned(text) => write!(f, "partial answer: {text}"),
            Self::Failed(text) => write!(f, "no answer: {text}"),
        }
    }
}

/// Hours in a row that are missing for the same reason: of one GPU model, or of all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gap {
    /// GPU model of the gap; `None` for all.
    pub gpu_model: Option<GpuModel>,
    /// The missing hours.
    pub span: Span,
    /// Reason.
    pub why: Why,
}

impl fmt::Display for Gap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(model) = &self.gpu_model {
            write!(f, "{model} ")?;
        }
        write!(f, "{} to {} ({} h, {})", self.span.from, self.span.until, self.span.hours(), self.why)
    }
}

/// Gaps on one line.
#[must_use]
pub fn listed(gaps: &[Gap]) -> String {
    let mut all: Vec<String> = gaps.iter().take(LISTED_GAPS).map(ToString::to_string).collect();
    if gaps.len() > LISTED_GAPS {
        all.push(format!("and {} more", gaps.len() - LISTED_GAPS));
    }
    all.join("; ")
}

/// Adds an hour to the gap that it continues, or begins one.
pub(crate) fn push(gaps: &mut Vec<Gap>, gpu_model: Option<&GpuModel>, hour: HourStart, why: Why) {
    let before = gaps.iter_mut().rev().find(|gap| gap.gpu_model.as_ref() == gpu_model);
    if let Some(gap) = before.filter(|gap| gap.span.until == hour)
        && let Some(both) = why.clone().with(&gap.why)
    {
        gap.why = both;
        gap.span.until = hour.plus_hours(1);
        return;
    }
    let span = Span { from: hour, until: hour.plus_hours(1) };
    gaps.push(Gap { gpu_model: gpu_model.cloned(), span, why });
}
