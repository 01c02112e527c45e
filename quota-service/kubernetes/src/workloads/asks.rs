//! Requests of the pods of a Workload, as far as their templates tell: their classes, and GPUs by claims, which take a view to count.

use super::{SetFacts, WorkloadFacts, annotation_or_label, pod_of};
use crate::claims::{ClaimAsk, Planner};
use crate::cluster::workload::Workload;
use crate::names;
use crate::view::View;
use crate::view::facts::{Reading, gpus_of_pod, selected_model};
use std::collections::{BTreeMap, BTreeSet};
use vocab::GpuModel;

/// Pods of a Workload that are alike.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetAsk {
    name: String,
    count: u32,
    /// Whether they ask for GPUs.
    has_gpus: bool,
    claims: ClaimAsk,
    class: Option<String>,
    /// Flavors that Kueue assigned, for any resource.
    flavors: BTreeSet<String>,
    gpu_model: Option<GpuModel>,
    says_hours: bool,
}

/// Of all sets of pods, in their order. Whether they ask for GPUs is that of the counted resource.
pub(super) fn asks(workload: &Workload, reading: &Reading) -> Vec<SetAsk> {
    let assigned = &workload.status.admission.pod_set_assignments;
    let read = workload.spec.pod_sets.iter().map(|set| {
        let pod = pod_of(set);
        let assignment = assigned.iter().find(|one| one.name == set.name);
        SetAsk {
            name: set.name.clone(),
            count: assignment.and_then(|one| one.count).unwrap_or(set.count),
            has_gpus: gpus_of_pod(&pod, &set.name, &reading.gpu_resource).is_ok_and(|gpus| gpus > 0),
            claims: ClaimAsk::of(&pod, &reading.gpu_resource),
            class: set.template.spec.priority_class_name.clone().filter(|class| !class.is_empty()),
            flavors: assignment.into_iter().flat_map(|one| one.flavors.values().cloned()).collect(),
            gpu_model: selected_model(&pod, &reading.gpu_model_label).and_then(|model| GpuModel::parse(model).ok()),
            says_hours: annotation_or_label(&set.template.metadata, names::GUARANTEE_HOURS).is_some(),
        }
    });
    read.collect()
}

impl SetAsk {
    /// GPUs by claims, beside those by the counted resource. They are of the pool of the flavor that the settings know, where Kueue
    /// assigned one for their class, or else of the one that is selected or that has the devices.
    fn add_to(
        &self,
        sets: &mut Vec<SetFacts>,
        gpus: u64,
        model: Option<GpuModel>,
        flavors: &BTreeMap<String, GpuModel>,
    ) {
        if let Some(set) = sets.iter_mut().find(|set| set.name == self.name) {
            set.gpus = set.gpus.saturating_add(gpus);
            set.gpu_model = set.gpu_model.take().or(model);
            return;
        }
        let mut known = self.flavors.iter().filter(|flavor| flavors.contains_key(*flavor));
        let flavor = known.next().filter(|_| known.next().is_none()).cloned();
        let gpu_model = self.gpu_model.clone().or(model);
        let (name, says_hours, count) = (self.name.clone(), self.says_hours, self.count);
        sets.push(SetFacts { name, says_hours, count, gpus, flavor, gpu_model });
    }
}

impl WorkloadFacts {
    /// Counts the claims of its pods, and judges their classes with that. A claim that they share counts once.
    pub fn read_claims(&mut self, view: &View, planner: &mut Planner<'_>, flavors: &BTreeMap<String, GpuModel>) {
        let (mut shared, mut missing) = (BTreeSet::new(), BTreeSet::new());
        for ask in &mut self.asks {
            let found = planner.gpus_of(&self.namespace, &ask.claims);
            let each_milli = found.each_milli.saturating_mul(u64::from(ask.count));
            let is_new = |(name, gpus): (&String, &u64)| shared.insert(name.clone()).then_some(*gpus);
            let shared_milli: u64 = found.shared_milli.iter().filter_map(is_new).sum();
            let asks_for_some = found.each_milli > 0 || found.shared_milli.values().any(|gpus| *gpus > 0);
            ask.has_gpus |= asks_for_some || !found.missing.is_empty();
            missing.extend(found.missing);
            let gpus = each_milli.saturating_add(shared_milli).div_ceil(1_000);
            if let Some(sets) = self.sets.as_mut().ok().filter(|_| gpus > 0) {
                ask.add_to(sets, gpus, found.model, flavors);
            }
        }
        let names: Vec<String> = missing.into_iter().collect();
        self.uncounted = (!names.is_empty()).then(|| {
            let (names, namespace) = (names.join(" and "), &self.namespace);
            format!(
                "its GPUs by claims are not known, since namespace {namespace} has no {names}: make it, or name another in the pod template"
            )
        });
        self.judge(view.reading(), view.default_class());
    }

    /// Reads the classes of its pods with GPUs, and with them whether its hours count: a class at will is promised nothing, even where
    /// hours are written, and HP needs no promise. Pods that name no class get the default of the cluster, which Kueue has written down
    /// where none of them names one.
    pub(super) fn judge(&mut self, reading: &Reading, default: Option<&str>) {
        let names_one = self.asks.iter().any(|ask| ask.class.is_some());
        let default = self.class.as_deref().filter(|_| !names_one).or(default);
        let with_gpus = self.asks.iter().filter(|ask| ask.has_gpus);
        let classes: BTreeSet<Option<&str>> = with_gpus.map(|ask| ask.class.as_deref().or(default)).collect();
        let is_of = |named: &BTreeSet<String>, class: Option<&str>| class.is_some_and(|class| named.contains(class));
        let are_all_of = |named| !classes.is_empty() && classes.iter().all(|class| is_of(named, *class));
        let is_at_will = are_all_of(&reading.at_will_classes);
        let is_hp = !classes.is_empty() && !classes.iter().any(|class| is_of(&reading.spot_classes, *class));
        self.is_spot = are_all_of(&reading.spot_classes);
        self.is_hp = is_hp;
        self.hours = if is_at_will || is_hp { Ok(None) } else { self.written_hours.clone() };
        self.states_hours = is_at_will || is_hp || self.has_written_hours;
    }
}
