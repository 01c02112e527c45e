//! The number of GPUs of each job: greedy growth and partial preemption (Cornucopia's Alg. 2 and 3) as one rule.
//!
//! Every GPU that a job holds is held by a [`Claim`], and the next one that it wants would be. A GPU goes to the strongest
//! claim: the most urgent level, then the largest gain, then the fewest GPUs held. Where none is idle it comes from the
//! weakest claim there is, if that is weaker than the one that wants it, and never from an equal one. So a less urgent job
//! gives before a more urgent one, one that gains little before one that is linear, and of linear jobs the largest (§4.4);
//! and jobs of one level hold what Alg. 2 would hand out if it began again. Among equals the job that stands longer in its queue takes
//! first and gives last.
//!
//! As printed, Alg. 2 does not end where GPUs are left that nobody can use, nor Alg. 3 where nobody is left to give. Here
//! both end: a job's claims only weaken with its GPUs, so that each grant replaces claims of others by a stronger one, and
//! there are finitely many ways to hold finitely many GPUs.

use super::job::{ElasticJob, JobNumber};
use placement::elastic::Scaling;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

/// How urgent a GPU is, the lowest first.
pub type Level = u8;
/// Levels that there may be.
pub const LEVELS: usize = 5;

/// The claim on a GPU, the strongest first: its level, its gain, how many the job holds before it.
type Claim = (Level, Reverse<Scaling>, u32);

/// The levels of a job's GPUs, none of them before the one above it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Standing {
    /// Up to its minimum.
    pub min: Level,
    /// Above that, up to its request.
    pub request: Level,
    /// Above that; none where it gets no more than it asked for.
    pub beyond: Option<Level>,
    /// Whether all its GPUs count alike: then it gets its request before a later job of its level gets any (Alg. 2, line 7).
    pub in_turn: bool,
}

impl Standing {
    fn is_rising(self) -> bool {
        let beyond = self.beyond.unwrap_or(self.request);
        self.min <= self.request && self.request <= beyond && usize::from(beyond) < LEVELS
    }
}

/// The effect of a decision on a job: an eviction where nothing is left, a partial one where something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Change {
    pub job: JobNumber,
    pub from_gpus: u32,
    pub to_gpus: u32,
}

/// A place in a queue: the lower, the longer it is held.
type Place = u64;
/// The jobs that take next, first to last.
type Taker = (Claim, Place, JobNumber);
/// The jobs that give next, last to first.
type Giver = (Claim, Place, JobNumber);

#[derive(Debug, Clone)]
struct Member {
    job: ElasticJob,
    standing: Standing,
    place: Place,
    gpus: u32,
    /// The most GPUs that it has held: so far its profile is measured.
    measured: u32,
}

impl Member {
    /// The claim on the GPU after `gpus`; none where the job gets no such GPU.
    fn claim(&self, gpus: u32) -> Option<Claim> {
        let level = if gpus < self.job.min() {
            self.standing.min
        } else if gpus < self.job.request() {
            self.standing.request
        } else {
            self.standing.beyond?
        };
        if self.standing.in_turn {
            return Some((level, Reverse(Scaling::LINEAR), 0));
        }
        // A minimum is one block, and stands where its first GPU does.
        let before = if gpus < self.job.min() { 0 } else { gpus };
        Some((level, Reverse(self.job.gain(gpus, self.measured)), before))
    }

    /// GPUs that it takes next, all at once.
    fn step(&self) -> u32 {
        self.job.step_up(self.gpus)
    }

    fn taker(&self) -> Option<Taker> {
        let claim = if self.step() == 0 { None } else { self.claim(self.gpus) };
        let gains = |claim: &Claim| claim.1.0 > Scaling::NONE;
        claim.filter(gains).map(|claim| (claim, self.place, self.job.number()))
    }

    /// The last GPU is given, with its own gain. Eq. 1 has one factor for both ways, and so would rob a job at its
    /// bottleneck, where the next GPU is worth little, of one that is worth much.
    fn giver(&self) -> Option<Giver> {
        let last = self.gpus.checked_sub(1)?;
        let held = (self.standing.request, Reverse(Scaling::LINEAR), 0);
        Some((self.claim(last).unwrap_or(held), self.place, self.job.number()))
    }

    /// GPUs held by level, those of the minimum apart.
    fn by_level(&self) -> [(Level, u32); 3] {
        let (min, request) = (self.gpus.min(self.job.min()), self.gpus.min(self.job.request()));
        let Standing { min: first, request: second, beyond, .. } = self.standing;
        [(first, min), (second, request - min), (beyond.unwrap_or(second), self.gpus - request)]
    }
}

/// GPUs held at a level.
#[derive(Debug, Clone, Copy, Default)]
struct Held {
    all: u32,
    /// Those that a whole block of the same level comes before.
    above_min: u32,
}

/// The GPUs of a cluster, by count, and the jobs that hold or want them.
#[derive(Debug, Clone)]
pub struct Allotments {
    idle: u32,
    members: BTreeMap<JobNumber, Member>,
    takers: BTreeSet<Taker>,
    givers: BTreeSet<Giver>,
    held: [Held; LEVELS],
    next_place: Place,
    /// The former GPUs of jobs whose GPUs changed since the last [`Self::settle`].
    before: BTreeMap<JobNumber, u32>,
    /// Those that have run on other GPUs since then.
    tried: Vec<JobNumber>,
}

