//! Turns in a small simulated Slurm: jobs begin by age, and one that a limit holds back lets younger ones pass.

mod retries;

use super::*;
use crate::config::Config;
use crate::limits::{ByName, Tres};
use crate::publish::Counting;
use crate::view::{SpotJob, View};
use connectors::plan::{Basis, Gpus, Planner, Rules};
use connectors::{Offer, Offers};
use placement::{Limit, Stage};
use proptest::prelude::*;
use slurm_records::JobName;
use std::time::{Duration, Instant};
use vocab::MilliGpus;

const NOW: i64 = 1_795_600_000;
const TRES: &str = "gres/gpu:a100";
const LOOK_S: i64 = 2;

#[derive(Debug, Clone, Copy)]
struct Job {
    id: u32,
    qos: usize,
    gpus: u32,
    since: i64,
    lasts_s: i64,
    hold: Hold,
}

/// A Slurm with a connector. Times are seconds from its start.
struct Sim {
    config: Config,
    names: Vec<String>,
    quotas: Vec<u32>,
    limits: Vec<u64>,
    waiting: Vec<Job>,
    running: Vec<(Job, i64)>,
    began: BTreeMap<u32, i64>,
    /// How many jobs of each QOS have begun.
    begun: Vec<u64>,
    planner: Planner,
    turns: Turns,
    start: Instant,
    at: i64,
    ids: u32,
    seed: u64,
    held: Vec<u64>,
    /// The most GPUs of each QOS by a limit of the operator.
    most: BTreeMap<usize, u64>,
    /// Jobs whose nodes are never free.
    stuck: BTreeSet<u32>,
    /// Jobs behind all others.
    nice: BTreeSet<u32>,
    /// GPUs that Slurm counts for a job that names fewer.
    counted: BTreeMap<u32, u64>,
}

impl Sim {
    fn new(quotas: &[u32], raise_after_s: u64) -> Self {
        let names: Vec<String> = (1..=quotas.len()).map(|hours| format!("spot{hours}h")).collect();
        let text: Vec<String> = names.iter().enumerate().map(|(at, name)| format!("{name}={}", at + 1)).collect();
        let config = Config { spot_qos: text.join(",").parse().unwrap(), ..Config::default() };
        let raise_after = Duration::from_secs(raise_after_s);
        let rules =
            Rules { least_change_gpus: 1, least_change_ratio: 0.0, raise_after, looks_within: Duration::from_secs(30) };
        let (limits, begun) = (vec![0; quotas.len()], vec![0; quotas.len()]);
        let (held, most) = (Vec::new(), BTreeMap::new());
        let (waiting, running, began) = (Vec::new(), Vec::new(), BTreeMap::new());
        let (planner, turns, start) = (Planner::new(rules), Turns::default(), Instant::now());
        let quotas = quotas.to_vec();
        Self {
            config,
            names,
            quotas,
            limits,
            waiting,
            running,
            began,
            begun,
            planner,
            turns,
            start,
            at: 0,
            ids: 0,
            seed: 29,
            held,
            most,
            stuck: BTreeSet::new(),
            nice: BTreeSet::new(),
            counted: BTreeMap::new(),
        }
    }

    fn submit(&mut self, qos: usize, gpus: u32, lasts_s: i64, hold: Hold) -> u32 {
        self.ids += 1;
        self.waiting.push(Job { id: self.ids, qos, gpus, since: self.at, lasts_s, hold });
        self.ids
    }

    /// Keeps eight jobs of so many GPUs waiting, of a quarter of a minute each.
    fn fill(&mut self, qos: usize, gpus: u32, hold: Hold) {
        while self.waiting.iter().filter(|job| job.qos == qos && job.gpus == gpus).count() < 8 {
            self.seed = self.seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let lasts_s = 10 + (self.seed >> 33) as i64 % 10;
            self.submit(qos, gpus, lasts_s, hold);
        }
    }

    fn held(&self, qos: usize) -> u64 {
        self.running.iter().filter(|(job, _)| job.qos == qos).map(|(job, _)| u64::from(job.gpus)).sum()
    }

    /// A second of Slurm, and a look where one is due.
    fn step(&mut self) {
        self.at += 1;
        let at = self.at;
        self.running.retain(|(_, ends)| *ends > at);
        let mut waiting = std::mem::take(&mut self.waiting);
        waiting.sort_by_key(|job| self.nice.contains(&job.id));
        for mut job in waiting {
            let after = self.held(job.qos) + self.counted.get(&job.id).copied().unwrap_or(u64::from(job.gpus));
            if matches!(job.hold, Hold::Other) {
                self.waiting.push(job);
                continue;
            }
            job.hold = match self.most.get(&job.qos) {
                _ if after > self.limits[job.qos] => Hold::Limit,
                Some(most) if after > *most => Hold::OtherLimit,
                _ => Hold::Queue,
            };
            if job.hold == Hold::Queue && !self.stuck.contains(&job.id) {
                self.began.insert(job.id, at);
                self.begun[job.qos] += 1;
                self.running.push((job, at + job.lasts_s));
            } else {
                self.waiting.push(job);
            }
        }
        self.held.push((0..self.names.len()).map(|qos| self.held(qos)).sum());
        if at % LOOK_S == 0 {
            self.look();
        }
    }

