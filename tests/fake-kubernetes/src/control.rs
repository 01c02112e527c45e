//! Paths under `/fake/`: what a test in this process does by calls, a test of another process does by HTTP.

use crate::access::Rule;
use crate::ask::words;
use crate::faults::Fault;
use crate::server::Server;
use crate::{bulk, crds, evict, fake};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

fn read<T: DeserializeOwned>(body: &str) -> Result<T, (u16, Value)> {
    serde_json::from_str(body).map_err(|error| (400, json!({ "error": error.to_string() })))
}

/// Status and JSON of the answer.
pub fn answer(server: &Arc<Server>, method: &str, path: &str, query: &str, body: &str) -> (u16, Value) {
    let result = match method {
        "GET" => state_of(server, path),
        "POST" => done(server, path, query, body),
        "DELETE" => undone(server, path),
        _ => Err((405, json!({ "error": "GET, POST or DELETE" }))),
    };
    server.tell();
    result.map_or_else(|refused| refused, |answer| (200, answer))
}

fn unknown() -> (u16, Value) {
    (404, json!({ "error": "no such path under /fake/" }))
}

fn state_of(server: &Server, path: &str) -> Result<Value, (u16, Value)> {
    match path {
        "requests" => Ok(json!(server.log().requests)),
        "faults" => Ok(json!(*server.faults())),
        _ => Err(unknown()),
    }
}

fn undone(server: &Server, path: &str) -> Result<Value, (u16, Value)> {
    match path {
        "requests" => server.log().clear(),
        "faults" => server.faults().clear(),
        _ => return Err(unknown()),
    }
    Ok(Value::Null)
}

fn done(server: &Arc<Server>, path: &str, query: &str, body: &str) -> Result<Value, (u16, Value)> {
    let words = words(query);
    let token = words.get("token").cloned().unwrap_or_default();
    match path {
        "faults" => server.faults().push(read::<Fault>(body)?),
        "compact" => server.state().compact(),
        "close-watches" => server.closed.send_modify(|count| *count += 1),
        "down" => drop(server.down.send_replace(true)),
        "up" => drop(server.down.send_replace(false)),
        "pause" => drop(server.paused.send_replace(true)),
        "resume" => drop(server.paused.send_replace(false)),
        "rules" => server.access().allow_only(&token, read::<Option<Vec<Rule>>>(body)?),
        "deny" => server.access().deny(&token, read(body)?),
        "grace-ms" => server.manner().grace = read::<Option<u64>>(body)?.map(Duration::from_millis),
        "finish-deletions" => return Ok(json!(evict::finish_all(&mut server.state()))),
        "kueue" => fake::put_all(server, crds::kueue()),
        "dynamic-quota" => {
            let flavors = words.get("flavors").map_or("orchestratedFlavors", String::as_str);
            fake::put_all(server, crds::dynamic_quota(flavors));
        }
        "objects" => fake::put_all(server, read::<Vec<Value>>(body)?),
        "cluster" => return Ok(json!(bulk::load(server, &read(body)?))),
        _ => return Err(unknown()),
    }
    Ok(Value::Null)
}
