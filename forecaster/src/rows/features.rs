//! The features of a window for a model of rows: differences to the last value, in deviations of the series, then the calendar.

use super::StepGroups;
use super::days_off;
use super::spans::sums_of_last;
use crate::trees::TargetColumns;
use datasets::window::Window;
use serde::{Deserialize, Serialize};
use std::ops::Range;
use vocab::HorizonHours;

const DAY_HOURS: usize = 24;
const WEEK_HOURS: usize = 168;
/// Steps whose hours of the days before are read; of a longer horizon so many are picked evenly.
const STEPS_MOST: usize = 8;
const LAGS_OF_DAYS: [usize; 6] = [48, 72, 96, 120, 144, 168];
const SPANS_HOURS: [usize; 6] = [3, 6, 12, 24, 72, 168];
/// Hours whose mean change from hour to hour is read.
const CHANGES_HOURS: [usize; 5] = [3, 6, 12, DAY_HOURS, WEEK_HOURS];
const DAYS_OF_CHANGES: usize = 7;
const WEEKS_OF_CHANGES: usize = 4;
/// Hour of the day, weekday and day off of the first target, and the place of the series: the last features of a row.
const CALENDAR: usize = 4;
/// Features of a window that are the same for each of its targets.
const OF_WINDOW: usize = DAY_HOURS - 1 + LAGS_OF_DAYS.len() + 4 * SPANS_HOURS.len() + 6 + 3;

/// Features that say the same kind of thing: what an ablation leaves out, and an explanation names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FeatureGroup {
    /// The hours of the last day.
    Hours,
    /// The same hours on the days before, and how demand moved to the target's hour then.
    Days,
    /// The same on the weeks before.
    Weeks,
    /// Mean, deviation, largest and smallest of spans up to a week.
    Spans,
    /// How much demand moves from hour to hour.
    Changes,
    /// How large the demand and its series are.
    Size,
    /// Hour, weekday and day off of the target.
    Calendar,
    /// Which series it is.
    Series,
}

impl FeatureGroup {
    /// All groups.
    pub const ALL: [Self; 8] =
        [Self::Hours, Self::Days, Self::Weeks, Self::Spans, Self::Changes, Self::Size, Self::Calendar, Self::Series];

    /// Name in explanations.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Hours => "hours",
            Self::Days => "days",
            Self::Weeks => "weeks",
            Self::Spans => "spans",
            Self::Changes => "changes",
            Self::Size => "size",
            Self::Calendar => "calendar",
            Self::Series => "series",
        }
    }
}

/// The subject of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Layout {
    /// A window, with what some of its targets have.
    Window,
    /// A window, with what each of its answered targets has, one after the other.
    AllTargets,
    /// One target of a window.
    OneTarget,
}

/// Which features a window of this length and horizon has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Features {
    lookback_hours: usize,
    layout: Layout,
    /// The steps that share a forest and a head; none where each step has its own.
    step_groups: StepGroups,
    /// From 0.
    steps: Vec<usize>,
    days: usize,
    weeks: usize,
    /// Whether days that depart from the week, such as holidays, have features.
    days_off: bool,
    /// Of each feature.
    groups: Vec<FeatureGroup>,
    /// Features of this group are always zero.
    without: Option<FeatureGroup>,
}

impl Features {
    /// The shortest lookback: with less there is no day before to compare with.
    pub const LOOKBACK_HOURS_LEAST: usize = 48;
    /// Hours that a window must show at least, where the lookback is longer. What was before them is not known; it counts
    /// as no difference to the last value. Chosen on validation: with 16 series over 13 days, networks that also learn
    /// from windows shorter than a week had 4 to 7 % less loss.
    pub const HISTORY_HOURS_LEAST: usize = 72;

    /// Features for a lookback and a horizon. Where steps are grouped, rows of windows hold what each answered target has.
    pub fn new(lookback_hours: usize, horizon: HorizonHours, step_groups: StepGroups) -> Self {
        let (all, picked) = (horizon.steps(), horizon.steps().min(STEPS_MOST));
        let (layout, steps): (_, Vec<usize>) = if step_groups.is_empty() {
            (Layout::Window, (1..=picked).map(|number| number * all / picked - 1).collect())
        } else {
            (Layout::AllTargets, step_groups.answered().flatten().collect())
        };
        let (days, weeks) = ((lookback_hours - 1) / DAY_HOURS, (lookback_hours - 1) / WEEK_HOURS);
        let (days, weeks) = (days.min(DAYS_OF_CHANGES), weeks.min(WEEKS_OF_CHANGES));
        let groups = groups(layout, steps.len(), weeks, false);
        Self { lookback_hours, layout, step_groups, steps, days, weeks, days_off: false, groups, without: None }
    }

