//! Experts on the upper quantiles of an organization: the corrected ones, those that the model states, and the last value with its
//! rises, weighed online by their losses.
//!
//! Demand that is calm for days and then jumps is described better by its last value, and corrections that a jump taught are too high
//! for days after it.

use super::reach::Reach;
use super::residual::rank;
use super::series::LEVELS;
use crate::left::LEFT_AFTER_HOURS;
use crate::mixture::{Losses, Mixture, stored_numbers, weighted_mean};
use crate::scores::pinball;
use vocab::HorizonHours;

/// Experts on a quantile: corrected, as the model states it, the last value with its rises.
pub const EXPERTS: usize = 3;
/// Part of the losses of all organizations in what one learns.
const SHARED: f64 = 0.5;
/// Hours of rises below which an organization has no order statistic of them.
const LEAST_RISES_HOURS: usize = 24;
/// Numbers of the weights, as they are stored.
pub const STORED_WEIGHTS: usize = LEVELS.len() * stored_numbers(EXPERTS);

/// The quantile of each expert at one step; `None` where it knows too little.
pub type Statements = [Option<f64>; EXPERTS];

/// Losses of the experts of one organization at each level, in GPUs, as means over its measured steps.
pub type QuantileLosses = [[Option<f64>; EXPERTS]; LEVELS.len()];

/// The same in usual losses.
pub type UsualLosses = [Losses<EXPERTS>; LEVELS.len()];

/// The experts of one organization.
#[derive(Debug, Clone, PartialEq)]
pub struct QuantileExperts {
    /// At each level.
    mixtures: [Mixture<EXPERTS>; LEVELS.len()],
    /// `[level][recorded step]`: how far demand rises above the last value, in GPUs; NaN where too little is known.
    rises_gpus: Vec<f32>,
}

/// Where a step lies between recorded ones.
pub struct Between {
    /// Place of the first recorded step that is not before it.
    next: usize,
    /// Part of the way there from the recorded step before that, or from the hour before the issue time.
    share: f64,
}

impl Between {
    /// Of each step up to the last recorded one.
    pub fn each(recorded: &[usize]) -> Vec<Self> {
        let one = |step: usize| {
            let next = recorded.partition_point(|one| *one < step);
            let before = next.checked_sub(1).map_or(-1.0, |before| recorded[before] as f64);
            Self { next, share: (step as f64 - before) / (recorded[next] as f64 - before) }
        };
        (0..recorded.last().map_or(0, |last| last + 1)).map(one).collect()
    }
}

/// Demand of one organization in the hours before an issue time and in those of its forecast.
#[derive(Clone, Copy)]
pub struct Demand<'a> {
    /// Each hour, in GPUs.
    pub gpus: &'a [f64],
    /// Whether each was measured.
    pub measured: &'a [bool],
    /// Place of the issue hour.
    pub issue: usize,
}

impl Demand<'_> {
    /// Demand of an hour, where it was measured.
    fn at(&self, hour: usize) -> Option<f64> {
        self.measured.get(hour)?.then(|| self.gpus[hour])
    }

    /// Demand of the hour before the issue time: measured, or the newest before it of the last two days, which is what the model
    /// sees, too.
    pub fn latest_gpus(&self) -> Option<f64> {
        let latest = self.issue.checked_sub(1)?;
        let is_known = *self.measured.get(self.issue.saturating_sub(LEFT_AFTER_HOURS)..self.issue)?.iter().max()?;
        is_known.then(|| self.gpus[latest])
    }
}

impl QuantileExperts {
    /// Experts of an organization of which nothing is known.
    pub fn new(recorded: usize, reach: &Reach) -> Self {
        Self {
            mixtures: [Mixture::new(reach.prior); LEVELS.len()],
            rises_gpus: vec![f32::NAN; LEVELS.len() * recorded],
        }
    }

    /// Works out how far demand rose within each recorded step after the issue times that count, up to that of `demand`.
    pub fn settle_rises(&mut self, demand: &Demand<'_>, recorded: &[usize], reach: &Reach) {
        let first = (demand.issue + 1).saturating_sub(reach.rises_hours).max(1);
        let mut rises = Vec::with_capacity(reach.rises_hours);
        for (number, step) in recorded.iter().enumerate() {
            let rise = |issue: usize| Some((demand.at(issue + step)? - demand.at(issue - 1)?) as f32);
            rises.clear();
            rises.extend((first..=demand.issue).rev().step_by(reach.rises_every).filter_map(rise));
            for (level, (_, p)) in LEVELS.iter().enumerate() {
                let place = rank(rises.len(), *p);
                let has_enough = rises.len() * reach.rises_every >= LEAST_RISES_HOURS;
                let statistic = has_enough.then(|| *rises.select_nth_unstable_by(place, f32::total_cmp).1);
                self.rises_gpus[level * recorded.len() + number] = statistic.unwrap_or(f32::NAN);
            }
        }
    }

