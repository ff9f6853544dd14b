//! Access to Kubernetes and etcd: connect, apply, report, lead.
//!
//! In: a kubeconfig or a service account; objects as their types, manifests as JSON values. Out: the cluster changed, or an error that
//! names the object.

pub mod admission;
mod cache;
mod conditions;
mod connect;
pub mod drain;
pub mod etcd;
mod expired;
pub mod follow;
pub mod inventory;
pub mod lease;
pub mod manifest;
mod objects;
pub mod operator_status;
mod overload;
pub mod patience;
pub mod recovery;
pub mod refused;
mod token;
pub mod wal;

pub use cache::Cache;
pub use conditions::CONDITIONS;
pub use connect::{
    Resent, connect, connect_here, connect_in_cluster_with, connect_without_retries, connect_yaml, named_in,
};
pub use objects::{
    Kind, apply, apply_status, create_if_missing, delete, delete_seen, delete_this, describe, get, list,
};
pub use overload::chance;
pub use token::token_of;

use thiserror::Error;

pub type Result<T, E = ClusterError> = std::result::Result<T, E>;

#[derive(Debug, Error)]
pub enum ClusterError {
    #[error("cannot use the kubeconfig {path}: {source}")]
    Kubeconfig { path: String, source: Box<dyn std::error::Error + Send + Sync> },
    #[error("{what}: {source}")]
    Api { what: String, source: Box<kube::Error> },
    #[error("{0}: not an object with apiVersion, kind and metadata.name")]
    Malformed(String),
    #[error("{what} is not as its kind says: {why}")]
    NotOfItsKind { what: String, why: String },
    #[error("the API serves no {kind} in {api_version} yet")]
    NoMapping { api_version: String, kind: String },
    #[error("watching {kind}: {error}")]
    NotHeard { kind: String, error: String },
    #[error("{what}: no answer within {seconds}s")]
    NoAnswer { what: String, seconds: u64 },
    #[error("this process no longer holds the lease {lease}: {why}")]
    NotLeading { lease: String, why: String },
    #[error("etcd at {endpoints}: {source}")]
    Etcd { endpoints: String, source: Box<etcd_client::Error> },
}

/// An error and its causes, in one line. Many an error tells its cause itself; nothing is said twice.
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut told = error.to_string();
    for cause in std::iter::successors(error.source(), |e| e.source()).map(ToString::to_string) {
        if !told.ends_with(&cause) {
            told += &format!(": {cause}");
        }
    }
    told
}

/// The last of an error's causes says it; what wraps it repeats the address.
pub fn innermost(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |e| e.source());
    causes.last().unwrap_or(error).to_string()
}

impl ClusterError {
    /// The API answered, and said that the object is not there.
    pub fn is_not_found(&self) -> bool {
        self.status_code() == Some(404)
    }
    pub fn is_forbidden(&self) -> bool {
        self.status_code() == Some(403)
    }
    pub fn is_conflict(&self) -> bool {
        self.status_code() == Some(409)
    }
    fn status_code(&self) -> Option<u16> {
        match self {
            ClusterError::Api { source, .. } => match source.as_ref() {
                kube::Error::Api(status) => Some(status.code),
                _ => None,
            },
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    enum Failed {
        #[error("cannot write {path}: {source}")]
        TellsItsCause { path: &'static str, source: std::io::Error },
        #[error("the helper ended")]
        LeavesIt(#[source] Box<Failed>),
    }

    #[test]
    fn a_cause_is_told_once() {
        let full = Failed::TellsItsCause { path: "/x", source: std::io::Error::other("no room") };
        assert_eq!(chain(&full), "cannot write /x: no room");
        assert_eq!(chain(&Failed::LeavesIt(Box::new(full))), "the helper ended: cannot write /x: no room");
    }
}
