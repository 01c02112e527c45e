//! Loss of each pod on a node by an eviction, ready for comparison: a request names up to 320,000 pods, and the pods of a node lie
//! beside each other.

use super::offer::UidSum;
use crate::view::facts::{Life, PodFacts, Uid};
use crate::view::{End, View};
use placement::fleet::History;
use placement::fleet::offered::Victim;
use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};
use vocab::{TaskClass, UnixSeconds};

/// G and F of Eq. 18 count spot pods that ended within a day.
const HISTORY_S: i64 = vocab::SECONDS_PER_DAY;

/// UIDs are drawn by the API server: their bits need no mixing.
#[derive(Debug, Default, Clone, Copy)]
struct Drawn(u64);

impl Hasher for Drawn {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        debug_assert!(bytes.is_empty(), "a UID is written as one number");
    }

    fn write_u128(&mut self, uid: u128) {
        self.0 = (uid >> 64) as u64 ^ uid as u64;
    }
}

/// The pods of one node. A question looks for up to 240,000 of them: each look is one of a table, not a search.
#[derive(Debug, Default)]
pub struct Here {
    places: HashMap<Uid, usize, BuildHasherDefault<Drawn>>,
    uids: Vec<Uid>,
    victims: Vec<Victim>,
    sum: UidSum,
}

impl Here {
    /// Loss of all pods, where these are all that are known here; else each has to be looked for.
    pub fn all(&self, sum: UidSum) -> Option<&[Victim]> {
        (self.sum == sum).then_some(&self.victims)
    }

    /// Loss of a pod; unknown for a pod that we do not know.
    pub fn of(&self, uid: Uid) -> Victim {
        self.places.get(&uid).map_or(Victim::UNKNOWN, |place| self.victims[*place])
    }

    fn put(&mut self, uid: Uid, victim: Victim) {
        if let Some(place) = self.places.get(&uid) {
            self.victims[*place] = victim;
            return;
        }
        self.sum.add(uid);
        self.places.insert(uid, self.uids.len());
        self.uids.push(uid);
        self.victims.push(victim);
    }

    fn take(&mut self, uid: Uid) {
        let Some(place) = self.places.remove(&uid) else { return };
        self.sum.remove(uid);
        self.uids.swap_remove(place);
        self.victims.swap_remove(place);
        if let Some(moved) = self.uids.get(place) {
            self.places.insert(*moved, place);
        }
        debug_assert_eq!((self.places.len(), self.victims.len()), (self.uids.len(), self.uids.len()));
    }
}

/// How a pod stands on its node.
#[derive(Debug)]
struct Known {
    node: Box<str>,
    /// Whether it is spot and evicted for its GPUs.
    is_evicted: bool,
}

/// Pods on their nodes.
#[derive(Debug, Default)]
pub struct Burdens {
    nodes: HashMap<Box<str>, Here>,
    pods: HashMap<Uid, Known>,
    /// Spot pods that ended, and whether they were evicted.
    ended: VecDeque<(UnixSeconds, bool)>,
}

impl Burdens {
    /// Those of a view.
    pub fn of(view: &View, now: UnixSeconds) -> Self {
        let mut burdens = Self::default();
        view.pods().values().for_each(|pod| burdens.seen(pod, now));
        burdens
    }

    /// The pods of another, and what is known of those that ended.
    pub fn renew(&mut self, read: Self) {
        *self = Self { ended: std::mem::take(&mut self.ended), ..read };
    }

    /// A pod is there, or has changed.
    pub fn seen(&mut self, pod: &PodFacts, now: UnixSeconds) {
        let Some(node) = pod.node.as_ref().filter(|_| pod.life == Life::Runs) else {
            if self.pods.contains_key(&pod.uid) && pod.life == Life::Ended {
                let is_evicted = End::of(pod, true).is_eviction();
                self.end(pod.class, is_evicted, now);
            }
            self.lift(pod.uid);
            return;
        };
        if self.pods.get(&pod.uid).is_some_and(|known| *known.node != *node.as_str()) {
            self.lift(pod.uid);
        }
        let here = self.nodes.entry(node.as_str().into()).or_default();
        here.put(pod.uid, victim(pod, now));
        let is_evicted = pod.class == TaskClass::Spot && End::of(pod, false).is_eviction();
        self.pods.insert(pod.uid, Known { node: node.as_str().into(), is_evicted });
    }

