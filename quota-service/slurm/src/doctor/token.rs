//! The token of Headroom: whether its role and scope allow all that this connector does.

use super::{Check, Status};
use crate::config::Config;
use crate::{lease, run};
use axum::http::Method;
use connectors::doctor::{Gpus, token_command};
use connectors::report::encoded;
use connectors::{Headroom, HeadroomError};
use serde_json::{Value, json};
use vocab::{ClusterName, GpuModel};

/// Name of the check, as all connectors have it.
const NAME: &str = "token of headroom";

/// The checks of Headroom, with the scope of the token in the place of what seems to be wrong by it.
pub async fn judge(config: &Config, here: Option<&Gpus>, mut checks: Vec<Check>) -> Vec<Check> {
    let (Ok(client), Some(cluster)) = (run::headroom(config), config.cluster.get()) else { return checks };
    // Without an answer about the token Headroom is away, and that is a check already.
    let Some(at) = checks.iter().position(|check| check.name == NAME) else { return checks };
    let refused = match lease_refused(config, &client, cluster).await {
        None if checks[at].status == Status::Fail => reports_refused(&client).await,
        refused => refused,
    };
    if let Some(refused) = refused {
        checks.retain(|check| check.name != NAME);
        checks.insert(at, of_refusal(&refused, cluster));
    }
    for model in here.into_iter().flat_map(Gpus::keys) {
        let name = format!("model {model}");
        let unknown = checks.iter_mut().find(|check| check.name == name && check.status == Status::Warn);
        if let Some(check) = unknown
            && is_hidden(&client, cluster, model).await
        {
            *check = hidden(cluster, model);
        }
    }
    checks
}

/// Why the lease is refused, without which nothing is written. The request has no holder: the token is judged before the body, and the
/// lease stays as it is.
async fn lease_refused(config: &Config, client: &Headroom, cluster: &ClusterName) -> Option<HeadroomError> {
    if !config.mode.publishes() {
        return None;
    }
    let answer = client.send::<Value>(Method::PUT, &lease::path_of(cluster), &json!({})).await;
    answer.err().filter(|fault| fault.status() == Some(403))
}

/// Why outcomes are refused. Nothing is stored of this request: the token is judged before the body.
async fn reports_refused(client: &Headroom) -> Option<HeadroomError> {
    let answer = client.send::<Value>(Method::POST, "/v1/outcomes", &json!({})).await;
    answer.err().filter(|fault| fault.status() == Some(403))
}

fn of_refusal(refused: &HeadroomError, cluster: &ClusterName) -> Check {
    let reason = refused.to_string();
    let found = if reason.contains("other organizations") {
        "its scope is one organization: it may report the usage of that one, and Headroom refuses the state of the cluster, outcomes and the lease, without which no limit is written; write one without an organization into headroom_token_file"
            .to_owned()
    } else if reason.contains("role of the token") {
        "it may read alone: Headroom refuses what is reported, and no limit is written; write one of the role report into headroom_token_file"
            .to_owned()
    } else {
        format!(
            "its scope is not the whole cluster {cluster}, which the lease needs: no limit is ever written ({reason}); write one of the whole cluster into headroom_token_file"
        )
    };
    Check::fail(NAME, found, token_of(cluster))
}

fn token_of(cluster: &ClusterName) -> String {
    token_command("headroom-slurm", Some(cluster))
}

/// Whether a pool is out of the scope of the token, so that no list has it.
async fn is_hidden(client: &Headroom, cluster: &ClusterName, model: &GpuModel) -> bool {
    let path = format!("/v1/quota?cluster={}&gpu_model={}&hours=1", encoded(cluster.as_str()), encoded(model.as_str()));
    client.get::<Value>(&path).await.err().is_some_and(|fault| fault.status() == Some(403))
}

fn hidden(cluster: &ClusterName, model: &GpuModel) -> Check {
    let found = "nodes have it, and the scope of the token hides its pool: it gets no quota here, and its reports are refused; write a token of the whole cluster into headroom_token_file";
    Check::warn(format!("model {model}"), found, token_of(cluster))
}
