//! Invariants as named functions: called by the code, the property tests and the simulator alike.

use crate::decide::Limit;
use crate::eta::{Eta, EtaState};
use crate::fleet::{
    Fleet, Gang, Gpu, GpuPlace, Plan, PodPlace, PodRequest, Running, WHOLE_MILLI, Wish, mask_of, numbers,
};
use crate::quota::Quota;
use crate::settings::PoolSettings;
use vocab::{HorizonHours, TaskClass};

/// Q_H ≤ f·η, Q_H ≤ S0 + Sa, f ≤ C, and available + used covers the quota unless spot holds more than it.
///
/// # Panics
/// When it does not hold.
pub fn quota_stays_inside_its_limits(quota: &Quota) {
    assert!(quota.quota <= quota.scaled_inventory, "a quota exceeds its scaled inventory: {quota:?}");
    assert!(quota.quota <= quota.ceiling, "a quota exceeds what is idle or spot: {quota:?}");
    assert!(quota.inventory <= quota.capacity, "an inventory exceeds the capacity: {quota:?}");
    assert!(quota.available <= quota.quota, "more is available than the quota: {quota:?}");
}

/// Q₁ ≥ Q₂ ≥ Q₄, and so is what they leave: a longer promise is never easier to get.
///
/// # Panics
/// When it does not hold.
pub fn longer_guarantees_get_no_more(quotas: &[Quota]) {
    let falls = quotas.is_sorted_by(|one, next| one.hours < next.hours && one.quota >= next.quota);
    assert!(falls, "quotas rise with the guarantee hours: {quotas:?}");
    let available_falls = quotas.is_sorted_by(|one, next| one.available >= next.available);
    assert!(available_falls, "more is available with longer guarantees: {quotas:?}");
}

/// η stays between its bounds, and a move stays within half and one and a half of where it was.
///
/// # Panics
/// When it does not hold.
pub fn eta_moves_within_bounds(before: &EtaState, after: Eta, settings: &PoolSettings) {
    assert!((settings.eta_least..=settings.eta_most).contains(&after), "eta {after} left its bounds");
    let (from, to) = (u64::from(before.eta.micro()), u64::from(after.micro()));
    assert!(2 * to + 2 >= from && 2 * to <= 3 * from, "eta jumped from {} to {after}", before.eta);
}

/// No GPU has more than it is: HP and spot parts of each sum to one at most, and a GPU that is whole to one task is nobody
/// else's.
///
/// # Panics
/// When it does not hold.
pub fn no_gpu_is_overused(fleet: &Fleet) {
    for node in fleet.nodes() {
        for (number, gpu) in node.gpus.iter().enumerate() {
            let used = u32::from(gpu.hp) + u32::from(gpu.spot);
            assert!(used <= u32::from(WHOLE_MILLI), "GPU {number} of {} has {used} thousandths taken", node.id);
        }
    }
}

/// The taken parts of nodes are the parts that their tasks hold, GPU by GPU, every task has all its pods, and the sum of promises is that
/// spot tasks inside a guarantee hold.
///
/// # Panics
/// When it does not hold.
pub fn books_balance(fleet: &Fleet) {
    let mut taken: Vec<Vec<Gpu>> = fleet.nodes().iter().map(|node| vec![Gpu::default(); node.gpus.len()]).collect();
    for (task, running) in fleet.tasks() {
        assert!(!running.places.is_empty(), "task {task} runs without pods");
        for place in &running.places {
            let shares: Vec<(usize, u16)> = match place.gpus {
                GpuPlace::Share { gpu, milli } => vec![(usize::from(gpu), milli)],
                GpuPlace::Whole { mask } => numbers(mask).map(|gpu| (gpu, WHOLE_MILLI)).collect(),
            };
            for (gpu, milli) in shares {
                let gpu = &mut taken[place.node][gpu];
                match running.class {
                    TaskClass::Hp => gpu.hp += milli,
                    TaskClass::Spot => gpu.spot += milli,
                }
            }
        }
    }
    promises_balance(fleet);
    loans_balance(fleet);
    for (node, taken) in fleet.nodes().iter().zip(taken) {
        assert_eq!(node.gpus, taken, "node {} and its tasks differ", node.id);
        let sums = taken.iter().fold([0, 0], |[hp, spot], gpu| [hp + u32::from(gpu.hp), spot + u32::from(gpu.spot)]);
        assert_eq!([node.hp_milli, node.spot_milli], sums, "the sums of node {}", node.id);
        assert_eq!(
            usize::from(node.idle),
            taken.iter().filter(|gpu| gpu.is_idle()).count(),
            "idle GPUs of {}",
            node.id
        );
    }
}

