//! Forwards requests to the replica that leads: behind one address, a client may reach any replica.

use super::ApiError;
use super::guard::received;
use crate::core::Core;
use crate::trace;
use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::request::Parts;
use axum::http::{HeaderName, HeaderValue, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http_body_util::Full;
use hyper_util::rt::TokioIo;
use serving::client::{self, NoAnswer};
use serving::tls::TRUST;
use std::io;
use std::time::Duration;
use tokio::net::TcpStream;
use wire::Problem;

/// Marks a forwarded request: it is not forwarded again.
pub const FORWARDED: HeaderName = HeaderName::from_static("headroom-forwarded");
/// The time limit of the connection to the other replica: it is near, or gone.
const CONNECTS_WITHIN: Duration = Duration::from_secs(2);
/// The longest answer of the leader that is taken: a snapshot, at a few hundred bytes a task, of more tasks than a pool has had by far.
const ANSWER_BYTES: usize = 256 << 20;

/// The address of the leader, in the extensions of the answer that names it.
#[derive(Debug, Clone)]
pub struct Elsewhere(pub String);

/// Answers a request here, or with the answer of the leader where another replica leads. If the leader cannot be reached, the
/// answer is that of this replica, with `Retry-After`.
pub async fn answered(core: &Core, request: Request, next: Next) -> Response {
    if !core.leases.follows() || request.headers().contains_key(FORWARDED) {
        return next.run(request).await;
    }
    let (parts, body) = request.into_parts();
    let bytes = match received(body, core.config.max_body_bytes).await {
        Ok(bytes) => bytes,
        Err(fault) => return fault.into_response(),
    };
    let again = parts.clone();
    let response = next.run(Request::from_parts(parts, Body::from(bytes.clone()))).await;
    let Some(Elsewhere(address)) = response.extensions().get::<Elsewhere>() else { return response };
    match ask(core, address, again, bytes).await {
        Ok(theirs) => theirs,
        Err(fault) => {
            let (why, patience) = (&fault.why, core.config.lease_s);
            let detail = if fault.is_of_certificate {
                tracing::warn!(%address, %why, "the certificate of the leader is not trusted: {TRUST}");
                format!(
                    "the leader at {address} shows a certificate that this service does not trust ({why}): {TRUST}; until then ask the leader"
                )
            } else {
                tracing::info!(%address, %why, "the leader cannot be reached");
                format!(
                    "the leader at {address} does not answer ({why}); another service takes over within {patience} s: try again"
                )
            };
            let problem = ApiError::plain(503, "not-the-writer", "The leader does not answer", detail);
            ApiError::Problem(Box::new(Problem { retry_after_s: Some(1), ..problem })).into_response()
        }
    }
}

async fn ask(core: &Core, address: &str, parts: Parts, body: Bytes) -> Result<Response, NoAnswer> {
    let target: Uri = address.parse().map_err(|fault| format!("{fault}"))?;
    let authority = target.authority().ok_or_else(|| "the address has no host".to_owned())?;
    let is_secure = target.scheme_str() == Some("https");
    let port = authority.port_u16().unwrap_or(if is_secure { 443 } else { 80 });
    let connected = tokio::time::timeout(CONNECTS_WITHIN, async {
        let host = authority.host().trim_start_matches('[').trim_end_matches(']');
        let stream = TcpStream::connect((host, port)).await?;
        match core.tls().filter(|_| is_secure) {
            Some(tls) => tls.connect(host, stream).await.map(|stream| Either::Left(TokioIo::new(stream))),
            None => Ok(Either::Right(TokioIo::new(stream))),
        }
    });
    let connected: io::Result<_> = connected.await.map_err(|_| "no answer".to_owned())?;
    let (io, request) = (connected?, request(authority.as_str(), parts, body)?);
    Ok(match io {
        Either::Left(secure) => send(secure, request).await?,
        Either::Right(plain) => send(plain, request).await?,
    })
}

enum Either<L, R> {
    Left(L),
    Right(R),
}

fn request(authority: &str, parts: Parts, body: Bytes) -> Result<hyper::Request<Full<Bytes>>, String> {
    let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
    let mut request = hyper::Request::builder().method(parts.method).uri(path);
    for (name, value) in &parts.headers {
        if ![header::HOST, header::CONNECTION, header::CONTENT_LENGTH, header::TRANSFER_ENCODING].contains(name) {
            request = request.header(name, value);
        }
    }
    let request = request
        .header(header::HOST, authority)
        .header(header::CONNECTION, "close")
        .header(FORWARDED, HeaderValue::from_static("1"))
        .body(Full::new(body));
    let mut request = request.map_err(|fault| fault.to_string())?;
    // Replaces the trace of the client: the work of the leader is a part of this span.
    trace::hand_on(request.headers_mut());
    Ok(request)
}

async fn send<I>(io: I, request: hyper::Request<Full<Bytes>>) -> Result<Response, String>
where
    I: hyper::rt::Read + hyper::rt::Write + Unpin + Send + 'static,
{
    let (mut head, body) = client::exchange(io, request, ANSWER_BYTES).await?.into_parts();
    head.headers.remove(header::CONNECTION);
    head.headers.remove(header::TRANSFER_ENCODING);
    Ok(Response::from_parts(head, Body::from(body)))
}
