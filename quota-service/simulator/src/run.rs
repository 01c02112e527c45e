//! One run: events in the order of their time, every decision made by `placement`.

use crate::cpu;
use crate::layout::asked_of;
use crate::predictor::{Forecasts, Oracle, Plan, PredictorKind};
use crate::progress::Progress;
use crate::quota::QuotaLoop;
use crate::tally::{Sample, Summary, Tally};
use crate::witness::Nobody;
pub use crate::witness::Witness;
use crate::world::{Job, World};
use accounts::Accounts;
use datasets::Calendar;
use forecaster::PredictError;
use placement::pool::{Command, Consequences, Fact, Fault, Pool, PoolRules, Report};
use placement::power::{PowerError, PowerTable};
use placement::{Policy, policy::Admission};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::time::Duration;
use vocab::{HorizonHours, PoolId, SECONDS_PER_HOUR, TaskClass, TaskId, UnixSeconds};

/// Why a run broke off.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error(transparent)]
    Forecast(#[from] PredictError),
    #[error("the pool refused what the trace says: {0}")]
    Pool(#[from] Fault),
}

/// Delays and losses of running tasks, beside the policy (DESIGN §5).
#[derive(Debug, Clone, Copy)]
pub struct Losses {
    /// Between two checkpoints of a spot run.
    pub checkpoint_s: i64,
    /// The delay of a restarted run before it works again.
    pub restart_s: i64,
    /// The same for tasks above 8 GPUs.
    pub restart_large_s: i64,
    /// The delay of an elastic task that runs when its pods change.
    pub resize_s: i64,
}

/// Everything that a run depends on beside the world.
#[derive(Debug, Clone)]
pub struct Settings {
    pub policy: Policy,
    pub weights: std::sync::Arc<placement::shares::Weights>,
    pub predictor: PredictorKind,
    pub plan: Plan,
    pub calendar: Calendar,
    pub offered: Vec<HorizonHours>,
    pub losses: Losses,
    pub rules: PoolRules,
    pub power: PowerTable,
    pub quota: crate::quota::QuotaSettings,
    pub seed: u64,
}

impl Settings {
    /// Whether what nodes draw is known, where the policy looks at it.
    ///
    /// # Errors
    /// It is not known of a GPU model of the world.
    pub fn check(&self, world: &World) -> Result<(), PowerError> {
        if !self.policy.score.needs_power() {
            return Ok(());
        }
        world.pools.iter().try_for_each(|(pool, _)| self.power.of(&pool.gpu_model).map(drop))
    }
}

/// A run's figures and its course.
#[derive(Debug, Clone)]
pub struct Outcome {
    pub summary: Summary,
    /// Hour by hour.
    pub course: Vec<Sample>,
    /// Where the GPU time went, by pool and day.
    pub days: crate::statement::Days,
}

/// The coming events, by their time; at the same time in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// Only as it was after so many changes of what the job has.
    Finish {
        job: u32,
        change: u32,
    },
    Checkpoint {
        job: u32,
        run: u32,
    },
    /// A deferral of a pool is over, or victims have left: they may start elsewhere.
    Wake {
        pool: u32,
    },
    Tick,
}

struct Simulation<'a> {
    witness: &'a mut dyn Witness,
    world: &'a World,
    settings: &'a Settings,
    pools: Vec<Pool>,
    accounts: Vec<Accounts>,
    jobs: Vec<Progress>,
    number_of: BTreeMap<&'a TaskId, u32>,
    events: BinaryHeap<Reverse<(i64, Event)>>,
    forecasts: Option<Forecasts>,
    quotas: Vec<QuotaLoop>,
    closed: BTreeMap<i64, Vec<(usize, Vec<placement::pool::HourOfDemand>)>>,
    tally: Tally,
}

/// Runs a world to the end of its last job.
///
/// # Errors
/// A forecast is none; a trace that `World` let through is refused.
pub fn run(world: &World, settings: &Settings) -> Result<Outcome, RunError> {
    run_before(world, settings, &mut Nobody)
}

