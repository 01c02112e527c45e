//! The state afterwards: whole, audited, and the same after a restart.

use super::{BATCH_HOURS, BATCH_OUTCOMES, Book, Known};
use crate::service::{CLUSTER, POOL, POOL_ID, Service, rfc3339, unix_s};
use crate::{Outcome, report::Report};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// The service's answer to a page of the audit has so many entries at most.
const PAGE: usize = 10_000;
const PAGE_S: u64 = 10;

/// The state by the answers of the service.
pub struct State {
    nodes: BTreeSet<String>,
    /// Nodes of the snapshot that have not gone.
    placed_on: BTreeSet<String>,
    /// Task → nodes that it runs on.
    running: BTreeMap<String, BTreeSet<String>>,
    waiting: BTreeSet<String>,
    version: i64,
    outcomes: u64,
    overrides: Vec<Value>,
    /// Organization → hours that have a value.
    demand: BTreeMap<String, usize>,
}

fn list<'a>(value: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    value[key].as_array().into_iter().flatten()
}

fn text(value: &Value, key: &str) -> String {
    value[key].as_str().unwrap_or_default().to_owned()
}

impl State {
    pub fn read(service: &Service) -> Outcome<Self> {
        let mut client = service.client(60);
        let nodes = client.get_json(&format!("/v1/nodes?cluster={CLUSTER}"))?;
        let snapshot = client.get_json(&format!("/v1/pools/{POOL_ID}/snapshot"))?;
        let settings = client.get_json(&format!("/v1/pools/{POOL_ID}/settings"))?;
        let promises = client.get_json(&format!("/v1/promises?{POOL}"))?;
        let overrides = client.get_json(&format!("/v1/overrides?{POOL}&past=true"))?;
        let demand = client.get_json(&format!("/v1/demand?{POOL}&hours=24"))?;
        let runs = list(&snapshot, "running").map(|run| {
            let places = list(run, "places").map(|place| text(place, "node")).collect();
            (text(&run["request"], "task"), places)
        });
        let hours =
            |one: &Value| (text(one, "organization"), list(one, "demand_gpus").filter(|at| at.is_number()).count());
        Ok(Self {
            nodes: list(&nodes, "nodes").map(|node| text(node, "id")).collect(),
            placed_on: list(&snapshot, "nodes")
                .filter(|node| node["is_gone"] != true)
                .map(|node| text(node, "node"))
                .collect(),
            running: runs.collect(),
            waiting: list(&snapshot, "waiting").map(|one| text(&one["request"], "task")).collect(),
            version: settings["version"].as_i64().unwrap_or(0),
            outcomes: promises["by_kind"]["kept"].as_u64().unwrap_or(0),
            overrides: list(&overrides, "overrides").cloned().collect(),
            demand: list(&demand, "organizations").map(hours).collect(),
        })
    }
}

/// Successful writes, as the audit has them.
pub struct Audit {
    entries: BTreeMap<u64, Value>,
}

impl Audit {
    /// Those after an entry, none of which is older than `began_unix_s`.
    pub fn read(service: &Service, began_unix_s: u64, after: u64) -> Outcome<Self> {
        let (mut entries, mut from) = (BTreeMap::new(), began_unix_s.saturating_sub(5));
        let mut client = service.client(60);
        let until = unix_s() + 2;
        let mut step_s = PAGE_S;
        while from < until {
            let to = from + step_s + 1;
            let target = format!("/v1/audit?limit={PAGE}&from={}&to={}", rfc3339(from), rfc3339(to));
            let page = client.get_json(&target)?;
            let page: Vec<&Value> = list(&page, "entries").collect();
            if page.len() >= PAGE && step_s > 1 {
                step_s = 1;
                continue;
            }
            for entry in page {
                let is_success = entry["status"].as_u64().is_none_or(|status| (200..300).contains(&status));
                if let (true, Some(id)) = (is_success, entry["id"].as_u64().filter(|id| *id > after)) {
                    entries.insert(id, entry.clone());
                }
            }
            from += step_s;
        }
        Ok(Self { entries })
    }

