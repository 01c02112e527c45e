//! Bounds and corrected quantiles on real demand, on windows that validation looks at.

use super::{alibaba, helios, panel};
use datasets::Panel;
use forecaster::bound::{Aggregation, bounds};
use forecaster::calibration::{Switch, replay};
use forecaster::scores::{self, actual_peak_gpus};
use forecaster::{Fit, ModelKind, ModelSpec, roll, train, trained};
use std::collections::BTreeMap;
use tests::public_data;
use vocab::{GuaranteeRate, HorizonHours, PoolId};

/// The result of a window: pinball at 0.9 and MAQE of organizations, and of each pool bounds broken and issue times.
struct Played {
    raw: (f64, f64),
    corrected: (f64, f64),
    pools: BTreeMap<PoolId, (usize, usize)>,
}

/// Bounds and peaks count up to the capacity, where it is known.
fn play(panel: &Panel, kind: ModelKind, capacity_gpus: f64, [from, to]: [&str; 2]) -> Played {
    let hour = |text: &str| command_line::hour(text).unwrap();
    let (horizon, rate) = (HorizonHours::new(4).unwrap(), GuaranteeRate::GFS);
    let spec = ModelSpec { kind, horizon, lookback_hours: 168, seed: 1 };
    let split = trained::split(panel, hour(from), &spec).unwrap();
    let (model, _) = train(
        &Fit { panel, split, spec, settings: forecaster::blend::Settings::DEFAULT },
        rate,
        Switch::On,
        &mut |_| (),
    )
    .unwrap();
    let issues = datasets::split::test_issues(hour(from), hour(to), horizon).unwrap();
    let raw = roll(&model, panel, issues).unwrap();
    let (issued, _) = replay(model.calibrator.clone(), panel, issues, &raw, rate);
    let mut pools: BTreeMap<PoolId, (usize, usize)> = BTreeMap::new();
    for (issue, issued) in issues.iter().zip(&issued) {
        for (pool, conformal) in &issued.conformal {
            let Some(peak) = actual_peak_gpus(panel, pool, issue, horizon) else { continue };
            let members: Vec<_> = issued.forecasts.iter().filter(|one| one.series().pool == *pool).collect();
            let calibration = model.calibration(pool);
            let bound =
                bounds(&members, Aggregation::Conformal, calibration, Some(conformal), rate, &[horizon]).unwrap();
            let (broken, count) = pools.entry(pool.clone()).or_default();
            *broken += usize::from(bound[0].bound.as_gpus().min(capacity_gpus) < peak.min(capacity_gpus));
            *count += 1;
        }
    }
    let scored = |forecasts: &[Vec<_>]| {
        let scores = scores::score(&scores::collect(panel, issues, forecasts, horizon).0).unwrap();
        (scores.pinball_gpus[0], scores.maqe[0])
    };
    let forecasts: Vec<_> = issued.into_iter().map(|one| one.forecasts).collect();
    Played { raw: scored(&raw), corrected: scored(&forecasts), pools }
}

#[test]
fn on_helios_the_bound_keeps_its_promise_and_corrected_quantiles_are_nearer_to_their_level() {
    let name = "on_helios_the_bound_keeps_its_promise_and_corrected_quantiles_are_nearer_to_their_level";
    let Some(folder) = public_data(name, "helios-earth") else { return };
    let panel = panel("earth", &helios(&folder));
    let played = play(&panel, ModelKind::DEFAULT, 856.0, ["2020-05-14T00:00:00+08:00", "2020-05-17T23:00:00+08:00"]);
    let (broken, count) = played.pools[&PoolId::parse("earth:V100").unwrap()];
    assert_eq!(count, 93);
    assert!((broken as f64) < 0.12 * count as f64, "{broken} of {count} bounds broken");
    let ((raw_loss, raw_maqe), (loss, maqe)) = (played.raw, played.corrected);
    assert!(loss < raw_loss && maqe < 0.5 * raw_maqe, "pinball {raw_loss} → {loss}, MAQE {raw_maqe} → {maqe}");
}

#[test]
fn on_alibaba_the_bounds_keep_their_promise_in_every_pool() {
    let name = "on_alibaba_the_bounds_keep_their_promise_in_every_pool";
    let Some(file) = public_data(name, "alibaba-spot-gpu/hourly_concurrency_by_model.csv") else { return };
    let panel = panel("alibaba", &alibaba(&file));
    let played =
        play(&panel, ModelKind::LastValue, f64::INFINITY, ["2024-06-30T00:00:00+08:00", "2024-07-20T23:00:00+08:00"]);
    assert_eq!(played.pools.len(), 6);
    for (pool, (broken, count)) in &played.pools {
        assert_eq!(*count, 501);
        assert!((*broken as f64) < 0.15 * *count as f64, "{pool}: {broken} of {count} bounds broken");
    }
    let (broken, count) = played.pools.values().fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    let under = f64::from(broken as u32) / f64::from(count as u32);
    assert!((0.04..0.12).contains(&under), "{under}");
    assert!(played.corrected.1 < played.raw.1, "MAQE {} → {}", played.raw.1, played.corrected.1);
}
