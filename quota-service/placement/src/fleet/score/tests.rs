//! Formulas against numbers worked out by hand, and kept scores against a look at every node.

use super::target::next_renewal;
use super::*;
use crate::fleet::{EvictionSettings, Models, NodeState, PodRequest};
use crate::power::{NodePower, PowerTable};
use proptest::prelude::*;
use vocab::{GpuModel, NodeId, TaskClass, TaskId, UnixSeconds};

const NOW: UnixSeconds = UnixSeconds::new(1_700_000_000);

fn power(model: &str) -> NodePower {
    PowerTable::default().of(&GpuModel::parse(model).unwrap()).unwrap()
}

/// Nodes of GPUs and thousandths of virtual CPUs, A10 (model 0) and V100 (model 1) in turn.
fn fleet(rule: ScoreRule, nodes: &[(u32, u64)]) -> Fleet {
    let mut fleet = Fleet::ordered(EvictionSettings::default(), rule);
    fleet.set_power(vec![power("A10"), power("V100")]);
    for (number, (gpus, cpu_milli)) in nodes.iter().enumerate() {
        let id = NodeId::parse(&format!("node-{number}")).unwrap();
        fleet.add(id, *gpus, Some(*cpu_milli), None).unwrap();
        fleet.set_model(number, (number % 2) as u8);
    }
    fleet
}

fn pod(gpus: GpuRequest, cpu_milli: u64) -> PodRequest {
    PodRequest::new(gpus, cpu_milli, 0)
}

fn gang(number: usize, pod: PodRequest) -> Gang {
    Gang { task: TaskId::parse(&format!("task-{number:03}")).unwrap(), class: TaskClass::Hp, pod, pods: 1 }
}

fn workload(pods: &[(PodRequest, u64)]) -> Workload {
    Workload::from_parts(pods.iter().map(|(pod, count)| (Spec::of(pod), *count, None)))
}

/// Where a pod goes; it stays there.
fn placed(fleet: &mut Fleet, number: usize, pod: PodRequest, rule: ScoreRule, of: &Workload) -> Option<PodPlace> {
    let plan = fleet.plan_by(&gang(number, pod), rule, of)?;
    fleet.apply(&plan, NOW, None).unwrap();
    Some(plan.places[0])
}

/// The seat of a pod on a node.
fn seat(fleet: &Fleet, node: usize, pod: PodRequest, rule: ScoreRule, of: &Workload) -> Seat {
    let Fleet { nodes, power, evictions, .. } = fleet;
    Ground { rule, class: TaskClass::Hp, target: of.target(), power, evictions }.seat(&nodes[node], &pod)
}

#[test]
fn fragmentation_is_what_the_target_cannot_use() {
    let (half, two) = (pod(GpuRequest::Share(500), 4_000), pod(GpuRequest::Whole(2), 8_000));
    let cpu_only = pod(GpuRequest::Whole(0), 1_000);
    let elsewhere = PodRequest { models: Models::of([1]), ..half };
    let of = workload(&[(half, 4), (two, 3), (cpu_only, 2), (elsewhere, 1)]);
    assert_eq!(of.target().len(), 4, "nine of ten are not enough for 95 %");
    let mut fleet = fleet(ScoreRule::FirstFit, &[(3, 10_000)]);
    // All 3,000 are free. The half uses them, the two GPUs do, too; of the rest none: 0.2 × 3,000 + 0.1 × 3,000.
    assert_eq!(fleet.fragmentation_milli(of.target()), 900);
    placed(&mut fleet, 0, pod(GpuRequest::Share(600), 4_000), ScoreRule::FirstFit, &of).unwrap();
    // 2,400 are free, 6 CPUs too. The half leaves the 400: 0.4 × 400. The two GPUs lack CPU: 0.3 × 2,400. Then 0.3 × 2,400.
    assert_eq!(fleet.fragmentation_milli(of.target()), 160 + 720 + 720);
    // A half on an idle GPU: 1,900 free, 5 CPUs. 0.4 × 400 (500 is enough) + 0.6 × 1,900 = 1,300. It falls by 300:
    // 100 × sigmoid(0.3) = 57.4. On the shared GPU it does not fit.
    let small = pod(GpuRequest::Share(500), 1_000);
    assert_eq!(seat(&fleet, 0, small, ScoreRule::Score(Terms::Fgd), &of), Seat { score: 57, gpu: 1, ..Seat::NONE });
    // A quarter may go to either. Shared: 150 + 2 × 1,000 are free: 0.4 × 150 + 0.6 × 2,150 = 1,350, less by 250: 56.2. Idle:
    // 400 + 750 + 1,000: 0.4 × 400 + 0.6 × 2,150 = 1,450, less by 150: 53.7.
    let quarter = pod(GpuRequest::Share(250), 1_000);
    assert_eq!(seat(&fleet, 0, quarter, ScoreRule::Score(Terms::Fgd), &of), Seat { score: 56, gpu: 0, ..Seat::NONE });
    // No GPU, and 3 CPUs: the half no longer has its 4, and nobody uses anything: 0.6 × 2,400 + 0.4 × 2,400, more by 800.
    let cpus = pod(GpuRequest::Whole(0), 3_000);
    assert_eq!(seat(&fleet, 0, cpus, ScoreRule::Score(Terms::Fgd), &of).score, 31, "100 / (1 + e^0.8) = 31.0");
}

