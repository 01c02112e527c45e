//! Rights of tokens, and the audit of their use.

use super::tokens::{asked, token, unread};
use super::*;
use axum::http::Method;
use quota_service::access::NewToken;
use store::Role;
use tests::{Listening, on_both_databases, program};

on_both_databases![
    without_tokens_every_caller_is_admitted_and_with_one_only_its_bearer,
    a_token_of_a_moment_ago_is_known_with_the_next_reading,
    a_role_allows_its_own_routes_alone,
    a_pool_out_of_scope_is_refused_on_every_route,
    an_organization_touches_its_own_alone,
    a_name_that_another_organization_has_taken_is_answered_as_a_free_one,
    a_token_works_from_its_creation_to_its_revocation_and_its_secret_is_not_logged,
    every_write_is_in_the_audit_with_its_actor,
    a_write_that_the_audit_cannot_keep_is_not_acknowledged,
    a_wrong_report_is_corrected_and_both_values_are_kept,
    other_machines_are_admitted_only_with_tokens,
];

async fn without_tokens_every_caller_is_admitted_and_with_one_only_its_bearer(database: TestDatabase) {
    let service = serving(&database, 500).await;
    let _ = quota(&service, 1).await;
    let admin = token(&service, 1, Role::Admin, None, &[]).await;
    let refused = service.get(&quota_path(1)).await;
    assert_eq!((refused.status, refused.body["code"].as_str()), (401, Some("no-token")), "{refused:?}");
    assert_eq!(refused.headers["www-authenticate"], "Bearer realm=\"headroom\"");
    for open in ["/healthz", "/readyz", "/openapi.json"] {
        let _ = service.get(open).await.expect(200);
    }
    let _ = asked(&service, &admin, "get", &quota_path(1), None).await.expect(200);
    let mut forged = admin.clone();
    forged.replace_range(70..71, if &admin[70..71] == "0" { "1" } else { "0" });
    let unknown = NewToken::of(&[9; 38]).text();
    for wrong in ["", "xyzzy", &admin[..40], &forged, &unknown, &admin.to_uppercase()] {
        let refused = asked(&service, wrong, "get", &quota_path(1), None).await.expect(401);
        assert_eq!(refused["code"], "bad-token", "{wrong}");
        assert!(wrong.is_empty() || !refused.to_string().contains(wrong), "{refused}");
    }
    service.pass_s(1_000);
    assert_eq!(asked(&service, &admin, "get", "/v1/pools", None).await.expect(401)["code"], "bad-token", "expired");
    service.service.access.read_tokens().await.unwrap();
    assert_eq!(service.get("/v1/pools").await.status, 401, "where there was one, nobody is let in without");
    let answer = service.send(Method::GET, "/missing", &[], None).await;
    assert_eq!(answer.status, 401, "a caller without a token does not learn which routes there are");
}

async fn a_token_of_a_moment_ago_is_known_with_the_next_reading(database: TestDatabase) {
    let service = serving(&database, 500).await;
    let _ = token(&service, 1, Role::Admin, None, &[]).await;
    let new = unread(&service, 2, Role::Read, None, &[]).await;
    let reading = async {
        tokio::time::sleep(std::time::Duration::from_millis(300)).await;
        service.service.access.read_tokens().await.unwrap();
    };
    let (answer, ()) = tokio::join!(asked(&service, &new, "get", "/v1/pools", None), reading);
    let _ = answer.expect(200);
}

