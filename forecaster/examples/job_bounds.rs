//! Bounds of the peak of HP demand over 1, 4 and 24 hours on job lists, renewed every 15 minutes, each learned from the past
//! alone: the last value with the order statistic of a week's rises, the live bound, that of the jobs, and the live bound mixed
//! with it as a pool is served. Prints the pinball loss at p = 0.9 in GPUs and the share of peaks above the bound, over days
//! 3 to 7 and from day 8 on. Then a service that begins on day 8, without and with the list of the days before (`train --jobs`), and
//! the CPU time of one draw.
//!
//! ```sh
//! cargo run --package forecaster --example job_bounds -- job_info_df.csv …
//! ```

use datasets::Calendar;
use datasets::read::{ReadOptions, gfs_tasks};
use forecaster::jobs::{JobExpert, JobHistory, Known, ListedJob, PastJobs, bounds};
use forecaster::live::LiveBound;
use std::time::Instant;
use vocab::{
    ClusterName, GpuModel, GuaranteeRate, HorizonHours, HpJob, Organization, Task, TaskClass, TaskId, UnixSeconds,
};

const RENEWAL_S: i64 = 900;
const DAY_S: i64 = 86_400;
const NAMES: [&str; 6] =
    ["last value + conformal", "live", "jobs", "live and jobs, mixed", "half live, half jobs", "both, hindsight"];

/// Bounds of one renewal for one number of hours, in the order of [`NAMES`], and the peak that came.
struct Scored {
    at_s: i64,
    peak: f64,
    bounds: [f64; 5],
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let files: Vec<String> = std::env::args().skip(1).collect();
    if files.is_empty() {
        return Err("expected paths of job lists of the GFS trace".into());
    }
    let options = ReadOptions {
        cluster: ClusterName::parse("trace")?,
        gpu_model: GpuModel::parse("V100")?,
        calendar: Calendar::parse("UTC", Calendar::WEEKDAYS)?,
        skip_bad_rows: false,
        zones: datasets::Zones::new(),
    };
    let offered = [HorizonHours::new(1)?, HorizonHours::new(4)?, HorizonHours::new(24)?];
    for file in &files {
        println!("{file}");
        let (mut tasks, _) = gfs_tasks(file.as_ref(), UnixSeconds::new(0), &options)?;
        tasks.retain(|task| task.class == TaskClass::Hp && task.duration_s.is_some_and(|seconds| seconds > 0));
        tasks.sort_by_key(|task| task.submitted);
        let scored = score(&tasks, &offered);
        for (hours, scored) in offered.iter().zip(&scored) {
            show(*hours, scored);
        }
        show_beginning(&tasks, &offered);
    }
    time_a_draw()
}

fn end(task: &Task) -> i64 {
    task.submitted.get() + task.duration_s.unwrap_or(0) as i64
}

fn present(tasks: &[Task], now: i64) -> Vec<HpJob> {
    let there = tasks.iter().filter(|task| task.submitted.get() <= now && now < end(task));
    let job = |task: &Task| HpJob {
        task: task.id.clone(),
        organization: task.organization.clone(),
        gpus_milli: task.gpus().milli(),
        submitted: task.submitted,
        started: Some(task.submitted),
    };
    there.map(job).collect()
}

/// The largest demand within each renewal interval, in GPUs.
fn peaks(tasks: &[Task]) -> Vec<f64> {
    let mut steps: Vec<(i64, f64)> = Vec::new();
    for task in tasks {
        let gpus = task.gpus().as_gpus();
        steps.extend([(task.submitted.get(), gpus), (end(task), -gpus)]);
    }
    steps.sort_by(|one, other| one.0.cmp(&other.0).then(one.1.total_cmp(&other.1)));
    let last = tasks.last().map_or(0, |task| task.submitted.get());
    let mut peaks = vec![0.0_f64; (last / RENEWAL_S) as usize];
    let (mut level, mut next) = (0.0, 0);
    for (number, peak) in peaks.iter_mut().enumerate() {
        while let Some((_, change)) = steps.get(next).filter(|(at, _)| *at <= number as i64 * RENEWAL_S) {
            (level, next) = (level + change, next + 1);
        }
        *peak = level;
        while let Some((_, change)) = steps.get(next).filter(|(at, _)| *at < (number as i64 + 1) * RENEWAL_S) {
            (level, next) = (level + change, next + 1);
            *peak = peak.max(level);
        }
    }
    peaks
}

