//! Scores of bounds of whole pools.

use super::TOLERANCE_GPUS;
use super::series::pinball;
use crate::gaussian::empirical_quantile;
use crate::left::LEFT_AFTER_HOURS;
use datasets::{Panel, Series};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::collections::BTreeMap;
use vocab::{GuaranteeRate, HorizonHours, HourStart, PoolId};

/// Draws of the bootstrap, and its seed: the interval is part of a decision and must repeat itself.
const DRAWS: usize = 500;
const BOOTSTRAP_SEED: u64 = 0;
const HOURS_PER_DAY: i64 = 24;

/// A bound and the peak that came, in GPUs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PoolPair {
    /// The issue hour.
    pub issue: HourStart,
    /// B_H, in GPUs.
    pub bound_gpus: f64,
    /// Measured peak over the hours, in GPUs.
    pub peak_gpus: f64,
}

impl PoolPair {
    /// Whether the peak stayed at or below the bound.
    #[must_use]
    pub fn is_kept(&self) -> bool {
        self.bound_gpus >= self.peak_gpus - TOLERANCE_GPUS
    }
}

/// How bounds fared.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PoolScores {
    /// Issue hours that were scored.
    pub issues: usize,
    /// Days (UTC) that the issue times lie in.
    pub days: usize,
    /// Share of issue times whose peak stayed at or below the bound: the promise kept.
    pub coverage: f64,
    /// 90 % interval of the coverage over days: hours of one day are not independent.
    pub coverage_interval: [f64; 2],
    /// Mean pinball loss at the guarantee rate.
    pub pinball_gpus: f64,
    /// Mean of bound − peak where positive.
    pub over_reserved_gpus: f64,
    /// Mean of peak − bound where positive.
    pub shortfall_gpus: f64,
}

/// Share of a pool's demand of which the rows may be missing in an hour that counts as measured. In a pool of hundreds of organizations a
/// row is missing in many hours, and next to nothing would be known of its peak over several.
const MISSING_SHARE: f64 = 0.05;

/// The largest demand of the pool over the hours from `issue`: of its own hourly peak (`*`) where the pool has one, else
/// of the sum over its organizations. `None` where an hour was not measured.
///
/// An organization that was not measured from two days before these hours on has left, or has not come yet: up to its first row it counts
/// as zero. One without a row counts with its last known demand, as in a quota; where such organizations needed more than a twentieth of the
/// pool's demand within these two days, the hour was not measured.
#[must_use]
pub fn actual_peak_gpus<'a>(panel: &'a Panel, pool: &PoolId, issue: HourStart, horizon: HorizonHours) -> Option<f64> {
    let start = panel.index_of(issue)?;
    let hours = start..start + horizon.steps();
    if hours.end > panel.hours() {
        return None;
    }
    let own = panel.pool_peak_of(pool);
    let lately = start.saturating_sub(LEFT_AFTER_HOURS)..hours.end;
    // Each with the hour from which on it is there.
    let since = |series: &'a Series| {
        let first = series.measured()[lately.clone()].iter().position(|&measured| measured)?;
        Some((series, lately.start + first))
    };
    let members: Vec<(&Series, usize)> =
        own.map_or_else(|| panel.series_of(pool).iter().filter_map(since).collect(), |peak| vec![(peak, 0)]);
    let at = |hour: usize| -> Option<f64> {
        let (mut whole, mut missing, mut is_recorded) = (0.0, 0.0, false);
        for (one, _) in members.iter().filter(|(_, since)| *since <= hour) {
            whole += one.demand_gpus()[hour];
            if one.measured()[hour] {
                is_recorded = true;
            } else {
                missing += one.demand_gpus()[lately.start..=hour].iter().copied().fold(0.0, f64::max);
            }
        }
        if !is_recorded || missing > MISSING_SHARE * whole {
            return None;
        }
        Some(if own.is_some() { whole.max(largest_of_one_gpus(panel, pool, hour)) } else { whole })
    };
    hours.map(at).try_fold(0.0, |peak: f64, demand| Some(peak.max(demand?)))
}

