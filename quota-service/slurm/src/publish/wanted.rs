//! Limits to publish, from quotas and jobs. Pure.
//!
//! A limit counts every job under it, also those whose promise is over, while the quota counts those inside: a limit is the
//! quota and what is held outside of promises, so that limit − held = what may still be admitted.

use super::held::{self, Counting};
use super::share::{Part, shares};
use crate::config::{Config, Nesting};
use crate::limits::{ALL_GPUS, ByName, Tres, tres_of};
use crate::view::View;
use connectors::Offers;
use placement::Limit;
use std::collections::BTreeSet;
use vocab::{GpuModel, HorizonHours, MilliGpus, UnixSeconds};

/// Limits as they should be.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Limits by name and resource.
    pub limits: ByName,
    /// Why they are less than the quota; empty where they are it.
    pub lowered_because: String,
    /// Whether there is an offer for any pool. Without one all of it is for want of an offer, and no decision.
    pub is_offered: bool,
}

/// Inputs of limits.
#[derive(Debug, Clone, Copy)]
pub struct Inputs<'a> {
    /// Settings.
    pub config: &'a Config,
    /// Which limit counts which job.
    pub counting: &'a Counting,
    /// Pools and spot jobs.
    pub view: &'a View,
    /// GPUs held, by limit.
    pub held: &'a ByName,
    /// Quotas at their age.
    pub offers: &'a Offers,
    /// Resources that the accounting tracks.
    pub tracked: &'a BTreeSet<String>,
    /// Now.
    pub now: UnixSeconds,
}

impl Inputs<'_> {
    /// The limits.
    #[must_use]
    pub fn wanted(&self) -> Wanted {
        let promised = self.config.limited().promised();
        let mut limits: ByName = promised.iter().map(|(_, name)| ((*name).to_owned(), Tres::new())).collect();
        for model in self.view.pools.keys() {
            let quotas = self.quotas(model, &promised);
            for ((hours, name), quota) in promised.iter().zip(quotas) {
                self.add(limits.entry((*name).to_owned()).or_default(), name, (model, *hours), quota);
            }
        }
        let is_offered = self.view.pools.keys().any(|model| self.offers.pools.contains_key(model));
        Wanted { limits, lowered_because: self.offers.why_conservative(self.view.pools.keys()), is_offered }
    }

    /// Adds the limit of one model. Jobs that name no type are under no typed limit: the sum bounds them.
    fn add(&self, limits: &mut Tres, name: &str, (model, hours): (&GpuModel, HorizonHours), quota: u64) {
        let gpu_type = self.view.types.get(model).and_then(Option::as_deref);
        let held = match gpu_type {
            Some(gpu_type) => held::of(self.held, name, &tres_of(gpu_type)),
            // The only count of GPUs without a type is that of all.
            None => held::of(self.held, name, ALL_GPUS),
        };
        let outside = held.saturating_sub(self.inside(name, model, hours));
        let capacity = self.view.pools.get(model).map_or(0, crate::view::PoolView::capacity_gpus);
        let mut limit = (quota + outside).min(capacity.max(held));
        if !self.config.drain {
            limit = limit.max(held);
        }
        if let Some(tres) = gpu_type.map(tres_of).filter(|tres| self.tracked.contains(tres)) {
            limits.insert(tres, limit);
        }
        if self.tracked.contains(ALL_GPUS) {
            *limits.entry(ALL_GPUS.to_owned()).or_default() += limit;
        }
    }

    /// Whole GPUs that jobs under each limit may hold inside promises. Accounts stand one inside the other, QOS side by side.
    fn quotas(&self, model: &GpuModel, promised: &[(HorizonHours, &str)]) -> Vec<u64> {
        let limits = self.offers.pools.get(model).map(|offer| offer.limits.as_slice()).unwrap_or_default();
        let quota = |hours: HorizonHours| offered(limits, hours).milli() / MilliGpus::PER_GPU;
        if self.config.nesting == Nesting::Accounts {
            return promised.iter().map(|(hours, _)| quota(*hours)).collect();
        }
        let waiting = |name: &str| {
            let of_pool = self.view.pools.get(model).and_then(|pool| pool.spot_waiting.get(name));
            of_pool.copied().unwrap_or(0)
        };
        let part = |(hours, name): &(HorizonHours, &str)| Part {
            quota: quota(*hours),
            inside: self.inside(name, model, *hours),
            waiting: waiting(name),
        };
        shares(&promised.iter().map(part).collect::<Vec<_>>())
    }

    /// GPUs of jobs under a limit, inside promises of its hours.
    fn inside(&self, name: &str, model: &GpuModel, hours: HorizonHours) -> u64 {
        let jobs = self.view.pools.get(model).map(|pool| pool.spot.as_slice()).unwrap_or_default();
        let inside = jobs.iter().filter(|job| {
            self.counting.counts(name, &job.qos, &job.account)
                && job.promised(self.now).is_some_and(|promised| promised >= hours)
        });
        inside.map(|job| u64::from(job.gpus)).sum()
    }
}

