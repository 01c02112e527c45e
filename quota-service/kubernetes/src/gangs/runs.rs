//! One promise for each run of a gang: it begins with the first of its pods, and what comes of it is reported once.

use super::{Attempt, GangId, GangKind, Gangs};
use crate::view::facts::{PodFacts, Uid};
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::ops::Bound;
use vocab::{EventId, HorizonHours, MilliGpus, Outcome, OutcomeKind, TaskId, UnixSeconds};

/// A gang, and what tells its runs apart.
type RunKey = (GangId, String);

/// A pod of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct RunPod {
    gpus: MilliGpus,
    is_live: bool,
    /// Its deletion was asked for: another may take its place already.
    is_going: bool,
    has_outcome: bool,
}

/// A run: from the first pod on its node to the end of its attempt, or, where its gang states none, to the last pod that has gone.
#[derive(Debug, Clone)]
struct Run {
    since: UnixSeconds,
    attempt: Option<Attempt>,
    /// Pods that are there, and those that have ended since the last report.
    pods: BTreeMap<Uid, RunPod>,
    /// The most GPUs that its pods had at once.
    most: MilliGpus,
    /// The most hours of its pods.
    hours: Option<HorizonHours>,
    /// The outcome among those of its pods that counts.
    outcome: Option<Outcome>,
    is_reported: bool,
}

impl Run {
    fn has_pods(&self) -> bool {
        self.pods.values().any(|pod| pod.is_live)
    }

    /// Whether its controller makes pods again that have ended.
    fn is_open(&self, gangs: &Gangs) -> bool {
        self.attempt.as_ref().is_some_and(|attempt| gangs.goes_on(attempt))
    }

    /// The end of its longest promise.
    fn until(&self) -> UnixSeconds {
        self.hours.map_or(self.since, |hours| self.since.plus_s(hours.seconds()))
    }

    fn count(&mut self) {
        let here = self.pods.values().filter(|pod| pod.is_live && !pod.is_going);
        self.most = here.fold(MilliGpus::ZERO, |sum, pod| sum.saturating_add(pod.gpus)).max(self.most);
    }

    /// The outcome of a pod: the worst counts, and of equal ones the first, or, if all were kept, the last.
    fn note(&mut self, one: Outcome) {
        let order = |outcome: &Outcome| (outcome.ended_at, outcome.event_id.clone());
        let counts = self.outcome.as_ref().is_none_or(|known| match rank(one.kind).cmp(&rank(known.kind)) {
            Ordering::Equal if one.kind == OutcomeKind::Kept => order(&one) > order(known),
            Ordering::Equal => order(&one) < order(known),
            other => other == Ordering::Greater,
        });
        if counts {
            self.outcome = Some(one);
        }
    }

    /// Takes over another run of the same attempt.
    fn absorb(&mut self, other: Self) {
        self.since = self.since.min(other.since);
        self.pods.extend(other.pods);
        self.most = self.most.max(other.most);
        self.hours = self.hours.max(other.hours);
        other.outcome.into_iter().for_each(|outcome| self.note(outcome));
        self.is_reported |= other.is_reported;
        self.count();
    }
}

/// Runs of gangs with promises.
#[derive(Debug, Clone, Default)]
pub struct Runs {
    by_key: BTreeMap<RunKey, Run>,
    of_pod: BTreeMap<Uid, RunKey>,
    now: Option<UnixSeconds>,
}

impl Runs {
    /// A promised pod is on its node. Answers since when the promise of its gang counts, and the pods for which that is news; `None`
    /// where it has a promise of its own.
    pub fn join(&mut self, gangs: &Gangs, pod: &PodFacts) -> Option<(UnixSeconds, Vec<Uid>)> {
        let gang = gangs.promised_to(pod);
        let key = match self.kept_run(gang.as_ref(), pod.uid) {
            Some(key) => key,
            None => self.run_of(&gang?, gangs, pod),
        };
        let begins = pod.since();
        let run = self.by_key.get_mut(&key)?;
        let has_outcome = run.pods.get(&pod.uid).is_some_and(|known| known.has_outcome);
        let (gpus, is_going) = (pod.amount(), pod.is_going);
        run.pods.insert(pod.uid, RunPod { gpus, is_live: true, is_going, has_outcome });
        run.hours = run.hours.max(pod.guarantee);
        run.count();
        self.of_pod.insert(pod.uid, key);
        let moved = if begins < run.since {
            run.since = begins;
            run.pods.iter().filter(|(uid, one)| one.is_live && **uid != pod.uid).map(|(uid, _)| *uid).collect()
        } else {
            Vec::new()
        };
        Some((run.since, moved))
    }

    /// The run that a pod is in. It leaves it for that of a gang with precedence, where nothing was reported of it: an object that comes
    /// first with the precedence may be seen last. It stays where its own object goes first.
    fn kept_run(&mut self, gang: Option<&GangId>, uid: Uid) -> Option<RunKey> {
        let key = self.of_pod.get(&uid)?.clone();
        let run = self.by_key.get_mut(&key)?;
        let precedes = gang.is_some_and(|gang| gang.key.kind < key.0.key.kind);
        if !precedes || run.is_reported || run.outcome.is_some() {
            return Some(key);
        }
        run.pods.remove(&uid);
        if run.pods.is_empty() {
            self.by_key.remove(&key);
        }
        self.of_pod.remove(&uid);
        None
    }

