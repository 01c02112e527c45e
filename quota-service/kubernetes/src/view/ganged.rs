//! Gangs in the view: one promise for each, and demand of the pods that are missing.

use super::facts::{Life, PodFacts, Uid};
use super::outcomes::BY_TAINT;
use super::peaks::Level;
use super::{End, View};
use crate::gangs::{GangKey, GangKind, Gangs, Missing, Runs, Stated};
use crate::names::KUEUE_EVICTS;
use std::collections::BTreeMap;
use vocab::{GpuModel, MilliGpus, TaskClass, UnixSeconds};

/// Gangs, and what is counted for them.
#[derive(Debug, Clone, Default)]
pub struct Ganged {
    pub(super) gangs: Gangs,
    pub(super) runs: Runs,
    /// Missing GPUs, in thousandths.
    missing: BTreeMap<Missing, u64>,
    /// As it is counted as demand.
    counted: BTreeMap<Level, u64>,
}

impl View {
    /// Counts a pod, as one of its gang.
    pub(super) fn count_pod(&mut self, facts: PodFacts, now: UnixSeconds) {
        if facts.gangs.is_empty() {
            self.set_pod(facts, now);
            return;
        }
        self.ganged.gangs.set_pod(&facts);
        let has_ended = facts.life == Life::Ended;
        let uid = facts.uid;
        self.count_promised(facts, now);
        if has_ended {
            self.ganged.runs.left(uid);
        }
    }

    /// Counts a pod whose promise is its gang's.
    fn count_promised(&mut self, mut facts: PodFacts, now: UnixSeconds) {
        let is_promised = facts.class == TaskClass::Spot && facts.guarantee.is_some() && facts.life == Life::Runs;
        let mut moved = Vec::new();
        let joined = if is_promised { self.ganged.runs.join(&self.ganged.gangs, &facts) } else { None };
        if let Some((since, others)) = joined {
            facts.bound = Some(since);
            moved = others;
        }
        let since = facts.bound;
        self.set_pod(facts, now);
        for uid in moved {
            if let Some(other) = self.pods.get(&uid).cloned() {
                self.set_pod(PodFacts { bound: since, ..other }, now);
            }
        }
    }

    /// How a running pod ended, by `last`, its last state in the API, or else by what is known of it. Kueue sets no condition on pods of
    /// jobs: those that are deleted while it evicts their Workload are evicted by it. The condition of an eviction by a taint does not name
    /// it, and the node does.
    pub(super) fn end_of(&self, known: &PodFacts, last: Option<&PodFacts>) -> End {
        let has_ended = last.is_some_and(|last| last.life == Life::Ended);
        let last = last.unwrap_or(known);
        match End::of(last, has_ended) {
            End::Deleted => {
                // The promise of a gang may have begun before this pod got its node, which its last state says.
                let pod = PodFacts { bound: last.bound.or(known.bound), ..known.clone() };
                let disruption = self.ganged.gangs.kueue_evicts(&pod).map(|reason| format!("{KUEUE_EVICTS}{reason}"));
                End::of(&PodFacts { disruption, ..last.clone() }, has_ended)
            }
            End::NodeLost if self.is_emptied(known, last) => End::Drained,
            end => end,
        }
    }

    /// Whether a pod was evicted by a taint that an operator set on its node.
    fn is_emptied(&self, known: &PodFacts, last: &PodFacts) -> bool {
        last.disruption.as_deref() == Some(BY_TAINT) && (known.is_emptied || self.is_on_emptied(known))
    }

    /// A pod of a gang has gone.
    pub(super) fn leave_gang(&mut self, uid: Uid) {
        self.ganged.gangs.remove_pod(uid);
        self.ganged.runs.left(uid);
    }

    /// An object that states gangs is there, has changed, or, without any, has gone.
    pub fn see_gangs(
        &mut self,
        kind: GangKind,
        namespace: &str,
        name: &str,
        gangs: Vec<(GangKey, Stated)>,
        now: UnixSeconds,
    ) {
        for uid in self.ganged.gangs.set_object(kind, namespace, name, gangs) {
            // Pods that came before the object have their own promises until now.
            if let Some(pod) = self.pods.get(&uid).cloned() {
                self.count_promised(pod, now);
            }
        }
    }

    /// Counts what gangs miss.
    pub fn settle_gangs(&mut self, now: UnixSeconds) {
        if !self.ganged.gangs.is_settled() {
            let claims = &mut self.claims;
            let changes = self.ganged.gangs.settle(|namespace, templates| {
                let of = |name: &String| claims.of_template(&(namespace.to_owned(), name.clone())).0;
                templates.iter().map(of).sum()
            });
            for (missing, gpus) in changes.more {
                *self.ganged.missing.entry(missing).or_insert(0) += gpus;
            }
            for (missing, gpus) in changes.less {
                let left = self.ganged.missing.get(&missing).map_or(0, |all| all.saturating_sub(gpus));
                if left == 0 {
                    self.ganged.missing.remove(&missing);
                } else {
                    self.ganged.missing.insert(missing, left);
                }
            }
        }
        self.count_missing(now);
    }

    fn count_missing(&mut self, now: UnixSeconds) {
        let mut wanted: BTreeMap<Level, u64> = BTreeMap::new();
        for (missing, gpus) in &self.ganged.missing {
            let Some(model) = self.model_or_only(missing.model.as_ref()).filter(|model| self.pools.contains_key(model))
            else {
                continue;
            };
            *wanted.entry(Level { model, organization: missing.organization.clone() }).or_insert(0) += gpus;
        }
        if wanted == self.ganged.counted {
            return;
        }
        let counted = std::mem::replace(&mut self.ganged.counted, wanted.clone());
        let amount = |gpus| MilliGpus::from_milli(gpus).unwrap_or(MilliGpus::MAX);
        for (level, gpus) in counted {
            self.demand.change(level, amount(gpus), false, now);
        }
        for (level, gpus) in wanted {
            self.demand.change(level, amount(gpus), true, now);
        }
    }

    /// HP demand of pods that gangs miss.
    #[must_use]
    pub fn missing_gpus(&self, model: &GpuModel) -> MilliGpus {
        let here = self.ganged.counted.iter().filter(|(level, _)| level.model == *model);
        MilliGpus::from_milli(here.map(|(_, gpus)| gpus).sum()).unwrap_or(MilliGpus::MAX)
    }
}
