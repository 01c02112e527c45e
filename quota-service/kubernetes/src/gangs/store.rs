//! Gangs with their pods, and what is missing of them.

use super::read::Size;
use super::{Attempt, GangId, GangKey, GangKind, Stated};
use crate::view::facts::{Life, PodFacts, Uid};
use std::collections::{BTreeMap, BTreeSet};
use vocab::{GpuModel, Organization, TaskClass, UnixSeconds};

/// A pod of a gang, that has ended or not.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Member {
    gangs: BTreeSet<GangId>,
    gpus_milli: u64,
    class: TaskClass,
    organization: Organization,
    model: Option<GpuModel>,
}

/// Of whom GPUs are missing.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Missing {
    /// Organization.
    pub organization: Organization,
    /// GPU model that the pods select.
    pub model: Option<GpuModel>,
}

/// Gangs, and their pods.
#[derive(Debug, Clone, Default)]
pub struct Gangs {
    stated: BTreeMap<GangId, Stated>,
    /// Gangs of each object: kind, namespace and name.
    of_object: BTreeMap<(GangKind, String, String), BTreeSet<GangId>>,
    members: BTreeMap<GangId, BTreeSet<Uid>>,
    pods: BTreeMap<Uid, Member>,
    /// Gangs by the UID of their object.
    by_uid: BTreeMap<String, BTreeSet<GangId>>,
    /// Gangs by the UID of an owner.
    by_owner: BTreeMap<String, BTreeSet<GangId>>,
    dirty: BTreeSet<GangId>,
    /// The family that each gang is counted in, by the first of its gangs.
    family_of: BTreeMap<GangId, GangId>,
    families: BTreeMap<GangId, Family>,
}

/// Gangs that are of the same pods, and what was counted for them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Family {
    gangs: BTreeSet<GangId>,
    missing: BTreeMap<Missing, u64>,
}

/// Changes of what is missing, in thousandths of a GPU.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Changes {
    /// No longer missing.
    pub less: BTreeMap<Missing, u64>,
    /// Missing from now on.
    pub more: BTreeMap<Missing, u64>,
}

impl Gangs {
    /// An object is there, or has changed, with the gangs that it states; without any it has gone, or states none. Answers the pods of
    /// gangs that are new.
    pub fn set_object(
        &mut self,
        kind: GangKind,
        namespace: &str,
        name: &str,
        gangs: Vec<(GangKey, Stated)>,
    ) -> BTreeSet<Uid> {
        let object = (kind, namespace.to_owned(), name.to_owned());
        let before = self.of_object.remove(&object).unwrap_or_default();
        let (mut now, mut pods) = (BTreeSet::new(), BTreeSet::new());
        for (key, mut stated) in gangs {
            let id = GangId { namespace: namespace.to_owned(), key };
            now.insert(id.clone());
            if let Some(before) = self.stated.get(&id).filter(|before| before.uid == stated.uid) {
                stated.remember(before);
            }
            if self.stated.get(&id) != Some(&stated) {
                if !self.stated.contains_key(&id) {
                    pods.extend(self.replicas(&id).iter().filter_map(|gang| self.members.get(gang)).flatten());
                }
                self.forget(&id);
                self.index(&id, &stated);
                self.stated.insert(id, stated);
            }
        }
        for gone in before.difference(&now) {
            self.forget(gone);
        }
        if !now.is_empty() {
            self.of_object.insert(object, now);
        }
        pods
    }

    fn index(&mut self, id: &GangId, stated: &Stated) {
        self.by_uid.entry(stated.uid.clone()).or_default().insert(id.clone());
        for owner in &stated.owners {
            self.by_owner.entry(owner.clone()).or_default().insert(id.clone());
        }
        self.touch(id);
    }

    fn forget(&mut self, id: &GangId) {
        self.touch(id);
        let Some(gone) = self.stated.remove(id) else { return };
        let remove = |index: &mut BTreeMap<String, BTreeSet<GangId>>, uid: &String| {
            let is_empty = index.get_mut(uid).is_some_and(|gangs| {
                gangs.remove(id);
                gangs.is_empty()
            });
            if is_empty {
                index.remove(uid);
            }
        };
        remove(&mut self.by_uid, &gone.uid);
        gone.owners.iter().for_each(|owner| remove(&mut self.by_owner, owner));
    }

