//! One future of a pool, step by step.

mod admit;
mod runs;

use crate::agenda::Agenda;
use crate::plan::{Group, Plan, Present};
use crate::room::Room;
use crate::steps::Steps;
use forecaster::jobs::WINDOW_S;
use placement::draw::Draw;
use placement::policy::{Admission, Blocking};
use runs::{Item, Run, Runs};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;
use vocab::SECONDS_PER_HOUR;

const NONE: u32 = u32::MAX;

/// The tasks of a group that wait.
#[derive(Debug, Clone, Default)]
struct Line {
    /// Of those that wait now, the next one.
    cursor: usize,
    /// Those that came later or came back: when submitted, and their item.
    later: BinaryHeap<Reverse<(i64, u32)>>,
}

/// The changing part of a future.
#[derive(Debug, Clone)]
struct State {
    room: Room,
    runs: Runs,
    lines: Vec<Line>,
    items: Vec<Item>,
    ends: Agenda,
    /// Ends of guarantees, by the number of limits that they count among.
    lapses: Vec<Agenda>,
    /// Tasks that rest, by the step in which they may start.
    rests: Agenda,
    /// By limit: promised thousandths of a GPU for at least as long.
    promised: Vec<u64>,
    limits: Vec<u64>,
    demand_milli: i64,
    /// The HP task that nodes are kept for: its group, and itself at its head.
    kept_for: Option<(u32, (i64, bool, u32))>,
    /// By waiting task of now: when it starts first, and ends.
    starts_s: Vec<Option<f64>>,
    ends_s: Vec<Option<f64>>,
    step: usize,
}

impl State {
    /// The moment of the facts; nothing ends yet.
    fn of(plan: &Plan<'_>) -> Self {
        let (facts, steps) = (plan.facts, plan.steps.count());
        Self {
            room: plan.room.clone(),
            runs: Runs(Vec::with_capacity(facts.running.len() * 2)),
            lines: plan.groups.iter().map(|_| Line::default()).collect(),
            items: Vec::new(),
            ends: Agenda::new(steps),
            lapses: vec![Agenda::new(steps); facts.limits.len() + 1],
            rests: Agenda::new(steps),
            promised: vec![0; facts.limits.len()],
            limits: facts.limits.iter().map(|limit| limit.quota.milli()).collect(),
            demand_milli: i64::try_from(facts.demand_milli).unwrap_or(i64::MAX / 4),
            kept_for: None,
            starts_s: vec![None; facts.waiting.len()],
            ends_s: vec![None; facts.waiting.len()],
            step: 0,
        }
    }

    /// Becomes another one, in the memory that it has.
    fn become_like(&mut self, other: &Self) {
        self.room.become_like(&other.room);
        self.runs.0.clone_from(&other.runs.0);
        self.lines.clone_from(&other.lines);
        self.items.clone_from(&other.items);
        self.ends.become_like(&other.ends);
        self.lapses.iter_mut().zip(&other.lapses).for_each(|(mine, its)| mine.become_like(its));
        self.rests.become_like(&other.rests);
        self.promised.clone_from(&other.promised);
        self.limits.clone_from(&other.limits);
        self.starts_s.clone_from(&other.starts_s);
        self.ends_s.clone_from(&other.ends_s);
        (self.demand_milli, self.kept_for, self.step) = (other.demand_milli, other.kept_for, other.step);
    }
}

/// When tasks that wait now start first, and end, in seconds.
#[derive(Debug, Clone, Copy)]
pub struct Times<'a> {
    pub starts_s: &'a [Option<f64>],
    pub ends_s: &'a [Option<f64>],
}

/// Futures, one after the other.
pub struct Path<'a> {
    plan: &'a Plan<'a>,
    seed: u64,
    number: u32,
    draw: Draw,
    /// As all begin.
    base: State,
    state: State,
    /// Room for the names of victims.
    victims: Vec<u32>,
}

impl<'a> Path<'a> {
    pub fn new(plan: &'a Plan<'a>, seed: u64) -> Self {
        let base = State::of(plan);
        let (state, draw) = (base.clone(), Draw::new(seed));
        let mut path = Self { plan, seed, number: 0, draw, base, state, victims: Vec::new() };
        path.begin();
        path.base = path.state.clone();
        path
    }

    /// Begins with the tasks that run now, and those that rest.
    fn begin(&mut self) {
        let plan = self.plan;
        for (number, (present, run)) in plan.running.iter().zip(&plan.facts.running).enumerate() {
            let Present { group, age_s, saved_s, .. } = *present;
            if let Some(left_s) = run.guaranteed_s {
                let limits = plan.groups[group as usize].limits.unwrap_or(0);
                self.state.lapses[limits].add(Steps::of(left_s as f64), number as u32);
                self.promise(group, true);
            }
            self.state.runs.0.push(Run {
                waiting: NONE,
                group,
                submitted: run.submitted.get(),
                pods: run.places.clone(),
                age_s,
                from_s: 0.0,
                began_s: 0.0,
                saved_s,
                work_s: 0.0,
                runs: true,
                promised: run.guaranteed_s.is_some(),
            });
        }
        for (place, waiting) in plan.facts.waiting.iter().enumerate().filter(|(_, waiting)| waiting.rests_s > 0) {
            self.state.rests.add(Steps::of(waiting.rests_s as f64), place as u32);
        }
    }

