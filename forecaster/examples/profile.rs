#![allow(missing_docs)]
use datasets::{Calendar, HourRange, Panel, PanelBuilder};
use forecaster::blend::{Blend, Parts, Settings, StepGroups};
use forecaster::calibration::Calibrator;
use forecaster::network::{Lesson, Member, Network};
use forecaster::trees::{Forest, Forests, Node};
use forecaster::{Model, ModelKind, ModelSpec, Trained, forecast};
use std::hint::black_box;
use vocab::{ClusterName, GpuModel, HorizonHours, HourStart, Organization, PoolId, SeriesId};
const POOLS: usize = 100;
const ORGANIZATIONS: usize = 100;
const LOOKBACK_HOURS: usize = 672;
const TREES_PER_FOREST: usize = 310;
fn cpu_ms() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    text.split(' ').next().unwrap().parse::<f64>().unwrap() / 1e6
}
fn pool(number: usize) -> PoolId {
    let cluster = ClusterName::parse("bench").expect("a name");
    PoolId { cluster, gpu_model: GpuModel::parse(&format!("model-{number:03}")).expect("a name") }
}

fn series() -> Vec<SeriesId> {
    let id = |number: usize| SeriesId {
        pool: pool(number / ORGANIZATIONS),
        organization: Organization::parse(&format!("org-{:03}", number % ORGANIZATIONS)).expect("a name"),
    };
    (0..POOLS * ORGANIZATIONS).map(id).collect()
}

fn panel(series: &[SeriesId]) -> Panel {
    let calendar = Calendar::parse("Asia/Shanghai", Calendar::WEEKDAYS).expect("a calendar");
    let start = HourStart::from_unix_s(1_709_222_400).expect("on the grid");
    let end = start.plus_hours(LOOKBACK_HOURS as i64);
    let mut builder = PanelBuilder::new(ClusterName::parse("bench").expect("a name"), calendar, start, end);
    for (number, id) in series.iter().enumerate() {
        for hour in 0..LOOKBACK_HOURS {
            let demand = ((number * 31 + hour * 7) % 40) as f64;
            builder.push(id, start.plus_hours(hour as i64), demand).expect("a row of the panel");
        }
    }
    builder.finish().expect("there are rows")
}

fn trained(series: &[SeriesId], panel: &Panel, kind: ModelKind, hours: u64) -> Trained {
    let horizon = HorizonHours::new(hours).expect("in range");
    let model = blend(series, horizon);
    let spec = ModelSpec { kind, horizon, lookback_hours: LOOKBACK_HOURS, seed: 1 };
    let data = HourRange { from: panel.start(), to: panel.end() };
    let calibrations = Vec::new();
    Trained { spec, data, model, calibrations, calibrator: Calibrator::new(horizon, true) }
}

/// A blend of the size that 140 days of six series make, with synthetic splits into fifteen leaves and synthetic weights: a
/// renewal costs the same with any.
fn blend(series: &[SeriesId], horizon: HorizonHours) -> Model {
    let step_groups = StepGroups::of(horizon, Settings::DEFAULT.steps_alone, Settings::DEFAULT.stride_most);
    let columns = Blend::columns_of(LOOKBACK_HOURS, horizon, &step_groups);
    let features = columns.features;
    let node = |place: usize, tree: usize| {
        if place >= 14 {
            return Node::Leaf(0.001 * (place + tree) as f32);
        }
        let feature = ((place * 31 + tree * 17) % features) as u16;
        Node::Split { feature, threshold: ((place * 7 + tree) % 13) as f32 * 0.1 - 0.6, left: 2 * place as u32 + 1 }
    };
    let tree = |tree: usize| (0..29).map(|place| node(place, tree)).collect();
    let forest = || Forest { base: 0.0, trees: (0..TREES_PER_FOREST).map(tree).collect() };
    let outputs = [0.5; 5];
    let parts = step_groups.parts(horizon);
    let forests: Vec<_> = (0..parts).map(|_| outputs.iter().map(|_| forest()).collect()).collect();
    let sizes = Blend::sizes_of(LOOKBACK_HOURS, horizon, &step_groups, series.len());
    let values = |[rows, columns]: [usize; 2]| -> Vec<f32> {
        (0..rows * columns).map(|k| ((k * 37 % 101) as f32 / 101.0 - 0.5) * 0.05).collect()
    };
    let parameters = || sizes.shapes().map(|(_, shape)| values(shape)).collect();
    let member = || Member::new(sizes, parameters()).expect("the shapes are those of a network");
    let members: Vec<_> = (0..Lesson::DEFAULT.members).map(|_| member()).collect();
    let network =
        Network { standard: vec![[0.0, 1.0]; sizes.amounts()], epochs: vec![10; members.len()], members, sizes };
    let is_grouped = !step_groups.is_empty();
    let forests = if is_grouped {
        Forests::of_groups(forests, vec![1.0; parts], columns)
    } else {
        Forests::new(forests, 1.0, features)
    };
    let parts = Parts {
        horizon,
        lookback_hours: LOOKBACK_HOURS,
        step_groups,
        without: None,
        series: series.iter().map(|id| (id.clone(), 12.0)).collect(),
        forests: Some(forests),
        network: Some(network),
        network_share: outputs,
    };
    Model::Blend(Box::new(Blend::from_parts(parts)))
}


fn main() {
    let hours: u64 = std::env::args().nth(1).unwrap().parse().unwrap();
    let rounds: usize = std::env::args().nth(2).unwrap().parse().unwrap();
    let series = series();
    let panel = panel(&series);
    let trained = trained(&series, &panel, ModelKind::OrgLinear, hours);
    let one = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    one.install(|| {
        for _ in 0..rounds {
            let start = cpu_ms();
            let sum: f64 = panel.series().iter().map(|series| series.demand_gpus().iter().sum::<f64>()).sum();
            black_box(sum);
            let read = cpu_ms() - start;
            let start = cpu_ms();
            let raw = black_box(forecast(&trained, &panel, panel.end()).unwrap());
            let made = cpu_ms() - start;
            let start = cpu_ms();
            black_box(trained.calibrator.apply(&raw));
            println!("{hours} h: read {read:.1} forecast {made:.1} apply {:.1} CPU ms", cpu_ms() - start);
        }
    });
}