    /// Number of the newest entry.
    pub fn newest(service: &Service) -> Outcome<u64> {
        let page = service.client(30).get_json("/v1/audit?limit=1")?;
        Ok(page["entries"][0]["id"].as_u64().unwrap_or(0))
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    fn of<'a>(&'a self, action: &'a str) -> impl Iterator<Item = &'a Value> {
        self.entries.values().filter(move |entry| entry["action"] == action)
    }

    /// Names in the paths of an action: those behind `/v1/nodes/`, say.
    fn named(&self, action: &str, before: &str) -> BTreeSet<String> {
        let name = |entry: &Value| {
            let rest = entry["target"].as_str()?.strip_prefix(before)?.to_owned();
            Some(rest.split(['/', '?']).next().unwrap_or_default().to_owned())
        };
        self.of(action).filter_map(name).collect()
    }
}

/// Nothing is half done.
pub fn is_whole(state: &State, report: &Report) {
    for (task, nodes) in &state.running {
        for node in nodes.difference(&state.nodes) {
            report.violation("no task runs on a node that was deleted", format!("{task} on {node}"));
        }
    }
    for node in state.nodes.symmetric_difference(&state.placed_on) {
        let here = if state.nodes.contains(node) { "listed and not placed on" } else { "placed on and not listed" };
        report.violation("a node is listed and placed on, or neither", format!("{node} is {here}"));
    }
    for task in state.waiting.iter().filter(|task| state.running.contains_key(*task)) {
        report.violation("a task is there once", task.clone());
    }
    let is_batch = |name: &&String| name.starts_with('w');
    for (organization, hours) in state.demand.iter().filter(|(name, _)| is_batch(name)) {
        if *hours != BATCH_HOURS as usize {
            let example = format!("{organization}: {hours} of {BATCH_HOURS} rows");
            report.violation("a batch of usage is there whole or not at all", example);
        }
    }
    if !state.outcomes.is_multiple_of(BATCH_OUTCOMES as u64) {
        let example = format!("{} outcomes of batches of {BATCH_OUTCOMES}", state.outcomes);
        report.violation("a batch of outcomes is there whole or not at all", example);
    }
}

/// Every write is audited, every audited write is stored, and every acknowledged write is both.
pub fn is_audited(
    service: &Service,
    books: &[Book],
    (before, after): (&State, &State),
    audit: &Audit,
    report: &Report,
) -> Outcome<()> {
    tasks(service, books, audit, report)?;
    nodes(books, after, audit, report);
    let batches = books.iter().flat_map(|book| &book.batches);
    for (organization, known) in batches {
        let is_there = after.demand.contains_key(organization);
        if *known == Known::Taken && !is_there {
            report.violation("what was acknowledged is there", format!("usage of {organization}"));
        }
    }
    let written_batches = after.demand.keys().filter(|name| name.starts_with('w')).count();
    count("POST /v1/usage", written_batches, audit, report);
    count("POST /v1/outcomes", after.outcomes as usize / BATCH_OUTCOMES, audit, report);
    count("PUT /v1/pools/{id}/settings", (after.version - before.version) as usize, audit, report);
    count("POST /v1/overrides", after.overrides.len(), audit, report);
    let withdrawn = after.overrides.iter().filter(|one| !one["withdrawn_at"].is_null()).count();
    count("DELETE /v1/overrides/{id}", withdrawn, audit, report);
    Ok(())
}

/// Each write was sent once, so that there are as many as the audit has.
fn count(action: &str, written: usize, audit: &Audit, report: &Report) {
    let audited = audit.of(action).count();
    report.add(&format!("written {action}"), written as u64);
    report.add(&format!("audited {action}"), audited as u64);
    let example = format!("{action}: {written} written, {audited} audited");
    if written > audited {
        report.violation("what is written is audited", example);
    } else if audited > written {
        report.violation("what is audited is written", example);
    }
}

fn tasks(service: &Service, books: &[Book], audit: &Audit, report: &Report) -> Outcome<()> {
    let mut client = service.client(30);
    let finished = audit.named("POST /v1/tasks/{id}/finish", "/v1/tasks/");
    let deleted = audit.named("DELETE /v1/tasks/{id}", "/v1/tasks/");
    let submitted: String = audit.of("POST /v1/tasks").map(|entry| entry["detail"].to_string()).collect();
    // An audit that keeps what was asked names the task; otherwise they are counted.
    let has_names = audit.of("POST /v1/tasks").any(|entry| !entry["detail"].is_null());
    let mut written = 0;
    for (id, book) in books.iter().flat_map(|book| &book.tasks) {
        let answer = client.get(&format!("/v1/tasks/{id}?{POOL}"))?;
        if !answer.is_success() {
            if book.submitted == Known::Taken {
                report.violation("what was acknowledged is there", format!("{id}: {}", answer.summary()));
            }
            continue;
        }
        written += 1;
        if has_names && !submitted.contains(&format!("\"{id}\"")) {
            report.violation("what is written is audited", format!("POST /v1/tasks of {id} is not audited"));
        }
        let status = text(&answer.json(), "status");
        for (end, audited) in [("finished", &finished), ("deleted", &deleted)] {
            if status == end && !audited.contains(id) {
                report.violation("what is written is audited", format!("{id} is {end} and no entry says so"));
            } else if status != end && audited.contains(id) {
                report.violation("what is audited is written", format!("{id} is {status}, and audited as {end}"));
            }
        }
        if book.end.is_some_and(|(_, known)| known == Known::Taken) && ["running", "waiting"].contains(&&*status) {
            report.violation("what was acknowledged is there", format!("the end of {id}, which is {status}"));
        }
    }
    count("POST /v1/tasks", written, audit, report);
    Ok(())
}

fn nodes(books: &[Book], after: &State, audit: &Audit, report: &Report) {
    let put = audit.named("PUT /v1/nodes/{id}", "/v1/nodes/");
    let deleted = audit.named("DELETE /v1/nodes/{id}", "/v1/nodes/");
    for (id, book) in books.iter().flat_map(|book| &book.nodes) {
        let (is_there, was_there) = (after.nodes.contains(id), book.put == Known::Taken);
        if is_there && !put.contains(id) {
            report.violation("what is written is audited", format!("node {id} is there and no entry says so"));
        }
        if is_there && deleted.contains(id) {
            report.violation("what is audited is written", format!("node {id} is there and audited as deleted"));
        }
        if !is_there && !deleted.contains(id) && (was_there || put.contains(id)) {
            let (rule, example) = match (book.deleted, was_there) {
                (Some(_), _) => ("what is written is audited", format!("node {id} is gone and no entry says so")),
                (None, true) => ("what was acknowledged is there", format!("node {id}")),
                (None, false) => ("what is audited is written", format!("node {id} is audited and not there")),
            };
            report.violation(rule, example);
        }
        if is_there && book.deleted == Some(Known::Taken) {
            report.violation("what was acknowledged is there", format!("the deletion of node {id}"));
        }
    }
}

/// A restart answers as the service did before.
pub fn survives(before: &State, after: &State, report: &Report) {
    let rule = "a restart finds the same";
    let compare = |what: &str, left: &BTreeSet<String>, right: &BTreeSet<String>| {
        for name in left.symmetric_difference(right).take(3) {
            report.violation(rule, format!("{what} {name} is there before or after it"));
        }
    };
    compare("node", &before.nodes, &after.nodes);
    compare("node of the snapshot", &before.placed_on, &after.placed_on);
    let tasks = |state: &State| state.running.keys().chain(&state.waiting).cloned().collect();
    compare("task", &tasks(before), &tasks(after));
    if (before.version, before.outcomes) != (after.version, after.outcomes) {
        report.violation(rule, "settings or outcomes are others".to_owned());
    }
}
