//! The last of the calibration: durations moved inside their bucket until the sums over the jobs drawn are right.

use super::draw::Draft;

/// Each visits every sum once; what is left then is far below the tolerance of the check.
const ROUNDS: u32 = 25;
/// No duration moves by more than this factor at once.
const MAX_FACTOR: f64 = 2.0;

/// A job of so many GPUs moves half as far as the largest ones, in the logarithm.
const MOVED_HALF_GPUS: f64 = 2.0;

/// A sum to be met by each kind of jobs.
pub struct Sums {
    /// Of each job.
    pub kind: Vec<usize>,
    /// Weight of one second.
    pub weight: Vec<f64>,
    /// How far it moves.
    pub power: Vec<f64>,
    /// Of each kind; `None` where it is free.
    pub wanted: Vec<Option<f64>>,
}

impl Sums {
    /// GPU-seconds by kind: large jobs move, which hold the sums; small ones, which are the quantiles, hardly do.
    pub fn of_work(drafts: &[&mut Draft], kind: impl Fn(&Draft) -> usize, wanted: Vec<Option<f64>>) -> Self {
        let weight: Vec<f64> = drafts.iter().map(|draft| draft.gpus()).collect();
        let power = weight.iter().map(|gpus| gpus / (gpus + MOVED_HALF_GPUS)).collect();
        Self { kind: drafts.iter().map(|draft| kind(draft)).collect(), weight, power, wanted }
    }

    /// Seconds by kind, however many GPUs.
    pub fn of_seconds(drafts: &[&mut Draft], kind: impl Fn(&Draft) -> usize, wanted: Vec<Option<f64>>) -> Self {
        let ones = vec![1.0; drafts.len()];
        Self { weight: ones.clone(), power: ones, ..Self::of_work(drafts, kind, wanted) }
    }
}

/// Multiplies durations until the sums are met or every job of a kind is near a bound. No job changes its bucket, so counts
/// stay as they are.
pub fn calibrate(drafts: &mut [&mut Draft], sums: &[Sums]) {
    for _ in 0..ROUNDS {
        for one in sums {
            let mut now = vec![0.0; one.wanted.len()];
            for ((draft, kind), weight) in drafts.iter().zip(&one.kind).zip(&one.weight) {
                now[*kind] += draft.duration_s * weight;
            }
            let factor = |(wanted, now): (&Option<f64>, &f64)| {
                let factor = wanted.filter(|_| *now > 0.0).map_or(1.0, |wanted| wanted / now);
                factor.clamp(1.0 / MAX_FACTOR, MAX_FACTOR)
            };
            let factors: Vec<f64> = one.wanted.iter().zip(&now).map(factor).collect();
            for ((draft, kind), power) in drafts.iter_mut().zip(&one.kind).zip(&one.power) {
                draft.duration_s = moved(draft, factors[*kind], *power);
            }
        }
    }
}

/// Slower the nearer the bound, so that durations do not pile up there.
fn moved(draft: &Draft, factor: f64, power: f64) -> f64 {
    let (from, to) = draft.bounds_s;
    let bound = if factor > 1.0 { to } else { from };
    let room = (bound / draft.duration_s).ln().abs() / (to / from).ln().max(f64::MIN_POSITIVE);
    (draft.duration_s * factor.powf(power * (2.0 * room).min(1.0))).clamp(from, to)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draft(workers: u32, duration_s: f64, bounds_s: (f64, f64)) -> Draft {
        let request_milli = 1_000;
        Draft {
            tenant: 0,
            model: 0,
            spot: false,
            request_milli,
            workers,
            vcpus: 1,
            duration_s,
            bounds_s,
            submit_s: None,
        }
    }

    #[test]
    fn the_sums_are_met_large_jobs_move_most_and_none_leaves_its_bounds() {
        let mut drafts =
            vec![draft(1, 100.0, (60.0, 600.0)), draft(64, 100.0, (60.0, 600.0)), draft(9, 1e4, (1e4, 1e4))];
        let mut borrowed: Vec<&mut Draft> = drafts.iter_mut().collect();
        let wanted = vec![Some(65.0 * 200.0), Some(1.0)];
        let sums = [Sums::of_work(&borrowed, |draft| usize::from(draft.workers == 9), wanted)];
        calibrate(&mut borrowed, &sums);
        let work = drafts[0].duration_s + 64.0 * drafts[1].duration_s;
        assert!((work / (65.0 * 200.0) - 1.0).abs() < 1e-6, "{work}");
        assert!((100.0..drafts[1].duration_s).contains(&drafts[0].duration_s), "{drafts:?}");
        assert_eq!(drafts[2].duration_s, 1e4, "what is asked for is out of its reach");
    }
}
