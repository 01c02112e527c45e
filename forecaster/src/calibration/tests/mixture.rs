//! The mixture of experts on the peak of a pool.

use super::super::*;
use super::{always, hour, id, issues, noise, panel};
use crate::bound::{Aggregation, bounds};
use crate::calibration::experts::{EXPERTS_BEFORE, stating};
use crate::mixture::Mixture;
use crate::scores::{actual_peak_gpus, pinball};
use datasets::HourRange;
use vocab::GuaranteeRate;

const HOURS: u64 = 4;

/// Share of the peaks at or below the bound, and its mean pinball loss, from the 250th issue time on.
fn fared(panel: &Panel, issues: HourRange, issued: &[Issued], aggregation: Aggregation) -> (f64, f64) {
    let (horizon, pool) = (HorizonHours::new(HOURS).unwrap(), id("a").pool);
    let (mut kept, mut lost, mut count) = (0.0, 0.0, 0.0);
    for (at, issued) in issues.iter().zip(issued).skip(250) {
        let members: Vec<_> = issued.forecasts.iter().collect();
        let conformal = issued.conformal.get(&pool);
        let bound = bounds(&members, aggregation, None, conformal, GuaranteeRate::GFS, &[horizon]).unwrap();
        let peak = actual_peak_gpus(panel, &pool, at, horizon).unwrap();
        kept += f64::from(u8::from(bound[0].bound_gpus >= peak));
        lost += pinball(peak, bound[0].bound_gpus, 0.9);
        count += 1.0;
    }
    (kept / count, lost / count)
}

#[test]
fn a_mixture_keeps_the_promise_and_costs_little_where_the_conformal_bound_is_right() {
    let panel = panel(&[noise(1_004, 7, |_| 50.0, 10.0), noise(1_004, 8, |_| 30.0, 5.0)]);
    let issues = issues(0, 1_000);
    let raw = always(&panel, issues, 40.0, 8.0);
    let (issued, _) =
        replay(Calibrator::new(HorizonHours::new(HOURS).unwrap(), false), &panel, issues, &raw, GuaranteeRate::GFS);
    let (conformal, mixture) =
        (fared(&panel, issues, &issued, Aggregation::Conformal), fared(&panel, issues, &issued, Aggregation::Mixture));
    assert!((mixture.0 - 0.9).abs() < 0.05, "{mixture:?}");
    assert!(mixture.1 < 1.06 * conformal.1, "{mixture:?} against {conformal:?}");
}

/// Demand that stays for a day and jumps at midnight; a model that states its mean knows less than the last value.
#[test]
fn where_the_last_value_is_better_the_mixture_follows_it() {
    let levels = noise(60, 3, |_| 100.0, 40.0);
    let demand: Vec<f64> = (0..1_004).map(|hour| levels[hour / 24].max(0.0).round()).collect();
    let panel = panel(&[demand]);
    let issues = issues(0, 1_000);
    let raw = always(&panel, issues, 100.0, 40.0);
    let (issued, calibrator) =
        replay(Calibrator::new(HorizonHours::new(HOURS).unwrap(), false), &panel, issues, &raw, GuaranteeRate::GFS);
    let (conformal, mixture) =
        (fared(&panel, issues, &issued, Aggregation::Conformal), fared(&panel, issues, &issued, Aggregation::Mixture));
    assert!(mixture.1 < 0.6 * conformal.1, "{mixture:?} against {conformal:?}");
    let known = calibrator.conformal(&panel, &raw[999], GuaranteeRate::GFS)[&id("a").pool].hours[3];
    let weight = |expert: Expert| known.experts.iter().find(|one| one.expert == expert).unwrap().weight;
    let of_last_value = weight(Expert::LastValue) + weight(Expert::LastValueNear);
    assert!(of_last_value > weight(Expert::Conformal), "{:?}", known.experts);
    assert!((known.experts.iter().map(|one| one.weight).sum::<f64>() - 1.0).abs() < 1e-9);
}

