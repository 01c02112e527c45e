//! Promises of pods that run: the pool that sold each, and its end.

use super::facts::{Life, NodeFacts, PodFacts, Uid};
use super::outcomes::BY_TAINT;
use super::{View, outcomes, pool};
use placement::fleet::Guarantee;
use vocab::{GpuModel, TaskClass, UnixSeconds};

impl View {
    /// The promise of a pod that is counted in a pool is of that pool as long as it lasts, also where its node becomes one of another.
    pub(super) fn note_sold(&mut self, pod: &PodFacts, model: &GpuModel, now: UnixSeconds) {
        let lasts = pod.guarantee.is_some_and(|hours| Guarantee::from(pod.since(), hours).until > now);
        let is_known = pod.node.as_ref().is_some_and(|node| self.nodes.contains_key(node));
        if pod.class == TaskClass::Spot && pod.life == Life::Runs && lasts && is_known {
            self.sold.entry(pod.uid).or_insert_with(|| model.clone());
        }
    }

    /// Whether an operator empties the node of a pod now.
    pub(super) fn is_on_emptied(&self, pod: &PodFacts) -> bool {
        pod.node.as_ref().and_then(|node| self.nodes.get(node)).is_some_and(|node| node.is_emptied)
    }

    /// Remembers of a pod that is evicted by a taint that an operator empties its node.
    pub(super) fn note_emptied(&self, pod: &mut PodFacts) {
        if pod.disruption.as_deref() == Some(BY_TAINT) {
            let was_emptied = self.pods.get(&pod.uid).is_some_and(|known| known.is_emptied);
            pod.is_emptied = was_emptied || self.is_on_emptied(pod);
        }
    }

    /// The same where the node is seen after the pods: both are watched beside each other.
    pub(super) fn note_emptied_on(&mut self, node: &NodeFacts) {
        if !node.is_emptied {
            return;
        }
        let here: Vec<Uid> = self.pools.values().flat_map(|pool| pool.on(&node.node)).collect();
        for uid in here {
            if let Some(pod) = self.pods.get_mut(&uid).filter(|pod| pod.disruption.as_deref() == Some(BY_TAINT)) {
                pod.is_emptied = true;
            }
        }
    }

    /// A pod is over.
    pub(super) fn forget(&mut self, uid: Uid) {
        self.pods.remove(&uid);
        self.sold.remove(&uid);
    }

    /// Promises of pods that no fleet has end, too: their node has gone, says no model, or has no room for them as GPUs are counted.
    pub(super) fn keep_adrift(&mut self, now: UnixSeconds) {
        let homeless = self.homeless.values().flatten();
        let crowded = self.pools.values().flat_map(super::pool::PoolView::crowded);
        let adrift: Vec<PodFacts> = homeless.chain(crowded).filter_map(|uid| self.pods.get(uid)).cloned().collect();
        for pod in adrift {
            self.keep_ended(&pod, now);
        }
    }

    /// Where the promise of a pod is over, and nobody has noted it yet, it was kept.
    pub(super) fn keep_ended(&mut self, pod: &PodFacts, now: UnixSeconds) {
        let (Some(hours), Some(seller)) = (pod.guarantee, self.sold.get(&pod.uid)) else { return };
        let promise = Guarantee::from(pod.since(), hours);
        if promise.until <= now {
            let (id, task) = (self.pool_id(seller), pool::task_of(pod.uid));
            self.sold.remove(&pod.uid);
            self.outcomes.push(outcomes::kept(&id, &task, promise, Some(pod.amount()), pod.node.clone()));
        }
    }

    /// A running pod has ended.
    pub(super) fn ended(&mut self, uid: Uid, last: Option<&PodFacts>, now: UnixSeconds) {
        let Some(known) = self.pods.get(&uid).cloned() else { return };
        if known.class != TaskClass::Spot {
            return;
        }
        let counted = self.counted.get(&uid).cloned();
        let Some(seller) = self.sold.get(&uid).or(counted.as_ref()).cloned() else { return };
        let end = self.end_of(&known, last);
        if end.is_eviction()
            && let Some(pool) = counted.and_then(|model| self.pools.get_mut(&model))
            && let Some(number) = known.node.as_ref().and_then(|node| pool.fleet.number_of(node))
        {
            pool.fleet.recall_eviction(number, now);
        }
        let ended = last.and_then(|last| last.ended);
        self.outcomes.extend(outcomes::of_end(&self.pool_id(&seller), &known, end, ended, now));
    }

    /// A pod had ended when it was first seen: until the view begins, its promise may have ended while nobody watched. Of a pod of a job
    /// that may be a gang the run had the promise, and was reported under another name.
    pub(super) fn note_ended(&mut self, pod: &PodFacts) {
        let is_promised = pod.class == TaskClass::Spot && pod.guarantee.is_some() && pod.node.is_some();
        if let Some(ended) = self.ended_before.as_mut().filter(|_| is_promised && pod.gangs.is_empty()) {
            ended.insert(pod.uid, pod.clone());
        }
    }