    /// The gang has to be counted again.
    fn touch(&mut self, id: &GangId) {
        let replicas = self.replicas(id);
        self.dirty.extend(replicas);
    }

    /// The gang as pods name it; a group of a Workload is stated once for all of its replicas.
    fn replicas(&self, id: &GangId) -> BTreeSet<GangId> {
        let mut found = BTreeSet::from([id.clone()]);
        if id.key.kind == GangKind::WorkloadGroup {
            let prefix = format!("{}/", id.key.name);
            let is_one = |other: &&GangId| {
                other.namespace == id.namespace && other.key.kind == id.key.kind && other.key.name.starts_with(&prefix)
            };
            found.extend(self.members.keys().filter(is_one).cloned());
        }
        found
    }

    /// Statements about a gang.
    #[must_use]
    pub fn stated(&self, id: &GangId) -> Option<&Stated> {
        if id.key.kind != GangKind::WorkloadGroup {
            return self.stated.get(id);
        }
        let (group, _) = id.key.name.rsplit_once('/')?;
        self.stated
            .get(&GangId { namespace: id.namespace.clone(), key: GangKey { name: group.to_owned(), ..id.key.clone() } })
    }

    /// The gang that has a pod's promise: the first of those that name it and are stated.
    #[must_use]
    pub fn promised_to(&self, pod: &PodFacts) -> Option<GangId> {
        let ids = pod.gangs.iter().map(|key| GangId { namespace: pod.namespace.clone(), key: key.clone() });
        ids.into_iter().find(|id| self.stated(id).is_some())
    }

    /// UID of the object that states a gang; empty where none does.
    #[must_use]
    pub fn uid_of(&self, id: &GangId) -> &str {
        self.stated(id).map_or("", |stated| &stated.uid)
    }

    /// The attempt that a pod of a gang, on its node since then, is in: the admission of the Workload that Kueue has for it, or else what
    /// the gang's own object states. A pod that got its node before the admission is of an earlier one.
    #[must_use]
    pub fn attempt_of(&self, gang: &GangId, pod: Uid, since: UnixSeconds) -> Option<Attempt> {
        let own = || Attempt::of(gang, self.stated(gang)?);
        if gang.key.kind == GangKind::KueueWorkload {
            return own().filter(|attempt| !attempt.is_after(since));
        }
        let named = self.pods.get(&pod).into_iter().flat_map(|member| &member.gangs);
        let owned = self.stated(gang).and_then(|stated| self.by_owner.get(&stated.uid)).into_iter().flatten();
        let workloads = named.chain(owned).filter(|id| id.key.kind == GangKind::KueueWorkload);
        let mut workloads = workloads.filter_map(|id| Some((id, self.stated(id)?))).peekable();
        if workloads.peek().is_none() {
            return own();
        }
        workloads.filter_map(|(id, stated)| Attempt::of(id, stated)).find(|attempt| !attempt.is_after(since))
    }

    /// Whether an attempt goes on, so that pods which end in it are made again.
    #[must_use]
    pub fn goes_on(&self, attempt: &Attempt) -> bool {
        let stated = self.stated(&attempt.gang).filter(|stated| !stated.is_over);
        stated.and_then(|stated| Attempt::of(&attempt.gang, stated)).is_some_and(|now| now == *attempt)
    }

    /// Why Kueue evicts the Workload of a pod, or has evicted it since the pod got its node, where it does.
    #[must_use]
    pub fn kueue_evicts(&self, pod: &PodFacts) -> Option<&str> {
        let began = pod.since();
        let ids = pod.gangs.iter().map(|key| GangId { namespace: pod.namespace.clone(), key: key.clone() });
        let mut stated = ids.filter_map(|id| self.stated(&id));
        let of_owned = |owner: &Stated| {
            // A pod of a JobSet names the JobSet, which owns the Workload.
            self.by_owner.get(&owner.uid)?.iter().find_map(|id| self.stated.get(id)?.evicts(began))
        };
        stated.find_map(|one| one.evicts(began).or_else(|| of_owned(one)))
    }

