//! Writes: create, update, the patches, delete. Each reads what is there, makes what is wanted of it, and stores it.

use crate::ask::Ask;
use crate::fields::Lists;
use crate::merge;
use crate::owners::Writer;
use crate::resources::Kind;
use crate::rules;
use crate::schema;
use crate::state::{Key, State};
use crate::status::Refusal;
use serde_json::{Value, json};

/// Answer to a write: HTTP status and object.
pub type Written = Result<(u16, Value), Refusal>;

/// RFC 3339, whole seconds, as the server stamps objects.
pub fn now() -> String {
    chrono::Utc::now().to_rfc3339_opts(chrono::SecondsFormat::Secs, true)
}

/// Metadata that a writer cannot change.
const SERVERS: [&str; 6] =
    ["uid", "creationTimestamp", "generation", "deletionTimestamp", "deletionGracePeriodSeconds", "managedFields"];

pub struct Write<'a> {
    pub state: &'a mut State,
    pub kind: &'a Kind,
    pub ask: &'a Ask,
}

impl Write<'_> {
    fn key(&self, name: &str) -> Key {
        (self.ask.namespace.clone(), name.to_owned())
    }

    /// The object of this name as it is now.
    pub fn live(&self) -> Option<Value> {
        Some(self.state.get(&self.kind.table(), &self.key(&self.ask.name))?.value())
    }

    /// As `live`; 404 where there is none.
    pub fn found(&self) -> Result<Value, Refusal> {
        let gone =
            || Refusal::not_found(&self.ask.qualified_resource(), &self.ask.plural, &self.ask.group, &self.ask.name);
        self.live().ok_or_else(gone)
    }

    fn stale(&self) -> Refusal {
        Refusal::stale(&self.ask.qualified_resource(), &self.ask.name)
    }

    fn writer(&self, operation: &'static str) -> Writer {
        Writer {
            manager: self.ask.manager(),
            operation,
            api_version: self.kind.api_version(),
            subresource: self.ask.subresource.clone(),
            now: now(),
            has_status: self.kind.has_status,
            lists: self.lists(),
        }
    }

    fn lists(&self) -> Lists {
        Lists { schema: self.state.schema(self.kind) }
    }

    /// The body as an object of the kind asked for.
    fn body(&self) -> Result<Value, Refusal> {
        let body: Value = serde_json::from_str(&self.ask.body)
            .or_else(|_| serde_saphyr::from_str(&self.ask.body))
            .map_err(|error| Refusal::bad_request(&format!("the object provided is unrecognized: {error}")))?;
        if !body.is_object() {
            return Err(Refusal::bad_request("the object provided is unrecognized: it is no object"));
        }
        Ok(body)
    }

    fn check_identity(&self, object: &Value) -> Result<(), Refusal> {
        let (version, kind) = (self.kind.api_version(), &self.kind.kind);
        if object["apiVersion"] != version.as_str() || object["kind"] != kind.as_str() {
            let text = format!(
                "the API version and kind in the data ({}, {}) do not match the expected ({version}, {kind})",
                object["apiVersion"], object["kind"]
            );
            return Err(Refusal::bad_request(&text));
        }
        let differs = |field: &str, asked: &str| {
            let given = object["metadata"][field].as_str().unwrap_or_default();
            !asked.is_empty() && !given.is_empty() && given != asked
        };
        if differs("name", &self.ask.name) || differs("namespace", &self.ask.namespace) {
            let text = "the name or namespace of the object does not match the one of the URL";
            return Err(Refusal::bad_request(text));
        }
        Ok(())
    }

    /// POST of an object.
    pub fn create(&mut self) -> Written {
        let mut object = self.body()?;
        if object.get("apiVersion").is_none() && object.get("kind").is_none() {
            // Bodies of built-in kinds may leave them out; the path names them.
            object["apiVersion"] = self.kind.api_version().into();
            object["kind"] = self.kind.kind.as_str().into();
        }
        self.check_identity(&object)?;
        if object["metadata"]["resourceVersion"].as_str().is_some_and(|version| !version.is_empty()) {
            return Err(Refusal::bad_request("resourceVersion should not be set on objects to be created"));
        }
        rules::name(self.state, self.kind, &mut object)?;
        let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        if self.state.get(&self.kind.table(), &self.key(&name)).is_some() {
            return Err(Refusal::already_exists(&self.ask.qualified_resource(), &name));
        }
        if let Some(fields) = object["metadata"].as_object_mut() {
            fields.retain(|field, _| !SERVERS.contains(&field.as_str()));
        }
        self.first_status(&mut object);
        self.writer("Update").track(None, &mut object);
        Ok((201, self.store(None, object)?))
    }

    fn first_status(&self, object: &mut Value) {
        if self.kind.table() == "pods" {
            object["status"] = json!({ "phase": "Pending", "qosClass": "BestEffort" });
        } else if self.kind.has_status && self.kind.table() != "nodes" {
            object.as_object_mut().into_iter().for_each(|fields| drop(fields.remove("status")));
        }
    }

    /// PUT of an object.
    pub fn update(&mut self) -> Written {
        let wanted = self.body()?;
        self.check_identity(&wanted)?;
        let before = self.found()?;
        let version = wanted["metadata"]["resourceVersion"].as_str().unwrap_or_default();
        let must_say = self.kind.custom || self.kind.plural == "leases";
        if version.is_empty() && must_say {
            let why = "Invalid value: 0x0: must be specified for an update".to_owned();
            let cause = ("metadata.resourceVersion".to_owned(), why);
            return Err(Refusal::invalid(&self.kind.kind, &self.ask.name, &[cause]));
        }
        self.replace(&before, wanted)
    }

    /// PATCH, of whichever type the body is.
    pub fn patch(&mut self) -> Written {
        let kind_of_patch = self.ask.content_type.split(';').next().unwrap_or_default().trim().to_owned();
        if kind_of_patch == "application/apply-patch+yaml" {
            return self.apply();
        }
        if self.ask.flag("force") {
            let cause = ("force".to_owned(), "Forbidden: may not be specified for non-apply patch".to_owned());
            return Err(Refusal::invalid("PatchOptions", "", &[cause]));
        }
        let patch: Value = serde_json::from_str(&self.ask.body)
            .map_err(|error| Refusal::bad_request(&format!("error decoding patch: {error}")))?;
        let before = self.found()?;
        let mut wanted = before.clone();
        match kind_of_patch.as_str() {
            "application/merge-patch+json" => merge::merge(&mut wanted, &patch),
            "application/json-patch+json" => merge::json_patch(&mut wanted, &patch)?,
            "application/strategic-merge-patch+json" if !self.kind.custom => {
                merge::strategic(&mut wanted, &patch, &self.lists(), &mut Vec::new());
            }
            _ => {
                let text = "the body of the request was in an unknown format";
                return Err(Refusal::new(415, "UnsupportedMediaType", text));
            }
        }
        self.replace(&before, wanted)
    }

    /// Common part of update and patch: preconditions, immutable fields, owners.
    fn replace(&mut self, before: &Value, wanted: Value) -> Written {
        let mut after = self.within_reach(before, wanted)?;
        self.writer("Update").track(Some(before), &mut after);
        Ok((200, self.store(Some(before), after)?))
    }

    /// Holds against what was read, and leaves alone what this path does not write: status, or all but it.
    fn within_reach(&self, before: &Value, mut wanted: Value) -> Result<Value, Refusal> {
        for field in ["resourceVersion", "uid"] {
            let given = wanted["metadata"][field].as_str().unwrap_or_default();
            if !given.is_empty() && before["metadata"][field] != given {
                return Err(self.stale());
            }
        }
        if self.ask.subresource == "status" {
            let mut after = before.clone();
            after["status"] = wanted["status"].take();
            return Ok(after);
        }
        let mut after = wanted;
        for field in SERVERS.iter().chain(&["name", "namespace", "resourceVersion"]) {
            match before["metadata"].get(*field) {
                Some(value) => after["metadata"][*field] = value.clone(),
                None => drop(after["metadata"].as_object_mut().map(|fields| fields.remove(*field))),
            }
        }
        if self.kind.has_status {
            match before.get("status") {
                Some(status) => after["status"] = status.clone(),
                None => drop(after.as_object_mut().map(|fields| fields.remove("status"))),
            }
        }
        Ok(after)
    }

    fn apply(&mut self) -> Written {
        if self.ask.word("fieldManager").is_empty() {
            let why = "Required value: is required for apply patch".to_owned();
            return Err(Refusal::invalid("PatchOptions", "", &[("fieldManager".to_owned(), why)]));
        }
        let mut applied = self.body()?;
        self.check_identity(&applied)?;
        if applied.pointer("/metadata/managedFields").is_some_and(|fields| !fields.is_null()) {
            return Err(Refusal::bad_request("metadata.managedFields must be nil"));
        }
        self.all_declared(&applied)?;
        let live = self.live();
        for field in ["resourceVersion", "uid"] {
            let given = applied["metadata"][field].as_str().unwrap_or_default().to_owned();
            let is = live.as_ref().and_then(|live| live["metadata"][field].as_str()).unwrap_or_default();
            if !given.is_empty() && given != is {
                return Err(self.stale());
            }
        }
        if live.is_none() && !self.ask.subresource.is_empty() {
            self.found()?;
        }
        applied["metadata"]["name"] = self.ask.name.as_str().into();
        let writer = self.writer("Apply");
        let mut after = writer.apply(live.as_ref(), &applied, self.ask.flag("force"))?;
        let Some(before) = live else {
            after["metadata"]["name"] = self.ask.name.as_str().into();
            if self.kind.namespaced {
                after["metadata"]["namespace"] = self.ask.namespace.as_str().into();
            }
            rules::name(self.state, self.kind, &mut after)?;
            self.first_status(&mut after);
            return Ok((201, self.store(None, after)?));
        };
        let managed = after["metadata"]["managedFields"].clone();
        let mut after = self.within_reach(&before, after)?;
        after["metadata"]["managedFields"] = managed;
        Ok((200, self.store(Some(&before), after)?))
    }

    /// An apply is refused where a plain write only loses the field: the server cannot say who would own it.
    fn all_declared(&self, applied: &Value) -> Result<(), Refusal> {
        let Some(schema) = self.state.schema(self.kind) else { return Ok(()) };
        let dropped = schema::prune(&mut applied.clone(), &schema);
        let Some(field) = dropped.first() else { return Ok(()) };
        let of = format!("({}/{}; {})", self.ask.namespace, self.ask.name, self.kind.api_version());
        let text = format!("failed to create typed patch object {of}: .{field}: field not declared in schema");
        Err(Refusal::new(500, "InternalError", &text))
    }

    /// Schema and rules of the kind, metadata of the server; then it is kept, unless nothing changed.
    fn store(&mut self, before: Option<&Value>, mut after: Value) -> Result<Value, Refusal> {
        if self.kind.namespaced {
            after["metadata"]["namespace"] = self.ask.namespace.as_str().into();
        }
        if let Some(schema) = self.state.schema(self.kind) {
            self.by_schema(before, &mut after, &schema)?;
        }
        rules::check(self.state, self.kind, before, &mut after)?;
        rules::stamp(self.state, before, &mut after);
        if before == Some(&after) {
            return Ok(after);
        }
        if self.ask.dry_run() {
            return Ok(after);
        }
        let table = self.kind.table();
        let ends = after["metadata"].get("deletionTimestamp").is_some() && !has_finalizers(&after);
        let stored = self.state.put(&table, after).value();
        if ends && before.is_some_and(has_finalizers) {
            let name = stored["metadata"]["name"].as_str().unwrap_or_default();
            self.state.remove(&table, &self.key(name));
        }
        Ok(stored)
    }

    fn by_schema(&self, before: Option<&Value>, after: &mut Value, schema: &Value) -> Result<(), Refusal> {
        let dropped = schema::prune(after, schema);
        if !dropped.is_empty() && self.ask.word("fieldValidation") == "Strict" {
            let texts: Vec<String> = dropped.iter().map(|field| format!("unknown field {field:?}")).collect();
            return Err(Refusal::bad_request(&format!("strict decoding error: {}", texts.join(", "))));
        }
        let faults = schema::faults(after, before, schema);
        if faults.is_empty() {
            return Ok(());
        }
        let name = after["metadata"]["name"].as_str().unwrap_or_default();
        Err(Refusal::invalid(&format!("{}.{}", self.kind.kind, self.kind.group), name, &faults))
    }

    /// DELETE of what is not a pod: at once, or marked while finalizers stand.
    pub fn delete(&mut self) -> Written {
        let before = self.found()?;
        self.preconditions(&before)?;
        if self.ask.dry_run() {
            return Ok((200, before));
        }
        let table = self.kind.table();
        if has_finalizers(&before) {
            let mut after = before;
            after["metadata"]["deletionTimestamp"] = now().into();
            return Ok((200, self.state.put(&table, after).value()));
        }
        self.state.remove(&table, &self.key(&self.ask.name));
        let done = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success",
            "details": { "name": self.ask.name, "group": self.kind.group, "kind": self.kind.plural,
                "uid": before["metadata"]["uid"] },
        });
        Ok((200, done))
    }

    /// Checks the preconditions of a deletion.
    pub fn preconditions(&self, before: &Value) -> Result<(), Refusal> {
        let options: Value = serde_json::from_str(&self.ask.body).unwrap_or_default();
        let wanted = options.pointer("/preconditions").or_else(|| options.pointer("/deleteOptions/preconditions"));
        for field in ["uid", "resourceVersion"] {
            let given = wanted.and_then(|wanted| wanted[field].as_str()).unwrap_or_default();
            if !given.is_empty() && before["metadata"][field] != given {
                let is = &before["metadata"][field];
                let text = format!("Precondition failed: {field} in precondition: {given}, in object meta: {is}");
                return Err(Refusal::new(409, "Conflict", &text));
            }
        }
        Ok(())
    }
}

/// Whether something is still to be done before it can go.
pub fn has_finalizers(object: &Value) -> bool {
    object.pointer("/metadata/finalizers").and_then(Value::as_array).is_some_and(|list| !list.is_empty())
}
