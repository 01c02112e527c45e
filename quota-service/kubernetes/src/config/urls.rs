//! URLs of other programs.

use axum::http::Uri;
use std::fmt;
use std::str::FromStr;

/// URL of Ray dashboards, with `{cluster}` and `{namespace}` in the place of those of a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RayUrl(String);

impl RayUrl {
    /// As it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for RayUrl {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let example = text.replace("{cluster}", "cluster").replace("{namespace}", "namespace");
        let uri: Result<Uri, _> = example.parse();
        let is_plain =
            uri.is_ok_and(|uri| uri.scheme_str() == Some("http") && uri.host().is_some() && uri.query().is_none());
        if !is_plain {
            return Err(format!(
                "{text:?}: write http://HOST:PORT, such as http://{{cluster}}-head-svc.{{namespace}}.svc:8265"
            ));
        }
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Display for RayUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
