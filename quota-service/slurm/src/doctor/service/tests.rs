//! A quota-service that refuses some requests.

use super::*;
use crate::config::Mode;
use crate::doctor::Status;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::routing::{get, post, put};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Answers of the service.
#[derive(Clone, Default)]
struct Answers {
    /// Refusals of usage, outcomes and the lease.
    usage: Option<&'static str>,
    outcomes: Option<&'static str>,
    lease: Option<&'static str>,
    /// GPU models whose quota is refused.
    hidden: &'static [&'static str],
}

type Refused = (StatusCode, axum::Json<Value>);

fn refused(status: StatusCode, detail: &str) -> Refused {
    let body = json!({"type": "/problems/forbidden", "title": "refused", "status": status.as_u16(), "detail": detail, "code": "forbidden"});
    (status, axum::Json(body))
}

/// A request that is refused by the token, or else by its body.
fn judged(by_token: Option<&str>) -> Refused {
    let by_body = || refused(StatusCode::BAD_REQUEST, "a field is missing");
    by_token.map_or_else(by_body, |detail| refused(StatusCode::FORBIDDEN, detail))
}

fn pools() -> Value {
    json!({ "pools": [pool("a100")] })
}

fn pool(model: &str) -> Value {
    json!({
        "id": format!("earth:{model}"), "cluster": "earth", "gpu_model": model, "organizations": 1, "offered_hours": [1],
        "capacity_gpus": 16.0, "latest_demand_gpus": 8.0, "quota_gpus_by_hours": {"1": 2.0},
        "computed_quota_gpus_by_hours": {"1": 2.0}, "eta": 1.0, "computed_at": connectors::clock::now().to_string(),
        "stage": "fresh", "no_quota": null, "valid_until": null, "guarantee_rate": 0.9, "idle_gpus": 1.0,
        "spot_gpus_by_hours": {}, "available_gpus_by_hours": {}, "demand_bound_gpus_by_hours": {}, "hp_demand_gpus": null,
        "forecast": [], "outcomes_24h": {}, "tasks": null, "overrides": 0
    })
}

/// The checks that are not good beside a cluster of a100 and h100.
async fn found(answers: Answers, list: Value, change: impl FnOnce(&mut Config)) -> Vec<String> {
    beside(answers, list, change, None, &["a100", "h100"]).await
}

/// The same, with facts of Slurm beside these models.
async fn beside(
    answers: Answers,
    list: Value,
    change: impl FnOnce(&mut Config),
    facts: Option<&Facts>,
    models: &[&str],
) -> Vec<String> {
    let quota = async |State(answers): State<Answers>, Query(asked): Query<BTreeMap<String, String>>| {
        let is_hidden = answers.hidden.contains(&asked["gpu_model"].as_str());
        let status = if is_hidden { StatusCode::FORBIDDEN } else { StatusCode::NOT_FOUND };
        refused(status, "earth:h100 is out of the scope of the token")
    };
    let router = axum::Router::new()
        .route("/v1/pools", get(async move || axum::Json(list)))
        .route("/v1/usage", post(async |State(answers): State<Answers>| judged(answers.usage)))
        .route("/v1/outcomes", post(async |State(answers): State<Answers>| judged(answers.outcomes)))
        .route("/v1/connectors/lease", put(async |State(answers): State<Answers>| judged(answers.lease)))
        .route("/v1/quota", get(quota))
        .with_state(answers);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await });
    let mut config = Config {
        cluster: "earth".parse().unwrap(),
        headroom_url: url.parse().unwrap(),
        mode: Mode::Publish,
        ..Config::default()
    };
    change(&mut config);
    let here: Gpus = models.iter().map(|model| (vocab::GpuModel::parse(model).unwrap(), 16)).collect();
    let checks = of(&config, facts, Some(&here)).await;
    let bad = checks.into_iter().filter(|check| check.status != Status::Ok);
    bad.map(|check| format!("{:?} {}: {} → {}", check.status, check.name, check.found, check.fix.unwrap_or_default()))
        .collect()
}

