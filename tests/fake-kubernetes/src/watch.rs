//! A watch: the changes since a version, as they happen, one JSON object a line.

use crate::ask::Ask;
use crate::resources::Kind;
use crate::select::Selector;
use crate::server::Server;
use crate::state::Change;
use crate::status::Refusal;
use crate::stored::Stored;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch::Receiver;
use tokio::time::Instant;

/// State of a watch.
pub struct Watch {
    server: Arc<Server>,
    kind: Kind,
    selector: Selector,
    /// Version up to which changes were sent.
    version: u64,
    /// First lines, for a watch without a list before.
    first: Option<String>,
    wake: Receiver<u64>,
    closed: Receiver<u64>,
    ends: Option<Instant>,
    bookmarks: Option<Duration>,
    next_bookmark: Instant,
    over: bool,
}

fn line(what: &str, object: &str) -> String {
    format!("{{\"type\":\"{what}\",\"object\":{object}}}\n")
}

/// How a change looks to a watch of some of the objects: what it begins to select is added, what it no more selects is
/// deleted.
fn event_of(change: &Change, selector: &Selector) -> Option<String> {
    let was = change.before.as_ref().is_some_and(|before| selector.takes(before));
    let is = !change.deleted && selector.takes(&change.after);
    let what = match (was, is) {
        (false, true) => "ADDED",
        (true, true) => "MODIFIED",
        (true, false) => "DELETED",
        (false, false) => return None,
    };
    Some(line(what, &change.after.json))
}

impl Watch {
    /// Begins a watch. Refuses one from a version that is forgotten, where the server does so at once.
    pub fn begin(server: &Arc<Server>, kind: &Kind, ask: &Ask) -> Result<Self, Refusal> {
        let selector = Selector::parse(&kind.table(), &ask.namespace, &ask.query)?;
        let manner = server.manner().clone();
        let (wake, closed) = (server.wake.subscribe(), server.closed.subscribe());
        let asked = ask.word("resourceVersion");
        let state = server.state();
        let (mut version, mut first) = (state.version, None);
        let sends_initial = ask.flag("sendInitialEvents");
        if asked.is_empty() || asked == "0" || sends_initial {
            let all: Vec<Arc<Stored>> = state.all(&kind.table(), &selector);
            first = Some(all.iter().map(|one| line("ADDED", &one.json)).collect::<String>());
        } else {
            version = asked.parse().map_err(|_| Refusal::bad_request(&format!("Invalid resourceVersion {asked:?}")))?;
            if manner.expired_as_status {
                state.changes(&kind.table(), version)?;
            }
        }
        drop(state);
        let seconds: Option<u64> = ask.word("timeoutSeconds").parse().ok();
        let now = Instant::now();
        let mut watch = Self {
            server: Arc::clone(server),
            kind: kind.clone(),
            selector,
            version,
            first,
            wake,
            closed,
            ends: seconds.map(|seconds| now + Duration::from_secs(seconds)),
            bookmarks: ask.flag("allowWatchBookmarks").then_some(manner.bookmarks),
            next_bookmark: now + manner.bookmarks,
            over: false,
        };
        if sends_initial {
            let end = watch.bookmark(true);
            watch.first.get_or_insert_default().push_str(&end);
        }
        Ok(watch)
    }

    fn bookmark(&self, ends_initial: bool) -> String {
        let mut object: Value = json!({
            "kind": self.kind.kind, "apiVersion": self.kind.api_version(),
            "metadata": { "resourceVersion": self.version.to_string(), "creationTimestamp": null },
        });
        if ends_initial {
            object["metadata"]["annotations"] = json!({ "k8s.io/initial-events-end": "true" });
        }
        line("BOOKMARK", &object.to_string())
    }

    /// Lines of the changes since the last call; `None` without any.
    fn news(&mut self) -> Option<String> {
        if let Some(first) = self.first.take().filter(|first| !first.is_empty()) {
            return Some(first);
        }
        let changes = self.server.state().changes(&self.kind.table(), self.version);
        match changes {
            Ok((changes, version)) => {
                self.version = version.max(self.version);
                let lines: String = changes.iter().filter_map(|change| event_of(change, &self.selector)).collect();
                Some(lines).filter(|lines| !lines.is_empty())
            }
            Err(refusal) => {
                self.over = true;
                Some(line("ERROR", &refusal.body.to_string()))
            }
        }
    }

    /// The next lines; `None` at the end of the watch.
    pub async fn next(&mut self) -> Option<String> {
        loop {
            self.server.unpaused().await;
            if self.over || self.closed.has_changed().unwrap_or(true) {
                return None;
            }
            self.wake.mark_unchanged();
            if let Some(lines) = self.news() {
                return Some(lines);
            }
            let now = Instant::now();
            if self.ends.is_some_and(|ends| ends <= now) {
                self.over = true;
                return self.bookmarks.map(|_| self.bookmark(false));
            }
            if let Some(every) = self.bookmarks.filter(|_| self.next_bookmark <= now) {
                self.next_bookmark = now + every;
                return Some(self.bookmark(false));
            }
            let until = self.ends.map_or(self.next_bookmark, |ends| ends.min(self.next_bookmark));
            let until = if self.bookmarks.is_none() { self.ends } else { Some(until) };
            self.wait(until).await;
        }
    }

    async fn wait(&mut self, until: Option<Instant>) {
        let a_day = Duration::from_hours(24);
        let until = until.unwrap_or_else(|| Instant::now() + a_day);
        tokio::select! {
            _ = self.wake.changed() => {}
            _ = self.closed.changed() => self.over = true,
            () = tokio::time::sleep_until(until) => {}
        }
    }
}