    /// The same with features of days that depart from the week, or without these.
    #[must_use]
    pub fn with_days_off(self, days_off: bool) -> Self {
        let groups = groups(self.layout, self.steps.len(), self.weeks, days_off);
        Self { days_off, groups, ..self }
    }

    /// Whether days that depart from the week have features.
    pub const fn days_off(&self) -> bool {
        self.days_off
    }

    /// The features of one target: what learns from steps that are grouped has rows of these.
    #[must_use]
    pub fn of_one_target(&self) -> Self {
        if self.step_groups.is_empty() {
            return self.clone();
        }
        let (layout, steps) = (Layout::OneTarget, vec![0]);
        Self { layout, groups: groups(layout, 1, self.weeks, self.days_off), steps, ..self.clone() }
    }

    /// The same for the steps of one group alone.
    #[must_use]
    pub fn of_group(&self, group: &Range<usize>) -> Self {
        Self { step_groups: StepGroups::one(group.clone()), ..self.of_one_target() }
    }

    /// The steps that share a forest and a head; none where each step has its own.
    pub const fn step_groups(&self) -> &StepGroups {
        &self.step_groups
    }

    /// The same without what a group of features says: they are there, and zero.
    #[must_use]
    pub fn without(self, group: Option<FeatureGroup>) -> Self {
        Self { without: group, ..self }
    }

    /// Group that an ablation leaves out.
    pub const fn left_out(&self) -> Option<FeatureGroup> {
        self.without
    }

    /// The group of each feature, in the order of a row.
    pub fn groups(&self) -> &[FeatureGroup] {
        &self.groups
    }

    /// Number of features.
    pub fn count(&self) -> usize {
        self.groups.len()
    }

    /// How many of them are amounts and differences; hour, weekday, day off and place follow.
    pub fn amounts(&self) -> usize {
        self.count() - CALENDAR
    }

    /// Appends the features of a window. `scale_gpus` is the deviation of its series, `place` the number of the series by
    /// size: trees can tell series apart by either.
    pub fn append(&self, window: &Window<'_>, scale_gpus: f64, place: usize, to: &mut Vec<f32>) {
        let start = to.len();
        let look = Look { seen: &window.demand_gpus, last: window.last_gpus(), scale_gpus };
        look.of_window(to);
        // Steps a day apart read the same hours of the days before.
        let mut days = [None; DAY_HOURS];
        for step in &self.steps {
            let days = *days[step % DAY_HOURS].get_or_insert_with(|| self.of_days(&look, step % DAY_HOURS));
            match self.layout {
                Layout::Window => self.of_step(&look, window, (*step, days), to),
                Layout::AllTargets | Layout::OneTarget => self.of_target(&look, window, (*step, days), to),
            }
        }
        if self.layout == Layout::Window {
            calendar(window, 0, to);
        }
        to.push(place as f32);
        self.leave_out(&mut to[start..]);
    }

    /// The features of a window that each of its targets has, for [`append_target`](Self::append_target).
    pub fn shared(window: &Window<'_>, scale_gpus: f64) -> Vec<f32> {
        let mut shared = Vec::with_capacity(OF_WINDOW);
        Look { seen: &window.demand_gpus, last: window.last_gpus(), scale_gpus }.of_window(&mut shared);
        shared
    }

    /// Appends the features of the target of one step.
    pub fn append_target(
        &self,
        shared: &[f32],
        window: &Window<'_>,
        (scale_gpus, place): (f64, usize),
        step: usize,
        to: &mut Vec<f32>,
    ) {
        let start = to.len();
        to.extend_from_slice(shared);
        let look = Look { seen: &window.demand_gpus, last: window.last_gpus(), scale_gpus };
        self.of_target(&look, window, (step, self.of_days(&look, step % DAY_HOURS)), to);
        to.push(place as f32);
        self.leave_out(&mut to[start..]);
    }

