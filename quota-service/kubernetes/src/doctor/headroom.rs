//! Headroom: whether it answers, knows this cluster, and has quotas for it.

use super::Check;
use super::api::{http_date, skew};
use super::gpus::Gpus;
use crate::config::Config;
use crate::headroom::{Headroom, HeadroomError};
use command_line::span;
use std::collections::BTreeSet;
use vocab::{ClusterName, GpuModel, UnixSeconds};
use wire::{PoolList, PoolSummary, StageBody};

const NAME: &str = "headroom";

/// Pools and quotas that Headroom has for this cluster; `here` are the GPUs by the Kubernetes API.
pub async fn of(config: &Config, here: Option<&Gpus>) -> Vec<Check> {
    let headroom = match Headroom::new(config) {
        Ok(headroom) => headroom,
        Err(fault) => return vec![Check::fail(NAME, &fault, fix_of(&fault))],
    };
    let asked: Result<(PoolList, Option<String>), HeadroomError> = headroom.get_dated("/v1/pools").await;
    let now = crate::clock::now();
    let (list, date) = match asked {
        Ok(answered) => answered,
        Err(fault) => return vec![Check::fail(NAME, &fault, fix_of(&fault))],
    };
    let mut checks = vec![Check::ok(NAME, format!("{} answers", config.headroom_url))];
    let date = date.as_deref().and_then(http_date);
    checks.extend(date.map(|date| skew("clock of headroom", date, now)));
    checks.extend(pools(&list, config, here, now));
    checks
}

fn fix_of(fault: &HeadroomError) -> &'static str {
    match fault {
        HeadroomError::Refused { status: 401, .. } => {
            "set headroom_token_file to a file with a token: quota-service token create --role report"
        }
        HeadroomError::Refused { status: 403, .. } => "give the token the cluster of this program in its scope",
        HeadroomError::Settings { .. } => "correct the setting",
        HeadroomError::Foreign { .. } => "set headroom_url to the URL of quota-service",
        HeadroomError::Unavailable { .. } | HeadroomError::Refused { .. } => {
            "start quota-service, or set headroom_url to a URL that is reachable from here"
        }
    }
}

fn pools(list: &PoolList, config: &Config, here: Option<&Gpus>, now: UnixSeconds) -> Vec<Check> {
    let known: Vec<&PoolSummary> = list
        .pools
        .iter()
        .filter(|pool| Some(pool.cluster.as_str()) == config.cluster.get().map(ClusterName::as_str))
        .collect();
    let name = format!("cluster {}", config.cluster);
    if known.is_empty() {
        let others: BTreeSet<&str> = list.pools.iter().map(|pool| pool.cluster.as_str()).collect();
        let others = others.into_iter().collect::<Vec<_>>().join(", ");
        let found =
            format!("Headroom knows no pool of it; it knows: {}", if others.is_empty() { "none" } else { &others });
        let fix = "correct cluster, ingest its history, or let headroom-kubernetes run report for some weeks";
        return vec![Check::fail(name, found, fix)];
    }
    let mut checks: Vec<Check> = known.iter().map(|pool| quota(pool, now)).collect();
    let models: BTreeSet<GpuModel> = known.iter().filter_map(|pool| GpuModel::parse(&pool.gpu_model).ok()).collect();
    if let Some(here) = here {
        checks.extend(both(&models, here));
        checks.extend(known.iter().filter_map(|pool| capacity(pool, here)));
    }
    for (flavor, model) in &config.flavors.0 {
        if !models.contains(model) {
            let found = format!("Headroom has no pool of its GPU model {model}: its quota stays 0");
            checks.push(Check::fail(format!("flavor {flavor}"), found, "correct flavors: FLAVOR=GPU_MODEL"));
        }
    }
    checks
}

/// Names that differ by a letter make two halves of one pool.
fn both(models: &BTreeSet<GpuModel>, here: &Gpus) -> Vec<Check> {
    let there: Vec<String> = models.iter().map(ToString::to_string).collect();
    let strange = here.keys().filter(|model| !models.contains(model)).map(|model| {
        let found = format!("nodes have it, but Headroom knows only {}: it gets no quota", there.join(", "));
        let fix = "ingest the history under this name, or correct gpu_model_label";
        Check::warn(format!("model {model}"), found, fix)
    });
    let absent = models.iter().filter(|model| !here.contains_key(model)).map(|model| {
        let found = "Headroom knows it, but no node of the cluster has it";
        Check::warn(format!("model {model}"), found, "correct gpu_model_label, or check for missing nodes")
    });
    strange.chain(absent).collect()
}

/// Another capacity than ours: the table is old, or two clusters report under one name.
fn capacity(pool: &PoolSummary, here: &Gpus) -> Option<Check> {
    let gpus = *here.get(&GpuModel::parse(&pool.gpu_model).ok()?)?;
    let known = pool.capacity_gpus?;
    // Nodes come and go between the two counts.
    let is_near = (known - gpus as f64).abs() <= 0.1 * known.max(gpus as f64);
    let found = format!("Headroom counts {known} GPUs, the cluster has {gpus}");
    let fix = "start headroom-kubernetes run, which reports them; check that no other cluster reports under this name";
    (!is_near).then(|| Check::warn(format!("capacity {}", pool.id), found, fix))
}

fn quota(pool: &PoolSummary, now: UnixSeconds) -> Check {
    let name = format!("quota {}", pool.id);
    let computed = pool.computed_at.as_deref().and_then(|text| command_line::instant(text).ok());
    let (Some(stage), Some(computed)) = (pool.stage, computed) else {
        let why = pool.no_quota.as_deref().unwrap_or("none was computed");
        return Check::fail(name, format!("there is none: {why}"), "run quota-service doctor: it prints the cause");
    };
    let found = format!("{stage}, computed {} ago", span(now.since_s(computed)));
    match stage {
        StageBody::Fresh => Check::ok(name, found),
        StageBody::Stale => Check::warn(name, found, "run quota-service doctor: it prints the cause"),
        StageBody::Conservative => Check::fail(
            name,
            format!("{found}: nothing new is admitted"),
            "run quota-service doctor: it prints the cause",
        ),
    }
}
