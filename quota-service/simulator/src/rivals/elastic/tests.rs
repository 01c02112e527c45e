//! Allotments counted by hand, and what holds for every one of them.

use super::queues::{Feedback, Learned, Queue, Run, Thresholds};
use super::*;
use crate::rivals::leases::LeaseSettings;
use placement::elastic::Profile;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Two queues: one before the other, and what nobody asked for.
const URGENT: Standing = Standing { min: 0, request: 0, beyond: None, in_turn: true };
const EARLY: Standing = Standing { min: 1, request: 1, beyond: Some(4), in_turn: false };
const LATE: Standing = Standing { min: 2, request: 2, beyond: Some(4), in_turn: false };

fn linear(number: u32, request: u32) -> ElasticJob {
    ElasticJob::elastic(JobNumber(number), Label::Batch, request, Arc::new(Profile::linear(64))).unwrap()
}

fn fixed(number: u32, request: u32) -> ElasticJob {
    ElasticJob::fixed(JobNumber(number), Label::Batch, request, Arc::new(Profile::linear(64))).unwrap()
}

/// Linear up to two GPUs; each one after that is worth a tenth.
fn bent(number: u32, request: u32) -> ElasticJob {
    let speeds = (1..=64).map(|gpus| if gpus < 3 { f64::from(gpus) } else { 2.0 + 0.1 * f64::from(gpus - 2) });
    let profile = Profile::new(speeds.collect()).unwrap();
    ElasticJob::elastic(JobNumber(number), Label::Batch, request, Arc::new(profile)).unwrap()
}

fn cluster(gpus: u32, jobs: impl IntoIterator<Item = (ElasticJob, Standing)>) -> Allotments {
    let mut all = Allotments::new(gpus);
    for (job, standing) in jobs {
        all.add(job, standing);
    }
    all.settle();
    all
}

fn held<const N: usize>(all: &Allotments) -> [u32; N] {
    std::array::from_fn(|number| all.gpus_of(JobNumber(number as u32)))
}

#[test]
fn linear_jobs_get_one_gpu_each_before_one_gets_two_and_nobody_more_than_twice_its_request() {
    assert_eq!(held(&cluster(7, [(linear(0, 4), EARLY), (linear(1, 4), EARLY), (linear(2, 1), EARLY)])), [3, 3, 1]);
    let all = cluster(20, [(linear(0, 4), EARLY), (linear(1, 4), EARLY), (linear(2, 1), EARLY)]);
    assert_eq!((held(&all), all.idle()), ([8, 8, 2], 2), "the loop ends though GPUs are left");
}

#[test]
fn what_gains_most_grows_first_and_what_gains_least_gives_first() {
    let mut all = cluster(8, [(linear(0, 4), EARLY), (bent(1, 4), EARLY)]);
    assert_eq!(held(&all), [4, 4], "requests come before what nobody asked for");
    all.add(linear(2, 3), URGENT);
    assert_eq!(
        all.settle(),
        [
            Change { job: JobNumber(0), from_gpus: 4, to_gpus: 3 },
            Change { job: JobNumber(1), from_gpus: 4, to_gpus: 2 },
            Change { job: JobNumber(2), from_gpus: 0, to_gpus: 3 },
        ],
        "the bent job gives the two GPUs that are worth a tenth, and of those that count in full the third of the linear one"
    );
}

#[test]
fn of_linear_jobs_the_largest_gives_first_and_nobody_is_stopped_while_another_has_two() {
    let mut all = cluster(13, [(linear(0, 8), LATE), (linear(1, 4), LATE), (linear(2, 1), LATE)]);
    assert_eq!(held(&all), [8, 4, 1]);
    all.add(linear(3, 5), URGENT);
    all.settle();
    assert_eq!(held(&all), [4, 3, 1, 5], "8 → 4, then 4 and 4 in turn, the later one first");
    all.add(linear(4, 5), URGENT);
    all.settle();
    assert_eq!(held(&all), [1, 1, 1, 5, 5]);
    all.add(linear(5, 9), URGENT);
    all.settle();
    assert_eq!((held(&all), all.idle()), ([0, 0, 0, 5, 5, 3], 0), "the loop ends though six more are wanted");
}

#[test]
fn a_less_urgent_job_gives_before_a_more_urgent_one_and_gets_it_back_after_it() {
    let mut all = cluster(12, [(linear(0, 2), LATE), (linear(1, 8), EARLY)]);
    assert_eq!(held(&all), [4, 8], "two are idle after both requests: who holds fewest gets them");
    all.add(linear(2, 4), URGENT);
    all.settle();
    assert_eq!(held(&all), [0, 8, 4], "first what nobody asked for, then the third queue");
    all.remove(JobNumber(2));
    all.settle();
    assert_eq!(held(&all), [4, 8, 0]);
}

