//! A renewal of the quotas of 10,000 series, lookback 672 h, on one core: from windows in memory to published answers,
//! without SQL (DESIGN §6: at most 250 ms), with the default model of 4 h and of 72 h, and with the OrgLinear of the paper.
//! Everything that serves is on: a model that knows holidays, forecasts corrected by a week of residuals, each pool's bound mixed of its experts, and the live
//! bound after a week of renewals. The first renewal of an hour of usage makes forecasts, the others find them made: both are
//! timed. Beside them, in the same run, two bounds: reading every number of the windows once, and nothing but the two products of
//! that OrgLinear. What the ledger of forecasts does once an hour, after the answers are published, is timed beside it, without
//! SQL, too.

use candle_core::{Device, Tensor};
use cycle::{ForecastBound, Inputs, Learned, decide};
use datasets::{Calendar, HourRange, Panel, PanelBuilder};
use forecaster::blend::{Blend, Parts, Settings, StepGroups};
use forecaster::bound::{Aggregation, PoolCalibration};
use forecaster::calibration::Calibrator;
use forecaster::drift::{Issued, ScoredIssue, WINDOW_HOURS, Window, score};
use forecaster::network::{Lesson, Member, Network};
use forecaster::orglinear::{Config, OrgLinear, Scale, Shape, Weights};
use forecaster::trees::{Forest, Forests, Node};
use forecaster::{Model, ModelKind, ModelSpec, Trained, forecast};
use placement::Known;
use placement::eta::EtaState;
use quota_service::plan::{ClusterInputs, PoolInputs, Run, plan};
use quota_service::published::{Published, PublishedPool};
use quota_service::settings::ServedSettings;
use std::collections::{BTreeMap, BTreeSet};
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};
use store::RunId;
use vocab::{ClusterName, DemandForecast, ForecastOrigin, GpuModel, HorizonHours, HourStart, MilliGpus, Organization};
use vocab::{PoolId, SeriesId, StepForecast, UnixSeconds};

const POOLS: usize = 100;
const ORGANIZATIONS: usize = 100;
const LOOKBACK_HOURS: usize = 672;
const ROUNDS: usize = 15;
/// Offered hours of a cluster whose promises last for days.
const OFFERED_OF_DAYS: [u64; 8] = [1, 2, 4, 8, 12, 24, 48, 72];
/// As many as 84 series over 184 days grow on average, two members together; six over 163 days grow a third of that.
const TREES_PER_FOREST: usize = 310;
const BUDGET_MS: f64 = 250.0;
/// Horizons that are timed.
const HOURS: [u64; 2] = [4, 72];

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
    let model = if kind == ModelKind::OrgLinear { blend(series, horizon) } else { orglinear(series, horizon) };
    let spec = ModelSpec { kind, horizon, lookback_hours: LOOKBACK_HOURS, seed: 1 };
    let data = HourRange { from: panel.start(), to: panel.end() };
    let calibrations = (0..POOLS).map(|number| calibration(pool(number), series)).collect();
    Trained { spec, data, model, calibrations, calibrator: Calibrator::new(horizon, true), jobs: BTreeMap::new() }
}

/// A blend of the size that 140 days of six series make, with synthetic splits into fifteen leaves and synthetic weights: a
/// renewal costs the same with any.
fn blend(series: &[SeriesId], horizon: HorizonHours) -> Model {
    let step_groups = StepGroups::of(horizon, Settings::DEFAULT.steps_alone, Settings::DEFAULT.stride_most);
    let (columns, sizes) = Blend::shape_of((LOOKBACK_HOURS, horizon), &step_groups, true, series.len());
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
        days_off: true,
        series: series.iter().map(|id| (id.clone(), 12.0)).collect(),
        forests: Some(forests),
        network: Some(network),
        network_share: outputs,
        returned: BTreeSet::new(),
    };
    Model::Blend(Box::new(Blend::from_parts(parts)))
}