async fn a_role_allows_its_own_routes_alone(database: TestDatabase) {
    let service = serving(&database, 500).await;
    let node = json!({ "cluster": "demo", "gpu_model": "A100", "gpus": 8 });
    let task = json!({ "cluster": "demo", "gpu_model": "A100", "id": "t", "organization": "org-000", "class": "hp", "gpus_per_pod": 1.0, "pods": 1 });
    let (roles, settings) = ([Role::Read, Role::Report, Role::Place, Role::Admin], json!({ "nothing": 1 }));
    let mut tokens = Vec::new();
    for (number, role) in roles.into_iter().enumerate() {
        tokens.push(token(&service, number as u8, role, None, &[]).await);
    }
    let [question, prices] = ["/v1/tasks/eta", "/v1/tasks/prices"].map(|path| body_of(path).unwrap());
    for (method, path, body, expected) in [
        ("put", "/v1/nodes/n0", Some(&node), [403, 200, 403, 200]),
        ("get", "/v1/pools", None, [200; 4]),
        ("get", "/metrics", None, [200; 4]),
        ("get", "/v1/audit", None, [403, 403, 403, 200]),
        ("post", "/v1/tasks/dry-run", Some(&task), [200; 4]),
        ("post", "/v1/tasks/eta", Some(&question), [200; 4]),
        ("post", "/v1/tasks/prices", Some(&prices), [200; 4]),
        ("post", "/v1/tasks", Some(&task), [403, 403, 200, 200]),
        ("put", "/v1/pools/demo:A100/settings", Some(&settings), [403, 403, 403, 400]),
        ("post", "/v1/overrides", Some(&settings), [403, 403, 403, 400]),
        ("get", "/v1/overrides?cluster=demo&gpu_model=A100", None, [200; 4]),
        ("post", "/v1/reservations", Some(&settings), [403, 403, 403, 400]),
        ("post", "/v1/reservations?dry_run=true", Some(&settings), [400; 4]),
        ("get", "/v1/promises?cluster=demo&gpu_model=A100", None, [200; 4]),
        ("post", "/v1/usage", Some(&settings), [403, 400, 403, 400]),
        ("post", "/v1/usage/corrections", Some(&settings), [403, 403, 403, 400]),
        ("get", "/missing", None, [403, 403, 403, 404]),
        ("post", "/missing", None, [403, 403, 403, 404]),
    ] {
        for (token, expected) in tokens.iter().zip(expected) {
            let answer = asked(&service, token, method, path, body).await;
            assert_eq!(answer.status, expected, "{method} {path}: {answer:?}");
            assert!(expected != 403 || answer.body["code"] == "forbidden", "{answer:?}");
        }
    }
}

/// A body that a route would take, of the pool that is out of scope.
fn body_of(path: &str) -> Option<Value> {
    let hour = first_hour().to_string();
    Some(match path {
        "/v1/usage" => {
            json!({ "rows": [{ "hour": hour, "cluster": "demo", "gpu_model": "A100", "organization": "org-000", "demand_gpus": 1.0 }] })
        }
        "/v1/usage/corrections" => {
            json!({ "reason": "x", "rows": [{ "hour": hour, "cluster": "demo", "gpu_model": "A100", "organization": "org-000", "demand_gpus": 1.0 }] })
        }
        "/v1/outcomes" => outcomes(0, 1, "kept", end().get()),
        "/v1/outcomes/corrections" => json!({ "reason": "x", "outcomes": [{ "event_id": "e", "kind": "kept" }] }),
        "/v1/overrides" => {
            json!({ "cluster": "demo", "gpu_model": "A100", "kind": "reserve", "gpus": 1.0, "from": end().to_string(), "to": end().plus_s(7_200).to_string(), "reason": "x" })
        }
        "/v1/nodes/{id}" => json!({ "cluster": "demo", "gpu_model": "A100", "gpus": 8 }),
        "/v1/tasks" | "/v1/tasks/dry-run" => {
            json!({ "cluster": "demo", "gpu_model": "A100", "id": "t", "organization": "org-000", "class": "hp", "gpus_per_pod": 1.0, "pods": 1 })
        }
        _ => return engine::body_of(path),
    })
}

/// The query that names the pool, where an operation has one.
fn query_of(operation: &Value) -> String {
    let parameters = operation["parameters"].as_array().into_iter().flatten();
    let names = parameters.filter(|one| one["in"] == "query").filter_map(|one| one["name"].as_str());
    let value = |name: &str| match name {
        "cluster" => Some("cluster=demo"),
        "gpu_model" => Some("gpu_model=A100"),
        "hours" => Some("hours=1"),
        _ => None,
    };
    let pairs: Vec<&str> = names.filter_map(value).collect();
    if pairs.is_empty() { String::new() } else { format!("?{}", pairs.join("&")) }
}

