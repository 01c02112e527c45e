//! Fields of requests, out of the service's OpenAPI document.

use serde_json::{Map, Value, json};

/// Stands in a body for what is put there as text.
pub const MARK: &str = "@poison@";
const DEEPEST: usize = 7;

#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    Integer,
    Number,
    Text,
}

/// A place in a request that takes a number or a text.
#[derive(Clone, Debug)]
pub struct Field {
    pub method: &'static str,
    pub path: String,
    /// Name of the query parameter, or of the last key.
    pub name: String,
    pub kind: Kind,
    pub minimum: Option<f64>,
    pub maximum: Option<f64>,
    /// The body, [`MARK`] in the place of the field.
    pub body: Option<Value>,
    /// Parameters of the query that are required, and this one.
    pub query: Vec<(String, String)>,
}

pub struct Document {
    root: Value,
}

impl Document {
    pub fn new(root: Value) -> Self {
        Self { root }
    }

    /// Every field of every operation.
    pub fn fields(&self) -> Vec<Field> {
        let mut fields = Vec::new();
        for (path, operations) in self.root["paths"].as_object().into_iter().flatten() {
            for method in ["GET", "POST", "PUT", "DELETE", "PATCH"] {
                let operation = &operations[method.to_ascii_lowercase()];
                // Streams do not end.
                let is_stream = path.ends_with("/stream") || path.ends_with("/events");
                if operation.is_object() && !is_stream {
                    self.of_operation(method, path, operation, &mut fields);
                }
            }
        }
        fields
    }

    fn of_operation(&self, method: &'static str, path: &str, operation: &Value, fields: &mut Vec<Field>) {
        let schema = self.resolve(&operation["requestBody"]["content"]["application/json"]["schema"]);
        let parameters: Vec<&Value> = operation["parameters"].as_array().into_iter().flatten().collect();
        let required: Vec<(String, String)> = parameters
            .iter()
            .filter(|one| one["in"] == "query" && one["required"] == json!(true))
            .filter_map(|one| Some((one["name"].as_str()?.to_owned(), text_of(&value_of(one["name"].as_str()?)))))
            .collect();
        let query_fields = parameters.iter().filter(|one| one["in"] == "query");
        for parameter in query_fields {
            let (name, schema) = (parameter["name"].as_str().unwrap_or_default(), self.resolve(&parameter["schema"]));
            let Some(kind) = kind(schema) else { continue };
            let mut query = required.clone();
            query.retain(|(known, _)| known != name);
            query.push((name.to_owned(), MARK.to_owned()));
            let body = schema_is_there(operation).then(|| self.example(self.body(operation), "", &[], 0));
            fields.push(field(method, path, name, (kind, schema), (body, query)));
        }
        let mut found = Vec::new();
        self.walk(schema, &mut Vec::new(), &mut found, 0);
        for (steps, kind, leaf) in found {
            let body = self.example(schema, "", &steps, 0);
            let name = steps.iter().rev().find(|step| *step != "[]").cloned().unwrap_or_default();
            fields.push(field(method, path, &name, (kind, leaf), (Some(body), required.clone())));
        }
    }

    fn body<'a>(&'a self, operation: &'a Value) -> &'a Value {
        self.resolve(&operation["requestBody"]["content"]["application/json"]["schema"])
    }

    /// The schema behind references, of alternatives the first that is not null.
    fn resolve<'a>(&'a self, schema: &'a Value) -> &'a Value {
        let mut schema = schema;
        for _ in 0..DEEPEST {
            if let Some(reference) = schema["$ref"].as_str() {
                schema = self.root.pointer(reference.trim_start_matches('#')).unwrap_or(&Value::Null);
            } else if let Some(all) = ["oneOf", "anyOf", "allOf"].iter().find_map(|key| schema[*key].as_array()) {
                schema = all.iter().find(|one| one["type"] != "null").unwrap_or(&Value::Null);
            } else {
                break;
            }
        }
        schema
    }

