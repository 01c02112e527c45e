//! An object storage that speaks as much of S3 as readers need, and fails on request.

use axum::Router;
use axum::body::{Body, Bytes, HttpBody};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use hmac::{Hmac, KeyInit, Mac};
use hyper::body::Frame;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::thread::JoinHandle;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

/// Key and secret that it takes.
pub const KEY: (&str, &str) = ("headroom", "of a test");
/// Its only bucket.
pub const BUCKET: &str = "history";
const REGION: &str = "eu-test-1";
/// An hour of HTTP dates, which nothing depends on.
const MODIFIED: &str = "Fri, 01 Mar 2024 00:00:00 GMT";

/// Trouble with answers that hold bytes of objects, or with all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trouble {
    None,
    /// No request is answered.
    Hangs,
    /// Half of the bytes come, and then nothing.
    Stalls,
    /// So many answers end after half of their bytes.
    Cuts(usize),
}

/// A storage on a free loopback port; ended with this value.
pub struct ObjectStorage {
    shared: Arc<Shared>,
    address: String,
    end: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    objects: Mutex<BTreeMap<String, Bytes>>,
    trouble: Mutex<Trouble>,
}

impl ObjectStorage {
    /// # Panics
    /// There is no free port.
    #[must_use]
    pub fn start() -> Self {
        let shared = Arc::new(Shared { objects: Mutex::default(), trouble: Mutex::new(Trouble::None) });
        let routes = Router::new().fallback(answer).with_state(shared.clone());
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        listener.set_nonblocking(true).expect("listeners can be non-blocking");
        let address = listener.local_addr().expect("it is bound").to_string();
        let (end, ended) = oneshot::channel();
        let serve = move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(async {
                let listener = TcpListener::from_std(listener).expect("it does not block");
                // Connections that hang end with the runtime.
                tokio::select! {
                    _ = axum::serve(listener, routes) => {}
                    _ = ended => {}
                }
            });
        };
        Self { shared, address, end: Some(end), thread: Some(std::thread::spawn(serve)) }
    }

    /// Stores an object.
    pub fn put(&self, name: &str, bytes: Vec<u8>) {
        self.shared.objects.lock().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned(), bytes.into());
    }

    /// From now on.
    pub fn has(&self, trouble: Trouble) {
        *self.shared.trouble.lock().unwrap_or_else(PoisonError::into_inner) = trouble;
    }

    /// Variables by which a program finds it.
    #[must_use]
    pub fn variables(&self) -> BTreeMap<&'static str, String> {
        let endpoint = format!("http://{}", self.address);
        let [key, secret, region, http] = [KEY.0, KEY.1, REGION, "true"].map(str::to_owned);
        BTreeMap::from([
            ("AWS_ENDPOINT", endpoint),
            ("AWS_ACCESS_KEY_ID", key),
            ("AWS_SECRET_ACCESS_KEY", secret),
            ("AWS_REGION", region),
            ("AWS_ALLOW_HTTP", http),
            ("AWS_TIMEOUT", "5s".to_owned()),
        ])
    }
}

