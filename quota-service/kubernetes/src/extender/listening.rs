//! Where the extender listens.

use super::{ExtenderState, router};
use crate::config::{Config, FilePath};
use serving::hosts::{self, Hosts};
use serving::listen::{ConnectionLimits, serve};
use serving::tls::{self, Files, Tls};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::watch;

/// Replicas of a scheduler and their probes: far below this.
const CONNECTIONS: usize = 64;
/// Go keeps quiet connections for 90 s. We keep them longer, so that none ends while a question is on its way.
const HEAD_WITHIN: Duration = Duration::from_mins(2);
/// A scheduler that does not read its answer for so long has gone.
const READS_WITHIN: Duration = Duration::from_secs(30);
/// Between two checks for assumptions that have ended.
const TELL_EVERY: Duration = Duration::from_secs(5);
/// In these checks: each twelfth reads the view again.
const RENEW_EVERY: u32 = 12;

/// Why the extender does not listen.
#[derive(Debug, thiserror::Error)]
pub enum ExtenderError {
    #[error(
        "extender_listen = {at}: without a certificate it listens on this machine alone, since every client that reaches it decides on pods: \
         set tls_certificate_file and tls_key_file, or listen on 127.0.0.1"
    )]
    /// No certificate, and other machines could connect.
    Open {
        /// Address.
        at: SocketAddr,
    },
    /// A certificate, key or authority is set without the others.
    #[error("tls_certificate_file and tls_key_file belong together, and tls_client_ca_file with them: set {missing}")]
    Half {
        /// Missing setting.
        missing: &'static str,
    },
    /// A certificate or key cannot be read.
    #[error("{0}")]
    Certificates(String),
    /// The address is taken, or not of this machine.
    #[error("extender_listen = {at}: {fault}")]
    Bind {
        /// Address.
        at: SocketAddr,
        /// Cause.
        fault: std::io::Error,
    },
}

/// A listener of the extender.
pub struct Listening {
    listener: TcpListener,
    tls: Option<Arc<Tls>>,
}

impl Listening {
    /// # Errors
    /// The address is taken, certificates cannot be read, or there are none and others could reach it.
    pub async fn bind(config: &Config) -> Result<Self, ExtenderError> {
        let at = config.extender_listen;
        let tls = files(config)?.map(Tls::read).transpose().map_err(ExtenderError::Certificates)?.map(Arc::new);
        if tls.is_none() && !at.ip().is_loopback() {
            return Err(ExtenderError::Open { at });
        }
        let listener = TcpListener::bind(at).await.map_err(|fault| ExtenderError::Bind { at, fault })?;
        Ok(Self { listener, tls })
    }

    /// Address that it listens on, with the port that was chosen for port 0.
    ///
    /// # Errors
    /// The system does not know it.
    pub fn address(&self) -> std::io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Answers until `stop` is set. Certificates are read again when they change, and when `reloads` counts up.
    pub async fn serve(self, state: ExtenderState, reloads: watch::Receiver<u64>, stop: watch::Receiver<bool>) {
        let limits = ConnectionLimits { connections: CONNECTIONS, header: HEAD_WITHIN, write: READS_WITHIN };
        // Without a certificate it is for this machine alone, and for no page that a browser shows there.
        let answers = match (&self.tls, self.listener.local_addr()) {
            (None, Ok(here)) => hosts::only(router(state.clone()), Hosts::new(here.ip(), [])),
            _ => router(state.clone()),
        };
        let ends = |end_s| metrics::gauge!("headroom_tls_certificate_end_timestamp_seconds").set(end_s as f64);
        let renewing = async {
            match self.tls.clone() {
                Some(tls) => tls::watch(tls, reloads, ends).await,
                None => std::future::pending().await,
            }
        };
        let telling = async {
            let mut every = tokio::time::interval(TELL_EVERY);
            let mut ticks = 0_u32;
            loop {
                every.tick().await;
                state.tell();
                ticks += 1;
                if ticks.is_multiple_of(RENEW_EVERY) {
                    let of = state.clone();
                    // Some 100 ms for 300,000 pods.
                    let _ = tokio::task::spawn_blocking(move || of.renew()).await;
                }
            }
        };
        tokio::select! {
            () = serve(self.listener, self.tls.clone(), answers, limits, stop) => {}
            () = renewing => {}
            () = telling => {}
        }
    }
}

fn files(config: &Config) -> Result<Option<Files>, ExtenderError> {
    let path = |file: &FilePath| file.get().map(Path::to_owned);
    let client_ca = path(&config.tls_client_ca_file);
    match (path(&config.tls_certificate_file), path(&config.tls_key_file)) {
        (Some(certificate), Some(key)) => Ok(Some(Files { certificate, key, client_ca })),
        (None, None) if client_ca.is_none() => Ok(None),
        (None, _) => Err(ExtenderError::Half { missing: "tls_certificate_file" }),
        (Some(_), None) => Err(ExtenderError::Half { missing: "tls_key_file" }),
    }
}
