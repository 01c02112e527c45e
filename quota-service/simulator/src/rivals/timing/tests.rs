//! Policies of timing on pictures of a few jobs, and properties on any.

use super::*;
use placement::timing::predictor;
use proptest::prelude::*;

fn ask(gpus: u32, duration_s: i64) -> Ask {
    Ask { gpus, organization: 1, duration_ms: Some(duration_s * 1_000), load_ms: 40_000, save_ms: 8_000 }
}

/// The course of a run, and its load in vain.
#[derive(Debug, Default)]
struct Played {
    scheduler: Option<Scheduler>,
    course: Vec<String>,
    futile_ms: i64,
    preemptions: usize,
    /// By job: when it was done, and how long it was put off at most at once.
    done_ms: Vec<Option<i64>>,
    deferrals_ms: Vec<i64>,
}

impl Played {
    fn note(&mut self, now_ms: i64, action: &Action) {
        let s = now_ms as f64 / 1_000.0;
        match action {
            Action::Start { job, run } => {
                self.course.push(format!("{s} start {} from {}", job.0, run.loads_from_ms as f64 / 1_000.0));
            }
            Action::Pause { job, phase, loads_from_ms, .. } => {
                self.course.push(format!("{s} pause {} {phase:?}", job.0));
                self.preemptions += 1;
                self.futile_ms += if *phase == Phase::Loading { now_ms - loads_from_ms } else { 0 };
            }
            Action::Defer { job, deferral_ms, .. } => {
                self.course.push(format!("{s} defer {} by {}", job.0, *deferral_ms as f64 / 1_000.0));
                self.deferrals_ms.push(*deferral_ms);
            }
        }
    }
}

/// Plays jobs, each with the millisecond at which it comes, in rising order.
fn play(policy: TimingPolicy, gpus: u32, jobs: &[(i64, Ask)], seed: u64) -> Played {
    let (mut played, mut scheduler) = (Played::default(), Scheduler::new(policy, gpus, seed));
    let mut finish_ms: Vec<Option<i64>> = vec![None; jobs.len()];
    let mut trained_ms = vec![0; jobs.len()];
    played.done_ms = vec![None; jobs.len()];
    let (mut now_ms, mut coming) = (-1, 0);
    loop {
        let finish = finish_ms.iter().enumerate().filter_map(|(job, at_ms)| Some((*at_ms.as_ref()?, 0, job)));
        let submit = jobs.get(coming).map(|(at_ms, _)| (*at_ms, 1, coming));
        let wake = scheduler.next_wake_ms(now_ms).map(|at_ms| (at_ms, 2, 0));
        let Some((at_ms, kind, job)) = finish.chain(submit).chain(wake).min() else { break };
        assert!(at_ms >= now_ms, "time does not run back");
        now_ms = at_ms;
        let event = match kind {
            0 => {
                finish_ms[job] = None;
                played.done_ms[job] = Some(now_ms);
                Event::Finished(JobNumber(job as u32))
            }
            1 => {
                coming += 1;
                Event::Submitted(jobs[job].1)
            }
            _ => Event::Woken,
        };
        scheduler.learn(now_ms);
        for action in scheduler.handle(now_ms, event) {
            played.note(now_ms, &action);
            match action {
                Action::Start { job, run } => {
                    let job = job.0 as usize;
                    let left_ms = jobs[job].1.duration_ms.unwrap() - trained_ms[job];
                    finish_ms[job] = Some(run.trains_from_ms + left_ms);
                }
                Action::Pause { job, trained_ms: trained, .. } => {
                    finish_ms[job.0 as usize] = None;
                    trained_ms[job.0 as usize] = trained;
                }
                Action::Defer { .. } => {}
            }
        }
    }
    played.scheduler = Some(scheduler);
    played
}

fn policy(name: &str) -> TimingPolicy {
    TimingPolicy::parse(name).unwrap()
}