impl Drop for ObjectStorage {
    fn drop(&mut self) {
        let _ = self.end.take().map(|end| end.send(()));
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

fn refused(status: StatusCode, code: &str) -> Response {
    (status, format!("<?xml version=\"1.0\"?><Error><Code>{code}</Code><Message>m</Message></Error>")).into_response()
}

async fn answer(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let trouble = *shared.trouble.lock().unwrap_or_else(PoisonError::into_inner);
    if trouble == Trouble::Hangs {
        std::future::pending::<()>().await;
    }
    if let Err(code) = check_signature(&request) {
        return refused(StatusCode::FORBIDDEN, code);
    }
    let path = decoded(request.uri().path());
    let (bucket, name) = path.trim_start_matches('/').split_once('/').unwrap_or((path.trim_start_matches('/'), ""));
    if bucket != BUCKET {
        return refused(StatusCode::NOT_FOUND, "NoSuchBucket");
    }
    let objects = shared.objects.lock().unwrap_or_else(PoisonError::into_inner).clone();
    if name.is_empty() {
        return listed(&objects, &pairs(&request));
    }
    let Some(bytes) = objects.get(name) else { return refused(StatusCode::NOT_FOUND, "NoSuchKey") };
    given(&shared, request.method(), request.headers(), bytes)
}

/// A page of one object, so that readers have to ask for the next.
fn listed(objects: &BTreeMap<String, Bytes>, query: &BTreeMap<String, String>) -> Response {
    let of = |key: &str| query.get(key).map_or("", String::as_str);
    let mut found = objects.iter().filter(|(name, _)| name.starts_with(of("prefix")));
    let page = found.find(|(name, _)| name.as_str() > of("continuation-token"));
    let contents = page.map_or_else(String::new, |(name, bytes)| {
        let size = bytes.len();
        format!(
            "<Contents><Key>{name}</Key><LastModified>2024-03-01T00:00:00.000Z</LastModified><ETag>\"{size}\"</ETag><Size>{size}</Size></Contents>"
        )
    });
    let next = page.filter(|_| found.next().is_some());
    let next = next.map_or_else(
        || "<IsTruncated>false</IsTruncated>".to_owned(),
        |(name, _)| format!("<IsTruncated>true</IsTruncated><NextContinuationToken>{name}</NextContinuationToken>"),
    );
    format!("<?xml version=\"1.0\"?><ListBucketResult><Name>{BUCKET}</Name>{contents}{next}</ListBucketResult>")
        .into_response()
}

/// The bytes of an object that are asked for.
fn given(shared: &Shared, method: &Method, headers: &HeaderMap, bytes: &Bytes) -> Response {
    let range = headers.get(header::RANGE).and_then(|range| {
        let (from, to) = range.to_str().ok()?.strip_prefix("bytes=")?.split_once('-')?;
        Some((from.parse::<usize>().ok()?, to.parse::<usize>().ok()?.min(bytes.len().checked_sub(1)?)))
    });
    let part = range.map_or_else(|| bytes.clone(), |(from, to)| bytes.slice(from..=to));
    let mut answer = Response::builder()
        .status(if range.is_some() { StatusCode::PARTIAL_CONTENT } else { StatusCode::OK })
        .header(header::CONTENT_LENGTH, part.len())
        .header(header::ETAG, format!("\"{}\"", bytes.len()))
        .header(header::LAST_MODIFIED, MODIFIED);
    if let Some((from, to)) = range {
        answer = answer.header(header::CONTENT_RANGE, format!("bytes {from}-{to}/{}", bytes.len()));
    }
    let mut trouble = shared.trouble.lock().unwrap_or_else(PoisonError::into_inner);
    let body = match &mut *trouble {
        _ if method == Method::HEAD => Body::empty(),
        Trouble::Stalls => half(&part, true),
        Trouble::Cuts(left) if *left > 0 => {
            *left -= 1;
            half(&part, false)
        }
        _ => Body::from(part),
    };
    answer.body(body).expect("the headers are ASCII")
}

/// The first half of some bytes; then silence, or the end of the connection.
fn half(bytes: &Bytes, stalls: bool) -> Body {
    Body::new(Half { first: Some(bytes.slice(..bytes.len() / 2)), stalls })
}

struct Half {
    first: Option<Bytes>,
    stalls: bool,
}

impl HttpBody for Half {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        match self.first.take() {
            Some(first) => Poll::Ready(Some(Ok(Frame::data(first)))),
            None if self.stalls => Poll::Pending,
            None => Poll::Ready(Some(Err(axum::Error::new("cut off")))),
        }
    }
}

fn decoded(text: &str) -> String {
    let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
    while let Some((first, after)) = rest.split_first() {
        let code = (*first == b'%').then(|| after.get(..2)).flatten();
        let code = code.and_then(|two| u8::from_str_radix(std::str::from_utf8(two).ok()?, 16).ok());
        bytes.push(code.unwrap_or(*first));
        rest = if code.is_some() { &after[2..] } else { after };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn encoded(text: &str) -> String {
    let of = |byte: u8| match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => char::from(byte).to_string(),
        other => format!("%{other:02X}"),
    };
    text.bytes().map(of).collect()
}

fn pairs(request: &Request) -> BTreeMap<String, String> {
    let query = request.uri().query().unwrap_or("");
    let pair = |one: &str| one.split_once('=').map(|(key, value)| (decoded(key), decoded(value)));
    query.split('&').filter_map(pair).collect()
}

/// Holds a request against the signature of its headers (AWS Signature Version 4).
fn check_signature(request: &Request) -> Result<(), &'static str> {
    let header = |name: &str| request.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or("");
    let fields = header("authorization").strip_prefix("AWS4-HMAC-SHA256 ").ok_or("AccessDenied")?;
    let fields: BTreeMap<&str, &str> = fields.split(',').filter_map(|one| one.trim().split_once('=')).collect();
    let of = |name: &str| fields.get(name).copied().unwrap_or("");
    let (key, scope) = of("Credential").split_once('/').ok_or("AccessDenied")?;
    if key != KEY.0 {
        return Err("InvalidAccessKeyId");
    }
    let signed: Vec<&str> = of("SignedHeaders").split(';').collect();
    let headers: Vec<String> = signed.iter().map(|name| format!("{name}:{}", header(name).trim())).collect();
    let query: Vec<_> =
        pairs(request).iter().map(|(key, value)| format!("{}={}", encoded(key), encoded(value))).collect();
    let canonical = [
        request.method().as_str(),
        request.uri().path(),
        &query.join("&"),
        &headers.join("\n"),
        "",
        of("SignedHeaders"),
        header("x-amz-content-sha256"),
    ];
    let digest = hex::encode(Sha256::digest(canonical.join("\n")));
    let text = format!("AWS4-HMAC-SHA256\n{}\n{scope}\n{digest}", header("x-amz-date"));
    let first = format!("AWS4{}", KEY.1).into_bytes();
    let secret = scope.split('/').fold(first, |secret, part| signature(&secret, part));
    let is_right = hex::encode(signature(&secret, &text)) == of("Signature");
    if is_right { Ok(()) } else { Err("SignatureDoesNotMatch") }
}

fn signature(secret: &[u8], text: &str) -> Vec<u8> {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret).expect("a key of any length");
    mac.update(text.as_bytes());
    mac.finalize().into_bytes().to_vec()
}