/// The largest demand of one organization of a pool in an hour. A peak of the pool (`*`) that is lower is of another measurement: by it
/// GPUs would be sold that HP tasks hold.
pub(crate) fn largest_of_one_gpus(panel: &Panel, pool: &PoolId, hour: usize) -> f64 {
    let measured = panel.series_of(pool).iter().filter(|one| one.measured()[hour]);
    measured.map(|one| one.demand_gpus()[hour]).fold(0.0, f64::max)
}

/// Scores of bounds at the guarantee rate; `None` without pairs.
///
/// ```
/// use forecaster::scores::{PoolPair, score_pool};
/// use vocab::{GuaranteeRate, HourStart};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let issue = HourStart::from_unix_s(0)?;
/// let kept = PoolPair { issue, bound_gpus: 12.0, peak_gpus: 10.0 };
/// let broken = PoolPair { issue: issue.plus_hours(1), bound_gpus: 12.0, peak_gpus: 13.0 };
/// let scores = score_pool(&[kept, broken], GuaranteeRate::GFS).expect("two pairs");
/// assert_eq!((scores.issues, scores.days, scores.coverage), (2, 1, 0.5));
/// assert_eq!((scores.over_reserved_gpus, scores.shortfall_gpus), (1.0, 0.5));
/// # Ok(())
/// # }
/// ```
#[must_use]
pub fn score_pool(pairs: &[PoolPair], rate: GuaranteeRate) -> Option<PoolScores> {
    if pairs.is_empty() {
        return None;
    }
    let mean = |of: &dyn Fn(&PoolPair) -> f64| pairs.iter().map(of).sum::<f64>() / pairs.len() as f64;
    let days = by_day(pairs.iter().map(|pair| (pair.issue, pair.is_kept())));
    Some(PoolScores {
        issues: pairs.len(),
        days: days.len(),
        coverage: mean(&|pair| f64::from(u8::from(pair.is_kept()))),
        coverage_interval: coverage_interval(&days),
        pinball_gpus: mean(&|pair| pinball(pair.peak_gpus, pair.bound_gpus, rate.as_f64())),
        over_reserved_gpus: mean(&|pair| (pair.bound_gpus - pair.peak_gpus).max(0.0)),
        shortfall_gpus: mean(&|pair| (pair.peak_gpus - pair.bound_gpus).max(0.0)),
    })
}

/// 90 % interval of a share over days (UTC): the hours of one day are not independent, so whole days are drawn. `[0, 0]`
/// without hours.
#[must_use]
pub fn share_interval(hours: impl IntoIterator<Item = (HourStart, bool)>) -> [f64; 2] {
    let days = by_day(hours);
    if days.is_empty() { [0.0; 2] } else { coverage_interval(&days) }
}

/// How many held, of how many, on each day (UTC).
fn by_day(hours: impl IntoIterator<Item = (HourStart, bool)>) -> Vec<(usize, usize)> {
    let mut days: BTreeMap<i64, (usize, usize)> = BTreeMap::new();
    for (hour, has_held) in hours {
        let day = hour.unix_s() / 3_600 / HOURS_PER_DAY;
        let (held, count) = days.entry(day).or_default();
        *held += usize::from(has_held);
        *count += 1;
    }
    days.into_values().collect()
}

