//! From jobs to hourly demand, exactly: the peak of a step function within each hour.

use std::collections::BTreeMap;
use vocab::{
    ClusterName, HourError, HourStart, MilliGpus, Organization, PoolId, SECONDS_PER_HOUR, SeriesId, Task, TaskClass,
    UnixSeconds, UsageRow,
};

/// Why tasks cannot be swept.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SweepError {
    #[error(transparent)]
    Hour(#[from] HourError),
    #[error("the demand of {series} at {at} exceeds the limit of {max} GPUs: check the GPUs of its jobs", max = MilliGpus::MOST_STATED_GPUS)]
    TooLarge { series: SeriesId, at: UnixSeconds },
}

/// Changes of demand in thousandths of a GPU, summed by second.
type Steps = BTreeMap<i64, i64>;

/// Hourly HP demand (running + pending, peak within the hour and level at its end) of each organization and, as `*`, of each pool.
///
/// A task counts from its submission until it has run for its duration, as if it never waited: the trace holds no more.
/// The last hour is that of the last submission of any task; later hours would show tasks ending and none arriving.
/// Tasks without a duration count until then. Every series has a row for every hour.
///
/// # Errors
/// A time lies outside the years of the grid, or a sum is too large.
pub fn hourly_hp_demand(cluster: &ClusterName, tasks: &[Task]) -> Result<Vec<UsageRow>, SweepError> {
    let submitted = || tasks.iter().map(|task| task.submitted);
    let (Some(first), Some(last)) = (submitted().min(), submitted().max()) else {
        return Ok(Vec::new());
    };
    let mut sweep = Sweep::new(cluster.clone(), first.hour()?, last.hour()?.plus_hours(1));
    for task in tasks {
        sweep.add(task);
    }
    sweep.rows()
}

/// The same, a task at a time, over hours that are known beforehand.
#[derive(Debug)]
pub struct Sweep {
    cluster: ClusterName,
    from: HourStart,
    to: HourStart,
    steps: BTreeMap<SeriesId, Steps>,
}

impl Sweep {
    /// Hours from `from` and before `to`.
    #[must_use]
    pub const fn new(cluster: ClusterName, from: HourStart, to: HourStart) -> Self {
        Self { cluster, from, to, steps: BTreeMap::new() }
    }

    /// Adds the demand of a task.
    pub fn add(&mut self, task: &Task) {
        if task.class != TaskClass::Hp {
            return;
        }
        let pool = PoolId { cluster: self.cluster.clone(), gpu_model: task.gpu_model.clone() };
        for organization in [task.organization.clone(), Organization::pool_peak()] {
            add(self.steps.entry(SeriesId { pool: pool.clone(), organization }).or_default(), task, self.to);
        }
    }

    /// # Errors
    /// A sum is too large.
    pub fn rows(self) -> Result<Vec<UsageRow>, SweepError> {
        let mut rows = Vec::new();
        for (series, steps) in self.steps {
            sweep(&series, &steps, self.from, self.to, &mut rows)?;
        }
        Ok(rows)
    }
}

fn add(steps: &mut Steps, task: &Task, to: HourStart) {
    let start = task.submitted.get();
    let end = task.duration_s.map_or(to.unix_s(), |duration_s| start.saturating_add_unsigned(duration_s));
    if end > start {
        let milli = task.gpus().milli() as i64;
        *steps.entry(start).or_default() += milli;
        *steps.entry(end).or_default() -= milli;
    }
}

