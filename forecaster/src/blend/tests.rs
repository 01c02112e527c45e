//! Trees on a history.

use crate::blend::Settings;
use crate::fit::{Fit, FitError};
use crate::model::{ModelKind, ModelSpec};
use crate::predict::roll;
use crate::scores::{Scores, collect, score};
use crate::trained::split;
use datasets::{Calendar, Panel, PanelBuilder};
use vocab::{ClusterName, HorizonHours, HourStart, Organization, PoolId, SeriesId};

/// Four weeks of four organizations that work from nine to five, each with another number of GPUs.
fn office() -> Panel {
    let calendar = Calendar::parse("UTC", Calendar::WEEKDAYS).unwrap();
    let start = HourStart::from_unix_s(1_588_291_200).unwrap();
    let mut builder = PanelBuilder::new(ClusterName::parse("earth").unwrap(), calendar, start, start.plus_hours(672));
    let pool = PoolId::parse("earth:V100").unwrap();
    for (place, name) in ["a", "b", "c", "d"].into_iter().enumerate() {
        let id = SeriesId { pool: pool.clone(), organization: Organization::parse(name).unwrap() };
        for hour in 0..672_u32 {
            let size = [4.0, 8.0, 32.0, 100.0][place];
            let noise = f64::from((hour * 7 + place as u32 * 3) % 5) * size / 40.0;
            let gpus = if (9..17).contains(&(hour % 24)) { size * 2.0 } else { size } + noise;
            builder.push(&id, start.plus_hours(i64::from(hour)), gpus).unwrap();
        }
    }
    builder.finish().unwrap()
}

fn validated(kind: ModelKind, lookback_hours: usize) -> Result<Scores, FitError> {
    let horizon = HorizonHours::new(4).unwrap();
    validated_as(ModelSpec { kind, horizon, lookback_hours, seed: 1 })
}

fn validated_over(kind: ModelKind, hours: u64) -> Scores {
    let horizon = HorizonHours::new(hours).unwrap();
    validated_as(ModelSpec { kind, horizon, lookback_hours: 168, seed: 1 }).unwrap()
}

fn validated_as(spec: ModelSpec) -> Result<Scores, FitError> {
    let panel = office();
    let split = split(&panel, panel.end(), &spec).unwrap();
    let fit = Fit { panel: &panel, split, spec, settings: Settings::DEFAULT };
    // As `train` judges it: by the forests that have not seen the validation part.
    let model = crate::fit(&fit, &mut |_| ())?;
    let rolled = roll(&model, &panel, split.validation).unwrap();
    Ok(score(&collect(&panel, split.validation, &rolled, spec.horizon).0).unwrap())
}

#[test]
fn each_part_knows_when_the_office_opens_and_the_last_value_does_not() {
    let last = validated(ModelKind::LastValue, 168).unwrap();
    for kind in [ModelKind::OrgLinear, ModelKind::Trees, ModelKind::Network] {
        let ours = validated(kind, 168).unwrap();
        assert!(ours.mae_median_gpus < 0.4 * last.mae_median_gpus, "{kind}: {ours:?} {last:?}");
        assert!(ours.pinball_gpus[0] < 0.35 * last.pinball_gpus[0], "{kind}: {ours:?} {last:?}");
        assert!(ours.crps_gpus < 0.4 * last.crps_gpus, "{kind}: {ours:?} {last:?}");
        assert!(ours.coverage[0] > 0.8, "{kind}: {}", ours.coverage[0]);
    }
}

/// Few rows, and a corner of demand that no curve through every third step knows.
#[test]
fn four_weeks_are_enough_for_a_workday_as_sharp_as_a_step() {
    for hours in [4, 24] {
        let (last, ours) = (validated_over(ModelKind::LastValue, hours), validated_over(ModelKind::OrgLinear, hours));
        assert!(ours.mae_median_gpus < 0.06 * last.mae_median_gpus, "{hours} h: {ours:?} {last:?}");
        assert!(ours.rmse_mean_gpus < 0.06 * last.rmse_mean_gpus, "{hours} h: {ours:?} {last:?}");
    }
}

/// Eight weeks of six organizations, of which a tenth is left on a Tuesday to Thursday of every second week, by a calendar that knows
/// these days or one that does not.
fn with_holidays(known: bool) -> Panel {
    const HOLIDAYS: [&str; 5] = ["2026-01-13", "2026-01-28", "2026-02-05", "2026-02-17", "2026-02-25"];
    let days = HOLIDAYS.map(|day| format!("{day},off,Holiday\n")).concat();
    let own = format!("# years: 2026-2026\ndate,kind,name\n{days}");
    let calendar = Calendar::with_own("UTC", "company", Some(&own)).unwrap();
    let at = |hour: i64| HourStart::from_unix_s(1_767_571_200).unwrap().plus_hours(hour);
    let is_holiday = |hour: i64| calendar.at(at(hour)).departure_from_week() == 1;
    let shown = if known { calendar.clone() } else { Calendar::parse("UTC", Calendar::WEEKDAYS).unwrap() };
    let mut builder = PanelBuilder::new(ClusterName::parse("earth").unwrap(), shown, at(0), at(1_344));
    let pool = PoolId::parse("earth:V100").unwrap();
    for place in 0..6_u32 {
        let id = SeriesId { pool: pool.clone(), organization: Organization::parse(&format!("org-{place}")).unwrap() };
        for hour in 0..1_344_u32 {
            let size = f64::from(10 + 6 * place) * if is_holiday(i64::from(hour)) { 0.1 } else { 1.0 };
            let noise = f64::from((hour * 7 + place * 3) % 5) / 2.0;
            builder.push(&id, at(i64::from(hour)), size + noise).unwrap();
        }
    }
    builder.finish().unwrap()
}

/// Mean absolute error of the median over the first hours of the last holiday, seen from before it, and over the hours after it,
/// seen from within, in GPUs.
fn around_the_last_holiday(known: bool, horizon: u64) -> [f64; 2] {
    let panel = with_holidays(known);
    let horizon = HorizonHours::new(horizon).unwrap();
    let spec = ModelSpec { kind: ModelKind::OrgLinear, horizon, lookback_hours: 168, seed: 1 };
    let until = panel.hour_at(1_200);
    let split = split(&panel, until, &spec).unwrap();
    let model = crate::fit(&Fit { panel: &panel, split, spec, settings: Settings::DEFAULT }, &mut |_| ()).unwrap();
    // 2026-02-25 begins at hour 1,224. The last hours before it and within it, so that each horizon reaches past the change.
    [1_222, 1_246].map(|first| {
        let issues = datasets::HourRange { from: panel.hour_at(first), to: panel.hour_at(first + 3) };
        let rolled = roll(&model, &panel, issues).unwrap();
        score(&collect(&panel, issues, &rolled, spec.horizon).0).unwrap().mae_median_gpus
    })
}

#[test]
fn a_holiday_that_the_calendar_knows_is_foreseen_and_so_is_its_end() {
    for horizon in [4, 24] {
        let ([before, within], [unknown_before, unknown_within]) =
            (around_the_last_holiday(true, horizon), around_the_last_holiday(false, horizon));
        assert!(before < 0.5 * unknown_before, "{horizon} h, before it: {before} against {unknown_before}");
        assert!(within < 0.7 * unknown_within, "{horizon} h, within it: {within} against {unknown_within}");
    }
}

#[test]
fn a_lookback_of_less_than_two_days_is_refused_with_both_lengths() {
    let fault = validated(ModelKind::OrgLinear, 24).unwrap_err().to_string();
    assert_eq!(fault, "a lookback of 24 h is too short for this model, which needs 48 h");
}
