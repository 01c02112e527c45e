//! The start of a task in equally likely futures.

use crate::steps::HORIZON_S;

/// The start of a task in each of some equally likely futures.
#[derive(Debug, Clone, PartialEq)]
pub struct Starts {
    /// Seconds from the question on, rising; [`HORIZON_S`] stands for all that come later.
    sorted_s: Vec<f64>,
}

impl Starts {
    /// Of the starts of all futures; none where there is no future.
    pub(crate) fn of(mut starts_s: Vec<f64>) -> Option<Self> {
        starts_s.sort_by(f64::total_cmp);
        (!starts_s.is_empty()).then_some(Self { sorted_s: starts_s })
    }

    /// A task that starts at once.
    #[must_use]
    pub fn now() -> Self {
        Self { sorted_s: vec![0.0] }
    }

    /// The starts of all futures, rising.
    pub(crate) fn each(&self) -> impl Iterator<Item = f64> {
        self.sorted_s.iter().copied()
    }

    /// The number of futures.
    #[must_use]
    pub const fn futures(&self) -> usize {
        self.sorted_s.len()
    }

    /// The p-quantile in seconds, between the starts next to it; [`HORIZON_S`] where it is later.
    #[must_use]
    pub fn quantile_s(&self, level: f64) -> f64 {
        let last = self.sorted_s.len() - 1;
        let at = (level * self.sorted_s.len() as f64 - 0.5).clamp(0.0, last as f64);
        let (low, part) = (at.floor() as usize, at.fract());
        self.sorted_s[low] * (1.0 - part) + self.sorted_s[(low + 1).min(last)] * part
    }

    /// The share of futures in which it has started by then.
    #[must_use]
    pub fn probability_by(&self, seconds: f64) -> f64 {
        let horizon_s = f64::from(HORIZON_S);
        let started = self.sorted_s.partition_point(|start| *start <= seconds && *start < horizon_s);
        started as f64 / self.sorted_s.len() as f64
    }

    /// A mixture of distributions by their weights, as so many equally likely starts; none of nothing.
    pub(crate) fn mixed(parts: &[(f64, &Self)], futures: usize) -> Option<Self> {
        let mut all: Vec<(f64, f64)> = Vec::new();
        for (weight, part) in parts {
            all.extend(part.each().map(|start| (start, weight / part.futures() as f64)));
        }
        all.sort_by(|one, other| one.0.total_cmp(&other.0));
        let sum: f64 = all.iter().map(|(_, weight)| weight).sum();
        let (mut place, mut below) = (0, 0.0);
        let mut at = |number: usize| {
            let share = (number as f64 + 0.5) / futures as f64 * sum;
            while place + 1 < all.len() && below + all[place].1 < share {
                below += all[place].1;
                place += 1;
            }
            all.get(place).map(|(start, _)| *start)
        };
        (0..futures).map(&mut at).collect::<Option<Vec<f64>>>().and_then(Self::of)
    }

    /// Each start moved by what `moved` makes of its level and itself; the order of the futures stays.
    pub(crate) fn moved(&self, moved: impl Fn(f64, f64) -> f64) -> Self {
        let (count, mut before) = (self.sorted_s.len() as f64, 0.0_f64);
        let one = |(place, start): (usize, &f64)| {
            before = before.max(moved((place as f64 + 0.5) / count, *start)).min(f64::from(HORIZON_S));
            before
        };
        Self { sorted_s: self.sorted_s.iter().enumerate().map(one).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_lie_between_starts_and_probabilities_count_those_before_the_horizon() {
        let starts = Starts::of(vec![600.0, 0.0, f64::from(HORIZON_S), 1_200.0]).unwrap();
        assert_eq!(
            [0.0, 0.125, 0.25, 0.5, 0.625].map(|level| starts.quantile_s(level)),
            [0.0, 0.0, 300.0, 900.0, 1_200.0]
        );
        assert_eq!([0.0, 599.0, 600.0, 1e9].map(|by| starts.probability_by(by)), [0.25, 0.25, 0.5, 0.75]);
        let later = starts.moved(|_, start| start * 2.0);
        assert_eq!(later.quantile_s(0.875), f64::from(HORIZON_S));
        assert_eq!(later.quantile_s(0.625), 2_400.0);
    }

    #[test]
    fn a_mixture_has_each_start_as_often_as_its_part_weighs() {
        let (ten, hundred) = (Starts::of(vec![10.0; 4]).unwrap(), Starts::of(vec![100.0, 200.0]).unwrap());
        let mixed = Starts::mixed(&[(0.25, &hundred), (0.75, &ten)], 16).unwrap();
        let count = |of: f64| mixed.each().filter(|start| *start == of).count();
        assert_eq!([10.0, 100.0, 200.0].map(count), [12, 2, 2]);
        assert_eq!(Starts::mixed(&[(1.0, &hundred), (0.0, &ten)], 2), Some(hundred));
        assert_eq!(Starts::mixed(&[], 3), None);
    }
}
