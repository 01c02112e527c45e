//! One future of a pool, step by step.

mod admit;

use crate::plan::{Group, Plan, Present};
use crate::room::{Occupants, Room};
use forecaster::jobs::WINDOW_S;
use placement::draw::Draw;
use placement::policy::{Admission, Blocking};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;
use vocab::SECONDS_PER_HOUR;

const NONE: u32 = u32::MAX;

/// A task that waits.
#[derive(Debug, Clone, Copy)]
struct Item {
    /// Among the waiting tasks of now; none for those that come later.
    waiting: u32,
    submitted: i64,
    queued_s: i64,
    /// Seconds of work, and what of it is saved; none until they are drawn.
    work_s: Option<f32>,
    saved_s: f32,
}

/// A task that runs, or ran.
#[derive(Debug, Clone)]
struct Run {
    group: u32,
    submitted: i64,
    pods: Range<u32>,
    /// Age at the time from which it is counted.
    age_s: f32,
    from_s: f32,
    /// Work of it that was saved then.
    saved_s: f32,
    work_s: f32,
    runs: bool,
    promised: bool,
}

/// What runs, for those who look for victims.
struct Runs(Vec<Run>);

impl Occupants for Runs {
    fn stands(&self, run: u32) -> (bool, bool) {
        let run = &self.0[run as usize];
        (run.runs, run.promised)
    }
}

/// Lists by step, linked.
struct Calendar {
    heads: Vec<u32>,
    next: Vec<(u32, u32)>,
}

impl Calendar {
    fn new(steps: usize) -> Self {
        Self { heads: vec![NONE; steps], next: Vec::new() }
    }

    fn add(&mut self, step: Option<usize>, run: u32) {
        if let Some(step) = step {
            let before = std::mem::replace(&mut self.heads[step], self.next.len() as u32);
            self.next.push((run, before));
        }
    }

    fn drain(&mut self, step: usize, runs: &mut Vec<u32>) {
        runs.clear();
        let mut next = std::mem::replace(&mut self.heads[step], NONE);
        while next != NONE {
            let (run, after) = self.next[next as usize];
            runs.push(run);
            next = after;
        }
    }
}

/// The tasks of a group that wait.
#[derive(Debug, Default)]
struct Line {
    /// Of those that wait now, the next one.
    cursor: usize,
    /// Those that came later or came back: when submitted, and their item.
    later: BinaryHeap<Reverse<(i64, u32)>>,
}

/// A future while it is played.
pub struct Path<'a> {
    plan: &'a Plan<'a>,
    number: u32,
    draw: Draw,
    room: Room,
    runs: Runs,
    lines: Vec<Line>,
    items: Vec<Item>,
    ends: Calendar,
    lapses: Calendar,
    /// Tasks that rest, by the step in which they may start.
    rests: Calendar,
    /// By limit: promised thousandths of a GPU for at least as long.
    promised: Vec<u64>,
    limits: Vec<u64>,
    demand_milli: i64,
    /// The HP task that nodes are kept for: its group, and itself at its head.
    kept_for: Option<(u32, (i64, bool, u32))>,
    /// By waiting task of now: when it starts.
    pub starts_s: Vec<Option<f64>>,
    step: usize,
}

