//! The token of Headroom: whether its role and scope allow all that a connector does.

use super::Asker;
use crate::client::{Headroom, HeadroomError};
use crate::report::encoded;
use axum::http::Method;
use command_line::{Check, Status, shell_word};
use serde_json::{Value, json};
use vocab::{ClusterName, GpuModel};

const NAME: &str = "token of headroom";

/// Whether Headroom takes what the connector sends, or `None` where it gives no answer about that. A token is judged before a body,
/// and these bodies are refused: nothing is stored.
pub(super) async fn judge(client: &Headroom, asker: &Asker<'_>) -> Option<Check> {
    let status = async |method, path: &str| client.send::<Value>(method, path, &json!({})).await.err()?.status();
    let found = match status(Method::POST, "/v1/outcomes").await? {
        // A token of an organization reports usage, of all that connectors report.
        403 if status(Method::POST, "/v1/usage").await == Some(403) => of_another_role(asker),
        403 => of_one_organization(asker),
        400 => match refused_lease(client, asker).await {
            Some(fault) => of_a_part(asker, &fault),
            None => return Some(Check::ok(NAME, "it may report")),
        },
        // Something else answers there, or answers later.
        _ => return None,
    };
    Some(Check::fail(NAME, found, command(asker.program, asker.cluster)))
}

/// The answer of a service that hides every pool of this cluster from the token.
pub(super) fn out_of_scope(fault: &HeadroomError, asker: &Asker<'_>) -> Check {
    super::refused(NAME, fault, asker)
}

/// Adds that the token does not see this cluster, unless more is known of the token.
pub(super) fn note_scope(check: Check, checks: &mut Vec<Check>) {
    let is_known = checks.iter().any(|other| other.name == NAME && other.status == Status::Fail);
    if !is_known {
        checks.retain(|other| other.name != NAME);
        checks.push(check);
    }
}

async fn refused_lease(client: &Headroom, asker: &Asker<'_>) -> Option<HeadroomError> {
    let answer = client.send::<Value>(Method::PUT, asker.lease?, &json!({})).await;
    answer.err().filter(|fault| fault.status() == Some(403))
}

fn of_another_role(asker: &Asker<'_>) -> String {
    let then = if asker.lease.is_some() { "no limit is written" } else { "quotas know nothing of this cluster" };
    format!(
        "its role may not report: Headroom refuses what is reported, and {then}; write one of the role report into headroom_token_file"
    )
}

fn of_one_organization(asker: &Asker<'_>) -> String {
    let then = match asker.lease {
        Some(_) => "the state of the cluster, outcomes and the lease, without which no limit is written",
        None => "the state of the cluster and outcomes, without which quotas know nothing of it",
    };
    format!(
        "its scope is one organization: it may report the usage of that one, and Headroom refuses {then}; write one without an organization into headroom_token_file"
    )
}

fn of_a_part(asker: &Asker<'_>, fault: &HeadroomError) -> String {
    let cluster = asker.cluster.map(ClusterName::as_str).unwrap_or_default();
    format!(
        "its scope is not the whole cluster {cluster}, which the lease needs: no limit is ever written ({fault}); write one of the whole cluster into headroom_token_file"
    )
}

/// Puts the scope of the token in the place of each model that only seems to be unknown to Headroom.
pub(super) async fn name_hidden(client: &Headroom, asker: &Asker<'_>, unknown: &[&GpuModel], checks: &mut [Check]) {
    for model in unknown {
        let name = format!("model {model}");
        if let Some(check) = checks.iter_mut().find(|check| check.name == name)
            && hides(client, asker, model).await.is_some()
        {
            let found = "nodes have it, and the scope of the token hides its pool: it gets no quota here, and its reports are refused; write a token of the whole cluster into headroom_token_file";
            *check = Check::warn(name, found, command(asker.program, asker.cluster));
        }
    }
}

/// The refusal, where a pool of this cluster is out of the scope of the token, so that no list has it.
pub(super) async fn hides(client: &Headroom, asker: &Asker<'_>, model: &GpuModel) -> Option<HeadroomError> {
    let (cluster, model) = (encoded(asker.cluster?.as_str()), encoded(model.as_str()));
    let path = format!("/v1/quota?cluster={cluster}&gpu_model={model}&hours=1");
    client.get_dated::<Value>(&path).await.err().filter(|fault| fault.status() == Some(403))
}

/// The command that makes the token of a connector, to be pasted into a shell.
pub(super) fn command(program: &str, cluster: Option<&ClusterName>) -> String {
    let scope = cluster.map_or_else(String::new, |cluster| format!(" --pool {}", shell_word(cluster.as_str())));
    format!("quota-service token create --name {program} --role report{scope}")
}

