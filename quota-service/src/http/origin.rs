//! Requests that a browser makes for a page of another site. A service without tokens lets every caller write. Then the host of a
//! request has to be the loopback, the address or a name of `allowed_hosts`, which refuses pages whose name resolves to this
//! machine (DNS rebinding). A write without a token must not come from a page of another origin, nor carry a body that a form can
//! send (CSRF).

use super::ApiError;
use super::error::SEND_JSON;
use super::forward::FORWARDED;
use super::routes::Route;
use crate::access::{Access, Caller};
use crate::config::Config;
use axum::Router;
use axum::extract::Request;
use axum::http::Method;
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE, HOST, HeaderMap, HeaderValue, ORIGIN, TRANSFER_ENCODING};
use axum::http::uri::Authority;
use serving::hosts::Hosts;

const UNSAFE: [Method; 4] = [Method::POST, Method::PUT, Method::DELETE, Method::PATCH];

/// The hosts of the service: `allowed_hosts`, and the address at which other replicas reach it.
#[must_use]
pub fn hosts(config: &Config) -> Hosts {
    let advertised = config.advertise.get().and_then(|uri| uri.host().map(str::to_owned));
    Hosts::new(config.listen.ip(), config.allowed_hosts.0.iter().cloned().chain(advertised))
}

/// Routes that answer requests for the hosts of the service alone.
pub fn only_for(router: Router, config: &Config) -> Router {
    serving::hosts::only(router, hosts(config))
}

/// Accepts a request that no page of another site has made.
///
/// # Errors
/// Its host is foreign, its origin is, or its body is not JSON.
pub fn check(
    access: &Access,
    hosts: &Hosts,
    caller: &Caller,
    row: Option<&Route>,
    request: &Request,
) -> Result<(), ApiError> {
    let headers = request.headers();
    let host = request.uri().authority().map(Authority::as_str);
    let host = host.or_else(|| headers.get(HOST).and_then(|host| host.to_str().ok()));
    let is_checked = access.tokens.are_open() || !access.core.config.allowed_hosts.0.is_empty();
    if let Some(host) = host.filter(|host| is_checked && !hosts.is_ours(host))
        // Probes ask by the address of a pod.
        && !row.is_some_and(Route::is_probe)
    {
        let detail = format!(
            "the host {host:?} is not a host of this service: send the request to localhost, or add the host to allowed_hosts"
        );
        return Err(foreign("foreign-host", "Foreign host", detail));
    }
    if !UNSAFE.contains(request.method()) {
        return Ok(());
    }
    // No page can send this header, or a token, to another origin: the preflight request of its browser is refused.
    if caller.token_id.is_none() && !headers.contains_key(FORWARDED) && !hosts.may_all_write(headers, host) {
        let origins = headers.get_all(ORIGIN).iter().map(|one| String::from_utf8_lossy(one.as_bytes()).into_owned());
        let origins = origins.collect::<Vec<_>>().join(", ");
        let detail = format!("Origin {origins} may not write: send a token, or add its host to allowed_hosts");
        return Err(foreign("foreign-origin", "Foreign origin", detail));
    }
    if has_body(headers) && !headers.get(CONTENT_TYPE).is_some_and(is_json) {
        return Err(ApiError::NotJson(SEND_JSON));
    }
    Ok(())
}

fn foreign(code: &str, title: &str, detail: String) -> ApiError {
    ApiError::Problem(Box::new(ApiError::plain(403, code, title, detail)))
}

fn has_body(headers: &HeaderMap) -> bool {
    headers.contains_key(TRANSFER_ENCODING) || headers.get(CONTENT_LENGTH).is_some_and(|length| length != "0")
}

/// Whether a header `Content-Type` names JSON.
pub fn is_json(kind: &HeaderValue) -> bool {
    kind.to_str().is_ok_and(|text| {
        text.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json"))
    })
}
