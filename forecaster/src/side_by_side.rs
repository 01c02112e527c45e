//! Work on all cores whose result is the same on any number of them.

use rayon::iter::{IntoParallelIterator, ParallelIterator};

/// Runs jobs on all cores; results come in the order of the jobs, and no job reads the result of another.
pub fn side_by_side<T: Send>(jobs: usize, each: impl Fn(usize) -> T + Sync + Send) -> Vec<T> {
    (0..jobs).into_par_iter().map(each).collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn results_come_in_the_order_of_the_jobs() {
        assert_eq!(super::side_by_side(50, |job| job * job), (0..50).map(|job| job * job).collect::<Vec<_>>());
        assert!(super::side_by_side(0, |job| job).is_empty());
    }
}
