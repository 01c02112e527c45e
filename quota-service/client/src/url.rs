//! URL of the service.

use crate::error::ClientError;
use hyper::Uri;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

/// URL of quota-service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceUrl {
    /// Without a slash at its end.
    pub base: String,
    /// Whether the scheme is `https`.
    pub is_secure: bool,
}

impl Default for ServiceUrl {
    fn default() -> Self {
        Self { base: "http://127.0.0.1:8080".to_owned(), is_secure: false }
    }
}

impl FromStr for ServiceUrl {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = |why: &str| format!("{text:?}: {why}: write http://HOST:PORT or https://HOST:PORT");
        let uri: Uri = text.parse().map_err(|fault: hyper::http::uri::InvalidUri| wrong(&fault.to_string()))?;
        let is_secure = match uri.scheme_str() {
            Some("http") => false,
            Some("https") => true,
            _ => return Err(wrong("no scheme")),
        };
        if uri.host().is_none() || uri.query().is_some() {
            return Err(wrong("no host, or a query"));
        }
        Ok(Self { base: text.trim_end_matches('/').to_owned(), is_secure })
    }
}

impl fmt::Display for ServiceUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.base)
    }
}

impl Serialize for ServiceUrl {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ServiceUrl {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// Bytes that are encoded in a part of a path or a query: all but the unreserved ones (RFC 3986) and the colon of
/// `CLUSTER:GPU_MODEL`.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b':');

/// A name as a part of a path or a query.
pub fn encoded(name: &str) -> String {
    utf8_percent_encode(name, ENCODED).to_string()
}

/// An id as a whole segment of a path.
///
/// # Errors
/// It is empty, or one or two dots: what is between here and the service would make the address of another request of it.
pub fn segment(id: &str) -> Result<String, ClientError> {
    if matches!(id, "" | "." | "..") { Err(ClientError::NoId { id: id.to_owned() }) } else { Ok(encoded(id)) }
}

/// A path with its query.
pub struct Path {
    text: String,
    begun: bool,
}

impl Path {
    pub fn new(path: impl Into<String>) -> Self {
        Self { text: path.into(), begun: false }
    }

    pub fn with(mut self, key: &str, value: impl fmt::Display) -> Self {
        self.text.push(if self.begun { '&' } else { '?' });
        self.begun = true;
        self.text.push_str(key);
        self.text.push('=');
        self.text.push_str(&encoded(&value.to_string()));
        self
    }

    /// Leaves out an absent value.
    pub fn with_some(self, key: &str, value: Option<impl fmt::Display>) -> Self {
        match value {
            Some(value) => self.with(key, value),
            None => self,
        }
    }

    pub fn as_str(&self) -> &str {
        &self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_encoded_and_absent_values_left_out() {
        let path = Path::new(format!("/v1/tasks/{}", encoded("a/b c")));
        let path = path.with("cluster", "east ü").with_some("days", None::<u32>).with_some("hours", Some(4));
        assert_eq!(path.as_str(), "/v1/tasks/a%2Fb%20c?cluster=east%20%C3%BC&hours=4");
    }

    #[test]
    fn an_id_of_dots_or_of_nothing_is_refused_before_it_is_sent() {
        for id in ["", ".", ".."] {
            assert_eq!(segment(id), Err(ClientError::NoId { id: id.to_owned() }));
        }
        assert_eq!(segment("../x").unwrap(), "..%2Fx");
    }

    #[test]
    fn a_url_has_a_scheme_and_a_host() {
        let url: ServiceUrl = "https://headroom:8443/".parse().unwrap();
        assert_eq!((url.to_string().as_str(), url.is_secure), ("https://headroom:8443", true));
        for wrong in ["headroom:8080", "ftp://x", "http://x?y=z", ""] {
            let fault = wrong.parse::<ServiceUrl>().unwrap_err();
            assert!(fault.ends_with("write http://HOST:PORT or https://HOST:PORT"), "{fault}");
        }
    }
}