/// The same before a witness, which changes nothing.
///
/// # Errors
/// As there.
pub fn run_before(world: &World, settings: &Settings, witness: &mut dyn Witness) -> Result<Outcome, RunError> {
    let before = cpu::of_process();
    let mut simulation = Simulation::new(world, settings, witness)?;
    simulation.play()?;
    let train_cpu = simulation.forecasts.as_ref().map_or(Duration::ZERO, |forecasts| forecasts.train_cpu);
    let cpu = cpu::of_process().saturating_sub(before).saturating_sub(train_cpu);
    let rests = simulation.pools.iter().map(Pool::rests).sum();
    let days = simulation.days();
    Ok(Outcome { days, ..simulation.tally.finish(world, cpu, train_cpu, rests) })
}

impl<'a> Simulation<'a> {
    fn new(world: &'a World, settings: &'a Settings, witness: &'a mut dyn Witness) -> Result<Self, RunError> {
        let start = world.jobs.first().map_or(UnixSeconds::new(0), |job| job.request.submitted);
        let mut pools = Vec::new();
        for (id, nodes) in &world.pools {
            let rules = PoolRules { power: settings.power.of(&id.gpu_model).ok(), ..settings.rules };
            let mut pool = Pool::new(settings.policy.seeded(settings.seed), rules);
            for node in nodes {
                let (gpus, cpu_milli) = (node.gpus, node.cpu_milli);
                let topology = node.topology.clone();
                let add = Command::AddNode { node: node.id.clone(), gpus, cpu_milli, memory_mib: None, topology };
                pool.handle(start, &add).1?;
            }
            pools.push(pool.with_weights(settings.weights.clone()));
        }
        world.tell_windows(&mut pools);
        let accounts = pools.iter().map(Accounts::begin).collect();
        let limited = settings.policy.admission == Admission::Quota;
        let forecasts = (limited && matches!(settings.predictor, PredictorKind::Model(_)))
            .then(|| Forecasts::new(settings.plan, world.cluster.clone(), settings.calendar.clone()));
        let oracle = |number: usize| match settings.predictor {
            PredictorKind::Oracle => Some(Oracle::new(&world.hp_steps(number))),
            PredictorKind::Model(_) | PredictorKind::Live | PredictorKind::Jobs => None,
        };
        let limited_pools = if limited { pools.len() } else { 0 };
        let quotas = (0..limited_pools).map(|pool| QuotaLoop::new(settings, start, oracle(pool))).collect();
        let jobs = world.jobs.iter().map(|job| Progress::new(&job.request, job.duration_s)).collect();
        let number_of = world.jobs.iter().zip(0..).map(|(job, number)| (&job.request.gang.task, number)).collect();
        let tally = Tally::new(world, start).weighing(settings.weights.clone());
        let (events, closed) = (BinaryHeap::new(), BTreeMap::new());
        Ok(Self {
            witness,
            world,
            settings,
            pools,
            accounts,
            jobs,
            number_of,
            events,
            forecasts,
            quotas,
            closed,
            tally,
        })
    }

    /// Where the GPU time of each pool went.
    fn days(&self) -> crate::statement::Days {
        let pools = self.world.pools.iter().zip(self.pools.iter().zip(&self.accounts));
        let of = |((id, _), (pool, accounts)): (&(PoolId, _), (&Pool, &Accounts))| {
            let days = accounts.present(pool.now());
            days.into_iter().map(|(day, of_day)| ((id.clone(), day), of_day)).collect::<Vec<_>>()
        };
        pools.flat_map(of).collect()
    }

    fn play(&mut self) -> Result<(), RunError> {
        let Some(first) = self.world.jobs.first() else { return Ok(()) };
        self.events.push(Reverse((first.request.submitted.get(), Event::Tick)));
        let changes = self.world.window_changes(self.settings.rules.grace_s);
        self.events.extend(changes.map(|(pool, at)| Reverse((at.get(), Event::Wake { pool: pool as u32 }))));
        let mut next_job = 0;
        loop {
            let arrival = self.world.jobs.get(next_job).map(|job| job.request.submitted.get());
            let event = self.events.peek().map(|Reverse((at, _))| *at);
            match (arrival, event) {
                (None, None) => return Ok(()),
                (Some(arrival), event) if event.is_none_or(|event| arrival < event) => {
                    self.arrive(next_job)?;
                    next_job += 1;
                }
                _ => {
                    let Some(Reverse((at, event))) = self.events.pop() else { return Ok(()) };
                    self.happen(at, event, next_job < self.world.jobs.len())?;
                }
            }
        }
    }

