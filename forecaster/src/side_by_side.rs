//! Work on all cores whose result is the same on any number of them.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Runs jobs on all cores; results come in the order of the jobs, and each job knows nothing of the others.
pub fn side_by_side<T: Send>(jobs: usize, each: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let next = AtomicUsize::new(0);
    let done: Mutex<Vec<Option<T>>> = Mutex::new((0..jobs).map(|_| None).collect());
    let work = || {
        loop {
            let job = next.fetch_add(1, Ordering::Relaxed);
            if job >= jobs {
                break;
            }
            let result = each(job);
            done.lock().expect("no thread panics while it holds this")[job] = Some(result);
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    std::thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(work))));
    let done = done.into_inner().expect("no thread panicked");
    done.into_iter().map(|result| result.expect("every job was done")).collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn results_come_in_the_order_of_the_jobs() {
        assert_eq!(super::side_by_side(50, |job| job * job), (0..50).map(|job| job * job).collect::<Vec<_>>());
        assert!(super::side_by_side(0, |job| job).is_empty());
    }
}
