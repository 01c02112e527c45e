//! How likely a job is to end at an age: hazards by organization and size, those of few jobs drawn to those of many.

use super::history::{JobHistory, MOST_ORGANIZATIONS};
use super::past::{PastJob, PastJobs};
use vocab::UnixSeconds;

/// Bins of age: up to a minute, then each ends at ⁴√2 times the age of its begin; the last has no end and begins at 19 days.
const BINS: usize = 61;
/// Classes of size: 1, 2, up to 4, 8, 16 GPUs, and more.
const SIZES: usize = 6;
/// Ends that a hazard counts for in the one below: of two bins in each of them, of all sizes in a size, of a size in an organization.
const PRIOR_ENDS: f64 = 4.0;
/// The hazard of an age at which nothing was seen: half an end in so many seconds.
const UNSEEN: (f64, f64) = (0.5, 10_000.0);
const FIRST_S: f64 = 60.0;

/// Seconds under watch and ends, by bin.
#[derive(Debug, Clone, Copy)]
struct Counts {
    exposed_s: [f64; BINS],
    ends: [f64; BINS],
}

impl Counts {
    const NONE: Self = Self { exposed_s: [0.0; BINS], ends: [0.0; BINS] };

    fn add(&mut self, other: &Self) {
        for bin in 0..BINS {
            self.exposed_s[bin] += other.exposed_s[bin];
            self.ends[bin] += other.ends[bin];
        }
    }

    /// Hazards in ends a second; `prior` counts for some ends of its own.
    fn hazards(&self, prior: &[f64; BINS]) -> [f64; BINS] {
        std::array::from_fn(|bin| (self.ends[bin] + PRIOR_ENDS) / (self.exposed_s[bin] + PRIOR_ENDS / prior[bin]))
    }

    /// The hazards of two bins each, the first bin alone: few ends say nothing of so short an age as a bin.
    fn hazards_of_two(&self) -> [f64; BINS] {
        std::array::from_fn(|bin| {
            let two = bin - usize::from(bin > 0 && bin % 2 == 0)..bin + 1 + bin % 2;
            let sum = |of: &[f64; BINS]| of[two.clone()].iter().sum::<f64>();
            (sum(&self.ends) + UNSEEN.0) / (sum(&self.exposed_s) + UNSEEN.1)
        })
    }
}

/// A curve of survival: the hazard of each bin, and all of it up to its begin.
#[derive(Debug, Clone, Copy)]
pub struct Curve {
    hazard: [f64; BINS],
    before: [f64; BINS],
    edges_s: [f64; BINS],
}

impl Curve {
    fn of(hazard: &[f64; BINS], edges_s: &[f64; BINS]) -> Self {
        let mut before = [0.0; BINS];
        for bin in 1..BINS {
            before[bin] = before[bin - 1] + hazard[bin - 1] * (edges_s[bin] - edges_s[bin - 1]);
        }
        Self { hazard: *hazard, before, edges_s: *edges_s }
    }

    /// The sum of the hazards up to an age.
    #[must_use]
    pub fn hazard_until(&self, age_s: f64) -> f64 {
        let bin = bin_of(&self.edges_s, age_s);
        self.before[bin] + self.hazard[bin] * (age_s - self.edges_s[bin])
    }

    /// The age in seconds up to which hazards have this sum: the inverse of [`hazard_until`](Self::hazard_until).
    #[must_use]
    pub fn age_at(&self, hazard: f64) -> f64 {
        let bin = self.before.partition_point(|before| *before < hazard).max(1) - 1;
        self.edges_s[bin] + (hazard - self.before[bin]) / self.hazard[bin]
    }

    /// For how many seconds a job of this age goes on; `draw` is a standard exponential one.
    #[must_use]
    pub fn rest_s(&self, age_s: f64, draw: f64) -> f64 {
        (self.age_at(self.hazard_until(age_s) + draw) - age_s).max(0.0)
    }

    /// For each of `draws`, standard exponential ones that rise, how long a job of this age goes on, in seconds, until `is_done`
    /// with one: later ones go on for longer.
    pub fn each_rest(&self, age_s: f64, draws: &[f64], mut take: impl FnMut(usize, f64) -> bool) {
        let mut bin = bin_of(&self.edges_s, age_s);
        let spent = self.hazard_until(age_s);
        for (number, draw) in draws.iter().enumerate() {
            let wanted = spent + draw;
            while bin + 1 < BINS && self.before[bin + 1] < wanted {
                bin += 1;
            }
            let end_s = self.edges_s[bin] + (wanted - self.before[bin]) / self.hazard[bin];
            if !take(number, (end_s - age_s).max(0.0)) {
                return;
            }
        }
    }
}

/// The curves of all organizations and sizes.
#[derive(Debug)]
pub struct Survival {
    curves: Vec<Curve>,
    /// The places of the organizations of the past, in the order of their places there.
    of_past: Vec<u16>,
}

