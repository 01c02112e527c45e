//! Settings that are lists or words.

use connectors::settings_as_text;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;
use vocab::HorizonHours;

settings_as_text! { Guarantees, Names, Mode, Nesting }

fn entries(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim).filter(|entry| !entry.is_empty())
}

/// A name of Slurm: it goes onto command lines of its programs.
fn name(entry: &str) -> Result<String, String> {
    let is_plain = |letter: char| letter.is_alphanumeric() || "-_.+@".contains(letter);
    if entry.is_empty() || entry.starts_with('-') || !entry.chars().all(is_plain) {
        return Err(format!("{entry:?} is no name: write letters, digits and - _ . + @"));
    }
    Ok(entry.to_owned())
}

/// Names with the hours that they promise; none for no promise.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Guarantees(pub BTreeMap<String, Option<HorizonHours>>);

impl Guarantees {
    /// Names.
    #[must_use]
    pub fn names(&self) -> BTreeSet<String> {
        self.0.keys().cloned().collect()
    }

    /// Names with a promise, the shortest first, then by name.
    #[must_use]
    pub fn promised(&self) -> Vec<(HorizonHours, &str)> {
        let mut promised: Vec<_> = self.0.iter().filter_map(|(name, hours)| Some(((*hours)?, name.as_str()))).collect();
        promised.sort();
        promised
    }
}

impl FromStr for Guarantees {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut all = BTreeMap::new();
        for entry in entries(text) {
            let (of, hours) = entry.split_once('=').ok_or_else(|| format!("{entry:?}: write NAME=HOURS"))?;
            let hours = match hours.trim() {
                "0" => None,
                hours => Some(HorizonHours::parse(hours).map_err(|fault| format!("{entry:?}: {fault}"))?),
            };
            if all.insert(name(of.trim())?, hours).is_some() {
                return Err(format!("{entry:?}: {of} is listed twice"));
            }
        }
        Ok(Self(all))
    }
}

impl fmt::Display for Guarantees {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let entry =
            |(name, hours): (&String, &Option<HorizonHours>)| format!("{name}={}", hours.map_or(0, HorizonHours::get));
        f.write_str(&self.0.iter().map(entry).collect::<Vec<_>>().join(","))
    }
}

/// Names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Names(pub BTreeSet<String>);

impl FromStr for Names {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        entries(text).map(name).collect::<Result<_, _>>().map(Self)
    }
}

impl fmt::Display for Names {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.iter().cloned().collect::<Vec<_>>().join(","))
    }
}

/// Writes to Slurm.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Mode {
    /// Nothing.
    #[default]
    Observe,
    /// Limits.
    Publish,
    /// Limits, and the file of the submission hook.
    PublishAndHook,
}

impl Mode {
    const ALL: [(Self, &'static str); 3] =
        [(Self::Observe, "observe"), (Self::Publish, "publish"), (Self::PublishAndHook, "publish+hook")];

    /// Whether limits are written.
    #[must_use]
    pub fn publishes(self) -> bool {
        self != Self::Observe
    }
}

impl FromStr for Mode {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|(_, name)| *name == text).map(|(mode, _)| mode);
        found.ok_or_else(|| format!("{text:?}: write one of {}", Self::ALL.map(|(_, name)| name).join(", ")))
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Self::ALL.iter().find(|(mode, _)| mode == self).map_or("observe", |(_, name)| name))
    }
}

/// Which limits carry the quota.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Nesting {
    /// Those of the QOS, side by side: each has what the longer ones leave. Needs Administrator.
    #[default]
    Qos,
    /// Those of a chain of accounts, one below the other. Needs Operator.
    Accounts,
}

impl FromStr for Nesting {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "qos" => Ok(Self::Qos),
            "accounts" => Ok(Self::Accounts),
            _ => Err(format!("{text:?}: write qos or accounts")),
        }
    }
}

impl fmt::Display for Nesting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Qos => "qos",
            Self::Accounts => "accounts",
        })
    }
}