    fn view(&self) -> View {
        let model = GpuModel::parse("a100").unwrap();
        let time = |at: i64| UnixSeconds::new(NOW + at);
        let spot = self.running.iter().map(|(job, ends)| SpotJob {
            name: JobName::Job(job.id),
            account: "spot".into(),
            qos: self.names[job.qos].as_str().into(),
            gpus: job.gpus,
            eligible: time(job.since),
            started: time(ends - job.lasts_s),
            hours: Some(HorizonHours::new(job.qos as u64 + 1).unwrap()),
            is_suspended: false,
        });
        let queue = self.waiting.iter().map(|job| SpotWaiting {
            name: JobName::Job(job.id),
            qos: self.names[job.qos].as_str().into(),
            task: job.gpus,
            gpus: job.gpus,
            since: time(job.since),
            hold: job.hold,
        });
        let pool =
            PoolView { open_gpus: 1_000, spot: spot.collect(), spot_queue: queue.collect(), ..PoolView::default() };
        View { pools: [(model.clone(), pool)].into(), types: [(model, Some("a100".into()))].into(), ..View::default() }
    }

    fn offers(&self) -> Offers {
        let limit = |(at, gpus): (usize, &u32)| Limit {
            hours: HorizonHours::new(at as u64 + 1).unwrap(),
            quota: MilliGpus::from_gpus(*gpus),
        };
        let offer = Offer {
            limits: self.quotas.iter().enumerate().map(limit).collect(),
            bounds: Vec::new(),
            demand: Vec::new(),
            eta: placement::Eta::ONE,
            capacity: MilliGpus::from_gpus(1_000),
            stage: Stage::Fresh,
            computed_at: UnixSeconds::new(NOW),
        };
        Offers { pools: [(GpuModel::parse("a100").unwrap(), offer)].into(), asked_at: None }
    }

    fn look(&mut self) {
        let (view, offers, counting) = (self.view(), self.offers(), Counting::new(&self.config, BTreeMap::new()));
        let each = |at: usize| (self.names[at].clone(), Tres::from([(TRES.to_owned(), self.held(at))]));
        let held: ByName = (0..self.names.len()).map(each).collect();
        let each = |(name, gpus): (&String, &u64)| (name.clone(), Tres::from([(TRES.to_owned(), *gpus)]));
        let stands: ByName = self.names.iter().zip(&self.limits).map(each).collect();
        let (tracked, before) = ([TRES.to_owned()].into(), std::mem::take(&mut self.turns));
        let outside = ByName::new();
        let (config, now) = (&self.config, UnixSeconds::new(NOW + self.at));
        let inputs = Inputs {
            config,
            counting: &counting,
            view: &view,
            held: &held,
            outside: &outside,
            offers: &offers,
            tracked: &tracked,
            stands: &stands,
            turns: &before,
            now,
        };
        let turns = before.clone().after(&inputs);
        let wanted = Inputs { turns: &turns, ..inputs }.wanted();
        let wanted: Gpus = self.names.iter().map(|name| (name.clone(), wanted.limits[name][TRES])).collect();
        let stands: Gpus = self.names.iter().cloned().zip(self.limits.iter().copied()).collect();
        let now = self.start + Duration::from_secs(self.at as u64);
        let plan = self.planner.plan(now, &wanted, |_| Basis::Known, &stands);
        self.planner.wrote(&plan.gpus);
        self.limits = self.names.iter().map(|name| plan.gpus[name]).collect();
        self.turns = turns;
        self.assert_within_the_quotas();
    }

    fn assert_within_the_quotas(&self) {
        for (from, quota) in self.quotas.iter().enumerate() {
            let most = |qos: usize| self.limits[qos].max(self.held(qos));
            let sum: u64 = (from..self.names.len()).map(most).sum();
            let begins = (from..self.names.len()).any(|qos| self.limits[qos] > self.held(qos));
            assert!(!begins || sum <= u64::from(*quota), "{sum} of {quota} at {} s: {:?}", self.at, self.limits);
        }
    }

    /// Seconds with queues of these jobs; answers the mean of the GPUs that are held.
    fn run(&mut self, seconds: i64, queues: &[(usize, u32)]) -> f64 {
        let from = self.held.len();
        for _ in 0..seconds {
            for (qos, gpus) in queues {
                self.fill(*qos, *gpus, Hold::Queue);
            }
            self.step();
        }
        self.held[from..].iter().sum::<u64>() as f64 / (self.held.len() - from) as f64
    }

    /// Seconds that a job waited, or infinitely many.
    fn waited_s(&self, id: u32, since: i64) -> i64 {
        self.began.get(&id).map_or(i64::MAX, |at| at - since)
    }
}

