//! Shares of a quota, and whose turn it is.

use super::*;
use proptest::prelude::*;

fn part(quota: u64, inside: u64, waiting: u64) -> Part {
    Part { quota, inside, waiting, ..Part::default() }
}

/// A part whose first job has so many GPUs and waits since then, with a smaller job beside it that came later.
fn first(part: Part, since: i64, gpus: u64) -> Part {
    Part { first: Some(First { since: UnixSeconds::new(since), gpus, is_passed: true }), ..part }
}

/// A part whose job of so many GPUs has the turn.
fn turn(part: Part, gpus: u64) -> Part {
    Part { turn: Some(gpus), ..part }
}

#[test]
fn an_idle_quota_is_shared_out_and_a_waiting_job_finds_it() {
    assert_eq!(shares(&[part(20, 0, 0), part(8, 0, 0)]), [12, 8]);
    assert_eq!(shares(&[part(12, 0, 0), part(12, 0, 0)]), [6, 6], "an hour is worth no more than four here");
    assert_eq!(shares(&[part(12, 0, 12), part(12, 0, 0)]), [12, 0]);
    assert_eq!(shares(&[part(12, 0, 12), part(12, 0, 12)]), [6, 6]);
    assert_eq!(shares(&[part(12, 3, 0), part(12, 0, 9)]), [3, 9]);
    assert_eq!(shares(&[part(10, 0, 0), part(6, 0, 0), part(2, 0, 0)]), [4, 4, 2]);
    assert_eq!(shares(&[]), [0; 0]);
}

#[test]
fn in_a_quota_that_has_fallen_nothing_begins_before_as_much_has_ended() {
    // Nine are held of four: 4 − 3 for an hour, and none for four hours.
    assert_eq!(shares(&[part(4, 6, 9), part(3, 3, 9)]), [1, 0]);
    assert_eq!(shares(&[part(0, 6, 9), part(0, 3, 9)]), [0, 0]);
    // Of four hours alone there is too much.
    assert_eq!(shares(&[part(20, 2, 0), part(3, 5, 9)])[1], 3);
}

#[test]
fn a_qos_beyond_its_part_leaves_the_gpus_of_ended_jobs_to_the_others() {
    // A queue for four hours held all before a job of two GPUs came.
    assert_eq!(shares(&[part(21, 0, 2), part(21, 20, 100)]), [1, 19]);
    assert_eq!(shares(&[part(21, 0, 2), part(21, 19, 100)]), [2, 19]);
    // With queues in both it comes to even parts, and stays there.
    assert_eq!(shares(&[part(20, 0, 50), part(20, 20, 50)]), [0, 10]);
    assert_eq!(shares(&[part(20, 6, 50), part(20, 14, 50)]), [6, 10]);
    assert_eq!(shares(&[part(20, 10, 50), part(20, 10, 50)]), [10, 10]);
    assert_eq!(shares(&[part(20, 0, 0), part(20, 20, 50)]), [0, 20], "nobody else waits");
}

#[test]
fn room_for_a_job_is_given_whole_or_not_at_all() {
    let small = |inside| part(12, inside, 90);
    // It waits for the ends of small jobs, in its own QOS and in others, and none of them is replaced.
    assert_eq!(shares(&[turn(part(12, 0, 12), 12), small(12)]), [0, 0]);
    assert_eq!(shares(&[turn(part(12, 0, 12), 12), small(3)]), [0, 0], "nine are there, and none is given");
    assert_eq!(shares(&[turn(part(12, 0, 12), 12), small(0)]), [12, 0]);
    // Beside eight of twelve four stay: two in each QOS, or as they end.
    assert_eq!(shares(&[turn(small(6), 8), small(6)]), [0, 2]);
    assert_eq!(shares(&[turn(small(6), 8), small(2)]), [0, 1]);
    assert_eq!(shares(&[turn(small(3), 8), small(1)]), [11, 1]);
    assert_eq!(shares(&[turn(small(2), 8), small(1)]), [10, 2], "the rest goes to others");
    assert_eq!(shares(&[turn(small(0), 8), small(4)]), [8, 4]);
    // A job that fits the part of its QOS takes nothing from others.
    assert_eq!(shares(&[turn(part(12, 0, 8), 2), small(0)]), [6, 6]);
    // One that fits no quota neither.
    assert_eq!(shares(&[turn(part(12, 0, 40), 40), small(0)]), [6, 6]);
}

