//! Pods whose GPUs are to lie together, beside a look at every set of tasks and of GPUs.

use super::*;
use crate::topology::{Affinity, Domain, Strictness, Topology};
use std::sync::Arc;

/// Numbers that follow from a seed (SplitMix64).
struct Draws(u64);

impl Draws {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ mixed >> 31) % most
    }

    fn topology(&mut self) -> Arc<Topology> {
        let four = "numa 0 socket 0 gpus 0-1 cores 0; numa 1 socket 0 gpus 2-3 cores 1; numa 2 socket 1 gpus 4-5 cores 2; \
                    numa 3 socket 1 gpus 6-7 cores 3; nvlink 0-3; nvlink 4-7";
        let odd = "numa 0 socket 0 gpus 0-2 cores 0; numa 1 socket 0 gpus 3 cores 1; numa 2 socket 1 gpus 4-5 cores 2; \
                   nvlink 1-2";
        Arc::new(match self.below(4) {
            0 => Topology::preset("rtx4090-8").unwrap(),
            1 => Topology::preset("a100-8").unwrap(),
            2 => Topology::parse(four).unwrap(),
            _ => Topology::parse(odd).unwrap(),
        })
    }

    fn affinity(&mut self) -> Affinity {
        let domain = Domain::ALL[self.below(3) as usize];
        Affinity { domain, strictness: Strictness::ALL[self.below(2) as usize] }
    }
}

fn aware() -> Fleet {
    Fleet::ordered(EvictionSettings::default(), ScoreRule::Apart).looking_at_topology(true)
}

fn add(fleet: &mut Fleet, number: usize, topology: Option<&Arc<Topology>>, cpu_milli: Option<u64>) {
    let gpus = topology.map_or(8, |topology| topology.gpus());
    let id = NodeId::parse(&format!("node-{number}")).unwrap();
    fleet.add_laid_out(id, gpus, (cpu_milli, None), topology.cloned()).unwrap();
}

fn wishing(name: &str, class: TaskClass, gpus: u16, affinity: Option<Affinity>) -> Gang {
    let pod = PodRequest { affinity, ..PodRequest::new(GpuRequest::Whole(gpus), 0, 0) };
    Gang { task: task(name), class, pod, pods: 1 }
}

/// Puts a task on GPUs of a node.
fn put(
    fleet: &mut Fleet,
    name: &str,
    class: TaskClass,
    node: usize,
    gpus: GpuPlace,
    seconds: i64,
) -> Result<(), PlanFault> {
    let request = match gpus {
        GpuPlace::Whole { mask } => GpuRequest::Whole(mask.count_ones() as u16),
        GpuPlace::Share { milli, .. } => GpuRequest::Share(milli),
    };
    let pod = PodRequest::new(request, 1_000, 0);
    let gang = Gang { task: task(name), class, pod, pods: 1 };
    let plan = Plan { gang, places: vec![PodPlace { node, gpus }], victims: Vec::new() };
    fleet.apply(&plan, at(seconds), None).map(drop)
}

const SOCKET: Affinity = Affinity { domain: Domain::Socket, strictness: Strictness::Guaranteed };

fn rtx() -> Arc<Topology> {
    Arc::new(Topology::preset("rtx4090-8").unwrap())
}

