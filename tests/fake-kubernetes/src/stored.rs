//! An object as it is kept: its text, ready to be sent, and the little that lists select by.

use serde_json::Value;
use std::collections::BTreeMap;

/// One version of one object. It never changes: a write makes another.
#[derive(Debug)]
pub struct Stored {
    /// The whole object as JSON.
    pub json: String,
    pub namespace: String,
    pub name: String,
    pub labels: BTreeMap<String, String>,
    pub node: String,
    pub phase: String,
    /// Object that an event is about; empty for all else.
    pub involved_uid: String,
}

fn word(of: &Value, at: &str) -> String {
    of.pointer(at).and_then(Value::as_str).unwrap_or_default().to_owned()
}

impl Stored {
    /// Stamps the version on the object and keeps it.
    pub fn new(mut object: Value, version: u64) -> Self {
        object["metadata"]["resourceVersion"] = version.to_string().into();
        let labels = object.pointer("/metadata/labels").and_then(Value::as_object);
        let labels =
            labels.into_iter().flatten().filter_map(|(key, value)| Some((key.clone(), value.as_str()?.into())));
        Self {
            labels: labels.collect(),
            namespace: word(&object, "/metadata/namespace"),
            name: word(&object, "/metadata/name"),
            node: word(&object, "/spec/nodeName"),
            phase: word(&object, "/status/phase"),
            involved_uid: word(&object, "/involvedObject/uid"),
            json: object.to_string(),
        }
    }

    /// The object, read again.
    pub fn value(&self) -> Value {
        serde_json::from_str(&self.json).expect("what was stored was written from a value")
    }

    /// The labels, for selectors.
    pub fn labels(&self) -> &BTreeMap<String, String> {
        &self.labels
    }

    /// A field that one may select by; `None` for another, which is refused.
    pub fn field(&self, name: &str) -> Option<&str> {
        match name {
            "metadata.name" => Some(&self.name),
            "metadata.namespace" => Some(&self.namespace),
            "spec.nodeName" => Some(&self.node),
            "status.phase" => Some(&self.phase),
            "involvedObject.uid" => Some(&self.involved_uid),
            _ => None,
        }
    }
}
