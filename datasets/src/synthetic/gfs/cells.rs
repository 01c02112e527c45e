//! Sizes and lengths of jobs: the columns of the table.

use super::published::{self, LONGEST_S};

/// Workers from and to, in steps of two: each of them × a request lies within one bucket of GPUs.
pub const WORKER_RANGES: [(u32, u32); 9] =
    [(1, 1), (2, 2), (3, 4), (5, 8), (9, 16), (17, 32), (33, 64), (65, 128), (129, 332)];
/// Index in `published::WORKERS` of each range.
const WORKER_BUCKET: [usize; 9] = [0, 1, 1, 1, 2, 2, 3, 3, 4];

/// Thousandths of a GPU that one worker asks for; the first stands for all fractions. Requests of 3, 5, 6 and 7 GPUs are
/// left out: what is published tells buckets only, and the paper's table 3 shows hardly any.
pub const REQUESTS_MILLI: [u32; 5] = [0, 1_000, 2_000, 4_000, 8_000];
/// Fractions and how often each is asked for. Of the mean, 0.43 GPUs, and of nothing else, the sums by model tell something.
pub const FRACTIONS: [(u32, f64); 5] = [(100, 0.2), (250, 0.25), (330, 0.1), (500, 0.3), (800, 0.15)];
/// Mean of [`FRACTIONS`].
const MEAN_FRACTION_GPUS: f64 = 0.2 * 0.1 + 0.25 * 0.25 + 0.1 * 0.33 + 0.3 * 0.5 + 0.15 * 0.8;

/// One size of jobs.
#[derive(Debug, Clone, Copy)]
pub struct Size {
    /// Index in [`REQUESTS_MILLI`].
    pub request: usize,
    /// Index in [`WORKER_RANGES`].
    pub workers: usize,
    pub mean_gpus: f64,
}

impl Size {
    #[must_use]
    pub const fn gpu_bucket(&self) -> usize {
        if self.request == 0 {
            return 0;
        }
        gpu_bucket(REQUESTS_MILLI[self.request] as u64 * WORKER_RANGES[self.workers].1 as u64)
    }

    #[must_use]
    pub const fn worker_bucket(&self) -> usize {
        WORKER_BUCKET[self.workers]
    }

    #[must_use]
    pub const fn least_gpus(&self) -> u32 {
        REQUESTS_MILLI[self.request] / 1_000 * WORKER_RANGES[self.workers].0
    }
}

/// Index in `published::GPUS`.
#[must_use]
pub const fn gpu_bucket(milli: u64) -> usize {
    match milli {
        0..1_000 => 0,
        1_000 => 1,
        1_001..=4_000 => 2,
        4_001..=8_000 => 3,
        8_001..=16_000 => 4,
        16_001..=32_000 => 5,
        32_001..=64_000 => 6,
        64_001..=128_000 => 7,
        _ => 8,
    }
}

/// Index in `published::WORKERS`.
#[must_use]
pub const fn worker_bucket(workers: u32) -> usize {
    match workers {
        0..=1 => 0,
        2..=8 => 1,
        9..=32 => 2,
        33..=128 => 3,
        _ => 4,
    }
}

/// Fractions have one worker; whole requests any number.
#[must_use]
pub fn sizes() -> Vec<Size> {
    let whole = (1..REQUESTS_MILLI.len()).flat_map(|request| {
        (0..WORKER_RANGES.len()).map(move |workers| {
            let mean_gpus = f64::from(REQUESTS_MILLI[request]) / 1_000.0 * mean_workers(workers);
            Size { request, workers, mean_gpus }
        })
    });
    std::iter::once(Size { request: 0, workers: 0, mean_gpus: MEAN_FRACTION_GPUS }).chain(whole).collect()
}

/// Published jobs of each number of workers in a range.
pub fn workers_in(range: usize) -> impl Iterator<Item = (u32, f64)> {
    let (from, to) = WORKER_RANGES[range];
    published::workers().into_iter().filter(move |(workers, _)| (from..=to).contains(workers))
}

fn mean_workers(range: usize) -> f64 {
    let (sum, jobs) =
        workers_in(range).fold((0.0, 0.0), |(sum, all), (n, jobs)| (sum + f64::from(n) * jobs, all + jobs));
    sum / jobs
}

/// A range of durations: seconds from, and up to but without.
#[derive(Debug, Clone, Copy)]
pub struct Span {
    pub from_s: u32,
    pub to_s: u32,
    /// Index in `published::DURATIONS`.
    pub bucket: usize,
    /// Which share of the jobs it lies in, between two quantiles or buckets that are published (see `SPAN_JOBS`).
    pub share: usize,
}