/// An OrgLinear with synthetic weights: a renewal costs the same with any.
fn orglinear(series: &[SeriesId], horizon: HorizonHours) -> Model {
    let config = Config::PAPER;
    let shape = Shape::new(&config, horizon, LOOKBACK_HOURS, series);
    let tensor = |dimensions: Vec<usize>| {
        let count: usize = dimensions.iter().product();
        let values: Vec<f32> = (0..count).map(|k| ((k * 37 % 101) as f32 / 101.0 - 0.5) * 0.05).collect();
        Tensor::from_vec(values, dimensions, &Device::Cpu).expect("a tensor")
    };
    let weights: BTreeMap<_, _> =
        shape.parameters().into_iter().map(|(name, dimensions, _)| (name.to_owned(), tensor(dimensions))).collect();
    let scales = vec![Scale { centre_gpus: 20.0, deviation_gpus: 12.0 }; series.len()];
    let model = OrgLinear::from_parts(config, horizon, LOOKBACK_HOURS, series.to_vec(), scales, Weights::new(weights));
    Model::OrgLinear(Box::new(model.expect("weights fit")))
}

/// A calibrator after a week of forecasts, of a long horizon two days, of a model that says the last value stays.
fn taught(panel: &Panel, horizon: HorizonHours) -> Calibrator {
    let mut calibrator = Calibrator::new(horizon, true);
    let last = panel.end().plus_hours(-i64::from(horizon.get()));
    let issues = if horizon.get() > 4 { 48 } else { Calibrator::WINDOW_HOURS as i64 };
    for issue in (0..issues).rev().map(|back| last.plus_hours(-back)) {
        let before = panel.index_of(issue).expect("an hour of the panel") - 1;
        let forecast = |series: &datasets::Series| {
            let gpus = series.demand_gpus()[before];
            let quantiles_gpus = [gpus, gpus + 15.0, gpus + 20.0];
            let step = StepForecast { mean_gpus: gpus, stddev_gpus: 12.0, quantiles_gpus };
            DemandForecast::new(series.id().clone(), issue, ForecastOrigin::Model, vec![step; horizon.steps()])
        };
        let raw: Result<Vec<_>, _> = panel.series().iter().map(forecast).collect();
        calibrator.observe(panel, issue, &raw.expect("distributions"));
    }
    calibrator
}

/// State of a pool after a week of renewals, one in a quarter of an hour.
fn learned(settings: &ServedSettings, known: &Known, until: UnixSeconds) -> Learned {
    let offered = &settings.pool.offered_hours;
    let mut learned = Learned::new(settings.pool.guarantee_rate, offered);
    let bound = |hours: &HorizonHours| ForecastBound {
        hours: *hours,
        bound: MilliGpus::from_gpus(2_100),
        returns: MilliGpus::ZERO,
    };
    let bounds: Vec<_> = offered.iter().map(bound).collect();
    for quarter in (1..=7 * 96_u32).rev() {
        let now = until.plus_s(-900 * i64::from(quarter));
        decide(Inputs {
            now,
            known,
            settings: &settings.pool,
            forecast: Some(&bounds),
            hp_demand: Some(MilliGpus::from_gpus(1_900 + quarter * 37 % 200)),
            is_placed_here: false,
            hp_jobs: None,
            past_jobs: None,
            last_usage: &[],
            measured_until: now,
            calibrated_hours: Calibrator::WINDOW_HOURS,
            learned: Some(&mut learned),
            overrides: &[],
            eta: EtaState { eta: settings.pool.eta_start, moved_at: now },
            unspent: &[],
            newest_outcome: None,
            eta_is_fixed: false,
        })
        .expect("the capacity is known");
    }
    learned
}

