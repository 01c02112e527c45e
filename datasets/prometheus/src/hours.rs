//! Samples → hours: pure.
//!
//! An hour of a series is the peak over its samples. A time at which the demand, or what says that the source was scraped,
//! answers anything is a measured one: who is absent then has no pods and counts as zero. A time at which nothing answers is
//! a gap of the scraping. An hour with too few measured times is a gap: missing, and not zero.

use crate::answer::{Answer, Series};
use crate::error::DataFault;
use crate::gaps::{Gap, Span, Why, push};
use crate::promql::Labels;
use std::collections::{BTreeMap, BTreeSet};
use vocab::{
    AmountError, ClusterName, GpuModel, HourDemand, HourStart, MilliGpus, Organization, PoolId, SECONDS_PER_HOUR,
    SeriesId, UnixSeconds, UsageRow,
};

/// Ends of names of metrics that count up.
const COUNTERS: [&str; 4] = ["_total", "_count", "_sum", "_bucket"];

/// Rows and gaps of a span.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Hours {
    /// Usage of the complete hours.
    pub rows: Vec<UsageRow>,
    /// Missing hours.
    pub gaps: Vec<Gap>,
    /// First hour with data.
    pub begins: Option<HourStart>,
    /// Samples that are not numbers.
    pub bad_values: u64,
    /// Missing hours of the pool that misses most.
    pub missing_hours: i64,
}

/// When samples are taken.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rhythm {
    /// Divides an hour.
    pub step_s: u32,
    /// Of the samples of an hour.
    pub least_share: f64,
}

impl Rhythm {
    /// Samples of one hour.
    #[must_use]
    pub const fn per_hour(self) -> u32 {
        SECONDS_PER_HOUR as u32 / self.step_s
    }

    fn least(self) -> u32 {
        (f64::from(self.per_hour()) * self.least_share).ceil().max(1.0) as u32
    }

    /// Whether a place in the grid is the last one of its hour.
    const fn is_last(self, place: usize) -> bool {
        (place + 1).is_multiple_of(self.per_hour() as usize)
    }

    /// Adds what was measured at a place to the demand of its hour.
    fn note(self, of_hour: &mut HourDemand, place: usize, gpus: MilliGpus) {
        of_hour.peak = of_hour.peak.max(gpus);
        if self.is_last(place) {
            of_hour.at_end = Some(gpus);
        }
    }

    /// The place of a sample in the grid of a span; `None` off it.
    pub(crate) fn index(self, span: Span, at_ms: i64) -> Option<usize> {
        let since = at_ms.checked_sub(span.from.unix_s() * 1_000)?;
        let step = i64::from(self.step_s) * 1_000;
        let points = span.hours() * i64::from(self.per_hour());
        let is_on = since >= 0 && since % step == 0 && since / step < points;
        is_on.then_some((since / step) as usize)
    }
}

/// An hour before anything was measured in it.
const NOTHING: HourDemand = HourDemand { peak: MilliGpus::ZERO, at_end: Some(MilliGpus::ZERO) };

/// Collects answers, part by part.
pub struct Collector<'a> {
    cluster: &'a ClusterName,
    labels: &'a Labels,
    rhythm: Rhythm,
    /// Measured times of each hour.
    answered: BTreeMap<HourStart, u32>,
    /// Measured times at which a value of the pool is no number.
    bad: BTreeMap<(PoolId, HourStart), u32>,
    /// Of the hours whose last time was measured.
    ends: BTreeSet<HourStart>,
    /// Of those, where a value of the pool is no number.
    bad_ends: BTreeSet<(PoolId, HourStart)>,
    demand: BTreeMap<SeriesId, BTreeMap<HourStart, HourDemand>>,
    missed: BTreeMap<HourStart, Why>,
    bad_values: u64,
}

/// One part, while it is taken in.
struct Part {
    span: Span,
    answered: Vec<bool>,
    pools: BTreeMap<PoolId, PoolPart>,
}

struct PoolPart {
    bad: Vec<bool>,
    sums: Vec<MilliGpus>,
}

impl<'a> Collector<'a> {
    /// A collector without samples.
    #[must_use]
    pub fn new(cluster: &'a ClusterName, labels: &'a Labels, rhythm: Rhythm) -> Self {
        let (answered, bad, ends, bad_ends, demand, missed) = Default::default();
        Self { cluster, labels, rhythm, answered, bad, ends, bad_ends, demand, missed, bad_values: 0 }
    }