/// Walks the steps once. A level that ends in the very second in which another begins is never added to it.
fn sweep(
    series: &SeriesId,
    steps: &Steps,
    from: HourStart,
    to: HourStart,
    rows: &mut Vec<UsageRow>,
) -> Result<(), SweepError> {
    let mut level_milli = 0_i64;
    let mut pending = steps.iter().peekable();
    for index in 0..to.hours_since(from) {
        let hour = from.plus_hours(index);
        let mut peak_milli = i64::MIN;
        let mut until = hour.unix_s();
        while let Some((_, change)) = pending.next_if(|(second, _)| **second <= until) {
            level_milli += change;
        }
        peak_milli = peak_milli.max(level_milli);
        until += SECONDS_PER_HOUR;
        while let Some((_, change)) = pending.next_if(|(second, _)| **second < until) {
            level_milli += change;
            peak_milli = peak_milli.max(level_milli);
        }
        let amount = |milli: i64| {
            let stated =
                u64::try_from(milli).ok().and_then(|milli| MilliGpus::stated(MilliGpus::from_milli(milli)).ok());
            stated.ok_or_else(|| SweepError::TooLarge { series: series.clone(), at: hour.instant() })
        };
        let (demand, at_end) = (amount(peak_milli)?, Some(amount(level_milli)?));
        rows.push(UsageRow { series: series.clone(), hour, demand, at_end });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use vocab::{GpuModel, TaskId};

    fn task(organization: &str, class: TaskClass, start: i64, duration_s: u64, milli: u64, pods: u32) -> Task {
        Task::new(
            TaskId::parse("t").unwrap(),
            Organization::parse(organization).unwrap(),
            GpuModel::parse("A10").unwrap(),
            class,
            UnixSeconds::new(start),
            Some(duration_s),
            MilliGpus::from_milli(milli).unwrap(),
            pods,
        )
        .unwrap()
    }

    fn demand(tasks: &[Task], organization: &str) -> Vec<String> {
        let rows = hourly_hp_demand(&ClusterName::parse("gfs").unwrap(), tasks).unwrap();
        let of = |row: &&UsageRow| row.series.organization.as_str() == organization;
        rows.iter().filter(of).map(|row| row.demand.to_string()).collect()
    }

    #[test]
    fn the_peak_within_the_hour_counts_fractions_and_every_pod() {
        let tasks = [
            task("a", TaskClass::Hp, 600, 600, 500, 3),
            task("b", TaskClass::Hp, 900, 9_000, 1_000, 2),
            task("a", TaskClass::Spot, 900, 9_000, 8_000, 4),
            task("b", TaskClass::Hp, 8_000, 60, 250, 1),
        ];
        assert_eq!(demand(&tasks, "a"), ["1.500", "0.000", "0.000"]);
        assert_eq!(demand(&tasks, "b"), ["2.000", "2.000", "2.250"]);
        assert_eq!(demand(&tasks, "*"), ["3.500", "2.000", "2.250"]);
    }

    #[test]
    fn the_peak_of_the_pool_is_less_than_the_sum_of_peaks_when_they_come_apart() {
        let tasks = [task("a", TaskClass::Hp, 0, 600, 4_000, 1), task("b", TaskClass::Hp, 600, 600, 3_000, 1)];
        assert_eq!(demand(&tasks, "*"), ["4.000"], "one ends in the second in which the other begins");
    }

    #[test]
    fn the_end_of_an_hour_is_what_is_left_at_its_last_second() {
        let tasks = [
            task("a", TaskClass::Hp, 600, 600, 4_000, 1),
            task("a", TaskClass::Hp, 900, 2_700, 2_000, 1),
            task("a", TaskClass::Hp, 1_000, 2_601, 1_000, 1),
            task("a", TaskClass::Hp, 7_199, 10, 500, 1),
        ];
        let rows = hourly_hp_demand(&ClusterName::parse("gfs").unwrap(), &tasks).unwrap();
        let milli = |row: &UsageRow| [row.demand, row.at_end.unwrap()].map(MilliGpus::milli);
        let expected = [[7_000, 3_000], [1_000, 500]];
        assert_eq!(rows.iter().map(milli).collect::<Vec<_>>(), [expected, expected].concat(), "the pool's and a's");
    }

    #[test]
    fn jobs_that_exceed_together_what_may_be_stated_are_refused_with_series_and_hour() {
        let tasks = ["a", "b"].map(|organization| task(organization, TaskClass::Hp, 3_600, 60, 6_000_000_000, 1));
        let fault = hourly_hp_demand(&ClusterName::parse("gfs").unwrap(), &tasks).unwrap_err().to_string();
        let expected = "the demand of gfs:A10:* at 1970-01-01T01:00:00Z exceeds the limit of 10000000 GPUs";
        assert!(fault.starts_with(expected), "{fault}");
    }

    #[test]
    fn a_task_that_ends_on_the_hour_is_not_in_that_hour() {
        let tasks = [task("a", TaskClass::Hp, 0, 3_600, 4_000, 1), task("a", TaskClass::Hp, 7_000, 100, 1_000, 1)];
        assert_eq!(demand(&tasks, "a"), ["4.000", "1.000"]);
    }

    proptest! {
        #![proptest_config(ProptestConfig { rng_seed: proptest::test_runner::RngSeed::Fixed(13), ..ProptestConfig::default() })]

        #[test]
        fn the_sweep_agrees_with_looking_at_every_second(
            jobs in prop::collection::vec((0_i64..10_000, 0_u64..9_000, 1_u64..2_000, 1_u32..4), 1..12),
        ) {
            let tasks: Vec<_> = jobs.iter().map(|&(s, d, g, p)| task("a", TaskClass::Hp, s, d, g, p)).collect();
            let last = tasks.iter().map(|task| task.submitted.get()).max().unwrap() / 3_600;
            let first = tasks.iter().map(|task| task.submitted.get()).min().unwrap() / 3_600;
            let at = |second: i64| -> u64 {
                let alive = |t: &&Task| t.submitted.get() <= second && second < t.submitted.get() + t.duration_s.unwrap() as i64;
                tasks.iter().filter(alive).map(|task| task.gpus().milli()).sum()
            };
            let slow: Vec<_> = (first..=last)
                .map(|hour| (hour * 3_600..(hour + 1) * 3_600).map(at).max().unwrap())
                .map(|milli| MilliGpus::from_milli(milli).unwrap().to_string())
                .collect();
            prop_assert_eq!(demand(&tasks, "a"), slow);
        }
    }
}