/// Jobs 1 and 2 are each shorter than what runs; job 2 comes while job 1 would load.
fn in_vain() -> Vec<(i64, Ask)> {
    vec![(0, ask(1, 10_000)), (100_000, ask(1, 5_000)), (120_000, ask(1, 1_000))]
}

#[test]
fn srtf_loads_in_vain_where_a_shorter_job_comes_while_one_loads() {
    let played = play(policy("srtf"), 1, &in_vain(), 1);
    let course = [
        "0 start 0 from 0",
        "100 pause 0 Training",
        "100 start 1 from 108",
        "120 pause 1 Loading",
        "120 start 2 from 120",
        "1160 start 1 from 1160",
        "6200 start 0 from 6200",
    ];
    assert_eq!(played.course, course);
    assert_eq!(played.futile_ms, 12_000, "of 108 s to 120 s");
}

#[test]
fn lazer_waits_and_nothing_is_loaded_in_vain() {
    let played = play(policy("lazer"), 1, &in_vain(), 4);
    assert_eq!((played.futile_ms, played.deferrals_ms.len()), (0, 1), "{:#?}", played.course);
    assert_eq!(played.done_ms.iter().flatten().count(), 3);
    let sjf = play(policy("sjf"), 1, &in_vain(), 1);
    assert_eq!((sjf.preemptions, sjf.course[1].as_str()), (0, "10040 start 2 from 10040"));
}

#[test]
fn a_load_that_would_be_cut_off_is_waited_for() {
    // The second job loads on the GPU that the first one left when the third comes.
    let jobs = [(0, ask(1, 100)), (10_000, ask(1, 9_000)), (150_000, ask(1, 50))];
    let played = play(policy("lazer"), 1, &jobs, 4);
    assert_eq!(played.course[1], "140 start 1 from 140");
    let deferral_ms = played.deferrals_ms[0];
    assert!((30_000..=100_000).contains(&deferral_ms), "{:#?}", played.course);
    assert_eq!(played.futile_ms, 0);
}

#[test]
fn a_deferred_newcomer_takes_what_falls_idle_before_its_deferral_ends() {
    // Job 1 ends 5 s after job 2 has come; as printed the GPU stays idle until the deferral is over.
    let jobs = [(0, ask(1, 9_000)), (0, ask(1, 160)), (195_000, ask(1, 50))];
    let printed = play(policy("lazer-paper"), 2, &jobs, 4);
    let ours = play(policy("lazer"), 2, &jobs, 4);
    assert!(ours.deferrals_ms[0] > 5_000 && printed.deferrals_ms[0] > 5_000, "{ours:?}");
    assert_eq!(ours.course[3], "200 start 2 from 200");
    assert_ne!(printed.course[3], ours.course[3]);
    assert_eq!((ours.preemptions, printed.preemptions), (0, 0));
}

#[test]
fn intervals_wait_for_their_turn_and_idle_gpus_start_at_once_otherwise() {
    let jobs = [(1_000, ask(1, 100)), (2_000, ask(1, 50))];
    for (name, first_s) in [("srtf-60", "60"), ("srtf-360", "360"), ("srtf-600", "600"), ("lazer", "1"), ("sjf", "1")] {
        let played = play(policy(name), 4, &jobs, 1);
        assert!(played.course[0].starts_with(&format!("{first_s} start ")), "{name}: {:?}", played.course);
        assert_eq!(played.preemptions, 0);
    }
}