#[cfg(test)]
mod tests {
    use super::super::{Gpus, NAME as SERVICE, headroom, refused};
    use super::*;
    use crate::client::ServiceSettings;
    use crate::values::HeadroomUrl;
    use axum::http::StatusCode;
    use axum::routing::{get, post, put};

    /// The checks that fail or warn, of a service without pools for this token, by the statuses that it answers.
    struct Service {
        usage: u16,
        outcomes: u16,
        lease: u16,
        quota: u16,
    }

    const ALL: Service = Service { usage: 400, outcomes: 400, lease: 400, quota: 404 };

    impl Service {
        async fn found(self, lease: Option<&str>) -> Vec<String> {
            let answer = |status: u16| {
                let problem = json!({"type": "about:blank", "title": "refused", "status": status, "detail": "earth:A100 is refused"});
                async move || (StatusCode::from_u16(status).unwrap(), axum::Json(problem))
            };
            let router = axum::Router::new()
                .route("/v1/pools", get(|| async { axum::Json(json!({"pools": []})) }))
                .route("/v1/usage", post(answer(self.usage)))
                .route("/v1/outcomes", post(answer(self.outcomes)))
                .route("/v1/lease", put(answer(self.lease)))
                .route("/v1/quota", get(answer(self.quota)));
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            let url: HeadroomUrl = format!("http://{}", listener.local_addr().unwrap()).parse().unwrap();
            tokio::spawn(async move { axum::serve(listener, router).await });
            let settings = ServiceSettings { url: &url, token_file: None, ca_file: None, agent: "t" };
            let cluster = ClusterName::parse("earth").unwrap();
            let asker = asker(&url, &cluster, lease);
            let (checks, _) = headroom(asker, Headroom::new(settings), Some(&Gpus::new())).await;
            let bad = checks.into_iter().filter(|check| check.status != Status::Ok);
            bad.map(|check| format!("{}: {} → {}", check.name, check.found, check.fix.unwrap_or_default())).collect()
        }
    }

    fn asker<'a>(url: &'a HeadroomUrl, cluster: &'a ClusterName, lease: Option<&'a str>) -> Asker<'a> {
        Asker {
            program: "headroom-test",
            cluster: Some(cluster),
            url,
            model_setting: "gpu_model",
            reports_nodes: true,
            lease,
        }
    }

    #[tokio::test]
    async fn a_token_of_other_clusters_is_the_cause_and_not_an_unknown_cluster() {
        let found = Service { quota: 403, ..ALL }.found(None).await;
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("token of headroom: ") && found[0].contains("in its scope"), "{found:?}");
        let found = ALL.found(None).await;
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("cluster earth: Headroom knows no pool of it"), "{found:?}");
    }

    #[tokio::test]
    async fn the_role_and_the_scope_of_a_token_are_known_by_what_is_refused() {
        let lease = Some("/v1/lease");
        let command = "→ quota-service token create --name headroom-test --role report --pool earth";
        let hidden = Service { quota: 403, ..ALL };
        let cases = [
            (
                Service { lease: 403, ..hidden },
                lease,
                "its scope is not the whole cluster earth, which the lease needs",
            ),
            (Service { lease: 403, outcomes: 403, ..hidden }, lease, "its scope is one organization"),
            (Service { outcomes: 403, ..hidden }, None, "its scope is one organization"),
            (Service { lease: 403, outcomes: 403, usage: 403, ..hidden }, lease, "its role may not report"),
            (Service { outcomes: 403, usage: 403, ..hidden }, None, "its role may not report"),
        ];
        for (service, lease, expected) in cases {
            let found = service.found(lease).await;
            assert_eq!(found.len(), 1, "{found:?}");
            assert!(found[0].starts_with(&format!("token of headroom: {expected}")), "{found:?}");
            assert!(found[0].ends_with(command), "{found:?}");
        }
    }

    #[test]
    fn a_token_that_is_refused_is_fixed_by_a_command_alone() {
        let (url, cluster) = (HeadroomUrl::default(), ClusterName::parse("mine & yours").unwrap());
        let asker = asker(&url, &cluster, None);
        let (url, detail) = ("http://x/v1/pools".to_owned(), "unknown token".to_owned());
        let fault = HeadroomError::Refused { url, status: 401, detail, problem: None, retry_after: None };
        let check = refused(SERVICE, &fault, &asker);
        assert!(check.found.ends_with("unknown token; write a token into headroom_token_file"), "{check:?}");
        let quoted = "quota-service token create --name headroom-test --role report --pool 'mine & yours'";
        assert_eq!(check.fix.as_deref(), Some(quoted));
        let any = command("headroom-test", None);
        assert_eq!(any, "quota-service token create --name headroom-test --role report");
    }
}
