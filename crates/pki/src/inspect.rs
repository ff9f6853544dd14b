//! Looking at certificates: what is in a file, and whether a signer that somebody brought can sign.

use crate::certificate::first;
use crate::{CertKey, PkiError, Result};
use rcgen::{KeyPair, PublicKeyData};
use time::OffsetDateTime;
use x509_parser::pem::Pem;

/// What a person wants to know of a certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certificate {
    pub subject: String,
    pub issuer: String,
    pub authority: bool,
    pub not_before: OffsetDateTime,
    pub not_after: OffsetDateTime,
}

/// Every certificate of a PEM file, in order; other blocks are passed over.
pub fn certificates(pem: &str) -> Result<Vec<Certificate>> {
    let mut found = Vec::new();
    for block in Pem::iter_from_buffer(pem.as_bytes()) {
        let block = block.map_err(|e| PkiError::Pem(e.to_string()))?;
        if block.label == "CERTIFICATE" {
            let cert = block.parse_x509().map_err(|e| PkiError::Pem(e.to_string()))?;
            found.push(Certificate {
                subject: cert.subject().to_string(),
                issuer: cert.issuer().to_string(),
                authority: cert.is_ca(),
                not_before: cert.validity().not_before.to_datetime(),
                not_after: cert.validity().not_after.to_datetime(),
            });
        }
    }
    Ok(found)
}

/// A signer that somebody brought must be an authority, own its key and be valid now.
pub fn check_signer(pair: &CertKey, now: OffsetDateTime) -> Result<()> {
    let wrong = |why: &str| Err(PkiError::Signer(why.into()));
    let block = first(&pair.cert)?;
    let cert = block.parse_x509().map_err(|e| PkiError::Pem(e.to_string()))?;
    let key = KeyPair::from_pem(&pair.key)?;
    if !cert.is_ca() {
        return wrong("the certificate is no authority (CA:TRUE is missing)");
    }
    if cert.public_key().subject_public_key.data != key.der_bytes() {
        return wrong("the key does not belong to the certificate");
    }
    let period = cert.validity();
    if period.not_before.to_datetime() > now || period.not_after.to_datetime() <= now {
        return wrong(&format!(
            "the certificate is valid from {} to {}",
            period.not_before, period.not_after
        ));
    }
    Ok(())
}
