//! Peers on a history.

use super::{AutoEts, Network, NetworkKind};
use crate::descent::Schedule;
use crate::fit::{Fit, FitError};
use crate::model::{Family, ModelKind, ModelSpec};
use crate::predict::{Predict, forecast, roll};
use crate::scores::{Scores, collect, score};
use crate::trained::split;
use datasets::window::{self, Window};
use datasets::{Calendar, Panel, PanelBuilder};
use std::borrow::Cow;
use vocab::{ClusterName, DemandForecast, HorizonHours, HourStart, Organization, PoolId, SeriesId};

/// Organizations that work from nine to five, each with another number of GPUs, and some noise.
fn office(hours: u32) -> Panel {
    let calendar = Calendar::parse("UTC", Calendar::WEEKDAYS).unwrap();
    let start = HourStart::from_unix_s(1_588_291_200).unwrap();
    let end = start.plus_hours(i64::from(hours));
    let mut builder = PanelBuilder::new(ClusterName::parse("earth").unwrap(), calendar, start, end);
    let pool = PoolId::parse("earth:V100").unwrap();
    for (place, name) in ["a", "b", "c", "d"].into_iter().enumerate() {
        let id = SeriesId { pool: pool.clone(), organization: Organization::parse(name).unwrap() };
        for hour in 0..hours {
            let size = [4.0, 8.0, 32.0, 100.0][place];
            let noise = f64::from((hour * 7 + place as u32 * 3) % 5) * size / 40.0;
            let gpus = if (9..17).contains(&(hour % 24)) { size * 2.0 } else { size } + noise;
            builder.push(&id, start.plus_hours(i64::from(hour)), gpus).unwrap();
        }
    }
    builder.finish().unwrap()
}

fn fit_of(panel: &Panel, kind: ModelKind, lookback_hours: usize) -> Fit<'_> {
    let spec = ModelSpec { kind, horizon: HorizonHours::new(4).unwrap(), lookback_hours, seed: 1 };
    Fit { panel, split: split(panel, panel.end(), &spec).unwrap(), spec, settings: crate::blend::Settings::DEFAULT }
}

/// A shorter training than users get: what is learned in it is plain enough.
fn short(kind: NetworkKind) -> Schedule {
    let epochs = match kind {
        NetworkKind::DLinear | NetworkKind::NLinear => 60,
        NetworkKind::DeepAr => 12,
        NetworkKind::Transformer => 6,
    };
    Schedule { epochs, batch_issues: 16, epoch_batches: 20, halving_epochs: 10, ..kind.schedule() }
}

fn network(what: &Fit<'_>) -> Result<Network, FitError> {
    let Family::Network(kind) = what.spec.kind.family() else { panic!("{} is no network", what.spec.kind) };
    Network::fit_by(short(kind), kind, what, &mut |_| ())
}

fn validated(model: &dyn Predict, what: &Fit<'_>) -> Scores {
    let rolled = roll(model, what.panel, what.split.validation).unwrap();
    score(&collect(what.panel, what.split.validation, &rolled, what.spec.horizon).0).unwrap()
}

fn last_value(panel: &Panel) -> Scores {
    let what = fit_of(panel, ModelKind::LastValue, 168);
    validated(&crate::fit(&what, &mut |_| ()).unwrap(), &what)
}

fn assert_ahead(kind: ModelKind, model: &dyn Predict, panel: &Panel, share: f64) {
    let (scores, last) = (validated(model, &fit_of(panel, kind, 168)), last_value(panel));
    for (name, ours, theirs) in [
        ("MAE", scores.mae_median_gpus, last.mae_median_gpus),
        ("CRPS", scores.crps_gpus, last.crps_gpus),
        ("pinball 0.9", scores.pinball_gpus[0], last.pinball_gpus[0]),
    ] {
        assert!(ours < share * theirs, "{kind}: {name} {ours} against {theirs} of the last value");
    }
}

#[test]
fn each_linear_peer_knows_when_the_office_opens_and_the_last_value_does_not() {
    let panel = office(504);
    for kind in [ModelKind::DLinear, ModelKind::NLinear] {
        assert_ahead(kind, &network(&fit_of(&panel, kind, 168)).unwrap(), &panel, 0.6);
    }
}

#[test]
fn deepar_knows_when_the_office_opens() {
    let panel = office(504);
    let deepar = network(&fit_of(&panel, ModelKind::DeepAr, 168)).unwrap();
    assert_ahead(ModelKind::DeepAr, &deepar, &panel, 0.7);
}

#[test]
fn the_transformer_knows_when_the_office_opens() {
    let panel = office(504);
    let transformer = network(&fit_of(&panel, ModelKind::Transformer, 168)).unwrap();
    assert_ahead(ModelKind::Transformer, &transformer, &panel, 0.7);
}

#[test]
fn exponential_smoothing_knows_when_the_office_opens() {
    let panel = office(504);
    let what = fit_of(&panel, ModelKind::AutoEts, 168);
    let smoothing = AutoEts::fit(&what, what.split.validation.from).unwrap();
    assert_ahead(ModelKind::AutoEts, &smoothing, &panel, 0.4);
}

#[test]
fn a_lookback_that_is_too_short_is_refused_with_both_lengths() {
    let panel = office(504);
    for (kind, expected) in [
        (ModelKind::DeepAr, "a lookback of 96 h is too short for this model, which needs 168 h"),
        (ModelKind::Transformer, "a lookback of 4 h is too short for this model, which needs 6 h"),
    ] {
        let lookback_hours = if kind == ModelKind::DeepAr { 96 } else { 4 };
        let fault = network(&fit_of(&panel, kind, lookback_hours)).unwrap_err().to_string();
        assert_eq!(fault, expected);
    }
}

