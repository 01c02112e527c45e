//! Small worlds whose course can be computed by hand.

use crate::predictor::{Oracle, Plan, PredictorKind};
use crate::quota::QuotaSettings;
use crate::run::{Losses, Outcome, Settings, run};
use crate::stretch::Stretch;
use crate::world::{Shape, World, WorldError};
use datasets::Calendar;
use forecaster::ModelKind;
use placement::pool::PoolRules;
use placement::{Policy, PoolSettings};
use vocab::{
    ClusterName, GpuModel, GuaranteeRate, HorizonHours, MilliGpus, Node, NodeId, Organization, PoolId, Task, TaskClass,
    TaskId, UnixSeconds,
};

const EPOCH: UnixSeconds = UnixSeconds::new(1_709_222_400);

fn node(number: usize) -> Node {
    let pool = PoolId { cluster: ClusterName::parse("trace").unwrap(), gpu_model: GpuModel::parse("V100").unwrap() };
    Node {
        id: NodeId::parse(&format!("node-{number}")).unwrap(),
        pool,
        gpus: 8,
        cpu_milli: None,
        memory_mib: None,
        drains: false,
        topology: None,
    }
}

fn task(name: &str, class: TaskClass, at_s: i64, duration_s: u64, gpus: u32, pods: u32) -> Task {
    Task::new(
        TaskId::parse(name).unwrap(),
        Organization::parse("a").unwrap(),
        GpuModel::parse("V100").unwrap(),
        class,
        EPOCH.plus_s(at_s),
        Some(duration_s),
        MilliGpus::from_gpus(gpus),
        pods,
    )
    .unwrap()
}

fn shape() -> Shape {
    Shape { epoch: EPOCH, hours: Some(HorizonHours::ONE), spot_scale: 1.0, nodes_minus: 0, seed: 7 }
}

fn world(nodes: usize, tasks: Vec<Task>, shape: &Shape) -> Result<World, WorldError> {
    World::of(&ClusterName::parse("trace").unwrap(), (0..nodes).map(node).collect(), tasks, shape)
}

fn settings(policy: &str, predictor: PredictorKind) -> Settings {
    let horizon = HorizonHours::new(4).unwrap();
    let kind = if let PredictorKind::Model(kind) = predictor { kind } else { ModelKind::LastValue };
    let (rate, offered) = (GuaranteeRate::GFS, vec![HorizonHours::ONE]);
    Settings {
        policy: Policy { limits_follow_demand: predictor.is_live(), ..Policy::parse(policy).unwrap() },
        weights: std::sync::Arc::default(),
        predictor,
        plan: Plan { kind, horizon, rate, seed: 0, refit_hours: 24, aggregation: None },
        calendar: Calendar::parse("UTC", Calendar::WEEKDAYS).unwrap(),
        quota: QuotaSettings {
            pool: PoolSettings { offered_hours: offered.clone(), ..PoolSettings::default() },
            refresh_s: 300,
            eta_fixed: true,
            live: predictor.is_live(),
            jobs: predictor.knows_jobs(true),
        },
        offered,
        losses: Losses { checkpoint_s: 3_600, restart_s: 40, restart_large_s: 60, resize_s: 10 },
        rules: PoolRules::default(),
        power: placement::power::PowerTable::default(),
        seed: 0,
    }
}

fn played(world: &World, policy: &str, predictor: PredictorKind) -> Outcome {
    run(world, &settings(policy, predictor)).unwrap()
}

#[test]
fn an_evicted_task_loses_what_came_after_its_checkpoint_and_starts_again() {
    use TaskClass::{Hp, Spot};
    let tasks = vec![task("spot", Spot, 0, 10_000, 8, 1), task("hp", Hp, 5_000, 1_000, 8, 1)];
    let outcome = played(&world(1, tasks, &shape()).unwrap(), "gfs-noquota", PredictorKind::Live).summary;
    // It works 5,000 s, of which 3,600 are saved, waits 1,000 s, needs 40 s and works the other 6,400.
    assert_eq!((outcome.spot_jct_mean_s, outcome.spot_queue_mean_s), (12_440.0, 1_000.0));
    assert_eq!((outcome.hp_jct_mean_s, outcome.hp_queue_mean_s), (1_000.0, 0.0));
    assert_eq!((outcome.evictions, outcome.eviction_rate, outcome.finished), (1, 0.5, 2));
    assert!((outcome.lost_gpu_hours - 8.0 * 1_400.0 / 3_600.0).abs() < 1e-9);
    // Kept: its first hour, the hour after its restart, and the one in which it finished; broken: its second one.
    assert_eq!((outcome.guarantee_periods, outcome.guarantee_eviction_rate), (4, 0.25));
    // All 8 GPUs, from the first submission to the last.
    assert_eq!(outcome.allocation_rate, 1.0);
}

