//! A pool of 1,000 GPUs over days, renewal by renewal.

mod listed;

use super::*;
use placement::kept::Period;
use vocab::{ClusterName, GpuModel, HorizonHours, HpJob, Organization, OverrideKind, PoolId, PoolState, TaskId};

const RENEWAL_S: i64 = 300;
const DAY: i64 = 86_400 / RENEWAL_S;

fn gpus(gpus: u32) -> MilliGpus {
    MilliGpus::from_gpus(gpus)
}

fn at(renewal: i64) -> UnixSeconds {
    UnixSeconds::new(renewal * RENEWAL_S)
}

fn name() -> PoolId {
    PoolId { cluster: ClusterName::parse("earth").unwrap(), gpu_model: GpuModel::parse("V100").unwrap() }
}

/// One hour is offered, at 0.9.
fn settings(promise: Promise) -> PoolSettings {
    PoolSettings { promise, offered_hours: vec![HorizonHours::ONE], ..PoolSettings::default() }
}

/// A bound over an hour, and what demand returns to within it.
fn forecast(bound: u32, returns: u32) -> ForecastBound {
    ForecastBound { hours: HorizonHours::ONE, bound: gpus(bound), returns: gpus(returns) }
}

/// A pool whose HP needs 300 GPUs, of which spot holds `spot` under promises.
struct World {
    settings: PoolSettings,
    learned: Learned,
    eta: EtaState,
    /// One bound for each of the offered hours; none without a forecast.
    forecast: Option<Vec<ForecastBound>>,
    /// Where it is known from moment to moment.
    hp_demand: Option<MilliGpus>,
    /// The jobs behind it, where they are known.
    hp_jobs: Option<Vec<HpJob>>,
    /// GPUs in each hour, of a pool that another scheduler places, NaN if they are not known; none where Headroom does.
    usage_gpus: Option<f64>,
    spot: u32,
    ended: Vec<Ended>,
}

impl World {
    fn new(promise: Promise, spot: u32) -> Self {
        let settings = settings(promise);
        let learned = Learned::new(settings.guarantee_rate, &settings.offered_hours);
        let eta = EtaState { eta: Eta::ONE, moved_at: at(0) };
        let forecast = Some(vec![forecast(500, 0)]);
        let (hp_demand, usage_gpus) = (Some(gpus(300)), None);
        Self { settings, learned, eta, forecast, hp_demand, hp_jobs: None, usage_gpus, spot, ended: Vec::new() }
    }

    fn renew(&mut self, renewal: i64, asked: &[(OverrideId, Override)]) -> Decided {
        let state = PoolState {
            pool: name(),
            capacity: gpus(1_000),
            idle: gpus(700 - self.spot),
            spot_by_guarantee: vec![(HorizonHours::ONE, gpus(self.spot))].into_iter().collect(),
            longest_quota_wait_s: 7_200,
            as_of: at(renewal),
        };
        let known = Known { state: Some(state), latest_demand: Some(gpus(300)), ..Known::default() };
        let hour = at(renewal - renewal % 12);
        let hours = (1..=3).map(|back| hour.plus_s(-3_600 * back));
        let usage =
            hours.filter_map(|hour| Some(HourUsage { hour, gpus: self.usage_gpus.filter(|gpus| !gpus.is_nan())? }));
        let usage: Vec<_> = usage.collect();
        let decided = decide(Inputs {
            now: at(renewal),
            known: &known,
            settings: &self.settings,
            forecast: self.forecast.as_deref(),
            is_placed_here: self.hp_demand.is_some() && self.usage_gpus.is_none(),
            hp_demand: self.hp_demand,
            hp_jobs: self.hp_jobs.as_deref(),
            past_jobs: None,
            last_usage: &usage,
            measured_until: hour,
            calibrated_hours: 0,
            learned: Some(&mut self.learned),
            overrides: asked,
            eta: self.eta,
            unspent: &self.ended,
            newest_outcome: self.ended.first().map(|one| one.at),
            eta_is_fixed: false,
        });
        let decided = decided.unwrap();
        self.eta = decided.moved.map_or(self.eta, |moved| moved.to);
        decided
    }

    /// Twelve hours of promises of 8 GPUs each, of which `broken` of ten break after half of their hour.
    fn half_a_day(&mut self, from: i64, broken: i64) -> Decided {
        let renewals = from..from + DAY / 2;
        let last = renewals.map(|renewal| {
            let one = |number: i64| {
                let (is_broken, began) = (number < broken, at(renewal - 12));
                let lasted_s = if is_broken { 1_800 } else { 3_600 };
                let period = Period { began, lasted_s, gpus_milli: 8_000, broken: is_broken };
                Ended { number: renewal * 10 + number + 1, at: at(renewal), hours: HorizonHours::ONE, period }
            };
            self.ended.splice(0..0, (0..10).map(one));
            self.renew(renewal, &[])
        });
        last.last().unwrap()
    }
}

