//! Jobs drawn from a seed, and the objects that their controllers make, written by hand from the published schemas.

pub use crate::claims::dice::{Dice, START};
use serde_json::{Value, json};

/// Which controllers a job has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// A PodGroup alone.
    PodGroup,
    /// A group in a Workload of v1alpha1.
    WorkloadGroup,
    /// A JobSet; with a Workload of Kueue that it owns; with a PodGroup for each of its sets.
    JobSet { has_kueue: bool, has_groups: bool },
    /// A LeaderWorkerSet.
    LeaderWorkerSet,
    /// A Workload of Kueue of a job of another kind.
    Kueue,
    /// None: pods by themselves.
    Loose,
}

/// Pods that are alike.
#[derive(Debug, Clone)]
pub struct Set {
    pub gpus: u64,
    pub pods: Vec<Slot>,
}

/// A pod that is to be, and its state so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Slot {
    Missing,
    Waits,
    Runs,
    Ended,
}

#[derive(Debug, Clone)]
pub struct Job {
    pub shape: Shape,
    pub is_hp: bool,
    pub model: &'static str,
    pub sets: Vec<Set>,
    /// Over, or held back: it asks for nothing more.
    pub is_over: bool,
    /// Whether Kueue names its Workload on pods: it does where it places by topology.
    pub names_workload: bool,
}

impl Job {
    pub fn drawn(dice: &mut Dice) -> Self {
        let shape = match dice.below(7) {
            0 => Shape::PodGroup,
            1 => Shape::WorkloadGroup,
            2 | 3 => Shape::JobSet { has_kueue: dice.one_in(2), has_groups: dice.one_in(2) },
            4 => Shape::LeaderWorkerSet,
            5 => Shape::Kueue,
            _ => Shape::Loose,
        };
        let sets = match shape {
            Shape::LeaderWorkerSet => 2,
            Shape::JobSet { .. } | Shape::Kueue => 1 + dice.below(2),
            _ => 1,
        };
        let slot =
            |dice: &mut Dice| [Slot::Missing, Slot::Waits, Slot::Runs, Slot::Runs, Slot::Ended][dice.below(5) as usize];
        let set = |number: u64, dice: &mut Dice| {
            let pods = if shape == Shape::LeaderWorkerSet && number == 0 { 1 } else { 1 + dice.below(5) };
            let gpus = if number == 0 && sets > 1 { dice.below(2) } else { 1 + dice.below(4) };
            Set { gpus, pods: (0..pods).map(|_| slot(dice)).collect() }
        };
        let sets = (0..sets).map(|number| set(number, dice)).collect();
        let model = if dice.one_in(2) { "A100" } else { "H800" };
        Self { shape, is_hp: !dice.one_in(3), model, sets, is_over: dice.one_in(6), names_workload: dice.one_in(2) }
    }

    fn template(&self, set: &Set) -> Value {
        let mut requests = json!({ "cpu": "1" });
        if set.gpus > 0 {
            requests["nvidia.com/gpu"] = set.gpus.to_string().into();
        }
        json!({ "metadata": {}, "spec": {
            "priorityClassName": if self.is_hp { "high" } else { "spot" },
            "nodeSelector": { "nvidia.com/gpu.product": self.model },
            "containers": [{ "name": "main", "resources": { "requests": requests } }],
        }})
    }

    /// Pod sets of a Workload of Kueue.
    fn pod_sets(&self) -> Vec<Value> {
        let one = |(number, set): (usize, &Set)| json!({ "name": format!("s{number}"), "count": set.pods.len(), "template": self.template(set) });
        self.sets.iter().enumerate().map(one).collect()
    }

    /// Jobs of a JobSet.
    fn jobs(&self) -> Vec<Value> {
        let one = |(number, set): (usize, &Set)| {
            let count = set.pods.len();
            let job = json!({ "parallelism": count, "completions": count + 1, "template": self.template(set) });
            json!({ "name": format!("s{number}"), "replicas": 1, "template": { "spec": job } })
        };
        self.sets.iter().enumerate().map(one).collect()
    }

