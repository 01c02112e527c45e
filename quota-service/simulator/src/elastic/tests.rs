//! Small traces by hand.

use super::run::{Costs, Course, Job, run};
use super::{scheduler, summary};
use crate::rivals::elastic::{ElasticJob, JobNumber, Label};
use placement::elastic::Profile;
use std::sync::Arc;

/// GPUs asked for, second of submission, seconds on that many GPUs; i: interactive, b: batch, f: batch that is not elastic.
fn jobs(lines: &[(char, u32, i64, i64)]) -> Vec<Job> {
    let profile = Arc::new(Profile::linear(64));
    let job = |((kind, request, submitted_s, duration_s), number): (&(char, u32, i64, i64), u32)| {
        let label = if *kind == 'i' { Label::Interactive } else { Label::Batch };
        let make = if *kind == 'f' { ElasticJob::fixed } else { ElasticJob::elastic };
        Job {
            job: make(JobNumber(number), label, *request, profile.clone()).unwrap(),
            submitted_ms: submitted_s * 1_000,
            duration_ms: duration_s * 1_000,
            mislabelled: false,
        }
    };
    lines.iter().zip(0..).map(job).collect()
}

fn played(policy: &str, gpus: u32, jobs: &[Job], costs: Costs) -> Vec<Course> {
    run(jobs, gpus, costs, scheduler(policy, gpus).unwrap())
}

fn ends_s(courses: &[Course]) -> Vec<i64> {
    courses.iter().map(|course| course.ended_ms.unwrap() / 1_000).collect()
}

#[test]
fn a_partial_preemption_keeps_a_job_alive_that_a_full_one_stops() {
    let free = Costs::default();
    let elastic = jobs(&[('b', 8, 0, 100), ('i', 2, 50, 20)]);
    let courses = played("cornucopia", 8, &elastic, free);
    // 50 s on 8 GPUs, 20 s on 6 of them, and what is left, 35 of 100 s, on 8.
    assert_eq!(ends_s(&courses), [105, 70]);
    assert_eq!((courses[0].shrunk, courses[0].stopped, courses[0].stripped_ms), (1, 0, 0));
    let rigid = jobs(&[('f', 8, 0, 100), ('i', 2, 50, 20)]);
    let courses = played("cornucopia", 8, &rigid, free);
    assert_eq!(ends_s(&courses), [120, 70]);
    assert_eq!((courses[0].shrunk, courses[0].stopped, courses[0].stripped_ms), (0, 1, 20_000));
}

#[test]
fn under_every_policy_the_work_is_the_same_and_so_are_the_gpu_hours_of_linear_jobs() {
    let lines: Vec<_> = (0..60)
        .map(|index: i64| {
            let kind = ['b', 'i', 'f'][(index % 3) as usize];
            (kind, 1 + (index * 7 % 8) as u32, index * 13, 60 + index * 97 % 500)
        })
        .collect();
    let jobs = jobs(&lines);
    let work_ms: i64 = jobs.iter().map(|job| job.duration_ms * i64::from(job.job.request())).sum();
    for policy in ["cornucopia", "srtf", "srtf-elastic", "tiresias", "elasticflow", "chronus"] {
        let courses = played(policy, 16, &jobs, Costs::default());
        let used_ms: i64 = courses.iter().map(|course| course.gpu_ms).sum();
        // Ends are whole milliseconds: each job may hold its GPUs for less than one too long.
        assert!((work_ms..work_ms + 16 * 60).contains(&used_ms), "{policy}: {used_ms} of {work_ms}");
        assert!(courses == played(policy, 16, &jobs, Costs::default()), "{policy}: a replay repeats itself");
        let sums = summary(&jobs, &courses, 0.0);
        assert_eq!((sums.finished, sums.unfinished), (60, 0), "{policy}");
    }
}

#[test]
fn idle_gpus_speed_up_who_is_elastic() {
    let two = jobs(&[('b', 2, 0, 100)]);
    for (policy, end_s) in [
        ("cornucopia", 50),
        ("srtf-elastic", 50),
        ("elasticflow", 50),
        ("srtf", 100),
        ("tiresias", 100),
        ("chronus", 100),
    ] {
        assert_eq!(ends_s(&played(policy, 8, &two, Costs::default())), [end_s], "{policy}");
    }
}

