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
    let panel = office();
    let spec = ModelSpec { kind, horizon: HorizonHours::new(4).unwrap(), lookback_hours, seed: 1 };
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

#[test]
fn a_lookback_of_less_than_two_days_is_refused_with_both_lengths() {
    let fault = validated(ModelKind::OrgLinear, 24).unwrap_err().to_string();
    assert_eq!(fault, "a lookback of 24 h is too short for this model, which needs 48 h");
}
