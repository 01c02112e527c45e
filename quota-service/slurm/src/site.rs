//! Slurm's programs, as this program uses them. Each call has a time limit.

use crate::config::{Config, Nesting};
use crate::limits::{self, ByName, Tres};
use slurm_records::command::Programs;
use slurm_records::nodes::Nodes;
use slurm_records::queue::Queue;
use slurm_records::{History, RecordsError, source};
use std::collections::{BTreeMap, BTreeSet};
use std::io::BufReader;
use std::sync::Arc;
use std::time::{Duration, Instant};
use vocab::HourStart;

/// Read at once from a program.
const BUFFER_BYTES: usize = 1 << 16;

/// Slurm of one cluster.
#[derive(Debug, Clone)]
pub struct Site {
    programs: Programs,
    accounting: Programs,
    nesting: Nesting,
    /// Names of the limits that carry the quota.
    limited: Arc<BTreeSet<String>>,
}

/// Settings of a Slurm, out of `scontrol show config`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SlurmConfig(BTreeMap<String, String>);

impl SlurmConfig {
    /// Reads `Key = value` lines.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let pair =
            |line: &str| line.split_once('=').map(|(key, value)| (key.trim().to_owned(), value.trim().to_owned()));
        Self(text.lines().filter_map(pair).collect())
    }

    /// A value; empty where it is not set.
    #[must_use]
    pub fn get(&self, key: &str) -> &str {
        self.0.get(key).map(String::as_str).filter(|value| *value != "(null)").unwrap_or_default()
    }

    /// Whether a list with commas between its entries has one that begins so.
    #[must_use]
    pub fn lists(&self, key: &str, entry: &str) -> bool {
        self.get(key).split(',').any(|one| one.trim().eq_ignore_ascii_case(entry))
    }
}

/// Runs what takes a program's time on a thread of its own.
///
/// # Errors
/// Those of the work.
pub async fn apart<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, RecordsError> + Send + 'static,
) -> Result<T, RecordsError> {
    let started = Instant::now();
    let went = tokio::task::spawn_blocking(work).await;
    metrics::histogram!("headroom_slurm_call_seconds").record(started.elapsed().as_secs_f64());
    went.unwrap_or_else(|fault| {
        Err(RecordsError::Command { command: "Slurm".to_owned(), detail: fault.to_string(), may_pass: true })
    })
}

impl Site {
    /// By the settings.
    #[must_use]
    pub fn new(config: &Config) -> Self {
        let programs = config.programs();
        let accounting = programs.within(Duration::from_secs(config.accounting_timeout_s));
        let limited = config.limited().promised().into_iter().map(|(_, name)| name.to_owned()).collect();
        Self { programs, accounting, nesting: config.nesting, limited: Arc::new(limited) }
    }

    /// Slurm's programs.
    #[must_use]
    pub const fn programs(&self) -> &Programs {
        &self.programs
    }

    /// Jobs and nodes, now.
    ///
    /// # Errors
    /// Slurm does not answer, or in a form that is not known.
    pub async fn look(&self) -> Result<(Queue, Nodes), RecordsError> {
        let programs = self.programs.clone();
        apart(move || {
            let (nodes, _) = source::nodes_of_slurm(&programs)?;
            let (_, json) = programs.form()?;
            let (queue, _) = programs.read("squeue", &["--all", json], |place, output| {
                Queue::read(place, BufReader::with_capacity(BUFFER_BYTES, output))
            })?;
            Ok((queue, nodes))
        })
        .await
    }

    /// Jobs that were there within these hours.
    ///
    /// # Errors
    /// The accounting does not answer, or in a form that is not known.
    pub async fn history(&self, from: HourStart, until: HourStart) -> Result<History, RecordsError> {
        let programs = self.accounting.clone();
        apart(move || source::history_of_sacct(&programs, from, until, &|_| {}).map(|(history, _)| history)).await
    }

    /// Limits of GPUs on the QOS or accounts that carry the quota. One that Slurm does not know is missing.
    ///
    /// # Errors
    /// The accounting does not answer.
    pub async fn limits(&self) -> Result<ByName, RecordsError> {
        let (programs, nesting, limited) = (self.programs.clone(), self.nesting, self.limited.clone());
        apart(move || {
            let mut all = match nesting {
                Nesting::Qos => {
                    limits::of_qos(&programs.text("sacctmgr", &["-nP", "show", "qos", "format=name,grptres"])?)
                }
                Nesting::Accounts => {
                    let cluster = format!("cluster={}", cluster_of(&programs)?);
                    let arguments =
                        ["-nP", "show", "assoc", "where", &cluster, "format=account,user,partition,grptres"];
                    limits::of_accounts(&programs.text("sacctmgr", &arguments)?)
                }
            };
            all.retain(|name, _| limited.contains(name));
            Ok(all)
        })
        .await
    }

