//! The server as tests hold it.

use crate::access::Rule;
use crate::ask::Request;
use crate::bulk::{self, Size};
use crate::faults::Fault;
use crate::owners::Writer;
use crate::resources::Kind;
use crate::select::Selector;
use crate::server::Server;
use crate::{crds, evict, fields, http, merge, rules, write};
use serde_json::{Value, json};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// An API server on a free port of the loopback, until it is dropped. Calls of a test need no
/// permission, meet no fault and stand in no log.
pub struct FakeKubernetes {
    /// `http://127.0.0.1:PORT`.
    pub url: String,
    /// A token that may do everything, unless rules are set.
    pub token: String,
    server: Arc<Server>,
    serving: JoinHandle<()>,
}

impl Drop for FakeKubernetes {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// Keeps an object as it is, status and all, and its namespace too where that is not there.
pub(crate) fn put(server: &Server, mut object: Value) -> Value {
    let mut state = server.state();
    let kind = state.kind_of(&object).expect("the object says apiVersion and kind of something that is served");
    let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default().to_owned();
    if kind.namespaced && rules::namespace(&state, &kind, &namespace).is_err() {
        let made = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": namespace } });
        state.put("namespaces", made);
    }
    let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let before = state.get(&kind.table(), &(namespace, name)).map(|stored| stored.value());
    let given = object["metadata"].clone();
    if let Some(before) = &before {
        for field in ["uid", "creationTimestamp", "generation", "managedFields"] {
            object["metadata"][field] = before["metadata"][field].clone();
        }
    }
    rules::stamp(&mut state, before.as_ref(), &mut object);
    for (field, value) in given.as_object().into_iter().flatten() {
        object["metadata"][field.as_str()] = value.clone();
    }
    let writer = writer("test-setup", "Update", &kind, &state);
    if given.get("managedFields").is_none() {
        writer.track(before.as_ref(), &mut object);
    }
    let stored = state.put(&kind.table(), object).value();
    drop(state);
    server.tell();
    stored
}

pub(crate) fn put_all(server: &Server, objects: Vec<Value>) {
    for object in objects {
        put(server, object);
    }
}

fn writer(manager: &str, operation: &'static str, kind: &Kind, state: &crate::state::State) -> Writer {
    Writer {
        manager: manager.to_owned(),
        operation,
        api_version: kind.api_version(),
        subresource: String::new(),
        now: write::now(),
        // Calls write status and the rest in one go.
        has_status: false,
        lists: fields::Lists { schema: state.schema(kind) },
    }
}

#[allow(clippy::must_use_candidate, reason = "what a test makes it do, it need not look at")]
impl FakeKubernetes {
    /// Starts on a free port.
    pub async fn start() -> Self {
        Self::start_on(0).await.expect("the loopback has a free port")
    }

