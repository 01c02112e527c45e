//! Rows of long horizons: one target each, drawn among the steps of a group.

use super::samples::{ROWS_MOST, RowPlace, Seen};
use super::{Features, Samples, days_off};
use datasets::HourRange;
use datasets::window::{self, Window};
use std::ops::Range;
use vocab::HorizonHours;

/// Targets of a window and group at most, where there are few windows.
const TARGETS_MOST: usize = 2;

impl Samples {
    /// Adds rows of one target each, of every group of steps in the plan whose issue times hold this one.
    pub(super) fn read_targets(
        &mut self,
        plan: &Features,
        issues: HourRange,
        of: &Seen<'_>,
        (seen, at): (&Window<'_>, RowPlace),
    ) {
        let groups = plan.step_groups();
        let rows = issues.hours() * self.series * groups.count();
        let most = (ROWS_MOST / rows.max(1)).clamp(1, TARGETS_MOST);
        let shared = Features::shared(seen, at.scale_gpus);
        let learn = groups.ranges().iter().enumerate().filter(|(_, steps)| of.issue < groups.until(issues, steps));
        for (group, steps) in learn {
            for step in targets_of(steps, most, of.number, at.place) {
                let Some(came_gpus) = measured(of, step) else { continue };
                plan.append_target(&shared, seen, (at.scale_gpus, at.place), step, &mut self.rows);
                self.scales.push(at.scale_gpus);
                self.crossings.push(plan.days_off() && days_off::is_crossed(seen, step..step + 1));
                let target = (came_gpus - seen.last_gpus()) / at.scale_gpus;
                let all = self.targets.iter_mut().enumerate();
                all.for_each(|(one, to)| to.push(if one == group { target } else { f64::NAN }));
            }
        }
    }
}

/// Demand of the target of a step, in GPUs, where it was measured.
fn measured(of: &Seen<'_>, step: usize) -> Option<f64> {
    let hours = HorizonHours::new(step as u64 + 1).ok()?;
    let came = window::outcome(of.panel, of.in_panel, of.issue, hours)?;
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
