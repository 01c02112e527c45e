//! A plan is the same on any number of cores.

use super::{ClusterInputs, PoolInputs, Run, plan};
use crate::settings::ServedSettings;
use datasets::{Calendar, HourRange, Panel, PanelBuilder, TimeSplit};
use forecaster::blend::Settings;
use forecaster::calibration::Calibrator;
use forecaster::{Fit, ModelKind, ModelSpec, Trained, fit};
use placement::Known;
use placement::eta::EtaState;
use rayon::ThreadPoolBuilder;
use std::collections::BTreeMap;
use std::sync::Arc;
use store::RunId;
use vocab::{ClusterName, GpuModel, HorizonHours, HourStart, MilliGpus, Organization, PoolId, SeriesId};

const POOLS: usize = 9;
const HOURS: i64 = 240;

fn pool(number: usize) -> PoolId {
    let (cluster, gpu_model) = (ClusterName::parse("earth").unwrap(), GpuModel::parse(&format!("m{number}")).unwrap());
    PoolId { cluster, gpu_model }
}

/// Ten days of three organizations in each pool; each pool has demand of its own.
fn panel() -> Panel {
    let (start, calendar) = (HourStart::from_unix_s(0).unwrap(), Calendar::parse("UTC", Calendar::WEEKDAYS).unwrap());
    let mut builder = PanelBuilder::new(pool(0).cluster, calendar, start, start.plus_hours(HOURS));
    for (number, name) in (0..POOLS).flat_map(|number| ["a", "b", "c"].map(|name| (number, name))) {
        let id = SeriesId { pool: pool(number), organization: Organization::parse(name).unwrap() };
        for hour in 0..HOURS {
            let gpus = f64::from((hour as u32 * 7 + number as u32 * 13) % 24 + 4 * number as u32);
            builder.push(&id, start.plus_hours(hour), gpus).unwrap();
        }
    }
    builder.finish().unwrap()
}

fn inputs() -> ClusterInputs {
    let (panel, horizon) = (panel(), HorizonHours::new(4).unwrap());
    let spec = ModelSpec { kind: ModelKind::Seasonal24h, horizon, lookback_hours: 24, seed: 1 };
    let split = TimeSplit::new(panel.start(), panel.end(), spec.lookback_hours, horizon).unwrap();
    let model = fit(&Fit { panel: &panel, split, spec, settings: Settings::DEFAULT }, &mut |_| ()).unwrap();
    let data = HourRange { from: panel.start(), to: panel.end() };
    let (calibrator, jobs) = (Calibrator::new(horizon, true), BTreeMap::new());
    let trained = Trained { spec, data, model, calibrations: Vec::new(), calibrator, jobs };
    let (now, settings) = (panel.end().instant(), ServedSettings::default());
    let of_pool = |number: usize| PoolInputs {
        id: pool(number),
        known: Known { table_capacity: Some(MilliGpus::from_gpus(500)), ..Known::default() },
        settings: settings.clone(),
        eta: EtaState { eta: settings.pool.eta_start, moved_at: now },
        unspent: Vec::new(),
        newest_outcome: None,
        is_placed_here: false,
        hp_demand: None,
        hp_jobs: None,
        learned: None,
        overrides: Vec::new(),
    };
    let run = Run { id: RunId::new(1), trained: Arc::new(trained) };
    let pools = (0..POOLS).map(of_pool).collect();
    ClusterInputs { panel: Arc::new(panel), run, calibrator: None, pools, now, virtual_time: false, remembered: None }
}

/// Each pool with its bounds, and the bodies of its answers.
fn planned(inputs: &ClusterInputs) -> Vec<(PoolId, String, Vec<String>)> {
    let one = |pool: super::PoolPlan| {
        let quota = pool.outcome.unwrap_or_else(|why| panic!("{}: {why}", pool.id));
        let bodies = pool.answers.iter().map(|answer| answer.at(inputs.now).body.clone());
        let bodies = bodies.map(|body| String::from_utf8(body.to_vec()).unwrap()).collect();
        (pool.id, format!("{:?} {:?}", quota.corrected.issued(), quota.bounds), bodies)
    };
    plan(inputs).pools.into_iter().map(one).collect()
}

#[test]
fn a_plan_is_the_same_on_any_number_of_cores_in_the_order_of_its_pools() {
    let inputs = inputs();
    let on = |threads| ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(|| planned(&inputs));
    let alone = on(1);
    for (number, (id, _, bodies)) in alone.iter().enumerate() {
        assert_eq!((id, bodies.len()), (&pool(number), ServedSettings::default().pool.offered_hours.len()));
        assert!(bodies[0].contains(&format!("\"gpu_model\":\"m{number}\"")), "{}", bodies[0]);
    }
    assert_ne!(alone[0].1, alone[1].1, "pools differ, or their order would not show");
    assert_eq!(on(2), alone);
    assert_eq!(on(5), alone);
}

#[test]
fn a_pool_without_recent_usage_names_the_call_that_takes_its_hours() {
    let mut inputs = inputs();
    inputs.now = inputs.now.plus_s(3 * 3_600);
    inputs.pools[1].is_placed_here = true;
    let pools = plan(&inputs).pools;
    let why = |pool: usize| pools[pool].outcome.as_ref().map(drop).unwrap_err().to_string();
    assert!(why(0).contains("more than two hours ago: report the hours since, zeros included"), "{}", why(0));
    // To report hours of a pool that Headroom places is refused.
    assert!(why(1).contains("POST /v1/usage/corrections") && !why(1).contains("report the"), "{}", why(1));
}
