//! Spot runs as slurmctld has shown them: the accounting does not say which of them had notice of an eviction.

use slurm_records::queue::QueuedJob;
use slurm_records::{Job, Phase};
use std::collections::{BTreeMap, BTreeSet};
use vocab::UnixSeconds;

/// One run: the id of the job, and its start.
pub type Run = (u32, UnixSeconds);

/// Notices are known for so long, in seconds: an outcome of them is reported within a day.
const KNOWN_S: i64 = vocab::SECONDS_PER_DAY + vocab::SECONDS_PER_HOUR;
/// Notices that are known at most.
const MOST: usize = 100_000;
/// A look shows how a run ended where it was asked for so long after the second of the end, in seconds: the end may be later in that
/// second, and the clocks of the machines differ a little.
const LATER_S: i64 = 2;

/// The run of a record of the accounting; none of a wait.
#[must_use]
pub fn run_of(job: &Job) -> Option<Run> {
    Some((job.id, job.started?))
}

/// Spot runs of one look.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Look {
    /// When the look was asked for: what it shows was so then, or later.
    pub asked_at: Option<UnixSeconds>,
    /// Runs that held their GPUs.
    pub holding: BTreeSet<Run>,
    /// Times of notices of evictions, also of runs that have ended since: slurmctld shows these for its `MinJobAge`.
    pub notices: BTreeMap<Run, UnixSeconds>,
}

impl Look {
    /// Adds a spot job.
    pub fn add(&mut self, job: &QueuedJob) {
        let Some(started) = job.started.filter(|_| job.phase() != Phase::Waits) else { return };
        let run = (job.id, started);
        if job.phase() == Phase::Holds {
            self.holding.insert(run);
        }
        // A notice of before the start was for the run before.
        if let Some(at) = job.evicted.filter(|at| *at >= started) {
            self.notices.insert(run, at);
        }
    }
}

/// The last look, and the notices of all looks of a day.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sightings {
    last: Look,
    notices: BTreeMap<Run, UnixSeconds>,
}

impl Sightings {
    /// Adds a look.
    pub fn add(&mut self, look: &Look) {
        self.notices.extend(&look.notices);
        if let Some(now) = look.asked_at {
            self.notices.retain(|_, at| now.since_s(*at) < KNOWN_S);
        }
        while self.notices.len() > MOST {
            // The oldest job.
            self.notices.pop_first();
        }
        self.last = look.clone();
    }

    /// Whether a run had notice of an eviction.
    #[must_use]
    pub fn had_notice(&self, run: Run) -> bool {
        self.notices.contains_key(&run)
    }

    /// Whether slurmctld showed the run with its GPUs at this time or after it.
    #[must_use]
    pub fn holds_since(&self, run: Run, time: UnixSeconds) -> bool {
        self.last.asked_at.is_some_and(|asked| asked >= time) && self.last.holding.contains(&run)
    }

    /// Whether there was a look after a run had ended in this second: it shows a notice that the run had.
    #[must_use]
    pub fn is_after(&self, ended: UnixSeconds) -> bool {
        self.last.asked_at.is_some_and(|asked| asked.since_s(ended) >= LATER_S)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use slurm_records::queue::Queue;

    const START: i64 = 1_795_590_000;

    fn look(at: i64, jobs: &[(u32, &str, i64, i64)]) -> Look {
        let job = |(id, state, start, notice): &(u32, &str, i64, i64)| {
            format!(
                r#"{{"job_id":{id},"qos":"spot1h","job_state":["{state}"],"submit_time":{START},"start_time":{},
                "preempt_time":{},"tres_req_str":"gres/gpu:a100=1"}}"#,
                START + start,
                if *notice == 0 { 0 } else { START + notice }
            )
        };
        let jobs = jobs.iter().map(job).collect::<Vec<_>>().join(",");
        let text = format!(r#"{{"jobs":[{jobs}],"meta":{{"plugin":{{"data_parser":"v0.0.42"}}}}}}"#);
        let (queue, _) = Queue::read("squeue.json", text.as_bytes()).unwrap();
        let mut look = Look { asked_at: Some(UnixSeconds::new(START + at)), ..Look::default() };
        queue.jobs.iter().for_each(|job| look.add(job));
        look
    }

    #[test]
    fn notices_are_those_of_the_run_and_are_known_for_a_day_after_slurmctld_forgot_the_job() {
        let run = |id: u32, start: i64| (id, UnixSeconds::new(START + start));
        let mut sightings = Sightings::default();
        sightings.add(&look(
            100,
            &[
                (1, "COMPLETED", 10, 90),
                (2, "RUNNING", 10, 95),
                (3, "RUNNING", 50, 40),
                (4, "PENDING", 200, 90),
                (5, "RUNNING", 60, 0),
            ],
        ));
        let holds = |run: Run, since: i64| sightings.holds_since(run, UnixSeconds::new(START + since));
        assert_eq!([holds(run(2, 10), 100), holds(run(2, 10), 101), holds(run(2, 11), 100)], [true, false, false]);
        assert_eq!([holds(run(1, 10), 100), holds(run(4, 200), 100)], [false; 2], "it ended, and it waits");
        let known = [run(1, 10), run(2, 10), run(3, 50), run(4, 200), run(5, 60)];
        assert_eq!(known.map(|run| sightings.had_notice(run)), [true, true, false, false, false]);
        sightings.add(&look(90 + KNOWN_S - 1, &[]));
        assert!(sightings.had_notice(run(1, 10)) && !sightings.is_after(UnixSeconds::new(START + 90 + KNOWN_S - 2)));
        sightings.add(&look(90 + KNOWN_S, &[]));
        assert!(!sightings.had_notice(run(1, 10)) && sightings.had_notice(run(2, 10)));
    }

    #[test]
    fn notices_are_bounded_and_those_of_the_oldest_jobs_go_first() {
        let mut sightings = Sightings::default();
        let at = UnixSeconds::new(START);
        let notices = (1..=MOST as u32 + 2).map(|id| ((id, at), at)).collect();
        sightings.add(&Look { asked_at: Some(at), notices, ..Look::default() });
        assert_eq!(
            (sightings.notices.len(), sightings.had_notice((2, at)), sightings.had_notice((3, at))),
            (MOST, false, true)
        );
    }
}
