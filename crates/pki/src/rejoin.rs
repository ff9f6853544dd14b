//! A node whose certificate has expired proves by its key that it is still the same node.

use crate::certificate::{LAG, first, params_of};
use crate::{CertKey, PkiError, Result};
use rcgen::{
    CertificateSigningRequestParams, DnType, ExtendedKeyUsagePurpose as Eku, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, PublicKeyData,
};
use time::OffsetDateTime;
use x509_parser::pem::Pem;

const USER: &str = "system:node:";
const GROUP: &str = "system:nodes";

/// The name of the node that made this request: with the key of a client certificate that one of these authorities signed for it,
/// whenever that ended.
pub fn proven_node(ended: &str, request: &str, authorities: &str) -> Result<String> {
    let refused = |why: &str| PkiError::Signer(why.into());
    let block = first(ended)?;
    let cert = block.parse_x509().map_err(|e| PkiError::Pem(e.to_string()))?;
    let request = CertificateSigningRequestParams::from_pem(request)?; // verifies its signature
    if request.public_key.der_bytes() != &*cert.public_key().subject_public_key.data {
        return Err(refused("the request was made with another key than the certificate's"));
    }
    let signed = Pem::iter_from_buffer(authorities.as_bytes()).flatten().any(|block| {
        let authority = block.parse_x509().ok();
        authority.is_some_and(|a| a.is_ca() && cert.verify_signature(Some(a.public_key())).is_ok())
    });
    if !signed {
        return Err(refused("no signer of nodes' certificates has signed it"));
    }
    let usage = cert.extended_key_usage().ok().flatten();
    if cert.is_ca() || !usage.is_some_and(|usage| usage.value.client_auth) {
        return Err(refused("it is no client's certificate"));
    }
    let subject = cert.subject();
    let groups: Vec<_> = subject.iter_organization().filter_map(|o| o.as_str().ok()).collect();
    let names: Vec<_> = subject.iter_common_name().filter_map(|n| n.as_str().ok()).collect();
    match (names.as_slice(), groups.as_slice()) {
        ([name], [GROUP]) => name.strip_prefix(USER).map(str::to_string),
        _ => None,
    }
    .ok_or_else(|| refused("it is no node's certificate"))
}

/// A client certificate for a node, and for the key of its request; of what else the request asks for nothing is heeded.
pub fn issue_to_node(
    ca: &CertKey,
    node: &str,
    request: &str,
    ends: OffsetDateTime,
    now: OffsetDateTime,
) -> Result<String> {
    let mut request = CertificateSigningRequestParams::from_pem(request)?;
    let parent = first(&ca.cert)?;
    let issuer = Issuer::from_ca_cert_der(&parent.contents.as_slice().into(), KeyPair::from_pem(&ca.key)?)?;
    let mut params = params_of(request.public_key.der_bytes(), now - LAG, ends);
    params.distinguished_name.push(DnType::OrganizationName, GROUP);
    params.distinguished_name.push(DnType::CommonName, format!("{USER}{node}"));
    params.is_ca = IsCa::ExplicitNoCa;
    params.use_authority_key_identifier_extension = true;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![Eku::ClientAuth];
    request.params = params;
    Ok(request.signed_by(&issuer)?.pem().replace("\r\n", "\n"))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use crate::{CaSpec, KeyAlgorithm, LeafSpec, Usage, issue, new_ca, node_request, not_after, validity};
    use time::Duration;

    const NOW: OffsetDateTime = OffsetDateTime::UNIX_EPOCH.saturating_add(Duration::days(20_000));
    const YEAR: Duration = Duration::days(365);

    fn ca() -> CertKey {
        let spec = CaSpec { cn: "kube-csr-signer", ou: None, validity: YEAR * 10 };
        new_ca(&spec, KeyAlgorithm::default(), NOW - YEAR * 2).unwrap()
    }

    /// Made two years ago, for one.
    fn pair(ca: &CertKey, cn: &str, organization: &str, usages: &[Usage]) -> CertKey {
        let spec = LeafSpec {
            cn,
            organizations: vec![organization.into()],
            usages,
            dns: vec![],
            ips: vec![],
            validity: YEAR,
            append_parent: false,
            key_usage: true,
        };
        issue(ca, &spec, KeyAlgorithm::default(), NOW - YEAR * 2).unwrap()
    }

    #[test]
    fn the_key_of_an_ended_certificate_is_proof() {
        let ca = ca();
        let old = pair(&ca, "system:node:master-0", "system:nodes", &[Usage::Client]);
        // Whatever it writes into the request: the certificate says who it is.
        let (request, _) = node_request("master-1", &old.key).unwrap();
        let node = proven_node(&old.cert, &request, &ca.cert).unwrap();
        assert_eq!(node, "master-0");
        let new = issue_to_node(&ca, &node, &request, NOW + YEAR, NOW).unwrap();
        assert_eq!(not_after(&new).unwrap(), NOW + YEAR);
        assert!(validity(&new).unwrap().0 < NOW);
        // The new one proves as much, with the same key.
        assert_eq!(proven_node(&new, &request, &ca.cert).unwrap(), "master-0");
    }

    #[test]
    fn nobody_else_is_believed() {
        let (ca, other_ca) = (ca(), ca());
        let node = pair(&ca, "system:node:master-0", "system:nodes", &[Usage::Client]);
        let other = pair(&ca, "system:node:master-1", "system:nodes", &[Usage::Client]);
        let forged = pair(&other_ca, "system:node:master-0", "system:nodes", &[Usage::Client]);
        let serving = pair(&ca, "system:node:master-0", "system:nodes", &[Usage::Server]);
        let admin = pair(&ca, "system:admin", "system:masters", &[Usage::Client]);
        let both = pair(&ca, "system:node:master-0", "system:masters", &[Usage::Client]);
        for (certificate, key, why) in [
            (&node.cert, &other.key, "another key"),
            (&forged.cert, &forged.key, "no signer"),
            (&serving.cert, &serving.key, "no client's"),
            (&admin.cert, &admin.key, "no node's"),
            (&both.cert, &both.key, "no node's"),
            (&ca.cert, &ca.key, "no client's"),
        ] {
            let (request, _) = node_request("master-0", key).unwrap();
            let refused = proven_node(certificate, &request, &ca.cert).unwrap_err().to_string();
            assert!(refused.contains(why), "{refused}");
        }
        let (request, _) = node_request("master-0", &node.key).unwrap();
        for broken in ["", "x", &request[..request.len() / 2], &node.cert] {
            assert!(proven_node(&node.cert, broken, &ca.cert).is_err());
        }
        assert!(proven_node(&node.cert, &request, "").is_err());
    }
}
