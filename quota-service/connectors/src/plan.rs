//! Quota to publish, from the wanted quota, the published one, and their duration. Pure: instants are passed in.
//!
//! Down at once, up slowly: a quota that is too high costs evictions, one that is too low a while of idle GPUs.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::time::{Duration, Instant};

/// Whole GPUs by the name of the limit that carries them.
pub type Gpus = BTreeMap<String, u64>;

/// Which changes are worth a write.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rules {
    /// Least raise, in GPUs.
    pub least_change_gpus: u64,
    /// Share of what is published.
    pub least_change_ratio: f64,
    /// A quota is raised after it was higher for so long.
    pub raise_after: Duration,
    /// After a longer gap between two rounds, the wanted quota of the gap is unknown.
    pub looks_within: Duration,
}

impl Rules {
    /// Whether a difference is large enough.
    #[must_use]
    pub fn is_large(&self, from: u64, to: u64) -> bool {
        let by = from.abs_diff(to);
        by > 0 && by >= self.least_change_gpus && by as f64 >= self.least_change_ratio * from as f64
    }
}

/// Ground of a wanted amount.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Basis {
    /// No offer: 0 for want of one.
    #[default]
    Missing,
    /// An offer that was not renewed in time. What stands stays or is lowered: never a larger quota out of ignorance.
    Old,
    /// A fresh offer, or one that holds spot to what it has.
    Known,
}

/// Why an amount changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// Nothing was published.
    New,
    /// The wanted quota is below the published one.
    Lowered,
    /// The quota was wanted for long enough.
    Raised,
    /// The first offer: what this planner published before was 0 for want of one, and nothing was lowered.
    First,
}

/// One amount that changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Name of the limit.
    pub of: String,
    /// Published GPUs, where there are some.
    pub from: Option<u64>,
    /// New GPUs.
    pub to: u64,
    /// Reason.
    pub why: Why,
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.from, self.why) {
            (Some(from), Why::Raised) => write!(f, "{}: {from} to {}, wanted long enough", self.of, self.to),
            (Some(from), Why::First) => write!(f, "{}: {from} to {}, the first offer", self.of, self.to),
            (Some(from), _) => write!(f, "{}: {from} to {}", self.of, self.to),
            (None, _) => write!(f, "{}: {}, none before", self.of, self.to),
        }
    }
}

/// All amounts as they shall be, and which of them change.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Plan {
    /// GPUs to publish, by name.
    pub gpus: Gpus,
    /// Changed amounts.
    pub changes: Vec<Change>,
}

/// Wanted quota of one name, lately.
#[derive(Debug, Clone)]
struct History {
    /// Wanted from an instant on, until the next. The first may have begun before the window.
    wanted: VecDeque<(Instant, u64)>,
    last_seen: Instant,
    /// Published quota of the last round.
    published: Option<u64>,
    /// Whether we published it as a new one without an offer, and no offer has come since.
    is_blank: bool,
}

impl History {
    const fn new(now: Instant) -> Self {
        Self { wanted: VecDeque::new(), last_seen: now, published: None, is_blank: false }
    }

    fn note(&mut self, now: Instant, wanted: u64, published: Option<u64>, looks_within: Duration) {
        // Lowered by another writer: the watchdog, or the previous leader. The quota has to earn its height again.
        let was_lowered = matches!((self.published, published), (Some(before), Some(is)) if is < before);
        if was_lowered || now.saturating_duration_since(self.last_seen) > looks_within {
            self.wanted.clear();
            self.is_blank = false;
        }
        (self.last_seen, self.published) = (now, published);
        if self.wanted.back().is_none_or(|(_, last)| *last != wanted) {
            self.wanted.push_back((now, wanted));
        }
    }

    /// The least that was wanted during the whole of so long; `None` where less is known.
    fn least_during(&mut self, lasted: Duration, now: Instant) -> Option<u64> {
        let begins = now.checked_sub(lasted)?;
        while self.wanted.get(1).is_some_and(|(since, _)| *since <= begins) {
            self.wanted.pop_front();
        }
        let (first, _) = self.wanted.front()?;
        (*first <= begins).then(|| self.wanted.iter().map(|(_, gpus)| *gpus).min()).flatten()
    }
}

/// State between two rounds of one object.
#[derive(Debug, Clone)]
pub struct Planner {
    rules: Rules,
    of: BTreeMap<String, History>,
}

impl Planner {
    /// A planner without history.
    #[must_use]
    pub const fn new(rules: Rules) -> Self {
        Self { rules, of: BTreeMap::new() }
    }

