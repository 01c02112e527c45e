//! Amounts that may still be admitted, as tasks that are placed here come and end between renewals.

use super::{Answer, Glance, Hold, PublishedPool};
use crate::engine::TaskCounts;
use crate::plan::{self, Held};
use placement::pool::Pool;
use placement::{Eta, Limit};
use vocab::{HorizonHours, MilliGpus, PlacedBy, PoolId, PoolState};
use wire::{Explanation, QuotaAnswer, ReasonBody};

/// The tasks of a pool that Headroom places, as they are now.
pub struct TasksNow {
    /// GPUs that they hold.
    pub state: PoolState,
    /// Promised tasks.
    pub promised: u64,
    /// HP GPUs, running and waiting; none where the policy's limits do not follow them.
    hp_demand: Option<MilliGpus>,
    /// The limits that were set, by the quotas of their time.
    set: Vec<Limit>,
    /// The same as they count now: HP demand that has come since takes from them.
    left: Vec<Limit>,
}

/// A limit that is served.
#[derive(Clone, Copy)]
struct Served {
    hours: HorizonHours,
    limit: MilliGpus,
    /// The HP demand that its renewal counted, where it knew it.
    counted: Option<MilliGpus>,
}

impl TasksNow {
    #[must_use]
    pub fn of(pool: &mut Pool, id: PoolId) -> Self {
        let (set, left) = (pool.limits().to_vec(), pool.limits_now());
        let hp_demand = pool.policy().limits_follow_demand.then(|| pool.hp_demand());
        Self { state: pool.state(id), promised: pool.fleet().promised_tasks(), hp_demand, set, left }
    }

    /// The part of a limit that is left for promises: HP demand that its renewal has not counted takes from it. What the pool itself counts
    /// from is of no use here, since the pool takes new limits over a moment after they are published. It is used where the renewal did not
    /// know the demand, as before the first task, and none where the pool has other limits.
    fn left(&self, served: Served) -> Option<MilliGpus> {
        if let (Some(now), Some(counted)) = (self.hp_demand, served.counted) {
            return Some(served.limit.left_after(now.left_after(counted)));
        }
        let of = |limits: &[Limit]| limits.iter().find(|limit| limit.hours == served.hours).map(|limit| limit.quota);
        of(&self.left).filter(|_| of(&self.set) == Some(served.limit))
    }
}

/// η · f of a stored quota: it holds the quota, or what is idle does, and then it follows from the inventory.
fn scaled_inventory(of: &Explanation) -> MilliGpus {
    let (quota, ceiling) = (plan::amount(of.quota.quota_gpus), plan::amount(of.supply.ceiling_gpus));
    let scaled = || Eta::nearest(of.eta.eta).map(|eta| eta.of(plan::amount(of.quota.inventory_gpus)));
    if quota < ceiling { quota } else { scaled().map_or(quota, |scaled| scaled.max(quota)) }
}

/// Why less may be admitted than the quota has room for.
const CODE: &str = "tasks_since_renewal";

impl PublishedPool {
    /// The same quotas, with what the tasks that are placed here hold of them, in `promised` tasks; `None` where that is what they
    /// say. What may still be admitted never rises.
    #[must_use]
    pub fn following(&self, now: &TasksNow, counts: &dyn Fn() -> TaskCounts) -> Option<Self> {
        let (state, promised) = (&now.state, now.promised);
        let mut least = state.idle;
        let mut held_now = |answer: &Answer| {
            let Ok(hours) = HorizonHours::new(u64::from(answer.hours())) else { return answer.held };
            let spot = state.spot(hours);
            least = least.min(answer.held.available).min(plan::amount(answer.fresh.quota_gpus).left_after(spot));
            if let Some(left) = self.served(hours).and_then(|served| now.left(served)) {
                least = least.min(left.left_after(spot));
            }
            Held { spot, available: least }
        };
        let held: Vec<Held> = self.answers.iter().map(&mut held_now).collect();
        let is_same = self.answers.iter().zip(&held).all(|(answer, held)| answer.held == *held);
        let is_known = self.glance.placed_by == Some(PlacedBy::Headroom);
        if is_same && is_known && self.glance.tasks.is_some_and(|tasks| tasks.promised == promised) {
            return None;
        }
        let followed = |(answer, held): (&Answer, Held)| {
            let fresh = explained(answer, held);
            Answer::new(fresh, answer.computed_at, held, self.problem.as_deref())
        };
        let tasks = TaskCounts { promised, ..self.glance.tasks.unwrap_or_else(counts) };
        let glance = Glance { tasks: Some(tasks), placed_by: Some(PlacedBy::Headroom), ..self.glance.clone() };
        let answers = self.answers.iter().zip(held).map(followed).collect();
        Some(Self { glance, ..self.with_answers(answers) })
    }