#[test]
fn urgent_jobs_take_their_requests_in_turn_and_all_begin_before_one_has_its_own() {
    let turn = Standing { min: 0, request: 1, beyond: None, in_turn: true };
    let all = cluster(8, [(linear(0, 4), turn), (linear(1, 4), turn), (linear(2, 4), turn)]);
    assert_eq!(held(&all), [4, 3, 1]);
    let mut all = cluster(4, [(linear(0, 4), turn)]);
    all.add(linear(1, 4), turn);
    all.settle();
    assert_eq!(held(&all), [3, 1], "a first GPU comes before a fourth one");
    assert_eq!(all.settle(), [], "and nothing moves after that");
}

#[test]
fn a_job_that_is_not_elastic_holds_all_or_nothing() {
    let mut all = cluster(10, [(fixed(0, 4), LATE), (linear(1, 4), LATE), (fixed(2, 4), LATE)]);
    assert_eq!((held(&all), all.idle()), ([4, 2, 4], 0));
    all.add(fixed(3, 4), EARLY);
    all.settle();
    assert_eq!((held(&all), all.idle()), ([4, 2, 0, 4], 0), "one more of the elastic one is not enough, a block is");
    all.remove(JobNumber(3));
    all.add(fixed(4, 5), LATE);
    all.settle();
    assert_eq!(held(&all), [4, 2, 4, 0, 0], "who has the same right waits, and who fits passes it");
}

#[test]
fn a_gpu_that_was_never_held_counts_as_the_last_one_until_it_is_tried() {
    let known = cluster(6, [(bent(0, 2), EARLY), (linear(1, 2), EARLY)]);
    assert_eq!(held(&known), [2, 4]);
    let mut all = cluster(6, [(bent(0, 2).learning(), EARLY), (linear(1, 2), EARLY)]);
    assert_eq!(held(&all), [3, 3], "the third GPU of the first job had to be tried to be known");
    all.settle();
    assert_eq!(held(&all), [2, 4], "what it turned out to be worth is given away");
}

#[test]
fn what_is_no_job_is_refused() {
    let profile = || Arc::new(Profile::linear(4));
    let job = |gpus| ElasticJob::new(JobNumber(0), Label::Batch, gpus, profile()).unwrap_err().to_string();
    assert_eq!(job([0, 1, 2]), "0 to 2 GPUs, and 1 asked for: write 1 ≤ minimum ≤ request ≤ maximum");
    assert!(job([2, 1, 2]).starts_with("2 to 2 GPUs") && job([1, 3, 2]).starts_with("1 to 2 GPUs"));
    assert_eq!(job([1, 5, 9]), "the profile ends at 4 GPUs, the job asks for 5: measure it up to the request at least");
    assert_eq!(
        ElasticJob::elastic(JobNumber(0), Label::Batch, 3, profile()).unwrap().max(),
        4,
        "no further than measured"
    );
}

#[test]
fn thresholds_are_twice_the_means_of_what_finished_and_move_every_thousand_jobs() {
    let mut learned = Learned::default();
    assert_eq!(Learned::FIRST.first_ms / 60_000, 54, "27.4 minutes twice");
    let run = |label, minutes: i64, failed| Run { label, executed_ms: minutes * 60_000, failed };
    for one in 1..=1_000 {
        let (label, minutes) = if one <= 250 { (Label::Interactive, 20) } else { (Label::Batch, 100) };
        assert_eq!(learned.finished(run(label, minutes, false)), one == 1_000);
    }
    let minutes = |learned: &Learned| {
        let Thresholds { first_ms, second_ms, third_ms } = learned.thresholds();
        [first_ms, second_ms, third_ms].map(|ms| ms / 60_000)
    };
    assert_eq!(minutes(&learned), [40, 160, 200], "no failure is known: the mean of all, 80, stands in");
    for _ in 0..1_000 {
        learned.finished(run(Label::Batch, 30, true));
    }
    assert_eq!(minutes(&learned)[1], 60, "failures are");
}

#[test]
fn a_job_sinks_by_its_run_time_and_rises_by_its_time_fully_stripped() {
    let thresholds = Thresholds { first_ms: 10, second_ms: 30, third_ms: 50 };
    let mut job = Feedback::new(Label::Interactive, 0);
    job.hold(true, 5);
    assert_eq!((job.queue(), job.due_ms(&thresholds)), (Queue::First, Some(15)));
    assert!(!job.cross(&thresholds, 14) && job.cross(&thresholds, 15));
    assert_eq!((job.queue(), job.due_ms(&thresholds)), (Queue::Second, Some(35)), "what it ran before counts");
    job.hold(false, 25);
    assert_eq!(job.due_ms(&thresholds), None, "who waits in the second queue neither sinks nor rises");
    job.hold(true, 100);
    assert!(job.cross(&thresholds, 110));
    assert_eq!((job.queue(), job.due_ms(&thresholds)), (Queue::Third, None), "partial execution is no waiting");
    job.hold(false, 120);
    assert_eq!(job.due_ms(&thresholds), Some(170));
    assert!(job.cross(&thresholds, 170));
    assert_eq!((job.queue(), job.run(false).executed_ms), (Queue::Second, 40));
    job.hold(true, 170);
    assert_eq!(job.due_ms(&thresholds), Some(200), "it starts from zero there, else it would sink at once");
}

