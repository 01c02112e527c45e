//! A scripted server, one connection after the other.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Action for one request.
#[derive(Clone)]
pub enum Turn {
    /// A status, more lines of the head, and a body.
    Answer(u16, &'static str, String),
    /// Says that more comes than does.
    Short(String),
    /// Says nothing for so long.
    Silence(Duration),
    HangUp,
}

pub fn ok(body: impl Into<String>) -> Turn {
    Turn::Answer(200, "", body.into())
}

/// The answer to a range: each series its namespace and samples.
pub fn matrix(series: &[(&str, &[(i64, &str)])]) -> String {
    let value = |(at, value): &(i64, &str)| format!("[{at},\"{value}\"]");
    let one = |(name, samples): &(&str, &[(i64, &str)])| {
        let values: Vec<String> = samples.iter().map(value).collect();
        format!("{{\"metric\":{{\"namespace\":\"{name}\"}},\"values\":[{}]}}", values.join(","))
    };
    let all: Vec<String> = series.iter().map(one).collect();
    format!("{{\"status\":\"success\",\"data\":{{\"resultType\":\"matrix\",\"result\":[{}]}}}}", all.join(","))
}

/// A request as it came: its first line, head and body.
#[derive(Debug, Clone, Default)]
pub struct Request {
    pub line: String,
    pub head: String,
    pub form: String,
}

impl Request {
    /// A field of the form that is a number.
    pub fn number(&self, name: &str) -> i64 {
        let form =
            if self.form.is_empty() { self.line.split(['?', ' ']).nth(2).unwrap_or_default() } else { &self.form };
        let field = form.split('&').find_map(|field| field.strip_prefix(&format!("{name}=")));
        field.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("{name} is no number: {self:?}"))
    }
}

pub struct Fake {
    pub url: String,
    requests: Arc<Mutex<Vec<Request>>>,
}

impl Fake {
    /// Does what `turn` says of the number of the request and of the request. Its thread ends with the test.
    pub fn start(turn: impl Fn(usize, &Request) -> Turn + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let requests: Arc<Mutex<Vec<Request>>> = Arc::default();
        let seen = requests.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let Some(request) = read(&mut BufReader::new(&stream)) else { continue };
                let number = {
                    let mut seen = seen.lock().unwrap();
                    seen.push(request.clone());
                    seen.len() - 1
                };
                let turn = turn(number, &request);
                // A slow client delays no other client, and a client that has gone is ignored.
                std::thread::spawn(move || {
                    let _ = answer(&mut stream, &turn);
                });
            }
        });
        Self { url, requests }
    }

    pub fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }
}

fn read(stream: &mut impl BufRead) -> Option<Request> {
    let mut request = Request::default();
    stream.read_line(&mut request.line).ok().filter(|read| *read > 0)?;
    let mut length = 0;
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).ok()?;
        if line.trim().is_empty() {
            break;
        }
        if let Some(text) = line.to_lowercase().strip_prefix("content-length:") {
            length = text.trim().parse().ok()?;
        }
        request.head.push_str(&line.to_lowercase());
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).ok()?;
    request.form = String::from_utf8(body).ok()?;
    Some(request)
}

fn answer(stream: &mut impl Write, turn: &Turn) -> std::io::Result<()> {
    match turn {
        Turn::Answer(status, head, body) => {
            write!(stream, "HTTP/1.1 {status} it\r\n{head}content-length: {}\r\n\r\n{body}", body.len())
        }
        Turn::Short(body) => write!(stream, "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len() + 9),
        Turn::Silence(pause) => {
            std::thread::sleep(*pause);
            Ok(())
        }
        Turn::HangUp => Ok(()),
    }
}
