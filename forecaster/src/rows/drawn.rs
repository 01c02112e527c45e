//! Rows of long horizons: one target each, drawn among the steps of a group.

use super::samples::{HOURS_PER_DAY, ROWS_MOST};
use super::{Features, Samples};
use crate::fit::{Fit, FitError};
use datasets::{HourRange, window};
use std::ops::Range;
use vocab::{HorizonHours, SeriesId};

/// Targets of a window and group at most, where there are few windows.
const TARGETS_MOST: usize = 2;

impl Samples {
    /// Rows of one target each, of every group of steps in the plan.
    ///
    /// A group learns from every issue time whose targets end where those of the last step do: the near ones learn from
    /// hours that the far ones cannot.
    pub(super) fn drawn(
        what: &Fit<'_>,
        plan: &Features,
        series: &[(SeriesId, f64)],
        issues: HourRange,
    ) -> Result<Self, FitError> {
        let groups = plan.step_groups().ranges();
        let targets = vec![Vec::new(); groups.len()];
        let features = plan.count();
        let mut samples = Self { rows: Vec::new(), targets, scales: Vec::new(), series: series.len(), features };
        let in_panel = |id: &SeriesId| what.panel.series().binary_search_by(|one| one.id().cmp(id)).ok();
        let places: Vec<Option<usize>> = series.iter().map(|(id, _)| in_panel(id)).collect();
        let rows = issues.hours() * series.len() * groups.len();
        let every = rows.div_ceil(ROWS_MOST).max(1);
        let most = (ROWS_MOST / rows.max(1)).clamp(1, TARGETS_MOST);
        let until = |group: &Range<usize>| issues.to.plus_hours((what.spec.horizon.steps() - group.end) as i64);
        let to = groups.iter().map(until).max().unwrap_or(issues.to);
        for (number, issue) in (HourRange { from: issues.from, to }).iter().enumerate() {
            if !(number + number / HOURS_PER_DAY).is_multiple_of(every) {
                continue;
            }
            for (place, (in_panel, (_, scale_gpus))) in places.iter().zip(series).enumerate() {
                let Some(in_panel) = *in_panel else { continue };
                let (lookback_hours, least_hours) = (what.spec.lookback_hours, what.spec.least_hours());
                let seen =
                    window::at_least(what.panel, in_panel, issue, lookback_hours, least_hours, what.spec.horizon);
                let Ok(seen) = seen else { continue };
                if seen.demand_gpus.len() < what.settings.history_hours_least.min(lookback_hours) {
                    continue;
                }
                let shared = Features::shared(&seen, *scale_gpus);
                for (group, steps) in groups.iter().enumerate().filter(|(_, steps)| issue < until(steps)) {
                    for step in targets_of(steps, most, number, place) {
                        let Some(came_gpus) = measured(what, in_panel, issue, step) else { continue };
                        plan.append_target(&shared, &seen, (*scale_gpus, place), step, &mut samples.rows);
                        samples.scales.push(*scale_gpus);
                        let all = samples.targets.iter_mut().enumerate();
                        let target = (came_gpus - seen.last_gpus()) / scale_gpus;
                        all.for_each(|(one, to)| to.push(if one == group { target } else { f64::NAN }));
                    }
                }
            }
        }
        if samples.scales.is_empty() { Err(FitError::NothingMeasured { issues }) } else { Ok(samples) }
    }
}

/// Demand of the target of a step, in GPUs, where it was measured.
fn measured(what: &Fit<'_>, in_panel: usize, issue: vocab::HourStart, step: usize) -> Option<f64> {
    let hours = HorizonHours::new(step as u64 + 1).ok()?;
    let came = window::outcome(what.panel, in_panel, issue, hours)?;
    came.measured[step].then_some(came.demand_gpus[step])
}

/// Steps of a group for one row each, drawn by the numbers of issue time and series: one in each of `most` equal parts.
fn targets_of(group: &Range<usize>, most: usize, issue: usize, place: usize) -> impl Iterator<Item = usize> {
    let (start, length) = (group.start, group.len());
    let parts = most.min(length);
    let drawn = mixed((issue as u64) << 32 | place as u64);
    (0..parts).map(move |part| {
        let (from, to) = (part * length / parts, (part + 1) * length / parts);
        start + from + (drawn % (to - from) as u64) as usize
    })
}

/// A number whose every bit depends on every bit of another one (Steele and others 2014).
const fn mixed(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_step_of_a_group_is_drawn_about_as_often() {
        let mut counts = [0_usize; 24];
        for issue in 0..1_000 {
            for step in targets_of(&(24..48), 2, issue, issue % 7) {
                counts[step - 24] += 1;
            }
        }
        assert_eq!(counts.iter().sum::<usize>(), 2_000);
        assert!(counts.iter().all(|count| (50..120).contains(count)), "{counts:?}");
        assert_eq!(targets_of(&(3..4), 2, 5, 1).collect::<Vec<_>>(), [3]);
    }
}
