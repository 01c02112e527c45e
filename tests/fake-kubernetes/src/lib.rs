//! A Kubernetes API server in memory, for tests. To a client that lists, watches, applies, updates and evicts it behaves as a
//! real one; it refuses the same requests, with the same `Status`.
//!
//! It has the kinds of a table and those that stored definitions add; lists by page from a snapshot; watches with
//! bookmarks, which end when the history they need is forgotten; create, update, merge, strategic and JSON patches,
//! server-side apply with owners of fields and conflicts; status written apart; deletion with preconditions and
//! finalizers; eviction held to disruption budgets; binding; tokens, rules of access and reviews of them. Tests set
//! faults by calls, or by HTTP under `/fake/`. Every request is remembered.
//!
//! Differences from a real server:
//! - no admission webhooks, no limit ranges, no defaults but a pod's first status; of `ResourceQuota` only requests and the number
//!   of pods, in the scope of a priority class;
//! - of schemas: types, required fields, bounds, enumerations, unknown fields, and rules of the form `self == oldSelf`;
//!   no other CEL rule, no pattern, no default, no conversion between versions;
//! - built-in kinds have no schema: unknown fields of them are kept, most of their rules are absent;
//! - no controllers but that of `ResourceQuota`: nothing schedules pods, fills budgets, collects garbage, or empties a namespace
//!   that is deleted;
//! - no protobuf, tables, or metadata alone (406), no `exec`, `log`, `scale`, or deletion of collections (405);
//! - owners: lists that are sets, and maps that are one leaf, are not distinguished from others in built-in kinds;
//! - one process, no TLS, no fairness between clients; anonymous requests are refused (401).

mod access;
mod ask;
mod bulk;
mod control;
pub mod crds;
mod discovery;
mod evict;
mod fake;
mod faults;
mod fields;
mod http;
mod list;
mod merge;
mod owners;
mod quota;
mod resources;
mod rules;
mod schema;
mod select;
mod server;
mod state;
mod status;
mod stored;
#[cfg(test)]
mod tests;
mod watch;
mod write;

pub use access::{Deed, Rule};
pub use ask::Request;
pub use bulk::{Size, node, pod};
pub use fake::FakeKubernetes;
pub use faults::{Fault, What};
pub use status::Refusal;

/// A document of YAML as JSON; `None` where it is none.
#[must_use]
pub fn yaml(text: &str) -> Option<serde_json::Value> {
    serde_saphyr::from_str(text).ok()
}