/// Under a policy without a quota, with a grace period of 60 s.
fn played_with_grace(world: &World) -> crate::tally::Summary {
    let rules = PoolRules { grace_s: 60, ..PoolRules::default() };
    run(world, &Settings { rules, ..settings("gfs-noquota", PredictorKind::Live) }).unwrap().summary
}

#[test]
fn with_a_grace_period_hp_waits_for_its_victims_and_their_gpus_stand_still() {
    use TaskClass::{Hp, Spot};
    let tasks = vec![task("spot", Spot, 0, 10_000, 8, 1), task("hp", Hp, 5_000, 1_000, 8, 1)];
    let outcome = played_with_grace(&world(1, tasks, &shape()).unwrap());
    assert_eq!((outcome.hp_queue_mean_s, outcome.hp_queue_p99_s, outcome.hp_jct_mean_s), (60.0, 60.0, 1_060.0));
    assert_eq!((outcome.hp_evicting_share, outcome.evictions_per_spot_job), (1.0, 1.0));
    // It leaves at 5,060 s, waits for 1,000 s, needs 40 s and works the 6,400 s that were not saved.
    assert_eq!((outcome.spot_jct_mean_s, outcome.spot_queue_mean_s), (12_500.0, 1_000.0));
    assert!((outcome.lost_gpu_hours - 8.0 * 1_460.0 / 3_600.0).abs() < 1e-9);
}

#[test]
fn a_victim_starts_elsewhere_as_soon_as_it_has_left() {
    use TaskClass::{Hp, Spot};
    // The first node is full of HP when spot comes, and half empty when HP takes the second one.
    let hp = [task("stays", Hp, 0, 9_000, 4, 1), task("ends", Hp, 0, 50, 4, 1), task("wide", Hp, 100, 9_000, 8, 1)];
    let tasks = hp.into_iter().chain([task("spot", Spot, 10, 1_000, 4, 1)]).collect();
    let outcome = played_with_grace(&world(2, tasks, &shape()).unwrap());
    assert_eq!((outcome.evictions, outcome.spot_queue_mean_s), (1, 0.0));
    // It leaves at 160 s, and needs 40 s and all of its work.
    assert_eq!(outcome.spot_jct_mean_s, 1_200.0 - 10.0);
    assert!((outcome.hp_evicting_share - 1.0 / 3.0).abs() < 1e-9);
}

#[test]
fn an_elastic_task_works_as_fast_as_its_pods_allow() {
    use TaskClass::{Hp, Spot};
    let tasks = || vec![task("spot", Spot, 0, 1_000, 4, 1), task("hp", Hp, 100, 100, 4, 1)];
    let elastic = |control| {
        let mut world = world(1, tasks(), &shape()).unwrap();
        world.stretch(&Stretch { share: 1.0, control, model: None, seed: 0 }).unwrap();
        played(&world, "gfs-noquota", PredictorKind::Live).summary
    };
    // 4,000 GPU-seconds: 100 s on 8 GPUs; 10 s of standstill and 90 s on 4; 10 s of standstill and the rest on 8.
    let outcome = elastic(false);
    assert_eq!((outcome.spot_jct_mean_s, outcome.evictions), (210.0 + 2_840.0 / 8.0, 0));
    assert_eq!((outcome.resizes, outcome.shrinks), (Some(3), Some(1)), "it grows, shrinks and grows");
    assert_eq!(outcome.hp_queue_mean_s, 0.0);
    let control = elastic(true);
    assert_eq!((control.spot_jct_mean_s, control.resizes), (1_000.0, None), "split alone it is as it was");
    let mut world = world(1, tasks(), &shape()).unwrap();
    let unknown = Stretch { share: 1.0, control: false, model: Some("gpt"), seed: 0 };
    assert!(world.stretch(&unknown).unwrap_err().starts_with("\"gpt\" is no model; there are alexnet, "));
}

