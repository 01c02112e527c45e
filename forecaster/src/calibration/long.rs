//! Evidence about peaks over more than four hours, from a longer memory of a pool's own demand.
//!
//! Peaks over H hours that begin less than H hours apart share hours, and are missed together. A week has 168 / H that do not: 42 at
//! 4 h, seven at 24 h, two at 72 h. Of so few outcomes the order statistic ⌈(n + 1) p⌉ of n hourly residuals lies too low: 13 to 20 % of
//! the peaks over 24 h were above it at p = 0.9, on every panel and around every centre. So for peaks over more than [`SHORT_HOURS`] the
//! experts that need no model remember as many outcomes as four hours have in a week, as far as the [`Memory`] reaches, and state
//! their bounds at the level of m = n / H outcomes, p (1 + 1 / m): what ⌈(m + 1) p⌉ is of m that share no hour.

use super::linear::{Inputs, Linear, share_left_after};
use crate::nearness;
use std::collections::VecDeque;
use vocab::HourStart;

/// Peaks over so many hours or fewer have enough outcomes in a week.
pub const SHORT_HOURS: usize = 4;
/// Outcomes that share no hour which an expert remembers: as many as a week has of [`SHORT_HOURS`].
const OUTCOMES: usize = 42;
/// Issue times of each of them: more move together, and tell nothing.
const ISSUES_OF_AN_OUTCOME: usize = 6;
/// Hours before an issue time that count: six weeks. Twelve weeks were no better.
const COUNTED_HOURS: usize = 42 * 24;
/// Hours that a pool remembers: three weeks more, so that an issue time whose hours are over late, as of a long horizon or after an outage,
/// has the same hours before it as one that was over at once.
pub const MEMORY_HOURS: usize = COUNTED_HOURS + 21 * 24;
/// Outcomes that share no hour from which an expert has its whole weight. Chosen on validation, as the constants above.
const WHOLE_WEIGHT: f64 = 12.0;
/// Issue times below which nothing is stated.
const LEAST_ISSUES: usize = 8;
const DAY_HOURS: usize = 24;
const WEEK_DAYS: usize = 7;

/// The part of its weight that an expert has in a mixture whose statement over `hours` rests on residuals of so many hours.
pub fn trust(hours: usize, residual_hours: usize) -> f64 {
    if hours <= SHORT_HOURS { 1.0 } else { (residual_hours as f64 / hours as f64 / WHOLE_WEIGHT).min(1.0) }
}

/// Residuals that an order statistic of so many lacks, where `hours` of them in a row share hours.
pub fn correction(hours: usize, residual_hours: usize, residuals: f64) -> f64 {
    if hours <= SHORT_HOURS { 0.0 } else { residuals * hours as f64 / residual_hours as f64 }
}

/// Demand of a pool hour by hour, the newest [`MEMORY_HOURS`].
#[derive(Debug, Clone, Default)]
pub struct Memory {
    /// The end of the newest hour.
    until: Option<HourStart>,
    /// In GPUs; NaN where it was not measured.
    gpus: VecDeque<f32>,
}

impl Memory {
    /// From stored numbers; `None` where they are no memory.
    pub fn from_numbers(until: Option<HourStart>, gpus: Vec<f32>) -> Option<Self> {
        let is_one = gpus.len() <= MEMORY_HOURS && gpus.iter().all(|one| !one.is_infinite());
        (is_one && until.is_some() != gpus.is_empty()).then_some(Self { until, gpus: gpus.into() })
    }

    /// The end of the newest hour; `None` where nothing is remembered.
    pub const fn until(&self) -> Option<HourStart> {
        self.until
    }

    /// Demand hour by hour up to it, in GPUs.
    pub fn gpus(&self) -> impl ExactSizeIterator<Item = f32> {
        self.gpus.iter().copied()
    }

