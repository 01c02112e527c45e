//! Facts for the checks, read once.

use super::Check;
use crate::limits;
use crate::site::{Site, SlurmConfig};
use slurm_records::{Gpus, RecordsError};
use std::collections::{BTreeMap, BTreeSet};

/// One QOS.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Qos {
    /// Priority.
    pub priority: u64,
    /// QOS that its jobs may evict.
    pub preempts: BTreeSet<String>,
    /// Seconds for which its jobs are not evicted; none where those of all jobs hold (`PreemptExemptTime` of `slurm.conf`).
    pub exempt_s: Option<u64>,
    /// How its jobs are evicted; none where that is as for all jobs (`PreemptMode` of `slurm.conf`).
    pub preempt_mode: Option<String>,
    /// Limits of GPUs.
    pub limits: limits::Tres,
}

/// Facts of a Slurm.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    /// Release, as `(22, 5)`.
    pub release: (u32, u32),
    /// Its settings.
    pub config: SlurmConfig,
    /// QOS by name; none where the accounting does not answer, with the reason.
    pub qos: Result<BTreeMap<String, Qos>, String>,
    /// Limits of GPUs on accounts.
    pub accounts: limits::ByName,
    /// Parents of accounts.
    pub parents: BTreeMap<String, String>,
    /// Trackable GPUs.
    pub tracked: BTreeSet<String>,
    /// GPUs of nodes (`Gres`), as trackable resources, whether slurmctld tracks them or not.
    pub on_nodes: BTreeSet<String>,
    /// Level of this user in the accounting: `None`, `Operator`, `Administrator`.
    pub admin_level: String,
    /// Name of this user.
    pub user: String,
    /// QOS of partitions, by partition.
    pub partition_qos: BTreeMap<String, String>,
    /// QOS that associations of other clusters of this slurmdbd have, by cluster.
    pub elsewhere: BTreeMap<String, BTreeSet<String>>,
}

/// Reads them.
///
/// # Errors
/// The first check that fails: no programs, no controller, or a release that is too old.
pub async fn read(site: &Site) -> Result<Facts, Check> {
    let release = {
        let programs = site.programs().clone();
        crate::site::apart(move || programs.release().and_then(|release| programs.form().map(|_| release))).await
    };
    let release = release.map_err(|fault| {
        Check::fail(
            "slurm",
            fault,
            "install Slurm's client programs of 22.05 or newer here, or set slurm_bin to their folder",
        )
    })?;
    let config = site.config().await;
    let config = config.map_err(|fault| {
        Check::fail("controller", fault, "start slurmctld, or set slurm_conf to the settings file of this cluster")
    })?;
    let mut facts = Facts::new(release, config, user());
    if let Err(fault) = facts.read_accounting(site).await {
        facts.qos = Err(fault.to_string());
    }
    let partitions = site.text("scontrol", &["show", "partition", "--oneliner"]).await;
    facts.partition_qos = partitions.map(|text| partition_qos(&text)).unwrap_or_default();
    let nodes = site.text("scontrol", &["show", "node", "--oneliner"]).await;
    facts.on_nodes = nodes.map(|text| on_nodes(&text)).unwrap_or_default();
    Ok(facts)
}

impl Facts {
    /// Before the accounting was asked.
    #[must_use]
    pub const fn new(release: (u32, u32), config: SlurmConfig, user: String) -> Self {
        Self {
            release,
            config,
            qos: Ok(BTreeMap::new()),
            accounts: BTreeMap::new(),
            parents: BTreeMap::new(),
            tracked: BTreeSet::new(),
            on_nodes: BTreeSet::new(),
            admin_level: String::new(),
            user,
            partition_qos: BTreeMap::new(),
            elsewhere: BTreeMap::new(),
        }
    }

    async fn read_accounting(&mut self, site: &Site) -> Result<(), RecordsError> {
        let format = "format=name,priority,preempt,preemptexempttime,grptres,preemptmode";
        let text = site.text("sacctmgr", &["-nP", "show", "qos", format]).await?;
        self.qos = Ok(qos(&text));
        self.tracked = site.tracked().await?;
        self.parents = limits::parents(&site.accounts().await?);
        let cluster = format!("cluster={}", self.config.get("ClusterName"));
        let arguments = ["-nP", "show", "assoc", "where", &cluster, "format=account,user,partition,grptres"];
        self.accounts = limits::of_accounts(&site.text("sacctmgr", &arguments).await?);
        let name = format!("name={}", self.user);
        let level = site.text("sacctmgr", &["-nP", "show", "user", "where", &name, "format=adminlevel"]).await?;
        let level = level.lines().next().filter(|level| !level.is_empty()).unwrap_or("None");
        level.clone_into(&mut self.admin_level);
        self.read_other_clusters(site).await
    }

