//! A quota of several hours, shared out among limits that stand side by side. Pure.
//!
//! Jobs of `n` hours and longer may hold Q_n in all, so what QOS of `n` hours and longer get together has to stay within Q_n. Within
//! that each QOS has an even part of it, as far as its jobs hold and wait for so much; what is left goes to all alike. With no
//! job at all and Q_1 of at least twice Q_4 that is Q_1 − Q_4 for an hour and Q_4 for four.
//!
//! A QOS that holds more than its part, since others had nothing to run, is limited to its part: what ends there is not replaced, and
//! goes to those that wait. A job that is larger than the part of its QOS gets the room for it, that of the QOS in which nothing has begun for
//! longest first: else two such jobs would wait for each other for ever.

use vocab::UnixSeconds;

/// A QOS, in the order of its hours.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Part {
    /// Quota of its hours, in whole GPUs. Of longer hours never more than of shorter ones.
    pub quota: u64,
    /// GPUs of its jobs inside promises.
    pub inside: u64,
    /// GPUs of its jobs that wait.
    pub waiting: u64,
    /// The job that its limit has held back longest: since when, and its GPUs.
    pub first: Option<(UnixSeconds, u64)>,
    /// When one of its jobs began last, if any did.
    pub began: Option<UnixSeconds>,
}

/// The share of each part. With what is held beyond it, all of them are within the quotas, as far as these have not fallen.
#[must_use]
pub fn shares(parts: &[Part]) -> Vec<u64> {
    let fair = fair(parts);
    let held: Vec<u64> = parts.iter().map(|part| part.inside).collect();
    let mut given = held.clone();
    let is_below = |at: &usize| fair[*at] >= held[*at];
    // Room goes to those that have less than their part, and what nobody waits for to all that have no more than it.
    let wanted = |at: usize| fair[at].saturating_sub(held[at]);
    in_turns(parts, &mut given, &(0..parts.len()).map(wanted).collect::<Vec<_>>());
    let rest = |at: usize| if is_below(&at) { u64::MAX } else { 0 };
    in_turns(parts, &mut given, &(0..parts.len()).map(rest).collect::<Vec<_>>());
    let share = |at: usize| match lacking(parts, &held, at) {
        // Nothing starts before as much has ended as there is too much of.
        0 if is_below(&at) => given[at],
        lacking => fair[at].min(held[at].saturating_sub(lacking)),
    };
    (0..parts.len()).map(share).collect()
}

/// The part of each in what all hold and wait for, had nothing begun yet.
fn fair(parts: &[Part]) -> Vec<u64> {
    let wanted: Vec<u64> = parts.iter().map(|part| part.inside.saturating_add(part.waiting)).collect();
    let mut fair = vec![0; parts.len()];
    in_turns(parts, &mut fair, &wanted);
    let mut first: Vec<(Option<UnixSeconds>, UnixSeconds, usize, u64)> = Vec::new();
    for (at, part) in parts.iter().enumerate().filter(|(at, part)| part.inside < fair[*at]) {
        first.extend(part.first.map(|(since, gpus)| (part.began, since, at, part.inside.saturating_add(gpus))));
    }
    first.sort_unstable();
    if first.iter().all(|(_, _, at, needed)| *needed <= fair[*at]) {
        return fair;
    }
    let mut whole = vec![0; parts.len()];
    // By age alone a long queue of small jobs would always go before a large one.
    for (_, _, at, needed) in first {
        if needed <= left(parts, &whole, at) {
            whole[at] = needed;
        }
    }
    let more: Vec<u64> = wanted.iter().zip(&whole).map(|(wanted, whole)| wanted.saturating_sub(*whole)).collect();
    in_turns(parts, &mut whole, &more);
    whole
}

/// GPUs that a part may still get: what is left of its quota, and of those of shorter hours.
fn left(parts: &[Part], given: &[u64], at: usize) -> u64 {
    let of = |first: usize| quota(parts, first).saturating_sub(given[first..].iter().sum());
    (0..=at).map(of).min().unwrap_or(0)
}

/// GPUs that jobs hold beyond a quota that a part counts against.
fn lacking(parts: &[Part], held: &[u64], at: usize) -> u64 {
    let of = |first: usize| held[first..].iter().sum::<u64>().saturating_sub(quota(parts, first));
    (0..=at).map(of).max().unwrap_or(0)
}

/// The quota of the hours of a part, which is no more than those of shorter hours.
fn quota(parts: &[Part], at: usize) -> u64 {
    parts[..=at].iter().map(|part| part.quota).min().unwrap_or(0)
}