    /// Learns the hours up to `until`; one that is empty begins at `from`.
    pub fn learn(&mut self, from: HourStart, until: HourStart, measured_gpus: impl Fn(HourStart) -> Option<f64>) {
        let oldest = until.plus_hours(-(MEMORY_HOURS as i64));
        let mut hour = self.until.unwrap_or(from).max(oldest);
        if self.until.is_some_and(|known| known < hour) {
            self.gpus.clear();
        }
        while hour < until {
            self.gpus.push_back(measured_gpus(hour).map_or(f32::NAN, |gpus| gpus as f32));
            hour = hour.plus_hours(1);
        }
        self.until = Some(hour).filter(|_| !self.gpus.is_empty());
        while self.gpus.len() > MEMORY_HOURS {
            self.gpus.pop_front();
        }
    }

    /// The remembered hours before `issue` that count: the same when later ones are known.
    pub fn before(&self, issue: HourStart) -> Past {
        let later = self.until.map_or(0, |until| until.hours_since(issue).max(0));
        let hours = self.gpus.len().saturating_sub(usize::try_from(later).unwrap_or(usize::MAX));
        let counted = || self.gpus.iter().take(hours).skip(hours.saturating_sub(COUNTED_HOURS));
        let mut past =
            Past { gpus: Vec::with_capacity(COUNTED_HOURS.min(hours)), unmeasured: vec![0], sums: vec![0.0] };
        let mut gpus = counted().copied().find(|gpus| !gpus.is_nan()).unwrap_or(0.0);
        let (mut unmeasured, mut sum) = (0, 0.0);
        for hour in counted() {
            if hour.is_nan() {
                unmeasured += 1;
            } else {
                gpus = *hour;
            }
            sum += f64::from(gpus);
            past.gpus.push(gpus);
            past.unmeasured.push(unmeasured);
            past.sums.push(sum);
        }
        past
    }
}

/// Demand before an issue time.
pub struct Past {
    /// Hour by hour; gaps have the demand before them.
    gpus: Vec<f32>,
    /// Hours before each that were not measured.
    unmeasured: Vec<u32>,
    /// GPU-hours before each.
    sums: Vec<f64>,
}

/// How far peaks over a number of hours rose above the demand before them.
#[derive(Default)]
pub struct Rises {
    /// In GPUs, with their weights by hour of the day.
    pub above_latest: Vec<(f32, f64)>,
    /// Above the linear one.
    pub above_linear: Vec<(f32, f64)>,
    /// The linear rise of now, in GPUs.
    pub linear_gpus: Option<f64>,
    /// Hours that they cover.
    pub hours: usize,
}

/// Hours from one issue time to the next: of each hour of the day that has any, all days have it.
fn stride(hours: usize) -> usize {
    let most = hours / ISSUES_OF_AN_OUTCOME;
    [12, 8, 6, 4, 3, 2].into_iter().find(|stride| *stride <= most).unwrap_or(1)
}

impl Past {
    /// The rises of peaks over `hours` that are over, and the linear one for the inputs of `now`.
    pub fn rises(&self, hours: usize, now: Option<&Inputs>) -> Rises {
        let stride = stride(hours);
        let Some(newest) = self.gpus.len().checked_sub(hours + 1) else { return Rises::default() };
        // Issue times, newest first; each has an hour before it.
        let issues: Vec<usize> = (0..=newest / stride).map(|back| newest + 1 - back * stride).collect();
        let peak = |issue: &usize| largest(&self.gpus[*issue..issue + hours]);
        let rises: Vec<f64> = issues.iter().map(|at| f64::from(peak(at)) - f64::from(self.gpus[at - 1])).collect();
        let (mut found, mut linear) = (Rises::default(), Linear::default());
        let most = issues.len().min(OUTCOMES * hours / stride);
        let mut taught = Vec::with_capacity(most);
        found.above_latest.reserve_exact(most);
        let share_left = share_left_after(stride as f64);
        for place in (0..most).rev() {
            let (issue, rise) = (issues[place], rises[place]);
            if self.unmeasured[issue + hours] > self.unmeasured[issue - 1] {
                continue;
            }
            let weight = nearness::weight_of_hours(issue as i64 - self.gpus.len() as i64);
            found.above_latest.push((rise as f32, weight));
            if issue > DAY_HOURS {
                let inputs = [self.above_latest(issue), usual(&rises, place, hours, stride)];
                linear.learn_after(share_left, &inputs, rise);
                taught.push((inputs, rise, weight));
            }
        }
        if let Some(line) = linear.line() {
            let above = |(inputs, rise, weight): &(Inputs, f64, f64)| ((rise - line.rise_gpus(inputs)) as f32, *weight);
            found.above_linear = taught.iter().map(above).collect();
            found.linear_gpus = now.map(|inputs| line.rise_gpus(inputs)).filter(|rise| rise.is_finite());
        }
        found.hours = found.above_latest.len() * stride;
        if found.above_latest.len() < LEAST_ISSUES { Rises::default() } else { found }
    }

