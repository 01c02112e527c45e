//! Random histories of a pool against sums that are made of its facts alone, second by second where it matters.

use crate::{Accounts, Day, GpuTime, Month, Prices, Statement};
use placement::fleet::{Gang, GpuPlace, GpuRequest, PodRequest};
use placement::pool::{Command, Elastic, Fact, NodeLoss, Pool, PoolRules, Report, Request};
use placement::{Limit, Policy};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::collections::BTreeMap;
use vocab::{HorizonHours, MilliGpus, NodeId, Organization, PoolId, TaskClass, TaskId, UnixSeconds};

const HISTORIES: u64 = 1_000;
const COMMANDS: usize = 60;
/// Noon of a day: histories of days begin in the middle of one.
const START: i64 = 1_764_072_000;

fn rules(seed: u64) -> PoolRules {
    PoolRules { grace_s: if seed.is_multiple_of(3) { 30 } else { 0 }, ..PoolRules::default() }
}

fn organization(number: u64) -> Organization {
    Organization::parse(&format!("org-{number}")).unwrap()
}

fn request(rng: &mut ChaCha8Rng, number: usize, now: UnixSeconds) -> Request {
    let class = if rng.random_bool(0.4) { TaskClass::Hp } else { TaskClass::Spot };
    let share = rng.random_bool(0.2);
    let gpus = if share { 250 } else { 1_000 * rng.random_range(1..=4) };
    let gpus = GpuRequest::of(MilliGpus::from_milli(gpus).unwrap()).unwrap();
    let pods = if share { 1 } else { rng.random_range(1..=4) };
    let task = TaskId::parse(&format!("t{number}")).unwrap();
    let gang = Gang { task, class, pod: PodRequest::new(gpus, 0, 0), pods };
    let is_spot = class == TaskClass::Spot;
    let hours =
        (is_spot && rng.random_bool(0.7)).then(|| HorizonHours::new([1, 4, 24][rng.random_range(0..3)]).unwrap());
    let elastic =
        (is_spot && pods > 1 && rng.random_bool(0.3)).then(|| Elastic::new(1, pods, pods + 2, None).ok()).flatten();
    Request { gang, organization: organization(rng.random_range(0..4)), submitted: now, hours, elastic }
}

fn command(rng: &mut ChaCha8Rng, pool: &Pool, number: usize) -> Command {
    let running: Vec<&TaskId> = pool.fleet().tasks().keys().collect();
    let one_of =
        |rng: &mut ChaCha8Rng| (!running.is_empty()).then(|| running[rng.random_range(0..running.len())].clone());
    let node = NodeId::parse(&format!("n{}", rng.random_range(0..4))).unwrap();
    match rng.random_range(0..100) {
        0..45 => Command::Submit(request(rng, number, pool.now())),
        45..60 => one_of(rng).map_or(Command::Pass, |task| Command::Finish { task }),
        60..65 => one_of(rng).map_or(Command::Pass, |task| Command::Delete { task }),
        65..75 => one_of(rng).map_or(Command::Pass, |task| Command::Save { task }),
        75..80 => Command::OpenNode { node, is_open: rng.random_bool(0.6) },
        80..84 => {
            let cause = if rng.random_bool(0.5) { NodeLoss::Failed } else { NodeLoss::Drained };
            Command::RemoveNode { node, cause }
        }
        84..90 => Command::AddNode { node, gpus: 8, cpu_milli: None, memory_mib: None, topology: None },
        90..96 => limits(rng),
        _ => Command::Pass,
    }
}

fn limits(rng: &mut ChaCha8Rng) -> Command {
    let most = rng.random_range(0..=32_u32);
    let limit = |(hours, quota)| Limit { hours: HorizonHours::new(hours).unwrap(), quota: MilliGpus::from_gpus(quota) };
    Command::SetLimits([(1, most), (4, most * 3 / 4), (24, most / 2)].map(limit).to_vec())
}

/// A history: the facts at their times, the pool and its accounts.
struct History {
    journal: Vec<(UnixSeconds, Vec<Fact>)>,
    accounts: Accounts,
    end: UnixSeconds,
}

