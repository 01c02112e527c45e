//! A service that starts before its database: it answers the last quotas from a file until the database answers.

use crate::clock::Clock;
use crate::config::Config;
use crate::error::ServiceError;
use crate::http;
use crate::http::waiting::{Waiting, router};
use crate::refresh::fallback;
use crate::{access::Tokens, published::Published};
use axum::Router;
use metrics_exporter_prometheus::PrometheusHandle;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use store::{Store, StoreError};

/// Between two attempts to reach the database.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The last quotas of the file, as routes.
pub fn routes(config: &Config, fault: &StoreError, render: PrometheusHandle) -> Router {
    tracing::warn!(%fault, "the database cannot be used at the start: the service answers the last quotas, at their age");
    let why = fault.to_string();
    let read = |file: &Path| fallback::read(file, &why);
    let (published, tokens) =
        config.fallback_file.get().map_or_else(|| Ok((Published::default(), Tokens::new())), read).unwrap_or_else(
            |fault: String| {
                tracing::error!(%fault, "cannot read the last quotas from the file");
                (Published::default(), Tokens::new())
            },
        );
    let is_open = tokens.are_open();
    let waiting = Arc::new(Waiting { published, tokens, clock: Clock::real(), why });
    let answers = router(waiting, move || render.render());
    if is_open { http::only_for(answers, config) } else { answers }
}

/// Whether the database may be there in a while: its server does not answer yet, a restore has not made it yet, it takes no writes
/// until the operator grants the right or frees space, or its file cannot be opened until the operator grants the right or frees an
/// inode.
#[must_use]
pub fn passes(config: &Config, fault: &StoreError) -> bool {
    let is_file = store::sqlite_file(&config.database).is_ok_and(|file| file.is_some());
    match fault {
        StoreError::Full { .. } => true,
        StoreError::Denied { .. } => is_file || fault.is_missing_database(),
        _ => fault.is_retryable(),
    }
}

/// Waits until the database answers.
///
/// # Errors
/// The database refuses for a reason that does not pass.
pub async fn reached(config: &Config) -> Result<Arc<dyn Store>, ServiceError> {
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        match config.open_database().await {
            Err(fault) if passes(config, &fault) => tracing::debug!(%fault, "the database does not answer yet"),
            opened => return Ok(opened?),
        }
    }
}
