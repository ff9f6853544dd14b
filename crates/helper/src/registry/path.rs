//! A request's path → what is asked for. Digests are checked before they become file names.

use axum::http::StatusCode;
use std::fmt;
use std::path::{Path, PathBuf};
use thiserror::Error;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Digest {
    algorithm: &'static str,
    hex: String,
}

#[derive(Debug, PartialEq, Eq)]
pub enum Target {
    /// `/v2/`: "do you speak this API?"
    Base,
    Manifest(Digest),
    Tag {
        name: String,
        tag: String,
    },
    Blob(Digest),
}

#[derive(Debug, Error, PartialEq, Eq)]
pub enum Problem {
    #[error("invalid repository name")]
    NameInvalid,
    #[error("provided digest is not sha256 or sha512 in lower-case hex")]
    DigestInvalid,
    #[error("manifest unknown")]
    ManifestUnknown,
    #[error("blob unknown to registry")]
    BlobUnknown,
    #[error("this registry only serves manifests and blobs")]
    Unsupported,
}

impl Problem {
    pub fn code(&self) -> &'static str {
        match self {
            Problem::NameInvalid => "NAME_INVALID",
            Problem::DigestInvalid => "DIGEST_INVALID",
            Problem::ManifestUnknown => "MANIFEST_UNKNOWN",
            Problem::BlobUnknown => "BLOB_UNKNOWN",
            Problem::Unsupported => "UNSUPPORTED",
        }
    }

    pub fn status(&self) -> StatusCode {
        match self {
            Problem::NameInvalid | Problem::DigestInvalid => StatusCode::BAD_REQUEST,
            Problem::ManifestUnknown | Problem::BlobUnknown | Problem::Unsupported => StatusCode::NOT_FOUND,
        }
    }
}

pub fn parse(path: &str) -> Result<Target, Problem> {
    let rest = match path {
        "/v2" | "/v2/" => return Ok(Target::Base),
        _ => path.strip_prefix("/v2/").ok_or(Problem::Unsupported)?,
    };
    // A name has slashes of its own, so the path is read from its end.
    let (rest, reference) = rest.rsplit_once('/').ok_or(Problem::Unsupported)?;
    let (name, kind) = rest.rsplit_once('/').ok_or(Problem::NameInvalid)?;
    if !is_name(name) {
        return Err(Problem::NameInvalid);
    }
    match kind {
        "blobs" => Digest::parse(reference).map(Target::Blob).ok_or(Problem::DigestInvalid),
        "manifests" if reference.contains(':') => {
            Digest::parse(reference).map(Target::Manifest).ok_or(Problem::DigestInvalid)
        }
        "manifests" => Ok(Target::Tag { name: name.into(), tag: reference.into() }),
        _ => Err(Problem::Unsupported),
    }
}

fn is_name(name: &str) -> bool {
    name.split('/').all(|part| {
        let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
        part.bytes().all(|b| plain(b) || b"._-".contains(&b)) && part.bytes().next().is_some_and(plain)
    })
}

impl Digest {
    pub fn parse(text: &str) -> Option<Self> {
        let (algorithm, hex) = text.split_once(':')?;
        let (algorithm, length) =
            [("sha256", 64), ("sha512", 128)].into_iter().find(|(a, _)| *a == algorithm)?;
        let is_hex = hex.len() == length && hex.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        is_hex.then(|| Self { algorithm, hex: hex.into() })
    }

    pub fn file(&self, layout: &Path) -> PathBuf {
        layout.join("blobs").join(self.algorithm).join(&self.hex)
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.algorithm, self.hex)
    }
}
