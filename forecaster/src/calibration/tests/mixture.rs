//! The mixture of experts on the peak of a pool.

use super::super::*;
use super::{always, hour, id, issues, noise, panel};
use crate::bound::{Aggregation, bounds};
use crate::scores::{actual_peak_gpus, pinball};
use datasets::HourRange;

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
    let known = calibrator.conformal_of(&id("a").pool, &members, &nothing, GuaranteeRate::GFS).unwrap().hours[3];
    for one in known.experts {
        let needs_it = matches!(one.expert, Expert::LastValue | Expert::LastValueNear | Expert::Linear);
        assert_eq!((one.bound_gpus.is_none(), one.weight == 0.0), (needs_it, needs_it), "{one:?}");
    }
    assert!((known.experts.iter().map(|one| one.weight).sum::<f64>() - 1.0).abs() < 1e-9);
}

/// The experts that state a bound.
fn stating(known: &ConformalHours) -> Vec<Expert> {
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
    assert_eq!(stating(&known), Expert::ALL);
    let without_rises = [Expert::Conformal];
    let without_linear = [Expert::Conformal, Expert::ConformalNear, Expert::LastValue, Expert::LastValueNear];
    for (format, states) in [(2, &without_rises[..]), (3, &without_linear[..])] {
        let mut old = Calibrator::from_bytes(&of_format(&calibrator, format)).unwrap();
        let read = conformal(&old, 300);
        assert_eq!((known.own, known.residuals, stating(&read)), (read.own, read.residuals, states.to_vec()));
        let raw = always(&panel, HourRange { from: hour(300), to: hour(301) }, 40.0, 8.0);
        old.observe(&panel, hour(300), &raw[0]);
        let all: Vec<_> = stating(&conformal(&old, 304));
        // Residuals in GPUs of the forecast come back hour by hour.
        assert_eq!(all.len(), if format == 2 { 4 } else { 5 }, "{all:?}");
    }
}

/// The bytes as an older format had them.
fn of_format(calibrator: &Calibrator, format: u8) -> Vec<u8> {
    let bytes = calibrator.to_bytes();
    let pool = &calibrator.pools[0];
    let hours = pool.mixtures.len();
    let since_residuals = hours * (12 + 5 * 7) * 8;
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
    let stated = stating(&known);
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
