//! Who may have which certificate: pure, and only what the inventory vouches for.

use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use seedling_types::csr::{CLIENT_SIGNER, SERVING_SIGNER};
use seedling_types::names::NS_MCO;
use seedling_types::{Admission, ClusterDomain, Host, Inventory, Role, admission};
use std::collections::BTreeSet;
use std::net::IpAddr;
use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::extensions::{GeneralName, ParsedExtension};
use x509_parser::oid_registry::{
    OID_PKCS9_EXTENSION_REQUEST, OID_X509_COMMON_NAME, OID_X509_ORGANIZATION_NAME,
};
use x509_parser::prelude::FromDer;

/// A request of a kubelet has some hundred bytes.
pub(super) const LONGEST: usize = 16 * 1024;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    Approve,
    /// The node's first client certificate: first its token is spent for this key, then it is approved.
    ApproveFirst {
        node: String,
        key: String,
    },
    /// Left pending: an administrator may still decide, and what is missing may still come.
    Refuse(String),
    /// Decided already, or not about a node.
    Ignore,
}

/// What the judgement rests on.
pub struct Known<'a> {
    pub inventory: &'a Inventory,
    pub domain: &'a ClusterDomain,
    /// Names of the Nodes that exist.
    pub nodes: &'a BTreeSet<String>,
    /// Which tokens there are, and for which keys they were spent.
    pub admission: &'a Admission,
}

pub fn judge(csr: &CertificateSigningRequest, known: &Known) -> Verdict {
    let decided = csr.status.as_ref().is_some_and(|s| {
        s.certificate.is_some()
            || s.conditions.iter().flatten().any(|c| c.type_ == "Approved" || c.type_ == "Denied")
    });
    if decided {
        return Verdict::Ignore;
    }
    let checked = match csr.spec.signer_name.as_str() {
        CLIENT_SIGNER => client(csr, known),
        SERVING_SIGNER => serving(csr, known).map(|()| Verdict::Approve),
        _ => return Verdict::Ignore,
    };
    checked.unwrap_or_else(Verdict::Refuse)
}

/// A node's first client certificate, asked for with the bootstrap credentials; or its renewal, by the node itself.
fn client(csr: &CertificateSigningRequest, known: &Known) -> Result<Verdict, String> {
    let asked = Asked::read(&csr.spec.request.0)?;
    let host = node(&asked.common_name, known)?;
    usages(csr, "client auth")?;
    ensure(asked.dns.is_empty() && asked.ips.is_empty(), || {
        "a client certificate has no alternative names".into()
    })?;
    if csr.spec.username.as_deref() == Some(&asked.common_name) {
        return groups_include_nodes(csr).map(|()| Verdict::Approve);
    }
    bootstrapper(csr)?;
    first(&host.name, asked.key, known)
}

/// One key a node. A kubelet that was killed asks again with the key it kept; whoever has another one was reinstalled, which is
/// for the administrator to say, or is not the node.
fn first(node: &str, key: String, known: &Known) -> Result<Verdict, String> {
    if known.admission.open {
        ensure(!known.nodes.contains(node), || {
            format!("Node {node} exists already; delete it if the machine was installed anew")
        })?;
        return Ok(Verdict::Approve);
    }
    let anew = format!("if the machine was installed anew: seedling node reissue {node}");
    let issued =
        known.admission.nodes.get(node).ok_or_else(|| format!("{node} was given no token; {anew}"))?;
    match &issued.spent {
        None => Ok(Verdict::ApproveFirst { node: node.into(), key }),
        Some(spent) if spent.key == key => Ok(Verdict::Approve),
        Some(spent) => {
            Err(format!("{node} has had a certificate for another key since {}; {anew}", spent.at))
        }
    }
}

fn serving(csr: &CertificateSigningRequest, known: &Known) -> Result<(), String> {
    let asked = Asked::read(&csr.spec.request.0)?;
    let host = node(&asked.common_name, known)?;
    usages(csr, "server auth")?;
    let username = csr.spec.username.as_deref().unwrap_or_default();
    ensure(username == asked.common_name, || {
        format!("{username:?} asks for the certificate of {:?}", asked.common_name)
    })?;
    groups_include_nodes(csr)?;
    ensure(!asked.dns.is_empty() || !asked.ips.is_empty(), || {
        "a serving certificate needs alternative names".into()
    })?;
    let names = [host.name.clone(), known.domain.host(&host.name)];
    if let Some(foreign) = asked.dns.iter().find(|name| !names.contains(name)) {
        return Err(format!("{foreign:?} is not a name of {}", host.name));
    }
    match asked.ips.iter().find(|ip| !host.is_at(**ip)) {
        Some(foreign) => Err(format!("{foreign} is not the address of {}", host.name)),
        None => Ok(()),
    }
}