/// The largest demand from a renewal on over so many hours, in GPUs; none where the list ends before.
fn peak_after(peaks: &[f64], number: usize, hours: HorizonHours, demand: f64) -> Option<f64> {
    let ahead = (hours.seconds() / RENEWAL_S) as usize;
    Some(peaks.get(number..number + ahead)?.iter().copied().fold(demand, f64::max))
}

/// For each of the hours.
fn score(tasks: &[Task], offered: &[HorizonHours]) -> Vec<Vec<Scored>> {
    let rate = GuaranteeRate::GFS;
    let (mut live, mut expert) = (LiveBound::new(rate, offered), JobExpert::new(rate, offered));
    let peaks = peaks(tasks);
    let mut rises: Vec<Vec<(usize, f64)>> = vec![Vec::new(); offered.len()];
    let mut scored: Vec<Vec<Scored>> = offered.iter().map(|_| Vec::new()).collect();
    for number in 0..peaks.len() {
        let now = UnixSeconds::new(number as i64 * RENEWAL_S);
        let jobs = present(tasks, now.get());
        let milli: u64 = jobs.iter().map(|job| job.gpus_milli).sum();
        let demand = milli as f64 / 1_000.0;
        let lives: Vec<f64> = live.mix(now, milli, None).iter().map(|one| one.bound_gpus).collect();
        expert.observe(now, &jobs);
        let shared = expert.mix((now, milli), (None, true), &lives, number as u64);
        for (place, hours) in offered.iter().enumerate() {
            let Some(peak) = peak_after(&peaks, number, *hours, demand) else { continue };
            rises[place].push((number, peak - demand));
            let conformal = conformal(&rises[place], number, *hours, rate).map(|rise| demand + rise);
            let both = lives.get(place).zip(shared.get(place).and_then(|one| Some((one.bound_gpus, one.jobs_gpus?))));
            if let (Some(conformal), Some((live, (mixed, jobs)))) = (conformal, both) {
                let bounds = [conformal, *live, jobs, mixed, (live + jobs) / 2.0];
                scored[place].push(Scored { at_s: now.get(), peak, bounds });
            }
        }
    }
    scored
}

/// The order statistic of the rises of a week whose hours are over.
fn conformal(rises: &[(usize, f64)], number: usize, hours: HorizonHours, rate: GuaranteeRate) -> Option<f64> {
    let ahead = (hours.seconds() / RENEWAL_S) as usize;
    let known = rises.iter().filter(|(of, _)| of + ahead <= number && of + ahead + 672 > number);
    let mut known: Vec<f64> = known.map(|(_, rise)| *rise).collect();
    known.sort_by(f64::total_cmp);
    let rank = (((known.len() + 1) as f64 * rate.as_f64()).ceil() as usize).clamp(1, known.len().max(1));
    known.get(rank - 1).copied()
}

/// A service that begins on day 8, without and with the list of the days before: the losses of what it serves over its first
/// hours, where each has a bound.
fn show_beginning(tasks: &[Task], offered: &[HorizonHours]) {
    let (begin, peaks) = (7 * DAY_S, peaks(tasks));
    let listed: Vec<ListedJob> = tasks.iter().map(listed).collect();
    let past = PastJobs::of(&listed, UnixSeconds::new(begin));
    let rate = GuaranteeRate::GFS;
    let mut live = LiveBound::new(rate, offered);
    let mut experts = [JobExpert::new(rate, offered), JobExpert::new(rate, offered)];
    let mut lost: Vec<Vec<(i64, [f64; 2])>> = vec![Vec::new(); offered.len()];
    for number in (begin / RENEWAL_S) as usize..((begin + 3 * DAY_S) / RENEWAL_S) as usize {
        let now = UnixSeconds::new(number as i64 * RENEWAL_S);
        let jobs = present(tasks, now.get());
        let milli: u64 = jobs.iter().map(|job| job.gpus_milli).sum();
        let lives: Vec<f64> = live.mix(now, milli, None).iter().map(|one| one.bound_gpus).collect();
        let [cold, warm] = [(0, None), (1, past.as_ref())].map(|(which, past): (usize, _)| {
            experts[which].observe(now, &jobs);
            experts[which].mix((now, milli), (past, true), &lives, number as u64)
        });
        for (place, hours) in offered.iter().enumerate() {
            let peak = peak_after(&peaks, number, *hours, milli as f64 / 1_000.0);
            if let (Some(peak), Some(cold), Some(warm)) = (peak, cold.get(place), warm.get(place)) {
                lost[place].push((now.get() - begin, [cold, warm].map(|one| loss(peak, one.bound_gpus))));
            }
        }
    }
    for (hours, lost) in offered.iter().zip(&lost) {
        let within = |until_s: i64| {
            let of: Vec<_> = lost.iter().filter(|(at, _)| *at < until_s).collect();
            let mean = |which: usize| of.iter().map(|(_, both)| both[which]).sum::<f64>() / of.len().max(1) as f64;
            format!("{:.2}, {:.2}", mean(0), mean(1))
        };
        let [first, day, three] = [8 * 3_600, DAY_S, 3 * DAY_S].map(within);
        println!("{hours}, begun on day 8, without and with the list: first 8 h {first}; 24 h {day}; 3 days {three}");
    }
}

