//! The quotas that the service answers are those that the simulator has, on one history of tasks: every bound, eta and quota.

use super::*;
use forecaster::bound::Aggregation;
use placement::fleet::{Gang, GpuRequest, PodRequest};
use placement::pool::{Command, HourOfDemand, Pool, PoolRules, Report, Request};
use placement::{Policy, PoolSettings, Promise, Quota};
use simulator::predictor::{Forecasts, Plan};
use simulator::quota::{QuotaLoop, QuotaSettings};
use std::collections::{BTreeMap, BTreeSet};
use tests::on_both_databases;
use vocab::{HorizonHours, NodeId, Organization, PoolId, TaskClass, TaskId};

on_both_databases![
    kept_promises_sell_alike_in_service_and_simulator,
    under_peak_eta_moves_alike_in_service_and_simulator,
];

const NODES: u32 = 20;
const STEP_S: i64 = 300;

/// The simulator's side of the history.
struct Simulated {
    id: PoolId,
    pool: Pool,
    quota: QuotaLoop,
    forecasts: Forecasts,
    closed: BTreeMap<HourStart, Vec<HourOfDemand>>,
}

/// The compared numbers: hours, bound, inventory, eta, f · η, idle, used, quota, available.
type Seen = (u8, [u64; 7], u32);

fn seen(quotas: &[Quota]) -> Vec<Seen> {
    let one = |quota: &Quota| {
        let amounts = [
            quota.demand_bound,
            quota.inventory,
            quota.scaled_inventory,
            quota.idle,
            quota.used,
            quota.quota,
            quota.available,
        ];
        (quota.hours.get(), amounts.map(MilliGpus::milli), quota.eta.micro())
    };
    quotas.iter().map(one).collect()
}

impl Simulated {
    async fn new(service: &TestService, settings: PoolSettings) -> Self {
        let (now, id) = (service.service.core.clock.now(), pool(POOL));
        let trained = tests::promoted(service.service.core.store.as_ref(), &id.cluster).await;
        let panel = tests::panel(service.service.core.store.as_ref(), &id.cluster, now.hour().unwrap()).await;
        let (rate, offered) = (settings.guarantee_rate, settings.offered_hours.clone());
        let aggregation: Option<Aggregation> = None;
        let kind = ModelKind::LastValue;
        let plan = Plan { kind, horizon: trained.spec.horizon, rate, seed: 1, refit_hours: i64::MAX, aggregation };
        let mut of_pool = Pool::new(Policy::GFS, PoolRules { grace_s: 30, ..PoolRules::default() });
        for number in 0..NODES {
            let node = NodeId::parse(&format!("n{number}")).unwrap();
            let add = Command::AddNode { node, gpus: 8, cpu_milli: None, memory_mib: None, topology: None };
            of_pool.handle(now.plus_s(-STEP_S), &add).1.unwrap();
        }
        let quota = QuotaSettings { pool: settings, refresh_s: STEP_S, eta_fixed: false, live: true, jobs: true };
        Self {
            id,
            pool: of_pool,
            quota: QuotaLoop::begun(quota, offered, service.service.core.started_at),
            forecasts: Forecasts::resumed(plan, panel, trained).unwrap(),
            closed: BTreeMap::new(),
        }
    }

    fn follow(&mut self, report: Report) {
        report.consequences.ends.iter().for_each(|end| self.quota.outcome(end));
        for one in report.consequences.demand.into_iter().filter(|one| one.hour.instant() >= end()) {
            self.closed.entry(one.hour).or_default().push(one);
        }
    }

    fn command(&mut self, now: UnixSeconds, command: &Command) {
        let (report, done) = self.pool.handle(now, command);
        done.unwrap();
        self.follow(report);
    }

    fn pass(&mut self, now: UnixSeconds) {
        let report = self.pool.pass(now);
        self.follow(report);
    }

    fn renew(&mut self, now: UnixSeconds) {
        self.pass(now);
        while let Some((hour, demand)) = self.closed.pop_first() {
            self.forecasts.learn(hour, &[(self.id.clone(), demand)]).unwrap();
        }
        let limits = self.quota.renew(&self.id, &mut self.pool, Some(&mut self.forecasts), now).unwrap();
        self.command(now, &Command::SetLimits(limits));
    }
}

fn request(id: &str, class: TaskClass, pods: u32, hours: Option<u64>, now: UnixSeconds) -> Request {
    let gpus = GpuRequest::of(MilliGpus::from_gpus(8)).unwrap();
    let gang = Gang { task: TaskId::parse(id).unwrap(), class, pod: PodRequest::new(gpus, 0, 0), pods };
    let hours = hours.map(|hours| HorizonHours::new(hours).unwrap());
    let organization = Organization::parse("org-000").unwrap();
    Request { gang, organization, submitted: now, hours, elastic: None }
}