    fn arrive(&mut self, number: usize) -> Result<(), RunError> {
        let Job { request, .. } = &self.world.jobs[number];
        let at = request.submitted;
        self.jobs[number].queued = at.get();
        let request = asked_of(&self.settings.policy, request);
        let pool = self.world.pool_of[number] as usize;
        self.command(pool, at.get(), &Command::Submit(request))?;
        self.witness.submitted(number as u32, at, &self.pools[pool]);
        Ok(())
    }

    fn happen(&mut self, at: i64, event: Event, more_jobs: bool) -> Result<(), RunError> {
        match event {
            Event::Tick => self.tick(at, more_jobs),
            Event::Wake { pool } => self.command(pool as usize, at, &Command::Pass),
            Event::Finish { job, change } if self.is_present(job, |now| now.changes == change) => self.finish(at, job),
            Event::Checkpoint { job, run } if self.is_present(job, |now| now.runs == run) => {
                self.jobs[job as usize].save(at);
                self.events.push(Reverse((at + self.settings.losses.checkpoint_s, event)));
                let task = self.world.jobs[job as usize].request.gang.task.clone();
                self.command(self.world.pool_of[job as usize] as usize, at, &Command::Save { task })
            }
            // Of a run that was cut.
            Event::Finish { .. } | Event::Checkpoint { .. } => Ok(()),
        }
    }

    fn is_present(&self, job: u32, is_it: impl Fn(&Progress) -> bool) -> bool {
        let progress = &self.jobs[job as usize];
        progress.runs_now && is_it(progress)
    }

    fn finish(&mut self, at: i64, job: u32) -> Result<(), RunError> {
        let Job { request, duration_s } = &self.world.jobs[job as usize];
        let progress = &mut self.jobs[job as usize];
        progress.runs_now = false;
        let task = request.gang.task.clone();
        if self.world.reserved.contains(&task) {
            self.tally.reserved(at, progress.waited_s, progress.held_milli);
        } else {
            self.tally.finished(at, request, progress.waited_s, progress.held_milli);
            self.tally.fairness.ended(request, at - request.submitted.get(), *duration_s);
        }
        self.command(self.world.pool_of[job as usize] as usize, at, &Command::Finish { task })
    }

    fn command(&mut self, pool: usize, at: i64, command: &Command) -> Result<(), RunError> {
        let (report, done) = self.pools[pool].handle(UnixSeconds::new(at), command);
        self.follow(pool, at, report);
        Ok(done?)
    }

    /// Carries the facts over to the jobs.
    fn follow(&mut self, pool: usize, at: i64, report: Report) {
        self.accounts[pool].take(&self.pools[pool], &report);
        let Consequences { ends, demand, .. } = report.consequences;
        for end in &ends {
            let duration_s = self.world.jobs[self.number_of[&end.task] as usize].duration_s;
            self.tally.ended(end, duration_s);
            if let Some(quota) = self.quotas.get_mut(pool) {
                quota.outcome(end);
            }
        }
        if self.forecasts.is_some() && !demand.is_empty() {
            for one in demand {
                let hours = self.closed.entry(one.hour.unix_s()).or_default();
                match hours.last_mut() {
                    Some((of, hours)) if *of == pool => hours.push(one),
                    _ => hours.push((pool, vec![one])),
                }
            }
        }
        for fact in report.facts {
            match fact {
                Fact::Started { task, victims, starts, .. } => {
                    for victim in &victims {
                        self.evicted(at, starts.get(), victim);
                    }
                    self.started(at, starts.get(), &task);
                    self.tally.made_room(!victims.is_empty());
                    if starts.get() > at {
                        self.events.push(Reverse((starts.get(), Event::Wake { pool: pool as u32 })));
                    }
                    let request = &self.world.jobs[self.number_of[&task] as usize].request;
                    self.tally.placed(self.pools[pool].fleet(), request);
                }
                Fact::Cleared { victims, free, .. } => {
                    for victim in &victims {
                        self.evicted(at, free.get(), victim);
                    }
                    self.events.push(Reverse((free.get(), Event::Wake { pool: pool as u32 })));
                }
                Fact::Deferred { until, .. } => {
                    self.tally.deferred();
                    self.events.push(Reverse((until.get(), Event::Wake { pool: pool as u32 })));
                }
                Fact::Resized { task, places, lent, .. } => self.resized(at, &task, (places.len() + lent.len()) as u32),
                _ => {}
            }
        }
    }

