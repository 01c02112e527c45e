//! Bodies of requests, as the service reads them: JSON, then the types inside.

use crate::{chosen, is_one_line};
use placement::pool::Request;
use quota_service::settings::ServedSettings;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::fmt::Debug;
use vocab::{HorizonHours, MilliGpus, NodeId, Outcome, PoolId, UnixSeconds, UsageRow};
use wire::{
    FieldFault, NodeBody, OutcomeBatch, OutcomeBody, OverrideRequest, PolicyBody, PoolStateBody, RequestRecord,
    SettingsBody, SpeedBody, TaskBody, UsageBatch, UsageRowBody, from_json,
};

const NOW: UnixSeconds = UnixSeconds::new(1_700_000_000);

/// The first line names the body.
pub fn bodies(data: &[u8]) {
    let Some((kind, body)) = chosen(data) else { return };
    match kind {
        "task" => task(body),
        "usage" => usage(body),
        "outcomes" => outcomes(body),
        "node" => node(body),
        "state" => state(body),
        "settings" => settings(body),
        "policy" => policy(body),
        "speed" => speed(body),
        "override" => asked_for(body),
        _ => {}
    }
}

/// A body and the document that it was read from; it is written as what is read as the same.
fn read<T: DeserializeOwned + Serialize + PartialEq + Debug>(body: &[u8]) -> Option<(T, Value)> {
    let read: T = from_json(std::str::from_utf8(body).ok()?).ok()?;
    let text = serde_json::to_string(&read).expect("a body is strings and finite numbers");
    let again: T = serde_json::from_str(&text).expect("what is written is read");
    assert_eq!(again, read);
    Some((read, serde_json::from_slice(body).ok()?))
}

/// A fault names a field that is there, or is missing where it should be.
fn names_a_place(document: &Value, FieldFault { pointer, detail }: &FieldFault) {
    is_one_line(detail);
    assert!(leads_somewhere(document, pointer), "{pointer:?} ({detail}) leads to no value of {document}");
}

fn leads_somewhere(document: &Value, pointer: &str) -> bool {
    let mut at = document;
    let mut keys = pointer.split('/').skip(1).peekable();
    while let Some(key) = keys.next() {
        let inside = match at {
            Value::Object(fields) => fields.get(&key.replace("~1", "/").replace("~0", "~")),
            Value::Array(items) => key.parse::<usize>().ok().and_then(|place| items.get(place)),
            _ => None,
        };
        match inside {
            Some(inside) => at = inside,
            None => return at.is_object() && keys.peek().is_none(),
        }
    }
    true
}

fn task(body: &[u8]) {
    let Some((body, document)) = read::<TaskBody>(body) else { return };
    match body.parse(NOW) {
        Err(fault) => names_a_place(&document, &fault),
        Ok((pool, request)) => {
            assert_eq!(pool.to_string(), format!("{}:{}", body.cluster, body.gpu_model));
            assert!(request.gang.pods > 0);
            let record = RequestRecord::from(&request);
            assert_eq!(Request::try_from(&record), Ok(request), "as the journal keeps it");
        }
    }
}

fn usage(body: &[u8]) {
    let Some((batch, document)) = read::<UsageBatch>(body) else { return };
    let rows: Vec<UsageRow> = match batch.try_into() {
        Err(faults) => {
            let faults: Vec<FieldFault> = faults;
            assert!(!faults.is_empty());
            return faults.iter().for_each(|fault| names_a_place(&document, fault));
        }
        Ok(rows) => rows,
    };
    let body = |row: &UsageRow| UsageRowBody {
        hour: row.hour.to_string(),
        cluster: row.series.pool.cluster.to_string(),
        gpu_model: row.series.pool.gpu_model.to_string(),
        organization: row.series.organization.to_string(),
        demand_gpus: row.demand.as_gpus(),
        demand_at_end_gpus: row.at_end.map(vocab::MilliGpus::as_gpus),
    };
    assert_eq!(UsageBatch { rows: rows.iter().map(body).collect() }.try_into(), Ok(rows));
}

