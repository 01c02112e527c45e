//! Types of settings that are written as text or as a number. Each is parsed once, when the settings are read.

use axum::http::Uri;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::convert::Infallible;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use tracing_subscriber::EnvFilter;
use vocab::{ClusterName, GpuModel, HorizonError, HorizonHours};

/// Serializes types as text by `Display`, and deserializes them from it by `FromStr`.
#[macro_export]
macro_rules! settings_as_text {
    ($($type:ty),* $(,)?) => {
        $(impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = <String as serde::Deserialize>::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        })*
    };
}

settings_as_text! { HeadroomUrl, FilePath, LogFormat, LogFilter }

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
        EnvFilter::try_new(&self.0).expect("the text was parsed with the settings")
    }

    /// The filter after another one, which it overrides: for libraries that say too much.
    ///
    /// # Panics
    /// `before` is no filter.
    #[must_use]
    pub fn filter_after(&self, before: &str) -> EnvFilter {
        EnvFilter::try_new(format!("{before},{}", self.0)).expect("both were parsed before")
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

/// A type of names that a setting may hold.
pub trait SettingName: Sized {
    /// # Errors
    /// The text is no such name.
    fn read(text: &str) -> Result<Self, String>;
}

impl SettingName for ClusterName {
    fn read(text: &str) -> Result<Self, String> {
        Self::parse(text).map_err(|fault| fault.to_string())
    }
}

impl SettingName for HeadroomUrl {
    fn read(text: &str) -> Result<Self, String> {
        text.parse()
    }
}

impl SettingName for GpuModel {
    fn read(text: &str) -> Result<Self, String> {
        Self::parse(text).map_err(|fault| fault.to_string())
    }
}

/// A name; empty for none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Optional<T>(Option<T>);

impl<T> Optional<T> {
    /// A name.
    pub const fn some(name: T) -> Self {
        Self(Some(name))
    }

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

impl<T: SettingName> FromStr for Optional<T> {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.is_empty() { Ok(Self(None)) } else { T::read(text).map(|name| Self(Some(name))) }
    }
}

impl<T: fmt::Display> Serialize for Optional<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de, T: SettingName> Deserialize<'de> for Optional<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
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
