//! HTTP/1.1 over a TCP stream, no more of it than the checks need.

use crate::Outcome;
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// A response that was read to its last byte.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or(Value::Null)
    }

    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// Status and the beginning of the body, for a report.
    pub fn summary(&self) -> String {
        let text = String::from_utf8_lossy(&self.body);
        let start: String = text.chars().take(300).collect();
        format!("{} {start}", self.status)
    }
}

/// A request as it crosses the wire.
#[derive(Clone, Debug)]
pub struct Request {
    pub method: &'static str,
    /// Path and query, percent-encoded.
    pub target: String,
    pub body: Option<Vec<u8>>,
}

impl Request {
    pub fn new(method: &'static str, target: impl Into<String>) -> Self {
        Self { method, target: target.into(), body: None }
    }

    pub fn with_json(method: &'static str, target: impl Into<String>, body: &Value) -> Self {
        Self { method, target: target.into(), body: Some(body.to_string().into_bytes()) }
    }

    pub fn bytes(&self, host: &str) -> Vec<u8> {
        let mut head =
            format!("{} {} HTTP/1.1\r\nhost: {host}\r\naccept: application/json\r\n", self.method, self.target);
        if let Some(body) = &self.body {
            head.push_str("content-type: application/json\r\ncontent-length: ");
            head.push_str(&body.len().to_string());
            head.push_str("\r\n");
        }
        head += "\r\n";
        let mut bytes = head.into_bytes();
        bytes.extend(self.body.iter().flatten());
        bytes
    }
}

/// A client with one connection that it keeps.
pub struct Client {
    address: String,
    patience: Duration,
    connection: Option<BufReader<TcpStream>>,
}

impl Client {
    /// `patience` bounds each read and each write.
    pub fn new(address: &str, patience: Duration) -> Self {
        Self { address: address.to_owned(), patience, connection: None }
    }

    /// Sends once. After a fault it is unknown whether the service has acted; the next request takes a new connection.
    pub fn send(&mut self, request: &Request) -> Outcome<Answer> {
        let answer = self.exchange(request);
        if answer.is_err() {
            self.connection = None;
        }
        answer.map_err(|fault| format!("{} {}: {fault}", request.method, short(&request.target)))
    }

    pub fn get(&mut self, target: &str) -> Outcome<Answer> {
        self.send(&Request::new("GET", target))
    }

    /// As [`Client::get`], of a 2xx with JSON alone.
    pub fn get_json(&mut self, target: &str) -> Outcome<Value> {
        let answer = self.get(target)?;
        if answer.is_success() { Ok(answer.json()) } else { Err(format!("GET {target}: {}", answer.summary())) }
    }

    fn exchange(&mut self, request: &Request) -> std::io::Result<Answer> {
        let mut connection = match self.connection.take() {
            Some(kept) => kept,
            None => BufReader::new(connect(&self.address, self.patience)?),
        };
        connection.get_mut().write_all(&request.bytes(&self.address))?;
        let (answer, keep) = read_answer(&mut connection)?;
        self.connection = keep.then_some(connection);
        Ok(answer)
    }
}

/// The beginning of a target that may be very long.
pub fn short(target: &str) -> String {
    target.chars().take(200).collect()
}

pub fn connect(address: &str, patience: Duration) -> std::io::Result<TcpStream> {
    let stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(patience))?;
    stream.set_write_timeout(Some(patience))?;
    Ok(stream)
}

fn torn(what: &str) -> std::io::Error {
    std::io::Error::new(std::io::ErrorKind::UnexpectedEof, what.to_owned())
}

fn line(connection: &mut BufReader<TcpStream>) -> std::io::Result<String> {
    let mut line = String::new();
    if connection.read_line(&mut line)? == 0 {
        return Err(torn("the connection was closed before an answer"));
    }
    Ok(line.trim_end().to_owned())
}

/// The answer, and whether the connection stays open.
fn read_answer(connection: &mut BufReader<TcpStream>) -> std::io::Result<(Answer, bool)> {
    let first = line(connection)?;
    let status = first.split(' ').nth(1).and_then(|status| status.parse().ok()).ok_or_else(|| torn(&first))?;
    let (mut length, mut is_chunked, mut keep) = (None, false, true);
    loop {
        let header = line(connection)?.to_ascii_lowercase();
        if header.is_empty() {
            break;
        }
        match header.split_once(':').map(|(name, value)| (name, value.trim())) {
            Some(("content-length", value)) => length = value.parse::<u64>().ok(),
            Some(("transfer-encoding", value)) => is_chunked = value.contains("chunked"),
            Some(("connection", value)) => keep = !value.contains("close"),
            _ => {}
        }
    }
    let mut body = Vec::new();
    if is_chunked {
        read_chunks(connection, &mut body)?;
    } else {
        let length = length.unwrap_or(0);
        let read = connection.take(length).read_to_end(&mut body)?;
        if (read as u64) < length {
            return Err(torn("the answer ended in the middle of its body"));
        }
    }
    Ok((Answer { status, body }, keep))
}

fn read_chunks(connection: &mut BufReader<TcpStream>, body: &mut Vec<u8>) -> std::io::Result<()> {
    loop {
        let size = line(connection)?;
        let size = size.split(';').next().unwrap_or_default().trim();
        let size = u64::from_str_radix(size, 16).map_err(|_| torn("a chunk without a size"))?;
        let read = connection.take(size).read_to_end(body)?;
        if (read as u64) < size {
            return Err(torn("the answer ended in the middle of a chunk"));
        }
        line(connection)?;
        if size == 0 {
            return Ok(());
        }
    }
}

/// Percent-encodes what is not unreserved.
pub fn encoded(text: &str) -> String {
    let mut encoded = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            let digit = |half: u8| char::from(b"0123456789ABCDEF"[usize::from(half)]);
            encoded.extend(['%', digit(byte >> 4), digit(byte & 15)]);
        }
    }
    encoded
}
