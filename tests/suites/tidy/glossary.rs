//! Words of `deploy/GLOSSARY.md` that are not used, and comments that begin with a relative clause.

use super::{files, text};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

const GLOSSARY: &str = "deploy/GLOSSARY.md";
const TEXTS: [&str; 11] = [".rs", ".md", ".js", ".html", ".css", ".yaml", ".yml", ".toml", ".sh", ".py", "Makefile"];
/// Files of others, and migrations, whose checksum databases remember.
const NOT_OURS: [&str; 5] = ["/vendor/", "/migrations/", "tests/fuzz/corpus/", "tests/chart/schemas", "LICENSE"];
/// Folders that still have such words, with how many: a number may only fall, and a folder that is not here has none.
const LEFT: &[(&str, usize)] = &[
    // The published name of a field of `doctor --json`.
    ("datasets/command-line", 1),
    ("tests/suites", 1),
];

/// Words of the first column of the second table.
fn unused_words() -> Vec<String> {
    let page = text(Path::new(GLOSSARY));
    let table = page.split("## Words that are not used").nth(1).expect("the glossary has the table");
    let rows = table.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| not |"));
    let words = rows.filter_map(|row| row.split('|').nth(1)).flat_map(|cell| cell.split(','));
    words.map(|word| word.trim().to_lowercase()).filter(|word| !word.is_empty()).collect()
}

/// Places of a word in a lower-case text, as a word or as a part of a name in snake case.
fn places(lower: &str, word: &str) -> usize {
    let is_letter = |letter: Option<char>| letter.is_some_and(char::is_alphabetic);
    let at = |(start, _): &(usize, &str)| {
        !is_letter(lower[..*start].chars().next_back()) && !is_letter(lower[start + word.len()..].chars().next())
    };
    lower.match_indices(word).filter(at).count()
}

/// Doc comments and comments that begin with a relative clause in place of a noun.
fn clauses(source: &str) -> usize {
    let begins = |line: &&str| {
        let words = line.trim_start().trim_start_matches(['/', '!']).trim_start();
        line.trim_start().starts_with("//")
            && ["What ", "Who ", "Whose ", "Whoever "].iter().any(|word| words.starts_with(word))
    };
    source.lines().filter(begins).count()
}

/// The first two folders of a path.
fn folder(path: &Path) -> String {
    let parents = path.parent().unwrap_or(Path::new(""));
    parents.iter().take(2).map(|part| part.to_str().unwrap()).collect::<Vec<_>>().join("/")
}

#[test]
fn words_that_the_glossary_does_not_use_are_not_used() {
    let words = unused_words();
    assert!(words.len() > 15, "{words:?}");
    let mut found: BTreeMap<String, (usize, String)> = BTreeMap::new();
    for path in files(&TEXTS) {
        let name = path.to_str().unwrap();
        if name == GLOSSARY || NOT_OURS.iter().any(|part| name.contains(part)) || name.ends_with("tidy/glossary.rs") {
            continue;
        }
        let source = text(&path);
        let lower = source.to_lowercase();
        let in_words: usize = words.iter().map(|word| places(&lower, word)).sum();
        let in_comments = if path.extension().is_some_and(|ending| ending == "rs") { clauses(&source) } else { 0 };
        if in_words + in_comments > 0 {
            let entry = found.entry(folder(&path)).or_default();
            entry.0 += in_words + in_comments;
            write!(entry.1, " {name}: {}", in_words + in_comments).unwrap();
        }
    }
    for (folder, (count, names)) in &found {
        let left = LEFT.iter().find(|(name, _)| name == folder).map_or(0, |(_, left)| *left);
        assert!(*count <= left, "{folder} has {count} places, {left} are left:{names}");
    }
    for (folder, left) in LEFT {
        let count = found.get(*folder).map_or(0, |(count, _)| *count);
        assert_eq!(count, *left, "{folder} has fewer places: lower its number");
    }
}

#[test]
fn words_are_found_in_sentences_and_in_names() {
    assert_eq!(places("who is told? nobody_is_told, foretold", "told"), 2);
    assert_eq!(places("a made-up one", "made-up"), 1);
    assert_eq!(
        clauses("/// What a route asks for.\n//! Whoever\n// Whether it is.\nlet what = 1; // What is left."),
        1
    );
}
