//! Spot pods make room for HP pods that wait, in a cluster without Kueue.
//!
//! An eviction is announced first, so that a program can save its work, and taken back where the HP pod no longer waits. Pods go
//! through the eviction API alone, which heeds disruption budgets. Freed GPUs are held for the HP pod: no more is
//! evicted for the same pod until all of that has gone, and if it cannot use it, none for an hour.

pub mod choose;
mod pods;
#[cfg(test)]
mod tests;

use crate::calls::{Calls, Fault};
use crate::cluster::watch::Shared;
use crate::config::Config;
use crate::events::{Events, Note, Regarding};
use crate::headroom::Offers;
use crate::lead::{Epoch, Fence};
use crate::notice::{Notice, Notices};
use crate::view::facts::{Life, PodFacts, Uid};
use choose::{Claim, Held, choose};
use kube::Client;
use pods::{Cycles, Pods};
use serving::standing::Standing;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use vocab::{TaskClass, UnixSeconds};

/// Of one request.
const ANSWERS_WITHIN: Duration = Duration::from_secs(10);
/// Rounds that the scheduler and controllers of pods get first.
const LOOKS: u32 = 2;
/// HP pods for which victims are chosen in one look.
const MOST_CLAIMS: usize = 16;
/// Announcements that are taken back in one look.
const MOST_TAKEN_BACK: usize = 50;
/// A pod whose eviction a budget refused is left alone for so long.
const SPARED_S: i64 = 300;
/// For so long freed GPUs are held: the scheduler tries a pod again after 5 minutes at the latest, and mostly within seconds.
const HELD_S: i64 = 300;
/// An HP pod that could not use freed GPUs gets no more for so long: a cause that we do not see keeps it from there.
const IN_VAIN_S: i64 = vocab::SECONDS_PER_HOUR;

/// Evicts until `stop` is set. Writes only while this replica leads.
pub async fn run(
    client: Client,
    config: Arc<Config>,
    shared: Arc<Shared>,
    _offers: watch::Receiver<Arc<Offers>>,
    lead: watch::Receiver<Option<Epoch>>,
    mut stop: watch::Receiver<bool>,
) {
    let every = Duration::from_secs(config.poll_s);
    let notices = match Notices::new(&client, &config) {
        Ok(notices) => notices,
        Err(fault) => return tracing::error!(%fault, "no notice of evictions can be given: none is made"),
    };
    let mut evictor = Evictor::new(client, &config, Arc::clone(&shared), Fence::new(lead), notices);
    let looking = async {
        loop {
            // Half a cluster, or an old one, has less room than there is.
            let is_whole = shared.synced().borrow().is_whole();
            if is_whole && !shared.is_stale() {
                evictor.look(shared.now()).await;
            }
            tokio::time::sleep(every).await;
        }
    };
    tokio::select! {
        () = looking => {}
        _ = stop.wait_for(|stops| *stops) => {}
    }
}

struct Evictor {
    pods: Pods,
    notices: Notices,
    shared: Arc<Shared>,
    fence: Fence,
    grace_s: i64,
    /// Looks that each HP pod has waited through.
    looks: BTreeMap<Uid, u32>,
    claims: BTreeMap<Uid, Claim>,
    /// Pods whose eviction was refused, and until when they are left alone.
    spared: BTreeMap<Uid, UnixSeconds>,
    /// HP pods that could not use what was freed, until when nothing is freed for them.
    in_vain: BTreeMap<Uid, UnixSeconds>,
    cycles: Cycles,
    events: Events,
    standing: Standing,
}

fn regarding(pod: &PodFacts) -> Regarding {
    Regarding::pod(&pod.namespace, &pod.name, &pod.uid.to_string())
}

fn count(outcome: &'static str) {
    metrics::counter!("headroom_kubernetes_evictions_total", "outcome" => outcome).increment(1);
}

impl Evictor {
    fn new(client: Client, config: &Config, shared: Arc<Shared>, fence: Fence, notices: Notices) -> Self {
        Self {
            pods: Pods::new(Calls::new(client, ANSWERS_WITHIN)),
            notices,
            events: shared.events(),
            shared,
            fence,
            grace_s: i64::try_from(config.evict_grace_s).unwrap_or(i64::MAX),
            looks: BTreeMap::new(),
            claims: BTreeMap::new(),
            spared: BTreeMap::new(),
            in_vain: BTreeMap::new(),
            cycles: Cycles::default(),
            standing: Standing::new(),
        }
    }

    async fn look(&mut self, now: UnixSeconds) {
        self.note(now);
        if self.fence.epoch().is_none() {
            // The next leader takes our announcements back.
            self.claims.clear();
            return;
        }
        let went = self.act(now).await;
        self.standing.note(
            "",
            &went,
            |fault| tracing::warn!(%fault, "no room can be made for HP pods: a message follows when it can"),
            |over| tracing::info!(lasted_s = over.lasted_s, times = over.times, "room is made for HP pods again"),
        );
    }

