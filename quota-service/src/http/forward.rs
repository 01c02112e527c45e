//! What another service decides is asked there, on behalf of the client: behind one address, any service may be reached.

use super::ApiError;
use crate::refresh::Service;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::Request;
use axum::http::request::Parts;
use axum::http::{HeaderName, HeaderValue, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http_body_util::{BodyExt, Full};
use hyper_util::rt::TokioIo;
use std::time::Duration;
use tokio::net::TcpStream;

/// Marks what was forwarded once: it is not forwarded again.
const FORWARDED: HeaderName = HeaderName::from_static("headroom-forwarded");
/// How long the connection to the other service may take: it is near, or gone.
const CONNECTS_WITHIN: Duration = Duration::from_secs(2);

/// The address of the service that decides, in the extensions of the answer that says so.
#[derive(Debug, Clone)]
pub struct Elsewhere(pub String);

/// Answers a request here, or, where it turns out that another service decides, with what that one answers. Who cannot be
/// reached has not been asked: then the answer is that of this service, which says when to come back.
pub async fn answered(service: &Service, request: Request, next: Next) -> Response {
    if !service.leases.follows() || request.headers().contains_key(FORWARDED) {
        return next.run(request).await;
    }
    let (parts, body) = request.into_parts();
    let max_bytes = service.config.max_body_bytes;
    let Ok(bytes) = to_bytes(body, max_bytes).await else { return ApiError::TooLarge { max_bytes }.into_response() };
    let again = parts.clone();
    let response = next.run(Request::from_parts(parts, Body::from(bytes.clone()))).await;
    let Some(Elsewhere(address)) = response.extensions().get::<Elsewhere>() else { return response };
    match ask(address, again, bytes).await {
        Ok(theirs) => theirs,
        Err(why) => {
            tracing::info!(%address, %why, "the service that decides was not reached");
            response
        }
    }
}

async fn ask(address: &str, parts: Parts, body: Bytes) -> Result<Response, String> {
    let target: Uri = address.parse().map_err(|fault| format!("{fault}"))?;
    let authority = target.authority().ok_or("it names no host")?;
    let connecting = TcpStream::connect((authority.host(), authority.port_u16().unwrap_or(80)));
    let connected = tokio::time::timeout(CONNECTS_WITHIN, connecting).await;
    let stream = connected.map_err(|_| "no answer".to_owned())?.map_err(|fault| fault.to_string())?;
    let handshake = hyper::client::conn::http1::handshake::<_, Full<Bytes>>(TokioIo::new(stream)).await;
    let (mut sender, connection) = handshake.map_err(|fault| fault.to_string())?;
    let driving = tokio::spawn(connection);
    let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
    let mut request = hyper::Request::builder().method(parts.method).uri(path);
    for (name, value) in &parts.headers {
        if ![header::HOST, header::CONNECTION, header::CONTENT_LENGTH, header::TRANSFER_ENCODING].contains(name) {
            request = request.header(name, value);
        }
    }
    let request = request
        .header(header::HOST, authority.as_str())
        .header(header::CONNECTION, "close")
        .header(FORWARDED, HeaderValue::from_static("1"))
        .body(Full::new(body))
        .map_err(|fault| fault.to_string())?;
    let response = sender.send_request(request).await.map_err(|fault| fault.to_string())?;
    let (mut head, body) = response.into_parts();
    let body = body.collect().await.map_err(|fault| fault.to_string())?.to_bytes();
    driving.abort();
    head.headers.remove(header::CONNECTION);
    head.headers.remove(header::TRANSFER_ENCODING);
    Ok(Response::from_parts(head, Body::from(body)))
}
