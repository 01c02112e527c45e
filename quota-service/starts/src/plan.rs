//! Everything that the futures of one pool share.

use crate::course::Course;
use crate::facts::{PoolFacts, Size, key};
use crate::kind::Kind;
use crate::memory::JobMemory;
use crate::room::Room;
use crate::steps::{HORIZON_S, Steps};
use crate::strata::{Order, Strata};
use forecaster::jobs::{Arrivals, Curve, JobHistory, Survival, WINDOW_S};
use placement::draw::Draw;
use placement::pool::QueueKey;
use std::collections::BTreeMap;
use std::ops::Range;
use vocab::{Organization, TaskClass, UnixSeconds};

/// Ends of so many seconds say how fast jobs end now.
const PACE_WINDOW_S: i64 = 12 * 3_600;
/// GPUs whose jobs ended as expected that the past counts for.
const PACE_PRIOR_GPUS: f64 = 200.0;
/// The scale of the logistic distribution of the logarithm of the pace: jobs that were submitted together last alike, so that
/// many jobs say less than their number.
const PACE_SCALE: f64 = 0.24;

/// How long jobs last, by kind.
pub struct Lifetimes<'a> {
    by_kind: BTreeMap<Kind, (&'a JobHistory, Survival)>,
    /// Of a kind that was not seen.
    unseen: (JobHistory, Survival),
}

impl<'a> Lifetimes<'a> {
    pub fn learn(memory: &'a JobMemory, now: UnixSeconds) -> Self {
        let by_kind =
            memory.histories.iter().map(|(kind, history)| (*kind, (history, Survival::learn(history, None, now))));
        let nothing = JobHistory::default();
        let survival = Survival::learn(&nothing, None, now);
        Self { by_kind: by_kind.collect(), unseen: (nothing, survival) }
    }

    /// Of a kind that was not seen, those of another kind of its class, or of any; and the place of an organization in them.
    fn of(&self, kind: Kind, organization: &Organization) -> (&Survival, u16) {
        let of_class = || self.by_kind.iter().filter(|(other, _)| other.class == kind.class);
        let other = || of_class().chain(&self.by_kind).map(|(_, known)| known).find(|known| known.0.seen().ended > 0);
        let known = self.by_kind.get(&kind).filter(|known| known.0.seen().ended > 0).or_else(other);
        let (history, survival) = known.map_or((&self.unseen.0, &self.unseen.1), |known| (known.0, &known.1));
        (survival, history.group_of(organization))
    }

    /// How much faster than by the hazards of the past jobs ended lately.
    fn pace(&self, now: UnixSeconds) -> f64 {
        let all = self.by_kind.values().map(|(history, survival)| survival.lately(history, now, PACE_WINDOW_S));
        let (ended, expected) = all.fold((0.0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        (ended + PACE_PRIOR_GPUS) / (expected + PACE_PRIOR_GPUS)
    }

    /// By path: how many times as fast as in the past jobs end.
    fn paces(&self, now: UnixSeconds, strata: &Strata, draw: &mut Draw) -> Vec<f64> {
        let (pace, order) = (self.pace(now), strata.order(draw));
        strata.uniform(order).map(|level| pace * (level / (1.0 - level)).powf(PACE_SCALE)).collect()
    }

    /// Arrivals by kind, where they were watched for long enough.
    pub fn arrivals(&self, now: UnixSeconds) -> Vec<(Kind, Arrivals<'_>)> {
        let all = self.by_kind.iter();
        all.filter_map(|(kind, (history, survival))| Some((*kind, Arrivals::of(history, None, survival, now)?)))
            .collect()
    }
}

/// Tasks that ask for the same: where one of them does not start, none does.
#[derive(Debug, Clone, Copy)]
pub struct Group {
    pub key: QueueKey,
    pub is_hp: bool,
    /// Hours of its guarantee; 0 without one.
    pub hours: u8,
    /// The number of limits that its guarantee counts among; none without one.
    pub limits: Option<usize>,
    /// Whether so long a guarantee is offered.
    pub is_offered: bool,
    pub size: Size,
}

/// How long a task goes on.
#[derive(Debug, Clone, Copy)]
pub enum Lasting<'a> {
    /// From its age by a curve, with another draw in each path; `outlived` hazards are behind it.
    Drawn { curve: &'a Curve, outlived: f64, order: Order },
    /// The age at its end is stated, in seconds.
    Stated(f64),
}

/// For how many seconds more tasks run, in the order of the facts: as their owners state it.
#[derive(Debug, Clone)]
pub struct Stated {
    pub running_s: Vec<f64>,
    pub waiting_s: Vec<f64>,
}

/// A task that runs or waits now.
#[derive(Debug, Clone, Copy)]
pub struct Present<'a> {
    pub group: u32,
    pub lasting: Lasting<'a>,
    /// Seconds of work so far, and as far as they would survive an eviction now.
    pub age_s: f32,
    pub saved_s: f32,
}

/// Arrivals of a kind.
pub struct Flow<'a> {
    pub arrivals: &'a Arrivals<'a>,
    /// The group of each.
    pub groups: Vec<u32>,
}