const fn span(from_s: u32, to_s: u32, bucket: usize, share: usize) -> Span {
    Span { from_s, to_s, bucket, share }
}

/// Buckets of durations, cut at the published quantiles, rounded up. The range from 5 to 65 days is cut once more, at 20 days, or
/// the spread of work over it would be unknown.
pub const SPANS: [Span; 12] = [
    span(1, 60, 0, 0),
    span(60, 600, 1, 1),
    span(600, 1_216, 2, 2),
    span(1_216, 3_600, 2, 3),
    span(3_600, 21_600, 3, 4),
    span(21_600, 45_774, 4, 5),
    span(45_774, 86_400, 4, 6),
    span(86_400, 259_200, 5, 7),
    span(259_200, 461_466, 6, 8),
    span(461_466, 1_728_000, 6, 9),
    span(1_728_000, 5_663_027, 6, 9),
    span(5_663_027, LONGEST_S + 1, 6, 10),
];
/// From here on a job is long.
pub const LONG_S: u32 = 21_600;
pub const SPAN_SHARES: usize = 11;

/// Jobs of each [`Span::share`]: buckets, and what the quantiles cut off them.
#[must_use]
pub fn jobs_by_span_share() -> [f64; SPAN_SHARES] {
    let buckets = published::DURATIONS.map(|bucket| bucket.jobs);
    let [median, p90, p95, p99] = published::DURATION_QUANTILES.map(|(share, _)| share * f64::from(published::JOBS));
    let until = |bucket: usize| buckets[..bucket].iter().sum::<f64>();
    [
        buckets[0],
        buckets[1],
        median - until(2),
        until(3) - median,
        buckets[3],
        p90 - until(4),
        until(5) - p90,
        buckets[5],
        p95 - until(6),
        p99 - p95,
        until(7) - p99,
    ]
}

/// Where the last bucket begins.
const LONGEST_FROM_S: u32 = 259_200;
/// From here on, in seconds, durations crowd at the lower end of their span: nothing is published of how they spread there,
/// and the shorter they are the more of their work falls into a window.
const CROWDED_S: u32 = 5_663_027;

impl Span {
    /// The duration at a place from 0 to 1 in the span: even in the logarithm.
    #[must_use]
    pub fn duration_s(&self, place: f64) -> f64 {
        let (from, to) = (f64::from(self.from_s), f64::from(self.to_s));
        let place = if self.from_s >= CROWDED_S { place.powi(3) } else { place };
        from * (to / from).powf(place)
    }

    /// Between which a duration may be moved without leaving its bucket, nor what a quantile cuts off it. In the bucket of
    /// the longest, where most GPU-seconds are, it may pass below quantiles: the few that do hardly move them.
    #[must_use]
    pub fn bounds_s(&self) -> (f64, f64) {
        let longest = SPANS[SPANS.len() - 1].bucket;
        let from_s = if self.bucket == longest { LONGEST_FROM_S } else { self.from_s };
        (f64::from(from_s), f64::from(self.to_s - 1))
    }

    #[must_use]
    pub fn mean_s(&self) -> f64 {
        (0..64).map(|step| self.duration_s((f64::from(step) + 0.5) / 64.0)).sum::<f64>() / 64.0
    }
}

/// Index in `published::DURATIONS`.
#[must_use]
pub fn duration_bucket(duration_s: u32) -> usize {
    SPANS.iter().rev().find(|span| duration_s >= span.from_s).map_or(0, |span| span.bucket)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_size_lies_in_one_bucket_of_gpus_and_one_of_workers() {
        for size in sizes().iter().filter(|size| size.request > 0) {
            let (from, to) = WORKER_RANGES[size.workers];
            for workers in [from, to] {
                let milli = u64::from(REQUESTS_MILLI[size.request] * workers);
                assert_eq!((gpu_bucket(milli), worker_bucket(workers)), (size.gpu_bucket(), size.worker_bucket()));
            }
        }
    }

    #[test]
    fn the_spans_follow_each_other_and_their_jobs_are_all_jobs() {
        assert!(SPANS.windows(2).all(|pair| pair[0].to_s == pair[1].from_s));
        let shares = jobs_by_span_share();
        assert!(shares.iter().all(|jobs| *jobs > 4_000.0), "{shares:?}");
        assert!((shares.iter().sum::<f64>() - f64::from(published::JOBS)).abs() < 1.0);
        assert_eq!([59, 60, 259_200, LONGEST_S].map(duration_bucket), [0, 1, 6, 6]);
    }
}
