//! Settings with their origin: flag > `HEADROOM_*` > settings file > default.

use crate::exit::{Exit, Failure};
use figment::providers::{Env, Format, Toml};
use figment::value::{Dict, Value};
use figment::{Figment, Metadata, Profile, Provider};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::path::{Path, PathBuf};

/// Looked for in the working folder where no `--config` is given.
const DEFAULT_FILE: &str = "headroom.toml";
const ENVIRONMENT: &str = "HEADROOM_";
/// Beside the prefixed one, since many tools know it.
const DATABASE_URL: &str = "DATABASE_URL";
/// Sections of the settings file, one a program; a key outside a section holds for all.
const SECTIONS: [&str; 5] = ["datasets", "train", "quota-service", "simulate", "notebooks-export"];
/// Distance up to which another name is suggested.
const SIMILAR: f64 = 0.7;

/// Why settings were refused.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("settings file {} does not exist", file.display())]
    NoFile { file: PathBuf },
    #[error("{origin}: {detail}")]
    Invalid { origin: String, detail: String },
    #[error("{origin}: key {key:?} is not known{}; there are {known}", suggestion(suggested.as_deref()))]
    UnknownKey { origin: String, key: String, suggested: Option<String>, known: String },
}

fn suggestion(name: Option<&str>) -> String {
    name.map(|name| format!(", did you mean {name:?}?")).unwrap_or_default()
}

impl From<ConfigError> for Failure {
    fn from(fault: ConfigError) -> Self {
        Self::new(Exit::ConfigInvalid, fault)
    }
}

/// One setting and where it comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Entry {
    pub key: String,
    pub value: String,
    pub origin: String,
}

/// Settings in force.
#[derive(Debug, Clone)]
pub struct Settings<T> {
    pub values: T,
    /// Each setting with its origin, by key.
    pub entries: Vec<Entry>,
}

impl<T: Serialize + DeserializeOwned + Default> Settings<T> {
    /// Layers the settings of `program`. `flags` are what the command line gave; those it did not give are left out when
    /// serialised.
    ///
    /// # Errors
    /// The file named by `--config` does not exist, a key is not known, or a value does not fit.
    pub fn load(program: &str, file: Option<&Path>, flags: &impl Serialize) -> Result<Self, ConfigError> {
        let defaults = Layer::of("default", &T::default());
        let known: Vec<String> = defaults.dict.keys().cloned().collect();
        let mut figment = Figment::from(defaults);
        for layer in file_layers(program, file, &known)? {
            figment = figment.merge(layer);
        }
        if known.iter().any(|key| key == "database") {
            figment = figment.merge(
                Env::raw()
                    .only(&[DATABASE_URL])
                    .filter(|_| std::env::var_os(DATABASE_URL).is_some_and(|url| !url.is_empty()))
                    .map(|_| "database".into()),
            );
        }
        let fields: Vec<&str> = known.iter().map(String::as_str).collect();
        let figment = figment.merge(Env::prefixed(ENVIRONMENT).only(&fields)).merge(Layer::of("flag", flags));
        let values = figment.extract().map_err(|fault| invalid(&fault))?;
        let entry = |key: &String| Entry {
            key: key.clone(),
            value: figment.find_value(key).map(|value| shown(key, &value)).unwrap_or_default(),
            origin: figment.find_metadata(key).map(origin).unwrap_or_default(),
        };
        Ok(Self { values, entries: known.iter().map(entry).collect() })
    }
}

/// Values with one origin.
struct Layer {
    origin: String,
    dict: Dict,
}

impl Layer {
    fn of(origin: &str, values: &impl Serialize) -> Self {
        let dict = Value::serialize(values).ok().and_then(Value::into_dict).unwrap_or_default();
        Self { origin: origin.to_owned(), dict }
    }
}

impl Provider for Layer {
    fn metadata(&self) -> Metadata {
        Metadata::named(self.origin.clone())
    }

