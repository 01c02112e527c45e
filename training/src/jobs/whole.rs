//! Whether lists of jobs make up the usage: bounds of a list that holds another cluster's jobs, or those of another time, say nothing.

use super::{ClusterJobs, EPOCH, PoolJobs};
use command_line::print_notice;
use datasets::{HourRange, Panel};
use forecaster::scores::actual_peak_gpus;
use vocab::{HorizonHours, PoolId};

/// Parts of the usage that a whole list may need: waits and other sources move it, another list or epoch by far more.
const WHOLE: std::ops::RangeInclusive<f64> = 0.5..=2.0;

/// The jobs, where they make up the usage over some hours; else none, with a notice.
#[must_use]
pub fn whole<'a>(jobs: &'a ClusterJobs, panel: &Panel, hours: HourRange) -> Option<&'a ClusterJobs> {
    if jobs.is_empty() {
        return None;
    }
    let fault = unlike_usage(jobs, panel, hours);
    if let Some(why) = &fault {
        print_notice(format_args!("note: {why}; bounds with jobs are not scored"));
    }
    fault.is_none().then_some(jobs)
}

/// Why jobs cannot be those of the cluster over some hours; `None` where they may be, or where there are none.
#[must_use]
pub fn unlike_usage(jobs: &ClusterJobs, panel: &Panel, hours: HourRange) -> Option<String> {
    let peaks_gpus = |jobs: &PoolJobs| jobs.hourly_peaks_gpus(hours).into_iter().map(Some).collect();
    let peaks_gpus: Vec<_> = jobs.iter().map(|(pool, jobs)| (pool, peaks_gpus(jobs))).collect();
    let part = part_of_usage(&peaks_gpus, panel, hours).filter(|part| !WHOLE.contains(part))?;
    Some(format!(
        "from {hours} the HP jobs of --jobs need {part:.2} times the GPUs of the usage: check that the lists hold all HP jobs of the \
         cluster, each once and at its time ({EPOCH})"
    ))
}

/// Why minutes with these peaks cannot be those of a pool over some hours; `None` where they may be.
#[must_use]
pub fn unlike_minutes(peaks_gpus: &[Option<f64>], panel: &Panel, pool: &PoolId, hours: HourRange) -> Option<String> {
    let part = part_of_usage(&[(pool, peaks_gpus.to_vec())], panel, hours).filter(|part| !WHOLE.contains(part))?;
    Some(format!(
        "from {hours} the peaks of --minutes are {part:.2} times the GPUs of the usage: give the files of all organizations of the cluster, \
         and of no other one"
    ))
}

/// GPUs at the peaks of some hours, by those of the usage in the same hours; none where that has none.
fn part_of_usage(peaks_gpus: &[(&PoolId, Vec<Option<f64>>)], panel: &Panel, hours: HourRange) -> Option<f64> {
    let (mut listed_gpus, mut used_gpus) = (0.0, 0.0);
    for (pool, peaks_gpus) in peaks_gpus {
        for (hour, peak_gpus) in hours.iter().zip(peaks_gpus) {
            let measured_gpus = actual_peak_gpus(panel, pool, hour, HorizonHours::ONE);
            if let (Some(peak_gpus), Some(measured_gpus)) = (peak_gpus, measured_gpus) {
                listed_gpus += peak_gpus;
                used_gpus += measured_gpus;
            }
        }
    }
    (used_gpus > 0.0).then(|| listed_gpus / used_gpus)
}

impl PoolJobs {
    /// The most GPUs that its jobs need at once in each of some hours.
    fn hourly_peaks_gpus(&self, hours: HourRange) -> Vec<f64> {
        let (mut needed_milli, changes) = (0, self.changes());
        let mut changes = changes.into_iter().peekable();
        let mut of_hour = |hour: vocab::HourStart| {
            // A job that ends as the hour begins is not needed in it.
            while let Some((_, change)) = changes.next_if(|(at, _)| *at <= hour.instant()) {
                needed_milli += change;
            }
            let mut most = needed_milli;
            while let Some((_, change)) = changes.next_if(|(at, _)| *at < hour.plus_hours(1).instant()) {
                needed_milli += change;
                most = most.max(needed_milli);
            }
            most as f64 / 1_000.0
        };
        hours.iter().map(&mut of_hour).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::pool_jobs;
    use super::*;
    use vocab::HourStart;

    #[test]
    fn an_hour_needs_the_most_that_its_jobs_need_at_once() {
        let hour = |number: i64| HourStart::from_unix_s(0).unwrap().plus_hours(number);
        // Two after each other within the second hour; one from its end on, through the third and fourth.
        let jobs = pool_jobs(&[(0, 3_600, 8), (3_700, 300, 2), (4_100, 300, 5), (7_200, 5_000, 1)]);
        let hours = HourRange { from: hour(0), to: hour(5) };
        assert_eq!(jobs.hourly_peaks_gpus(hours), [8.0, 5.0, 1.0, 1.0, 0.0]);
        assert_eq!(jobs.hourly_peaks_gpus(HourRange { from: hour(3), to: hour(4) }), [1.0]);
    }
}
