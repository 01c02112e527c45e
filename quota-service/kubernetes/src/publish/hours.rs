//! Hours of the settings that no quota of Headroom is of: by them 0 is published, and nothing can be promised.

use crate::config::Config;
use crate::headroom::{Offer, Offers};
use std::collections::BTreeSet;
use std::sync::Arc;
use tokio::sync::watch;
use tracing::{info, warn};
use vocab::{GpuModel, HorizonHours};

/// Pools that have quotas, and none of some hours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotOffered {
    /// The hours of the settings.
    pub hours: HorizonHours,
    /// Each of these pools with the hours that it has quotas of, in words.
    pub pools: String,
    /// Hours that every published pool has quotas of.
    pub instead: BTreeSet<HorizonHours>,
}

impl NotOffered {
    /// The change of settings that is needed, in words.
    #[must_use]
    pub fn fix(&self, setting: &str) -> String {
        let hours = self.hours.get();
        match in_words(&self.instead) {
            words if words.is_empty() => {
                format!(
                    "let all pools offer the same hours (offered_hours of their settings), and set {setting} to one of them"
                )
            }
            words => {
                format!("set {setting} to {words}, or add {hours} to offered_hours in the settings of these pools")
            }
        }
    }
}

/// Pools for which `quota_hours` publishes 0, since they have quotas of other hours alone. Pools without any quota are another fault.
#[must_use]
pub fn quota_not_offered(config: &Config, offers: &Offers) -> Option<NotOffered> {
    let bounds = |offer: &Offer| offer.bounds.iter().map(|bound| bound.hours).collect();
    config.publishes().then(|| not_offered(config, offers, config.quota_hours.0, bounds)).flatten()
}

/// Pools in which `default_guarantee_hours` cannot be promised, since they have quotas of other hours alone.
#[must_use]
pub fn default_not_offered(config: &Config, offers: &Offers) -> Option<NotOffered> {
    let limits = |offer: &Offer| offer.limits.iter().map(|limit| limit.hours).collect();
    not_offered(config, offers, config.default_guarantee_hours.0?, limits)
}

/// Consequence, for spot work that states no hours, of a `default_guarantee_hours` that a pool does not offer.
#[must_use]
pub const fn consequence_of_default(config: &Config) -> &'static str {
    if config.admission_check {
        "the check rejects, and Kueue deactivates, each spot Workload that states no hours"
    } else {
        "spot pods that state no hours are promised what no quota holds"
    }
}

/// Logs each change of the hours that pools have no quota of, until `stop` is set. Every mode needs it:
/// `default_guarantee_hours` promises also where nothing is published.
pub async fn log_changes(
    config: Arc<Config>,
    mut offers: watch::Receiver<Arc<Offers>>,
    mut stop: watch::Receiver<bool>,
) {
    let mut logged = Logged::default();
    loop {
        tokio::select! {
            _ = stop.wait_for(|stops| *stops) => return,
            changed = offers.changed() => if changed.is_err() { return },
        }
        let offers = offers.borrow_and_update().clone();
        logged.note(&config, &offers);
    }
}

/// Faults that were logged last.
#[derive(Debug, Default)]
struct Logged {
    quota: Option<NotOffered>,
    default: Option<NotOffered>,
}

impl Logged {
    fn note(&mut self, config: &Config, offers: &Offers) {
        self.note_quota(quota_not_offered(config, offers));
        self.note_default(config, default_not_offered(config, offers));
    }

    /// A 0 that is published looks like a pool that is full.
    fn note_quota(&mut self, now: Option<NotOffered>) {
        if self.quota == now {
            return;
        }
        if let Some(without) = &now {
            warn!(
                quota_hours = without.hours.get(),
                pools = without.pools,
                fix = without.fix("quota_hours"),
                "these pools have no quota of so many hours: 0 is published for them"
            );
        } else {
            info!("all published pools have a quota of quota_hours now");
        }
        self.quota = now;
    }

