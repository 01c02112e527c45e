//! Demand of a pool before an issue time, as the experts without a model read it.

use super::linear::Inputs;
use super::pool::latest_gpus;
use super::returns::returns;
use crate::left::LEFT_AFTER_HOURS;
use crate::scores::largest_of_one_gpus;
use datasets::Panel;
use vocab::{HorizonHours, HourStart, PoolId};

const DAY_HOURS: usize = 24;
/// Days before the issue time whose rises are averaged.
const DAYS: usize = 7;
/// Hours before an issue time that the inputs need.
pub const SEEN_HOURS: usize = DAYS * DAY_HOURS + 1;

/// Recent demand of a pool.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Recent {
    /// The largest demand in the hour before, in GPUs: where not all of the pool was measured then, with the newest that is known of
    /// the others, as the model sees it. `None` where none of them was measured in the last two days.
    pub latest_gpus: Option<f64>,
    /// `[hours − 1]`, in GPUs above the latest demand; empty where the history is too short.
    pub(super) inputs: Vec<Inputs>,
    /// `[hours − 1]`: what demand returns to where a day off ends; empty where none does.
    pub(super) returns_gpus: Vec<Option<f64>>,
}

/// Demand of a pool before `issue`, for peaks over 1, 2, … hours. Nothing at or after `issue` is read.
#[must_use]
pub fn recent(panel: &Panel, pool: &PoolId, issue: HourStart, horizon: HorizonHours) -> Recent {
    Recent { returns_gpus: returns(panel, pool, issue, horizon), ..for_experts(panel, pool, issue, horizon) }
}

/// The same as far as experts read it, without what returns.
pub fn for_experts(panel: &Panel, pool: &PoolId, issue: HourStart, horizon: HorizonHours) -> Recent {
    let until = panel.index_of(issue).unwrap_or(0).min(panel.hours());
    let by_the_clock = panel.clock().hours(0, until, SEEN_HOURS);
    let seen = match by_the_clock {
        Some(hours) => hourly(panel, pool, hours.into_iter()),
        None => hourly(panel, pool, until.saturating_sub(SEEN_HOURS)..until),
    };
    // Reports of an hour come one by one, and an organization that ends is missed for two days: without its rows the bound would rest
    // on the other experts alone, and jump.
    let lately = until.saturating_sub(LEFT_AFTER_HOURS)..until;
    let mut all = panel.pool_peak_of(pool).into_iter().chain(panel.series_of(pool));
    let filled = || seen.last().copied().filter(|_| all.any(|one| one.measured()[lately.clone()].contains(&true)));
    Recent {
        latest_gpus: latest_gpus(panel, pool, issue).or_else(filled),
        inputs: inputs(&seen, horizon),
        returns_gpus: Vec::new(),
    }
}

/// Demand of a pool in each hour of a range, in GPUs: its own peak where it has one, else the sum over its organizations. Gaps have the
/// demand before them.
pub fn hourly(panel: &Panel, pool: &PoolId, hours: impl ExactSizeIterator<Item = usize> + Clone) -> Vec<f64> {
    if let Some(peak) = panel.pool_peak_of(pool) {
        return hours.map(|hour| peak.demand_gpus()[hour].max(largest_of_one_gpus(panel, pool, hour))).collect();
    }
    let mut all = vec![0.0; hours.len()];
    for series in panel.series_of(pool) {
        let demand = series.demand_gpus();
        all.iter_mut().zip(hours.clone()).for_each(|(sum, hour)| *sum += demand[hour]);
    }
    all
}