    /// Next quota after `published`. A published flavor that is no longer wanted is set to 0 and stays: an object that loses a flavor
    /// loses the workloads that it admitted with it (Kueue's #2678). `basis` is what the amount of a name
    /// rests on: 0 for want of an offer is published as well, since a limit that is absent limits nothing, but it is no decision that a
    /// first offer would have to outlast.
    pub fn plan(&mut self, now: Instant, wanted: &Gpus, basis: impl Fn(&str) -> Basis, published: &Gpus) -> Plan {
        let mut plan = Plan::default();
        let names: std::collections::BTreeSet<&String> = wanted.keys().chain(published.keys()).collect();
        for name in names {
            let (wants, stands) = (wanted.get(name).copied().unwrap_or(0), published.get(name).copied());
            let (gpus, why) = self.one(now, name, (wants, basis(name)), stands);
            plan.gpus.insert(name.clone(), gpus);
            plan.changes.extend(why.map(|why| Change { of: name.clone(), from: stands, to: gpus, why }));
        }
        plan
    }

    fn one(
        &mut self,
        now: Instant,
        name: &str,
        (wants, basis): (u64, Basis),
        stands: Option<u64>,
    ) -> (u64, Option<Why>) {
        let wants = if basis == Basis::Old { wants.min(stands.unwrap_or(wants)) } else { wants };
        let history = self.of.entry(name.to_owned()).or_insert_with(|| History::new(now));
        history.note(now, wants, stands, self.rules.looks_within);
        let Some(stands) = stands else {
            history.is_blank = basis == Basis::Missing;
            return (wants, Some(Why::New));
        };
        let is_first = basis == Basis::Known && std::mem::take(&mut history.is_blank);
        if wants < stands {
            return (wants, Some(Why::Lowered));
        }
        if is_first && wants > stands {
            return (wants, Some(Why::First));
        }
        match history.least_during(self.rules.raise_after, now) {
            Some(least) if least > stands && self.rules.is_large(stands, least) => (least, Some(Why::Raised)),
            _ => (stands, None),
        }
    }

