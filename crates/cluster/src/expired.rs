//! A server whose certificate has expired, but was valid until then.

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::aws_lc_rs;
use rustls::{CertificateError, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use std::sync::Arc;
use std::time::Duration;

#[derive(Debug)]
struct AcceptExpired(Arc<WebPkiServerVerifier>);

pub(crate) fn verifier(
    roots: Vec<Vec<u8>>,
) -> Result<Arc<dyn ServerCertVerifier>, Box<dyn std::error::Error + Send + Sync>> {
    let mut store = RootCertStore::empty();
    for root in roots {
        store.add(CertificateDer::from(root))?;
    }
    let provider = Arc::new(aws_lc_rs::default_provider());
    Ok(Arc::new(AcceptExpired(
        WebPkiServerVerifier::builder_with_provider(Arc::new(store), provider).build()?,
    )))
}

impl ServerCertVerifier for AcceptExpired {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let at = |time| self.0.verify_server_cert(certificate, others, name, ocsp, time);
        match at(now) {
            // The same questions, in its last second.
            Err(Error::InvalidCertificate(CertificateError::ExpiredContext { not_after, .. })) => {
                at(UnixTime::since_unix_epoch(Duration::from_secs(not_after.as_secs().saturating_sub(1))))
            }
            other => other,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.0.verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.0.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_verify_schemes()
    }
}
