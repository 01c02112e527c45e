//! One run: pods come one by one, in an order that follows from the seed, and none leaves.

use super::InflateError;
use super::curve::{ENDS_AT, Point, Run};
use super::trace::Trace;
use crate::cpu;
use placement::Policy;
use placement::fleet::{EvictionSettings, Fleet, Gang};
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use vocab::{TaskClass, TaskId, UnixSeconds};

/// No time passes.
const NOW: UnixSeconds = UnixSeconds::new(0);

/// Fills the fleet.
///
/// # Errors
/// A node is refused.
pub fn fill(trace: &Trace, policy: &Policy, seed: u64) -> Result<Run, InflateError> {
    let before = cpu::used();
    let mut draws = ChaCha8Rng::seed_from_u64(seed);
    let mut order: Vec<usize> = (0..trace.pods.len()).collect();
    order.shuffle(&mut draws);
    // Ties go to the node that was added first: an order that is drawn once and then stays.
    let mut fleet = fleet(trace, policy, &mut draws)?;
    let capacity_milli = trace.gpus * 1_000;
    let (mut arrived_milli, mut failed) = (0, 0);
    let mut points = vec![point(&fleet, 0)];
    let mut number = 0;
    while arrived_milli * 100 < capacity_milli * ENDS_AT {
        let pod = order.get(number).copied().unwrap_or_else(|| draws.random_range(0..trace.pods.len()));
        let gang = Gang {
            task: TaskId::parse(&format!("pod-{number:06}"))?,
            class: TaskClass::Hp,
            pod: trace.pods[pod],
            pods: 1,
        };
        number += 1;
        arrived_milli += u64::from(gang.pod.gpus.milli());
        let plan = fleet.plan_by(&gang, policy.score, &trace.workload);
        if plan.is_none_or(|plan| fleet.apply(&plan, NOW, None).is_err()) {
            failed += 1;
        }
        while points.len() as u64 <= ENDS_AT && points.len() as u64 * capacity_milli <= arrived_milli * 100 {
            points.push(point(&fleet, arrived_milli));
        }
    }
    Ok(Run { points, failed_pods: failed, cpu_s: cpu::used().saturating_sub(before).as_secs_f64() })
}

fn fleet(trace: &Trace, policy: &Policy, draws: &mut ChaCha8Rng) -> Result<Fleet, InflateError> {
    let mut fleet = Fleet::ordered(EvictionSettings::default(), policy.score);
    let mut order: Vec<_> = trace.nodes.iter().collect();
    order.shuffle(draws);
    for node in order {
        let number = fleet.add(node.id.clone(), node.gpus, Some(node.cpu_milli), Some(node.memory_mib))?;
        fleet.set_model(number, trace.model_of(node));
    }
    fleet.set_power(trace.power.clone());
    Ok(fleet)
}

fn point(fleet: &Fleet, arrived_milli: u64) -> Point {
    let grar = if arrived_milli == 0 { 1.0 } else { fleet.used_milli() as f64 / arrived_milli as f64 };
    Point { grar, eopc_kw: fleet.watts().unwrap_or(0) as f64 / 1_000.0 }
}
