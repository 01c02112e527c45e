//! Answer of each verb, from bytes to bytes.

use super::offer::Offer;
use super::places::Places;
use super::quota::{Refused, may_evict};
use super::wire::{Args, FilterResult, HostPriority, PreemptionResult, Text};
use super::{ExtenderState, quota};
use crate::cluster::slim::Pod;
use crate::view::facts::{PodFacts, Reading};
use crate::view::{fits_a_fleet, gang_of};
use placement::fleet::Gang;
use placement::fleet::offered::{Choosing, Offered, Victim, choose_offered};
use placement::fleet::rank::graded;
use serde::Serialize;
use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Instant;
use vocab::TaskClass;

/// The most that a host's score may be (`MaxExtenderPriority`).
const MOST: u8 = 10;

fn json(value: &impl Serialize) -> serde_json::Result<Vec<u8>> {
    serde_json::to_vec(value)
}

/// Filter: all nodes, or none.
///
/// # Errors
/// The body is none of filter.
pub fn filter(body: &[u8], judge: impl FnOnce(&Pod) -> Result<(), Refused>) -> serde_json::Result<Vec<u8>> {
    let args = Args::read(body)?;
    let Err(refused) = judge(&args.pod) else {
        return json(&FilterResult {
            nodes: args.nodes.filter(|_| args.node_names.is_none()),
            node_names: args.node_names.as_deref(),
            failed_nodes: BTreeMap::new(),
            failed_and_unresolvable_nodes: BTreeMap::new(),
            error: "",
        });
    };
    let (names, why) = (args.names()?, refused.to_string());
    let no_nodes = args.nodes.map(|_| serde_json::value::RawValue::from_string(r#"{"items":[]}"#.to_owned()));
    let no_nodes = no_nodes.transpose()?;
    json(&FilterResult {
        nodes: no_nodes.as_deref().filter(|_| args.node_names.is_none()),
        node_names: args.node_names.as_ref().map(|_| &[][..]),
        failed_nodes: BTreeMap::new(),
        failed_and_unresolvable_nodes: names.iter().map(|Text(name)| (name.as_ref(), why.as_str())).collect(),
        error: "",
    })
}

/// Where a body cannot be read, no node can be named: `ignorable` decides, which lets the pod pass.
#[must_use]
pub fn unreadable_filter(why: &str) -> Vec<u8> {
    let (none, error) = (BTreeMap::new(), format!("headroom: the request cannot be read: {why}"));
    let result = FilterResult {
        nodes: None,
        node_names: None,
        failed_nodes: none.clone(),
        failed_and_unresolvable_nodes: none,
        error: &error,
    };
    json(&result).unwrap_or_default()
}

/// Prioritize: the order of the policy in each pool, as scores.
///
/// # Errors
/// The body is none of prioritize.
pub fn prioritize(body: &[u8], state: &ExtenderState) -> serde_json::Result<Vec<u8>> {
    let args = Args::read(body)?;
    let names = args.names()?;
    let scores = match PodFacts::read(&args.pod, &state.reading) {
        Ok(Some((facts, _))) => scores(state, &facts, &names),
        _ => vec![0; names.len()],
    };
    hosts(&names, &scores)
}

/// The same score for all.
///
/// # Errors
/// The body is none of prioritize.
pub fn neutral_prioritize(body: &[u8]) -> serde_json::Result<Vec<u8>> {
    let args = Args::read(body)?;
    let names = args.names()?;
    hosts(&names, &vec![0; names.len()])
}

fn hosts(names: &[Text<'_>], scores: &[u8]) -> serde_json::Result<Vec<u8>> {
    let hosts = names.iter().zip(scores).map(|(Text(host), score)| HostPriority { host, score: *score });
    json(&hosts.collect::<Vec<_>>())
}

/// Request to placement for a pod; none for one that fits no node of a fleet.
fn gang(facts: &PodFacts) -> Option<Gang> {
    fits_a_fleet(facts).then(|| gang_of(facts))
}

fn scores(state: &ExtenderState, facts: &PodFacts, names: &[Text<'_>]) -> Vec<u8> {
    let mut scores = vec![0; names.len()];
    let Some(gang) = gang(facts) else { return scores };
    let view = state.view();
    let places = Places::find(state, &view, names.iter().map(|Text(name)| name.as_ref()));
    for (model, numbers) in places.by_pool() {
        let Some(pool) = view.pools().get(model) else { continue };
        let order = pool.fleet.rank(&gang, view.policy().score, &state.workload, &numbers);
        let mut ranks = vec![None; pool.fleet.nodes().len()];
        order.iter().enumerate().for_each(|(rank, number)| ranks[*number] = Some(rank));
        let grade = graded(order.len(), MOST);
        for (score, place) in scores.iter_mut().zip(places.each()) {
            if let Some((_, number)) = place.filter(|(of, _)| *of == model) {
                *score = grade(ranks[number]);
            }
        }
    }
    scores
}

/// Preempt: the one node where it costs least, with the victims that it was offered with; none for spot.
///
/// # Errors
/// The body is none of preempt.
pub fn preempt(body: &[u8], state: &ExtenderState) -> serde_json::Result<Vec<u8>> {
    let offer = Offer::read(body)?;
    if !may_evict(&offer.pod, &state.reading) {
        return json(&PreemptionResult::default());
    }
    // A pod that asks for no GPUs, or cannot be read, is not ours to decide on: the scheduler chooses among what it offers.
    let Ok(Some((facts, _))) = PodFacts::read(&offer.pod, &state.reading) else { return all_of(&offer) };
    if !fits_a_fleet(&facts) {
        return all_of(&offer);
    }
    let Some(chosen) = chosen(&offer, &facts, state) else { return json(&PreemptionResult::default()) };
    let node = &offer.nodes[chosen];
    let node_name_to_meta_victims = BTreeMap::from([(node.name.as_ref(), node.meta_victims())]);
    json(&PreemptionResult { node_name_to_meta_victims })
}

/// Loss of the victims of a node.
enum Losses<'a> {
    /// All pods of the node.
    All(&'a [Victim]),
    /// Those at these places.
    Some(Range<usize>),
}

fn chosen(offer: &Offer<'_>, facts: &PodFacts, state: &ExtenderState) -> Option<usize> {
    debug_assert_eq!(facts.class, TaskClass::Hp);
    let (gang, now) = (gang(facts)?, state.now());
    let view = state.view();
    let burdens = state.burdens();
    // Of a node whose victims are not all of its pods: what each of them loses.
    let mut some = Vec::new();
    let known: Vec<Losses<'_>> = offer
        .nodes
        .iter()
        .map(|node| {
            let here = burdens.on(&node.name);
            here.and_then(|here| here.all(node.sum)).map_or_else(
                || {
                    let from = some.len();
                    some.extend(node.victims.uids().map(|uid| here.map_or(Victim::UNKNOWN, |here| here.of(uid))));
                    Losses::Some(from..some.len())
                },
                Losses::All,
            )
        })
        .collect();
    let places = Places::find(state, &view, offer.nodes.iter().map(|node| node.name.as_ref()));
    let fleet = |model| view.pools().get(model).map(|pool| &pool.fleet);
    let offered: Vec<Offered<'_>> = offer
        .nodes
        .iter()
        .zip(&known)
        .zip(places.each())
        .map(|((node, losses), place)| Offered {
            node: &node.name,
            standing: place.and_then(|(model, number)| Some(fleet(model)?.standing(number))),
            victims: match losses {
                Losses::All(victims) => victims,
                Losses::Some(range) => &some[range.clone()],
            },
            violations: u64::try_from(node.violations).unwrap_or(0),
        })
        .collect();
    let gpus = places.by_pool().filter_map(|(model, _)| Some(fleet(model)?.gpus())).sum();
    let choosing = Choosing { now, history: burdens.history(now), policy: view.policy(), gpus };
    choose_offered(&gang, &offered, &choosing)
}

/// All that was offered: the scheduler chooses. Spot still evicts no pod.
///
/// # Errors
/// The body is none of preempt.
pub fn neutral_preempt(body: &[u8], reading: &Reading) -> serde_json::Result<Vec<u8>> {
    let offer = Offer::read(body)?;
    if may_evict(&offer.pod, reading) { all_of(&offer) } else { json(&PreemptionResult::default()) }
}

fn all_of(offer: &Offer<'_>) -> serde_json::Result<Vec<u8>> {
    let all = offer.nodes.iter().map(|node| (node.name.as_ref(), node.meta_victims()));
    json(&PreemptionResult { node_name_to_meta_victims: all.collect() })
}

/// [`filter`] with the quota.
///
/// # Errors
/// The body is none of filter.
pub fn filter_by_quota(body: &[u8], state: &ExtenderState, by: Instant) -> serde_json::Result<Vec<u8>> {
    filter(body, |pod| quota::judge(state, pod, by))
}
