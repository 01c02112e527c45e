//! Arrivals to come: those of a past window, whole.

use super::history::JobHistory;
use super::past::{PastJob, PastJobs};
use super::survival::{Curve, Survival};
use vocab::UnixSeconds;

/// A window of arrivals has so many seconds; the hours after it have another one.
pub const WINDOW_S: i64 = 4 * 3_600;
/// Windows begin so many seconds apart.
const APART_S: i64 = 900;
/// How far a window at another time of day counts: as a Gaussian of so many hours, and as the part below in any case.
const NEAR_HOURS: f64 = 2.0;
const ANY_HOUR: f64 = 0.1;
/// How far a window counts whose day is another kind of day, of the weekend in UTC or not. Not for the first window, where the hour
/// before says more.
const OTHER_DAY: f64 = 0.3;
/// The weight of a window halves in so many days.
const HALF_LIFE_S: f64 = 7.0 * 86_400.0;
/// Older windows count as if they were as old as this: those of a list may be years old, and say more than none.
const OLD_S: i64 = 14 * 86_400;
/// The windows that followed on an hour like the last one count most: GPUs that arrived then, as a Gaussian of their logarithm.
const RECENT_S: i64 = 3_600;
const LIKE_WIDTH: f64 = 1.0;
/// Below so many GPUs, arrivals of an hour are all alike.
const FEW_GPUS: f64 = 20.0;
/// Without so many windows shorter ones are drawn,
const LEAST_WINDOWS: usize = 16;
/// of so many seconds, one after another, and nothing without so many of them.
const EARLY_WINDOW_S: i64 = 3_600;
const LEAST_EARLY_WINDOWS: usize = 4;

/// A job that arrived.
#[derive(Debug, Clone, Copy)]
pub struct Arrival<'a> {
    /// The time of its submission.
    pub at: UnixSeconds,
    /// Thousandths of a GPU, of all its pods.
    pub gpus_milli: i64,
    /// Seconds from its submission to its start, or until now.
    waited_s: f64,
    pub(super) lasts: Lasts<'a>,
}

impl Arrival<'_> {
    /// Seconds from its start to its end. Where it has not ended, a standard exponential draw says how long it goes on.
    pub fn run_s(&self, draw: impl FnOnce() -> f64) -> f64 {
        match self.lasts {
            Lasts::For(seconds) => seconds - self.waited_s,
            Lasts::AtLeast((_, age_s), curve) => age_s + curve.rest_s(age_s, draw()),
        }
    }
}

/// For how long it is demand.
#[derive(Debug, Clone, Copy)]
pub(super) enum Lasts<'a> {
    /// Seconds.
    For(f64),
    /// These seconds before it ran, and those that it has run at least, and on by the curve.
    AtLeast((f64, f64), &'a Curve),
}

/// The arrivals that are known, in the order of their time, and where windows of them begin.
#[derive(Debug)]
pub struct Arrivals<'a> {
    jobs: Vec<Arrival<'a>>,
    begins: Vec<UnixSeconds>,
    window_s: i64,
    /// GPUs that arrived in the hour before each begin, and before now.
    recent: Vec<f64>,
    recent_now: f64,
}

impl<'a> Arrivals<'a> {
    /// Of the time that was watched without a gap, and of the past before it. None until enough windows were seen.
    #[must_use]
    pub fn of(history: &JobHistory, past: Option<&PastJobs>, survival: &'a Survival, now: UnixSeconds) -> Option<Self> {
        Self::in_windows((WINDOW_S, LEAST_WINDOWS), (history, past), survival, now)
    }

    /// The same in windows of an hour, which are known hours earlier: on the first day waiting costs more than their bounds err.
    #[must_use]
    pub fn early(
        history: &JobHistory,
        past: Option<&PastJobs>,
        survival: &'a Survival,
        now: UnixSeconds,
    ) -> Option<Self> {
        Self::in_windows((EARLY_WINDOW_S, LEAST_EARLY_WINDOWS), (history, past), survival, now)
    }

    fn in_windows(
        (window_s, least): (i64, usize),
        (history, past): (&JobHistory, Option<&PastJobs>),
        survival: &'a Survival,
        now: UnixSeconds,
    ) -> Option<Self> {
        let since = history.whole_since?;
        let mut begins = windows(window_s, (since, now));
        begins.extend(past.iter().flat_map(|past| windows(window_s, (past.since, past.until.min(since)))));
        if begins.len() < least {
            return None;
        }
        begins.sort_unstable();
        let mut jobs: Vec<_> = watched(history, survival, (since, now)).collect();
        jobs.extend(past.iter().flat_map(|past| listed(past, survival, since)));
        jobs.sort_by_key(|job| job.at);
        let mut arrived = Vec::with_capacity(jobs.len() + 1);
        arrived.push(0_i64);
        for job in &jobs {
            arrived.push(arrived.last().copied().unwrap_or(0) + job.gpus_milli);
        }
        let until = |at: UnixSeconds| arrived[jobs.partition_point(|job| job.at <= at)];
        let recent = |at: &UnixSeconds| (until(*at) - until(at.plus_s(-RECENT_S))) as f64 / 1_000.0;
        let (recent, recent_now) = (begins.iter().map(recent).collect(), recent(&now));
        Some(Self { jobs, begins, window_s, recent, recent_now })
    }