    /// Workloads that are deactivated by it look like those of users who stated wrong hours.
    fn note_default(&mut self, config: &Config, now: Option<NotOffered>) {
        if self.default == now {
            return;
        }
        if let Some(without) = &now {
            warn!(
                default_guarantee_hours = without.hours.get(),
                pools = without.pools,
                fix = without.fix("default_guarantee_hours"),
                "these pools offer no guarantee of so many hours: {}",
                consequence_of_default(config)
            );
        } else {
            info!("all pools offer default_guarantee_hours now; Workloads that were deactivated stay so");
        }
        self.default = now;
    }
}

fn not_offered(
    config: &Config,
    offers: &Offers,
    hours: HorizonHours,
    of: impl Fn(&Offer) -> BTreeSet<HorizonHours>,
) -> Option<NotOffered> {
    // A ResourceQuota holds pods of every model, Kueue those of its flavors.
    let in_flavors: BTreeSet<&GpuModel> = config.flavors.0.values().chain(config.at_will_flavors.0.values()).collect();
    let is_all = config.resource_quota || in_flavors.is_empty();
    let here = offers.pools.iter().filter(|(model, _)| is_all || in_flavors.contains(model));
    let all: Vec<(&GpuModel, BTreeSet<HorizonHours>)> = here.map(|(model, offer)| (model, of(offer))).collect();
    let without = all.iter().filter(|(_, offered)| !offered.contains(&hours));
    let pools: Vec<String> = without.map(|(model, offered)| format!("{model} ({})", has(offered))).collect();
    let common =
        |one: BTreeSet<HorizonHours>, other: &BTreeSet<HorizonHours>| one.intersection(other).copied().collect();
    let mut offered = all.iter().map(|(_, offered)| offered);
    let first = offered.next().cloned().unwrap_or_default();
    let instead = offered.fold(first, common);
    (!pools.is_empty()).then(|| NotOffered { hours, pools: pools.join(", "), instead })
}

fn has(offered: &BTreeSet<HorizonHours>) -> String {
    let hours: Vec<String> = offered.iter().map(|hours| format!("{} h", hours.get())).collect();
    if hours.is_empty() { "it has none of any hours".to_owned() } else { format!("it has {}", hours.join(", ")) }
}