fn windows(panel: &Panel, issue: HourStart) -> Vec<Window<'_>> {
    let horizon = HorizonHours::new(4).unwrap();
    (0..panel.series().len()).map(|series| window::at(panel, series, issue, 168, horizon).unwrap()).collect()
}

/// Matrix products of other heights may round otherwise in the last digits, and nothing more.
fn assert_alike(one: &DemandForecast, other: &DemandForecast) {
    assert_eq!((one.series(), one.issue()), (other.series(), other.issue()));
    for (a, b) in one.steps().iter().zip(other.steps()) {
        let pairs = a.quantiles_gpus.iter().zip(&b.quantiles_gpus).chain([(&a.mean_gpus, &b.mean_gpus)]);
        for (a, b) in pairs {
            assert!((a - b).abs() <= 1e-3 * b.abs().max(1.0), "{a} {b}");
        }
    }
}

#[test]
fn drawn_paths_are_those_of_the_seed_the_series_and_the_hour_with_any_other_series() {
    let panel = office(504);
    let what = fit_of(&panel, ModelKind::DeepAr, 168);
    let schedule = Schedule { epochs: 1, ..short(NetworkKind::DeepAr) };
    let deepar = Network::fit_by(schedule, NetworkKind::DeepAr, &what, &mut |_| ()).unwrap();
    let windows = windows(&panel, panel.end());
    let together = deepar.predict(&windows).unwrap();
    for (window, forecast) in windows.iter().zip(&together) {
        assert_alike(&deepar.predict(std::slice::from_ref(window)).unwrap()[0], forecast);
    }
    assert_eq!(deepar.predict(&windows).unwrap(), together, "the same draws each time");
    let other = super::Parts { seed: 2, ..deepar.parts().clone() };
    assert_ne!(Network::from_parts(other).unwrap().predict(&windows).unwrap(), together);
}

/// Smoothing at the end of the panel, from states of so many hours before.
fn smoothing(panel: &Panel, hours_before: i64) -> AutoEts {
    let what = fit_of(panel, ModelKind::AutoEts, 168);
    AutoEts::fit(&what, panel.end().plus_hours(-hours_before)).unwrap()
}

#[test]
fn smoothing_goes_on_from_the_state_at_the_end_of_what_it_learned() {
    let panel = office(504);
    let far = smoothing(&panel, 150);
    // The hours that the window shows, cut off: the state has to roll through them.
    let rolled = forecast(&far, &panel, panel.end()).unwrap();
    for (forecast, series) in rolled.iter().zip(panel.series()) {
        let came: Vec<f64> = (0..4).map(|step| series.demand_gpus()[504 - 24 + step]).collect();
        for (step, came) in forecast.steps().iter().zip(came) {
            assert!((step.mean_gpus - came).abs() < 0.2 * came, "{}: {} {came}", series.id(), step.mean_gpus);
        }
    }
}

#[test]
fn hours_that_no_window_shows_are_skipped_with_their_place_in_the_day() {
    let panel = office(1_008);
    // 500 hours between the state and the end, of which the window shows 168: 20 hours off the day's start.
    let far = forecast(&smoothing(&panel, 500), &panel, panel.end().plus_hours(-16)).unwrap();
    for (forecast, size) in far.iter().zip([4.0, 8.0, 32.0, 100.0]) {
        let means: Vec<f64> = forecast.steps().iter().map(|step| step.mean_gpus / size).collect();
        // Eight o'clock, then nine and on.
        assert!(means[0] < 1.3 && means[1..].iter().all(|mean| *mean > 1.7), "{means:?}");
    }
}

#[test]
fn an_hour_that_was_not_measured_counts_as_forecast() {
    let panel = office(504);
    let model = smoothing(&panel, 24);
    let whole = &windows(&panel, panel.end())[3];
    let mut demand_gpus = whole.demand_gpus.to_vec();
    let mut measured = whole.measured.to_vec();
    let last = demand_gpus.len() - 1;
    (demand_gpus[last], measured[last]) = (5_000.0, false);
    let gap = Window { demand_gpus: Cow::Borrowed(&demand_gpus), measured: Cow::Borrowed(&measured), ..whole.clone() };
    let wild = Window { demand_gpus: Cow::Borrowed(&demand_gpus), ..whole.clone() };
    let mean = |window: &Window<'_>| model.predict(std::slice::from_ref(window)).unwrap()[0].steps()[0].mean_gpus;
    // The office's level hardly moves, so even a wild hour moves it by little.
    let (moved, ignored) = ((mean(&wild) - mean(whole)).abs(), (mean(&gap) - mean(whole)).abs());
    assert!(moved > 0.1 && ignored < 0.05 * moved, "{moved} {ignored}");
}

#[test]
fn what_is_no_smoothing_is_refused() {
    let panel = office(504);
    let numbers = smoothing(&panel, 24).series().values().next().unwrap().numbers();
    assert_eq!(super::Smoothed::parse(&numbers).unwrap().numbers(), numbers);
    for (place, value) in [(0, 2.0), (1, 3.0), (2, 0.5), (3, 1.5), (5, -0.1), (9, 0.0), (10, -1.0)] {
        let mut bad = numbers.clone();
        bad[place] = value;
        assert_eq!(super::Smoothed::parse(&bad), None, "{place}");
    }
    assert_eq!(super::Smoothed::parse(&numbers[1..]), None);
}