    /// All nodes are known: promises that ended before have their outcomes. One that was reported then has the same id, and counts once.
    pub(super) fn tell_ended(&mut self, now: UnixSeconds) {
        for pod in self.ended_before.take().unwrap_or_default().into_values() {
            let Some(model) = self.model_of(&pod) else { continue };
            let outcome = outcomes::of_ended(&self.pool_id(&model), &pod, self.end_of(&pod, Some(&pod)), now);
            self.outcomes.extend(outcome.filter(|new| self.outcomes.iter().all(|one| one.event_id != new.event_id)));
        }
    }

    /// A promise that ended lately, before the first read, was kept: reported again under the same id, it counts once.
    pub(super) fn tell_old_promise(&mut self, pod: &PodFacts, now: UnixSeconds) {
        if let Some(model) = self.model_of(pod) {
            self.outcomes.extend(outcomes::of_past(&self.pool_id(&model), pod, now));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::facts::Reading;
    use super::super::tests::fixture;
    use super::*;
    use crate::config::Config;
    use placement::Policy;
    use serde_json::json;
    use vocab::{ClusterName, HorizonHours, NodeId, OutcomeKind};

    fn at(seconds: i64) -> UnixSeconds {
        UnixSeconds::new(1_700_000_000 + seconds)
    }

    fn node(name: &str, model: Option<&str>, gpus: u32) -> NodeFacts {
        let gpu_model = model.map(|model| GpuModel::parse(model).unwrap());
        let node = NodeId::parse(name).unwrap();
        NodeFacts { node, gpu_model, gpus, is_open: true, is_ready: true, is_emptied: false, topology: None }
    }

    /// A node of each of two models, and a pod on `n1` that is promised an hour and selects no model.
    fn view() -> View {
        let mut view = View::new(ClusterName::parse("earth").unwrap(), Reading::of(&Config::default()), Policy::GFS);
        view.set_node(node("n1", Some("A100"), 8), at(0));
        view.set_node(node("h1", Some("H100"), 8), at(0));
        view.set_pod(promised(), at(0));
        view
    }

    fn promised() -> PodFacts {
        let pod = fixture::pod(Uid(1), 1, TaskClass::Spot, Some("n1"));
        PodFacts { created: at(0), bound: Some(at(0)), guarantee: HorizonHours::new(1).ok(), ..pod }
    }

    fn ends(view: &mut View) -> Vec<(OutcomeKind, i64, String)> {
        let all = view.take_outcomes();
        all.into_iter().map(|one| (one.kind, one.ended_at.since_s(at(0)), one.pool.gpu_model.to_string())).collect()
    }

    #[test]
    fn promises_that_ended_while_no_connector_ran_are_judged_once_one_has_begun() {
        let ended = |number, seconds, reason: &str| PodFacts {
            uid: Uid(number),
            life: Life::Ended,
            ended: Some(at(seconds)),
            disruption: (!reason.is_empty()).then(|| reason.to_owned()),
            ..promised()
        };
        let begun_at = |now: i64| {
            let mut view =
                View::new(ClusterName::parse("earth").unwrap(), Reading::of(&Config::default()), Policy::GFS);
            view.set_pod(ended(1, 60, ""), at(now));
            view.set_pod(ended(2, 70, "PreemptionByScheduler"), at(now));
            view.set_pod(ended(3, 80, "DeletionByPodGC"), at(now));
            view.set_pod(PodFacts { is_going: true, ..ended(4, 90, "") }, at(now));
            view.set_pod(ended(5, 3_700, "PreemptionByScheduler"), at(now));
            view.set_pod(PodFacts { ended: None, ..ended(6, 0, "") }, at(now));
            view.set_pod(PodFacts { guarantee: None, ..ended(7, 60, "") }, at(now));
            // Nodes are listed beside pods, and may come later.
            view.set_node(node("n1", Some("A100"), 8), at(now));
            view.set_node(node("h1", Some("H100"), 8), at(now));
            assert_eq!(ends(&mut view), []);
            view.begin(at(now));
            let reported = ends(&mut view);
            view.set_pod(ended(8, now, ""), at(now));
            view.begin(at(now));
            assert_eq!(ends(&mut view), [], "each is reported once, and what a watch repeats is not");
            reported
        };
        let one = |kind, seconds| (kind, seconds, "A100".to_owned());
        let expected = [
            one(OutcomeKind::Kept, 60),
            one(OutcomeKind::Broken, 70),
            one(OutcomeKind::NodeFailure, 80),
            one(OutcomeKind::UserDeleted, 90),
            one(OutcomeKind::Kept, 3_600),
        ];
        assert_eq!(begun_at(7_200), expected);
        assert_eq!(begun_at(100_000), [], "a day later they no longer concern eta");
    }

    #[test]
    fn a_connector_that_starts_later_reports_an_end_as_the_one_that_saw_it() {
        let lost = PodFacts {
            life: Life::Ended,
            ended: Some(at(60)),
            disruption: Some("PreemptionByScheduler".to_owned()),
            ..promised()
        };
        let mut watched = view();
        watched.set_pod(lost.clone(), at(65));
        let mut started = View::new(ClusterName::parse("earth").unwrap(), Reading::of(&Config::default()), Policy::GFS);
        started.set_node(node("n1", Some("A100"), 8), at(7_200));
        started.set_pod(lost, at(7_200));
        started.begin(at(7_200));
        let reported = watched.take_outcomes();
        assert_eq!((reported.len(), reported[0].ended_at), (1, at(60)));
        assert_eq!(started.take_outcomes(), reported, "another content would be a conflict in the log");
    }

    #[test]
    fn a_promise_ends_as_it_does_also_where_its_node_has_gone_or_says_no_model_or_another_one() {
        let lost = PodFacts { disruption: Some("DeletionByPodGC".to_owned()), is_going: true, ..promised() };
        let becomes: [fn(&mut View); 4] = [
            |view| view.remove_node(&NodeId::parse("n1").unwrap(), at(10)),
            |view| view.set_node(node("n1", None, 8), at(10)),
            |view| view.set_node(node("n1", Some("A100"), 0), at(10)),
            |view| view.set_node(node("n1", Some("H100"), 8), at(10)),
        ];
        for become_other in becomes {
            let mut seen = view();
            become_other(&mut seen);
            seen.pass_to(at(20));
            seen.remove_pod(Uid(1), Some(&lost), at(30));
            assert_eq!(ends(&mut seen), [(OutcomeKind::NodeFailure, 30, "A100".to_owned())]);

            let mut seen = view();
            become_other(&mut seen);
            seen.set_pod(PodFacts { life: Life::Ended, ..promised() }, at(40));
            assert_eq!(ends(&mut seen), [(OutcomeKind::Kept, 40, "A100".to_owned())]);

            let mut seen = view();
            become_other(&mut seen);
            seen.pass_to(at(3_700));
            seen.pass_to(at(3_800));
            seen.remove_pod(Uid(1), Some(&lost), at(3_900));
            assert_eq!(ends(&mut seen), [(OutcomeKind::Kept, 3_600, "A100".to_owned())]);
        }
    }

    #[test]
    fn an_eviction_by_a_taint_is_a_drain_where_an_operator_set_it_on_a_node_that_is_ready() {
        let lost = PodFacts { disruption: Some("DeletionByTaintManager".to_owned()), is_going: true, ..promised() };
        let ends_with = |is_ready: bool, taints: &[(&str, &str)]| {
            let taints: Vec<_> = taints.iter().map(|(key, effect)| json!({ "key": key, "effect": effect })).collect();
            let ready = json!([{ "type": "Ready", "status": if is_ready { "True" } else { "Unknown" } }]);
            let node = json!({
                "metadata": { "name": "n1", "labels": { "nvidia.com/gpu.product": "A100" } }, "spec": { "taints": taints },
                "status": { "allocatable": { "nvidia.com/gpu": "8" }, "conditions": ready },
            });
            let mut seen = view();
            seen.see_node(&serde_json::from_value(node).unwrap(), at(10)).unwrap();
            seen.remove_pod(Uid(1), Some(&lost), at(30));
            ends(&mut seen).into_iter().next().unwrap().0
        };
        let (ours, unreachable) = (("maintenance", "NoExecute"), ("node.kubernetes.io/unreachable", "NoExecute"));
        assert_eq!(ends_with(true, &[ours, ("spot", "NoSchedule")]), OutcomeKind::Drain);
        let lost = OutcomeKind::NodeFailure;
        assert_eq!(ends_with(true, &[unreachable]), lost);
        assert_eq!(ends_with(true, &[ours, unreachable]), lost, "not known is which one evicted");
        assert_eq!(ends_with(false, &[ours]), lost, "it does not answer");
        assert_eq!(ends_with(true, &[("maintenance", "NoSchedule")]), lost, "that one evicts nobody");
    }

    #[test]
    fn an_eviction_by_a_taint_that_is_taken_back_before_the_pod_ends_is_a_drain() {
        let evicted =
            || PodFacts { disruption: Some("DeletionByTaintManager".to_owned()), is_going: true, ..promised() };
        let tainted = |is_emptied| NodeFacts { is_emptied, ..node("n1", Some("A100"), 8) };
        let last = |seen: &mut View| {
            seen.set_node(tainted(false), at(20));
            seen.set_pod(PodFacts { priority: 1, ..evicted() }, at(25));
            seen.remove_pod(Uid(1), Some(&evicted()), at(30));
            ends(seen)
        };
        let drained = [(OutcomeKind::Drain, 30, "A100".to_owned())];
        let mut node_first = view();
        node_first.set_node(tainted(true), at(10));
        node_first.set_pod(evicted(), at(11));
        assert_eq!(last(&mut node_first), drained);
        let mut pod_first = view();
        pod_first.set_pod(evicted(), at(10));
        pod_first.set_node(tainted(true), at(11));
        assert_eq!(last(&mut pod_first), drained);
        let mut later = view();
        later.set_node(tainted(true), at(10));
        later.set_node(tainted(false), at(11));
        later.set_pod(evicted(), at(12));
        assert_eq!(last(&mut later)[0].0, OutcomeKind::NodeFailure, "another taint evicts it");
    }
}
