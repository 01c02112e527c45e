//! Headroom: whether it answers, knows this cluster, and has quotas for it.

use super::Check;
use super::gpus::Gpus;
use crate::config::Config;
use crate::headroom::Offers;
use crate::publish::hours;
use connectors::clock;
use connectors::doctor::{Asker, headroom};
use std::collections::BTreeSet;
use wire::PoolList;

/// Pools and quotas that Headroom has for this cluster; `here` are the GPUs by the Kubernetes API.
pub async fn of(config: &Config, here: Option<&Gpus>) -> Vec<Check> {
    let asker = Asker {
        program: "headroom-kubernetes",
        cluster: config.cluster.get(),
        url: &config.headroom_url,
        model_setting: "gpu_model_label",
        reports_nodes: config.reporting,
        lease: None,
    };
    let (mut checks, list) = headroom(asker, crate::headroom::client(config), here).await;
    checks.extend(list.iter().flat_map(|list| flavors(config, list)));
    if let (Some(list), Some(cluster)) = (&list, config.cluster.get()) {
        checks.extend(hours(config, &Offers::of(list, cluster.as_str(), clock::now())));
    }
    checks
}

/// Hours of the settings that the pools have no quota of, by what the running connector reads.
fn hours(config: &Config, offers: &Offers) -> Vec<Check> {
    let published = hours::quota_not_offered(config, offers).map(|without| {
        let found = format!("there is no quota of {} h for {}: 0 is published", without.hours.get(), without.pools);
        Check::fail("quota_hours", found, without.fix("quota_hours"))
    });
    let promised = hours::default_not_offered(config, offers).map(|without| {
        let then = hours::consequence_of_default(config);
        let found = format!("there is no quota of {} h for {}: {then}", without.hours.get(), without.pools);
        let fix = format!("{}; 0 promises nothing to pods that state none", without.fix("default_guarantee_hours"));
        Check::fail("default_guarantee_hours", found, fix)
    });
    published.into_iter().chain(promised).collect()
}

/// Flavors of GPU models that no pool of the cluster has.
fn flavors(config: &Config, list: &PoolList) -> Vec<Check> {
    let cluster = config.cluster.get().map(vocab::ClusterName::as_str);
    let known = list.pools.iter().filter(|pool| Some(pool.cluster.as_str()) == cluster);
    let models: BTreeSet<&str> = known.map(|pool| pool.gpu_model.as_str()).collect();
    // Without any pool there is a check that fails already.
    let strange = config.flavors.0.iter().filter(|(_, model)| !models.is_empty() && !models.contains(model.as_str()));
    let check = |flavor: &String, model: &vocab::GpuModel| {
        let found = format!("Headroom has no pool of its GPU model {model}: its quota stays 0");
        Check::fail(format!("flavor {flavor}"), found, "correct flavors: FLAVOR=GPU_MODEL")
    };
    strange.map(|(flavor, model)| check(flavor, model)).collect()
}

#[cfg(test)]
mod tests {
    use super::super::Status;
    use super::*;
    use crate::publish::hours::tests::offers;

    #[test]
    fn hours_that_no_pool_offers_fail_with_what_to_set() {
        let pools = offers(&[("A100", &[1, 2, 4])]);
        let set = |quota: u64, default: u64, admission_check: bool| {
            let config = Config {
                quota_hours: quota.try_into().unwrap(),
                default_guarantee_hours: default.try_into().unwrap(),
                resource_quota: true,
                resource_quota_shares: "team-a=1".parse().unwrap(),
                admission_check,
                ..Config::default()
            };
            hours(&config, &pools)
        };
        assert_eq!(set(4, 2, true).len(), 0);
        let [published, promised] = set(3, 5, true).try_into().unwrap();
        assert_eq!([published.status, promised.status], [Status::Fail; 2]);
        assert_eq!(published.found, "there is no quota of 3 h for A100 (it has 1 h, 2 h, 4 h): 0 is published");
        assert!(published.fix.unwrap().starts_with("set quota_hours to 1, 2 or 4"));
        assert!(promised.found.contains("Kueue deactivates, each spot Workload that states no hours"));
        assert!(promised.fix.unwrap().starts_with("set default_guarantee_hours to 1, 2 or 4"));
        assert!(set(1, 5, false)[0].found.contains("promised what no quota holds"));
    }
}