#[test]
fn an_aligned_set_is_looked_for_on_every_node_and_taken_where_least_is_left() {
    use TaskClass::{Hp, Spot};
    let mut fleet = aware();
    (0..2).for_each(|number| add(&mut fleet, number, Some(&rtx()), None));
    put(&mut fleet, "a", Spot, 0, GpuPlace::Whole { mask: 0b0111_0110 }, 0).unwrap();
    put(&mut fleet, "b", Spot, 1, GpuPlace::Whole { mask: 0b0000_0011 }, 0).unwrap();
    let place = |fleet: &mut Fleet, gang: &Gang| fleet.plan(gang).map(|plan| plan.places[0]);
    let whole = |node, mask| Some(PodPlace { node, gpus: GpuPlace::Whole { mask } });
    assert_eq!(place(&mut fleet, &wishing("t", Hp, 2, Some(SOCKET))), whole(0, 0b1001), "node 0 is fuller");
    assert_eq!(
        place(&mut fleet, &wishing("t", Hp, 3, Some(SOCKET))),
        whole(1, 0b0111_0000),
        "node 0 has three, not together"
    );
    assert_eq!(place(&mut fleet, &wishing("t", Hp, 3, None)), whole(0, 0b1000_1001), "that is the same to others");
    let best = Affinity { strictness: Strictness::BestEffort, ..SOCKET };
    assert_eq!(
        place(&mut fleet, &wishing("t", Hp, 5, Some(best))),
        whole(1, 0b0111_1100),
        "as good as hardware allows"
    );
    put(&mut fleet, "c", Spot, 1, GpuPlace::Whole { mask: 0b1100_0000 }, 0).unwrap();
    assert_eq!(place(&mut fleet, &wishing("t", Spot, 3, Some(SOCKET))), None);
    assert_eq!(place(&mut fleet, &wishing("t", Spot, 3, Some(best))), whole(0, 0b1000_1001), "the best there is");
}

#[test]
fn the_victims_are_those_whose_gpus_lie_together() {
    use TaskClass::{Hp, Spot};
    let mut fleet = aware();
    add(&mut fleet, 0, Some(&rtx()), None);
    // Young tasks across the sockets lose less than the old ones within one.
    for (name, mask, started) in
        [("young-1", 0b1_0001, 50), ("young-2", 0b10_0010, 50), ("old", 0b1100, 0), ("old-2", 0b1100_0000, 10)]
    {
        put(&mut fleet, name, Spot, 0, GpuPlace::Whole { mask }, started).unwrap();
    }
    let plan = |fleet: &mut Fleet, affinity| {
        let history = History { finished: 100, evicted: 10 };
        let plan =
            fleet.plan_preempting(&wishing("hp", Hp, 2, affinity), at(60), history, &PreemptionSettings::default());
        plan.map(|plan| (plan.victims, plan.places[0].gpus))
    };
    assert_eq!(plan(&mut fleet, None).unwrap().0, [task("young-2")], "who does not care takes the cheapest");
    let (victims, gpus) = plan(&mut fleet, Some(SOCKET)).unwrap();
    assert_eq!(
        (victims, gpus),
        (vec![task("old-2")], GpuPlace::Whole { mask: 0b1100_0000 }),
        "one victim, least waste"
    );
    fleet.finish(&task("young-1"));
    let (victims, _) = plan(&mut fleet, Some(SOCKET)).unwrap();
    assert_eq!(victims, [task("young-2")], "with what is idle already, the youngest will do");
}

#[test]
fn a_policy_that_is_blind_keeps_who_is_guaranteed_waiting_and_a_node_without_topology_too() {
    use TaskClass::Hp;
    let mut blind = Fleet::new(EvictionSettings::default());
    add(&mut blind, 0, Some(&rtx()), None);
    let guaranteed = wishing("t", Hp, 2, Some(SOCKET));
    assert_eq!(blind.plan(&guaranteed), None);
    assert!(
        blind.is_blind_to(&guaranteed) && blind.plan(&wishing("t", Hp, 1, Some(SOCKET))).is_some(),
        "one GPU lies well"
    );
    let best = Affinity { strictness: Strictness::BestEffort, ..SOCKET };
    assert!(blind.plan(&wishing("t", Hp, 2, Some(best))).is_some());
    let mut unknown = aware();
    add(&mut unknown, 0, None, None);
    assert_eq!((unknown.plan(&guaranteed), unknown.could_ever_align(&guaranteed)), (None, false));
    assert!(unknown.plan(&wishing("t", Hp, 2, Some(best))).is_some());
    add(&mut unknown, 1, Some(&rtx()), None);
    assert_eq!(unknown.plan(&guaranteed).unwrap().places[0].node, 1);
}