    /// Reads the current pods.
    fn note(&mut self, now: UnixSeconds) {
        let view = self.shared.read();
        let waits = |pod: &&PodFacts| pod.class == TaskClass::Hp && pod.life == Life::Waits && !pod.is_going;
        let waiting = view.pods().values().filter(waits).map(|pod| pod.uid);
        self.looks =
            waiting.map(|uid| (uid, self.looks.get(&uid).map_or(1, |looks| looks.saturating_add(1)))).collect();
        for claim in self.claims.values_mut() {
            claim.victims.retain(|uid| view.pod(uid).is_some_and(|pod| pod.life == Life::Runs));
            if claim.victims.is_empty() {
                claim.free_since.get_or_insert(now);
            }
        }
        self.spared.retain(|_, until| *until > now);
        self.in_vain.retain(|_, until| *until > now);
        self.cycles.forget(now);
    }

    async fn act(&mut self, now: UnixSeconds) -> Result<(), Fault> {
        self.release(now);
        self.take_back().await?;
        let is_due = |claim: &Claim| claim.at <= now || self.are_ready(claim);
        let due: Vec<Uid> = self.claims.iter().filter(|(_, claim)| is_due(claim)).map(|(uid, _)| *uid).collect();
        for pod in due {
            self.evict(pod, now).await?;
        }
        self.claim(now).await
    }

    /// Whether all victims that are still there have reported their work as saved: they need no more time.
    fn are_ready(&self, claim: &Claim) -> bool {
        let view = self.shared.read();
        let is_ready = |uid: &Uid| view.pod(uid).is_some_and(|pod| self.notices.is_ready(pod, claim.at));
        !claim.victims.is_empty() && claim.victims.iter().all(is_ready)
    }

    /// Claims that have come to their end: the pod has its place or has gone, or could not use what was freed.
    fn release(&mut self, now: UnixSeconds) {
        let shared = Arc::clone(&self.shared);
        let view = shared.read();
        let looks = &self.looks;
        for pod in choose::hand_over(&mut self.claims, &view, |pod| looks.contains_key(pod)) {
            // Not its fault: it is its turn again.
            self.claims.remove(&pod);
            count("taken_by_another");
            let Some(PodFacts { namespace, name, .. }) = view.pod(&pod) else { continue };
            tracing::info!(namespace, name, "GPUs that were freed for an HP pod went to another HP pod");
        }
        let over = |claim: &Claim| claim.free_since.is_some_and(|since| now.since_s(since) >= HELD_S);
        let ended: Vec<Uid> = self.claims.iter().filter(|(_, claim)| over(claim)).map(|(pod, _)| *pod).collect();
        for pod in ended {
            self.claims.remove(&pod);
            let Some(facts) = view.pod(&pod) else { continue };
            let PodFacts { namespace, name, .. } = facts;
            let text = "GPUs were freed for it, and it still waits: nothing is freed for it for an hour".to_owned();
            self.events.tell(regarding(facts), Note::warning("RoomInVain", "Evict", text));
            self.in_vain.insert(pod, now.plus_s(IN_VAIN_S));
            count("in_vain");
            tracing::warn!(
                namespace,
                name,
                "GPUs were freed for an HP pod, and it still waits: nothing is freed for it for an hour"
            );
        }
    }

    /// Announcements that no claim stands for, ours or those of a leader before.
    async fn take_back(&mut self) -> Result<(), Fault> {
        let claimed: BTreeSet<Uid> = self.claims.values().flat_map(|claim| claim.victims.iter().copied()).collect();
        let announced: Vec<PodFacts> = {
            let view = self.shared.read();
            let stale = |pod: &&PodFacts| pod.is_announced && !pod.is_going && !claimed.contains(&pod.uid);
            view.pods().values().filter(stale).take(MOST_TAKEN_BACK).cloned().collect()
        };
        for pod in announced {
            if self.fence.epoch().is_none() {
                return Ok(());
            }
            if let Some(found) = self.pods.take_back(&pod).await? {
                let text = "its GPUs are not needed any more".to_owned();
                self.events.tell(regarding(&pod), Note::normal("EvictionTakenBack", "Announce", text));
                count("taken_back");
                self.notices.take_back(&pod, &found).await;
            }
        }
        Ok(())
    }