/// The part that all paths share.
pub struct Plan<'a> {
    pub facts: &'a PoolFacts,
    pub strata: Strata,
    /// By path: how many times as fast as in the past jobs end.
    pub paces: Vec<f64>,
    pub steps: Steps,
    pub course: &'a Course,
    pub groups: Vec<Group>,
    /// Groups of equal keys.
    pub blocks: Vec<Range<usize>>,
    /// As it is now.
    pub room: Room,
    pub running: Vec<Present<'a>>,
    pub waiting: Vec<Present<'a>>,
    /// By group: places of waiting tasks that do not rest, in the order of their submission.
    pub queues: Vec<Vec<u32>>,
    pub flows: Vec<Flow<'a>>,
    /// By window and path: where the past of its arrivals begins.
    pub begins: Vec<Vec<UnixSeconds>>,
}

impl<'a> Plan<'a> {
    pub fn new(
        facts: &'a PoolFacts,
        course: &'a Course,
        (memory, lifetimes, arrivals): (&JobMemory, &'a Lifetimes<'a>, &'a [(Kind, Arrivals<'a>)]),
        (paths, seed): (u32, u64),
        stated: Option<&Stated>,
    ) -> Self {
        let (strata, mut draw) = (Strata::new(paths), Draw::new(seed));
        let (groups, numbers) = groups(facts, arrivals);
        let paces = lifetimes.paces(facts.at, &strata, &mut draw);
        let mut presence = Presence::new(facts, lifetimes, (&numbers, stated), (&strata, &mut draw));
        let running = presence.running(memory);
        let waiting = presence.waiting(memory);
        let room = Room::new(facts, |run| !groups[running[run].group as usize].is_hp);
        let queues = queues(facts, &waiting, groups.len());
        let begins = begins(facts, arrivals, &strata, &mut draw);
        let flows = arrivals.iter().map(|of_kind| flow(facts, of_kind, &numbers)).collect();
        let blocks = blocks(&groups);
        Self {
            facts,
            strata,
            steps: Steps::new(),
            course,
            groups,
            blocks,
            room,
            running,
            waiting,
            queues,
            flows,
            begins,
            paces,
        }
    }
}

/// Finds for how long the tasks of now go on, in the order in which they are asked for: each takes a draw.
struct Presence<'p, 'a> {
    facts: &'a PoolFacts,
    lifetimes: &'a Lifetimes<'a>,
    /// By kind and organization, once one was asked for.
    known: Vec<Option<(&'a Survival, u16)>>,
    numbers: &'p BTreeMap<(Kind, Size), u32>,
    stated: Option<&'p Stated>,
    strata: &'p Strata,
    draw: &'p mut Draw,
}

impl<'p, 'a> Presence<'p, 'a> {
    fn new(
        facts: &'a PoolFacts,
        lifetimes: &'a Lifetimes<'a>,
        (numbers, stated): (&'p BTreeMap<(Kind, Size), u32>, Option<&'p Stated>),
        (strata, draw): (&'p Strata, &'p mut Draw),
    ) -> Self {
        let known = vec![None; facts.kinds.len() * facts.organizations.len()];
        Self { facts, lifetimes, known, numbers, stated, strata, draw }
    }

    /// The tasks that run, in the order of the facts.
    fn running(&mut self, memory: &JobMemory) -> Vec<Present<'a>> {
        let (facts, stated) = (self.facts, self.stated);
        let running = facts.running.iter().zip(memory.earlier_s(facts)).enumerate();
        let present = running.map(|(place, (run, earlier_s))| {
            let age_s = earlier_s + facts.at.since_s(run.since).max(0);
            let saved_s = earlier_s + run.saved.since_s(run.since).max(0);
            let lasting = match stated {
                Some(stated) => Lasting::Stated(age_s as f64 + stated.running_s[place]),
                None => self.lasting((run.kind, run.organization), run.size, age_s),
            };
            let group = self.group(run.kind, run.size);
            Present { group, lasting, age_s: age_s as f32, saved_s: saved_s as f32 }
        });
        present.collect()
    }

