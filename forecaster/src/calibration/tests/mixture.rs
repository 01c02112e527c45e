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
    let known = calibrator.conformal_of(&id("a").pool, &members, None, GuaranteeRate::GFS).unwrap().hours[3];
    for one in known.experts {
        let is_last_value = matches!(one.expert, Expert::LastValue | Expert::LastValueNear);
        assert_eq!((one.bound_gpus.is_none(), one.weight == 0.0), (is_last_value, is_last_value), "{one:?}");
    }
    assert!((known.experts.iter().map(|one| one.weight).sum::<f64>() - 1.0).abs() < 1e-9);
}

#[test]
fn a_state_without_experts_is_read_and_they_learn_again() {
    let panel = panel(&[noise(500, 7, |_| 50.0, 10.0)]);
    let issues = issues(0, 300);
    let raw = always(&panel, issues, 40.0, 8.0);
    let horizon = HorizonHours::new(HOURS).unwrap();
    let (_, calibrator) = replay(Calibrator::new(horizon, false), &panel, issues, &raw, GuaranteeRate::GFS);
    let mut old = Calibrator::from_bytes(&before_experts(&calibrator)).unwrap();
    let conformal = |of: &Calibrator, at: usize| {
        let raw = always(&panel, HourRange { from: hour(at), to: hour(at + 1) }, 40.0, 8.0);
        of.conformal(&panel, &raw[0], GuaranteeRate::GFS)[&id("a").pool].hours[3]
    };
    let (known, read) = (conformal(&calibrator, 300), conformal(&old, 300));
    assert_eq!((known.own, known.residuals), (read.own, read.residuals));
    let states =
        |one: &ConformalHours, expert: Expert| one.experts.iter().any(|e| e.expert == expert && e.bound_gpus.is_some());
    assert!(states(&known, Expert::LastValue) && !states(&read, Expert::LastValue));
    assert!(!states(&read, Expert::ConformalNear) && states(&read, Expert::SumOfQuantiles));
    for at in 300..340 {
        let raw = always(&panel, HourRange { from: hour(at), to: hour(at + 1) }, 40.0, 8.0);
        old.observe(&panel, hour(at), &raw[0]);
    }
    assert!(states(&conformal(&old, 344), Expert::LastValue));
}

/// As the format before experts had it: residual and total alone.
fn before_experts(calibrator: &Calibrator) -> Vec<u8> {
    let bytes = calibrator.to_bytes();
    let pool = &calibrator.pools[0];
    let mixtures = pool.mixtures.len() * 5 * 9 * 8;
    let residuals = bytes.len() - mixtures - pool.residuals.len() * 16;
    let mut old = bytes[..residuals].to_vec();
    old[5] = 2;
    for one in &pool.residuals {
        old.extend([one.above_sum, one.total].into_iter().flat_map(f32::to_le_bytes));
    }
    old
}