/// The quota of so many hours; where they are not offered, that of the next longer ones; else none.
fn offered(limits: &[Limit], hours: HorizonHours) -> MilliGpus {
    limits
        .iter()
        .filter(|limit| limit.hours >= hours)
        .min_by_key(|limit| limit.hours)
        .map_or(MilliGpus::ZERO, |limit| limit.quota)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::{PoolView, SpotJob};
    use connectors::Offer;
    use placement::Stage;
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
            started: UnixSeconds::new(NOW - age_s),
            hours: Some(hours(promise)),
            is_suspended: false,
        }
    }

    struct Case {
        config: Config,
        view: View,
        offers: Offers,
        held: ByName,
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
        let mut held: ByName = BTreeMap::new();
        for name in counting.names() {
            let gpus = jobs
                .iter()
                .filter(|job| counting.counts(name, &job.qos, &job.account))
                .map(|job| u64::from(job.gpus))
                .sum();
            held.insert(name.clone(), [(ALL_GPUS.to_owned(), gpus), ("gres/gpu:a100".to_owned(), gpus)].into());
        }
        let pool = PoolView { open_gpus: 1_000, spot: jobs, ..PoolView::default() };
        let view = View {
            pools: [(model.clone(), pool)].into(),
            types: [(model.clone(), Some("a100".into()))].into(),
            ..View::default()
        };
        Case { config, view, offers: Offers { pools: [(model, offer)].into(), asked_at: None }, held }
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
                offers: &self.offers,
                tracked: &tracked,
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
    fn a_limit_falls_below_what_is_held_unless_it_may_not() {
        let mut case = case(Nesting::Qos, vec![spot("spot1h", "spot", 12, 1, 60)], &[(1, 4)]);
        assert_eq!(case.limits(), [4, 0]);
        case.config.drain = false;
        assert_eq!(case.limits(), [12, 0]);
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
        let step =
            |at: i64| connectors::DemandStep { begins: hour.plus_s(3_600 * at), upper: MilliGpus::from_gpus(56) };
        offer.demand = (0..7).map(step).collect();
        let waiting = &mut case.view.pools.values_mut().next().unwrap().spot_waiting;
        waiting.insert("spot4h".into(), 3);
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
            offers: &case.offers,
            tracked: &tracked,
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
                let case = case(nesting, jobs.clone(), &[(1, q1), (4, q4)]);
                let free: Vec<i64> = case.limits().iter().zip(["spot1h", "spot4h"]).zip(["spot", "spot-4h"]).map(|((limit, qos), account)| {
                    let name = if nesting == Nesting::Qos { qos } else { account };
                    *limit as i64 - case.held[name][ALL_GPUS] as i64
                }).collect();
                let (free1, free4) = (q1 as i64 - s1, q4 as i64 - s4);
                match nesting {
                    // As many as the quota leaves.
                    Nesting::Accounts => prop_assert_eq!(free, vec![free1, free4]),
                    // Together what the quota of an hour leaves, and no more of four hours than theirs does.
                    Nesting::Qos => {
                        prop_assert_eq!(free[0] + free[1], free1);
                        prop_assert!(free[1] <= free4);
                    }
                }
            }
        }
    }
}