    /// The rise by a step: between recorded ones on the straight line, which begins at nothing.
    fn rise_gpus(&self, level: usize, step: &Between) -> Option<f64> {
        let rises = &self.rises_gpus[level * self.rises_gpus.len() / LEVELS.len()..];
        let to = f64::from(rises[step.next]);
        let from = if step.next == 0 { 0.0 } else { f64::from(rises[step.next - 1]) };
        Some(from + step.share * (to - from)).filter(|rise| rise.is_finite())
    }

    /// The quantiles of the experts at a level and step; past the last recorded step the last value states nothing.
    pub fn statements(
        &self,
        (level, step): (usize, Option<&Between>),
        [corrected, stated]: [f64; 2],
        latest_gpus: Option<f64>,
    ) -> Statements {
        let last = latest_gpus.and_then(|latest| Some((latest + self.rise_gpus(level, step?)?).max(0.0)));
        [Some(corrected), Some(stated), last]
    }

    /// The weights that quantiles are issued by, at each level.
    pub fn shares(&self) -> [Shares; LEVELS.len()] {
        self.mixtures.each_ref().map(Shares::of)
    }

    /// The losses of one forecast in the usual ones, which are known better afterwards.
    pub fn in_usual(&mut self, losses: &QuantileLosses) -> UsualLosses {
        std::array::from_fn(|level| self.mixtures[level].in_usual(&losses[level]))
    }

    /// Moves the weights by the losses of one forecast over the horizon, and the mean of those of all organizations.
    pub fn learn(&mut self, own: &UsualLosses, all: &UsualLosses, horizon: HorizonHours) {
        let (overlap, prior) = (horizon.steps() as f64, Reach::over(horizon).prior);
        for (level, mixture) in self.mixtures.iter_mut().enumerate() {
            let both = std::array::from_fn(|k| ((1.0 - SHARED) * own[level][k] + SHARED * all[level][k]) / overlap);
            mixture.learn(&both, &prior);
        }
    }

    /// The weights as numbers, [`STORED_WEIGHTS`] of them.
    pub fn weights(&self) -> impl Iterator<Item = f64> {
        self.mixtures.iter().flat_map(Mixture::numbers)
    }

    /// The rises, as they are stored.
    pub fn rises_gpus(&self) -> &[f32] {
        &self.rises_gpus
    }

    /// From [`weights`](Self::weights) and [`rises_gpus`](Self::rises_gpus); `None` where they are none.
    pub fn from_numbers(weights: &[f64; STORED_WEIGHTS], rises_gpus: Vec<f32>) -> Option<Self> {
        let (first, second) = weights.split_at(stored_numbers(EXPERTS));
        let mixtures = [Mixture::from_numbers(first)?, Mixture::from_numbers(second)?];
        (!rises_gpus.iter().any(|rise| rise.is_infinite())).then_some(Self { mixtures, rises_gpus })
    }
}

/// Weights of the experts on one quantile, the same for all steps of a forecast: the last value alone may state nothing at some.
pub struct Shares {
    of_all: [f64; EXPERTS],
    without_last: [f64; EXPERTS],
}

impl Shares {
    fn of(mixture: &Mixture<EXPERTS>) -> Self {
        let among = |statements| mixture.weights_among(statements).expect("weights are positive");
        Self { of_all: among(&[Some(0.0); EXPERTS]), without_last: among(&[Some(0.0), Some(0.0), None]) }
    }

    /// The quantile that is issued.
    pub fn mix(&self, statements: &Statements) -> f64 {
        let [_, _, last] = statements;
        weighted_mean(if last.is_some() { &self.of_all } else { &self.without_last }, statements)
    }
}

/// The losses of quantiles at each level over the measured steps of one forecast: `came_gpus` and the statements at both levels of
/// each. `None` for an expert that stated nothing at one of them.
pub fn losses(steps: &[(f64, [Statements; LEVELS.len()])]) -> QuantileLosses {
    let of = |level: usize, expert: usize| {
        let one = |(came, statements): &(f64, [Statements; LEVELS.len()])| {
            Some(pinball(*came, statements[level][expert]?, LEVELS[level].1))
        };
        let sum = steps.iter().map(one).sum::<Option<f64>>();
        sum.map(|sum| sum / steps.len().max(1) as f64)
    };
    std::array::from_fn(|level| std::array::from_fn(|expert| of(level, expert)))
}