impl Allotments {
    #[must_use]
    pub fn new(gpus: u32) -> Self {
        Self {
            idle: gpus,
            members: BTreeMap::new(),
            takers: BTreeSet::new(),
            givers: BTreeSet::new(),
            held: [Held::default(); LEVELS],
            next_place: 0,
            before: BTreeMap::new(),
            tried: Vec::new(),
        }
    }

    /// GPUs of a job; none for one that is not there.
    #[must_use]
    pub fn gpus_of(&self, job: JobNumber) -> u32 {
        self.members.get(&job).map_or(0, |member| member.gpus)
    }

    #[must_use]
    pub const fn idle(&self) -> u32 {
        self.idle
    }

    /// A job comes, without GPUs, to the end of its queue.
    pub fn add(&mut self, job: ElasticJob, standing: Standing) {
        debug_assert!(!self.members.contains_key(&job.number()), "a job comes once");
        let place = self.place();
        self.enter(Member { job, standing, place, gpus: 0, measured: 0 });
    }

    /// A job goes, and its GPUs are idle.
    pub fn remove(&mut self, job: JobNumber) {
        if let Some(member) = self.leave(job) {
            self.before.remove(&job);
            self.idle += member.gpus;
        }
    }

    /// A job goes to the end of another queue.
    pub fn stand(&mut self, job: JobNumber, standing: Standing) {
        let place = self.place();
        if let Some(member) = self.leave(job) {
            self.enter(Member { standing, place, ..member });
        }
    }

    fn place(&mut self) -> Place {
        self.next_place += 1;
        self.next_place
    }

    /// Hands out all GPUs, the strongest claim first, and answers whose GPUs changed since the last time.
    pub fn settle(&mut self) -> Vec<Change> {
        self.measure();
        let mut passed_over = None;
        while let Some(taker) = self.next_taker(passed_over) {
            let (claim, _, job) = taker;
            let need = self.members[&job].step();
            if need > 1 && need > self.can_give(claim.0) {
                passed_over = Some(taker);
                continue;
            }
            // A job that wants a single GPU and finds none stands before all that want one for a weaker claim.
            if !self.strip(need, claim) {
                break;
            }
            self.change(job, |gpus| gpus + need);
        }
        let before = std::mem::take(&mut self.before);
        let changes = before.into_iter().filter_map(|(job, from_gpus)| {
            let to_gpus = self.gpus_of(job);
            (from_gpus != to_gpus).then_some(Change { job, from_gpus, to_gpus })
        });
        let changes: Vec<Change> = changes.collect();
        self.tried = changes.iter().map(|change| change.job).collect();
        changes
    }

    /// On the GPUs that the last decision gave it a job has run by now (Alg. 1).
    fn measure(&mut self) {
        for job in std::mem::take(&mut self.tried) {
            if let Some(mut member) = self.leave(job) {
                member.measured = member.measured.max(member.gpus);
                self.enter(member);
            }
        }
    }

    fn next_taker(&self, passed_over: Option<Taker>) -> Option<Taker> {
        let from = passed_over.map_or(Bound::Unbounded, Bound::Excluded);
        self.takers.range((from, Bound::Unbounded)).next().copied()
    }

    /// GPUs that are idle or held by claims weaker than that of a block of a level.
    fn can_give(&self, level: Level) -> u32 {
        let (level, weaker) = (usize::from(level), |held: &Held| held.all);
        self.idle + self.held[level].above_min + self.held[level + 1..].iter().map(weaker).sum::<u32>()
    }

    /// Takes from weaker claims until so many GPUs are idle, the weakest first; says whether that came to be.
    fn strip(&mut self, need: u32, claim: Claim) -> bool {
        while self.idle < need {
            let Some((_, _, victim)) = self.givers.last().copied().filter(|(held, _, _)| *held > claim) else {
                return false;
            };
            let step = self.members[&victim].job.step_down(self.gpus_of(victim));
            self.change(victim, |gpus| gpus - step);
        }
        true
    }

    fn change(&mut self, job: JobNumber, to: impl Fn(u32) -> u32) {
        let mut member = self.leave(job).expect("it is a member");
        self.before.entry(job).or_insert(member.gpus);
        self.idle += member.gpus;
        member.gpus = to(member.gpus);
        self.idle -= member.gpus;
        self.enter(member);
    }

    fn enter(&mut self, member: Member) {
        debug_assert!(member.standing.is_rising(), "a job's first GPUs are its most urgent ones");
        self.takers.extend(member.taker());
        self.givers.extend(member.giver());
        self.count(&member, |held, gpus| held + gpus);
        self.members.insert(member.job.number(), member);
    }

    fn leave(&mut self, job: JobNumber) -> Option<Member> {
        let member = self.members.remove(&job)?;
        if let Some(taker) = member.taker() {
            self.takers.remove(&taker);
        }
        if let Some(giver) = member.giver() {
            self.givers.remove(&giver);
        }
        self.count(&member, |held, gpus| held - gpus);
        Some(member)
    }

    fn count(&mut self, member: &Member, change: impl Fn(u32, u32) -> u32) {
        for ((level, gpus), is_min) in member.by_level().into_iter().zip([true, false, false]) {
            let held = &mut self.held[usize::from(level)];
            held.all = change(held.all, gpus);
            if !is_min && !member.standing.in_turn {
                held.above_min = change(held.above_min, gpus);
            }
        }
    }
}
