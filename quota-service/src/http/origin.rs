//! Requests that a browser makes for a page of another site. Where there are no tokens, whoever reaches the service may write: then
//! the name of the loopback, of the address or a name of `allowed_hosts` has to be asked for, which keeps out pages whose name
//! resolves to this machine (DNS rebinding). A write without a token must not come from a page of another origin, nor carry a
//! body that a form may send (CSRF).

use super::ApiError;
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

/// The hosts under which the service is reached: those that are named, and where other services reach it.
#[must_use]
pub fn hosts(config: &Config) -> Hosts {
    let advertised = config.advertise.get().and_then(|uri| uri.host().map(str::to_owned));
    Hosts::new(config.listen.ip(), config.allowed_hosts.0.iter().cloned().chain(advertised))
}

/// Routes that answer requests for the hosts of the service alone.
pub fn only_for(router: Router, config: &Config) -> Router {
    serving::hosts::only(router, hosts(config))
}

/// Goes on with a request that no page of another site has made.
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
        let detail = format!("the host {host:?} is not this service: ask for localhost, or name it in allowed_hosts");
        return Err(foreign("foreign-host", "The host is foreign", detail));
    }
    if !UNSAFE.contains(request.method()) {
        return Ok(());
    }
    // No page can send this header, or a token, to another origin: a browser asks first, and is not let.
    if caller.token_id.is_none() && !headers.contains_key(FORWARDED) && !hosts.may_all_write(headers, host) {
        let origins: Vec<_> = headers.get_all(ORIGIN).iter().collect();
        let detail =
            format!("the origin {origins:?} may not write here: send a token, or name its host in allowed_hosts");
        return Err(foreign("foreign-origin", "The origin is foreign", detail));
    }
    if has_body(headers) && !headers.get(CONTENT_TYPE).is_some_and(is_json) {
        return Err(ApiError::NotJson);
    }
    Ok(())
}

fn foreign(code: &str, title: &str, detail: String) -> ApiError {
    ApiError::Problem(Box::new(ApiError::plain(403, code, title, detail)))
}

fn has_body(headers: &HeaderMap) -> bool {
    headers.contains_key(TRANSFER_ENCODING) || headers.get(CONTENT_LENGTH).is_some_and(|length| length != "0")
}

/// Whether a header `Content-Type` says that a body is JSON.
pub fn is_json(kind: &HeaderValue) -> bool {
    kind.to_str().is_ok_and(|text| {
        text.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json"))
    })
}
