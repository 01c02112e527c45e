//! The figures of each marginal.

use super::super::{DAY_S, HOUR_S};
use super::{GAP_OF_PUBLISHED, HOUR_POINTS, MEAN_OF_PUBLISHED, Measure, Row, figure_row, gpu_seconds_row, jobs_row};
use crate::synthetic::gfs::published::{self, MODELS, REQUESTS, Sum, TABLE_3};
use crate::synthetic::gfs::{Job, Made, Shares, cells, table};
use vocab::UsageRow;

/// Organizations that have a row of their own; the others share one.
const LARGEST: usize = 12;

/// Two rows for each category: jobs, and GPU-seconds.
fn shares(made: &Made, marginal: &'static str, published: &[Sum<'_>], kind: impl Fn(&Job) -> usize) -> Vec<Row> {
    let mut sums = vec![(0.0, 0.0); published.len()];
    for job in &made.jobs {
        let (jobs, gpu_seconds) = &mut sums[kind(job)];
        *jobs += 1.0;
        *gpu_seconds += job.gpu_seconds();
    }
    let all: f64 = sums.iter().map(|(_, gpu_seconds)| gpu_seconds).sum();
    let rows = published.iter().zip(sums).flat_map(|(of, (jobs, gpu_seconds))| {
        let of_jobs = of.jobs / f64::from(published::JOBS);
        let of_work = of.gpu_seconds / published::GPU_SECONDS;
        [
            jobs_row(marginal, of.name, of_jobs, jobs / made.jobs.len() as f64, made.jobs.len()),
            gpu_seconds_row(marginal, of.name, of_work, gpu_seconds / all),
        ]
    });
    rows.collect()
}

pub fn of_trace(made: &Made) -> Vec<Row> {
    let models = MODELS.map(|model| Sum { name: model.name, jobs: model.jobs, gpu_seconds: model.gpu_seconds });
    let long = |job: &Job| usize::from(job.duration_s >= cells::LONG_S);
    let by_length = |job: &Job| usize::from(job.spot) * 2 + long(job);
    let mut rows = shares(made, "type", &published::CLASSES, |job| usize::from(job.spot));
    rows.extend(shares(made, "type and length", &published::CLASSES_BY_LENGTH, by_length));
    rows.extend(shares(made, "duration", &published::DURATIONS, |job| cells::duration_bucket(job.duration_s)));
    rows.extend(shares(made, "GPUs", &published::GPUS, |job| cells::gpu_bucket(job.milli())));
    rows.extend(shares(made, "workers", &published::WORKERS, |job| cells::worker_bucket(u32::from(job.workers))));
    rows.extend(shares(made, "model", &models, |job| usize::from(job.model)));
    rows.extend(organizations(made));
    let shorter = published::DURATION_QUANTILES.iter().map(|(share, seconds)| {
        let shorter = made.jobs.iter().filter(|job| f64::from(job.duration_s) < *seconds).count();
        let category = format!("under {seconds:.0} s");
        jobs_row("duration", &category, *share, shorter as f64 / made.jobs.len() as f64, made.jobs.len())
    });
    rows.extend(shorter);
    rows
}

fn organizations(made: &Made) -> Vec<Row> {
    let tenants = published::tenants();
    let (largest, others) = tenants.split_at(LARGEST);
    let names: Vec<String> = largest.iter().map(|tenant| format!("org-{:02}", tenant.id)).collect();
    let mut sums: Vec<Sum<'_>> = Vec::new();
    for (tenant, name) in largest.iter().zip(&names) {
        sums.push(Sum { name, jobs: tenant.jobs, gpu_seconds: tenant.gpu_seconds });
    }
    let others = others.iter().fold((0.0, 0.0), |sum, one| (sum.0 + one.jobs, sum.1 + one.gpu_seconds));
    sums.push(Sum { name: "the other 72", jobs: others.0, gpu_seconds: others.1 });
    let place = |job: &Job| largest.iter().position(|tenant| tenant.id == job.organization).unwrap_or(LARGEST);
    shares(made, "organization", &sums, place)
}

fn quantiles(marginal: &'static str, sorted: &[u32], published: &[(f64, f64)], of_published: f64) -> Vec<Row> {
    let row = |(share, seconds): &(f64, f64)| {
        let place = ((sorted.len() as f64 * share) as usize).min(sorted.len().saturating_sub(1));
        let generated = sorted.get(place).copied().map_or(0.0, f64::from);
        figure_row(marginal, format!("quantile {share}"), [*seconds, generated], Some(of_published))
    };
    published.iter().map(row).collect()
}

pub fn of_table_3(made: &Made) -> Vec<Row> {
    let all: f64 = TABLE_3.iter().map(|class| class.jobs).sum();
    let count = made.jobs.len();
    let share = |of: &dyn Fn(&Job) -> bool| made.jobs.iter().filter(|job| of(job)).count() as f64 / count as f64;
    let mut rows = Vec::new();
    for (index, class) in TABLE_3.iter().enumerate() {
        let (is_spot, part) = (index == 1, class.jobs / all);
        rows.push(jobs_row("type", class.name, part, share(&|job| job.spot == is_spot), count));
        for (request, name) in REQUESTS.iter().enumerate() {
            let asks = |job: &Job| job.spot == is_spot && request_of(job) == request;
            // As printed, the five do not sum to 100: what is left out is not made, either.
            let printed: f64 = class.by_request.iter().sum();
            let published = part * class.by_request[request] / printed;
            let category = format!("{} {name}", class.name);
            rows.push(jobs_row("GPUs of a worker", &category, published, share(&asks), count));
        }
        let gang = |job: &Job| job.spot == is_spot && job.workers > 1;
        rows.push(jobs_row("gang", class.name, part * class.gang / 100.0, share(&gang), count));
        let durations = || made.jobs.iter().filter(|job| job.spot == is_spot).map(|job| f64::from(job.duration_s));
        let mean_s = durations().sum::<f64>() / durations().count().max(1) as f64;
        let figures = [class.mean_duration_s, mean_s];
        rows.push(figure_row("mean duration", class.name.to_owned(), figures, Some(MEAN_OF_PUBLISHED)));
    }
    rows
}

