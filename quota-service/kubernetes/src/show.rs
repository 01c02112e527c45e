//! `headroom-kubernetes show`: pools and pods of the cluster, once.

use crate::cluster::served::ListFault;
use crate::cluster::slim::{Node, Pod};
use crate::cluster::{ConnectError, connect};
use crate::config::{Config, NoCluster};
use crate::view::View;
use crate::view::facts::{FactFault, Life, Reading};
use command_line::{Exit, Failure, print_json, print_text, table};
use kube::api::ListParams;
use kube::{Api, Client};
use placement::Policy;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::{Debug, Write};
use vocab::{MilliGpus, TaskClass, UnixSeconds};

/// Objects of one answer.
const PAGE: u32 = 500;

/// Why nothing can be shown.
#[derive(Debug, thiserror::Error)]
pub enum ShowError {
    /// No client of the Kubernetes API.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// A list was refused or failed.
    #[error(transparent)]
    List(#[from] ListFault),
    /// No name of the cluster.
    #[error(transparent)]
    Cluster(#[from] NoCluster),
}

impl From<ShowError> for Failure {
    fn from(fault: ShowError) -> Self {
        let exit = match &fault {
            ShowError::List(ListFault::Refused { .. }) => Exit::Failure,
            ShowError::List(ListFault::Failed { .. }) | ShowError::Connect(ConnectError::Client { .. }) => {
                Exit::Unavailable
            }
            ShowError::Connect(_) | ShowError::Cluster(_) => Exit::ConfigInvalid,
        };
        Self::new(exit, fault)
    }
}

/// Lists page by page, so that no answer holds a whole cluster.
///
/// # Errors
/// The API cannot be reached, or refuses.
pub async fn each<K>(client: &Client, resource: &'static str, mut each: impl FnMut(K)) -> Result<(), ShowError>
where
    K: kube::Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug,
{
    let (api, mut token) = (Api::<K>::all(client.clone()), None);
    loop {
        let params = ListParams { limit: Some(PAGE), continue_token: token.take(), ..ListParams::default() };
        let list = api.list(&params).await;
        let list = list.map_err(|fault| ListFault::of(resource, &fault))?;
        list.items.into_iter().for_each(&mut each);
        token = list.metadata.continue_.filter(|token| !token.is_empty());
        if token.is_none() {
            return Ok(());
        }
    }
}

/// A cluster, read once.
pub struct Read {
    /// Counted GPUs and pods.
    pub view: View,
    /// Objects that cannot be read, wholly or in part.
    pub faults: Vec<FactFault>,
    /// Kinds beside nodes and pods that could not be listed: claims, or gangs, are not counted at all.
    pub uncounted: Vec<ListFault>,
}

/// Reads the cluster once.
///
/// # Errors
/// The API cannot be reached, or refuses to list nodes or pods.
pub async fn read_by(client: &Client, config: &Config, now: UnixSeconds) -> Result<Read, ShowError> {
    let cluster = config.cluster()?.clone();
    let (mut reading, mut uncounted) = (Reading::of(config), Vec::new());
    // Half of the kinds of claims would count claims without their devices, so all of them go.
    let (mut view, mut faults) = loop {
        let mut view = View::new(cluster.clone(), reading.clone(), Policy::GFS);
        let (mut faults, mut failed) = (Vec::new(), None);
        if !reading.device_classes.is_empty() {
            let listed = crate::claims::watch::read_once(client, &mut view, now).await;
            failed = listed.map(|more| faults.extend(more)).err();
            if failed.is_some() {
                reading.device_classes.clear();
            }
        }
        if failed.is_none() && reading.gangs {
            let listed = crate::gangs::watch::read_once(client, &mut view, now).await;
            failed = listed.map(|more| faults.extend(more)).err();
            reading.gangs = failed.is_none();
        }
        match failed {
            None => break (view, faults.into_iter().map(FactFault::Other).collect::<Vec<_>>()),
            Some(fault) => uncounted.push(fault),
        }
    };
    each::<Node>(client, "nodes", |node| match view.see_node(&node, now) {
        Ok(_) => {}
        Err(fault) => faults.push(fault),
    })
    .await?;
    each::<Pod>(client, "pods", |pod| match view.see_pod(&pod, now) {
        Ok(Some(seen)) => faults.extend(seen.faults),
        Ok(None) => {}
        Err(fault) => faults.push(fault),
    })
    .await?;
    view.settle_claims(true, now);
    view.pass_to(now);
    let loose = view.devices_without_node();
    if loose > 0 {
        faults.push(FactFault::Other(format!(
            "{} to no node and to no pool",
            vocab::count(loose, "device").verb("belongs", "belong")
        )));
    }
    Ok(Read { view, faults, uncounted })
}

/// Prints pools, demand and unreadable objects.
///
/// # Errors
/// The API cannot be reached, or refuses.
pub async fn run(config: &Config, json: bool) -> Result<(), ShowError> {
    let now = connectors::clock::now();
    config.cluster()?;
    let Read { view, faults, uncounted } = read_by(&connect(config).await?, config, now).await?;
    if let Some(fault) = uncounted.into_iter().next() {
        return Err(fault.into());
    }
    if json {
        print_json(&as_json(&view, &faults, now));
    } else {
        print_text(&as_text(&view, &faults, now));
    }
    Ok(())
}

fn counts(view: &View, model: &vocab::GpuModel, class: TaskClass, life: Life) -> (usize, f64) {
    let here = view
        .pods()
        .values()
        .filter(|pod| pod.class == class && pod.life == life && view.model_of(pod).as_ref() == Some(model));
    let (pods, gpus) =
        here.fold((0, MilliGpus::ZERO), |(pods, gpus), pod| (pods + 1, gpus.saturating_add(pod.amount())));
    (pods, gpus.as_gpus())
}

pub(crate) fn as_json(view: &View, faults: &[FactFault], now: UnixSeconds) -> Value {
    let pools: Vec<Value> = view.pools().keys().filter_map(|model| {
        let state = view.state(model, 0, now)?;
        let promised: BTreeMap<String, f64> =
            state.spot_by_guarantee.iter().map(|(hours, gpus)| (hours.get().to_string(), gpus.as_gpus())).collect();
        let demand: BTreeMap<String, f64> =
            view.demand(model).into_iter().map(|(name, gpus)| (name.to_string(), gpus.as_gpus())).collect();
        let side = |class| {
            let (waiting, waiting_gpus) = counts(view, model, class, Life::Waits);
            let (running, running_gpus) = counts(view, model, class, Life::Runs);
            json!({"waiting_pods": waiting, "waiting_gpus": waiting_gpus, "running_pods": running, "running_gpus": running_gpus})
        };
        let mut hp = side(TaskClass::Hp);
        // Of pods that gangs state, and that are not there yet: demand as well.
        hp["missing_gpus"] = view.missing_gpus(model).as_gpus().into();
        Some(json!({
            "pool": state.pool.to_string(),
            "capacity_gpus": state.capacity.as_gpus(),
            "idle_gpus": state.idle.as_gpus(),
            "spot_gpus_by_guarantee_hours": promised,
            "hp_demand_gpus_by_organization": demand,
            "hp": hp,
            "spot": side(TaskClass::Spot),
        }))
    }).collect();
    let of = |counts: bool| -> Vec<String> {
        faults.iter().filter(|fault| fault.counts_anyway() == counts).map(ToString::to_string).collect()
    };
    json!({
        "pools": pools,
        "nodes": view.nodes().len(),
        "pods": view.pods().len(),
        "pods_without_gpu_model": view.without_model.len(),
        "not_read": of(false),
        "read_in_part": of(true),
    })
}

pub(crate) fn as_text(view: &View, faults: &[FactFault], now: UnixSeconds) -> String {
    let header =
        ["pool", "GPUs", "idle", "HP running", "HP waiting", "HP missing", "spot running", "spot waiting", "promised"];
    let mut rows = Vec::new();
    for model in view.pools().keys() {
        let Some(state) = view.state(model, 0, now) else { continue };
        let gpus = |class, life| counts(view, model, class, life).1.to_string();
        let promised = state.spot_by_guarantee.values().fold(0.0, |sum, gpus| sum + gpus.as_gpus());
        rows.push(vec![
            state.pool.to_string(),
            state.capacity.as_gpus().to_string(),
            state.idle.as_gpus().to_string(),
            gpus(TaskClass::Hp, Life::Runs),
            gpus(TaskClass::Hp, Life::Waits),
            view.missing_gpus(model).as_gpus().to_string(),
            gpus(TaskClass::Spot, Life::Runs),
            gpus(TaskClass::Spot, Life::Waits),
            promised.to_string(),
        ]);
    }
    let none = "no node has GPUs (gpu_resource), or no node has a GPU model (gpu_model_label, default_gpu_model)\n";
    let mut text = if rows.is_empty() { none.to_owned() } else { table(&header, &rows) };
    if !view.without_model.is_empty() {
        let pods = view.without_model.len();
        let _ = writeln!(
            text,
            "{} to no pool, for want of a GPU model (default_gpu_model)",
            vocab::count(pods, "pod").verb("belongs", "belong")
        );
    }
    for fault in faults {
        let what = if fault.counts_anyway() { "read in part" } else { "not read" };
        let _ = writeln!(text, "{what}: {fault}");
    }
    text
}
