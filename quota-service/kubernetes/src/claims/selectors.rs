//! Selectors of devices: CEL over what a driver says of a device, by the libraries of kube.

use crate::cluster::dra::{Device, DeviceSelector};
use kube_cel::KubeCelExt;
use kube_cel::cel::parser::{Expression, Parser};
use kube_cel::cel::{Context, Value};
use serde_json::json;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// The API server refuses longer ones.
const MOST_BYTES: usize = 10 * 1_024;
/// Parsed expressions that are kept: claims of one job have the same.
const MOST_PARSED: usize = 1_024;

thread_local! {
    /// Functions of CEL and Kubernetes: to register them takes longer than to evaluate an expression.
    static FUNCTIONS: Context<'static> = Context::default().with_all();
    static PARSED: RefCell<BTreeMap<String, Selector>> = const { RefCell::new(BTreeMap::new()) };
    /// Expressions that make a value of a text.
    static OF_TEXT: BTreeMap<&'static str, Expression> = ["quantity(text)", "semver(text)"]
        .into_iter()
        .filter_map(|text| Some((text, Parser::new().parse(text).ok()?)))
        .collect();
}

/// An expression that selects devices.
#[derive(Clone)]
pub struct Selector {
    text: String,
    parsed: Arc<Expression>,
    /// Domains that it names: of one that a device does not have, an empty map is read.
    domains: Arc<BTreeSet<String>>,
}

impl std::fmt::Debug for Selector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Selector").field(&self.text).finish()
    }
}

impl Selector {
    /// # Errors
    /// The text is no expression, or one that the library does not know.
    pub fn parse(text: &str) -> Result<Self, String> {
        if let Some(known) = PARSED.with(|parsed| parsed.borrow().get(text).cloned()) {
            return Ok(known);
        }
        let selector = Self::parse_uncached(text)?;
        PARSED.with(|parsed| {
            let mut parsed = parsed.borrow_mut();
            if parsed.len() >= MOST_PARSED {
                parsed.clear();
            }
            parsed.insert(text.to_owned(), selector.clone());
        });
        Ok(selector)
    }

    fn parse_uncached(text: &str) -> Result<Self, String> {
        if text.len() > MOST_BYTES {
            return Err(format!("a selector of {} bytes: at most {MOST_BYTES} are read", text.len()));
        }
        let parse = || Parser::new().enable_optional_syntax(true).parse(text);
        let parsed = guarded(parse).and_then(|parsed| parsed.map_err(|fault| fault.to_string()));
        let parsed = parsed.map_err(|fault| format!("{text:?} is not read as CEL: {fault}"))?;
        let domains = quoted(text).filter(|word| word.contains('.')).map(str::to_owned).collect();
        Ok(Self { text: text.to_owned(), parsed: Arc::new(parsed), domains: Arc::new(domains) })
    }

    /// All selectors of a list.
    ///
    /// # Errors
    /// As [`parse`](Self::parse).
    pub fn parse_all(selectors: &[DeviceSelector]) -> Result<Vec<Self>, String> {
        selectors.iter().map(|one| Self::parse(&one.cel.expression)).collect()
    }

    /// Whether it selects the device. An expression that fails for a device, as one that names a missing attribute, does not.
    #[must_use]
    pub fn matches(&self, described: &Described) -> bool {
        let evaluate = || {
            FUNCTIONS.with(|functions| {
                let mut context = functions.new_inner_scope();
                context.add_variable_from_value("device", described.value(&self.domains));
                Value::resolve(&self.parsed, &context)
            })
        };
        matches!(guarded(evaluate), Ok(Ok(Value::Bool(true))))
    }
}

/// Expressions are written by users: a panic of the library on one of them must not end the watch of a cluster.
fn guarded<T>(run: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(run)).map_err(|_| "the library fails on it".to_owned())
}

/// Texts in single or double quotes.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split(['"', '\'']).skip(1).step_by(2)
}

/// A device as expressions see it, kept as JSON: a cluster has tens of thousands, and they are read seldom.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Described(Arc<str>);

impl Described {
    /// Facts that a driver states of a device.
    #[must_use]
    pub fn of(driver: &str, device: &Device) -> Self {
        let body = device.body();
        let text = json!({
            "driver": driver,
            "attributes": by_domain(driver, &body.attributes),
            "capacity": by_domain(driver, &body.capacity.iter().map(|(name, one)| (name.clone(), &one.value)).collect()),
            "shared": body.allow_multiple_allocations,
        });
        Self(text.to_string().into())
    }