#[test]
fn an_expert_without_the_newest_hour_states_nothing_and_the_others_have_its_weight() {
    let panel = panel(&[noise(300, 7, |_| 50.0, 10.0)]);
    let issues = issues(0, 296);
    let raw = always(&panel, issues, 40.0, 8.0);
    let (_, calibrator) =
        replay(Calibrator::new(HorizonHours::new(HOURS).unwrap(), false), &panel, issues, &raw, GuaranteeRate::GFS);
    let members: Vec<_> = raw[295].iter().collect();
    let nothing = Recent::default();
    let known = calibrator.conformal_of(&id("a").pool, &members, &nothing, GuaranteeRate::GFS, None).unwrap().hours[3];
    for one in known.experts.into_iter().filter(|one| one.expert.states_over(HorizonHours::new(HOURS).unwrap())) {
        let needs_it = matches!(one.expert, Expert::LastValue | Expert::LastValueNear | Expert::Linear);
        assert_eq!((one.bound_gpus.is_none(), one.weight == 0.0), (needs_it, needs_it), "{one:?}");
    }
    assert!((known.experts.iter().map(|one| one.weight).sum::<f64>() - 1.0).abs() < 1e-9);
}

#[test]
fn no_expert_on_a_pool_that_fell_to_nothing_states_less_than_none() {
    let panel = panel(&[vec![0.0; 300]]);
    let raw = always(&panel, issues(0, 296), 40.0, 8.0);
    let calibrator = Calibrator::new(HorizonHours::new(HOURS).unwrap(), false);
    let (_, calibrator) = replay(calibrator, &panel, issues(0, 296), &raw, GuaranteeRate::GFS);
    // Forecasts know it now; what they missed by was learned before.
    let low = always(&panel, HourRange { from: hour(296), to: hour(297) }, 1.0, 0.5);
    let known = &calibrator.conformal(&panel, &low[0], GuaranteeRate::GFS)[&id("a").pool].hours;
    let stated: Vec<f64> = known[3].experts.iter().filter_map(|one| one.bound_gpus).collect();
    assert!(stated.len() > 2 && stated.iter().all(|gpus| *gpus >= 0.0), "{stated:?}");
}

/// The experts that state a bound.
fn that_state(known: &ConformalHours) -> Vec<Expert> {
    known.experts.iter().filter(|one| one.bound_gpus.is_some()).map(|one| one.expert).collect()
}

#[test]
fn states_of_older_formats_are_read_and_what_they_lack_is_learned_again_at_the_next_outcome() {
    let panel = panel(&[noise(500, 7, |_| 50.0, 10.0)]);
    let issues = issues(0, 300);
    let raw = always(&panel, issues, 40.0, 8.0);
    let horizon = HorizonHours::new(HOURS).unwrap();
    let (_, calibrator) = replay(Calibrator::new(horizon, false), &panel, issues, &raw, GuaranteeRate::GFS);
    let conformal = |of: &Calibrator, at: usize| {
        let raw = always(&panel, HourRange { from: hour(at), to: hour(at + 1) }, 40.0, 8.0);
        of.conformal(&panel, &raw[0], GuaranteeRate::GFS)[&id("a").pool].hours[3]
    };
    let known = conformal(&calibrator, 300);
    assert_eq!(that_state(&known), Expert::ALL[..5]);
    let without_rises = [Expert::Conformal];
    let without_linear = [Expert::Conformal, Expert::ConformalNear, Expert::LastValue, Expert::LastValueNear];
    for (format, states) in [(2, &without_rises[..]), (3, &without_linear[..])] {
        let mut old = Calibrator::from_bytes(&of_format(&calibrator, format)).unwrap();
        let read = conformal(&old, 300);
        assert_eq!((known.own, known.residuals, that_state(&read)), (read.own, read.residuals, states.to_vec()));
        let raw = always(&panel, HourRange { from: hour(300), to: hour(301) }, 40.0, 8.0);
        old.observe(&panel, hour(300), &raw[0]);
        let all: Vec<_> = that_state(&conformal(&old, 304));
        // Residuals in GPUs of the forecast come back hour by hour.
        assert_eq!(all.len(), if format == 2 { 4 } else { 5 }, "{all:?}");
    }
}

/// A mixture of the experts that older programs knew, as they wrote it.
fn known_before(mixture: &Mixture<EXPERTS>) -> Vec<f64> {
    let numbers: Vec<f64> = mixture.first_numbers(EXPERTS_BEFORE).collect();
    let (weights, sums) = numbers.split_at(EXPERTS_BEFORE);
    let all: f64 = weights.iter().sum();
    weights.iter().map(|weight| weight / all).chain(sums.iter().copied()).collect()
}

