//! Where a Prometheus is.

use hyper::Uri;
use std::fmt;

/// `http://HOST:PORT/PREFIX`, without anything secret in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    pub(crate) is_secure: bool,
    pub(crate) host: String,
    pub(crate) port: u16,
    /// As it stands in the header `host`.
    pub(crate) authority: String,
    /// Empty, or begins with a slash and ends without one.
    prefix: String,
}

impl Target {
    /// # Errors
    /// It is no `http://` or `https://` URL, or holds what does not belong there; the reason repeats no password.
    pub fn parse(text: &str) -> Result<Self, String> {
        let rest = text.split_once("://").map_or(text, |(_, rest)| rest);
        if rest.split('/').next().unwrap_or_default().contains('@') {
            let hint = "put a bearer token into a file and name that (token_file, --token-file)";
            return Err(format!("the URL holds a user or a password, which would be logged: leave it out, and {hint}"));
        }
        let uri: Uri = text.parse().map_err(|fault| format!("{text:?} is not a URL: {fault}"))?;
        let authority = uri.authority().filter(|authority| !authority.host().is_empty());
        let (is_secure, authority) = match (uri.scheme_str(), authority) {
            (Some("http"), Some(authority)) => (false, authority),
            (Some("https"), Some(authority)) => (true, authority),
            _ => return Err(format!("{text:?}: write http://HOST:PORT or https://HOST:PORT")),
        };
        if uri.query().is_some() {
            return Err("the URL contains a query (after ?): leave it out".to_owned());
        }
        let prefix = uri.path().trim_end_matches('/');
        if prefix.ends_with("/api/v1") || prefix.ends_with("/graph") {
            return Err(format!("{text:?} ends in a page of Prometheus: write the URL without it"));
        }
        let host = authority.host();
        Ok(Self {
            is_secure,
            host: host.trim_start_matches('[').trim_end_matches(']').to_owned(),
            port: authority.port_u16().unwrap_or(if is_secure { 443 } else { 80 }),
            authority: authority.as_str().to_owned(),
            prefix: prefix.to_owned(),
        })
    }

    /// The path of an endpoint, behind the prefix that proxies and tenants have.
    pub(crate) fn path(&self, endpoint: &str) -> String {
        format!("{}{endpoint}", self.prefix)
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.is_secure { "https" } else { "http" };
        write!(f, "{scheme}://{}{}", self.authority, self.prefix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_shown_as_written_and_its_port_is_known() {
        for (text, shown, port) in [
            ("http://prometheus", "http://prometheus", 80),
            ("https://p.example:9443/", "https://p.example:9443", 9_443),
            ("https://mimir/prometheus/", "https://mimir/prometheus", 443),
            ("http://[::1]:9090", "http://[::1]:9090", 9_090),
        ] {
            let target = Target::parse(text).unwrap();
            assert_eq!((target.to_string().as_str(), target.port), (shown, port));
        }
        assert_eq!(Target::parse("http://[::1]:9090").unwrap().host, "::1");
        assert_eq!(Target::parse("http://mimir/prometheus").unwrap().path("/-/ready"), "/prometheus/-/ready");
    }

    #[test]
    fn what_is_no_place_of_a_prometheus_is_refused_and_no_password_is_repeated() {
        for (text, why) in [
            ("prometheus:9090", "write http://HOST:PORT"),
            ("ftp://prometheus", "write http://HOST:PORT"),
            ("http://", "is not a URL"),
            ("", "is not a URL"),
            ("http://p/graph", "write the URL without it"),
            ("http://p/api/v1", "write the URL without it"),
            ("http://p?token=hush", "leave it out"),
            ("http://user:hush@p:9090/", "token_file"),
            ("https://hush@p", "token_file"),
        ] {
            let refused = Target::parse(text).unwrap_err();
            assert!(refused.contains(why) && !refused.contains("hush"), "{text}: {refused}");
        }
    }
}
