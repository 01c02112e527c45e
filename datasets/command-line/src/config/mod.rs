//! Settings with their origin: flag > `HEADROOM_*` > settings file > default.

mod layers;
mod shown;
#[cfg(test)]
mod tests;

use crate::exit::{Exit, Failure};
use figment::error::{Actual, Kind};
use figment::providers::{Format, Toml};
use figment::{Figment, Metadata};
use layers::{Layer, Origin};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

/// Distance up to which another name is suggested.
const SIMILAR: f64 = 0.7;

/// Why settings were refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    #[error("settings file {} does not exist", file.display())]
    NoFile { file: PathBuf },
    /// A file that is read as input, and no settings file.
    #[error("{}: {why}", file.display())]
    Unread { file: PathBuf, why: String },
    #[error("{place}: {detail}")]
    Invalid { place: String, detail: String },
    #[error("{place}: key {key:?} is not known{}; known keys: {}", suggestion(suggested.as_deref()), listed(known))]
    UnknownKey { place: String, key: String, suggested: Option<String>, known: Vec<String> },
    #[error("{variable} is not a setting, did you mean {suggested}?")]
    UnknownVariable { variable: String, suggested: String },
}

fn suggestion(name: Option<&str>) -> String {
    name.map(|name| format!(", did you mean {name:?}?")).unwrap_or_default()
}

fn listed(known: &[String]) -> String {
    if known.is_empty() { "none".to_owned() } else { known.join(", ") }
}

impl ConfigError {
    /// The exit code: an input file that cannot be read is bad data, what it says are bad settings.
    #[must_use]
    pub const fn exit(&self) -> Exit {
        match self {
            Self::Unread { .. } => Exit::DataInvalid,
            _ => Exit::ConfigInvalid,
        }
    }
}

/// Why a file cannot be read, in plain words.
#[must_use]
pub fn unread(fault: &io::Error) -> String {
    match fault.kind() {
        io::ErrorKind::NotFound => "there is no such file".to_owned(),
        io::ErrorKind::IsADirectory => "it is a folder: name a file".to_owned(),
        _ => fault.to_string(),
    }
}

impl From<ConfigError> for Failure {
    fn from(fault: ConfigError) -> Self {
        Self::new(fault.exit(), fault)
    }
}

/// A value that a program cannot work with, though it is of the right kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadValue {
    pub key: &'static str,
    pub detail: String,
}

impl BadValue {
    pub fn new(key: &'static str, detail: impl std::fmt::Display) -> Self {
        Self { key, detail: detail.to_string() }
    }
}

/// The settings of a program: defaults, types and checks.
pub trait Config: Serialize + DeserializeOwned + Default {
    /// # Errors
    /// The first value that the program cannot work with.
    fn check(&self) -> Result<(), BadValue>;
}

/// One setting and where it comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Entry {
    pub key: String,
    pub value: String,
    /// `flag`, `environment`, the path of a settings file, a source that the program has beside these, or `default`.
    pub origin: String,
    /// Which one, where the origin is the environment.
    pub variable: Option<String>,
}

/// Settings with their origins.
#[derive(Debug)]
pub struct Settings<T> {
    values: Result<T, ConfigError>,
    /// Each setting with its origin, by key.
    entries: Vec<Entry>,
    places: Places,
}

/// Places of the settings, by key: a flag, a variable, or a file and the key.
#[derive(Debug, Clone, Default)]
pub struct Places(BTreeMap<String, String>);

impl Places {
    /// A failure whose text begins with the key of a setting begins with its place.
    #[must_use]
    pub fn named(&self, failure: Failure) -> Failure {
        let Some((key, rest)) = failure.message.split_once(": ") else { return failure };
        match self.0.get(key) {
            Some(place) => Failure { message: format!("{place}: {rest}"), ..failure },
            None => failure,
        }
    }
}

impl<T: Config> Settings<T> {
    /// Layers the settings of `program`. `flags` are what the command line gave; those it did not give are left out when
    /// serialised. [`Self::values`] returns the fault of a bad value, so that values can be shown before.
    ///
    /// # Errors
    /// The file named by `--config` does not exist or cannot be read, or a key or a variable is not known.
    pub fn load(program: &str, file: Option<&Path>, flags: &impl Serialize) -> Result<Self, ConfigError> {
        Self::load_in(&layers::environment()?, program, file, flags)
    }

