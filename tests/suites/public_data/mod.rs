//! Real traces: what the readers make of them, and scores that others measured on the same hours.

mod calibration;
mod elastic;
mod openb;
mod philly;
mod statement;

use datasets::read::{self, ALIBABA_EPOCH};
use datasets::{Calendar, Panel, PanelBuilder, ReadOptions, ReadReport};
use forecaster::calibration::Switch;
use forecaster::{Fit, ModelKind, ModelSpec, roll, scores, train, trained};
use std::collections::BTreeSet;
use std::path::Path;
use tests::public_data;
use vocab::{ClusterName, GpuModel, GuaranteeRate, HorizonHours, HourStart, MilliGpus};

fn options(cluster: &str) -> ReadOptions {
    ReadOptions {
        cluster: ClusterName::parse(cluster).unwrap(),
        gpu_model: GpuModel::parse("V100").unwrap(),
        calendar: Calendar::parse("Asia/Shanghai", Calendar::WEEKDAYS).unwrap(),
        skip_bad_rows: false,
        zones: datasets::Zones::new(),
    }
}

/// As `datasets ingest` takes it: without the hours in which the recorder wrote zeros.
fn helios(folder: &Path) -> ReadReport {
    let mut report = read::helios(folder, &options("earth")).unwrap();
    report.leave_out_zero_hours();
    report
}

fn alibaba(file: &Path) -> ReadReport {
    let epoch = HourStart::from_unix_s(command_line::instant(ALIBABA_EPOCH).unwrap().get()).unwrap();
    read::alibaba_hourly(file, epoch, &options("alibaba")).unwrap()
}

fn panel(cluster: &str, report: &ReadReport) -> Panel {
    let options = options(cluster);
    PanelBuilder::from_rows(options.cluster, options.calendar, &report.rows).unwrap()
}

#[test]
fn helios_has_sixteen_tenants_a_peak_of_its_own_and_a_capacity_of_856() {
    let name = "helios_has_sixteen_tenants_a_peak_of_its_own_and_a_capacity_of_856";
    let Some(folder) = public_data(name, "helios-earth") else { return };
    let report = helios(&folder);
    let panel = panel("earth", &report);
    assert_eq!((panel.series().len(), panel.hours(), panel.pool_peaks().len()), (16, 576, 1));
    assert_eq!(report.capacity.len(), 1, "it never changes");
    assert_eq!(report.capacity[0].capacity, MilliGpus::from_gpus(856));
    // The recorder failed on 10 May, and for an hour on the 12th.
    let gaps: Vec<_> = (0..576).filter(|hour| panel.recording_gap()[*hour]).collect();
    assert_eq!((gaps.len(), gaps[0], gaps[24]), (25, 216, 279));
    let peak = panel.pool_peaks()[0].demand_gpus().iter().copied().fold(0.0, f64::max);
    assert_eq!(peak, 933.0, "pandas: the maximum over minutes of the sum");
}

#[test]
fn the_alibaba_file_has_six_models_over_163_days() {
    let name = "the_alibaba_file_has_six_models_over_163_days";
    let Some(file) = public_data(name, "alibaba-spot-gpu/hourly_concurrency_by_model.csv") else { return };
    let panel = panel("alibaba", &alibaba(&file));
    assert_eq!((panel.series().len(), panel.hours()), (6, 163 * 24));
    assert_eq!(panel.series()[0].demand_gpus()[0], 2_249.14);
}

/// MAE of the median, RMSE of the mean, pinball at 0.9 and 0.95, CRPS, MAQE at 0.9 of the last value over a test window.
fn last_value(panel: &Panel, lookback_hours: usize, from: &str, to: &str) -> [f64; 6] {
    let hour = |text: &str| command_line::hour(text).unwrap();
    let horizon = HorizonHours::new(4).unwrap();
    let spec = ModelSpec { kind: ModelKind::LastValue, horizon, lookback_hours, seed: 1 };
    let split = trained::split(panel, hour(from), &spec).unwrap();
    let (model, _) = train(
        &Fit { panel, split, spec, settings: forecaster::blend::Settings::DEFAULT },
        GuaranteeRate::GFS,
        Switch::Auto,
        &mut |_| (),
    )
    .unwrap();
    let issues = datasets::split::test_issues(hour(from), hour(to), horizon).unwrap();
    let rolled = roll(&model, panel, issues).unwrap();
    let (rows, unmeasured) = scores::collect(panel, issues, &rolled, horizon);
    assert_eq!(unmeasured, 0);
    let series: BTreeSet<_> = rows.iter().map(|row| row.series).collect();
    assert_eq!(series.len(), panel.series().len());
    let scores = scores::score(&rows).unwrap();
    let [pinball_90, pinball_95] = scores.pinball_gpus;
    [scores.mae_median_gpus, scores.rmse_mean_gpus, pinball_90, pinball_95, scores.crps_gpus, scores.maqe[0]]
}

fn assert_near(ours: [f64; 6], published: [f64; 6]) {
    for (ours, published) in ours.iter().zip(published) {
        // Published with three or four digits.
        assert!((ours / published - 1.0).abs() < 0.03, "{ours} against {published}: {published:?}");
    }
}

#[test]
fn the_last_value_scores_on_helios_as_others_measured_it() {
    let name = "the_last_value_scores_on_helios_as_others_measured_it";
    let Some(folder) = public_data(name, "helios-earth") else { return };
    let panel = panel("earth", &helios(&folder));
    let ours = last_value(&panel, 168, "2020-05-18T00:00:00+08:00", "2020-05-24T23:00:00+08:00");
    assert_near(ours, [4.48, 10.4, 1.544, 1.043, 4.31, 0.010]);
}

#[test]
fn the_last_value_scores_on_alibaba_as_others_measured_it() {
    let name = "the_last_value_scores_on_alibaba_as_others_measured_it";
    let Some(file) = public_data(name, "alibaba-spot-gpu/hourly_concurrency_by_model.csv") else { return };
    let panel = panel("alibaba", &alibaba(&file));
    let ours = last_value(&panel, 672, "2024-07-21T00:00:00+08:00", "2024-08-10T23:00:00+08:00");
    assert_near(ours, [127.3, 290.0, 39.6, 26.6, 108.5, 0.034]);
}
