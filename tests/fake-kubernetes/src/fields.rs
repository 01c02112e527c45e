//! Sets of fields, as `managedFields` hold them: paths of leaves. A list is one leaf, unless its entries have keys.

use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// Steps to a leaf: `f:name` into an object, `k:{…}` to the entry of a list with these keys, `.` for the entry itself.
pub type Path = Vec<String>;

/// Fields without an owner.
const NOBODYS: [&str; 12] = [
    "name",
    "namespace",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "managedFields",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "selfLink",
    "generateName",
    "ownerReferences",
];

/// Lists of what is built in whose entries have keys: the name of the field and the keys.
const KEYED: [(&str, &[&str]); 8] = [
    ("conditions", &["type"]),
    ("containers", &["name"]),
    ("initContainers", &["name"]),
    ("env", &["name"]),
    ("volumes", &["name"]),
    ("imagePullSecrets", &["name"]),
    ("containerStatuses", &["name"]),
    ("taints", &["key", "effect"]),
];

/// Which lists have keys: by the schema where there is one, else by the table above.
#[derive(Debug, Clone, Default)]
pub struct Lists {
    pub schema: Option<Value>,
}

impl Lists {
    /// The keys of the entries of a list at this path, none where the list is one leaf.
    pub fn keys(&self, path: &[String]) -> Vec<String> {
        let Some(schema) = &self.schema else {
            let last = path.last().and_then(|step| step.strip_prefix("f:")).unwrap_or_default();
            let found = KEYED.iter().find(|(name, _)| *name == last);
            return found.map(|(_, keys)| keys.iter().map(|&key| key.to_owned()).collect()).unwrap_or_default();
        };
        let mut at = schema;
        for step in path {
            at = match step.strip_prefix("f:") {
                Some(name) if at["properties"][name].is_object() => &at["properties"][name],
                Some(_) => &at["additionalProperties"],
                None => &at["items"],
            };
        }
        if at["x-kubernetes-list-type"] != "map" {
            return Vec::new();
        }
        let keys = at["x-kubernetes-list-map-keys"].as_array().into_iter().flatten();
        keys.filter_map(|key| key.as_str().map(str::to_owned)).collect()
    }
}

/// The step to an entry of a list with keys; `None` where it has not all of them.
pub fn entry_step(entry: &Value, keys: &[String]) -> Option<String> {
    let mut named = Map::new();
    for key in keys {
        named.insert(key.clone(), entry.get(key)?.clone());
    }
    Some(format!("k:{}", Value::Object(named)))
}

fn walk(value: &Value, path: &mut Path, lists: &Lists, found: &mut BTreeSet<Path>) {
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            for (name, inner) in fields {
                path.push(format!("f:{name}"));
                walk(inner, path, lists, found);
                path.pop();
            }
        }
        Value::Array(entries) if !entries.is_empty() => {
            let keys = lists.keys(path);
            let steps: Option<Vec<String>> = entries.iter().map(|entry| entry_step(entry, &keys)).collect();
            let Some(steps) = steps.filter(|_| !keys.is_empty()) else {
                found.insert(path.clone());
                return;
            };
            for (step, entry) in steps.into_iter().zip(entries) {
                path.push(step);
                let mut itself = path.clone();
                itself.push(".".to_owned());
                found.insert(itself);
                walk(entry, path, lists, found);
                path.pop();
            }
        }
        _ => {
            found.insert(path.clone());
        }
    }
}

/// Every leaf of an object that a manager can own through the main resource, or through its status.
pub fn leaves(object: &Value, lists: &Lists, status: Option<bool>) -> BTreeSet<Path> {
    let mut found = BTreeSet::new();
    for (name, value) in object.as_object().into_iter().flatten() {
        let owned = match (name.as_str(), status) {
            ("apiVersion" | "kind", _) | ("status", Some(false)) => false,
            (name, Some(true)) => name == "status",
            _ => true,
        };
        if !owned {
            continue;
        }
        let mut value = value.clone();
        if name == "metadata" {
            value
                .as_object_mut()
                .into_iter()
                .for_each(|fields| fields.retain(|key, _| !NOBODYS.contains(&key.as_str())));
            if value.as_object().is_none_or(Map::is_empty) {
                continue;
            }
        }
        walk(&value, &mut vec![format!("f:{name}")], lists, &mut found);
    }
    found
}

