//! Owners of fields (`metadata.managedFields`), and server-side apply.

use crate::fields::{self, Lists, Path};
use crate::status::Refusal;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// A writer and its operation.
#[derive(Debug, Clone)]
pub struct Writer {
    /// Field manager.
    pub manager: String,
    /// `Apply` or `Update`.
    pub operation: &'static str,
    /// Of the object written.
    pub api_version: String,
    /// `status`, or empty.
    pub subresource: String,
    /// RFC 3339.
    pub now: String,
    /// Whether status is written apart; then the main resource owns none of it.
    pub has_status: bool,
    pub lists: Lists,
}

#[derive(Debug, Clone)]
struct Owner {
    entry: Value,
    set: BTreeSet<Path>,
}

impl Owner {
    fn is(&self, writer: &Writer) -> bool {
        let subresource = self.entry["subresource"].as_str().unwrap_or_default();
        self.entry["manager"] == writer.manager.as_str()
            && self.entry["operation"] == writer.operation
            && subresource == writer.subresource
    }
}

fn owners(object: &Value) -> Vec<Owner> {
    let entries = object.pointer("/metadata/managedFields").and_then(Value::as_array);
    let read = |entry: &Value| Owner { entry: entry.clone(), set: fields::from_fields_v1(&entry["fieldsV1"]) };
    entries.into_iter().flatten().map(read).collect()
}

fn write_owners(object: &mut Value, owners: &[Owner]) {
    let entries = owners.iter().filter(|one| !one.set.is_empty()).map(|one| {
        let mut entry = one.entry.clone();
        entry["fieldsV1"] = fields::to_fields_v1(&one.set);
        entry
    });
    object["metadata"]["managedFields"] = entries.collect();
}

impl Writer {
    fn entry(&self) -> Value {
        let mut entry = json!({
            "manager": self.manager, "operation": self.operation, "apiVersion": self.api_version,
            "time": self.now, "fieldsType": "FieldsV1",
        });
        if !self.subresource.is_empty() {
            entry["subresource"] = self.subresource.as_str().into();
        }
        entry
    }

    fn leaves(&self, object: &Value) -> BTreeSet<Path> {
        let status = if self.subresource == "status" { Some(true) } else { self.has_status.then_some(false) };
        fields::leaves(object, &self.lists, status)
    }

    /// Notes what a plain write changed: the writer owns it now, alone.
    pub fn track(&self, before: Option<&Value>, after: &mut Value) {
        let nothing = json!({});
        let before = before.unwrap_or(&nothing);
        let (old, new) = (self.leaves(before), self.leaves(after));
        let is_new = |path: &&Path| fields::get(before, path) != fields::get(after, path) && !is_entry(path, before);
        let changed: BTreeSet<Path> = new.iter().filter(is_new).cloned().collect();
        let gone: BTreeSet<Path> = old.difference(&new).cloned().collect();
        let mut all = owners(before);
        for owner in &mut all {
            owner.set.retain(|path| !changed.contains(path) && !gone.contains(path));
        }
        if !changed.is_empty() {
            own(&mut all, self, |set| set.extend(changed));
        }
        write_owners(after, &all);
    }

    /// Merges what is applied into what is there. `live` is absent where the object is made by this.
    pub fn apply(&self, live: Option<&Value>, applied: &Value, force: bool) -> Result<Value, Refusal> {
        let start = json!({ "apiVersion": applied["apiVersion"], "kind": applied["kind"], "metadata": {} });
        let live = live.cloned().unwrap_or(start);
        let wanted = self.leaves(applied);
        let mut all = owners(&live);
        let conflicts = self.conflicts(&live, applied, &wanted, &all);
        if !conflicts.is_empty() && !force {
            return Err(conflict(&conflicts, &all));
        }
        for (at, path) in &conflicts {
            all[*at].set.remove(path);
        }
        let mine = all.iter().find(|one| one.is(self)).map(|one| one.set.clone()).unwrap_or_default();
        let mut merged = live.clone();
        for path in mine.difference(&wanted) {
            let kept =
                all.iter().any(|one| !one.is(self) && one.set.iter().any(|theirs| theirs.starts_with(above(path))));
            if !kept && !is_key(path) {
                fields::remove(&mut merged, path, applied);
            }
        }
        for path in &wanted {
            let value = fields::get(applied, path);
            // An empty map owns itself, and takes nothing of what others have in it.
            let is_kept = |value: &Value| {
                value.as_object().is_some_and(Map::is_empty) && fields::get(&merged, path).is_some_and(Value::is_object)
            };
            if let Some(value) = value.filter(|value| !is_kept(value)) {
                fields::set(&mut merged, path, value.clone());
            }
        }
        let same = merged == live && mine == wanted && conflicts.is_empty();
        if !same {
            own(&mut all, self, |set| *set = wanted);
            write_owners(&mut merged, &all);
        }
        Ok(merged)
    }

    fn conflicts(&self, live: &Value, applied: &Value, wanted: &BTreeSet<Path>, all: &[Owner]) -> Vec<(usize, Path)> {
        let mut found = Vec::new();
        for (at, owner) in all.iter().enumerate().filter(|(_, owner)| !owner.is(self)) {
            let theirs = wanted.intersection(&owner.set).filter(|path| !path.ends_with(&[".".into()]));
            let differs = theirs.filter(|path| fields::get(live, path) != fields::get(applied, path));
            found.extend(differs.map(|path| (at, path.clone())));
        }
        found
    }
}

/// The entry of a list, where the path is of the entry itself.
fn above(path: &[String]) -> &[String] {
    path.strip_suffix(&[".".to_owned()]).unwrap_or(path)
}

/// Whether a path is of a field that the entry of a list is found by: it goes with the entry, not before.
fn is_key(path: &[String]) -> bool {
    let [.., entry, field] = path else { return false };
    let keys: Option<Value> = entry.strip_prefix("k:").and_then(|keys| serde_json::from_str(keys).ok());
    keys.is_some_and(|keys| keys.get(field.trim_start_matches("f:")).is_some())
}

/// 409 with one cause for each field, which names its owner.
fn conflict(conflicts: &[(usize, Path)], all: &[Owner]) -> Refusal {
    let manager = |at: usize| all[at].entry["manager"].as_str().unwrap_or_default();
    let causes: Vec<Value> = conflicts
        .iter()
        .map(|(at, path)| {
            let message = format!("conflict with {:?}", manager(*at));
            json!({ "reason": "FieldManagerConflict", "message": message, "field": fields::dotted(path) })
        })
        .collect();
    let texts: Vec<String> = conflicts
        .iter()
        .map(|(at, path)| format!("conflict with {:?}: {}", manager(*at), fields::dotted(path)))
        .collect();
    let text = format!("Apply failed with {} conflict(s): {}", conflicts.len(), texts.join(", "));
    let mut refusal = Refusal::new(409, "Conflict", &text);
    refusal.body["details"] = json!({ "causes": causes });
    refusal
}

fn is_entry(path: &[String], before: &Value) -> bool {
    path.ends_with(&[".".into()]) && fields::get(before, path).is_some()
}

fn own(all: &mut Vec<Owner>, writer: &Writer, change: impl FnOnce(&mut BTreeSet<Path>)) {
    let at = all.iter().position(|one| one.is(writer)).unwrap_or_else(|| {
        all.push(Owner { entry: Value::Null, set: BTreeSet::new() });
        all.len() - 1
    });
    all[at].entry = writer.entry();
    change(&mut all[at].set);
}