    fn started(&mut self, at: i64, starts: i64, task: &TaskId) {
        let number = self.number_of[task];
        self.witness.started(number, UnixSeconds::new(starts));
        let request = &self.world.jobs[number as usize].request;
        let checkpoint_s = self.settings.losses.checkpoint_s;
        let progress = &mut self.jobs[number as usize];
        let work_from = progress.start(request, starts, &self.settings.losses);
        let (finish, change, run) = (progress.end_s(), progress.changes, progress.runs);
        self.events.push(Reverse((finish, Event::Finish { job: number, change })));
        if request.gang.class == TaskClass::Spot && progress.takes_longer_than(checkpoint_s) {
            self.events.push(Reverse((work_from + checkpoint_s, Event::Checkpoint { job: number, run })));
        }
        // The GPUs are in use from now on: until the task starts, its victims leave them.
        self.tally.started(at, request, progress.held_milli);
    }

    fn resized(&mut self, at: i64, task: &TaskId, pods: u32) {
        let number = self.number_of[task];
        let request = &self.world.jobs[number as usize].request;
        let progress = &mut self.jobs[number as usize];
        let before = progress.held_milli;
        progress.resize(request, pods, at, self.settings.losses.resize_s);
        self.tally.resized(at, before, progress.held_milli);
        self.events.push(Reverse((progress.end_s(), Event::Finish { job: number, change: progress.changes })));
    }

    /// Work since the last checkpoint is lost, and the time that its GPUs stand still until it has left.
    fn evicted(&mut self, at: i64, leaves: i64, task: &TaskId) {
        let progress = &mut self.jobs[self.number_of[task] as usize];
        let idle_milli_gpu_s = progress.held_milli * (leaves - at).max(0) as u64;
        let lost_milli_gpu_s = progress.cut(at, leaves) + idle_milli_gpu_s;
        self.tally.evicted(at, progress.held_milli, lost_milli_gpu_s);
    }

    /// Every five minutes: hours that are over teach, and quotas follow.
    fn tick(&mut self, at: i64, more_jobs: bool) -> Result<(), RunError> {
        for pool in 0..self.pools.len() {
            let report = self.pools[pool].pass(UnixSeconds::new(at));
            self.follow(pool, at, report);
        }
        while let Some((hour, hours)) = self.closed.pop_first() {
            self.learn(hour, hours)?;
        }
        for number in 0..self.quotas.len() {
            let pool = &mut self.pools[number];
            let forecasts = self.forecasts.as_mut();
            let limits =
                self.quotas[number].renew(&self.world.pools[number].0, pool, forecasts, UnixSeconds::new(at))?;
            let (report, _) = pool.handle(UnixSeconds::new(at), &Command::SetLimits(limits));
            self.follow(number, at, report);
        }
        for (number, pool) in self.pools.iter().enumerate() {
            self.witness.renewed(number, UnixSeconds::new(at), pool);
        }
        if at.rem_euclid(SECONDS_PER_HOUR) < self.settings.quota.refresh_s {
            let gpus = self.quotas.iter().map(QuotaLoop::quota_gpus).sum();
            let quota = self.quotas.first().map(|first| (gpus, first.eta()));
            let waiting = |class| {
                let all = self.pools.iter().flat_map(Pool::waiting);
                all.filter(|waiting| waiting.request.gang.class == class).count() as u64
            };
            let waiting = [TaskClass::Hp, TaskClass::Spot].map(waiting);
            self.tally.sample(at, self.pools.iter().map(Pool::fleet), waiting, quota);
        }
        let is_alive = more_jobs
            || self.pools.iter().any(|pool| !pool.fleet().tasks().is_empty() || pool.waiting().next().is_some());
        if is_alive {
            self.events.push(Reverse((at + self.settings.quota.refresh_s, Event::Tick)));
        }
        Ok(())
    }

    fn learn(&mut self, hour: i64, hours: Vec<(usize, Vec<placement::pool::HourOfDemand>)>) -> Result<(), RunError> {
        let Some(forecasts) = &mut self.forecasts else { return Ok(()) };
        let Ok(hour) = vocab::HourStart::from_unix_s(hour) else { return Ok(()) };
        let named: Vec<_> = hours.into_iter().map(|(pool, hours)| (self.world.pools[pool].0.clone(), hours)).collect();
        Ok(forecasts.learn(hour, &named)?)
    }
}
