//! Settings: where each comes from, and what is refused.

use serde_json::Value;
use tempfile::TempDir;
use tests::{Ran, program, program_names, program_with};

/// Key and value of each setting.
fn defaults(name: &str) -> Vec<(String, String)> {
    let shown = program(name, &["config", "show", "--json"]).json();
    let text = |entry: &Value, field: &str| entry[field].as_str().unwrap().to_owned();
    shown.as_array().unwrap().iter().map(|entry| (text(entry, "key"), text(entry, "value"))).collect()
}

/// A value that is good, too.
fn good<'a>(key: &str, value: &'a str) -> &'a str {
    match (key, value) {
        ("advertise" | "otlp_endpoint", _) => "http://127.0.0.1:1",
        ("webhook_url" | "notice_webhook_url" | "notice_ray_url", _) => "http://127.0.0.1:1/hook",
        ("flavors", _) => "a100-spot=A100",
        // Any other value needs a second setting.
        ("at_will_flavors" | "hard_qos", _) => "",
        ("resource_quota_shares", _) => "team-a=0.5",
        ("kueue", _) => "off",
        ("webhook_kinds", _) => "evicted",
        ("spot_qos" | "spot_partitions" | "spot_accounts", _) => "spot1h=1",
        (_, "") => "latest",
        (_, value) => value,
    }
}

/// A settings file with a section.
fn file(folder: &TempDir, section: &str, lines: &str) -> String {
    let file = folder.path().join("headroom.toml");
    std::fs::write(&file, format!("[{section}]\n{lines}\n")).unwrap();
    file.to_str().unwrap().to_owned()
}

fn line(key: &str, value: &str) -> String {
    if value.parse::<f64>().is_ok() || value.parse::<bool>().is_ok() {
        format!("{key} = {value}")
    } else {
        format!("{key} = {value:?}")
    }
}

fn variable(key: &str) -> String {
    format!("HEADROOM_{}", key.to_uppercase())
}

/// The origin of a setting, and its line of the table.
fn origin(name: &str, key: &str, arguments: &[&str], variables: &[(&str, &str)]) -> (String, String) {
    let show = [&["config", "show", "--origin"], arguments].concat();
    let shown = program_with(name, &[&show[..], &["--json"]].concat(), variables).json();
    let entry = shown.as_array().unwrap().iter().find(|entry| entry["key"] == key).unwrap().clone();
    let table = program_with(name, &show, variables).ok().stdout;
    let line = table.lines().find(|line| line.split(' ').next() == Some(key)).unwrap().to_owned();
    (entry["origin"].as_str().unwrap().to_owned(), line)
}

#[test]
fn every_setting_of_every_program_shows_its_source() {
    let folder = tempfile::tempdir().unwrap();
    for name in program_names() {
        let help = program(&name, &["--help"]).ok().stdout;
        for (key, value) in defaults(&name) {
            let config = file(&folder, &name, &line(&key, good(&key, &value)));
            assert_eq!(origin(&name, &key, &[], &[]).0, "default", "{name}: {key}");
            assert_eq!(origin(&name, &key, &["--config", &config], &[]).0, config, "{name}: {key}");
            let set = variable(&key);
            let variables = [(set.as_str(), good(&key, &value))];
            let (from, line) = origin(&name, &key, &["--config", &config], &variables);
            assert_eq!(from, "environment", "{name}: {key}");
            assert!(line.ends_with(&format!("environment {set}")), "{name}: {line}");
            let flag = format!("--{}", key.replace('_', "-"));
            if help.contains(&format!(" {flag} ")) {
                let arguments = ["--config", &config, &flag, good(&key, &value)];
                assert_eq!(origin(&name, &key, &arguments, &variables).0, "flag", "{name}: {key}");
            }
        }
    }
}

#[test]
fn a_misspelt_key_or_variable_is_refused_with_the_right_one_by_every_program() {
    let folder = tempfile::tempdir().unwrap();
    for name in program_names() {
        let refused = |ran: Ran, right: &str| {
            assert_eq!(ran.code, 4, "{name}: {ran:?}");
            assert!(ran.stderr.contains(right), "{name}: {}", ran.stderr);
        };
        for (key, value) in defaults(&name) {
            let wrong = format!("{key}s");
            let config = file(&folder, &name, &line(&wrong, good(&key, &value)));
            let shown = program(&name, &["config", "show", "--config", &config]);
            refused(shown, &format!("key {wrong:?} is not known, did you mean {key:?}?"));
            let shown = program_with(&name, &["config", "show"], &[(&variable(&wrong), good(&key, &value))]);
            refused(shown, &format!("did you mean {}?", variable(&key)));
        }
        let config = file(&folder, &name, "nonsense = 1");
        refused(program(&name, &["config", "show", "--config", &config]), "key \"nonsense\" is not known");
    }
}

