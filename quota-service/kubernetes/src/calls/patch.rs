//! Patches beyond an apply without force.

use super::{Ask, Calls, Fault};
use axum::http::Method;
use serde_json::{Value, json};

impl Calls {
    /// Server-side apply with force: takes its fields from their owners. The object has to carry `metadata.resourceVersion`, so that
    /// only fields as they were read are taken, and no later write of another.
    ///
    /// # Errors
    /// `Stale` if another writer was faster.
    pub async fn take(&self, path: &str, manager: &str, object: &Value) -> Result<Value, Fault> {
        if object["metadata"]["resourceVersion"].as_str().is_none_or(str::is_empty) {
            return Err(Fault::Stale { detail: format!("{path} was not read before") });
        }
        let path = format!("{path}?fieldManager={manager}&force=true");
        self.send(Ask { method: Method::PATCH, path, kind: "application/apply-patch+yaml", body: Some(object) }).await
    }

    /// Merge patch; `metadata.uid` and `metadata.resourceVersion`, where they stand, are preconditions.
    ///
    /// # Errors
    /// `Stale` if another writer was faster, or another object has that name.
    pub async fn merge(&self, path: &str, manager: &str, patch: &Value) -> Result<Value, Fault> {
        let path = format!("{path}?fieldManager={manager}");
        self.send(Ask { method: Method::PATCH, path, kind: "application/merge-patch+json", body: Some(patch) }).await
    }

    /// Strategic merge patch, which merges lists of built-in kinds by their keys; `metadata.uid`, where it stands, is a precondition.
    ///
    /// # Errors
    /// As [`merge`](Self::merge).
    pub async fn strategic(&self, path: &str, manager: &str, patch: &Value) -> Result<Value, Fault> {
        let path = format!("{path}?fieldManager={manager}");
        let kind = "application/strategic-merge-patch+json";
        self.send(Ask { method: Method::PATCH, path, kind, body: Some(patch) }).await
    }

    /// Evicts the pod of this UID, heeding disruption budgets. Not through `Api::evict`: kube 5 writes its preconditions under
    /// `delete_options`, which a server does not know and drops, and another pod of the same name would go.
    ///
    /// # Errors
    /// `Budget` if a disruption budget refuses, `Absent` or `Stale` if that pod has gone.
    pub async fn evict(&self, namespace: &str, pod: &str, uid: &str, manager: &str) -> Result<(), Fault> {
        self.evict_as(namespace, pod, uid, manager).await
    }

    /// As [`evict`](Self::evict), and nothing happens: the server answers as it would.
    ///
    /// # Errors
    /// As [`evict`](Self::evict).
    pub async fn try_evict(&self, namespace: &str, pod: &str, uid: &str, manager: &str) -> Result<(), Fault> {
        self.evict_as(namespace, pod, uid, &format!("{manager}&dryRun=All")).await
    }

    async fn evict_as(&self, namespace: &str, pod: &str, uid: &str, manager_and_more: &str) -> Result<(), Fault> {
        let path = format!("/api/v1/namespaces/{namespace}/pods/{pod}/eviction");
        let body = json!({
            "apiVersion": "policy/v1", "kind": "Eviction", "metadata": { "name": pod, "namespace": namespace },
            "deleteOptions": { "preconditions": { "uid": uid } },
        });
        self.create(&path, manager_and_more, &body).await.map(drop)
    }
}
