//! Which windows teach, where there are more than a model takes.

use datasets::HourRange;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

const HOURS_PER_DAY: usize = 24;
/// Thinned to fewer issue hours than a week has, every nth hour no longer shows each hour of the week.
const LEAST_ISSUES: usize = vocab::HOURS_PER_WEEK as usize;
/// Classes of size, by the deviation of a series: each as many series.
const SIZES: usize = 8;
/// A series that began after so much of the part is young: its windows show how new organizations behave.
const YOUNG_AFTER: usize = 2;
/// This part of the budget is shared out equally among strata, so that small ones teach, too; the rest by their windows.
const EQUAL_SHARE: usize = 4;

/// A series that can be chosen from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Candidate {
    /// The first issue hour of the part with a window, from 0.
    pub first: usize,
}

/// The chosen windows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Choice {
    /// Every nth hour of all series; a thinned day begins at another hour than the one before it, so that all hours of the
    /// day remain.
    EveryNth(usize),
    /// Place of the series and number of the issue hour, rising.
    Windows(Vec<(u32, u32)>),
}

impl Choice {
    /// Chooses about `rows_most` windows of `series`, which stand in the order of their size, at `issues`. The same seed gives the
    /// same choice. Panels of few series are thinned by hours; one with so many series that less than a week of hours would
    /// remain is drawn from by size and age.
    pub fn of(series: &[Candidate], issues: HourRange, rows_most: usize, seed: u64) -> Self {
        let hours = issues.hours();
        let every = (hours * series.len()).div_ceil(rows_most.max(1)).max(1);
        if every == 1 || hours / every >= LEAST_ISSUES {
            return Self::EveryNth(every);
        }
        Self::drawn(series, issues, rows_most, seed)
    }

    /// As [`of`](Self::of), drawn for any number of series.
    pub fn drawn(series: &[Candidate], issues: HourRange, rows_most: usize, seed: u64) -> Self {
        let hours = issues.hours();
        let mut chosen = Vec::with_capacity(rows_most);
        let strata = strata(series, hours);
        let all: usize = strata.iter().map(|stratum| windows(stratum, series, hours)).sum();
        let equal = rows_most / EQUAL_SHARE / strata.len().max(1);
        for (number, stratum) in strata.iter().enumerate() {
            let windows = windows(stratum, series, hours);
            let share = (rows_most - rows_most / EQUAL_SHARE) as f64 * windows as f64 / all.max(1) as f64;
            let rows = (equal + share as usize).min(windows);
            let mut rng = ChaCha8Rng::seed_from_u64(seed.wrapping_mul(1_000_003).wrapping_add(number as u64));
            draw(stratum, series, hours, rows, &mut rng, &mut chosen);
        }
        chosen.sort_unstable();
        Self::Windows(chosen)
    }

    /// The numbers of the issue hours, rising, at which the series at a place is read.
    pub fn of_place(&self, place: usize, hours: usize) -> Vec<usize> {
        match self {
            Self::EveryNth(every) => {
                (0..hours).filter(|number| (number + number / HOURS_PER_DAY).is_multiple_of(*every)).collect()
            }
            Self::Windows(chosen) => {
                let start = chosen.partition_point(|(one, _)| (*one as usize) < place);
                let of_place = chosen[start..].iter().take_while(|(one, _)| *one as usize == place);
                of_place.map(|(_, number)| *number as usize).collect()
            }
        }
    }
}

/// Places of the series by class of size and age, none of them empty.
fn strata(series: &[Candidate], hours: usize) -> Vec<Vec<usize>> {
    let mut strata = vec![Vec::new(); 2 * SIZES];
    for (place, one) in series.iter().enumerate() {
        let is_young = one.first > hours / YOUNG_AFTER;
        strata[2 * (place * SIZES / series.len()) + usize::from(is_young)].push(place);
    }
    strata.retain(|stratum| !stratum.is_empty());
    strata
}

fn windows(stratum: &[usize], series: &[Candidate], hours: usize) -> usize {
    stratum.iter().map(|place| hours.saturating_sub(series[*place].first)).sum()
}

/// Cuts the windows of a stratum, series after series, into so many equal runs and draws one of each: every series and hour has
/// the same chance, and no series is left out where there is a row for each.
fn draw(
    stratum: &[usize],
    series: &[Candidate],
    hours: usize,
    rows: usize,
    rng: &mut ChaCha8Rng,
    chosen: &mut Vec<(u32, u32)>,
) {
    let all = windows(stratum, series, hours);
    let mut places = stratum.iter();
    let (mut place, mut before, mut own) = (0, 0, 0);
    for row in 0..rows {
        let (from, to) = (row * all / rows, (row + 1) * all / rows);
        let drawn = rng.random_range(from..to.max(from + 1));
        while drawn >= before + own {
            let Some(next) = places.next() else { return };
            before += own;
            (place, own) = (*next, hours.saturating_sub(series[*next].first));
        }
        chosen.push((place as u32, (series[place].first + drawn - before) as u32));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use vocab::HourStart;

    fn issues(hours: i64) -> HourRange {
        let from = HourStart::from_unix_s(0).unwrap();
        HourRange { from, to: from.plus_hours(hours) }
    }

    #[test]
    fn few_series_are_thinned_by_hours_and_many_are_drawn_from() {
        let series = |count| vec![Candidate { first: 0 }; count];
        assert_eq!(Choice::of(&series(16), issues(4_000), 80_000, 1), Choice::EveryNth(1));
        assert_eq!(Choice::of(&series(84), issues(4_000), 80_000, 1), Choice::EveryNth(5));
        assert!(matches!(Choice::of(&series(1_000), issues(4_000), 80_000, 1), Choice::Windows(_)));
    }

    #[test]
    fn every_series_hour_and_age_has_its_windows_and_the_same_seed_repeats_them() {
        let series: Vec<_> =
            (0..5_000).map(|place| Candidate { first: if place % 50 == 7 { 700 } else { 0 } }).collect();
        let choice = Choice::of(&series, issues(800), 20_000, 3);
        assert_eq!(choice, Choice::of(&series, issues(800), 20_000, 3));
        assert_ne!(choice, Choice::of(&series, issues(800), 20_000, 4));
        let Choice::Windows(chosen) = choice else { panic!("{choice:?}") };
        assert!((19_000..=20_000).contains(&chosen.len()), "{}", chosen.len());
        assert!(chosen.windows(2).all(|pair| pair[0] < pair[1]), "each window once");
        let of = |what: fn(&(u32, u32)) -> u32| chosen.iter().map(what).collect::<BTreeSet<_>>().len();
        assert_eq!((of(|one| one.0), of(|one| one.1)), (5_000, 800));
        let young = chosen.iter().filter(|(place, _)| place % 50 == 7).count();
        let share = young as f64 / chosen.len() as f64;
        assert!(share > 0.1, "young series have 0.3 % of the windows and {share} of the rows");
        assert!(chosen.iter().all(|(place, number)| series[*place as usize].first <= *number as usize));
    }
}