    fn value(&self, domains: &BTreeSet<String>) -> Value {
        let read: serde_json::Value = serde_json::from_str(&self.0).unwrap_or_default();
        let maps = |key: &str, make: fn(&serde_json::Value) -> Value| {
            let mut maps: BTreeMap<String, BTreeMap<String, Value>> =
                domains.iter().map(|domain| (domain.clone(), BTreeMap::new())).collect();
            for (domain, inner) in read[key].as_object().into_iter().flatten() {
                let inner = inner.as_object().into_iter().flatten();
                maps.insert(domain.clone(), inner.map(|(name, one)| (name.clone(), make(one))).collect());
            }
            map(maps.into_iter().map(|(domain, inner)| (domain, map(inner))).collect())
        };
        map(BTreeMap::from([
            ("driver".to_owned(), Value::from(read["driver"].as_str().unwrap_or_default())),
            ("attributes".to_owned(), maps("attributes", attribute)),
            ("capacity".to_owned(), maps("capacity", |one| call("quantity(text)", one.as_str().unwrap_or_default()))),
            ("allowMultipleAllocations".to_owned(), Value::Bool(read["shared"] == true)),
        ]))
    }
}

fn map(entries: BTreeMap<String, Value>) -> Value {
    let entries: std::collections::HashMap<String, Value> = entries.into_iter().collect();
    Value::Map(entries.into())
}

/// Names without a domain are of the driver's own.
fn by_domain<T: serde::Serialize>(driver: &str, named: &BTreeMap<String, T>) -> serde_json::Value {
    let mut domains: BTreeMap<&str, BTreeMap<&str, &T>> = BTreeMap::new();
    for (name, value) in named {
        let (domain, name) = name.split_once('/').unwrap_or((driver, name));
        domains.entry(domain).or_default().insert(name, value);
    }
    json!(domains)
}

/// An attribute: a map of its type to its value, or to a list of them.
fn attribute(typed: &serde_json::Value) -> Value {
    let Some((kind, value)) = typed.as_object().and_then(|typed| typed.iter().next()) else { return Value::Null };
    match value {
        serde_json::Value::Bool(value) => Value::Bool(*value),
        serde_json::Value::Number(value) => value.as_i64().map_or(Value::Null, Value::Int),
        serde_json::Value::String(text) if kind.starts_with("version") => call("semver(text)", text),
        serde_json::Value::String(text) => Value::from(text.as_str()),
        serde_json::Value::Array(list) => {
            let one = |one: &serde_json::Value| attribute(&json!({ kind: one }));
            Value::from(list.iter().map(one).collect::<Vec<Value>>())
        }
        _ => Value::Null,
    }
}

/// The library's own value of a text.
fn call(expression: &'static str, text: &str) -> Value {
    let resolve = |parsed: &Expression| {
        FUNCTIONS.with(|functions| {
            let mut context = functions.new_inner_scope();
            context.add_variable_from_value("text", text);
            Value::resolve(parsed, &context).unwrap_or(Value::Null)
        })
    };
    OF_TEXT.with(|expressions| expressions.get(expression).map_or(Value::Null, resolve))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device() -> Described {
        let device = json!({
            "name": "gpu-0",
            "attributes": {
                "type": { "string": "mig" }, "index": { "int": 3 }, "example.com/nvlink": { "bool": true },
                "driverVersion": { "version": "550.54.15" },
            },
            "capacity": { "memory": { "value": "40Gi" } },
        });
        Described::of("gpu.nvidia.com", &serde_json::from_value(device).unwrap())
    }

    #[test]
    fn a_selector_sees_what_the_driver_says_of_a_device() {
        for (text, expected) in [
            ("device.driver == 'gpu.nvidia.com'", true),
            ("device.driver == 'nic.example.com'", false),
            ("device.driver == \"gpu.nvidia.com\" && device.attributes[\"gpu.nvidia.com\"].type == 'mig'", true),
            ("device.attributes['gpu.nvidia.com'].index >= 2", true),
            ("device.attributes['gpu.nvidia.com'].index == 3", true),
            ("device.attributes['example.com'].nvlink", true),
            ("'index' in device.attributes['gpu.nvidia.com']", true),
            ("'index' in device.attributes['other.example.com']", false),
            ("has(device.attributes['other.example.com'].index) || true", true),
            ("device.capacity['gpu.nvidia.com'].memory.compareTo(quantity('20Gi')) >= 0", true),
            ("device.capacity['gpu.nvidia.com'].memory.isLessThan(quantity('20Gi'))", false),
            ("device.attributes['gpu.nvidia.com'].driverVersion.compareTo(semver('550.0.0')) > 0", true),
            ("device.attributes['gpu.nvidia.com'].missing == 'x'", false),
            ("device.attributes['gpu.nvidia.com'].type.matches('^mi')", true),
            ("device.allowMultipleAllocations", false),
        ] {
            assert_eq!(Selector::parse(text).unwrap().matches(&device()), expected, "{text}");
        }
    }

    #[test]
    fn an_expression_that_is_none_is_refused_with_its_text() {
        for text in ["device.", "((", &"x".repeat(11_000)] {
            let refused = Selector::parse(text).unwrap_err();
            assert!(refused.contains("is not read as CEL") || refused.contains("at most 10240"), "{refused}");
        }
    }
}