fn history(seed: u64, mut each: impl FnMut(&Pool, &Accounts)) -> History {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut pool = Pool::new(Policy::GFS, rules(seed));
    let mut accounts = Accounts::begin(&pool);
    let (mut journal, mut now) = (Vec::new(), START);
    let mut done = |pool: &mut Pool, accounts: &mut Accounts, now: i64, command: &Command| {
        let (report, _) = pool.handle(UnixSeconds::new(now), command);
        accounts.take(pool, &report);
        let Report { facts, .. } = report;
        journal.push((pool.now(), facts));
    };
    for number in 0..3 {
        let node = NodeId::parse(&format!("n{number}")).unwrap();
        let add = Command::AddNode { node, gpus: 8, cpu_milli: None, memory_mib: None, topology: None };
        done(&mut pool, &mut accounts, now, &add);
    }
    done(&mut pool, &mut accounts, now, &limits(&mut rng));
    for number in 0..COMMANDS {
        let most = if rng.random_bool(0.1) { 90_000 } else { 3_000 };
        now += rng.random_range(0..most);
        let command = command(&mut rng, &pool, number);
        done(&mut pool, &mut accounts, now, &command);
        each(&pool, &accounts);
    }
    // A fact at the end: what ended by itself before it is in the journal's replay, too.
    done(&mut pool, &mut accounts, now, &limits(&mut rng));
    History { journal, accounts, end: UnixSeconds::new(now) }
}

type Places = Vec<(NodeId, GpuPlace)>;

/// GPU time by organization and the capacity over time, from facts alone: no pool, no fleet, no days.
#[derive(Default)]
struct Counted {
    requests: BTreeMap<TaskId, Request>,
    /// Places of running tasks, and since when they have not been counted.
    running: BTreeMap<TaskId, (Places, Places)>,
    nodes: BTreeMap<NodeId, u64>,
    held: BTreeMap<Organization, u64>,
    capacity: u64,
    now: i64,
}

impl Counted {
    fn pass_to(&mut self, now: i64) {
        let seconds = if self.now == 0 { 0 } else { (now - self.now) as u64 };
        self.now = now;
        self.capacity += seconds * 1_000 * self.nodes.values().sum::<u64>();
        for (task, (places, lent)) in &self.running {
            let request = &self.requests[task];
            let milli = u64::from(request.gang.pod.gpus.milli()) * (places.len() + lent.len()) as u64;
            *self.held.entry(request.organization.clone()).or_default() += seconds * milli;
        }
    }

    fn apply(&mut self, fact: &Fact) {
        match fact {
            Fact::NodeAdded { node, gpus, .. } => drop(self.nodes.insert(node.clone(), u64::from(*gpus))),
            Fact::NodeRemoved { node, .. } => {
                self.nodes.remove(node);
                self.running.retain(|_, (places, _)| places.iter().all(|(of, _)| of != node));
            }
            Fact::Submitted { request } => drop(self.requests.insert(request.gang.task.clone(), request.clone())),
            Fact::Started { task, places, victims, .. } => {
                for victim in victims {
                    self.running.remove(victim);
                }
                self.running.insert(task.clone(), (places.clone(), Vec::new()));
            }
            Fact::Resized { task, places, lent, .. } => {
                self.running.insert(task.clone(), (places.clone(), lent.clone()));
            }
            Fact::Ended { task, .. } => drop(self.running.remove(task)),
            _ => {}
        }
    }

    fn of(history: &History) -> Self {
        let mut counted = Self::default();
        for (at, facts) in &history.journal {
            counted.pass_to(at.get());
            for fact in facts {
                counted.apply(fact);
            }
        }
        counted
    }
}

#[test]
fn statements_of_random_histories_sum_to_the_gpu_seconds_of_their_journals() {
    let (mut held, mut handover, mut lost, mut broken, mut kept, mut days) = (0, 0, 0, 0, 0, 0);
    for seed in 0..HISTORIES {
        let history = history(seed, |_, _| {});
        let accounts = history.accounts.present(history.end);
        let counted = Counted::of(&history);
        let mut sums: BTreeMap<Organization, u64> = BTreeMap::new();
        for (day, of_day) in &accounts {
            assert_eq!(of_day.unaccounted(), 0, "seed {seed}, {day}: {of_day:?}");
            for (organization, line) in &of_day.organizations {
                *sums.entry(organization.clone()).or_default() += line.held().milli_gpu_s();
            }
        }
        sums.retain(|_, sum| *sum > 0);
        let expected: BTreeMap<_, _> = counted.held.into_iter().filter(|(_, sum)| *sum > 0).collect();
        assert_eq!(sums, expected, "seed {seed}");
        let capacity: GpuTime = accounts.values().map(|day| day.pool.capacity).sum();
        assert_eq!(capacity.milli_gpu_s(), counted.capacity, "seed {seed}");
        let total = history.accounts.total(history.end);
        assert_eq!(total.line.held().milli_gpu_s(), sums.values().sum::<u64>(), "seed {seed}");
        held += total.line.held().milli_gpu_s();
        handover += total.line.handover.milli_gpu_s();
        lost += total.line.lost().milli_gpu_s();
        broken += total.line.broken.count;
        kept += total.line.kept.count;
        days += accounts.len();
    }
    // The histories have what the sums are about.
    assert!(
        held > 0 && handover > 0 && lost > 0 && broken > 100 && kept > 1_000 && days > 3_000,
        "{broken} {kept} {days}"
    );
}

