//! Evidence that a promise fails, as an e-value: a number that may be read as often as one likes.
//!
//! A player who doubts the promise bets against it, on one block of half a day after the other, with one unit of money. While
//! HP takes promised GPUs at the rate that p allows, −ln p of them for each H hours that they are exposed, no way of betting
//! makes money on average, so that the chance that the unit ever becomes twenty is at most one in twenty (Ville's inequality;
//! Waudby-Smith and Ramdas 2024). A test that is read each day with p < 0.05 would be wrong far more often.
//!
//! - Evictions come together. A block is won or lost as a whole, so that a burst inside it counts once.
//! - An old good month must not hide a new bad week. A part of the unit is bet from each day on, as in the e-detectors of Shin,
//!   Ramdas and Rinaldo 2024. Outcomes of 28 days count, and of any 28 days in a row 56 of these bets are seen: each
//!   has a 56th of the unit, so that all of them together keep to the one in twenty over these days.
//! - How much to bet is not known before. Each part is split between a small and a large bet, fixed beforehand.
//!
//! By simulation (400 months of a pool with 24 gangs, p = 0.9; two of five tasks end by themselves before their promise does; read twice
//! a day, after a month that was kept): months with an alarm though K_H = p, and days until the alarm where K_H falls to
//! 0.8, in the median:
//!
//! | evictions | H = 1 | H = 4 |
//! |---|---|---|
//! | each alone | 0 %, 5 days | 0.25 %, 8 days |
//! | in bursts of 2 h that evict 80 % of all gangs | 1.25 %, 7 days | 3.75 %, 15 days |
//! | in bursts of 6 h that evict 50 % | | 3.25 %, 10.5 days |
//!
//! Blocks of a whole day take 9 and 11 days at H = 1, and 13, 17 and 15 at H = 4; blocks of 4 h alarm in 6 to 15 % of the months under these
//! bursts. Where a third of all days is bad and the others are good, blocks of half a day alarm in 13 to 14 % of the months:
//! such days do not keep the promise, although their mean does.

use crate::kept::Period;
use vocab::{GuaranteeRate, HorizonHours, UnixSeconds};

const DAY_S: i64 = vocab::SECONDS_PER_DAY;
/// Chosen by simulation, see above.
const BLOCK_S: i64 = 43_200;
const _: () = assert!(DAY_S % BLOCK_S == 0, "a day is a whole number of blocks");
const BLOCKS_A_DAY: i64 = DAY_S / BLOCK_S;
/// Days whose outcomes count.
const DAYS: i64 = 28;
/// Bets of which some part of the outcome is seen in [`DAYS`] days.
const SHARES: f64 = 2.0 * DAYS as f64;
/// A player who has won so much bets no more.
const MOST: f64 = 1e9;
/// The stake, as a share of the largest one that cannot end below zero.
const BETS: [f64; 2] = [0.3, 0.9];

/// The evidence of outcomes against a promise.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Evidence {
    /// At [`ALARM`](Self::ALARM) or more the promise fails: chance alone has shown as much in at most one of twenty months. About
    /// one half says nothing, less speaks for the promise.
    pub e_value: f64,
    /// Since when it fails, at a guess: the beginning of the bets that won most. None where none has won.
    pub since: Option<UnixSeconds>,
    /// Blocks of half a day in which anything was promised.
    pub blocks: u32,
}

/// The fate of the GPUs that were promised within one block.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Block {
    promised_gpus: f64,
    broken_gpus: f64,
    /// In GPUs over the hours of the promise.
    exposure: f64,
}

impl Evidence {
    /// One in twenty months without a cause.
    pub const ALARM: f64 = 20.0;
    /// How far back outcomes are of use, in seconds, for promises of so many hours: a block is judged once the last promise that
    /// it saw is over.
    #[must_use]
    pub fn looks_back_s(hours: HorizonHours) -> i64 {
        DAYS * DAY_S + BLOCK_S + hours.seconds()
    }

