//! Certificate authorities, leaves and bundles.

use crate::key::{KeyAlgorithm, enciphers, unix};
use crate::policy::Life;
use crate::{PkiError, Result};
use aws_lc_rs::digest;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose as Eku, IsCa,
    Issuer, KeyIdMethod, KeyPair, KeyUsagePurpose, PublicKeyData, SanType, SerialNumber,
};
use serde::{Deserialize, Serialize};
use std::{fmt, net::IpAddr};
use time::{Duration, OffsetDateTime};
use x509_parser::pem::Pem;

/// A certificate (PEM, followed by its signer's if the specification asks for it) and its key (PKCS#8 PEM).
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CertKey {
    pub cert: String,
    pub key: String,
}

impl fmt::Debug for CertKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CertKey").field("cert", &self.cert).field("key", &"(redacted)").finish()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Usage {
    Server,
    Client,
}

#[derive(Clone, Debug)]
pub struct CaSpec<'a> {
    pub cn: &'a str,
    pub ou: Option<&'a str>,
    pub validity: Duration,
}

#[derive(Clone, Debug)]
pub struct LeafSpec<'a> {
    pub cn: &'a str,
    /// Kubernetes reads these as the user's groups; at most two.
    pub organizations: Vec<String>,
    pub usages: &'a [Usage],
    pub dns: Vec<String>,
    pub ips: Vec<IpAddr>,
    pub validity: Duration,
    /// Serve the signer's certificate along with the leaf.
    pub append_parent: bool,
    /// The machine-config server's certificate carries no key-usage extension upstream.
    pub key_usage: bool,
}

/// A self-signed authority.
pub fn new_ca(spec: &CaSpec, alg: KeyAlgorithm, now: OffsetDateTime) -> Result<CertKey> {
    sign_ca(spec, &alg.generate()?, now)
}

/// The same authority, with its old key, for another term.
pub fn renew_ca(spec: &CaSpec, key_pem: &str, now: OffsetDateTime) -> Result<CertKey> {
    sign_ca(spec, &KeyPair::from_pem(key_pem)?, now)
}

fn sign_ca(spec: &CaSpec, key: &KeyPair, now: OffsetDateTime) -> Result<CertKey> {
    let mut params = params(key, now, now + spec.validity);
    if let Some(ou) = spec.ou {
        params.distinguished_name.push(DnType::OrganizationalUnitName, ou);
    }
    params.distinguished_name.push(DnType::CommonName, spec.cn);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = key_usages(key);
    params.key_usages.push(KeyUsagePurpose::KeyCertSign);
    let cert = params.self_signed(key)?;
    Ok(CertKey { cert: unix(&cert.pem()), key: unix(&key.serialize_pem()) })
}

/// Two clocks of a cluster may differ by this much: one that is an hour ahead signs, one that is an hour behind looks at it.
pub const LAG: Duration = Duration::hours(2);

/// An authority that is made while others are at work: valid from [`LAG`] ago, and as long from now on as it is to live.
pub fn new_backdated_ca(spec: &CaSpec, alg: KeyAlgorithm, now: OffsetDateTime) -> Result<CertKey> {
    new_ca(&CaSpec { validity: spec.validity + LAG, ..spec.clone() }, alg, now - LAG)
}

/// When it was made, and when it ends. A signer that is valid from before it was made says in its name when that was (`name@seconds`).
pub fn life(cert_pem: &str) -> Result<Life> {
    let block = first(cert_pem)?;
    let cert = block.parse_x509().map_err(|e| PkiError::Pem(e.to_string()))?;
    let name = cert.subject().iter_common_name().next().and_then(|name| name.as_str().ok());
    let said = name.and_then(|name| name.rsplit_once('@')?.1.parse().ok());
    let said = said.and_then(|seconds| OffsetDateTime::from_unix_timestamp(seconds).ok());
    let period = cert.validity();
    let issued = said.filter(|_| cert.is_ca()).unwrap_or(period.not_before.to_datetime());
    Ok(Life { issued, ends: period.not_after.to_datetime() })
}

/// A leaf signed by `ca`. It is valid from [`LAG`] ago, but not before its authority: a clock that lags behind accepts both or none.
pub fn issue(ca: &CertKey, spec: &LeafSpec, alg: KeyAlgorithm, now: OffsetDateTime) -> Result<CertKey> {
    let parent = first(&ca.cert)?;
    let issuer = Issuer::from_ca_cert_der(&parent.contents.as_slice().into(), KeyPair::from_pem(&ca.key)?)?;
    let key = alg.generate()?;
    let first_day = period(&parent)?.not_before.to_datetime();
    let mut params = params(&key, first_day.max(now - LAG), now + spec.validity);
    organizations(&mut params.distinguished_name, spec)?;
    params.distinguished_name.push(DnType::CommonName, spec.cn);
    params.is_ca = IsCa::ExplicitNoCa;
    params.use_authority_key_identifier_extension = true;
    if spec.key_usage {
        params.key_usages = key_usages(&key);
    }
    for usage in spec.usages {
        params.extended_key_usages.push(match usage {
            Usage::Server => Eku::ServerAuth,
            Usage::Client => Eku::ClientAuth,
        });
    }
    for name in &spec.dns {
        params.subject_alt_names.push(SanType::DnsName(name.as_str().try_into()?));
    }
    params.subject_alt_names.extend(spec.ips.iter().copied().map(SanType::IpAddress));
    let mut cert = unix(&params.signed_by(&key, &issuer)?.pem());
    if spec.append_parent {
        cert.push('\n');
        cert.push_str(&bundle(&[&ca.cert]));
    }
    Ok(CertKey { cert, key: unix(&key.serialize_pem()) })
}

