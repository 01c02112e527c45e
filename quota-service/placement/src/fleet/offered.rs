//! Of nodes that another scheduler offers, each with the tasks that it would evict there, the one where that costs least.
//!
//! A node is taken with all the victims that it was offered with, or not at all. The other scheduler has made their number least for
//! all that it looks at, of which we know GPUs alone: a victim without which the GPUs would suffice may hold a port, a disk or a
//! label that the pod has to be rid of, and if it were spared the others would be evicted in vain.

use super::aligned::{Rulers, Wish};
use super::index::Key;
use super::node::{NodeState, WHOLE_MILLI};
use super::preempt::{Cost, Costs};
use super::rules::{VictimRule, millionths};
use super::{Fleet, Gang, History};
use crate::draw::Draw;
use crate::policy::Policy;
use crate::topology::Alignment;
use std::cmp::Ordering;
use vocab::{TaskClass, UnixSeconds};

/// A task that would be evicted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Victim {
    /// Class of the victim.
    pub class: TaskClass,
    /// Thousandths of a GPU over all its pods.
    pub gpus_milli: u32,
    /// When its work was saved last.
    pub saved: UnixSeconds,
    /// When its promise ends; none for one at will.
    pub promised_until: Option<UnixSeconds>,
    /// Its GPUs on the node, one bit for each; none where that is not known.
    pub gpus: u64,
}

impl Victim {
    /// Of which nothing is known: for all we know it is no spot task.
    pub const UNKNOWN: Self =
        Self { class: TaskClass::Hp, gpus_milli: 0, saved: UnixSeconds::new(0), promised_until: None, gpus: 0 };
}

/// Where a node stands in its fleet.
#[derive(Debug, Clone, Copy)]
pub struct Standing<'a> {
    node: &'a NodeState,
    key: Key,
}

/// A node that would do once these tasks are gone.
#[derive(Debug, Clone, Copy)]
pub struct Offered<'a> {
    /// Name of the node.
    pub node: &'a str,
    /// None for a node that no fleet has.
    pub standing: Option<Standing<'a>>,
    /// Victims that the scheduler offers on the node.
    pub victims: &'a [Victim],
    /// Disruption budgets that would be broken.
    pub violations: u64,
}

/// The inputs of a choice beside the offer.
#[derive(Debug, Clone, Copy)]
pub struct Choosing<'a> {
    /// Instant of the choice.
    pub now: UnixSeconds,
    /// Finished and evicted runs of the pool.
    pub history: History,
    /// Policy of the pool.
    pub policy: &'a Policy,
    /// Of the pool, or of all pools that the offered nodes are of.
    pub gpus: u64,
}

impl Fleet {
    /// Where a node stands among the others.
    #[must_use]
    pub fn standing(&self, number: usize) -> Standing<'_> {
        let node = &self.nodes[number];
        // Equals are ordered by their names: numbers say nothing between fleets.
        let key = Key::of(node, 0, self.evictions.weight(node.evictions), self.is_apart);
        Standing { node, key }
    }
}

/// The cost of an offer, least first. A task that is not spot is kept before all else, even before a wish of where GPUs lie.
struct Weighed {
    others: usize,
    alignment: Alignment,
    violations: u64,
    cost: Cost,
    /// Under [`VictimRule::Tightest`] instead of the cost.
    tightness: Option<u64>,
}

impl Weighed {
    fn order(&self, other: &Self) -> Ordering {
        self.others
            .cmp(&other.others)
            .then(self.alignment.cmp(&other.alignment))
            .then(self.violations.cmp(&other.violations))
            .then_with(|| match (self.tightness, other.tightness) {
                (Some(one), Some(other)) => one.cmp(&other),
                _ => self.cost.order(&other.cost),
            })
    }
}