#[test]
fn a_journal_that_is_read_back_gives_the_same_accounts() {
    for seed in 0..HISTORIES / 4 {
        let history = history(seed, |_, _| {});
        let mut pool = Pool::new(Policy::GFS, rules(seed));
        let mut accounts = Accounts::begin(&pool);
        for (at, facts) in &history.journal {
            for fact in facts {
                let then = pool.apply(*at, fact).unwrap();
                accounts.apply(&pool, fact, &then);
            }
        }
        assert_eq!(accounts.present(history.end), history.accounts.present(history.end), "seed {seed}");
        assert_eq!(accounts.begun(), history.accounts.begun());
    }
}

#[test]
fn accounts_go_on_from_their_parts_as_if_they_had_never_stopped() {
    for seed in 0..HISTORIES / 10 {
        let mut kept: Vec<Accounts> = Vec::new();
        history(seed, |pool, accounts| {
            let restored = Pool::restore(&pool.snapshot(), Policy::GFS, rules(seed)).unwrap();
            kept.push(Accounts::restore(accounts.parts(), &restored).expect("the parts fit the pool"));
            assert_eq!(kept.last(), Some(accounts), "seed {seed}");
        });
        assert_eq!(kept.len(), COMMANDS);
    }
    let history = history(1, |_, _| {});
    let other = Pool::new(Policy::GFS, rules(1));
    assert_eq!(Accounts::restore(history.accounts.parts(), &other), None, "parts of another pool");
}

#[test]
fn days_that_are_over_are_taken_out_once_and_change_no_more() {
    for seed in 0..HISTORIES / 10 {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let whole = history(seed, |_, _| {});
        let mut taken: BTreeMap<Day, crate::DayAccounts> = BTreeMap::new();
        let mut pool = Pool::new(Policy::GFS, rules(seed));
        let mut accounts = Accounts::begin(&pool);
        for (at, facts) in &whole.journal {
            for fact in facts {
                let then = pool.apply(*at, fact).unwrap();
                accounts.apply(&pool, fact, &then);
            }
            if rng.random_bool(0.3) {
                for (day, of_day) in accounts.finished() {
                    assert!(taken.insert(day, of_day).is_none(), "{day} came twice");
                }
            }
        }
        taken.extend(accounts.present(whole.end));
        assert_eq!(taken, whole.accounts.present(whole.end), "seed {seed}");
    }
}

fn spot(name: &str, of: u64, gpus: u64, hours: Option<u64>) -> Command {
    let pod = PodRequest::new(GpuRequest::of(MilliGpus::from_milli(gpus * 1_000).unwrap()).unwrap(), 0, 0);
    let class = if name.starts_with("hp") { TaskClass::Hp } else { TaskClass::Spot };
    let gang = Gang { task: TaskId::parse(name).unwrap(), class, pod, pods: 1 };
    let hours = hours.map(|hours| HorizonHours::new(hours).unwrap());
    Command::Submit(Request {
        gang,
        organization: organization(of),
        submitted: UnixSeconds::new(0),
        hours,
        elastic: None,
    })
}

/// A node of 8 GPUs with a quota of 6, and its commands at seconds from a midnight.
fn played(grace_s: i64, commands: &[(i64, Command)]) -> (Accounts, UnixSeconds) {
    let midnight = Day::of(UnixSeconds::new(START)).next().begin();
    let mut pool = Pool::new(Policy::GFS, PoolRules { grace_s, ..PoolRules::default() });
    let mut accounts = Accounts::begin(&pool);
    let node = NodeId::parse("n1").unwrap();
    let add = Command::AddNode { node, gpus: 8, cpu_milli: None, memory_mib: None, topology: None };
    let limit = |hours| Limit { hours: HorizonHours::new(hours).unwrap(), quota: MilliGpus::from_gpus(6) };
    let begin = commands.first().map_or(0, |(at, _)| *at);
    let first = [(begin, add), (begin, Command::SetLimits([1, 4].map(limit).to_vec()))];
    let mut end = midnight;
    for (at, command) in first.iter().chain(commands) {
        end = midnight.plus_s(*at);
        let (report, done) = pool.handle(end, command);
        done.unwrap();
        accounts.take(&pool, &report);
    }
    (accounts, end)
}

fn hours(time: GpuTime) -> f64 {
    time.gpu_hours()
}