#[test]
fn the_target_is_the_most_frequent_95_percent_and_grows_older_by_a_tenth() {
    let of = |gpus: u16| Spec::of(&pod(GpuRequest::Whole(gpus), 1_000));
    let mut workload = Workload::default();
    for (gpus, pods) in [(1, 60), (2, 35), (4, 5)] {
        workload.add(of(gpus), pods);
    }
    assert_eq!((workload.target().len(), workload.target().weight()), (2, 95));
    let before = workload.target().clone();
    // The ladder goes 1, 2, …, 20, 22, …, 86, 94, 103, 113.
    assert_eq!((next_renewal(94), next_renewal(102), next_renewal(103)), (103, 103, 113));
    workload.add(of(4), 2);
    assert_eq!(*workload.target(), before, "102 pods are not yet 103");
    workload.add(of(4), 1);
    assert_ne!(*workload.target(), before);
    workload.add(of(8), 9);
    let again = Workload::from_parts(workload.parts().collect::<Vec<_>>());
    assert_eq!(again, workload, "the target comes back as it was, not as it would be now");
}

#[test]
fn power_is_what_more_is_drawn_and_the_gpu_follows_the_heavier_term() {
    let of = workload(&[(pod(GpuRequest::Share(900), 0), 1)]);
    let mut fleet = fleet(ScoreRule::FirstFit, &[(2, 64_000), (2, 64_000)]);
    let pwr = ScoreRule::Score(Terms::Pwr);
    // 64 virtual CPUs are two sockets. The first pod wakes one (105 W) and a GPU: A10 120 W, V100 270 W.
    let half = pod(GpuRequest::Share(500), 2_000);
    assert_eq!([0, 1].map(|node| seat(&fleet, node, half, pwr, &of).score), [-225, -375]);
    assert_eq!(fleet.watts(), Some(2 * (30 + 30 + 15 + 15)), "idle A10 and V100 draw 30 W each");
    placed(&mut fleet, 0, pod(GpuRequest::Share(300), 2_000), pwr, &of);
    assert_eq!(fleet.watts(), Some(180 + 225));
    // Now the GPU and the socket are awake. Power keeps to them, fragmentation likewise has a GPU of 700 that is lost anyway.
    assert_eq!(seat(&fleet, 0, half, pwr, &of), Seat { score: 0, gpu: 0, ..Seat::NONE });
    let both = seat(&fleet, 0, half, ScoreRule::Score(Terms::Mix { alpha_millionths: 100_000 }), &of);
    // F is 700 before; after, 200 + 0 on the shared GPU (less by 500: 62.2), or 700 + 500 on the idle one (more by 500: 37.7).
    assert_eq!((both.score, both.gpu, both.power, both.power_gpu), (62, 0, 0, 0));
    assert_eq!(seat(&fleet, 0, pod(GpuRequest::Whole(1), 30_000), pwr, &of).score, -120, "32 CPUs are one socket");
    assert_eq!(seat(&fleet, 0, pod(GpuRequest::Whole(1), 31_000), pwr, &of).score, -225, "33 are two");
    let weighing = |alpha: i64| Weighing { alpha, proportion: 0, least: -400, range: 400 };
    let seat = Seat { score: 50, power: -100, proportion: 7, gpu: 1, power_gpu: 2 };
    // (−100 + 400) · 100 / 400 = 75: 0.1 · 75 + 0.9 · 50 = 52.5.
    assert_eq!((weighing(100_000).value(&seat), weighing(100_000).gpu(&seat)), (52_500_000, 1));
    assert_eq!((weighing(600_000).value(&seat), weighing(600_000).gpu(&seat)), (65_000_000, 2));
    assert_eq!(Weighing { range: 0, ..weighing(100_000) }.value(&seat), 55_000_000, "all alike: 100");
}