    /// The tasks that wait, in the order of the facts.
    fn waiting(&mut self, memory: &JobMemory) -> Vec<Present<'a>> {
        let (facts, stated) = (self.facts, self.stated);
        let present = facts.waiting.iter().enumerate().map(|(place, one)| {
            let saved_s = memory.saved_s(one);
            let runs_s = one.runs_s.or_else(|| Some(stated?.waiting_s[place]));
            let lasting = match runs_s {
                Some(runs_s) => Lasting::Stated(saved_s as f64 + runs_s),
                None => self.lasting((one.kind, one.organization), one.size, saved_s),
            };
            let (group, saved_s) = (self.group(one.kind, one.size), saved_s as f32);
            Present { group, lasting, age_s: saved_s, saved_s }
        });
        present.collect()
    }

    fn group(&self, kind: u16, size: Size) -> u32 {
        self.numbers[&(self.facts.kinds[usize::from(kind)], size)]
    }

    fn lasting(&mut self, (kind, organization): (u16, u16), size: Size, age_s: i64) -> Lasting<'a> {
        let (facts, lifetimes) = (self.facts, self.lifetimes);
        let (kind, organization) = (usize::from(kind), usize::from(organization));
        let (survival, place) = *self.known[kind * facts.organizations.len() + organization]
            .get_or_insert_with(|| lifetimes.of(facts.kinds[kind], &facts.organizations[organization]));
        let curve = survival.of(place, u32::try_from(size.milli()).unwrap_or(u32::MAX));
        let outlived = curve.hazard_until(age_s.max(0) as f64);
        Lasting::Drawn { curve, outlived, order: self.strata.order(self.draw) }
    }
}

/// The places of the waiting tasks that do not rest, by group.
fn queues(facts: &PoolFacts, waiting: &[Present<'_>], groups: usize) -> Vec<Vec<u32>> {
    let mut queues = vec![Vec::new(); groups];
    for (place, one) in waiting.iter().enumerate().filter(|(place, _)| facts.waiting[*place].rests_s <= 0) {
        queues[one.group as usize].push(place as u32);
    }
    queues
}

/// The arrivals of a kind, with the group of each.
fn flow<'a>(
    facts: &PoolFacts,
    (kind, arrivals): &'a (Kind, Arrivals<'a>),
    numbers: &BTreeMap<(Kind, Size), u32>,
) -> Flow<'a> {
    let size = |milli: i64| Size::of_milli(milli.unsigned_abs(), facts.node_gpus);
    let groups = arrivals.all().iter().map(|job| numbers[&(*kind, size(job.gpus_milli))]).collect();
    Flow { arrivals, groups }
}

impl Plan<'_> {
    /// The age of a task at its end in a path, in seconds.
    pub fn end_s(&self, lasting: Lasting<'_>, path: u32) -> f64 {
        match lasting {
            Lasting::Drawn { curve, outlived, order } => {
                curve.age_at(outlived + self.strata.exponential(order, path) / self.paces[path as usize])
            }
            Lasting::Stated(end_s) => end_s,
        }
    }

    /// The hours of a group's guarantee; 0 without one.
    pub fn hours_of(&self, group: u32) -> u8 {
        self.groups[group as usize].hours
    }
}

/// All that run, wait or arrive, by their place in the queue; and the number of each.
fn groups(facts: &PoolFacts, arrivals: &[(Kind, Arrivals<'_>)]) -> (Vec<Group>, BTreeMap<(Kind, Size), u32>) {
    let kind = |number: u16| facts.kinds[usize::from(number)];
    let present = facts.running.iter().map(|run| (kind(run.kind), run.size));
    let present = present.chain(facts.waiting.iter().map(|one| (kind(one.kind), one.size)));
    let mut all: Vec<(Kind, Size)> = present.collect();
    for (kind, arrivals) in arrivals {
        let size = |milli: i64| Size::of_milli(milli.unsigned_abs(), facts.node_gpus);
        all.extend(arrivals.all().iter().map(|job| (*kind, size(job.gpus_milli))));
    }
    let order = |(kind, size): &(Kind, Size)| (key(facts.rules.order, *kind, *size), *kind, *size);
    all.sort_unstable_by_key(order);
    all.dedup();
    let group = |(kind, size): &(Kind, Size)| Group {
        key: key(facts.rules.order, *kind, *size),
        is_hp: kind.class == TaskClass::Hp,
        hours: kind.hours.map_or(0, vocab::HorizonHours::get),
        limits: kind.hours.map(|hours| facts.limits.iter().filter(|limit| limit.hours <= hours).count()),
        is_offered: facts.is_offered(*kind),
        size: *size,
    };
    let groups = all.iter().map(group).collect();
    (groups, all.into_iter().zip(0..).collect())
}

fn blocks(groups: &[Group]) -> Vec<Range<usize>> {
    let (mut blocks, mut from) = (Vec::new(), 0);
    for (number, group) in groups.iter().enumerate() {
        if groups.get(number + 1).is_none_or(|next| next.key != group.key) {
            blocks.push(from..number + 1);
            from = number + 1;
        }
    }
    blocks
}

/// Windows follow those of HP, whose arrivals change most, for all kinds alike: what came together comes together again.
fn begins(
    facts: &PoolFacts,
    arrivals: &[(Kind, Arrivals<'_>)],
    strata: &Strata,
    draw: &mut Draw,
) -> Vec<Vec<UnixSeconds>> {
    let Some((_, first)) = arrivals.first() else { return Vec::new() };
    let windows = (0..i64::from(HORIZON_S)).step_by(WINDOW_S as usize);
    windows.map(|after_s| first.begins(facts.at, after_s, strata.uniform(strata.order(draw)))).collect()
}
