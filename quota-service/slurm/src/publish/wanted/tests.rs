//! Limits that follow from quotas, jobs and settings.

use super::*;
use crate::view::{Hold, PoolView, SpotJob, SpotWaiting};
use connectors::Offer;
use proptest::prelude::*;
use slurm_records::JobName;
use std::collections::BTreeMap;

const NOW: i64 = 1_795_600_000;

fn hours(hours: u64) -> HorizonHours {
    HorizonHours::new(hours).unwrap()
}

fn spot(qos: &str, account: &str, gpus: u32, promise: u64, age_s: i64) -> SpotJob {
    SpotJob {
        name: JobName::Job(1),
        account: account.into(),
        qos: qos.into(),
        gpus,
        eligible: UnixSeconds::new(NOW - age_s),
        started: UnixSeconds::new(NOW - age_s),
        hours: Some(hours(promise)),
        is_suspended: false,
    }
}

/// Tasks of an array, of a GPU each.
fn waits(qos: &str, gpus: u32) -> SpotWaiting {
    let (name, since) = (JobName::Tasks(9), UnixSeconds::new(NOW - 60));
    SpotWaiting { name, qos: qos.into(), task: 1, gpus, since, hold: Hold::Limit }
}

struct Case {
    config: Config,
    view: View,
    offers: Offers,
    held: ByName,
    outside: ByName,
    stands: ByName,
}

fn case(nesting: Nesting, jobs: Vec<SpotJob>, quotas: &[(u64, u64)]) -> Case {
    let model = GpuModel::parse("a100").unwrap();
    let config = Config {
        nesting,
        spot_qos: "spot1h=1,spot4h=4".parse().unwrap(),
        spot_accounts: "spot=1,spot-4h=4".parse().unwrap(),
        ..Config::default()
    };
    let limit = |(of, gpus): &(u64, u64)| Limit { hours: hours(*of), quota: MilliGpus::from_gpus(*gpus as u32) };
    let offer = Offer {
        limits: quotas.iter().map(limit).collect(),
        bounds: Vec::new(),
        demand: Vec::new(),
        eta: placement::Eta::ONE,
        capacity: MilliGpus::from_gpus(64),
        stage: Stage::Fresh,
        computed_at: UnixSeconds::new(NOW),
    };
    let parents = parents();
    let counting = Counting::new(&config, parents);
    let limited = config.limited();
    let sums = |is_part: &dyn Fn(&SpotJob, HorizonHours) -> bool| -> ByName {
        let sum = |(hours, name): (HorizonHours, &str)| {
            let counted = jobs.iter().filter(|job| counting.counts(name, &job.qos, &job.account));
            let gpus = counted.filter(|job| is_part(job, hours)).map(|job| u64::from(job.gpus)).sum();
            (name.to_owned(), tres(gpus))
        };
        limited.promised().into_iter().map(sum).collect()
    };
    let is_outside = |job: &SpotJob, hours| job.promised(UnixSeconds::new(NOW)).is_none_or(|of| of < hours);
    let (held, outside) = (sums(&|_, _| true), sums(&is_outside));
    let pool = PoolView { open_gpus: 1_000, spot: jobs, ..PoolView::default() };
    let view = View {
        pools: [(model.clone(), pool)].into(),
        types: [(model.clone(), Some("a100".into()))].into(),
        ..View::default()
    };
    Case {
        config,
        view,
        offers: Offers { pools: [(model, offer)].into(), asked_at: None },
        held,
        outside,
        stands: ByName::new(),
    }
}

fn tres(gpus: u64) -> Tres {
    ["gres/gpu", "gres/gpu:a100"].map(|tres| (tres.to_owned(), gpus)).into()
}

fn parents() -> BTreeMap<String, String> {
    [("spot", "root"), ("spot-4h", "spot")].map(|(name, parent)| (name.to_owned(), parent.to_owned())).into()
}