    fn load_in(
        environment: &BTreeMap<String, String>,
        program: &str,
        file: Option<&Path>,
        flags: &impl Serialize,
    ) -> Result<Self, ConfigError> {
        let defaults = Layer::of(Origin::Default, &T::default());
        let known: Vec<String> = defaults.keys().cloned().collect();
        layers::check_variables(environment, &known)?;
        let mut layers = layers::of_file(program, file, &known)?;
        layers.extend(layers::of_environment(environment, &defaults));
        let figment = layers.into_iter().fold(Figment::from(defaults), Figment::merge);
        let figment = figment.merge(Layer::of(Origin::Flag, flags));
        let origin = |key: &str| figment.find_metadata(key).map_or(Origin::Default, Origin::of);
        let entry = |key: &String| {
            let value = figment.find_value(key).map(|value| shown::text(key, &value)).unwrap_or_default();
            let (origin, variable) = (origin(key).kind(), origin(key).variable());
            Entry { key: key.clone(), value, origin, variable }
        };
        let read: Result<T, _> = figment.extract().map_err(|fault| invalid::<T>(&fault));
        let checked = read.and_then(|values| match values.check() {
            Ok(()) => Ok(values),
            Err(BadValue { key, detail }) => Err(ConfigError::Invalid { place: origin(key).place(key), detail }),
        });
        let places = known.iter().map(|key| (key.clone(), origin(key).place(key))).collect();
        Ok(Self { values: checked, entries: known.iter().map(entry).collect(), places: Places(places) })
    }

