//! Types of settings that are written as text or as a number. Each is parsed once, when the settings are read.

use super::urls::RayUrl;
use axum::http::Uri;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::convert::Infallible;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use tracing_subscriber::EnvFilter;
use vocab::{ClusterName, GpuModel, HorizonError, HorizonHours};

/// Serializes as text, and deserializes from it.
macro_rules! text {
    ($($type:ty),* $(,)?) => {
        $(impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
            }
        })*
    };
}

text! {
    KueueMode, HeadroomUrl, FilePath, LogFormat, LogFilter, ObjectName, QualifiedName,
    RayUrl, Optional<HeadroomUrl>, Optional<RayUrl>, Optional<ClusterName>, Optional<GpuModel>, Optional<QualifiedName>,
    super::lists::SpotClasses, super::lists::AtWillClasses, super::lists::DeviceClasses, super::lists::Flavors,
    super::lists::Shares,
}

/// Object of Kueue that carries the quota.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum KueueMode {
    /// Kueue gets no quota.
    #[default]
    Off,
    /// A `CapacityProvider`, which has to exist.
    CapacityProvider,
    /// A `ClusterQueue` of our own, by server-side apply.
    ClusterQueue,
    /// A `CapacityProvider` if the cluster has its definition, otherwise a `ClusterQueue`.
    Auto,
}

impl KueueMode {
    /// Each mode with its name in settings.
    pub const ALL: [(Self, &'static str); 4] = [
        (Self::Off, "off"),
        (Self::CapacityProvider, "capacity-provider"),
        (Self::ClusterQueue, "cluster-queue"),
        (Self::Auto, "auto"),
    ];

    /// Whether Kueue gets a quota.
    #[must_use]
    pub fn is_on(self) -> bool {
        self != Self::Off
    }
}

impl FromStr for KueueMode {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|(_, name)| *name == text).map(|(mode, _)| mode);
        found.ok_or_else(|| {
            let names = Self::ALL.map(|(_, name)| name);
            format!("{text:?}: write one of {}", names.join(", "))
        })
    }
}

impl fmt::Display for KueueMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Off => "off",
            Self::CapacityProvider => "capacity-provider",
            Self::ClusterQueue => "cluster-queue",
            Self::Auto => "auto",
        })
    }
}

/// URL of quota-service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeadroomUrl {
    /// Without a slash at its end.
    pub base: String,
    /// Whether the scheme is `https`.
    pub is_secure: bool,
}

impl Default for HeadroomUrl {
    fn default() -> Self {
        Self { base: "http://127.0.0.1:8080".to_owned(), is_secure: false }
    }
}

impl FromStr for HeadroomUrl {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = |why: &str| format!("{text:?}: {why}: write http://HOST:PORT or https://HOST:PORT");
        let uri: Uri = text.parse().map_err(|fault: axum::http::uri::InvalidUri| wrong(&fault.to_string()))?;
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

impl fmt::Display for HeadroomUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.base)
    }
}

/// Path of a file; empty for none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FilePath(Option<PathBuf>);

impl FilePath {
    /// The path.
    #[must_use]
    pub fn get(&self) -> Option<&Path> {
        self.0.as_deref()
    }

    /// Whether no file is set.
    #[must_use]
    pub const fn is_none(&self) -> bool {
        self.0.is_none()
    }
}

impl FromStr for FilePath {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(Self((!text.is_empty()).then(|| text.into())))
    }
}

impl fmt::Display for FilePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.as_ref().map_or(Ok(()), |path| path.display().fmt(f))
    }
}

/// Format of the lines of the log.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// Lines for people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

impl FromStr for LogFormat {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "text" => Ok(Self::Text),
            "json" => Ok(Self::Json),
            _ => Err(format!("{text:?}: write text or json")),
        }
    }
}

impl fmt::Display for LogFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Text => "text",
            Self::Json => "json",
        })
    }
}

/// A filter of the log that parses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogFilter(String);

impl LogFilter {
    /// The filter.
    ///
    /// # Panics
    /// Never: the text was parsed with the settings.
    #[must_use]
    pub fn filter(&self) -> EnvFilter {
        // The client of the Kubernetes API logs each failed request as an error: in an outage a line a second, beside ours.
        EnvFilter::try_new(format!("kube_client=off,{}", self.0)).expect("the text was parsed with the settings")
    }
}