#[test]
fn tiresias_prefers_who_has_had_little_and_lifts_who_starves() {
    // 3,250 GPU-seconds after it began to train the first job gives way to the second.
    let played = play(policy("tiresias"), 1, &[(0, ask(1, 40_000)), (10_000, ask(1, 3_000))], 1);
    assert_eq!(played.course[1..3], ["3290 pause 0 Training", "3290 start 1 from 3298"].map(str::to_owned));
    // Jobs of the first queue come and come; after eight times what it had, the long one is the last of them.
    let short = (1..40).map(|number| (number * 1_000_000, ask(1, 960)));
    let jobs: Vec<_> = [(0, ask(1, 40_000))].into_iter().chain(short).collect();
    let played = play(policy("tiresias"), 1, &jobs, 1);
    let again =
        played.course.iter().position(|line| line.contains(" start 0 from") && !line.starts_with("0 ")).unwrap();
    let at_s: f64 = played.course[again].split(' ').next().unwrap().parse().unwrap();
    assert!((29_290.0..33_000.0).contains(&at_s), "{}", played.course[again]);
    assert_eq!(played.done_ms.iter().flatten().count(), 40);
}

#[test]
fn unknown_durations_come_from_the_organizations_history() {
    let unknown = |organization, gpus| Ask { organization, duration_ms: None, ..ask(gpus, 0) };
    let mut scheduler = Scheduler::new(policy("sjf"), 1, 1);
    let of = |actions: &[Action]| match actions {
        [Action::Start { job, run }] => (job.0, run.trains_from_ms),
        other => panic!("{other:?}"),
    };
    // Organization 1 trains for 10 s, organization 2 for 1,000 s.
    let (mut now_ms, mut done) = (0, 0);
    for (organization, trains_ms) in [(1, 10_000), (2, 1_000_000)] {
        let (_, from_ms) = of(&scheduler.handle(now_ms, Event::Submitted(unknown(organization, 1))));
        now_ms = from_ms + trains_ms;
        assert!(scheduler.handle(now_ms, Event::Finished(JobNumber(done))).is_empty());
        done += 1;
    }
    let (running, _) = of(&scheduler.handle(now_ms, Event::Submitted(unknown(1, 1))));
    assert!(scheduler.handle(now_ms, Event::Submitted(unknown(2, 1))).is_empty());
    assert!(scheduler.handle(now_ms, Event::Submitted(unknown(1, 1))).is_empty());
    let then = scheduler.handle(now_ms + 50_000, Event::Finished(JobNumber(running)));
    assert_eq!(of(&then).0, 4, "its organization's jobs are short");
}

fn jobs() -> impl Strategy<Value = Vec<(i64, Ask)>> {
    let job = (0_i64..90_000, 1_u32..9, 1_i64..4_000, 0_i64..70_000, 0_i64..12_000);
    proptest::collection::vec(job, 1..60).prop_map(|drawn| {
        let mut at_ms = 0;
        let timed = drawn.into_iter().map(|(gap_ms, gpus, duration_s, load_ms, save_ms)| {
            at_ms += gap_ms;
            (at_ms, Ask { load_ms, save_ms, ..ask(gpus, duration_s) })
        });
        timed.collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// The scheduler itself asserts that GPUs are given once and that nobody is paused in vain.
    #[test]
    fn every_job_is_done_under_every_policy_and_deferrals_end(jobs in jobs(), seed in 0_u64..100) {
        for (name, policy) in TimingPolicy::ALL {
            let played = play(policy, 8, &jobs, seed);
            prop_assert_eq!(played.done_ms.iter().flatten().count(), jobs.len(), "{}", name);
            for ((submitted_ms, ask), done_ms) in jobs.iter().zip(&played.done_ms) {
                prop_assert!(done_ms.unwrap() - submitted_ms >= ask.load_ms + ask.duration_ms.unwrap());
            }
            let scheduler = played.scheduler.unwrap();
            prop_assert_eq!((scheduler.lazer().deferred(), scheduler.gpus.available()), (0, 8));
            prop_assert!(played.deferrals_ms.iter().all(|ms| (0..=predictor::DEFERRAL_MOST_MS).contains(ms)));
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_run(jobs in jobs(), seed in 0_u64..100) {
        for name in ["lazer", "lazer-paper"] {
            prop_assert_eq!(play(policy(name), 8, &jobs, seed).course, play(policy(name), 8, &jobs, seed).course);
        }
    }
}
