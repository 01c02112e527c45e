//! Functions of at most 60 lines, files of at most 400. The list of exceptions is empty and stays so.

use super::{files, text};
use syn::spanned::Spanned;
use syn::visit::Visit;

const MOST_FUNCTION_LINES: usize = 60;
const MOST_FILE_LINES: usize = 400;

#[derive(Default)]
struct Longest {
    found: Vec<(usize, String)>,
}

impl Longest {
    fn measure(&mut self, name: &syn::Ident, whole: &impl Spanned) {
        let span = whole.span();
        self.found.push((span.end().line - span.start().line + 1, name.to_string()));
    }
}

impl<'ast> Visit<'ast> for Longest {
    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        self.measure(&function.sig.ident, &function.block);
        syn::visit::visit_item_fn(self, function);
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        self.measure(&function.sig.ident, &function.block);
        syn::visit::visit_impl_item_fn(self, function);
    }

    fn visit_trait_item_fn(&mut self, function: &'ast syn::TraitItemFn) {
        if let Some(body) = &function.default {
            self.measure(&function.sig.ident, body);
        }
    }
}

#[test]
fn no_function_is_longer_than_sixty_lines_and_no_file_than_four_hundred() {
    let mut functions = 0;
    for path in files(&[".rs"]) {
        let text = text(&path);
        let lines = text.lines().count();
        assert!(lines <= MOST_FILE_LINES, "{} has {lines} lines", path.display());
        let parsed = syn::parse_file(&text).unwrap_or_else(|fault| panic!("{}: {fault}", path.display()));
        let mut longest = Longest::default();
        longest.visit_file(&parsed);
        functions += longest.found.len();
        for (lines, name) in longest.found {
            assert!(lines <= MOST_FUNCTION_LINES, "{}: {name} has {lines} lines", path.display());
        }
    }
    assert!(functions > 500, "only {functions} functions were found: does the test look at the right files?");
}

#[test]
fn a_long_function_would_be_found() {
    let body = "let x = 1;\n".repeat(70);
    let parsed = syn::parse_file(&format!("impl A {{ fn long() {{\n{body}}} }}")).unwrap();
    let mut longest = Longest::default();
    longest.visit_file(&parsed);
    assert_eq!(longest.found, [(72, "long".to_owned())]);
}
