//! How far demand rose, and at what time of the day.

use crate::nearness;
use vocab::{GuaranteeRate, UnixSeconds};

/// Below so many measured rises there is no live bound.
const LEAST_RISES: usize = 12;
const HOURS: usize = 24;
const HOUR_S: i64 = 3_600;

/// Rises in thousandths of a mean move, by how often they were measured at which hour of the day, in UTC.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Rises {
    /// Sorted. Each renewal copies all of them, and adds or removes few: a list is one block of memory.
    counts: Vec<((i64, u8), u32)>,
    by_hour: [u32; HOURS],
    all: usize,
}

impl Rises {
    /// `from` is when the rise began to be measured.
    pub fn add(&mut self, from: UnixSeconds, rise: i64) {
        let hour = hour_of_day(from);
        match self.place(rise, hour) {
            Ok(known) => self.counts[known].1 += 1,
            Err(place) => self.counts.insert(place, ((rise, hour), 1)),
        }
        self.by_hour[usize::from(hour)] += 1;
        self.all += 1;
    }

    /// Removes a rise.
    pub fn remove(&mut self, from: UnixSeconds, rise: i64) {
        let hour = hour_of_day(from);
        if let Ok(known) = self.place(rise, hour) {
            self.counts[known].1 -= 1;
            if self.counts[known].1 == 0 {
                self.counts.remove(known);
            }
            self.by_hour[usize::from(hour)] -= 1;
            self.all -= 1;
        }
    }

    /// The place of a rise at an hour, or that at which it would stand.
    fn place(&self, rise: i64, hour: u8) -> Result<usize, usize> {
        self.counts.binary_search_by_key(&(rise, hour), |(known, _)| *known)
    }

    /// Two answers to how far demand rises with probability p, in mean moves: of all hours of the day alike, and of those near
    /// `now` before others.
    pub fn order_statistics(&self, rate: GuaranteeRate, now: UnixSeconds) -> Option<[f64; 2]> {
        if self.all < LEAST_RISES {
            return None;
        }
        Some([self.order_statistic(rate, &[1.0; HOURS]), self.order_statistic(rate, &weights(now))])
    }

    /// The least rise that, with those below it, has p of the weight; the next rise counts among them with the largest weight, as
    /// in weighted conformal prediction (Tibshirani et al. 2019). With equal weights the ⌈(n+1)p⌉-th smallest. The largest where
    /// none has.
    fn order_statistic(&self, rate: GuaranteeRate, weights: &[f64; HOURS]) -> f64 {
        let measured: f64 = self.by_hour.iter().zip(weights).map(|(count, weight)| f64::from(*count) * weight).sum();
        let most = weights.iter().copied().fold(0.0, f64::max);
        // A hair less, so that a sum of whole numbers reaches a whole number.
        let wanted = (measured + most) * rate.as_f64() - 1e-9 * measured;
        // From the largest down, since p is large: the last one that, with those below it, still has what is wanted.
        let mut found = self.counts.last().map_or(0, |((rise, _), _)| *rise);
        let mut reached = measured;
        for ((rise, hour), count) in self.counts.iter().rev() {
            if reached < wanted {
                break;
            }
            found = *rise;
            reached -= f64::from(*count) * weights[usize::from(*hour)];
        }
        found as f64 / 1_000.0
    }
}

fn hour_of_day(at: UnixSeconds) -> u8 {
    (at.get().div_euclid(HOUR_S).rem_euclid(HOURS as i64)) as u8
}

/// The weight of each hour of the day at `now`, from its middle to the present time of the day.
fn weights(now: UnixSeconds) -> [f64; HOURS] {
    let time_of_day = now.get().rem_euclid(HOURS as i64 * HOUR_S) as f64 / HOUR_S as f64;
    std::array::from_fn(|hour| nearness::weight(hour as f64 + 0.5 - time_of_day))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(hours: i64) -> UnixSeconds {
        UnixSeconds::new(hours * HOUR_S)
    }

    #[test]
    fn with_equal_weights_it_is_the_order_statistic_of_conformal_prediction() {
        let mut rises = Rises::default();
        (1..LEAST_RISES as i64).for_each(|rise| rises.add(at(rise), rise * 1_000));
        assert_eq!(rises.order_statistics(GuaranteeRate::GFS, at(0)), None, "too few");
        (LEAST_RISES as i64..=19).for_each(|rise| rises.add(at(rise), rise * 1_000));
        // ⌈20 · 0.9⌉ = 18, and ⌈20 · 0.5⌉ = 10.
        let [any, _] = rises.order_statistics(GuaranteeRate::GFS, at(0)).unwrap();
        let [half, _] = rises.order_statistics(GuaranteeRate::new(0.5).unwrap(), at(0)).unwrap();
        assert_eq!((any, half), (18.0, 10.0));
        rises.remove(at(19), 19_000);
        rises.remove(at(18), 18_000);
        let [any, _] = rises.order_statistics(GuaranteeRate::new(0.999).unwrap(), at(0)).unwrap();
        assert_eq!(any, 17.0, "the largest where none is large enough");
    }

    #[test]
    fn a_rise_of_every_morning_counts_in_the_morning() {
        let mut rises = Rises::default();
        for hour in 0..7 * 24 {
            let rise = if hour % 24 == 9 { 50_000 } else { 1_000 + hour };
            rises.add(at(hour), rise);
        }
        let now =
            |hour: i64| rises.order_statistics(GuaranteeRate::GFS, UnixSeconds::new(hour * HOUR_S + 1_800)).unwrap();
        let [any, morning] = now(9);
        assert!(any < 2.0 && morning == 50.0, "{any} {morning}");
        let [_, night] = now(21);
        assert!(night < 2.0, "{night}");
    }
}
