//! Upper quantiles from demand of the same hour on an earlier day, and a week ago.
//!
//! Nightly and weekly work comes back at its hour, also where a model smooths its edges: the demand of that hour, and how far demand
//! rose above it lately, state its quantiles well.

use super::quantiles::{Demand, not_below_zero};
use super::reach::{AT_HAND_HOURS, Reach};
use super::residual::{WINDOW_HOURS, order_statistics};
use super::series::LEVELS;

/// Hours of a day.
const DAY_HOURS: usize = 24;
/// Hours of rises below which an organization has no order statistic of them.
const LEAST_HOURS: usize = 24;
/// Experts: the last whole days, and a week.
pub const EXPERTS: usize = 2;

/// How far the demand of one organization rises above that of an earlier day, and of a week before.
#[derive(Debug, Clone, PartialEq)]
pub struct Seasonal {
    /// `[level][one day back, two days, …, a week]`, in GPUs; NaN where too little is known. Empty where no such expert is asked.
    rises_gpus: Vec<f32>,
}

/// How many hours lie between demand and what it is compared with: those of each day that a horizon needs, and a week.
fn all_back(days: usize) -> impl Iterator<Item = usize> {
    (1..=days).map(|days| days * DAY_HOURS).chain((days > 0).then_some(WINDOW_HOURS))
}

impl Seasonal {
    /// Numbers of forecasts that reach so far.
    pub fn numbers_of(reach: &Reach) -> usize {
        LEVELS.len() * all_back(reach.days).count()
    }

    /// Of an organization of which nothing is known.
    pub fn unknown(reach: &Reach) -> Self {
        Self { rises_gpus: vec![f32::NAN; Self::numbers_of(reach)] }
    }

    /// From the hours before `until`, a place in `demand`: as many as every service has at hand a horizon later, so that what was known
    /// at an issue time can be worked out when its hours are over.
    pub fn before(until: usize, demand: &Demand<'_>, horizon_hours: usize, reach: &Reach) -> Self {
        let mut known = Self::unknown(reach);
        let slots = known.rises_gpus.len() / LEVELS.len();
        let mut rises = Vec::with_capacity(AT_HAND_HOURS);
        for (slot, back) in all_back(reach.days).enumerate() {
            let hours = AT_HAND_HOURS.saturating_sub(back + horizon_hours);
            let rise = |hour: usize| Some((demand.at(hour)? - demand.at(demand.clock.before(hour, back)?)?) as f32);
            rises.clear();
            rises.extend((until.saturating_sub(hours).max(back)..until).filter_map(rise));
            if rises.len() >= LEAST_HOURS {
                let statistics = order_statistics(&mut rises, LEVELS.map(|(_, p)| p));
                statistics.iter().enumerate().for_each(|(level, one)| known.rises_gpus[level * slots + slot] = *one);
            }
        }
        known
    }

    /// The days whose demand states something.
    const fn days(&self) -> Option<usize> {
        (self.rises_gpus.len() / LEVELS.len()).checked_sub(1)
    }

    /// Demand of the same hour on the last day that is over when the forecast is issued, and a week ago, of a step counted from 0, in
    /// GPUs; NaN where it was not measured, or where no such expert is asked.
    pub fn earlier_gpus(&self, step: usize, demand: Option<&Demand<'_>>) -> [f64; EXPERTS] {
        let (Some(days), Some(demand)) = (self.days(), demand) else { return [f64::NAN; EXPERTS] };
        // An hour to come is never known, where the clock goes forward within the horizon.
        let known = |back: usize| demand.clock.before(demand.issue + step, back).filter(|hour| *hour < demand.issue);
        let at = |back: usize| known(back).and_then(|hour| demand.at(hour)).unwrap_or(f64::NAN);
        let yesterday = if step < days * DAY_HOURS { at((step / DAY_HOURS + 1) * DAY_HOURS) } else { f64::NAN };
        [yesterday, if step < WINDOW_HOURS { at(WINDOW_HOURS) } else { f64::NAN }]
    }

    /// The quantiles of both experts at a level and step, from [demand of earlier days](Self::earlier_gpus), in GPUs; NaN where that
    /// is, or too little was measured.
    pub fn statements(&self, level: usize, step: usize, earlier_gpus: [f64; EXPERTS]) -> [f64; EXPERTS] {
        let Some(days) = self.days() else { return [f64::NAN; EXPERTS] };
        let rises = &self.rises_gpus[level * (days + 1)..][..=days];
        let [yesterday, week] = earlier_gpus;
        let day = rises[(step / DAY_HOURS).min(days)];
        [(yesterday, day), (week, rises[days])].map(|(then, rise)| not_below_zero(then + f64::from(rise)))
    }

    /// As they are stored, [`numbers_of`](Self::numbers_of) their horizon.
    pub fn numbers(&self) -> &[f32] {
        &self.rises_gpus
    }

