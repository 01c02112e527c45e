//! One task, one decision (GFS Algorithm 3): quota first, then idle GPUs, then, for HP alone, the cheapest evictions.

use crate::fleet::{Fleet, Gang, GpuRequest, Guarantee, History, Plan, PodRequest, Wish, Workload};
use crate::invariants;
use crate::policy::{Admission, Policy};
use crate::shares::AboveFairShare;
use crate::topology::Domain;
use std::cmp::Reverse;
use std::fmt;
use vocab::{HorizonHours, MilliGpus, TaskClass, TaskId, UnixSeconds};

/// Place in the queue: HP before spot; of each class larger requests first, then more pods, then earlier ones (DESIGN §4.9).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct QueueOrder {
    class: TaskClass,
    gpus_per_pod: Reverse<u32>,
    pods: Reverse<u32>,
    submitted: UnixSeconds,
    task: TaskId,
}

impl QueueOrder {
    /// Place of a gang in the queue, by its size and the instant at which it was submitted.
    #[must_use]
    pub fn of(gang: &Gang, submitted: UnixSeconds) -> Self {
        let (gpus_per_pod, pods) = (Reverse(gang.pod.gpus.milli()), Reverse(gang.pods));
        Self { class: gang.class, gpus_per_pod, pods, submitted, task: gang.task.clone() }
    }
}

/// Q_H of one offered number of hours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit {
    /// Guarantee hours H.
    pub hours: HorizonHours,
    /// Quota of H, in GPUs.
    pub quota: MilliGpus,
}

/// Why a task waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// Nobody offers so long a guarantee.
    NotOffered {
        /// Hours of the requested guarantee.
        hours: HorizonHours,
        /// The offered guarantees, shortest first; none before the first quota.
        offered: Vec<HorizonHours>,
    },
    /// A promise of these hours would not be kept at the guarantee rate.
    OverQuota {
        /// Hours whose quota is exceeded.
        hours: HorizonHours,
        /// The quota of these hours.
        quota: MilliGpus,
        /// GPUs promised for at least these hours already.
        promised: MilliGpus,
        /// GPUs of the request over all pods.
        asked: MilliGpus,
    },
    /// Not even if the pool were empty.
    FitsNever {
        /// GPUs of one pod.
        gpus: GpuRequest,
        /// Pods of the request.
        pods: u32,
    },
    /// Not now: there are not enough idle GPUs where they would have to be.
    NothingIdle {
        /// GPUs of the request over all pods.
        asked: MilliGpus,
        /// Idle GPUs of nodes from which spot stays away, since it was evicted there too often.
        resting: u32,
    },
    /// Not now: even without any spot task there is no room.
    HeldByHp {
        /// GPUs of the request over all pods.
        asked: MilliGpus,
    },
    /// Its organization is above its fair share, and what it asks for is kept for one below.
    AboveFairShare(AboveFairShare),
    /// Not now: what it would take is kept for the organization of a reserved window that is open.
    KeptForReservation {
        /// GPUs of the request over all pods.
        asked: MilliGpus,
        /// GPUs that are kept.
        kept: MilliGpus,
        /// The first end of such a window.
        until: UnixSeconds,
    },
    /// The promise would reach into a reserved window.
    ReachesReservation {
        /// Hours of the requested guarantee.
        hours: HorizonHours,
        /// The instant at which there is too little room for it.
        at: UnixSeconds,
        /// GPUs that windows and other promises leave then.
        left: MilliGpus,
        /// GPUs of the request over all pods.
        asked: MilliGpus,
    },
    /// Its GPUs cannot lie as they are guaranteed to.
    NotAligned {
        /// GPUs of the request over all pods.
        asked: MilliGpus,
        /// The domain that the GPUs of a pod have to share.
        domain: Domain,
        /// The part that fails.
        why: Misaligned,
    },
}

/// Why GPUs cannot lie as they are guaranteed to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Misaligned {
    /// The policy does not look at topology.
    Blind,
    /// No node says a topology on which they could.
    Never,
    /// Not now: as many GPUs could be had, but they do not lie so.
    NotNow,
}

/// Code of [`Refusal::AboveFairShare`], whose sentence names the organization below and its task.
pub const ABOVE_FAIR_SHARE: &str = "above_fair_share";

