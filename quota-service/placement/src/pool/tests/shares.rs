//! Spot by fair shares of organizations.

use super::*;
use crate::Refusal;
use crate::shares::{ShareSettings, Weights};
use std::collections::BTreeMap;

pub const HOUR_S: i64 = vocab::SECONDS_PER_HOUR;

/// The policy with shares, where it can have them.
pub fn sharing(policy: Policy, half_life_hours: Option<u32>) -> Policy {
    let shares = half_life_hours.map(|half_life_hours| ShareSettings { half_life_hours });
    if policy.blocking == Blocking::Nobody { Policy { shares, ..policy } } else { policy }
}

fn organization(name: &str) -> Organization {
    Organization::parse(name).unwrap()
}

pub fn weights(of: &[(&str, u32)]) -> Arc<Weights> {
    let of: BTreeMap<_, _> = of.iter().map(|(name, weight)| (organization(name), *weight)).collect();
    Arc::new(Weights::new(of).unwrap())
}

pub fn pool_of(nodes: usize, half_life_hours: u32, of: &[(&str, u32)]) -> Pool {
    let policy = sharing(Policy::GFS, Some(half_life_hours));
    let mut pool = Pool::new(policy, PoolRules::default()).with_weights(weights(of));
    (0..nodes).for_each(|number| pool.handle(at(0), &add(number)).1.unwrap());
    pool
}

pub fn ask(name: &str, of: &str, gpus: u16, guarantee: Option<u64>) -> Command {
    let asked = request(name, TaskClass::Spot, GpuRequest::Whole(gpus), 1, guarantee.map(hours));
    Command::Submit(Request { organization: organization(of), ..asked })
}

pub fn submit_of(pool: &mut Pool, seconds: i64, name: &str, of: &str, gpus: u16) -> Vec<String> {
    let (report, done) = pool.handle(at(seconds), &ask(name, of, gpus, Some(1)));
    done.unwrap();
    started(&report).into_iter().map(str::to_owned).collect()
}

fn held(pool: &Pool) -> BTreeMap<String, u64> {
    let mut held = BTreeMap::new();
    for request in pool.requests.values().map(|admitted| &admitted.request) {
        *held.entry(request.organization.to_string()).or_default() += apply::gpus_milli(request) / 1_000;
    }
    held
}

pub fn finish(pool: &mut Pool, seconds: i64, name: &str) -> Vec<String> {
    let (report, done) = pool.handle(at(seconds), &Command::Finish { task: task(name) });
    done.unwrap();
    started(&report).into_iter().map(str::to_owned).collect()
}

/// All ways to give each organization some of what it asks for, up to `quota` in all.
fn allocations(demands: &[u64], quota: u64) -> Vec<Vec<u64>> {
    let Some((first, rest)) = demands.split_first() else { return vec![Vec::new()] };
    let with = |given: u64| allocations(rest, quota - given).into_iter().map(move |of| [vec![given], of].concat());
    (0..=(*first).min(quota)).flat_map(with).collect()
}

#[test]
fn an_organization_above_its_share_leaves_what_one_below_waits_for() {
    let mut pool = pool_of(2, 24, &[]);
    pool.handle(at(0), &limits(8)).1.unwrap();
    for number in 0..6 {
        assert_eq!(submit_of(&mut pool, 0, &format!("speech-{number}"), "speech", 1).len(), 1, "none else waits");
    }
    assert!(submit_of(&mut pool, 10, "wide", "vision", 4).is_empty(), "2 of 8 are left");
    assert!(submit_of(&mut pool, 20, "speech-more", "speech", 1).is_empty(), "vision waits for them");
    let Some(WaitReason::Refused(refusal)) = pool.why_it_waits(&task("speech-more")) else { panic!("it waits") };
    assert_eq!(refusal.code(), "above_fair_share");
    assert_eq!(
        refusal.to_string(),
        "its organization is above its fair share: it counts with 6.03 GPU hours per unit of weight, and vision, with 0.00, \
         waits for 4.000 GPUs with task wide; it starts when that task has started or more GPUs than both ask for are free"
    );
    assert!(matches!(pool.why_it_waits(&task("wide")), Some(WaitReason::Refused(Refusal::OverQuota { .. }))));
    assert!(finish(&mut pool, 30, "speech-0").is_empty());
    assert_eq!(finish(&mut pool, 40, "speech-1"), ["wide"]);
    assert_eq!(finish(&mut pool, 50, "speech-2"), ["speech-more"], "none below it waits any more");
}

