//! The server through plain HTTP and through the client that the project uses.

mod apply;
mod client;
mod evict;
mod fault;
mod list;
mod plain;
mod strict;

use crate::FakeKubernetes;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Status, head and JSON of one request over a connection of its own.
async fn ask(fake: &FakeKubernetes, method: &str, path: &str, content_type: &str, body: &str) -> (u16, String, Value) {
    let address = fake.url.trim_start_matches("http://");
    let mut stream = TcpStream::connect(address).await.unwrap();
    let token = &fake.token;
    let length = body.len();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {token}\r\nuser-agent: test/1\r\n\
         content-type: {content_type}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answered = String::new();
    stream.read_to_string(&mut answered).await.unwrap();
    let (head, body) = answered.split_once("\r\n\r\n").unwrap_or_default();
    let status = head.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or(0);
    (status, head.to_owned(), serde_json::from_str(body).unwrap_or_default())
}

async fn get(fake: &FakeKubernetes, path: &str) -> (u16, Value) {
    let (status, _, reply) = ask(fake, "GET", path, "", "").await;
    (status, reply)
}

async fn post(fake: &FakeKubernetes, path: &str, body: &Value) -> (u16, Value) {
    let (status, _, reply) = ask(fake, "POST", path, "application/json", &body.to_string()).await;
    (status, reply)
}

async fn patch(fake: &FakeKubernetes, path: &str, content_type: &str, body: &Value) -> (u16, Value) {
    let (status, _, reply) = ask(fake, "PATCH", path, content_type, &body.to_string()).await;
    (status, reply)
}

const APPLY: &str = "application/apply-patch+yaml";
const MERGE: &str = "application/merge-patch+json";
