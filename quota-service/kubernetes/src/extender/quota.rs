//! Whether a pod may have the quota that it asks for.

use super::ExtenderState;
use crate::headroom::Offer;
use crate::view::facts::{FactFault, PodFacts, Reading, Uid, is_spot};
use crate::{cluster::slim::Pod, names};
use placement::assumed::{Ask, NotAdmitted};
use placement::staleness::{Stage, stage};
use std::fmt;
use std::time::Instant;
use vocab::{HorizonHours, MilliGpus, TaskClass, UnixSeconds};

/// Why a pod gets no node now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refused {
    NotAdmitted(NotAdmitted),
    /// It is spot and cannot be read: it would not be counted.
    Unreadable(FactFault),
    NoPool {
        hours: HorizonHours,
        label: String,
    },
    /// The deadline passed.
    NotInTime {
        hours: HorizonHours,
    },
    /// The cluster has not been watched for a while.
    Stale {
        hours: HorizonHours,
    },
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAdmitted(why) => write!(f, "headroom: {why}"),
            Self::Unreadable(fault) => write!(f, "headroom: {fault}"),
            Self::NoPool { hours, label } => write!(
                f,
                "headroom: a guarantee of {hours} is of a GPU model, and the pod selects none: give it {label} as node selector"
            ),
            Self::Stale { hours } => {
                write!(f, "headroom: a guarantee of {hours} is not given now: the cluster is not watched at the moment")
            }
            Self::NotInTime { hours } => {
                let key = names::GUARANTEE_HOURS;
                write!(f, "headroom: the quota for {hours} was not checked in time; without {key} the pod needs none")
            }
        }
    }
}

/// A pod as the extender sees it.
#[derive(Debug)]
pub enum Asking {
    /// It asks for nothing that has a quota.
    Free,
    /// It is spot, and asks for a guarantee.
    Guaranteed(Box<PodFacts>, HorizonHours),
}

impl Asking {
    /// # Errors
    /// It is spot, and cannot be read.
    pub fn of(pod: &Pod, reading: &Reading) -> Result<Self, Refused> {
        match PodFacts::read(pod, reading) {
            Ok(Some((facts, _))) => {
                Ok(facts.guarantee.map_or(Self::Free, |hours| Self::Guaranteed(Box::new(facts), hours)))
            }
            Err(fault) if is_spot(pod, reading) => Err(Refused::Unreadable(fault)),
            Ok(None) | Err(_) => Ok(Self::Free),
        }
    }
}

/// Answer without time for the quota. HP and at-will pods pass. A guarantee is not given unchecked: two pods at once would be
/// promised the same GPUs, and a broken promise costs more than a pod that is tried again in some seconds.
///
/// # Errors
/// The pod gets no node now.
pub fn neutral(pod: &Pod, reading: &Reading) -> Result<(), Refused> {
    match Asking::of(pod, reading)? {
        Asking::Free => Ok(()),
        Asking::Guaranteed(_, hours) => Err(Refused::NotInTime { hours }),
    }
}

/// Lets a pod through that keeps the quota, and counts it until it is seen on a node.
///
/// # Errors
/// The pod gets no node now.
pub fn judge(state: &ExtenderState, pod: &Pod, by: Instant) -> Result<(), Refused> {
    let Asking::Guaranteed(facts, hours) = Asking::of(pod, &state.reading)? else { return Ok(()) };
    if state.shared.is_stale() {
        return Err(Refused::Stale { hours });
    }
    let now = state.now();
    let offers = state.offers.borrow().clone();
    let view = state.view();
    if view.pod(&facts.uid).is_some_and(|known| known.node.is_some()) {
        // It is counted where it is.
        return Ok(());
    }
    let Some(model) = view.model_of(&facts) else {
        return Err(Refused::NoPool { hours, label: state.reading.gpu_model_label.clone() });
    };
    let pool = view.pools().get(&model);
    let running = |hours| pool.map_or(MilliGpus::default(), |pool| pool.promised(hours));
    let (limits, stage) = offers.pools.get(&model).map_or((&[][..], Stage::Fresh), |offer| current(offer, now));
    let mut assumed = state.assumed();
    assumed.pass_to(now);
    if Instant::now() >= by {
        // The scheduler no longer waits for the answer: a pod that passes now would count in vain.
        return Err(Refused::NotInTime { hours });
    }
    let Uid(task) = facts.uid;
    let ask = Ask { task, gpus: facts.amount(), hours };
    let until = now.plus_s(state.assumed_s);
    assumed.admit(&model, ask, (limits, stage), running, until).map_err(Refused::NotAdmitted)
}

/// An offer ages here, too: Headroom may have fallen silent since.
fn current(offer: &Offer, now: UnixSeconds) -> (&[placement::Limit], Stage) {
    (&offer.limits, offer.stage.max(stage(offer.computed_at, now).0))
}

/// HP takes GPUs without a quota, and evicts for them; spot evicts no pod.
pub fn may_evict(pod: &Pod, reading: &Reading) -> bool {
    match PodFacts::read(pod, reading) {
        Ok(Some((facts, _))) => facts.class == TaskClass::Hp,
        _ => !is_spot(pod, reading),
    }
}