#[test]
fn on_its_first_day_a_pool_is_served_as_under_peak_and_then_sells_what_is_kept() {
    let (mut kept, mut peak) = (World::new(Promise::Kept, 80), World::new(Promise::Peak, 80));
    for renewal in 0..DAY {
        let (one, other) = (kept.renew(renewal, &[]), peak.renew(renewal, &[]));
        assert_eq!(one.quotas, other.quotas);
        assert!(one.controlled.is_empty() && one.demand[0].bound.bound == gpus(500), "{one:?}");
    }
    let first = kept.renew(DAY, &[]);
    assert_eq!((first.controlled[0].lambda, first.quotas[0].demand_bound), (0.7, gpus(440)));
    assert_eq!(peak.renew(DAY, &[]).quotas[0].demand_bound, gpus(500));
    assert_eq!(first.eta_decision, EtaDecision::Hold(HoldReason::BoundLearns));
    // Nothing breaks: more is sold, up to all that HP does not need now.
    let more = kept.half_a_day(DAY + 1, 0);
    assert!(more.quotas[0].demand_bound < gpus(440), "{more:?}");
    let all = kept.half_a_day(DAY + DAY / 2 + 1, 0);
    assert_eq!((all.quotas[0].demand_bound, all.quotas[0].quota), (gpus(300), gpus(700)));
}

#[test]
fn promises_that_break_raise_the_bound_past_that_of_the_peak() {
    let mut pool = World { hp_demand: None, ..World::new(Promise::Kept, 80) };
    (0..=DAY).for_each(|renewal| drop(pool.renew(renewal, &[])));
    let after = pool.half_a_day(DAY + 1, 5);
    assert!(after.controlled[0].lambda > 1.0 && after.quotas[0].demand_bound > gpus(500), "{after:?}");
    assert_eq!(pool.eta.eta, Eta::ONE);
}

#[test]
fn an_outcome_moves_it_once_however_often_it_is_looked_at() {
    let mut pool = World::new(Promise::Kept, 80);
    (0..=DAY).for_each(|renewal| drop(pool.renew(renewal, &[])));
    let period = Period { began: at(DAY), lasted_s: 600, gpus_milli: 64_000, broken: true };
    pool.ended.push(Ended { number: 1, at: at(DAY + 2), hours: HorizonHours::ONE, period });
    let moved = pool.renew(DAY + 2, &[]).controlled[0].lambda;
    assert!(moved > 0.7);
    for renewal in DAY + 3..DAY + 9 {
        assert_eq!(pool.renew(renewal, &[]).controlled[0].lambda, moved);
    }
}

#[test]
fn a_pool_whose_scheduler_tells_of_no_outcome_learns_from_its_usage() {
    let mut pool = World { hp_demand: None, ..World::new(Promise::Kept, 80) };
    (0..2 * DAY).for_each(|renewal| drop(pool.renew(renewal, &[])));
    let learned = pool.renew(2 * DAY, &[]);
    assert!(learned.moving.is_none() && learned.controlled[0].lambda < 0.7, "{learned:?}");
    assert!(learned.quotas[0].demand_bound >= gpus(300));
}

#[test]
fn demand_that_is_known_from_moment_to_moment_has_its_say_after_a_day_and_no_bound_is_below_it() {
    let mut pool = World::new(Promise::Peak, 80);
    let first = (0..DAY).map(|renewal| pool.renew(renewal, &[]));
    assert!(first.last().unwrap().moving.unwrap().mixed.iter().all(|one| one.share == 0.0));
    let later = (DAY..2 * DAY).map(|renewal| pool.renew(renewal, &[])).last().unwrap();
    assert_eq!((later.moving.unwrap().mixed[0].share, later.quotas[0].demand_bound), (1.0, gpus(300)));
    pool.hp_demand = Some(gpus(900));
    assert!(pool.renew(2 * DAY, &[]).quotas[0].demand_bound >= gpus(900));
}

#[test]
fn no_bound_is_below_the_demand_that_returns_where_a_day_off_ends() {
    for promise in [Promise::Peak, Promise::Kept] {
        let mut pool = World::new(promise, 80);
        let before = (0..3 * DAY).map(|renewal| pool.renew(renewal, &[])).last().unwrap();
        assert!(before.quotas[0].demand_bound < gpus(400), "{before:?}");
        pool.forecast = Some(vec![forecast(420, 420)]);
        assert_eq!(pool.renew(3 * DAY, &[]).quotas[0].demand_bound, gpus(420), "{promise:?}");
    }
}

#[test]
fn what_people_reserve_comes_on_top_and_is_never_learned_away() {
    let mut pool = World::new(Promise::Kept, 80);
    (0..=DAY).for_each(|renewal| drop(pool.renew(renewal, &[])));
    let (from, to) = (at(DAY), at(DAY + 100));
    let what = Override { pool: name(), kind: OverrideKind::Reserve, gpus: gpus(64), from, to };
    let reserved = pool.renew(DAY + 1, &[(OverrideId(1), what)]);
    assert_eq!((reserved.demand[0].before, reserved.quotas[0].demand_bound), (gpus(440), gpus(504)));
}

