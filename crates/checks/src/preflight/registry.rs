//! A trial pull: manifest and config of an image by digest, and whether its layers are there.

use super::facts::Pull;
use crate::verify::Asked;
use reqwest::{Client, Response};
use seedling_cluster::innermost;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::time::Duration;

const WITHIN: Duration = Duration::from_secs(20);
const KINDS: &str = "application/vnd.oci.image.manifest.v1+json, application/vnd.oci.image.index.v1+json, \
                     application/vnd.docker.distribution.manifest.v2+json";

/// `image`: `HOST/NAME@sha256:…`; `registry`: where HOST really is, as `http://…` without a path.
pub async fn trial_pull(image: &str, registry: &str) -> Pull {
    let (name, digest) = parts(image).unwrap_or_default();
    let from = format!("{registry}/v2/{name}/manifests/{digest}");
    let pulled = match digest.is_empty() {
        true => Err(format!("{image} has no digest")),
        false => pull(registry, name, digest).await,
    };
    Pull { image: image.into(), from, pulled }
}

fn parts(image: &str) -> Option<(&str, &str)> {
    let (path, digest) = image.split_once('@')?;
    Some((path.split_once('/')?.1, digest))
}

async fn pull(registry: &str, name: &str, digest: &str) -> Asked<(u64, usize)> {
    let client = Client::builder().timeout(WITHIN).no_proxy().build().map_err(|e| innermost(&e))?;
    let at = |kind: &str, digest: &str| format!("{registry}/v2/{name}/{kind}/{digest}");
    let manifest = fetch(&client, &at("manifests", digest), digest).await?;
    let mut bytes = manifest.len() as u64;
    let mut read: Value = serde_json::from_slice(&manifest).map_err(|e| format!("the manifest: {e}"))?;
    // A list of architectures: the first will do.
    if let Some(first) = read["manifests"][0]["digest"].as_str() {
        let next = fetch(&client, &at("manifests", first), first).await?;
        bytes += next.len() as u64;
        read = serde_json::from_slice(&next).map_err(|e| format!("the manifest: {e}"))?;
    }
    let config = read["config"]["digest"].as_str().ok_or("the manifest names no config")?;
    bytes += fetch(&client, &at("blobs", config), config).await?.len() as u64;
    let layers = read["layers"].as_array().map(Vec::as_slice).unwrap_or_default();
    for layer in layers {
        let url = at("blobs", layer["digest"].as_str().unwrap_or_default());
        good(client.head(&url).send().await, &url)?;
    }
    Ok((bytes, layers.len()))
}

async fn fetch(client: &Client, url: &str, digest: &str) -> Asked<Vec<u8>> {
    let answer = good(client.get(url).header("accept", KINDS).send().await, url)?;
    let body = answer.bytes().await.map_err(|e| format!("{url}: {}", innermost(&e)))?;
    let sum: String = Sha256::digest(&body).iter().map(|byte| format!("{byte:02x}")).collect();
    match digest.strip_prefix("sha256:") == Some(&sum) {
        true => Ok(body.to_vec()),
        false => Err(format!("{url}: the answer's digest is sha256:{sum}")),
    }
}

fn good(answer: reqwest::Result<Response>, url: &str) -> Asked<Response> {
    let answer = answer.map_err(|e| format!("{url}: {}", innermost(&e)))?;
    match answer.status().as_u16() {
        200 => Ok(answer),
        401 | 403 => Err(format!("{url}: {}: the pull secret is missing or wrong", answer.status())),
        _ => Err(format!("{url}: {}", answer.status())),
    }
}
