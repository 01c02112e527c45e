//! Contents of a checkpoint, and its refusals.

use super::*;
use crate::blend::Settings;
use crate::calibration::Switch;
use crate::fit::Fit;
use crate::jobs::ListedJob;
use crate::model::ModelKind;
use crate::predict::forecast;
use crate::trained::{split, train};
use datasets::{Calendar, Panel, PanelBuilder};
use vocab::{ClusterName, GuaranteeRate, HorizonHours, HourStart, Organization, PoolId, UnixSeconds};

/// Ten days of three organizations with a daily wave each.
fn panel() -> Panel {
    panel_by(Calendar::WEEKDAYS)
}

fn panel_by(calendar: &str) -> Panel {
    let calendar = Calendar::parse("Asia/Shanghai", calendar).unwrap();
    let start = HourStart::from_unix_s(1_588_262_400).unwrap();
    let mut builder = PanelBuilder::new(ClusterName::parse("earth").unwrap(), calendar, start, start.plus_hours(240));
    let pool = PoolId::parse("earth:V100").unwrap();
    for (place, name) in ["a", "b", "c"].into_iter().enumerate() {
        let id = SeriesId { pool: pool.clone(), organization: Organization::parse(name).unwrap() };
        for hour in 0..240 {
            let wave = (f64::from(hour) / 24.0 * std::f64::consts::TAU + place as f64).sin();
            builder.push(&id, start.plus_hours(i64::from(hour)), (20.0 + 8.0 * wave).round()).unwrap();
        }
    }
    builder.finish().unwrap()
}

/// A few epochs and trees: a checkpoint is the same work whether its model has learned much or little.
fn settings() -> Settings {
    let mut settings = Settings::DEFAULT;
    (settings.lesson.epochs, settings.lesson.rows_per_epoch) = (3, 1_000);
    settings.growth.rounds = 20;
    settings
}

fn trained(kind: ModelKind) -> Trained {
    trained_on(&panel(), kind, 4)
}

fn trained_on(panel: &Panel, kind: ModelKind, horizon: u64) -> Trained {
    // DeepAR looks at the week before.
    let lookback_hours = if kind == ModelKind::DeepAr { 168 } else { 48 };
    let spec = ModelSpec { kind, horizon: HorizonHours::new(horizon).unwrap(), lookback_hours, seed: 3 };
    let split = split(panel, panel.end(), &spec).unwrap();
    train(&Fit { panel, split, spec, settings: settings() }, GuaranteeRate::GFS, Switch::Auto, &mut |_| ()).unwrap().0
}

fn bytes() -> Vec<u8> {
    save(&trained(ModelKind::LastValue), "0.0.0").unwrap()
}

#[test]
fn the_jobs_of_a_list_are_kept_with_the_model_and_their_damage_is_noticed() {
    let list = |number: i64| ListedJob {
        organization: Organization::parse("vision").unwrap(),
        gpus_milli: 8_000,
        submitted: UnixSeconds::new(1_700_000_000 + number * 600),
        ran_s: 900,
    };
    let list: Vec<ListedJob> = (0..500).map(list).collect();
    let past = PastJobs::of(&list, UnixSeconds::new(1_700_200_000)).unwrap();
    let mut model = trained(ModelKind::LastValue);
    assert!(load(&save(&model, "0.0.0").unwrap()).unwrap().jobs.is_empty());
    model.jobs.insert(PoolId::parse("earth:V100").unwrap(), past);
    let bytes = save(&model, "0.0.0").unwrap();
    assert_eq!(load(&bytes).unwrap().jobs, model.jobs);
    let place = bytes.windows(4).position(|four| four == b"HRJL").unwrap();
    let mut damaged = bytes;
    damaged[place + 30] ^= 1;
    assert!(matches!(load(&damaged), Err(CheckpointError::Changed)));
}

