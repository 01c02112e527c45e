//! When jobs are submitted: organizations with a rhythm, projects that last days, schedules, batches.

use super::draw::Draft;
use super::published::{self, GPU_SECONDS_BY_HOUR, HOURS as HOURS_OF_JOBS, JOBS_BY_WEEKDAY};
use super::rake::{Family, Table, rake};
use super::{DAY_S, HOUR_S};
use rand::{Rng, RngExt};

const HOURS: usize = vocab::HOURS_PER_DAY as usize;
/// Longer jobs are services: a project of them is a deployment, rolled out in a day.
const DEPLOYED_S: f64 = 259_200.0;
/// Larger jobs of a project follow each other, since one team waits for the result of one before it starts the next.
const IN_TURN_GPUS: f64 = 8.0;
/// Between the end of such a job and the next one.
const PAUSE_S: f64 = 1_800.0;
/// A project holds from two jobs to this share of the row's: of short jobs, of those from [`LARGE_S`] on, of deployments.
const LARGEST_PROJECT: [f64; 3] = [0.15, 0.04, 0.01];
/// Shares are of the row's jobs in this many days, where the window is longer.
const PROJECT_WINDOW_DAYS: f64 = 35.0;
/// No project holds more jobs that follow each other.
const MOST_IN_TURN: usize = 30;
/// No schedule has more jobs.
const MOST_SCHEDULED: usize = 60;
/// Share of projects that last all the window, and the median days of the others.
const STEADY: f64 = 0.4;
const MEDIAN_DAYS: f64 = 3.0;
/// A window of one day may be a Sunday.
const MOST_TRIES: u32 = 20;
/// Share of projects in which every other job comes within seconds of the one before; in the others every tenth does.
const BATCHING: f64 = 0.3;

/// From here on, in seconds, a job follows the hours of GPU-seconds and not those of jobs: at night few start what runs long.
pub const LARGE_S: f64 = HOUR_S as f64;

/// How an organization spreads its work over day and week.
#[derive(Debug, Clone)]
pub struct Habit {
    /// Weight of each local hour: of short jobs, and of those from [`LARGE_S`] on.
    hours: [[f64; HOURS]; 2],
    /// Power of the published weekdays: 0 does not know weekends, 2 doubles them.
    week: f64,
    /// Chance that a project runs by the clock.
    scheduled: f64,
}

impl Habit {
    pub fn draw(rng: &mut impl Rng) -> Self {
        let shift = rng.random_range(-2_i64..=3);
        let sharpness = 0.4 + 1.2 * rng.random::<f64>();
        let own = |hours: [f64; HOURS]| {
            let at = |hour: usize| hours[(hour as i64 - shift).rem_euclid(HOURS as i64) as usize];
            std::array::from_fn(|hour| (at(hour) * HOURS as f64).powf(sharpness))
        };
        Self {
            hours: [own(published::by_hour(HOURS_OF_JOBS)), own(published::by_hour(GPU_SECONDS_BY_HOUR))],
            week: 0.3 + 1.4 * rng.random::<f64>(),
            scheduled: 0.2 * rng.random::<f64>(),
        }
    }

    /// How busy a day is, at most 1.
    fn weekday(&self, window: Window, day: u32) -> f64 {
        let busiest = JOBS_BY_WEEKDAY.iter().copied().fold(0.0, f64::max);
        (JOBS_BY_WEEKDAY[window.weekday(day)] / busiest).powf(self.week)
    }

    /// On which day a project begins: seldom at weekends.
    fn first_day(&self, window: Window, rng: &mut impl Rng) -> u32 {
        let mut day = rng.random_range(0..window.days);
        for _ in 0..MOST_TRIES {
            if rng.random::<f64>() < self.weekday(window, day) {
                break;
            }
            day = rng.random_range(0..window.days);
        }
        day
    }

    fn hours_of(&self, job: &Draft) -> &[f64; HOURS] {
        &self.hours[usize::from(job.duration_s >= LARGE_S)]
    }
}

