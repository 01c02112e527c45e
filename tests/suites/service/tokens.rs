//! Tokens of tests, and requests with them.

use super::*;
use axum::http::Method;
use quota_service::access::{NewToken, digest};
use store::{Role, TokenRecord};
use tests::Answer;
use vocab::Organization;

/// A token of a role and scope; what its user sends.
pub(super) async fn token(
    service: &TestService,
    number: u8,
    role: Role,
    organization: Option<&str>,
    pools: &[&str],
) -> String {
    let token = unread(service, number, role, organization, pools).await;
    service.service.access.read_tokens().await.unwrap();
    token
}

/// The same, which the service has not read yet.
pub(super) async fn unread(
    service: &TestService,
    number: u8,
    role: Role,
    organization: Option<&str>,
    pools: &[&str],
) -> String {
    let new = NewToken::of(&[number; 38]);
    let record = TokenRecord {
        id: new.id.clone(),
        name: format!("token {number}"),
        role,
        organization: organization.map(|name| Organization::parse(name).unwrap()),
        pools: pools.iter().map(|pool| (*pool).to_owned()).collect(),
        secret_sha256: digest(&new.secret).to_vec(),
        created_at: service.service.core.clock.now(),
        expires_at: Some(service.service.core.clock.now().plus_s(1_000)),
        revoked_at: None,
    };
    service.service.core.store.insert_token(&record).await.unwrap();
    new.text()
}

pub(super) async fn asked(
    service: &TestService,
    token: &str,
    method: &str,
    path: &str,
    body: Option<&Value>,
) -> Answer {
    let method = Method::from_bytes(method.to_uppercase().as_bytes()).unwrap();
    let authorization = format!("Bearer {token}");
    service.send(method, path, &[("authorization", &authorization)], body.map(Value::to_string)).await
}
