//! What became of a request, for people and programs (`seedling csr`).

use super::judge::Asked;
use k8s_openapi::api::certificates::v1::{CertificateSigningRequest, CertificateSigningRequestCondition};
use kube::ResourceExt;
use seedling_types::csr::{CLIENT_SIGNER, REFUSED, SERVING_SIGNER};
use serde::Serialize;

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Shown {
    pub name: String,
    pub created: Option<String>,
    pub requester: String,
    /// `client`, `client renewal`, `serving`, or another signer's name.
    pub kind: String,
    /// Whose certificate it is to be; what cannot be read has none.
    pub node: Option<String>,
    /// `approved`, `denied`, `failed`, `refused` (left pending, for the reason given), `pending`.
    pub verdict: &'static str,
    pub reason: String,
    /// Whether the certificate is there.
    pub issued: bool,
}

impl Shown {
    /// The node whose first certificate it is to be.
    pub(super) fn first_of(&self) -> Option<&str> {
        self.node.as_deref().filter(|_| self.kind == "client")
    }
    /// A kubelet's, and nobody has decided.
    pub fn is_open(&self) -> bool {
        self.node.is_some() && ["pending", "refused"].contains(&self.verdict)
    }
}

pub fn show(csr: &CertificateSigningRequest) -> Shown {
    let requester = csr.spec.username.clone().unwrap_or_default();
    let node = Asked::read(&csr.spec.request.0).ok().map(|asked| asked.common_name);
    let kind = match csr.spec.signer_name.as_str() {
        CLIENT_SIGNER if node.as_ref() == Some(&requester) => "client renewal",
        CLIENT_SIGNER => "client",
        SERVING_SIGNER => "serving",
        other => other,
    };
    let (verdict, reason) = verdict(csr);
    Shown {
        name: csr.name_any(),
        created: csr.creation_timestamp().map(|time| time.0.to_string()),
        kind: kind.into(),
        node: node.and_then(|name| name.strip_prefix("system:node:").map(String::from)),
        verdict,
        reason,
        issued: csr.status.as_ref().is_some_and(|s| s.certificate.is_some()),
        requester,
    }
}

/// A decision is final; what is only refused may still be approved.
fn verdict(csr: &CertificateSigningRequest) -> (&'static str, String) {
    let conditions = csr.status.as_ref().and_then(|s| s.conditions.as_deref()).unwrap_or_default();
    let said = |kind: &str| conditions.iter().find(|c| c.type_ == kind);
    let message =
        |c: &CertificateSigningRequestCondition| c.message.clone().or(c.reason.clone()).unwrap_or_default();
    for (kind, word) in [("Denied", "denied"), ("Failed", "failed"), ("Approved", "approved")] {
        if let Some(condition) = said(kind) {
            return (word, message(condition));
        }
    }
    match csr.annotations().get(REFUSED) {
        Some(why) => ("refused", why.clone()),
        None => ("pending", String::new()),
    }
}
