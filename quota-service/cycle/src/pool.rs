//! One pool, one renewal.

use crate::bounds::ForecastBound;
use crate::jobs::{HourUsage, ListFault};
use crate::learned::{Learned, Moving};
use forecaster::jobs::PastJobs;
use forecaster::risk::{Controlled, Moment, supported_rate};
use placement::eta::{self, Ended, EtaDecision, EtaState, Feedback, HoldReason};
use placement::overrides::{Overridden, overridden};
use placement::{Bound, Eta, Known, PoolSettings, Promise, Quota, Supply, Unknown, quotas, supply};
use vocab::{HpJob, MilliGpus, Override, OverrideId, SECONDS_PER_HOUR, UnixSeconds};

/// Measurements and knowledge of a pool at one moment.
#[derive(Debug)]
pub struct Inputs<'a> {
    /// Instant of the renewal.
    pub now: UnixSeconds,
    /// Knowledge of the pool's supply.
    pub known: &'a Known,
    /// Settings of the pool.
    pub settings: &'a PoolSettings,
    /// By the forecast, one for each of the offered hours; none while there is no forecast.
    pub forecast: Option<&'a [ForecastBound]>,
    /// Whether Headroom places the pool's tasks: then it knows what became of each promise.
    pub is_placed_here: bool,
    /// HP GPUs, running and waiting, now; known where the pool's tasks are placed here, or its scheduler reports its HP jobs.
    pub hp_demand: Option<MilliGpus>,
    /// The HP jobs behind it; none where they are not known.
    pub hp_jobs: Option<&'a [HpJob]>,
    /// Those of a list that the model was trained with; none where there was no list.
    pub past_jobs: Option<&'a PastJobs>,
    /// Usage of the last hours, the newest first, which reported HP jobs are held against.
    pub last_usage: &'a [HourUsage],
    /// The end of the newest hour whose usage is known.
    pub measured_until: UnixSeconds,
    /// Hours of demand that the forecast's bounds are calibrated on; 0 where they are not.
    pub calibrated_hours: usize,
    /// The learned state before, and after; none where nothing is to be learned.
    pub learned: Option<&'a mut Learned>,
    /// Overrides whose time is not over.
    pub overrides: &'a [(OverrideId, Override)],
    /// As it is stored; the settings may have drawn its bounds closer since.
    pub eta: EtaState,
    /// Outcomes that may still move eta, newest first.
    pub unspent: &'a [Ended],
    /// Instant of the newest outcome.
    pub newest_outcome: Option<UnixSeconds>,
    /// Whether eta stays fixed in spite of its rule.
    pub eta_is_fixed: bool,
}

/// Quotas with everything that they were made of.
#[derive(Debug)]
pub struct Decided {
    /// Supply of the pool.
    pub supply: Supply,
    /// Demand from moment to moment, where it is measured so.
    pub moving: Option<Moving>,
    /// HP GPUs, running and waiting, now, as they count; none where they are not known from moment to moment.
    pub hp_demand: Option<MilliGpus>,
    /// A fault of the HP jobs that the pool's scheduler reports.
    pub list_fault: Option<ListFault>,
    /// How the bounds of the peak were moved to keep the promise, for each of the offered hours; empty where they were not.
    pub controlled: Vec<Controlled>,
    /// For each of the offered hours the largest p that what was measured can tell ([`supported_rate`]): where it is below the one
    /// that is promised, the bound does not go below that of the peak.
    pub supported: Vec<f64>,
    /// The bounds that the quotas are cut from, with what people asked for.
    pub demand: Vec<Overridden>,
    /// Of the offered hours, from the shortest on, of which a forecast or what was learned says what HP will need; empty where
    /// nothing does.
    pub quotas: Vec<Quota>,
    /// Move of eta, or the reason to hold it.
    pub eta_decision: EtaDecision,
    /// Where eta moved.
    pub moved: Option<Moved>,
}