    /// Lets a program fill settings from a source of its own. `fill` gets the values and the keys that are set, also to what the default
    /// is; it leaves those as they are, and answers the keys that the source states: of the others these come from `origin`.
    #[must_use]
    pub fn filled(
        mut self,
        origin: &str,
        fill: impl FnOnce(T, &BTreeSet<&str>) -> Result<(T, Vec<&'static str>), String>,
    ) -> Self {
        let Ok(values) = self.values else { return self };
        let set = self.entries.iter().filter(|entry| entry.origin != Origin::Default.kind());
        let set: BTreeSet<&str> = set.map(|entry| entry.key.as_str()).collect();
        let invalid = |detail| ConfigError::Invalid { place: origin.to_owned(), detail };
        let (values, mut stated) = match fill(values, &set).map_err(invalid) {
            Ok(filled) => filled,
            Err(fault) => return Self { values: Err(fault), ..self },
        };
        stated.retain(|key| !set.contains(key));
        let figment = Figment::from(Layer::of(Origin::Default, &values));
        for entry in self.entries.iter_mut().filter(|entry| stated.contains(&entry.key.as_str())) {
            let value = figment.find_value(&entry.key).map(|value| shown::text(&entry.key, &value)).unwrap_or_default();
            *entry = Entry { key: entry.key.clone(), value, origin: origin.to_owned(), variable: None };
        }
        self.values = Ok(values);
        self
    }

    /// The place of each setting, for faults that are found later.
    #[must_use]
    pub fn places(&self) -> Places {
        self.places.clone()
    }

    /// The values to work with.
    ///
    /// # Errors
    /// A value is of another kind than its setting, or one that the program cannot work with.
    pub fn values(self) -> Result<T, ConfigError> {
        self.values
    }

    /// Each setting as it is shown, with its origin.
    #[must_use]
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Prints them for `config show`, good or bad.
    ///
    /// # Errors
    /// As [`Self::values`].
    pub fn show(self, with_origin: bool, json: bool) -> Result<(), ConfigError> {
        shown::print(&self.entries, with_origin, json);
        self.values.map(drop)
    }
}

/// Reads a TOML file that holds one thing, such as a policy.
///
/// # Errors
/// It cannot be read ([`ConfigError::Unread`]), or it does not hold what it should; the sentence names the file and the key.
pub fn read_toml<T: DeserializeOwned>(file: &Path) -> Result<T, ConfigError> {
    let place = |keys: &[String]| match keys {
        [] => file.display().to_string(),
        keys => format!("{}, key {}", file.display(), keys.join(".")),
    };
    let text =
        std::fs::read(file).map_err(|fault| ConfigError::Unread { file: file.to_owned(), why: unread(&fault) })?;
    let text = String::from_utf8(text).map_err(|_| ConfigError::Invalid {
        place: place(&[]),
        detail: "not UTF-8 text: save the file as UTF-8".to_owned(),
    })?;
    Figment::from(Toml::string(&text)).extract().map_err(|fault| match &fault.kind {
        Kind::UnknownField(key, known) => {
            let known: Vec<String> = known.iter().map(|&key| key.to_owned()).collect();
            // The path ends in the key itself.
            let of = fault.path.strip_suffix(std::slice::from_ref(key)).unwrap_or(&fault.path);
            ConfigError::UnknownKey { place: place(of), suggested: closest(key, &known), key: key.clone(), known }
        }
        Kind::MissingField(key) => {
            ConfigError::Invalid { place: place(&fault.path), detail: format!("{key} is missing") }
        }
        _ => ConfigError::Invalid { place: place(&fault.path), detail: detail(&fault, |_| false) },
    })
}

/// Whether a program refuses zero for a setting, all others being the defaults.
fn refuses_zero<T: Config>(key: &str) -> bool {
    let zero = Figment::from(Layer::of(Origin::Default, &T::default())).merge((key, 0));
    zero.extract::<T>().is_ok_and(|values| values.check().is_err_and(|fault| fault.key == key))
}

fn invalid<T: Config>(fault: &figment::Error) -> ConfigError {
    let key = fault.path.join(".");
    let place =
        fault.metadata.as_ref().map_or_else(|| key.clone(), |metadata: &Metadata| Origin::of(metadata).place(&key));
    ConfigError::Invalid { place, detail: detail(fault, refuses_zero::<T>) }
}

/// Types of whole numbers, as serde names them.
const WHOLE: [&str; 3] = ["u64", "u32", "usize"];

fn detail(fault: &figment::Error, least_is_one: impl Fn(&str) -> bool) -> String {
    match &fault.kind {
        Kind::InvalidType(found, expected) | Kind::InvalidValue(found, expected) => {
            let least = u8::from(least_is_one(fault.path.first().map_or("", String::as_str)));
            let bound =
                if WHOLE.contains(&expected.as_str()) { format!(" of at least {least}") } else { String::new() };
            format!("{} is not {}{bound}", written(found), kind(expected))
        }
        Kind::Message(text) if text.contains("socket address") => {
            "not an address: write ADDRESS:PORT, such as 127.0.0.1:8080".to_owned()
        }
        other => other.to_string(),
    }
}

/// A value as it was written.
fn written(found: &Actual) -> String {
    match found {
        Actual::Bool(value) => value.to_string(),
        Actual::Unsigned(value) => value.to_string(),
        Actual::Signed(value) => value.to_string(),
        Actual::Float(value) => value.to_string(),
        Actual::Str(value) => format!("{value:?}"),
        other => other.to_string(),
    }
}

/// Type that serde expects, in the words of a user.
fn kind(expected: &str) -> &str {
    match expected {
        "u64" | "u32" | "usize" => "a whole number",
        "socket address" => "an address: write \"ADDRESS:PORT\", such as \"127.0.0.1:8080\"",
        "f64" => "a number",
        "a boolean" => "true or false",
        "a string" => "a text: put it in quotes",
        other => other,
    }
}

/// The known name that is most like `name`, where one is.
#[must_use]
pub fn closest(name: &str, known: &[String]) -> Option<String> {
    // By this measure a letter is like every name that has it somewhere.
    let likely = known.iter().filter(|one| name.len() > 1 || one.starts_with(name));
    let closest = likely.map(|one| (strsim::jaro_winkler(one, name), one)).max_by(|a, b| a.0.total_cmp(&b.0));
    closest.filter(|(similarity, _)| *similarity > SIMILAR).map(|(_, name)| name.clone())
}