#[test]
fn alpha_falls_as_the_pool_fills() {
    let alphas = [0, 1_000, 2_000, 4_000, 9_000].map(|used_milli| moving_alpha(used_milli, 4));
    assert_eq!(alphas, [200_000, 150_000, 100_000, 0, 0]);
    assert_eq!(moving_alpha(0, 0), 0, "a pool without GPUs");
}

#[test]
fn rivals_score_as_they_are_published() {
    let of = Workload::default();
    let mut fleet = fleet(ScoreRule::FirstFit, &[(8, 96_000), (2, 16_000)]);
    let one = pod(GpuRequest::Whole(1), 11_000);
    let score = |fleet: &Fleet, node, pod, rule| seat(fleet, node, pod, rule, &of).score;
    let both = |fleet: &Fleet, pod, rule| [0, 1].map(|node| score(fleet, node, pod, rule));
    // 100 · (1 − ½ · 85/128 − ½ · 7/8) = 23.04; 100 · (1 − ½ · 5/128 − ½ · 1/8) = 91.8.
    assert_eq!(both(&fleet, one, ScoreRule::BestFit), [23, 91]);
    // 100 · (1 − ½ · (96/128 · 11/128 + 8/8 · 1/8)) = 90.5; 100 · (1 − ½ · (16/128 · 11/128 + 2/8 · 1/8)) = 97.9.
    assert_eq!(both(&fleet, one, ScoreRule::DotProd), [90, 97]);
    assert_eq!(both(&fleet, one, ScoreRule::GpuPacking), [25, 31], "idle nodes: 33 less their GPUs");
    assert_eq!(
        both(&fleet, one, ScoreRule::GpuClustering),
        [25, 43],
        "nobody here: 25, and 25 · 6/8 = 18 for being small"
    );
    assert_eq!(both(&fleet, one, ScoreRule::Fullest), [-1_000_000, -1_000_000]);
    placed(&mut fleet, 0, pod(GpuRequest::Share(300), 0), ScoreRule::FirstFit, &of).unwrap();
    placed(&mut fleet, 1, one, ScoreRule::FirstFit, &of).unwrap();
    let share = pod(GpuRequest::Share(500), 0);
    assert_eq!(score(&fleet, 0, share, ScoreRule::GpuPacking), 93, "on the shared GPU: 100 − 70/10");
    assert_eq!(score(&fleet, 0, pod(GpuRequest::Share(800), 0), ScoreRule::GpuPacking), 49, "on an idle GPU");
    assert_eq!(score(&fleet, 0, pod(GpuRequest::Whole(3), 0), ScoreRule::GpuPacking), 47);
    // 6,700 are free: 25 · 1,300/8,000 = 4. Shares are there, and others beside them; pods of four GPUs are not.
    assert_eq!(score(&fleet, 0, share, ScoreRule::GpuClustering), 54);
    assert_eq!(score(&fleet, 0, pod(GpuRequest::Whole(4), 0), ScoreRule::GpuClustering), 4);
    assert_eq!(score(&fleet, 1, share, ScoreRule::GpuClustering), 43, "the other node is empty still");
    // 85 CPUs and 6.7 GPUs are free, 500 thousandths and no CPU asked for: 107.2 / √(85² + 107.2²) = 0.78.
    assert_eq!(seat(&fleet, 0, share, ScoreRule::Score(Terms::Moving), &of).proportion, 78);
}

#[test]
fn a_pod_goes_only_to_models_that_it_takes() {
    let of = Workload::default();
    let v100 = PodRequest { models: Models::of([1]), ..pod(GpuRequest::Whole(1), 1_000) };
    for rule in [ScoreRule::Gfs, ScoreRule::Apart, ScoreRule::FirstFit, ScoreRule::Score(Terms::Fgd)] {
        let mut fleet = fleet(rule, &[(8, 64_000), (1, 64_000)]);
        assert_eq!(placed(&mut fleet, 0, v100, rule, &of).map(|place| place.node), Some(1), "{rule:?}");
        assert_eq!(placed(&mut fleet, 1, v100, rule, &of), None, "{rule:?}");
        assert!(!fleet.could_ever_hold(&Gang { pods: 2, ..gang(2, v100) }));
        let elsewhere = PodPlace { node: 0, gpus: GpuPlace::Whole { mask: 1 } };
        let plan = crate::fleet::Plan { gang: gang(3, v100), places: vec![elsewhere], victims: vec![] };
        assert!(fleet.check(&plan).is_err(), "a plan for another model does not hold");
    }
}

