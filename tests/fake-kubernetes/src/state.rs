//! Everything the server knows, behind one lock: objects by table, the history that watches read, pages of lists.

use crate::resources::{self, Kind};
use crate::select::Selector;
use crate::status::Refusal;
use crate::stored::Stored;
use serde_json::Value;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// Namespace (empty for what is of the cluster) and name.
pub type Key = (String, String);

/// How a write changed an object.
#[derive(Debug, Clone)]
pub struct Change {
    pub version: u64,
    pub table: String,
    /// The object before the write; `None` for a new one.
    pub before: Option<Arc<Stored>>,
    /// The object after the write; for a deletion its last state.
    pub after: Arc<Stored>,
    pub deleted: bool,
}

/// A list that is read page by page, as it stood when the first page was asked for.
struct Pages {
    id: u64,
    version: u64,
    objects: Arc<Vec<Arc<Stored>>>,
}

/// As many lists are kept for who reads on; a real server keeps them for some minutes.
const MOST_LISTS: usize = 16;

/// Objects, history and pages.
pub struct State {
    pub version: u64,
    /// Watches get no change before this version any more.
    pub compacted: u64,
    /// So many changes are kept.
    pub most_history: usize,
    tables: BTreeMap<String, BTreeMap<Key, Arc<Stored>>>,
    history: VecDeque<Arc<Change>>,
    pages: VecDeque<Pages>,
    kinds: Vec<Kind>,
    last_id: u64,
}

impl State {
    pub fn new() -> Self {
        Self {
            version: 1,
            compacted: 0,
            most_history: 100_000,
            tables: BTreeMap::new(),
            history: VecDeque::new(),
            pages: VecDeque::new(),
            kinds: resources::built_in(),
            last_id: 0,
        }
    }

    /// A number that was not given before.
    pub fn next_id(&mut self) -> u64 {
        self.last_id += 1;
        self.last_id
    }

    /// All kinds served now.
    pub fn kinds(&self) -> &[Kind] {
        &self.kinds
    }

    pub fn kind(&self, group: &str, version: &str, plural: &str) -> Option<Kind> {
        self.kinds.iter().find(|one| one.group == group && one.version == version && one.plural == plural).cloned()
    }

    /// The kind of an object by what it says of itself.
    pub fn kind_of(&self, object: &Value) -> Option<Kind> {
        let version = object["apiVersion"].as_str()?;
        self.kinds.iter().find(|one| one.api_version() == version && object["kind"] == one.kind.as_str()).cloned()
    }

    /// The kind of a plural, or of `plural.group` where two groups have it.
    pub fn kind_named(&self, name: &str) -> Option<Kind> {
        self.kinds.iter().find(|one| one.plural == name || one.table() == name).cloned()
    }

    /// The schema of a kind that a definition made.
    pub fn schema(&self, kind: &Kind) -> Option<Value> {
        let name = (String::new(), kind.table());
        let definition = self.tables.get("customresourcedefinitions.apiextensions.k8s.io")?.get(&name)?;
        resources::schema_of(&definition.value(), &kind.version)
    }

    pub fn get(&self, table: &str, key: &Key) -> Option<Arc<Stored>> {
        self.tables.get(table)?.get(key).cloned()
    }

    /// Every object of a table that is selected, in the order of names.
    pub fn all(&self, table: &str, selector: &Selector) -> Vec<Arc<Stored>> {
        let objects = self.tables.get(table).into_iter().flat_map(BTreeMap::values);
        if selector.is_everything() {
            return objects.cloned().collect();
        }
        objects.filter(|one| selector.takes(one)).cloned().collect()
    }

    /// Keeps an object as the newest of its name.
    pub fn put(&mut self, table: &str, object: Value) -> Arc<Stored> {
        self.version += 1;
        let after = Arc::new(Stored::new(object, self.version));
        let key = (after.namespace.clone(), after.name.clone());
        let before = self.tables.entry(table.to_owned()).or_default().insert(key, Arc::clone(&after));
        self.remember(table, before, Arc::clone(&after), false);
        after
    }

    /// Takes an object away.
    pub fn remove(&mut self, table: &str, key: &Key) -> Option<Arc<Stored>> {
        let before = self.tables.get_mut(table)?.remove(key)?;
        self.version += 1;
        let after = Arc::new(Stored::new(before.value(), self.version));
        self.remember(table, Some(before), Arc::clone(&after), true);
        Some(after)
    }

    fn remember(&mut self, table: &str, before: Option<Arc<Stored>>, after: Arc<Stored>, deleted: bool) {
        let change = Change { version: self.version, table: table.to_owned(), before, after, deleted };
        self.history.push_back(Arc::new(change));
        while self.history.len() > self.most_history {
            self.compacted = self.history.pop_front().map_or(self.compacted, |oldest| oldest.version);
        }
        if table == "customresourcedefinitions.apiextensions.k8s.io" {
            self.read_definitions();
        }
    }

    fn read_definitions(&mut self) {
        self.kinds = resources::built_in();
        let definitions = self.all("customresourcedefinitions.apiextensions.k8s.io", &Selector::default());
        self.kinds.extend(definitions.iter().flat_map(|one| resources::kinds_of_definition(&one.value())));
        let served: Vec<String> = self.kinds.iter().map(Kind::table).collect();
        // With a definition go its objects.
        self.tables.retain(|table, _| served.contains(table));
    }

    /// Stores many objects at once, without events: watches have to list again.
    pub fn load(&mut self, table: &str, objects: impl Iterator<Item = Value>) -> usize {
        self.load_as(table, objects, Stored::new)
    }

    /// As `load`, with a function that makes an object from an item and its version.
    pub fn load_as<T>(
        &mut self,
        table: &str,
        objects: impl Iterator<Item = T>,
        make: impl Fn(T, u64) -> Stored,
    ) -> usize {
        let rows = self.tables.entry(table.to_owned()).or_default();
        let before = self.version;
        for object in objects {
            self.version += 1;
            let stored = Arc::new(make(object, self.version));
            rows.insert((stored.namespace.clone(), stored.name.clone()), stored);
        }
        let loaded = (self.version - before) as usize;
        self.compact();
        loaded
    }

    /// Forgets all history: watches from an older version have to list again.
    pub fn compact(&mut self) {
        self.compacted = self.version;
        self.history.clear();
        self.pages.clear();
    }

    /// The changes of a table after a version, and up to which version that is.
    pub fn changes(&self, table: &str, after: u64) -> Result<(Vec<Arc<Change>>, u64), Refusal> {
        if after < self.compacted {
            return Err(Refusal::expired(after, self.compacted));
        }
        let first = self.history.partition_point(|change| change.version <= after);
        let since = self.history.range(first..).filter(|change| change.table == table);
        Ok((since.cloned().collect(), self.version))
    }

    /// Keeps a list for the pages that follow; answers its number.
    pub fn keep_pages(&mut self, objects: Arc<Vec<Arc<Stored>>>) -> u64 {
        let id = self.next_id();
        self.pages.push_back(Pages { id, version: self.version, objects });
        if self.pages.len() > MOST_LISTS {
            self.pages.pop_front();
        }
        id
    }

    /// A list that was kept, and the version it is of.
    pub fn pages(&self, id: u64) -> Option<(Arc<Vec<Arc<Stored>>>, u64)> {
        let found = self.pages.iter().find(|one| one.id == id)?;
        Some((Arc::clone(&found.objects), found.version))
    }
}