/// Something that happens in a cluster.
#[derive(Debug, Clone)]
enum Event {
    Come { request: u32, shape: u8, interactive: bool },
    Go { which: usize },
    Pass { ms: i64 },
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let come = (1..=9_u32, 0..4_u8, any::<bool>()).prop_map(|(request, shape, interactive)| Event::Come {
        request,
        shape,
        interactive,
    });
    let pass = (1..20_000_000_i64).prop_map(|ms| Event::Pass { ms });
    let one = prop_oneof![3 => come, 1 => any::<usize>().prop_map(|which| Event::Go { which }), 2 => pass];
    proptest::collection::vec(one, 1..60)
}

fn job_of(number: u32, request: u32, shape: u8, interactive: bool) -> ElasticJob {
    let label = if interactive { Label::Interactive } else { Label::Batch };
    let profile = if shape == 1 {
        // Up and down: no order of gains may be relied on.
        Profile::new((1..=18).map(|gpus| f64::from(gpus) + f64::from(gpus * 7 % 5)).collect()).unwrap()
    } else {
        Profile::linear(18)
    };
    let number = JobNumber(number);
    match shape {
        2 => ElasticJob::fixed(number, label, request, Arc::new(profile)).unwrap(),
        3 => ElasticJob::new(number, label, [request.div_ceil(2), request, request + 1], Arc::new(profile)).unwrap(),
        _ => ElasticJob::elastic(number, label, request, Arc::new(profile)).unwrap(),
    }
}

/// Every allotment keeps to the cluster and to the jobs, every change begins where the last one ended, and a plan that is
/// made again changes nothing.
fn assert_sound(scheduler: &mut dyn Scheduler, gpus: u32, events: &[Event]) {
    let (mut now_ms, mut alive) = (0, BTreeMap::<JobNumber, (ElasticJob, u32)>::new());
    // Nobody is faster than another: what is left is what the request says.
    let mut works = BTreeMap::new();
    for (event, number) in events.iter().zip(0..) {
        match *event {
            Event::Come { request, shape, interactive } => {
                let job = job_of(number, request, shape, interactive);
                let job = if interactive { job.due(now_ms + i64::from(request) * 900_000) } else { job };
                alive.insert(job.number(), (job.clone(), 0));
                works.insert(job.number(), f64::from(request) * 1_000.0);
                scheduler.arrive(job, i64::from(request) * 1_000, now_ms);
            }
            Event::Go { which } => {
                let Some(number) = alive.keys().nth(which % alive.len().max(1)).copied() else { continue };
                alive.remove(&number);
                scheduler.leave(number, now_ms);
            }
            Event::Pass { ms } => {
                now_ms = scheduler.next_ms().map_or(now_ms + ms, |due| due.clamp(now_ms, now_ms + ms));
            }
        }
        for change in scheduler.replan(now_ms, &|number| works[&number]) {
            let (job, held) = alive.get_mut(&change.job).unwrap();
            assert_eq!(*held, change.from_gpus);
            assert!(change.to_gpus == 0 || (job.min()..=job.max()).contains(&change.to_gpus), "{change:?}");
            *held = change.to_gpus;
        }
        let used: u32 = alive.values().map(|(_, held)| held).sum();
        assert!(used <= gpus, "{used} of {gpus}");
        assert_eq!(scheduler.replan(now_ms, &|number| works[&number]), []);
        let wants = |(job, held): &&(ElasticJob, u32)| *held == 0 && job.request() <= gpus - used;
        assert_eq!(alive.values().find(wants), None, "a whole request fits and waits");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn nobody_holds_more_than_there_is_or_than_it_may_and_every_plan_comes_to_an_end(
        events in events(), gpus in 1..24_u32,
    ) {
        assert_sound(&mut Cornucopia::new(gpus), gpus, &events);
        assert_sound(&mut Flow::new(gpus), gpus, &events);
        assert_sound(&mut ElasticSrtf::new(gpus), gpus, &events);
        assert_sound(&mut Srtf::new(gpus), gpus, &events);
        assert_sound(&mut Tiresias::new(gpus, TiresiasRules::default()), gpus, &events);
        assert_sound(&mut Chronus::new(gpus, LeaseSettings::default()), gpus, &events);
    }

    #[test]
    fn interactive_jobs_lose_nothing_but_to_one_that_has_not_begun(
        requests in proptest::collection::vec((1..9_u32, any::<bool>()), 1..30), gpus in 1..24_u32,
    ) {
        let mut cornucopia = Cornucopia::new(gpus);
        let mut interactive = Vec::new();
        for ((request, is_interactive), number) in requests.into_iter().zip(0..) {
            if is_interactive {
                interactive.push(JobNumber(number));
            }
            cornucopia.arrive(job_of(number, request, 0, is_interactive), 1, 0);
            let changes = cornucopia.replan(0, &|_| 1.0);
            let lost = changes.iter().find(|one| interactive.contains(&one.job) && one.to_gpus < one.from_gpus);
            prop_assert!(lost.is_none_or(|one| one.to_gpus > 0 && is_interactive), "{:?}", lost);
        }
    }
}