    /// The run that a pod begins or joins: that of the attempt, or, where none is stated, the one with pods.
    fn run_of(&mut self, gang: &GangId, gangs: &Gangs, pod: &PodFacts) -> RunKey {
        self.name_by_workloads(gangs, Some(gang));
        let attempt = gangs.attempt_of(gang, pod.uid, pod.since());
        let name = if let Some(attempt) = &attempt {
            attempt.name.clone()
        } else {
            let own = self.by_key.range((gang.clone(), String::new())..).take_while(|((of, _), _)| of == gang);
            let current = own.filter(|(_, run)| run.has_pods()).map(|((_, name), _)| name.clone()).last();
            current.unwrap_or_else(|| format!("{}/{}", gangs.uid_of(gang), pod.created.get()))
        };
        let (since, pods, most) = (pod.since(), BTreeMap::new(), MilliGpus::ZERO);
        let fresh = Run { since, attempt, pods, most, hours: None, outcome: None, is_reported: false };
        let key = (gang.clone(), name);
        self.by_key.entry(key.clone()).or_insert(fresh);
        key
    }

    /// Runs that began before their Workload of Kueue was seen get its attempt: a JobSet says nothing of an eviction and a new start.
    /// Those of `one` gang alone, where it is given.
    fn name_by_workloads(&mut self, gangs: &Gangs, one: Option<&GangId>) {
        let is_early = |gang: &GangId, run: &Run| {
            let is_named =
                gang.key.kind == GangKind::KueueWorkload || run.attempt.as_ref().is_some_and(Attempt::is_of_kueue);
            !is_named && !run.is_reported
        };
        let from = one.map(|gang| (gang.clone(), String::new()));
        let from = from.map_or(Bound::Unbounded, Bound::Included);
        let runs =
            self.by_key.range((from, Bound::Unbounded)).take_while(|((gang, _), _)| one.is_none_or(|one| one == gang));
        let early = runs.filter(|((gang, _), run)| is_early(gang, run));
        let named = |(key, run): (&RunKey, &Run)| {
            let found = run.pods.keys().find_map(|uid| gangs.attempt_of(&key.0, *uid, run.since))?;
            found.is_of_kueue().then(|| (key.clone(), found))
        };
        for (key, attempt) in early.filter_map(named).collect::<Vec<_>>() {
            let Some(mut run) = self.by_key.remove(&key) else { continue };
            let name = (key.0, attempt.name.clone());
            for uid in run.pods.keys() {
                self.of_pod.insert(*uid, name.clone());
            }
            if let Some(other) = self.by_key.remove(&name) {
                run.absorb(other);
            }
            run.attempt = Some(attempt);
            self.by_key.insert(name, run);
        }
    }

    /// A pod has ended or gone.
    pub fn left(&mut self, uid: Uid) {
        let run = self.of_pod.get(&uid).and_then(|key| self.by_key.get_mut(key));
        if let Some(pod) = run.and_then(|run| run.pods.get_mut(&uid)) {
            pod.is_live = false;
        }
    }

    /// Lets time pass: what is open waits for no more pods once its promise is over.
    pub const fn pass_to(&mut self, now: UnixSeconds) {
        self.now = Some(now);
    }

    /// Outcomes of pods become those of their gangs; of pods without a gang they stay as they are. A broken promise is one at once. Any
    /// other end of a pod is the gang's when the promise of no other pod is open, and none may come in its place: the worst of them counts.
    pub fn merge(&mut self, outcomes: Vec<Outcome>, gangs: &Gangs) -> Vec<Outcome> {
        let mut merged = Vec::new();
        for outcome in outcomes {
            let uid = outcome.event_id.as_str().strip_prefix("pod-").map(Uid::of);
            let run = uid.and_then(|uid| Some((uid, self.by_key.get_mut(self.of_pod.get(&uid)?)?)));
            let Some((uid, run)) = run else {
                merged.push(outcome);
                continue;
            };
            if let Some(pod) = run.pods.get_mut(&uid) {
                pod.has_outcome = true;
            }
            run.note(outcome);
        }
        self.name_by_workloads(gangs, None);
        let now = self.now;
        for (key, run) in self.by_key.iter_mut().filter(|(_, run)| !run.is_reported) {
            let Some(outcome) = &run.outcome else { continue };
            let may_go_on = || run.is_open(gangs) && now.is_none_or(|now| now < run.until());
            let is_over = run.pods.values().all(|pod| pod.has_outcome || !pod.is_live) && !may_go_on();
            if is_over || outcome.kind == OutcomeKind::Broken {
                merged.push(of_run(key, run, outcome));
                run.is_reported = true;
            }
        }
        // A job may have any number of pods one after another.
        self.by_key.values_mut().for_each(|run| run.pods.retain(|_, pod| pod.is_live));
        self.by_key.retain(|_, run| run.has_pods() || run.is_open(gangs));
        self.of_pod.retain(|uid, key| self.by_key.get(key).is_some_and(|run| run.pods.contains_key(uid)));
        merged
    }
}

/// Worst last.
const fn rank(kind: OutcomeKind) -> u8 {
    match kind {
        OutcomeKind::Kept => 0,
        OutcomeKind::UserDeleted => 1,
        OutcomeKind::Drain => 2,
        OutcomeKind::NodeFailure => 3,
        OutcomeKind::Broken => 4,
    }
}

/// The outcome of a run, by that of its pods which counts.
fn of_run((gang, name): &RunKey, run: &Run, one: &Outcome) -> Outcome {
    let id = Uid::of(&format!("{gang} {name}"));
    Outcome {
        event_id: EventId::parse(&format!("gang-{id}")).expect("41 characters are a name"),
        began_at: Some(run.since),
        gpus: Some(run.most),
        task: TaskId::parse(&gang.to_string()).ok(),
        node: None,
        ..one.clone()
    }
}
