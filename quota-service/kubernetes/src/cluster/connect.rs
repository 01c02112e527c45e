//! The client of the Kubernetes API.

use crate::config::Config;
use kube::Client;
use kube::config::{KubeConfigOptions, Kubeconfig};
use std::time::Duration;

/// A silent server is asked again after this. Watches are renewed before.
const ANSWERS_WITHIN: Duration = Duration::from_secs(295);
const CONNECTS_WITHIN: Duration = Duration::from_secs(10);

/// Why there is no client.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The kubeconfig cannot be read or used.
    #[error("kubeconfig {file}: {detail}")]
    File {
        /// Path; empty for the default places.
        file: String,
        /// Cause.
        detail: String,
    },
    /// Neither a kubeconfig nor a service account of a pod exists.
    #[error("no Kubernetes API is configured: {detail}; set kubeconfig, or run in a pod with a service account")]
    NoApi {
        /// Cause.
        detail: String,
    },
    /// The HTTP client cannot be created.
    #[error("the client of the Kubernetes API cannot be made: {detail}")]
    Client {
        /// Cause.
        detail: String,
    },
}

/// Makes a client, without a request.
///
/// # Errors
/// The kubeconfig cannot be read, or there is none and this is no pod.
pub async fn connect(config: &Config) -> Result<Client, ConnectError> {
    // Two providers of cryptography are linked by what we depend on; kube takes the one of the process.
    let _ = tokio_rustls::rustls::crypto::ring::default_provider().install_default();
    let mut made = if config.kubeconfig.is_none() && config.context.is_empty() {
        kube::Config::infer().await.map_err(|fault| ConnectError::NoApi { detail: fault.to_string() })?
    } else {
        of_file(config).await?
    };
    made.connect_timeout = Some(CONNECTS_WITHIN);
    made.read_timeout = Some(ANSWERS_WITHIN);
    // A request that is sent again unseen, up to minutes later, could write after the lead was lost. Who asks decides when to
    // ask again.
    made.default_retry = false;
    Client::try_from(made).map_err(|fault| ConnectError::Client { detail: connectors::chain(&fault) })
}

async fn of_file(config: &Config) -> Result<kube::Config, ConnectError> {
    let file = config.kubeconfig.to_string();
    let wrong =
        |fault: &dyn std::error::Error| ConnectError::File { file: file.clone(), detail: connectors::chain(fault) };
    let read = config.kubeconfig.get().map_or_else(Kubeconfig::read, Kubeconfig::read_from);
    let context = (!config.context.is_empty()).then(|| config.context.clone());
    let options = KubeConfigOptions { context, ..KubeConfigOptions::default() };
    let read = read.map_err(|fault| wrong(&fault))?;
    kube::Config::from_custom_kubeconfig(read, &options).await.map_err(|fault| wrong(&fault))
}
