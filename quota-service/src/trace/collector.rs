//! The way to the collector: OTLP over HTTP, by this service's own runtime and client. The batches are made on a thread of the
//! SDK, which has no runtime of its own.

use async_trait::async_trait;
use axum::body::Bytes;
use axum::http::{HeaderValue, Uri, header};
use http_body_util::Full;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use opentelemetry_http::{HttpClient, HttpError};
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig, WithHttpConfig};
use serving::client;
use serving::standing::Standing;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::runtime::Handle;

/// A batch that takes longer is lost, and the next one is tried.
const TAKES_AT_MOST: Duration = Duration::from_secs(3);

/// Where a collector takes spans.
pub fn traces_url(endpoint: &str) -> Result<String, String> {
    let uri: Uri = endpoint.parse().map_err(|fault| format!("{endpoint:?} is no URL: {fault}"))?;
    if uri.scheme_str() != Some("http") || uri.host().is_none() || uri.query().is_some() {
        return Err(format!("{endpoint:?}: write http://HOST:PORT; for TLS, put a collector beside the service"));
    }
    Ok(format!("{}/v1/traces", endpoint.trim_end_matches('/')))
}

pub fn exporter(endpoint: &str) -> Result<SpanExporter, String> {
    let collector = Collector { runtime: Handle::current(), gone: Standing::new() };
    let exporter = SpanExporter::builder()
        .with_http()
        .with_http_client(collector)
        .with_endpoint(traces_url(endpoint)?)
        .with_protocol(Protocol::HttpBinary)
        .with_timeout(TAKES_AT_MOST);
    exporter.build().map_err(|fault| fault.to_string())
}

/// Sends batches.
#[derive(Debug)]
struct Collector {
    runtime: Handle,
    gone: Standing,
}

#[async_trait]
impl HttpClient for Collector {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        // The limit, too, is one of the runtime: on this thread there is none.
        let sending = self.runtime.spawn(async move { tokio::time::timeout(TAKES_AT_MOST, send(request)).await });
        let sent = match sending.await {
            Ok(Ok(sent)) => sent,
            Ok(Err(_)) => Err(format!("no answer within {} s", TAKES_AT_MOST.as_secs())),
            // The runtime ends: so does the service.
            Err(fault) => Err(fault.to_string()),
        };
        let refused = sent.as_ref().ok().filter(|answer| !answer.status().is_success());
        let why =
            sent.as_ref().err().cloned().or_else(|| refused.map(|answer| format!("it answers {}", answer.status())));
        match why {
            Some(why) if self.gone.begins("") => {
                tracing::warn!(%why, "the collector takes no spans: they are dropped until it does");
            }
            Some(why) => tracing::debug!(%why, "the collector takes no spans"),
            None => {
                if let Some(over) = self.gone.is_over("") {
                    tracing::info!(lasted_s = over.lasted_s, times = over.times, "the collector takes spans again");
                }
            }
        }
        sent.map_err(Into::into)
    }
}

async fn send(request: Request<Bytes>) -> Result<Response<Bytes>, String> {
    let (mut head, body) = request.into_parts();
    let authority = head.uri.authority().ok_or("the endpoint names no host")?.clone();
    let host = authority.host().trim_start_matches('[').trim_end_matches(']');
    let stream = TcpStream::connect((host, authority.port_u16().unwrap_or(80))).await;
    let stream = stream.map_err(|fault| fault.to_string())?;
    let path = head.uri.path_and_query().map_or("/", |path| path.as_str());
    head.uri = path.parse().map_err(|fault| format!("{fault}"))?;
    let of_host = HeaderValue::from_str(authority.as_str()).map_err(|fault| fault.to_string())?;
    head.headers.insert(header::HOST, of_host);
    head.headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    client::glance(TokioIo::new(stream), Request::from_parts(head, Full::new(body))).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_go_below_the_endpoint_and_not_over_tls() {
        let url = |endpoint| traces_url(endpoint);
        assert_eq!(url("http://127.0.0.1:4318").unwrap(), "http://127.0.0.1:4318/v1/traces");
        assert_eq!(url("http://collector/otlp/").unwrap(), "http://collector/otlp/v1/traces");
        for (endpoint, why) in [
            ("https://collector:4318", "put a collector beside"),
            ("collector:4318", "write http://HOST:PORT"),
            ("http://", "is no URL"),
            ("http://collector?x=1", "write http://HOST:PORT"),
        ] {
            let refused = url(endpoint).unwrap_err();
            assert!(refused.contains(why), "{refused}");
        }
    }
}