    /// Starts on this port; 0 takes a free one.
    ///
    /// # Errors
    /// Where the port cannot be listened on.
    pub async fn start_on(port: u16) -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", port)).await?;
        let url = format!("http://{}", listener.local_addr()?);
        let server = Arc::new(Server::new());
        let token = "fake-kubernetes-token".to_owned();
        server.access().add(&token, "system:serviceaccount:headroom-system:headroom", None);
        let serving = tokio::spawn(http::serve(listener, Arc::clone(&server)));
        let fake = Self { url, token, server, serving };
        for name in ["default", "kube-system"] {
            fake.put(json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } }));
        }
        Ok(fake)
    }

    /// A kubeconfig that says where the server is, and the token.
    #[must_use]
    pub fn kubeconfig(&self) -> String {
        self.kubeconfig_of(&self.token)
    }

    /// As `kubeconfig`, with another token.
    #[must_use]
    pub fn kubeconfig_of(&self, token: &str) -> String {
        let url = &self.url;
        format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: fake\nclusters:\n- name: fake\n  cluster:\n    server: {url}\n\
             contexts:\n- name: fake\n  context:\n    cluster: fake\n    user: fake\n\
             users:\n- name: fake\n  user:\n    token: {token}\n"
        )
    }

    fn kind(&self, resource: &str) -> Kind {
        let found = self.server.state().kind_named(resource);
        found.unwrap_or_else(|| panic!("{resource} is not served; the definition of it is not installed"))
    }

    /// Keeps an object as it is, status included, whether there was one of its name or not. Its namespace is made too.
    pub fn put(&self, object: Value) -> Value {
        put(&self.server, object)
    }

    /// The object of this name; the namespace is empty for what is of the cluster. `resource` is a plural, or
    /// `plural.group` where two groups have it.
    #[must_use]
    pub fn get(&self, resource: &str, namespace: &str, name: &str) -> Option<Value> {
        let table = self.kind(resource).table();
        let found = self.server.state().get(&table, &(namespace.to_owned(), name.to_owned()));
        found.map(|stored| stored.value())
    }

    /// Every object of a resource, in the order of namespaces and names.
    #[must_use]
    pub fn list(&self, resource: &str) -> Vec<Value> {
        let table = self.kind(resource).table();
        let all = self.server.state().all(&table, &Selector::default());
        all.iter().map(|stored| stored.value()).collect()
    }

    /// Merges a patch into an object, status included. `None` where there is none.
    pub fn patch(&self, resource: &str, namespace: &str, name: &str, patch: &Value) -> Option<Value> {
        let mut object = self.get(resource, namespace, name)?;
        object["metadata"].as_object_mut().map(|fields| fields.remove("managedFields"));
        merge::merge(&mut object, patch);
        Some(self.put(object))
    }

    /// Takes an object away at once. Answers whether there was one.
    pub fn delete(&self, resource: &str, namespace: &str, name: &str) -> bool {
        let table = self.kind(resource).table();
        let gone = self.server.state().remove(&table, &(namespace.to_owned(), name.to_owned()));
        self.server.tell();
        gone.is_some()
    }

    /// Another writer applies fields of an object that is there or not, as `kubectl apply --server-side` does, and takes
    /// them from others.
    pub fn apply_as(&self, manager: &str, object: &Value) -> Value {
        let mut state = self.server.state();
        let kind = state.kind_of(object).expect("the object says apiVersion and kind of something that is served");
        let word = |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
        let before = state.get(&kind.table(), &(word("namespace"), word("name"))).map(|stored| stored.value());
        let merged = writer(manager, "Apply", &kind, &state).apply(before.as_ref(), object, true);
        let mut merged = merged.expect("what is forced meets no conflict");
        for field in ["name", "namespace"].iter().filter(|field| object["metadata"].get(**field).is_some()) {
            merged["metadata"][*field] = object["metadata"][*field].clone();
        }
        rules::stamp(&mut state, before.as_ref(), &mut merged);
        let stored = state.put(&kind.table(), merged).value();
        drop(state);
        self.server.tell();
        stored
    }

    /// Installs the definitions of Kueue, `v1beta2`.
    pub fn install_kueue(&self) {
        put_all(&self.server, crds::kueue());
    }

    /// Installs the definitions of dynamic quota, with the list of flavors under this name.
    pub fn install_dynamic_quota(&self, flavors: &str) {
        put_all(&self.server, crds::dynamic_quota(flavors));
    }

    /// Makes a cluster of a size. Answers how many objects.
    pub fn load(&self, size: &Size) -> usize {
        let loaded = bulk::load(&self.server, size);
        self.server.tell();
        loaded
    }

    /// A fault that the next requests meet.
    pub fn fault(&self, fault: Fault) {
        self.server.faults().push(fault);
    }

    /// No more faults.
    pub fn no_faults(&self) {
        self.server.faults().clear();
    }

    /// Forgets the history: clients that watch or page from before have to list again.
    pub fn compact(&self) {
        self.server.state().compact();
        self.server.tell();
    }

    /// Ends all watches, as a server that restarts does.
    pub fn close_watches(&self) {
        self.server.closed.send_modify(|count| *count += 1);
    }

    /// Cuts all connections and takes no new ones until `come_up`, as a server that restarts does.
    pub fn go_down(&self) {
        self.server.down.send_replace(true);
    }

    /// Takes connections again.
    pub fn come_up(&self) {
        self.server.down.send_replace(false);
    }

    /// Answers nothing until `resume`.
    pub fn pause(&self) {
        self.server.paused.send_replace(true);
    }

    /// Answers again, also what was asked meanwhile.
    pub fn resume(&self) {
        self.server.paused.send_replace(false);
    }

    /// How long pods that are deleted or evicted stay; `None`: until `finish_deletions`.
    pub fn grace(&self, grace: Option<Duration>) {
        self.server.manner().grace = grace;
    }

    /// Takes the pods away that are going. Answers how many.
    pub fn finish_deletions(&self) -> usize {
        let finished = evict::finish_all(&mut self.server.state());
        self.server.tell();
        finished
    }

    /// How often watches that begin from now on get bookmarks.
    pub fn bookmarks(&self, every: Duration) {
        self.server.manner().bookmarks = every;
    }

    /// Whether a watch from too old a version gets HTTP 410 rather than an event.
    pub fn expired_as_status(&self, as_status: bool) {
        self.server.manner().expired_as_status = as_status;
    }

    /// Adds a token that the rules allow; without rules it may do everything.
    pub fn add_user(&self, token: &str, name: &str, allowed: Option<Vec<Rule>>) {
        self.server.access().add(token, name, allowed);
    }

    /// The token is known no more.
    pub fn remove_user(&self, token: &str) {
        self.server.access().remove(token);
    }

    /// The first token may do only this.
    pub fn allow_only(&self, rules: Vec<Rule>) {
        self.server.access().allow_only(&self.token, Some(rules));
    }

    /// The first token may not do this.
    pub fn deny(&self, rule: Rule) {
        self.server.access().deny(&self.token, rule);
    }

    /// Allows again all that was denied to the first token.
    pub fn deny_nothing(&self) {
        self.server.access().allow_again(&self.token);
    }

    /// Every request since the start or since `forget_requests`, in the order they came.
    #[must_use]
    pub fn requests(&self) -> Vec<Request> {
        self.server.log().requests.iter().cloned().collect()
    }

    /// The requests that would have changed something.
    #[must_use]
    pub fn writes(&self) -> Vec<Request> {
        self.server.log().requests.iter().filter(|one| one.is_write()).cloned().collect()
    }

    /// Forgets all requests.
    pub fn forget_requests(&self) {
        self.server.log().clear();
    }
}
