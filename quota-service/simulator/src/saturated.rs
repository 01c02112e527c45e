//! The simulation of the paper on topology-aware preemption (its tables 3 to 5): a cluster that is full, and preemptors
//! that are decided on one by one, each against the same full cluster.

use command_line::{print_json, print_text, say, table};
use placement::fleet::{
    EvictionSettings, Fleet, Gang, GpuPlace, GpuRequest, History, Plan, PodPlace, PodRequest, ScoreRule, Wish, Workload,
};
use placement::{Circumstances, Decision, Policy, decide};
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};
use vocab::{Affinity, Domain, NodeId, Strictness, TaskClass, TaskId, Topology, UnixSeconds};

const NODES: usize = 100;
/// Table 3: name, GPUs of an instance, instances; by falling priority.
const WORKLOADS: [(&str, u16, usize); 4] = [("A", 8, 20), ("B", 4, 40), ("C", 2, 200), ("D", 1, 80)];
/// Table 1: 8 cores with each GPU.
const CPU_MILLI: u64 = 8_000;
const NOW: UnixSeconds = UnixSeconds::new(1_700_000_000);

/// Which GPUs of a node an instance gets when the cluster is filled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Fill {
    /// Any of the idle ones, as after many instances came and went.
    Random,
    /// Those of the lowest numbers.
    Lowest,
}

/// The simulated cluster and jobs.
#[derive(Debug, Clone)]
pub struct Scale {
    pub cycles: u32,
    /// In each cycle.
    pub preemptions: u32,
    /// How many of a hundred are of workload B; the others are of C.
    pub share_of_b: u32,
    pub fill: Fill,
    pub seed: u64,
    pub topology: Arc<Topology>,
}

/// The results of the preemptors of one workload.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Figures {
    pub preemptions: u64,
    /// Those for which a look at every set of GPUs finds an aligned one.
    pub possible: u64,
    pub placed: u64,
    pub aligned: u64,
    pub refused: u64,
    pub hit_rate: f64,
    /// Tasks evicted for one preemptor.
    pub victims_mean: f64,
    /// Of one decision, in millionths of a second.
    pub p50_us: f64,
    pub p90_us: f64,
    pub p99_us: f64,
    #[serde(skip)]
    victims: u64,
    #[serde(skip)]
    times: Vec<Duration>,
}

/// The engine that looks at topology beside the same one that does not, for B, C and both.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Compared {
    pub aware: [Figures; 3],
    pub blind: [Figures; 3],
}

/// Runs all cycles.
///
/// # Errors
/// The topology is not of 8 GPUs.
pub fn run(scale: &Scale) -> Result<Compared, placement::fleet::NodeError> {
    let mut compared = Compared::default();
    let mut draws = ChaCha8Rng::seed_from_u64(scale.seed);
    for _ in 0..scale.cycles {
        let filled = filled(scale.fill, &mut draws);
        // A preemptor, and every job of the same priority or a higher one, cannot be evicted.
        let mut fleets = Vec::new();
        for (preemptor, is_aware) in [(1, true), (1, false), (2, true), (2, false)] {
            fleets.push(fleet(&filled, preemptor, is_aware, &scale.topology)?);
        }
        for number in 0..scale.preemptions {
            let preemptor = if draws.random_range(0..100) < scale.share_of_b { 1 } else { 2 };
            let [aware, blind] = &mut fleets[2 * (preemptor - 1)..2 * preemptor] else { continue };
            let possible = is_possible(aware, &scale.topology, WORKLOADS[preemptor].1);
            for (fleet, figures) in [(aware, &mut compared.aware), (blind, &mut compared.blind)] {
                decided(fleet, preemptor, number, possible, figures);
            }
        }
    }
    compared.aware.iter_mut().chain(&mut compared.blind).for_each(Figures::finish);
    Ok(compared)
}

/// An instance on its GPUs.
struct Instance {
    workload: usize,
    node: usize,
    gpus: u64,
    started: UnixSeconds,
}