/// Bootstrap of whole days: 5 % and 95 % quantiles of the coverage.
fn coverage_interval(days: &[(usize, usize)]) -> [f64; 2] {
    let mut rng = ChaCha8Rng::seed_from_u64(BOOTSTRAP_SEED);
    let mut draw = || {
        let picked = (0..days.len()).map(|_| days[rng.random_range(0..days.len())]);
        let (held, count) = picked.fold((0, 0), |sum, day| (sum.0 + day.0, sum.1 + day.1));
        held as f64 / count as f64
    };
    let mut draws: Vec<f64> = (0..DRAWS).map(|_| draw()).collect();
    draws.sort_by(f64::total_cmp);
    [0.05, 0.95].map(|p| empirical_quantile(&draws, p).unwrap_or(0.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use datasets::{Calendar, PanelBuilder};
    use vocab::{ClusterName, Organization, SeriesId};

    fn pair(hour: i64, bound_gpus: f64, peak_gpus: f64) -> PoolPair {
        PoolPair { issue: HourStart::from_unix_s(hour * 3_600).unwrap(), bound_gpus, peak_gpus }
    }

    #[test]
    fn waste_and_shortfall_are_distinguished_and_a_tie_keeps_the_promise() {
        let scores = score_pool(&[pair(0, 10.0, 4.0), pair(1, 4.0, 4.0), pair(2, 1.0, 4.0)], GuaranteeRate::GFS);
        let scores = scores.unwrap();
        assert!((scores.coverage - 2.0 / 3.0).abs() < 1e-12);
        assert_eq!((scores.over_reserved_gpus, scores.shortfall_gpus), (2.0, 1.0));
        assert!((scores.pinball_gpus - (0.1 * 6.0 + 0.9 * 3.0) / 3.0).abs() < 1e-12);
        assert_eq!(score_pool(&[], GuaranteeRate::GFS), None);
    }

    #[test]
    fn the_interval_is_over_days_and_repeats_itself() {
        let pairs: Vec<_> = (0..240).map(|hour| pair(hour, f64::from(u8::from(hour % 24 != 0)), 1.0)).collect();
        let one = score_pool(&pairs, GuaranteeRate::GFS).unwrap();
        assert_eq!(one.coverage_interval, [one.coverage; 2], "every day is alike");
        assert_eq!(Some(one), score_pool(&pairs, GuaranteeRate::GFS));
    }

    #[test]
    fn an_organization_that_left_two_days_ago_does_not_hide_the_peak_of_the_others() {
        let calendar = Calendar::parse("UTC", Calendar::WEEKDAYS).unwrap();
        let start = HourStart::from_unix_s(0).unwrap();
        let mut builder =
            PanelBuilder::new(ClusterName::parse("earth").unwrap(), calendar, start, start.plus_hours(300));
        let pool = PoolId::parse("earth:V100").unwrap();
        let id = |name: &str| SeriesId { pool: pool.clone(), organization: Organization::parse(name).unwrap() };
        for hour in 0..300 {
            builder.push(&id("stays"), start.plus_hours(hour), 5.0).unwrap();
            if hour < 100 {
                builder.push(&id("leaves"), start.plus_hours(hour), 3.0).unwrap();
            }
        }
        let panel = builder.finish().unwrap();
        let peak = |hour| actual_peak_gpus(&panel, &pool, start.plus_hours(hour), HorizonHours::ONE);
        assert_eq!([peak(99), peak(100), peak(147), peak(148)], [Some(8.0), None, None, Some(5.0)]);
        let other = PoolId::parse("earth:A100").unwrap();
        assert_eq!(
            actual_peak_gpus(&panel, &other, start, HorizonHours::ONE),
            None,
            "nobody's peak is no peak of zero"
        );
    }

    #[test]
    fn few_missing_rows_hide_no_peak_and_more_than_a_twentieth_of_the_demand_does() {
        let calendar = Calendar::parse("UTC", Calendar::WEEKDAYS).unwrap();
        let (start, pool) = (HourStart::from_unix_s(0).unwrap(), PoolId::parse("earth:V100").unwrap());
        let peak = |is_missing: &dyn Fn(usize) -> bool, lately_gpus: f64| {
            let earth = ClusterName::parse("earth").unwrap();
            let mut builder = PanelBuilder::new(earth, calendar.clone(), start, start.plus_hours(60));
            for number in 0..40 {
                let organization = Organization::parse(&format!("o{number}")).unwrap();
                let id = SeriesId { pool: pool.clone(), organization };
                for hour in (0..60).filter(|hour| *hour != 59 || !is_missing(number)) {
                    let demand_gpus = if number == 0 && hour == 20 { lately_gpus } else { 1.0 };
                    builder.push(&id, start.plus_hours(hour), demand_gpus).unwrap();
                }
            }
            actual_peak_gpus(&builder.finish().unwrap(), &pool, start.plus_hours(59), HorizonHours::ONE)
        };
        assert_eq!(peak(&|number| number < 2, 1.0), Some(40.0), "two of forty, by what is known of them");
        assert_eq!(peak(&|number| number < 3, 1.0), None);
        assert_eq!(peak(&|number| number == 0, 9.0), None, "it needed nine lately, and may do so again");
        assert_eq!(peak(&|_| true, 1.0), None, "an hour without a row");
    }

    #[test]
    fn hours_before_the_first_row_of_a_new_organization_and_after_it_are_scored_together() {
        let calendar = Calendar::parse("UTC", Calendar::WEEKDAYS).unwrap();
        let start = HourStart::from_unix_s(0).unwrap();
        let pool = PoolId::parse("earth:V100").unwrap();
        let id = |name: &str| SeriesId { pool: pool.clone(), organization: Organization::parse(name).unwrap() };
        let peaks = |stays: &dyn Fn(i64) -> bool| {
            let earth = ClusterName::parse("earth").unwrap();
            let mut builder = PanelBuilder::new(earth, calendar.clone(), start, start.plus_hours(100));
            for hour in (0..100).filter(|hour| stays(*hour)) {
                builder.push(&id("stays"), start.plus_hours(hour), 5.0).unwrap();
            }
            for hour in 90..100 {
                builder.push(&id("new"), start.plus_hours(hour), 3.0).unwrap();
            }
            let panel = builder.finish().unwrap();
            [86, 88, 90]
                .map(|hour| actual_peak_gpus(&panel, &pool, start.plus_hours(hour), HorizonHours::new(4).unwrap()))
        };
        assert_eq!(peaks(&|_| true), [Some(5.0), Some(8.0), Some(8.0)]);
        assert_eq!(peaks(&|hour| hour != 89), [None, None, Some(8.0)], "a row is missing");
        assert_eq!(peaks(&|hour| hour < 20), [None, None, Some(3.0)], "an hour without a row of any organization");
    }

    #[test]
    fn the_pools_own_peak_wins_over_the_sum_of_its_organizations_but_not_over_one_of_them() {
        let panel = |own_gpus: Option<[f64; 3]>| {
            let calendar = Calendar::parse("UTC", Calendar::WEEKDAYS).unwrap();
            let start = HourStart::from_unix_s(0).unwrap();
            let mut builder =
                PanelBuilder::new(ClusterName::parse("earth").unwrap(), calendar, start, start.plus_hours(3));
            let pool = PoolId::parse("earth:V100").unwrap();
            for (name, demand) in
                [("a", [3.0, 4.0, 1.0]), ("b", [5.0, 4.0, 1.0])].into_iter().chain(own_gpus.map(|own| ("*", own)))
            {
                let id = SeriesId { pool: pool.clone(), organization: Organization::parse(name).unwrap() };
                for (hour, gpus) in demand.into_iter().enumerate() {
                    builder.push(&id, start.plus_hours(hour as i64), gpus).unwrap();
                }
            }
            (builder.finish().unwrap(), pool, start)
        };
        let two = HorizonHours::new(2).unwrap();
        let (with_peak, pool, start) = panel(Some([6.0, 7.0, 2.0]));
        assert_eq!(actual_peak_gpus(&with_peak, &pool, start, two), Some(7.0));
        let (low, pool, start) = panel(Some([4.0, 2.0, 2.0]));
        assert_eq!(actual_peak_gpus(&low, &pool, start, two), Some(5.0));
        let (without, pool, start) = panel(None);
        assert_eq!(actual_peak_gpus(&without, &pool, start, two), Some(8.0));
        assert_eq!(actual_peak_gpus(&without, &pool, start.plus_hours(2), two), None, "the second hour is to come");
    }
}
