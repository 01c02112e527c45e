//! Every reason, refusal and problem of an answer has a remedy.

use super::{files, text};
use std::collections::BTreeSet;
use std::path::Path;

/// A code as a problem is made with one, or as a body has one.
const BEFORE: [&str; 4] = ["later(", "code:", "foreign(", "=>"];

/// Texts in quotes with what stands before them on their lines.
fn quoted(source: &str) -> Vec<(&str, &str)> {
    let parts: Vec<&str> = source.split('"').collect();
    // Also what stands between two texts: a quote within one would shift all that follow. It is no code.
    parts.windows(2).map(|pair| (pair[0].trim_end(), pair[1])).collect()
}

fn is_code(word: &str) -> bool {
    word.len() > 3 && word.chars().all(|letter| letter.is_ascii_lowercase() || letter == '-' || letter == '_')
}

/// `of(404,` and `plain(503,`.
fn makes_a_problem(before: &str) -> bool {
    let Some(rest) = before.strip_suffix(',') else { return false };
    let call = rest.trim_end_matches(|digit: char| digit.is_ascii_digit());
    call.len() < rest.len() && ["of(", "plain("].iter().any(|name| call.trim_end().ends_with(name))
}

/// The codes of a source: of the problems that it makes, and those that a function `code` gives.
fn codes(source: &str) -> BTreeSet<String> {
    let program = source.split("#[cfg(test)]").next().unwrap_or_default();
    let of = |before: &str| makes_a_problem(before) || BEFORE[..3].iter().any(|call| before.ends_with(call));
    let mut found: BTreeSet<String> = quoted(program)
        .into_iter()
        .filter(|(before, word)| is_code(word) && of(before))
        .map(|(_, word)| word.to_owned())
        .collect();
    for function in program.split("fn code(").skip(1) {
        let body = function.split("\n    }\n").next().unwrap_or_default();
        let named = quoted(body).into_iter().filter(|(before, word)| is_code(word) && before.ends_with(BEFORE[3]));
        found.extend(named.map(|(_, word)| word.to_owned()));
    }
    found
}

#[test]
fn every_code_of_an_answer_has_a_remedy() {
    let folders =
        ["quota-service/src", "quota-service/placement/src", "quota-service/starts/src", "quota-service/wire/src"];
    let of_service = |path: &std::path::PathBuf| {
        let path = path.display().to_string();
        folders.iter().any(|folder| path.contains(folder)) && !path.contains("/tests")
    };
    let sources = files(&["rs"]).into_iter().filter(of_service);
    let used: BTreeSet<String> = sources.flat_map(|path| codes(&text(&path))).collect();
    assert!(used.len() > 80, "{used:?}");
    let remedies = files(&["rs"]).into_iter().find(|path| path.ends_with("mcp/remedies.rs")).expect("the table");
    let remedies = text(&remedies);
    let missing: Vec<&String> = used.iter().filter(|code| !remedies.contains(&format!("\"{code}\","))).collect();
    assert!(missing.is_empty(), "give each a remedy in quota-service/headroom/src/mcp/remedies.rs: {missing:?}");
    let page = text(Path::new("deploy/CODES.md"));
    let missing: Vec<&String> = used.iter().filter(|code| !page.contains(&format!("| `{code}` |"))).collect();
    assert!(missing.is_empty(), "give each a row in deploy/CODES.md: {missing:?}");
}

#[test]
fn codes_are_found_where_they_are_made() {
    let source = r#"fn a() { of(404, "no-pool", "No pool", x); Self::plain(503, "not-up", "t"); later("busy-now", "t"); }
        fn code(&self) -> &str {
        match self {
            Self::One => "one_reason",
            Self::Two { .. } => "two_reasons",
        }
    }
fn other() { x => "no_code" } ReasonBody { code: "lowered".to_owned() }"#;
    let found: Vec<String> = codes(source).into_iter().collect();
    assert_eq!(found, ["busy-now", "lowered", "no-pool", "not-up", "one_reason", "two_reasons"]);
}