const SCOPE: &str = "earth is out of the scope of the token";

#[tokio::test]
async fn a_token_of_some_pools_fails_since_the_lease_needs_the_cluster_and_hides_pools() {
    let answers = Answers { lease: Some(SCOPE), hidden: &["h100"], ..Answers::default() };
    let bad = found(answers.clone(), pools(), |_| {}).await;
    assert_eq!(bad.len(), 2, "{bad:#?}");
    assert!(
        bad[0].starts_with("Fail token of headroom: its scope is not the whole cluster earth, which the lease needs"),
        "{bad:#?}"
    );
    assert!(
        bad[0].ends_with("→ quota-service token create --name headroom-slurm --role report --pool earth"),
        "{bad:#?}"
    );
    assert!(
        bad[1].starts_with("Warn model h100: nodes have it, and the scope of the token hides its pool"),
        "{bad:#?}"
    );
    let bad = found(answers, pools(), |config| config.mode = Mode::Observe).await;
    assert_eq!(bad.len(), 1, "without limits no lease is needed: {bad:#?}");
}

#[tokio::test]
async fn a_missing_token_and_one_that_reads_are_fixed_by_a_command_alone() {
    let role = Some("the role of the token does not allow POST /v1/outcomes: use a token of the role report");
    let bad = found(
        Answers { usage: role, outcomes: role, lease: role, ..Answers::default() },
        json!({"pools": [pool("a100"), pool("h100")]}),
        |_| {},
    )
    .await;
    assert_eq!(bad.len(), 1, "{bad:#?}");
    assert!(bad[0].starts_with("Fail token of headroom: its role may not report"), "{bad:#?}");
    assert!(
        bad[0].ends_with("→ quota-service token create --name headroom-slurm --role report --pool earth"),
        "{bad:#?}"
    );
}

#[tokio::test]
async fn a_model_within_the_scope_that_headroom_lacks_is_unknown() {
    let bad = found(Answers::default(), pools(), |_| {}).await;
    assert_eq!(bad.len(), 1, "{bad:#?}");
    assert!(bad[0].starts_with("Warn model h100: nodes have it, but Headroom knows only a100"), "{bad:#?}");
}

#[tokio::test]
async fn models_that_seem_to_be_wrong_since_a_type_is_not_tracked_are_no_hints() {
    let config = crate::site::SlurmConfig::parse("AccountingStorageTRES = cpu,gres/gpu,gres/gpu:a100\n");
    let mut facts = Facts::new((22, 5), config, "headroom".to_owned());
    facts.tracked = ["gres/gpu", "gres/gpu:a100"].map(str::to_owned).into();
    facts.on_nodes = ["gres/gpu", "gres/gpu:a100", "gres/gpu:h100"].map(str::to_owned).into();
    let list = json!({ "pools": [pool("a100"), pool("h100")] });
    let bad = beside(Answers::default(), list.clone(), |_| {}, Some(&facts), &["a100", "any"]).await;
    assert_eq!(bad, [""; 0]);
    let bad = beside(Answers::default(), list, |_| {}, None, &["a100", "any"]).await;
    assert_eq!(bad.len(), 2, "{bad:#?}");
}

#[tokio::test]
async fn a_token_of_one_organization_reports_its_usage_and_no_more() {
    let scope = Some("data of other organizations is out of the scope of the token");
    let list = json!({ "pools": [pool("a100"), pool("h100")] });
    for mode in [Mode::Publish, Mode::Observe] {
        let answers = Answers { outcomes: scope, lease: scope, ..Answers::default() };
        let bad = found(answers, list.clone(), |config| config.mode = mode).await;
        assert_eq!(bad.len(), 1, "{bad:#?}");
        assert!(
            bad[0].starts_with("Fail token of headroom: its scope is one organization: it may report the usage"),
            "{bad:#?}"
        );
        assert!(
            bad[0].ends_with("→ quota-service token create --name headroom-slurm --role report --pool earth"),
            "{bad:#?}"
        );
    }
}