/// The bytes as an older format had them.
fn of_format(calibrator: &Calibrator, format: u8) -> Vec<u8> {
    let bytes = super::peaks::without_tiers(calibrator.to_bytes(), calibrator);
    let pool = &calibrator.pools[0];
    let hours = pool.mixtures.len();
    let remembered = 12 + pool.memory.gpus().len() * 4;
    let mixtures: Vec<f64> = pool.mixtures.iter().flatten().flat_map(known_before).collect();
    let falls = if bytes[5] >= 6 { hours * 24 } else { 0 };
    let of_mixtures = (1..=hours).map(|hours| (stating(hours) + 2) * 5 * 8).sum::<usize>();
    let since_residuals = hours * 12 * 8 + of_mixtures + remembered + falls;
    if format == 4 {
        let mut old = bytes[..bytes.len() - of_mixtures - remembered - falls].to_vec();
        old[5] = format;
        old.extend(mixtures.into_iter().flat_map(f64::to_le_bytes));
        return old;
    }
    let residuals = bytes.len() - since_residuals - pool.residuals.len() * 20;
    let mut old = bytes[..residuals].to_vec();
    old[5] = format;
    for one in &pool.residuals {
        let all = [one.above_sum, one.total, one.deviation_gpus, one.rise_gpus];
        let kept = if format == 2 { &all[..2] } else { &all[..] };
        old.extend(kept.iter().copied().flat_map(f32::to_le_bytes));
    }
    if format == 3 {
        // Six weights and three sums for each rate.
        let mixture = [0.7, 0.06, 0.06, 0.06, 0.06, 0.06, 1.0, 1.0, 1.0];
        (0..hours * 5).for_each(|_| old.extend(mixture.into_iter().flat_map(f64::to_le_bytes)));
    }
    old
}

#[test]
fn a_pool_that_is_new_has_its_rises_from_the_panel_and_a_gap_of_forecasts_leaves_none() {
    let panel = panel(&[noise(400, 7, |_| 50.0, 10.0)]);
    let horizon = HorizonHours::new(HOURS).unwrap();
    let mut calibrator = Calibrator::new(horizon, false);
    let mut observe = |at: usize| {
        let raw = always(&panel, HourRange { from: hour(at), to: hour(at + 1) }, 40.0, 8.0);
        calibrator.observe(&panel, hour(at), &raw[0]);
        calibrator.clone()
    };
    let first = observe(200);
    let rises = |of: &Calibrator| of.pools[0].residuals.iter().filter(|one| !one.rise_gpus.is_nan()).count();
    assert_eq!(rises(&first), 168 * HOURS as usize);
    let raw = always(&panel, HourRange { from: hour(204), to: hour(205) }, 40.0, 8.0);
    let known = first.conformal(&panel, &raw[0], GuaranteeRate::GFS)[&id("a").pool].hours[3];
    let stated = that_state(&known);
    assert!(stated.contains(&Expert::LastValue) && stated.contains(&Expert::Linear), "{stated:?}");
    // No service for a day: forecasts of these hours are missing, what demand did is not.
    let after = observe(230);
    assert_eq!(rises(&after), 168 * HOURS as usize);
    // Hour by hour the same is learned as at once.
    let mut steady = Calibrator::new(horizon, false);
    for at in 200..=230 {
        let raw = always(&panel, HourRange { from: hour(at), to: hour(at + 1) }, 40.0, 8.0);
        steady.observe(&panel, hour(at), &raw[0]);
    }
    assert_eq!(steady.pools[0].linear, after.pools[0].linear);
}

const DAY: u64 = 24;

/// Forecasts over a day of one organization that say the last value stays, as a model without a deviation of its own would.
fn last_value_of_a_day(panel: &Panel, issues: HourRange) -> Vec<Vec<DemandForecast>> {
    let one = |issue: HourStart| {
        let before = panel.series()[0].demand_gpus()[panel.index_of(issue).unwrap().saturating_sub(1)];
        let steps = vec![super::gaussian_step(before, 10.0); DAY as usize];
        vec![DemandForecast::new(id("a"), issue, ForecastOrigin::Model, steps).unwrap()]
    };
    issues.iter().map(one).collect()
}

