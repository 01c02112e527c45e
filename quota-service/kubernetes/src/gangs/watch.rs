//! Kinds that state gangs, in the versions that the API serves.

use super::{GangKind, GangObject, Stated};
use crate::cluster::follow::{Counted, Lists, list, watch};
use crate::cluster::groups::{JobSetSpec, JobSetStatus, LeaderWorkerSetSpec, PodGroupSpec, WorkloadSpec};
use crate::cluster::served::Wanted;
use crate::cluster::watch::Shared;
use crate::cluster::workload::{WorkloadSpec as KueueSpec, WorkloadStatus as KueueStatus};
use crate::view::View;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Client;
use std::sync::Arc;
use vocab::UnixSeconds;

/// A kind that states gangs.
macro_rules! kind {
    ($name:ident, $kind:ident, $group:literal, $versions:expr, $plural:literal, $spec:ty, $status:ty, $object:expr) => {
        struct $name;
        impl Counted for $name {
            const WANTED: Wanted = Wanted { group: $group, versions: $versions, plural: $plural };
            type Spec = $spec;
            type Status = $status;
            fn tell(
                view: &mut View,
                meta: &ObjectMeta,
                content: Option<($spec, Option<$status>)>,
                now: UnixSeconds,
            ) -> Result<(), String> {
                let object: fn($spec, $status) -> GangObject = $object;
                let object = content.map(|(spec, status)| object(spec, status.unwrap_or_default()));
                let gangs = object.map(|object| Stated::read(meta, &object, view.reading())).unwrap_or_default();
                let namespace = meta.namespace.as_deref().unwrap_or_default();
                view.see_gangs(GangKind::$kind, namespace, meta.name.as_deref().unwrap_or_default(), gangs, now);
                Ok(())
            }
            fn settle(view: &mut View, _: bool, now: UnixSeconds) {
                view.settle_gangs(now);
            }
        }
    };
}

type Nothing = serde_json::Value;

kind!(
    PodGroups,
    PodGroup,
    "scheduling.k8s.io",
    &["v1beta1", "v1alpha3", "v1alpha2"],
    "podgroups",
    PodGroupSpec,
    Nothing,
    |spec, _| GangObject::PodGroup(spec)
);
// Later versions have templates here, and the groups are objects.
kind!(Workloads, WorkloadGroup, "scheduling.k8s.io", &["v1alpha1"], "workloads", WorkloadSpec, Nothing, |spec, _| {
    GangObject::Workload(spec)
});
kind!(JobSets, JobSet, "jobset.x-k8s.io", &["v1alpha2"], "jobsets", JobSetSpec, JobSetStatus, |spec, status| {
    GangObject::JobSet(Box::new(spec), status)
});
kind!(
    LeaderWorkerSets,
    LeaderWorkerGroup,
    "leaderworkerset.x-k8s.io",
    &["v1"],
    "leaderworkersets",
    LeaderWorkerSetSpec,
    Nothing,
    |spec, _| GangObject::LeaderWorkerSet(Box::new(spec))
);
kind!(
    KueueWorkloads,
    KueueWorkload,
    "kueue.x-k8s.io",
    &["v1beta2"],
    "workloads",
    KueueSpec,
    KueueStatus,
    |spec, status| GangObject::KueueWorkload(Box::new(spec), Box::new(status))
);

/// Lists all objects once, for a command that prints them.
///
/// # Errors
/// The API cannot be reached, or refuses.
pub async fn read_once(client: &Client, view: &mut View, now: UnixSeconds) -> Result<Vec<String>, String> {
    let mut faults = list::<PodGroups>(client, view, now).await?;
    faults.extend(list::<Workloads>(client, view, now).await?);
    faults.extend(list::<JobSets>(client, view, now).await?);
    faults.extend(list::<LeaderWorkerSets>(client, view, now).await?);
    faults.extend(list::<KueueWorkloads>(client, view, now).await?);
    Ok(faults)
}

/// Watches all kinds until it is dropped. Returns at once where gangs are not counted.
pub async fn run(client: Client, shared: Arc<Shared>) {
    if !shared.read().reading().gangs {
        return;
    }
    let lists = Lists::new(shared, 5, Shared::gangs_are_known);
    tokio::join!(
        watch::<PodGroups>(&client, &lists),
        watch::<Workloads>(&client, &lists),
        watch::<JobSets>(&client, &lists),
        watch::<LeaderWorkerSets>(&client, &lists),
        watch::<KueueWorkloads>(&client, &lists),
    );
}
