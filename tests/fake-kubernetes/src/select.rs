//! Which objects a list or watch is of.

use crate::status::Refusal;
use crate::stored::Stored;
use std::collections::BTreeMap;

#[derive(Debug, Clone, PartialEq, Eq)]
enum Demand {
    Is(String),
    IsNot(String),
    In(Vec<String>),
    NotIn(Vec<String>),
    There,
    Absent,
}

impl Demand {
    fn holds(&self, value: Option<&str>) -> bool {
        match self {
            Self::Is(wanted) => value == Some(wanted),
            Self::IsNot(unwanted) => value != Some(unwanted),
            Self::In(any) => value.is_some_and(|value| any.iter().any(|one| one == value)),
            Self::NotIn(none) => !value.is_some_and(|value| none.iter().any(|one| one == value)),
            Self::There => value.is_some(),
            Self::Absent => value.is_none(),
        }
    }
}

/// Namespace, labels and fields; all of them hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selector {
    namespace: String,
    labels: Vec<(String, Demand)>,
    fields: Vec<(String, Demand)>,
}

/// Commas that are not within brackets.
fn parts(text: &str) -> Vec<String> {
    let mut found = vec![String::new()];
    let mut depth = 0_i32;
    for letter in text.chars() {
        depth += i32::from(letter == '(') - i32::from(letter == ')');
        if letter == ',' && depth == 0 {
            found.push(String::new());
        } else {
            found.last_mut().expect("there is one from the start").push(letter);
        }
    }
    found.retain(|part| !part.trim().is_empty());
    found
}

fn set(text: &str, word: &str) -> Option<(String, Vec<String>)> {
    let (key, rest) = text.split_once(word)?;
    let inner = rest.trim().strip_prefix('(')?.strip_suffix(')')?;
    Some((key.trim().to_owned(), inner.split(',').map(|one| one.trim().to_owned()).collect()))
}

fn demand(part: &str) -> (String, Demand) {
    let part = part.trim();
    if let Some((key, any)) = set(part, " notin ") {
        return (key, Demand::NotIn(any));
    }
    if let Some((key, any)) = set(part, " in ") {
        return (key, Demand::In(any));
    }
    let is = |key: &str, value: &str| (key.trim().to_owned(), value.trim().to_owned());
    if let Some((key, value)) = part.split_once("!=") {
        let (key, value) = is(key, value);
        return (key, Demand::IsNot(value));
    }
    if let Some((key, value)) = part.split_once("==").or_else(|| part.split_once('=')) {
        let (key, value) = is(key, value);
        return (key, Demand::Is(value));
    }
    match part.strip_prefix('!') {
        Some(key) => (key.trim().to_owned(), Demand::Absent),
        None => (part.to_owned(), Demand::There),
    }
}

impl Selector {
    /// Reads what the query says.
    pub fn parse(table: &str, namespace: &str, query: &BTreeMap<String, String>) -> Result<Self, Refusal> {
        let read = |name: &str| -> Vec<(String, Demand)> {
            query.get(name).map(|text| parts(text).iter().map(|part| demand(part)).collect()).unwrap_or_default()
        };
        let fields = read("fieldSelector");
        let of_kind: &[&str] = match table {
            "pods" => &["spec.nodeName", "status.phase"],
            "events" => &["involvedObject.uid"],
            _ => &[],
        };
        let is_known =
            |field: &str| ["metadata.name", "metadata.namespace"].contains(&field) || of_kind.contains(&field);
        if let Some((field, _)) = fields.iter().find(|(field, _)| !is_known(field)) {
            return Err(Refusal::bad_request(&format!("field label not supported: {field}")));
        }
        Ok(Self { namespace: namespace.to_owned(), labels: read("labelSelector"), fields })
    }

    /// Whether everything is selected: a list then needs no look at each.
    pub fn is_everything(&self) -> bool {
        self == &Self::default()
    }

    pub fn takes(&self, one: &Stored) -> bool {
        let namespace = self.namespace.is_empty() || self.namespace == one.namespace;
        let field = |(name, demand): &(String, Demand)| demand.holds(one.field(name));
        let label = |(name, demand): &(String, Demand)| demand.holds(one.labels().get(name).map(String::as_str));
        namespace && self.fields.iter().all(field) && self.labels.iter().all(label)
    }
}

/// Whether a selector of labels as objects hold it (`matchLabels`, `matchExpressions`) takes these labels.
pub fn selector_takes(selector: &serde_json::Value, labels: &BTreeMap<String, String>) -> bool {
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    let equal = selector["matchLabels"].as_object().into_iter().flatten();
    let equal = equal.map(|(key, value)| (key.clone(), Demand::Is(text(value))));
    let others = selector["matchExpressions"].as_array().into_iter().flatten().map(|one| {
        let values = || one["values"].as_array().into_iter().flatten().map(text).collect();
        let demand = match one["operator"].as_str() {
            Some("In") => Demand::In(values()),
            Some("NotIn") => Demand::NotIn(values()),
            Some("Exists") => Demand::There,
            _ => Demand::Absent,
        };
        (text(&one["key"]), demand)
    });
    equal.chain(others).all(|(key, demand)| demand.holds(labels.get(&key).map(String::as_str)))
}
