//! Kinds of `resource.k8s.io`, in the versions that the API serves.

use super::Key;
use crate::cluster::dra::{ClaimSpec, ClaimStatus, ClassSpec, SliceSpec, TaintRuleSpec, TemplateSpec};
use crate::cluster::follow::{Counted, Lists, list, list_in, watch};
use crate::cluster::served::{ListFault, Wanted};
use crate::cluster::watch::Shared;
use crate::view::{ClaimChange, View};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Client;
use std::sync::Arc;
use vocab::UnixSeconds;

const GROUP: &str = "resource.k8s.io";
const VERSIONS: &[&str] = &["v1", "v1beta2", "v1beta1"];
/// Device taint rules came later than the other kinds.
const RULE_VERSIONS: &[&str] = &["v1", "v1beta2", "v1alpha3"];

fn key(meta: &ObjectMeta) -> Key {
    (meta.namespace.clone().unwrap_or_default(), meta.name.clone().unwrap_or_default())
}

/// A kind whose change is one of [`ClaimChange`].
macro_rules! kind {
    ($name:ident, $plural:literal, $versions:expr, $spec:ty, $status:ty, $change:expr) => {
        struct $name;
        impl Counted for $name {
            const WANTED: Wanted = Wanted { group: GROUP, versions: $versions, plural: $plural };
            type Spec = $spec;
            type Status = $status;
            fn tell(
                view: &mut View,
                meta: &ObjectMeta,
                content: Option<($spec, Option<$status>)>,
                _: UnixSeconds,
            ) -> Result<(), String> {
                let change: fn(Key, Option<($spec, Option<$status>)>) -> ClaimChange = $change;
                view.see_claims(change(key(meta), content))
            }
            fn settle(view: &mut View, at_once: bool, now: UnixSeconds) {
                view.settle_claims(at_once, now);
                view.settle_gangs(now);
            }
        }
    };
}

/// The kind of device classes.
pub const CLASSES: Wanted = Classes::WANTED;

type Nothing = serde_json::Value;

kind!(Slices, "resourceslices", VERSIONS, SliceSpec, Nothing, |(_, name), content| {
    ClaimChange::Slice(name, content.map(|(spec, _)| Box::new(spec)))
});
kind!(Classes, "deviceclasses", VERSIONS, ClassSpec, Nothing, |(_, name), content| {
    ClaimChange::Class(name, content.map(|(spec, _)| spec))
});
kind!(Rules, "devicetaintrules", RULE_VERSIONS, TaintRuleSpec, Nothing, |(_, name), content| {
    ClaimChange::Rule(name, content.map(|(spec, _)| spec))
});
kind!(Claims, "resourceclaims", VERSIONS, ClaimSpec, ClaimStatus, |key, content| {
    ClaimChange::Claim(key, content.map(|(spec, status)| (spec, status.unwrap_or_default())))
});
kind!(Templates, "resourceclaimtemplates", VERSIONS, TemplateSpec, Nothing, |key, content| {
    ClaimChange::Template(key, content.map(|(spec, _)| spec.spec))
});

/// Lists all objects once, for a command that prints them. Answers those that are not understood.
///
/// # Errors
/// The API cannot be reached, or refuses.
pub async fn read_once(client: &Client, view: &mut View, now: UnixSeconds) -> Result<Vec<String>, ListFault> {
    let mut faults = list::<Classes>(client, view, now).await?;
    faults.extend(list::<Rules>(client, view, now).await?);
    faults.extend(list::<Slices>(client, view, now).await?);
    faults.extend(list::<Templates>(client, view, now).await?);
    faults.extend(list::<Claims>(client, view, now).await?);
    Ok(faults)
}

/// Lists what one pod needs: devices, and claims of its namespace alone. A user need not see those of others.
///
/// # Errors
/// The API cannot be reached, or refuses.
pub async fn read_for(client: &Client, view: &mut View, namespace: &str, now: UnixSeconds) -> Result<(), ListFault> {
    list::<Classes>(client, view, now).await?;
    list::<Slices>(client, view, now).await?;
    // Rules matter to few claims, and only administrators may list them by default.
    match list::<Rules>(client, view, now).await {
        Ok(_) | Err(ListFault::Refused { .. }) => {}
        Err(fault) => return Err(fault),
    }
    list_in::<Templates>(client, view, Some(namespace), now).await?;
    list_in::<Claims>(client, view, Some(namespace), now).await?;
    Ok(())
}

/// Watches all kinds until it is dropped. Returns at once where claims are not counted.
pub async fn run(client: Client, shared: Arc<Shared>) {
    if shared.read().reading().device_classes.is_empty() {
        return;
    }
    let lists = Lists::new(shared, 5, Shared::claims_are_known);
    tokio::join!(
        watch::<Classes>(&client, &lists),
        watch::<Rules>(&client, &lists),
        watch::<Slices>(&client, &lists),
        watch::<Templates>(&client, &lists),
        watch::<Claims>(&client, &lists),
    );
}
