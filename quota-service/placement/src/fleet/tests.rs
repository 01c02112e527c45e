mod aligned;
mod offered;

use super::*;
use crate::invariants;
use proptest::prelude::*;
use vocab::MilliGpus;

fn at(seconds: i64) -> UnixSeconds {
    UnixSeconds::new(1_700_000_000 + seconds)
}

fn task(name: &str) -> TaskId {
    TaskId::parse(name).unwrap()
}

fn gang(name: &str, class: TaskClass, gpus: &str, pods: u32) -> Gang {
    let gpus = GpuRequest::of(MilliGpus::parse(gpus).unwrap()).unwrap();
    Gang { task: task(name), class, pod: PodRequest::new(gpus, 0, 0), pods }
}

fn fleet(nodes: &[u32]) -> Fleet {
    let mut fleet = Fleet::new(EvictionSettings::default());
    for (number, gpus) in nodes.iter().enumerate() {
        fleet.add(NodeId::parse(&format!("node-{number:03}")).unwrap(), *gpus, None, None).unwrap();
    }
    fleet
}

fn start(fleet: &mut Fleet, name: &str, class: TaskClass, gpus: &str, pods: u32, seconds: i64) -> Vec<usize> {
    let plan = fleet.plan(&gang(name, class, gpus, pods)).unwrap_or_else(|| panic!("{name} does not fit"));
    fleet.apply(&plan, at(seconds), None).unwrap();
    plan.places.iter().map(|place| place.node).collect()
}

fn preempting(fleet: &mut Fleet, name: &str, gpus: &str, pods: u32, seconds: i64) -> Option<Plan> {
    let history = History { finished: 100, evicted: 10 };
    let hp = gang(name, TaskClass::Hp, gpus, pods);
    fleet.plan_preempting(&hp, at(seconds), history, &PreemptionSettings::default())
}

#[test]
fn the_fullest_node_that_fits_comes_first_then_the_one_with_more_of_the_same_class() {
    use TaskClass::{Hp, Spot};
    let mut fleet = fleet(&[8, 8, 8]);
    assert_eq!(start(&mut fleet, "hp", Hp, "4", 1, 0), [0], "of equal nodes the first one");
    assert_eq!(start(&mut fleet, "wide", Spot, "6", 1, 0), [1]);
    assert_eq!(start(&mut fleet, "small", Spot, "2", 1, 0), [1], "two idle GPUs are fewer than four");
    fleet.finish(&task("wide"));
    start(&mut fleet, "two", Spot, "2", 1, 0);
    assert_eq!(fleet.nodes().iter().map(|node| node.idle).collect::<Vec<_>>(), [2, 6, 8], "four are fewer than six");
    fleet.finish(&task("two"));
    start(&mut fleet, "third", Spot, "2", 2, 0);
    assert_eq!(fleet.nodes().iter().map(|node| node.idle).collect::<Vec<_>>(), [0, 6, 8]);
    fleet.finish(&task("third"));
    fleet.finish(&task("small"));
    let spot = gang("spot", Spot, "4", 1);
    let elsewhere =
        Plan { places: vec![PodPlace { node: 1, gpus: GpuPlace::Whole { mask: 15 } }], gang: spot, victims: vec![] };
    fleet.apply(&elsewhere, at(0), None).unwrap();
    assert_eq!(start(&mut fleet, "more-spot", Spot, "1", 1, 0), [1], "spot beside spot, where both are half full");
    fleet.finish(&task("more-spot"));
    assert_eq!(start(&mut fleet, "more-hp", Hp, "1", 1, 0), [0], "HP beside HP");
}

#[test]
fn shares_fill_the_fullest_shared_gpu_and_whole_gpus_stay_whole() {
    let mut fleet = fleet(&[2]);
    for (name, share) in [("a", "0.5"), ("b", "0.3"), ("c", "0.2"), ("d", "0.6")] {
        start(&mut fleet, name, TaskClass::Spot, share, 1, 0);
    }
    let taken: Vec<u16> = fleet.nodes()[0].gpus.iter().map(|gpu| gpu.spot).collect();
    assert_eq!(taken, [1_000, 600]);
    assert_eq!(fleet.plan(&gang("e", TaskClass::Spot, "1", 1)), None, "no GPU is idle");
    assert!(fleet.plan(&gang("e", TaskClass::Spot, "0.4", 1)).is_some());
    assert_eq!(fleet.plan(&gang("e", TaskClass::Spot, "0.4", 2)), None, "a gang is whole or not at all");
}