#[test]
fn a_task_that_cannot_start_keeps_nothing_from_others() {
    let mut pool = pool_of(2, 24, &[]);
    pool.handle(at(0), &limits(8)).1.unwrap();
    assert_eq!(submit_of(&mut pool, 0, "speech-0", "speech", 4).len(), 1);
    assert!(submit_of(&mut pool, 1, "whole", "vision", 8).is_empty(), "more than half of the quota");
    pool.handle(at(2), &ask("long", "video", 1, Some(8))).1.unwrap();
    let wide = Request {
        organization: organization("audio"),
        ..request("wide", TaskClass::Spot, GpuRequest::Whole(9), 1, Some(hours(1)))
    };
    pool.handle(at(3), &Command::Submit(wide)).1.unwrap();
    assert_eq!(submit_of(&mut pool, 4, "speech-1", "speech", 4), ["speech-1"]);
    let waits = |pool: &mut Pool, name: &str| match pool.why_it_waits(&task(name)) {
        Some(WaitReason::Refused(refusal)) => refusal.code(),
        other => panic!("{name}: {other:?}"),
    };
    assert_eq!([waits(&mut pool, "whole"), waits(&mut pool, "long")], ["over_quota", "guarantee_not_offered"]);
}

#[test]
fn a_guarantee_of_an_organization_above_its_share_is_not_renewed_while_one_below_waits() {
    let mut pool = pool_of(2, 24, &[]);
    pool.handle(at(0), &limits(4)).1.unwrap();
    for number in 0..4 {
        submit_of(&mut pool, 0, &format!("speech-{number}"), "speech", 1);
    }
    assert!(submit_of(&mut pool, 60, "vision-0", "vision", 2).is_empty());
    let report = pool.pass(at(HOUR_S));
    assert_eq!(started(&report), ["vision-0"]);
    let renewed = report.facts.iter().filter(|fact| matches!(fact, Fact::Renewed { .. })).count();
    assert_eq!((renewed, held(&pool)["speech"]), (2, 4), "two run on at will");
}

#[test]
fn at_will_tasks_take_turns_over_idle_gpus() {
    let mut pool = pool_of(1, 24, &[]);
    for number in 0..6 {
        pool.handle(at(0), &ask(&format!("speech-{number}"), "speech", 1, None)).1.unwrap();
    }
    pool.handle(at(1), &ask("vision", "vision", 4, None)).1.unwrap();
    pool.handle(at(2), &ask("speech-6", "speech", 1, None)).1.unwrap();
    assert_eq!(pool.fleet().tasks().len(), 6, "two idle GPUs are kept for vision");
    finish(&mut pool, 3, "speech-0");
    assert_eq!(finish(&mut pool, 4, "speech-1"), ["vision"]);
}

