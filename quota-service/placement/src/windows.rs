//! Windows that are sold ahead: the GPUs that they take from a promise.
//!
//! A promise never reaches into a window: of the capacity, promises that last into it leave the GPUs of the window.

use std::collections::{BTreeMap, BTreeSet};
use vocab::{HorizonHours, MilliGpus, Organization, ReservedWindow, UnixSeconds};

/// The windows of a pool, and their use.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Windows {
    /// Those that are not over, in any order.
    pub all: Vec<ReservedWindow>,
    /// HP GPUs that run now, of each organization with a window; none where that is not known.
    pub used: BTreeMap<Organization, MilliGpus>,
    /// Seconds for which a quota may be used after it was cut: a promise given then reaches as much further.
    pub valid_s: i64,
    /// Seconds before its begin from which a window needs its GPUs: spot at will gets notice then.
    pub notice_s: i64,
}

/// GPUs that are sold ahead within the hours of a promise.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sold {
    /// The most GPUs that windows have at one instant.
    pub gpus: MilliGpus,
    /// The same without what their organizations use now: that is part of the HP demand already.
    pub unused: MilliGpus,
}

/// Sums of windows, from an instant on until the next step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// From when on.
    pub at: UnixSeconds,
    /// Thousandths of a GPU.
    pub gpus_milli: u64,
    /// The same without what is in use now.
    pub unused_milli: u64,
}

impl Windows {
    /// For each of `offered`, the GPUs that are sold within it.
    #[must_use]
    pub fn sold(&self, offered: &[HorizonHours], now: UnixSeconds) -> BTreeMap<HorizonHours, Sold> {
        if self.all.is_empty() {
            return BTreeMap::new();
        }
        offered.iter().map(|hours| (*hours, self.within(now, now.plus_s(hours.seconds() + self.valid_s)))).collect()
    }

    /// The most that windows have at one instant of `[now, until)`, and of the notice after it: one that ends as another one begins leaves it
    /// its GPUs.
    #[must_use]
    pub fn within(&self, now: UnixSeconds, until: UnixSeconds) -> Sold {
        let steps = steps(self, now, until.plus_s(self.notice_s));
        let most = |of: fn(&Step) -> u64| amount(steps.iter().map(of).max().unwrap_or(0));
        let sold = Sold { gpus: most(|step| step.gpus_milli), unused: most(|step| step.unused_milli) };
        debug_assert!(sold.unused <= sold.gpus, "no more is unused than there is: {sold:?}");
        sold
    }

    /// GPUs of windows that are open now, or whose notice has begun, and that their organizations do not use: the most at one instant until the
    /// notice is over. What an organization uses now counts towards each of its windows in turn.
    #[must_use]
    pub fn unused(&self, now: UnixSeconds) -> MilliGpus {
        let begun = self.all.iter().filter(|one| one.has_begun(now, self.notice_s));
        let instants: BTreeSet<UnixSeconds> = begun.clone().map(|one| one.from.max(now)).collect();
        let unused_at = |at: UnixSeconds| {
            let mut milli: BTreeMap<&Organization, u64> = BTreeMap::new();
            for window in begun.clone().filter(|one| one.is_open(at)) {
                let sum = milli.entry(&window.organization).or_default();
                *sum = sum.saturating_add(window.gpus.milli());
            }
            let used = |of: &Organization| self.used.get(of).map_or(0, |used| used.milli());
            milli.into_iter().fold(0_u64, |sum, (of, milli)| sum.saturating_add(milli.saturating_sub(used(of))))
        };
        amount(instants.into_iter().map(unused_at).max().unwrap_or(0))
    }
}

/// The sums of windows over `[now, until)`, in the order of time: an entry for each change. What an organization uses now counts
/// towards its windows that are open now, or whose notice has begun, the first one first.
#[must_use]
pub fn steps(windows: &Windows, now: UnixSeconds, until: UnixSeconds) -> Vec<Step> {
    let Windows { all, used, notice_s, .. } = windows;
    let mut reached: Vec<&ReservedWindow> = all.iter().filter(|one| one.from < until && now < one.to).collect();
    reached.sort_unstable();
    let mut left: BTreeMap<&Organization, u64> = used.iter().map(|(of, gpus)| (of, gpus.milli())).collect();
    let mut changes: BTreeMap<UnixSeconds, (i128, i128)> = BTreeMap::new();
    for window in reached {
        let gpus = window.gpus.milli();
        let mut in_use = 0;
        if window.has_begun(now, *notice_s)
            && let Some(left) = left.get_mut(&window.organization)
        {
            in_use = gpus.min(*left);
            *left -= in_use;
        }
        let (gpus, unused) = (i128::from(gpus), i128::from(gpus - in_use));
        let begin = changes.entry(window.from.max(now)).or_default();
        *begin = (begin.0 + gpus, begin.1 + unused);
        let end = changes.entry(window.to).or_default();
        *end = (end.0 - gpus, end.1 - unused);
    }
    let mut sums = (0_i128, 0_i128);
    let step = |(at, (gpus, unused)): (UnixSeconds, (i128, i128))| {
        sums = (sums.0 + gpus, sums.1 + unused);
        debug_assert!(sums.0 >= sums.1 && sums.1 >= 0, "windows end that never began");
        let milli = |sum: i128| u64::try_from(sum).unwrap_or(u64::MAX);
        Step { at, gpus_milli: milli(sums.0), unused_milli: milli(sums.1) }
    };
    changes.into_iter().map(step).filter(|step| step.at < until).collect()
}