/// A move of eta.
#[derive(Debug, Clone, Copy)]
pub struct Moved {
    /// As it was stored: that is what the move is held against when it is written.
    pub from: EtaState,
    /// Eta after the move.
    pub to: EtaState,
    /// Outcomes and waits that the move rests on.
    pub feedback: Feedback,
    /// Whether all outcomes so far are spent.
    pub spends: bool,
}

/// The quotas of a pool from now on. `learned` learns of this moment.
///
/// # Errors
/// The capacity is not known.
pub fn decide(mut inputs: Inputs<'_>) -> Result<Decided, Unknown> {
    // 1. Supply.
    let supply = supply(inputs.known, inputs.settings, inputs.now)?;
    // 2. Bounds of the peak: of the forecast, and of what demand and its jobs do from moment to moment, where that is known.
    let mut needed = inputs.hp_demand.unwrap_or(supply.latest_demand);
    let list_fault = observe_jobs(&mut inputs);
    match list_fault {
        // A part of the jobs is no demand, and teaches nothing: as if none had been reported, until all are.
        Some(ListFault::Missing(_)) => {
            needed = needed.max(supply.latest_demand);
            inputs.hp_demand = None;
        }
        Some(ListFault::Dropped { counted, .. }) => {
            needed = needed.saturating_add(counted);
            inputs.hp_demand = inputs.hp_demand.map(|listed| listed.saturating_add(counted));
        }
        None => {}
    }
    let moving = match (&mut inputs.learned, inputs.hp_demand) {
        (Some(learned), Some(hp_demand)) => {
            let jobs = (inputs.hp_jobs.is_some(), inputs.past_jobs);
            Some(learned.mix((inputs.now, hp_demand), jobs, inputs.forecast))
        }
        _ => None,
    };
    let peak = peak_bounds(&inputs, moving.as_ref(), needed);
    // 3. Moved to what keeps the promise, and by what people asked for.
    let controlled = control(&mut inputs, &supply, &peak, needed);
    let supported = supported(&inputs);
    let bounds = kept_bounds(peak, &controlled, inputs.forecast);
    watch(&mut inputs, &supply, &bounds, needed);
    let demand = overridden(&bounds, inputs.overrides, needed, inputs.now);
    // 4. Eta, judged by the quotas that it gives now; then the quotas that it gives next.
    let settings = match (controlled.is_empty(), moving.is_some()) {
        (false, _) => inputs.settings.eta_at_rest(),
        (true, true) => inputs.settings.calibrated(),
        (true, false) => inputs.settings.clone(),
    };
    let state = inputs.eta.within(&settings);
    let unmoved = cut(&supply, &demand, state.eta);
    let (eta_decision, feedback) = if controlled.is_empty() {
        let feedback = Feedback::of(inputs.unspent, inputs.newest_outcome, &supply, &unmoved, &settings, inputs.now);
        (eta::decide(&state, &feedback, &settings, inputs.now), Some(feedback))
    } else {
        (EtaDecision::Hold(HoldReason::BoundLearns), None)
    };
    let moved = match (eta_decision, feedback) {
        (EtaDecision::Move { to, spends, .. }, Some(feedback)) if !inputs.eta_is_fixed => {
            Some(Moved { from: inputs.eta, to: EtaState { eta: to, moved_at: inputs.now }, feedback, spends })
        }
        _ => None,
    };
    let quotas = moved.map_or(unmoved, |moved| cut(&supply, &demand, moved.to.eta));
    let hp_demand = inputs.hp_demand;
    Ok(Decided { supply, moving, hp_demand, list_fault, controlled, supported, demand, quotas, eta_decision, moved })
}

/// The quotas under bounds with overrides.
#[must_use]
pub fn cut(supply: &Supply, demand: &[Overridden], eta: Eta) -> Vec<Quota> {
    let bounds: Vec<Bound> = demand.iter().map(|one| one.bound).collect();
    quotas(supply, &bounds, eta)
}

