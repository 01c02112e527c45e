//! How promises were kept, by their hours.

use placement::evidence::Evidence;
use placement::kept::{KeptRate, Period, Worst};
use std::collections::BTreeMap;
use std::sync::Arc;
use store::EndedPeriod;
use vocab::{GuaranteeRate, HorizonHours, OutcomeKind, PoolId, UnixSeconds};

const DAY_S: i64 = vocab::SECONDS_PER_DAY;
/// Periods that kept rates are made of, the newest: those of a month at 7,000 a day.
pub const MOST_PERIODS: u32 = 200_000;
/// How far back outcomes are read: four weeks, and two days for the blocks that wait for promises of up to 36 h. Of longer ones
/// the oldest days are left out.
pub const KNOWN_DAYS: i64 = 30;

/// Kept and broken promises of the last days by pool, for the clusters that this service writes for.
pub type KeptByPool = BTreeMap<PoolId, Arc<Vec<Lately>>>;

/// Periods of one number of hours that have ended, in the order of the rows.
pub struct HoursKept {
    pub hours: HorizonHours,
    ended: Vec<(UnixSeconds, OutcomeKind, Period)>,
}

/// By hours, rising.
#[must_use]
pub fn by_hours(ended: &[EndedPeriod]) -> BTreeMap<HorizonHours, HoursKept> {
    let mut all = BTreeMap::new();
    for one in ended {
        let (hours, kind) = (one.guarantee_hours, one.kind);
        let period = Period::reported(hours, one.ended_at, one.began_at, one.gpus, kind == OutcomeKind::Broken);
        all.entry(hours).or_insert_with(|| HoursKept::none(hours)).ended.push((one.ended_at, kind, period));
    }
    all
}

/// Since when all periods are there that ended: where there were too many to read, since the oldest one that was.
#[must_use]
pub fn known_from(ended: &[EndedPeriod], asked_from: UnixSeconds) -> UnixSeconds {
    let oldest = ended.last().filter(|_| ended.len() >= MOST_PERIODS as usize);
    oldest.map_or(asked_from, |oldest| oldest.ended_at.max(asked_from))
}

impl HoursKept {
    #[must_use]
    pub const fn none(hours: HorizonHours) -> Self {
        Self { hours, ended: Vec::new() }
    }

    #[must_use]
    pub fn periods(&self) -> Vec<Period> {
        self.ended.iter().map(|(_, _, period)| *period).collect()
    }

    /// Those that ended at `from` or later.
    #[must_use]
    pub fn since(&self, from: UnixSeconds) -> Vec<Period> {
        self.ended.iter().filter(|(at, ..)| *at >= from).map(|(_, _, period)| *period).collect()
    }

    #[must_use]
    pub fn is_since(&self, from: UnixSeconds) -> bool {
        self.ended.iter().any(|(at, ..)| *at >= from)
    }

    /// How many ended in this way at `from` or later.
    #[must_use]
    pub fn count(&self, kind: OutcomeKind, from: UnixSeconds) -> u64 {
        self.ended.iter().filter(|(at, known, _)| *at >= from && *known == kind).count() as u64
    }
}

/// How the promises of so many hours were kept lately.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Lately {
    pub hours: HorizonHours,
    /// Of the last seven days.
    pub week: Option<KeptRate>,
    /// Of the last four weeks.
    pub month: Option<KeptRate>,
    /// Within the last four weeks.
    pub worst_day: Option<Worst>,
    pub worst_week: Option<Worst>,
    pub evidence: Option<Evidence>,
}

impl Lately {
    /// By hours, rising. `ended` are the newest periods, newest first, all of those that ended at `asked_from` or later.
    #[must_use]
    pub fn of(ended: &[EndedPeriod], rate: GuaranteeRate, asked_from: UnixSeconds, now: UnixSeconds) -> Vec<Self> {
        let known_from = known_from(ended, asked_from);
        let of_hours = |(hours, ended): (HorizonHours, HoursKept)| {
            let month = ended.since(now.plus_s(-28 * DAY_S));
            Self {
                hours,
                week: KeptRate::of(&ended.since(now.plus_s(-7 * DAY_S)), hours),
                month: KeptRate::of(&month, hours),
                worst_day: Worst::day(&month, hours),
                worst_week: Worst::week(&month, hours),
                evidence: Evidence::of(&ended.periods(), hours, rate, known_from, now),
            }
        };
        by_hours(ended).into_iter().map(of_hours).collect()
    }
}