/// The objective of the brute force: misses the best, parts, sockets; promises; victims; waste; names.
type Price = ([u32; 3], u32, usize, u64, Vec<TaskId>);

/// Parts of the wanted kind and sockets that a set touches, by its NUMA nodes one by one.
fn touched(topology: &Topology, domain: Domain, gpus: u64) -> [u32; 2] {
    let sockets = topology.sockets_of(gpus).len() as u32;
    match domain {
        Domain::Numa => [topology.numa_of(gpus).len() as u32, sockets],
        Domain::Socket => [sockets, 0],
        Domain::NvlinkIsland => {
            let in_islands = topology.islands().iter().filter(|island| *island & gpus != 0);
            let alone = topology.islands().iter().fold(gpus, |rest, island| rest & !island).count_ones();
            [in_islands.count() as u32 + alone, 0]
        }
    }
}

/// The best price over all sets of spot tasks of a node, and all sets of GPUs that are then free.
fn by_brute_force(fleet: &Fleet, number: usize, gang: &Gang, now: UnixSeconds) -> Option<Price> {
    let (node, wish) = (&fleet.nodes()[number], Wish::of(&gang.pod).unwrap());
    let (topology, domain) = (node.topology.as_ref().unwrap(), wish.affinity.domain);
    let sets = |free: u64| {
        (1..1_u64 << node.gpus.len()).filter(move |set| set & !free == 0 && set.count_ones() == u32::from(wish.count))
    };
    let least = if domain == Domain::NvlinkIsland {
        [1, 0]
    } else {
        sets(u64::MAX).map(|set| touched(topology, domain, set)).min()?
    };
    let best = |free: u64| {
        sets(free)
            .map(|set| touched(topology, domain, set))
            .min()
            .map(|touched| if touched == least { [0; 3] } else { [1, touched[0], touched[1]] })
    };
    let by_free: Vec<Option<[u32; 3]>> = (0..1_u64 << node.gpus.len()).map(best).collect();
    let spot: Vec<(&TaskId, &Running)> = fleet
        .tasks()
        .iter()
        .filter(|(_, one)| one.class == TaskClass::Spot && one.places.iter().any(|place| place.node == number))
        .collect();
    let prices = (0..1_u32 << spot.len()).filter_map(|chosen| {
        let gone: Vec<_> =
            spot.iter().enumerate().filter(|(place, _)| chosen >> place & 1 == 1).map(|(_, one)| *one).collect();
        let mut after = node.clone();
        for (_, running) in &gone {
            for place in running.places.iter().filter(|place| place.node == number) {
                after.hold(place.gpus, &running.pod, running.class, false);
            }
        }
        let alignment = by_free[after.idle_mask() as usize].filter(|_| after.has_room_beside_gpus(&gang.pod))?;
        let waste = gone.iter().map(|(_, running)| running.waste_milli_gpu_s(now)).sum();
        let promised = gone.iter().filter(|(_, running)| running.guarantee.is_some()).count() as u32;
        let names = gone.iter().map(|(task, _)| (*task).clone()).collect();
        (!wish.is_guaranteed() || alignment[0] == 0).then_some((alignment, promised, gone.len(), waste, names))
    });
    prices.min()
}