/// Learns which HP jobs are there. Those of a pool that is placed here are its own usage, and all.
fn observe_jobs(inputs: &mut Inputs<'_>) -> Option<ListFault> {
    let (learned, jobs) = (inputs.learned.as_mut()?, inputs.hp_jobs?);
    // Bounds are mixed with demand that is known from moment to moment alone.
    let hp_demand = inputs.hp_demand?;
    if inputs.is_placed_here {
        learned.observe(inputs.now, jobs);
        return None;
    }
    learned.observe_listed(inputs.now, (jobs, hp_demand), inputs.last_usage)
}

/// By the hours that the forecast's bounds are calibrated on, or by those for which the pool was watched.
fn supported(inputs: &Inputs<'_>) -> Vec<f64> {
    let watched_s = inputs.learned.as_ref().map_or(0, |learned| learned.watched_s(inputs.now));
    let measured_s = watched_s.max(inputs.calibrated_hours as i64 * SECONDS_PER_HOUR);
    inputs.settings.offered_hours.iter().map(|hours| supported_rate(*hours, measured_s)).collect()
}

/// Those of the forecast, or mixed ones, and never less than `needed`, the newest measured HP demand, nor than what returns where a day
/// off ends. Without a forecast those of the
/// hours that are known, from the shortest on.
fn peak_bounds(inputs: &Inputs<'_>, moving: Option<&Moving>, needed: MilliGpus) -> Vec<Bound> {
    let one = |(place, hours): (usize, &vocab::HorizonHours)| {
        let mixed = moving.and_then(|moving| moving.demand_bound(place));
        let bound = mixed.or_else(|| Some(inputs.forecast?.get(place)?.bound))?;
        Some(Bound { hours: *hours, bound: bound.max(needed).max(returns(inputs.forecast, place)) })
    };
    inputs.settings.offered_hours.iter().enumerate().filter_map(one).collect()
}

/// How bounds of the peak move to what keeps the promise; empty where they do not. It learns in any case, so that a pool whose
/// promise is changed does not begin at nothing.
fn control(inputs: &mut Inputs<'_>, supply: &Supply, peak: &[Bound], needed: MilliGpus) -> Vec<Controlled> {
    let moment = moment(inputs, supply, needed);
    let Some(learned) = &mut inputs.learned else { return Vec::new() };
    let controlled = learned.control(&moment, supply, peak, inputs.unspent, inputs.is_placed_here);
    let is_moved = inputs.settings.promise == Promise::Kept && learned.is_known(inputs.now);
    if is_moved { controlled } else { Vec::new() }
}

/// Notes the bounds that are served from now on.
fn watch(inputs: &mut Inputs<'_>, supply: &Supply, bounds: &[Bound], needed: MilliGpus) {
    let moment = moment(inputs, supply, needed);
    if let Some(learned) = inputs.learned.as_mut() {
        learned.watch(&moment, bounds, inputs.hp_demand.is_some());
    }
}

/// Knowledge of demand now.
fn moment(inputs: &Inputs<'_>, supply: &Supply, needed: MilliGpus) -> Moment {
    let measured_at = if inputs.hp_demand.is_some() { inputs.now } else { inputs.measured_until };
    Moment { now: inputs.now, measured_at, demand: needed, capacity: supply.capacity }
}

/// Demand that returns where a day off ends is the usual one and no upper bound of it: what was learned on other days lowers it by nothing.
fn kept_bounds(peak: Vec<Bound>, controlled: &[Controlled], forecast: Option<&[ForecastBound]>) -> Vec<Bound> {
    let moved = |place: usize, one: Bound| controlled.get(place).map_or(one.bound, Controlled::bound);
    let kept = |(place, one): (usize, Bound)| Bound { bound: moved(place, one).max(returns(forecast, place)), ..one };
    peak.into_iter().enumerate().map(kept).collect()
}

/// Demand that returns where a day off ends within the offered hours at a place; 0 where none does.
fn returns(forecast: Option<&[ForecastBound]>, place: usize) -> MilliGpus {
    forecast.and_then(|all| all.get(place)).map_or(MilliGpus::ZERO, |one| one.returns)
}

#[cfg(test)]
mod tests;