    /// From [`numbers`](Self::numbers); `None` where they are none.
    pub fn from_numbers(rises_gpus: Vec<f32>) -> Option<Self> {
        (!rises_gpus.iter().any(|rise| rise.is_infinite())).then_some(Self { rises_gpus })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use datasets::Clock;
    use vocab::HorizonHours;

    fn over(hours: u64) -> Reach {
        Reach::over(HorizonHours::new(hours).unwrap())
    }

    /// `None` for an expert that states nothing.
    fn stated(known: &Seasonal, level: usize, step: usize, demand: Option<&Demand<'_>>) -> [Option<f64>; EXPERTS] {
        let statements = known.statements(level, step, known.earlier_gpus(step, demand));
        statements.map(|gpus| Some(gpus).filter(|gpus| !gpus.is_nan()))
    }

    #[test]
    fn nightly_work_comes_back_at_its_hour_and_rises_are_those_above_it() {
        // Sixteen GPUs from two to five each night, which grow by one a day.
        let demand_of = |hour: usize| if (2..5).contains(&(hour % 24)) { 16.0 + (hour / 24) as f64 } else { 0.0 };
        let (gpus, measured): (Vec<f64>, _) = ((0..500).map(demand_of).collect(), vec![true; 500]);
        let demand = Demand { gpus: &gpus, measured: &measured, issue: 480, clock: &Clock::STEADY };
        let reach = over(24);
        let known = Seasonal::before(480, &demand, 24, &reach);
        // Three hours of 24 rise by one above the day before: 0.95 knows them, 0.875 would not.
        let at = |level, step| stated(&known, level, step, Some(&demand));
        assert_eq!((at(1, 3), at(1, 12)), ([Some(36.0), Some(36.0)], [Some(1.0), Some(7.0)]));
        assert_eq!(at(0, 3)[0], Some(36.0));
        assert_eq!(stated(&known, 1, 3, None), [None, None]);
        let back = Seasonal::from_numbers(known.numbers().to_vec()).unwrap();
        assert_eq!((back.numbers().len(), back == known), (Seasonal::numbers_of(&reach), true));
        assert_eq!(Seasonal::from_numbers(vec![f32::INFINITY]), None);
    }

    #[test]
    fn steps_past_a_day_look_back_further_and_hours_that_were_not_measured_state_nothing() {
        let gpus: Vec<f64> = (0..600).map(|hour| f64::from(hour / 24)).collect();
        let mut measured = vec![true; 600];
        measured[480 + 3 - 24] = false;
        let demand = Demand { gpus: &gpus, measured: &measured, issue: 480, clock: &Clock::STEADY };
        let known = Seasonal::before(480, &demand, 72, &over(72));
        let at = |step| stated(&known, 0, step, Some(&demand));
        // Demand rises by one GPU a day.
        assert_eq!([at(0), at(23)], [[Some(20.0); 2]; 2]);
        assert_eq!([at(24), at(71)], [[Some(21.0); 2], [Some(22.0); 2]]);
        assert_eq!(at(3), [None, Some(20.0)], "not measured yesterday");
        assert_eq!(at(72)[0], None, "past the horizon");
    }

    #[test]
    fn nothing_is_known_before_a_day_of_rises_and_up_to_four_hours_nobody_is_asked() {
        let (gpus, measured) = (vec![5.0; 400], vec![true; 400]);
        let known = |until: usize, hours: u64| {
            let demand =
                Demand { gpus: &gpus[..until], measured: &measured[..until], issue: until, clock: &Clock::STEADY };
            stated(&Seasonal::before(until, &demand, hours as usize, &over(hours)), 0, 0, Some(&demand))
        };
        assert_eq!(known(47, 24), [None, None]);
        assert_eq!(known(48, 24), [Some(5.0), None]);
        assert_eq!(known(168 + 24, 24), [Some(5.0), Some(5.0)]);
        assert_eq!([known(400, 4), known(400, 168)], [[None, None], [Some(5.0), None]]);
    }

    #[test]
    fn rises_are_learned_from_the_hours_that_every_service_has_at_hand() {
        // Before the hours at hand when those of the forecast are over, demand was another.
        for hours in [5_u64, 24, 72, 168] {
            let (now, horizon) = (500, hours as usize);
            let issue = now - horizon;
            let gpus: Vec<f64> = (0..now).map(|hour| if hour < now - AT_HAND_HOURS { 1e6 } else { 5.0 }).collect();
            let measured = vec![true; now];
            let demand = Demand { gpus: &gpus, measured: &measured, issue, clock: &Clock::STEADY };
            for until in [issue, now] {
                let known = Seasonal::before(until, &demand, horizon, &over(hours));
                assert!(known.numbers().iter().all(|rise| rise.is_nan() || *rise == 0.0), "{hours} h: {known:?}");
            }
        }
    }
}
