//! Asks about tasks that wait, and notes when they start.

use super::rivals::{Plans, Waits, number, requested_s};
use super::score::{METHODS, Question};
use crate::run::Witness;
use crate::world::World;
use placement::pool::Pool;
use starts::{LEVELS, PoolFacts, StartExpert};
use vocab::{TaskClass, UnixSeconds};

/// Looks on and asks.
pub struct Watch<'a> {
    world: &'a World,
    plans: Plans<'a>,
    every: u32,
    seed: u64,
    experts: Vec<StartExpert>,
    /// Of each class: waits that are over, and how many tasks had to wait.
    waits: [Waits; 2],
    waited: [u32; 2],
    /// Tasks of each class that came.
    pub came: [u32; 2],
    /// When each job came that had to wait, until it starts.
    since: Vec<Option<UnixSeconds>>,
    /// By job: its question that is open.
    open: Vec<Option<u32>>,
    pub questions: Vec<Question>,
}

impl<'a> Watch<'a> {
    #[must_use]
    pub fn new(world: &'a World, every: u32, seed: u64) -> Self {
        Self {
            world,
            plans: Plans::new(world),
            every,
            seed,
            experts: vec![StartExpert::default(); world.pools.len()],
            waits: Default::default(),
            waited: [0; 2],
            came: [0; 2],
            since: vec![None; world.jobs.len()],
            open: vec![None; world.jobs.len()],
            questions: Vec::new(),
        }
    }

    /// How many tasks of a class had to wait.
    #[must_use]
    pub const fn waited(&self, class: TaskClass) -> u32 {
        self.waited[number(class)]
    }

    fn ask(&mut self, job: u32, at: UnixSeconds, state: &Pool) {
        let request = &self.world.jobs[job as usize].request;
        let (task, class) = (&request.gang.task, request.gang.class);
        // As in the service, the expert has seen the pool at the last renewal.
        let expert = &mut self.experts[self.world.pool_of[job as usize] as usize];
        let begun = crate::cpu::of_process();
        let facts = PoolFacts::of(state);
        let Some(forecast) = expert.of_waiting(&facts, task, self.seed ^ u64::from(job)) else { return };
        let cpu_s = crate::cpu::of_process().saturating_sub(begun).as_secs_f64();
        expert.watch(&facts, task, &forecast);
        let Some(place) = facts.place_of(task) else { return };
        let plan = |stated_s: &dyn Fn(i64) -> i64| self.plans.start_s((&facts, expert), place, stated_s);
        let (planned, exact) = (plan(&requested_s), plan(&|duration_s| duration_s));
        let waits = &self.waits[number(class)];
        let at_levels = |starts: &starts::Starts| LEVELS.map(|level| starts.quantile_s(level));
        let answers: [[f64; LEVELS.len()]; METHODS.len()] = [
            at_levels(&forecast.starts),
            at_levels(&forecast.raw),
            [planned; LEVELS.len()],
            [exact; LEVELS.len()],
            [waits.mean_s(); LEVELS.len()],
            waits.quantiles_s(),
        ];
        self.open[job as usize] = Some(self.questions.len() as u32);
        let gpus_milli = u64::from(request.gang.pod.gpus.milli()) * u64::from(request.gang.pods);
        self.questions.push(Question { job, at, class, gpus_milli, answers, wait_s: None, cpu_s });
    }
}

impl Witness for Watch<'_> {
    fn renewed(&mut self, pool: usize, _: UnixSeconds, state: &Pool) {
        self.experts[pool].observe(&PoolFacts::of(state));
    }

    fn submitted(&mut self, job: u32, at: UnixSeconds, state: &Pool) {
        let gang = &self.world.jobs[job as usize].request.gang;
        let class = number(gang.class);
        self.came[class] += 1;
        if state.waiting_task(&gang.task).is_none() {
            return;
        }
        self.since[job as usize] = Some(at);
        self.waited[class] += 1;
        if self.waited[class].is_multiple_of(self.every) {
            self.ask(job, at, state);
        }
    }

    fn started(&mut self, job: u32, at: UnixSeconds) {
        let gang = &self.world.jobs[job as usize].request.gang;
        if let Some(since) = self.since[job as usize].take() {
            self.waits[number(gang.class)].add(at, at.since_s(since) as f64);
        }
        if let Some(question) = self.open[job as usize].take() {
            self.experts[self.world.pool_of[job as usize] as usize].started(&gang.task, at);
            let question = &mut self.questions[question as usize];
            question.wait_s = Some(at.since_s(question.at) as f64);
        }
    }
}
