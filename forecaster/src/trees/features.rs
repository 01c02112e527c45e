//! What trees see of a window: differences to the last value, in deviations of the series.

use datasets::window::Window;
use vocab::HorizonHours;

const DAY_HOURS: usize = 24;
const WEEK_HOURS: usize = 168;
/// Steps whose hours of the days before are looked at; of a longer horizon so many are picked evenly.
const STEPS_MOST: usize = 8;
const LAGS_OF_DAYS: [usize; 6] = [48, 72, 96, 120, 144, 168];
const SPANS_HOURS: [usize; 6] = [3, 6, 12, 24, 72, 168];
const DAYS_OF_CHANGES: usize = 7;
const WEEKS_OF_CHANGES: usize = 4;

/// Which features a window of this length and horizon has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Features {
    lookback_hours: usize,
    /// From 0.
    steps: Vec<usize>,
    days: usize,
    weeks: usize,
}

impl Features {
    /// Hours that a window must show.
    pub const LOOKBACK_HOURS_LEAST: usize = WEEK_HOURS;

    pub fn new(lookback_hours: usize, horizon: HorizonHours) -> Self {
        let (all, picked) = (horizon.steps(), horizon.steps().min(STEPS_MOST));
        let steps = (1..=picked).map(|number| number * all / picked - 1).collect();
        let (days, weeks) = ((lookback_hours - 1) / DAY_HOURS, (lookback_hours - 1) / WEEK_HOURS);
        Self { lookback_hours, steps, days: days.min(DAYS_OF_CHANGES), weeks: weeks.min(WEEKS_OF_CHANGES) }
    }

    pub fn count(&self) -> usize {
        let per_step = 2 + 4 + usize::from(self.weeks > 0);
        (DAY_HOURS - 1) + LAGS_OF_DAYS.len() + 4 * SPANS_HOURS.len() + 3 + 3 + 4 + per_step * self.steps.len()
    }

    /// Appends the features of a window. `scale_gpus` is the deviation of its series, `place` the number of the series by
    /// size: trees can tell series apart by either.
    ///
    /// # Panics
    /// When the window has another length.
    pub fn append(&self, window: &Window<'_>, scale_gpus: f64, place: usize, to: &mut Vec<f32>) {
        assert_eq!(window.demand_gpus.len(), self.lookback_hours, "checked by who made the window");
        let start = to.len();
        let look = Look { seen: window.demand_gpus, last: window.last_gpus(), scale_gpus };
        let mut put = |value: f64| to.push(value as f32);
        for lag in (2..=DAY_HOURS).chain(LAGS_OF_DAYS) {
            put(look.scaled(look.ago(lag)));
        }
        for hours in SPANS_HOURS {
            look.span(hours).into_iter().for_each(&mut put);
        }
        let changes = [look.changes(DAY_HOURS), look.changes(WEEK_HOURS)];
        put(changes[0].0);
        put(changes[0].1);
        put(changes[1].0);
        put(look.last / scale_gpus);
        put(look.last.ln_1p());
        put(scale_gpus.ln());
        let first = window.targets.first();
        put(first.map_or(0.0, |hour| f64::from(hour.hour_of_day)));
        put(first.map_or(0.0, |hour| f64::from(hour.weekday)));
        put(first.map_or(0.0, |hour| f64::from(u8::from(hour.day_off))));
        put(place as f64);
        for step in &self.steps {
            self.of_step(&look, *step).into_iter().for_each(&mut put);
        }
        debug_assert_eq!(to.len() - start, self.count());
    }

    /// What hours like the target's were on the days and weeks before, and how demand moved to them from the issue hour.
    fn of_step(&self, look: &Look<'_>, step: usize) -> Vec<f64> {
        let same_hour = |period: usize| look.scaled(look.ago(period - step % period));
        // From the hour before the issue time to the target's, `period` hours earlier each.
        let change = |back: usize| (look.ago(back - step % DAY_HOURS) - look.ago(back + 1)) / look.scale_gpus;
        let mut days: Vec<f64> = (1..=self.days).map(|day| change(day * DAY_HOURS)).collect();
        let mut features = vec![same_hour(DAY_HOURS), same_hour(WEEK_HOURS)];
        let mean = days.iter().sum::<f64>() / days.len() as f64;
        let spread = (days.iter().map(|one| (one - mean).powi(2)).sum::<f64>() / days.len() as f64).sqrt();
        days.sort_unstable_by(f64::total_cmp);
        features.extend([mean, days[days.len() / 2], days[days.len() - 1], spread]);
        if self.weeks > 0 {
            let weeks = (1..=self.weeks).map(|week| change(week * WEEK_HOURS));
            features.push(weeks.sum::<f64>() / self.weeks as f64);
        }
        features
    }
}

/// A window, looked at from its end.
struct Look<'a> {
    seen: &'a [f64],
    last: f64,
    scale_gpus: f64,
}

impl Look<'_> {
    /// The value so many hours before the issue time; 1 is the last.
    fn ago(&self, hours: usize) -> f64 {
        self.seen[self.seen.len() - hours.min(self.seen.len())]
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
