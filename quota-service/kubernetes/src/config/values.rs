//! Types of settings of Kubernetes that are written as text. Each is parsed once, when the settings are read.

use super::urls::RayUrl;
use connectors::settings_as_text;
use connectors::values::SettingName;
use std::fmt;
use std::str::FromStr;

settings_as_text! {
    KueueMode, ObjectName, QualifiedName, RayUrl,
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

impl SettingName for QualifiedName {
    fn read(text: &str) -> Result<Self, String> {
        text.parse()
    }
}

impl SettingName for RayUrl {
    fn read(text: &str) -> Result<Self, String> {
        text.parse()
    }
}
