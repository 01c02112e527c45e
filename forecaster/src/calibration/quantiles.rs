//! Experts on the upper quantiles of an organization: the corrected ones, those that the model states, the last value with its
//! rises, and over more than four hours [demand of a day and of a week before](super::seasonal), weighed online by their losses.
//!
//! Demand that is calm for days and then jumps is described better by its last value, and corrections that a jump taught are too high
//! for days after it.

use super::reach::Reach;
use super::residual::order_statistics;
use super::seasonal::{self, Seasonal};
use super::series::LEVELS;
use crate::left::LEFT_AFTER_HOURS;
use crate::mixture::{Losses, Mixture};
use crate::scores::pinball;
use datasets::Clock;
use vocab::HorizonHours;

/// Experts of forecasts up to four hours: corrected, as the model states it, the last value with its rises.
pub const SHORT_EXPERTS: usize = 3;
/// Experts on a quantile: those, and demand of a day and of a week before with what it rose by above them.
pub const EXPERTS: usize = SHORT_EXPERTS + seasonal::EXPERTS;
/// Part of the losses of all organizations in what one learns.
const SHARED: f64 = 0.5;
/// Hours of rises below which an organization has no order statistic of them.
const LEAST_RISES_HOURS: usize = 24;

/// The quantile of each expert at one step, in GPUs; NaN where it knows too little.
pub type Statements = [f64; EXPERTS];

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
    seasonal: Seasonal,
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
    /// The clock of the cluster.
    pub clock: &'a Clock,
}

