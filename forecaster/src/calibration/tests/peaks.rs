//! Peaks over a few hours teach before the last hours of a forecast are over.

use super::super::*;
use super::{always, hour, id, issues, noise, panel};
use datasets::HourRange;
use vocab::GuaranteeRate;

const DAY: usize = 24;

fn day() -> HorizonHours {
    HorizonHours::new(DAY as u64).unwrap()
}

/// The bytes of before tiers: the format, and nothing between the newest issue time and the series.
pub(super) fn without_tiers(mut bytes: Vec<u8>, calibrator: &Calibrator) -> Vec<u8> {
    if bytes[5] == 9 {
        bytes[5] = 8;
        drop(bytes.drain(16..16 + 8 * calibrator.taught.len()));
    }
    bytes
}

/// Demand of two organizations, and forecasts over a day that say always the same.
fn forecast_over_a_day(hours: usize) -> (Panel, Vec<Vec<DemandForecast>>) {
    let panel = panel(&[noise(hours + DAY, 7, |_| 50.0, 10.0), noise(hours + DAY, 9, |_| 20.0, 4.0)]);
    let rows = always(&panel, issues(0, hours), 40.0, 8.0);
    let long = |one: &DemandForecast| {
        let steps = vec![one.steps()[0]; DAY];
        DemandForecast::new(one.series().clone(), one.issue(), one.origin(), steps).unwrap()
    };
    let all = rows.iter().map(|row| row.iter().map(long).collect()).collect();
    (panel, all)
}

fn residuals(calibrator: &Calibrator, panel: &Panel, raw: &[DemandForecast]) -> Vec<usize> {
    let known = &calibrator.conformal(panel, raw, GuaranteeRate::GFS)[&id("a").pool];
    [1, 4, 5, 8, 9, 16, 17, 24].map(|hours: usize| known.hours[hours - 1].residuals).to_vec()
}

#[test]
fn each_tier_is_learned_once_its_own_hours_are_over() {
    let (panel, raw) = forecast_over_a_day(100);
    let mut online = Online::new(Calibrator::new(day(), true));
    for (issue, raw) in issues(0, 100).iter().zip(&raw) {
        let _ = online.issue(&panel, issue, raw.clone(), GuaranteeRate::GFS);
    }
    // At hour 99: issue times 0 to 95, to 91, to 83 and to 75.
    let now = online.clone().finish(&panel, hour(99));
    assert_eq!(residuals(&now, &panel, &raw[99]), [96, 96, 92, 92, 84, 84, 76, 76]);
    assert_eq!(now.newest_issue(), Some(hour(75)));
    let taught: Vec<_> = now.peaks_taught().iter().map(|(hours, taught)| (hours.get(), *taught)).collect();
    assert_eq!(taught, [(4, Some(hour(95))), (8, Some(hour(91))), (16, Some(hour(83)))]);
    let weights = |number: usize| *now.pools[0].mixtures[number][2].weights();
    assert_ne!(weights(0), *experts::prior(1), "24 residuals are known, and more outcomes");
}

#[test]
fn early_lessons_are_not_learned_twice_and_end_in_the_same_bytes() {
    let (panel, raw) = forecast_over_a_day(120);
    let mut whole = Calibrator::new(day(), true);
    issues(0, 96).iter().zip(&raw).for_each(|(issue, raw)| whole.observe(&panel, issue, raw));
    let mut early = Calibrator::new(day(), true);
    for now in 0..120 {
        let due = |issue: usize| (issue, &raw[issue]);
        for (issue, raw) in (now.max(DAY) - DAY..=now).map(due) {
            let guesses = PeakGuesses::of(hour(issue), raw, day());
            // Twice, as after a restart.
            early.observe_peaks(&panel, &guesses, hour(now));
            early.observe_peaks(&panel, &guesses, hour(now));
        }
        if let Some(over) = now.checked_sub(DAY) {
            early.observe(&panel, hour(over), &raw[over]);
        }
    }
    // Issue times from 96 on, as far as they are over, are in one alone.
    let mut rest = whole.clone();
    for (issue, raw) in (96..).map(hour).zip(&raw[96..]) {
        rest.observe_peaks(&panel, &PeakGuesses::of(issue, raw, day()), hour(119));
    }
    assert_ne!(whole.to_bytes(), early.to_bytes());
    assert_eq!(rest.to_bytes(), early.to_bytes());
    let back = Calibrator::from_bytes(&early.to_bytes()).unwrap();
    assert_eq!(back.to_bytes(), early.to_bytes());
    assert_eq!(back.peaks_taught(), early.peaks_taught());
    assert_eq!(residuals(&back, &panel, &raw[119]), residuals(&early, &panel, &raw[119]));
}

#[test]
fn a_state_of_before_tiers_goes_on_from_its_newest_issue_time() {
    let (panel, raw) = forecast_over_a_day(60);
    let mut known = Calibrator::new(day(), true);
    issues(0, 50).iter().zip(&raw).for_each(|(issue, raw)| known.observe(&panel, issue, raw));
    let old = Calibrator::from_bytes(&without_tiers(known.to_bytes(), &known)).unwrap();
    assert_eq!(old.to_bytes(), known.to_bytes());
    assert!(old.peaks_taught().iter().all(|(_, taught)| *taught == Some(hour(49))));
}

#[test]
fn demand_at_or_after_an_issue_time_changes_nothing_that_is_issued_there() {
    let (panel, raw) = forecast_over_a_day(100);
    let cut = |until: usize| {
        let rows: Vec<Vec<f64>> = panel.series().iter().map(|one| one.demand_gpus()[..until].to_vec()).collect();
        super::panel(&rows)
    };
    let issued = |panel: &Panel, to: usize| {
        let of = HourRange { from: hour(0), to: hour(to) };
        replay(Calibrator::new(day(), true), panel, of, &raw[..to], GuaranteeRate::GFS).0.pop().unwrap()
    };
    for to in [60, 80, 99] {
        assert_eq!(issued(&panel, to), issued(&cut(to - 1), to));
    }
}