impl Survival {
    /// Of all jobs that ended, and of those that are there: their ends are not known yet, but that they got so far is. Jobs of the
    /// past count until the first observation.
    #[must_use]
    pub fn learn(history: &JobHistory, past: Option<&PastJobs>, now: UnixSeconds) -> Self {
        let edges_s = edges_s();
        let (of_past, organizations) = places(history, past);
        let mut counts = vec![Counts::NONE; (organizations + 1).min(MOST_ORGANIZATIONS) * SIZES];
        // A job from before the first observation was seen to live from then on alone.
        let begun = history.begun.unwrap_or(now);
        let unseen_s = |started: UnixSeconds| begun.since_s(started).max(0) as f64;
        for job in &history.ended {
            let of = &mut counts[group(job.organization, job.gpus_milli)];
            count(of, &edges_s, (unseen_s(job.started()), f64::from(job.ran_s)), true);
        }
        for job in history.present.values() {
            let Some(started) = job.started else { continue };
            let of = &mut counts[group(job.organization, job.gpus_milli)];
            count(of, &edges_s, (unseen_s(started), job.age_s(now) as f64), false);
        }
        for PastJob { job, is_ended } in past.iter().flat_map(|past| &past.jobs) {
            let (seen_s, ran_s) = (begun.since_s(job.submitted) as f64, f64::from(job.ran_s));
            if seen_s > 0.0 {
                let of = &mut counts[group(of_past[usize::from(job.organization)], job.gpus_milli)];
                count(of, &edges_s, (0.0, ran_s.min(seen_s)), *is_ended && ran_s <= seen_s);
            }
        }
        Self { curves: curves(&counts, &edges_s), of_past }
    }

    /// Of the last so many seconds: GPUs whose jobs ended, and those that were expected to by the hazards.
    #[must_use]
    pub fn lately(&self, history: &JobHistory, now: UnixSeconds, last_s: i64) -> (f64, f64) {
        let since = now.plus_s(-last_s);
        let (mut ended, mut expected) = (0.0, 0.0);
        let mut add = |organization: u16, gpus_milli: u32, started: UnixSeconds, ran_s: f64| {
            let curve = self.of(organization, gpus_milli);
            let from_s = since.since_s(started).max(0) as f64;
            expected += f64::from(gpus_milli) * (curve.hazard_until(ran_s) - curve.hazard_until(from_s)).max(0.0);
        };
        for job in history.ended.iter().rev() {
            let started = job.submitted.plus_s(i64::from(job.waited_s));
            if started.plus_s(i64::from(job.ran_s)) < since {
                break;
            }
            ended += f64::from(job.gpus_milli);
            add(job.organization, job.gpus_milli, started, f64::from(job.ran_s));
        }
        for job in history.present.values() {
            if let Some(started) = job.started {
                add(job.organization, job.gpus_milli, started, job.age_s(now) as f64);
            }
        }
        (ended / 1_000.0, expected / 1_000.0)
    }

    /// The curve of an organization's jobs of a size, by its place in the history ([`JobHistory::group_of`]).
    #[must_use]
    pub fn of(&self, organization: u16, gpus_milli: u32) -> &Curve {
        &self.curves[group(organization, gpus_milli).min(self.curves.len() - 1)]
    }

    /// The same by the place of an organization of the past.
    #[must_use]
    pub fn of_past(&self, organization: u16, gpus_milli: u32) -> &Curve {
        self.of(self.of_past.get(usize::from(organization)).copied().unwrap_or(0), gpus_milli)
    }
}

/// The places of the organizations of the past among those of the history, and how many there are in all.
fn places(history: &JobHistory, past: Option<&PastJobs>) -> (Vec<u16>, usize) {
    let Some(past) = past else { return (Vec::new(), history.organizations.len()) };
    let (mut places, mut all) = (vec![0; past.organizations.len() + 1], history.organizations.len());
    for (name, place) in &past.organizations {
        let known = history.organizations.get(name).copied();
        places[usize::from(*place)] = known.unwrap_or_else(|| {
            all += usize::from(all + 1 < MOST_ORGANIZATIONS);
            all as u16
        });
    }
    (places, all)
}

/// The hazards of few jobs lean on those of their size, these on those of all, and these on those of two bins of age.
fn curves(counts: &[Counts], edges_s: &[f64; BINS]) -> Vec<Curve> {
    let (mut all, mut sizes) = (Counts::NONE, [Counts::NONE; SIZES]);
    for (number, of) in counts.iter().enumerate() {
        sizes[number % SIZES].add(of);
        all.add(of);
    }
    let of_all = all.hazards(&all.hazards_of_two());
    let of_sizes = sizes.map(|size| size.hazards(&of_all));
    let curve = |(number, of): (usize, &Counts)| Curve::of(&of.hazards(&of_sizes[number % SIZES]), edges_s);
    counts.iter().enumerate().map(curve).collect()
}

/// A job was seen from one age to another, where it ended or not.
fn count(of: &mut Counts, edges_s: &[f64; BINS], (from_s, to_s): (f64, f64), is_end: bool) {
    let last = bin_of(edges_s, to_s);
    for bin in bin_of(edges_s, from_s)..=last {
        let end_s = edges_s.get(bin + 1).copied().unwrap_or(f64::INFINITY).min(to_s);
        of.exposed_s[bin] += (end_s - edges_s[bin].max(from_s)).max(0.0);
    }
    if is_end {
        of.ends[last] += 1.0;
    }
}

fn group(organization: u16, gpus_milli: u32) -> usize {
    let size = gpus_milli.div_ceil(1_000).max(1).next_power_of_two().trailing_zeros() as usize;
    usize::from(organization) * SIZES + size.min(SIZES - 1)
}

fn edges_s() -> [f64; BINS] {
    std::array::from_fn(|bin| if bin == 0 { 0.0 } else { FIRST_S * 2.0_f64.powf((bin as f64 - 1.0) / 4.0) })
}

/// The bin that an age is in.
fn bin_of(edges_s: &[f64; BINS], age_s: f64) -> usize {
    edges_s.partition_point(|edge| *edge <= age_s).max(1) - 1
}
