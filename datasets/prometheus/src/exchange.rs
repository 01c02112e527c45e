//! One request and its answer, over a connection of its own: bounded in time and size.

use crate::Target;
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::{Method, Request, header};
use hyper_util::rt::TokioIo;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::version::TLS13;
use tokio_rustls::rustls::{self, ClientConfig, RootCertStore};

/// A machine that is there takes a connection at once; what takes longer is the answer.
const CONNECTS_WITHIN: Duration = Duration::from_secs(10);

/// An HTTP answer.
#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    pub retry_after_s: Option<u64>,
    pub location: Option<String>,
    pub body: Vec<u8>,
}

/// Why there is no readable answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExchangeFault {
    /// Trying again may help.
    Broken(String),
    /// The other side shows a certificate that is not trusted.
    Untrusted(String),
    /// It took longer than this.
    Slow(Duration),
    TooLarge(usize),
}

/// An HTTP request.
pub struct Question<'a> {
    pub method: Method,
    pub path: String,
    /// Fields of a form: in the body of a POST, in the address of a GET.
    pub form: String,
    pub token: Option<&'a str>,
}

/// How long and how much.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    pub within: Duration,
    pub max_bytes: usize,
}

/// TLS 1.3, with the authorities of a file, or those of the machine.
///
/// # Errors
/// The file holds no certificate, or the machine trusts no authority.
pub fn tls(ca_file: Option<&Path>) -> Result<Arc<ClientConfig>, String> {
    let mut roots = RootCertStore::empty();
    if let Some(file) = ca_file {
        let of_file = |fault: &dyn std::fmt::Display| format!("{}: {fault}", file.display());
        for certificate in CertificateDer::pem_file_iter(file).map_err(|fault| of_file(&fault))? {
            let certificate = certificate.map_err(|fault| of_file(&fault))?;
            roots.add(certificate).map_err(|fault| of_file(&fault))?;
        }
        if roots.is_empty() {
            return Err(format!("{}: no certificate (PEM)", file.display()));
        }
    } else {
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        if roots.is_empty() {
            return Err("this machine trusts no authority: name a file with the authority of the URL".to_owned());
        }
    }
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let config = config.with_protocol_versions(&[&TLS13]).map_err(|fault| fault.to_string())?;
    Ok(Arc::new(config.with_root_certificates(roots).with_no_client_auth()))
}

/// Asks once.
///
/// # Errors
/// No answer came within the bounds.
pub async fn exchange(
    target: &Target,
    tls: Option<&Arc<ClientConfig>>,
    question: &Question<'_>,
    bounds: Bounds,
) -> Result<Reply, ExchangeFault> {
    let asking = async {
        let connecting = TcpStream::connect((target.host.as_str(), target.port));
        let connected = tokio::time::timeout(CONNECTS_WITHIN, connecting).await;
        let none = |_| ExchangeFault::Broken(format!("no connection within {} s", CONNECTS_WITHIN.as_secs()));
        let stream = connected.map_err(none)?.map_err(|fault| broken(&fault))?;
        match tls {
            Some(tls) => {
                let name = ServerName::try_from(target.host.clone()).map_err(|fault| broken(&fault))?;
                let stream =
                    TlsConnector::from(tls.clone()).connect(name, stream).await.map_err(|fault| untrusted(&fault))?;
                send(stream, target, question, bounds.max_bytes).await
            }
            None => send(stream, target, question, bounds.max_bytes).await,
        }
    };
    tokio::time::timeout(bounds.within, asking).await.unwrap_or(Err(ExchangeFault::Slow(bounds.within)))
}

async fn send<S>(stream: S, target: &Target, question: &Question<'_>, max_bytes: usize) -> Result<Reply, ExchangeFault>
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
{
    let request = request(target, question)?;
    let handshake = hyper::client::conn::http1::handshake::<_, Full<Bytes>>(TokioIo::new(stream)).await;
    let (mut sender, connection) = handshake.map_err(|fault| broken(&fault))?;
    let driving = AbortOnDrop(tokio::spawn(async move {
        // The request returns the fault of its connection.
        let _ = connection.await;
    }));
    let response = sender.send_request(request).await.map_err(|fault| broken(&fault))?;
    let text = |name| response.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let (retry_after, location) = (text(header::RETRY_AFTER), text(header::LOCATION));
    let status = response.status().as_u16();
    let body = read(response.into_body(), max_bytes).await?;
    drop(driving);
    Ok(Reply { status, retry_after_s: retry_after.and_then(|text| text.trim().parse().ok()), location, body })
}

struct AbortOnDrop(tokio::task::JoinHandle<()>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

fn request(target: &Target, question: &Question<'_>) -> Result<Request<Full<Bytes>>, ExchangeFault> {
    let is_post = question.method == Method::POST;
    let path = if is_post || question.form.is_empty() {
        question.path.clone()
    } else {
        format!("{}?{}", question.path, question.form)
    };
    let mut request = Request::builder()
        .method(question.method.clone())
        .uri(path)
        .header(header::HOST, &target.authority)
        .header(header::USER_AGENT, concat!("headroom/", env!("CARGO_PKG_VERSION")))
        .header(header::ACCEPT, "application/json")
        .header(header::CONNECTION, "close");
    if let Some(token) = question.token {
        request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
    }
    if is_post {
        request = request.header(header::CONTENT_TYPE, "application/x-www-form-urlencoded");
    }
    let body = if is_post { Bytes::from(question.form.clone()) } else { Bytes::new() };
    request.body(Full::new(body)).map_err(|fault| broken(&fault))
}

async fn read(mut body: Incoming, max_bytes: usize) -> Result<Vec<u8>, ExchangeFault> {
    let mut bytes = Vec::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|fault| broken(&fault))?;
        let Some(data) = frame.data_ref() else { continue };
        if bytes.len() + data.len() > max_bytes {
            return Err(ExchangeFault::TooLarge(max_bytes));
        }
        bytes.extend_from_slice(data);
    }
    Ok(bytes)
}

/// With what lies below, which says more than the top.
fn broken(fault: &(dyn std::error::Error + 'static)) -> ExchangeFault {
    let mut text = fault.to_string();
    let mut below = fault.source();
    while let Some(fault) = below {
        text = format!("{text}: {fault}");
        below = fault.source();
    }
    ExchangeFault::Broken(text)
}

fn untrusted(fault: &std::io::Error) -> ExchangeFault {
    match fault.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
        Some(rustls::Error::InvalidCertificate(why)) => ExchangeFault::Untrusted(format!("{why:?}")),
        _ => broken(fault),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_of_prometheus_offers_tls_1_3_alone() {
        let key = rcgen::KeyPair::generate().unwrap();
        let certificate =
            rcgen::CertificateParams::new(vec!["localhost".to_owned()]).unwrap().self_signed(&key).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, text: String| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            path
        };
        let ca = file("ca.pem", certificate.pem());
        let config = tls(Some(&ca)).unwrap();
        let name = "localhost".try_into().unwrap();
        let mut connection = tokio_rustls::rustls::ClientConnection::new(config, name).unwrap();
        let mut hello = Vec::new();
        let _ = connection.write_tls(&mut hello).unwrap();
        let at = hello.windows(3).position(|bytes| bytes == [0, 43, 0]).expect("it offers versions");
        assert_eq!(hello[at + 4..at + 7], [2, 3, 4], "one version, of two bytes");
    }
}
