//! Roles that routes require, and what a request names in its path and query.

use axum::http::Uri;
use percent_encoding::percent_decode_str;
use std::borrow::Cow;
use vocab::{ClusterName, GpuModel, PoolId};

/// Role that a route requires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// Not even a token.
    Nothing,
    Read,
    Report,
    Place,
    Admin,
}

impl Need {
    /// The least role that a token must have.
    #[must_use]
    pub const fn role(self) -> &'static str {
        match self {
            Self::Nothing | Self::Read => "read",
            Self::Report => "report",
            Self::Place => "place",
            Self::Admin => "admin",
        }
    }
}

/// Pool in the path `/v1/pools/{id}/…`.
#[must_use]
pub fn pool_in_path(uri: &Uri) -> Option<PoolId> {
    path_segment(uri, 3).and_then(|id| PoolId::parse(&id).ok())
}

/// Pool in the query, by `cluster` and `gpu_model`.
#[must_use]
pub fn pool_in_query(uri: &Uri) -> Option<PoolId> {
    let gpu_model = queried(uri, "gpu_model").and_then(|name| GpuModel::parse(&name).ok())?;
    Some(PoolId { cluster: cluster_in_query(uri)?, gpu_model })
}

/// Cluster in the query.
#[must_use]
pub fn cluster_in_query(uri: &Uri) -> Option<ClusterName> {
    queried(uri, "cluster").and_then(|name| ClusterName::parse(&name).ok())
}

/// Segment of the path, decoded.
#[must_use]
pub fn path_segment(uri: &Uri, index: usize) -> Option<Cow<'_, str>> {
    uri.path().split('/').nth(index).and_then(decoded)
}

/// Value of a name that the query has once. A name that comes twice has no value: handlers may take either.
#[must_use]
pub fn queried(uri: &Uri, name: &str) -> Option<String> {
    // A plus is a space in a query, and itself in a path.
    let query = uri.query()?.replace('+', " ");
    let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    let mut values = pairs.filter(|(key, _)| decoded(key).is_some_and(|key| key == name)).map(|(_, value)| value);
    let value = values.next()?;
    if values.next().is_some() { None } else { decoded(value).map(Cow::into_owned) }
}

/// Text without its percent-encoding; `None` where the bytes are not UTF-8.
#[must_use]
pub fn decoded(text: &str) -> Option<Cow<'_, str>> {
    percent_decode_str(text).decode_utf8().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uri(text: &str) -> Uri {
        text.parse().unwrap()
    }

    #[test]
    fn a_request_names_its_pool_in_path_or_query() {
        let pool = PoolId::parse("earth:A100").ok();
        assert_eq!(pool_in_path(&uri("/v1/pools/earth:A100/settings")), pool);
        assert_eq!(pool_in_path(&uri("/v1/pools/earth%3AA100/settings?cluster=mars")), pool);
        assert_eq!(pool_in_query(&uri("/quota?hours=1&cluster=earth&gpu_model=A10%30")), pool);
        assert_eq!(pool_in_query(&uri("/v1/tasks/a?gpu_model=A100&cluster=earth")), pool);
        assert_eq!(cluster_in_query(&uri("/v1/nodes/n?cluster=earth")), ClusterName::parse("earth").ok());
        assert_eq!(queried(&uri("/x?a=b+c%2B"), "a").as_deref(), Some("b c+"));
    }

    #[test]
    fn a_name_that_comes_twice_or_is_malformed_names_no_pool() {
        for text in
            ["/x?cluster=earth&cluster=mars&gpu_model=A100", "/x?gpu_model=A100", "/x", "/x?cluster=%ff&gpu_model=A"]
        {
            assert_eq!(pool_in_query(&uri(text)), None, "{text}");
        }
    }
}
