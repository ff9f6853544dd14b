//! Whom health checks believe: with the cluster's authorities only its own servers, without them anybody.

use crate::HelperError;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use seedling_types::HelperConfig;
use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use tokio_rustls::TlsConnector;

#[derive(Clone)]
pub(super) struct Checks {
    pub(super) connector: TlsConnector,
    /// What the servers are called in their certificates; without authorities it does not matter.
    pub(super) name: Option<ServerName<'static>>,
}

pub(super) fn checks(config: &HelperConfig) -> Result<Checks, HelperError> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let builder =
        ClientConfig::builder_with_provider(provider.clone()).with_safe_default_protocol_versions()?;
    let (builder, name) = match &config.server_ca {
        Some(path) => {
            let name = config.cluster_domain.api_int();
            let name = ServerName::try_from(name.clone()).map_err(|_| HelperError::Domain(name))?;
            (builder.with_root_certificates(roots(path)?), Some(name))
        }
        None => {
            let anybody = Arc::new(AnyCertificate(provider));
            (builder.dangerous().with_custom_certificate_verifier(anybody), None)
        }
    };
    let config = builder.with_no_client_auth();
    Ok(Checks { connector: TlsConnector::from(Arc::new(config)), name })
}

fn roots(path: &Path) -> Result<RootCertStore, HelperError> {
    let fail = |message: String| HelperError::Config { path: path.into(), message };
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(path).map_err(|e| fail(e.to_string()))? {
        roots.add(certificate.map_err(|e| fail(e.to_string()))?)?;
    }
    if roots.is_empty() { Err(fail("there is no certificate in it".into())) } else { Ok(roots) }
}

/// It answered, with a certificate that is not the cluster's.
pub(super) fn is_stranger(error: &(dyn Error + Send + Sync + 'static)) -> bool {
    let inner = error.downcast_ref::<std::io::Error>().and_then(|e| e.get_ref());
    let error = inner.and_then(|e| e.downcast_ref::<rustls::Error>());
    match error {
        // A clock that is wrong here is no reason to take the API away.
        Some(rustls::Error::InvalidCertificate(
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. },
        )) => false,
        Some(rustls::Error::InvalidCertificate(_)) => true,
        _ => false,
    }
}

/// A health check learns nothing secret and sends nothing secret.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
