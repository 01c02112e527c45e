//! The services that this one trusts.

use std::sync::Arc;
use tokio_rustls::rustls::client::WebPkiServerVerifier;
use tokio_rustls::rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use tokio_rustls::rustls::{DigitallySignedStruct, Error, SignatureScheme};

/// Trusts a service that shows the certificate of this one, by any issuer, and those that an authority has signed: services on one
/// database mostly have the same files, and their private authority is seldom among them. The handshake proves that the other side has the key.
#[derive(Debug)]
pub struct SameOrSigned {
    /// The certificate of this service.
    pub own: CertificateDer<'static>,
    /// Those that were signed for the name that is asked for.
    pub signed: Arc<WebPkiServerVerifier>,
}

impl ServerCertVerifier for SameOrSigned {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if end_entity.as_ref() == self.own.as_ref() {
            return Ok(ServerCertVerified::assertion());
        }
        self.signed.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.signed.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.signed.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.signed.supported_verify_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Files, Tls, is_of_certificate};
    use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
    use std::path::Path;
    use tokio::net::{TcpListener, TcpStream};

    /// Connects from a service with `asks` to one with `answers`.
    async fn connected(asks: &Tls, answers: &Tls) -> std::io::Result<()> {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let accepted = async { answers.accept(listener.accept().await.unwrap().0).await };
        let (asked, _) = tokio::join!(asks.connect("localhost", stream), accepted);
        asked.map(|_| ())
    }

    fn files(folder: &Path, name: &str, chain: &[&str], key: &KeyPair) -> Tls {
        let path = |kind: &str, text: &str| {
            let path = folder.join(format!("{name}.{kind}"));
            std::fs::write(&path, text).unwrap();
            path
        };
        let (certificate, key) = (path("crt", &chain.concat()), path("key", &key.serialize_pem()));
        Tls::read(Files { certificate, key, client_ca: None }).unwrap()
    }

    #[tokio::test]
    async fn services_trust_their_own_certificate_and_those_of_an_issuer_that_stands_behind_it() {
        let folder = tempfile::tempdir().unwrap();
        let keys = [(); 3].map(|()| KeyPair::generate().unwrap());
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority = params.self_signed(&keys[0]).unwrap();
        let issuer = Issuer::new(params, &keys[0]);
        let of = |name: &str| CertificateParams::new(vec![name.to_owned()]).unwrap();
        let (one, two) = (of("localhost").signed_by(&keys[1], &issuer), of("localhost").signed_by(&keys[2], &issuer));
        let [one, two, authority] = [one.unwrap(), two.unwrap(), authority].map(|made| made.pem());
        let alone = files(folder.path(), "alone", &[&one], &keys[1]);
        let other = files(folder.path(), "other", &[&two], &keys[2]);
        let beside = files(folder.path(), "beside", &[&two, &authority], &keys[2]);
        connected(&alone, &alone).await.unwrap();
        assert!(is_of_certificate(&connected(&alone, &other).await.unwrap_err()));
        connected(&beside, &alone).await.unwrap();

        // As openssl makes it where nothing is asked for: an authority of its own.
        let mut params = of("elsewhere");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let own = files(folder.path(), "own", &[&params.self_signed(&keys[1]).unwrap().pem()], &keys[1]);
        connected(&own, &own).await.unwrap();
        assert!(is_of_certificate(&connected(&own, &alone).await.unwrap_err()));
    }
}