impl Refusal {
    /// Stable name for programs.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::NotOffered { .. } => "guarantee_not_offered",
            Self::OverQuota { .. } => "over_quota",
            Self::FitsNever { .. } => "fits_never",
            Self::NothingIdle { .. } => "nothing_idle",
            Self::HeldByHp { .. } => "held_by_hp",
            Self::AboveFairShare(_) => ABOVE_FAIR_SHARE,
            Self::KeptForReservation { .. } => "kept_for_reservation",
            Self::ReachesReservation { .. } => "reaches_reservation",
            Self::NotAligned { .. } => "not_aligned",
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotOffered { hours, offered } => match offered.as_slice() {
                [] => write!(f, "a guarantee of {hours} is not offered: there is no quota yet"),
                [only] => write!(f, "a guarantee of {hours} is not offered: choose {only}"),
                [shorter @ .., last] => {
                    let shorter: Vec<String> = shorter.iter().map(ToString::to_string).collect();
                    write!(f, "a guarantee of {hours} is not offered: choose {} or {last}", shorter.join(", "))
                }
            },
            Self::OverQuota { hours, quota, promised, asked } => write!(
                f,
                "{asked} GPUs more than the {promised} that are promised for {hours} would exceed the quota of {quota}"
            ),
            Self::FitsNever { gpus, pods } => {
                let each = match gpus {
                    GpuRequest::Whole(gpus) => vocab::gpus(gpus).to_string(),
                    GpuRequest::Share(milli) => format!("0.{milli:03} of a GPU"),
                };
                {
                    let pods = vocab::count(pods, "pod");
                    write!(f, "no room for {pods} of {each} even if the pool were empty: too few nodes are that large")
                }
            }
            Self::NothingIdle { asked, resting: 0 } => write!(f, "{asked} GPUs do not fit on what is idle now"),
            Self::NothingIdle { asked, resting } => {
                let gpus = vocab::gpus(resting);
                write!(
                    f,
                    "{asked} GPUs do not fit on what is idle now beside {gpus} of nodes that rest: spot was evicted there too often \
                     within the hour, and stays away until that is over"
                )
            }
            Self::HeldByHp { asked } => {
                write!(f, "{asked} GPUs do not fit on the open nodes beside the HP tasks that run, even without spot")
            }
            Self::AboveFairShare(above) => above.fmt(f),
            Self::KeptForReservation { asked, kept, until } => {
                write!(f, "{kept} GPUs are kept for a reservation until {until}, and {asked} do not fit beside them")
            }
            Self::ReachesReservation { hours, at, left, asked } => write!(
                f,
                "a promise of {hours} would reach into a reserved window: at {at} it leaves {left} of {asked} GPUs; ask for \
                 a guarantee that ends before, or for none"
            ),
            Self::NotAligned { asked, domain, why } => not_aligned(f, *asked, *domain, *why),
        }
    }
}

/// The sentence of [`Refusal::NotAligned`].
fn not_aligned(f: &mut fmt::Formatter<'_>, asked: MilliGpus, domain: Domain, why: Misaligned) -> fmt::Result {
    let place = match domain {
        Domain::Numa => "a NUMA node",
        Domain::Socket => "a socket",
        Domain::NvlinkIsland => "an NVLink island",
    };
    match why {
        Misaligned::Blind => write!(
            f,
            "the GPUs of a pod are to share {place}, and the policy of the pool does not look at topology: \
             set one that does, such as gfs-topology, or ask for best effort"
        ),
        Misaligned::Never => write!(
            f,
            "no node has so many GPUs that share {place} as far as its hardware allows, or none says its \
             topology: state it with the node"
        ),
        Misaligned::NotNow => {
            write!(f, "{asked} GPUs could be had, but those of a pod would not share {place}, as guaranteed")
        }
    }
}

/// The fate of a task now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// It starts as planned, with this promise if it is spot with one.
    Start {
        /// Nodes and GPUs of each pod, and the victims.
        plan: Plan,
        /// The promise; `None` for HP, and for spot at will.
        guarantee: Option<Guarantee>,
    },
    /// The gang waits, for this reason.
    Wait(Refusal),
}

/// Everything that a decision rests on beside the fleet.
#[derive(Debug, Clone, Copy)]
pub struct Circumstances<'a> {
    /// Instant of the decision.
    pub now: UnixSeconds,
    /// By rising hours.
    pub limits: &'a [Limit],
    /// Finished and evicted runs of the pool.
    pub history: History,
    /// Policy of the pool.
    pub policy: &'a Policy,
    /// The reference of fragmentation, under policies that measure it.
    pub workload: &'a Workload,
    /// Whether HP may evict: not while it is put off.
    pub may_evict: bool,
}

