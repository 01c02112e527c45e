//! The example of the settings file.

use serde_json::Value;
use std::collections::BTreeMap;
use tests::{program, program_names, workspace_root};

/// Key → value and origin.
fn settings(name: &str, file: &str) -> BTreeMap<String, (String, String)> {
    let shown = program(name, &["config", "show", "--origin", "--json", "--config", file]).json();
    let text = |entry: &Value, field: &str| entry[field].as_str().unwrap().to_owned();
    let entry = |one: &Value| (text(one, "key"), (text(one, "value"), text(one, "origin")));
    shown.as_array().unwrap().iter().map(entry).collect()
}

#[test]
fn the_example_of_the_settings_file_shows_every_setting_with_its_default() {
    let example = workspace_root().join("deploy/headroom.toml");
    let written = std::fs::read_to_string(&example).unwrap();
    let is_setting = |line: &str| {
        let key = line.strip_prefix("# ").and_then(|rest| rest.split_once(" = ")).map(|(key, _)| key);
        key.is_some_and(|key| key.chars().all(|letter| letter.is_ascii_lowercase() || letter == '_'))
    };
    let line = |line: &str| if is_setting(line) { line[2..].to_owned() } else { line.to_owned() };
    let folder = tempfile::tempdir().unwrap();
    let in_force = folder.path().join("headroom.toml");
    std::fs::write(&in_force, written.lines().map(line).collect::<Vec<_>>().join("\n")).unwrap();
    for name in program_names() {
        let defaults = settings(&name, example.to_str().unwrap());
        let set = settings(&name, in_force.to_str().unwrap());
        for (key, (value, origin)) in &set {
            assert!(origin.ends_with("headroom.toml"), "{name}: {key} is not in deploy/headroom.toml");
            assert_eq!((*value).clone(), defaults[key].0, "{name}: {key} stands there with another value");
            assert_eq!(defaults[key].1, "default", "{name}: {key} is set by the example");
        }
    }
}
