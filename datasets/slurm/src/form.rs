//! Forms of Slurm's JSON, by the version of the plugin that writes it.

use crate::values::Number;
use serde::Deserialize;
use std::fmt;

/// `meta` of a document.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct Meta {
    #[serde(default)]
    plugin: Plugin,
    #[serde(default, rename = "Slurm", alias = "slurm")]
    slurm: Slurm,
}

#[derive(Debug, Clone, Default, Deserialize)]
struct Plugin {
    #[serde(default, rename = "type")]
    kind: Option<String>,
    #[serde(default)]
    data_parser: Option<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
struct Slurm {
    #[serde(default)]
    release: Option<String>,
}

/// A version of the JSON that this program reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Form {
    /// Slurm 22.05, before there were data parsers: plain numbers and texts.
    V38,
    /// Slurm 23.02: numbers that may be missing are objects.
    V39,
    /// Slurm 23.11: a state is a list, times of `squeue` are objects.
    V40,
    /// Slurm 24.05.
    V41,
    /// Slurm 24.11: a job that waits may name several QOS.
    V42,
    /// Slurm 25.05.
    V43,
    /// Slurm 25.11.
    V44,
    /// Slurm 26.05.
    V45,
}

/// Why a document is not read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FormFault {
    #[error(
        "unknown version {version} of Slurm's JSON (Slurm {release}): expected v0.0.38 to v0.0.45 (Slurm 22.05 to 26.05); print \
         it in a form that is known, such as --json=v0.0.45, or use a Headroom that knows this Slurm"
    )]
    Unknown { version: String, release: String },
    #[error(
        "no version in meta.plugin: expected the output of --json of sacct, squeue or scontrol, whole and unchanged"
    )]
    None,
}

impl Form {
    /// All that are known, oldest first.
    pub const ALL: [Self; 8] = [Self::V38, Self::V39, Self::V40, Self::V41, Self::V42, Self::V43, Self::V44, Self::V45];

    /// Number after `v0.0.`.
    #[must_use]
    pub const fn number(self) -> u32 {
        match self {
            Self::V38 => 38,
            Self::V39 => 39,
            Self::V40 => 40,
            Self::V41 => 41,
            Self::V42 => 42,
            Self::V43 => 43,
            Self::V44 => 44,
            Self::V45 => 45,
        }
    }

    /// The form that a release prints in, and the argument that asks for it. A newer release than those that are known
    /// is asked for the newest known form.
    #[must_use]
    pub fn of_release(major: u32, minor: u32) -> Option<(Self, &'static str)> {
        Some(match (major, minor) {
            (22, 5) => (Self::V38, "--json"),
            (23, 2) => (Self::V39, "--json"),
            (23, 11) => (Self::V40, "--json=v0.0.40"),
            (24, 5) => (Self::V41, "--json=v0.0.41"),
            (24, 11) => (Self::V42, "--json=v0.0.42"),
            (25, 5) => (Self::V43, "--json=v0.0.43"),
            (25, 11) => (Self::V44, "--json=v0.0.44"),
            (26.., _) => (Self::V45, "--json=v0.0.45"),
            _ => return None,
        })
    }

    /// The form of a document.
    ///
    /// # Errors
    /// It is unknown, or the document does not state it.
    pub fn of(meta: &Meta) -> Result<Self, FormFault> {
        let stated = [&meta.plugin.data_parser, &meta.plugin.kind];
        let stated = stated.into_iter().flatten().find(|text| text.contains("v0.0."));
        let Some(stated) = stated else { return Err(FormFault::None) };
        let number = stated.rsplit("v0.0.").next().and_then(|number| number.parse::<u32>().ok());
        let form = number.and_then(|number| Self::ALL.into_iter().find(|form| form.number() == number));
        form.ok_or_else(|| FormFault::Unknown {
            version: stated.clone(),
            release: meta.slurm.release.clone().unwrap_or_else(|| "unknown".to_owned()),
        })
    }
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "v0.0.{}", self.number())
    }
}

/// An entry of `errors`.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct Reported {
    #[serde(default)]
    description: Option<String>,
    #[serde(default)]
    error: Option<serde_json::Value>,
    #[serde(default)]
    error_number: Number,
}

/// `ESLURM_REST_EMPTY_RESULT`: no record matches.
const NOTHING_FOUND: u64 = 9_003;

impl Reported {
    /// Whether it says that there is no record, which is no fault.
    pub fn is_nothing_found(&self) -> bool {
        self.error_number.0 == Some(NOTHING_FOUND)
    }
}

impl fmt::Display for Reported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let texts = [self.description.clone(), self.error.as_ref().and_then(|error| Some(error.as_str()?.to_owned()))];
        let texts: Vec<String> = texts.into_iter().flatten().filter(|text| !text.is_empty()).collect();
        f.write_str(&texts.join(": "))?;
        if let Some(number) = self.error_number.nonzero() {
            write!(f, " (error {number})")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(meta: &str) -> Result<Form, String> {
        Form::of(&serde_json::from_str(meta).unwrap()).map_err(|fault| fault.to_string())
    }

    #[test]
    fn the_form_is_read_from_every_place_where_a_release_states_it() {
        let old = r#"{"plugin":{"type":"openapi/dbv0.0.38"},"Slurm":{"version":{"major":22},"release":"22.05.8"}}"#;
        let first = r#"{"plugin":{"data_parser":"v0.0.39"},"Slurm":{"release":"23.02.7"}}"#;
        let late = r#"{"plugin":{"type":"","data_parser":"data_parser/v0.0.42"},"slurm":{"release":"24.11.5"}}"#;
        assert_eq!([old, first, late].map(form), [Ok(Form::V38), Ok(Form::V39), Ok(Form::V42)]);
    }

    #[test]
    fn an_unknown_form_is_refused_with_what_to_do() {
        let fault =
            form(r#"{"plugin":{"data_parser":"data_parser/v0.0.46"},"slurm":{"release":"26.11.2"}}"#).unwrap_err();
        assert!(
            fault.contains("v0.0.46 of Slurm's JSON (Slurm 26.11.2)") && fault.contains("--json=v0.0.45"),
            "{fault}"
        );
        assert!(form(r#"{"plugin":{"type":"openapi/v0.0.37"}}"#).is_err());
        assert!(form("{}").unwrap_err().contains("no version in meta.plugin"));
    }

    #[test]
    fn each_release_is_asked_for_a_form_that_is_known_and_newer_ones_for_the_newest() {
        for (release, number) in
            [((22, 5), 38), ((23, 2), 39), ((23, 11), 40), ((25, 11), 44), ((26, 5), 45), ((26, 11), 45)]
        {
            assert_eq!(Form::of_release(release.0, release.1).unwrap().0.number(), number);
        }
        assert_eq!(Form::of_release(21, 8), None);
    }
}
