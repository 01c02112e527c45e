//! Settings files, and policy files.

use crate::{chosen, file_of, is_one_line};
use command_line::{Settings, read_toml};
use quota_service::args::Config;
use serde::Serialize;
use serde_json::Value;
use wire::PolicyBody;

/// No flag was given.
#[derive(Serialize)]
struct NoFlags {}

/// The first line says what the file is: `settings`, of the service, or `policy`.
pub fn config(data: &[u8]) {
    let Some((kind, text)) = chosen(data) else { return };
    match kind {
        "settings" => settings(text),
        "policy" => policy(text),
        _ => {}
    }
}

fn settings(text: &[u8]) {
    let path = file_of("headroom.toml", text);
    let load = |path| Settings::<Config>::load("quota-service", Some(path), &NoFlags {}).and_then(Settings::values);
    let config = match load(path.as_path()) {
        Ok(config) => config,
        Err(fault) => return names_the_file(&path.display().to_string(), &fault.to_string()),
    };
    let again = file_of("again.toml", written(&config).as_bytes());
    assert_eq!(load(&again).expect("what is written is read"), config);
}

fn policy(text: &[u8]) {
    let path = file_of("policy.toml", text);
    let body = match read_toml::<PolicyBody>(&path) {
        Ok(body) => body,
        Err(fault) => return names_the_file(&path.display().to_string(), &fault.to_string()),
    };
    match body.parse("") {
        Err(fault) => is_one_line(&fault.to_string()),
        Ok(policy) => {
            assert_eq!(policy.check(), Ok(()), "what is accepted goes together");
            let again = file_of("again.toml", written(&body).as_bytes());
            assert_eq!(read_toml::<PolicyBody>(&again).expect("what is written is read"), body);
        }
    }
}

/// The same as TOML, a key a line.
fn written(of: &impl Serialize) -> String {
    let value = serde_json::to_value(of).expect("settings are strings and numbers");
    let keys = value.as_object().expect("settings have names");
    let given = keys.iter().filter(|(_, value)| !value.is_null());
    given.map(|(key, value)| format!("{key} = {}", inline(value))).collect::<Vec<_>>().join("\n")
}

fn inline(value: &Value) -> String {
    match value {
        Value::Object(keys) => {
            let keys = keys.iter().map(|(key, value)| format!("{key} = {}", inline(value)));
            format!("{{ {} }}", keys.collect::<Vec<_>>().join(", "))
        }
        // Strings of JSON are strings of TOML, but for one character that TOML wants escaped.
        other => other.to_string().replace('\u{7f}', "\\u007f"),
    }
}

/// The file, or the setting where another one of the file asks for it.
fn names_the_file(path: &str, printed: &str) {
    let names_a_setting = printed.starts_with("train_program: ");
    assert!(printed.contains(path) || names_a_setting, "{printed:?} does not name the place");
}
