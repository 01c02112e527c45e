//! A request as it is understood: what it asks, of which object, and who asks.

use crate::access::Deed;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A request and what it was answered, for tests to read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// HTTP method.
    pub method: String,
    /// Path without the query.
    pub path: String,
    /// As it was sent.
    pub query: String,
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`; empty for what is not of a resource.
    pub verb: String,
    /// API group.
    pub group: String,
    /// Plural, with the subresource: `pods/eviction`.
    pub resource: String,
    /// Namespace.
    pub namespace: String,
    /// Name of the object.
    pub name: String,
    /// Header `User-Agent`.
    pub user_agent: String,
    /// Field manager as given in the query; empty where none was.
    pub manager: String,
    /// Whether it was an apply that takes fields from others.
    pub force: bool,
    /// Whether nothing was to be stored.
    pub dry_run: bool,
    /// Header `Content-Type`.
    pub content_type: String,
    /// Body.
    pub body: String,
    /// HTTP status answered; 0 while it is not, or where the connection was closed instead.
    pub status: u16,
}

impl Request {
    /// Whether it changes anything.
    #[must_use]
    pub fn is_write(&self) -> bool {
        let asks_only = self.resource == "selfsubjectaccessreviews";
        !matches!(self.verb.as_str(), "" | "get" | "list" | "watch") && !self.dry_run && !asks_only
    }
}

/// A request for a resource.
#[derive(Debug, Clone, Default)]
pub struct Ask {
    pub verb: String,
    pub group: String,
    pub version: String,
    pub plural: String,
    pub namespace: String,
    pub name: String,
    pub subresource: String,
    pub query: BTreeMap<String, String>,
    pub content_type: String,
    pub user_agent: String,
    pub token: String,
    pub body: String,
}

/// `%41` and `+` as they are meant.
pub fn decode(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let hex = bytes.get(at + 1..at + 3).and_then(|two| std::str::from_utf8(two).ok());
        let coded = hex.filter(|_| bytes[at] == b'%').and_then(|two| u8::from_str_radix(two, 16).ok());
        out.push(coded.unwrap_or(if bytes[at] == b'+' { b' ' } else { bytes[at] }));
        at += if coded.is_some() { 3 } else { 1 };
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// The words of a query.
pub fn words(query: &str) -> BTreeMap<String, String> {
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    pairs
        .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
        .map(|(key, value)| (decode(key), decode(value)))
        .collect()
}

impl Ask {
    /// Reads method, path and query; `None` where the path is of no resource.
    pub fn read(method: &str, path: &str, query: &str) -> Option<Self> {
        let parts: Vec<String> = path.split('/').filter(|part| !part.is_empty()).map(decode).collect();
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        let (group, version, rest) = match parts.as_slice() {
            ["api", version, rest @ ..] => ("", *version, rest),
            ["apis", group, version, rest @ ..] => (*group, *version, rest),
            _ => return None,
        };
        let (namespace, rest) = match rest {
            ["namespaces", _] | ["namespaces", _, "status" | "finalize"] => ("", rest),
            ["namespaces", namespace, rest @ ..] => (*namespace, rest),
            _ => ("", rest),
        };
        let (plural, name, subresource) = match rest {
            [plural] => (*plural, "", ""),
            [plural, name] => (*plural, *name, ""),
            [plural, name, subresource] => (*plural, *name, *subresource),
            _ => return None,
        };
        let query = words(query);
        let watches = query.get("watch").is_some_and(|watch| watch == "true" || watch == "1");
        let verb = match (method, name.is_empty()) {
            ("GET", false) => "get",
            ("GET", true) if watches => "watch",
            ("GET", true) => "list",
            ("POST", _) => "create",
            ("PUT", _) => "update",
            ("PATCH", _) => "patch",
            ("DELETE", false) => "delete",
            ("DELETE", true) => "deletecollection",
            _ => "",
        };
        let own = str::to_owned;
        Some(Self {
            verb: own(verb),
            group: own(group),
            version: own(version),
            plural: own(plural),
            namespace: own(namespace),
            name: own(name),
            subresource: own(subresource),
            query,
            ..Self::default()
        })
    }

    pub fn word(&self, name: &str) -> &str {
        self.query.get(name).map(String::as_str).unwrap_or_default()
    }

    pub fn flag(&self, name: &str) -> bool {
        matches!(self.word(name), "true" | "1")
    }

    pub fn dry_run(&self) -> bool {
        self.word("dryRun") == "All"
    }

    /// Plural and subresource.
    pub fn resource(&self) -> String {
        if self.subresource.is_empty() { self.plural.clone() } else { format!("{}/{}", self.plural, self.subresource) }
    }

    /// The resource as messages name it: with its group.
    pub fn qualified_resource(&self) -> String {
        if self.group.is_empty() { self.plural.clone() } else { format!("{}.{}", self.plural, self.group) }
    }

    /// The field manager; a plain write that names none is known by its program.
    pub fn manager(&self) -> String {
        let given = self.word("fieldManager");
        let program = self.user_agent.split('/').next().unwrap_or_default();
        match (given, program) {
            ("", "") => "unknown".to_owned(),
            ("", program) => program.to_owned(),
            (given, _) => given.to_owned(),
        }
    }

    pub fn deed(&self) -> Deed {
        Deed {
            verb: self.verb.clone(),
            group: self.group.clone(),
            resource: self.resource(),
            namespace: self.namespace.clone(),
            name: self.name.clone(),
        }
    }
}