/// A lent GPU is idle to all others, lent once, and lent to spot alone.
///
/// # Panics
/// When it does not hold.
pub fn loans_balance(fleet: &Fleet) {
    let mut lent = vec![(0_u64, 0, 0); fleet.nodes().len()];
    for (task, running) in fleet.tasks() {
        assert!(running.lent.is_empty() || running.class == TaskClass::Spot, "HP task {task} is lent GPUs");
        for place in &running.lent {
            let (gpus, cpu_milli, memory_mib) = &mut lent[place.node];
            assert_eq!(*gpus & mask_of(place.gpus), 0, "a GPU of node {} is lent twice", place.node);
            *gpus |= mask_of(place.gpus);
            let node = &fleet.nodes()[place.node];
            *cpu_milli += if node.cpu_milli == u64::MAX { 0 } else { running.pod.cpu_milli };
            *memory_mib += if node.memory_mib == u64::MAX { 0 } else { running.pod.memory_mib };
            assert!(fleet.borrowers(place.node).contains(task), "{task} is lent GPUs that nobody knows of");
        }
    }
    for (node, lent) in fleet.nodes().iter().zip(lent) {
        assert_eq!((node.lent, node.lent_cpu_milli, node.lent_memory_mib), lent, "what node {} lends", node.id);
        assert!(node.loans_fit(), "node {} lends what it does not have", node.id);
    }
}

fn promises_balance(fleet: &Fleet) {
    let held = |hours: HorizonHours| {
        let inside = fleet.tasks().values().filter(|task| task.guarantee.is_some_and(|one| one.hours >= hours));
        inside.map(Running::gpus_milli).sum::<u64>()
    };
    for hours in (1..=24).filter_map(|hours| HorizonHours::new(hours).ok()) {
        assert_eq!(fleet.promised(hours).milli(), held(hours), "what is promised for {hours}");
    }
    let of_hp = |task: &&Running| task.class == TaskClass::Hp && task.guarantee.is_some();
    assert_eq!(fleet.tasks().values().find(of_hp), None, "HP needs no promise");
}

/// Nobody but spot is evicted, and by HP alone.
///
/// # Panics
/// When it does not hold.
pub fn only_spot_is_evicted(fleet: &Fleet, plan: &Plan) {
    assert!(plan.victims.is_empty() || plan.gang.class == TaskClass::Hp, "spot evicts: {plan:?}");
    for victim in &plan.victims {
        let class = fleet.tasks().get(victim).map(|running| running.class);
        assert_eq!(class, Some(TaskClass::Spot), "{victim} is to be evicted");
    }
}

/// Gangs are whole: a plan has a place for every pod.
///
/// # Panics
/// When it does not hold.
pub fn gangs_are_whole(plan: &Plan) {
    assert_eq!(plan.places.len(), plan.gang.pods as usize, "{plan:?}");
}

/// The GPUs of every pod that runs lie as they are guaranteed to.
///
/// # Panics
/// When it does not hold.
pub fn guaranteed_affinity_is_kept(fleet: &Fleet) {
    for (task, running) in fleet.tasks() {
        let fault = misplaced(fleet, &running.pod, &running.places);
        assert_eq!(fault, None, "{task} is guaranteed {:?}", running.pod.affinity);
    }
}

/// A plan would keep what it guarantees.
///
/// # Panics
/// When it does not hold.
pub fn plan_keeps_affinity(fleet: &Fleet, plan: &Plan) {
    assert_eq!(misplaced(fleet, &plan.gang.pod, &plan.places), None, "{plan:?}");
}

fn misplaced<'a>(fleet: &Fleet, pod: &PodRequest, places: &'a [PodPlace]) -> Option<&'a PodPlace> {
    let wish = Wish::of(pod).filter(|wish| wish.is_guaranteed())?;
    places.iter().find(|place| {
        let topology = fleet.nodes()[place.node].topology.as_deref();
        !wish.alignment(topology, place.gpus).is_aligned()
    })
}

/// Nobody is evicted in vain: without any one of its victims, the plan would not hold.
///
/// # Panics
/// When it does not hold.
pub fn nobody_is_evicted_in_vain(fleet: &Fleet, plan: &Plan) {
    for spared in &plan.victims {
        let victims = plan.victims.iter().filter(|victim| *victim != spared).cloned().collect();
        let less = Plan { victims, ..plan.clone() };
        assert!(fleet.check(&less).is_err(), "{spared} would be evicted in vain: {plan:?}");
    }
}

/// Q is never exceeded at admission, of its own hours and of all shorter ones.
///
/// # Panics
/// When it does not hold.
pub fn quota_is_kept_at_admission(fleet: &Fleet, gang: &Gang, hours: HorizonHours, limits: &[Limit]) {
    let asked = u64::from(gang.pod.gpus.milli()) * u64::from(gang.pods);
    for limit in limits.iter().filter(|limit| limit.hours <= hours) {
        let promised = fleet.promised(limit.hours).milli();
        assert!(promised + asked <= limit.quota.milli(), "{} exceeds its quota for {}", gang.task, limit.hours);
    }
}
