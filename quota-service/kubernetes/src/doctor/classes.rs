//! Priority classes: spot pods have to lose against all others.

use super::Check;
use super::api::Api;
use crate::config::Config;
use serde_json::Value;

const PATH: &str = "/apis/scheduling.k8s.io/v1/priorityclasses";

/// One line for each priority class of spot pods.
pub async fn of(api: &Api, config: &Config) -> Vec<Check> {
    let classes = match api.list(PATH).await {
        Ok(classes) => classes,
        Err(why) => {
            let fix = "let this identity list priorityclasses";
            return vec![Check::fail("priority classes", format!("they cannot be read: {why}"), fix)];
        }
    };
    config.spot_classes().iter().map(|name| class(name, &classes, config)).collect()
}

fn name_of(class: &Value) -> &str {
    class["metadata"]["name"].as_str().unwrap_or_default()
}

fn class(name: &str, classes: &[Value], config: &Config) -> Check {
    let label = format!("priority class {name}");
    let Some(class) = classes.iter().find(|class| name_of(class) == name) else {
        let fix = format!("create a PriorityClass {name} with a value below all others, or set spot_priority_classes");
        return Check::fail(label, "it does not exist: no spot pod can be created", fix);
    };
    let value = class["value"].as_i64().unwrap_or(0);
    if class["globalDefault"] == true {
        let fix = "remove globalDefault: pods that name no class would be spot";
        return Check::fail(label, "it is the default of the cluster", fix);
    }
    let spot = config.spot_classes();
    let hp = classes.iter().filter(|one| !spot.contains(name_of(one)));
    // Pods that name no class have that of the default, or 0 where there is none.
    let unnamed = classes.iter().find(|one| one["globalDefault"] == true).and_then(|one| one["value"].as_i64());
    let others = hp.map(|one| (one["value"].as_i64().unwrap_or(0), name_of(one)));
    let lowest = others.chain([(unnamed.unwrap_or(0), "pods without a class")]).min().unwrap_or((0, ""));
    if value >= lowest.0 {
        let found = format!("its value {value} is not below {} ({})", lowest.0, lowest.1);
        return Check::fail(label, found, "give it a value below all others: priorities decide who is preempted");
    }
    let policy = class["preemptionPolicy"].as_str().unwrap_or("PreemptLowerPriority");
    let found = format!("value {value}, below all others; preemptionPolicy {policy}");
    let is_lowest = classes.iter().all(|one| one["value"].as_i64().unwrap_or(0) >= value);
    if policy == "Never" || is_lowest {
        return Check::ok(label, found);
    }
    Check::warn(label, found, "set preemptionPolicy: Never: its pods may evict those of lower spot classes")
}

#[cfg(test)]
mod tests {
    use super::super::Status;
    use super::*;
    use serde_json::json;

    fn made(name: &str, value: i64, more: &Value) -> Value {
        let mut class = json!({ "metadata": { "name": name }, "value": value });
        for (field, value) in more.as_object().into_iter().flatten() {
            class[field.as_str()] = value.clone();
        }
        class
    }

    #[test]
    fn a_spot_class_is_below_all_others_and_evicts_no_pod() {
        let config = Config { spot_priority_classes: "spot,batch".parse().unwrap(), ..Config::default() };
        let hp = || made("guaranteed", 1_000, &json!({}));
        let check = |spot: Value| class("spot", &[spot, hp(), made("batch", -20, &json!({}))], &config);
        assert_eq!(check(made("spot", -10, &json!({ "preemptionPolicy": "Never" }))).status, Status::Ok);
        assert_eq!(check(made("spot", -10, &json!({}))).status, Status::Warn, "it may evict batch");
        assert_eq!(check(made("spot", -30, &json!({}))).status, Status::Ok, "no class is below");
        let too_high = check(made("spot", 0, &json!({ "preemptionPolicy": "Never" })));
        assert!(too_high.found.contains("not below 0 (pods without a class)"), "{}", too_high.found);
        assert_eq!(check(made("spot", -10, &json!({ "globalDefault": true }))).status, Status::Fail);
        assert_eq!(class("spot", &[hp()], &config).status, Status::Fail);
    }
}
