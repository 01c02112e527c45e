//! TLS 1.3 of the service, and of its requests to other services. Certificates are read again when their files change, so
//! that they can be renewed without a restart.

mod ending;
mod trust;

use crate::certificate;
use crate::standing::Standing;
use arc_swap::ArcSwap;
use sha2::{Digest, Sha256};
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio_rustls::rustls::client::WebPkiServerVerifier;
use tokio_rustls::rustls::crypto::{CryptoProvider, ring};
use tokio_rustls::rustls::pki_types::pem::{Error, PemObject};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::version::TLS13;
use tokio_rustls::rustls::{ClientConfig, RootCertStore, ServerConfig};
use tokio_rustls::{TlsAcceptor, TlsConnector, client, server};
use trust::SameOrSigned;

/// Between two looks at the files.
const LOOK_EVERY: Duration = Duration::from_secs(10);

/// Where certificates lie, as PEM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Files {
    /// The certificate of the service, with its chain.
    pub certificate: PathBuf,
    /// Private key of the certificate.
    pub key: PathBuf,
    /// Authority of client certificates; `None` where clients need none.
    pub client_ca: Option<PathBuf>,
}

/// Configurations made of the files.
struct Made {
    server: Arc<ServerConfig>,
    client: Arc<ClientConfig>,
    /// When the certificate and those behind it are valid, in seconds since 1970; `None` where it cannot be read.
    valid: Option<RangeInclusive<i64>>,
}

/// The valid certificates.
pub struct Tls {
    files: Files,
    made: ArcSwap<Made>,
    /// Of the bytes that were read last.
    digest: Mutex<[u8; 32]>,
}

impl Tls {
    /// Reads the files.
    ///
    /// # Errors
    /// One cannot be read, holds something else, or the key is not that of the certificate.
    pub fn read(files: Files) -> Result<Self, String> {
        let bytes = Bytes::read(&files)?;
        let made = ArcSwap::from_pointee(bytes.make(&files)?);
        Ok(Self { made, digest: Mutex::new(bytes.digest()), files })
    }

    /// Reads the files again. Answers whether they had changed; connections that are open go on as they are.
    ///
    /// # Errors
    /// As [`read`](Self::read); the previous certificates stay valid.
    fn reload(&self) -> Result<bool, String> {
        let bytes = Bytes::read(&self.files)?;
        let digest = bytes.digest();
        let mut known = self.digest.lock().unwrap_or_else(PoisonError::into_inner);
        if *known == digest {
            return Ok(false);
        }
        self.made.store(Arc::new(bytes.make(&self.files)?));
        *known = digest;
        Ok(true)
    }

    /// The handshake with a client.
    ///
    /// # Errors
    /// The client speaks no TLS 1.3, or shows no certificate that is asked for.
    pub async fn accept<S>(&self, stream: S) -> std::io::Result<server::TlsStream<S>>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        TlsAcceptor::from(self.made.load().server.clone()).accept(stream).await
    }

    /// The handshake with another service.
    ///
    /// # Errors
    /// It shows neither the certificate of this service nor one of its name that is signed by the authority of the clients, or by a
    /// certificate behind that of this service.
    pub async fn connect(&self, host: &str, stream: TcpStream) -> std::io::Result<client::TlsStream<TcpStream>> {
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let name = ServerName::try_from(host.to_owned()).map_err(std::io::Error::other)?;
        TlsConnector::from(self.made.load().client.clone()).connect(name, stream).await
    }
}

/// The files as they are.
struct Bytes {
    certificate: Vec<u8>,
    key: Vec<u8>,
    client_ca: Option<Vec<u8>>,
}

impl Bytes {
    fn read(files: &Files) -> Result<Self, String> {
        let read = |path: &PathBuf| std::fs::read(path).map_err(|fault| format!("{}: {fault}", path.display()));
        let client_ca = files.client_ca.as_ref().map(read).transpose()?;
        Ok(Self { certificate: read(&files.certificate)?, key: read(&files.key)?, client_ca })
    }

    fn digest(&self) -> [u8; 32] {
        let all = [Some(&self.certificate), Some(&self.key), self.client_ca.as_ref()];
        let mut digest = Sha256::new();
        for bytes in all.into_iter().flatten() {
            digest.update((bytes.len() as u64).to_le_bytes());
            digest.update(bytes);
        }
        digest.finalize().into()
    }

    fn make(&self, files: &Files) -> Result<Made, String> {
        let of = |path: &PathBuf, why: String| format!("{}: {why}", path.display());
        let chain = certificates(&self.certificate).map_err(|why| of(&files.certificate, why))?;
        if certificate::is_of_version_1(&chain[0]) {
            return Err(of(&files.certificate, VERSION_1.to_owned()));
        }
        let key = private_key(&self.key).map_err(|why| of(&files.key, why))?;
        let (provider, path) = (Arc::new(ring::default_provider()), &files.certificate);
        let wrong = |fault: tokio_rustls::rustls::Error| match fault {
            tokio_rustls::rustls::Error::InconsistentKeys(_) => {
                of(&files.key, format!("it is not the key of the first certificate in {}", path.display()))
            }
            fault @ tokio_rustls::rustls::Error::InvalidCertificate(_) => of(path, fault.to_string()),
            fault => of(&files.key, fault.to_string()),
        };
        let mut services = RootCertStore::empty();
        for certificate in chain.iter().cloned() {
            services.add(certificate).map_err(|fault| of(path, fault.to_string()))?;
        }
        let server = ServerConfig::builder_with_provider(provider.clone()).with_protocol_versions(&[&TLS13]);
        let server = server.map_err(wrong)?;
        let server = if let (Some(bytes), Some(path)) = (&self.client_ca, &files.client_ca) {
            let mut clients = RootCertStore::empty();
            for certificate in certificates(bytes).map_err(|why| of(path, why))? {
                clients.add(certificate.clone()).map_err(|fault| of(path, fault.to_string()))?;
                services.add(certificate).map_err(|fault| of(path, fault.to_string()))?;
            }
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(clients), provider.clone()).build();
            server.with_client_cert_verifier(verifier.map_err(|fault| of(path, fault.to_string()))?)
        } else {
            server.with_no_client_auth()
        };
        let mut server = server.with_single_cert(chain.clone(), key.clone_key()).map_err(wrong)?;
        server.alpn_protocols = vec![b"http/1.1".to_vec()];
        let signed = WebPkiServerVerifier::builder_with_provider(Arc::new(services), provider.clone()).build();
        let signed = signed.map_err(|fault| of(path, fault.to_string()))?;
        let verifier = SameOrSigned { own: chain[0].clone(), signed };
        let client = client_config(provider, Arc::new(verifier)).map_err(wrong)?;
        let client = client.with_client_auth_cert(chain, key).map_err(wrong)?;
        let valid = certificate::valid(&self.certificate);
        Ok(Made { server: Arc::new(server), client: Arc::new(client), valid })
    }
}