    /// Against K_H ≥ p = `rate`. `periods` are all that ended at `known_from` or later, up to `now`, in any order; `None` where
    /// none of them is old enough.
    #[must_use]
    pub fn of(
        periods: &[Period],
        hours: HorizonHours,
        rate: GuaranteeRate,
        known_from: UnixSeconds,
        now: UnixSeconds,
    ) -> Option<Self> {
        // A kept promise is reported hours after one that was broken beside it: a block waits for both.
        let end = (now.get() - hours.seconds()).div_euclid(BLOCK_S);
        let first = (end - DAYS * DAY_S / BLOCK_S).max(-(-known_from.get()).div_euclid(BLOCK_S));
        let count = usize::try_from(end - first).ok().filter(|count| *count > 0)?;
        let blocks = blocks(periods, hours, first, count);
        let judged = blocks.iter().filter(|one| one.promised_gpus > 0.0).count();
        if judged == 0 {
            return None;
        }
        let (e_value, since) = e_value(&blocks, first, rate);
        let since = since.map(|block| UnixSeconds::new(block * BLOCK_S));
        debug_assert!(e_value >= 0.0, "an e-value is not negative: {e_value}");
        debug_assert!(judged <= blocks.len(), "more blocks are judged than there are");
        Some(Self { e_value, since, blocks: u32::try_from(judged).unwrap_or(u32::MAX) })
    }

    /// Whether the evidence reaches the level of the alarm.
    #[must_use]
    pub fn is_alarm(&self) -> bool {
        self.e_value >= Self::ALARM
    }
}

/// The blocks from number `first` on.
fn blocks(periods: &[Period], hours: HorizonHours, first: i64, count: usize) -> Vec<Block> {
    let mut all = vec![Block::default(); count];
    for period in periods {
        let gpus = period.gpus_milli as f64 / 1_000.0;
        let (began, ended) = (period.began.get(), period.began.get() + period.lasted_s.min(hours.seconds()));
        // The end of a block belongs to it, and not to the next one.
        let last = (ended - 1).max(began).div_euclid(BLOCK_S);
        for number in began.div_euclid(BLOCK_S)..=last {
            let Some(block) = usize::try_from(number - first).ok().and_then(|place| all.get_mut(place)) else {
                continue;
            };
            let seen_s = ended.min((number + 1) * BLOCK_S) - began.max(number * BLOCK_S);
            debug_assert!((0..=BLOCK_S).contains(&seen_s) || began == ended, "a block sees {seen_s} s of a period");
            block.promised_gpus += gpus;
            block.exposure += gpus * seen_s as f64 / hours.seconds() as f64;
            if period.broken && number == last {
                block.broken_gpus += gpus;
            }
        }
    }
    all
}

/// The stakes on the blocks from one day on.
struct Bet {
    /// The number of its first block.
    began: i64,
    promised_gpus: Vec<f64>,
    worth: [f64; BETS.len()],
}

impl Bet {
    /// GPUs weigh as they do in K_H: a block in which little was promised moves little. Its scale is known before it, so that
    /// nobody bets with hindsight, or larger, so that no bet can end below zero.
    fn see(&mut self, block: &Block, allowed: f64) {
        let before = self.promised_gpus.iter().sum::<f64>() / self.promised_gpus.len().max(1) as f64;
        self.promised_gpus.push(block.promised_gpus);
        let scale = block.promised_gpus.max(before);
        if scale > 0.0 {
            let gain = (block.broken_gpus / allowed - block.exposure) / scale;
            debug_assert!(gain >= -1.0 - 1e-9, "a bet loses more than it puts in: {gain}");
            self.worth.iter_mut().zip(BETS).for_each(|(worth, bet)| *worth = MOST.min(*worth * (1.0 + bet * gain)));
        }
    }

    fn worth(&self) -> f64 {
        self.worth.iter().sum::<f64>() / BETS.len() as f64
    }
}

/// The value of the bets after the last block, and the number of the block with which the best of them began. A bet is worth
/// the same with any selection of the other blocks.
fn e_value(blocks: &[Block], first: i64, rate: GuaranteeRate) -> (f64, Option<i64>) {
    // Of GPUs that are exposed for H hours: what p allows HP to take, at a rate that does not depend on their age.
    let allowed = -rate.as_f64().ln();
    debug_assert!(allowed > 0.0, "a rate below 1 allows some evictions");
    let mut bets: Vec<Bet> = Vec::new();
    for (number, block) in (first..).zip(blocks) {
        if number.rem_euclid(BLOCKS_A_DAY) == 0 {
            bets.push(Bet { began: number, promised_gpus: Vec::new(), worth: [1.0; BETS.len()] });
        }
        for bet in &mut bets {
            bet.see(block, allowed);
            debug_assert!(bet.worth.iter().all(|worth| (0.0..=MOST).contains(worth)), "a bet is worth {:?}", bet.worth);
        }
    }
    let best = bets.iter().max_by(|one, other| one.worth().total_cmp(&other.worth()));
    let since = best.filter(|bet| bet.worth() > 1.0).map(|bet| bet.began);
    (bets.iter().map(Bet::worth).sum::<f64>() / SHARES, since)
}

#[cfg(test)]
mod tests;
