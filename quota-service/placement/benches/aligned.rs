//! One HP task whose GPUs are to lie in one socket, on 100 full nodes of 8 GPUs (table 3 of the paper on topology-aware
//! preemption), and on 4,278: the decision, beside a look at every set of spot tasks on every node, in the same run. Prints
//! p50 and p99, their part of the budget, and the ratio to that look.

use placement::fleet::{
    EvictionSettings, Fleet, Gang, GpuPlace, GpuRequest, History, Plan, PodPlace, PodRequest, Running, ScoreRule,
    Workload,
};
use placement::topology::{Affinity, Domain, Ruler, Strictness, Topology};
use placement::{Circumstances, Decision, Policy, decide};
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};
use vocab::{NodeId, TaskClass, TaskId, UnixSeconds};

const NOW: UnixSeconds = UnixSeconds::new(1_700_000_000);
/// GPUs of an instance, and of how many on a hundred nodes: HP, HP, spot, spot.
const WORKLOADS: [(u16, usize); 4] = [(8, 20), (4, 40), (2, 200), (1, 80)];

/// A small generator of its own: this bench needs no more than draws that repeat themselves.
struct Draws(u64);

impl Draws {
    fn below(&mut self, most: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % most
    }
}

fn gang(name: &str, class: TaskClass, gpus: u16, affinity: Option<Affinity>) -> Gang {
    let pod = PodRequest { affinity, ..PodRequest::new(GpuRequest::Whole(gpus), u64::from(gpus) * 8_000, 0) };
    Gang { task: TaskId::parse(name).expect("a name"), class, pod, pods: 1 }
}

/// Nodes without an idle GPU: the largest instances first, each on any GPUs of any node with room.
fn filled(hundreds: usize, draws: &mut Draws) -> Fleet {
    let topology = Arc::new(Topology::preset("rtx4090-8").expect("a preset"));
    let mut fleet = Fleet::ordered(EvictionSettings::default(), ScoreRule::Apart).looking_at_topology(true);
    for number in 0..hundreds * 100 {
        let id = NodeId::parse(&format!("node-{number:04}")).expect("a name");
        fleet.add_laid_out(id, 8, (Some(64_000), None), Some(topology.clone())).expect("a new node");
    }
    for (workload, (gpus, count)) in WORKLOADS.into_iter().enumerate() {
        let class = if workload < 2 { TaskClass::Hp } else { TaskClass::Spot };
        for number in 0..count * hundreds {
            let room: Vec<usize> =
                (0..fleet.nodes().len()).filter(|node| u16::from(fleet.nodes()[*node].idle) >= gpus).collect();
            let node = room[draws.below(room.len())];
            let mut idle: Vec<usize> = placement::fleet::numbers(fleet.nodes()[node].idle_mask()).collect();
            let mask = (0..gpus).fold(0, |mask, _| mask | 1 << idle.swap_remove(draws.below(idle.len())));
            let gang = gang(&format!("task-{workload}-{number:05}"), class, gpus, None);
            let places = vec![PodPlace { node, gpus: GpuPlace::Whole { mask } }];
            let started = NOW.plus_s(-(draws.below(3_600) as i64));
            fleet.apply(&Plan { gang, places, victims: Vec::new() }, started, None).expect("idle GPUs");
        }
    }
    fleet
}

/// Victims and waste of the best set of spot tasks, by a look at every set on every node.
fn by_brute_force(fleet: &Fleet, gpus: u16) -> Option<(bool, u32, u64)> {
    let each = fleet.nodes().iter().enumerate().filter_map(|(number, node)| {
        let ruler = Ruler::new(node.topology.as_deref()?, Domain::Socket, gpus);
        let here = |one: &&Running| one.class == TaskClass::Spot && one.places.iter().any(|place| place.node == number);
        let spot: Vec<&Running> = fleet.tasks().values().filter(here).collect();
        let masks: Vec<u64> = spot
            .iter()
            .map(|one| match one.places[0].gpus {
                GpuPlace::Whole { mask } => mask,
                GpuPlace::Share { gpu, .. } => 1 << gpu,
            })
            .collect();
        (0..1_u32 << spot.len())
            .filter_map(|set| {
                let chosen = || placement::fleet::numbers(u64::from(set));
                let freed = chosen().fold(node.idle_mask(), |freed, place| freed | masks[place]);
                let waste = chosen().map(|place| spot[place].waste_milli_gpu_s(NOW)).sum();
                Some((!ruler.best(freed)?.is_aligned(), set.count_ones(), waste))
            })
            .min()
    });
    each.min()
}

fn report(what: &str, mut times: Vec<Duration>, peer: Option<Duration>) -> Duration {
    times.sort_unstable();
    let at = |share: usize| times[times.len() * share / 100];
    let us = |time: Duration| time.as_secs_f64() * 1e6;
    let ratio = peer.map_or_else(String::new, |peer| format!("   1/{:.0} of the look at all", us(peer) / us(at(50))));
    println!(
        "  {what:44} p50 {:9.1} us  p99 {:9.1} us   {:.2} and {:.2} of 100 us and 1 ms{ratio}",
        us(at(50)),
        us(at(99)),
        us(at(50)) / 100.0,
        us(at(99)) / 1_000.0
    );
    at(50)
}

fn main() {
    for (hundreds, clusters) in [(1, 40), (43, 2)] {
        println!("{} full nodes of 8 GPUs, a socket of 4:", hundreds * 100);
        for gpus in [2, 4] {
            let (mut times, mut looks) = (Vec::new(), Vec::new());
            for cluster in 0..clusters {
                let mut fleet = filled(hundreds, &mut Draws(cluster));
                let affinity = Some(Affinity { domain: Domain::Socket, strictness: Strictness::Guaranteed });
                let hp = gang("hp", TaskClass::Hp, gpus, affinity);
                let policy = Policy { topology: true, ..Policy::GFS };
                let history = History { finished: 10_000, evicted: 500 };
                let on = Circumstances {
                    now: NOW,
                    limits: &[],
                    history,
                    policy: &policy,
                    workload: &Workload::default(),
                    may_evict: true,
                };
                let mut victims = Vec::new();
                for _ in 0..50 {
                    let started = Instant::now();
                    let decision = black_box(decide(&mut fleet, &hp, None, &on));
                    times.push(started.elapsed());
                    let Decision::Start { plan, .. } = decision else { panic!("there is an aligned set") };
                    victims = plan.victims;
                }
                let started = Instant::now();
                let best = black_box(by_brute_force(&fleet, gpus));
                looks.push(started.elapsed());
                let waste = victims.iter().map(|task| fleet.tasks()[task].waste_milli_gpu_s(NOW)).sum();
                assert_eq!(best, Some((false, victims.len() as u32, waste)), "both find the same");
            }
            let peer = report(&format!("peer: every set of spot tasks, {gpus} GPUs"), looks, None);
            report(&format!("HP on {gpus} GPUs of one socket, by eviction"), times, Some(peer));
        }
    }
}