    /// GPUs that Slurm counts against each of these limits.
    ///
    /// # Errors
    /// The controller does not answer.
    pub async fn in_use(&self) -> Result<ByName, RecordsError> {
        let (programs, nesting, limited) = (self.programs.clone(), self.nesting, self.limited.clone());
        apart(move || {
            let list: Vec<&str> = limited.iter().map(String::as_str).collect();
            let (flags, names) = match nesting {
                Nesting::Qos => ("flags=qos", format!("qos={}", list.join(","))),
                Nesting::Accounts => ("flags=assoc", format!("account={}", list.join(","))),
            };
            let text = programs.text("scontrol", &["show", "assoc_mgr", flags, &names])?;
            let mut used = limits::in_use(&text, nesting);
            used.retain(|name, _| limited.contains(name));
            Ok(used)
        })
        .await
    }

    /// Sets limits of one QOS or account; others of it stay as they are. They hold on return.
    ///
    /// # Errors
    /// The accounting does not answer or refuses.
    pub async fn set_limits(&self, name: &str, gpus: &Tres) -> Result<(), RecordsError> {
        let (programs, nesting) = (self.programs.clone(), self.nesting);
        let (name, set) = (name.to_owned(), limits::argument(gpus));
        apart(move || {
            match nesting {
                Nesting::Qos => programs.text("sacctmgr", &["-i", "modify", "qos", &name, "set", &set])?,
                Nesting::Accounts => {
                    let cluster = format!("cluster={}", cluster_of(&programs)?);
                    programs.text("sacctmgr", &["-i", "modify", "account", &name, "set", &set, "where", &cluster])?
                }
            };
            Ok(())
        })
        .await
    }

    /// GPUs that the accounting tracks: `gres/gpu` and its types.
    ///
    /// # Errors
    /// The accounting does not answer.
    pub async fn tracked(&self) -> Result<BTreeSet<String>, RecordsError> {
        let text = self.text("sacctmgr", &["-nP", "show", "tres", "format=type,name"]).await?;
        Ok(limits::tracked(&text))
    }

    /// Accounts and their parents.
    ///
    /// # Errors
    /// The accounting does not answer.
    pub async fn accounts(&self) -> Result<String, RecordsError> {
        self.text("sacctmgr", &["-nP", "show", "account", "withassoc", "format=account,parentname"]).await
    }

    /// Slurm's settings.
    ///
    /// # Errors
    /// The controller does not answer.
    pub async fn config(&self) -> Result<SlurmConfig, RecordsError> {
        Ok(SlurmConfig::parse(&self.text("scontrol", &["show", "config"]).await?))
    }

    /// Output of a program.
    ///
    /// # Errors
    /// It fails, or takes too long.
    pub async fn text(&self, program: &str, arguments: &[&str]) -> Result<String, RecordsError> {
        let (programs, program) = (self.programs.clone(), program.to_owned());
        let arguments: Vec<String> = arguments.iter().map(|one| (*one).to_owned()).collect();
        apart(move || {
            let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
            programs.text(&program, &arguments)
        })
        .await
    }
}

/// Slurm's name of its cluster.
fn cluster_of(programs: &Programs) -> Result<String, RecordsError> {
    let config = SlurmConfig::parse(&programs.text("scontrol", &["show", "config"])?);
    Ok(config.get("ClusterName").to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_of_slurm_are_read_by_key() {
        let text = "Configuration data as of 2026-11-25T08:43:55\nAccountingStorageEnforce = associations,limits,qos\n\
            SlurmctldParameters     = (null)\nClusterName             = t\n";
        let config = SlurmConfig::parse(text);
        assert_eq!((config.get("ClusterName"), config.get("SlurmctldParameters"), config.get("Absent")), ("t", "", ""));
        assert!(
            config.lists("AccountingStorageEnforce", "limits") && !config.lists("AccountingStorageEnforce", "safe")
        );
    }
}
