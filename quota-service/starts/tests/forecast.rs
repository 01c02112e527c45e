//! Forecasts of small pools whose jobs are alike.

#![allow(clippy::unwrap_used, reason = "helpers of tests: a fault fails the test")]

use placement::fleet::{Gang, GpuRequest, PodRequest};
use placement::pool::{Command, Pool, PoolRules, Request};
use placement::{Limit, Policy};
use starts::{Ask, Doubt, Forecast, HORIZON_S, PoolFacts, StartExpert};
use vocab::{HorizonHours, MilliGpus, NodeId, Organization, ReservedWindow, TaskClass, TaskId, UnixSeconds};

const BEGIN: UnixSeconds = UnixSeconds::new(1_700_000_000);
const HOUR_S: i64 = 3_600;

fn task(name: &str) -> TaskId {
    TaskId::parse(name).unwrap()
}

fn request(name: &str, class: TaskClass, gpus: u16, hours: Option<u64>, at: UnixSeconds) -> Request {
    let gang = Gang { task: task(name), class, pod: PodRequest::new(GpuRequest::Whole(gpus), 0, 0), pods: 1 };
    let hours = hours.map(|hours| HorizonHours::new(hours).unwrap());
    Request { gang, organization: Organization::parse("a").unwrap(), submitted: at, hours, elastic: None }
}

fn pool(policy: &str, nodes: usize) -> Pool {
    let mut pool = Pool::new(Policy::parse(policy).unwrap(), PoolRules::default());
    for number in 0..nodes {
        let node = NodeId::parse(&format!("node-{number}")).unwrap();
        let add = Command::AddNode { node, gpus: 8, cpu_milli: None, memory_mib: None, topology: None };
        pool.handle(BEGIN, &add).1.unwrap();
    }
    pool
}

fn done(pool: &mut Pool, at: UnixSeconds, command: &Command) {
    pool.handle(at, command).1.unwrap();
}

/// Two days in which spot of eight GPUs runs for an hour, one after the other, on one node; the last one has run for half an hour.
fn hours_of_spot(policy: &str) -> (Pool, StartExpert, UnixSeconds) {
    let (mut pool, mut expert) = (pool(policy, 1), StartExpert::default());
    let mut now = BEGIN;
    for number in 0..48 {
        let name = format!("past-{number}");
        done(&mut pool, now, &Command::Submit(request(&name, TaskClass::Spot, 8, None, now)));
        for step in 0..12 {
            if number == 47 && step == 6 {
                break;
            }
            expert.observe(&PoolFacts::of(&pool));
            now = now.plus_s(HOUR_S / 12);
            pool.pass(now);
        }
        if number < 47 {
            done(&mut pool, now, &Command::Finish { task: task(&name) });
        }
    }
    (pool, expert, now)
}

fn forecast(pool: &Pool, expert: &StartExpert, name: &str) -> Forecast {
    expert.of_waiting(&PoolFacts::of(pool), &task(name), 7).unwrap()
}

#[test]
fn a_task_behind_one_of_an_hour_starts_when_that_ends() {
    let (mut pool, expert, now) = hours_of_spot("gfs");
    done(&mut pool, now, &Command::Submit(request("next", TaskClass::Spot, 8, None, now)));
    let starts = forecast(&pool, &expert, "next").starts;
    assert!((900.0..3_000.0).contains(&starts.quantile_s(0.5)), "{}", starts.quantile_s(0.5));
    assert!(starts.probability_by(4.0 * 3_600.0) > 0.8, "{}", starts.probability_by(4.0 * 3_600.0));
    assert!(starts.probability_by(60.0) < 0.2, "{}", starts.probability_by(60.0));
}

#[test]
fn the_same_seed_gives_the_same_starts() {
    let (mut pool, expert, now) = hours_of_spot("gfs");
    done(&mut pool, now, &Command::Submit(request("next", TaskClass::Spot, 8, None, now)));
    let of = |seed| expert.of_waiting(&PoolFacts::of(&pool), &task("next"), seed).unwrap();
    assert_eq!(of(7), of(7));
    assert_ne!(of(7).raw, of(8).raw);
}