    /// Whether enough windows were seen.
    #[must_use]
    pub fn are_known(history: &JobHistory, now: UnixSeconds) -> bool {
        history.whole_since.is_some_and(|since| windows(WINDOW_S, (since, now)).len() >= LEAST_WINDOWS)
    }

    /// Where the past of each path begins, for the window that begins `after_s` seconds from now: as often as its weight says.
    /// `draws` are numbers from 0 to 1.
    #[must_use]
    pub fn begins(&self, now: UnixSeconds, after_s: i64, draws: impl Iterator<Item = f64>) -> Vec<UnixSeconds> {
        let like = |recent: f64| {
            let apart = ((recent + FEW_GPUS) / (self.recent_now + FEW_GPUS)).ln() / LIKE_WIDTH;
            if after_s == 0 { (-0.5 * apart * apart).exp() } else { 1.0 }
        };
        let of_weekend = is_weekend(now.plus_s(after_s));
        let mut sum = 0.0;
        let sums: Vec<f64> = (self.begins.iter().zip(&self.recent))
            .map(|(begin, recent)| {
                let age = now.since_s(*begin).min(OLD_S) as f64 / HALF_LIFE_S;
                let kind = if after_s == 0 || is_weekend(*begin) == of_weekend { 1.0 } else { OTHER_DAY };
                sum +=
                    near(begin.since_s(now) - after_s) * kind * 0.5_f64.powf(age) * like(*recent) + f64::MIN_POSITIVE;
                sum
            })
            .collect();
        let place = |draw: f64| sums.partition_point(|until| *until <= draw * sum).min(self.begins.len() - 1);
        draws.map(|draw| self.begins[place(draw)]).collect()
    }

    /// Seconds of the longest hours that are drawn from these windows: an hour or two say little of a day.
    #[must_use]
    pub const fn reach_s(&self) -> i64 {
        if self.window_s < WINDOW_S { WINDOW_S } else { i64::MAX }
    }

    /// Seconds of a window.
    #[must_use]
    pub const fn window_s(&self) -> i64 {
        self.window_s
    }

    /// All arrivals, in the order of their time.
    #[must_use]
    pub fn all(&self) -> &[Arrival<'a>] {
        &self.jobs
    }

    /// The arrivals of the window that begins here.
    #[must_use]
    pub fn window(&self, begin: UnixSeconds) -> &[Arrival<'a>] {
        &self.jobs[self.places(begin)]
    }

    /// Their places among [`all`](Self::all).
    #[must_use]
    pub fn places(&self, begin: UnixSeconds) -> std::ops::Range<usize> {
        let until = |at: UnixSeconds| self.jobs.partition_point(|job| job.at <= at);
        until(begin)..until(begin.plus_s(self.window_s))
    }
}

/// Where the windows of a time begin that was seen whole.
fn windows(window_s: i64, (since, until): (UnixSeconds, UnixSeconds)) -> Vec<UnixSeconds> {
    let spare_s = until.since_s(since) - window_s;
    let count = if spare_s < 0 { 0 } else { spare_s / APART_S + 1 };
    (0..count).map(|number| until.plus_s(-window_s - number * APART_S)).collect()
}

/// The arrivals that were watched.
fn watched<'a>(
    history: &JobHistory,
    survival: &'a Survival,
    (since, now): (UnixSeconds, UnixSeconds),
) -> impl Iterator<Item = Arrival<'a>> {
    let ended = history.ended.iter().filter(move |job| job.submitted >= since).map(|job| Arrival {
        at: job.submitted,
        gpus_milli: i64::from(job.gpus_milli),
        waited_s: f64::from(job.waited_s),
        lasts: Lasts::For(job.lasted_s() as f64),
    });
    let present = history.present.values().filter(move |job| job.submitted >= since).map(move |job| Arrival {
        at: job.submitted,
        gpus_milli: i64::from(job.gpus_milli),
        waited_s: job.waited_s(now) as f64,
        lasts: Lasts::AtLeast(
            (job.waited_s(now) as f64, job.age_s(now) as f64),
            survival.of(job.organization, job.gpus_milli),
        ),
    });
    ended.chain(present)
}

/// The arrivals of a list before a time.
fn listed<'a>(past: &PastJobs, survival: &'a Survival, before: UnixSeconds) -> impl Iterator<Item = Arrival<'a>> {
    let known = past.jobs.iter().filter(move |past| past.job.submitted < before);
    known.map(move |PastJob { job, is_ended }| {
        let ran_s = f64::from(job.ran_s);
        let curve = || survival.of_past(job.organization, job.gpus_milli);
        let lasts = if *is_ended { Lasts::For(ran_s) } else { Lasts::AtLeast((0.0, ran_s), curve()) };
        Arrival { at: job.submitted, gpus_milli: i64::from(job.gpus_milli), waited_s: 0.0, lasts }
    })
}

/// Whether a time is of a Saturday or Sunday in UTC.
fn is_weekend(at: UnixSeconds) -> bool {
    // 1970 began on a Thursday.
    matches!(at.get().div_euclid(86_400).rem_euclid(7), 2 | 3)
}

/// The weight of a time of day that is so many seconds apart.
fn near(apart_s: i64) -> f64 {
    let apart = apart_s.rem_euclid(86_400);
    let hours = apart.min(86_400 - apart) as f64 / 3_600.0 / NEAR_HOURS;
    ANY_HOUR + (-0.5 * hours * hours).exp()
}
