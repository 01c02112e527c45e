//! Lists, whole or page by page. A page is put together from kept texts: nothing is parsed or copied twice.

use crate::ask::Ask;
use crate::resources::Kind;
use crate::select::Selector;
use crate::state::State;
use crate::status::Refusal;
use crate::stored::Stored;
use serde_json::json;
use std::sync::Arc;

/// One object of a list. Entries of built-in kinds do not say of what kind they are, as with a real server.
pub fn entry<'a>(kind: &Kind, one: &'a Stored) -> (&'static str, &'a str) {
    let head = format!("{{\"apiVersion\":{:?},\"kind\":{:?},", kind.api_version(), kind.kind);
    match one.json.strip_prefix(&head) {
        Some(rest) if !kind.custom => ("{", rest),
        _ => ("", &one.json),
    }
}

fn page_number(token: &str) -> Option<(u64, usize)> {
    let (id, from) = token.split_once('-')?;
    Some((id.parse().ok()?, from.parse().ok()?))
}

fn text(kind: &Kind, objects: &[Arc<Stored>], version: u64, next: Option<(String, usize)>) -> String {
    let mut metadata = json!({ "resourceVersion": version.to_string() });
    if let Some((token, remaining)) = next {
        metadata["continue"] = token.into();
        metadata["remainingItemCount"] = remaining.into();
    }
    let size: usize = objects.iter().map(|one| one.json.len() + 1).sum();
    let mut out = String::with_capacity(size + 200);
    let start = format!(
        "{{\"kind\":\"{}List\",\"apiVersion\":{:?},\"metadata\":{metadata},\"items\":[",
        kind.kind,
        kind.api_version()
    );
    out.push_str(&start);
    for (at, one) in objects.iter().enumerate() {
        let (start, rest) = entry(kind, one);
        out.push_str(if at == 0 { "" } else { "," });
        out.push_str(start);
        out.push_str(rest);
    }
    out.push_str("]}\n");
    out
}

/// The list, or the page of it, that was asked for.
pub fn list(state: &mut State, kind: &Kind, ask: &Ask) -> Result<String, Refusal> {
    let limit: usize = match ask.word("limit") {
        "" => 0,
        limit => limit.parse().map_err(|_| Refusal::bad_request("limit is not a number"))?,
    };
    let (objects, version, from, id) = match ask.word("continue") {
        "" => {
            let selector = Selector::parse(&kind.table(), &ask.namespace, &ask.query)?;
            (Arc::new(state.all(&kind.table(), &selector)), state.version, 0, None)
        }
        token => {
            let (id, from) = page_number(token).ok_or_else(|| Refusal::bad_request("continue key is not valid"))?;
            let gone = || Refusal::new(410, "Expired", "The provided continue parameter is too old");
            let (objects, version) = state.pages(id).ok_or_else(gone)?;
            let from = from.min(objects.len());
            (objects, version, from, Some(id))
        }
    };
    let to = if limit == 0 { objects.len() } else { objects.len().min(from + limit) };
    let next = (to < objects.len()).then(|| {
        let id = id.unwrap_or_else(|| state.keep_pages(Arc::clone(&objects)));
        (format!("{id}-{to}"), objects.len() - to)
    });
    Ok(text(kind, &objects[from..to], version, next))
}