/// `mixture` everywhere, the aggregation that serves by default and costs most.
fn calibration(pool: PoolId, series: &[SeriesId]) -> PoolCalibration {
    let members = series.iter().filter(|id| id.pool == pool);
    let organizations: Vec<_> = members.map(|id| id.organization.clone()).collect();
    let size = organizations.len();
    PoolCalibration {
        pool,
        organizations,
        correlation: (0..size * size).map(|k| if k / size == k % size { 1.0 } else { 0.1 }).collect(),
        mean_correlation: 0.1,
        step_correlation: 0.6,
        scores: Vec::new(),
        chosen: Aggregation::Mixture,
    }
}

fn inputs(kind: ModelKind, hours: u64) -> ClusterInputs {
    let series = series();
    let panel = panel(&series);
    let now = panel.end().instant();
    let run = Run { id: RunId::new(1), trained: Arc::new(trained(&series, &panel, kind, hours)) };
    let mut settings = ServedSettings::default();
    if hours > 4 {
        settings.pool.offered_hours = OFFERED_OF_DAYS.map(|hours| HorizonHours::new(hours).expect("in range")).to_vec();
    }
    let known = Known { table_capacity: Some(MilliGpus::from_gpus(5_000)), ..Known::default() };
    let measured = Known { latest_demand: Some(MilliGpus::from_gpus(2_000)), ..known.clone() };
    let learned = learned(&settings, &measured, now);
    let pool_inputs = |number| PoolInputs {
        id: pool(number),
        known: known.clone(),
        settings: settings.clone(),
        eta: EtaState { eta: settings.pool.eta_start, moved_at: now },
        unspent: Vec::new(),
        newest_outcome: None,
        is_placed_here: false,
        hp_demand: Some(MilliGpus::from_gpus(2_000)),
        hp_jobs: None,
        learned: Some(learned.clone()),
        overrides: Vec::new(),
    };
    let pools = (0..POOLS).map(pool_inputs).collect();
    let calibrator = Some(Arc::new(taught(&panel, HorizonHours::new(hours).expect("in range"))));
    ClusterInputs { panel: Arc::new(panel), run, calibrator, pools, now, virtual_time: false, remembered: None }
}

fn renew(inputs: &ClusterInputs) -> Published {
    let pools = plan(inputs).pools.into_iter().map(|pool| match pool.outcome {
        Ok(quota) => Arc::new(PublishedPool::of(quota, pool.answers, Vec::new())),
        Err(why) => panic!("{}: {why}", pool.id),
    });
    Published::default().with(pools.collect::<Vec<_>>())
}

fn median(mut rounds: Vec<Duration>) -> f64 {
    rounds.sort_unstable();
    rounds[rounds.len() / 2].as_secs_f64() * 1_000.0
}

fn timed(mut work: impl FnMut()) -> f64 {
    let round = |()| {
        let started = Instant::now();
        work();
        started.elapsed()
    };
    median(std::iter::repeat_n((), ROUNDS).map(round).collect())
}

/// Sum of every number that the windows hold.
fn read_once(panel: &Panel) -> f64 {
    panel.series().iter().map(|series| series.demand_gpus().iter().sum::<f64>()).sum()
}

/// An hour of the ledger: the issued forecasts as bytes; read back, scored against the demand, the scores as bytes; and the report
/// over seven days. Each in milliseconds, with the bytes of the first.
fn ledger(inputs: &ClusterInputs) -> ([f64; 3], usize) {
    let (panel, trained) = (&inputs.panel, inputs.run.trained.as_ref());
    let issue = panel.end().plus_hours(-4);
    let cluster = panel.cluster().clone();
    let predicted = forecast(trained, panel, issue).expect("synthetic weights forecast");
    let issued = Issued::of(panel, issue, predicted.clone(), &predicted, Vec::new());
    let bytes = issued.to_bytes(&cluster);
    let write_ms = timed(|| drop(black_box(issued.to_bytes(&cluster))));
    let scored = || score(&Issued::from_bytes(&bytes).expect("as written"), panel);
    let score_ms = timed(|| drop(black_box(scored().to_bytes(&cluster))));
    let mut window = Window::default();
    for hour in 0..WINDOW_HOURS {
        window.add(1, &ScoredIssue { issue: issue.plus_hours(-hour), ..scored() });
    }
    let report_ms = timed(|| drop(black_box(window.report(1))));
    ([write_ms, score_ms, report_ms], bytes.len())
}

