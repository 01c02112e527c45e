//! Paths of demand: what runs and waits now goes, what will come is what came before.

use super::arrivals::{Arrivals, Lasts};
use super::survival::{Curve, Survival};
use super::{Known, PATHS, Peaks};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use vocab::{HorizonHours, UnixSeconds};

/// The least length of a step, in seconds, and how many there are at most.
const LEAST_STEP_S: i64 = 300;
const MOST_STEPS: i64 = 288;

/// Changes of demand in thousandths of a GPU, path by path and step by step. Within a step, arrivals come before departures, so that
/// no peak is missed.
#[derive(Debug)]
pub(super) struct Paths {
    step_s: i64,
    steps: usize,
    now_milli: i64,
    /// Seconds of the longest hours that the arrivals tell of.
    reach_s: i64,
    changes: Vec<i64>,
}

impl Paths {
    /// None where too little is known of arrivals.
    pub fn draw(
        known: Known<'_>,
        now: UnixSeconds,
        demand_milli: u64,
        longest: HorizonHours,
        seed: u64,
    ) -> Option<Self> {
        let Known { history, past, is_early } = known;
        let survival = Survival::learn(history, past, now);
        let whole = Arrivals::of(history, past, &survival, now);
        let early = || Arrivals::early(history, past, &survival, now);
        let arrivals = whole.or_else(|| if is_early { early() } else { None })?;
        let longest_s = longest.seconds().min(arrivals.reach_s());
        let step_s = LEAST_STEP_S.max(longest_s.div_euclid(MOST_STEPS));
        let steps = (longest_s / step_s) as usize;
        let now_milli = i64::try_from(demand_milli).unwrap_or(i64::MAX / 4);
        let mut paths =
            Self { step_s, steps, now_milli, reach_s: arrivals.reach_s(), changes: vec![0; PATHS * (steps + 1)] };
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let draws: [f64; PATHS] = std::array::from_fn(|stratum| -(1.0 - middle(stratum)).ln());
        for job in history.present.values() {
            let curve = survival.of(job.organization, job.gpus_milli);
            // A job that waits will wait for as long as it has waited already: nothing better is known.
            let waits_s = if job.started.is_none() { job.waited_s(now) as f64 } else { 0.0 };
            let milli = i64::from(job.gpus_milli);
            paths.depart((waits_s, job.age_s(now) as f64, milli), curve, &draws, &mut rng);
        }
        for after_s in (0..longest_s).step_by(arrivals.window_s() as usize) {
            paths.arrive(&arrivals, now, after_s, &mut rng);
        }
        Some(paths)
    }

    /// The job ends in each path in another of as many equally likely ways, in an order drawn for it.
    fn depart(&mut self, (waits_s, age_s, milli): (f64, f64, i64), curve: &Curve, draws: &[f64], rng: &mut ChaCha8Rng) {
        let order = Order::draw(rng);
        curve.each_rest(age_s, draws, |stratum, rest_s| {
            let goes = self.step_until(waits_s + rest_s);
            if goes <= self.steps {
                self.add(order.of(stratum), goes, -milli);
            }
            goes <= self.steps
        });
    }

    fn arrive(&mut self, arrivals: &Arrivals<'_>, now: UnixSeconds, after_s: i64, rng: &mut ChaCha8Rng) {
        let order = Order::draw(rng);
        let begins = arrivals.begins(now, after_s, (0..PATHS).map(middle));
        for (stratum, begin) in begins.into_iter().enumerate() {
            let path = order.of(stratum);
            for job in arrivals.window(begin) {
                let comes_s = (job.at.since_s(begin) + after_s) as f64;
                let lasts_s = match job.lasts {
                    Lasts::For(seconds) => seconds,
                    Lasts::AtLeast((waited_s, age_s), curve) => waited_s + age_s + rest_s(curve, age_s, rng),
                };
                let (comes, goes) = ((comes_s / self.step_s as f64) as usize, self.step_until(comes_s + lasts_s));
                if comes > self.steps {
                    break;
                }
                self.add(path, comes, job.gpus_milli);
                if goes <= self.steps {
                    self.add(path, goes, -job.gpus_milli);
                }
            }
        }
    }

    /// The first step that is whole after so many seconds from now.
    fn step_until(&self, seconds: f64) -> usize {
        (seconds / self.step_s as f64).ceil() as usize
    }

    fn add(&mut self, path: usize, step: usize, milli: i64) {
        self.changes[path * (self.steps + 1) + step] += milli;
    }

    /// The peaks of all paths within each of the hours, from now on, up to the first hours that are longer than the paths.
    pub fn peaks(&self, offered: &[HorizonHours]) -> Vec<Peaks> {
        let empty = |hours: &HorizonHours| Peaks { hours: *hours, sorted_gpus: Vec::with_capacity(PATHS) };
        let is_drawn = |hours: &&HorizonHours| hours.seconds() <= self.reach_s;
        let mut all: Vec<Peaks> = offered.iter().take_while(is_drawn).map(empty).collect();
        let mut highest = vec![0_i64; self.steps + 1];
        for changes in self.changes.chunks_exact(self.steps + 1) {
            let (mut level, mut peak) = (self.now_milli, self.now_milli);
            for (highest, change) in highest.iter_mut().zip(changes) {
                level += change;
                peak = peak.max(level);
                *highest = peak;
            }
            for peaks in &mut all {
                // A step that begins as the hours end is not in them.
                let last = (peaks.hours.seconds() / self.step_s - 1).clamp(0, self.steps as i64) as usize;
                peaks.sorted_gpus.push(highest[last] as f64 / 1_000.0);
            }
        }
        for peaks in &mut all {
            peaks.sorted_gpus.sort_by(f64::total_cmp);
        }
        all
    }
}

/// Which path has which of the equally likely parts: each has another one.
struct Order {
    first: usize,
    stride: usize,
}

impl Order {
    fn draw(rng: &mut ChaCha8Rng) -> Self {
        Self { first: rng.random_range(0..PATHS), stride: rng.random_range(1..PATHS) }
    }

    const fn of(&self, stratum: usize) -> usize {
        (self.first + stratum * self.stride) % PATHS
    }
}

/// The middle of one of the equally likely parts between 0 and 1.
fn middle(stratum: usize) -> f64 {
    (stratum as f64 + 0.5) / PATHS as f64
}

/// One draw of how long a job of this age goes on, in seconds.
fn rest_s(curve: &Curve, age_s: f64, rng: &mut ChaCha8Rng) -> f64 {
    curve.rest_s(age_s, -(1.0 - rng.random::<f64>()).ln())
}
