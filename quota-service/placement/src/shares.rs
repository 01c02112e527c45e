//! Fair shares of spot: weighted max-min among organizations over time, with decayed use.
//!
//! Each organization counts with a level: its decayed GPU time, and an hour of the GPUs that it holds, per unit of its weight.
//! The lowest level is served first. Without history that is progressive filling, which ends in the weighted max-min allocation
//! (Bertsekas and Gallager, Data Networks, §6.5.2); use that decays makes up later for what one missed (Kay and Lauder,
//! "A fair share scheduler", CACM 1988).
//!
//! Decay is exact in integers and does not depend on how time is cut into steps, so that facts that are applied one by one give
//! the sums of a pool that decided them. Instead of shrinking what is old, what is new counts more: a GPU second of the j-th
//! sixteenth of a half-life counts [`SCALE`] · 2^(j/16), and every sum is halved where a half-life ends. Those instants are
//! the multiples of the half-life since 1970.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;
use vocab::{MilliGpus, Organization, SECONDS_PER_HOUR, TaskId, UnixSeconds};

/// Parts of a half-life within which all GPU seconds count alike: the largest error is 2^(1/16), 4.4 %.
const PARTS: usize = 16;
/// The count of a milli-GPU-second of the first part.
const SCALE: u64 = 4_096;
/// [`SCALE`] · 2^(j/16), rounded.
const COUNTS: [u64; PARTS] =
    [4096, 4277, 4467, 4664, 4871, 5087, 5312, 5547, 5793, 6049, 6317, 6597, 6889, 7194, 7512, 7845];
const _: () = assert!(COUNTS[0] == SCALE && COUNTS[PARTS - 1] < 2 * SCALE, "counts double within a half-life");

/// GPUs that are held count as if they were held for so long already: an hour, the shortest guarantee. Without it an
/// organization could start any number of tasks in one instant before its use shows.
const ADVANCE_S: u64 = SECONDS_PER_HOUR as u64;

/// How the shares of spot are kept: a part of a policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShareSettings {
    /// Hours after which GPU time counts half.
    pub half_life_hours: u32,
}

impl ShareSettings {
    /// The largest half-life: 90 days, beyond which sums of a large pool leave their range.
    pub const MOST_HALF_LIFE_HOURS: u32 = 2_160;

    const fn half_life_s(self) -> i64 {
        // A policy file is checked; a constant in code may be 0.
        let hours = if self.half_life_hours == 0 { 1 } else { self.half_life_hours };
        hours as i64 * SECONDS_PER_HOUR
    }

    const fn part_s(self) -> i64 {
        self.half_life_s() / PARTS as i64
    }

    /// The count of a milli-GPU-second at an instant.
    const fn count(self, at: UnixSeconds) -> u64 {
        COUNTS[(at.get().rem_euclid(self.half_life_s()) / self.part_s()) as usize]
    }
}

/// The weights of organizations; 1 where none is named.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Weights(BTreeMap<Organization, u32>);

/// A weight that is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the weight of {organization} is {weight}: write a number of 1 to {most}", most = Weights::MOST)]
pub struct WeightFault {
    /// The organization.
    pub organization: Organization,
    /// The refused weight.
    pub weight: u32,
}

impl Weights {
    /// The largest weight.
    pub const MOST: u32 = 1_000_000;

    /// Weights by organization.
    ///
    /// # Errors
    /// A weight is 0, or above [`MOST`](Self::MOST).
    pub fn new(weights: BTreeMap<Organization, u32>) -> Result<Self, WeightFault> {
        match weights.iter().find(|(_, weight)| !(1..=Self::MOST).contains(*weight)) {
            Some((organization, weight)) => Err(WeightFault { organization: organization.clone(), weight: *weight }),
            None => Ok(Self(weights)),
        }
    }

    /// The weight of an organization.
    #[must_use]
    pub fn of(&self, organization: &Organization) -> u32 {
        self.0.get(organization).copied().unwrap_or(1)
    }

    /// The named weights, by organization.
    pub fn iter(&self) -> impl Iterator<Item = (&Organization, u32)> {
        self.0.iter().map(|(organization, weight)| (organization, *weight))
    }
}

/// Decayed GPU time per unit of weight; two levels are compared without rounding, those of one instant alone.
#[derive(Debug, Clone, Copy)]
pub struct UseLevel {
    /// Counts, not yet divided.
    counts: u128,
    weight: u32,
    /// The count of a milli-GPU-second now.
    count: u64,
}