fn position(list: &[Value], step: &str) -> Option<usize> {
    let wanted: Value = serde_json::from_str(step.strip_prefix("k:")?).ok()?;
    let wanted = wanted.as_object()?;
    list.iter().position(|entry| wanted.iter().all(|(key, value)| entry.get(key) == Some(value)))
}

/// Value at a path.
pub fn get<'a>(object: &'a Value, path: &[String]) -> Option<&'a Value> {
    path.iter().try_fold(object, |at, step| match step.strip_prefix("f:") {
        Some(name) => at.get(name),
        None if step == "." => Some(at),
        None => {
            let list = at.as_array()?;
            list.get(position(list, step)?)
        }
    })
}

/// Puts a value at a path, and creates its parents.
pub fn set(object: &mut Value, path: &[String], value: Value) {
    let Some((step, rest)) = path.split_first() else {
        *object = value;
        return;
    };
    if step == "." {
        return;
    }
    if let Some(name) = step.strip_prefix("f:") {
        if !object.is_object() {
            *object = json!({});
        }
        set(&mut object[name], rest, value);
        return;
    }
    if !object.is_array() {
        *object = json!([]);
    }
    let list = object.as_array_mut().expect("it was made a list above");
    let at = position(list, step).unwrap_or_else(|| {
        list.push(serde_json::from_str(step.trim_start_matches("k:")).unwrap_or_default());
        list.len() - 1
    });
    set(&mut list[at], rest, value);
}

/// Removes the value at a path, and parents that are then empty and not in `kept`.
pub fn remove(object: &mut Value, path: &[String], kept: &Value) {
    let Some((step, rest)) = path.split_first() else { return };
    if rest.is_empty() || rest == ["."] {
        match (object, step.strip_prefix("f:")) {
            (Value::Object(fields), Some(name)) => drop(fields.remove(name)),
            (Value::Array(list), None) => drop(position(list, step).map(|at| list.remove(at))),
            _ => {}
        }
        return;
    }
    let one = std::slice::from_ref(step);
    let nothing = Value::Null;
    let kept_inner = get(kept, one).unwrap_or(&nothing);
    let inner = match (&mut *object, step.strip_prefix("f:")) {
        (Value::Object(fields), Some(name)) => fields.get_mut(name),
        (Value::Array(list), None) => position(list, step).map(|at| &mut list[at]),
        _ => None,
    };
    let Some(inner) = inner else { return };
    remove(inner, rest, kept_inner);
    let empty = inner.as_object().is_some_and(Map::is_empty) || inner.as_array().is_some_and(Vec::is_empty);
    if empty && kept_inner.is_null() {
        remove(object, one, kept);
    }
}

/// A set as `fieldsV1` writes it.
pub fn to_fields_v1(set: &BTreeSet<Path>) -> Value {
    let mut root = json!({});
    for path in set {
        let mut at = &mut root;
        for step in path {
            at = at
                .as_object_mut()
                .expect("only objects are made here")
                .entry(step.clone())
                .or_insert_with(|| json!({}));
        }
    }
    root
}

/// Reads `fieldsV1`.
pub fn from_fields_v1(fields: &Value) -> BTreeSet<Path> {
    fn read(at: &Value, path: &mut Path, found: &mut BTreeSet<Path>) {
        let inner = at.as_object().filter(|inner| !inner.is_empty());
        let Some(inner) = inner else {
            found.insert(path.clone());
            return;
        };
        for (step, below) in inner {
            path.push(step.clone());
            read(below, path, found);
            path.pop();
        }
    }
    let mut found = BTreeSet::new();
    if fields.as_object().is_some_and(|fields| !fields.is_empty()) {
        read(fields, &mut Vec::new(), &mut found);
    }
    found
}

/// How a conflict names a field: `.spec.hard`.
pub fn dotted(path: &[String]) -> String {
    let step = |step: &String| match step.strip_prefix("f:") {
        Some(name) => format!(".{name}"),
        None => format!("[{}]", step.trim_start_matches("k:").trim_matches(['{', '}']).replace(':', "=")),
    };
    path.iter().filter(|one| *one != ".").map(step).collect()
}
