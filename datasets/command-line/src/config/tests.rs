//! Layers, their origins, and what is refused.

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

impl Config for Example {
    fn check(&self) -> Result<(), BadValue> {
        if self.refresh_s == 0 { Err(BadValue::new("refresh_s", "0 is too often")) } else { Ok(()) }
    }
}

#[derive(Debug, Default, Serialize)]
struct Flags {
    #[serde(skip_serializing_if = "Option::is_none")]
    refresh_s: Option<u32>,
}

const NO_FLAGS: Flags = Flags { refresh_s: None };

fn load_in(variables: &[(&str, &str)], text: &str, flags: &Flags) -> Result<Settings<Example>, String> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("headroom.toml");
    std::fs::write(&file, text).unwrap();
    let environment = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let shorter = |text: &str| text.replace(&format!("{}/", folder.path().display()), "");
    let loaded = Settings::load_in(&environment, "quota-service", Some(&file), flags);
    let mut settings: Settings<Example> = loaded.map_err(|fault| shorter(&fault.to_string()))?;
    for entry in &mut settings.entries {
        entry.origin = shorter(&entry.origin);
    }
    if let Err(ConfigError::Invalid { place, .. }) = &mut settings.values {
        *place = shorter(place);
    }
    Ok(settings)
}

fn load(text: &str) -> Result<Settings<Example>, String> {
    load_in(&[], text, &NO_FLAGS)
}

fn origin(settings: &Settings<Example>, key: &str) -> (String, Option<String>) {
    let entry = settings.entries.iter().find(|entry| entry.key == key).unwrap();
    (entry.origin.clone(), entry.variable.clone())
}

/// Fault of a value; the program receives it only from `values`.
fn bad_value(variables: &[(&str, &str)], text: &str, flags: &Flags) -> String {
    load_in(variables, text, flags).unwrap().values().unwrap_err().to_string()
}

#[test]
fn a_flag_wins_over_the_environment_that_over_the_file_and_the_file_over_the_default() {
    let text = "database = \"postgres://u:secret@db/headroom\"\n[quota-service]\nrefresh_s = 60\n[train]\nseed = 1\n";
    let from_file = load(text).unwrap();
    assert_eq!(origin(&from_file, "refresh_s"), ("headroom.toml".into(), None));
    assert_eq!(origin(&from_file, "listen"), ("default".into(), None));
    let shown = &from_file.entries.iter().find(|entry| entry.key == "database").unwrap().value;
    assert_eq!(shown, "postgres://u:***@db/headroom", "no secret is shown");
    assert_eq!(from_file.values().unwrap().refresh_s, 60);
    let variables = [("HEADROOM_REFRESH_S", "30")];
    let from_variable = load_in(&variables, text, &NO_FLAGS).unwrap();
    assert_eq!(origin(&from_variable, "refresh_s"), ("environment".into(), Some("HEADROOM_REFRESH_S".into())));
    assert_eq!(from_variable.values().unwrap().refresh_s, 30);
    let from_flag = load_in(&variables, text, &Flags { refresh_s: Some(7) }).unwrap();
    assert_eq!(origin(&from_flag, "refresh_s"), ("flag".into(), None));
    assert_eq!(from_flag.values().unwrap().refresh_s, 7);
}

#[test]
fn database_url_is_understood_unless_it_is_empty_and_the_prefixed_one_wins() {
    let both = [("DATABASE_URL", "sqlite://a.db"), ("HEADROOM_DATABASE", "sqlite://b.db")];
    assert_eq!(load_in(&both, "", &NO_FLAGS).unwrap().values().unwrap().database, "sqlite://b.db");
    let alone = load_in(&both[..1], "", &NO_FLAGS).unwrap();
    assert_eq!(origin(&alone, "database"), ("environment".into(), Some("DATABASE_URL".into())));
    let empty = load_in(&[("DATABASE_URL", "")], "", &NO_FLAGS).unwrap();
    assert_eq!(empty.values().unwrap().database, "sqlite://headroom.db");
}

#[test]
fn a_misspelt_key_or_section_is_refused_with_the_right_name() {
    assert_eq!(
        load("[quota-service]\nrefersh_s = 60\n").unwrap_err(),
        "headroom.toml [quota-service]: key \"refersh_s\" is not known, did you mean \"refresh_s\"?; known keys: database, \
         listen, refresh_s"
    );
    let fault = load("[quota_service]\n").unwrap_err();
    assert!(fault.contains("did you mean \"quota-service\"?"), "{fault}");
    assert!(load("databse = 1\n").unwrap_err().contains("did you mean \"database\"?"));
}

#[test]
fn a_misspelt_variable_is_refused_and_an_unrelated_one_is_ignored() {
    let fault = load_in(&[("HEADROOM_REFERSH_S", "60")], "", &NO_FLAGS).unwrap_err();
    assert_eq!(fault, "HEADROOM_REFERSH_S is not a setting, did you mean HEADROOM_REFRESH_S?");
    for foreign in ["HEADROOM_PORT", "HEADROOM_SERVICE_HOST", "HEADROOM_TEST_POSTGRES", "HEADROOM_SEED"] {
        assert!(load_in(&[(foreign, "1")], "", &NO_FLAGS).is_ok(), "{foreign}");
    }
}

