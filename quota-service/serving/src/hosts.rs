//! The host that a request is for. A page of another site reaches a service of this machine by a name of its own that resolves to
//! 127.0.0.1 (DNS rebinding), or by sending a form (CSRF): its requests carry a foreign `Host` or `Origin`.

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::middleware::{Next, from_fn_with_state};
use hyper::HeaderMap;
use hyper::header::{CONTENT_TYPE, HOST, HeaderValue, ORIGIN};
use hyper::{Request, Response, StatusCode, Version};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

/// Fault of the `Host` header of a request, RFC 9112 §3.2. HTTP/1.0 needs none.
#[must_use]
pub fn fault<B>(request: &Request<B>) -> Option<&'static str> {
    let mut hosts = request.headers().get_all(HOST).iter();
    match (hosts.next(), hosts.next()) {
        (None, _) if request.version() < Version::HTTP_11 => None,
        (None, _) => Some("the request has no Host header: send one"),
        (Some(_), Some(_)) => Some("the request has more than one Host header: send one"),
        (Some(host), None) if host.to_str().is_ok_and(|host| name(host).is_some()) => None,
        (Some(_), None) => Some("invalid Host header: send HOST or HOST:PORT"),
    }
}

/// The answer to a request whose host is at fault.
#[must_use]
pub fn refused(why: &str) -> Response<Body> {
    problem(StatusCode::BAD_REQUEST, "bad-host", "The host is not understood", why)
}