    /// Takes in what was answered for a span: the demand, and what says that the source was scraped.
    ///
    /// # Errors
    /// No rows can be made of it: the query is another one than it should be.
    pub fn take(&mut self, span: Span, demand: &Answer, presence: Option<&Answer>) -> Result<(), DataFault> {
        let points = span.hours() as usize * self.rhythm.per_hour() as usize;
        let mut part = Part { span, answered: vec![false; points], pools: BTreeMap::new() };
        // 1. Whose the series are, and at which times anything is measured.
        let mut known: BTreeMap<SeriesId, &Series> = BTreeMap::new();
        for series in &demand.series {
            let id = self.id(series)?;
            if let Some(first) = known.insert(id.clone(), series) {
                return Err(twice(format!("of {} {}", id.pool.gpu_model, id.organization), first, series));
            }
            self.mark(&mut part, &id.pool, series)?;
        }
        for series in presence.iter().flat_map(|answer| &answer.series) {
            for sample in series.samples.iter().filter(|sample| sample.value > 0.0) {
                let place = self.rhythm.index(span, sample.at_ms).ok_or_else(|| off(series, sample.at_ms))?;
                part.answered[place] = true;
            }
        }
        // 2. Peaks of the organizations, and sums at each time.
        for (id, series) in known {
            self.add(&mut part, id, series)?;
        }
        // 3. Peaks of the pools, and how much was measured.
        self.close(part);
        Ok(())
    }

    /// Notes that a span was not answered, or in part.
    pub fn missed(&mut self, span: Span, why: &Why) {
        self.missed.extend(span.each().map(|hour| (hour, why.clone())));
    }

    /// Whether anything was measured at all.
    #[must_use]
    pub fn has_any(&self) -> bool {
        !self.answered.is_empty()
    }

    fn id(&self, series: &Series) -> Result<SeriesId, DataFault> {
        let labels = || shown_labels(series);
        if let Some(name) = series.labels.get("__name__").filter(|name| COUNTERS.iter().any(|end| name.ends_with(end)))
        {
            return Err(DataFault::Counter { name: name.clone() });
        }
        let label = &self.labels.organization;
        let name = series.labels.get(label).filter(|name| !name.is_empty()).ok_or_else(|| DataFault::NoLabel {
            labels: labels(),
            label: label.clone(),
            setting: "organization_label, --organization-label",
        })?;
        let organization = Organization::parse(name).map_err(|fault| DataFault::Name { labels: labels(), fault })?;
        if organization.is_pool_peak() {
            return Err(DataFault::Star { labels: labels() });
        }
        let gpu_model = model(series, self.labels)?;
        Ok(SeriesId { pool: PoolId { cluster: self.cluster.clone(), gpu_model }, organization })
    }

    fn mark(&mut self, part: &mut Part, pool: &PoolId, series: &Series) -> Result<(), DataFault> {
        let points = part.answered.len();
        let empty = || PoolPart { bad: vec![false; points], sums: vec![MilliGpus::ZERO; points] };
        let pool = part.pools.entry(pool.clone()).or_insert_with(empty);
        let mut last = None;
        for sample in &series.samples {
            let place =
                self.rhythm.index(part.span, sample.at_ms).filter(|place| last.is_none_or(|last| last < *place));
            let place = place.ok_or_else(|| off(series, sample.at_ms))?;
            last = Some(place);
            part.answered[place] = true;
            if !sample.value.is_finite() {
                pool.bad[place] = true;
                self.bad_values += 1;
            }
        }
        Ok(())
    }

    fn add(&mut self, part: &mut Part, id: SeriesId, series: &Series) -> Result<(), DataFault> {
        let pool = part.pools.get_mut(&id.pool).expect("each series was marked in its pool");
        let of_hours = self.demand.entry(id).or_default();
        for sample in &series.samples {
            let place = self.rhythm.index(part.span, sample.at_ms).expect("samples off the grid were refused");
            if pool.bad[place] {
                continue;
            }
            let demand = amount(series, sample.at_ms, sample.value)?;
            let sum = pool.sums[place].checked_add(demand).filter(|sum| MilliGpus::stated(Ok(*sum)).is_ok());
            pool.sums[place] = sum.ok_or_else(|| DataFault::Sum { at: seconds(sample.at_ms) })?;
            self.rhythm.note(of_hours.entry(hour_of(part.span, place, self.rhythm)).or_insert(NOTHING), place, demand);
        }
        Ok(())
    }

    fn close(&mut self, part: Part) {
        for (place, _) in part.answered.iter().enumerate().filter(|(_, answered)| **answered) {
            let hour = hour_of(part.span, place, self.rhythm);
            *self.answered.entry(hour).or_default() += 1;
            if self.rhythm.is_last(place) {
                self.ends.insert(hour);
            }
        }
        for (pool, known) in part.pools {
            let of_hours = self.demand.entry(SeriesId::pool_peak(pool.clone())).or_default();
            for (place, sum) in known.sums.iter().enumerate() {
                let hour = hour_of(part.span, place, self.rhythm);
                self.rhythm.note(of_hours.entry(hour).or_insert(NOTHING), place, *sum);
                if known.bad[place] {
                    *self.bad.entry((pool.clone(), hour)).or_default() += 1;
                    if self.rhythm.is_last(place) {
                        self.bad_ends.insert((pool.clone(), hour));
                    }
                }
            }
        }
    }