#[test]
fn an_evicted_promise_is_broken_its_work_lost_and_its_preemptor_named() {
    let hour = 3_600;
    let saved = Command::Save { task: TaskId::parse("sweep").unwrap() };
    let (accounts, end) = played(
        60,
        &[
            (-2 * hour, spot("sweep", 1, 6, Some(4))),
            (-hour, saved),
            (hour, spot("hp-1", 2, 8, None)),
            (2 * hour, Command::Pass),
        ],
    );
    let days: Vec<_> = accounts.present(end).into_values().collect();
    let (before, after) = (&days[0].organizations[&organization(1)], &days[1].organizations[&organization(1)]);
    assert_eq!([before.guaranteed, after.guaranteed].map(hours), [12.0, 6.0], "two hours before midnight, one after");
    assert_eq!((hours(after.lost_to_evictions), hours(before.lost())), (12.0, 0.0), "two hours since its checkpoint");
    assert_eq!((after.broken.count, hours(after.sold()), hours(after.broken.served)), (1, 24.0, 18.0));
    let caused = after.evicted_by[&organization(2)];
    assert_eq!((caused.evictions, caused.broken, hours(caused.lost)), (1, 1, 12.0));
    let newcomer = &days[1].organizations[&organization(2)];
    assert_eq!((newcomer.handover, hours(newcomer.held())), (GpuTime::of(8_000, 60), 8.0), "a minute of grace");
    assert_eq!(hours(days[0].pool.idle()), 4.0);
}

#[test]
fn idle_gpus_are_those_that_the_quota_offers_and_those_that_it_keeps() {
    let hour = 3_600;
    // 8 GPUs, a quota of 6: 2 are kept for HP. A promise of one hour on 4 leaves 2 to be offered, then 4 that are held at will.
    let (accounts, end) = played(0, &[(0, spot("sweep", 1, 4, Some(1))), (2 * hour, Command::Pass)]);
    let days: Vec<_> = accounts.present(end).into_values().collect();
    let line = &days[0].organizations[&organization(1)];
    assert_eq!([line.guaranteed, line.at_will].map(hours), [4.0, 4.0]);
    assert_eq!([days[0].pool.idle_offered, days[0].pool.idle_reserved].map(hours), [2.0 + 4.0, 2.0]);
    assert_eq!(
        (hours(days[0].pool.over_reserved), hours(days[0].pool.capacity)),
        (4.0, 16.0),
        "2 GPUs, 2 hours, no HP"
    );
    assert_eq!((line.kept.count, hours(line.sold())), (1, 4.0));
}

#[test]
fn a_drained_node_is_neither_idle_nor_offered() {
    let drain = Command::OpenNode { node: NodeId::parse("n1").unwrap(), is_open: false };
    let (accounts, end) = played(0, &[(0, spot("sweep", 1, 4, None)), (3_600, drain), (7_200, Command::Pass)]);
    let days: Vec<_> = accounts.present(end).into_values().collect();
    assert_eq!((hours(days[0].pool.drained), hours(days[0].pool.idle()), days[0].unaccounted()), (4.0, 4.0, 0));
}

#[test]
fn a_statement_adds_up_and_names_who_preempts_whom() {
    let pool = PoolId::parse("demo:A100").unwrap();
    let mut days = BTreeMap::new();
    for seed in 0..20 {
        let history = history(seed, |_, _| {});
        for (day, of_day) in history.accounts.present(history.end) {
            *days.entry((pool.clone(), day)).or_insert_with(crate::DayAccounts::default) += &of_day;
        }
    }
    let price = |price| crate::Micros::price(price).unwrap();
    let of_model =
        crate::GpuPrices { hp: price(2.5), guaranteed: price(1.2), at_will: price(0.7), ..Default::default() };
    let prices = Prices { currency: "EUR".to_owned(), default: Some(of_model), models: BTreeMap::new() };
    for daily in [false, true] {
        let statement = Statement::of(&days, &prices, daily);
        let charged: crate::Micros = statement.organizations.iter().map(|row| row.charges.unwrap().total()).sum();
        assert_eq!(charged, statement.pools.iter().map(|row| row.charges.unwrap().total()).sum());
        let held: GpuTime = statement.organizations.iter().map(|row| row.line.held()).sum();
        assert_eq!(held, days.values().map(crate::DayAccounts::held).sum());
        let evictions: u64 = statement.organizations.iter().map(|row| row.line.evictions()).sum();
        assert!(evictions > 0);
        assert_eq!(statement.preemptions.iter().map(|one| one.caused.evictions).sum::<u64>(), evictions);
        let lost: Vec<_> = statement.preemptions.iter().map(|one| one.caused.lost).collect();
        assert!(lost.is_sorted_by(|a, b| a >= b));
        let own = statement.of_organization(&organization(1));
        assert!(own.pools.is_empty() && own.organizations.iter().all(|row| row.organization == organization(1)));
    }
    assert_eq!(Month::of(Day::of(UnixSeconds::new(START))).to_string(), "2025-11");
}
