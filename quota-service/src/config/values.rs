//! Types of settings that are written as text. Each is parsed once, when the settings are read.

use crate::retrain::Period;
use axum::http::Uri;
use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;
use vocab::{ClusterName, NameError, UnixSeconds};
use wire::EventKindBody;

pub use serving::settings::{FilePath, LogFilter, LogFormat};

serving::settings_as_text! {
    Period, OptionalUrl, StartAt, ClusterNames, HostNames, WebhookFormat, EventKinds
}

/// A URL; empty for none. Each setting has its own rule for scheme, host and path.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OptionalUrl(Option<(Uri, String)>);

impl OptionalUrl {
    /// No URL.
    pub const NONE: Self = Self(None);

    #[must_use]
    pub fn get(&self) -> Option<&Uri> {
        self.0.as_ref().map(|(uri, _)| uri)
    }

    /// The URL as it was written; empty for none.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.as_ref().map_or("", |(_, text)| text)
    }
}

impl FromStr for OptionalUrl {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Ok(Self(None));
        }
        // The URL of a chat is a secret: no message repeats it.
        let uri = text.parse().map_err(|fault| format!("it is no URL: {fault}; write http://HOST:PORT"))?;
        Ok(Self(Some((uri, text.to_owned()))))
    }
}

impl fmt::Display for OptionalUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Start of the clock.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum StartAt {
    /// The real clock.
    #[default]
    Real,
    /// A virtual clock, from the newest usage.
    Latest,
    /// A virtual clock, from an instant; with its text.
    Instant(UnixSeconds, String),
}

impl StartAt {
    const LATEST: &str = "latest";

    #[must_use]
    pub fn is_real(&self) -> bool {
        *self == Self::Real
    }
}

impl FromStr for StartAt {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "" => Ok(Self::Real),
            Self::LATEST => Ok(Self::Latest),
            _ => {
                let refused = |fault: &dyn fmt::Display| format!("{fault}; or write {}", Self::LATEST);
                let start = command_line::instant(text).map_err(|fault| refused(&fault))?;
                start.hour().map_err(|fault| fault.to_string())?;
                Ok(Self::Instant(start, text.to_owned()))
            }
        }
    }
}

impl fmt::Display for StartAt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Real => "",
            Self::Latest => Self::LATEST,
            Self::Instant(_, text) => text,
        })
    }
}

/// Format of the bodies of the webhook.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum WebhookFormat {
    /// The event, for programs.
    #[default]
    Json,
    /// A message of an incoming webhook of Slack.
    Slack,
    /// A message of a workflow of Teams.
    Teams,
}

impl FromStr for WebhookFormat {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "json" => Ok(Self::Json),
            "slack" => Ok(Self::Slack),
            "teams" => Ok(Self::Teams),
            _ => Err(format!("{text:?}: write json, slack or teams")),
        }
    }
}

impl fmt::Display for WebhookFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Json => "json",
            Self::Slack => "slack",
            Self::Teams => "teams",
        })
    }
}

/// Kinds of events, a comma between them; empty for all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EventKinds(BTreeSet<EventKindBody>);

impl EventKinds {
    /// All of them.
    pub const ALL: Self = Self(BTreeSet::new());

    /// Whether events of a kind are meant.
    #[must_use]
    pub fn has(&self, kind: EventKindBody) -> bool {
        self.0.is_empty() || self.0.contains(&kind)
    }
}

impl FromStr for EventKinds {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let kind = |name: &str| {
            let read: Result<EventKindBody, _> = serde_json::from_value(name.into());
            read.map_err(|fault| format!("write kinds of events, a comma between them: {fault}"))
        };
        names(text).map(kind).collect::<Result<_, _>>().map(Self)
    }
}

impl fmt::Display for EventKinds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.0.iter().map(|kind| kind.as_str()).collect();
        f.write_str(&names.join(","))
    }
}

/// The names of a list with commas; empty ones do not count.
fn names(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim).filter(|name| !name.is_empty())
}

/// Names of clusters, a comma between them; empty for all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClusterNames(pub BTreeSet<ClusterName>);

impl FromStr for ClusterNames {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        names(text).map(ClusterName::parse).collect::<Result<_, _>>().map(Self)
    }
}

impl fmt::Display for ClusterNames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.0.iter().map(ClusterName::as_str).collect();
        f.write_str(&names.join(","))
    }
}

/// Names of hosts, a comma between them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HostNames(pub Vec<String>);

impl FromStr for HostNames {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(bad) = names(text).find(|name| name.contains(['/', '@', ' '])) {
            return Err(format!("{bad:?} is no name of a host: write headroom.example, without a scheme and a path"));
        }
        Ok(Self(names(text).map(str::to_owned).collect()))
    }
}

impl fmt::Display for HostNames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Text of a value after it is read, or the reason of its refusal.
    fn read<T: FromStr<Err: fmt::Display> + fmt::Display>(text: &str) -> String {
        text.parse::<T>().map_or_else(|fault| format!("refused: {fault}"), |value| value.to_string())
    }

    #[test]
    fn a_setting_that_is_text_reads_back_as_it_was_written() {
        assert_eq!(["", "http://a:1/b"].map(read::<OptionalUrl>), ["", "http://a:1/b"]);
        assert_eq!(["", "latest"].map(read::<StartAt>), ["", "latest"]);
        assert_eq!(read::<StartAt>("2024-03-10T06:30:00Z"), "2024-03-10T06:30:00Z");
        assert_eq!(["json", "slack", "teams"].map(read::<WebhookFormat>), ["json", "slack", "teams"]);
        assert_eq!(["", "node_lost, evicted"].map(read::<EventKinds>), ["", "evicted,node_lost"]);
        assert_eq!(
            (read::<ClusterNames>("b, a,"), read::<HostNames>("x.example, y")),
            ("a,b".into(), "x.example,y".into())
        );
    }

    #[test]
    fn a_wrong_setting_is_refused_and_never_replaced_by_a_default() {
        assert!(read::<OptionalUrl>("http://a b").starts_with("refused: it is no URL"));
        assert!(read::<StartAt>("yesterday").contains("write a time with its offset"));
        assert!(read::<WebhookFormat>("discord").contains("write json, slack or teams"));
        assert!(read::<EventKinds>("evictions").contains("expected one of `started`, `evicted`"));
        assert!(read::<ClusterNames>("a:b").contains("a colon"));
        assert!(read::<HostNames>("http://x/y").contains("is no name of a host"));
    }
}