#[test]
fn a_gang_of_billions_is_refused_at_once() {
    let mut fleet = fleet(&[8]);
    let all = u32::MAX;
    assert_eq!(fleet.plan(&gang("spot", TaskClass::Spot, "1", all)), None);
    assert_eq!(preempting(&mut fleet, "hp", "1", all, 0), None);
}

#[test]
fn the_least_waste_goes_and_what_is_promised_stays() {
    use TaskClass::Spot;
    let mut fleet = fleet(&[8]);
    start(&mut fleet, "old", Spot, "4", 1, 0);
    start(&mut fleet, "young", Spot, "4", 1, 3_000);
    let plan = preempting(&mut fleet, "hp", "4", 1, 3_600).unwrap();
    assert_eq!(plan.victims, [task("young")], "600 s are less than 3,600");
    let promised = gang("promised", Spot, "4", 1);
    fleet.finish(&task("young"));
    let place = fleet.plan(&promised).unwrap();
    let hour = Guarantee::from(at(3_500), HorizonHours::ONE);
    fleet.apply(&place, at(3_500), Some(hour)).unwrap();
    assert_eq!(fleet.promised(HorizonHours::ONE), MilliGpus::from_gpus(4));
    let plan = preempting(&mut fleet, "hp", "4", 1, 3_600).unwrap();
    assert_eq!(plan.victims, [task("old")], "a task inside its guarantee is kept before one outside");
    assert_eq!(fleet.ended_guarantees(at(7_099)), []);
    assert_eq!(fleet.ended_guarantees(at(7_100)), [(task("promised"), hour)]);
    assert_eq!(fleet.promised(HorizonHours::ONE), MilliGpus::ZERO);
    let plan = preempting(&mut fleet, "hp", "4", 1, 7_200).unwrap();
    assert_eq!(plan.victims, [task("promised")], "afterwards it is like any other");
}

#[test]
fn an_evicted_gang_frees_all_its_nodes() {
    use TaskClass::{Hp, Spot};
    let mut fleet = fleet(&[4, 4, 4]);
    start(&mut fleet, "gang", Spot, "4", 3, 0);
    let plan = preempting(&mut fleet, "hp", "4", 2, 60).unwrap();
    assert_eq!(plan.victims, [task("gang")]);
    let before = fleet.clone();
    let evicted = fleet.apply(&plan, at(60), None).unwrap();
    assert_eq!(evicted.iter().map(|(task, _)| task.clone()).collect::<Vec<_>>(), plan.victims);
    assert_ne!(fleet, before);
    assert_eq!(preempting(&mut fleet, "more", "4", 2, 60), None, "HP is not evicted");
    assert!(fleet.plan(&gang("idle", Hp, "4", 1)).is_some(), "the gang's other node is idle now");
}

#[test]
fn a_victim_whose_nodes_the_pods_can_do_without_is_spared() {
    use TaskClass::Spot;
    let mut fleet = fleet(&[8, 8, 8, 8]);
    start(&mut fleet, "one", Spot, "8", 1, 0);
    start(&mut fleet, "gang", Spot, "8", 3, 0);
    let before = fleet.clone();
    let plan = preempting(&mut fleet, "hp", "8", 2, 60).unwrap();
    assert_eq!(plan.victims, [task("gang")], "the cheapest for the first pod is needless beside the second one's");
    assert_eq!(fleet, before, "a plan changes nothing");
    let plan = preempting(&mut fleet, "larger", "8", 4, 60).unwrap();
    assert_eq!(plan.victims.len(), 2, "here both are needed: {plan:?}");
    fleet.apply(&plan, at(60), None).unwrap();
}