impl<'a> Path<'a> {
    pub fn new(plan: &'a Plan<'a>, number: u32, seed: u64) -> Self {
        let (facts, steps) = (plan.facts, plan.steps.count());
        let is_hp = |run: usize| plan.groups[plan.running[run].group as usize].is_hp;
        let mut path = Self {
            plan,
            number,
            draw: Draw::new(seed ^ u64::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15)),
            room: Room::new(facts, |run| !is_hp(run)),
            runs: Runs(Vec::with_capacity(facts.running.len() * 2)),
            lines: plan.groups.iter().map(|_| Line::default()).collect(),
            items: Vec::new(),
            ends: Calendar::new(steps),
            lapses: Calendar::new(steps),
            rests: Calendar::new(steps),
            promised: vec![0; facts.limits.len()],
            limits: facts.limits.iter().map(|limit| limit.quota.milli()).collect(),
            demand_milli: i64::try_from(facts.demand_milli).unwrap_or(i64::MAX / 4),
            kept_for: None,
            starts_s: vec![None; facts.waiting.len()],
            step: 0,
        };
        path.begin();
        path
    }

    /// What runs now, and what rests.
    fn begin(&mut self) {
        let plan = self.plan;
        for (number, Present { group, lasting, age_s, saved_s }) in plan.running.iter().enumerate() {
            let run = &plan.facts.running[number];
            let work_s = plan.end_s(*lasting, self.number);
            let steps = &plan.steps;
            self.ends.add(steps.of((work_s - f64::from(*age_s)).max(0.0)), number as u32);
            if let Some(left_s) = run.guaranteed_s {
                self.lapses.add(steps.of(left_s.max(0) as f64), number as u32);
            }
            self.runs.0.push(Run {
                group: *group,
                submitted: run.submitted.get(),
                pods: run.places.clone(),
                age_s: *age_s,
                from_s: 0.0,
                saved_s: *saved_s,
                work_s: work_s as f32,
                runs: true,
                promised: run.guaranteed_s.is_some(),
            });
            if run.guaranteed_s.is_some() {
                self.promise(*group, true);
            }
        }
        for (place, waiting) in plan.facts.waiting.iter().enumerate().filter(|(_, waiting)| waiting.rests_s > 0) {
            self.rests.add(plan.steps.of(waiting.rests_s as f64), place as u32);
        }
    }

    /// Plays until `is_done` with the starts of those that wait now, or to the end of time.
    pub fn play(&mut self, is_done: impl Fn(&[Option<f64>]) -> bool) {
        let mut cursors: Vec<Range<usize>> = self.plan.flows.iter().map(|_| 0..0).collect();
        let mut window_s = -WINDOW_S;
        let mut due = Vec::new();
        for step in 0..self.plan.steps.count() {
            self.step = step;
            self.end_runs(&mut due);
            self.arrive(&mut cursors, &mut window_s);
            self.renew_limits();
            self.lapse(&mut due);
            self.wake(&mut due);
            self.walk();
            if is_done(&self.starts_s) {
                return;
            }
        }
    }

    /// Rests end.
    fn wake(&mut self, due: &mut Vec<u32>) {
        self.rests.drain(self.step, due);
        for place in due.iter() {
            let waiting = &self.plan.facts.waiting[*place as usize];
            let (submitted, queued_s) = (waiting.submitted.get(), waiting.queued.since_s(self.plan.facts.at));
            let item = Item { waiting: *place, submitted, queued_s, work_s: None, saved_s: 0.0 };
            let Present { group, saved_s, .. } = self.plan.waiting[*place as usize];
            self.wait(group, Item { saved_s, ..item });
        }
    }

    fn now_s(&self) -> u32 {
        self.plan.steps.end_s(self.step)
    }

    fn end_runs(&mut self, due: &mut Vec<u32>) {
        self.ends.drain(self.step, due);
        for number in due.iter() {
            if self.runs.0[*number as usize].runs {
                self.stop(*number);
            }
        }
    }

    /// A run ends, or is evicted.
    fn stop(&mut self, number: u32) {
        let run = &mut self.runs.0[number as usize];
        let (group, pods, promised) = (run.group, run.pods.clone(), run.promised);
        (run.runs, run.promised) = (false, false);
        let Group { size, is_hp, .. } = self.plan.groups[group as usize];
        self.room.give(size, pods, is_hp);
        if promised {
            self.promise(group, false);
        }
        if is_hp {
            self.demand_milli -= size.milli() as i64;
        }
    }

    /// Counts a promise among those for as long and shorter.
    fn promise(&mut self, group: u32, adds: bool) {
        let Group { limits, size, .. } = self.plan.groups[group as usize];
        for promised in self.promised.iter_mut().take(limits.unwrap_or(0)) {
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
                let draw = -(1.0 - self.draw.unit()).ln();
                let work_s = Some(job.run_s(draw) as f32);
                let submitted = plan.facts.at.get() + comes_s;
                if plan.groups[group as usize].is_hp {
                    self.demand_milli += plan.groups[group as usize].size.milli() as i64;
                }
                self.wait(group, Item { waiting: NONE, submitted, queued_s: comes_s, work_s, saved_s: 0.0 });
            }
        }
    }

    fn wait(&mut self, group: u32, item: Item) {
        self.lines[group as usize].later.push(Reverse((item.submitted, self.items.len() as u32)));
        self.items.push(item);
    }

    fn renew_limits(&mut self) {
        let now_s = self.now_s();
        for (place, limit) in self.limits.iter_mut().enumerate() {
            *limit = self.plan.course.limit_milli(place, self.demand_milli, now_s);
        }
    }

    /// Guarantees end; tasks get another one where the quota has room.
    fn lapse(&mut self, due: &mut Vec<u32>) {
        self.lapses.drain(self.step, due);
        for number in due.iter() {
            let run = &mut self.runs.0[*number as usize];
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

    fn guarantee(&mut self, number: u32) {
        let run = &mut self.runs.0[number as usize];
        run.promised = true;
        let group = run.group;
        self.promise(group, true);
        let hours = self.plan.hours_of(group);
        let until_s = f64::from(self.now_s()) + (i64::from(hours) * SECONDS_PER_HOUR) as f64;
        self.lapses.add(self.plan.steps.of(until_s), number);
    }

    fn is_within_quota(&self, group: u32) -> bool {
        let Group { limits, size, is_offered, .. } = self.plan.groups[group as usize];
        let Some(limits) = limits.filter(|_| self.plan.facts.rules.admission == Admission::Quota) else { return true };
        let mut both = self.promised.iter().zip(&self.limits).take(limits);
        is_offered && both.all(|(promised, limit)| promised + size.milli() <= *limit)
    }

    /// Tries waiting tasks in the order of the policy.
    fn walk(&mut self) {
        let plan = self.plan;
        self.try_kept();
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
        self.keep();
    }

    /// Answers whether one of its tasks did not start.
    fn walk_block(&mut self, block: Range<usize>) -> bool {
        let mut open: Vec<u32> = block.map(|group| group as u32).filter(|group| self.head(*group).is_some()).collect();
        let stops_at_first = self.plan.facts.rules.blocking != Blocking::Nobody;
        let mut has_failed = false;
        while let Some((place, group)) = (0..open.len()).zip(open.iter().copied()).min_by_key(|(_, group)| self.head(*group)) {
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