    fn walk<'a>(
        &'a self,
        schema: &'a Value,
        steps: &mut Vec<String>,
        found: &mut Vec<(Vec<String>, Kind, &'a Value)>,
        depth: usize,
    ) {
        let schema = self.resolve(schema);
        if depth > DEEPEST {
            return;
        }
        if let Some(kind) = kind(schema) {
            found.push((steps.clone(), kind, schema));
        }
        for (name, inner) in schema["properties"].as_object().into_iter().flatten() {
            steps.push(name.clone());
            self.walk(inner, steps, found, depth + 1);
            steps.pop();
        }
        if schema["items"].is_object() {
            steps.push("[]".to_owned());
            self.walk(&schema["items"], steps, found, depth + 1);
            steps.pop();
        }
    }

    /// A body with what is required, and [`MARK`] where `steps` lead.
    fn example(&self, schema: &Value, name: &str, steps: &[String], depth: usize) -> Value {
        let schema = self.resolve(schema);
        let is_leaf = !schema["properties"].is_object() && !schema["items"].is_object();
        match schema["enum"].as_array().and_then(|all| all.first()) {
            Some(first) => first.clone(),
            None if is_leaf && depth > 0 => value_of(name),
            None => self.whole(schema, name, steps, depth),
        }
    }

    fn whole(&self, schema: &Value, name: &str, steps: &[String], depth: usize) -> Value {
        let marked = |inner: &Value, name: &str| match steps {
            [_] => json!(MARK),
            [_, rest @ ..] => self.example(inner, name, rest, depth + 1),
            [] => self.example(inner, name, &[], depth + 1),
        };
        if depth > DEEPEST {
            return Value::Null;
        }
        if schema["items"].is_object() {
            return json!([marked(&schema["items"], name)]);
        }
        let required: Vec<&str> =
            schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let mut object = Map::new();
        for (key, inner) in schema["properties"].as_object().into_iter().flatten() {
            if steps.first() == Some(key) {
                object.insert(key.clone(), marked(inner, key));
            } else if required.contains(&key.as_str()) {
                object.insert(key.clone(), self.example(inner, key, &[], depth + 1));
            }
        }
        Value::Object(object)
    }
}

fn schema_is_there(operation: &Value) -> bool {
    operation["requestBody"].is_object()
}

fn field(
    method: &'static str,
    path: &str,
    name: &str,
    (kind, schema): (Kind, &Value),
    (body, query): (Option<Value>, Vec<(String, String)>),
) -> Field {
    let bound = |inclusive: &str, exclusive: &str| schema[inclusive].as_f64().or(schema[exclusive].as_f64());
    let minimum = bound("minimum", "exclusiveMinimum");
    let maximum = bound("maximum", "exclusiveMaximum");
    Field { method, path: path.to_owned(), name: name.to_owned(), kind, minimum, maximum, body, query }
}

fn kind(schema: &Value) -> Option<Kind> {
    let is = |wanted: &str| {
        let all = schema["type"].as_array().map_or(std::slice::from_ref(&schema["type"]), Vec::as_slice);
        all.iter().any(|one| one == wanted)
    };
    if is("integer") {
        Some(Kind::Integer)
    } else if is("number") {
        Some(Kind::Number)
    } else {
        (is("string") && schema["enum"].is_null()).then_some(Kind::Text)
    }
}

/// A value that suits the name of a field.
fn value_of(name: &str) -> Value {
    use crate::service::{CLUSTER, GPU_MODEL, hour_ago, rfc3339, unix_s};
    match name {
        "cluster" => json!(CLUSTER),
        "gpu_model" => json!(GPU_MODEL),
        "id" | "event_id" => json!("@id@"),
        "organization" => json!("vision"),
        "class" => json!("hp"),
        "hour" => json!(hour_ago(2)),
        "observed_at" | "at" | "time" => json!(rfc3339(unix_s() - 5)),
        "from" => json!(rfc3339(unix_s() + 3600)),
        "to" | "until" => json!(rfc3339(unix_s() + 7200)),
        "reason" => json!("a check from outside"),
        "kind" => json!("reserve"),
        "cause" => json!("drained"),
        name if name.ends_with("_at") => json!(rfc3339(unix_s() - 5)),
        name if name.ends_with("gpus") || name.ends_with("_s") || name.ends_with("hours") => json!(1),
        _ => json!(1),
    }
}

fn text_of(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
