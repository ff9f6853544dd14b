//! Secret node-tokens inside the cluster: read by the machine-config servers, spent by the approver, renewed by the administrator.

use crate::follow::{Selection, follow};
use crate::{ClusterError, get};
use kube::Client;
use kube::api::{Api, Patch, PatchParams};
use seedling_api::{ByteString, ObjectMeta, Secret, now};
use seedling_types::admission::{Admission, Issued, Spent};
use seedling_types::names::{NODE_TOKENS_SECRET as NAME, NS_MCO};
use serde_json::json;
use std::path::Path;
use thiserror::Error;

#[derive(Debug, Error)]
pub enum AdmissionError {
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    #[error("Secret {NS_MCO}/{NAME}: {0}")]
    Unusable(String),
    #[error("writing Secret {NS_MCO}/{NAME}: {0}")]
    Write(#[from] kube::Error),
    /// Somebody else was quicker; the caller judges again.
    #[error("Secret {NS_MCO}/{NAME} changed meanwhile")]
    Changed,
}

pub fn selection() -> Selection<Secret> {
    Selection::one(Some(NS_MCO), NAME)
}

pub fn parse(secret: &Secret) -> Result<Admission, AdmissionError> {
    let unusable = |text: String| AdmissionError::Unusable(text);
    let decode = |(key, bytes): (&String, &ByteString)| {
        let text = String::from_utf8(bytes.0.clone());
        Ok((key.clone(), text.map_err(|_| unusable(format!("{key} is not text")))?))
    };
    let entries = secret.data.iter().flatten().map(decode);
    Admission::from_entries(entries.collect::<Result<_, AdmissionError>>()?).map_err(unusable)
}

pub async fn read(client: &Client) -> Result<Admission, AdmissionError> {
    parse(&secret(client).await?)
}

async fn secret(client: &Client) -> Result<Secret, AdmissionError> {
    let found = get::<Secret>(client, Some(NS_MCO), NAME).await?;
    found.ok_or_else(|| AdmissionError::Unusable("it is not there".into()))
}

/// Before the certificate is approved: of two keys that ask at once, one is written here, and only that one is approved.
pub async fn spend(client: &Client, node: &str, key: &str) -> Result<(), AdmissionError> {
    let live = secret(client).await?;
    let Some(mut issued) = parse(&live)?.nodes.remove(node) else { return Err(AdmissionError::Changed) };
    match &issued.spent {
        Some(spent) if spent.key == key => return Ok(()),
        Some(_) => return Err(AdmissionError::Changed),
        None => {}
    }
    issued.spent = Some(Spent { at: now(), key: key.into() });
    write(client, node, &issued, live.metadata.resource_version.as_deref()).await
}

/// A new token: the old one is worth nothing any more, and another key may ask for the node's certificate, once.
pub async fn reissue(client: &Client, node: &str, sha256: String) -> Result<(), AdmissionError> {
    write(client, node, &Issued { sha256, spent: None }, None).await
}

/// Neither its token nor its key is good for anything any more. One that is not there is as good as withdrawn.
pub async fn withdraw(client: &Client, node: &str) -> Result<(), AdmissionError> {
    let patch = json!({"data": {node: null}});
    let api: Api<Secret> = Api::namespaced(client.clone(), NS_MCO);
    Ok(api.patch(NAME, &PatchParams::default(), &Patch::Merge(&patch)).await.map(drop)?)
}

async fn write(
    client: &Client,
    node: &str,
    issued: &Issued,
    version: Option<&str>,
) -> Result<(), AdmissionError> {
    let text = serde_json::to_string(issued).map_err(|e| AdmissionError::Unusable(e.to_string()))?;
    let patch = Secret {
        metadata: ObjectMeta { resource_version: version.map(Into::into), ..ObjectMeta::default() },
        data: Some([(node.into(), ByteString(text.into_bytes()))].into()),
        ..Secret::default()
    };
    let api: Api<Secret> = Api::namespaced(client.clone(), NS_MCO);
    match api.patch(NAME, &PatchParams::default(), &Patch::Merge(&patch)).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.code == 409 => Err(AdmissionError::Changed),
        Err(e) => Err(e.into()),
    }
}

/// Keeps a file like the Secret, until dropped: the bootstrap machine-config server starts before there is an API, and has no
/// credentials for it.
pub async fn mirror(client: &Client, file: &Path) {
    let mut followed = follow(client, selection());
    loop {
        let Some(secret) = followed.next().await.one() else { continue };
        let written = parse(&secret).map_err(|e| e.to_string()).and_then(|admission| {
            let text = serde_json::to_string(&admission).map_err(|e| e.to_string())?;
            seedling_steps::write_atomic_if_changed(file, text, 0o600).map_err(|e| e.to_string())
        });
        if let Err(e) = written {
            tracing::warn!("{}: {e}", file.display());
        }
    }
}
