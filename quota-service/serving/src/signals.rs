//! What the system tells a program: to stop, and to read its files again.

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

/// Counts how often the process was told to read its files again (SIGHUP).
#[must_use]
pub fn reloads() -> watch::Receiver<u64> {
    let (told, reloads) = watch::channel(0);
    tokio::spawn(async move {
        let Ok(mut hangup) = signal(SignalKind::hangup()) else { return std::future::pending().await };
        while hangup.recv().await.is_some() {
            told.send_modify(|count| *count += 1);
        }
    });
    reloads
}

/// Returns when the process is told to stop (SIGINT or SIGTERM).
pub async fn stopped() {
    let (Ok(mut interrupt), Ok(mut terminate)) = (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
    else {
        // Without signals the process can only be killed.
        return std::future::pending().await;
    };
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
}
