//! One promise for each run of a gang: it begins with the first of its pods, and what comes of it is reported once.

use super::{GangId, Stated};
use crate::view::facts::{PodFacts, Uid};
use std::collections::BTreeMap;
use vocab::{EventId, MilliGpus, Outcome, OutcomeKind, TaskId, UnixSeconds};

/// A gang, and what tells its runs apart.
type RunKey = (GangId, String);

/// A pod of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct RunPod {
    gpus: MilliGpus,
    is_live: bool,
    has_outcome: bool,
}

/// A run: from the first pod on its node to the last that has gone.
#[derive(Debug, Clone)]
struct Run {
    since: UnixSeconds,
    pods: BTreeMap<Uid, RunPod>,
    outcomes: Vec<Outcome>,
    is_reported: bool,
}

/// Runs of gangs with promises.
#[derive(Debug, Clone, Default)]
pub struct Runs {
    runs: BTreeMap<RunKey, Run>,
    of_pod: BTreeMap<Uid, RunKey>,
}

impl Runs {
    /// A promised pod of a gang is on its node. Answers since when the gang's promise counts, and the pods for which that is news.
    pub fn join(&mut self, gang: &GangId, stated: &Stated, pod: &PodFacts) -> (UnixSeconds, Vec<Uid>) {
        let key = self.kept_run(gang, pod.uid).unwrap_or_else(|| self.run_of(gang, stated, pod));
        let begins = pod.since();
        let fresh = Run { since: begins, pods: BTreeMap::new(), outcomes: Vec::new(), is_reported: false };
        let run = self.runs.entry(key.clone()).or_insert(fresh);
        let has_outcome = run.pods.get(&pod.uid).is_some_and(|known| known.has_outcome);
        run.pods.insert(pod.uid, RunPod { gpus: pod.amount(), is_live: true, has_outcome });
        self.of_pod.insert(pod.uid, key);
        let moved = if begins < run.since {
            run.since = begins;
            run.pods.iter().filter(|(uid, one)| one.is_live && **uid != pod.uid).map(|(uid, _)| *uid).collect()
        } else {
            Vec::new()
        };
        (run.since, moved)
    }

    /// The run that a pod is in. It leaves the run of another gang, of which nothing was reported: an object that comes first with the
    /// precedence may be seen last.
    fn kept_run(&mut self, gang: &GangId, uid: Uid) -> Option<RunKey> {
        let key = self.of_pod.get(&uid)?.clone();
        let run = self.runs.get_mut(&key)?;
        if key.0 == *gang || !run.outcomes.is_empty() {
            return Some(key);
        }
        run.pods.remove(&uid);
        if run.pods.is_empty() {
            self.runs.remove(&key);
        }
        self.of_pod.remove(&uid);
        None
    }

    /// The run that a pod begins or joins: that of the object's attempt, or, where it states none, the one with pods.
    fn run_of(&self, gang: &GangId, stated: &Stated, pod: &PodFacts) -> RunKey {
        if let Some(attempt) = &stated.attempt {
            return (gang.clone(), format!("{}/{attempt}", stated.uid));
        }
        let own = self.runs.range((gang.clone(), String::new())..).take_while(|((of, _), _)| of == gang);
        let has_pods = |run: &Run| run.pods.values().any(|pod| pod.is_live);
        let current = own.filter(|(_, run)| has_pods(run)).map(|(key, _)| key.clone()).last();
        current.unwrap_or_else(|| (gang.clone(), format!("{}/{}", stated.uid, pod.created.get())))
    }

    /// A pod has ended or gone.
    pub fn left(&mut self, uid: Uid) {
        let run = self.of_pod.get(&uid).and_then(|key| self.runs.get_mut(key));
        if let Some(pod) = run.and_then(|run| run.pods.get_mut(&uid)) {
            pod.is_live = false;
        }
    }

    /// Outcomes of pods become those of their gangs; of pods without a gang they stay as they are. A broken promise is one at once. Any
    /// other end of a pod is the gang's when the promise of no other pod is open: the worst of them counts.
    pub fn merge(&mut self, outcomes: Vec<Outcome>) -> Vec<Outcome> {
        let mut merged = Vec::new();
        for outcome in outcomes {
            let uid = outcome.event_id.as_str().strip_prefix("pod-").map(Uid::of);
            let run = uid.and_then(|uid| Some((uid, self.runs.get_mut(self.of_pod.get(&uid)?)?)));
            let Some((uid, run)) = run else {
                merged.push(outcome);
                continue;
            };
            if let Some(pod) = run.pods.get_mut(&uid) {
                pod.has_outcome = true;
            }
            run.outcomes.push(outcome);
        }
        for (key, run) in &mut self.runs {
            let is_broken = run.outcomes.iter().any(|one| one.kind == OutcomeKind::Broken);
            let is_over = run.pods.values().all(|pod| pod.has_outcome || !pod.is_live);
            if !run.is_reported && !run.outcomes.is_empty() && (is_broken || is_over) {
                merged.extend(one_of(key, run));
                run.is_reported = true;
            }
        }
        self.runs.retain(|_, run| run.pods.values().any(|pod| pod.is_live));
        self.of_pod.retain(|_, key| self.runs.contains_key(key));
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

/// The outcome of a run: the worst of its pods, and of equal ones the first, or, if all were kept, the last.
fn one_of((gang, name): &RunKey, run: &Run) -> Option<Outcome> {
    let worst = run.outcomes.iter().map(|one| rank(one.kind)).max()?;
    let of_kind = run.outcomes.iter().filter(|one| rank(one.kind) == worst);
    let one = if worst == rank(OutcomeKind::Kept) {
        of_kind.max_by_key(|one| (one.ended_at, one.event_id.clone()))
    } else {
        of_kind.min_by_key(|one| (one.ended_at, one.event_id.clone()))
    };
    let gpus = run.pods.values().fold(MilliGpus::ZERO, |sum, pod| sum.saturating_add(pod.gpus));
    let id = Uid::of(&format!("{gang} {name}"));
    Some(Outcome {
        event_id: EventId::parse(&format!("gang-{id}")).expect("41 characters are a name"),
        began_at: Some(run.since),
        gpus: Some(gpus),
        task: TaskId::parse(&gang.to_string()).ok(),
        node: None,
        ..one?.clone()
    })
}