async fn a_pool_out_of_scope_is_refused_on_every_route(database: TestDatabase) {
    let service = serving(&database, 500).await;
    let _ = service.put("/v1/nodes/n0", &body_of("/v1/nodes/{id}").unwrap()).await.expect(200);
    let other = token(&service, 1, Role::Admin, None, &["mars", "demo:B200"]).await;
    let mine = token(&service, 2, Role::Admin, None, &["demo:A100"]).await;
    let document = service.get("/openapi.json").await.expect(200);
    let mut refused = 0;
    for (path, operations) in document["paths"].as_object().unwrap() {
        if ["/healthz", "/readyz", "/v1/pools"].contains(&path.as_str()) {
            continue;
        }
        for method in operations.as_object().unwrap().keys() {
            let id = if path.starts_with("/v1/pools") { "demo:A100" } else { "n0" };
            let asked_for = format!("{}{}", path.replace("{id}", id), query_of(&operations[method]));
            let body = body_of(path).filter(|_| method != "get" && method != "delete");
            let answer = asked(&service, &other, method, &asked_for, body.as_ref()).await;
            assert_eq!((answer.status, answer.body["code"].as_str()), (403, Some("forbidden")), "{method} {path}");
            refused += 1;
        }
    }
    assert!(refused >= 41, "{refused}");
    assert_eq!(asked(&service, &other, "get", "/metrics", None).await.status, 403);
    assert_eq!(asked(&service, &other, "get", "/v1/pools", None).await.expect(200)["pools"], json!([]));
    assert_eq!(asked(&service, &mine, "get", "/v1/pools", None).await.expect(200)["pools"][0]["id"], "demo:A100");
    let _ = asked(&service, &mine, "get", &quota_path(1), None).await.expect(200);
    let twice = format!("{}&cluster=mars", quota_path(1));
    assert_eq!(asked(&service, &other, "get", &twice, None).await.status, 403, "named twice is named by nobody");
    let _ = asked(&service, &mine, "get", "/v1/nodes?cluster=demo", None).await.expect(403);
    // A node is judged by its pool; whether another one is missing is not for this token.
    assert_eq!(asked(&service, &mine, "delete", "/v1/nodes/missing?cluster=demo", None).await.status, 403);
    assert_eq!(asked(&service, &mine, "delete", "/v1/nodes/n0?cluster=demo", None).await.status, 204);
}

async fn an_organization_touches_its_own_alone(database: TestDatabase) {
    let service = serving(&database, 500).await;
    let _ = service.put("/v1/nodes/n0", &body_of("/v1/nodes/{id}").unwrap()).await.expect(200);
    let _ = service.post("/v1/tasks", &body_of("/v1/tasks").unwrap()).await.expect(200);
    let zero = token(&service, 1, Role::Place, Some("org-000"), &[]).await;
    let one = token(&service, 2, Role::Place, Some("org-001"), &[]).await;
    let of_pool = "cluster=demo&gpu_model=A100";
    for (method, path) in [
        ("get", format!("/v1/tasks/t?{of_pool}")),
        ("get", format!("/v1/tasks/t/explain?{of_pool}")),
        ("post", format!("/v1/tasks/t/checkpoint?{of_pool}")),
        ("get", format!("/v1/forecast?{of_pool}&organization=org-000")),
    ] {
        assert_eq!(asked(&service, &one, method, &path, None).await.status, 403, "{method} {path}");
        assert_eq!(asked(&service, &zero, method, &path, None).await.status, 200, "{method} {path}");
    }
    assert_eq!(asked(&service, &one, "post", "/v1/tasks", body_of("/v1/tasks").as_ref()).await.status, 403);
    let waiting = format!("/v1/tasks?{of_pool}&status=running");
    assert_eq!(asked(&service, &zero, "get", &waiting, None).await.expect(200)["total"], 1, "its own are listed");
    assert_eq!(asked(&service, &one, "get", &waiting, None).await.expect(200)["total"], 0);
    for path in [
        format!("/v1/forecast?{of_pool}"),
        format!("/v1/events?{of_pool}"),
        format!("/v1/demand?{of_pool}"),
        "/v1/nodes?cluster=demo".into(),
        "/v1/pools/demo:A100/nodes".into(),
    ] {
        let refused = asked(&service, &zero, "get", &path, None).await.expect(403);
        let detail = refused["detail"].as_str().unwrap();
        assert!(detail.contains("use a token without") || detail.contains("organization=org-000"), "{path}: {detail}");
    }
    let _ = asked(&service, &zero, "get", &quota_path(1), None).await.expect(200);
    let detail_of = async |id: &str| {
        let path = format!("/v1/tasks/{id}?{of_pool}");
        let refused = asked(&service, &one, "delete", &path, None).await.expect(403);
        refused["detail"].as_str().unwrap().replace(&format!("task {id}"), "task ID")
    };
    let never = detail_of("never").await;
    assert!(never.contains("has no task ID") && never.contains("check the id, or use a token"), "{never}");
    assert_eq!(detail_of("t").await, never, "the answer does not show whether others have such a task");
}