impl Demand<'_> {
    /// Demand of an hour, where it was measured.
    pub fn at(&self, hour: usize) -> Option<f64> {
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

/// An amount that is at least zero, or none: NaN stays.
pub const fn not_below_zero(gpus: f64) -> f64 {
    if gpus < 0.0 { 0.0 } else { gpus }
}

impl QuantileExperts {
    /// Experts of an organization of which nothing is known.
    pub fn new(recorded: usize, reach: &Reach) -> Self {
        Self {
            mixtures: [Mixture::new(reach.prior); LEVELS.len()],
            rises_gpus: vec![f32::NAN; LEVELS.len() * recorded],
            seasonal: Seasonal::unknown(reach),
        }
    }

    /// Works out how far demand rose within each recorded step after the issue times that count, up to that of `demand`.
    pub fn settle_rises(&mut self, demand: &Demand<'_>, recorded: &[usize], reach: &Reach) {
        let first = (demand.issue + 1).saturating_sub(reach.rises_hours).max(1);
        let mut rises = Vec::with_capacity(reach.rises_hours);
        for (number, step) in recorded.iter().enumerate() {
            let rise = |issue: usize| Some((demand.at(issue + step)? - demand.at(issue - 1)?) as f32);
            rises.clear();
            let issues = (demand.issue + 1).saturating_sub(first).div_ceil(reach.rises_every);
            rises.extend((0..issues).filter_map(|back| rise(demand.issue - back * reach.rises_every)));
            let has_enough = rises.len() * reach.rises_every >= LEAST_RISES_HOURS;
            let levels = LEVELS.map(|(_, p)| p);
            let statistics = if has_enough { order_statistics(&mut rises, levels) } else { [f32::NAN; LEVELS.len()] };
            for (level, statistic) in statistics.into_iter().enumerate() {
                self.rises_gpus[level * recorded.len() + number] = statistic;
            }
        }
        let horizon_hours = recorded.last().map_or(0, |last| last + 1);
        self.seasonal = Seasonal::before(demand.issue + horizon_hours, demand, horizon_hours, reach);
    }

    /// The rise by a step, in GPUs: between recorded ones on the straight line, which begins at nothing. NaN where too little is known.
    fn rise_gpus(&self, level: usize, step: &Between) -> f64 {
        let rises = &self.rises_gpus[level * self.rises_gpus.len() / LEVELS.len()..];
        let to = f64::from(rises[step.next]);
        let from = if step.next == 0 { 0.0 } else { f64::from(rises[step.next - 1]) };
        from + step.share * (to - from)
    }

    /// The quantiles of the experts at a level and step; past the last recorded step the last value states nothing.
    pub fn statements(
        &self,
        (level, step): (usize, Option<&Between>),
        [corrected, stated]: [f64; 2],
        latest_gpus: Option<f64>,
        [day, week]: [f64; seasonal::EXPERTS],
    ) -> Statements {
        let last = match (latest_gpus, step) {
            (Some(latest), Some(step)) => not_below_zero(latest + self.rise_gpus(level, step)),
            _ => f64::NAN,
        };
        [corrected, stated, last, day, week]
    }

    /// The rises above earlier days, as they are known now.
    pub const fn seasonal(&self) -> &Seasonal {
        &self.seasonal
    }

    /// The weights that quantiles are issued by, at each level.
    pub fn shares(&self) -> [Shares<'_>; LEVELS.len()] {
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

    /// The weights as numbers, [`stored_numbers`](crate::mixture::stored_numbers) of so many experts at each level. Of forecasts up to four hours the further ones have none.
    pub fn weights(&self, experts: usize) -> impl Iterator<Item = f64> {
        self.mixtures.iter().flat_map(move |mixture| mixture.first_numbers(experts))
    }

    /// The rises, as they are stored.
    pub fn rises_gpus(&self) -> &[f32] {
        &self.rises_gpus
    }

    /// From [`weights`](Self::weights) of so many experts as there are numbers, [`rises_gpus`](Self::rises_gpus), and rises above
    /// earlier days; `None` where they are none. Experts without a weight of their own begin with that before any outcome.
    pub fn from_numbers(weights: &[f64], rises_gpus: Vec<f32>, seasonal: Seasonal, reach: &Reach) -> Option<Self> {
        let (first, second) = weights.split_at(weights.len() / LEVELS.len());
        let mixture = |numbers| Mixture::from_first_numbers(numbers, &reach.prior);
        let mixtures = [mixture(first)?, mixture(second)?];
        (!rises_gpus.iter().any(|rise| rise.is_infinite())).then_some(Self { mixtures, rises_gpus, seasonal })
    }
}

/// Weights of the experts on one quantile. Most steps of a forecast have statements of the same experts, whose weights are worked out once.
pub struct Shares<'a> {
    mixture: &'a Mixture<EXPERTS>,
    /// Which experts state something, and their weights then.
    latest: ([bool; EXPERTS], [f64; EXPERTS]),
}

impl<'a> Shares<'a> {
    const fn of(mixture: &'a Mixture<EXPERTS>) -> Self {
        Self { mixture, latest: ([true; EXPERTS], *mixture.weights()) }
    }

    /// The quantile that is issued.
    pub fn mix(&mut self, statements: &Statements) -> f64 {
        let states = statements.map(|gpus| !gpus.is_nan());
        if self.latest.0 != states {
            let stated = statements.map(|gpus| Some(gpus).filter(|gpus| !gpus.is_nan()));
            let weights = self.mixture.weights_among(&stated).expect("the model states a quantile");
            self.latest = (states, weights);
        }
        let parts = statements.iter().zip(&self.latest.1);
        parts.map(|(gpus, weight)| if gpus.is_nan() { 0.0 } else { weight * gpus }).sum()
    }
}

/// The losses of quantiles at each level over the measured steps of one forecast: `came_gpus` and the statements at both levels of
/// each. `None` for an expert that stated nothing at one of them.
pub fn losses(steps: &[(f64, [Statements; LEVELS.len()])]) -> QuantileLosses {
    let of = |level: usize, expert: usize| {
        let one = |(came, statements): &(f64, [Statements; LEVELS.len()])| {
            pinball(*came, statements[level][expert], LEVELS[level].1)
        };
        let mean = steps.iter().map(one).sum::<f64>() / steps.len().max(1) as f64;
        Some(mean).filter(|mean| !mean.is_nan())
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

    /// `None` for an expert that states nothing.
    fn stated(statements: Statements) -> [Option<f64>; EXPERTS] {
        statements.map(|gpus| Some(gpus).filter(|gpus| !gpus.is_nan()))
    }

    #[test]
    fn over_a_day_rises_of_two_weeks_count_of_every_second_issue_time() {
        // Demand stands still, but for two days ten days before the issue time, in which it jumps up and down every few hours.
        let mut gpus = vec![5.0; 400];
        let measured = vec![true; 400];
        gpus[60..108].iter_mut().enumerate().for_each(|(hour, gpus)| *gpus += if hour % 12 < 6 { 9.0 } else { 0.0 });
        let demand = Demand { gpus: &gpus, measured: &measured, issue: 340, clock: &Clock::STEADY };
        let (long, recorded) = (Reach::over(HorizonHours::new(24).unwrap()), [5]);
        let rise = |reach: &Reach| {
            let mut experts = QuantileExperts::new(1, reach);
            experts.settle_rises(&demand, &recorded, reach);
            experts.rise_gpus(1, &Between::each(&recorded)[5])
        };
        assert_eq!((rise(&SHORT), rise(&long)), (0.0, 9.0));
        // A day of rises is enough: twelve of them.
        let since = Demand { issue: 30, ..demand };
        let mut experts = QuantileExperts::new(1, &long);
        experts.settle_rises(&Demand { issue: 20, ..since }, &recorded, &long);
        let last = &Between::each(&recorded)[5];
        assert!(experts.rise_gpus(0, last).is_nan());
        experts.settle_rises(&since, &recorded, &long);
        assert_eq!(experts.rise_gpus(0, last), 0.0);
    }

    #[test]
    fn rises_are_order_statistics_of_a_week_and_lie_on_lines_between_recorded_steps() {
        // Demand rises by one GPU an hour.
        let gpus: Vec<f64> = (0..220).map(f64::from).collect();
        let measured = vec![true; 220];
        let mut experts = QuantileExperts::new(2, &SHORT);
        let recorded = [1, 5];
        experts.settle_rises(
            &Demand { gpus: &gpus, measured: &measured, issue: 200, clock: &Clock::STEADY },
            &recorded,
            &SHORT,
        );
        let steps = Between::each(&recorded);
        let rises: Vec<_> = steps.iter().map(|step| experts.rise_gpus(0, step)).collect();
        assert_eq!(rises, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        let statements =
            |step| stated(experts.statements((1, steps.get(step)), [300.0, 310.0], Some(199.0), [f64::NAN; 2]));
        assert_eq!(statements(5), [Some(300.0), Some(310.0), Some(205.0), None, None]);
        assert_eq!(statements(6), [Some(300.0), Some(310.0), None, None, None]);
    }

    #[test]
    fn without_a_day_of_rises_or_an_hour_of_the_last_two_days_the_last_value_states_nothing() {
        let (gpus, mut measured) = (vec![5.0; 70], vec![true; 70]);
        let mut experts = QuantileExperts::new(1, &SHORT);
        let recorded = [0];
        let first = &Between::each(&recorded)[0];
        experts.settle_rises(
            &Demand { gpus: &gpus, measured: &measured, issue: 20, clock: &Clock::STEADY },
            &recorded,
            &SHORT,
        );
        assert!(experts.rise_gpus(0, first).is_nan());
        measured[19] = false;
        let demand = Demand { gpus: &gpus, measured: &measured, issue: 50, clock: &Clock::STEADY };
        experts.settle_rises(&demand, &recorded, &SHORT);
        assert_eq!((experts.rise_gpus(0, first), demand.latest_gpus()), (0.0, Some(5.0)));
        assert_eq!(Demand { issue: 20, ..demand }.latest_gpus(), Some(5.0), "as it was in the hour before");
        let silent: Vec<bool> = (0..70).map(|hour| hour < 12).collect();
        let latest = |issue| Demand { gpus: &gpus, measured: &silent, issue, clock: &Clock::STEADY }.latest_gpus();
        assert_eq!([0, 12, 59, 60, 70].map(latest), [None, Some(5.0), Some(5.0), None, None]);
        assert!(experts.statements((0, Some(first)), [1.0, 2.0], None, [f64::NAN; 2])[2].is_nan());
    }

    #[test]
    fn an_expert_that_loses_less_is_issued_more_and_one_that_stated_nothing_stays() {
        let mut experts = QuantileExperts::new(1, &SHORT);
        for _ in 0..60 {
            let statements = [9.0, 6.0, f64::NAN, f64::NAN, f64::NAN];
            let of = losses(&[(5.0, [statements; 2])]);
            assert_eq!(of[0], [Some(pinball(5.0, 9.0, 0.9)), Some(pinball(5.0, 6.0, 0.9)), None, None, None]);
            let own = experts.in_usual(&of);
            let all = mean(&[(&experts, &own)]);
            experts.learn(&own, &all, HorizonHours::ONE);
        }
        let mixed = experts.shares()[0].mix(&[9.0, 6.0, f64::NAN, f64::NAN, f64::NAN]);
        assert!(mixed < 6.2, "{mixed}");
        let stored: Vec<f64> = experts.weights(SHORT_EXPERTS).collect();
        let read = |numbers: &[f64], reach: &Reach| {
            QuantileExperts::from_numbers(numbers, experts.rises_gpus().to_vec(), Seasonal::unknown(reach), reach)
        };
        assert_eq!(read(&stored, &SHORT).unwrap().mixtures, experts.mixtures);
        assert_eq!(read(&[0.0; 10], &SHORT), None);
        // A state of a day that knows three experts: the others begin with what they have before any outcome.
        let day = Reach::over(HorizonHours::new(24).unwrap());
        let weights = |of: &QuantileExperts| *of.mixtures[0].weights();
        let [ours, known] = [weights(&read(&stored, &day).unwrap()), weights(&experts)];
        assert_eq!(ours[3..], day.prior[3..]);
        assert!(
            (ours.iter().sum::<f64>() - 1.0).abs() < 1e-12 && (ours[0] / ours[1] - known[0] / known[1]).abs() < 1e-9
        );
    }
}
