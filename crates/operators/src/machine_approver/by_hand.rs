//! A person approves a request that the approver left pending (`seedling csr approve`). Nothing of the judgement counts then but one thing:
//! a token that this certificate is the fruit of is spent.

use super::judge::Asked;
use super::{approve_as, show};
use crate::Result;
use crate::admission::{self, AdmissionError};
use crate::error::OperatorError;
use kube::{Client, ResourceExt};
use seedling_api::CertificateSigningRequest;

const REASON: &str = "SeedlingApprove";
const MESSAGE: &str = "This CSR was approved by seedling csr approve.";

pub async fn approve_by_hand(client: &Client, csr: &CertificateSigningRequest) -> Result<()> {
    if let (Ok(asked), Some(node)) = (Asked::read(&csr.spec.request.0), show(csr).first_of()) {
        match admission::spend(client, node, &asked.key).await {
            // No token of that node is good any more, which is all that matters; or the cluster has no tokens.
            Ok(()) | Err(AdmissionError::Changed | AdmissionError::Unusable(_)) => {}
            Err(why) => return Err(OperatorError::Token { csr: csr.name_any(), why }),
        }
    }
    approve_as(client, csr, REASON, MESSAGE).await
}
