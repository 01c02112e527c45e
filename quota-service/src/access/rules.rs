//! What each route asks of whoever calls it.

use axum::http::{Method, Uri};
use std::borrow::Cow;
use vocab::{ClusterName, GpuModel, PoolId};

/// The role that a route asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// Not even a token.
    Nothing,
    Read,
    Report,
    Place,
    Admin,
}

/// What a route asks for. One that is not there asks for a token all the same: who has none learns nothing.
#[must_use]
pub fn need(method: &Method, route: Option<&str>) -> Need {
    match (route.unwrap_or_default(), method) {
        ("/healthz" | "/readyz" | "/openapi.json" | "/" | "/assets/{name}", _) => Need::Nothing,
        // Without a state the quota of a pool rests on an estimate, and may rise.
        ("/v1/audit", _) | ("/v1/pools/{id}/state", &Method::DELETE) => Need::Admin,
        // A dry run changes nothing.
        ("/v1/tasks/dry-run", _) | (_, &Method::GET | &Method::HEAD) => Need::Read,
        ("/v1/usage" | "/v1/outcomes" | "/v1/nodes/{id}" | "/v1/pools/{id}/state", _) => Need::Report,
        (route, _) if route.starts_with("/v1/tasks") => Need::Place,
        _ => Need::Admin,
    }
}

/// What a request of a scoped caller is about, as far as its head tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scoped {
    Pool(PoolId),
    Cluster(ClusterName),
    /// Its body tells, or its answer is cut to the scope: the handler sees to it.
    Body,
    /// What it names is none: nothing for a scope.
    Malformed,
    /// Everything: nothing for a scope.
    Everything,
}

/// What a request is about.
#[must_use]
pub fn scoped_pool(method: &Method, route: Option<&str>, uri: &Uri) -> Scoped {
    let route = route.unwrap_or_default();
    let in_body =
        ["/v1/tasks", "/v1/tasks/dry-run", "/v1/usage", "/v1/outcomes", "/v1/overrides", "/v1/overrides/{id}"];
    let reads = matches!(*method, Method::GET | Method::HEAD);
    let tells = (route == "/v1/nodes/{id}" && *method == Method::PUT) || (in_body.contains(&route) && !reads);
    if tells || route == "/v1/pools" {
        return Scoped::Body;
    }
    if route.starts_with("/v1/pools/{id}/") {
        let id = path_segment(uri, 3);
        let pool = id.and_then(|id| PoolId::parse(&id).ok());
        return pool.map_or(Scoped::Malformed, Scoped::Pool);
    }
    let cluster = queried(uri, "cluster").map(|name| ClusterName::parse(&name).ok());
    if route.starts_with("/v1/nodes") || route == "/v1/runs" {
        return cluster.flatten().map_or(Scoped::Malformed, Scoped::Cluster);
    }
    let of_pool = [
        "/quota",
        "/v1/quota",
        "/v1/forecast",
        "/v1/tasks",
        "/v1/events",
        "/v1/demand",
        "/v1/promises",
        "/v1/overrides",
    ];
    if !of_pool.iter().any(|start| route.starts_with(start)) {
        return Scoped::Everything;
    }
    let gpu_model = queried(uri, "gpu_model").and_then(|name| GpuModel::parse(&name).ok());
    match (cluster.flatten(), gpu_model) {
        (Some(cluster), Some(gpu_model)) => Scoped::Pool(PoolId { cluster, gpu_model }),
        _ => Scoped::Malformed,
    }
}

/// A part of the path, without its percent-encoding.
#[must_use]
pub fn path_segment(uri: &Uri, index: usize) -> Option<Cow<'_, str>> {
    uri.path().split('/').nth(index).and_then(|id| decoded(id, b'+'))
}

/// The value of a name in a query that is there once. Twice is no value: which of them a handler takes is not to be guessed.
#[must_use]
pub fn queried<'a>(uri: &'a Uri, name: &str) -> Option<Cow<'a, str>> {
    let pairs = uri.query()?.split('&').filter_map(|pair| pair.split_once('='));
    let mut values = pairs.filter(|(key, _)| decoded(key, b' ').is_some_and(|key| key == name)).map(|(_, value)| value);
    let value = values.next()?;
    if values.next().is_some() { None } else { decoded(value, b' ') }
}

