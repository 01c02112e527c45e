//! A service that starts before its database: it answers the last quotas from a file until the database answers.

use crate::clock::Clock;
use crate::config::Config;
use crate::error::ServiceError;
use crate::http;
use crate::http::waiting::{Waiting, router};
use crate::refresh::fallback;
use crate::{access::Tokens, published::Published};
use serving::listen;
use serving::tls::Tls;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use store::{Store, StoreError};
use tokio::net::TcpListener;
use tokio::sync::watch;

/// Between two attempts to reach the database.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Serves until the database is there; `None` after a signal to stop.
///
/// # Errors
/// The listener cannot be used, or the database refuses for a reason that does not pass.
pub async fn serve(
    config: &Config,
    tls: Option<Arc<Tls>>,
    listener: &std::net::TcpListener,
    fault: &StoreError,
    mut stops: watch::Receiver<bool>,
) -> Result<Option<Arc<dyn Store>>, ServiceError> {
    tracing::warn!(%fault, "the database does not answer at the start: the service answers the last quotas, at their age");
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
    let answers = router(Arc::new(Waiting { published, tokens, clock: Clock::real(), why }));
    let answers = if is_open { http::only_for(answers, config) } else { answers };
    let failed = |fault| ServiceError::Bind(config.listen, fault);
    let own = TcpListener::from_std(listener.try_clone().map_err(failed)?).map_err(failed)?;
    let (stop, stopping) = watch::channel(false);
    let serving = tokio::spawn(listen::serve(own, tls, answers, config.connection_limits(), stopping));
    let found = tokio::select! {
        found = reached(config) => found.map(Some),
        _ = stops.wait_for(|stopped| *stopped) => Ok(None),
    };
    stop.send_replace(true);
    // Open requests end here; later ones meet the service with its database.
    let _ = tokio::time::timeout(Duration::from_secs(config.shutdown_grace_s), serving).await;
    found
}

async fn reached(config: &Config) -> Result<Arc<dyn Store>, ServiceError> {
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        match config.open_database().await {
            Err(fault) if fault.is_retryable() => tracing::debug!(%fault, "the database does not answer yet"),
            opened => return Ok(opened?),
        }
    }
}
