//! The habits of the project as tests: arrows, lengths, words that may not stand in some places, links that lead
//! somewhere.

mod arrows;
mod codes;
mod glossary;
mod lengths;
mod links;
mod metrics;
mod words;

use std::path::{Path, PathBuf};
use std::process::Command;
use tests::workspace_root;

/// Files that git tracks or would track, ending in one of `endings`, relative to the root.
fn files(endings: &[&str]) -> Vec<PathBuf> {
    let listed = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard"])
        .current_dir(workspace_root())
        .output()
        .expect("git lists the files");
    assert!(listed.status.success(), "{}", String::from_utf8_lossy(&listed.stderr));
    let all = String::from_utf8(listed.stdout).unwrap();
    let wanted = |line: &&str| endings.iter().any(|ending| line.ends_with(ending));
    let there = |path: &PathBuf| workspace_root().join(path).is_file();
    all.lines().filter(wanted).map(PathBuf::from).filter(there).collect()
}

fn text(path: &Path) -> String {
    std::fs::read_to_string(workspace_root().join(path)).unwrap_or_else(|fault| panic!("{}: {fault}", path.display()))
}
