//! Types of settings that are written as text or as a number. Each is parsed once, when the settings are read.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;
use vocab::{ClusterName, GpuModel, HorizonError, HorizonHours};

pub use headroom_client::ServiceUrl as HeadroomUrl;
pub use serving::settings::{FilePath, LogFilter, LogFormat};

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
