//! Words that may not stand in some places: panics in disguise, clocks and chance in what is pure, marks of work undone.

use super::{files, text};
use std::path::Path;
use syn::visit::Visit;

/// Folders of what is pure: no clock, no chance but from a seed, no order by hash.
const PURE: [&str; 13] = [
    "quota-service/placement/src",
    "quota-service/accounts/src",
    "quota-service/cycle/src",
    "quota-service/simulator/src/rivals/elastic",
    "quota-service/simulator/src/rivals/timing",
    "quota-service/simulator/src/rivals/leases.rs",
    "forecaster/src",
    "datasets/src/window.rs",
    "datasets/src/synthetic",
    "training/src/backtest/served/forecasts.rs",
    "training/src/backtest/served/minutes.rs",
    "training/src/backtest/served/replay.rs",
    "training/src/backtest/served/score.rs",
];
const IMPURE: [&str; 8] =
    ["SystemTime", "Instant::", "thread_rng", "rand::rng(", "from_entropy", "println!", "tracing::", "std::fs"];
const HASHED: [&str; 2] = ["HashMap", "HashSet"];
/// The one place whose interface asks for a hash map; it holds a single key.
const HASHED_EXCEPTION: &str = "forecaster/src/checkpoint/tensors.rs";
const MARKS: [&str; 4] = ["TODO", "FIXME", "todo!(", "unimplemented!("];

fn is_test_code(path: &Path) -> bool {
    let path = path.to_str().unwrap();
    path.starts_with("tests/") || path.contains("/tests") || path.contains("/benches/") || path.ends_with("golden.rs")
}

fn is_test(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|one| {
        let is_cfg = one.path().is_ident("cfg");
        is_cfg && one.parse_args::<syn::Ident>().is_ok_and(|argument| argument == "test")
    })
}

/// Calls of `unwrap` outside of what is compiled for tests only.
#[derive(Default)]
struct Unwraps {
    lines: Vec<usize>,
}

impl<'ast> Visit<'ast> for Unwraps {
    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        if !is_test(&module.attrs) {
            syn::visit::visit_item_mod(self, module);
        }
    }

    fn visit_expr_method_call(&mut self, call: &'ast syn::ExprMethodCall) {
        if call.method == "unwrap" {
            self.lines.push(call.method.span().start().line);
        }
        syn::visit::visit_expr_method_call(self, call);
    }
}

fn unwraps(source: &str) -> Vec<usize> {
    let mut found = Unwraps::default();
    found.visit_file(&syn::parse_file(source).unwrap());
    found.lines
}

#[test]
fn there_is_no_unwrap_outside_tests() {
    for path in files(&[".rs"]).iter().filter(|path| !is_test_code(path)) {
        assert_eq!(unwraps(&text(path)), [0; 0], "{}", path.display());
    }
    assert_eq!(unwraps("fn a() { Some(1).unwrap(); }\n#[cfg(test)] mod t { fn b() { Some(1).unwrap(); } }"), [1]);
}

#[test]
fn pure_code_has_no_clock_no_chance_no_file_and_no_order_by_hash() {
    let pure = |path: &&std::path::PathBuf| PURE.iter().any(|folder| path.starts_with(folder)) && !is_test_code(path);
    let mut looked_at = 0;
    for path in files(&[".rs"]).iter().filter(pure) {
        looked_at += 1;
        let source = text(path);
        for word in IMPURE {
            assert!(!source.contains(word), "{}: {word}", path.display());
        }
        let exception = path.to_str() == Some(HASHED_EXCEPTION);
        assert!(exception || HASHED.iter().all(|word| !source.contains(word)), "{}: a hash map", path.display());
    }
    assert!(looked_at > 30, "only {looked_at} files");
}

/// A migration of a newer program adds columns while this one runs, and Postgres refuses a prepared statement whose result has changed.
#[test]
fn every_statement_names_its_columns() {
    let is_sql = |path: &&std::path::PathBuf| path.starts_with("datasets/store/src");
    for path in files(&[".rs"]).iter().filter(is_sql) {
        // Those of arrays have the columns that their statement names.
        let source = text(path).replace("SELECT * FROM unnest", "").replace("new.*", "");
        for all in ["SELECT *", "RETURNING *", ".*, ", ".* FROM"] {
            assert!(!source.contains(all), "{}: {all}", path.display());
        }
    }
}

#[test]
fn amounts_are_no_floats_in_placement() {
    for path in files(&[".rs"]).iter().filter(|path| path.starts_with("quota-service/placement/src")) {
        let source = text(path);
        let code = source.split("#[cfg(test)]").next().unwrap_or_default();
        assert!(!code.contains("as_gpus"), "{}: an amount becomes a float", path.display());
    }
}

#[test]
fn nothing_is_marked_as_undone_or_left_out_of_the_tests() {
    let here = Path::new("tests/suites/tidy/words.rs");
    for path in files(&[".rs", ".md", ".toml", ".sql", ".sh", "Makefile"]).iter().filter(|path| *path != here) {
        let source = text(path);
        for mark in MARKS.iter().chain(&["#[ignore"]) {
            assert!(!source.contains(mark), "{}: {mark}", path.display());
        }
    }
}
