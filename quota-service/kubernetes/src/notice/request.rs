//! EvictionRequests (`lifecycle.k8s.io/v1alpha1`, KEP-4563) for pods that name responders: these save work, and Kubernetes calls them.
//! Other pods get none: without a responder Kubernetes would evict them at once.

use super::Notice;
use crate::calls::{Calls, Fault};
use crate::names::{EVICT_MANAGER, EVICTOR};
use serde_json::{Value, json};

const GROUP: &str = "/apis/lifecycle.k8s.io/v1alpha1";
const SCHEMA: &str = "/openapi/v3/apis/lifecycle.k8s.io/v1alpha1";

/// Form that the API serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Served {
    /// Not asked yet.
    Unknown,
    /// The form that we write.
    Understood,
    /// None, or another form.
    Not,
}

/// Makes EvictionRequests, and withdraws them.
pub struct EvictionRequests {
    calls: Calls,
    served: Served,
}

impl EvictionRequests {
    pub const fn new(calls: Calls) -> Self {
        Self { calls, served: Served::Unknown }
    }

    async fn is_served(&mut self) -> Result<bool, String> {
        if self.served == Served::Unknown {
            let schema = self.calls.find(SCHEMA).await.map_err(|fault| fault.to_string())?;
            self.served = match schema.as_ref().map(understood) {
                None => Served::Not,
                Some(Ok(())) => Served::Understood,
                Some(Err(why)) => {
                    tracing::warn!(
                        why,
                        "EvictionRequests of this cluster have a form that is not known: none is written"
                    );
                    Served::Not
                }
            };
        }
        Ok(self.served == Served::Understood)
    }

    /// Asks for the eviction of a victim with responders. Pods of a PodGroup are not supported by the API.
    pub async fn ask(&mut self, notice: &Notice) -> Result<(), String> {
        if !notice.has_responders || notice.has_group || !self.is_served().await? {
            return Ok(());
        }
        let pod = &notice.pod;
        let request = json!({
            "apiVersion": "lifecycle.k8s.io/v1alpha1", "kind": "EvictionRequest",
            "metadata": { "name": name(notice), "namespace": pod.namespace },
            "spec": { "intent": "Eviction", "requester": EVICTOR,
                "target": { "pod": { "name": pod.name, "uid": pod.uid.to_string() } } },
        });
        let path = format!("{GROUP}/namespaces/{}/evictionrequests", pod.namespace);
        match self.calls.create(&path, EVICT_MANAGER, &request).await {
            Ok(_) => Ok(()),
            // It was withdrawn before.
            Err(Fault::Stale { .. }) => self.intend(notice, "Eviction").await,
            Err(fault) => Err(fault.to_string()),
        }
    }

    /// The victim stays.
    pub async fn withdraw(&mut self, notice: &Notice) -> Result<(), String> {
        if !notice.has_responders || notice.has_group || !self.is_served().await? {
            return Ok(());
        }
        self.intend(notice, "Withdrawn").await
    }

    async fn intend(&self, notice: &Notice, intent: &str) -> Result<(), String> {
        let path = format!("{GROUP}/namespaces/{}/evictionrequests/{}", notice.pod.namespace, name(notice));
        match self.calls.merge(&path, EVICT_MANAGER, &json!({ "spec": { "intent": intent } })).await {
            Ok(_) | Err(Fault::Absent { .. }) => Ok(()),
            Err(fault) => Err(fault.to_string()),
        }
    }
}

fn name(notice: &Notice) -> String {
    format!("headroom-{}", notice.pod.uid)
}

/// Whether the schema of the API (OpenAPI v3) has the fields that we write.
///
/// # Errors
/// A field is missing, with its path.
pub fn understood(openapi: &Value) -> Result<(), String> {
    let schemas = &openapi["components"]["schemas"];
    let whole = schemas.as_object().into_iter().flatten().find(|(name, _)| name.ends_with(".EvictionRequest"));
    let (_, mut here) = whole.ok_or("there is no kind EvictionRequest")?;
    let spec = field(schemas, here, "spec").ok_or("spec is missing")?;
    for name in ["intent", "requester", "target"] {
        field(schemas, spec, name).ok_or_else(|| format!("spec.{name} is missing"))?;
    }
    here = spec;
    let mut path = "spec".to_owned();
    for name in ["target", "pod"] {
        path = format!("{path}.{name}");
        here = field(schemas, here, name).ok_or_else(|| format!("{path} is missing"))?;
    }
    for name in ["name", "uid"] {
        field(schemas, here, name).ok_or_else(|| format!("{path}.{name} is missing"))?;
    }
    Ok(())
}

/// A field of a schema, behind its reference.
fn field<'a>(schemas: &'a Value, of: &'a Value, name: &str) -> Option<&'a Value> {
    let found = of["properties"].get(name)?;
    let reference = found["$ref"].as_str().or_else(|| found["allOf"][0]["$ref"].as_str());
    match reference.and_then(|reference| reference.rsplit('/').next()) {
        Some(named) => schemas.get(named),
        None => Some(found),
    }
}
