//! Notices over HTTP, signed: to a webhook of the operator, and to a checkpoint hook that a pod offers on its own address.
//!
//! A hook that answers 200 with `{"ready": true}`, or a checkpoint hook that answers 200 or 204, says that the work is saved.

use super::{ANSWERS_WITHIN, Notice, NoticeError, Ready, TRIES_AGAIN};
use crate::config::Config;
use crate::headroom::trusting;
use crate::names::{CHECKPOINT_PATH, CHECKPOINT_PORT};
use axum::http::{HeaderMap, StatusCode};
use connectors::clock;
use serde_json::Value;
use serving::standing::Standing;
use serving::webhook::Webhook;
use std::net::IpAddr;
use std::sync::{Arc, PoisonError};

/// Where notices go.
pub struct Hooks {
    webhook: Option<Webhook>,
    secret: Vec<u8>,
    to_pods: bool,
}

/// One place that a notice goes to.
#[derive(Debug, Clone)]
pub struct Target {
    webhook: Webhook,
    /// Whether an answer without a body says that the work is saved.
    is_checkpoint: bool,
}

impl Hooks {
    /// None where the settings name neither a webhook nor checkpoint hooks.
    pub fn new(config: &Config) -> Result<Option<Self>, NoticeError> {
        let wrong = |key, detail: String| NoticeError { key, detail };
        let url = config.notice_webhook_url.get();
        if url.is_none() && !config.notice_checkpoint_hooks {
            return Ok(None);
        }
        let file = config.notice_secret_file.get();
        let file = file.ok_or_else(|| {
            wrong("notice_secret_file", "it is not set: notices are signed, name a file with a secret".into())
        })?;
        let secret = std::fs::read_to_string(file);
        let secret = secret.map_err(|fault| wrong("notice_secret_file", format!("{}: {fault}", file.display())))?;
        let secret = secret.trim().as_bytes().to_vec();
        // A secret that is too short is refused here, for hooks of pods, too.
        Webhook::new("http://127.0.0.1/", &secret).map_err(|fault| wrong("notice_secret_file", fault))?;
        let webhook = match url {
            Some(url) => {
                let hook = Webhook::new(&url.base, &secret).map_err(|fault| wrong("notice_webhook_url", fault))?;
                let tls = trusting(config.notice_ca_file.get(), hook.is_secure());
                Some(hook.trusting(Arc::new(tls.map_err(|fault| wrong("notice_ca_file", fault))?)))
            }
            None => None,
        };
        Ok(Some(Self { webhook, secret, to_pods: config.notice_checkpoint_hooks }))
    }

    /// Where the notice of a victim goes.
    pub fn targets(&self, notice: &Notice) -> Vec<Target> {
        let operator = self.webhook.clone().map(|webhook| Target { webhook, is_checkpoint: false });
        operator.into_iter().chain(self.checkpoint_hook(notice)).collect()
    }

    /// The hook of the pod: a port and a path on its own address. One that shares its node's network would name ports of the node.
    fn checkpoint_hook(&self, notice: &Notice) -> Option<Target> {
        if !self.to_pods || notice.is_host_network {
            return None;
        }
        let port: u16 = notice.mark(CHECKPOINT_PORT)?.parse().ok().filter(|port| *port > 0)?;
        let address: IpAddr = notice.pod_ip.as_deref()?.parse().ok()?;
        let path = notice.mark(CHECKPOINT_PATH).unwrap_or("/").trim_start_matches('/');
        let url = format!("http://{}/{path}", std::net::SocketAddr::new(address, port));
        Some(Target { webhook: Webhook::new(&url, &self.secret).ok()?, is_checkpoint: true })
    }

    /// Tells the operator's webhook that a victim stays; once, since nothing depends on it.
    pub fn taken_back(&self, notice: &Notice, standing: Arc<Standing>) {
        let Some(webhook) = self.webhook.clone() else { return };
        let body = notice.body("eviction_taken_back");
        tokio::spawn(async move {
            let went = post(&webhook, &body).await.map(drop);
            note(&standing, "webhook", &went);
        });
    }
}

async fn post(webhook: &Webhook, body: &Value) -> Result<(StatusCode, Value), String> {
    let body = body.to_string().into_bytes();
    let sent = tokio::time::timeout(ANSWERS_WITHIN, webhook.post(body, HeaderMap::new())).await;
    let answer = sent.map_err(|_| format!("no answer within {} s", ANSWERS_WITHIN.as_secs()))?;
    let answer = answer.map_err(|fault| fault.to_string())?;
    Ok((answer.status(), serde_json::from_slice(answer.body()).unwrap_or_default()))
}

fn note(standing: &Standing, what: &'static str, went: &Result<(), String>) {
    if went.is_err() {
        metrics::counter!("headroom_kubernetes_notice_faults_total", "of" => what).increment(1);
    }
    standing.note(
        what,
        went,
        |fault| tracing::warn!(what, fault, "a notice of eviction is not taken: it is tried again until the eviction"),
        |over| tracing::info!(what, lasted_s = over.lasted_s, "notices of eviction are taken again"),
    );
}

/// Sends a notice until it is taken, or until the eviction.
pub async fn send(target: Target, notice: Notice, ready: Ready, standing: Arc<Standing>) {
    let what = if target.is_checkpoint { "checkpoint hook" } else { "webhook" };
    let body = notice.body("eviction_notice");
    while clock::now() < notice.at {
        let went = post(&target.webhook, &body).await;
        note(&standing, what, &went.as_ref().map(|_| ()).map_err(Clone::clone));
        if let Ok((status, answer)) = went {
            let is_saved = target.is_checkpoint && matches!(status, StatusCode::OK | StatusCode::NO_CONTENT);
            if is_saved || answer["ready"] == true {
                ready.lock().unwrap_or_else(PoisonError::into_inner).insert(notice.pod.uid, notice.at);
            }
            return;
        }
        tokio::time::sleep(TRIES_AGAIN).await;
    }
}