    /// Where the features of a target lie in a row; the other features of a row are those of its window.
    pub fn target_columns(&self) -> TargetColumns {
        let features = self.of_one_target().count();
        let own = OF_WINDOW..features - 1;
        if self.step_groups.is_empty() { TargetColumns::alone(features) } else { TargetColumns { features, own } }
    }

    fn leave_out(&self, row: &mut [f32]) {
        debug_assert_eq!(row.len(), self.count());
        if let Some(without) = self.without {
            let each = row.iter_mut().zip(&self.groups).filter(|(_, group)| **group == without);
            each.for_each(|(value, _)| *value = 0.0);
        }
    }

    /// The number of a step, the features that it has as one of few, and its calendar.
    fn of_target(&self, look: &Look<'_>, window: &Window<'_>, (step, days): (usize, OfDays), to: &mut Vec<f32>) {
        to.push((step + 1) as f32);
        self.of_step(look, window, (step, days), to);
        calendar(window, step, to);
    }

    /// How demand moved on the days before from the issue hour to the hour `ahead` of it.
    fn of_days(&self, look: &Look<'_>, ahead: usize) -> OfDays {
        let count = look.full(self.days, DAY_HOURS);
        let mut all_days = [0.0; DAYS_OF_CHANGES];
        let days = &mut all_days[..count];
        days.iter_mut().zip(1..).for_each(|(one, day)| *one = look.moved(day * DAY_HOURS, ahead));
        let mean = days.iter().sum::<f64>() / days.len() as f64;
        let spread = (days.iter().map(|one| (one - mean).powi(2)).sum::<f64>() / days.len() as f64).sqrt();
        days.sort_unstable_by(f64::total_cmp);
        [mean, days[days.len() / 2], days[days.len() - 1], spread]
    }

    /// Demand of hours like the target's on the days and weeks before, and how demand moved to them from the issue hour.
    fn of_step(&self, look: &Look<'_>, window: &Window<'_>, (step, days): (usize, OfDays), to: &mut Vec<f32>) {
        let same_hour = |period: usize| look.scaled(look.ago(period - step % period));
        let mut put = |value: f64| to.push(value as f32);
        put(same_hour(DAY_HOURS));
        put(same_hour(WEEK_HOURS));
        days.into_iter().for_each(&mut put);
        if self.weeks > 0 {
            let weeks = look.full(self.weeks, WEEK_HOURS);
            // Rows of windows, which models of long horizons had before steps were grouped, keep what they mean.
            let ahead = if self.layout == Layout::Window { step % DAY_HOURS } else { step % WEEK_HOURS };
            let changes = (1..=weeks).map(|week| look.moved(week * WEEK_HOURS, ahead));
            put(changes.sum::<f64>() / weeks.max(1) as f64);
        }
        if self.days_off {
            days_off::append(window, step, to);
        }
    }
}

/// Mean, median, largest and spread of how demand moved on the days before.
type OfDays = [f64; 4];

/// Appends hour, weekday and day off of a target.
fn calendar(window: &Window<'_>, step: usize, to: &mut Vec<f32>) {
    let target = window.targets.get(step);
    to.push(target.map_or(0.0, |hour| f32::from(hour.hour_of_day)));
    to.push(target.map_or(0.0, |hour| f32::from(hour.weekday)));
    to.push(target.map_or(0.0, |hour| f32::from(u8::from(hour.day_off))));
}

/// The group of each feature, in the order in which they are appended.
fn groups(layout: Layout, steps: usize, weeks: usize, days_off: bool) -> Vec<FeatureGroup> {
    use FeatureGroup::{Calendar, Changes, Days, Hours, Series, Size, Spans, Weeks};
    let of_days_off = &[Calendar; days_off::OF_TARGET][..if days_off { days_off::OF_TARGET } else { 0 }];
    let of_weeks = &[Weeks][..usize::from(weeks > 0)];
    let of_step = [&[Days, Weeks, Days, Days, Days, Days][..], of_weeks, of_days_off].concat();
    let calendar = vec![Calendar; 3];
    let of_steps = match layout {
        Layout::Window => [of_step.repeat(steps), calendar].concat(),
        Layout::AllTargets | Layout::OneTarget => [vec![Calendar], of_step, calendar].concat().repeat(steps),
    };
    let parts = [
        vec![Hours; DAY_HOURS - 1],
        vec![Days; LAGS_OF_DAYS.len()],
        vec![Spans; 4 * SPANS_HOURS.len()],
        vec![Changes; 6],
        vec![Size; 3],
        of_steps,
        vec![Series],
    ];
    parts.concat()
}