    /// The limit of these hours by the quotas that are answered, of this service or stored by the one that leads.
    fn served(&self, hours: HorizonHours) -> Option<Served> {
        if let Some(made_of) = &self.made_of {
            let quota = made_of.quotas.iter().find(|quota| quota.hours == hours)?;
            return Some(Served { hours, limit: quota.scaled_inventory, counted: made_of.hp_demand });
        }
        let stored = self.stored_explanations.get(&hours.get())?;
        let counted = stored.bound.live.as_ref().map(|live| plan::amount(live.hp_demand_gpus));
        Some(Served { hours, limit: scaled_inventory(stored), counted })
    }
}

/// The answer with what may still be admitted, and why that is less than the quota less what is held, where tasks made it so.
fn explained(answer: &Answer, held: Held) -> QuotaAnswer {
    let mut fresh = QuotaAnswer { available_gpus: held.available.as_gpus(), ..answer.fresh.clone() };
    let quota = plan::amount(fresh.quota_gpus);
    let unused = |held: Held| quota.left_after(held.spot).left_after(held.available);
    let was_there = fresh.reasons.iter().any(|reason| reason.code == CODE);
    fresh.reasons.retain(|reason| reason.code != CODE);
    let is_held_back = fresh.reasons.iter().any(|reason| Hold::is_code(&reason.code));
    let is_new = unused(held) != unused(answer.held);
    if unused(held) > MilliGpus::ZERO && (is_new || was_there) && !is_held_back {
        let (room, left) = (quota.left_after(held.spot), held.available);
        let detail = format!(
            "tasks that came or ended since the quota was computed leave {left} of the {room} GPUs that it has room for; the next \
             renewal computes it again"
        );
        fresh.reasons.push(ReasonBody { code: CODE.to_owned(), detail });
    }
    fresh
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::published::tests::{published, reported};

    fn tasks(state: PoolState, promised: u64) -> TasksNow {
        TasksNow { state, promised, hp_demand: None, set: Vec::new(), left: Vec::new() }
    }

    fn served(gpus: u32, counted: Option<u32>) -> Served {
        let counted = counted.map(MilliGpus::from_gpus);
        Served { hours: HorizonHours::ONE, limit: MilliGpus::from_gpus(gpus), counted }
    }

    #[test]
    fn hp_demand_that_a_renewal_counted_takes_nothing_from_its_limits() {
        let limit = |gpus: u32| vec![Limit { hours: HorizonHours::ONE, quota: MilliGpus::from_gpus(gpus) }];
        let hp_demand = Some(MilliGpus::from_gpus(36));
        // The pool has not taken the new limits over yet, which are those of before.
        let now = TasksNow { hp_demand, set: limit(30), left: limit(14), ..tasks(reported(90, &[]).state, 0) };
        let left = |served| now.left(served).map(MilliGpus::as_gpus);
        assert_eq!(left(served(30, Some(20))), Some(14.0), "16 have come since");
        assert_eq!(left(served(30, Some(36))), Some(30.0), "they are counted");
        assert_eq!(left(served(30, Some(50))), Some(30.0), "what has ended raises nothing");
        assert_eq!(left(served(10, Some(20))), Some(0.0));
    }

    #[test]
    fn limits_of_quotas_that_counted_no_demand_are_those_of_the_pool() {
        let limit = |gpus: u32| vec![Limit { hours: HorizonHours::ONE, quota: MilliGpus::from_gpus(gpus) }];
        let now = TasksNow { set: limit(30), left: limit(14), ..tasks(reported(90, &[]).state, 0) };
        assert_eq!(now.left(served(30, None)), Some(MilliGpus::from_gpus(14)));
        assert_eq!(now.left(served(40, None)), None, "a renewal that the pool does not know yet");
        assert_eq!(now.left(Served { hours: HorizonHours::new(4).unwrap(), ..served(30, None) }), None);
    }

    #[test]
    fn available_gpus_fall_with_admitted_tasks_and_the_quota_stays() {
        let pool = published(&[(1, 60.0, 10.0), (4, 40.0, 10.0)]);
        let of = |pool: &PublishedPool| -> Vec<(f64, f64, f64)> {
            let answers = pool.answers.iter().map(|answer| (answer.fresh.quota_gpus, answer.held));
            answers.map(|(quota, held)| (quota, held.spot.as_gpus(), held.available.as_gpus())).collect()
        };
        let (one, four) = (HorizonHours::ONE, HorizonHours::new(4).unwrap());
        let pool = pool.following(&tasks(reported(90, &[(four, 10)]).state, 1), &TaskCounts::default).unwrap();
        assert_eq!(
            (pool.glance.tasks.map(|tasks| tasks.promised), &of(&pool)[..]),
            (Some(1), &[(60.0, 10.0, 50.0), (40.0, 10.0, 30.0)][..])
        );
        let following = |pool: &PublishedPool, state: PoolState, promised| {
            pool.following(&tasks(state, promised), &|| unreachable!())
        };
        assert!(following(&pool, reported(90, &[(four, 10)]).state, 1).is_none(), "that is what was answered");
        let admitted = following(&pool, reported(60, &[(one, 5), (four, 35)]).state, 4).unwrap();
        assert_eq!(of(&admitted), [(60.0, 40.0, 20.0), (40.0, 35.0, 5.0)]);
        let ended = following(&admitted, reported(90, &[(four, 10)]).state, 1).unwrap();
        assert_eq!(of(&ended), [(60.0, 10.0, 20.0), (40.0, 10.0, 5.0)], "a raise waits");
        let for_hp = following(&pool, reported(3, &[(four, 10)]).state, 1).unwrap();
        assert_eq!(of(&for_hp), [(60.0, 10.0, 3.0), (40.0, 10.0, 3.0)], "what is not idle is not admitted");
    }

    #[test]
    fn less_than_the_quota_has_room_for_is_explained_until_nothing_is_missing() {
        let four = HorizonHours::new(4).unwrap();
        let pool = published(&[(4, 40.0, 10.0)]);
        let after = |pool: &PublishedPool, idle, spot| {
            pool.following(&tasks(reported(idle, &[(four, spot)]).state, 1), &TaskCounts::default).unwrap()
        };
        let reasons = |pool: &PublishedPool| -> Vec<String> {
            pool.answers[0].fresh.reasons.iter().map(|reason| format!("{}: {}", reason.code, reason.detail)).collect()
        };
        assert_eq!(reasons(&after(&pool, 90, 10)), Vec::<String>::new());
        let at_will = after(&pool, 12, 10);
        let [why] = &reasons(&at_will)[..] else { panic!("one reason") };
        assert!(why.starts_with("tasks_since_renewal: tasks that came or ended since the quota was computed leave 12.000 of the 30.000 GPUs"), "{why}");
        let less = after(&at_will, 9, 10);
        assert!(reasons(&less)[0].contains("leave 9.000 of the 30.000 GPUs") && reasons(&less).len() == 1);
        assert_eq!(reasons(&after(&less, 0, 40)), Vec::<String>::new(), "the quota is used up");
        let held = pool.held_back(Hold::Change).unwrap();
        assert_eq!(after(&held, 90, 12).answers[0].fresh.reasons.len(), 1, "the hold says why");
    }
}
