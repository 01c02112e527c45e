//! Sets of GPUs of a node, grown GPU by GPU and given up as soon as they cannot win.

use super::Ruler;
use vocab::Domain;

/// Sets that are tried one by one: all those of 8 of 16 GPUs (12,870), of any size of 8 (70).
const MOST_SETS: u64 = 20_000;

/// The goal of a search among sets of GPUs.
pub(crate) trait Search {
    /// Knowledge of a set while it grows.
    type State: Copy;

    fn with(&self, state: Self::State, gpu: usize) -> Self::State;

    /// Whether a set, grown in any way, could still be the answer.
    fn may_win(&self, state: &Self::State) -> bool;

    /// A set of the wanted size.
    fn offer(&mut self, state: Self::State);

    /// Where there are too many sets to look at: those with the least are tried first.
    fn burden(&self, gpu: usize) -> u64;
}

/// Offers sets of available GPUs, as many GPUs as the ruler measures.
///
/// All of them, where there are at most 20,000: so it is up to 16 GPUs a node. Beyond, all sets within each part of the
/// wanted kind and within each socket, and across them; of those with too many sets one, which touches as few parts as can
/// be and has the least burden in each. What is found is then as aligned as can be within one part or socket, but need not
/// be the least burden.
pub(crate) fn each_set<S: Search>(ruler: &Ruler<'_>, available: u64, start: S::State, search: &mut S) {
    let count = ruler.count();
    if sets(available.count_ones(), count) <= MOST_SETS {
        return within(available, count, start, search);
    }
    let parts = ruler.parts(None).iter().chain(ruler.parts(Some(Domain::Socket)));
    let pools: Vec<u64> = parts.map(|part| part & available).chain([available]).collect();
    for pool in pools.into_iter().filter(|pool| pool.count_ones() >= u32::from(count)) {
        if sets(pool.count_ones(), count) <= MOST_SETS {
            within(pool, count, start, search);
        } else {
            one_of(ruler, pool, start, search);
        }
    }
}

fn within<S: Search>(pool: u64, count: u16, start: S::State, search: &mut S) {
    let (mut gpus, mut have) = ([0_u8; 64], 0);
    for gpu in crate::fleet::numbers(pool) {
        gpus[have] = gpu as u8;
        have += 1;
    }
    debug_assert!(gpus[..have].is_sorted(), "each set is grown once");
    grow(&gpus[..have], usize::from(count), start, search);
}

fn grow<S: Search>(gpus: &[u8], left: usize, state: S::State, search: &mut S) {
    if left == 0 {
        return search.offer(state);
    }
    for place in 0..(gpus.len() + 1).saturating_sub(left) {
        let next = search.with(state, usize::from(gpus[place]));
        if search.may_win(&next) {
            grow(&gpus[place + 1..], left - 1, next, search);
        }
    }
}

fn one_of<S: Search>(ruler: &Ruler<'_>, pool: u64, start: S::State, search: &mut S) {
    let room = |gpu: usize| {
        let part = ruler.parts(None).iter().find(|part| *part >> gpu & 1 == 1);
        part.map_or((0, 0), |part| ((part & pool).count_ones(), *part))
    };
    let mut gpus: Vec<usize> = crate::fleet::numbers(pool).collect();
    gpus.sort_by_key(|gpu| (std::cmp::Reverse(room(*gpu)), search.burden(*gpu), *gpu));
    let chosen = gpus.into_iter().take(usize::from(ruler.count()));
    let state = chosen.fold(start, |state, gpu| search.with(state, gpu));
    if search.may_win(&state) {
        search.offer(state);
    }
}

/// So many of so many, capped.
fn sets(of: u32, count: u16) -> u64 {
    let count = u32::from(count);
    let count = count.min(of.saturating_sub(count));
    (0..count)
        .try_fold(1_u64, |sets, k| Some(sets.checked_mul(u64::from(of - k))? / u64::from(k + 1)))
        .unwrap_or(u64::MAX)
}