    fn data(&self) -> Result<figment::value::Map<Profile, Dict>, figment::Error> {
        Ok(Profile::Default.collect(self.dict.clone()))
    }
}

/// The keys outside the sections of a settings file, then those of the program's own section.
fn file_layers(program: &str, file: Option<&Path>, known: &[String]) -> Result<Vec<Layer>, ConfigError> {
    let path = match file {
        Some(path) if !path.exists() => return Err(ConfigError::NoFile { file: path.to_owned() }),
        Some(path) => path.to_owned(),
        None if Path::new(DEFAULT_FILE).exists() => PathBuf::from(DEFAULT_FILE),
        None => return Ok(Vec::new()),
    };
    let origin = path.display().to_string();
    let unreadable = |fault: figment::Error| ConfigError::Invalid { origin: origin.clone(), detail: fault.to_string() };
    let mut data = Toml::file_exact(&path).data().map_err(unreadable)?;
    let top = data.remove(&Profile::Default).unwrap_or_default();
    let mut shared = Dict::new();
    let mut layers = Vec::new();
    for (key, value) in top {
        match value {
            Value::Dict(_, section) if SECTIONS.contains(&key.as_str()) => {
                if key == program {
                    check_keys(&format!("{origin} [{program}]"), &section, known)?;
                    layers.push(Layer { origin: origin.clone(), dict: section });
                }
            }
            value => {
                // A key for all programs may be one that this program does not have; a section may not be misspelt.
                check_shared(&origin, &key, &value, known)?;
                if known.contains(&key) {
                    shared.insert(key, value);
                }
            }
        }
    }
    layers.insert(0, Layer { origin, dict: shared });
    Ok(layers)
}

fn check_keys(origin: &str, section: &Dict, known: &[String]) -> Result<(), ConfigError> {
    match section.keys().find(|key| !known.contains(key)) {
        Some(key) => Err(unknown(origin, key, known)),
        None => Ok(()),
    }
}

fn check_shared(origin: &str, key: &str, value: &Value, known: &[String]) -> Result<(), ConfigError> {
    const SHARED: [&str; 1] = ["database"];
    if matches!(value, Value::Dict(..)) {
        return Err(unknown(origin, key, &SECTIONS.map(str::to_owned)));
    }
    if SHARED.contains(&key) || known.iter().any(|name| name == key) {
        return Ok(());
    }
    Err(unknown(origin, key, known))
}

fn unknown(origin: &str, key: &str, known: &[String]) -> ConfigError {
    let closest = known.iter().map(|name| (strsim::jaro_winkler(name, key), name)).max_by(|a, b| a.0.total_cmp(&b.0));
    ConfigError::UnknownKey {
        origin: origin.to_owned(),
        key: key.to_owned(),
        suggested: closest.filter(|(similarity, _)| *similarity > SIMILAR).map(|(_, name)| name.clone()),
        known: known.join(", "),
    }
}

fn invalid(fault: &figment::Error) -> ConfigError {
    let origin = fault.metadata.as_ref().map_or_else(|| "settings".to_owned(), origin);
    ConfigError::Invalid { origin, detail: format!("{}: {}", fault.path.join("."), fault.kind) }
}

fn origin(metadata: &Metadata) -> String {
    if metadata.name.contains("environment") { "environment".to_owned() } else { metadata.name.to_string() }
}

/// A value as text; the password of a database URL is not shown.
fn shown(key: &str, value: &Value) -> String {
    let text = value.as_str().map_or_else(|| serde_json::to_string(value).unwrap_or_default(), str::to_owned);
    if key == "database" { without_password(&text) } else { text }
}

fn without_password(url: &str) -> String {
    let hidden = url.split_once("://").and_then(|(scheme, rest)| {
        let (user_info, host) = rest.split_once('@')?;
        let (user, _) = user_info.split_once(':')?;
        Some(format!("{scheme}://{user}:***@{host}"))
    });
    hidden.unwrap_or_else(|| url.to_owned())
}