fn listed(task: &Task) -> ListedJob {
    ListedJob {
        organization: task.organization.clone(),
        gpus_milli: task.gpus().milli(),
        submitted: task.submitted,
        ran_s: task.duration_s.unwrap_or(0),
    }
}

/// The pinball loss at 0.9.
fn loss(peak: f64, bound: f64) -> f64 {
    (0.9 * (peak - bound)).max(0.1 * (bound - peak))
}

fn show(hours: HorizonHours, scored: &[Scored]) {
    println!("{hours}: pinball in GPUs (share of peaks above), days 3 to 7; from day 8 on");
    let parts = [(2 * DAY_S, 7 * DAY_S), (7 * DAY_S, i64::MAX)];
    let part = |(from, to): (i64, i64), bound: &dyn Fn(&Scored) -> f64| {
        let of: Vec<_> = scored.iter().filter(|one| (from..to).contains(&one.at_s)).collect();
        let count = of.len().max(1) as f64;
        let pinball = of.iter().map(|one| loss(one.peak, bound(one))).sum::<f64>() / count;
        (pinball, of.iter().filter(|one| one.peak > bound(one) + 1e-9).count() as f64 / count)
    };
    for (place, name) in NAMES.iter().enumerate().take(5) {
        let [(one, above_one), (two, above_two)] = parts.map(|of| part(of, &|scored| scored.bounds[place]));
        println!("  {name:<24} {one:7.2} ({above_one:.3}); {two:7.2} ({above_two:.3})");
    }
    let between = |share: f64| move |one: &Scored| share * one.bounds[2] + (1.0 - share) * one.bounds[1];
    let best = |of: (i64, i64)| {
        let all = (0..=20).map(|twentieth| (part(of, &between(f64::from(twentieth) / 20.0)).0, twentieth));
        all.min_by(|one, other| one.0.total_cmp(&other.0)).unwrap_or_default()
    };
    let [(one, share_one), (two, share_two)] = parts.map(best);
    println!("  {:<24} {one:7.2} ({share_one} of 20); {two:7.2} ({share_two} of 20)", NAMES[5]);
}

/// 2,000 jobs that run and 16,000 that ended, bounds over 1, 2 and 4 hours.
fn time_a_draw() -> Result<(), Box<dyn std::error::Error>> {
    let organizations = (0..16).map(|of| Organization::parse(&format!("o{of}"))).collect::<Result<Vec<_>, _>>()?;
    let ids = (0..18_000).map(|job| TaskId::parse(&format!("job-{job}"))).collect::<Result<Vec<_>, _>>()?;
    let mut history = JobHistory::default();
    // Each runs for 2,000 times 75 s.
    for step in (0..18_000).step_by(4) {
        let there = (step.max(2_000) - 2_000)..step;
        let job = |number: usize| HpJob {
            task: ids[number].clone(),
            organization: organizations[number % 16].clone(),
            gpus_milli: 1_000 << (number % 4),
            submitted: UnixSeconds::new(number as i64 * 75),
            started: Some(UnixSeconds::new(number as i64 * 75)),
        };
        history.observe(UnixSeconds::new(step as i64 * 75), &there.map(job).collect::<Vec<_>>());
    }
    let now = UnixSeconds::new(17_996 * 75);
    for hours in [&[1, 2, 4][..], &[1, 4, 24]] {
        let offered = hours.iter().map(|hours| HorizonHours::new(*hours)).collect::<Result<Vec<_>, _>>()?;
        let began = Instant::now();
        for seed in 0..50 {
            bounds(
                Known { history: &history, past: None, is_early: true },
                now,
                7_500_000,
                &offered,
                (GuaranteeRate::GFS, seed),
            )
            .ok_or("too little is known")?;
        }
        let took_ms = began.elapsed().as_secs_f64() * 20.0;
        println!("2,000 jobs run, {} ended, hours {hours:?}: a draw takes {took_ms:.2} ms", history.seen().ended);
    }
    Ok(())
}