#[test]
fn every_kind_of_model_forecasts_after_loading_as_it_did_before() {
    let panel = panel();
    let kinds = [
        ModelKind::OrgLinearPaper,
        ModelKind::OrgLinearReleased,
        ModelKind::OrgLinear,
        ModelKind::Trees,
        ModelKind::Network,
        ModelKind::DLinear,
        ModelKind::NLinear,
        ModelKind::DeepAr,
        ModelKind::Transformer,
        ModelKind::AutoEts,
        ModelKind::LastValue,
        ModelKind::Seasonal24h,
    ];
    for kind in kinds {
        let before = trained(kind);
        let after = load(&save(&before, "0.0.0").unwrap()).unwrap();
        let at_end = |model: &Trained| forecast(model, &panel, panel.end()).unwrap();
        assert_eq!(at_end(&before), at_end(&after), "{kind}");
        assert_eq!(before.calibrator.to_bytes(), after.calibrator.to_bytes());
        assert!(after.calibrator.newest_issue().is_some(), "it has learned from the validation part");
        assert_eq!((before.spec, before.data, before.calibrations), (after.spec, after.data, after.calibrations));
    }
}

#[test]
fn a_model_that_knows_holidays_forecasts_after_loading_as_it_did_before() {
    let (panel, weekdays) = (panel_by("CN"), panel());
    for horizon in [4, 12] {
        let before = trained_on(&panel, ModelKind::OrgLinear, horizon);
        let bytes = save(&before, "0.0.0").unwrap();
        let (after, without) = (load(&bytes).unwrap(), trained_on(&weekdays, ModelKind::OrgLinear, horizon));
        let at_end = |model: &Trained| forecast(model, &panel, panel.end()).unwrap();
        assert_eq!(at_end(&before), at_end(&after), "{horizon} h");
        assert_ne!(at_end(&before), at_end(&without), "{horizon} h: Labour Day and its make-up day taught something");
        let has = |bytes: &[u8]| bytes.windows(8).any(|eight| eight == b"days_off");
        assert!(has(&bytes) && !has(&save(&without, "0.0.0").unwrap()), "{horizon} h");
    }
}

#[test]
fn the_same_seed_gives_the_same_bytes_and_another_seed_others() {
    let save = |trained: &Trained| save(trained, "0.0.0").unwrap();
    for kind in [ModelKind::OrgLinearPaper, ModelKind::OrgLinear, ModelKind::DLinear, ModelKind::Transformer] {
        let one = trained(kind);
        assert_eq!(save(&one), save(&trained(kind)), "{kind}");
        let panel = panel();
        let spec = ModelSpec { seed: 4, ..one.spec };
        let fit = Fit { panel: &panel, split: split(&panel, panel.end(), &spec).unwrap(), spec, settings: settings() };
        let other = train(&fit, GuaranteeRate::GFS, Switch::Auto, &mut |_| ()).unwrap().0;
        assert_ne!(save(&one), save(&other), "{kind}");
    }
}

#[test]
fn a_flipped_bit_anywhere_is_noticed() {
    let whole = bytes();
    assert!(load(&whole).is_ok());
    for place in (0..whole.len()).step_by(7) {
        let mut flipped = whole.clone();
        flipped[place] ^= 0x10;
        // Spaces that pad the header may become other white space; the numbers may not change.
        let same = load(&flipped).is_ok_and(|model| save(&model, "0.0.0").unwrap() == whole);
        assert!(same || load(&flipped).is_err(), "byte {place}");
    }
}

#[test]
fn a_torn_file_and_one_of_another_format_say_what_they_are() {
    let whole = bytes();
    assert!(matches!(load(&whole[..whole.len() / 2]), Err(CheckpointError::NotSafetensors(_))));
    assert!(matches!(load(b""), Err(CheckpointError::NotSafetensors(_))));
    let coloured = br#"{"a\u001b":{"dtype":"F\u001b[31m","shape":[0],"data_offsets":[0,0]}}"#;
    let message = load(&[&(coloured.len() as u64).to_le_bytes()[..], coloured].concat()).unwrap_err().to_string();
    assert!(message.contains("unknown variant") && !message.contains(char::is_control), "{message:?}");
    let format = br#"\"format\":"#;
    let place = whole.windows(format.len()).position(|window| window == format).unwrap() + format.len();
    let mut later = whole.clone();
    later[place] = b'9';
    let fault = load(&later).unwrap_err().to_string();
    assert!(fault.starts_with("the checkpoint has format 9, and this program reads format 2"), "{fault}");
}