/// A node with up to nine spot tasks, HP, and CPU that may be short; tasks may reach over to a second node.
fn drawn_fleet(draws: &mut Draws) -> Fleet {
    let (mut fleet, topology) = (aware(), draws.topology());
    let cpu_milli = (draws.below(2) == 0).then(|| 9_000 + draws.below(8) * 1_000);
    add(&mut fleet, 0, Some(&topology), cpu_milli);
    add(&mut fleet, 1, Some(&topology), None);
    let gpus = u64::from(topology.gpus());
    for _ in 0..draws.below(14) {
        let class = if draws.below(4) == 0 { TaskClass::Hp } else { TaskClass::Spot };
        let place = |draws: &mut Draws| match draws.below(4) {
            0 => GpuPlace::Share { gpu: draws.below(gpus) as u8, milli: 250 },
            1 => GpuPlace::Whole { mask: 1 << draws.below(gpus) | 1 << draws.below(gpus) },
            _ => GpuPlace::Whole { mask: 1 << draws.below(gpus) },
        };
        let first = place(draws);
        let request = match first {
            GpuPlace::Whole { mask } => GpuRequest::Whole(mask.count_ones() as u16),
            GpuPlace::Share { milli, .. } => GpuRequest::Share(milli),
        };
        let pod = PodRequest::new(request, draws.below(3) * 1_000, 0);
        let reaches = draws.below(5) == 0;
        let places: Vec<PodPlace> = (0..=usize::from(reaches)).map(|node| PodPlace { node, gpus: first }).collect();
        let gang = Gang { task: task(&format!("task-{:02}", draws.below(90))), class, pod, pods: places.len() as u32 };
        let guarantee =
            (class == TaskClass::Spot && draws.below(3) == 0).then(|| Guarantee::from(at(0), HorizonHours::ONE));
        let started = at(-(draws.below(4) as i64) * 60);
        // One that does not fit is left out.
        let _ = fleet.apply(&Plan { gang, places, victims: Vec::new() }, started, guarantee);
    }
    fleet
}

#[test]
fn victims_are_those_of_brute_force_on_ten_thousand_random_nodes() {
    let (mut evicting, mut idle, mut refused, mut seed) = (0, 0, 0, 0);
    while evicting < 10_000 {
        seed += 1;
        let mut draws = Draws(seed);
        let mut fleet = drawn_fleet(&mut draws);
        fleet.open(1, false);
        let gang = Gang {
            pod: PodRequest { cpu_milli: draws.below(9) * 1_000, ..wishing("hp", TaskClass::Hp, 2, None).pod },
            ..wishing("hp", TaskClass::Hp, 2, None)
        };
        let pod = PodRequest {
            gpus: GpuRequest::Whole(2 + draws.below(5) as u16),
            affinity: Some(draws.affinity()),
            ..gang.pod
        };
        let gang = Gang { pod, ..gang };
        let (now, before) = (at(300), fleet.clone());
        let plan = fleet.plan_preempting(&gang, now, History::default(), &PreemptionSettings::default());
        assert_eq!(fleet, before, "seed {seed}");
        let brute = by_brute_force(&fleet, 0, &gang, now);
        let Some(plan) = plan else {
            assert_eq!(brute, None, "seed {seed}: {gang:?}");
            refused += 1;
            continue;
        };
        if plan.victims.is_empty() {
            let wanted = Wish::of(&gang.pod).unwrap();
            assert!(!wanted.is_guaranteed() || brute.is_some_and(|price| price.2 == 0), "seed {seed}");
            idle += 1;
            continue;
        }
        let mut victims = plan.victims.clone();
        victims.sort();
        assert_eq!(Some(victims), brute.map(|price| price.4), "seed {seed}: {gang:?}");
        invariants::plan_keeps_affinity(&fleet, &plan);
        invariants::nobody_is_evicted_in_vain(&fleet, &plan);
        fleet.check(&plan).unwrap();
        evicting += 1;
    }
    assert!(idle > 1_000 && refused > 1_000, "{idle} found idle GPUs, {refused} nothing");
}

