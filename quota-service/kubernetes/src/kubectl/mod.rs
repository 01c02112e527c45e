//! `kubectl headroom`: questions of users to Headroom, with what the Kubernetes API says of their pods. It changes nothing.

mod args;
mod pod;
mod quota;
mod settings;
#[cfg(test)]
mod tests;
mod verdict;

pub use args::{Arguments, Command, Flags, PodFlags, QuotaFlags, WhatIfFlags};
pub use settings::PluginConfig;

use crate::cluster::{ConnectError, connect};
use crate::config::NoCluster;
use crate::headroom::{Headroom, HeadroomError};
use command_line::{Exit, Failure, Settings};
use kube::Client;
use vocab::ClusterName;
use wire::{PoolList, PoolSummary};

/// Why a question has no answer.
#[derive(Debug, thiserror::Error)]
pub enum PluginError {
    /// No client of the Kubernetes API.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// No name of the cluster.
    #[error(transparent)]
    Cluster(#[from] NoCluster),
    /// Headroom.
    #[error("{0}")]
    Headroom(#[from] HeadroomError),
    /// The Kubernetes API.
    #[error("the Kubernetes API: {0}")]
    Api(String),
    /// The object asked about is not there.
    #[error("{0}")]
    Unknown(String),
}

impl From<PluginError> for Failure {
    fn from(fault: PluginError) -> Self {
        let exit = match &fault {
            PluginError::Unknown(_) | PluginError::Headroom(HeadroomError::Refused { status: 400 | 404 | 422, .. }) => {
                Exit::Failure
            }
            PluginError::Api(_)
            | PluginError::Connect(ConnectError::Client { .. })
            | PluginError::Headroom(HeadroomError::Unavailable { .. } | HeadroomError::Refused { status: 500.., .. }) => {
                Exit::Unavailable
            }
            PluginError::Connect(_) | PluginError::Cluster(_) | PluginError::Headroom(_) => Exit::ConfigInvalid,
        };
        Self::new(exit, fault)
    }
}

/// Needs of every question.
struct Plugin {
    config: PluginConfig,
    cluster: ClusterName,
    headroom: Headroom,
}

impl Plugin {
    fn new(config: PluginConfig) -> Result<Self, PluginError> {
        let connector = config.connector();
        let (cluster, headroom) = (connector.cluster()?.clone(), crate::headroom::client(&connector)?);
        Ok(Self { config, cluster, headroom })
    }

    async fn client(&self) -> Result<Client, PluginError> {
        Ok(connect(&self.config.connector()).await?)
    }

    /// Pools of this cluster.
    async fn pools(&self) -> Result<Vec<PoolSummary>, PluginError> {
        let list: PoolList = self.headroom.get("/v1/pools").await?;
        let here = list.pools.into_iter().filter(|pool| pool.cluster == self.cluster.as_str());
        Ok(here.collect())
    }
}

/// Settings with those that the kubeconfig states of them.
#[must_use]
pub fn extended(settings: Settings<PluginConfig>) -> Settings<PluginConfig> {
    settings.filled(settings::ORIGIN, PluginConfig::extended)
}

/// Answers one question.
///
/// # Errors
/// Headroom or the Kubernetes API does not answer, or there is nothing of that name.
pub fn start(config: PluginConfig, command: Command, json: bool) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|fault| Failure::new(Exit::Failure, fault))?;
    let answered = runtime.block_on(async {
        let plugin = Plugin::new(config)?;
        match command {
            Command::Quota(flags) => quota::quota(&plugin, &flags, json).await,
            Command::WhatIf(flags) => quota::what_if(&plugin, &flags, json).await,
            Command::Why(flags) => pod::why(&plugin, &flags.pod, json).await,
            Command::Promise(flags) => pod::promise(&plugin, &flags.pod, json).await,
            // Both were answered before: neither sends a request.
            Command::Config { .. } | Command::Completions { .. } => Ok(()),
        }
    });
    answered.map_err(Into::into)
}
