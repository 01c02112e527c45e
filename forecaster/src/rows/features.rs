//! The features of a window for a model of rows: differences to the last value, in deviations of the series, then the calendar.

use datasets::window::Window;
use serde::{Deserialize, Serialize};
use vocab::HorizonHours;

const DAY_HOURS: usize = 24;
const WEEK_HOURS: usize = 168;
/// Steps whose hours of the days before are read; of a longer horizon so many are picked evenly.
const STEPS_MOST: usize = 8;
const LAGS_OF_DAYS: [usize; 6] = [48, 72, 96, 120, 144, 168];
const SPANS_HOURS: [usize; 6] = [3, 6, 12, 24, 72, 168];
const DAYS_OF_CHANGES: usize = 7;
const WEEKS_OF_CHANGES: usize = 4;
/// Hour of the day, weekday and day off of the first target, and the place of the series: the last features of a row.
const CALENDAR: usize = 4;

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

/// Which features a window of this length and horizon has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Features {
    lookback_hours: usize,
    /// From 0.
    steps: Vec<usize>,
    days: usize,
    weeks: usize,
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

    /// Features for a lookback and a horizon.
    pub fn new(lookback_hours: usize, horizon: HorizonHours) -> Self {
        let (all, picked) = (horizon.steps(), horizon.steps().min(STEPS_MOST));
        let steps = (1..=picked).map(|number| number * all / picked - 1).collect();
        let (days, weeks) = ((lookback_hours - 1) / DAY_HOURS, (lookback_hours - 1) / WEEK_HOURS);
        let (days, weeks) = (days.min(DAYS_OF_CHANGES), weeks.min(WEEKS_OF_CHANGES));
        let groups = groups(picked, weeks);
        Self { lookback_hours, steps, days, weeks, groups, without: None }
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
    ///
    pub fn append(&self, window: &Window<'_>, scale_gpus: f64, place: usize, to: &mut Vec<f32>) {
        let start = to.len();
        let look = Look { seen: window.demand_gpus, last: window.last_gpus(), scale_gpus };
        let mut put = |value: f64| to.push(value as f32);
        for lag in (2..=DAY_HOURS).chain(LAGS_OF_DAYS) {
            put(look.scaled(look.ago(lag)));
        }
        for hours in SPANS_HOURS {
            look.span(hours).into_iter().for_each(&mut put);
        }
        for hours in [3, 6, 12, DAY_HOURS] {
            put(look.changes(hours).0);
        }
        put(look.changes(DAY_HOURS).1);
        put(look.changes(WEEK_HOURS).0);
        put(look.last / scale_gpus);
        put(look.last.ln_1p());
        put(scale_gpus.ln());
        for step in &self.steps {
            self.of_step(&look, *step).into_iter().for_each(&mut put);
        }
        let first = window.targets.first();
        put(first.map_or(0.0, |hour| f64::from(hour.hour_of_day)));
        put(first.map_or(0.0, |hour| f64::from(hour.weekday)));
        put(first.map_or(0.0, |hour| f64::from(u8::from(hour.day_off))));
        put(place as f64);
        debug_assert_eq!(to.len() - start, self.count());
        if let Some(without) = self.without {
            let each = to[start..].iter_mut().zip(&self.groups).filter(|(_, group)| **group == without);
            each.for_each(|(value, _)| *value = 0.0);
        }
    }

    /// Demand of hours like the target's on the days and weeks before, and how demand moved to them from the issue hour.
    fn of_step(&self, look: &Look<'_>, step: usize) -> Vec<f64> {
        let same_hour = |period: usize| look.scaled(look.ago(period - step % period));
        // From the hour before the issue time to the target's, `period` hours earlier each.
        let change = |back: usize| (look.ago(back - step % DAY_HOURS) - look.ago(back + 1)) / look.scale_gpus;
        let (days, weeks) = (look.full(self.days, DAY_HOURS), look.full(self.weeks, WEEK_HOURS));
        let mut days: Vec<f64> = (1..=days).map(|day| change(day * DAY_HOURS)).collect();
        let mut features = vec![same_hour(DAY_HOURS), same_hour(WEEK_HOURS)];
        let mean = days.iter().sum::<f64>() / days.len() as f64;
        let spread = (days.iter().map(|one| (one - mean).powi(2)).sum::<f64>() / days.len() as f64).sqrt();
        days.sort_unstable_by(f64::total_cmp);
        features.extend([mean, days[days.len() / 2], days[days.len() - 1], spread]);
        if self.weeks > 0 {
            let changes = (1..=weeks).map(|week| change(week * WEEK_HOURS));
            features.push(changes.sum::<f64>() / weeks.max(1) as f64);
        }
        features
    }
}

/// The group of each feature, in the order in which they are appended.
fn groups(steps: usize, weeks: usize) -> Vec<FeatureGroup> {
    use FeatureGroup::{Calendar, Changes, Days, Hours, Series, Size, Spans, Weeks};
    let of_step = [&[Days, Weeks, Days, Days, Days, Days][..], &[Weeks][..usize::from(weeks > 0)]].concat();
    let parts = [
        vec![Hours; DAY_HOURS - 1],
        vec![Days; LAGS_OF_DAYS.len()],
        vec![Spans; 4 * SPANS_HOURS.len()],
        vec![Changes; 6],
        vec![Size; 3],
        of_step.repeat(steps),
        vec![Calendar, Calendar, Calendar, Series],
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
    /// The value so many hours before the issue time; 1 is the last.
    fn ago(&self, hours: usize) -> f64 {
        self.seen.len().checked_sub(hours).map_or(self.last, |place| self.seen[place])
    }

    /// How many of `most` periods lie wholly in the window, and an hour before them.
    fn full(&self, most: usize, period_hours: usize) -> usize {
        most.min((self.seen.len() - 1) / period_hours)
    }

    fn scaled(&self, value: f64) -> f64 {
        (value - self.last) / self.scale_gpus
    }

    /// Mean, deviation, largest and smallest of the last hours.
    fn span(&self, hours: usize) -> [f64; 4] {
        let span = &self.seen[self.seen.len() - hours.min(self.seen.len())..];
        let mean = span.iter().sum::<f64>() / span.len() as f64;
        let spread = (span.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / span.len() as f64).sqrt();
        let (least, most) =
            span.iter().fold((f64::INFINITY, 0.0_f64), |(least, most), value| (least.min(*value), most.max(*value)));
        [self.scaled(mean), spread / self.scale_gpus, self.scaled(most), self.scaled(least)]
    }

    /// Mean and largest change from hour to hour.
    fn changes(&self, hours: usize) -> (f64, f64) {
        let span = &self.seen[self.seen.len() - (hours + 1).min(self.seen.len())..];
        let changes = span.windows(2).map(|pair| (pair[1] - pair[0]).abs());
        let (sum, most) = changes.fold((0.0, 0.0_f64), |(sum, most), change| (sum + change, most.max(change)));
        (sum / (span.len() - 1).max(1) as f64 / self.scale_gpus, most / self.scale_gpus)
    }
}
