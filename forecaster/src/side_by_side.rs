//! Work on all cores whose result is the same on any number of them.

use rayon::iter::{IndexedParallelIterator, IntoParallelIterator, ParallelIterator};
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::sync::OnceLock;

/// Threads of our own, as many as there are cores: those of rayon's are kept to one, for the sake of candle's products.
static CORES: OnceLock<Option<ThreadPool>> = OnceLock::new();

/// Runs jobs on all cores, or on the threads of the pool that it is called in; results come in the order of the jobs, and no job
/// reads the result of another. One job alone runs where it is called.
pub fn side_by_side<T: Send>(jobs: usize, each: impl Fn(usize) -> T + Sync + Send) -> Vec<T> {
    if jobs == 1 {
        return vec![each(0)];
    }
    // Jobs are few and long: a thread without one takes over the next of another, instead of waiting for a row of them.
    let run = || (0..jobs).into_par_iter().with_max_len(1).map(&each).collect();
    let cores = CORES.get_or_init(|| {
        let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        ThreadPoolBuilder::new().num_threads(threads).build().ok()
    });
    match cores {
        Some(cores) if rayon::current_thread_index().is_none() => cores.install(run),
        _ => run(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::sync::Mutex;

    #[test]
    fn results_come_in_the_order_of_the_jobs() {
        assert_eq!(side_by_side(50, |job| job * job), (0..50).map(|job| job * job).collect::<Vec<_>>());
        assert!(side_by_side(0, |job| job).is_empty());
    }

    #[test]
    fn jobs_run_on_threads_of_their_own_or_on_those_of_the_caller() {
        let seen = Mutex::new(BTreeSet::new());
        let note = |_| {
            seen.lock().unwrap().insert(rayon::current_num_threads());
        };
        side_by_side(4, note);
        ThreadPoolBuilder::new().num_threads(3).build().unwrap().install(|| side_by_side(4, note));
        let cores = std::thread::available_parallelism().unwrap().get();
        assert_eq!(seen.into_inner().unwrap(), BTreeSet::from([3, cores]));
    }
}