impl Default for LogFilter {
    fn default() -> Self {
        Self("info".to_owned())
    }
}

impl FromStr for LogFilter {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        command_line::check_log_filter(text)?;
        EnvFilter::try_new(text).map_err(|fault| format!("{text:?}: {fault}"))?;
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Display for LogFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Name of a Kubernetes object: a DNS subdomain (RFC 1123).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ObjectName(String);

impl ObjectName {
    const MAX_BYTES: usize = 253;

    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Whether the ends of a text are letters or digits.
fn ends_are_plain(text: &str) -> bool {
    let plain = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    plain(text.chars().next()) && plain(text.chars().last())
}

impl FromStr for ObjectName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '.';
        if text.len() > Self::MAX_BYTES || !text.chars().all(allowed) || !ends_are_plain(text) {
            return Err(format!("{text:?}: write lower-case letters, digits, '-' and '.'"));
        }
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Display for ObjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Key of a label, or name of a resource: `NAME` or `DOMAIN/NAME`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QualifiedName(String);

impl QualifiedName {
    const MAX_BYTES: usize = 63;

    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for QualifiedName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Err("it is empty: write a name such as nvidia.com/gpu".to_owned());
        }
        let (domain, name) = text.split_once('/').map_or((None, text), |(domain, name)| (Some(domain), name));
        let allowed = |c: char| c.is_ascii_alphanumeric() || ['-', '_', '.'].contains(&c);
        let is_name = name.len() <= Self::MAX_BYTES && name.chars().all(allowed) && ends_are_plain(name);
        if !is_name || domain.is_some_and(|domain| domain.parse::<ObjectName>().is_err()) {
            return Err(format!("{text:?}: write NAME or DOMAIN/NAME, such as nvidia.com/gpu"));
        }
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Display for QualifiedName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A name; empty for none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Optional<T>(Option<T>);

impl<T> Optional<T> {
    /// The name.
    #[must_use]
    pub const fn get(&self) -> Option<&T> {
        self.0.as_ref()
    }
}

impl<T> Default for Optional<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T: fmt::Display> fmt::Display for Optional<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.as_ref().map_or(Ok(()), |name| name.fmt(f))
    }
}

/// Reads an [`Optional`] by a parser of its name.
macro_rules! optional {
    ($($type:ty: $parse:expr),* $(,)?) => {
        $(impl FromStr for Optional<$type> {
            type Err = String;

            fn from_str(text: &str) -> Result<Self, String> {
                if text.is_empty() {
                    return Ok(Self(None));
                }
                $parse(text).map(|name| Self(Some(name))).map_err(|fault| fault.to_string())
            }
        })*
    };
}

optional! {
    ClusterName: ClusterName::parse, GpuModel: GpuModel::parse, QualifiedName: QualifiedName::from_str,
    HeadroomUrl: HeadroomUrl::from_str, RayUrl: RayUrl::from_str,
}

/// Hours of the quota that is published: 1 to 168.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "u64", into = "u64")]
pub struct QuotaHours(pub HorizonHours);

impl Default for QuotaHours {
    fn default() -> Self {
        Self(HorizonHours::ONE)
    }
}

impl TryFrom<u64> for QuotaHours {
    type Error = HorizonError;

    fn try_from(hours: u64) -> Result<Self, HorizonError> {
        HorizonHours::new(hours).map(Self)
    }
}

impl From<QuotaHours> for u64 {
    fn from(hours: QuotaHours) -> Self {
        hours.0.get().into()
    }
}

/// Guaranteed hours: 1 to 168; 0 for none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "u64", into = "u64")]
pub struct GuaranteeHours(pub Option<HorizonHours>);

impl TryFrom<u64> for GuaranteeHours {
    type Error = HorizonError;

    fn try_from(hours: u64) -> Result<Self, HorizonError> {
        if hours == 0 { Ok(Self(None)) } else { HorizonHours::new(hours).map(|hours| Self(Some(hours))) }
    }
}

impl From<GuaranteeHours> for u64 {
    fn from(hours: GuaranteeHours) -> Self {
        hours.0.map_or(0, |hours| hours.get().into())
    }
}