/// The service and the simulator at the beginning of the history.
async fn begin(database: &TestDatabase, promise: Promise) -> (TestService, Simulated) {
    let store = with_usage(database, 500).await;
    promote(store.as_ref(), &cluster("demo"), ModelKind::LastValue, end().hour().unwrap()).await;
    // Each organization has a task before, which stays: every hour is measured whole from the first one on.
    let service = TestService::start(store, end().plus_s(-STEP_S)).await;
    for number in 0..NODES {
        put_node(&service, &format!("n{number}"), false).await;
    }
    let first = service.service.core.clock.now();
    for number in 0..3 {
        let mut body = hp(&format!("base-{number}"), 8.0, 1);
        body["organization"] = format!("org-00{number}").into();
        let _ = submit(&service, &body).await;
    }
    service.pass_s(STEP_S);
    service.renew().await;
    let path = "/v1/pools/demo:A100/settings";
    let mut body = service.get(path).await.expect(200);
    (body["promise"], body["min_outcomes"], body["grace_s"]) = (promise.as_str().into(), 10.into(), 30.into());
    let _ = service.put(path, &body).await.expect(200);
    let settings = PoolSettings { promise, min_outcomes: 10, ..PoolSettings::default() };
    let mut simulated = Simulated::new(&service, settings).await;
    for number in 0..3 {
        let base = request(&format!("base-{number}"), TaskClass::Hp, 1, None, first);
        let organization = Organization::parse(&format!("org-00{number}")).unwrap();
        simulated.command(first, &Command::Submit(Request { organization, ..base }));
    }
    simulated.renew(service.service.core.clock.now());
    (service, simulated)
}

/// Numbers that look drawn and are always the same.
struct Draws(u64);

impl Draws {
    fn below(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % below
    }
}

/// Plays `steps` renewals; answers how many different bounds and etas there were, and how many bounds had a share of the HP jobs.
async fn play(database: &TestDatabase, promise: Promise, steps: usize) -> (usize, usize, usize) {
    let (service, mut simulated) = begin(database, promise).await;
    let mut draws = Draws(11);
    let mut draw = |below: u64| draws.below(below);
    let (mut bounds, mut etas, mut with_jobs) = (BTreeSet::new(), BTreeSet::new(), 0);
    for step in 0..steps {
        let now = service.service.core.clock.now();
        service.service.engine.pass(&cluster("demo")).await.unwrap();
        simulated.pass(now);
        let running = simulated.pool.fleet().tasks().keys().filter(|task| !task.as_str().starts_with("base"));
        let running: Vec<TaskId> = running.cloned().collect();
        if draw(3) == 0 && !running.is_empty() {
            let task = running[draw(running.len() as u64) as usize].clone();
            let _ = tell(&service, task.as_str(), "finish").await.expect(200);
            simulated.command(now, &Command::Finish { task });
        }
        let (id, pods, is_hp) = (format!("task-{step}"), draw(3) as u32 + 1, draw(4) == 0);
        let hours = [None, Some(1), Some(2), Some(4)][draw(4) as usize].filter(|_| !is_hp);
        let body = if is_hp { hp(&id, 8.0, pods) } else { spot(&id, 8.0, pods, hours) };
        let _ = submit(&service, &body).await;
        let class = if is_hp { TaskClass::Hp } else { TaskClass::Spot };
        simulated.command(now, &Command::Submit(request(&id, class, pods, hours, now)));
        service.renew().await;
        simulated.renew(now);
        let published = service.service.quotas.published.load();
        let published = published.pool("demo", "A100").unwrap();
        assert_eq!(published.problem, None, "step {step}");
        let served = published.made_of.as_ref().unwrap();
        assert_eq!(
            seen(&served.quotas),
            seen(simulated.quota.quotas()),
            "step {step}, hours late {}",
            served.hours_late
        );
        let shared = served.moving.iter().flat_map(|moving| &moving.shared);
        with_jobs += shared.filter(|one| one.share > 0.0 && one.jobs_gpus.is_some()).count();
        for quota in &served.quotas {
            bounds.insert(quota.demand_bound);
            etas.insert(quota.eta.micro());
        }
        service.pass_s(STEP_S);
    }
    (bounds.len(), etas.len(), with_jobs)
}

async fn kept_promises_sell_alike_in_service_and_simulator(database: TestDatabase) {
    let (bounds, etas, with_jobs) = play(&database, Promise::Kept, 60 * 12).await;
    assert!(bounds > 100 && etas >= 1 && with_jobs > 500, "{bounds} {etas} {with_jobs}");
}

async fn under_peak_eta_moves_alike_in_service_and_simulator(database: TestDatabase) {
    let (bounds, etas, _) = play(&database, Promise::Peak, 36 * 12).await;
    assert!(bounds > 100 && etas > 1, "{bounds} {etas}");
}