/// A request for a node's client certificate (PEM), and the key's fingerprint as a name.
pub fn node_request(node: &str, key_pem: &str) -> Result<(String, String)> {
    let key = KeyPair::from_pem(key_pem)?;
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::OrganizationName, "system:nodes");
    params.distinguished_name.push(DnType::CommonName, format!("system:node:{node}"));
    let fingerprint = digest::digest(&digest::SHA256, key.public_key_raw());
    let name = fingerprint.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    Ok((unix(&params.serialize_request(&key)?.pem()?), name))
}

/// When the first certificate of a PEM file expires.
pub fn not_after(cert_pem: &str) -> Result<OffsetDateTime> {
    Ok(validity(cert_pem)?.1)
}

/// From when until when the first certificate of a PEM file is valid.
pub fn validity(cert_pem: &str) -> Result<(OffsetDateTime, OffsetDateTime)> {
    let period = period(&first(cert_pem)?)?;
    Ok((period.not_before.to_datetime(), period.not_after.to_datetime()))
}

/// The first certificate of each input, joined. Upstream's nesting keeps only the first one, too.
pub fn bundle(certs: &[&str]) -> String {
    const END: &str = "-----END CERTIFICATE-----\n";
    let first_of =
        |pem: &&str| pem.find(END).map_or_else(|| pem.to_string(), |at| pem[..at + END.len()].to_string());
    certs.iter().map(first_of).collect()
}

/// Each certificate of a bundle, as it is written there.
pub fn blocks(bundle: &str) -> impl Iterator<Item = &str> {
    bundle
        .split_inclusive("-----END CERTIFICATE-----")
        .map(str::trim)
        .filter(|block| block.starts_with("-----BEGIN"))
}

/// Whether a bundle has the first certificate of `cert`.
pub fn holds(bundle: &str, cert: &str) -> bool {
    blocks(cert).next().is_some_and(|wanted| blocks(bundle).any(|block| block == wanted))
}

/// The bundle with these signers in it. Expired ones are dropped when one is added: their leaving alone is no reason to hand out
/// a new bundle. Those that have not expired stay.
pub fn with_signers(old: &str, wanted: &[&str], now: OffsetDateTime) -> String {
    if wanted.iter().all(|cert| holds(old, cert)) {
        return old.into();
    }
    let ended = |block: &str| not_after(block).is_ok_and(|end| end <= now);
    let mut kept: Vec<_> = blocks(old).filter(|block| !ended(block)).collect();
    for block in wanted.iter().filter_map(|cert| blocks(cert).next()) {
        if !kept.contains(&block) {
            kept.push(block);
        }
    }
    kept.iter().map(|block| format!("{block}\n")).collect()
}

fn params(key: &KeyPair, not_before: OffsetDateTime, not_after: OffsetDateTime) -> CertificateParams {
    params_of(key.der_bytes(), not_before, not_after)
}

/// For a public key as it is written in a certificate.
pub(crate) fn params_of(
    key: &[u8],
    not_before: OffsetDateTime,
    not_after: OffsetDateTime,
) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.not_before = not_before;
    params.not_after = not_after;
    params.serial_number = Some(SerialNumber::from(rand::random::<u64>() >> 1));
    // SHA-1 of the public key, as upstream and most others: two tools name the same key alike.
    params.key_identifier_method = KeyIdMethod::PreSpecified(sha1(key));
    params
}

fn sha1(data: &[u8]) -> Vec<u8> {
    digest::digest(&digest::SHA1_FOR_LEGACY_USE_ONLY, data).as_ref().to_vec()
}

fn key_usages(key: &KeyPair) -> Vec<KeyUsagePurpose> {
    let encipher = enciphers(key).then_some(KeyUsagePurpose::KeyEncipherment);
    encipher.into_iter().chain([KeyUsagePurpose::DigitalSignature]).collect()
}

/// rcgen keeps a name's attributes in a map by type. The type "organization" can be written in two ways, known and custom,
/// with the same object identifier: that gives room for the two organizations that a kubelet's bootstrap identity needs.
fn organizations(name: &mut DistinguishedName, spec: &LeafSpec) -> Result<()> {
    const ORGANIZATION: [u64; 4] = [2, 5, 4, 10];
    let types = [DnType::CustomDnType(ORGANIZATION.to_vec()), DnType::OrganizationName];
    if spec.organizations.len() > types.len() {
        return Err(PkiError::Organizations(spec.cn.into(), spec.organizations.len()));
    }
    for (kind, organization) in types.into_iter().zip(&spec.organizations) {
        name.push(kind, organization.as_str());
    }
    Ok(())
}

pub(crate) fn first(pem: &str) -> Result<Pem> {
    match Pem::iter_from_buffer(pem.as_bytes()).next() {
        Some(Ok(pem)) if pem.label == "CERTIFICATE" => Ok(pem),
        Some(Ok(pem)) => Err(PkiError::Pem(format!("found {}", pem.label))),
        Some(Err(e)) => Err(PkiError::Pem(e.to_string())),
        None => Err(PkiError::Pem("empty".into())),
    }
}

fn period(pem: &Pem) -> Result<x509_parser::certificate::Validity> {
    Ok(pem.parse_x509().map_err(|e| PkiError::Pem(e.to_string()))?.validity().clone())
}
