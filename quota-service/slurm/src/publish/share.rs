//! A quota of several hours, shared out among limits that stand side by side. Pure.
//!
//! Jobs of `n` hours and longer may hold Q_n in all, so what QOS of `n` hours and longer get together has to stay within Q_n. Within
//! that a QOS gets what its jobs hold inside promises, then what they wait for, then as much of the rest as the others. With no
//! job at all and Q_1 of at least twice Q_4 that is Q_1 − Q_4 for an hour and Q_4 for four.

/// A QOS, in the order of its hours.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Part {
    /// Quota of its hours, in whole GPUs. Of longer hours never more than of shorter ones.
    pub quota: u64,
    /// GPUs of its jobs inside promises.
    pub inside: u64,
    /// GPUs of its jobs that wait.
    pub waiting: u64,
}

/// The share of each part; in all the quota of the first one.
#[must_use]
pub fn shares(parts: &[Part]) -> Vec<u64> {
    let mut given = vec![0; parts.len()];
    // Longer promises first, where a quota has fallen below what is promised.
    for at in (0..parts.len()).rev() {
        given[at] = parts[at].inside.min(left(parts, &given, at));
    }
    let waiting: Vec<u64> = parts.iter().map(|part| part.waiting).collect();
    in_turns(parts, &mut given, &waiting);
    in_turns(parts, &mut given, &vec![u64::MAX; parts.len()]);
    given
}

/// GPUs that a part may still get: what is left of its quota, and of those of shorter hours.
fn left(parts: &[Part], given: &[u64], at: usize) -> u64 {
    let of = |first: usize| {
        let least = parts[..=first].iter().map(|part| part.quota).min().unwrap_or(0);
        least.saturating_sub(given[first..].iter().sum())
    };
    (0..=at).map(of).min().unwrap_or(0)
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
        Part { quota, inside, waiting }
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
    fn a_quota_that_has_fallen_is_that_of_the_longest_promises() {
        assert_eq!(shares(&[part(4, 6, 9), part(3, 3, 9)]), [1, 3]);
        assert_eq!(shares(&[part(0, 6, 9), part(0, 3, 9)]), [0, 0]);
    }

    proptest! {
        #![proptest_config(ProptestConfig { rng_seed: proptest::test_runner::RngSeed::Fixed(29), ..ProptestConfig::default() })]

        #[test]
        fn no_hours_get_more_than_their_quota_and_all_of_it_is_given(
            parts in prop::collection::vec((0u64..400, 0u64..100, 0u64..100), 1..5),
        ) {
            let mut least = u64::MAX;
            let parts: Vec<Part> = parts.into_iter().map(|(quota, inside, waiting)| {
                least = least.min(quota);
                part(least, inside, waiting)
            }).collect();
            let shares = shares(&parts);
            for (at, part) in parts.iter().enumerate() {
                prop_assert!(shares[at..].iter().sum::<u64>() <= part.quota);
            }
            prop_assert_eq!(shares.iter().sum::<u64>(), parts[0].quota);
        }
    }
}