#[test]
fn a_large_job_begins_beside_small_ones_of_its_own_qos() {
    let mut sim = Sim::new(&[12, 12], 3);
    sim.run(60, &[(0, 1), (1, 1)]);
    let (since, large) = (sim.at, sim.submit(1, 8, 20, Hold::Queue));
    let held = sim.run(60, &[(0, 1), (1, 1)]);
    assert!(sim.waited_s(large, since) <= 40, "{}", sim.waited_s(large, since));
    assert!(held >= 8.0, "{held}");
    assert!(sim.run(60, &[(0, 1), (1, 1)]) >= 11.0);
}

#[test]
fn large_jobs_of_three_qos_begin_one_after_the_other_beside_small_ones_in_all() {
    let small = [(0, 1), (1, 1), (2, 1), (3, 1), (4, 1)];
    let mut sim = Sim::new(&[12; 5], 10);
    sim.run(60, &small);
    let since = sim.at;
    let large = [(2, 12), (1, 10), (4, 10)].map(|(qos, gpus)| sim.submit(qos, gpus, 8, Hold::Queue));
    let held = sim.run(180, &small);
    let waited = large.map(|id| sim.waited_s(id, since));
    assert!(waited.iter().all(|waited| *waited <= 150), "{waited:?}");
    assert!(held >= 6.0, "{held}");
}

#[test]
fn endless_queues_of_large_jobs_leave_turns_to_small_ones() {
    let mut sim = Sim::new(&[12, 12, 12], 3);
    sim.run(600, &[(0, 12), (1, 1), (2, 8)]);
    assert!(sim.begun[0] >= 4 && sim.begun[1] >= 40 && sim.begun[2] >= 4, "{:?}", sim.begun);
}

#[test]
fn a_quota_of_one_gpu_goes_round() {
    let mut sim = Sim::new(&[1, 1], 3);
    sim.run(240, &[(0, 1), (1, 1)]);
    assert!(sim.begun.iter().all(|begun| *begun >= 3), "{:?}", sim.begun);
}

#[test]
fn a_qos_whose_jobs_cannot_start_leaves_the_quota_to_the_others() {
    let mut sim = Sim::new(&[12, 12], 3);
    for _ in 0..6 {
        sim.submit(0, 1, 20, Hold::Other);
    }
    sim.submit(0, 14, 20, Hold::Queue);
    sim.run(40, &[(1, 1)]);
    assert!(sim.run(60, &[(1, 1)]) > 11.5);
}

#[test]
fn a_limit_of_the_operator_leaves_the_rest_of_a_part_to_the_others() {
    let mut sim = Sim::new(&[12, 12], 3);
    sim.most.insert(0, 2);
    let small = [(0, 1), (1, 1)];
    sim.run(60, &small);
    let held = sim.run(300, &small);
    assert!(held > 10.5, "{held}: of jobs that are new some are tried");
    assert!(sim.held(0) > 0, "its own jobs go on");
    sim.most.clear();
    sim.run(2 * BELIEVED_S, &small);
    assert_eq!(sim.limits, [6, 6], "the limit is gone");
}

#[test]
fn a_job_that_is_gone_or_held_leaves_its_turn() {
    let mut sim = Sim::new(&[12, 12], 3);
    let small = [(0, 1), (1, 1)];
    sim.run(60, &small);
    let first = sim.submit(1, 12, 20, Hold::Queue);
    let model = GpuModel::parse("a100").unwrap();
    while sim.turns.gpus(&model, "spot2h") != Some(12) {
        sim.run(2, &small);
        assert!(sim.at < 100, "older jobs have begun by then");
    }
    let second = sim.submit(0, 9, 20, Hold::Queue);
    sim.waiting.retain(|job| job.id != first);
    let since = sim.at;
    sim.run(60, &small);
    assert!(sim.waited_s(second, since) <= 50, "{:?}", sim.began.get(&second));
}

proptest! {
    #![proptest_config(ProptestConfig { rng_seed: proptest::test_runner::RngSeed::Fixed(29), cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn each_large_job_begins_in_time_beside_small_ones_of_all_qos(
        quota in 6u32..20, qos in 2usize..5, raise_after_s in 2u64..12,
        large in prop::collection::vec((0usize..5, 2u32..20, 0i64..60), 1..5),
        sizes in prop::collection::vec(1u32..3, 5),
    ) {
        let mut sim = Sim::new(&vec![quota; qos], raise_after_s);
        let queues: Vec<(usize, u32)> = (0..qos).map(|at| (at, sizes[at])).collect();
        sim.run(60, &queues);
        let mut sent = Vec::new();
        for (of, gpus, after_s) in &large {
            sim.run(*after_s, &queues);
            sent.push((sim.at, sim.submit(of % qos, (*gpus).clamp(3, quota), 15, Hold::Queue)));
        }
        sim.run(90 * (large.len() + qos) as i64, &queues);
        for (since, id) in sent {
            prop_assert!(sim.began.contains_key(&id), "{id} waits since {since} s of {}", sim.at);
        }
        let held = sim.run(120, &queues);
        prop_assert!(held >= 0.75 * f64::from(quota) - 1.0, "{held} of {quota}");
    }
}