async fn a_name_that_another_organization_has_taken_is_answered_as_a_free_one(database: TestDatabase) {
    let service = serving(&database, 500).await;
    let _ = service.put("/v1/nodes/n0", &body_of("/v1/nodes/{id}").unwrap()).await.expect(200);
    let zero = token(&service, 1, Role::Place, Some("org-000"), &[]).await;
    let one = token(&service, 2, Role::Place, Some("org-001"), &[]).await;
    let admin = token(&service, 3, Role::Admin, None, &[]).await;
    let mut task = body_of("/v1/tasks").unwrap();
    let _ = asked(&service, &admin, "post", "/v1/tasks", Some(&task)).await.expect(200);
    task["organization"] = "org-001".into();
    task["gpus_per_pod"] = 2.0.into();
    for name in ["t", "free"] {
        task["id"] = name.into();
        let mine = asked(&service, &one, "post", "/v1/tasks", Some(&task)).await.expect(200);
        assert_eq!((&mine["id"], &mine["status"]), (&name.into(), &"running".into()), "{mine}");
        let again = asked(&service, &one, "post", "/v1/tasks", Some(&task)).await.expect(200);
        assert_eq!(again["submitted"], mine["submitted"], "the same again is answered as it is");
        let path = format!("/v1/tasks/{name}?cluster=demo&gpu_model=A100");
        assert_eq!(asked(&service, &one, "get", &path, None).await.expect(200)["organization"], "org-001");
    }
    let path = "/v1/tasks/t?cluster=demo&gpu_model=A100";
    assert_eq!(
        asked(&service, &zero, "get", path, None).await.expect(200)["organization"],
        "org-000",
        "submitted for it"
    );
    assert_eq!(asked(&service, &one, "delete", path, None).await.expect(200)["id"], "t");
    assert_eq!(asked(&service, &zero, "get", path, None).await.expect(200)["status"], "running", "that of the other");
    let full = "/v1/tasks/org-001%2Ffree?cluster=demo&gpu_model=A100";
    assert_eq!(asked(&service, &admin, "get", full, None).await.expect(200)["status"], "running", "as it is kept");
}

fn listening(database: &TestDatabase, settings: &str) -> (Listening, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("headroom.toml");
    std::fs::write(&config, format!("[quota-service]\nlease_s = 1\n{settings}\n")).unwrap();
    let service = Listening::start(&["--database", &database.url, "--config", config.to_str().unwrap()]);
    (service, folder)
}

async fn a_token_works_from_its_creation_to_its_revocation_and_its_secret_is_not_logged(database: TestDatabase) {
    drop(serving(&database, 500).await);
    let (service, _folder) = listening(&database, "log = \"debug\"");
    let path = quota_path(1);
    let _ = service.get_until(&path, |status, _| status == 200);
    let create = ["token", "create", "--name", "prometheus", "--role", "read", "--json", "--database", &database.url];
    let made = program("quota-service", &create).json();
    let (id, text) = (made["id"].as_str().unwrap(), made["token"].as_str().unwrap());
    let _ = service.get_until(&path, |status, _| status == 401);
    assert_eq!(service.get_as(text, &path).0, 200);
    let listed = program("quota-service", &["token", "list", "--database", &database.url]).ok();
    let secret = text.rsplit('_').next().unwrap();
    assert!(listed.stdout.contains("prometheus") && listed.stdout.contains("valid"), "{listed:?}");
    assert!(!listed.stdout.contains(secret));
    let revoked = program("quota-service", &["token", "revoke", id, "--database", &database.url]).ok();
    assert!(revoked.stdout.contains("is revoked"), "{revoked:?}");
    let started = std::time::Instant::now();
    while service.get_as(text, &path).0 == 200 {
        assert!(started.elapsed() < Duration::from_secs(10));
        std::thread::sleep(Duration::from_millis(50));
    }
    let unknown = program("quota-service", &["token", "revoke", "nobody", "--database", &database.url]);
    assert_eq!((unknown.code, unknown.stderr.contains("there is no token nobody")), (2, true), "{unknown:?}");
    let wrong = ["token", "create", "--name", "x", "--role", "read", "--pool", ":", "--database", &database.url];
    assert_eq!(program("quota-service", &wrong).code, 2);
    let stopped = service.stop();
    assert_eq!(stopped.code, 0);
    assert!(stopped.stderr.contains("stopped"), "it logs: {}", stopped.stderr);
    assert!(!stopped.stderr.contains(secret), "a secret is in the log");
    let audited = database.store().await.audit(at(0), at(i64::from(u32::MAX)), 10).await.unwrap();
    let actions: Vec<_> = audited.iter().map(|one| (one.record.action.as_str(), one.record.target.as_str())).collect();
    assert_eq!(actions, [("token revoke", id), ("token create", id)]);
}