/// Demand that moves to a new level every twelve hours: a week has seven outcomes of a day, and the order statistic of its 168 hourly
/// residuals lies under 0.15 to 0.2 of the peaks.
#[test]
fn promises_of_a_day_are_kept_where_a_week_has_seven_outcomes() {
    let (mut kept, mut count) = (0.0, 0.0);
    let (pool, horizon) = (id("a").pool, HorizonHours::new(DAY).unwrap());
    for seed in 0..6 {
        let levels = noise(100, seed, |_| 100.0, 30.0);
        let panel = panel(&[(0..1_100).map(|hour| levels[hour / 12].max(0.0).round()).collect()]);
        let mut calibrator = Calibrator::new(horizon, false);
        for now in (224..1_050).step_by(4) {
            let raw = |at: usize| last_value_of_a_day(&panel, issues(at, at + 1)).remove(0);
            calibrator.observe(&panel, hour(now - 24), &raw(now - 24));
            let (next, recent) = (raw(now), recent(&panel, &pool, hour(now), horizon));
            let members: Vec<_> = next.iter().collect();
            let known = calibrator.conformal_of(&pool, &members, &recent, GuaranteeRate::GFS, Some(&[horizon]));
            let experts = known.unwrap().hours[23].stated(0.0).unwrap();
            let peak = actual_peak_gpus(&panel, &pool, hour(now), horizon).unwrap();
            if now > 600 {
                kept += f64::from(u8::from(mixture_gpus(&experts) >= peak));
                count += 1.0;
            }
        }
    }
    assert!(kept / count > 0.88 && kept / count < 0.97, "{}", kept / count);
}

/// Demand that jumped each day until a week ago, and since then stays where its forecasts say: what it rose by in six weeks is far too much.
#[test]
fn over_a_day_the_peak_that_forecasts_have_is_followed_where_they_are_right() {
    let levels = noise(60, 3, |_| 100.0, 60.0);
    let calm = noise(1_100, 5, |_| 100.0, 6.0);
    let demand = |hour: usize| if hour < 600 { levels[hour / 12].max(0.0) } else { calm[hour] };
    let panel = panel(&[(0..1_100).map(|hour| demand(hour).round()).collect()]);
    let (pool, horizon) = (id("a").pool, HorizonHours::new(DAY).unwrap());
    let says = |at: usize| {
        let steps = vec![super::gaussian_step(100.0, 7.0); DAY as usize];
        vec![DemandForecast::new(id("a"), hour(at), ForecastOrigin::Model, steps).unwrap()]
    };
    let mut calibrator = Calibrator::new(horizon, false);
    let (mut lost, mut lost_otherwise) = (0.0, 0.0);
    for now in 624..1_000 {
        calibrator.observe(&panel, hour(now - 24), &says(now - 24));
        let (next, recent) = (says(now), recent(&panel, &pool, hour(now), horizon));
        let members: Vec<_> = next.iter().collect();
        let known = calibrator.conformal_of(&pool, &members, &recent, GuaranteeRate::GFS, Some(&[horizon])).unwrap();
        let Some(experts) = known.hours[23].stated(0.0).filter(|_| now > 750) else { continue };
        let peak = actual_peak_gpus(&panel, &pool, hour(now), horizon).unwrap();
        let of = |expert: Expert| experts.iter().find(|one| one.expert == expert).unwrap();
        assert!(of(Expert::ForecastPeak).weight > 0.2, "{now}: {experts:?}");
        lost += pinball(peak, mixture_gpus(&experts), 0.9);
        lost_otherwise += pinball(peak, of(Expert::LastValue).bound_gpus.unwrap(), 0.9);
    }
    assert!(lost < 0.5 * lost_otherwise && lost > 0.0, "{lost} {lost_otherwise}");
}

#[test]
fn over_a_day_the_peak_that_forecasts_have_has_no_part_where_half_of_the_peaks_were_above_it() {
    let panel = panel(&[noise(500, 5, |_| 100.0, 6.0)]);
    let horizon = HorizonHours::new(DAY).unwrap();
    let weight = |says_gpus: f64| {
        let steps = vec![super::gaussian_step(says_gpus, 2.0); DAY as usize];
        let raw =
            |at: usize| vec![DemandForecast::new(id("a"), hour(at), ForecastOrigin::Model, steps.clone()).unwrap()];
        let mut calibrator = Calibrator::new(horizon, false);
        (200..300).for_each(|at| calibrator.observe(&panel, hour(at), &raw(at)));
        let known = calibrator.conformal(&panel, &raw(324), GuaranteeRate::GFS)[&id("a").pool].hours[23];
        known.experts.iter().find(|one| one.expert == Expert::ForecastPeak).unwrap().weight
    };
    assert!(weight(90.0) == 0.0 && weight(120.0) > 0.0, "{} {}", weight(90.0), weight(120.0));
}