/// F of a node by its definition: over specs, what of the free GPUs each cannot use.
fn fragmentation_by_definition(node: &NodeState, specs: &[(PodRequest, u64)]) -> u64 {
    let all: u64 = node.gpus.iter().map(|gpu| u64::from(gpu.free())).sum();
    let of_spec = |pod: &PodRequest| {
        let (count, least) = match pod.gpus {
            GpuRequest::Whole(gpus) => (usize::from(gpus), 1_000),
            GpuRequest::Share(milli) => (1, milli),
        };
        let enough = node.gpus.iter().filter(|gpu| gpu.free() >= least).count() >= count;
        if count == 0 || !enough || node.free_cpu_milli < pod.cpu_milli || !pod.models.has(node.model) {
            return all;
        }
        node.gpus.iter().filter(|gpu| gpu.free() < least).map(|gpu| u64::from(gpu.free())).sum()
    };
    specs.iter().map(|(pod, count)| of_spec(pod) * count).sum()
}

/// The best place by a look at every GPU of every node.
fn first_by_looking(fleet: &Fleet, pod: &PodRequest, alpha: i64, specs: &[(PodRequest, u64)]) -> Option<PodPlace> {
    let weight = specs.iter().map(|(_, count)| *count).sum::<u64>() as f64;
    let mut seats = Vec::new();
    for (number, node) in fleet.nodes().iter().enumerate() {
        let places: Vec<GpuPlace> = match pod.gpus {
            GpuRequest::Whole(_) => node.place(pod.gpus).into_iter().collect(),
            GpuRequest::Share(milli) => (0..node.gpus.len() as u8).map(|gpu| GpuPlace::Share { gpu, milli }).collect(),
        };
        let takes = node.is_open && !node.is_gone && pod.models.has(node.model) && node.free_cpu_milli >= pod.cpu_milli;
        let after = |place: &GpuPlace| {
            let mut after = node.clone();
            after.hold(*place, pod, TaskClass::Hp, true);
            let lost =
                fragmentation_by_definition(node, specs) as f64 - fragmentation_by_definition(&after, specs) as f64;
            let fgd = (100.0 / (1.0 + (-lost / weight / 1_000.0).exp())).floor() as i64;
            let watts = fleet.power[usize::from(node.model)];
            (fgd, watts.watts(node) as i64 - watts.watts(&after) as i64)
        };
        let able: Vec<_> = places.into_iter().filter(|place| takes && node.can_hold(*place)).collect();
        let scores: Vec<(i64, i64)> = able.iter().map(after).collect();
        let Some(fgd) = scores.iter().map(|(fgd, _)| *fgd).max() else { continue };
        let place = able[scores.iter().position(|(score, _)| *score == fgd)?];
        seats.push((fgd, scores.iter().map(|(_, watts)| *watts).max()?, PodPlace { node: number, gpus: place }));
    }
    let (least, most) = (seats.iter().map(|seat| seat.1).min()?, seats.iter().map(|seat| seat.1).max()?);
    let norm = |watts: i64| if most == least { 100 } else { (watts - least) * 100 / (most - least) };
    let value = |(fgd, watts, _): &(i64, i64, PodPlace)| alpha * norm(*watts) + (1_000_000 - alpha) * fgd;
    let best = seats.iter().map(value).max()?;
    seats.iter().find(|seat| value(seat) == best).map(|(.., place)| *place)
}

#[derive(Debug, Clone)]
enum Step {
    Place { shape: usize },
    Finish(usize),
    Open(usize, bool),
    Remove(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (0_usize..6).prop_map(|shape| Step::Place { shape }),
        3 => (0_usize..60).prop_map(Step::Finish),
        1 => (0_usize..6, any::<bool>()).prop_map(|(node, is_open)| Step::Open(node, is_open)),
        1 => (0_usize..6).prop_map(Step::Remove),
    ]
}