fn problem(status: StatusCode, code: &str, title: &str, detail: &str) -> Response<Body> {
    let of = status.as_u16();
    let body =
        format!(r#"{{"type":"/problems/{code}","title":"{title}","status":{of},"detail":"{detail}","code":"{code}"}}"#);
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
    response
}

/// Routes that answer no page of another site: requests for foreign hosts, and from foreign origins, are refused.
pub fn only(router: Router, hosts: Hosts) -> Router {
    router.layer(from_fn_with_state(Arc::new(hosts), pass))
}

async fn pass(State(hosts): State<Arc<Hosts>>, request: Request<Body>, next: Next) -> Response<Body> {
    let headers = request.headers();
    let host = headers.get(HOST).and_then(|host| host.to_str().ok());
    if !host.is_none_or(|host| hosts.is_ours(host)) {
        return problem(StatusCode::FORBIDDEN, "foreign-host", "The host is foreign", "ask for localhost");
    }
    if !hosts.may_all_write(headers, host) {
        return problem(StatusCode::FORBIDDEN, "foreign-origin", "The origin is foreign", "send no header Origin");
    }
    next.run(request).await
}

/// The hosts under which a service of one machine is reached: the names of the loopback, the address that it listens on, and others
/// that are named.
#[derive(Debug, Clone)]
pub struct Hosts {
    listen: IpAddr,
    names: Vec<String>,
}

impl Hosts {
    /// Names are hosts without a port; others count for nothing.
    pub fn new(listen: IpAddr, names: impl IntoIterator<Item = String>) -> Self {
        Self { listen, names: names.into_iter().map(|name| name.to_ascii_lowercase()).collect() }
    }

    /// Whether a header `Host` means this service. Any port: one that is forwarded has another number.
    #[must_use]
    pub fn is_ours(&self, host: &str) -> bool {
        let Some(name) = name(host) else { return false };
        let is_local = name == "localhost" || name.ends_with(".localhost");
        let is_ours = |address: IpAddr| address.to_canonical().is_loopback() || address == self.listen;
        let is_here = || name.parse::<IpAddr>().is_ok_and(is_ours);
        is_local || self.is_named(&name) || is_here()
    }

    /// Whether a page of this origin may write: it comes from the host that is asked, or from one that is named.
    #[must_use]
    pub fn may_write(&self, origin: &str, host: Option<&str>) -> bool {
        let Some((scheme, authority)) = origin.split_once("://") else { return false };
        let default_port = if scheme.eq_ignore_ascii_case("https") { ":443" } else { ":80" };
        let plain = |authority: &str| {
            let authority = authority.to_ascii_lowercase();
            authority.strip_suffix(default_port).map(str::to_owned).unwrap_or(authority)
        };
        host.is_some_and(|host| plain(host) == plain(authority))
            || name(authority).is_some_and(|name| self.is_named(&name))
    }

    /// Whether every header `Origin` names a page that may write.
    #[must_use]
    pub fn may_all_write(&self, headers: &HeaderMap, host: Option<&str>) -> bool {
        let mut origins = headers.get_all(ORIGIN).iter();
        origins.all(|origin| origin.to_str().is_ok_and(|origin| self.may_write(origin, host)))
    }

    fn is_named(&self, name: &str) -> bool {
        self.names.iter().any(|named| named == name)
    }
}

/// The host of HOST or HOST:PORT, in lower case and without brackets; `None` where the text is neither.
fn name(host: &str) -> Option<String> {
    let (name, rest) = match host.strip_prefix('[') {
        Some(bracketed) => bracketed.split_once(']').filter(|(address, _)| address.parse::<Ipv6Addr>().is_ok())?,
        None => host.split_at(host.find(':').unwrap_or(host.len())),
    };
    let is_port = |port: &str| port.is_empty() || port.parse::<u16>().is_ok();
    let is_of_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~%:".contains(&byte);
    let is_whole = rest.is_empty() || rest.strip_prefix(':').is_some_and(is_port);
    let is_host = is_whole && !name.is_empty() && name.bytes().all(is_of_name);
    is_host.then(|| name.trim_end_matches('.').to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_ours_by_the_loopback_the_address_or_a_name() {
        let hosts = Hosts::new(IpAddr::from([10, 0, 0, 7]), ["Headroom.example".to_owned()]);
        for ours in [
            "localhost",
            "LOCALHOST:8080",
            "app.localhost",
            "127.0.0.1:80",
            "127.8.8.8",
            "[::1]:8080",
            "10.0.0.7:1",
            "[::ffff:127.0.0.1]",
        ] {
            assert!(hosts.is_ours(ours), "{ours}");
        }
        for ours in ["headroom.example", "headroom.example.:443", "HEADROOM.EXAMPLE:9"] {
            assert!(hosts.is_ours(ours), "{ours}");
        }
        for foreign in [
            "evil.example",
            "localhost.evil.example",
            "evillocalhost",
            "10.0.0.8",
            "127.0.0.1.evil.example",
            "",
            "[::1].evil.example",
        ] {
            assert!(!hosts.is_ours(foreign), "{foreign}");
        }
    }

    #[test]
    fn a_page_writes_to_its_own_host_alone() {
        let hosts = Hosts::new(IpAddr::from([127, 0, 0, 1]), ["headroom.example".to_owned()]);
        for (origin, host, may) in [
            ("http://localhost:8080", Some("localhost:8080"), true),
            ("http://LOCALHOST", Some("localhost:80"), true),
            ("https://headroom.example", Some("127.0.0.1:8080"), true),
            ("https://localhost:443", Some("localhost"), true),
            ("http://localhost:3000", Some("localhost:8080"), false),
            ("http://evil.example", Some("localhost:8080"), false),
            ("null", Some("localhost:8080"), false),
            ("http://localhost", None, false),
        ] {
            assert_eq!(hosts.may_write(origin, host), may, "{origin} to {host:?}");
        }
    }

    #[test]
    fn a_request_has_one_host() {
        let of = |hosts: &[&str], version: Version| {
            let request = hosts.iter().fold(Request::builder().version(version), |one, host| one.header(HOST, *host));
            fault(&request.body(()).unwrap()).is_some()
        };
        assert!(!of(&["localhost:8080"], Version::HTTP_11) && !of(&["[::1]"], Version::HTTP_11));
        assert!(of(&[], Version::HTTP_11) && !of(&[], Version::HTTP_10));
        assert!(of(&["a", "a"], Version::HTTP_11) && of(&["a", "b"], Version::HTTP_10));
        for no_host in ["a/b", "", "[::1].evil.example", "[::1", "127.0.0.1:80:80", "localhost:abc", "localhost:65536"]
        {
            assert!(of(&[no_host], Version::HTTP_11), "{no_host}");
        }
    }
}