/// Decides on one task; `hours` is the guarantee that a spot task asks for, none for one at will. Leaves the fleet as it
/// was: [`Fleet::apply`] does what was decided.
pub fn decide(fleet: &mut Fleet, gang: &Gang, hours: Option<HorizonHours>, on: &Circumstances<'_>) -> Decision {
    debug_assert!(gang.pods > 0, "a request without pods is refused");
    let hours = hours.filter(|_| gang.class == TaskClass::Spot);
    let limited = hours.filter(|_| on.policy.admission == Admission::Quota);
    if let Some(refusal) = limited.and_then(|hours| over_quota(fleet, gang, hours, on.limits)) {
        return Decision::Wait(refusal);
    }
    let asked = asked(gang);
    let Some(plan) = plan(fleet, gang, on) else {
        let misaligned = misaligned(fleet, gang, on);
        return Decision::Wait(match (gang.class, misaligned) {
            _ if !fleet.could_ever_hold(gang) => Refusal::FitsNever { gpus: gang.pod.gpus, pods: gang.pods },
            (_, Some((domain, why))) => Refusal::NotAligned { asked, domain, why },
            (TaskClass::Hp, None) => Refusal::HeldByHp { asked },
            (TaskClass::Spot, None) => Refusal::NothingIdle { asked, resting: resting(fleet, on.policy) },
        });
    };
    debug_assert!(gang.class == TaskClass::Hp || plan.victims.is_empty(), "only HP evicts");
    invariants::gangs_are_whole(&plan);
    invariants::plan_keeps_affinity(fleet, &plan);
    if let Some(hours) = limited {
        invariants::quota_is_kept_at_admission(fleet, gang, hours, on.limits);
    }
    Decision::Start { plan, guarantee: hours.map(|hours| Guarantee::from(on.now, hours)) }
}

/// Idle GPUs of nodes that rest, under policies that let them.
fn resting(fleet: &Fleet, policy: &Policy) -> u32 {
    if policy.score.lets_rest() { fleet.resting_gpus() } else { 0 }
}

/// Whether a guaranteed affinity is what keeps a gang from its GPUs.
fn misaligned(fleet: &mut Fleet, gang: &Gang, on: &Circumstances<'_>) -> Option<(Domain, Misaligned)> {
    let wish = Wish::of(&gang.pod).filter(|wish| wish.is_guaranteed())?;
    let domain = wish.affinity.domain;
    if fleet.is_blind_to(gang) {
        return Some((domain, Misaligned::Blind));
    }
    if !fleet.could_ever_align(gang) {
        return Some((domain, Misaligned::Never));
    }
    let anywhere = Gang { pod: PodRequest { affinity: None, ..gang.pod }, ..gang.clone() };
    plan(fleet, &anywhere, on).map(|_| (domain, Misaligned::NotNow))
}

/// Idle GPUs first, or at once any GPUs that HP may have, as the policy demands.
fn plan(fleet: &mut Fleet, gang: &Gang, on: &Circumstances<'_>) -> Option<Plan> {
    let Policy { score, victims, idle_first, preemption, .. } = on.policy;
    if *idle_first || gang.class == TaskClass::Spot || !on.may_evict {
        let idle = fleet.plan_by(gang, *score, on.workload);
        debug_assert!(idle.as_ref().is_none_or(|plan| plan.victims.is_empty()), "idle GPUs have no victims");
        if idle.is_some() {
            return idle;
        }
    }
    if !on.may_evict {
        return None;
    }
    fleet.plan_evicting(gang, *victims, *idle_first, (on.now, on.history, preemption))
}

/// A task counts among all guarantees up to its own: S_a(h') + request ≤ Q_h' for every offered h' ≤ h (DESIGN §4.8).
#[must_use]
pub fn over_quota(fleet: &Fleet, gang: &Gang, hours: HorizonHours, limits: &[Limit]) -> Option<Refusal> {
    exceeded(|of| fleet.promised(of), asked(gang), hours, limits)
}

/// [`over_quota`] for callers that count promises in another way.
pub fn exceeded(
    promised: impl Fn(HorizonHours) -> MilliGpus,
    asked: MilliGpus,
    hours: HorizonHours,
    limits: &[Limit],
) -> Option<Refusal> {
    if !limits.iter().any(|limit| limit.hours == hours) {
        return Some(Refusal::NotOffered { hours, offered: limits.iter().map(|limit| limit.hours).collect() });
    }
    let shorter = limits.iter().filter(|limit| limit.hours <= hours);
    let mut over = shorter.filter_map(|limit| {
        let promised = promised(limit.hours);
        let is_kept = promised.checked_add(asked).is_some_and(|sum| sum <= limit.quota);
        (!is_kept).then_some(Refusal::OverQuota { hours: limit.hours, quota: limit.quota, promised, asked })
    });
    over.next()
}

/// GPUs over all pods. A sum beyond the range of an amount fits on no pool, and counts as the largest amount.
pub(crate) fn asked(gang: &Gang) -> MilliGpus {
    asked_by(&gang.pod, gang.pods)
}

/// As [`asked`], of so many pods.
pub(crate) fn asked_by(pod: &PodRequest, pods: u32) -> MilliGpus {
    let milli = u64::from(pod.gpus.milli()) * u64::from(pods);
    MilliGpus::from_milli(milli).unwrap_or(MilliGpus::from_gpus(u32::MAX))
}

#[cfg(test)]
mod tests;