fn shapes() -> [PodRequest; 6] {
    [
        pod(GpuRequest::Share(250), 3_000),
        pod(GpuRequest::Share(460), 6_000),
        pod(GpuRequest::Whole(1), 8_000),
        pod(GpuRequest::Whole(4), 16_000),
        pod(GpuRequest::Whole(0), 12_000),
        PodRequest { models: Models::of([1]), ..pod(GpuRequest::Whole(1), 2_000) },
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn what_is_kept_is_what_a_look_at_every_node_would_find(
        nodes in prop::collection::vec((0_u32..9, 1_u64..100), 1..6),
        counts in prop::collection::vec(1_u64..9, 6),
        alpha in prop_oneof![Just(0_u32), Just(100_000), Just(400_000)],
        steps in prop::collection::vec(step(), 1..80),
    ) {
        // Each more frequent than one in twenty, so that all are in the target.
        let specs: Vec<(PodRequest, u64)> = shapes().into_iter().zip(counts.iter().map(|count| count + 9)).collect();
        let of = workload(&specs);
        prop_assert_eq!(of.target().len(), specs.len());
        let rule = ScoreRule::Score(Terms::Mix { alpha_millionths: alpha });
        let nodes: Vec<(u32, u64)> = nodes.into_iter().map(|(gpus, cpus)| (gpus, cpus * 1_000)).collect();
        let mut fleet = fleet(rule, &nodes);
        for (number, step) in steps.into_iter().enumerate() {
            match step {
                Step::Place { shape } => {
                    let expected = first_by_looking(&fleet, &shapes()[shape], i64::from(alpha), &specs);
                    let mut forgetful = fleet.clone();
                    prop_assert_eq!(placed(&mut forgetful, number, shapes()[shape], rule, &of), expected);
                    prop_assert_eq!(placed(&mut fleet, number, shapes()[shape], rule, &of), expected);
                }
                Step::Finish(task) => drop(fleet.finish(&gang(task, shapes()[0]).task)),
                Step::Open(node, is_open) if node < nodes.len() => fleet.open(node, is_open),
                Step::Remove(node) if node < nodes.len() => {
                    let id = NodeId::parse(&format!("node-{node}")).unwrap();
                    if fleet.number_of(&id).is_some() {
                        fleet.remove(node);
                    } else {
                        let (gpus, cpu_milli) = nodes[node];
                        fleet.add(id, gpus, Some(cpu_milli), None).unwrap();
                        fleet.set_model(node, (node % 2) as u8);
                    }
                }
                Step::Open(..) | Step::Remove(_) => {}
            }
            let there = || fleet.nodes().iter().filter(|node| !node.is_gone);
            let watts: u64 = there().map(|node| fleet.power[usize::from(node.model)].watts(node)).sum();
            prop_assert_eq!(fleet.watts(), Some(watts));
            prop_assert_eq!(fleet.used_milli(), there().map(NodeState::used_milli).sum::<u64>());
            let fragmented: u64 = there().map(|node| fragmentation_by_definition(node, &specs)).sum();
            prop_assert_eq!(fleet.fragmentation_milli(of.target()), fragmented / of.target().weight());
        }
    }
}

#[test]
fn a_fleet_that_was_asked_for_more_shapes_than_it_keeps_decides_alike() {
    let of = Workload::default();
    let rule = ScoreRule::BestFit;
    let mut fleet = fleet(rule, &[(8, 96_000); 3]);
    for number in 0..200 {
        let one = pod(GpuRequest::Share(1 + number as u16 % 90), 10 + number as u64);
        let mut forgetful = fleet.clone();
        let expected = placed(&mut forgetful, number, one, rule, &of);
        assert_eq!(placed(&mut fleet, number, one, rule, &of), expected);
    }
}

#[test]
fn with_terms_beside_it_gfs_decides_among_equals() {
    let of = Workload::default();
    // Without a target all nodes are equally fragmented: the fullest comes first, as in GFS.
    let rule = ScoreRule::Beside(Terms::Fgd);
    let mut fleet = fleet(rule, &[(8, 96_000); 3]);
    let on = |fleet: &mut Fleet, number, gpus| {
        placed(fleet, number, pod(GpuRequest::Whole(gpus), 1_000), rule, &of).map(|place| place.node)
    };
    let nodes: Vec<_> =
        [5, 6, 2, 1].into_iter().enumerate().map(|(number, gpus)| on(&mut fleet, number, gpus)).collect();
    assert_eq!(nodes, [Some(0), Some(1), Some(1), Some(0)]);
    // With power before it, the node whose GPUs draw less (the first, then the third) comes first, however empty.
    let rule = ScoreRule::Beside(Terms::Pwr);
    let mut other = self::fleet(rule, &[(8, 96_000); 3]);
    placed(&mut other, 9, pod(GpuRequest::Whole(7), 1_000), ScoreRule::Random { seed: 1 }, &of).unwrap();
    let cheap = placed(&mut other, 1, pod(GpuRequest::Whole(1), 0), rule, &of).unwrap();
    assert_ne!(cheap.node, 1, "V100 draw more than A10");
}
