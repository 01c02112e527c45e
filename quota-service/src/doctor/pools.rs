//! Checks of each pool: supply, settings, quotas and eta.

use super::clusters::FoundPool;
use super::{Check, ago};
use crate::clock::Clock;
use crate::config::Config;

use crate::settings::{self, ServedSettings};
use placement::staleness::{Stage, stage};
use placement::{Eta, Known, Unknown, supply};
use store::{Store, StoreError};
use vocab::{ClusterName, HorizonHours, MilliGpus, PlacedBy, PoolId, UnixSeconds};

pub async fn of(store: &dyn Store, pool: &FoundPool, config: &Config, clock: &Clock) -> Result<Vec<Check>, StoreError> {
    let (id, now) = (&pool.id, clock.now());
    let settings = match settings::load(store, id).await {
        Ok(settings) => settings,
        Err(fault @ StoreError::Corrupt { .. }) => {
            return Ok(vec![Check::fail(format!("settings {id}"), fault, format!("PUT /v1/pools/{id}/settings"))]);
        }
        Err(fault) => return Err(fault),
    };
    let mut checks = vec![placed_by(store, id).await?];
    checks.extend(supplied(store, id, &settings, clock).await?);
    checks.extend(offered(id, &settings, pool.horizon));
    // Under a virtual clock none is stored.
    if !clock.is_virtual() {
        checks.push(quota(store, id, config, now).await?);
    }
    checks.push(eta(store, id, &settings).await?);
    Ok(checks)
}

/// Which side places the tasks of the pool.
async fn placed_by(store: &dyn Store, id: &PoolId) -> Result<Check, StoreError> {
    let label = format!("placed by {id}");
    let Some(placement) = store.placement(id).await? else {
        return Ok(Check::ok(label, "undecided: the first task or the first reported state decides, or a setting"));
    };
    let since = placement.since.map_or_else(String::new, |since| format!(" since {since}"));
    Ok(Check::ok(label, format!("{}{since}, set by {}", placement.placed_by.as_str(), placement.set_by)))
}

/// Capacity, and the state that a scheduler reports, as the service takes them.
async fn supplied(
    store: &dyn Store,
    id: &PoolId,
    settings: &ServedSettings,
    clock: &Clock,
) -> Result<Vec<Check>, StoreError> {
    let now = clock.now();
    let Ok(present) = now.hour() else { return Ok(Vec::new()) };
    // A state does not belong to old data, and a pool that Headroom places has no reported one.
    let listens = !clock.is_virtual() && settings.placed_by != Some(PlacedBy::Headroom);
    let state = store.pool_state(id).await?.map(|received| received.state).filter(|_| listens);
    let as_of = state.as_ref().map(|state| state.as_of);
    let nodes = store.pool_nodes(id).await?;
    let node_capacity = nodes.iter().filter(|node| !node.drains).map(vocab::Node::capacity);
    let known = Known {
        state,
        node_capacity: node_capacity.reduce(MilliGpus::saturating_add),
        table_capacity: store.capacity_at(id, present).await?.map(|row| row.capacity),
        // The checks of the cluster cover measured usage.
        latest_demand: Some(MilliGpus::ZERO),
        ..Known::default()
    };
    let (capacity, state) = (format!("capacity {id}"), format!("state {id}"));
    Ok(match supply(&known, &settings.pool, now) {
        Ok(supply) => {
            let found = format!("{} GPUs, by {}", supply.capacity, supply.capacity_source.as_str().replace('_', " "));
            let reported = as_of.map(|at| Check::ok(state, format!("reported {}", ago(now.since_s(at)))));
            std::iter::once(Check::ok(capacity, found)).chain(reported).collect()
        }
        Err(fault @ (Unknown::OldState { .. } | Unknown::FutureState { .. })) => {
            let fix = format!("report the state (PUT /v1/pools/{id}/state), or DELETE it");
            vec![Check::fail(state, fault, fix)]
        }
        Err(fault) => {
            let fix = format!(
                "PUT /v1/nodes/NODE for each node, PUT /v1/pools/{id}/state where a scheduler places, or \
                 datasets ingest --format usage FILE --capacity GPUS with rows of {id} alone"
            );
            vec![Check::fail(capacity, fault, fix)]
        }
    })
}

fn offered(id: &PoolId, settings: &ServedSettings, horizon: Option<HorizonHours>) -> Option<Check> {
    let fault = settings.pool.check(horizon).err()?;
    let cluster = command_line::shell_word(id.cluster.as_str());
    let fix = format!("train --cluster {cluster} --promote, or PUT /v1/pools/{id}/settings");
    Some(Check::fail(format!("settings {id}"), fault, fix))
}

/// The first step that a quota lacks; `running` is that of one that lacks none.
async fn next_step(store: &dyn Store, cluster: &ClusterName, running: String) -> Result<String, StoreError> {
    Ok(if store.measured_range(cluster).await?.is_none() {
        format!(
            "datasets ingest --format usage FILE with rows of {cluster}, or POST /v1/usage; then train --cluster {cluster}"
        )
    } else if store.promoted(cluster).await?.is_none() {
        format!("train --cluster {cluster}")
    } else {
        running
    })
}

async fn quota(store: &dyn Store, id: &PoolId, config: &Config, now: UnixSeconds) -> Result<Check, StoreError> {
    let label = format!("quota {id}");
    let stored = store.latest_quotas(Some(&id.cluster)).await?;
    let fix = format!(
        "start quota-service; if it runs, ask for the reason: curl 'http://{}/v1/quota/explain?cluster={}&gpu_model={}&hours=1'",
        config.listen, id.cluster, id.gpu_model
    );
    let Some(oldest) = stored.iter().filter(|quota| quota.pool == *id).map(|quota| quota.computed_at).min() else {
        return Ok(Check::warn(label, "no quota is computed yet", next_step(store, &id.cluster, fix).await?));
    };
    let (stage, _) = stage(oldest, now);
    let found = format!("{}, computed {}", stage.as_str(), ago(now.since_s(oldest)));
    Ok(match stage {
        Stage::Fresh => Check::ok(label, found),
        Stage::Stale => Check::warn(label, found, fix),
        Stage::Conservative => Check::fail(label, format!("{found}: no new spot task is admitted"), fix),
    })
}

async fn eta(store: &dyn Store, id: &PoolId, settings: &ServedSettings) -> Result<Check, StoreError> {
    let label = format!("eta {id}");
    let Some(record) = store.eta(id).await? else {
        return Ok(Check::ok(label, format!("{}, the start value", settings.pool.eta_start)));
    };
    let (eta, pool) = (Eta::from_micro(record.eta_micro), &settings.pool);
    let found = format!("{eta}, moved last at {}", record.moved_at);
    Ok(if eta <= pool.eta_least {
        let why = "the least of the settings: promises were broken, and few GPUs are offered";
        Check::warn(label, format!("{found}: {why}"), "train again; check GET /v1/audit and the outcomes")
    } else if eta >= pool.eta_most {
        let why = "the most of the settings: the forecast holds back no GPUs";
        Check::warn(label, format!("{found}: {why}"), "train again, or raise eta_most of the pool")
    } else {
        Check::ok(label, found)
    })
}