/// Windows beyond what an amount holds are more than any pool has.
fn amount(milli: u64) -> MilliGpus {
    MilliGpus::from_milli(milli).unwrap_or(MilliGpus::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(of: &str, gpus: u32, from_h: i64, to_h: i64) -> ReservedWindow {
        let at = |hour: i64| UnixSeconds::new(hour * 3_600);
        let organization = Organization::parse(of).unwrap();
        ReservedWindow { from: at(from_h), to: at(to_h), organization, gpus: MilliGpus::from_gpus(gpus) }
    }

    fn within(windows: &Windows, from_h: i64, to_h: i64) -> (u64, u64) {
        let sold = windows.within(UnixSeconds::new(from_h * 3_600), UnixSeconds::new(to_h * 3_600));
        (sold.gpus.milli() / 1_000, sold.unused.milli() / 1_000)
    }

    #[test]
    fn windows_count_from_their_begin_to_their_end_and_the_most_at_one_instant_is_sold() {
        let all = vec![window("a", 8, 10, 12), window("b", 4, 11, 13), window("a", 16, 13, 14)];
        let windows = Windows { all, ..Windows::default() };
        assert_eq!(within(&windows, 8, 10), (0, 0), "a promise until the begin does not reach into it");
        assert_eq!(within(&windows, 8, 11), (8, 8));
        assert_eq!(within(&windows, 8, 13), (12, 12));
        assert_eq!(within(&windows, 12, 13), (4, 4), "a window that is over is none");
        assert_eq!(within(&windows, 8, 20), (16, 16), "the second ends as the third begins");
    }

    #[test]
    fn use_of_an_organization_counts_toward_its_open_windows_alone() {
        let used = BTreeMap::from([(Organization::parse("a").unwrap(), MilliGpus::from_gpus(6))]);
        let all = vec![window("a", 8, 10, 12), window("b", 4, 10, 12), window("a", 8, 13, 14)];
        let windows = Windows { all, used, ..Windows::default() };
        assert_eq!(within(&windows, 10, 11), (12, 6));
        assert_eq!(within(&windows, 10, 14), (12, 8), "the next window of it is unused");
        assert_eq!(windows.unused(UnixSeconds::new(10 * 3_600)), MilliGpus::from_gpus(6));
    }

    #[test]
    fn windows_that_follow_each_other_need_no_more_than_one_of_them_in_the_notice() {
        let all = vec![window("a", 8, 10, 12), window("b", 6, 12, 13)];
        let windows = Windows { all, notice_s: 1_800, ..Windows::default() };
        assert_eq!(within(&windows, 8, 20), (8, 8));
        let unused_at = |windows: &Windows, seconds: i64| windows.unused(UnixSeconds::new(seconds)).milli() / 1_000;
        assert_eq!(
            [34_199, 34_200, 42_000].map(|at| unused_at(&windows, at)),
            [0, 8, 8],
            "the notice of the first begins at 34,200"
        );
        let used = BTreeMap::from([(Organization::parse("a").unwrap(), MilliGpus::from_gpus(8))]);
        let windows = Windows { used, ..windows };
        assert_eq!(
            [41_399, 41_400].map(|at| unused_at(&windows, at)),
            [0, 6],
            "the notice of the second begins at 41,400"
        );
        let all = vec![window("a", 8, 10, 12), window("a", 8, 12, 14)];
        assert_eq!(unused_at(&Windows { all, ..windows }, 42_000), 0, "its tasks run on from one window into the next");
    }

    #[test]
    fn a_quota_that_is_used_later_reaches_as_much_further() {
        let hour = HorizonHours::ONE;
        let windows = Windows { all: vec![window("a", 8, 10, 12)], ..Windows::default() };
        let at = UnixSeconds::new(9 * 3_600);
        assert_eq!(windows.sold(&[hour], at)[&hour].gpus, MilliGpus::ZERO);
        assert_eq!(Windows { valid_s: 1, ..windows }.sold(&[hour], at)[&hour].gpus, MilliGpus::from_gpus(8));
    }
}
