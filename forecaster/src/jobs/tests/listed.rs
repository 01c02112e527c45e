//! Jobs that another scheduler lists.

use super::*;

/// So many jobs of 8 GPUs that run from 0 on.
fn steady(count: usize) -> Vec<HpJob> {
    (0..count).map(|number| job(number, (0, 0, 8, "vision"), Some(0))).collect()
}

/// A history of lists that are read every five minutes, from 0 on.
fn listing(until: i64, mut list: impl FnMut(i64) -> Vec<HpJob>) -> JobHistory {
    let mut history = JobHistory::default();
    (0..=until / RENEWAL_S)
        .for_each(|number| history.observe_listed(at(number * RENEWAL_S), &list(number * RENEWAL_S)));
    history
}

fn dropped(history: &JobHistory) -> Option<(usize, u64, i64)> {
    history.dropped().map(|dropped| (dropped.jobs, dropped.gpus_milli, dropped.since.get()))
}

#[test]
fn an_hour_has_every_job_that_was_listed_in_it_with_the_most_gpus_that_it_had() {
    let list = |now: i64| {
        let mut jobs = steady(1);
        if now < 3_600 {
            jobs[0].gpus_milli = 100_000;
        }
        // One within an hour, that waits and is withdrawn, and one across two hours.
        let short = (now / 3_600 * 10 + 1, 4_200..5_400);
        let across = (7, 6_600..7_800);
        for (number, from) in [short, across] {
            if from.contains(&now) {
                jobs.push(job(number as usize, (from.start, 0, 4, "speech"), (number == 7).then_some(from.start)));
            }
        }
        jobs
    };
    let history = listing(4 * 3_600, list);
    let of = |hour: i64| history.listed_milli(at(hour * 3_600));
    // Between 55 minutes and the hour it lost GPUs: it had all of them in the first hour, and maybe in the second.
    assert_eq!([of(0), of(1), of(2), of(3), of(4)], [Some(100_000), Some(108_000), Some(12_000), Some(8_000), None]);
    // One that left around the full hour counts in both, unless a list of the full hour lacks it.
    for (first, second) in [(0, Some(8_000)), (60, Some(16_000))] {
        let mut history = JobHistory::default();
        for now in (0..=7_500).step_by(300) {
            history.observe_listed(at(now + first - 3_600), &steady(if now + first < 7_200 { 2 } else { 1 }));
        }
        assert_eq!(history.listed_milli(at(0)), Some(16_000));
        (7_800..=11_100).step_by(300).for_each(|now| history.observe_listed(at(now + first - 3_600), &steady(1)));
        assert_eq!(history.listed_milli(at(3_600)), second, "{first}");
    }
}

#[test]
fn an_hour_that_was_not_watched_from_its_start_on_is_not_known() {
    let mut history = JobHistory::default();
    for now in (900..=9_000).step_by(300).chain((16_200..=22_000).step_by(300)) {
        history.observe_listed(at(now), &steady(2));
    }
    let known: Vec<i64> = (0..7).filter(|hour| history.listed_milli(at(hour * 3_600)).is_some()).collect();
    assert_eq!(known, [5], "nothing was read from half past two to half past four, and what was before is no measure");
    for now in (22_200..80_000).step_by(300) {
        history.observe_listed(at(now), &steady(2));
    }
    let known: Vec<i64> = (0..23).filter(|hour| history.listed_milli(at(hour * 3_600)).is_some()).collect();
    assert_eq!(known, [18, 19, 20, 21]);
}

#[test]
fn jobs_that_leave_together_stay_until_they_are_listed_again_or_have_ended_by_usage() {
    let part = |now: i64| if (6_000..6_600).contains(&now) { Vec::new() } else { steady(6) };
    assert_eq!(dropped(&listing(5_700, part)), None);
    let mut gone = listing(6_300, part);
    assert_eq!(dropped(&gone), Some((6, 48_000, 6_000)));
    assert_eq!((gone.seen().running, gone.seen().ended), (6, 0), "they run on");
    let back = listing(6_600, part);
    assert_eq!((dropped(&back), back.seen().ended), (None, 0), "nothing ended");
    gone.end_dropped(at(5_999));
    assert_eq!(dropped(&gone), Some((6, 48_000, 6_000)));
    gone.end_dropped(at(6_000));
    assert_eq!((dropped(&gone), gone.seen().running, gone.seen().ended), (None, 0, 6));
    // Three of six, or four of thirteen, may well have ended.
    for (of, left) in [(6, 3), (3, 0), (13, 9)] {
        let history = listing(6_300, |now| if now < 6_000 { steady(of) } else { steady(left) });
        assert_eq!((dropped(&history), history.seen().ended), (None, of - left), "{of}");
    }
}

#[test]
fn short_jobs_that_are_all_gone_with_the_next_list_have_ended() {
    // Each list has jobs of its own; two of eight GPUs run all the time.
    let list = |now: i64| {
        let short = |number: i64| job((now / 10 + number) as usize, (now - 60, 0, 8, "vision"), Some(now - 60));
        (10..20).map(short).chain(steady(2)).collect::<Vec<_>>()
    };
    let mut history = JobHistory::default();
    for now in (0..=9_000).step_by(300) {
        history.observe_listed(at(now), &list(now));
        assert_eq!(history.dropped(), None, "{now}");
    }
    assert!(history.seen().ended > 200);
}

#[test]
fn of_two_reporters_in_turn_all_jobs_count() {
    let (all, mut history) = (steady(10), JobHistory::default());
    for now in (3_600..=9_000).step_by(300) {
        let half = if now / RENEWAL_S % 2 == 0 { &all[..5] } else { &all[5..] };
        history.observe_listed(at(now), half);
    }
    assert_eq!(dropped(&history), Some((5, 40_000, 9_000)));
    assert_eq!((history.seen().running, history.seen().ended), (10, 0));
    // However often they leave and return, each counts once.
    assert_eq!(history.listed_milli(at(3_600)), Some(80_000));
    let again = JobHistory::from_bytes(&history.to_bytes()).unwrap();
    assert_eq!(again, history, "with those that the last list lacks");
}

#[test]
fn lists_of_an_older_program_are_read() {
    let list = hourly(2);
    let mut history = watched(&list, 86_400);
    let bytes = history.to_bytes();
    assert_eq!((bytes[4], JobHistory::from_bytes(&bytes)), (2, Ok(history.clone())), "and they read this one");
    history.observe_listed(at(86_700), &present(&list, 86_700));
    let bytes = history.to_bytes();
    assert_eq!((bytes[4], JobHistory::from_bytes(&bytes)), (3, Ok(history)));
}
