//! The form of Kueue's `CapacityProvider`, as the definition in the cluster says it: it is alpha, and its fields have had other names.

use serde_json::Value;

/// Name of the definition.
pub const DEFINITION: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/capacityproviders.kueue.x-k8s.io";

/// Names that the list of flavors has had, the newest first. What stands in its entries is the same.
const FLAVORS: [&str; 2] = ["orchestratedFlavors", "managedFlavors"];

/// How a `CapacityProvider` is written here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Form {
    /// API version.
    pub version: String,
    /// Field of the spec that lists flavors.
    pub flavors: &'static str,
    /// Whether the capacity says when it was written.
    pub has_update_time: bool,
}

/// Reads it off the definition: the first served version that has what is needed.
///
/// # Errors
/// No version has; names what the first one lacks, or requires beyond what we know.
pub fn form(definition: &Value) -> Result<Form, String> {
    let mut first = None;
    for version in definition["spec"]["versions"].as_array().into_iter().flatten().filter(|one| one["served"] == true) {
        match form_of(version) {
            Ok(form) => return Ok(form),
            Err(why) => first = first.or(Some(why)),
        }
    }
    Err(first.unwrap_or_else(|| "the CapacityProvider of this Kueue is served in no version".to_owned()))
}

fn form_of(version: &Value) -> Result<Form, String> {
    let name = version["name"].as_str().unwrap_or_default();
    let says =
        |why: String| format!("the CapacityProvider of this Kueue ({name}) {why}: it is written for another version");
    let lacks = |field: &str| says(format!("has no {field}"));
    let schema = &version["schema"]["openAPIV3Schema"]["properties"];
    let (spec, status) = (&schema["spec"], &schema["status"]["properties"]);
    let fields = &spec["properties"];
    let has = |of: &Value, field: &str| of.get(field).is_some_and(Value::is_object);
    if !has(fields, "controllerName") {
        return Err(lacks("spec.controllerName"));
    }
    let flavors = FLAVORS.into_iter().find(|field| has(&fields[*field]["items"]["properties"], "name"));
    let flavors = flavors.ok_or_else(|| lacks("spec.orchestratedFlavors"))?;
    if !has(&version["subresources"], "status") {
        return Err(lacks("subresource status"));
    }
    let capacity = &status["capacity"];
    let entry = &capacity["properties"]["flavors"]["items"]["properties"];
    if let Some(field) = ["name", "resources"].into_iter().find(|field| !has(entry, field)) {
        return Err(lacks(&format!("status.capacity.flavors[].{field}")));
    }
    if !has(status, "conditions") {
        return Err(lacks("status.conditions"));
    }
    let known = ["controllerName", flavors, "flavors", "lastUpdateTime"];
    let required = [spec, capacity].into_iter().flat_map(|of| of["required"].as_array().into_iter().flatten());
    if let Some(field) = required.filter_map(Value::as_str).find(|field| !known.contains(field)) {
        return Err(says(format!("requires {field}")));
    }
    let has_update_time = has(&capacity["properties"], "lastUpdateTime");
    Ok(Form { version: name.to_owned(), flavors, has_update_time })
}

#[cfg(test)]
mod tests {
    use super::*;
    use fake_kubernetes::crds::dynamic_quota;
    use serde_json::json;

    fn definition(flavors: &str) -> Value {
        dynamic_quota(flavors).remove(0)
    }

    #[test]
    fn the_list_of_flavors_is_found_by_either_name() {
        for (name, has_update_time) in FLAVORS.into_iter().zip([false, true]) {
            let form = form(&definition(name)).unwrap();
            assert_eq!((form.flavors, form.version.as_str()), (name, "v1alpha1"));
            assert_eq!(form.has_update_time, has_update_time, "{name}");
        }
    }

    #[test]
    fn another_form_is_refused_by_the_name_of_the_field() {
        assert!(form(&definition("flavorRefs")).unwrap_err().contains("has no spec.orchestratedFlavors"));
        let without = |pointer: &str, field: &str| {
            let mut changed = definition("orchestratedFlavors");
            let at = changed["spec"]["versions"][0].pointer_mut(pointer).unwrap();
            at.as_object_mut().unwrap().remove(field).unwrap();
            form(&changed).unwrap_err()
        };
        let status = "/schema/openAPIV3Schema/properties/status/properties";
        assert!(without(status, "capacity").contains("has no status.capacity.flavors[].name"));
        assert!(without(status, "conditions").contains("has no status.conditions"));
        assert!(without("/subresources", "status").contains("has no subresource status"));
        let mut more = definition("orchestratedFlavors");
        more["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["required"] = json!(["tier"]);
        assert!(form(&more).unwrap_err().contains("requires tier"));
        more["spec"]["versions"][0]["served"] = false.into();
        assert!(form(&more).unwrap_err().contains("in no version"));
    }
}