/// Percent-encoding undone; a plus is a space in a query, and itself in a path. `None` of what is no text then.
pub fn decoded(text: &str, plus: u8) -> Option<Cow<'_, str>> {
    if !text.contains(['%', '+']) {
        return Some(Cow::Borrowed(text));
    }
    let (mut bytes, mut rest) = (Vec::with_capacity(text.len()), text.as_bytes());
    while let [first, tail @ ..] = rest {
        let escaped = (*first == b'%').then(|| tail.get(..2)).flatten();
        let byte = escaped.and_then(|two| u8::from_str_radix(std::str::from_utf8(two).ok()?, 16).ok());
        bytes.push(byte.unwrap_or(if *first == b'+' { plus } else { *first }));
        rest = if byte.is_some() { &tail[2..] } else { tail };
    }
    String::from_utf8(bytes).ok().map(Cow::Owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn about(method: &Method, route: &str, uri: &str) -> Scoped {
        scoped_pool(method, Some(route), &uri.parse().unwrap())
    }

    #[test]
    fn a_request_is_about_the_pool_of_its_path_or_query() {
        let pool = Scoped::Pool(PoolId::parse("earth:A100").unwrap());
        let settings = "/v1/pools/{id}/settings";
        assert_eq!(about(&Method::PUT, settings, "/v1/pools/earth:A100/settings"), pool);
        assert_eq!(about(&Method::PUT, settings, "/v1/pools/earth%3AA100/settings?cluster=mars"), pool);
        assert_eq!(about(&Method::GET, "/quota", "/quota?hours=1&cluster=earth&gpu_model=A10%30"), pool);
        assert_eq!(about(&Method::DELETE, "/v1/tasks/{id}", "/v1/tasks/a?gpu_model=A100&cluster=earth"), pool);
        let cluster = Scoped::Cluster(ClusterName::parse("earth").unwrap());
        assert_eq!(about(&Method::DELETE, "/v1/nodes/{id}", "/v1/nodes/n?cluster=earth"), cluster);
        assert_eq!(about(&Method::PUT, "/v1/nodes/{id}", "/v1/nodes/n?cluster=earth"), Scoped::Body);
        assert_eq!(about(&Method::GET, "/metrics", "/metrics"), Scoped::Everything);
        assert_eq!(about(&Method::GET, "/v1/tasks", "/v1/tasks?cluster=earth&gpu_model=A100"), pool);
        assert_eq!(about(&Method::POST, "/v1/tasks", "/v1/tasks"), Scoped::Body);
        assert_eq!(about(&Method::GET, "/v1/overrides", "/v1/overrides?cluster=earth&gpu_model=A100"), pool);
        assert_eq!(about(&Method::DELETE, "/v1/overrides/{id}", "/v1/overrides/3"), Scoped::Body);
        assert_eq!(about(&Method::GET, "/v1/runs", "/v1/runs?cluster=earth"), cluster);
    }

    #[test]
    fn a_name_that_is_there_twice_or_is_none_lets_nobody_through() {
        let route = "/v1/quota/history";
        for uri in
            ["/x?cluster=earth&cluster=mars&gpu_model=A100", "/x?gpu_model=A100", "/x", "/x?cluster=%ff&gpu_model=A"]
        {
            assert_eq!(about(&Method::GET, route, uri), Scoped::Malformed, "{uri}");
        }
    }

    #[test]
    fn what_changes_something_asks_for_more_than_reading() {
        for (method, route, wanted) in [
            (Method::GET, "/healthz", Need::Nothing),
            (Method::GET, "/", Need::Nothing),
            (Method::GET, "/assets/{name}", Need::Nothing),
            (Method::GET, "/quota", Need::Read),
            (Method::GET, "/v1/audit", Need::Admin),
            (Method::POST, "/v1/tasks/dry-run", Need::Read),
            (Method::POST, "/v1/tasks/{id}/finish", Need::Place),
            (Method::POST, "/v1/usage", Need::Report),
            (Method::POST, "/v1/usage/corrections", Need::Admin),
            (Method::PUT, "/v1/pools/{id}/settings", Need::Admin),
            (Method::PUT, "/v1/pools/{id}/state", Need::Report),
            (Method::DELETE, "/v1/pools/{id}/state", Need::Admin),
            (Method::POST, "/v1/whatever-comes", Need::Admin),
        ] {
            assert_eq!(need(&method, Some(route)), wanted, "{method} {route}");
        }
        assert_eq!(need(&Method::GET, None), Need::Read);
    }
}