    /// Objects of the job's controllers, each with its kind.
    pub fn objects(&self, at: usize) -> Vec<(&'static str, Value)> {
        let meta = |name: &str| json!({ "name": name, "namespace": "team-a", "uid": format!("{name}-uid") });
        let (name, pods) = (format!("job-{at}"), self.sets.iter().map(|set| set.pods.len()).sum::<usize>());
        let policy = |count: usize| json!({ "gang": { "minCount": count } });
        let condition = json!([{ "type": "Finished", "status": if self.is_over { "True" } else { "False" } }]);
        match self.shape {
            Shape::Loose => Vec::new(),
            Shape::PodGroup => {
                vec![("PodGroup", json!({ "metadata": meta(&name), "spec": { "schedulingPolicy": policy(pods) } }))]
            }
            Shape::WorkloadGroup => {
                let groups =
                    json!([{ "name": "g", "policy": policy(pods) }, { "name": "other", "policy": { "basic": {} } }]);
                vec![("Workload", json!({ "metadata": meta(&name), "spec": { "podGroups": groups } }))]
            }
            Shape::LeaderWorkerSet => {
                let [leader, worker] = self.sets.as_slice() else { panic!("a leader and workers") };
                let template = json!({
                    "size": pods, "leaderTemplate": self.template(leader), "workerTemplate": self.template(worker),
                });
                vec![(
                    "LeaderWorkerSet",
                    json!({ "metadata": meta(&name), "spec": { "replicas": 1, "leaderWorkerTemplate": template } }),
                )]
            }
            Shape::Kueue => {
                let spec = json!({ "podSets": self.pod_sets() });
                let mut own = meta(&name);
                own["ownerReferences"] =
                    json!([{ "kind": "Job", "name": name, "uid": format!("{name}-job"), "apiVersion": "batch/v1" }]);
                vec![("KueueWorkload", json!({ "metadata": own, "spec": spec, "status": { "conditions": condition } }))]
            }
            Shape::JobSet { has_kueue, has_groups } => {
                let state = if self.is_over { "Completed" } else { "" };
                let mut all = vec![(
                    "JobSet",
                    json!({
                        "metadata": meta(&name), "spec": { "replicatedJobs": self.jobs() }, "status": { "terminalState": state },
                    }),
                )];
                if has_kueue {
                    let mut own = meta(&format!("jobset-{name}"));
                    own["ownerReferences"] =
                        json!([{ "kind": "JobSet", "name": name, "uid": format!("{name}-uid"), "apiVersion": "x" }]);
                    all.push(("KueueWorkload", json!({ "metadata": own, "spec": { "podSets": self.pod_sets() }, "status": { "conditions": condition } })));
                }
                for (number, set) in self.sets.iter().enumerate().filter(|_| has_groups && !self.is_over) {
                    let spec = json!({ "schedulingPolicy": policy(set.pods.len()) });
                    all.push(("PodGroup", json!({ "metadata": meta(&format!("{name}-s{number}")), "spec": spec })));
                }
                all
            }
        }
    }

    /// A pod of the job; none where it is missing.
    pub fn pod(&self, at: usize, (set, number): (usize, usize)) -> Option<Value> {
        let slot = self.sets[set].pods[number];
        let name = format!("job-{at}-s{set}-{number}");
        let mut pod = self.template(&self.sets[set]);
        pod["metadata"] = json!({
            "name": name, "namespace": "team-a", "uid": name, "labels": {}, "annotations": { "headroom.dev/guarantee-hours": "1" },
            "creationTimestamp": vocab::UnixSeconds::new(START).to_string(),
        });
        let phase = match slot {
            Slot::Missing => return None,
            Slot::Ended => "Succeeded",
            Slot::Waits => "Pending",
            Slot::Runs => "Running",
        };
        pod["status"] = json!({ "phase": phase });
        if slot == Slot::Runs {
            pod["spec"]["nodeName"] = format!("node-{}", self.model).into();
            let bound = vocab::UnixSeconds::new(START + 10 * number as i64).to_string();
            pod["status"]["conditions"] =
                json!([{ "type": "PodScheduled", "status": "True", "lastTransitionTime": bound }]);
        }
        let job = format!("job-{at}");
        match self.shape {
            Shape::Loose => {}
            Shape::PodGroup => pod["spec"]["schedulingGroup"] = json!({ "podGroupName": job }),
            Shape::WorkloadGroup => {
                pod["spec"]["workloadRef"] = json!({ "name": job, "podGroup": "g", "podGroupReplicaKey": "0" });
            }
            Shape::LeaderWorkerSet => {
                pod["metadata"]["labels"]["leaderworkerset.sigs.k8s.io/name"] = job.into();
                pod["metadata"]["labels"]["leaderworkerset.sigs.k8s.io/group-index"] = "0".into();
            }
            Shape::Kueue => {
                let uid = format!("{job}-job");
                pod["metadata"]["ownerReferences"] =
                    json!([{ "kind": "Job", "name": job, "uid": uid, "apiVersion": "batch/v1", "controller": true }]);
                if self.names_workload {
                    pod["metadata"]["annotations"]["kueue.x-k8s.io/workload"] = job.into();
                }
            }
            Shape::JobSet { has_kueue, has_groups } => {
                pod["metadata"]["labels"]["jobset.sigs.k8s.io/jobset-name"] = job.clone().into();
                if has_kueue && self.names_workload {
                    pod["metadata"]["annotations"]["kueue.x-k8s.io/workload"] = format!("jobset-{job}").into();
                }
                if has_groups {
                    pod["spec"]["schedulingGroup"] = json!({ "podGroupName": format!("{job}-s{set}") });
                }
            }
        }
        Some(pod)
    }

    /// Every pod that there is, by set and number.
    pub fn pods(&self) -> Vec<(usize, usize)> {
        let of_set = |set: usize| (0..self.sets[set].pods.len()).map(move |number| (set, number));
        let all = (0..self.sets.len()).flat_map(of_set);
        all.filter(|(set, number)| self.sets[*set].pods[*number] != Slot::Missing).collect()
    }
}