    /// A pod is there, has changed, or has ended. One that has ended is not missing.
    pub fn set_pod(&mut self, pod: &PodFacts) {
        let id = |key: &GangKey| GangId { namespace: pod.namespace.clone(), key: key.clone() };
        let known = self.pods.get(&pod.uid);
        // An end does not say what a pod had been counted with.
        let gpus_milli =
            known.filter(|_| pod.life == Life::Ended).map_or_else(|| pod.amount().milli(), |known| known.gpus_milli);
        let member = Member {
            gangs: pod.gangs.iter().map(id).collect(),
            gpus_milli,
            class: pod.class,
            organization: pod.organization.clone(),
            model: pod.gpu_model.clone(),
        };
        if self.pods.get(&pod.uid) == Some(&member) {
            return;
        }
        self.remove_pod(pod.uid);
        for gang in &member.gangs {
            self.members.entry(gang.clone()).or_default().insert(pod.uid);
            self.dirty.insert(gang.clone());
        }
        if !member.gangs.is_empty() {
            self.pods.insert(pod.uid, member);
        }
    }

    /// A pod has gone.
    pub fn remove_pod(&mut self, uid: Uid) {
        let Some(gone) = self.pods.remove(&uid) else { return };
        for gang in gone.gangs {
            let is_empty = self.members.get_mut(&gang).is_some_and(|pods| {
                pods.remove(&uid);
                pods.is_empty()
            });
            if is_empty {
                self.members.remove(&gang);
            }
            self.dirty.insert(gang);
        }
    }

    /// Pods that are not among these have gone.
    pub fn keep_pods(&mut self, seen: &BTreeSet<Uid>) {
        let gone: Vec<Uid> = self.pods.keys().filter(|uid| !seen.contains(uid)).copied().collect();
        for uid in gone {
            self.remove_pod(uid);
        }
    }

    /// Counts all gangs again.
    pub fn touch_all(&mut self) {
        self.dirty.extend(self.stated.keys().chain(self.members.keys()).cloned());
    }

