//! Every metric of every program has a help text of its kind, and every text a metric.

use super::{files, text};
use proc_macro2::{TokenStream, TokenTree};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use syn::visit::Visit;

/// Sources of a program, and the file with its help texts.
const PROGRAMS: [(&str, &str); 3] = [
    ("quota-service/src/", "quota-service/src/metrics/help.rs"),
    ("quota-service/kubernetes/src/", "quota-service/kubernetes/src/help.rs"),
    ("quota-service/slurm/src/", "quota-service/slurm/src/help.rs"),
];
/// Metrics that programs share, by ends of names: `format!("{program}_untold")`.
const SHARED: (&str, &str) = ("quota-service/connectors/src/", "quota-service/connectors/src/help.rs");
/// Macros that set a metric, and the table with the texts of their kind.
const KINDS: [(&str, &str); 3] = [("gauge", "GAUGES"), ("counter", "COUNTERS"), ("histogram", "HISTOGRAMS")];

/// Texts by table: `const GAUGES: … = [("headroom_x", "…"), …]`.
#[derive(Default)]
struct Texts {
    by_table: BTreeMap<String, BTreeMap<String, String>>,
}

impl<'ast> Visit<'ast> for Texts {
    fn visit_item_const(&mut self, item: &'ast syn::ItemConst) {
        let syn::Expr::Array(table) = &*item.expr else { return };
        let texts = self.by_table.entry(item.ident.to_string()).or_default();
        for pair in &table.elems {
            let syn::Expr::Tuple(pair) = pair else { panic!("{} has pairs", item.ident) };
            let word = |at: usize| match &pair.elems[at] {
                syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(word), .. }) => word.value(),
                _ => panic!("{} has words", item.ident),
            };
            assert!(texts.insert(word(0), word(1)).is_none(), "{} is there twice", word(0));
        }
    }
}

/// Names in macros that set metrics, by macro, and all literals of files that give a macro a variable.
#[derive(Default)]
struct Uses {
    by_macro: BTreeMap<&'static str, BTreeSet<String>>,
    literals: BTreeSet<String>,
    has_variable: bool,
}

fn literals(tokens: TokenStream) -> Vec<String> {
    let of = |token: TokenTree| match token {
        TokenTree::Literal(literal) => {
            syn::parse_str::<syn::LitStr>(&literal.to_string()).map(|text| text.value()).into_iter().collect()
        }
        TokenTree::Group(group) => literals(group.stream()),
        _ => Vec::new(),
    };
    tokens.into_iter().flat_map(of).collect()
}

impl<'ast> Visit<'ast> for Uses {
    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        if module.ident != "tests" {
            syn::visit::visit_item_mod(self, module);
        }
    }

    fn visit_lit_str(&mut self, literal: &'ast syn::LitStr) {
        self.literals.insert(literal.value());
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        let found = literals(call.tokens.clone());
        self.literals.extend(found.iter().cloned());
        let name = call.path.segments.last().map(|segment| segment.ident.to_string()).unwrap_or_default();
        let Some((kind, _)) = KINDS.iter().find(|(kind, _)| *kind == name) else { return };
        match call.tokens.clone().into_iter().next() {
            Some(TokenTree::Literal(_)) => drop(self.by_macro.entry(kind).or_default().insert(found[0].clone())),
            _ => self.has_variable = true,
        }
    }
}

fn sources(folder: &str, help: &str) -> Vec<PathBuf> {
    let is_one = |path: &PathBuf| path.starts_with(folder) && path != Path::new(help) && !path.ends_with("tests.rs");
    files(&[".rs"]).into_iter().filter(is_one).collect()
}

fn texts(help: &str) -> BTreeMap<String, BTreeMap<String, String>> {
    let mut texts = Texts::default();
    texts.visit_file(&syn::parse_file(&text(Path::new(help))).unwrap());
    texts.by_table
}

/// Metrics by kind, and names that a variable may hold.
fn uses(folder: &str, help: &str) -> (BTreeMap<&'static str, BTreeSet<String>>, BTreeSet<String>) {
    let (mut by_macro, mut by_variable): (BTreeMap<&str, BTreeSet<String>>, _) = (BTreeMap::new(), BTreeSet::new());
    for path in sources(folder, help) {
        let mut found = Uses::default();
        found.visit_file(&syn::parse_file(&text(&path)).unwrap());
        for (kind, names) in found.by_macro {
            by_macro.entry(kind).or_default().extend(names);
        }
        if found.has_variable {
            by_variable.extend(found.literals);
        }
    }
    (by_macro, by_variable)
}

#[test]
fn every_metric_of_every_program_has_a_help_text_of_its_kind_and_every_text_a_metric() {
    for (folder, help) in PROGRAMS {
        let (by_macro, by_variable) = uses(folder, help);
        let texts = texts(help);
        let named: BTreeSet<&String> = by_variable.iter().filter(|name| name.starts_with("headroom_")).collect();
        let mut all = BTreeSet::new();
        for (kind, table) in KINDS {
            let texts = &texts[table];
            let used = by_macro.get(kind).cloned().unwrap_or_default();
            let without: Vec<&String> = used.iter().filter(|name| !texts.contains_key(*name)).collect();
            assert!(without.is_empty(), "{help}: {table} has no text of {without:?}");
            let unused: Vec<&String> =
                texts.keys().filter(|name| !used.contains(*name) && !named.contains(name)).collect();
            assert!(unused.is_empty(), "{folder} sets no {kind} {unused:?}: take the text out of {help}");
            all.extend(texts.iter());
        }
        let without: Vec<_> = named.iter().filter(|name| !all.iter().any(|(known, _)| known == *name)).collect();
        assert!(without.is_empty(), "{help} has no text of {without:?}");
        check_words(&all);
    }
}

#[test]
fn every_metric_that_connectors_share_has_a_help_text() {
    let (folder, help) = SHARED;
    let (by_macro, by_variable) = uses(folder, help);
    assert!(by_macro.is_empty(), "a name that is whole belongs to a program: {by_macro:?}");
    let ends = by_variable.iter().filter(|name| name.starts_with('{'));
    let used: BTreeSet<&str> = ends.filter_map(|name| name.split_once('}')).map(|(_, end)| end).collect();
    let used: BTreeSet<&str> = used.into_iter().filter(|end| end.starts_with('_')).collect();
    let texts = texts(help);
    let all: BTreeSet<(&String, &String)> = texts.values().flatten().collect();
    let known: BTreeSet<&str> = all.iter().map(|(end, _)| end.as_str()).collect();
    assert_eq!(used, known);
    check_words(&all);
}

fn check_words(all: &BTreeSet<(&String, &String)>) {
    for (name, help) in all {
        assert!(!help.ends_with('.') && help.len() > 10, "{name}: {help}");
    }
}