impl Case {
    fn inputs<T>(&self, ask: impl FnOnce(&Inputs<'_>) -> T) -> T {
        let counting = Counting::new(&self.config, parents());
        let tracked = ["gres/gpu", "gres/gpu:a100"].map(str::to_owned).into();
        ask(&Inputs {
            config: &self.config,
            counting: &counting,
            view: &self.view,
            held: &self.held,
            outside: &self.outside,
            offers: &self.offers,
            tracked: &tracked,
            stands: &self.stands,
            turns: &Turns::default(),
            now: UnixSeconds::new(NOW),
        })
    }

    fn limits(&self) -> Vec<u64> {
        self.inputs(|inputs| {
            let wanted = inputs.wanted();
            inputs.counting.names().iter().map(|name| wanted.limits[name]["gres/gpu:a100"]).collect()
        })
    }
}

#[test]
fn qos_share_the_quota_and_accounts_stand_one_inside_the_other() {
    let quotas = [(1, 20), (4, 8)];
    assert_eq!(case(Nesting::Qos, vec![], &quotas).limits(), [12, 8]);
    assert_eq!(case(Nesting::Accounts, vec![], &quotas).limits(), [20, 8]);
    assert_eq!(
        case(Nesting::Qos, vec![], &[(2, 9)]).limits(),
        [9, 0],
        "an hour is no more than two, and four are not offered"
    );
    assert_eq!(case(Nesting::Qos, vec![], &[]).limits(), [0, 0]);
}

#[test]
fn jobs_past_their_hours_add_to_the_limit_that_counts_them() {
    let jobs = vec![
        spot("spot1h", "spot", 5, 1, 7_200),
        spot("spot1h", "spot", 3, 1, 60),
        spot("spot4h", "spot-4h", 2, 4, 20_000),
    ];
    assert_eq!(case(Nesting::Qos, jobs.clone(), &[(1, 20), (4, 8)]).limits(), [12 + 5, 8 + 2]);
    assert_eq!(case(Nesting::Accounts, jobs, &[(1, 20), (4, 8)]).limits(), [20 + 5 + 2, 8 + 2]);
}

#[test]
fn counts_of_slurm_beyond_its_list_of_jobs_raise_no_limit() {
    let quotas = [(1, 12), (4, 12)];
    for nesting in [Nesting::Qos, Nesting::Accounts] {
        let jobs = vec![spot("spot1h", "spot", 6, 1, 60), spot("spot4h", "spot-4h", 6, 4, 60)];
        let mut case = case(nesting, jobs, &quotas);
        let limits = case.limits();
        // Jobs that began or ended between the two reads.
        for held in case.held.values_mut() {
            *held = tres(7);
        }
        assert_eq!(case.limits(), limits);
        case.held.clear();
        assert_eq!(case.limits(), limits);
    }
}

#[test]
fn a_limit_falls_below_what_is_held_unless_it_may_not() {
    let mut case = case(Nesting::Qos, vec![spot("spot1h", "spot", 12, 1, 60)], &[(1, 4)]);
    assert_eq!(case.limits(), [4, 0]);
    let sum = |case: &Case| case.inputs(|inputs| inputs.wanted().limits["spot1h"][ALL_GPUS]);
    assert_eq!(
        sum(&case),
        12,
        "the type is bounded by its own limit, and others do not wait for what it holds too much"
    );
    case.view.types.values_mut().for_each(|gpu_type| *gpu_type = None);
    assert_eq!(sum(&case), 4, "GPUs without a type are bounded by the sum alone");
    case.view.types.values_mut().for_each(|gpu_type| *gpu_type = Some("a100".into()));
    case.config.drain = false;
    assert_eq!(case.limits(), [12, 0]);
}

#[test]
fn a_quota_that_is_no_longer_fresh_raises_no_limit_and_lowers_them() {
    for nesting in [Nesting::Qos, Nesting::Accounts] {
        let mut case = case(nesting, vec![], &[(1, 20), (4, 8)]);
        let whole = case.limits();
        let names = if nesting == Nesting::Qos { ["spot1h", "spot4h"] } else { ["spot", "spot-4h"] };
        case.stands = [(names[0].to_owned(), tres(5)), (names[1].to_owned(), tres(30))].into();
        assert_eq!(case.limits(), whole);
        for stage in [Stage::Stale, Stage::Conservative] {
            case.offers.pools.values_mut().next().unwrap().stage = stage;
            assert_eq!(case.limits(), [5, whole[1]], "{stage:?}");
            let all: Vec<u64> =
                case.inputs(|inputs| inputs.wanted().limits.values().map(|limits| limits[ALL_GPUS]).collect());
            assert_eq!(all, [5, whole[1]], "{stage:?}");
        }
    }
    let mut case = case(Nesting::Qos, vec![spot("spot1h", "spot", 12, 1, 60)], &[(1, 20)]);
    case.config.drain = false;
    case.offers.pools.values_mut().next().unwrap().stage = Stage::Stale;
    case.stands = [("spot1h".to_owned(), tres(5))].into();
    assert_eq!(case.limits()[0], 12, "no limit falls below what is held");
}

#[test]
fn while_a_quota_is_no_longer_fresh_jobs_that_wait_move_nothing_from_one_limit_to_another() {
    let mut case = case(Nesting::Qos, vec![spot("spot1h", "spot", 2, 1, 60)], &[(1, 20), (4, 20)]);
    case.stands = [("spot1h".to_owned(), tres(11)), ("spot4h".to_owned(), tres(9))].into();
    case.view.pools.values_mut().next().unwrap().spot_queue.push(waits("spot4h", 16));
    assert_eq!(case.limits(), [3, 17], "fresh: the queue decides");
    case.offers.pools.values_mut().next().unwrap().stage = Stage::Stale;
    assert_eq!(case.limits(), [11, 9], "the last ones stand");
    // GPUs that jobs past their hours held are given to nobody once they are free.
    case.stands = [("spot1h".to_owned(), tres(15)), ("spot4h".to_owned(), tres(9))].into();
    let limits = case.limits();
    assert!(limits.iter().sum::<u64>() <= 20 && limits[0] <= 15 && limits[1] <= 9, "{limits:?}");
}

#[test]
fn limits_without_an_offer_say_so() {
    let mut case = case(Nesting::Qos, vec![], &[(1, 20), (4, 8)]);
    assert_eq!(case.inputs(|inputs| inputs.wanted().lowered_because), "");
    case.offers.pools.clear();
    let because = case.inputs(|inputs| inputs.wanted().lowered_because);
    assert_eq!(because, "Headroom does not renew: no quota of a100 is offered, or none that can be read");
    assert_eq!(case.limits(), [0, 0]);
}

#[test]
fn gpus_are_expected_once_promises_have_ended_and_jobs_ahead_have_theirs() {
    let mut case = case(Nesting::Qos, vec![spot("spot1h", "spot", 8, 1, 1_800)], &[(1, 8), (4, 4)]);
    let hour = UnixSeconds::new(NOW - NOW % 3_600);
    let offer = case.offers.pools.values_mut().next().unwrap();
    let step = |at: i64| connectors::DemandStep { begins: hour.plus_s(3_600 * at), upper: MilliGpus::from_gpus(56) };
    offer.demand = (0..7).map(step).collect();
    case.view.pools.values_mut().next().unwrap().spot_queue.push(waits("spot4h", 3));
    // Of 64 GPUs 56 are HP's. The promise ends within the next hour, and 3 GPUs are waited for.
    let text = |one: &super::super::Expected| {
        format!("{} {} {} {}", one.name, one.tres, one.at.since_s(hour) / 3_600, one.gpus)
    };
    let found: Vec<String> = case.inputs(|inputs| inputs.expected().iter().map(text).collect());
    assert_eq!(
        found,
        ["spot1h gres/gpu:a100 2 5", "spot1h gres/gpu 2 5", "spot4h gres/gpu:a100 2 5", "spot4h gres/gpu 2 5"]
    );
    case.offers.pools.values_mut().next().unwrap().stage = Stage::Conservative;
    assert!(case.inputs(|inputs| inputs.expected().is_empty()), "old forecasts say nothing");
}

#[test]
fn untyped_jobs_are_under_the_limit_of_all_gpus() {
    let case = case(Nesting::Qos, vec![], &[(1, 20), (4, 8)]);
    let counting = Counting::new(&case.config, BTreeMap::new());
    let tracked = [ALL_GPUS.to_owned()].into();
    let inputs = Inputs {
        config: &case.config,
        counting: &counting,
        view: &case.view,
        held: &case.held,
        outside: &case.outside,
        offers: &case.offers,
        tracked: &tracked,
        stands: &case.stands,
        turns: &Turns::default(),
        now: UnixSeconds::new(NOW),
    };
    assert_eq!(inputs.wanted().limits["spot1h"], [(ALL_GPUS.to_owned(), 12)].into());
}

proptest! {
    #![proptest_config(ProptestConfig { rng_seed: proptest::test_runner::RngSeed::Fixed(29), ..ProptestConfig::default() })]

    /// `placement` admits while S_h stays within Q_h for each h; a limit admits while held stays within it.
    #[test]
    fn limits_leave_as_much_as_the_quota_leaves(
        jobs in prop::collection::vec((any::<bool>(), 1u32..6, 0i64..30_000), 0..12), q1 in 0u64..40, less in 0u64..40,
        counted in prop::collection::vec(0u64..40, 2),
    ) {
        let q4 = q1.saturating_sub(less);
        let jobs: Vec<SpotJob> = jobs.into_iter().map(|(is_long, gpus, age)| {
            if is_long { spot("spot4h", "spot-4h", gpus, 4, age) } else { spot("spot1h", "spot", gpus, 1, age) }
        }).collect();
        let inside = |least: u64| -> i64 {
            let promised = |job: &&SpotJob| job.promised(UnixSeconds::new(NOW)).is_some_and(|of| of >= hours(least));
            jobs.iter().filter(promised).map(|job| i64::from(job.gpus)).sum()
        };
        let (s1, s4) = (inside(1), inside(4));
        for nesting in [Nesting::Qos, Nesting::Accounts] {
            let mut case = case(nesting, jobs.clone(), &[(1, q1), (4, q4)]);
            // Slurm's own count of a moment later, with other jobs: the list of jobs alone decides.
            let held = std::mem::take(&mut case.held);
            case.held = held.keys().cloned().zip(counted.iter().map(|gpus| tres(*gpus))).collect();
            let free: Vec<i64> = case.limits().iter().zip(["spot1h", "spot4h"]).zip(["spot", "spot-4h"]).map(|((limit, qos), account)| {
                let name = if nesting == Nesting::Qos { qos } else { account };
                *limit as i64 - held[name][ALL_GPUS] as i64
            }).collect();
            let (free1, free4) = (q1 as i64 - s1, q4 as i64 - s4);
            match nesting {
                // As many as the quota leaves.
                Nesting::Accounts => prop_assert_eq!(free, vec![free1, free4]),
                // Together what the quota of an hour leaves, and no more of four hours than theirs does. Where a quota has fallen
                // none begins before as much has ended.
                Nesting::Qos => {
                    prop_assert_eq!(free.iter().map(|free| (*free).max(0)).sum::<i64>(), free1.max(0));
                    prop_assert!(free[0] <= free1.max(0) && free[1] <= free4.max(0), "{:?}", free);
                }
            }
        }
    }
}