/// The inputs for the peak over 1, 2, … hours after what was `seen`, hour by hour: how far the mean of the last day was above the
/// latest demand, and how far demand rose within the hours at this time on the days before, on average.
pub fn inputs(seen: &[f64], horizon: HorizonHours) -> Vec<Inputs> {
    let Some(latest) = seen.last().filter(|_| seen.len() > DAY_HOURS) else { return Vec::new() };
    let now = seen.len();
    let mean = seen[now - DAY_HOURS..].iter().sum::<f64>() / DAY_HOURS as f64;
    // Sum of the rises, and of the days behind it.
    let mut rises = vec![(0.0, 0.0); horizon.steps()];
    for back in (1..=DAYS).map(|day| day * DAY_HOURS).filter(|back| *back < now) {
        let before = seen[now - back - 1];
        let mut peak = f64::NEG_INFINITY;
        // The hours have to be over by now.
        for ((sum, days), gpus) in rises.iter_mut().zip(&seen[now - back..]) {
            peak = peak.max(*gpus);
            *sum += peak - before;
            *days += 1.0;
        }
    }
    rises.into_iter().map(|(sum, days)| [mean - latest, sum / f64::max(days, 1.0)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use datasets::{Calendar, PanelBuilder};
    use vocab::{Organization, SeriesId};

    fn hours(count: u64) -> HorizonHours {
        HorizonHours::new(count).unwrap()
    }

    #[test]
    fn demand_of_a_pool_is_its_own_peak_and_at_least_that_of_each_organization() {
        let calendar = Calendar::parse("UTC", Calendar::WEEKDAYS).unwrap();
        let start = HourStart::from_unix_s(0).unwrap();
        let pool = PoolId::parse("earth:V100").unwrap();
        let mut builder = PanelBuilder::new(pool.cluster.clone(), calendar, start, start.plus_hours(3));
        for (name, demand) in [("a", [3.0, 4.0, 1.0]), ("b", [5.0, 4.0, 1.0]), ("*", [4.0, 7.0, 2.0])] {
            let series = SeriesId { pool: pool.clone(), organization: Organization::parse(name).unwrap() };
            for (hour, gpus) in demand.into_iter().enumerate() {
                builder.push(&series, start.plus_hours(hour as i64), gpus).unwrap();
            }
        }
        assert_eq!(hourly(&builder.finish().unwrap(), &pool, 0..3), [5.0, 7.0, 2.0]);
    }

    #[test]
    fn inputs_are_the_distance_to_the_mean_of_a_day_and_the_usual_rise() {
        // Ten GPUs, and 30 at 06:00 and 07:00; it is 05:00 on the third day.
        let seen: Vec<f64> = (0..53).map(|hour| if [6, 7].contains(&(hour % 24)) { 30.0 } else { 10.0 }).collect();
        let mean = 280.0 / 24.0 - 10.0;
        assert_eq!(inputs(&seen, hours(2)), [[mean, 0.0], [mean, 20.0]]);
    }

    #[test]
    fn a_history_of_a_day_or_less_has_no_inputs_and_hours_that_are_not_over_no_rise() {
        assert!(inputs(&[7.0; 24], hours(4)).is_empty());
        let mut seen = vec![5.0; 49];
        seen[30] = 25.0;
        // The 30 hours after this time a day ago are not over; those of two days ago are.
        let [mean, rise] = inputs(&seen, hours(30))[29];
        assert!((mean - 20.0 / 24.0).abs() < 1e-9 && rise == 20.0, "{mean} {rise}");
        assert_eq!(inputs(&seen[..40], hours(30))[29][1], 0.0);
    }

    #[test]
    fn the_latest_demand_is_known_while_an_organization_that_ended_is_missed_and_after_it_has_left() {
        let calendar = Calendar::parse("UTC", Calendar::WEEKDAYS).unwrap();
        let start = HourStart::from_unix_s(0).unwrap();
        let pool = PoolId::parse("earth:V100").unwrap();
        let mut builder = PanelBuilder::new(pool.cluster.clone(), calendar, start, start.plus_hours(300));
        // Two end within two days of each other: no hour of these two days is measured as a whole.
        for (name, end) in [("a", 300), ("b", 100), ("c", 105)] {
            let series = SeriesId { pool: pool.clone(), organization: Organization::parse(name).unwrap() };
            (0..end).for_each(|hour| builder.push(&series, start.plus_hours(hour), 10.0).unwrap());
        }
        let panel = builder.finish().unwrap();
        let latest = |issue: i64| for_experts(&panel, &pool, start.plus_hours(issue), hours(4)).latest_gpus;
        assert!((100..250).all(|issue| latest(issue).is_some_and(|gpus| (10.0..=30.0).contains(&gpus))));
        assert_eq!((latest(100), latest(250)), (Some(30.0), Some(10.0)));
    }
}