    /// A pod is no longer there.
    pub fn forget(&mut self, uid: Uid, now: UnixSeconds) {
        if self.lift(uid).is_some_and(|known| known.is_evicted) {
            self.end(TaskClass::Spot, true, now);
        }
    }

    /// The pods of a node; none where there are none.
    pub fn on(&self, node: &str) -> Option<&Here> {
        self.nodes.get(node)
    }

    /// Spot pods that ended within a day, well or evicted.
    pub fn history(&self, now: UnixSeconds) -> History {
        let lately = self.ended.iter().filter(|(at, _)| now.since_s(*at) < HISTORY_S);
        lately.fold(History::default(), |History { finished, evicted }, (_, is_evicted)| History {
            finished: finished + u64::from(!is_evicted),
            evicted: evicted + u64::from(*is_evicted),
        })
    }

    fn end(&mut self, class: TaskClass, is_evicted: bool, now: UnixSeconds) {
        if class != TaskClass::Spot {
            return;
        }
        while self.ended.front().is_some_and(|(at, _)| now.since_s(*at) >= HISTORY_S) {
            self.ended.pop_front();
        }
        self.ended.push_back((now, is_evicted));
    }

    fn lift(&mut self, uid: Uid) -> Option<Known> {
        let known = self.pods.remove(&uid)?;
        if let Some(here) = self.nodes.get_mut(&known.node) {
            here.take(uid);
            if here.uids.is_empty() {
                self.nodes.remove(&known.node);
            }
        }
        Some(known)
    }
}

fn victim(pod: &PodFacts, now: UnixSeconds) -> Victim {
    // A clock that runs ahead must not make a promise longer.
    let since = pod.since().min(now);
    Victim {
        class: pod.class,
        gpus_milli: pod.gpus * 1_000,
        saved: pod.saved.unwrap_or(since).max(since),
        promised_until: pod.guarantee.map(|hours| since.plus_s(hours.seconds())),
        // The API does not tell which GPUs of its node a pod has.
        gpus: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn a_node_knows_the_loss_of_each_of_its_pods_in_any_order_of_coming_and_going() {
        let (mut here, mut wanted, mut drawn) = (Here::default(), BTreeMap::new(), 27_u64);
        for step in 0..5_000_u32 {
            drawn = drawn.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            // Few numbers, whose halves are often equal, so that many meet in one place of the table.
            let uid = Uid(u128::from(drawn >> 61) << 64 | u128::from(drawn >> 58 & 7));
            let victim = Victim { gpus_milli: step, ..Victim::UNKNOWN };
            if drawn >> 57 & 1 == 0 {
                here.put(uid, victim);
                wanted.insert(uid, victim);
            } else {
                here.take(uid);
                wanted.remove(&uid);
            }
            assert!(wanted.iter().all(|(uid, victim)| here.of(*uid) == *victim), "step {step}");
            let mut sum = UidSum::default();
            for uid in wanted.keys() {
                sum.add(*uid);
            }
            let of_all = |all: &[Victim]| {
                let mut gpus_milli: Vec<u32> = all.iter().map(|victim| victim.gpus_milli).collect();
                gpus_milli.sort_unstable();
                gpus_milli
            };
            let known: Vec<Victim> = wanted.values().copied().collect();
            assert_eq!(here.all(sum).map(of_all), Some(of_all(&known)), "step {step}");
        }
        assert_eq!(here.of(Uid(u128::MAX)), Victim::UNKNOWN);
    }
}
