//! A quota in whole GPUs, split by shares.

use crate::config::Shares;
use std::collections::BTreeMap;

const WHOLE: u64 = vocab::MilliGpus::PER_GPU;

/// Whole GPUs of each namespace; GPUs left over go to the largest remainders, then by name. Shares below 1 together leave a rest
/// unassigned.
#[must_use]
pub fn split(gpus: u64, shares: &Shares) -> BTreeMap<String, u64> {
    let parts = || shares.0.iter().map(|(name, share)| (name, gpus.saturating_mul(u64::from(*share))));
    let mut split: BTreeMap<String, u64> = parts().map(|(name, part)| (name.clone(), part / WHOLE)).collect();
    let in_all = parts().map(|(_, part)| part).sum::<u64>() / WHOLE;
    let left = in_all.saturating_sub(split.values().sum());
    let mut remainders: Vec<(u64, &String)> = parts().map(|(name, part)| (part % WHOLE, name)).collect();
    remainders.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(b.1)));
    for (_, name) in remainders.into_iter().take(usize::try_from(left).unwrap_or(usize::MAX)) {
        split.entry(name.clone()).and_modify(|gpus| *gpus += 1);
    }
    split
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn remainders_go_to_the_largest_then_by_name() {
        let shares = "a=0.3,b=0.3,c=0.4".parse().unwrap();
        let split = |gpus| split(gpus, &shares).into_values().collect::<Vec<u64>>();
        assert_eq!([split(10), split(11), split(2), split(0)], [[3, 3, 4], [3, 3, 5], [1, 0, 1], [0, 0, 0]]);
    }

    proptest! {
        #[test]
        fn no_gpu_is_handed_out_twice_and_each_share_is_within_one_gpu(gpus in 0u64..10_000, parts in prop::collection::vec(0u32..250, 0..5)) {
            let shares = Shares(parts.iter().enumerate().map(|(at, part)| (format!("n{at}"), *part)).collect());
            let split = split(gpus, &shares);
            let in_all: u64 = parts.iter().map(|part| u64::from(*part)).sum();
            prop_assert_eq!(split.values().sum::<u64>(), gpus * in_all / 1_000);
            for (name, share) in &shares.0 {
                prop_assert!((split[name] * 1_000).abs_diff(gpus * u64::from(*share)) < 1_000);
            }
        }
    }
}
