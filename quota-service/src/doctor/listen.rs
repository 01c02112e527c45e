//! Checks whether the service can listen, or which program has its port.

use super::{Check, holder};
use crate::config::Config;
use axum::body::Bytes;
use http_body_util::Full;
use hyper::{Request, Response, header};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use serving::client::{self, NoAnswer};
use serving::tls::{TRUST, Tls};
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;
use tokio::net::TcpStream;

const ANSWERS_WITHIN: Duration = Duration::from_secs(2);
/// The longest answer that is read of the program that has the port: many times the document of our routes.
const ANSWER_BYTES: usize = 16 << 20;

pub async fn check(config: &Config) -> Check {
    let address = config.listen;
    if address.port() == 0 {
        return Check::ok("listen", format!("{address}: the service takes a free port"));
    }
    match std::net::TcpListener::bind(address) {
        Ok(_) => Check::ok("listen", format!("{address} is free")),
        Err(fault) if fault.kind() == ErrorKind::AddrInUse => taken(config, address).await,
        Err(fault) if fault.kind() == ErrorKind::PermissionDenied => {
            let fix = "set listen to a port from 1024 on, or give the program CAP_NET_BIND_SERVICE";
            Check::fail("listen", format!("no permission to listen on {address}: {fault}"), fix)
        }
        Err(fault) => Check::fail(
            "listen",
            format!("cannot listen on {address}: {fault}"),
            "set listen to an address of this machine",
        ),
    }
}

async fn taken(config: &Config, address: SocketAddr) -> Check {
    let by = || holder::of(address.port()).unwrap_or_else(|| "another program".to_owned());
    // A service that runs goes on with the certificate that it has read.
    let Ok(tls) = config.tls() else {
        let found = format!("{address} is taken by {}, which cannot be asked before the certificate can be read", by());
        return Check::warn(
            "listen",
            found,
            "correct the files of the check tls first; a service that runs goes on, and one that starts does not",
        );
    };
    let asked = async |tls: Option<&Tls>| {
        let asked = tokio::time::timeout(ANSWERS_WITHIN, version(address, tls)).await;
        asked.unwrap_or_else(|_| Err("no answer".to_owned().into()))
    };
    match asked(tls.as_ref()).await {
        Ok(version) => {
            let found = format!("{address}: Headroom {version} answers there");
            let asked = tokio::time::timeout(ANSWERS_WITHIN, refuses_writes(address, tls.as_ref())).await;
            match asked.ok().flatten() {
                Some(why) => {
                    let fix =
                        "see to what the reason names; the service takes writes again by itself, and /readyz says when";
                    Check::fail("listen", format!("{found}, and takes no writes: {why}"), fix)
                }
                None => Check::ok("listen", found),
            }
        }
        Err(NoAnswer { why, is_of_certificate: true }) => {
            let by = by();
            let found =
                format!("{address} is taken by {by}, which shows a certificate that is not trusted here: {why}");
            let fix = format!("if it is a Headroom service, {TRUST}; if not, end it, or set listen to another port");
            Check::warn("listen", found, fix)
        }
        Err(NoAnswer { why, .. }) => {
            if tls.is_some()
                && let Ok(version) = asked(None).await
            {
                let found = format!(
                    "{address}: Headroom {version} answers there over HTTP, and tls_certificate_file asks for HTTPS"
                );
                let fix = "restart it, so that it has these settings, or run doctor with those that it has";
                return Check::warn("listen", found, fix);
            }
            let by = by();
            let fix = format!("end it, or set listen to another port; ss -ltnp 'sport = :{}'", address.port());
            Check::fail("listen", format!("{address} is taken by {by}, which is not a Headroom service: {why}"), fix)
        }
    }
}

/// The version of the service that answers at an address.
async fn version(address: SocketAddr, tls: Option<&Tls>) -> Result<String, NoAnswer> {
    let health = get(address, tls, "/healthz").await?;
    if health.as_ref() != b"ok\n" {
        return Err("/healthz has another answer".to_owned().into());
    }
    let document = get(address, tls, "/openapi.json").await?;
    let document: Value = serde_json::from_slice(&document).map_err(|fault| format!("/openapi.json: {fault}"))?;
    let named = (document["info"]["title"].as_str(), document["info"]["version"].as_str());
    match named {
        (Some("Headroom"), Some(version)) => Ok(version.to_owned()),
        _ => Err("/openapi.json belongs to another program".to_owned().into()),
    }
}

/// Why the service that answers at an address takes no writes; `None` where it does, or is not ready for another reason.
async fn refuses_writes(address: SocketAddr, tls: Option<&Tls>) -> Option<String> {
    let answer = ask(address, tls, "/readyz").await.ok()?;
    let problem: Value = serde_json::from_slice(answer.body()).ok()?;
    (problem["code"] == "no-writes").then(|| problem["detail"].as_str().unwrap_or_default().to_owned())
}

async fn get(address: SocketAddr, tls: Option<&Tls>, path: &str) -> Result<Bytes, NoAnswer> {
    let answer = ask(address, tls, path).await?;
    if answer.status().is_success() {
        Ok(answer.into_body())
    } else {
        Err(format!("{path}: {}", answer.status()).into())
    }
}

async fn ask(address: SocketAddr, tls: Option<&Tls>, path: &str) -> Result<Response<Bytes>, NoAnswer> {
    let request = Request::get(path)
        .header(header::HOST, address.to_string())
        .header(header::CONNECTION, "close")
        .body(Full::default())
        .map_err(|fault| fault.to_string())?;
    let stream = TcpStream::connect(reached(address)).await?;
    match tls {
        None => Ok(client::exchange(TokioIo::new(stream), request, ANSWER_BYTES).await?),
        Some(tls) => {
            let secure = tls.connect("localhost", stream).await?;
            Ok(client::exchange(TokioIo::new(secure), request, ANSWER_BYTES).await?)
        }
    }
}

/// Address that reaches a listener on all addresses from this machine.
const fn reached(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}
