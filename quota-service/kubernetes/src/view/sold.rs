//! Promises of pods that run: the pool that sold each, and its end.

use super::facts::{Life, PodFacts, Uid};
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
        self.outcomes.extend(outcomes::of_end(&self.pool_id(&seller), &known, end, now));
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
    use super::super::facts::{NodeFacts, Reading};
    use super::super::tests::fixture;
    use super::*;
    use crate::config::Config;
    use placement::Policy;
    use vocab::{ClusterName, HorizonHours, NodeId, OutcomeKind};

    fn at(seconds: i64) -> UnixSeconds {
        UnixSeconds::new(1_700_000_000 + seconds)
    }

    fn node(name: &str, model: Option<&str>, gpus: u32) -> NodeFacts {
        let gpu_model = model.map(|model| GpuModel::parse(model).unwrap());
        let node = NodeId::parse(name).unwrap();
        NodeFacts { node, gpu_model, gpus, is_open: true, is_ready: true, topology: None }
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
}