/// Prints settings for `config show`.
pub fn show(entries: &[Entry], with_origin: bool, json: bool) {
    if json {
        crate::print_json(&entries);
        return;
    }
    let row = |entry: &Entry| {
        let mut row = vec![entry.key.clone(), entry.value.clone()];
        row.extend(with_origin.then(|| entry.origin.clone()));
        row
    };
    let header: &[&str] = if with_origin { &["key", "value", "origin"] } else { &["key", "value"] };
    crate::print_text(&crate::table(header, &entries.iter().map(row).collect::<Vec<_>>()));
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Debug, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Example {
        database: String,
        refresh_s: u32,
        listen: String,
    }

    impl Default for Example {
        fn default() -> Self {
            Self { database: "sqlite://headroom.db".into(), refresh_s: 300, listen: "127.0.0.1:8080".into() }
        }
    }

    #[derive(Debug, Default, Serialize)]
    struct Flags {
        #[serde(skip_serializing_if = "Option::is_none")]
        refresh_s: Option<u32>,
    }

    fn load(text: &str, flags: &Flags) -> Result<Settings<Example>, String> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("headroom.toml");
        std::fs::write(&file, text).unwrap();
        let shortened = |fault: ConfigError| fault.to_string().replace(&format!("{}/", folder.path().display()), "");
        Settings::load("quota-service", Some(&file), flags).map_err(shortened)
    }

    fn origin_of(settings: &Settings<Example>, key: &str) -> String {
        let origin = &settings.entries.iter().find(|entry| entry.key == key).unwrap().origin;
        Path::new(origin).file_name().unwrap().to_str().unwrap().to_owned()
    }

    #[test]
    fn a_flag_wins_over_the_file_and_the_file_over_the_default_and_each_says_where_it_is_from() {
        let text =
            "database = \"postgres://u:secret@db/headroom\"\n[quota-service]\nrefresh_s = 60\n[train]\nseed = 1\n";
        let from_file = load(text, &Flags::default()).unwrap();
        assert_eq!((from_file.values.refresh_s, origin_of(&from_file, "refresh_s")), (60, "headroom.toml".into()));
        assert_eq!(origin_of(&from_file, "listen"), "default");
        let from_flag = load(text, &Flags { refresh_s: Some(7) }).unwrap();
        assert_eq!((from_flag.values.refresh_s, origin_of(&from_flag, "refresh_s")), (7, "flag".into()));
        let shown = &from_flag.entries.iter().find(|entry| entry.key == "database").unwrap().value;
        assert_eq!(shown, "postgres://u:***@db/headroom", "no secret is shown");
    }

    #[test]
    fn a_misspelt_key_or_section_is_refused_with_the_right_name() {
        let fault = load("[quota-service]\nrefersh_s = 60\n", &Flags::default()).unwrap_err();
        assert_eq!(
            fault,
            "headroom.toml [quota-service]: key \"refersh_s\" is not known, did you mean \"refresh_s\"?; there are \
             database, listen, refresh_s"
        );
        let fault = load("[quota_service]\n", &Flags::default()).unwrap_err();
        assert!(fault.contains("did you mean \"quota-service\"?"), "{fault}");
        assert!(load("databse = 1\n", &Flags::default()).unwrap_err().contains("did you mean \"database\"?"));
    }

    #[test]
    fn a_value_of_the_wrong_kind_names_its_key_and_file() {
        let fault = load("[quota-service]\nrefresh_s = \"often\"\n", &Flags::default()).unwrap_err();
        assert!(fault.starts_with("headroom.toml: refresh_s: "), "{fault}");
        assert!(load("refresh_s =", &Flags::default()).is_err());
        let missing = Settings::<Example>::load("train", Some(Path::new("/nowhere.toml")), &Flags::default());
        assert_eq!(missing.unwrap_err().to_string(), "settings file /nowhere.toml does not exist");
    }
}