/// Table 3, the largest instances first, each on a node drawn from those with room.
fn filled(fill: Fill, draws: &mut ChaCha8Rng) -> Vec<Instance> {
    let (mut idle, mut instances) = (vec![0xff_u64; NODES], Vec::new());
    for (workload, (_, gpus, count)) in WORKLOADS.into_iter().enumerate() {
        for _ in 0..count {
            let with_room: Vec<usize> = (0..NODES).filter(|node| idle[*node].count_ones() >= u32::from(gpus)).collect();
            let node = with_room[draws.random_range(0..with_room.len())];
            let mut numbers: Vec<usize> = placement::fleet::numbers(idle[node]).collect();
            if fill == Fill::Random {
                numbers.shuffle(draws);
            }
            let mask = numbers.into_iter().take(usize::from(gpus)).fold(0, |mask, gpu| mask | 1 << gpu);
            idle[node] &= !mask;
            let started = NOW.plus_s(-draws.random_range(0..3_600));
            instances.push(Instance { workload, node, gpus: mask, started });
        }
    }
    instances
}

fn fleet(
    filled: &[Instance],
    preemptor: usize,
    is_aware: bool,
    topology: &Arc<Topology>,
) -> Result<Fleet, placement::fleet::NodeError> {
    let mut fleet = Fleet::ordered(EvictionSettings::default(), ScoreRule::Apart).looking_at_topology(is_aware);
    for number in 0..NODES {
        let id = NodeId::parse(&format!("node-{number:03}")).expect("a plain name");
        fleet.add_laid_out(id, 8, (Some(8 * CPU_MILLI), None), Some(topology.clone()))?;
    }
    for (number, one) in filled.iter().enumerate() {
        let class = if one.workload <= preemptor { TaskClass::Hp } else { TaskClass::Spot };
        let gang = gang(&format!("{}-{number:03}", WORKLOADS[one.workload].0), class, one.workload, None);
        let places = vec![PodPlace { node: one.node, gpus: GpuPlace::Whole { mask: one.gpus } }];
        fleet.apply(&Plan { gang, places, victims: Vec::new() }, one.started, None).expect("its GPUs are idle");
    }
    Ok(fleet)
}

fn gang(name: &str, class: TaskClass, workload: usize, affinity: Option<Affinity>) -> Gang {
    let gpus = WORKLOADS[workload].1;
    let pod = PodRequest { affinity, ..PodRequest::new(GpuRequest::Whole(gpus), u64::from(gpus) * CPU_MILLI, 0) };
    Gang { task: TaskId::parse(name).expect("a plain name"), class, pod, pods: 1 }
}

/// Whether any set of GPUs that a preemptor could have lies in one socket: by a look at every set on every node.
fn is_possible(fleet: &Fleet, topology: &Topology, gpus: u16) -> bool {
    let sets = |without_hp: u64| (0..=0xff_u64).filter(move |set| set & !without_hp == 0);
    fleet.nodes().iter().any(|node| {
        let mut wide = sets(node.mask(|gpu| gpu.hp == 0)).filter(|set| set.count_ones() == u32::from(gpus));
        wide.any(|set| topology.sockets_of(set).len() == 1)
    })
}

