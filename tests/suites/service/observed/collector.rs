//! A collector of traces that keeps what it is sent.

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{KeyValue, any_value::Value};
use prost::Message;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// A span as it arrived.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Received {
    pub name: String,
    pub trace: String,
    pub id: String,
    /// Empty for the first of a trace.
    pub parent: String,
    pub attributes: BTreeMap<String, String>,
    /// Of the service.
    pub resource: BTreeMap<String, String>,
}

/// Listens for as long as the test runs.
pub struct Collector {
    pub endpoint: String,
    received: Arc<Mutex<Vec<Received>>>,
}

impl Collector {
    pub fn start() -> Self {
        Self::at("127.0.0.1:0")
    }

    pub fn at(address: &str) -> Self {
        let listener = TcpListener::bind(address).unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let received = Arc::<Mutex<Vec<Received>>>::default();
        let kept = received.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let spans = answered(stream);
                kept.lock().unwrap().extend(spans);
            }
        });
        Self { endpoint, received }
    }

    pub fn spans(&self) -> Vec<Received> {
        self.received.lock().unwrap().clone()
    }

    /// The spans of a name.
    pub fn named(&self, name: &str) -> Vec<Received> {
        self.spans().into_iter().filter(|span| span.name == name).collect()
    }
}

/// Reads one request, and takes it.
fn answered(mut stream: TcpStream) -> Vec<Received> {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let (mut line, mut length) = (String::new(), 0);
    reader.read_line(&mut line).unwrap();
    assert_eq!(line.trim_end(), "POST /v1/traces HTTP/1.1");
    loop {
        line.clear();
        reader.read_line(&mut line).unwrap();
        if line.trim().is_empty() {
            break;
        }
        let (name, value) = line.split_once(':').unwrap();
        match name.to_lowercase().as_str() {
            "content-length" => length = value.trim().parse().unwrap(),
            "content-type" => assert_eq!(value.trim(), "application/x-protobuf"),
            _ => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n").unwrap();
    spans(&ExportTraceServiceRequest::decode(&body[..]).unwrap())
}

fn spans(request: &ExportTraceServiceRequest) -> Vec<Received> {
    let mut received = Vec::new();
    for of_resource in &request.resource_spans {
        let resource = texts(&of_resource.resource.as_ref().unwrap().attributes);
        for span in of_resource.scope_spans.iter().flat_map(|scope| &scope.spans) {
            received.push(Received {
                name: span.name.clone(),
                trace: hex::encode(&span.trace_id),
                id: hex::encode(&span.span_id),
                parent: hex::encode(&span.parent_span_id),
                attributes: texts(&span.attributes),
                resource: resource.clone(),
            });
        }
    }
    received
}

fn texts(attributes: &[KeyValue]) -> BTreeMap<String, String> {
    let text = |value: &Value| match value {
        Value::StringValue(text) => text.clone(),
        Value::IntValue(number) => number.to_string(),
        other => format!("{other:?}"),
    };
    let value = |one: &KeyValue| one.value.as_ref().and_then(|value| value.value.as_ref()).map(text);
    attributes.iter().map(|one| (one.key.clone(), value(one).unwrap_or_default())).collect()
}