#[test]
fn an_elastic_task_that_is_evicted_loses_the_work_of_all_its_pods_since_its_checkpoint() {
    use TaskClass::{Hp, Spot};
    let tasks = vec![task("spot", Spot, 0, 10_000, 4, 1), task("hp", Hp, 4_000, 100, 8, 1)];
    let mut world = world(1, tasks, &shape()).unwrap();
    world.stretch(&Stretch { share: 1.0, control: false, model: None, seed: 0 }).unwrap();
    let outcome = played(&world, "gfs-noquota", PredictorKind::Live).summary;
    // 40,000 GPU-seconds, 8 GPUs: 3,600 s are saved and 400 s lost; it waits 100 s and loads 40 s.
    assert_eq!(outcome.spot_jct_mean_s, 4_140.0 + (40_000.0 - 28_800.0) / 8.0);
    assert!((outcome.lost_gpu_hours - 8.0 * 400.0 / 3_600.0).abs() < 1e-9);
}

#[test]
fn large_tasks_need_longer_to_restart() {
    use TaskClass::{Hp, Spot};
    let tasks = vec![task("spot", Spot, 0, 1_000, 8, 2), task("hp", Hp, 500, 100, 8, 1)];
    let outcome = played(&world(2, tasks, &shape()).unwrap(), "gfs-noquota", PredictorKind::Live).summary;
    assert_eq!(outcome.spot_jct_mean_s, 600.0 + 60.0 + 1_000.0);
}

#[test]
fn under_a_quota_that_knows_what_comes_spot_waits_for_hp_and_is_never_evicted() {
    use TaskClass::{Hp, Spot};
    let tasks =
        vec![task("spot", Spot, 600, 3_000, 8, 1), task("hp", Hp, 0, 100, 8, 1), task("next", Hp, 3_000, 500, 8, 1)];
    let world = world(1, tasks, &shape()).unwrap();
    let outcome = played(&world, "gfs", PredictorKind::Oracle).summary;
    assert_eq!((outcome.evictions, outcome.guarantee_eviction_rate), (0, 0.0));
    // The last submission is the end of what the oracle knows: from then on nothing comes.
    assert!(outcome.spot_queue_mean_s >= 2_400.0, "{outcome:?}");
    assert_eq!(
        played(&world, "gfs-noquota", PredictorKind::Oracle).summary.evictions,
        1,
        "without a quota it is evicted"
    );
}

#[test]
fn spot_is_scaled_near_its_original_and_hp_stays() {
    use TaskClass::{Hp, Spot};
    let tasks =
        vec![task("hp", Hp, 0, 60, 1, 1), task("spot", Spot, 90_000, 60, 1, 1), task("copy-1", Spot, 90_000, 60, 1, 1)];
    let world = world(1, tasks, &Shape { spot_scale: 4.0, ..shape() }).unwrap();
    let names: std::collections::BTreeSet<&str> = world.jobs.iter().map(|job| job.request.gang.task.as_str()).collect();
    assert_eq!((world.jobs.len(), names.len()), (9, 9), "{names:?}");
    let spot = world.jobs.iter().filter(|job| job.request.gang.class == Spot);
    assert!(spot.into_iter().all(|job| job.request.submitted.since_s(EPOCH.plus_s(90_000)).abs() <= 3_600));
}

#[test]
fn jobs_that_no_node_could_run_are_left_out_with_a_reason() {
    let whole = task("wide", TaskClass::Hp, 0, 60, 9, 1);
    let half = Task::new(
        TaskId::parse("half").unwrap(),
        Organization::parse("a").unwrap(),
        GpuModel::parse("V100").unwrap(),
        TaskClass::Hp,
        EPOCH,
        Some(60),
        MilliGpus::parse("1.5").unwrap(),
        1,
    );
    let world = world(1, vec![whole, half.unwrap(), task("fits", TaskClass::Hp, 0, 60, 8, 1)], &shape()).unwrap();
    let why: Vec<&str> = world.left_out.iter().map(|(_, why)| why.as_str()).collect();
    assert_eq!((world.jobs.len(), why.len()), (1, 2));
    assert!(why[0].contains("ask for 2") && why[1].contains("even if the pool is empty"), "{why:?}");
    let none = self::world(1, Vec::new(), &Shape { nodes_minus: 1, ..shape() });
    assert!(matches!(none, Err(WorldError::NoNodes { nodes: 1, have: 1 })));
}

#[test]
fn the_oracle_says_the_largest_demand_that_comes() {
    let oracle = Oracle::new(&[(0, 600, 1_000), (3_000, 600, 4_000), (5_000, 60, 2_000)]);
    let peak = |at_s: i64| oracle.bounds(UnixSeconds::new(at_s), &[HorizonHours::ONE])[0].bound.milli();
    assert_eq!([peak(0), peak(3_600), peak(6_000)], [4_000, 2_000, 0]);
}