/// Decides on one preemptor, and starts nothing: each is for itself. A hit lies within one socket.
fn decided(fleet: &mut Fleet, preemptor: usize, number: u32, possible: bool, figures: &mut [Figures; 3]) {
    let strictness = if fleet.looks_at_topology() { Strictness::Guaranteed } else { Strictness::BestEffort };
    let affinity = Some(Affinity { domain: Domain::Numa, strictness });
    let gang = gang(&format!("preemptor-{number}"), TaskClass::Hp, preemptor, affinity);
    let policy = Policy { topology: fleet.looks_at_topology(), ..Policy::GFS };
    let on = Circumstances {
        now: NOW,
        limits: &[],
        history: History { finished: 1_000, evicted: 50 },
        policy: &policy,
        workload: &Workload::default(),
        may_evict: true,
    };
    let started = Instant::now();
    let decision = decide(fleet, &gang, None, &on);
    let took = started.elapsed();
    for of in [preemptor - 1, 2] {
        let figures = &mut figures[of];
        figures.preemptions += 1;
        figures.possible += u64::from(possible);
        figures.times.push(took);
        let Decision::Start { plan, .. } = &decision else {
            figures.refused += 1;
            continue;
        };
        let place = plan.places[0];
        let wish = Wish::of(&gang.pod).expect("at least two GPUs");
        let GpuPlace::Whole { mask } = place.gpus else { continue };
        let topology = fleet.nodes()[place.node].topology.as_deref();
        let in_socket = topology.is_some_and(|topology| topology.sockets_of(mask).len() == 1);
        debug_assert!(!in_socket || wish.alignment(topology, place.gpus).is_aligned());
        figures.placed += 1;
        figures.aligned += u64::from(in_socket);
        figures.victims += plan.victims.iter().collect::<BTreeSet<_>>().len() as u64;
    }
}

impl Figures {
    fn finish(&mut self) {
        self.times.sort_unstable();
        let at =
            |share: usize| self.times.get(self.times.len() * share / 100).map_or(0.0, |time| time.as_secs_f64() * 1e6);
        (self.p50_us, self.p90_us, self.p99_us) = (at(50), at(90), at(99));
        self.hit_rate = self.aligned as f64 / self.preemptions.max(1) as f64;
        self.victims_mean = self.victims as f64 / self.placed.max(1) as f64;
    }
}

/// Prints what came of them.
pub fn show(compared: &Compared, json: bool) {
    if json {
        let named = |figures: &[Figures; 3]| -> BTreeMap<&str, Figures> {
            ["B", "C", "all"].into_iter().zip(figures.iter().cloned()).collect()
        };
        print_json(&BTreeMap::from([("aware", named(&compared.aware)), ("blind", named(&compared.blind))]));
        return;
    }
    let header = [
        "engine",
        "workload",
        "preemptors",
        "possible",
        "placed",
        "hits",
        "hit rate",
        "refused",
        "victims",
        "p50 us",
        "p90 us",
        "p99 us",
    ];
    let row = |engine: &str, workload: &str, one: &Figures| {
        let counts = [one.preemptions, one.possible, one.placed, one.aligned].map(|count| count.to_string());
        let mut row = vec![engine.to_owned(), workload.to_owned()];
        row.extend(counts);
        row.extend([format!("{:.4}", one.hit_rate), one.refused.to_string(), format!("{:.2}", one.victims_mean)]);
        row.extend([one.p50_us, one.p90_us, one.p99_us].map(|time| format!("{time:.1}")));
        row
    };
    let engines = [("gfs-topology", &compared.aware), ("gfs", &compared.blind)];
    let rows = engines.into_iter().flat_map(|(engine, figures)| {
        ["B", "C", "all"].into_iter().zip(figures).map(move |(workload, one)| row(engine, workload, one))
    });
    print_text(&table(&header, &rows.collect::<Vec<_>>()));
    say("possible: a look at every set of GPUs finds one in one socket; a hit is placed in one");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scale(seed: u64, fill: Fill) -> Scale {
        let topology = Arc::new(Topology::preset("rtx4090-8").unwrap());
        Scale { cycles: 20, preemptions: 50, share_of_b: 50, fill, seed, topology }
    }

    #[test]
    fn every_preemptor_is_aligned_in_whom_brute_force_finds_a_set_and_none_is_refused() {
        for (seed, fill) in [(0, Fill::Random), (1, Fill::Random), (2, Fill::Lowest)] {
            let Compared { aware, blind } = run(&scale(seed, fill)).unwrap();
            for (one, control) in aware.iter().zip(&blind) {
                assert_eq!((one.aligned, one.placed, one.refused), (one.possible, one.preemptions, 0), "{one:?}");
                assert_eq!((control.placed, one.possible), (control.preemptions, one.preemptions));
                assert!(control.hit_rate < 0.9, "{control:?}");
            }
            assert_eq!(aware[2].preemptions, 1_000);
        }
    }
}
