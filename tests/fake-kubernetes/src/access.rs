//! Permissions: tokens, and rules in the form of roles.

use crate::status::Refusal;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// An allowed action; `*` stands for any. An empty list of names, or of namespaces, stands for any too.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Rule {
    /// Verbs.
    pub verbs: Vec<String>,
    /// API groups.
    pub api_groups: Vec<String>,
    /// `pods`, `pods/eviction`.
    pub resources: Vec<String>,
    /// Names of objects.
    pub resource_names: Vec<String>,
    /// Namespaces.
    pub namespaces: Vec<String>,
}

/// Action of a request that needs permission.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Deed {
    /// Verb.
    pub verb: String,
    /// API group.
    pub group: String,
    /// Plural, with the subresource.
    pub resource: String,
    /// Namespace; empty for the cluster.
    pub namespace: String,
    /// Name; empty for all.
    pub name: String,
}

impl Rule {
    /// A rule in three words, each of which may hold several, parted by commas.
    #[must_use]
    pub fn new(verbs: &str, groups: &str, resources: &str) -> Self {
        let list = |text: &str| text.split(',').map(|one| one.trim().to_owned()).collect();
        Self { verbs: list(verbs), api_groups: list(groups), resources: list(resources), ..Self::default() }
    }

    /// The rules of a `Role` or `ClusterRole`; those of a role hold in its namespace.
    #[must_use]
    pub fn of_role(role: &Value) -> Vec<Self> {
        let rules = role["rules"].as_array().cloned().unwrap_or_default();
        let mut read: Vec<Self> = rules.into_iter().filter_map(|rule| serde_json::from_value(rule).ok()).collect();
        if let (Some("Role"), Some(namespace)) = (role["kind"].as_str(), role["metadata"]["namespace"].as_str()) {
            for rule in &mut read {
                rule.namespaces = vec![namespace.to_owned()];
            }
        }
        read
    }

    /// Whether the rule covers a deed. A rule that names objects covers no deed without a name.
    #[must_use]
    pub fn covers(&self, deed: &Deed) -> bool {
        let has = |list: &[String], word: &str| list.iter().any(|one| one == "*" || one == word);
        let any_or = |list: &[String], word: &str| list.is_empty() || list.iter().any(|one| one == word);
        has(&self.verbs, &deed.verb)
            && has(&self.api_groups, &deed.group)
            && has(&self.resources, &deed.resource)
            && any_or(&self.resource_names, &deed.name)
            && any_or(&self.namespaces, &deed.namespace)
    }
}

/// Tokens and their rules.
#[derive(Debug, Clone, Default)]
struct User {
    name: String,
    /// Absent: everything.
    allowed: Option<Vec<Rule>>,
    denied: Vec<Rule>,
}

/// All tokens.
#[derive(Debug, Default)]
pub struct Access(BTreeMap<String, User>);

impl Access {
    /// Takes in who has this token and may do what the rules say; everything where there are none.
    pub fn add(&mut self, token: &str, name: &str, allowed: Option<Vec<Rule>>) {
        self.0.insert(token.to_owned(), User { name: name.to_owned(), allowed, denied: Vec::new() });
    }

    pub fn remove(&mut self, token: &str) {
        self.0.remove(token);
    }

    pub fn allow_only(&mut self, token: &str, rules: Option<Vec<Rule>>) {
        self.0.entry(token.to_owned()).or_default().allowed = rules;
    }

    pub fn deny(&mut self, token: &str, rule: Rule) {
        self.0.entry(token.to_owned()).or_default().denied.push(rule);
    }

    pub fn allow_again(&mut self, token: &str) {
        self.0.entry(token.to_owned()).or_default().denied.clear();
    }

    /// 401 for a token that nobody has.
    pub fn know(&self, token: Option<&str>) -> Result<(), Refusal> {
        let known = token.is_some_and(|token| self.0.contains_key(token));
        if known { Ok(()) } else { Err(Refusal::new(401, "Unauthorized", "Unauthorized")) }
    }

    pub fn may(&self, token: &str, deed: &Deed) -> bool {
        let covered = |rules: &[Rule]| rules.iter().any(|rule| rule.covers(deed));
        self.0.get(token).is_some_and(|user| user.allowed.as_deref().is_none_or(covered) && !covered(&user.denied))
    }

    /// 403, worded as the server words it.
    pub fn check(&self, token: &str, deed: &Deed) -> Result<(), Refusal> {
        if self.may(token, deed) {
            return Ok(());
        }
        let user = self.0.get(token).map_or("system:anonymous", |user| user.name.as_str());
        let Deed { verb, group, resource, namespace, name } = deed;
        let of = if group.is_empty() { resource.clone() } else { format!("{resource}.{group}") };
        let place = if namespace.is_empty() {
            "at the cluster scope".to_owned()
        } else {
            format!("in the namespace {namespace:?}")
        };
        let named = if name.is_empty() { String::new() } else { format!(" {name:?}") };
        let text = format!(
            "{of}{named} is forbidden: User {user:?} cannot {verb} resource {resource:?} in API group {group:?} {place}"
        );
        Err(Refusal::new(403, "Forbidden", &text).details(resource, group, name, vec![]))
    }

    /// The answer to a `SelfSubjectAccessReview`.
    pub fn review(&self, token: &str, review: &Value) -> Value {
        let asked = &review["spec"]["resourceAttributes"];
        let word = |name: &str| asked[name].as_str().unwrap_or_default().to_owned();
        let sub = word("subresource");
        let resource = if sub.is_empty() { word("resource") } else { format!("{}/{sub}", word("resource")) };
        let (verb, group) = (word("verb"), word("group"));
        let deed = Deed { verb, group, resource, namespace: word("namespace"), name: word("name") };
        json!({
            "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
            "metadata": { "creationTimestamp": null }, "spec": review["spec"],
            "status": { "allowed": self.may(token, &deed) },
        })
    }
}
