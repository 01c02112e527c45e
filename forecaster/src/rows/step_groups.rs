//! Steps of a long horizon that share a forest and a head, so that a horizon costs as its groups do.

use datasets::HourRange;
use std::ops::Range;
use vocab::{HorizonHours, HourStart};

/// The last step of each group, from 1: the farther a step, the less it differs from the one beside it.
const ENDS: [usize; 12] = [1, 2, 3, 4, 6, 8, 12, 24, 48, 72, 120, 168];

/// A group of more steps than this many strides has a longer stride.
const STRIDES_LEAST: usize = 4;

/// Groups of steps; none where each step stands alone.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StepGroups {
    ranges: Vec<Range<usize>>,
    /// Of each group: every so many steps, up to its last one, are answered by trees and network. Those in between lie on a curve
    /// through them.
    strides: Vec<usize>,
}

impl StepGroups {
    /// Groups for a horizon of more than `steps_alone` steps; none for a shorter one. Strides are of at most `stride_most` steps.
    #[must_use]
    pub fn of(horizon: HorizonHours, steps_alone: usize, stride_most: usize) -> Self {
        let steps = horizon.steps();
        if steps <= steps_alone {
            return Self::default();
        }
        let mut ends: Vec<usize> = ENDS.into_iter().filter(|end| *end < steps).collect();
        // A rest that is less than half of a group belongs to the group before it.
        let last = ends.last().copied().unwrap_or(0);
        let whole = ENDS.into_iter().find(|end| *end >= steps).unwrap_or(steps) - last;
        if 2 * (steps - last) < whole {
            ends.pop();
        }
        ends.push(steps);
        let mut groups = Self::from_ends(&ends);
        let stride = |group: &Range<usize>| (group.len() / STRIDES_LEAST).clamp(1, stride_most.max(1));
        groups.strides = groups.ranges.iter().map(stride).collect();
        groups
    }

    /// Groups by the number of steps up to the end of each, of which every step is answered.
    #[must_use]
    pub fn from_ends(ends: &[usize]) -> Self {
        let starts = std::iter::once(0).chain(ends.iter().copied());
        let ranges = starts.zip(ends).map(|(start, end)| start..*end).collect();
        Self { ranges, strides: vec![1; ends.len()] }
    }

    /// The same groups with these strides, one for each group.
    #[must_use]
    pub fn with_strides(self, strides: Vec<usize>) -> Self {
        Self { strides, ..self }
    }

    /// One group alone.
    #[must_use]
    pub fn one(group: Range<usize>) -> Self {
        Self { ranges: vec![group], strides: vec![1] }
    }

    /// The number of steps up to the end of each group.
    pub fn ends(&self) -> impl Iterator<Item = usize> {
        self.ranges.iter().map(|group| group.end)
    }

    /// The steps of each group, from 0.
    #[must_use]
    pub fn ranges(&self) -> &[Range<usize>] {
        &self.ranges
    }

    /// Steps from one that is answered to the next, of each group.
    #[must_use]
    pub fn strides(&self) -> &[usize] {
        &self.strides
    }

    /// The steps that trees and network answer, from 0, rising; of each group.
    pub fn answered(&self) -> impl Iterator<Item = Vec<usize>> {
        let of_group = |(group, stride): (&Range<usize>, &usize)| {
            let mut steps: Vec<usize> = group.clone().rev().step_by((*stride).max(1)).collect();
            steps.reverse();
            steps
        };
        self.ranges.iter().zip(&self.strides).map(of_group)
    }

    /// Whether each step stands alone.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// How many groups rows are drawn for: one where each step stands alone.
    #[must_use]
    pub fn count(&self) -> usize {
        self.ranges.len().max(1)
    }

    /// Issue times at which some group can learn, where those of a whole horizon are `issues`: a group learns from every issue
    /// time whose targets end where those of the last step do, the near ones from hours that the far ones cannot.
    #[must_use]
    pub fn issues(&self, issues: HourRange, horizon: HorizonHours) -> HourRange {
        let rest = self.ranges.first().map_or(0, |first| horizon.steps() - first.end);
        HourRange { to: issues.to.plus_hours(rest as i64), ..issues }
    }

    /// The end of the issue times of one group among [`issues`](Self::issues).
    #[must_use]
    pub fn until(&self, issues: HourRange, group: &Range<usize>) -> HourStart {
        let first = self.ranges.first().map_or(0, |first| first.end);
        issues.to.plus_hours(first as i64 - group.end as i64)
    }

    /// How many forests and heads a model has of each kind.
    #[must_use]
    pub const fn parts(&self, horizon: HorizonHours) -> usize {
        if self.ranges.is_empty() { horizon.steps() } else { self.ranges.len() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends(hours: u64, steps_alone: usize) -> Vec<usize> {
        StepGroups::of(HorizonHours::new(hours).unwrap(), steps_alone, 4).ends().collect()
    }

    #[test]
    fn groups_cover_every_step_once_and_a_short_rest_joins_the_last_one() {
        assert_eq!(ends(8, 8), [0_usize; 0]);
        assert_eq!(ends(24, 8), [1, 2, 3, 4, 6, 8, 12, 24]);
        assert_eq!(ends(26, 8), [1, 2, 3, 4, 6, 8, 12, 26], "two hours make no group beside twelve");
        assert_eq!(ends(74, 8), [1, 2, 3, 4, 6, 8, 12, 24, 48, 74]);
        for hours in 9..=168 {
            let groups = StepGroups::of(HorizonHours::new(hours).unwrap(), 8, 4);
            let steps: Vec<usize> = groups.ranges().iter().cloned().flatten().collect();
            assert_eq!(steps, (0..hours as usize).collect::<Vec<_>>());
            assert!(groups.ranges().len() <= 12);
        }
    }

    #[test]
    fn near_steps_are_all_answered_and_of_far_groups_every_few_up_to_the_last() {
        let groups = StepGroups::of(HorizonHours::new(74).unwrap(), 8, 4);
        let from_one = |steps: Vec<usize>| steps.into_iter().map(|step| step + 1).collect::<Vec<_>>();
        let answered: Vec<_> = groups.answered().map(from_one).collect();
        assert_eq!(answered[..7].concat(), (1..=12).collect::<Vec<_>>());
        assert_eq!(answered[7], [15, 18, 21, 24]);
        assert_eq!(answered[8], [28, 32, 36, 40, 44, 48]);
        assert_eq!(answered[9], [50, 54, 58, 62, 66, 70, 74]);
        let all = StepGroups::of(HorizonHours::new(74).unwrap(), 8, 1);
        assert_eq!(all.answered().flatten().collect::<Vec<_>>(), (0..74).collect::<Vec<_>>());
    }
}