/// Moves the hours of all habits until all jobs together have the published hours; `jobs` are the short and the long ones of
/// each organization. What one organization does more than others it still does more.
pub fn rake_hours(habits: &mut [Habit], jobs: &[[f64; 2]]) {
    let sum = |length: usize| jobs.iter().map(|of| of[length]).sum::<f64>();
    let large = published::by_hour(GPU_SECONDS_BY_HOUR).map(|share| share * sum(1));
    let all = published::by_hour(HOURS_OF_JOBS).map(|share| share * (sum(0) + sum(1)));
    let short = std::array::from_fn(|hour| (all[hour] - large[hour]).max(0.0));
    for (length, wanted) in [short, large].iter().enumerate() {
        let jobs: Vec<f64> = jobs.iter().map(|of| of[length]).collect();
        rake_hours_of(habits, length, &jobs, wanted);
    }
}

fn rake_hours_of(habits: &mut [Habit], length: usize, jobs: &[f64], wanted: &[f64; HOURS]) {
    let mut table = Table { columns: HOURS, cells: habits.iter().flat_map(|habit| habit.hours[length]).collect() };
    let by_row = Family {
        row_kind: (0..habits.len()).collect(),
        column_kind: vec![0; HOURS],
        column_kinds: 1,
        jobs: jobs.iter().copied().map(Some).collect(),
        sums: None,
    };
    let by_hour = Family {
        row_kind: vec![0; habits.len()],
        column_kind: (0..HOURS).collect(),
        column_kinds: HOURS,
        jobs: wanted.iter().copied().map(Some).collect(),
        sums: None,
    };
    rake(&mut table, &[by_row, by_hour], 50);
    for (habit, row) in habits.iter_mut().zip(table.rows()) {
        habit.hours[length].copy_from_slice(row);
    }
}

/// The window in the cluster's clock.
#[derive(Debug, Clone, Copy)]
pub struct Window {
    pub days: u32,
    /// Local hour of the first hour.
    pub first_hour: u32,
    /// Weekday of the first hour, Monday 0.
    pub first_weekday: u32,
}

impl Window {
    /// Seconds from the start of `second` in the local `hour` of the day that begins `day` × 24 h after the start.
    fn at(self, day: u32, hour: u32, second: u32) -> u32 {
        day * DAY_S + (hour + HOURS as u32 - self.first_hour) % HOURS as u32 * HOUR_S + second
    }

    /// Local hour of a second.
    fn hour(self, second: u32) -> usize {
        (second / HOUR_S + self.first_hour) as usize % HOURS
    }

    fn weekday(self, day: u32) -> usize {
        ((self.first_weekday + day) % 7) as usize
    }
}

/// One project: jobs alike, on some days.
struct Project {
    /// Cumulated weight of each of its days.
    days: Vec<(u32, f64)>,
    /// Hour and second at which its schedule fires.
    schedule: Option<(u32, u32)>,
    /// Chance that a job brings another one with it.
    batch: f64,
}

/// Gives every job of a row that has no time yet one. Jobs that follow each other are alike and go into one project.
pub fn spread(drafts: &mut [Draft], habit: &Habit, window: Window, rng: &mut impl Rng) {
    let mut waiting: Vec<&mut Draft> = drafts.iter_mut().filter(|draft| draft.submit_s.is_none()).collect();
    // A project of a long window is no larger than one of a month.
    let all = waiting.len() as f64 * (PROJECT_WINDOW_DAYS / f64::from(window.days)).min(1.0);
    let mut rest = waiting.as_mut_slice();
    while !rest.is_empty() {
        let size = project_size(rest[0], all, rng).min(rest.len());
        let (jobs, others) = rest.split_at_mut(size);
        rest = others;
        let project = Project::draw(habit, window, jobs, rng);
        if jobs[0].gpus() > IN_TURN_GPUS {
            project.submit_in_turn(jobs, habit, window, rng);
        } else {
            project.submit(jobs, habit, window, rng);
        }
    }
}

