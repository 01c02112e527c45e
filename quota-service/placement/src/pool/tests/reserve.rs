//! Tasks that would starve behind others that come later.

use super::*;

const HOUR_S: i64 = vocab::SECONDS_PER_HOUR;

/// HP on a whole node for three hours each, one more every 90 minutes: of two nodes, one is free at times, but never both.
/// Answers after how many hours `gang` starts.
fn starts_behind_a_stream(pool: &mut Pool, gang: &Request, hours: i64) -> Option<i64> {
    let mut ends: Vec<(i64, String)> = Vec::new();
    let name = gang.gang.task.clone();
    for step in 0..hours * 2 {
        let now = step * HOUR_S / 2;
        let over: Vec<String> = ends.extract_if(.., |(end, _)| *end <= now).map(|(_, task)| task).collect();
        let mut reports: Vec<Report> =
            over.iter().map(|of| pool.handle(at(now), &Command::Finish { task: task(of) }).0).collect();
        if step == 1 {
            reports.push(pool.handle(at(now), &Command::Submit(gang.clone())).0);
        }
        if step % 3 == 0 {
            reports.push(submit(pool, now, &format!("single-{step}"), TaskClass::Hp, 8, None));
        }
        reports.push(pool.pass(at(now)));
        for one in reports.iter().flat_map(started) {
            if one == name.as_str() {
                return Some(step / 2);
            }
            ends.push((now + 3 * HOUR_S, one.to_owned()));
        }
    }
    None
}

#[test]
fn an_hp_gang_does_not_starve_behind_a_stream_of_single_node_tasks() {
    let mut pool = pool(2, PoolRules::default());
    let gang = request("gang", TaskClass::Hp, GpuRequest::Whole(8), 2, None);
    let after = starts_behind_a_stream(&mut pool, &gang, 200);
    assert!(after.is_some_and(|hours| hours <= 6), "it started after {after:?} hours");
}

#[test]
fn a_large_spot_task_does_not_starve_behind_small_ones_within_the_quota() {
    let mut pool = Pool::new(reserving("gfs", 1, 3_600), PoolRules::default());
    (0..2).for_each(|number| pool.handle(at(0), &add(number)).1.unwrap());
    pool.handle(at(0), &limits(8)).1.unwrap();
    let (mut ends, mut begun) = (Vec::new(), None);
    for step in 0..400_i64 {
        let now = step * HOUR_S / 2;
        let over: Vec<String> = ends.extract_if(.., |(end, _)| *end <= now).map(|(_, task)| task).collect();
        let mut reports: Vec<Report> =
            over.iter().map(|of: &String| pool.handle(at(now), &Command::Finish { task: task(of) }).0).collect();
        if step == 1 {
            reports.push(submit(&mut pool, now, "large", TaskClass::Spot, 8, Some(1)));
        }
        reports.push(submit(&mut pool, now, &format!("small-{step}"), TaskClass::Spot, 2, Some(1)));
        reports.push(pool.pass(at(now)));
        for one in reports.iter().flat_map(started) {
            if one == "large" {
                begun.get_or_insert(step / 2);
            }
            ends.push((now + 4 * HOUR_S, one.to_owned()));
        }
    }
    assert!(begun.is_some_and(|hours| hours <= 24), "it started after {begun:?} hours");
}

/// Two nodes: HP holds six GPUs of the first and eight of the second, and a gang of 2 × 8 has waited long enough.
fn waiting_gang() -> Pool {
    let mut pool = pool(2, PoolRules::default());
    pool.handle(at(0), &limits(16)).1.unwrap();
    for (name, gpus) in [("a", 8), ("b", 6)] {
        submit(&mut pool, 0, name, TaskClass::Hp, gpus, None);
    }
    let gang = request("gang", TaskClass::Hp, GpuRequest::Whole(8), 2, None);
    pool.handle(at(HOUR_S), &Command::Submit(Request { submitted: at(HOUR_S), ..gang })).1.unwrap();
    pool.pass(at(2 * HOUR_S));
    pool
}