#[test]
fn a_plan_that_no_longer_holds_changes_nothing() {
    use TaskClass::{Hp, Spot};
    let mut fleet = fleet(&[4]);
    start(&mut fleet, "spot", Spot, "4", 1, 0);
    let plan = preempting(&mut fleet, "hp", "4", 1, 60).unwrap();
    fleet.finish(&task("spot"));
    let before = fleet.clone();
    assert_eq!(fleet.apply(&plan, at(60), None), Err(PlanFault::VictimGone { task: task("spot") }));
    let idle = fleet.plan(&gang("hp", Hp, "4", 1)).unwrap();
    fleet.open(0, false);
    assert_eq!(fleet.apply(&idle, at(60), None), Err(PlanFault::Taken { node: 0, pod: 0 }), "it drains");
    fleet.open(0, true);
    assert_eq!(fleet, before);
    fleet.apply(&idle, at(60), None).unwrap();
    assert_eq!(fleet.apply(&idle, at(60), None), Err(PlanFault::Runs { task: task("hp") }));
}

#[test]
fn a_node_that_evicts_too_often_gets_no_spot_until_an_hour_has_passed() {
    use TaskClass::{Hp, Spot};
    let mut fleet = fleet(&[1]);
    for round in 0..6 {
        // Five evictions weigh 4.04 an hour, six 4.85: log 100 / log 3 = 4.19 lies between.
        start(&mut fleet, &format!("spot-{round}"), Spot, "1", 1, round);
        let hp = preempting(&mut fleet, &format!("hp-{round}"), "1", 1, round).unwrap();
        fleet.apply(&hp, at(round), None).unwrap();
        fleet.finish(&hp.gang.task);
    }
    assert_eq!((fleet.plan(&gang("spot", Spot, "1", 1)), fleet.resting_gpus()), (None, 1));
    assert!(fleet.plan(&gang("hp", Hp, "1", 1)).is_some(), "HP never loses a node by it");
    fleet.pass_to(at(3_700));
    assert_eq!(fleet.resting_gpus(), 0);
    assert!(fleet.plan(&gang("spot", Spot, "1", 1)).is_some());
}

/// Algorithm 1 by looking at every node: exact quotients compared, no index. HP that is kept apart looks first for few GPUs
/// without HP.
fn first_by_looking(fleet: &Fleet, gang: &Gang) -> Option<usize> {
    let scored = fleet.nodes().iter().enumerate().filter_map(|(number, node)| {
        let weight = fleet.evictions.weight(node.evictions);
        let fits = node.is_open && node.place(gang.pod.gpus).is_some() && node.has_room_beside_gpus(&gang.pod);
        let is_broken = gang.class == TaskClass::Spot && weight >= fleet.evictions.breaker();
        let of = node.gpus.len().max(1) as f64;
        let (alike, third) = match gang.class {
            TaskClass::Hp => (node.hp_milli, -f64::from(weight)),
            TaskClass::Spot => (node.spot_milli, f64::from(weight)),
        };
        let without_hp = node.gpus.iter().filter(|gpu| gpu.hp == 0).count() as f64;
        let lead = if fleet.is_apart && gang.class == TaskClass::Hp { without_hp / of } else { 0.0 };
        (fits && !is_broken).then(|| ([lead, f64::from(node.idle) / of, -f64::from(alike) / of, third], number))
    });
    let order = |a: &([f64; 4], usize), b: &([f64; 4], usize)| {
        let scores = a.0.iter().zip(&b.0).map(|(a, b)| a.total_cmp(b));
        scores.fold(std::cmp::Ordering::Equal, std::cmp::Ordering::then).then(a.1.cmp(&b.1))
    };
    scored.min_by(order).map(|(_, number)| number)
}