#[test]
fn the_shortest_comes_first_and_shares_only_where_it_is_elastic() {
    let three = jobs(&[('b', 4, 0, 100), ('b', 3, 10, 10), ('b', 1, 10, 500)]);
    // The second job takes three GPUs at 10 s. The first one stops, and the third takes what is left; or the first goes on
    // there, 87.5 s are left of it at 20 s, and the third one ends on two GPUs.
    assert_eq!(ends_s(&played("srtf", 4, &three, Costs::default())), [110, 20, 600]);
    assert_eq!(ends_s(&played("srtf-elastic", 4, &three, Costs::default())), [107, 20, 357]);
}

#[test]
fn tiresias_lets_those_go_first_who_had_little() {
    // The first job leaves the first queue at 3,250 GPU seconds and waits for the second one.
    let two = jobs(&[('b', 1, 0, 4_000), ('b', 1, 100, 1_000)]);
    let courses = played("tiresias", 1, &two, Costs::default());
    assert_eq!(ends_s(&courses), [5_000, 4_250]);
    assert_eq!((courses[0].stopped, courses[0].stripped_ms), (1, 1_000_000));
}

#[test]
fn chronus_keeps_a_deadline_at_the_cost_of_who_is_shorter_and_stops_nobody_inside_a_lease() {
    let lines = [('b', 8, 0, 3_600), ('b', 8, 60, 1_800), ('b', 8, 360, 60)];
    let free = Costs::default();
    // At five minutes the first one makes room for the shorter one, and that one at ten for the shortest.
    assert_eq!(ends_s(&played("chronus", 8, &jobs(&lines), free)), [5_460, 2_160, 660]);
    let mut with_deadline = jobs(&lines);
    with_deadline[1].job = with_deadline[1].job.clone().due(3_000_000);
    let courses = played("chronus", 8, &with_deadline, free);
    assert_eq!(ends_s(&courses), [5_460, 2_100, 2_160]);
    assert_eq!(courses.iter().map(|course| course.stopped).collect::<Vec<_>>(), [1, 0, 0]);
    let sums = summary(&with_deadline, &courses, 0.0);
    assert_eq!((sums.deadlines, sums.deadlines_met), (1, 1));
    // A second less cannot be promised: the first lease that may be begins at 20 minutes.
    with_deadline[1].job = with_deadline[1].job.clone().due(2_999_000);
    assert_eq!(ends_s(&played("chronus", 8, &with_deadline, free)), [5_460, 2_160, 660]);
}

#[test]
fn what_changes_cost_is_time() {
    let costs = Costs { resize_ms: 10_000, ramp_step_ms: 0 };
    let elastic = jobs(&[('b', 8, 0, 100), ('i', 2, 50, 20)]);
    // It shrinks and grows once each, and stands still for ten seconds then: 50 + 10 s on 6 GPUs, 42.5 s on 8 after 10.
    assert_eq!(played("cornucopia", 8, &elastic, costs)[0].ended_ms, Some(122_500));
    let costs = Costs { resize_ms: 0, ramp_step_ms: 2_000 };
    let one = jobs(&[('b', 2, 0, 100)]);
    // Two seconds each on 1, 2 and 3 GPUs: 1.5, 1 and 0.5 of the speed on two are missing, 6 s of work on them, 3 s on 4.
    assert_eq!(played("cornucopia", 4, &one, costs)[0].ended_ms, Some(53_000));
}

#[test]
fn interactive_figures_are_of_those_who_are() {
    let mut three = jobs(&[('b', 4, 0, 100), ('i', 4, 10, 30), ('i', 4, 20, 30)]);
    three[2].mislabelled = true;
    let courses = played("srtf", 4, &three, Costs::default());
    assert_eq!(ends_s(&courses), [160, 40, 70]);
    let sums = summary(&three, &courses, 0.0);
    assert_eq!(
        (sums.interactive_queue_mean_s, sums.labelled_queue_mean_s, sums.labelled_start_mean_s),
        (0.0, 10.0, 10.0)
    );
    assert_eq!((sums.jct_mean_s, sums.jct_median_s, sums.jct_p95_s), (80.0, 50.0, 160.0));
    assert_eq!((sums.preemptions_partial, sums.preemptions_full), (0, 1));
    assert_eq!(sums.jct_inflation_mean, (1.6 + 1.0 + 50.0 / 30.0) / 3.0);
}