    /// Whether nothing has changed since the last count.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.dirty.is_empty()
    }

    /// Counts gangs that have changed, and all of their families. `of_templates` answers GPUs of templates of claims, in thousandths.
    pub fn settle(&mut self, mut of_templates: impl FnMut(&str, &[String]) -> u64) -> Changes {
        let mut changes = Changes::default();
        let mut todo = std::mem::take(&mut self.dirty);
        while let Some(next) = todo.pop_first() {
            let gangs = self.related(&next);
            for gang in &gangs {
                todo.remove(gang);
                if let Some(before) = self.family_of.remove(gang).and_then(|family| self.families.remove(&family)) {
                    add(&mut changes.less, &before.missing);
                    // Those that are no longer of this family are counted by themselves.
                    for other in before.gangs.difference(&gangs) {
                        self.family_of.remove(other);
                        todo.insert(other.clone());
                    }
                }
            }
            let missing = self.missing_of(&gangs, &mut of_templates);
            add(&mut changes.more, &missing);
            if !missing.is_empty() {
                for gang in &gangs {
                    self.family_of.insert(gang.clone(), next.clone());
                }
                self.families.insert(next, Family { gangs, missing });
            }
        }
        changes
    }

    /// Gangs of the same pods: they share one, or one's object owns the other's.
    fn related(&self, from: &GangId) -> BTreeSet<GangId> {
        let (mut found, mut open) = (BTreeSet::from([from.clone()]), vec![from.clone()]);
        while let Some(id) = open.pop() {
            let pods = self.members.get(&id).into_iter().flatten().filter_map(|uid| self.pods.get(uid));
            let mut near: BTreeSet<GangId> = pods.flat_map(|pod| pod.gangs.iter().cloned()).collect();
            if let Some(stated) = self.stated(&id) {
                near.extend(stated.owners.iter().filter_map(|owner| self.by_uid.get(owner)).flatten().cloned());
                near.extend(self.by_owner.get(&stated.uid).into_iter().flatten().cloned());
            }
            open.extend(near.into_iter().filter(|id| found.insert(id.clone())));
        }
        found
    }

    /// Missing pods of a family: of the kinds that state sizes, the one that misses the most.
    fn missing_of(
        &self,
        gangs: &BTreeSet<GangId>,
        of_templates: &mut impl FnMut(&str, &[String]) -> u64,
    ) -> BTreeMap<Missing, u64> {
        let mut by_kind: BTreeMap<GangKind, BTreeMap<Missing, u64>> = BTreeMap::new();
        let family: BTreeSet<&Uid> = gangs.iter().filter_map(|gang| self.members.get(gang)).flatten().collect();
        for gang in gangs {
            let Some(stated) = self.stated(gang).filter(|stated| !stated.is_over) else { continue };
            let missing = match &stated.size {
                Size::Pods(count) => self.missing_pods(gang, *count),
                Size::Sets(sets) => {
                    // Pods name their Workload where Kueue places by topology, and else none: those of its job are its.
                    let own: BTreeSet<&Uid> = self.members.get(gang).into_iter().flatten().collect();
                    let is_unnamed = own.is_empty() && gang.key.kind == GangKind::KueueWorkload;
                    let pods = if is_unnamed { family.clone() } else { own };
                    self.missing_sets(gang, sets, &pods, of_templates)
                }
            };
            add(by_kind.entry(gang.key.kind).or_default(), &missing);
        }
        let sum = |missing: &BTreeMap<Missing, u64>| missing.values().sum::<u64>();
        let kinds = by_kind.into_values().rev();
        // Of equal ones the first kind.
        kinds.max_by_key(sum).filter(|missing| sum(missing) > 0).unwrap_or_default()
    }

    fn pods_of(&self, gang: &GangId) -> impl Iterator<Item = &Member> {
        self.members.get(gang).into_iter().flatten().filter_map(|uid| self.pods.get(uid))
    }

    /// Missing pods are as the largest that is there.
    fn missing_pods(&self, gang: &GangId, count: u64) -> BTreeMap<Missing, u64> {
        let there = self.pods_of(gang).count() as u64;
        let largest = self.pods_of(gang).filter(|pod| pod.class == TaskClass::Hp).rev_max();
        let Some(pod) = largest else { return BTreeMap::new() };
        let missing = Missing { organization: pod.organization.clone(), model: pod.model.clone() };
        let gpus = count.saturating_sub(there) * pod.gpus_milli;
        (gpus > 0).then_some((missing, gpus)).into_iter().collect()
    }

    /// GPUs that are stated, less those of pods that are there; the last sets are those that miss some.
    fn missing_sets(
        &self,
        gang: &GangId,
        sets: &[super::GangSet],
        pods: &BTreeSet<&Uid>,
        of_templates: &mut impl FnMut(&str, &[String]) -> u64,
    ) -> BTreeMap<Missing, u64> {
        let hp = sets.iter().filter(|set| set.pod.class == TaskClass::Hp);
        let sized: Vec<(&super::SetPod, u64)> = hp
            .map(|set| {
                let each = set.pod.gpus_milli + of_templates(&gang.namespace, &set.pod.templates);
                (&set.pod, set.count.saturating_mul(each))
            })
            .collect();
        let pods = pods.iter().filter_map(|uid| self.pods.get(uid));
        let there: u64 = pods.filter(|pod| pod.class == TaskClass::Hp).map(|pod| pod.gpus_milli).sum();
        let mut left = sized.iter().map(|(_, gpus)| *gpus).sum::<u64>().saturating_sub(there);
        let mut missing = BTreeMap::new();
        for (pod, gpus) in sized.iter().rev() {
            let of_set = left.min(*gpus);
            left -= of_set;
            if of_set > 0 {
                let key = Missing { organization: pod.organization.clone(), model: pod.model.clone() };
                *missing.entry(key).or_insert(0) += of_set;
            }
        }
        missing
    }
}

/// The largest member, and of equal ones the first.
trait RevMax<'a> {
    fn rev_max(self) -> Option<&'a Member>;
}

impl<'a, I: Iterator<Item = &'a Member>> RevMax<'a> for I {
    fn rev_max(self) -> Option<&'a Member> {
        self.fold(None, |most, one| match most {
            Some(most) if one.gpus_milli <= most.gpus_milli => Some(most),
            _ => Some(one),
        })
    }
}

fn add(all: &mut BTreeMap<Missing, u64>, more: &BTreeMap<Missing, u64>) {
    for (key, gpus) in more {
        *all.entry(key.clone()).or_insert(0) += gpus;
    }
}
