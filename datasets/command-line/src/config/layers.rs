//! Where values come from: one layer for each place.

use super::{ConfigError, closest, shown};
use figment::providers::{Format, Toml};
use figment::value::{Dict, Value};
use figment::{Metadata, Profile, Provider};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Looked for in the working folder where no `--config` is given.
const DEFAULT_FILE: &str = "headroom.toml";
const PREFIX: &str = "HEADROOM_";
/// Beside the prefixed one, since many tools know it.
const DATABASE_URL: &str = "DATABASE_URL";
const DATABASE: &str = "database";
/// Sections of the settings file, one a program; a key outside a section holds for all.
const SECTIONS: [&str; 9] = [
    "datasets",
    "train",
    "quota-service",
    "headroom",
    "headroom-kubernetes",
    "kubectl-headroom",
    "headroom-slurm",
    "simulate",
    "notebooks-export",
];
/// A variable is taken for a misspelt one up to this share of wrong letters. Others with the prefix are not settings:
/// Kubernetes sets `HEADROOM_PORT` beside a service of that name.
const LETTERS_PER_MISTAKE: usize = 3;

/// The place of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    Default,
    File(String),
    Variable(String),
    Flag,
}

impl Origin {
    const FILE: &str = "file ";
    const VARIABLE: &str = "variable ";

    /// Origin that [`Layer`] gave to figment.
    pub fn of(metadata: &Metadata) -> Self {
        match (metadata.name.strip_prefix(Self::FILE), metadata.name.strip_prefix(Self::VARIABLE)) {
            (Some(path), _) => Self::File(path.to_owned()),
            (_, Some(name)) => Self::Variable(name.to_owned()),
            _ if metadata.name == "flag" => Self::Flag,
            _ => Self::Default,
        }
    }

    fn name(&self) -> String {
        match self {
            Self::Default | Self::Flag => self.kind(),
            Self::File(path) => format!("{}{path}", Self::FILE),
            Self::Variable(name) => format!("{}{name}", Self::VARIABLE),
        }
    }

    /// For `config show --origin`.
    pub fn kind(&self) -> String {
        match self {
            Self::Default => "default".to_owned(),
            Self::File(path) => path.clone(),
            Self::Variable(_) => "environment".to_owned(),
            Self::Flag => "flag".to_owned(),
        }
    }

    pub fn variable(&self) -> Option<String> {
        if let Self::Variable(name) = self { Some(name.clone()) } else { None }
    }

    /// The place of a key, as one would look for it.
    pub fn place(&self, key: &str) -> String {
        match self {
            Self::Default => key.to_owned(),
            Self::File(path) => format!("{path}: {key}"),
            Self::Variable(name) => name.clone(),
            Self::Flag => format!("--{}", key.replace('_', "-")),
        }
    }
}

/// Values with one origin.
pub struct Layer {
    origin: Origin,
    dict: Dict,
}

impl Layer {
    pub fn of(origin: Origin, values: &impl Serialize) -> Self {
        let dict = Value::serialize(values).ok().and_then(Value::into_dict).unwrap_or_default();
        Self { origin, dict }
    }

    pub fn keys(&self) -> impl Iterator<Item = &String> {
        self.dict.keys()
    }
}

impl Provider for Layer {
    fn metadata(&self) -> Metadata {
        Metadata::named(self.origin.name())
    }

    fn data(&self) -> Result<figment::value::Map<Profile, Dict>, figment::Error> {
        Ok(Profile::Default.collect(self.dict.clone()))
    }
}

/// The variables that may be settings.
pub fn environment() -> Result<BTreeMap<String, String>, ConfigError> {
    let ours = std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value)));
    ours.filter(|(name, _)| name == DATABASE_URL || name.starts_with(PREFIX))
        .map(|(name, value)| match value.into_string() {
            Ok(value) => Ok((name, value)),
            Err(_) => Err(ConfigError::Invalid { place: name, detail: "it is not UTF-8 text".to_owned() }),
        })
        .collect()
}

fn variable(key: &str) -> String {
    format!("{PREFIX}{}", key.to_uppercase())
}

