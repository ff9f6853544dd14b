//! Small formats inside an install-config: DNS names and certificates.

use base64::{Engine, engine::general_purpose::STANDARD};
use x509_parser::prelude::{FromDer, X509Certificate, X509Version};

const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must \
     start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
     '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";

/// Everything that is wrong with a DNS name.
pub(super) fn subdomain_faults(name: &str) -> Vec<&'static str> {
    let ends = |label: &str| {
        let edge = |b: Option<&u8>| b.is_some_and(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
        edge(label.as_bytes().first()) && edge(label.as_bytes().last())
    };
    let inside = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    let well_formed = name.split('.').all(|label| ends(label) && label.bytes().all(inside));
    let mut faults = Vec::new();
    if name.len() > 253 {
        faults.push("must be no more than 253 characters");
    }
    if !well_formed {
        faults.push(SUBDOMAIN);
    }
    faults
}

pub(super) fn subdomain(name: &str) -> Result<(), String> {
    aggregate(subdomain_faults(name).into_iter().map(String::from).collect())
}

/// One error as it is, several in brackets.
pub(super) fn aggregate(faults: Vec<String>) -> Result<(), String> {
    match &faults[..] {
        [] => Ok(()),
        [one] => Err(one.clone()),
        all => Err(format!("[{}]", all.join(", "))),
    }
}

/// Certificates and nothing else. Answers with a warning for each that is no authority.
pub(super) fn trust_bundle(pem: &str) -> Result<Vec<String>, String> {
    let mut warnings = Vec::new();
    let mut rest = pem;
    loop {
        let Some((der, after)) = pem_block(rest) else { return Err("invalid block".into()) };
        let Ok((left, certificate)) = X509Certificate::from_der(&der) else {
            return Err("x509: malformed certificate".into());
        };
        if !left.is_empty() {
            return Err("x509: trailing data".into());
        }
        if certificate.version() == X509Version::V3 && !certificate.is_ca() {
            let serial = certificate.tbs_certificate.serial.to_str_radix(16).to_uppercase();
            warnings.push(format!(
                "Certificate {serial} from additionalTrustBundle is x509 v3 but not a certificate authority"
            ));
        }
        if after.is_empty() {
            return Ok(warnings);
        }
        rest = after;
    }
}

/// The next PEM block and what is behind its last line.
fn pem_block(text: &str) -> Option<(Vec<u8>, &str)> {
    const BEGIN: &str = "-----BEGIN ";
    let start = if text.starts_with(BEGIN) { 0 } else { text.find("\n-----BEGIN ")? + 1 };
    let text = &text[start + BEGIN.len()..];
    let (label, body) = text.split_once('\n')?;
    let label = label.trim_end().strip_suffix("-----")?;
    let end = format!("-----END {label}-----");
    let stop = if body.starts_with(&end) { 0 } else { body.find(&format!("\n{end}"))? + 1 };
    let base64: String = body[..stop].chars().filter(|c| !c.is_ascii_whitespace()).collect();
    let after = &body[stop + end.len()..];
    let after = after.trim_start_matches([' ', '\t', '\r']);
    Some((STANDARD.decode(base64).ok()?, after.strip_prefix('\n').unwrap_or(after)))
}
