//! `headroom-slurm show`: pools, spot jobs and limits of the cluster, once.

use crate::config::{Config, NoCluster};
use crate::limits::ByName;
use crate::publish::{held, held_now};
use crate::run::{accounts, look};
use crate::site::Site;
use crate::view::View;
use command_line::{Exit, Failure, print_json, print_text, table};
use connectors::clock;
use serde_json::{Value, json};
use std::fmt::Write;
use vocab::{HorizonHours, UnixSeconds};

/// Why nothing can be shown.
#[derive(Debug, thiserror::Error)]
pub enum ShowError {
    /// Slurm does not answer.
    #[error("{0}")]
    Slurm(String),
    /// No name of the cluster.
    #[error(transparent)]
    Cluster(#[from] NoCluster),
}

impl From<ShowError> for Failure {
    fn from(fault: ShowError) -> Self {
        let exit = match &fault {
            ShowError::Slurm(_) => Exit::Unavailable,
            ShowError::Cluster(_) => Exit::ConfigInvalid,
        };
        Self::new(exit, fault)
    }
}

/// Prints pools, demand, spot jobs and limits.
///
/// # Errors
/// Slurm does not answer.
pub async fn run(config: &Config, json: bool) -> Result<(), ShowError> {
    config.cluster()?;
    let site = Site::new(config);
    let accounts = accounts(&site, config).await.map_err(ShowError::Slurm)?;
    let (view, ..) = look(&site, config, &accounts).await.map_err(ShowError::Slurm)?;
    let mut limits = (ByName::new(), ByName::new());
    if !config.limited().promised().is_empty() {
        let stands = site.limits().await.map_err(|fault| ShowError::Slurm(fault.to_string()))?;
        let held = held_now(&site, config).await.map_err(|fault| ShowError::Slurm(fault.to_string()))?;
        limits = (stands, held);
    }
    let now = clock::now();
    if json {
        print_json(&as_json(config, &view, &limits, now));
    } else {
        print_text(&as_text(&view, &limits, now));
    }
    Ok(())
}

fn as_json(config: &Config, view: &View, (limits, held): &(ByName, ByName), now: UnixSeconds) -> Value {
    let pools: Vec<Value> = view
        .pools
        .iter()
        .map(|(model, pool)| {
            let hp = pool.hp.iter().map(|(name, demand)| {
                let demand = json!({ "running_gpus": demand.running_gpus, "waiting_gpus": demand.waiting_gpus });
                (name.to_string(), demand)
            });
            let spot = pool.spot.iter().map(|job| {
                json!({
                    "job": job.name.to_string(), "account": &*job.account, "qos": &*job.qos, "gpus": job.gpus,
                    "started": job.started.to_string(), "guarantee_hours": job.hours.map(HorizonHours::get),
                    "inside_guarantee": job.promised(now).is_some(),
                })
            });
            json!({
                "pool": format!("{}:{model}", config.cluster),
                "capacity_gpus": pool.capacity_gpus(),
                "idle_gpus": pool.idle_gpus(),
                "hp": hp.collect::<serde_json::Map<_, _>>(),
                "spot": spot.collect::<Vec<_>>(),
                "spot_waiting_gpus": pool.spot_waiting_gpus(),
                "other_gpus": pool.other_gpus,
                "longest_limit_wait_s": pool.longest_limit_wait_s(now),
                "hp_waits_since": pool.hp_waits_since.map(|since| since.to_string()),
            })
        })
        .collect();
    json!({
        "pools": pools, "limits": limits, "held": held, "jobs": view.jobs, "nodes": view.nodes,
        "untyped_waiting_jobs": view.untyped_waiting, "not_read": view.faults,
    })
}

fn as_text(view: &View, (limits, held): &(ByName, ByName), now: UnixSeconds) -> String {
    let header =
        ["pool", "GPUs", "idle", "HP running", "HP waiting", "spot running", "inside promises", "spot waiting"];
    let rows = view.pools.iter().map(|(model, pool)| {
        let hp = |of: fn(&crate::view::HpDemand) -> u64| pool.hp.values().map(of).sum::<u64>().to_string();
        vec![
            model.to_string(),
            pool.capacity_gpus().to_string(),
            pool.idle_gpus().to_string(),
            hp(|demand| demand.running_gpus),
            hp(|demand| demand.waiting_gpus),
            pool.spot_gpus().to_string(),
            pool.promised_gpus(HorizonHours::ONE, now).to_string(),
            pool.spot_waiting_gpus().to_string(),
        ]
    });
    let rows: Vec<Vec<String>> = rows.collect();
    let none = "no node has GPUs: is GresTypes=gpu set, and Gres of the nodes?\n";
    let mut text = if rows.is_empty() { none.to_owned() } else { table(&header, &rows) };
    if !limits.is_empty() {
        let each = |(name, tres): (&String, &crate::limits::Tres)| {
            let row = |(tres, gpus): (&String, &u64)| {
                vec![name.clone(), tres.clone(), gpus.to_string(), held::of(held, name, tres).to_string()]
            };
            let rows: Vec<_> = tres.iter().map(row).collect();
            if rows.is_empty() {
                vec![vec![name.clone(), "-".to_owned(), "none".to_owned(), "-".to_owned()]]
            } else {
                rows
            }
        };
        let rows: Vec<Vec<String>> = limits.iter().flat_map(each).collect();
        let _ = write!(text, "\n{}", table(&["limit", "resource", "GPUs", "held"], &rows));
    }
    if view.untyped_waiting > 0 {
        let jobs = view.untyped_waiting;
        let waiting = vocab::count(jobs, "job");
        let _ = writeln!(text, "without a GPU type, and so in every pool of their partitions: {waiting} in the queue");
    }
    for fault in &view.faults {
        let _ = writeln!(text, "not read: {fault}");
    }
    text
}