    async fn read_other_clusters(&mut self, site: &Site) -> Result<(), RecordsError> {
        let clusters = site.text("sacctmgr", &["-nP", "show", "cluster", "format=cluster"]).await?;
        let here = self.config.get("ClusterName");
        let others: Vec<&str> = clusters.lines().filter(|name| !name.is_empty() && *name != here).collect();
        if !others.is_empty() {
            let others = format!("cluster={}", others.join(","));
            let text = site.text("sacctmgr", &["-nP", "show", "assoc", "where", &others, "format=cluster,qos"]).await?;
            self.elsewhere = by_cluster(&text);
        }
        Ok(())
    }
}

/// Name of the user of this process.
fn user() -> String {
    let id = std::fs::metadata("/proc/self").ok().map(|here| std::os::unix::fs::MetadataExt::uid(&here));
    let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let named = users.lines().find_map(|line| {
        let fields: Vec<&str> = line.split(':').collect();
        (fields.get(2)?.parse().ok() == id).then(|| fields[0].to_owned())
    });
    named.or_else(|| std::env::var("USER").ok()).unwrap_or_default()
}

/// QOS of `name|priority|preempt|exempt|grptres|preemptmode`.
pub(super) fn qos(text: &str) -> BTreeMap<String, Qos> {
    let mut all = BTreeMap::new();
    for line in text.lines() {
        if let [name, priority, preempts, exempt, limits, ref mode @ ..] = line.split('|').collect::<Vec<_>>()[..] {
            let limits = limits::of_qos(&format!("{name}|{limits}")).remove(name).unwrap_or_default();
            let preempts = preempts.split(',').filter(|one| !one.is_empty()).map(str::to_owned).collect();
            // sacctmgr prints nothing for a QOS that has none of its own, and 00:00:00 for one that is never exempt.
            let exempt_s = (!exempt.is_empty()).then(|| seconds(exempt));
            let preempt_mode =
                mode.first().filter(|mode| !mode.is_empty() && **mode != "cluster").map(|mode| (*mode).to_owned());
            let one = Qos { priority: priority.parse().unwrap_or(0), preempts, exempt_s, preempt_mode, limits };
            all.insert(name.to_owned(), one);
        }
    }
    all
}

/// Seconds of `1-02:03:04` or `02:03:04`.
pub(super) fn seconds(text: &str) -> u64 {
    let (days, time) = text.split_once('-').unwrap_or(("0", text));
    let time = time.split(':').fold(0, |sum, part| sum * 60 + part.parse::<u64>().unwrap_or(0));
    days.parse::<u64>().unwrap_or(0) * 86_400 + time
}

/// QOS by cluster of `cluster|qos,qos`.
pub(super) fn by_cluster(text: &str) -> BTreeMap<String, BTreeSet<String>> {
    let mut all: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (cluster, list) in text.lines().filter_map(|line| line.split_once('|')) {
        let names = list.split(',').filter(|name| !name.is_empty()).map(str::to_owned);
        all.entry(cluster.to_owned()).or_default().extend(names);
    }
    all
}

/// GPUs of the field `Gres` of nodes, as trackable resources.
pub(super) fn on_nodes(text: &str) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    for gres in text.split_whitespace().filter_map(|word| word.strip_prefix("Gres=")) {
        let Some(gpus) = Gpus::of_gres(gres).filter(|gpus| gpus.total > 0) else { continue };
        all.insert(limits::ALL_GPUS.to_owned());
        all.extend(gpus.typed.iter().map(|(kind, _)| limits::tres_of(kind)));
    }
    all
}

fn partition_qos(text: &str) -> BTreeMap<String, String> {
    let field = |line: &str, key: &str| line.split(' ').find_map(|word| word.strip_prefix(key).map(str::to_owned));
    let of = |line: &str| Some((field(line, "PartitionName=")?, field(line, "QoS=").filter(|qos| qos != "N/A")?));
    text.lines().filter_map(of).collect()
}