    /// How far the mean of the day before an issue time was above the demand just before it, in GPUs.
    fn above_latest(&self, issue: usize) -> f64 {
        (self.sums[issue] - self.sums[issue - DAY_HOURS]) / DAY_HOURS as f64 - f64::from(self.gpus[issue - 1])
    }
}

/// The mean rise at the time of day of an issue time, on the days of the week before whose peaks were over.
fn usual(rises: &[f64], place: usize, hours: usize, stride: usize) -> f64 {
    let days = (1..=WEEK_DAYS).map(|day| day * DAY_HOURS).filter(|back| *back >= hours);
    let before = days.filter_map(|back| rises.get(place + back / stride).copied());
    before.clone().sum::<f64>() / before.count().max(1) as f64
}

/// The largest demand, by comparisons that a processor makes side by side.
fn largest(gpus: &[f32]) -> f32 {
    let (lanes, rest) = gpus.as_chunks::<8>();
    let mut most = [f32::NEG_INFINITY; 8];
    for lane in lanes {
        most.iter_mut().zip(lane).for_each(|(most, gpus)| *most = if *gpus > *most { *gpus } else { *most });
    }
    most.iter().chain(rest).copied().fold(f32::NEG_INFINITY, f32::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hour(number: i64) -> HourStart {
        HourStart::from_unix_s(0).unwrap().plus_hours(number)
    }

    /// A memory of measured demand from hour 0 on; NaN where nothing was measured.
    fn remembered(gpus: &[f64]) -> Memory {
        let mut memory = Memory::default();
        let measured = |at: HourStart| gpus.get(at.hours_since(hour(0)) as usize).copied().filter(|one| !one.is_nan());
        memory.learn(hour(0), hour(gpus.len() as i64), measured);
        memory
    }

    #[test]
    fn rises_are_those_of_peaks_that_are_over_and_gaps_have_none() {
        // Ten GPUs, and one more each day; hour 100 was not measured.
        let mut gpus: Vec<f64> = (0..240).map(|hour| 10.0 + f64::from(hour / 24)).collect();
        gpus[100] = f64::NAN;
        let past = remembered(&gpus).before(hour(240));
        let rises = past.rises(24, Some(&[0.0, 1.0]));
        // Issue times every four hours from 216 back to 4, but those whose hours, or the one before, are the gap.
        let with_gap =
            (0..54).map(|back| 216 - 4 * back).filter(|issue| (issue - 1..issue + 24).contains(&100)).count();
        assert_eq!((rises.above_latest.len(), rises.hours), (54 - with_gap, 4 * (54 - with_gap)));
        assert!(rises.above_latest.iter().all(|(rise, _)| *rise == 1.0), "{:?}", rises.above_latest);
        assert!((rises.linear_gpus.unwrap() - 1.0).abs() < 0.3, "{:?}", rises.linear_gpus);
        // Demand at or after the issue time is not read.
        assert_eq!(remembered(&gpus).before(hour(200)).rises(24, None).above_latest.len(), 54 - with_gap - 10);
    }

    #[test]
    fn too_little_demand_states_nothing() {
        assert!(remembered(&[5.0; 24]).before(hour(24)).rises(24, None).above_latest.is_empty());
        assert!(remembered(&[5.0; 52]).before(hour(52)).rises(24, None).above_latest.is_empty(), "seven issue times");
        assert!(Memory::default().before(hour(9)).rises(5, None).above_latest.is_empty());
    }

    #[test]
    fn a_memory_is_bounded_continues_and_begins_again_after_a_longer_gap() {
        let mut memory = remembered(&[1.0; 100]);
        memory.learn(hour(50), hour(102), |_| Some(2.0));
        assert_eq!((memory.gpus().len(), memory.gpus().sum::<f32>()), (102, 104.0));
        memory.learn(hour(0), hour(1_600), |_| None);
        assert_eq!(memory.gpus().len(), MEMORY_HOURS);
        memory.learn(hour(0), hour(9_000), |_| Some(3.0));
        assert_eq!((memory.gpus().len(), memory.until()), (MEMORY_HOURS, Some(hour(9_000))));
        assert!(memory.gpus().all(|gpus| gpus == 3.0));
    }

    #[test]
    fn hours_before_an_issue_time_are_the_same_however_much_is_known_of_later_ones() {
        let gpus: Vec<f64> = (0..1_700).map(|hour| f64::from(hour * 37 % 101) / 7.0).collect();
        let rises = |until: usize| {
            let past = remembered(&gpus[..until]).before(hour(1_200));
            assert_eq!(past.gpus.len(), COUNTED_HOURS);
            past.rises(70, Some(&[0.5, 1.0])).above_linear
        };
        assert!(!rises(1_200).is_empty());
        assert!([1_204, 1_270, 1_700].iter().all(|until| rises(*until) == rises(1_200)));
    }

    #[test]
    fn numbers_that_are_no_memory_are_refused() {
        assert!(Memory::from_numbers(Some(hour(3)), vec![1.0, f32::NAN, 2.0]).is_some());
        assert!(Memory::from_numbers(None, Vec::new()).is_some());
        let bad = [(None, vec![1.0]), (Some(hour(3)), vec![]), (Some(hour(3)), vec![f32::INFINITY])];
        assert!(bad.into_iter().all(|(until, gpus)| Memory::from_numbers(until, gpus).is_none()));
        assert!(Memory::from_numbers(Some(hour(3)), vec![0.0; MEMORY_HOURS + 1]).is_none());
    }

    #[test]
    fn few_outcomes_have_little_weight_and_a_higher_level_and_those_of_four_hours_are_as_they_were() {
        assert_eq!((trust(4, 24), correction(4, 168, 168.0)), (1.0, 0.0));
        // Six outcomes of a day: half of the weight, and the level of seven.
        assert_eq!(trust(24, 144), 0.5);
        assert!((144.0 + correction(24, 144, 144.0) - 7.0 * 24.0).abs() < 1e-9);
        assert_eq!((trust(24, 24 * 20), trust(72, 0)), (1.0, 0.0));
    }

    #[test]
    fn the_largest_of_any_number_of_hours_is_found() {
        let gpus: Vec<f32> = (0..40_u8).map(|hour| f32::from(hour.wrapping_mul(89) % 41)).collect();
        for (start, hours) in (0..20).flat_map(|start| (1..=20).map(move |hours| (start, hours))) {
            let span = &gpus[start..start + hours];
            assert_eq!(Some(largest(span)), span.iter().copied().reduce(f32::max), "{span:?}");
        }
    }

    #[test]
    fn issue_times_meet_the_same_hours_of_each_day() {
        assert_eq!([5, 8, 12, 18, 24, 48, 72, 168].map(stride), [1, 1, 2, 3, 4, 8, 12, 12]);
    }
}
