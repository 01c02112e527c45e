//! Choices for another scheduler, against a look at every node.

use super::super::offered::{Choosing, Offered, Victim, choose_offered};
use super::super::rank::graded;
use super::*;
use crate::policy::Policy;
use proptest::sample::subsequence;

fn victim(class: TaskClass, gpus: u32, saved: i64, promised_s: Option<i64>) -> Victim {
    Victim { class, gpus_milli: gpus * 1_000, saved: at(saved), promised_until: promised_s.map(at), gpus: 0 }
}

fn choosing(policy: &Policy) -> Choosing<'_> {
    Choosing { now: at(10_000), history: History { finished: 90, evicted: 10 }, policy, gpus: 64 }
}

fn chosen<'a>(offers: &[(&'a str, &[Victim], u64)], policy: &Policy, class: TaskClass) -> Option<&'a str> {
    let offered: Vec<Offered<'_>> = offers
        .iter()
        .map(|(node, victims, violations)| Offered { node, standing: None, victims, violations: *violations })
        .collect();
    choose_offered(&gang("pod", class, "8", 1), &offered, &choosing(policy)).map(|place| offers[place].0)
}

#[test]
fn tasks_that_are_not_spot_are_kept_first_then_budgets_then_promises_then_work() {
    use TaskClass::{Hp, Spot};
    let (hp, unknown) = ([victim(Hp, 1, 9_999, None)], [Victim::UNKNOWN]);
    let promised = [victim(Spot, 1, 9_999, Some(20_000))];
    let kept = [victim(Spot, 1, 9_000, Some(10_000))];
    let (much, little) = ([victim(Spot, 8, 0, None)], [victim(Spot, 8, 9_990, None)]);
    let hp_takes = |offers: &[(&'static str, &[Victim], u64)]| chosen(offers, &Policy::GFS, Hp);
    assert_eq!(hp_takes(&[("a", &hp, 0), ("b", &much, 3)]), Some("b"));
    assert_eq!(hp_takes(&[("a", &unknown, 0), ("b", &promised, 3)]), Some("b"));
    assert_eq!(hp_takes(&[("a", &promised, 0), ("b", &little, 1)]), Some("a"), "a budget before a promise");
    assert_eq!(hp_takes(&[("a", &promised, 0), ("b", &much, 0)]), Some("b"));
    assert_eq!(hp_takes(&[("a", &much, 0), ("b", &kept, 0)]), Some("b"), "a promise that has ended is none");
    assert_eq!(hp_takes(&[("a", &much, 0), ("b", &little, 0)]), Some("b"));
    assert_eq!(hp_takes(&[("b", &little, 0), ("a", &little, 0)]), Some("a"), "of equals the first name");
    assert_eq!(hp_takes(&[("a", &[], 0), ("b", &hp, 0)]), Some("b"), "a node without victims is not offered");
    assert_eq!(hp_takes(&[]), None);
    assert_eq!(chosen(&[("a", &little, 0)], &Policy::GFS, Spot), None, "spot evicts nobody");
}

#[test]
fn where_gpus_are_known_to_lie_together_comes_before_what_is_lost() {
    use crate::topology::{Affinity, Domain, Strictness, Topology};
    let policy = Policy { topology: true, ..Policy::GFS };
    let halves = "numa 0 socket 0 gpus 0-1 cores 0; numa 1 socket 1 gpus 2-3 cores 1";
    let topology = std::sync::Arc::new(Topology::parse(halves).unwrap());
    let mut fleet = Fleet::new(EvictionSettings::default()).looking_at_topology(true);
    for name in ["apart", "together"] {
        fleet.add_laid_out(NodeId::parse(name).unwrap(), 4, (None, None), Some(topology.clone())).unwrap();
    }
    let of = |mask: u64, saved| Victim { gpus: mask, ..victim(TaskClass::Spot, 2, saved, None) };
    // All GPUs of both nodes are held, so that the freed ones are all the idle ones.
    for (number, name) in [(0, "x"), (1, "y")] {
        let gpus = GpuPlace::Whole { mask: 15 };
        let whole = gang(name, TaskClass::Spot, "4", 1);
        let plan = Plan { gang: whole, places: vec![PodPlace { node: number, gpus }], victims: vec![] };
        fleet.apply(&plan, at(0), None).unwrap();
    }
    let (apart, together) = ([of(0b0101, 9_999)], [of(0b0011, 0)]);
    let offer = |number: usize, victims| {
        let node = fleet.nodes()[number].id.as_str();
        Offered { node, standing: Some(fleet.standing(number)), victims, violations: 0 }
    };
    let mut hp = gang("pod", TaskClass::Hp, "2", 1);
    let offers = [offer(0, &apart[..]), offer(1, &together[..])];
    assert_eq!(choose_offered(&hp, &offers, &choosing(&policy)), Some(0), "it does not care");
    hp.pod.affinity = Some(Affinity { domain: Domain::Numa, strictness: Strictness::BestEffort });
    assert_eq!(choose_offered(&hp, &offers, &choosing(&policy)), Some(1));
    assert_eq!(choose_offered(&hp, &offers[..1], &choosing(&policy)), Some(0), "better badly than not at all");
    hp.pod.affinity = Some(Affinity { domain: Domain::Numa, strictness: Strictness::Guaranteed });
    assert_eq!(choose_offered(&hp, &offers[..1], &choosing(&policy)), None);
    assert_eq!(choose_offered(&hp, &offers, &choosing(&policy)), Some(1));
    assert_eq!(choose_offered(&hp, &offers, &choosing(&Policy::GFS)), None, "a policy that is blind cannot keep it");
}

/// Eqs. 18 and 19 as they are printed, of one offer.
fn price(victims: &[Victim]) -> (usize, f64) {
    let lasts = |one: &&Victim| one.promised_until.is_some_and(|until| until > at(10_000));
    let waste: i64 = victims.iter().map(|one| i64::from(one.gpus_milli) * at(10_000).since_s(one.saved).max(0)).sum();
    let failed = 10.0 + victims.len() as f64;
    (
        victims.iter().filter(lasts).count(),
        failed / (90.0 + failed) + 0.5 * (waste as f64 / (64.0 * 86_400.0 * 1_000.0)),
    )
}

fn victims() -> impl Strategy<Value = Vec<Victim>> {
    let one = (any::<bool>(), 0..9_u32, 0..3_i64, prop::option::of(9_999..10_003_i64));
    let of = |(is_spot, gpus, saved, promised): (bool, u32, i64, Option<i64>)| {
        victim(if is_spot { TaskClass::Spot } else { TaskClass::Hp }, gpus, saved * 6_000, promised)
    };
    prop::collection::vec(one.prop_map(of), 0..4)
}

proptest! {
    #[test]
    fn the_choice_is_that_of_a_search_of_every_node_in_any_order(
        offers in prop::collection::vec((victims(), 0..2_u64), 0..7),
        turn in 0..7_usize,
        rule in prop::sample::select(vec!["gfs", "fifo-fair", "gfs-p"]),
    ) {
        let named: Vec<(String, Vec<Victim>, u64)> = offers
            .into_iter()
            .enumerate()
            .map(|(number, (victims, violations))| (format!("node-{number}"), victims, violations))
            .collect();
        let offers: Vec<(&str, &[Victim], u64)> =
            named.iter().map(|(name, victims, violations)| (name.as_str(), victims.as_slice(), *violations)).collect();
        let policy = Policy::parse(rule).unwrap();
        let choice = chosen(&offers, &policy, TaskClass::Hp);
        let mut turned = offers.clone();
        turned.rotate_left(turn.min(offers.len()));
        prop_assert_eq!(choice, chosen(&turned, &policy, TaskClass::Hp), "the order of offers does not matter");
        let others = |victims: &[Victim]| victims.iter().filter(|one| one.class == TaskClass::Hp).count();
        let there: Vec<_> = offers.iter().filter(|(_, victims, _)| !victims.is_empty()).collect();
        prop_assert_eq!(choice.is_some(), !there.is_empty());
        let fewest = there.iter().map(|(_, victims, _)| others(victims)).min();
        if let Some((_, victims, _)) = there.iter().find(|(node, ..)| Some(*node) == choice) {
            prop_assert_eq!(Some(others(victims)), fewest);
        }
        let keeps = policy.preemption.keeps_guarantees;
        let least = there.iter().min_by(|(a, one, first), (b, other, second)| {
            let ((promised, paid), (than, of)) = (price(one), price(other));
            let by_promise = if keeps { promised.cmp(&than) } else { std::cmp::Ordering::Equal };
            let by_class = others(one).cmp(&others(other)).then(first.cmp(second));
            by_class.then(by_promise).then(paid.total_cmp(&of)).then(a.cmp(b))
        });
        if rule == "gfs" {
            prop_assert_eq!(choice, least.map(|(node, ..)| *node));
        }
    }

    #[test]
    fn the_first_of_the_order_is_where_the_pod_would_go(
        tasks in prop::collection::vec((any::<bool>(), 1..9_u32), 0..12),
        given in subsequence((0..6_usize).collect::<Vec<_>>(), 0..7),
        (is_spot, gpus) in (any::<bool>(), 1..9_u32),
        id in prop::sample::select(Policy::IDS.to_vec()),
    ) {
        let policy = Policy::parse(id).unwrap();
        let mut fleet = Fleet::ordered(EvictionSettings::default(), policy.score);
        for number in 0..6 {
            let gpus = if number % 3 == 0 { 4 } else { 8 };
            fleet.add(NodeId::parse(&format!("node-{number}")).unwrap(), gpus, None, None).unwrap();
        }
        for (number, (is_spot, gpus)) in tasks.into_iter().enumerate() {
            let class = if is_spot { TaskClass::Spot } else { TaskClass::Hp };
            let task = gang(&format!("task-{number}"), class, &gpus.to_string(), 1);
            if let Some(plan) = fleet.plan(&task) {
                fleet.apply(&plan, at(0), None).unwrap();
            }
        }
        (0..10).for_each(|_| fleet.recall_eviction(1, at(0)));
        let class = if is_spot { TaskClass::Spot } else { TaskClass::Hp };
        let (pod, workload) = (gang("pod", class, &gpus.to_string(), 1), Workload::default());
        let order = fleet.rank(&pod, policy.score, &workload, &given);
        (0..6).filter(|node| !given.contains(node)).for_each(|node| fleet.open(node, false));
        let first = fleet.plan_by(&pod, policy.score, &workload).map(|plan| plan.places[0].node);
        prop_assert_eq!(order.first().copied(), first);
        let fits = given.iter().filter(|node| fleet.nodes()[**node].fits(&pod.pod)).count();
        prop_assert!(order.len() == fits || is_spot && order.len() + 1 == fits && !order.contains(&1));
        let next = order.get(1).copied();
        if let (Some(first), false) = (first, matches!(policy.score, ScoreRule::Random { .. } | ScoreRule::Score(_) | ScoreRule::Beside(_))) {
            fleet.open(first, false);
            let second = fleet.plan_by(&pod, policy.score, &workload).map(|plan| plan.places[0].node);
            prop_assert_eq!(next, second, "and so on");
        }
    }
}

#[test]
fn the_first_alone_gets_the_most_and_who_has_no_rank_nothing() {
    let grades = |ranked: usize| (0..ranked).map(|rank| graded(ranked, 10)(Some(rank))).collect::<Vec<_>>();
    assert_eq!(grades(1), [10]);
    assert_eq!(grades(3), [10, 9, 5]);
    assert_eq!(grades(11), [10, 9, 9, 8, 7, 6, 5, 4, 3, 2, 1]);
    let of = graded(5_000, 10);
    assert_eq!([Some(0), Some(1), Some(4_999), None].map(of), [10, 9, 1, 0]);
}
