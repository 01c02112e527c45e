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
    let url = hidden.unwrap_or_else(|| url.to_owned());
    let Some((before, parameters)) = url.split_once('?') else { return url };
    let parameter = |one: &str| if one.starts_with("password=") { "password=***".to_owned() } else { one.to_owned() };
    let parameters: Vec<String> = parameters.split('&').map(parameter).collect();
    format!("{before}?{}", parameters.join("&"))
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
    fn no_password_of_a_database_is_shown_wherever_it_stands() {
        for (url, expected) in [
            ("postgres://u:secret@db/headroom", "postgres://u:***@db/headroom"),
            ("postgres://u:a@b:c@db/headroom", "postgres://u:***@db/headroom"),
            ("postgres://db/headroom?user=u&password=secret", "postgres://db/headroom?user=u&password=***"),
            ("postgres://u@db/headroom", "postgres://u@db/headroom"),
            ("sqlite://headroom.db", "sqlite://headroom.db"),
        ] {
            assert_eq!(without_password(url), expected);
        }
    }
}