/// Even in its logarithm: many small projects, few large ones.
fn project_size(first: &Draft, all: f64, rng: &mut impl Rng) -> usize {
    let kind = usize::from(first.duration_s >= LARGE_S) + usize::from(first.duration_s > DEPLOYED_S);
    let largest = (all * LARGEST_PROJECT[kind]).max(8.0);
    let size = (2.0 * (largest / 2.0).powf(rng.random())).ceil() as usize;
    if first.gpus() > IN_TURN_GPUS { size.min(MOST_IN_TURN) } else { size }
}

impl Project {
    fn draw(habit: &Habit, window: Window, jobs: &[&mut Draft], rng: &mut impl Rng) -> Self {
        let length = if rng.random::<f64>() < STEADY {
            f64::from(window.days)
        } else if jobs[0].duration_s > DEPLOYED_S {
            1.0
        } else {
            (1.1 * normal(rng)).exp() * MEDIAN_DAYS
        };
        let length = (length.ceil() as u32).clamp(1, window.days);
        let first = habit.first_day(window, rng);
        let mut sum = 0.0;
        let days = (0..length).map(|number| {
            // A job that would end after the window is found at its beginning.
            let day = (first + number) % window.days;
            sum += habit.weekday(window, day) * (0.5 * normal(rng)).exp();
            (day, sum)
        });
        let days = days.collect();
        let scheduled = jobs.len() <= MOST_SCHEDULED && rng.random::<f64>() < habit.scheduled;
        let schedule =
            scheduled.then(|| (pick(&published::by_hour(HOURS_OF_JOBS), rng) as u32, rng.random_range(0..HOUR_S)));
        Self { days, schedule, batch: if rng.random::<f64>() < BATCHING { 0.5 } else { 0.1 } }
    }

    fn submit(&self, jobs: &mut [&mut Draft], habit: &Habit, window: Window, rng: &mut impl Rng) {
        let mut at = None;
        for job in jobs {
            let time = match at {
                Some(before) if rng.random::<f64>() < self.batch => before + rng.random_range(0..8),
                _ => self.time(habit.hours_of(job), window, rng),
            };
            let time = time.min(window.days * DAY_S - 1);
            job.submit_s = Some(time);
            at = Some(time);
        }
    }

    fn submit_in_turn(&self, jobs: &mut [&mut Draft], habit: &Habit, window: Window, rng: &mut impl Rng) {
        let window_s = window.days * DAY_S;
        let mut next = self.time(habit.hours_of(jobs[0]), window, rng);
        for job in jobs {
            let hours = habit.hours_of(job);
            let busiest = hours.iter().copied().fold(0.0, f64::max);
            // People do not start the next one at night.
            for _ in 0..HOURS {
                if rng.random::<f64>() * busiest < hours[window.hour(next)] {
                    break;
                }
                next += HOUR_S;
            }
            job.submit_s = Some(next % window_s);
            let pause_s = -PAUSE_S * (1.0 - rng.random::<f64>()).ln();
            next = (next % window_s).saturating_add((job.duration_s + pause_s) as u32) % window_s;
        }
    }

    fn time(&self, hours: &[f64; HOURS], window: Window, rng: &mut impl Rng) -> u32 {
        let all = self.days.last().map_or(0.0, |(_, sum)| *sum);
        let wanted = rng.random::<f64>() * all;
        let day = self.days.iter().find(|(_, sum)| *sum > wanted).or(self.days.last()).map_or(0, |(day, _)| *day);
        match self.schedule {
            Some((hour, second)) => window.at(day, hour, (second + rng.random_range(0..120)).min(HOUR_S - 1)),
            None => window.at(day, pick(hours, rng) as u32, rng.random_range(0..HOUR_S)),
        }
    }
}

fn pick(weights: &[f64], rng: &mut impl Rng) -> usize {
    let mut left = rng.random::<f64>() * weights.iter().sum::<f64>();
    let place = weights.iter().position(|weight| {
        left -= weight;
        left < 0.0
    });
    place.unwrap_or(weights.len() - 1)
}

/// Standard normal (Box and Muller).
fn normal(rng: &mut impl Rng) -> f64 {
    let (a, b): (f64, f64) = (rng.random(), rng.random());
    (-2.0 * (1.0 - a).ln()).sqrt() * (std::f64::consts::TAU * b).cos()
}
