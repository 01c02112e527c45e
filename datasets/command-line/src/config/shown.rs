//! `config show`.

use super::Entry;
use figment::value::Value;

/// A value as text; no password of a database is shown, and no path of a webhook, which suffices to post to a chat.
pub fn text(key: &str, value: &Value) -> String {
    let text = value.as_str().map_or_else(|| serde_json::to_string(value).unwrap_or_default(), str::to_owned);
    match key {
        "database" => without_password(&text),
        "webhook_url" | "notice_webhook_url" => without_path(&text),
        _ => text,
    }
}

/// Scheme and host alone.
fn without_path(url: &str) -> String {
    if url.is_empty() {
        return String::new();
    }
    let Some((scheme, rest)) = url.split_once("://") else { return "***".to_owned() };
    let Some(end) = rest.find(['/', '?', '#']).filter(|end| rest.get(end + 1..).is_some_and(|path| !path.is_empty()))
    else {
        return without_password(url);
    };
    let (host, separator) = (&rest[..end], &rest[end..=end]);
    without_password(&format!("{scheme}://{host}{separator}***"))
}

/// A password may hold an @ of its own, and stand among the parameters, too.
fn without_password(url: &str) -> String {
    let hidden = url.split_once("://").and_then(|(scheme, rest)| {
        let (user_info, host) = rest.rsplit_once('@')?;
        let (user, _) = user_info.split_once(':')?;
        Some(format!("{scheme}://{user}:***@{host}"))
    });
    let no_url = || {
        let is_secret = !url.contains("://") && (url.contains('@') || url.contains("password"));
        is_secret.then(|| "***".to_owned())
    };
    let url = hidden.or_else(no_url).unwrap_or_else(|| url.to_owned());
    let Some((before, parameters)) = url.split_once('?') else { return url };
    // Also under a name that is misspelt.
    let parameter = |one: &str| match one.split_once('=') {
        Some((name, _)) if name.starts_with("pas") => format!("{name}=***"),
        _ => one.to_owned(),
    };
    let parameters: Vec<String> = parameters.split('&').map(parameter).collect();
    format!("{before}?{}", parameters.join("&"))
}

/// A fault of TOML without the value of a line that it shows, where that may be secret.
pub fn without_secrets(fault: &str) -> String {
    const SECRET: [&str; 3] = ["database", "webhook_url", "notice_webhook_url"];
    let line = |line: &str| match line.split_once('=') {
        Some((before, _)) if SECRET.iter().any(|key| before.trim_end().ends_with(key)) => format!("{before}= ***"),
        _ => line.to_owned(),
    };
    fault.lines().map(line).collect::<Vec<_>>().join("\n")
}

pub fn print(entries: &[Entry], with_origin: bool, json: bool) {
    if json {
        crate::print_json(&entries);
        return;
    }
    let origin = |entry: &Entry| match &entry.variable {
        Some(variable) => format!("{} {variable}", entry.origin),
        None => entry.origin.clone(),
    };
    let row = |entry: &Entry| {
        let mut row = vec![entry.key.clone(), entry.value.clone()];
        row.extend(with_origin.then(|| origin(entry)));
        row
    };
    let header: &[&str] = if with_origin { &["key", "value", "origin"] } else { &["key", "value"] };
    crate::print_text(&crate::table(header, &entries.iter().map(row).collect::<Vec<_>>()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_webhook_scheme_and_host_alone_are_shown() {
        for (url, expected) in [
            ("https://hooks.slack.com/services/T0/B0/secret", "https://hooks.slack.com/***"),
            ("https://prod.logic.azure.com?sig=secret", "https://prod.logic.azure.com?***"),
            ("http://u:secret@127.0.0.1:9/hook", "http://u:***@127.0.0.1:9/***"),
            ("http://127.0.0.1:9/", "http://127.0.0.1:9/"),
            ("hooks.slack.com/services/secret", "***"),
        ] {
            assert_eq!(text("webhook_url", &Value::from(url)), expected);
        }
        assert_eq!(text("webhook_url", &Value::from("")), "");
    }

    #[test]
    fn a_fault_of_toml_shows_no_secret() {
        let fault = "TOML parse error at line 2, column 12\n  |\n2 | database = \"postgres://u:secret@db\n  |            ^\ninvalid basic string";
        let shown = without_secrets(fault);
        assert!(
            !shown.contains("secret") && shown.contains("2 | database = ***\n") && shown.ends_with("basic string"),
            "{shown}"
        );
        let other = "2 | refresh_s = ten";
        assert_eq!(without_secrets(other), other);
    }

    #[test]
    fn no_password_of_a_database_is_shown_wherever_it_stands() {
        for (url, expected) in [
            ("postgres://u:secret@db/headroom", "postgres://u:***@db/headroom"),
            ("postgres://u:a@b:c@db/headroom", "postgres://u:***@db/headroom"),
            ("postgres://db/headroom?user=u&password=secret", "postgres://db/headroom?user=u&password=***"),
            ("postgres://u@db/headroom", "postgres://u@db/headroom"),
            ("postgres://u@db/headroom?pasword=secret", "postgres://u@db/headroom?pasword=***"),
            ("postgres:/u:secret@db/headroom", "***"),
            ("host=db user=u password=secret", "***"),
            ("sqlite://headroom.db", "sqlite://headroom.db"),
        ] {
            assert_eq!(without_password(url), expected);
        }
    }
}