#[test]
fn small_spot_comes_first_or_the_earlier_one_as_the_policy_has_it() {
    for (policy, is_small_first) in [("gfs", true), ("fifo-fair", false)] {
        let (mut pool, expert, now) = hours_of_spot(policy);
        done(&mut pool, now, &Command::Submit(request("large", TaskClass::Spot, 8, None, now)));
        done(&mut pool, now, &Command::Submit(request("small", TaskClass::Spot, 1, None, now)));
        let median = |name| forecast(&pool, &expert, name).starts.quantile_s(0.5);
        assert_eq!(median("small") < median("large"), is_small_first, "{policy}");
    }
}

#[test]
fn within_no_quota_a_guarantee_does_not_start_and_the_answer_says_why() {
    let (mut pool, expert, now) = hours_of_spot("gfs");
    let hour = HorizonHours::ONE;
    done(&mut pool, now, &Command::SetLimits(vec![Limit { hours: hour, quota: MilliGpus::ZERO }]));
    for (name, hours, doubt) in [("one", 1, Doubt::BeyondHorizon), ("four", 4, Doubt::NotOffered)] {
        done(&mut pool, now, &Command::Submit(request(name, TaskClass::Spot, 8, Some(hours), now)));
        let forecast = forecast(&pool, &expert, name);
        assert!(forecast.doubts.contains(&doubt), "{:?}", forecast.doubts);
        assert_eq!(forecast.starts.quantile_s(0.5), f64::from(HORIZON_S));
        assert_eq!(forecast.starts.probability_by(f64::from(HORIZON_S)), 0.0);
    }
}

/// Eight GPUs of organization b from one time to another, in minutes from now.
fn window(now: UnixSeconds, from_min: i64, to_min: i64) -> ReservedWindow {
    let at = |minutes: i64| now.plus_s(minutes * 60);
    let organization = Organization::parse("b").unwrap();
    ReservedWindow { from: at(from_min), to: at(to_min), organization, gpus: MilliGpus::from_gpus(8) }
}

#[test]
fn a_promise_that_would_reach_into_a_window_starts_after_it() {
    let (mut pool, expert, now) = hours_of_spot("gfs");
    let limit = Limit { hours: HorizonHours::ONE, quota: MilliGpus::from_gpus(8) };
    done(&mut pool, now, &Command::SetLimits(vec![limit]));
    done(&mut pool, now, &Command::Submit(request("next", TaskClass::Spot, 8, Some(1), now)));
    let median = |pool: &Pool| forecast(pool, &expert, "next").starts.quantile_s(0.5);
    assert!(median(&pool) < 3_600.0, "{}", median(&pool));
    pool.set_windows(vec![window(now, 70, 300)]);
    assert!(median(&pool) > 4.0 * 3_600.0, "{}", median(&pool));
    assert!(forecast(&pool, &expert, "next").doubts.contains(&Doubt::Reservations));
}

#[test]
fn spot_at_will_does_not_start_on_gpus_that_an_open_window_keeps() {
    let (mut pool, expert, now) = hours_of_spot("gfs");
    done(&mut pool, now, &Command::Submit(request("next", TaskClass::Spot, 8, None, now)));
    pool.set_windows(vec![window(now, -10, 240)]);
    let starts = forecast(&pool, &expert, "next").starts;
    assert_eq!(starts.probability_by(3.9 * 3_600.0), 0.0);
    assert!(starts.quantile_s(0.5) < 6.0 * 3_600.0, "{}", starts.quantile_s(0.5));
}

#[test]
fn hp_that_is_not_submitted_would_start_at_once_on_the_gpus_of_spot() {
    let (pool, expert, now) = hours_of_spot("gfs");
    let asks = [TaskClass::Spot, TaskClass::Hp].map(|class| Ask::now(request("new", class, 8, None, now)));
    let both = expert.of_new(&PoolFacts::of(&pool), &asks, 7);
    assert!(both[0].starts.quantile_s(0.5) > 600.0);
    assert!(both[1].starts.quantile_s(0.95) <= 60.0);
}