#[test]
fn among_many_nodes_the_best_one_of_all_is_found() {
    for seed in 0..1_000 {
        let mut draws = Draws(seed + 500_000);
        let (mut fleet, topology) = (aware(), draws.topology());
        let nodes = 2 + draws.below(5) as usize;
        (0..nodes).for_each(|number| add(&mut fleet, number, Some(&topology), None));
        for number in 0..nodes as u64 * u64::from(topology.gpus()) {
            let (node, gpu) = ((number / u64::from(topology.gpus())) as usize, number % u64::from(topology.gpus()));
            let class = if draws.below(3) == 0 { TaskClass::Hp } else { TaskClass::Spot };
            let mask = 1 << gpu | 1 << draws.below(gpu + 1);
            let _ = put(
                &mut fleet,
                &format!("task-{number:03}"),
                class,
                node,
                GpuPlace::Whole { mask },
                -(draws.below(9) as i64),
            );
        }
        let gang = wishing("hp", TaskClass::Hp, 2 + draws.below(3) as u16, Some(draws.affinity()));
        let plan = fleet.plan_preempting(&gang, at(60), History::default(), &PreemptionSettings::default());
        let prices = (0..nodes).filter_map(|node| Some((by_brute_force(&fleet, node, &gang, at(60))?, node)));
        let order = |(one, a): &(Price, usize), (other, b): &(Price, usize)| {
            let [one, other] = [one, other].map(|price| (price.0, price.1, price.2, price.3));
            one.cmp(&other).then(fleet.key(*a).order(&fleet.key(*b), TaskClass::Hp))
        };
        let best = prices.min_by(order);
        let Some(plan) = plan.filter(|plan| !plan.victims.is_empty()) else { continue };
        let (price, node) = best.unwrap();
        let mut victims = plan.victims.clone();
        victims.sort();
        assert_eq!((victims, plan.places[0].node), (price.4, node), "seed {seed}");
    }
}

fn step(fleet: &mut Fleet, draws: &mut Draws, number: usize, now: UnixSeconds) {
    let class = if draws.below(2) == 0 { TaskClass::Hp } else { TaskClass::Spot };
    let affinity = (draws.below(3) > 0).then(|| draws.affinity());
    let pod = match draws.below(4) {
        0 => GpuRequest::Share(1 + draws.below(999) as u16),
        _ => GpuRequest::Whole(1 + draws.below(8) as u16),
    };
    let pod = PodRequest { affinity, ..PodRequest::new(pod, draws.below(9_000), 0) };
    let gang = Gang { task: task(&format!("task-{number:02}")), class, pod, pods: 1 + draws.below(3) as u32 };
    let guarantee = (class == TaskClass::Spot && draws.below(2) == 0).then(|| Guarantee::from(now, HorizonHours::ONE));
    let before = fleet.clone();
    let idle = fleet.plan(&gang);
    let plan = idle.or_else(|| fleet.plan_preempting(&gang, now, History::default(), &PreemptionSettings::default()));
    assert_eq!(*fleet, before, "planning leaves everything as it was");
    let Some(plan) = plan else { return };
    invariants::plan_keeps_affinity(fleet, &plan);
    invariants::only_spot_is_evicted(fleet, &plan);
    invariants::nobody_is_evicted_in_vain(fleet, &plan);
    fleet.apply(&plan, now, guarantee).unwrap();
}

#[test]
fn through_random_histories_what_is_guaranteed_lies_as_it_was_promised() {
    for seed in 0..3_000 {
        let mut draws = Draws(seed + 900_000);
        let mut fleet = aware();
        for number in 0..=draws.below(4) as usize {
            let topology = (draws.below(5) > 0).then(|| draws.topology());
            add(&mut fleet, number, topology.as_ref(), Some(64_000));
        }
        let mut now = at(0);
        for number in 0..draws.below(40) as usize {
            match draws.below(8) {
                0 => drop(fleet.finish(&task(&format!("task-{:02}", draws.below(40))))),
                1 => fleet.saved(&task(&format!("task-{:02}", draws.below(40))), now),
                2 => {
                    now = now.plus_s(draws.below(3_000) as i64);
                    fleet.pass_to(now);
                    fleet.ended_guarantees(now);
                }
                _ => step(&mut fleet, &mut draws, number, now),
            }
            invariants::no_gpu_is_overused(&fleet);
            invariants::books_balance(&fleet);
            invariants::guaranteed_affinity_is_kept(&fleet);
            let mut counted_again = fleet.clone();
            for node in 0..fleet.nodes().len() {
                let topology = fleet.nodes()[node].topology.clone();
                counted_again.set_topology(node, topology).unwrap();
            }
            assert_eq!(counted_again, fleet, "seed {seed}: who holds what");
        }
    }
}