#[test]
fn backlogs_share_gpu_time_by_weight_and_a_newcomer_does_not_starve_the_others() {
    let mut pool = pool_of(4, 24, &[("a", 3), ("b", 1)]);
    pool.handle(at(0), &limits(16)).1.unwrap();
    let (mut served, mut ends) = (BTreeMap::<String, i64>::new(), Vec::<(i64, String)>::new());
    let mut waiting = BTreeMap::from([("a", 0), ("b", 0), ("c", 0)]);
    for step in 0..24 * 40_i64 {
        let now = step * HOUR_S / 4;
        let mut reports = Vec::new();
        for (_, name) in ends.extract_if(.., |(end, _)| *end <= now).collect::<Vec<_>>() {
            waiting
                .entry(if name.starts_with('a') {
                    "a"
                } else if name.starts_with('b') {
                    "b"
                } else {
                    "c"
                })
                .and_modify(|count| *count -= 1);
            reports.push(pool.handle(at(now), &Command::Finish { task: task(&name) }).0);
        }
        // Tasks of 2, 1 and 4 GPUs, 90 minutes each; c comes after five days.
        for (of, gpus) in [("a", 2), ("b", 1), ("c", 4)] {
            while waiting[of] < 24 && (of != "c" || step >= 24 * 20) {
                *waiting.entry(of).or_default() += 1;
                let name = format!("{of}-{step}-{}", waiting[of]);
                reports.push(pool.handle(at(now), &ask(&name, of, gpus, Some(1))).0);
            }
        }
        for name in reports.iter().flat_map(started) {
            let gpus = pool.requests[&task(name)].request.gang.pod.gpus.milli();
            *served.entry(format!("{}{}", &name[..1], u8::from(step >= 24 * 30))).or_default() += i64::from(gpus);
            ends.push((now + HOUR_S * 3 / 2, name.to_owned()));
        }
    }
    let share = |of: &str, than: &str| served[of] as f64 / served[than] as f64;
    assert!((2.7..3.3).contains(&share("a0", "b0")), "{served:?}");
    // After c has made up for its absence: 3 to 1 to 1.
    assert!((2.4..3.6).contains(&share("a1", "b1")) && (0.6..1.8).contains(&share("c1", "b1")), "{served:?}");
}

#[test]
fn a_change_of_half_life_or_weights_keeps_use() {
    let mut pool = pool_of(2, 24, &[]);
    pool.handle(at(0), &limits(8)).1.unwrap();
    submit_of(&mut pool, 0, "speech", "speech", 4);
    let pool = Pool::restore(
        &{
            pool.pass(at(HOUR_S / 2));
            pool.snapshot()
        },
        sharing(Policy::GFS, Some(72)),
        PoolRules::default(),
    );
    let pool = pool.unwrap().with_weights(weights(&[("speech", 2), ("unknown", 7)]));
    let levels: Vec<_> = pool.use_levels().map(|(of, held, level)| (of.as_str(), held, level / 3_600)).collect();
    // Half an hour and an hour in advance of 4 GPUs, by a weight of 2; some of it is in an older sixteenth.
    assert!(matches!(levels[..], [("speech", 4_000, 2_870..=3_000)]), "{levels:?}");
    let off = Pool::restore(&pool.snapshot(), Policy::GFS, PoolRules::default()).unwrap();
    assert_eq!((off.use_levels().count(), off.snapshot().shares), (0, crate::shares::UseParts::default()));
}