#[test]
fn no_program_minds_the_variables_of_another() {
    let all: Vec<_> = program_names().iter().flat_map(|name| defaults(name)).collect();
    let all: Vec<_> = all.iter().map(|(key, value)| (variable(key), good(key, value).to_owned())).collect();
    let all: Vec<_> = all.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    for name in program_names() {
        let _ = program_with(&name, &["config", "show"], &all).ok();
    }
}

#[test]
fn a_name_that_would_turn_the_text_beside_it_is_refused_with_the_character() {
    let ran = program_with("quota-service", &["config", "show"], &[(&variable("replica"), "a\u{202e}b")]);
    let begins = ran.stderr.starts_with(&format!("error: {}: ", variable("replica")));
    assert!(ran.code == 4 && begins && ran.stderr.contains("invisible character U+202E: remove it"), "{ran:?}");
}

#[test]
fn a_value_that_a_program_cannot_work_with_is_shown_and_refused_with_its_place() {
    for (name, key, value, why) in [
        ("train", "guarantee_rate", "1.5", "a guarantee rate of 1.5 is not between 0.000001 and 0.999999"),
        ("train", "seed", "7.5", "7.5 is not a whole number of at least 0"),
        ("train", "database", "mysql://x", "mysql is not a supported database"),
        ("datasets", "database", "headroom.db", "it has no scheme; write sqlite://PATH or postgres://USER@HOST/NAME"),
        ("quota-service", "advertise", "here:80", "write http://HOST:PORT"),
        ("quota-service", "lease_s", "0", "0 is below 1, the least"),
        ("quota-service", "lease_s", "601", "601 s: nobody would lead for so long after a loss; write at most 600"),
        ("quota-service", "listen", "localhost", "not an address: write ADDRESS:PORT, such as 127.0.0.1:8080"),
        ("quota-service", "as_of", "yesterday", "write a time with its offset"),
        ("quota-service", "refresh_s", "0", "0 is below 1, the least"),
        ("quota-service", "promotion_check_s", "0", "0 is below 1, the least"),
        ("quota-service", "max_body_bytes", "-1", "-1 is not a whole number of at least 1"),
        ("quota-service", "retrain", "hourly", "\"hourly\" is none of never, daily and weekly"),
        ("quota-service", "retrain_at", "24", "24 is no hour of a day: write 0 to 23"),
        ("quota-service", "retrain_limit_s", "0", "0 is below 1, the least"),
        ("quota-service", "snapshot_facts", "0", "0 is below 1, the least"),
        ("quota-service", "webhook_url", "ftp://example.org", "write http://HOST:PORT/PATH or https://HOST:PORT/PATH"),
        ("headroom-kubernetes", "extender", "perhaps", "\"perhaps\" is not true or false"),
        ("headroom-kubernetes", "flavors", "a100", "write FLAVOR=GPU_MODEL"),
        ("quota-service", "own_clusters", "a:b", "a colon"),
        ("quota-service", "log", "inof", "write error, warn, info, debug, trace, off, or TARGET=LEVEL"),
        ("headroom-kubernetes", "log", "inof", "write error, warn, info, debug, trace, off, or TARGET=LEVEL"),
        ("quota-service", "allowed_hosts", "http://x/y", "is no name of a host"),
        ("headroom-kubernetes", "lease_s", "5", "write retry_s < renew_s < lease_s"),
        ("quota-service", "max_reads", "some", "\"some\" is not a whole number of at least 1"),
        ("quota-service", "log", "quota_service=loud", "write error, warn, info, debug, trace, off, or TARGET=LEVEL"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let config = file(&folder, name, &line(key, value));
        let in_file = program(name, &["config", "show", "--config", &config]);
        let in_variable = program_with(name, &["config", "show"], &[(&variable(key), value)]);
        for (ran, place) in [(in_file, format!("{config}: {key}: ")), (in_variable, format!("{}: ", variable(key)))] {
            assert_eq!(ran.code, 4, "{ran:?}");
            assert!(ran.stderr.starts_with(&format!("error: {place}")) && ran.stderr.contains(why), "{ran:?}");
            let shown = |line: &str| line.split_whitespace().eq([key, value]);
            assert!(ran.stdout.lines().any(shown), "{key} is not shown: {}", ran.stdout);
        }
    }
}
