//! Links and names in the documents lead somewhere.

use super::{files, text};
use std::path::Path;
use tests::workspace_root;

/// Targets of `[text](target)`, without those of other sites and of headings in the same page.
fn targets(markdown: &str) -> Vec<String> {
    let mut found = Vec::new();
    for part in markdown.split("](").skip(1) {
        let Some((target, _)) = part.split_once(')') else { continue };
        let path = target.split('#').next().unwrap_or_default();
        if !path.is_empty() && !path.contains("://") && !path.starts_with("mailto:") {
            found.push(path.to_owned());
        }
    }
    found
}

#[test]
fn no_link_is_dead() {
    let mut links = 0;
    for page in files(&[".md"]) {
        let folder = page.parent().unwrap_or(Path::new(""));
        for target in targets(&text(&page)) {
            links += 1;
            let place = workspace_root().join(folder).join(&target);
            assert!(place.exists(), "{}: {target} is not there", page.display());
        }
    }
    assert!(links > 20, "only {links} links were found");
}

#[test]
fn every_test_that_the_fault_table_names_is_there() {
    let table = text(Path::new("CONTRIBUTING.md"));
    let rows = table.lines().filter(|line| line.starts_with("| ") && line.contains('`'));
    let sources: Vec<String> = files(&[".rs"]).iter().map(|path| text(path)).collect();
    let mut named = 0;
    for row in rows {
        let Some(tests) = row.trim_end_matches('|').rsplit('|').next() else { continue };
        for name in tests.split('`').skip(1).step_by(2) {
            named += 1;
            let there = |source: &String| source.contains(&format!("fn {name}("));
            assert!(sources.iter().any(there), "CONTRIBUTING.md names {name}, which is no test");
        }
    }
    assert!(named > 20, "only {named} tests are named");
}

#[test]
fn every_crate_is_in_the_architecture() {
    let architecture = text(Path::new("ARCHITECTURE.md"));
    for manifest in files(&["Cargo.toml"]) {
        let manifest = text(&manifest);
        if let Some(name) = manifest.split("name = \"").nth(1).and_then(|rest| rest.split('"').next()) {
            assert!(architecture.contains(&format!("`{name}`")), "ARCHITECTURE.md does not name {name}");
        }
    }
}
