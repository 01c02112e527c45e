//! One request over one connection of its own, which is closed after it.

use axum::body::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::{Request, Response};

/// Sends a request, and reads its answer to the end. How long that may take is the caller's business.
///
/// # Errors
/// The other side speaks no HTTP, or goes away.
pub async fn exchange<I>(io: I, request: Request<Full<Bytes>>) -> Result<Response<Bytes>, String>
where
    I: hyper::rt::Read + hyper::rt::Write + Unpin + Send + 'static,
{
    let handshake = hyper::client::conn::http1::handshake::<_, Full<Bytes>>(io).await;
    let (mut sender, connection) = handshake.map_err(|fault| fault.to_string())?;
    let driving = tokio::spawn(connection);
    let response = sender.send_request(request).await.map_err(|fault| fault.to_string())?;
    let (head, body) = response.into_parts();
    let body = body.collect().await.map_err(|fault| fault.to_string())?.to_bytes();
    driving.abort();
    Ok(Response::from_parts(head, body))
}