async fn every_write_is_in_the_audit_with_its_actor(database: TestDatabase) {
    let service = serving(&database, 500).await;
    let node = body_of("/v1/nodes/{id}").unwrap();
    let _ = service.put("/v1/nodes/n0", &node).await.expect(200);
    let admin = token(&service, 7, Role::Admin, None, &[]).await;
    let task = body_of("/v1/tasks").unwrap();
    let _ = asked(&service, &admin, "post", "/v1/tasks", Some(&task)).await.expect(200);
    let _ = asked(&service, &admin, "post", "/v1/tasks/dry-run", Some(&task)).await.expect(200);
    let _ = asked(&service, &admin, "post", "/v1/tasks", Some(&json!({}))).await.expect(400);
    let _ = asked(&service, &admin, "delete", "/v1/tasks/t?cluster=demo&gpu_model=A100", None).await.expect(200);
    let audit = asked(&service, &admin, "get", "/v1/audit", None).await.expect(200);
    let entries: Vec<Vec<&str>> = audit["entries"].as_array().unwrap().iter().map(actor_action_target).collect();
    assert_eq!(
        entries,
        [
            ["token 7", "DELETE /v1/tasks/{id}", "/v1/tasks/t?cluster=demo&gpu_model=A100"],
            ["token 7", "POST /v1/tasks", "/v1/tasks"],
            // The first task of a pool decides who places it.
            ["token 7", "POST /v1/tasks", "/v1/tasks"],
            ["anyone", "PUT /v1/nodes/{id}", "/v1/nodes/n0"],
        ],
        "writes that were done, newest first: {audit}"
    );
    let now = service.service.core.clock.now();
    let later = asked(&service, &admin, "get", &format!("/v1/audit?from={}", now.plus_s(1)), None).await.expect(200);
    assert_eq!(later["entries"], json!([]));
    let one = asked(&service, &admin, "get", "/v1/audit?limit=1", None).await.expect(200);
    assert_eq!((one["entries"].as_array().unwrap().len(), &one["entries"][0]["status"]), (1, &200.into()));
    for wrong in ["from=then", "limit=10001"] {
        let refused = asked(&service, &admin, "get", &format!("/v1/audit?{wrong}"), None).await.expect(400);
        assert_eq!(refused["code"], "bad-query", "{wrong}");
    }
}

fn actor_action_target(entry: &Value) -> Vec<&str> {
    ["actor", "action", "target"].map(|name| entry[name].as_str().unwrap()).to_vec()
}

async fn a_write_that_the_audit_cannot_keep_is_not_acknowledged(database: TestDatabase) {
    let service = serving(&database, 500).await;
    database.execute("ALTER TABLE audit RENAME TO audit_gone").await;
    let node = body_of("/v1/nodes/{id}").unwrap();
    let refused = service.put("/v1/nodes/n0", &node).await.expect(503);
    assert_eq!((&refused["code"], &refused["retry_after_s"]), (&"not-audited".into(), &1.into()));
    for path in ["/v1/usage/corrections", "/v1/overrides"] {
        let refused = service.post(path, &body_of(path).unwrap()).await.expect(503);
        assert_eq!(refused["code"], "not-audited", "{path}");
    }
    let _ = quota(&service, 1).await;
    database.execute("ALTER TABLE audit_gone RENAME TO audit").await;
    let _ = service.put("/v1/nodes/n0", &node).await.expect(200);
    assert_eq!(service.get("/v1/audit").await.expect(200)["entries"].as_array().unwrap().len(), 1);
}