type Trusting = tokio_rustls::rustls::ConfigBuilder<ClientConfig, tokio_rustls::rustls::client::WantsClientCert>;

fn client_config(
    provider: Arc<CryptoProvider>,
    verifier: Arc<SameOrSigned>,
) -> Result<Trusting, tokio_rustls::rustls::Error> {
    let client = ClientConfig::builder_with_provider(provider).with_protocol_versions(&[&TLS13])?;
    Ok(client.dangerous().with_custom_certificate_verifier(verifier))
}

fn private_key(pem: &[u8]) -> Result<PrivateKeyDer<'static>, String> {
    PrivateKeyDer::from_pem_slice(pem).map_err(|fault| match fault {
        Error::NoItemsFound => {
            "no private key (PEM), or one with a password: write it without (openssl pkey -in FILE)".to_owned()
        }
        fault => fault.to_string(),
    })
}

fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let all = all.map_err(|fault| fault.to_string())?;
    if all.is_empty() { Err("no certificate (PEM)".to_owned()) } else { Ok(all) }
}

const VERSION_1: &str = "the first certificate is of X.509 version 1: issue one of version 3, with the names of the service (openssl x509 -req with -extfile, \
     which has subjectAltName = DNS:NAME)";

/// Remedy for a certificate of another service that is not trusted.
pub const TRUST: &str = "give all services the same tls_certificate_file, or put the certificate of its issuer behind the one in it, and replace one that has \
     expired or is of another name";

/// Whether a fault of a connection is one of the certificate that the other side showed: no later try changes that.
#[must_use]
pub fn is_of_certificate(fault: &std::io::Error) -> bool {
    let inner = fault.get_ref().and_then(|inner| inner.downcast_ref());
    matches!(inner, Some(tokio_rustls::rustls::Error::InvalidCertificate(_)))
}

/// Reads the files again when they change, and at each `reload`. `ends` gets the end of the certificate at each look, in seconds since
/// 1970. Never returns.
pub async fn watch(tls: Arc<Tls>, mut reload: watch::Receiver<u64>, ends: impl Fn(i64)) {
    let (standing, mut ending) = (Standing::new(), ending::Ending::default());
    loop {
        if let Some(end_s) = ending.note(tls.made.load().valid.as_ref()) {
            ends(end_s);
        }
        tokio::select! {
            () = tokio::time::sleep(LOOK_EVERY) => {}
            Ok(()) = reload.changed() => {}
        }
        match tls.reload() {
            Err(why) if standing.begins("") => {
                tracing::error!(why, "the certificates could not be read again: the previous ones stay valid");
            }
            Err(why) => tracing::debug!(why, "the certificates could not be read again"),
            Ok(is_new) => {
                if is_new {
                    // A certificate that is read again is logged with its end, which may be the same.
                    ending = ending::Ending::default();
                }
                if standing.is_over("").is_some() || is_new {
                    tracing::info!("the certificates were read again");
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_that_asks_another_one_offers_tls_1_3_alone() {
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
        let files = Files { certificate: ca, key: file("key.pem", key.serialize_pem()), client_ca: None };
        let config = Tls::read(files).unwrap().made.load().client.clone();
        let name = "localhost".try_into().unwrap();
        let mut connection = tokio_rustls::rustls::ClientConnection::new(config, name).unwrap();
        let mut hello = Vec::new();
        let _ = connection.write_tls(&mut hello).unwrap();
        let at = hello.windows(3).position(|bytes| bytes == [0, 43, 0]).expect("it offers versions");
        assert_eq!(hello[at + 4..at + 7], [2, 3, 4], "one version, of two bytes");
    }

    #[test]
    fn a_certificate_of_version_1_is_refused_by_its_file_with_the_version_that_is_needed() {
        let folder = tempfile::tempdir().unwrap();
        let of = |name: &str| folder.path().join(name);
        std::fs::write(of("old.pem"), include_str!("tls/version_1.pem")).unwrap();
        std::fs::write(of("key.pem"), rcgen::KeyPair::generate().unwrap().serialize_pem()).unwrap();
        let files = Files { certificate: of("old.pem"), key: of("key.pem"), client_ca: None };
        let refused = Tls::read(files).err().unwrap();
        assert!(refused.starts_with(&format!("{}: the first certificate", of("old.pem").display())), "{refused}");
        assert!(refused.contains("version 3"), "{refused}");
    }
}