    /// Evicts the victims of one claim, if the pod waits still.
    async fn evict(&mut self, pod: Uid, now: UnixSeconds) -> Result<(), Fault> {
        let facts = self.shared.read().pod(&pod).cloned();
        let waits = match &facts {
            Some(facts) => self.pods.still_waits(facts).await?,
            None => false,
        };
        let Some(claim) = self.claims.get(&pod).filter(|_| waits).cloned() else {
            self.claims.remove(&pod);
            return Ok(());
        };
        let left: Vec<PodFacts> = {
            let view = self.shared.read();
            claim.victims.difference(&claim.evicted).filter_map(|victim| view.pod(victim).cloned()).collect()
        };
        if let Some(refused) = self.refused(&left).await? {
            self.spare(pod, refused, now);
            return Ok(());
        }
        for facts in left {
            let victim = &facts.uid;
            if self.fence.epoch().is_none() {
                return Ok(());
            }
            match self.pods.evict(&facts).await {
                Ok(owner) => {
                    let text = "its GPUs are needed by an HP pod".to_owned();
                    self.events.tell(regarding(&facts), Note::normal("Evicted", "Evict", text));
                    count("evicted");
                    self.notices.evicted(&facts, now);
                    self.evicted(pod, *victim);
                    if self.cycles.evicted(&owner, now) {
                        metrics::counter!("headroom_kubernetes_eviction_cycles_total").increment(1);
                        tracing::warn!(owner, "pods of one owner are evicted again and again");
                    }
                }
                Err(Fault::Absent { .. } | Fault::Stale { .. }) => {
                    count("gone");
                    self.evicted(pod, *victim);
                }
                // A budget that covers several victims let each go alone. The others stay: without this one they would go
                // for nothing. Freed GPUs are idle, and the next choice counts them.
                Err(Fault::Budget { .. }) => {
                    self.spare(pod, *victim, now);
                    return Ok(());
                }
                Err(fault) => {
                    count("failed");
                    return Err(fault);
                }
            }
        }
        Ok(())
    }

    /// The first victim that a budget keeps, by a trial of each: all of them go, or none.
    async fn refused(&self, victims: &[PodFacts]) -> Result<Option<Uid>, Fault> {
        for victim in victims {
            match self.pods.may_evict(victim).await {
                // One that has gone is no obstacle.
                Ok(()) | Err(Fault::Absent { .. } | Fault::Stale { .. }) => {}
                Err(Fault::Budget { .. }) => return Ok(Some(victim.uid)),
                Err(fault) => return Err(fault),
            }
        }
        Ok(None)
    }

    /// Leaves a victim alone for a while, and drops the claim: another one is chosen.
    fn spare(&mut self, pod: Uid, victim: Uid, now: UnixSeconds) {
        count("budget");
        self.spared.insert(victim, now.plus_s(SPARED_S));
        self.claims.remove(&pod);
    }

    fn evicted(&mut self, pod: Uid, victim: Uid) {
        if let Some(claim) = self.claims.get_mut(&pod) {
            claim.evicted.insert(victim);
        }
    }

    /// Chooses victims for HP pods that have waited long enough, and announces the evictions.
    async fn claim(&mut self, now: UnixSeconds) -> Result<(), Fault> {
        let patient = self.looks.iter().filter(|(pod, looks)| **looks > LOOKS && !self.in_vain.contains_key(pod));
        let waiting: BTreeSet<Uid> = patient.map(|(pod, _)| *pod).collect();
        let spared: BTreeSet<Uid> = self.spared.keys().copied().collect();
        let at = now.plus_s(self.grace_s);
        let chosen: Vec<(PodFacts, Claim, Vec<PodFacts>)> = {
            let view = self.shared.read();
            let held = Held { claims: &self.claims, spared: &spared };
            let found = choose(&view, &waiting, held, at, now).into_iter().take(MOST_CLAIMS);
            found
                .filter_map(|(pod, claim)| {
                    let victims = claim.victims.iter().filter_map(|uid| view.pod(uid).cloned()).collect();
                    Some((view.pod(&pod)?.clone(), claim, victims))
                })
                .collect()
        };
        for (pod, claim, victims) in chosen {
            // The view does not know whether the scheduler has tried it, or another cause holds it back.
            if !self.pods.still_waits(&pod).await? {
                continue;
            }
            if self.fence.epoch().is_none() {
                return Ok(());
            }
            // No program saves its work for an eviction that a budget forbids.
            if let Some(kept) = self.refused(&victims).await? {
                self.spare(pod.uid, kept, now);
                continue;
            }
            let mut is_whole = true;
            for victim in victims {
                if self.fence.epoch().is_none() {
                    return Ok(());
                }
                match self.pods.announce(&victim, at).await {
                    Ok(found) => {
                        let text = format!("it is evicted at {at}: save its work by then");
                        self.events.tell(regarding(&victim), Note::warning("EvictionAnnounced", "Announce", text));
                        count("announced");
                        self.notices.announce(Notice::of(&victim, &found, at, now)).await;
                    }
                    // It changed or has gone: the next round chooses again, and takes the announcement back.
                    Err(Fault::Absent { .. } | Fault::Stale { .. }) => is_whole = false,
                    Err(fault) => return Err(fault),
                }
            }
            if is_whole {
                let (namespace, name) = (&pod.namespace, &pod.name);
                tracing::info!(namespace, name, victims = claim.victims.len(), %at, "spot pods are to make room");
                self.claims.insert(pod.uid, claim);
            }
        }
        Ok(())
    }
}