#[test]
fn a_value_of_the_wrong_kind_names_its_place() {
    let fault = bad_value(&[], "[quota-service]\nrefresh_s = \"often\"\n", &NO_FLAGS);
    assert_eq!(fault, "headroom.toml: refresh_s: \"often\" is not a whole number of at least 1");
    let fault = bad_value(&[("HEADROOM_REFRESH_S", "7.5")], "", &NO_FLAGS);
    assert_eq!(fault, "HEADROOM_REFRESH_S: 7.5 is not a whole number of at least 1");
    let fault = bad_value(&[], "listen = 8080\n", &NO_FLAGS);
    assert_eq!(fault, "headroom.toml: listen: 8080 is not a text: put it in quotes");
    assert_eq!(load_in(&[("HEADROOM_LISTEN", "8080")], "", &NO_FLAGS).unwrap().values().unwrap().listen, "8080");
}

#[test]
fn a_fault_that_is_found_later_names_the_place_of_its_setting() {
    let places = load_in(&[("HEADROOM_REFRESH_S", "7")], "listen = \"a\"\n", &NO_FLAGS).unwrap().places();
    let named = |text: &str| places.named(Failure::new(Exit::ConfigInvalid, text)).message;
    assert_eq!(named("refresh_s: no such file"), "HEADROOM_REFRESH_S: no such file");
    assert!(named("listen: taken").ends_with("headroom.toml: listen: taken"));
    assert_eq!(named("a sentence"), "a sentence");
}

#[test]
fn a_variable_that_lacks_the_prefix_before_a_headroom_setting_is_refused() {
    let known = ["headroom_url".to_owned(), "cluster".to_owned()];
    let environment = BTreeMap::from([("HEADROOM_URL".to_owned(), "http://a:1".to_owned())]);
    let fault = layers::check_variables(&environment, &known).unwrap_err().to_string();
    assert_eq!(fault, "HEADROOM_URL is not a setting, did you mean HEADROOM_HEADROOM_URL?");
}

#[test]
fn a_value_that_the_program_cannot_work_with_names_its_place_and_is_shown_all_the_same() {
    assert_eq!(bad_value(&[], "refresh_s = 0\n", &NO_FLAGS), "headroom.toml: refresh_s: 0 is too often");
    assert_eq!(bad_value(&[("HEADROOM_REFRESH_S", "0")], "", &NO_FLAGS), "HEADROOM_REFRESH_S: 0 is too often");
    assert_eq!(bad_value(&[], "", &Flags { refresh_s: Some(0) }), "--refresh-s: 0 is too often");
    let settings = load("refresh_s = 0\n").unwrap();
    assert!(settings.entries.iter().any(|entry| entry.key == "refresh_s" && entry.value == "0"));
}

#[test]
fn a_file_that_is_none_or_not_there_is_refused() {
    assert!(load("refresh_s =").unwrap_err().starts_with("headroom.toml: "));
    let missing = Settings::<Example>::load("train", Some(Path::new("/missing.toml")), &NO_FLAGS);
    assert_eq!(missing.unwrap_err().to_string(), "settings file /missing.toml does not exist");
    assert!(Settings::<Example>::load("train", Some(Path::new("/")), &NO_FLAGS).is_err());
}

#[test]
fn settings_from_another_source_are_shown_with_its_origin() {
    let fill = |mut values: Example, set: &BTreeSet<&str>| {
        assert_eq!(set.iter().copied().collect::<Vec<_>>(), ["refresh_s"]);
        values.listen = "127.0.0.1:9090".into();
        // One that it states as the default is, and one that a file sets.
        Ok((values, vec!["listen", "database", "refresh_s"]))
    };
    let filled = load("[quota-service]\nrefresh_s = 60\n").unwrap().filled("kubeconfig", fill);
    let entry = filled.entries.iter().find(|entry| entry.key == "listen").unwrap();
    assert_eq!((entry.value.as_str(), entry.origin.as_str()), ("127.0.0.1:9090", "kubeconfig"));
    assert_eq!(origin(&filled, "database"), ("kubeconfig".into(), None));
    assert_eq!(origin(&filled, "refresh_s"), ("headroom.toml".into(), None));
    assert_eq!(filled.values().unwrap().listen, "127.0.0.1:9090");
    // A setting that a file sets to the default is set.
    let set = load(&format!("[quota-service]\nrefresh_s = {}\n", Example::default().refresh_s)).unwrap();
    let set = set.filled("kubeconfig", |values, set| {
        assert!(set.contains("refresh_s"), "{set:?}");
        Ok((values, vec!["refresh_s"]))
    });
    assert_eq!(origin(&set, "refresh_s"), ("headroom.toml".into(), None));
    let refused = load("").unwrap().filled("kubeconfig", |_, _| Err("write url".to_owned()));
    assert_eq!(refused.values().unwrap_err().to_string(), "kubeconfig: write url");
}