/// Refuses a variable that is one of ours but for a slip.
pub fn check_variables(environment: &BTreeMap<String, String>, known: &[String]) -> Result<(), ConfigError> {
    let names: Vec<String> = known.iter().map(|key| variable(key)).collect();
    for found in environment.keys().filter(|name| name.starts_with(PREFIX) && !names.contains(name)) {
        // `HEADROOM_URL` for the setting `headroom_url`: its variable has the prefix twice.
        if known.iter().any(|key| key.to_uppercase() == *found) {
            return Err(ConfigError::UnknownVariable {
                variable: found.clone(),
                suggested: variable(&found.to_lowercase()),
            });
        }
        let mistakes = |name: &&String| strsim::osa_distance(name, found);
        let Some(nearest) = names.iter().min_by_key(mistakes) else { continue };
        if mistakes(&nearest) * LETTERS_PER_MISTAKE <= nearest.len() - PREFIX.len() {
            return Err(ConfigError::UnknownVariable { variable: found.clone(), suggested: nearest.clone() });
        }
    }
    Ok(())
}

/// `DATABASE_URL`, then the prefixed ones, a layer each. Some tools set `DATABASE_URL` to nothing.
pub fn of_environment(environment: &BTreeMap<String, String>, defaults: &Layer) -> Vec<Layer> {
    let url = (DATABASE_URL.to_owned(), DATABASE.to_owned());
    let prefixed = defaults.keys().map(|key| (variable(key), key.clone()));
    let layer = |(name, key): (String, String)| {
        let default = defaults.dict.get(&key)?;
        let text = environment.get(&name).filter(|text| name != DATABASE_URL || !text.is_empty())?;
        let dict = Dict::from([(key, value(text, default))]);
        Some(Layer { origin: Origin::Variable(name), dict })
    };
    std::iter::once(url).chain(prefixed).filter_map(layer).collect()
}

/// Text stays text where the setting is one; else it is a number, or yes or no, if it can be.
fn value(text: &str, default: &Value) -> Value {
    let number = || {
        let whole = text.parse::<i64>().map(Value::from).or_else(|_| text.parse::<u64>().map(Value::from));
        whole.ok().or_else(|| text.parse::<f64>().map(Value::from).ok())
    };
    let read = match default {
        Value::String(..) => None,
        Value::Bool(..) => text.parse::<bool>().map(Value::from).ok(),
        _ => number(),
    };
    read.unwrap_or_else(|| Value::from(text))
}

/// The keys outside the sections of a settings file, then those of the program's own section.
pub fn of_file(program: &str, file: Option<&Path>, known: &[String]) -> Result<Vec<Layer>, ConfigError> {
    let path = match file {
        Some(path) if !path.exists() => return Err(ConfigError::NoFile { file: path.to_owned() }),
        Some(path) => path.to_owned(),
        None if Path::new(DEFAULT_FILE).exists() => PathBuf::from(DEFAULT_FILE),
        None => return Ok(Vec::new()),
    };
    let name = path.display().to_string();
    let unreadable = |detail: String| ConfigError::Invalid { place: name.clone(), detail };
    let text = std::fs::read_to_string(&path).map_err(|fault| unreadable(fault.to_string()))?;
    let mut data =
        Toml::string(&text).data().map_err(|fault| unreadable(shown::without_secrets(&fault.kind.to_string())))?;
    let top = data.remove(&Profile::Default).unwrap_or_default();
    let mut shared = Dict::new();
    let mut layers = Vec::new();
    for (key, value) in top {
        match value {
            Value::Dict(_, section) if SECTIONS.contains(&key.as_str()) => {
                if key == program {
                    check_keys(&format!("{name} [{program}]"), &section, known)?;
                    layers.push(Layer { origin: Origin::File(name.clone()), dict: section });
                }
            }
            value => {
                // A key for all programs may be one that this program does not have; a section may not be misspelt.
                check_shared(&name, &key, &value, known)?;
                if known.contains(&key) {
                    shared.insert(key, value);
                }
            }
        }
    }
    layers.insert(0, Layer { origin: Origin::File(name), dict: shared });
    Ok(layers)
}

fn check_keys(place: &str, section: &Dict, known: &[String]) -> Result<(), ConfigError> {
    match section.keys().find(|key| !known.contains(key)) {
        Some(key) => Err(unknown(place, key, known)),
        None => Ok(()),
    }
}

fn check_shared(place: &str, key: &str, value: &Value, known: &[String]) -> Result<(), ConfigError> {
    if matches!(value, Value::Dict(..)) {
        return Err(unknown(place, key, &SECTIONS.map(str::to_owned)));
    }
    if key == DATABASE || known.iter().any(|name| name == key) {
        return Ok(());
    }
    Err(unknown(place, key, known))
}

fn unknown(place: &str, key: &str, known: &[String]) -> ConfigError {
    let (place, key) = (place.to_owned(), key.to_owned());
    ConfigError::UnknownKey { suggested: closest(&key, known), place, key, known: known.to_vec() }
}
