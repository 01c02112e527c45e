//! Types of settings that all programs that listen have: paths of files, the format and the filter of the log. Each is parsed once,
//! when the settings are read.

use std::convert::Infallible;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use tracing_subscriber::EnvFilter;

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

settings_as_text! { FilePath, LogFormat, LogFilter }

/// Path of a file; empty for none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FilePath(Option<PathBuf>);

impl FilePath {
    /// No file.
    pub const NONE: Self = Self(None);

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
    /// Logs nothing.
    pub const NOTHING: Self = Self(String::new());

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

#[cfg(test)]
mod tests {
    use super::*;

    /// Text of a value after it is read, or the reason of its refusal.
    fn read<T: FromStr<Err: fmt::Display> + fmt::Display>(text: &str) -> String {
        text.parse::<T>().map_or_else(|fault| format!("refused: {fault}"), |value| value.to_string())
    }

    #[test]
    fn a_path_a_format_and_a_filter_read_back_as_they_were_written_and_wrong_ones_are_refused() {
        assert_eq!(["", "/etc/x.pem"].map(read::<FilePath>), ["", "/etc/x.pem"]);
        assert_eq!(
            ["text", "json", "xml"].map(read::<LogFormat>),
            ["text", "json", "refused: \"xml\": write text or json"]
        );
        assert_eq!(read::<LogFilter>("quota_service=debug"), "quota_service=debug");
        assert!(read::<LogFilter>("quota_service=loud").starts_with("refused: "));
    }

    #[test]
    fn a_filter_overrides_the_one_before_it() {
        let after = "kube=debug".parse::<LogFilter>().unwrap().filter_after("kube=error");
        assert_eq!(after.to_string(), "kube=debug");
    }
}
