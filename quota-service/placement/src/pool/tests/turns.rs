//! Organizations as people see them, and ranks that are made only where something has changed.

use super::shares::{HOUR_S, ask, finish, pool_of, sharing, submit_of, weights};
use super::*;
use crate::pool::Standing;

fn of<'a>(standings: &'a [Standing], name: &str) -> &'a Standing {
    standings.iter().find(|one| one.organization.as_str() == name).unwrap()
}

#[test]
fn an_organization_that_holds_more_than_its_part_borrows_from_those_that_wait() {
    let mut pool = pool_of(2, 24, &[("vision", 3), ("audio", 2)]);
    pool.handle(at(0), &limits(8)).1.unwrap();
    for number in 0..6 {
        submit_of(&mut pool, 0, &format!("speech-{number}"), "speech", 1);
    }
    let before = pool.standings().unwrap();
    assert_eq!(
        (of(&before, "speech").fair_milli, of(&before, "speech").borrowed_milli()),
        (6_000, 0),
        "none else asks"
    );
    submit_of(&mut pool, 10, "wide", "vision", 4);
    pool.handle(at(10), &ask("long", "vision", 4, Some(8))).1.unwrap();
    let after = pool.standings().unwrap();
    let order: Vec<&str> = after.iter().map(|one| one.organization.as_str()).collect();
    assert_eq!(order, ["audio", "vision", "speech"], "the lowest level first, then by name");
    let [audio, vision, speech] = &after[..] else { panic!("{after:?}") };
    assert_eq!((audio.weight, audio.held_milli, audio.fair_milli, audio.level_milli_gpu_s), (2, 0, 0, 0));
    assert_eq!((vision.weight, vision.waiting_milli, vision.fair_milli), (3, 8_000, 4_500));
    assert_eq!(vision.waits_for, Some((task("wide"), MilliGpus::from_gpus(4))), "8 h are not offered");
    assert_eq!((speech.fair_milli, speech.borrowed_milli(), &speech.waits_for), (1_500, 4_500, &None));
    assert_eq!(Pool::new(Policy::GFS, PoolRules::default()).standings(), None);
}

#[test]
fn time_alone_changes_turns_and_starts_a_task_that_was_held_back() {
    let mut pool = pool_of(2, 1, &[]);
    pool.handle(at(0), &limits(8)).1.unwrap();
    submit_of(&mut pool, 0, "first", "audio", 4);
    finish(&mut pool, HOUR_S, "first");
    submit_of(&mut pool, HOUR_S, "video", "video", 4);
    submit_of(&mut pool, HOUR_S, "speech", "speech", 2);
    assert!(submit_of(&mut pool, HOUR_S, "wide", "speech", 4).is_empty(), "2 of 8 are left");
    assert!(submit_of(&mut pool, HOUR_S, "small", "audio", 1).is_empty(), "4 GPU hours lately are more than 2 GPUs");
    let minutes = (1..60).find(|minute| {
        let report = pool.pass(at(HOUR_S + minute * 60));
        started(&report) == ["small"]
    });
    // 4 GPU hours of the last hour are worth about 3 now, and fall; 2 GPUs count with 2, and rise by 2 an hour.
    assert!(matches!(minutes, Some(5..30)), "{minutes:?}: {:?}", pool.standings());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..config() })]

    /// Ranks are those made from scratch, and none that waits could start: neither refusals that are remembered nor an order that is
    /// kept hold a task back.
    #[test]
    fn what_waits_could_not_start_and_ranks_are_those_made_from_scratch(steps in steps(), heads in 0_u32..3) {
        let policy = sharing(reserving("gfs", heads, 900), Some(1));
        let mut pool = Pool::new(policy, PoolRules::default()).with_weights(weights(&[("a", 3), ("b", 1)]));
        let mut now = at(0);
        for (number, (seconds, step)) in steps.into_iter().enumerate() {
            now = now.plus_s(seconds);
            let command = command(&pool, number, &step, now);
            let _ = pool.handle(now, &command);
            let waiting: Vec<TaskId> = pool.waiting().map(|one| one.request.gang.task.clone()).collect();
            for task in waiting {
                prop_assert!(pool.why_it_waits(&task).is_some(), "{} could start: {:?}", task, pool.standings());
            }
            let kept = pool.standings();
            let mut fresh = pool.clone().with_weights(weights(&[("a", 3), ("b", 1)]));
            prop_assert_eq!(fresh.standings(), kept);
        }
    }
}
