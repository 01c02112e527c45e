//! Promises and leases by hand, and what holds for every one of them.

use super::*;
use crate::rivals::elastic::Label;
use placement::elastic::Profile;
use proptest::prelude::*;
use std::sync::Arc;

const MINUTE_MS: i64 = 60_000;

fn job(number: u32, request: u32) -> ElasticJob {
    ElasticJob::fixed(JobNumber(number), Label::Batch, request, Arc::new(Profile::linear(16))).unwrap()
}

fn due(number: u32, request: u32, minute: i64) -> ElasticJob {
    job(number, request).due(minute * MINUTE_MS)
}

/// On a cluster of eight GPUs, times in minutes.
struct Eight(Chronus);

impl Eight {
    fn new() -> Self {
        Self(Chronus::new(8, LeaseSettings::default()))
    }

    fn arrive(&mut self, job: ElasticJob, work: i64, now: i64) {
        self.0.arrive(job, work * MINUTE_MS, now * MINUTE_MS);
    }

    /// The jobs that stop and start, where each job has so much left.
    fn replan<const N: usize>(&mut self, now: i64, left: [i64; N]) -> [Vec<u32>; 2] {
        let left = |number: JobNumber| (left[number.0 as usize] * MINUTE_MS) as f64;
        let changes = self.0.replan(now * MINUTE_MS, &left);
        [true, false].map(|stops| {
            let these = changes.iter().filter(|change| (change.to_gpus == 0) == stops);
            these.map(|change| change.job.0).collect()
        })
    }

    fn leave(&mut self, number: u32, now: i64) {
        self.0.leave(JobNumber(number), now * MINUTE_MS);
    }
}

#[test]
fn nobody_is_stopped_inside_a_lease_and_a_deadline_comes_before_the_shortest() {
    let mut eight = Eight::new();
    eight.arrive(job(0, 8), 60, 0);
    assert_eq!(eight.replan(0, [60]), [vec![], vec![0]]);
    eight.arrive(due(1, 8, 100), 30, 1);
    assert_eq!(eight.replan(1, [59, 30]), [Vec::<u32>::new(), Vec::new()], "its lease lasts");
    assert_eq!(eight.0.next_ms(), Some(5 * MINUTE_MS));
    assert_eq!(eight.replan(5, [55, 30]), [vec![0], vec![1]]);
    eight.arrive(job(2, 8), 1, 6);
    for now in [6, 10, 19] {
        assert_eq!(
            eight.replan(now, [55, 35 - now, 1]),
            [Vec::<u32>::new(), Vec::new()],
            "with a promise a lease is longer"
        );
    }
    assert_eq!(eight.0.next_ms(), Some(20 * MINUTE_MS));
    assert_eq!(eight.replan(20, [55, 15, 1]), [Vec::<u32>::new(), Vec::new()], "and is renewed");
    eight.leave(1, 35);
    assert_eq!(eight.replan(35, [55, 0, 1]), [vec![], vec![2]], "of the others the shortest is first");
}

#[test]
fn who_cannot_be_promised_its_deadline_waits_with_the_others() {
    // The first job is promised the leases from 20 to 60 min, its last ones: 20 min are left for the second one until its
    // deadline.
    for (work, first) in [(20, 1), (21, 0)] {
        let mut eight = Eight::new();
        eight.arrive(due(0, 8, 60), 40, 0);
        eight.arrive(due(1, 8, 25), work, 0);
        eight.arrive(job(2, 8), 19, 0);
        assert_eq!(eight.replan(0, [40, work, 19]), [vec![], vec![first]], "{work} min");
        eight.leave(0, 1);
        eight.leave(first, 1);
        assert_eq!(eight.replan(1, [0, work, 19]), [vec![], vec![2]], "{work} min");
    }
    let mut eight = Eight::new();
    eight.arrive(due(0, 9, 1_000), 1, 0);
    assert_eq!((eight.replan(0, [1]), eight.0.next_ms()), ([Vec::<u32>::new(), Vec::new()], None), "it will never fit");
}