#[derive(Debug, Clone)]
enum Step {
    Submit { hp: bool, milli: u64, pods: u32, cpu_milli: u64, promised: bool },
    Finish(usize),
    Open(usize, bool),
    Save(usize),
    Pass(i64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let milli = prop_oneof![1_u64..1_000, (1_u64..9).prop_map(|gpus| gpus * 1_000)];
    let submit = (any::<bool>(), milli, 1_u32..5, 0_u64..9_000, any::<bool>())
        .prop_map(|(hp, milli, pods, cpu_milli, promised)| Step::Submit { hp, milli, pods, cpu_milli, promised });
    let step = prop_oneof![
        6 => submit,
        2 => (0_usize..40).prop_map(Step::Finish),
        1 => (0_usize..8, any::<bool>()).prop_map(|(node, is_open)| Step::Open(node, is_open)),
        1 => (0_usize..40).prop_map(Step::Save),
        1 => (1_i64..5_000).prop_map(Step::Pass),
    ];
    prop::collection::vec(step, 1..60)
}

/// Submits a task as an engine would: on idle GPUs, else, if it is HP, by eviction. Checks what must always hold.
fn submit(fleet: &mut Fleet, gang: &Gang, now: UnixSeconds, guarantee: Option<Guarantee>) {
    let before = fleet.clone();
    assert_eq!(fleet.first_place(gang).map(|place| place.node), first_by_looking(fleet, gang));
    let history = History { finished: 20, evicted: 2 };
    if gang.class == TaskClass::Hp {
        assert!(fleet.agrees_with_a_look_at_every_node(gang, now, history), "{gang:?}");
    }
    let idle = fleet.plan(gang);
    let plan = idle.or_else(|| fleet.plan_preempting(gang, now, history, &PreemptionSettings::default()));
    assert_eq!(*fleet, before, "planning leaves everything as it was");
    let Some(plan) = plan else { return };
    invariants::gangs_are_whole(&plan);
    invariants::only_spot_is_evicted(fleet, &plan);
    invariants::nobody_is_evicted_in_vain(fleet, &plan);
    let evicted = fleet.apply(&plan, now, guarantee).unwrap();
    assert_eq!(evicted.len(), plan.victims.len());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    #[test]
    fn under_any_commands_the_books_balance_and_only_spot_is_evicted_never_in_vain(
        sizes in prop::collection::vec(0_u32..9, 1..8),
        is_apart in any::<bool>(),
        steps in steps(),
    ) {
        let rule = if is_apart { ScoreRule::Apart } else { ScoreRule::Gfs };
        let mut fleet = Fleet::ordered(EvictionSettings::default(), rule);
        for (number, gpus) in sizes.iter().enumerate() {
            let id = NodeId::parse(&format!("node-{number}")).unwrap();
            fleet.add(id, *gpus, Some(u64::from(*gpus) * 8_000), None).unwrap();
        }
        let mut now = 0;
        for (number, step) in steps.into_iter().enumerate() {
            match step {
                Step::Submit { hp, milli, pods, cpu_milli, promised } => {
                    let gpus = GpuRequest::of(MilliGpus::from_milli(milli).unwrap()).unwrap();
                    let class = if hp { TaskClass::Hp } else { TaskClass::Spot };
                    let pod = PodRequest::new(gpus, cpu_milli, 0);
                    let gang = Gang { task: task(&format!("task-{number:02}")), class, pod, pods };
                    submit(&mut fleet, &gang, at(now), (promised && !hp).then(|| Guarantee::from(at(now), HorizonHours::ONE)));
                }
                Step::Finish(number) => {
                    fleet.finish(&task(&format!("task-{number:02}")));
                }
                Step::Open(node, is_open) => {
                    if node < fleet.nodes().len() {
                        fleet.open(node, is_open);
                    }
                }
                Step::Save(number) => fleet.saved(&task(&format!("task-{number:02}")), at(now)),
                Step::Pass(seconds) => {
                    now += seconds;
                    fleet.pass_to(at(now));
                    fleet.ended_guarantees(at(now));
                }
            }
            invariants::no_gpu_is_overused(&fleet);
            invariants::books_balance(&fleet);
        }
        let names: Vec<TaskId> = fleet.tasks().keys().cloned().collect();
        for name in &names {
            fleet.finish(name);
        }
        prop_assert!(fleet.nodes().iter().all(|node| usize::from(node.idle) == node.gpus.len()), "all is given back");
    }
}