#[test]
fn what_was_served_is_looked_back_at_without_what_people_asked_for() {
    let mut pool = World::new(Promise::Kept, 80);
    let what = Override { pool: name(), kind: OverrideKind::Reserve, gpus: gpus(64), from: at(0), to: at(100) };
    for renewal in 0..=36 {
        // For one renewal, HP needs 40 GPUs more than the bound of 500.
        pool.hp_demand = Some(gpus(if renewal == 13 { 540 } else { 300 }));
        let _ = pool.renew(renewal, &[(OverrideId(1), what.clone())]);
    }
    let served = pool.learned.served(at(36))[0];
    // Of nine times whose hour is over, four had it before them, each with 500 GPUs to sell.
    assert_eq!((served.day.looks, served.day.covered), (9, 5));
    assert!((served.day.broken_share().unwrap() - 4.0 * 40.0 / (9.0 * 500.0)).abs() < 1e-12, "{served:?}");
}

#[test]
fn without_a_forecast_each_hours_have_a_quota_as_soon_as_they_are_known_by_themselves() {
    let hours = [1, 4, 72].map(|hours| HorizonHours::new(hours).unwrap());
    for has_jobs in [false, true] {
        let mut pool = World { forecast: None, ..World::new(Promise::Kept, 80) };
        pool.settings.offered_hours = hours.to_vec();
        pool.learned = Learned::new(pool.settings.guarantee_rate, &hours);
        pool.hp_jobs = has_jobs.then(Vec::new);
        let known = (0..DAY / 3).map(|renewal| pool.renew(renewal, &[]).quotas.len());
        let known: Vec<usize> = known.collect();
        let first = |least: usize| known.iter().position(|count| *count >= least);
        // Jobs: four windows of an hour, a quarter of an hour apart. Else: seven moves, H, and until the twelfth rise is measured.
        let expected = [1, 4].map(|hours| Some(if has_jobs { 21 } else { 7 + hours * 12 + 11 }));
        assert_eq!([first(1), first(2)], expected);
        assert!(known.is_sorted(), "{known:?}");
        // The served bounds of hours that are known are scored, of others none.
        let served = pool.learned.served(at(DAY / 3));
        assert!(served[0].day.looks > 0 && served[2].day.looks == 0, "{served:?}");
        assert_eq!(first(3), has_jobs.then_some(93), "three days are drawn from windows of four hours alone");
    }
}

/// Jobs of 50 GPUs of which each runs for six hours, and one comes each hour.
fn jobs_at(renewal: i64) -> Vec<HpJob> {
    let hour = renewal * RENEWAL_S / 3_600;
    let job = |number: i64| HpJob {
        task: TaskId::parse(&format!("job-{number}")).unwrap(),
        organization: Organization::parse("vision").unwrap(),
        gpus_milli: 50_000,
        submitted: UnixSeconds::new(number * 3_600),
        started: Some(UnixSeconds::new(number * 3_600)),
    };
    (hour - 5..=hour).map(job).collect()
}

#[test]
fn jobs_have_their_share_in_the_bound_once_arrivals_are_known_and_what_they_taught_survives_bytes() {
    let mut pool = World::new(Promise::Peak, 80);
    for renewal in 0..3 * DAY {
        pool.hp_jobs = Some(jobs_at(renewal));
        let decided = pool.renew(renewal, &[]);
        let shared = decided.moving.unwrap().shared;
        let (first, last) = (DAY / 4, 2 * DAY);
        assert!(shared.iter().all(|one| renewal > first || one.share == 0.0), "{shared:?}");
        assert!(renewal < last || shared[0].share > 0.0 && shared[0].jobs_gpus.is_some(), "{shared:?}");
    }
    let (risk, live) = (pool.learned.risk_bytes(), pool.learned.live_bytes());
    assert_eq!(Learned::from_bytes(&risk, &live).unwrap(), pool.learned);
    assert!(Learned::from_bytes(&risk, &live[..live.len() - 1]).is_err());
}

#[test]
fn bytes_from_before_jobs_were_learned_are_read_without_them() {
    let mut pool = World::new(Promise::Peak, 80);
    (0..DAY).for_each(|renewal| drop(pool.renew(renewal, &[])));
    let (risk, live) = (pool.learned.risk_bytes(), pool.learned.live_bytes());
    let length = (u64::from_le_bytes(*live.first_chunk().unwrap()) - (1 << 63)) as usize;
    let (first, rest) = live[8..].split_at(length);
    let watched = u64::from_le_bytes(*rest.first_chunk().unwrap()) as usize;
    let before = [&(length as u64).to_le_bytes()[..], first, &rest[8..8 + watched]].concat();
    assert_eq!(Learned::from_bytes(&risk, &before).unwrap(), pool.learned);
}