#[test]
fn who_cannot_meet_its_deadline_any_more_is_one_of_the_others() {
    for (left, first) in [(20, 0), (21, 1)] {
        let mut eight = Eight::new();
        eight.arrive(due(0, 8, 40), 40, 0);
        eight.arrive(job(1, 8), 19, 0);
        assert_eq!(eight.replan(0, [40, 19]), [vec![], vec![0]]);
        let expected = if first == 0 { [Vec::<u32>::new(), Vec::new()] } else { [vec![0], vec![1]] };
        assert_eq!(eight.replan(20, [left, 19]), expected, "{left} min are left until 40");
    }
}

/// Minutes of its coming, its work, and its deadline where it has one, after its coming.
type Line = (u32, i64, i64, Option<i64>);

/// Plays jobs to their end: which were promised, when each ended, and every change.
fn played(gpus: u32, lines: &[Line]) -> (Vec<bool>, Vec<i64>, Vec<(i64, Change)>) {
    let mut chronus = Chronus::new(gpus, LeaseSettings::default());
    let (mut left, mut runs) = (vec![0; lines.len()], vec![false; lines.len()]);
    let (mut promised, mut ends, mut changes) = (vec![false; lines.len()], vec![0; lines.len()], Vec::new());
    let mut now = 0;
    loop {
        for (index, (request, at, work, until)) in lines.iter().enumerate().filter(|(_, line)| line.1 == now) {
            let job = job(index as u32, *request);
            let job = if let Some(until) = until { job.due(now + until) } else { job };
            chronus.arrive(job, *work, *at);
            promised[index] = chronus.jobs[&JobNumber(index as u32)].promise.is_some();
            left[index] = *work;
        }
        for change in chronus.replan(now, &|number| left[number.0 as usize] as f64) {
            runs[change.job.0 as usize] = change.to_gpus > 0;
            changes.push((now, change));
        }
        let end = (0..lines.len()).filter(|index| runs[*index]).map(|index| now + left[index]).min();
        let arrival = lines.iter().map(|line| line.1).filter(|at| *at > now).min();
        let Some(next) = [end, arrival, chronus.next_ms()].into_iter().flatten().min() else { break };
        for index in (0..lines.len()).filter(|index| runs[*index]).collect::<Vec<_>>() {
            left[index] -= next - now;
            if left[index] == 0 {
                (runs[index], ends[index]) = (false, next);
                chronus.leave(JobNumber(index as u32), next);
            }
        }
        now = next;
    }
    (promised, ends, changes)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn every_promise_is_kept_every_lease_lasts_and_everybody_ends(
        lines in proptest::collection::vec(
            (1..9_u32, 0..200_i64, 1..120_i64, proptest::option::of(11..50_i64)), 1..40,
        ),
        gpus in 8..17_u32,
    ) {
        let lines: Vec<Line> = lines
            .into_iter()
            .map(|(request, at, work, tenths)| {
                (request, at * MINUTE_MS, work * MINUTE_MS, tenths.map(|tenths| work * MINUTE_MS * tenths / 10))
            })
            .collect();
        let (promised, ends, changes) = played(gpus, &lines);
        for (((_, at, work, until), end), is_promised) in lines.iter().zip(&ends).zip(&promised) {
            prop_assert!(*end >= at + work);
            prop_assert!(!is_promised || *end <= at + until.unwrap(), "{end}");
        }
        for (now, change) in changes.iter().filter(|(_, change)| change.to_gpus == 0) {
            let length = if promised[change.job.0 as usize] { 20 } else { 5 };
            prop_assert_eq!(now % (length * MINUTE_MS), 0, "{:?} at {}", change, now);
        }
        prop_assert_eq!(played(gpus, &lines).2, changes, "a replay repeats itself");
    }
}
