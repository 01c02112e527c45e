//! The extender's certificates and address, and whether the cluster is named.

use super::Check;
use crate::config::Config;
use command_line::span;
use serving::certificate;
use serving::tls::{Files, Tls};
use std::path::Path;
use vocab::UnixSeconds;

/// Time for people to renew a certificate.
const CERTIFICATE_WARN_S: i64 = 30 * vocab::SECONDS_PER_DAY;
const NAME: &str = "extender";
const FIX: &str = "correct tls_certificate_file, tls_key_file and tls_client_ca_file";

/// Files and addresses of this machine in the settings.
pub fn of(config: &Config, now: UnixSeconds) -> Vec<Check> {
    let mut checks = Vec::new();
    if config.cluster.get().is_none() {
        checks.push(Check::fail("cluster", "it is not set", "set cluster to Headroom's name of this cluster"));
    }
    checks.extend(modes(config));
    if config.extender {
        checks.extend(extender(config, now));
    }
    checks
}

fn modes(config: &Config) -> Option<Check> {
    let is_abrupt = config.evict && config.evict_grace_s == 0;
    // Without a notice a pod cannot save its work.
    is_abrupt.then(|| {
        Check::warn("evict", "pods are evicted without notice", "set evict_grace_s to the seconds of a checkpoint")
    })
}

fn extender(config: &Config, now: UnixSeconds) -> Vec<Check> {
    let (certificate, key) = (config.tls_certificate_file.get(), config.tls_key_file.get());
    let client_ca = config.tls_client_ca_file.get();
    let address = config.extender_listen;
    let is_plain = certificate.is_none() && key.is_none();
    if is_plain && !address.ip().is_loopback() {
        let found = format!("{address} is reachable from other machines without TLS");
        let fix = "set tls_certificate_file and tls_key_file, or extender_listen to an address of the loopback";
        return vec![Check::fail(NAME, found, fix)];
    }
    if is_plain {
        return vec![Check::ok(NAME, format!("{address}, without TLS, for schedulers of this machine"))];
    }
    let (Some(certificate), Some(key)) = (certificate, key) else {
        return vec![Check::fail(NAME, "a certificate and its key belong together", FIX)];
    };
    let files =
        Files { certificate: certificate.to_owned(), key: key.to_owned(), client_ca: client_ca.map(Path::to_owned) };
    if let Err(why) = Tls::read(files) {
        return vec![Check::fail(NAME, why, FIX)];
    }
    let mut checks = vec![expiry(certificate, now)];
    if client_ca.is_none() && !address.ip().is_loopback() {
        let found = "every client that reaches it may ask about nodes and victims";
        checks.push(Check::warn(
            "extender clients",
            found,
            "set tls_client_ca_file, and give the scheduler a certificate",
        ));
    }
    checks
}

fn expiry(path: &Path, now: UnixSeconds) -> Check {
    let file = path.display();
    let valid = std::fs::read(path).ok().and_then(|pem| certificate::valid(&pem));
    let Some((from, until)) = valid.map(|valid| (UnixSeconds::new(*valid.start()), UnixSeconds::new(*valid.end())))
    else {
        return Check::warn(NAME, format!("{file}: its expiry cannot be read"), FIX);
    };
    if now < from && now < until {
        return Check::fail(
            NAME,
            format!("{file} is not valid before {from}"),
            "set another certificate, or correct the clock",
        );
    }
    let left_s = until.since_s(now);
    let fix = format!("renew {file}: a running program reads it again by itself");
    match left_s {
        ..=0 => Check::fail(NAME, format!("{file} has expired at {until}"), fix),
        1..CERTIFICATE_WARN_S => Check::warn(NAME, format!("{file} expires in {}, at {until}", span(left_s)), fix),
        _ => Check::ok(NAME, format!("{file} is valid until {until}")),
    }
}
