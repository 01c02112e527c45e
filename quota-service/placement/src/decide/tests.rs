use super::*;
use crate::fleet::{EvictionSettings, PodRequest};
use vocab::NodeId;

fn fleet() -> Fleet {
    let mut fleet = Fleet::new(EvictionSettings::default());
    for number in 0..2 {
        fleet.add(NodeId::parse(&format!("node-{number}")).unwrap(), 8, Some(64_000), Some(512)).unwrap();
    }
    fleet
}

fn gang(name: &str, class: TaskClass, gpus: u16, pods: u32) -> Gang {
    let pod = PodRequest::new(GpuRequest::Whole(gpus), 1_000, 1);
    Gang { task: TaskId::parse(name).unwrap(), class, pod, pods }
}

fn hours(hours: u64) -> HorizonHours {
    HorizonHours::new(hours).unwrap()
}

fn limits(quotas: [u32; 3]) -> Vec<Limit> {
    let each = [1, 2, 4].into_iter().zip(quotas);
    each.map(|(of, quota)| Limit { hours: hours(of), quota: MilliGpus::from_gpus(quota) }).collect()
}

fn decided(fleet: &mut Fleet, gang: &Gang, of: Option<u64>, limits: &[Limit]) -> Decision {
    let now = UnixSeconds::new(1_700_000_000);
    let (policy, workload) = (&Policy::GFS, &Workload::default());
    let on = Circumstances { now, limits, history: History::default(), policy, workload, may_evict: true };
    let decision = decide(fleet, gang, of.map(hours), &on);
    if let Decision::Start { plan, guarantee } = &decision {
        fleet.apply(plan, now, *guarantee).unwrap();
    }
    decision
}

fn code(decision: &Decision) -> &'static str {
    match decision {
        Decision::Start { .. } => "starts",
        Decision::Wait(refusal) => refusal.code(),
    }
}

#[test]
fn a_promise_counts_among_all_shorter_ones() {
    use TaskClass::Spot;
    let (mut fleet, limits) = (fleet(), limits([8, 6, 2]));
    assert_eq!(code(&decided(&mut fleet, &gang("a", Spot, 2, 1), Some(4), &limits)), "starts");
    let refused = decided(&mut fleet, &gang("b", Spot, 1, 1), Some(4), &limits);
    let Decision::Wait(refusal) = &refused else { panic!("{refused:?}") };
    let sentence = "1.000 GPUs more than the 2.000 that are promised for 4h would exceed the quota of 2.000";
    assert_eq!(refusal.to_string(), sentence);
    assert_eq!(code(&decided(&mut fleet, &gang("c", Spot, 4, 1), Some(2), &limits)), "starts");
    assert_eq!(code(&decided(&mut fleet, &gang("d", Spot, 3, 1), Some(1), &limits)), "over_quota");
    assert_eq!(code(&decided(&mut fleet, &gang("d", Spot, 2, 1), Some(1), &limits)), "starts");
    assert_eq!(fleet.promised(hours(1)), MilliGpus::from_gpus(8));
    assert_eq!(code(&decided(&mut fleet, &gang("e", Spot, 4, 1), None, &limits)), "starts", "at will is apart");
    assert_eq!(code(&decided(&mut fleet, &gang("f", Spot, 1, 1), Some(3), &limits)), "guarantee_not_offered");
}

#[test]
fn hp_needs_no_quota_and_evicts_spot_does_not() {
    use TaskClass::{Hp, Spot};
    let (mut fleet, limits) = (fleet(), limits([16, 16, 16]));
    assert_eq!(code(&decided(&mut fleet, &gang("spot", Spot, 8, 2), Some(1), &limits)), "starts");
    assert_eq!(code(&decided(&mut fleet, &gang("late", Spot, 8, 1), None, &limits)), "nothing_idle");
    let hp = decided(&mut fleet, &gang("hp", Hp, 8, 1), None, &[]);
    let Decision::Start { plan, guarantee: None } = &hp else { panic!("{hp:?}") };
    assert_eq!(plan.victims, [TaskId::parse("spot").unwrap()]);
    assert_eq!(code(&decided(&mut fleet, &gang("more", Hp, 8, 2), None, &[])), "held_by_hp");
    assert_eq!(code(&decided(&mut fleet, &gang("wide", Hp, 9, 1), None, &[])), "fits_never");
    assert_eq!(code(&decided(&mut fleet, &gang("long", Hp, 8, 3), None, &[])), "fits_never");
}

#[test]
fn the_queue_has_hp_first_then_the_largest_then_the_oldest() {
    use TaskClass::{Hp, Spot};
    let at = |seconds: i64| UnixSeconds::new(1_700_000_000 + seconds);
    let mut queue = vec![
        (QueueOrder::of(&gang("e", Spot, 8, 4), at(0)), "e"),
        (QueueOrder::of(&gang("d", Hp, 1, 1), at(1)), "d"),
        (QueueOrder::of(&gang("c", Hp, 1, 1), at(0)), "c"),
        (QueueOrder::of(&gang("a", Hp, 8, 2), at(9)), "a"),
        (QueueOrder::of(&gang("b", Hp, 8, 1), at(2)), "b"),
    ];
    queue.sort();
    assert_eq!(queue.into_iter().map(|(_, name)| name).collect::<String>(), "abcde");
}