    /// Rows and gaps of `asked`. `known` are series that may have no pods now: they count as zero, too. Where the source may
    /// be younger than what was asked for, the hours before it begins are no gaps.
    #[must_use]
    pub fn finish(self, asked: Span, known: &BTreeSet<SeriesId>, may_begin_later: bool) -> Hours {
        let begins = asked.each().find(|hour| self.answered.contains_key(hour) || self.missed.contains_key(hour));
        let from = if may_begin_later { begins.unwrap_or(asked.from) } else { asked.from };
        let mut series: BTreeMap<&PoolId, BTreeSet<&SeriesId>> = BTreeMap::new();
        let organizations = self.demand.keys().chain(known).filter(|id| !id.is_pool_peak());
        for id in organizations {
            series.entry(&id.pool).or_default().insert(id);
        }
        let mut hours = Hours { begins, bad_values: self.bad_values, ..Hours::default() };
        let mut missing: BTreeMap<Option<&PoolId>, i64> = BTreeMap::new();
        for hour in (Span { from, ..asked }).each() {
            if let Some(why) = self.why_missing(hour) {
                *missing.entry(None).or_default() += 1;
                push(&mut hours.gaps, None, hour, why);
                continue;
            }
            for (pool, organizations) in &series {
                if self.measured(pool, hour) < self.rhythm.least() {
                    *missing.entry(Some(pool)).or_default() += 1;
                    push(&mut hours.gaps, Some(&pool.gpu_model), hour, Why::BadValues);
                    continue;
                }
                let peak = SeriesId::pool_peak((*pool).clone());
                let all = organizations.iter().copied().chain([&peak]);
                hours.rows.extend(all.map(|id| self.row(id, hour)));
            }
        }
        let of_all = missing.remove(&None).unwrap_or_default();
        hours.missing_hours = of_all + missing.into_values().max().unwrap_or_default();
        hours
    }

    fn row(&self, id: &SeriesId, hour: HourStart) -> UsageRow {
        let known = self.demand.get(id).and_then(|of_hours| of_hours.get(&hour)).copied().unwrap_or(NOTHING);
        // A series without a sample at the last time has nothing then, where the others were measured.
        let is_end_known = self.ends.contains(&hour) && !self.bad_ends.contains(&(id.pool.clone(), hour));
        HourDemand { at_end: known.at_end.filter(|_| is_end_known), ..known }.row(id.clone(), hour)
    }

    fn measured(&self, pool: &PoolId, hour: HourStart) -> u32 {
        let answered = self.answered.get(&hour).copied().unwrap_or_default();
        answered - self.bad.get(&(pool.clone(), hour)).copied().unwrap_or_default()
    }

    fn why_missing(&self, hour: HourStart) -> Option<Why> {
        if let Some(why) = self.missed.get(&hour) {
            return Some(why.clone());
        }
        match self.answered.get(&hour).copied().unwrap_or_default() {
            0 => Some(Why::NoSample),
            fewest if fewest < self.rhythm.least() => Some(Why::TooFewSamples { fewest, of: self.rhythm.per_hour() }),
            _ => None,
        }
    }
}

fn hour_of(span: Span, place: usize, rhythm: Rhythm) -> HourStart {
    span.from.plus_hours(place as i64 / i64::from(rhythm.per_hour()))
}

pub(crate) fn seconds(at_ms: i64) -> UnixSeconds {
    UnixSeconds::new(at_ms.div_euclid(1_000))
}

pub(crate) fn off(series: &Series, at_ms: i64) -> DataFault {
    DataFault::OffTheGrid { labels: shown_labels(series), at_ms }
}

pub(crate) fn twice(what: String, first: &Series, second: &Series) -> DataFault {
    DataFault::Twice { what, first: shown_labels(first), second: shown_labels(second) }
}

pub(crate) fn amount(series: &Series, at_ms: i64, gpus: f64) -> Result<MilliGpus, DataFault> {
    let at = seconds(at_ms);
    let refused = |fault: AmountError| DataFault::Amount { labels: shown_labels(series), at, fault };
    MilliGpus::stated(MilliGpus::nearest(gpus)).map_err(refused)
}

/// The GPU model of a series.
pub(crate) fn model(series: &Series, labels: &Labels) -> Result<GpuModel, DataFault> {
    let named = labels.gpu_model.as_ref().and_then(|label| series.labels.get(label)).filter(|name| !name.is_empty());
    match (named, &labels.fixed_model) {
        (Some(name), _) => {
            GpuModel::parse(name).map_err(|fault| DataFault::Name { labels: shown_labels(series), fault })
        }
        (None, Some(fixed)) => Ok(fixed.clone()),
        (None, None) => {
            let label = labels.gpu_model.clone().unwrap_or_default();
            Err(DataFault::NoModel { labels: shown_labels(series), label })
        }
    }
}

/// As PromQL writes them.
pub(crate) fn shown_labels(series: &Series) -> String {
    let all: Vec<String> = series.labels.iter().map(|(name, value)| format!("{name}={value:?}")).collect();
    format!("{{{}}}", all.join(", "))
}

#[cfg(test)]
mod tests;