/// The machine a common name speaks of; the bootstrap machine is never a Node.
fn node<'a>(common_name: &str, known: &Known<'a>) -> Result<&'a Host, String> {
    let name = common_name
        .strip_prefix("system:node:")
        .ok_or_else(|| format!("{common_name:?} is not a node's name"))?;
    let host = known.inventory.by_name(name).filter(|h| h.role != Role::Bootstrap);
    host.ok_or_else(|| format!("no master or worker {name:?} is in the inventory"))
}

fn bootstrapper(csr: &CertificateSigningRequest) -> Result<(), String> {
    let wanted = format!("system:serviceaccount:{NS_MCO}:node-bootstrapper");
    let username = csr.spec.username.as_deref().unwrap_or_default();
    ensure(username == wanted, || format!("{username:?} may not ask for a node's first certificate"))?;
    let of_mco = format!("system:serviceaccounts:{NS_MCO}");
    let wanted = BTreeSet::from([of_mco.as_str(), "system:serviceaccounts", "system:authenticated"]);
    let groups = groups(csr);
    ensure(groups == wanted, || format!("the requester's groups are {groups:?}"))
}

fn groups_include_nodes(csr: &CertificateSigningRequest) -> Result<(), String> {
    let groups = groups(csr);
    let both = groups.contains("system:nodes") && groups.contains("system:authenticated");
    ensure(both, || format!("the requester's groups are {groups:?}"))
}

fn groups(csr: &CertificateSigningRequest) -> BTreeSet<&str> {
    csr.spec.groups.iter().flatten().map(String::as_str).collect()
}

/// Key encipherment comes with RSA keys only.
fn usages(csr: &CertificateSigningRequest, purpose: &str) -> Result<(), String> {
    let usages: BTreeSet<_> = csr.spec.usages.iter().flatten().map(String::as_str).collect();
    let least = BTreeSet::from(["digital signature", purpose]);
    let most = BTreeSet::from(["digital signature", "key encipherment", purpose]);
    ensure(usages == least || usages == most, || format!("the usages are {usages:?}"))
}

/// What the request itself says. Its signature is the signer's business.
pub(super) struct Asked {
    pub(super) common_name: String,
    /// sha256 of the public key.
    pub(super) key: String,
    dns: Vec<String>,
    ips: Vec<IpAddr>,
}

impl Asked {
    pub(super) fn read(pem: &[u8]) -> Result<Self, String> {
        let unreadable = |what: &str| format!("the request cannot be read: {what}");
        ensure(pem.len() <= LONGEST, || format!("the request has {} bytes", pem.len()))?;
        let (rest, pem) = x509_parser::pem::parse_x509_pem(pem).map_err(|e| unreadable(&e.to_string()))?;
        ensure(pem.label == "CERTIFICATE REQUEST" && rest.trim_ascii().is_empty(), || {
            unreadable("not one PEM request")
        })?;
        let (rest, request) =
            X509CertificationRequest::from_der(&pem.contents).map_err(|e| unreadable(&e.to_string()))?;
        ensure(rest.is_empty(), || unreadable("something follows it"))?;
        let subject = &request.certification_request_info.subject;
        let (mut names, mut organizations) = (vec![], vec![]);
        for attribute in subject.iter_attributes() {
            let value = attribute.as_str().map_err(|e| unreadable(&e.to_string()))?.to_string();
            match attribute.attr_type() {
                t if *t == OID_X509_COMMON_NAME => names.push(value),
                t if *t == OID_X509_ORGANIZATION_NAME => organizations.push(value),
                _ => return Err(format!("the subject is {subject}")),
            }
        }
        ensure(organizations == ["system:nodes"], || format!("the organizations are {organizations:?}"))?;
        let [common_name] =
            <[String; 1]>::try_from(names).map_err(|n| format!("the common names are {n:?}"))?;
        let key = admission::digest_of(request.certification_request_info.subject_pki.raw);
        let mut asked = Asked { common_name, key, dns: vec![], ips: vec![] };
        // Only the first such attribute is read below, and a signer might read another one.
        let attributes = request.certification_request_info.iter_attributes();
        let requests = attributes.filter(|a| a.oid == OID_PKCS9_EXTENSION_REQUEST);
        ensure(requests.count() <= 1, || "the request asks for extensions more than once".into())?;
        for extension in request.requested_extensions().into_iter().flatten() {
            let ParsedExtension::SubjectAlternativeName(names) = extension else {
                return Err("the request has an extension other than alternative names".into());
            };
            for name in &names.general_names {
                match name {
                    GeneralName::DNSName(name) => asked.dns.push(name.to_string()),
                    GeneralName::IPAddress(bytes) => asked.ips.push(address(bytes)?),
                    other => return Err(format!("{other} is neither a DNS name nor an address")),
                }
            }
        }
        Ok(asked)
    }
}

fn address(bytes: &[u8]) -> Result<IpAddr, String> {
    if let Ok(v4) = <[u8; 4]>::try_from(bytes) {
        return Ok(v4.into());
    }
    <[u8; 16]>::try_from(bytes).map(IpAddr::from).map_err(|_| "an address has the wrong length".into())
}

fn ensure(holds: bool, otherwise: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(otherwise()) }
}