/// A window, read from its end.
struct Look<'a> {
    seen: &'a [f64],
    last: f64,
    scale_gpus: f64,
}

impl Look<'_> {
    /// Appends what is the same for each target.
    fn of_window(&self, to: &mut Vec<f32>) {
        let mut put = |value: f64| to.push(value as f32);
        for lag in (2..=DAY_HOURS).chain(LAGS_OF_DAYS) {
            put(self.scaled(self.ago(lag)));
        }
        self.spans().into_iter().flatten().for_each(&mut put);
        let ([of_days @ .., of_week], most) = self.changes();
        of_days.into_iter().chain([most, of_week]).for_each(&mut put);
        put(self.last / self.scale_gpus);
        put(self.last.ln_1p());
        put(self.scale_gpus.ln());
    }

    /// The value so many hours before the issue time; 1 is the last.
    fn ago(&self, hours: usize) -> f64 {
        self.seen.len().checked_sub(hours).map_or(self.last, |place| self.seen[place])
    }

    /// How demand moved from the hour before the issue time to the one `ahead` of it, `back` hours earlier each.
    fn moved(&self, back: usize, ahead: usize) -> f64 {
        (self.ago(back - ahead) - self.ago(back + 1)) / self.scale_gpus
    }

    /// How many of `most` periods lie wholly in the window, and an hour before them.
    fn full(&self, most: usize, period_hours: usize) -> usize {
        most.min((self.seen.len() - 1) / period_hours)
    }

    fn scaled(&self, value: f64) -> f64 {
        (value - self.last) / self.scale_gpus
    }

    /// Mean, deviation, largest and smallest of the last hours, of each of the spans. Shorter spans end longer ones, so that what is
    /// largest or smallest is found once.
    fn spans(&self) -> [[f64; 4]; SPANS_HOURS.len()] {
        let hours = SPANS_HOURS.map(|hours| hours.min(self.seen.len()) as f64);
        let sums = sums_of_last(self.seen, &SPANS_HOURS, |value, _| value);
        let means: [f64; SPANS_HOURS.len()] = std::array::from_fn(|span| sums[span] / hours[span]);
        let squares = sums_of_last(self.seen, &SPANS_HOURS, |value, span| (value - means[span]).powi(2));
        let mut spans = [[0.0; 4]; SPANS_HOURS.len()];
        let (mut least, mut most, mut end) = (f64::INFINITY, 0.0_f64, self.seen.len());
        for (number, (found, span)) in spans.iter_mut().zip(SPANS_HOURS).enumerate() {
            let start = self.seen.len() - span.min(self.seen.len());
            for value in &self.seen[start..end] {
                (least, most) =
                    (if *value < least { *value } else { least }, if *value > most { *value } else { most });
            }
            end = start;
            let spread = (squares[number] / hours[number]).sqrt();
            *found = [self.scaled(means[number]), spread / self.scale_gpus, self.scaled(most), self.scaled(least)];
        }
        spans
    }

    /// Mean changes from hour to hour, and the largest one of the last day.
    fn changes(&self) -> ([f64; CHANGES_HOURS.len()], f64) {
        let newest = &self.seen[self.seen.len() - (WEEK_HOURS + 1).min(self.seen.len())..];
        let mut changes = [0.0; WEEK_HOURS];
        let changes = &mut changes[..newest.len() - 1];
        changes.iter_mut().zip(newest.windows(2)).for_each(|(change, pair)| *change = (pair[1] - pair[0]).abs());
        let mut means = sums_of_last(changes, &CHANGES_HOURS, |change, _| change);
        let hours = CHANGES_HOURS.map(|hours| hours.min(changes.len()).max(1) as f64);
        means.iter_mut().zip(hours).for_each(|(mean, hours)| *mean = *mean / hours / self.scale_gpus);
        let of_day = &changes[changes.len() - DAY_HOURS.min(changes.len())..];
        (means, of_day.iter().copied().fold(0.0, f64::max) / self.scale_gpus)
    }
}
