//! Loss of each pod on a node by an eviction, ready for comparison: a request names up to 320,000 pods, and the pods of a node lie
//! beside each other.

use super::offer::UidSum;
use crate::view::facts::{Life, PodFacts, Uid};
use crate::view::{End, View};
use placement::fleet::History;
use placement::fleet::offered::Victim;
use std::collections::{HashMap, VecDeque};
use vocab::{TaskClass, UnixSeconds};

/// G and F of Eq. 18 count spot pods that ended within a day.
const HISTORY_S: i64 = vocab::SECONDS_PER_DAY;

/// The pods of one node, by their UIDs.
#[derive(Debug, Default)]
pub struct Here {
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
        self.uids.binary_search(&uid).map_or(Victim::UNKNOWN, |place| self.victims[place])
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
        let victim = victim(pod, now);
        match here.uids.binary_search(&pod.uid) {
            Ok(place) => here.victims[place] = victim,
            Err(place) => {
                here.sum.add(pod.uid);
                here.uids.insert(place, pod.uid);
                here.victims.insert(place, victim);
            }
        }
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
            if let Ok(place) = here.uids.binary_search(&uid) {
                here.sum.remove(uid);
                here.uids.remove(place);
                here.victims.remove(place);
            }
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
