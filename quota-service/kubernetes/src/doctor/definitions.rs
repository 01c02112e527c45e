//! Whether Kueue is there in the versions, and with the fields, that are written. Only of the alpha is the schema read.

use super::Check;
use super::api::Api;
use crate::config::{Config, KueueMode};
use crate::publish::provider::{Form, form};
use serde_json::Value;

const VERSION: &str = "v1beta2";

/// A definition: there, not there, or not to be read.
type Found = Result<Option<Value>, String>;

/// Versions in which something is served. Every identity that is known may ask for that; definitions take a permission.
type Versions = Result<Vec<String>, String>;

/// Definitions that the modes need.
pub struct Definitions {
    provider: Found,
    orchestrator: Found,
    /// Plural of what else the modes use, and the versions that serve it.
    others: Vec<(&'static str, Versions)>,
}

impl Definitions {
    /// `None` where it is not known.
    pub fn has_provider(&self) -> Option<bool> {
        self.provider.as_ref().ok().map(Option::is_some)
    }

    /// How a `CapacityProvider` is written here, where there is one that is known.
    pub fn form(&self) -> Option<Form> {
        form(self.provider.as_ref().ok()?.as_ref()?).ok()
    }
}

/// The plurals, in group `kueue.x-k8s.io`, that the modes use in version `v1beta2`.
fn used(config: &Config) -> Vec<&'static str> {
    let mut used = Vec::new();
    if config.kueue.is_on() {
        used.extend(["clusterqueues", "resourceflavors"]);
    }
    if config.admission_check || config.priority_boost {
        used.push("workloads");
    }
    if config.admission_check {
        used.push("admissionchecks");
    }
    used
}

/// Whether any mode concerns Kueue.
pub fn concerns(config: &Config) -> bool {
    !used(config).is_empty()
}

/// Reads the definitions that the modes need.
pub async fn read(api: &Api, config: &Config) -> Definitions {
    let of = async |plural: &str| {
        let path = format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{plural}.kueue.x-k8s.io");
        api.find(&path).await
    };
    let asks_for_provider = matches!(config.kueue, KueueMode::CapacityProvider | KueueMode::Auto);
    let (provider, orchestrator) = if asks_for_provider {
        (of("capacityproviders").await, of("dynamicquotaorchestrators").await)
    } else {
        (Ok(None), Ok(None))
    };
    let others = used(config);
    let others = if others.is_empty() { Vec::new() } else { served_by_version(api, &others).await };
    Definitions { provider, orchestrator, others }
}

/// Asks the API what it serves of Kueue.
async fn served_by_version(api: &Api, plurals: &[&'static str]) -> Vec<(&'static str, Versions)> {
    let same = |versions: &Versions| plurals.iter().map(|plural| (*plural, versions.clone())).collect();
    let group = match api.find("/apis/kueue.x-k8s.io").await {
        Ok(Some(group)) => group,
        Ok(None) => return same(&Ok(Vec::new())),
        Err(why) => return same(&Err(why)),
    };
    let mut found: Vec<(&str, Vec<String>)> = plurals.iter().map(|plural| (*plural, Vec::new())).collect();
    for version in group["versions"].as_array().into_iter().flatten().filter_map(|one| one["version"].as_str()) {
        let list = match api.find(&format!("/apis/kueue.x-k8s.io/{version}")).await {
            Ok(list) => list.unwrap_or_default(),
            Err(why) => return same(&Err(why)),
        };
        let resources = list["resources"].as_array().cloned().unwrap_or_default();
        let has = |plural: &str| resources.iter().any(|one| one["name"] == plural);
        found.iter_mut().filter(|(plural, _)| has(plural)).for_each(|(_, versions)| versions.push(version.to_owned()));
    }
    found.into_iter().map(|(plural, versions)| (plural, Ok(versions))).collect()
}

/// One line for each definition that a mode needs.
pub fn checks(config: &Config, definitions: &Definitions) -> Vec<Check> {
    let mode = config.kueue;
    let mut checks = Vec::new();
    if matches!(mode, KueueMode::CapacityProvider | KueueMode::Auto) {
        checks.push(provider(mode, &definitions.provider));
        if matches!(&definitions.provider, Ok(Some(_))) && matches!(&definitions.orchestrator, Ok(None)) {
            let fix = "install the definitions of Kueue's dynamic quota wholly: without it no orchestrator distributes the capacity";
            checks.push(Check::fail("definition dynamicquotaorchestrators", "there is none", fix));
        }
    }
    checks.extend(definitions.others.iter().map(|(plural, found)| other(plural, found)));
    checks
}

fn other(plural: &str, versions: &Versions) -> Check {
    let name = format!("definition {plural}");
    match versions {
        Err(why) => {
            Check::fail(name, format!("what is served cannot be read: {why}"), "let this identity use discovery")
        }
        Ok(versions) if versions.is_empty() => {
            Check::fail(name, "there is none: Kueue is not installed", "install Kueue 0.20 or newer")
        }
        Ok(versions) if versions.iter().any(|version| version == VERSION) => {
            Check::ok(name, format!("served as {}", versions.join(", ")))
        }
        Ok(versions) => {
            let found = format!("served as {} alone, and {VERSION} is needed", versions.join(", "));
            Check::fail(name, found, "upgrade Kueue to 0.20 or newer, which serves v1beta2")
        }
    }
}

fn provider(mode: KueueMode, found: &Found) -> Check {
    let name = "definition capacityproviders";
    let install = "install Kueue with the gate DynamicQuotaOrchestration, or set kueue = \"cluster-queue\"";
    let definition = match found {
        Err(why) => {
            return Check::fail(
                name,
                format!("it cannot be read: {why}"),
                "let this identity get customresourcedefinitions",
            );
        }
        Ok(None) if mode == KueueMode::Auto => {
            return Check::ok(name, "there is none: the ClusterQueue carries the quota");
        }
        Ok(None) => return Check::fail(name, "there is none", install),
        Ok(Some(definition)) => definition,
    };
    match form(definition) {
        Ok(form) => Check::ok(name, format!("{}, flavors in spec.{}", form.version, form.flavors)),
        Err(why) => Check::fail(name, why, "install a newer headroom-kubernetes, or set kueue = \"cluster-queue\""),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Status;
    use super::*;
    use fake_kubernetes::crds;

    fn definition(flavors: &str) -> Value {
        crds::dynamic_quota(flavors).remove(0)
    }

    #[test]
    fn a_form_that_is_not_known_is_named_by_the_field_that_is_missing() {
        let check = |found| provider(KueueMode::CapacityProvider, &Ok(Some(found)));
        assert_eq!(check(definition("managedFlavors")).status, Status::Ok);
        let other = check(definition("flavorRefs"));
        assert_eq!(other.status, Status::Fail);
        assert!(other.found.contains("has no spec.orchestratedFlavors"), "{}", other.found);
        let mut without = definition("orchestratedFlavors");
        without["spec"]["versions"][0]["subresources"] = Value::Null;
        assert!(check(without).found.contains("subresource status"));
    }

    #[test]
    fn only_an_old_version_fails_with_what_to_do() {
        let check = other("clusterqueues", &Ok(vec!["v1beta1".to_owned()]));
        assert_eq!(check.status, Status::Fail);
        assert!(check.found.contains("v1beta1 alone") && check.fix.unwrap().contains("upgrade Kueue"));
    }
}