#[test]
fn room_for_a_job_of_longer_hours_counts_against_both_quotas() {
    let small = |inside| part(20, inside, 90);
    let large = |inside| turn(part(8, inside, 90), 6);
    assert_eq!(shares(&[small(14), large(2)]), [12, 0]);
    assert_eq!(shares(&[small(12), large(2)]), [12, 8]);
    assert_eq!(shares(&[small(4), large(6)]), [12, 0], "six of eight: it waits for its own QOS alone");
}

#[test]
fn a_part_of_no_use_to_its_jobs_goes_to_the_others() {
    let large = |inside| Part { least: 8, ..part(12, inside, 16) };
    assert_eq!(shares(&[large(0), part(12, 6, 90)]), [0, 12]);
    assert_eq!(shares(&[large(8), part(12, 4, 90)]), [6, 4], "it runs, and the next one has no part");
    assert_eq!(shares(&[Part { least: 6, ..large(0) }, part(12, 6, 90)]), [6, 6]);
}

#[test]
fn turns_go_round_among_qos_with_nothing_and_jobs_passed_by_smaller_ones() {
    let (earlier, later) = (first(part(12, 0, 8), 100, 8), first(part(12, 0, 8), 200, 8));
    assert_eq!((next(&[earlier, later], &[0, 0]), next(&[later, earlier], &[0, 0])), (Some(0), Some(1)));
    assert_eq!(next(&[earlier, later], &[1, 0]), Some(1), "each has its turn after the other, whichever waits longer");
    // A QOS that fills its part: a small job follows another one, and a large one would starve.
    let full = |gpus| first(part(12, 6, 90), 50, gpus);
    let not_passed = |part: Part| Part { first: part.first.map(|first| First { is_passed: false, ..first }), ..part };
    assert_eq!(next(&[not_passed(full(8)), part(12, 6, 90)], &[0, 0]), None);
    assert_eq!(next(&[full(8), part(12, 6, 90)], &[0, 0]), Some(0));
    assert_eq!(next(&[not_passed(earlier), part(12, 6, 90)], &[0, 0]), Some(0), "nothing of it runs");
    assert_eq!(next(&[first(part(12, 0, 40), 1, 40), part(12, 6, 90)], &[0, 0]), None, "it fits no quota");
}

proptest! {
    #![proptest_config(ProptestConfig { rng_seed: proptest::test_runner::RngSeed::Fixed(29), ..ProptestConfig::default() })]

    #[test]
    fn after_any_ends_and_starts_no_hours_have_more_than_their_quota(
        parts in prop::collection::vec((0u64..400, 0u64..100, 0u64..100, 0u64..20), 1..5),
        turn in prop::option::of((0usize..5, 1u64..90)),
        ends in prop::collection::vec(0u64..100, 5),
    ) {
        let mut least = u64::MAX;
        let mut parts: Vec<Part> = parts.into_iter().map(|(quota, inside, waiting, smallest)| {
            least = least.min(quota);
            Part { least: smallest, ..part(least, inside, waiting) }
        }).collect();
        if let Some(part) = turn.and_then(|(at, _)| parts.get_mut(at)) {
            part.turn = turn.map(|(_, gpus)| gpus);
        }
        let shares = shares(&parts);
        // Some jobs end, and each QOS is filled up to its limit, where it is below.
        let after: Vec<u64> = parts.iter().zip(&shares).zip(&ends).map(|((part, share), ends)| {
            part.inside.saturating_sub(*ends).max(*share)
        }).collect();
        for (at, part) in parts.iter().enumerate() {
            let begins = (at..parts.len()).any(|one| shares[one] > parts[one].inside.saturating_sub(ends[one]));
            prop_assert!(!begins || after[at..].iter().sum::<u64>() <= part.quota, "{shares:?} {after:?}");
        }
        // Room is whole, or there is none.
        for (part, share) in parts.iter().zip(&shares) {
            let is_whole = |gpus| *share >= part.inside + gpus || *share <= part.inside;
            prop_assert!(part.turn.is_none_or(|gpus| gpus > part.quota || is_whole(gpus)), "{shares:?}");
        }
        // All of the quota is given where nobody holds more than a part.
        if parts.iter().zip(&shares).all(|(part, share)| part.inside <= *share) {
            prop_assert_eq!(shares.iter().sum::<u64>(), parts[0].quota);
        }
    }
}
