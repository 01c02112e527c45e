//! Trust in the service's certificate. TLS 1.3 alone, as the service offers it.

use std::error::Error;
use std::io;
use std::iter::successors;
use std::path::Path;
use std::sync::Arc;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::version::TLS13;
use tokio_rustls::rustls::{self, AlertDescription, CertificateError, ClientConfig, RootCertStore};

/// TLS of a client that trusts the authorities of a file (PEM), or, without one and where it `is_secure`, those of the machine.
///
/// # Errors
/// The file holds no certificate, or the machine trusts no authority.
pub fn trusting(ca_file: Option<&Path>, is_secure: bool) -> Result<ClientConfig, String> {
    let mut roots = RootCertStore::empty();
    if let Some(path) = ca_file {
        let ca_file = path.display();
        let read = CertificateDer::pem_file_iter(path).map_err(|fault| format!("{ca_file}: {fault}"))?;
        for certificate in read {
            let certificate = certificate.map_err(|fault| format!("{ca_file}: {fault}"))?;
            roots.add(certificate).map_err(|fault| format!("{ca_file}: {fault}"))?;
        }
        if roots.is_empty() {
            return Err(format!("{ca_file}: no certificate (PEM)"));
        }
    } else if is_secure {
        for certificate in rustls_native_certs::load_native_certs().certs {
            // An unusable one leaves the others.
            let _ = roots.add(certificate);
        }
        if roots.is_empty() {
            return Err("this machine trusts no authority: set a file of certificates".to_owned());
        }
    }
    let client = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let client = client.with_protocol_versions(&[&TLS13]).map_err(|fault| fault.to_string())?;
    Ok(client.with_root_certificates(roots).with_no_client_auth())
}

/// A connection that no later try brings about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wrong {
    /// No authority that is trusted has signed the certificate.
    Untrusted,
    /// The certificate is one of another name or time.
    Certificate,
    /// The certificate is one of an authority, as openssl makes it by default, and not of a server.
    Authority,
    /// The other side asks for a certificate of the client.
    AsksForOurs,
    /// The other side speaks no TLS.
    NoTls,
}

/// The reason for which a connection cannot come about, by its fault; `None` where it may come about later.
pub fn wrong(fault: &(dyn Error + 'static)) -> Option<Wrong> {
    let mut causes = successors(Some(fault), |cause| inner(*cause));
    let tls = causes.find_map(|cause| cause.downcast_ref::<rustls::Error>())?;
    match tls {
        rustls::Error::InvalidCertificate(
            CertificateError::Expired
            | CertificateError::ExpiredContext { .. }
            | CertificateError::NotValidYet
            | CertificateError::NotValidYetContext { .. }
            | CertificateError::NotValidForName
            | CertificateError::NotValidForNameContext { .. },
        ) => Some(Wrong::Certificate),
        // It has no variant of its own: the text is that of webpki.
        rustls::Error::InvalidCertificate(fault) if format!("{fault:?}").contains("CaUsedAsEndEntity") => {
            Some(Wrong::Authority)
        }
        rustls::Error::InvalidCertificate(_) => Some(Wrong::Untrusted),
        rustls::Error::AlertReceived(AlertDescription::CertificateRequired) => Some(Wrong::AsksForOurs),
        rustls::Error::InvalidMessage(_) => Some(Wrong::NoTls),
        _ => None,
    }
}

/// The cause of a fault. The source of an error of I/O is that of the one in it.
fn inner<'a>(fault: &'a (dyn Error + 'static)) -> Option<&'a (dyn Error + 'static)> {
    match fault.downcast_ref::<io::Error>() {
        Some(outer) => outer.get_ref().map(|inner| inner as &(dyn Error + 'static)),
        None => fault.source(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_client_offers_tls_1_3_alone() {
        let key = rcgen::KeyPair::generate().unwrap();
        let certificate =
            rcgen::CertificateParams::new(vec!["localhost".to_owned()]).unwrap().self_signed(&key).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let ca = folder.path().join("ca.pem");
        std::fs::write(&ca, certificate.pem()).unwrap();
        let config = Arc::new(trusting(Some(&ca), true).unwrap());
        let name = "localhost".try_into().unwrap();
        let mut connection = tokio_rustls::rustls::ClientConnection::new(config, name).unwrap();
        let mut hello = Vec::new();
        let _ = connection.write_tls(&mut hello).unwrap();
        let at = hello.windows(3).position(|bytes| bytes == [0, 43, 0]).expect("it offers versions");
        assert_eq!(hello[at + 4..at + 7], [2, 3, 4], "one version, of two bytes");
    }

    #[test]
    fn a_file_without_certificates_is_refused_with_its_name() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let fault = trusting(Some(file.path()), true).unwrap_err();
        assert!(fault.starts_with(file.path().to_str().unwrap()) && fault.ends_with("no certificate (PEM)"), "{fault}");
    }
}