fn peak_memory_mib() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().trim_end_matches("kB").trim().parse::<f64>().ok())
        .map_or(f64::NAN, |kib| kib / 1_024.0)
}

/// Times of renewals with the default model, in milliseconds.
#[expect(clippy::struct_field_names, reason = "names carry their unit")]
struct Renewals {
    /// With new usage, on one thread.
    first_ms: f64,
    /// The same on all of them.
    first_on_all_ms: f64,
    /// With the usage of the last one, on one thread.
    next_ms: f64,
}

fn renewals(hours: u64) -> Renewals {
    let mut inputs = inputs(ModelKind::OrgLinear, hours);
    let one = rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("a thread");
    let first_on_all_ms = timed(|| drop(black_box(renew(&inputs))));
    let first_ms = one.install(|| timed(|| drop(black_box(renew(&inputs)))));
    inputs.remembered = plan(&inputs).remembered;
    let next_ms = one.install(|| timed(|| drop(black_box(renew(&inputs)))));
    Renewals { first_ms, first_on_all_ms, next_ms }
}

fn main() {
    let all = HOURS.map(renewals);
    let memory_mib = peak_memory_mib();
    let inputs = inputs(ModelKind::OrgLinearPaper, 4);
    let whole_ms = timed(|| drop(black_box(renew(&inputs))));
    let read_ms = timed(|| {
        black_box(read_once(&inputs.panel));
    });
    let ([write_ms, score_ms, report_ms], bytes) = ledger(&inputs);
    let windows = Tensor::ones((POOLS * ORGANIZATIONS, LOOKBACK_HOURS), candle_core::DType::F32, &Device::Cpu);
    let weights = Tensor::ones((LOOKBACK_HOURS, 4), candle_core::DType::F32, &Device::Cpu);
    let (windows, weights) = (windows.expect("a tensor"), weights.expect("a tensor"));
    let product_ms = timed(|| {
        for _ in 0..2 {
            black_box(windows.matmul(&weights)).expect("a product");
        }
    });
    println!(
        "renewal of {} series in {POOLS} pools, lookback {LOOKBACK_HOURS} h, one thread, median of {ROUNDS}:",
        POOLS * ORGANIZATIONS
    );
    for (hours, Renewals { first_ms, first_on_all_ms, next_ms }) in HOURS.into_iter().zip(&all) {
        let of_budget = |ms: f64| format!("{ms:8.1} ms   {:.2} of the budget of {BUDGET_MS} ms", ms / BUDGET_MS);
        println!("  {hours:2} h: windows in memory to answers       {}", of_budget(*first_ms));
        println!("        the same on all threads             {}", of_budget(*first_on_all_ms));
        println!("        the next one of the same hour       {}", of_budget(*next_ms));
    }
    let growth = all[1].first_ms / all[0].first_ms;
    println!("  {} times the hours cost                 {growth:8.1} times as much", HOURS[1] / HOURS[0]);
    println!("  ({TREES_PER_FOREST} trees a forest, {} networks)", Lesson::DEFAULT.members);
    println!("  the same with orglinear-paper           {whole_ms:8.1} ms   {:.2} of the budget", whole_ms / BUDGET_MS);
    println!("  bound: every number read once           {read_ms:8.1} ms   ratio {:.1}", all[0].first_ms / read_ms);
    println!("  bound: the two products of that one     {product_ms:8.1} ms   ratio {:.1}", whole_ms / product_ms);
    println!("  once an hour: the forecasts as bytes     {write_ms:8.1} ms   {} KiB", bytes / 1_024);
    println!("  once an hour: read, scored, as bytes    {score_ms:8.1} ms");
    println!("  once an hour: the report on seven days  {report_ms:8.1} ms");
    println!("  peak memory of the renewals             {memory_mib:8.0} MiB");
}