fn outcomes(body: &[u8]) {
    let Some((batch, document)) = read::<OutcomeBatch>(body) else { return };
    let outcomes: Vec<Outcome> = match batch.try_into() {
        Err(faults) => {
            let faults: Vec<FieldFault> = faults;
            assert!(!faults.is_empty());
            return faults.iter().for_each(|fault| names_a_place(&document, fault));
        }
        Ok(outcomes) => outcomes,
    };
    let body = |outcome: &Outcome| OutcomeBody {
        event_id: outcome.event_id.to_string(),
        cluster: outcome.pool.cluster.to_string(),
        gpu_model: outcome.pool.gpu_model.to_string(),
        guarantee_hours: u64::from(outcome.guarantee_hours.get()),
        kind: outcome.kind.into(),
        ended_at: outcome.ended_at.to_string(),
        began_at: outcome.began_at.as_ref().map(ToString::to_string),
        gpus: outcome.gpus.map(MilliGpus::as_gpus),
        task: outcome.task.as_ref().map(ToString::to_string),
        node: outcome.node.as_ref().map(ToString::to_string),
    };
    assert_eq!(OutcomeBatch { outcomes: outcomes.iter().map(body).collect() }.try_into(), Ok(outcomes));
}

fn node(body: &[u8]) {
    let Some((body, document)) = read::<NodeBody>(body) else { return };
    let id = NodeId::parse(body.id.as_deref().unwrap_or("n1")).unwrap_or_else(|_| NodeId::parse("n1").expect("a name"));
    match body.parse(id.clone()) {
        Err(fault) => names_a_place(&document, &fault),
        Ok(node) => {
            if let Some(topology) = &node.topology {
                assert_eq!(topology.gpus(), node.gpus);
                assert_eq!(vocab::Topology::parse(&topology.to_string()).as_ref(), Ok(&**topology), "as it is stored");
            }
            assert_eq!(NodeBody::from(&node).parse(id), Ok(node));
        }
    }
}

fn state(body: &[u8]) {
    let Some((body, document)) = read::<PoolStateBody>(body) else { return };
    let pool = PoolId::parse("earth:V100").expect("a pool");
    match body.parse(pool.clone()) {
        Err(fault) => names_a_place(&document, &fault),
        Ok(state) => {
            let (reported, taken) = (body.spot_gpus_by_guarantee_hours.len(), state.spot_by_guarantee.len());
            assert_eq!(reported, taken, "nothing that was reported is lost");
            assert!(state.idle <= state.capacity && state.spot(HorizonHours::ONE) <= state.capacity);
            assert_eq!(PoolStateBody::from(&state).parse(pool), Ok(state));
        }
    }
}

fn asked_for(body: &[u8]) {
    let Some((body, document)) = read::<OverrideRequest>(body) else { return };
    match body.parse() {
        Err(fault) => names_a_place(&document, &fault),
        Ok((what, reason)) => {
            assert!(what.from < what.to && !what.gpus.is_zero());
            is_one_line(&reason);
            let again = OverrideRequest {
                gpus: what.gpus.as_gpus(),
                from: what.from.to_string(),
                to: what.to.to_string(),
                reason: reason.clone(),
                ..body
            };
            assert_eq!(again.parse(), Ok((what, reason)), "as it is answered");
        }
    }
}

fn settings(body: &[u8]) {
    let Some((body, document)) = read::<SettingsBody>(body) else { return };
    match ServedSettings::parse(&body, None) {
        Err(fault) => names_a_place(&document, &fault),
        Ok(settings) => {
            let stored = serde_json::to_string(&settings.body()).expect("settings are strings and finite numbers");
            let stored: SettingsBody = serde_json::from_str(&stored).expect("what is written is read");
            assert_eq!(ServedSettings::parse(&stored, None).as_ref(), Ok(&settings), "as they are stored");
            // The same bodies in the loop and the engine.
            let _ = (settings.placement.policy(), settings.placement.rules());
        }
    }
}

fn policy(body: &[u8]) {
    let Some((body, document)) = read::<PolicyBody>(body) else { return };
    match body.parse("") {
        Err(fault) => names_a_place(&document, &fault),
        Ok(policy) => assert_eq!(policy.check(), Ok(()), "what is accepted goes together"),
    }
}

fn speed(body: &[u8]) {
    let Some((body, document)) = read::<SpeedBody>(body) else { return };
    match body.parse() {
        Err(fault) => names_a_place(&document, &fault),
        Ok((pods, thousandths)) => {
            let again = SpeedBody { pods, speed: thousandths as f64 / 1_000.0 };
            assert_eq!(again.parse(), Ok((pods, thousandths)));
        }
    }
}
