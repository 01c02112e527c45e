//! Ray: a worker that is to go is drained, so that Ray places nothing there any more and Ray Train saves its work.
//!
//! The dashboard of the head lists nodes (`GET /api/v0/nodes`), and starts `ray drain-node` as a job (`POST /api/jobs/`), under a name by which a second
//! one is refused.

use super::{ANSWERS_WITHIN, Notice, TRIES_AGAIN};
use axum::body::Bytes;
use connectors::clock;
use http_body_util::Full;
use hyper::{Method, Request, StatusCode, Uri, header};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use serving::client;
use serving::standing::Standing;
use std::sync::Arc;
use tokio::net::TcpStream;
use vocab::UnixSeconds;

/// Label of a Ray pod: its RayCluster.
const CLUSTER: &str = "ray.io/cluster";
/// Label of a Ray pod: `head` or `worker`.
const NODE_TYPE: &str = "ray.io/node-type";
/// The longest answer of a dashboard that is read: 10,000 nodes have a kilobyte or two each.
const ANSWER_BYTES: usize = 64 << 20;

/// Drains Ray nodes.
pub struct Ray {
    /// URL of a dashboard, with `{cluster}` and `{namespace}`.
    template: String,
}

/// A drain of one node.
#[derive(Debug, Clone)]
pub struct Drain {
    url: String,
    node_ip: String,
    submission: String,
    at: UnixSeconds,
}

impl Ray {
    /// None where no dashboard is set.
    pub fn new(template: Option<&str>) -> Option<Self> {
        template.map(|template| Self { template: template.trim_end_matches('/').to_owned() })
    }

    /// The drain of a victim that is a worker of Ray.
    pub fn drain(&self, notice: &Notice) -> Option<Drain> {
        let cluster = notice.mark(CLUSTER)?;
        if notice.mark(NODE_TYPE) != Some("worker") {
            return None;
        }
        Some(Drain {
            url: self.template.replace("{cluster}", cluster).replace("{namespace}", &notice.pod.namespace),
            node_ip: notice.pod_ip.clone()?,
            submission: format!("headroom-drain-{}-{}", notice.pod.uid, notice.at.get()),
            at: notice.at,
        })
    }
}

impl Drain {
    async fn call(&self, method: Method, path: &str, body: Option<&Value>) -> Result<(StatusCode, Value), String> {
        let uri: Uri = format!("{}{path}", self.url).parse().map_err(|fault| format!("{}: {fault}", self.url))?;
        let (host, port) = (uri.host().unwrap_or_default().to_owned(), uri.port_u16().unwrap_or(8265));
        let request = Request::builder()
            .method(method)
            .uri(uri.path_and_query().map_or("/", |path| path.as_str()))
            .header(header::HOST, uri.authority().map_or(host.as_str(), |authority| authority.as_str()))
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::CONNECTION, "close")
            .body(Full::new(Bytes::from(body.map(Value::to_string).unwrap_or_default())));
        let request = request.map_err(|fault| fault.to_string())?;
        let exchange = async {
            let stream = TcpStream::connect((host.as_str(), port)).await.map_err(|fault| fault.to_string())?;
            client::exchange(TokioIo::new(stream), request, ANSWER_BYTES).await
        };
        let answer = tokio::time::timeout(ANSWERS_WITHIN, exchange).await;
        let answer = answer.map_err(|_| format!("no answer within {} s", ANSWERS_WITHIN.as_secs()))??;
        Ok((answer.status(), serde_json::from_slice(answer.body()).unwrap_or_default()))
    }

    /// Ray's own id of the node on this address, while it is alive.
    async fn node_id(&self) -> Result<String, String> {
        let (status, answer) = self.call(Method::GET, "/api/v0/nodes?limit=10000", None).await?;
        if !status.is_success() {
            return Err(format!("{} answers {status}", self.url));
        }
        let nodes = answer["data"]["result"]["result"].as_array().into_iter().flatten();
        let mut here = nodes.filter(|node| node["node_ip"] == self.node_ip.as_str() && node["state"] == "ALIVE");
        let id = here.next().and_then(|node| node["node_id"].as_str());
        // It goes into a command line.
        let id = id.filter(|id| !id.is_empty() && id.chars().all(|letter| letter.is_ascii_alphanumeric()));
        id.map(str::to_owned).ok_or_else(|| format!("{} knows no node {}", self.url, self.node_ip))
    }

    async fn begin(&self) -> Result<(), String> {
        let node = self.node_id().await?;
        let entrypoint = format!(
            "ray drain-node --node-id {node} --reason DRAIN_NODE_REASON_PREEMPTION --reason-message headroom-eviction-notice \
             --deadline-remaining-seconds {}",
            self.at.since_s(clock::now()).max(1)
        );
        let job = json!({ "entrypoint": entrypoint, "submission_id": self.submission, "entrypoint_num_cpus": 0 });
        let (status, answer) = self.call(Method::POST, "/api/jobs/", Some(&job)).await?;
        let is_there = answer.to_string().contains("already exists");
        if status.is_success() || is_there { Ok(()) } else { Err(format!("{} answers {status}", self.url)) }
    }
}

/// Drains until Ray has taken it, or until the eviction.
pub async fn send(drain: Drain, until: UnixSeconds, standing: Arc<Standing>) {
    while clock::now() < until {
        let went = drain.begin().await;
        if went.is_err() {
            metrics::counter!("headroom_kubernetes_notice_faults_total", "of" => "ray").increment(1);
        }
        standing.note(
            "ray",
            &went,
            |fault| tracing::warn!(fault, "a Ray node is not drained: it is tried again until the eviction"),
            |over| tracing::info!(lasted_s = over.lasted_s, "Ray nodes are drained again"),
        );
        if went.is_ok() {
            return;
        }
        tokio::time::sleep(TRIES_AGAIN).await;
    }
}