    /// Notes that this is published now, by us: what is lower at the next look was lowered by another.
    pub fn wrote(&mut self, gpus: &Gpus) {
        for (name, gpus) in gpus {
            if let Some(history) = self.of.get_mut(name) {
                history.published = Some(*gpus);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const RULES: Rules = Rules {
        least_change_gpus: 2,
        least_change_ratio: 0.1,
        raise_after: Duration::from_mins(2),
        looks_within: Duration::from_mins(1),
    };

    fn gpus(of: u64) -> Gpus {
        [("a".to_owned(), of)].into()
    }

    /// Looks each 15 s at what is wanted; answers what is published after each.
    fn follow(planner: &mut Planner, start: Instant, from_s: u64, published: u64, wanted: &[u64]) -> Vec<u64> {
        let mut published = gpus(published);
        let look = |(at, wanted): (usize, &u64)| {
            let now = start + Duration::from_secs(from_s + 15 * at as u64);
            published = planner.plan(now, &gpus(*wanted), |_| Basis::Known, &published).gpus;
            planner.wrote(&published);
            published["a"]
        };
        wanted.iter().enumerate().map(look).collect()
    }

    #[test]
    fn a_quota_is_lowered_at_once_and_raised_to_what_was_wanted_all_along() {
        let mut planner = Planner::new(RULES);
        let wanted = [100, 99, 120, 120, 110, 120, 120, 120, 120, 120, 120, 120, 120, 120];
        let published = follow(&mut planner, Instant::now(), 0, 100, &wanted);
        // 120 is wanted from 30 s on, with 110 in between: 110 is published after 120 s, and 120 another 120 s later.
        assert_eq!(published, [100, 99, 99, 99, 99, 99, 99, 99, 99, 99, 110, 110, 110, 110]);
    }

    #[test]
    fn a_small_raise_is_left_and_a_small_lowering_is_not() {
        let mut planner = Planner::new(RULES);
        assert_eq!(follow(&mut planner, Instant::now(), 0, 100, &[109; 12])[11], 100, "below a tenth");
        assert_eq!(follow(&mut Planner::new(RULES), Instant::now(), 0, 5, &[6; 12])[11], 5, "below two GPUs");
        assert_eq!(follow(&mut Planner::new(RULES), Instant::now(), 0, 0, &[2; 12])[11], 2);
        assert_eq!(follow(&mut planner, Instant::now(), 200, 100, &[99])[0], 99);
    }

    #[test]
    fn a_quota_lowered_by_another_writer_rises_after_the_full_wait_again() {
        let (mut planner, start) = (Planner::new(RULES), Instant::now());
        assert_eq!(follow(&mut planner, start, 0, 100, &[100; 20])[19], 100);
        let after = follow(&mut planner, start, 300, 40, &[100; 9]);
        assert_eq!(after, [40, 40, 40, 40, 40, 40, 40, 40, 100]);
    }

    #[test]
    fn a_first_offer_is_published_at_once_where_nothing_was_lowered_and_only_there() {
        let (mut planner, start) = (Planner::new(RULES), Instant::now());
        let mut look = |at_s, wanted, basis, published: &Gpus| {
            let plan = planner.plan(start + Duration::from_secs(at_s), &gpus(wanted), |_| basis, published);
            planner.wrote(&plan.gpus);
            (plan.gpus["a"], plan.changes.first().map(|change| change.why))
        };
        assert_eq!(look(0, 0, Basis::Missing, &Gpus::new()), (0, Some(Why::New)), "absent, it would limit nothing");
        assert_eq!(look(15, 0, Basis::Missing, &gpus(0)), (0, None));
        assert_eq!(look(30, 70, Basis::Known, &gpus(0)), (70, Some(Why::First)));
        assert_eq!(look(45, 80, Basis::Known, &gpus(70)), (70, None), "the second has to be wanted for long enough");
        assert_eq!(look(60, 0, Basis::Missing, &gpus(70)), (0, Some(Why::Lowered)));
        assert_eq!(look(75, 70, Basis::Known, &gpus(0)), (0, None), "an offer that comes back is not the first");
        // One that stood before this planner, or that another writer lowered, is no blank one.
        assert_eq!(Planner::new(RULES).plan(start, &gpus(70), |_| Basis::Known, &gpus(0)).gpus, gpus(0));
        let mut planner = Planner::new(RULES);
        planner.plan(start, &gpus(0), |_| Basis::Missing, &Gpus::new());
        planner.wrote(&gpus(8));
        assert_eq!(planner.plan(start, &gpus(70), |_| Basis::Known, &gpus(0)).gpus, gpus(0), "lowered by another");
    }

    #[test]
    fn an_old_offer_lowers_and_never_raises_and_a_fresh_one_has_to_be_wanted_for_long_enough_after_it() {
        let (mut planner, start) = (Planner::new(RULES), Instant::now());
        let mut published = gpus(40);
        let mut look = |at_s, wanted, basis| {
            published = planner.plan(start + Duration::from_secs(at_s), &gpus(wanted), |_| basis, &published).gpus;
            planner.wrote(&published);
            published["a"]
        };
        let old: Vec<u64> = (0..20).map(|round| look(15 * round, 100, Basis::Old)).collect();
        assert_eq!(old, [40; 20]);
        assert_eq!(look(300, 30, Basis::Old), 30);
        let fresh: Vec<u64> = (1..11).map(|round| look(300 + 15 * round, 100, Basis::Known)).collect();
        assert_eq!(fresh, [30, 30, 30, 30, 30, 30, 30, 30, 100, 100]);
        // Nor is it the first offer that a quota waits for.
        let mut planner = Planner::new(RULES);
        planner.plan(start, &gpus(0), |_| Basis::Missing, &Gpus::new());
        planner.wrote(&gpus(0));
        assert_eq!(planner.plan(start, &gpus(70), |_| Basis::Old, &gpus(0)).gpus, gpus(0));
        assert_eq!(planner.plan(start, &gpus(70), |_| Basis::Known, &gpus(0)).gpus, gpus(70));
    }

    #[test]
    fn demand_in_a_pause_is_not_known() {
        let (mut planner, start) = (Planner::new(RULES), Instant::now());
        assert_eq!(follow(&mut planner, start, 0, 50, &[100; 2]), [50, 50]);
        assert_eq!(follow(&mut planner, start, 600, 50, &[100; 9]), [50, 50, 50, 50, 50, 50, 50, 50, 100]);
    }

    proptest! {
        #[test]
        fn it_is_never_above_what_is_wanted_and_comes_to_within_the_least_change(
            start in 0u64..500, wanted in prop::collection::vec(0u64..500, 1..60),
        ) {
            let (mut planner, began) = (Planner::new(RULES), Instant::now());
            let last = *wanted.last().unwrap();
            let published = follow(&mut planner, began, 0, start, &wanted);
            prop_assert!(published.iter().zip(&wanted).all(|(published, wanted)| published <= wanted));
            let at_last = follow(&mut planner, began, 15 * wanted.len() as u64, *published.last().unwrap(), &[last; 18]);
            let end = *at_last.last().unwrap();
            prop_assert!(end <= last && !RULES.is_large(end, last), "{end} where {last} is wanted");
        }
    }
}