#[test]
fn a_task_ends_as_long_after_its_start_as_it_runs_and_one_that_is_submitted_later_ends_later() {
    let (pool, expert, now) = hours_of_spot("gfs");
    let facts = PoolFacts::of(&pool);
    let mut ask = Ask { runs_s: Some(7_200.0), ..Ask::now(request("new", TaskClass::Hp, 8, None, now)) };
    let ends = expert.ends(&facts, &ask, 7).unwrap();
    assert!(ends.forecast.starts.quantile_s(0.95) <= 60.0);
    assert!((7_200.0..7_600.0).contains(&ends.ends.quantile_s(0.5)), "{}", ends.ends.quantile_s(0.5));
    let at_once = [0.05, 0.95].map(|level| ends.started_at_once.quantile_s(level));
    assert!(at_once.iter().all(|end| (end - 7_200.0).abs() < 0.1), "HP is not evicted: {at_once:?}");
    assert_eq!(ends.started_at_once.probability_by(7_200.0), 1.0);
    ask.after_s = 3_600;
    let later = expert.ends(&facts, &ask, 7).unwrap();
    assert!((10_800.0..11_300.0).contains(&later.ends.quantile_s(0.5)), "{}", later.ends.quantile_s(0.5));
    assert!(later.forecast.starts.quantile_s(0.95) <= 300.0, "{}", later.forecast.starts.quantile_s(0.95));
}

#[test]
fn without_a_history_the_answer_says_what_is_not_known() {
    let mut pool = pool("gfs", 1);
    done(&mut pool, BEGIN, &Command::Submit(request("runs", TaskClass::Hp, 8, None, BEGIN)));
    done(&mut pool, BEGIN, &Command::Submit(request("waits", TaskClass::Spot, 8, None, BEGIN)));
    let forecast = forecast(&pool, &StartExpert::default(), "waits");
    let doubts = [Doubt::FewJobs, Doubt::UnknownArrivals, Doubt::NotCalibrated];
    assert!(doubts.iter().all(|doubt| forecast.doubts.contains(doubt)), "{:?}", forecast.doubts);
    assert_eq!(StartExpert::default().of_waiting(&PoolFacts::of(&pool), &task("runs"), 0), None);
}

#[test]
fn starts_that_were_seen_are_held_against_their_forecasts_and_a_restart_keeps_that() {
    let (mut pool, mut expert, mut now) = hours_of_spot("gfs");
    for number in 0..30 {
        let (waits, before) = (format!("next-{number}"), pool.fleet().tasks().keys().next().unwrap().clone());
        done(&mut pool, now, &Command::Submit(request(&waits, TaskClass::Spot, 8, None, now)));
        let facts = PoolFacts::of(&pool);
        expert.observe(&facts);
        assert_eq!(expert.issue(&facts, number).len(), 1);
        now = now.plus_s(HOUR_S / 2);
        done(&mut pool, now, &Command::Finish { task: before });
        expert.observe(&PoolFacts::of(&pool));
        now = now.plus_s(HOUR_S / 2);
        pool.pass(now);
        expert.observe(&PoolFacts::of(&pool));
    }
    let coverage = expert.coverage(TaskClass::Spot).unwrap();
    assert_eq!((coverage.scored, expert.coverage(TaskClass::Hp)), (30, None));
    assert!(coverage.class_mean_pinball_s.is_some(), "the waits before were seen, too: {coverage:?}");
    assert!(coverage.of_90 > 0.8, "{coverage:?}");
    let bytes = expert.to_bytes();
    assert_eq!(StartExpert::from_bytes(&bytes).unwrap(), expert);
    let damaged = (0..bytes.len()).step_by(97).map(|end| StartExpert::from_bytes(&bytes[..end]));
    assert!(damaged.into_iter().all(|read| read.is_err()), "cut bytes are refused");
}

#[test]
fn knowledge_of_the_format_before_is_read() {
    let (_, expert, _) = hours_of_spot("gfs");
    let mut bytes = expert.to_bytes();
    // It ended before the waits, of which there are none here.
    bytes.truncate(bytes.len() - 4);
    bytes[4] = 1;
    assert_eq!(StartExpert::from_bytes(&bytes).unwrap(), expert);
    bytes[4] = 3;
    assert!(StartExpert::from_bytes(&bytes).is_err(), "one that is not known is refused");
}