/// Gives each part as much as it wants, a GPU to each in turns, as far as there is some.
fn in_turns(parts: &[Part], given: &mut [u64], wanted: &[u64]) {
    let mut wanted = wanted.to_vec();
    loop {
        let open: Vec<usize> = (0..parts.len()).filter(|at| wanted[*at] > 0 && left(parts, given, *at) > 0).collect();
        let Some(least) = open.iter().map(|at| wanted[*at].min(left(parts, given, *at))).min() else { return };
        // As many turns at once as surely leave something for each.
        let turns = (least / open.len() as u64).max(1);
        for at in open {
            let gets = turns.min(wanted[at]).min(left(parts, given, at));
            given[at] += gets;
            wanted[at] -= gets;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn part(quota: u64, inside: u64, waiting: u64) -> Part {
        Part { quota, inside, waiting, ..Part::default() }
    }

    /// A part whose first job has so many GPUs and waits since then.
    fn first(part: Part, since: i64, gpus: u64) -> Part {
        Part { first: Some((UnixSeconds::new(since), gpus)), ..part }
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
    fn jobs_larger_than_the_parts_of_their_qos_begin_one_after_the_other() {
        let began = |part: Part, at: i64| Part { began: Some(UnixSeconds::new(at)), ..part };
        let (earlier, later) = (first(part(12, 0, 8), 100, 8), first(part(12, 0, 8), 200, 8));
        assert_eq!((shares(&[earlier, later]), shares(&[later, earlier])), (vec![8, 4], vec![4, 8]));
        // It runs, and its end makes room for the other one.
        assert_eq!(shares(&[part(12, 8, 0), later]), [4, 4]);
        assert_eq!(shares(&[part(12, 0, 0), later]), [2, 10]);
        // Each QOS has its turn after the other, whichever job waits longer.
        assert_eq!(shares(&[began(earlier, 500), began(later, 400)]), [4, 8]);
        assert_eq!(shares(&[began(earlier, 500), later]), [4, 8], "nothing of it ever began");
        // So has a large job beside a long queue of small ones: what ends there makes room.
        let (large, small) = (first(part(12, 0, 24), 100, 12), |inside| first(part(12, inside, 90), 50, 1));
        assert_eq!(shares(&[large, began(small(12), 900)]), [0, 0]);
        assert_eq!(shares(&[large, began(small(3), 900)]), [9, 0]);
        assert_eq!(shares(&[began(large, 950), began(small(0), 900)]), [6, 6], "it has had its turn");
        // One that fits no quota takes nothing from others.
        assert_eq!(shares(&[first(part(12, 0, 40), 100, 40), part(12, 0, 90)]), [6, 6]);
    }

    proptest! {
        #![proptest_config(ProptestConfig { rng_seed: proptest::test_runner::RngSeed::Fixed(29), ..ProptestConfig::default() })]

        #[test]
        fn after_any_ends_and_starts_no_hours_have_more_than_their_quota(
            parts in prop::collection::vec((0u64..400, 0u64..100, 0u64..100, prop::option::of((0i64..9, 1u64..90))), 1..5),
            ends in prop::collection::vec(0u64..100, 5),
        ) {
            let mut least = u64::MAX;
            let parts: Vec<Part> = parts.into_iter().map(|(quota, inside, waiting, first)| {
                least = least.min(quota);
                let first = first.filter(|_| waiting > 0).map(|(since, gpus)| (UnixSeconds::new(since), gpus));
                Part { first, ..part(least, inside, waiting) }
            }).collect();
            let shares = shares(&parts);
            // Some jobs end, and each QOS is filled up to its limit, where it is below.
            let after: Vec<u64> = parts.iter().zip(&shares).zip(&ends).map(|((part, share), ends)| {
                part.inside.saturating_sub(*ends).max(*share)
            }).collect();
            for (at, part) in parts.iter().enumerate() {
                let begins = (at..parts.len()).any(|one| shares[one] > parts[one].inside.saturating_sub(ends[one]));
                prop_assert!(!begins || after[at..].iter().sum::<u64>() <= part.quota, "{shares:?} {after:?}");
            }
            // All of the quota is given where nobody holds more than a part.
            if parts.iter().zip(&shares).all(|(part, share)| part.inside <= *share) {
                prop_assert_eq!(shares.iter().sum::<u64>(), parts[0].quota);
            }
        }
    }
}