#[test]
fn experts_are_asked_for_the_offered_hours_alone_and_say_the_same() {
    let panel = panel(&[noise(400, 7, |_| 50.0, 10.0)]);
    let (issues, horizon) = (issues(200, 300), HorizonHours::new(DAY).unwrap());
    let raw = last_value_of_a_day(&panel, issues);
    let (_, calibrator) = replay(Calibrator::new(horizon, false), &panel, issues, &raw, GuaranteeRate::GFS);
    let (pool, members) = (id("a").pool, raw[99].iter().collect::<Vec<_>>());
    let recent = recent(&panel, &pool, hour(299), horizon);
    let asked = [HorizonHours::ONE, HorizonHours::new(12).unwrap()];
    let of = |asked| calibrator.conformal_of(&pool, &members, &recent, GuaranteeRate::GFS, asked).unwrap().hours;
    let (all, some) = (of(None), of(Some(&asked[..])));
    for (number, (one, other)) in all.iter().zip(&some).enumerate() {
        let is_asked = asked.iter().any(|hours| hours.steps() == number + 1);
        assert_eq!(other.stated(50.0), one.stated(50.0).filter(|_| is_asked), "{number}");
        assert_eq!(other.bound_gpus(50.0), one.bound_gpus(50.0));
        assert!(one.stated(50.0).is_some());
    }
}

#[test]
fn a_state_without_remembered_demand_learns_it_again_at_the_next_outcome() {
    let panel = panel(&[noise(400, 7, |_| 50.0, 10.0)]);
    let (issues, horizon) = (issues(200, 301), HorizonHours::new(DAY).unwrap());
    let raw = last_value_of_a_day(&panel, issues);
    let mut calibrator = Calibrator::new(horizon, false);
    issues.iter().zip(&raw[..100]).for_each(|(at, raw)| calibrator.observe(&panel, at, raw));
    let mut old = Calibrator::from_bytes(&of_format(&calibrator, 4)).unwrap();
    let hours = |of: &Calibrator| of.pools[0].memory.gpus().len();
    assert_eq!((hours(&calibrator), hours(&old)), (323, 0));
    // An expert that it did not know begins.
    let weight = |number: usize| old.pools[0].mixtures[number][2].weights()[EXPERTS_BEFORE];
    assert!((weight(23) - 0.1).abs() < 1e-12 && weight(3) == 0.0, "{} {}", weight(23), weight(3));
    let again = Calibrator::from_bytes(&calibrator.to_bytes()).unwrap();
    assert_eq!(again.pools[0].mixtures, calibrator.pools[0].mixtures);
    for one in [&mut calibrator, &mut old] {
        one.observe(&panel, hour(300), &raw[100]);
    }
    assert_eq!((hours(&calibrator), hours(&old)), (324, 324));
    let next = &last_value_of_a_day(&panel, self::issues(324, 325))[0];
    let experts = |of: &Calibrator| of.conformal(&panel, next, GuaranteeRate::GFS)[&id("a").pool].hours[23].experts;
    let bounds = |of: &Calibrator| experts(of).map(|one| one.bound_gpus);
    assert_eq!(bounds(&old), bounds(&calibrator));
}

#[test]
fn while_an_hour_is_reported_in_part_all_experts_go_on_from_what_is_known() {
    let both = [noise(404, 7, |_| 50.0, 10.0), noise(404, 8, |_| 30.0, 5.0)];
    let whole = panel(&both);
    let horizon = HorizonHours::new(HOURS).unwrap();
    let raw = always(&whole, issues(0, 400), 40.0, 8.0);
    let (_, calibrator) = replay(Calibrator::new(horizon, false), &whole, issues(0, 300), &raw, GuaranteeRate::GFS);
    // Of the newest hour there is a row of one organization alone, or of nobody; two days before that, everything.
    let with = |gaps: [std::ops::Range<usize>; 2]| {
        let mut demand = both.clone();
        demand.iter_mut().zip(gaps).for_each(|(one, gap)| one[gap].fill(f64::NAN));
        let panel = panel(&demand);
        let known = calibrator.conformal(&panel, &raw[300], GuaranteeRate::GFS);
        known[&id("a").pool].hours[3].experts.iter().map(|one| one.bound_gpus).collect::<Vec<_>>()
    };
    let stated = |bounds: &[Option<f64>]| bounds.iter().filter(|bound| bound.is_some()).count();
    let (all, part) = (with([0..0, 0..0]), with([0..0, 299..300]));
    assert_eq!((stated(&all), stated(&part)), (5, 5));
    // The other one is as it was in the hour before.
    let moved = both[1][299] - both[1][298];
    let of_last_value = |bounds: &[Option<f64>]| bounds[2].unwrap();
    assert!((of_last_value(&all) - of_last_value(&part) - moved).abs() < 1e-6, "{all:?} {part:?}");
    assert_eq!(stated(&with([252..300, 252..300])), 2, "nothing was measured for two days");
}
