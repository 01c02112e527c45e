//! How long jobs may run whose duration nobody knows: as long as those of their organization did.

use std::collections::{BTreeMap, VecDeque};

/// The latest jobs that count, of each organization and of all.
const SAMPLE: usize = 512;
/// Before anything has finished. An hour: Lazer's table 1 has means of one to two hours.
const UNKNOWN_MS: i64 = vocab::SECONDS_PER_HOUR * 1_000;

/// Training times of jobs that have finished, oldest first, and by size.
#[derive(Debug, Clone, Default)]
struct Sample {
    latest: VecDeque<i64>,
    sorted: Vec<i64>,
}

impl Sample {
    fn add(&mut self, trained_ms: i64) {
        if self.latest.len() == SAMPLE
            && let Some(oldest) = self.latest.pop_front()
            && let Ok(at) = self.sorted.binary_search(&oldest)
        {
            self.sorted.remove(at);
        }
        self.latest.push_back(trained_ms);
        let at = self.sorted.partition_point(|known| *known < trained_ms);
        self.sorted.insert(at, trained_ms);
    }

    /// The median of those that ran longer.
    fn median_above(&self, trained_ms: i64) -> Option<i64> {
        let longer = &self.sorted[self.sorted.partition_point(|known| *known <= trained_ms)..];
        longer.get(longer.len() / 2).copied()
    }
}

/// Knowledge of durations.
#[derive(Debug, Clone, Default)]
pub struct History {
    organizations: BTreeMap<u32, Sample>,
    all: Sample,
}

impl History {
    /// A job of this organization has finished after so much training.
    pub fn add(&mut self, organization: u32, trained_ms: i64) {
        self.organizations.entry(organization).or_default().add(trained_ms);
        self.all.add(trained_ms);
    }

    /// The remaining time of a job that has trained so long: the median of its organization's jobs that ran longer, of all jobs
    /// where there is none, and as long again where nobody ran longer.
    #[must_use]
    pub fn remaining_ms(&self, organization: u32, trained_ms: i64) -> i64 {
        let own = self.organizations.get(&organization).and_then(|sample| sample.median_above(trained_ms));
        let whole_ms = own.or_else(|| self.all.median_above(trained_ms));
        whole_ms.map_or(trained_ms.max(UNKNOWN_MS), |whole_ms| whole_ms - trained_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_is_as_long_as_the_median_of_those_of_its_organization_that_ran_longer() {
        let mut history = History::default();
        assert_eq!(history.remaining_ms(1, 0), UNKNOWN_MS, "nothing is known");
        for trained_ms in [10, 30, 20, 400, 50] {
            history.add(1, trained_ms);
        }
        history.add(2, 1_000);
        assert_eq!([0, 15, 45].map(|trained_ms| history.remaining_ms(1, trained_ms)), [30, 35, 355]);
        assert_eq!(history.remaining_ms(1, 500), 500, "only another organization's job ran longer");
        assert_eq!(history.remaining_ms(3, 0), 50, "an organization without jobs is as all are");
        assert_eq!(history.remaining_ms(1, 5_000_000), 5_000_000, "nobody ran so long: as long again");
    }

    #[test]
    fn what_is_old_is_forgotten() {
        let mut history = History::default();
        (0..SAMPLE).for_each(|_| history.add(1, 10));
        assert_eq!(history.remaining_ms(1, 0), 10);
        (0..SAMPLE).for_each(|_| history.add(1, 70));
        assert_eq!((history.remaining_ms(1, 0), history.all.sorted.len()), (70, SAMPLE));
    }
}