impl UseLevel {
    /// GPU seconds in thousandths per unit of weight, rounded down.
    #[must_use]
    pub fn milli_gpu_s(self) -> u64 {
        u64::try_from(self.counts / u128::from(self.count) / u128::from(self.weight)).unwrap_or(u64::MAX)
    }
}

impl Ord for UseLevel {
    fn cmp(&self, other: &Self) -> Ordering {
        // Below 2^65 · 10^6 each.
        (self.counts * u128::from(other.weight)).cmp(&(other.counts * u128::from(self.weight)))
    }
}

impl PartialOrd for UseLevel {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for UseLevel {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for UseLevel {}

/// The use of one organization.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Use {
    /// Counts up to `at`.
    counts: u64,
    /// Spot GPUs that it holds since `at`, in thousandths.
    held_milli: u64,
    at: UnixSeconds,
}

impl Use {
    /// Lets time pass. The same at the end, however it is cut.
    fn pass_to(&mut self, now: UnixSeconds, settings: ShareSettings) {
        let (half_life_s, part_s) = (settings.half_life_s(), settings.part_s());
        let of_half_life = u128::from(COUNTS.iter().sum::<u64>()) * part_s as u128 * u128::from(self.held_milli);
        while self.at < now {
            if self.counts == 0 && self.held_milli == 0 {
                break;
            }
            let from_s = self.at.get().rem_euclid(half_life_s);
            if from_s == 0 && now.since_s(self.at) >= half_life_s {
                let before = self.counts;
                self.counts = clamped(u128::midpoint(u128::from(before), of_half_life));
                // Where a half-life changes nothing, no later one does.
                let passed = if self.counts == before { now.since_s(self.at) / half_life_s } else { 1 };
                self.at = self.at.plus_s(passed * half_life_s);
                continue;
            }
            let passed_s = (part_s - from_s % part_s).min(now.since_s(self.at));
            let more = u128::from(self.held_milli) * passed_s as u128 * u128::from(settings.count(self.at));
            self.counts = clamped(u128::from(self.counts) + more);
            self.at = self.at.plus_s(passed_s);
            if self.at.get().rem_euclid(half_life_s) == 0 {
                self.counts /= 2;
            }
        }
        self.at = self.at.max(now);
    }
}

fn clamped(counts: u128) -> u64 {
    u64::try_from(counts).unwrap_or(u64::MAX)
}

/// The decayed use of each organization: its spot GPUs over time, those on loan left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UseMeter {
    settings: ShareSettings,
    uses: BTreeMap<Organization, Use>,
}

impl UseMeter {
    /// A meter that has seen nothing.
    #[must_use]
    pub const fn new(settings: ShareSettings) -> Self {
        Self { settings, uses: BTreeMap::new() }
    }

    /// A meter with the counts of a snapshot, which were made under `written`. Under another half-life they keep what they are
    /// worth at that instant, to the rounding of one count.
    #[must_use]
    pub fn from_parts(settings: ShareSettings, at: UnixSeconds, parts: &UseParts) -> Self {
        let (to, from) = (settings.count(at), parts.settings.map_or(SCALE, |written| written.count(at)));
        let is_same = parts.settings == Some(settings);
        let counts = |counts: u64| {
            if is_same { counts } else { clamped(u128::from(counts) * u128::from(to) / u128::from(from)) }
        };
        let each = parts
            .counts
            .iter()
            .map(|(organization, one)| (organization.clone(), Use { counts: counts(*one), held_milli: 0, at }));
        Self { settings, uses: each.collect() }
    }

    /// The counts as they are at an instant.
    #[must_use]
    pub fn parts(&self, now: UnixSeconds) -> UseParts {
        let counts = self.uses.iter().map(|(organization, one)| (organization.clone(), self.passed(*one, now).counts));
        UseParts { settings: Some(self.settings), counts: counts.filter(|(_, counts)| *counts > 0).collect() }
    }

    fn passed(&self, mut one: Use, now: UnixSeconds) -> Use {
        one.pass_to(now, self.settings);
        one
    }