#[test]
fn a_reservation_names_its_nodes_and_when_it_may_start() {
    let mut pool = waiting_gang();
    let Some(WaitReason::Reserved { refusal, reservation }) = pool.why_it_waits(&task("gang")) else {
        panic!("{:?}", pool.why_it_waits(&task("gang")))
    };
    assert_eq!(refusal.code(), "held_by_hp");
    assert_eq!((reservation.nodes.clone(), reservation.expected_start), (vec![node(0), node(1)], at(4 * HOUR_S)));
    let message = reservation.to_string();
    assert!(message.starts_with("reserved: nodes node-0, node-1, expected start 2023-"), "{message}");
}

#[test]
fn hp_that_comes_later_is_held_back_by_name_and_spot_goes_on_using_the_nodes() {
    let mut pool = waiting_gang();
    submit(&mut pool, 2 * HOUR_S, "later", TaskClass::Hp, 1, None);
    assert_eq!(pool.why_it_waits(&task("later")), Some(WaitReason::HeldBack { by: task("gang") }));
    submit(&mut pool, 2 * HOUR_S, "wide", TaskClass::Hp, 8, None);
    assert!(matches!(pool.why_it_waits(&task("wide")), Some(WaitReason::Refused(_))), "it would wait anyway");
    assert_eq!(started(&submit(&mut pool, 2 * HOUR_S, "spot", TaskClass::Spot, 1, None)), ["spot"], "at will");
    pool.handle(at(3 * HOUR_S), &Command::Finish { task: task("a") }).1.unwrap();
    let (report, _) = pool.handle(at(4 * HOUR_S), &Command::Finish { task: task("b") });
    assert_eq!((started(&report), report.consequences.cuts.len()), (vec!["gang"], 1), "it evicts the spot task");
}

#[test]
fn what_was_kept_is_free_again_when_the_task_that_waits_is_deleted() {
    let mut pool = waiting_gang();
    submit(&mut pool, 2 * HOUR_S, "later", TaskClass::Hp, 1, None);
    let (report, _) = pool.handle(at(2 * HOUR_S), &Command::Delete { task: task("gang") });
    assert_eq!(started(&report), ["later"]);
}

#[test]
fn before_its_time_and_without_heads_nobody_is_held_back() {
    let mut pool = waiting_gang();
    let settings = Policy::GFS.reservations;
    let early = at(HOUR_S + i64::from(settings.hp_after_s) - 1);
    let mut young =
        Pool::restore(&Snapshot { at: early, ..pool.snapshot() }, Policy::GFS, PoolRules::default()).unwrap();
    let later = request("later", TaskClass::Hp, GpuRequest::Whole(1), 1, None);
    assert!(matches!(young.decide(&later.gang, None), crate::Decision::Start { .. }), "it has not waited long enough");
    assert!(matches!(pool.decide(&later.gang, None), crate::Decision::Wait(_)));
    let policy = Policy { reservations: ReservationSettings::NONE, ..Policy::GFS };
    let mut without = Pool::restore(&pool.snapshot(), policy, PoolRules::default()).unwrap();
    assert!(matches!(without.decide(&later.gang, None), crate::Decision::Start { .. }), "none has a reservation");
}

#[test]
fn a_task_that_fits_never_keeps_nothing() {
    let mut pool = pool(2, PoolRules::default());
    let never = request("never", TaskClass::Hp, GpuRequest::Whole(8), 3, None);
    pool.handle(at(0), &Command::Submit(never)).1.unwrap();
    pool.pass(at(HOUR_S));
    assert_eq!(pool.reservation(&task("never")), None);
    assert_eq!(started(&submit(&mut pool, HOUR_S, "one", TaskClass::Hp, 1, None)), ["one"]);
}