#[test]
fn a_thousand_organizations_take_turns() {
    let mut pool = pool_of(8, 24, &[]);
    for number in 0..1_000 {
        submit_of(&mut pool, 0, &format!("task-{number}"), &format!("organization-{number}"), 1);
        submit_of(&mut pool, 0, &format!("more-{number}"), &format!("organization-{number}"), 1);
    }
    let (report, done) = pool.handle(at(1), &limits(40));
    done.unwrap();
    assert_eq!(started(&report).len(), 40);
    assert_eq!(held(&pool).len(), 40, "each has one");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..config() })]

    /// More for one organization takes from one that is not better off: the definition of max-min fairness, by weight.
    #[test]
    fn without_history_the_allocation_is_weighted_max_min(
        of in prop::collection::vec((1_u32..5, 0_u64..7), 2..5), quota in 0_u32..11,
    ) {
        let names = ["a", "b", "c", "d"];
        let of_weights: Vec<_> = names.into_iter().zip(of.iter().map(|(weight, _)| *weight)).collect();
        let mut pool = pool_of(2, 24, &of_weights);
        for ((name, (_, demand)), count) in names.iter().zip(&of).flat_map(|one| (0..one.1.1).map(move |n| (one, n))) {
            prop_assert!(*demand > count);
            let task = format!("{name}-{count}");
            prop_assert!(submit_of(&mut pool, 0, &task, name, 1).is_empty());
        }
        pool.handle(at(0), &limits(quota)).1.unwrap();
        let held = held(&pool);
        let given: Vec<u64> = names.iter().take(of.len()).map(|name| held.get(*name).copied().unwrap_or(0)).collect();
        let demands: Vec<u64> = of.iter().map(|(_, demand)| *demand).collect();
        prop_assert_eq!(given.iter().sum::<u64>(), demands.iter().sum::<u64>().min(u64::from(quota)), "{:?}", given);
        for other in allocations(&demands, u64::from(quota)) {
            for (j, more) in other.iter().enumerate().filter(|(j, more)| **more > given[*j]) {
                let costs = |i: usize| {
                    other[i] < given[i] && other[i] * u64::from(of[j].0) <= given[j] * u64::from(of[i].0)
                };
                prop_assert!((0..of.len()).any(costs), "{:?} gives {} {} instead of {:?}", other, names[j], more, given);
            }
        }
    }

    /// With a single organization there is nothing to share: every fact is the same as without.
    #[test]
    fn shares_of_one_organization_change_nothing(steps in steps(), heads in 0_u32..3) {
        let policy = reserving("gfs", heads, 900);
        let mut without = Pool::new(policy, PoolRules::default());
        let mut with = Pool::new(sharing(policy, Some(24)), PoolRules::default());
        let mut now = at(0);
        for (number, (seconds, step)) in steps.into_iter().enumerate() {
            now = now.plus_s(seconds);
            let command = match command(&without, number, &step, now) {
                Command::Submit(request) => Command::Submit(Request { organization: organization("a"), ..request }),
                other => other,
            };
            prop_assert_eq!(without.handle(now, &command), with.handle(now, &command));
        }
    }

    /// Standings are read between commands: one history with and without reads has the same facts.
    #[test]
    fn reads_of_standings_change_no_decision(
        steps in steps(), heads in 0_u32..3, half_life in prop::sample::select(vec![1, 24]), reads in any::<u64>(),
    ) {
        let new = || Pool::new(sharing(reserving("gfs", heads, 900), Some(half_life)), PoolRules::default());
        let (mut unread, mut read, mut now) = (new(), new(), at(0));
        for (number, (seconds, step)) in steps.into_iter().enumerate() {
            now = now.plus_s(seconds);
            let command = command(&unread, number, &step, now);
            if reads >> (number % 64) & 1 == 1 {
                let standings = read.standings();
                prop_assert!(standings.is_some());
                prop_assert_eq!(read.standings(), standings, "two reads at one moment");
            }
            prop_assert_eq!(unread.handle(now, &command), read.handle(now, &command), "command {}", number);
        }
        prop_assert_eq!(unread.snapshot(), read.snapshot());
    }

    /// An organization that asks for no more than half of the quota starts, however much another one asks for.
    #[test]
    fn no_organization_starves_behind_one_with_more_use(
        small in 1_u16..5, gpus in 1_u16..5, life_s in 600_i64..20_000, half_life in prop::sample::select(vec![1, 24]),
    ) {
        let mut pool = pool_of(3, half_life, &[("greedy", 1_000)]);
        pool.handle(at(0), &limits(8)).1.unwrap();
        let mut ends: Vec<(i64, String)> = Vec::new();
        for step in 0..24 * 60_i64 {
            let now = step * 600;
            let mut reports = Vec::new();
            for (_, name) in ends.extract_if(.., |(end, _)| *end <= now).collect::<Vec<_>>() {
                reports.push(pool.handle(at(now), &Command::Finish { task: task(&name) }).0);
            }
            if step == 100 {
                reports.push(pool.handle(at(now), &ask("single", "small", small, Some(1))).0);
            }
            for number in 0..2 {
                reports.push(pool.handle(at(now), &ask(&format!("greedy-{step}-{number}"), "greedy", gpus, Some(1))).0);
            }
            for name in reports.iter().flat_map(started) {
                if name == "single" {
                    return Ok(());
                }
                ends.push((now + life_s, name.to_owned()));
            }
        }
        prop_assert!(false, "it never started");
    }
}