    /// Draws how long each running task goes on in a path.
    fn draw_ends(&mut self, number: u32) {
        let (plan, state) = (self.plan, &mut self.state);
        for (place, (present, run)) in plan.running.iter().zip(&mut state.runs.0).enumerate() {
            let work_s = plan.end_s(present.lasting, number);
            run.work_s = work_s as f32;
            state.ends.add(Steps::of(work_s - f64::from(present.age_s)), place as u32);
        }
    }

    /// Plays a path until `is_done` with the starts and ends of those that wait now, or to the end of time. Answers them.
    pub fn play(&mut self, number: u32, is_done: impl Fn(Times<'_>) -> bool) -> Times<'_> {
        self.number = number;
        self.draw = Draw::new(self.seed ^ u64::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        self.state.become_like(&self.base);
        self.draw_ends(number);
        self.go_on(is_done);
        self.times()
    }

    fn times(&self) -> Times<'_> {
        Times { starts_s: &self.state.starts_s, ends_s: &self.state.ends_s }
    }

    fn go_on(&mut self, is_done: impl Fn(Times<'_>) -> bool) {
        let mut cursors: Vec<Range<usize>> = self.plan.flows.iter().map(|_| 0..0).collect();
        let mut window_s = -WINDOW_S;
        let mut due = Vec::new();
        for step in 0..self.plan.steps.count() {
            self.state.step = step;
            self.end_runs(&mut due);
            self.arrive(&mut cursors, &mut window_s);
            self.renew_limits();
            self.lapse(&mut due);
            self.wake(&mut due);
            self.walk();
            if is_done(self.times()) {
                return;
            }
        }
    }

    /// Rests end.
    fn wake(&mut self, due: &mut Vec<u32>) {
        self.state.rests.drain(self.state.step, due);
        for place in due.iter() {
            let waiting = &self.plan.facts.waiting[*place as usize];
            let (submitted, queued_s) = (waiting.submitted.get(), waiting.queued.since_s(self.plan.facts.at));
            let item = Item { waiting: *place, submitted, queued_s, work_s: None, saved_s: 0.0 };
            let Present { group, saved_s, .. } = self.plan.waiting[*place as usize];
            self.wait(group, Item { saved_s, ..item });
        }
    }

    fn now_s(&self) -> u32 {
        self.plan.steps.end_s(self.state.step)
    }

    fn end_runs(&mut self, due: &mut Vec<u32>) {
        self.state.ends.drain(self.state.step, due);
        for number in due.iter() {
            let Run { runs, waiting, began_s, age_s, work_s, .. } = self.state.runs.0[*number as usize];
            if runs {
                self.stop(*number);
                if waiting != NONE {
                    self.state.ends_s[waiting as usize] = Some(f64::from(began_s + work_s - age_s));
                }
            }
        }
    }

    /// A run ends, or is evicted.
    fn stop(&mut self, number: u32) {
        let run = &mut self.state.runs.0[number as usize];
        let (group, pods, promised) = (run.group, run.pods.clone(), run.promised);
        (run.runs, run.promised) = (false, false);
        let Group { size, is_hp, .. } = self.plan.groups[group as usize];
        self.state.room.give(size, pods, is_hp);
        if promised {
            self.promise(group, false);
        }
        if is_hp {
            self.state.demand_milli -= size.milli() as i64;
        }
    }

    /// Counts a promise among those for as long and shorter.
    fn promise(&mut self, group: u32, adds: bool) {
        let Group { limits, size, .. } = self.plan.groups[group as usize];
        for promised in self.state.promised.iter_mut().take(limits.unwrap_or(0)) {
            *promised = if adds { *promised + size.milli() } else { promised.saturating_sub(size.milli()) };
        }
    }

    fn arrive(&mut self, cursors: &mut [Range<usize>], window_s: &mut i64) {
        let (plan, until_s) = (self.plan, i64::from(self.now_s()));
        let (Some(_), path) = (plan.begins.first(), self.number as usize) else { return };
        while *window_s + WINDOW_S < until_s {
            *window_s += WINDOW_S;
            let begin = plan.begins[(*window_s / WINDOW_S) as usize][path];
            for (cursor, flow) in cursors.iter_mut().zip(&plan.flows) {
                debug_assert!(cursor.start == cursor.end, "all of a window has come before the next one");
                *cursor = flow.arrivals.places(begin);
            }
        }
        let begin = plan.begins[(*window_s / WINDOW_S) as usize][path];
        for (cursor, flow) in cursors.iter_mut().zip(&plan.flows) {
            while let Some(job) = flow.arrivals.all()[cursor.clone()].first() {
                let comes_s = job.at.since_s(begin) + *window_s;
                if comes_s > until_s {
                    break;
                }
                let group = flow.groups[cursor.start];
                cursor.start += 1;
                let work_s = Some(job.run_s(|| -(1.0 - self.draw.unit()).ln()) as f32);
                let submitted = plan.facts.at.get() + comes_s;
                if plan.groups[group as usize].is_hp {
                    self.state.demand_milli += plan.groups[group as usize].size.milli() as i64;
                }
                self.wait(group, Item { waiting: NONE, submitted, queued_s: comes_s, work_s, saved_s: 0.0 });
            }
        }
    }

    fn wait(&mut self, group: u32, item: Item) {
        self.state.lines[group as usize].later.push(Reverse((item.submitted, self.state.items.len() as u32)));
        self.state.items.push(item);
    }

    fn renew_limits(&mut self) {
        let at = (self.state.step, self.now_s());
        for (place, limit) in self.state.limits.iter_mut().enumerate() {
            *limit = self.plan.course.limit_milli(place, self.state.demand_milli, at);
        }
    }

    /// Guarantees end; tasks get another one where the quota has room: all of them where it holds what is promised.
    fn lapse(&mut self, due: &mut Vec<u32>) {
        for count in 0..self.state.lapses.len() {
            let mut both = self.state.promised.iter().zip(&self.state.limits).take(count);
            if count > 0 && both.all(|(promised, limit)| promised <= limit) {
                let hours = self.plan.facts.limits[count - 1].hours;
                let until_s = i64::from(self.now_s()) + hours.seconds();
                self.state.lapses[count].put_off(self.state.step, Steps::of(until_s as f64));
                continue;
            }
            self.state.lapses[count].drain(self.state.step, due);
            for number in due.iter() {
                let run = &mut self.state.runs.0[*number as usize];
                if !run.runs {
                    continue;
                }
                run.promised = false;
                let group = run.group;
                self.promise(group, false);
                if self.is_within_quota(group) {
                    self.guarantee(*number);
                }
            }
        }
    }

    fn guarantee(&mut self, number: u32) {
        let run = &mut self.state.runs.0[number as usize];
        run.promised = true;
        let group = run.group;
        self.promise(group, true);
        let hours = self.plan.hours_of(group);
        let until_s = f64::from(self.now_s()) + (i64::from(hours) * SECONDS_PER_HOUR) as f64;
        let limits = self.plan.groups[group as usize].limits.unwrap_or(0);
        self.state.lapses[limits].add(Steps::of(until_s), number);
    }

    /// Whether a spot task of the group leaves the GPUs that windows keep.
    fn leaves_windows(&self, group: u32) -> bool {
        let kept_milli = self.plan.course.kept_milli(self.state.step);
        kept_milli == 0 || self.plan.groups[group as usize].size.milli() + kept_milli <= self.state.room.idle_milli()
    }

    fn is_within_quota(&self, group: u32) -> bool {
        let Group { limits, size, is_offered, .. } = self.plan.groups[group as usize];
        let Some(limits) = limits.filter(|_| self.plan.facts.rules.admission == Admission::Quota) else { return true };
        let mut both = self.state.promised.iter().zip(&self.state.limits).take(limits);
        is_offered && both.all(|(promised, limit)| promised + size.milli() <= *limit)
    }

    /// Tries waiting tasks in the order of the policy.
    fn walk(&mut self) {
        let plan = self.plan;
        self.try_oldest();
        let mut blocked = [false; 2];
        for block in &plan.blocks {
            let class = usize::from(!plan.groups[block.start].is_hp);
            if blocked[class] {
                continue;
            }
            if self.walk_block(block.clone()) {
                match plan.facts.rules.blocking {
                    Blocking::Nobody => {}
                    Blocking::Class => blocked[class] = true,
                    Blocking::Everybody => return,
                }
            }
        }
    }

    /// Answers whether one of its tasks did not start.
    fn walk_block(&mut self, block: Range<usize>) -> bool {
        let mut open: Vec<u32> = block.map(|group| group as u32).filter(|group| self.head(*group).is_some()).collect();
        let stops_at_first = self.plan.facts.rules.blocking != Blocking::Nobody;
        let mut has_failed = false;
        while let Some((place, group)) =
            (0..open.len()).zip(open.iter().copied()).min_by_key(|(_, group)| self.head(*group))
        {
            if !self.try_head(group) {
                has_failed = true;
                open.swap_remove(place);
                if stops_at_first {
                    return true;
                }
            } else if self.head(group).is_none() {
                open.swap_remove(place);
            }
        }
        has_failed
    }
}