/// The mean losses of all organizations at each level: large organizations count for as much as they usually lose.
pub fn mean(each: &[(&QuantileExperts, &UsualLosses)]) -> UsualLosses {
    std::array::from_fn(|level| {
        let usual = |experts: &QuantileExperts| experts.mixtures[level].usual();
        let all: f64 = each.iter().map(|(experts, _)| usual(experts)).sum();
        let of = |k: usize| each.iter().map(|(experts, losses)| usual(experts) * losses[level][k]).sum::<f64>();
        std::array::from_fn(|k| if all > 0.0 { of(k) / all } else { 0.0 })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::LazyLock;

    static SHORT: LazyLock<Reach> = LazyLock::new(|| Reach::over(HorizonHours::ONE));

    #[test]
    fn over_a_day_rises_of_two_weeks_count_of_every_second_issue_time() {
        // Demand stands still, but for two days ten days before the issue time, in which it jumps up and down every few hours.
        let mut gpus = vec![5.0; 400];
        let measured = vec![true; 400];
        gpus[60..108].iter_mut().enumerate().for_each(|(hour, gpus)| *gpus += if hour % 12 < 6 { 9.0 } else { 0.0 });
        let demand = Demand { gpus: &gpus, measured: &measured, issue: 340 };
        let (long, recorded) = (Reach::over(HorizonHours::new(24).unwrap()), [5]);
        let rise = |reach: &Reach| {
            let mut experts = QuantileExperts::new(1, reach);
            experts.settle_rises(&demand, &recorded, reach);
            experts.rise_gpus(1, &Between::each(&recorded)[5])
        };
        assert_eq!((rise(&SHORT), rise(&long)), (Some(0.0), Some(9.0)));
        // A day of rises is enough: twelve of them.
        let since = Demand { issue: 30, ..demand };
        let mut experts = QuantileExperts::new(1, &long);
        experts.settle_rises(&Demand { issue: 20, ..since }, &recorded, &long);
        let last = &Between::each(&recorded)[5];
        assert_eq!(experts.rise_gpus(0, last), None);
        experts.settle_rises(&since, &recorded, &long);
        assert_eq!(experts.rise_gpus(0, last), Some(0.0));
    }

    #[test]
    fn rises_are_order_statistics_of_a_week_and_lie_on_lines_between_recorded_steps() {
        // Demand rises by one GPU an hour.
        let gpus: Vec<f64> = (0..220).map(f64::from).collect();
        let measured = vec![true; 220];
        let mut experts = QuantileExperts::new(2, &SHORT);
        let recorded = [1, 5];
        experts.settle_rises(&Demand { gpus: &gpus, measured: &measured, issue: 200 }, &recorded, &SHORT);
        let steps = Between::each(&recorded);
        let rises: Vec<_> = steps.iter().map(|step| experts.rise_gpus(0, step)).collect();
        assert_eq!(rises, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0].map(Some));
        let statements = |step| experts.statements((1, steps.get(step)), [300.0, 310.0], Some(199.0));
        assert_eq!(statements(5), [Some(300.0), Some(310.0), Some(205.0)]);
        assert_eq!(statements(6), [Some(300.0), Some(310.0), None]);
    }

    #[test]
    fn without_a_day_of_rises_or_an_hour_of_the_last_two_days_the_last_value_states_nothing() {
        let (gpus, mut measured) = (vec![5.0; 70], vec![true; 70]);
        let mut experts = QuantileExperts::new(1, &SHORT);
        let recorded = [0];
        let first = &Between::each(&recorded)[0];
        experts.settle_rises(&Demand { gpus: &gpus, measured: &measured, issue: 20 }, &recorded, &SHORT);
        assert_eq!(experts.rise_gpus(0, first), None);
        measured[19] = false;
        let demand = Demand { gpus: &gpus, measured: &measured, issue: 50 };
        experts.settle_rises(&demand, &recorded, &SHORT);
        assert_eq!((experts.rise_gpus(0, first), demand.latest_gpus()), (Some(0.0), Some(5.0)));
        assert_eq!(Demand { issue: 20, ..demand }.latest_gpus(), Some(5.0), "as it was in the hour before");
        let silent: Vec<bool> = (0..70).map(|hour| hour < 12).collect();
        let latest = |issue| Demand { gpus: &gpus, measured: &silent, issue }.latest_gpus();
        assert_eq!([0, 12, 59, 60, 70].map(latest), [None, Some(5.0), Some(5.0), None, None]);
        assert_eq!(experts.statements((0, Some(first)), [1.0, 2.0], None)[2], None);
    }

    #[test]
    fn an_expert_that_loses_less_is_issued_more_and_one_that_stated_nothing_stays() {
        let mut experts = QuantileExperts::new(1, &SHORT);
        for _ in 0..60 {
            let statements = [Some(9.0), Some(6.0), None];
            let of = losses(&[(5.0, [statements; 2])]);
            assert_eq!(of[0], [Some(pinball(5.0, 9.0, 0.9)), Some(pinball(5.0, 6.0, 0.9)), None]);
            let own = experts.in_usual(&of);
            let all = mean(&[(&experts, &own)]);
            experts.learn(&own, &all, HorizonHours::ONE);
        }
        let mixed = experts.shares()[0].mix(&[Some(9.0), Some(6.0), None]);
        assert!(mixed < 6.2, "{mixed}");
        let weights: Vec<f64> = experts.weights().collect();
        let back = QuantileExperts::from_numbers(&weights.try_into().unwrap(), experts.rises_gpus().to_vec()).unwrap();
        assert_eq!(back.mixtures, experts.mixtures);
        assert_eq!(QuantileExperts::from_numbers(&[0.0; STORED_WEIGHTS], Vec::new()), None);
    }
}