fn request_of(job: &Job) -> usize {
    match job.request_milli {
        0..1_000 => 0,
        1_000 => 1,
        1_001..=2_000 => 2,
        2_001..=4_000 => 3,
        _ => 4,
    }
}

/// Jobs that do not stand at the beginning.
fn arrivals(made: &Made) -> impl Iterator<Item = &Job> {
    made.jobs.iter().filter(|job| job.submit_s > 0)
}

pub fn hours(made: &Made) -> Vec<Row> {
    let first_hour = made.what.first_local_hour();
    let (mut jobs, mut all) = ([0.0; 24], 0.0);
    for job in arrivals(made) {
        jobs[((job.submit_s / HOUR_S + first_hour) % 24) as usize] += 1.0;
        all += 1.0;
    }
    let published = published::by_hour(published::HOURS);
    let row = |hour: usize| Row {
        marginal: "hour of day",
        category: format!("{hour:02}:00"),
        measure: Measure::Jobs,
        published: Some(published[hour]),
        generated: jobs[hour] / all,
        tolerance: Some(HOUR_POINTS),
    };
    (0..24).map(row).collect()
}

/// Jobs a day, and what lies between them.
pub fn days(made: &Made) -> Vec<Row> {
    let mut jobs = vec![0_u32; made.what.days as usize];
    for job in arrivals(made) {
        jobs[(job.submit_s / DAY_S) as usize] += 1;
    }
    let mean = f64::from(jobs.iter().sum::<u32>()) / jobs.len() as f64;
    let variance = jobs.iter().map(|jobs| (f64::from(*jobs) - mean).powi(2)).sum::<f64>() / jobs.len() as f64;
    let is_weekend = |day: usize| (made.what.first_weekday() as usize + day) % 7 >= 5;
    let (weekends, weekdays): (Vec<_>, Vec<_>) = (0..jobs.len()).partition(|day| is_weekend(*day));
    let medians = |days: Vec<usize>| median(days.into_iter().map(|day| jobs[day]).collect());
    let mut rows = vec![
        in_range("standard deviation / mean", published::DAILY_VARIATION, variance.sqrt() / mean),
        in_range("weekend / other days", published::WEEKEND, medians(weekends) / medians(weekdays)),
    ];
    if made.what.shares == Shares::Trace {
        let times: Vec<u32> = arrivals(made).map(|job| job.submit_s).collect();
        let mut gaps: Vec<u32> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
        gaps.sort_unstable();
        rows.extend(quantiles("gap between jobs", &gaps, &published::GAP_QUANTILES, GAP_OF_PUBLISHED));
    }
    rows
}

/// A figure that differs from month to month of the trace: the middle of its range is what is published.
fn in_range(category: &str, (least, most): (f64, f64), generated: f64) -> Row {
    Row {
        marginal: "jobs a day",
        category: category.to_owned(),
        measure: Measure::Ratio,
        published: Some(f64::midpoint(least, most)),
        generated,
        tolerance: Some((most - least) / 2.0),
    }
}

fn median(mut values: Vec<u32>) -> f64 {
    values.sort_unstable();
    values.get(values.len() / 2).copied().map_or(f64::NAN, f64::from)
}

/// Jobs and GPU-seconds that stand at the beginning.
pub fn standing(made: &Made) -> [Row; 2] {
    let work = |jobs: &mut dyn Iterator<Item = &Job>| jobs.map(Job::gpu_seconds).sum::<f64>();
    let standing = || made.jobs.iter().filter(|job| job.submit_s == 0);
    let row = |measure: Measure, generated: f64| Row {
        marginal: "standing at the start",
        category: "all".to_owned(),
        measure,
        published: None,
        generated,
        tolerance: None,
    };
    [
        row(Measure::Jobs, standing().count() as f64 / made.jobs.len() as f64),
        row(Measure::GpuSeconds, work(&mut standing()) / work(&mut made.jobs.iter())),
    ]
}

/// HP demand of each pool over its GPUs, mean and highest hour.
pub fn load(made: &Made, usage: &[UsageRow]) -> Vec<Row> {
    let fleets = table::fleets(made.what.fleet());
    let mut rows = Vec::new();
    for (index, model) in MODELS.iter().enumerate().filter(|(index, _)| fleets[*index] > 0) {
        let of_pool = |row: &&UsageRow| row.series.is_pool_peak() && row.series.pool.gpu_model.as_str() == model.name;
        let hours: Vec<f64> = usage.iter().filter(of_pool).map(|row| row.demand.as_gpus()).collect();
        let gpus = f64::from(fleets[index]);
        let mean = hours.iter().sum::<f64>() / hours.len().max(1) as f64;
        let figures = [("mean", mean), ("highest hour", hours.iter().copied().fold(0.0, f64::max))];
        let of_trace = |figure: usize| published::LOAD[index][figure];
        rows.extend(figures.into_iter().enumerate().map(|(figure, (name, demand))| Row {
            marginal: "demand / GPUs",
            category: format!("{}, {name}", model.name),
            measure: Measure::Ratio,
            published: (made.what.shares == Shares::Trace).then(|| of_trace(figure)),
            generated: demand / gpus,
            tolerance: None,
        }));
    }
    rows
}
