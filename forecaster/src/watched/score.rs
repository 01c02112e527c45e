//! How served bounds fared: lately, and at their worst.

use super::{HOUR_S, Horizon, Hour, KEPT_HOURS};
use vocab::{HorizonHours, UnixSeconds};

const DAY_HOURS: i64 = 24;
const WEEK_HOURS: i64 = 7 * 24;
/// A span with fewer looks an hour, on average, was hardly watched. Four are the most.
const LEAST_LOOKS_AN_HOUR: i64 = 2;

/// The outcomes of the bounds that were served in some span of time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Fared {
    /// Times at which a bound was read whose hours are over.
    pub looks: u64,
    /// Of these, those at which demand stayed at or below it.
    pub covered: u64,
    inventory_milli: u64,
    broken_milli: u64,
}

/// A span of time at which something was worst, and its value there.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Extreme {
    /// Start of the window.
    pub from: UnixSeconds,
    /// The share in the window.
    pub value: f64,
}

/// How the bounds over one number of hours fared.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Served {
    /// Hours H of the bound.
    pub hours: HorizonHours,
    /// The last day.
    pub day: Fared,
    /// The last week.
    pub week: Fared,
    /// Of four weeks.
    pub month: Fared,
    /// The least coverage of 24 h within the four weeks; none where no 24 h were watched for long enough.
    pub least_covered_day: Option<Extreme>,
    /// Week with the lowest coverage.
    pub least_covered_week: Option<Extreme>,
    /// The largest broken share.
    pub most_broken_day: Option<Extreme>,
    /// Week with the largest broken share.
    pub most_broken_week: Option<Extreme>,
}

impl Fared {
    fn add(&mut self, hour: &Hour) {
        self.looks += u64::from(hour.looks);
        self.covered += u64::from(hour.covered);
        self.inventory_milli += hour.inventory_milli;
        self.broken_milli += hour.broken_milli;
    }

    fn remove(&mut self, hour: &Hour) {
        self.looks -= u64::from(hour.looks);
        self.covered -= u64::from(hour.covered);
        self.inventory_milli -= hour.inventory_milli;
        self.broken_milli -= hour.broken_milli;
    }

    /// Share of times at which demand stayed at or below the bound; `None` of none.
    #[must_use]
    pub fn coverage(&self) -> Option<f64> {
        (self.looks > 0).then(|| self.covered as f64 / self.looks as f64)
    }

    /// GPUs that HP would have taken back, of those that could have been sold; `None` where nothing could.
    #[must_use]
    pub fn broken_share(&self) -> Option<f64> {
        (self.inventory_milli > 0).then(|| self.broken_milli as f64 / self.inventory_milli as f64)
    }
}

impl Served {
    pub(super) fn of(horizon: &Horizon, now: UnixSeconds) -> Self {
        let present = now.get().div_euclid(HOUR_S);
        let last = |hours: i64| {
            let mut all = Fared::default();
            horizon.past.iter().filter(|hour| hour.number > present - hours).for_each(|hour| all.add(hour));
            all
        };
        let coverage = |fared: &Fared| fared.coverage().map(|share| -share);
        let least = |hours| worst(horizon, hours, &coverage).map(|one| Extreme { value: -one.value, ..one });
        Self {
            hours: horizon.hours,
            day: last(DAY_HOURS),
            week: last(WEEK_HOURS),
            month: last(KEPT_HOURS),
            least_covered_day: least(DAY_HOURS),
            least_covered_week: least(WEEK_HOURS),
            most_broken_day: worst(horizon, DAY_HOURS, &Fared::broken_share),
            most_broken_week: worst(horizon, WEEK_HOURS, &Fared::broken_share),
        }
    }
}

/// The first of the spans of so many hours in which `measure` is largest.
fn worst(horizon: &Horizon, hours: i64, measure: &dyn Fn(&Fared) -> Option<f64>) -> Option<Extreme> {
    let least_looks = (hours * LEAST_LOOKS_AN_HOUR).unsigned_abs();
    let (mut span, mut first, mut found) = (Fared::default(), 0, None::<Extreme>);
    // Each span ends with an hour that was watched: any other span has no more in it.
    for hour in &horizon.past {
        span.add(hour);
        let from = hour.number - hours + 1;
        while let Some(left) = horizon.past.get(first).filter(|left| left.number < from) {
            span.remove(left);
            first += 1;
        }
        let Some(value) = measure(&span).filter(|_| span.looks >= least_looks) else { continue };
        if found.is_none_or(|known| value > known.value) {
            found = Some(Extreme { from: UnixSeconds::new(from * HOUR_S), value });
        }
    }
    found
}