/// `1, 2 or 4`.
fn in_words(hours: &BTreeSet<HorizonHours>) -> String {
    let words: Vec<String> = hours.iter().map(|hours| hours.get().to_string()).collect();
    match words.as_slice() {
        [] => String::new(),
        [only] => only.clone(),
        [shorter @ .., last] => format!("{} or {last}", shorter.join(", ")),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use placement::{Bound, Eta, Limit, Stage};
    use vocab::{MilliGpus, UnixSeconds};

    fn hours(hours: u64) -> HorizonHours {
        HorizonHours::new(hours).unwrap()
    }

    /// Offers of pools with quotas of these hours.
    pub(crate) fn offers(pools: &[(&str, &[u64])]) -> Offers {
        let quota = MilliGpus::from_gpus(8);
        let offer = |of: &[u64]| Offer {
            limits: of.iter().map(|of| Limit { hours: hours(*of), quota }).collect(),
            bounds: of.iter().map(|of| Bound { hours: hours(*of), bound: quota }).collect(),
            demand: Vec::new(),
            eta: Eta::ONE,
            capacity: quota,
            stage: Stage::Fresh,
            computed_at: UnixSeconds::new(0),
        };
        let pools = pools.iter().map(|(model, of)| (GpuModel::parse(model).unwrap(), offer(of)));
        Offers { pools: pools.collect(), asked_at: Some(UnixSeconds::new(0)) }
    }

    fn config(quota_hours: u64) -> Config {
        Config {
            quota_hours: quota_hours.try_into().unwrap(),
            resource_quota: true,
            resource_quota_shares: "team-a=1".parse().unwrap(),
            ..Config::default()
        }
    }

    #[test]
    fn quota_hours_that_a_published_pool_does_not_offer_are_named_with_those_that_all_offer() {
        let pools = offers(&[("A100", &[1, 2, 4]), ("H100", &[1, 3, 4])]);
        assert_eq!(quota_not_offered(&config(4), &pools), None);
        let found = quota_not_offered(&config(3), &pools).unwrap();
        assert_eq!(found.pools, "A100 (it has 1 h, 2 h, 4 h)");
        assert_eq!(
            found.fix("quota_hours"),
            "set quota_hours to 1 or 4, or add 3 to offered_hours in the settings of these pools"
        );
        let by_kueue = |flavors: &str| Config {
            resource_quota: false,
            kueue: crate::config::KueueMode::ClusterQueue,
            flavors: flavors.parse().unwrap(),
            ..config(3)
        };
        assert_eq!(quota_not_offered(&by_kueue("h=H100"), &pools), None, "A100 is not published");
        assert!(quota_not_offered(&by_kueue("h=H100,a=A100"), &pools).is_some());
        assert_eq!(quota_not_offered(&Config { resource_quota: false, ..config(3) }, &pools), None, "nothing is");
        assert_eq!(quota_not_offered(&config(3), &Offers::default()), None, "there is no quota yet");
        let apart = offers(&[("A100", &[1]), ("H100", &[2])]);
        let fix = quota_not_offered(&config(1), &apart).unwrap().fix("quota_hours");
        assert!(fix.starts_with("let all pools offer the same hours"), "{fix}");
    }

    /// Lines of the log.
    #[derive(Clone, Default)]
    struct Log(Arc<std::sync::Mutex<Vec<u8>>>);

    impl std::io::Write for Log {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn default_guarantee_hours_that_a_pool_does_not_offer_are_logged_once_for_each_change() {
        let log = Log::default();
        let writer = log.clone();
        let subscriber = tracing_subscriber::fmt().with_ansi(false).with_writer(move || writer.clone()).finish();
        let _guard = tracing::subscriber::set_default(subscriber);
        let lines = |text: &str| {
            let all = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
            all.lines().filter(|line| line.contains(text)).count()
        };
        // No mode publishes: the check alone promises.
        let default_guarantee_hours = 3_u64.try_into().unwrap();
        let config = Config { default_guarantee_hours, admission_check: true, ..Config::default() };
        let mut logged = Logged::default();
        for _ in 0..2 {
            logged.note(&config, &offers(&[("A100", &[1, 2, 4])]));
        }
        assert_eq!([lines("these pools offer no guarantee of so many hours"), lines("WARN")], [1, 1]);
        assert_eq!(lines("A100 (it has 1 h, 2 h, 4 h)"), 1);
        assert_eq!(lines("Kueue deactivates, each spot Workload that states no hours"), 1);
        logged.note(&config, &offers(&[("A100", &[1, 2])]));
        assert_eq!(lines("WARN"), 2, "other hours are offered");
        for _ in 0..2 {
            logged.note(&config, &offers(&[("A100", &[1, 3])]));
        }
        assert_eq!([lines("WARN"), lines("all pools offer default_guarantee_hours now")], [2, 1]);
    }

    #[test]
    fn default_guarantee_hours_that_a_pool_does_not_offer_are_named() {
        let pools = offers(&[("A100", &[1, 2, 4])]);
        let of = |default: u64| {
            let config = Config { default_guarantee_hours: default.try_into().unwrap(), ..Config::default() };
            default_not_offered(&config, &pools).map(|found| found.fix("default_guarantee_hours"))
        };
        assert_eq!((of(0), of(2)), (None, None));
        let fix = of(3).unwrap();
        assert!(fix.starts_with("set default_guarantee_hours to 1, 2 or 4, or add 3 to"), "{fix}");
    }
}