/// The place in `offered` of the node that the policy takes. None for a spot task, which evicts nobody, and where no node will do.
/// A node without victims is none that is offered for eviction.
#[must_use]
pub fn choose_offered(gang: &Gang, offered: &[Offered<'_>], on: &Choosing<'_>) -> Option<usize> {
    let wish = Wish::of(&gang.pod);
    if gang.class != TaskClass::Hp || (!on.policy.topology && wish.is_some_and(Wish::is_guaranteed)) {
        return None;
    }
    let mut rulers = wish.filter(|_| on.policy.topology).map(Rulers::new);
    let costs = Costs::new(on.now, on.history, &on.policy.preemption, on.gpus);
    let weighed = offered.iter().enumerate().filter(|(_, one)| !one.victims.is_empty());
    let weighed: Vec<(usize, Weighed)> =
        weighed.filter_map(|(place, one)| Some((place, weigh(one, &mut rulers, &costs, on)?))).collect();
    let by_name = |a: usize, b: usize| offered[a].node.cmp(offered[b].node).then(a.cmp(&b));
    if let VictimRule::Random { seed } = on.policy.victims {
        let rank = |one: &Weighed| (one.others, one.alignment);
        let least = weighed.iter().map(|(_, one)| rank(one)).min()?;
        let mut equals: Vec<usize> =
            weighed.iter().filter(|(_, one)| rank(one) == least).map(|(place, _)| *place).collect();
        // The draw does not depend on the order in which nodes are offered.
        equals.sort_unstable_by(|a, b| by_name(*a, *b));
        let drawn = Draw::of_task(seed, &gang.task, on.now.get()).below(equals.len())?;
        debug_assert!(drawn < equals.len(), "a draw below a number is below it");
        return Some(equals[drawn]);
    }
    let best = weighed.iter().min_by(|(a, one), (b, other)| {
        let standing = || match (&offered[*a].standing, &offered[*b].standing) {
            (Some(one), Some(other)) => one.key.order(&other.key, gang.class),
            (one, other) => other.is_some().cmp(&one.is_some()),
        };
        one.order(other).then_with(standing).then_with(|| by_name(*a, *b))
    });
    debug_assert!(best.is_none_or(|(place, _)| *place < offered.len()), "one of the offers");
    best.map(|(place, _)| *place)
}

/// The cost of an offer; none where the GPUs cannot lie as they have to.
fn weigh<'a>(
    offered: &Offered<'a>,
    rulers: &mut Option<Rulers<'a>>,
    costs: &Costs<'_>,
    on: &Choosing<'_>,
) -> Option<Weighed> {
    let (mut others, mut promised, mut waste_milli_gpu_s) = (0, 0, 0_u64);
    for victim in offered.victims {
        let is_promised = victim.promised_until.is_some_and(|until| until > on.now);
        let (counts, waste) = costs.worth_of(is_promised, u64::from(victim.gpus_milli), victim.saved);
        promised += usize::from(counts);
        waste_milli_gpu_s = waste_milli_gpu_s.saturating_add(waste);
        others += usize::from(victim.class != TaskClass::Spot);
    }
    let alignment = match rulers {
        None => Alignment::ALIGNED,
        Some(rulers) => alignment(offered, rulers)?,
    };
    let tightness = (on.policy.victims == VictimRule::Tightest).then(|| tightness(offered));
    let cost = costs.of(offered.victims.len(), promised, waste_milli_gpu_s);
    Some(Weighed { others, alignment, violations: offered.violations, cost, tightness })
}

/// How the pod's GPUs would lie, where it is known which ones it could have; none where that will not do.
fn alignment<'a>(offered: &Offered<'a>, rulers: &mut Rulers<'a>) -> Option<Alignment> {
    let is_known = offered.victims.iter().all(|victim| victim.gpus != 0 || victim.gpus_milli == 0);
    let standing = offered.standing.filter(|_| is_known);
    let Some(standing) = standing.filter(|standing| standing.node.topology.is_some()) else {
        return rulers.unknown();
    };
    let freed = offered.victims.iter().fold(0, |all, victim| all | victim.gpus);
    let all = standing.node.mask(|_| true);
    rulers.best(standing.node, standing.node.idle_mask() | freed & all)
}

/// The share of the node's GPUs that no HP task has; of a node that no fleet has, all of them.
fn tightness(offered: &Offered<'_>) -> u64 {
    let Some(Standing { node, .. }) = offered.standing else { return u64::MAX };
    let without_hp = node.gpus.iter().filter(|gpu| gpu.hp == 0).count() as u32;
    millionths(without_hp * u32::from(WHOLE_MILLI), node.gpus.len())
}