async fn a_wrong_report_is_corrected_and_both_values_are_kept(database: TestDatabase) {
    let service = serving(&database, 500).await;
    let hour = end().plus_s(-3_600).to_string();
    let row = |organization: &str, gpus: f64| json!({ "hour": hour, "cluster": "demo", "gpu_model": "A100", "organization": organization, "demand_gpus": gpus });
    let _ = service.post("/v1/usage", &json!({ "rows": [row("org-000", 400.0)] })).await.expect(200);
    let correction =
        json!({ "reason": "the exporter counted twice", "rows": [row("org-000", 200.0), row("new", 1.0)] });
    let corrected = service.post("/v1/usage/corrections", &correction).await.expect(200);
    let of = |index: usize| [&corrected["rows"][index]["before_gpus"], &corrected["rows"][index]["after_gpus"]];
    assert_eq!((of(0), of(1)), ([&json!(400.0), &json!(200.0)], [&Value::Null, &json!(1.0)]));
    let stored = "SELECT demand_milli FROM usage JOIN series ON series.id = series_id
                  WHERE organization = 'org-000' ORDER BY hour DESC LIMIT 1";
    assert_eq!(database.numbers(stored).await, [200_000]);
    assert!(service.sees_news().await, "quotas are computed again");
    let _ = service.post("/v1/outcomes", &outcomes(0, 2, "broken", end().get())).await.expect(200);
    let corrections =
        json!({ "reason": "a drain, in truth", "outcomes": [{ "event_id": "event-0", "kind": "drain" }] });
    let corrected = service.post("/v1/outcomes/corrections", &corrections).await.expect(200);
    assert_eq!(
        corrected["outcomes"][0],
        json!({ "event_id": "event-0", "before": "broken", "after": "drain", "spent": false })
    );
    assert_eq!(database.numbers("SELECT count(*) FROM outcomes WHERE kind = 'broken'").await, [1]);
    let half = json!({ "reason": "x", "outcomes": [{ "event_id": "event-1", "kind": "kept" }, { "event_id": "never", "kind": "kept" }] });
    let unknown = service.post("/v1/outcomes/corrections", &half).await.expect(404);
    assert_eq!(unknown["detail"], "there is no outcome never");
    assert_eq!(database.numbers("SELECT count(*) FROM outcomes WHERE kind = 'kept'").await, [0], "whole or not at all");
    let no_reason = json!({ "reason": " ", "rows": [row("org-000", 1.0)] });
    let refused = service.post("/v1/usage/corrections", &no_reason).await.expect(400);
    assert_eq!(refused["errors"][0]["pointer"], "/reason");
    let audit = service.get("/v1/audit").await.expect(200);
    let details: Vec<_> =
        audit["entries"].as_array().unwrap().iter().filter(|one| !one["detail"]["reason"].is_null()).collect();
    assert_eq!(details.len(), 2, "{audit}");
    assert_eq!(details[0]["detail"]["reason"], "a drain, in truth");
    assert_eq!(details[0]["detail"]["outcomes"], corrected["outcomes"]);
    assert_eq!(details[1]["detail"]["rows"][0]["before_gpus"], 400.0);
}

async fn other_machines_are_admitted_only_with_tokens(database: TestDatabase) {
    drop(serving(&database, 500).await);
    let start = ["--listen", "0.0.0.0:0", "--database", &database.url];
    let refused = program("quota-service", &start);
    assert_eq!(refused.code, 4, "{refused:?}");
    assert!(
        refused.stderr.contains("there is no token: make one first with `quota-service token create"),
        "{refused:?}"
    );
    let create = ["token", "create", "--name", "a", "--role", "read", "--json", "--database", &database.url];
    let made = program("quota-service", &create).json();
    let service = Listening::start(&start);
    let port = service.address.rsplit(':').next().unwrap().to_owned();
    let service = service.at(format!("127.0.0.1:{port}"));
    assert_eq!(service.get(&quota_path(1)).0, 401);
    assert_eq!(service.get_as(made["token"].as_str().unwrap(), "/v1/pools").0, 200);
    // The last one that is revoked does not open the door.
    let _ = program("quota-service", &["token", "revoke", made["id"].as_str().unwrap(), "--database", &database.url]);
    std::thread::sleep(Duration::from_millis(2_500));
    assert_eq!(service.get(&quota_path(1)).0, 401);
    assert_eq!(service.stop().code, 0);
}