    /// An organization holds so many GPUs more from now on.
    pub fn hold(&mut self, organization: &Organization, milli: u64, now: UnixSeconds) {
        let one = self.uses.entry(organization.clone()).or_insert(Use { counts: 0, held_milli: 0, at: now });
        one.pass_to(now, self.settings);
        one.held_milli += milli;
    }

    /// An organization holds so many GPUs less from now on.
    pub fn release(&mut self, organization: &Organization, milli: u64, now: UnixSeconds) {
        if let Some(one) = self.uses.get_mut(organization) {
            one.pass_to(now, self.settings);
            debug_assert!(one.held_milli >= milli, "{organization} gives more than it holds");
            one.held_milli = one.held_milli.saturating_sub(milli);
        }
    }

    /// The level of an organization now.
    #[must_use]
    pub fn level(&self, organization: &Organization, weight: u32, now: UnixSeconds) -> UseLevel {
        let count = self.settings.count(now);
        let counts = self.uses.get(organization).map_or(0, |one| {
            let one = self.passed(*one, now);
            let advance = u128::from(one.held_milli) * u128::from(ADVANCE_S * count);
            u128::from(one.counts) + advance.min(u128::from(u64::MAX))
        });
        UseLevel { counts, weight, count }
    }

    /// Organizations with use that still counts or GPUs that they hold.
    pub fn organizations(&self) -> impl Iterator<Item = (&Organization, u64)> {
        self.uses
            .iter()
            .filter(|(_, one)| one.counts > 0 || one.held_milli > 0)
            .map(|(name, one)| (name, one.held_milli))
    }
}

/// The weighted max-min allocation of an amount to demands, each with its weight, in their order: none gets more than it
/// demands, and more for one would take from one that has no more per unit of weight. Rounded down, to one unit each.
#[must_use]
pub fn max_min(amount: u64, demands: &[(u64, u32)]) -> Vec<u64> {
    let mut by_need: Vec<usize> = (0..demands.len()).collect();
    // Below 2^96: an amount of 64 bits times a weight of 32.
    let need = |one: usize, weighed_by: usize| u128::from(demands[one].0) * u128::from(demands[weighed_by].1);
    by_need.sort_by(|one, other| need(*one, *other).cmp(&need(*other, *one)).then(one.cmp(other)));
    let mut left = amount;
    let mut weights: u128 = demands.iter().map(|(_, weight)| u128::from(*weight)).sum();
    let mut given = vec![0; demands.len()];
    for number in by_need {
        let (demand, weight) = (demands[number].0, u128::from(demands[number].1));
        let part = (u128::from(left) * weight).checked_div(weights).unwrap_or(0);
        // At most what is left, since a weight is a part of the weights.
        given[number] = demand.min(u64::try_from(part).unwrap_or(u64::MAX));
        left -= given[number];
        weights -= weight;
    }
    given
}

/// The use of organizations in a snapshot.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UseParts {
    /// The settings under which the counts were made; none where no policy with shares has measured.
    pub settings: Option<ShareSettings>,
    /// By organization, above 0.
    pub counts: Vec<(Organization, u64)>,
}

/// An organization that has had more of spot lately than another one that waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AboveFairShare {
    /// GPUs of the request over all pods.
    pub asked: MilliGpus,
    /// Decayed use of its organization and an hour of what it holds, per unit of its weight, in thousandths of a GPU-second.
    pub level_milli_gpu_s: u64,
    /// The organization of the lowest level that waits for these GPUs.
    pub by: Organization,
    /// The level of that organization.
    pub by_level_milli_gpu_s: u64,
    /// The task that it waits with.
    pub task: TaskId,
    /// GPUs that this task asks for.
    pub waits_for: MilliGpus,
}

/// GPU hours with two digits, rounded down.
fn gpu_hours(milli_gpu_s: u64) -> String {
    let hundredths = milli_gpu_s / (10 * vocab::SECONDS_PER_HOUR as u64);
    format!("{}.{:02}", hundredths / 100, hundredths % 100)
}

impl fmt::Display for AboveFairShare {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "its organization is above its fair share: it counts with {} GPU hours per unit of weight, and {}, with {}, waits \
             for {} GPUs with task {}; it starts when that task has started or more GPUs than both ask for are free",
            gpu_hours(self.level_milli_gpu_s),
            self.by,
            gpu_hours(self.by_level_milli_gpu_s),
            self.waits_for,
            self.task,
        )
    }
}

#[cfg(test)]
mod tests;
