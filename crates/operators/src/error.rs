//! Why an operator's work did not come to its end.

use crate::cluster_version::PayloadError;
use seedling_cluster::admission::AdmissionError;
use seedling_cluster::{ClusterError, chain, innermost};
use seedling_components::machine_config::RenderError;
use seedling_components::{BadTemplate, ClusterConfigError};
use seedling_pki::PkiError;
use seedling_types::release::MissingComponent;
use std::error::Error;
use std::sync::Arc;
use tokio::time::error::Elapsed;

pub type Result<T, E = OperatorError> = std::result::Result<T, E>;

/// The loop tries again after each of them. Where `waits` holds nothing failed, and a later try succeeds once another component has done
/// its part. Some carry their cause as a source, which only `in_full` includes.
#[derive(Debug, thiserror::Error)]
pub enum OperatorError {
    /// An object that somebody else makes: its kind, namespace and name.
    #[error("{0} is not there yet")]
    Missing(String),
    /// Something else that somebody else does first, as a sentence.
    #[error("{0}")]
    Waits(String),
    /// An object is there, but not all of it.
    #[error("{of} has no {part}")]
    Lacks { of: String, part: &'static str },
    #[error("{0} is not a key pair")]
    NoKeyPair(String),
    /// What an object has cannot be understood.
    #[error("{object}: {why}")]
    Unreadable { object: String, why: Box<dyn Error + Send + Sync> },
    /// A variable that the Deployment sets.
    #[error("{name} is not set")]
    Unset { name: String, source: std::env::VarError },
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    /// A request that `seedling_cluster` has no function for.
    #[error("{what}: {why}")]
    Api { what: String, why: Box<kube::Error> },
    /// The Secret with the nodes' tokens.
    #[error(transparent)]
    Admission(#[from] AdmissionError),
    /// Spending the token of the node that made this request.
    #[error("approving {csr}: {why}")]
    Token { csr: String, why: AdmissionError },
    /// Another key, or another approver, was quicker.
    #[error("approving {0}: its token was spent meanwhile")]
    Spent(String),
    #[error(transparent)]
    Config(#[from] ClusterConfigError),
    #[error(transparent)]
    Payload(#[from] PayloadError),
    #[error(transparent)]
    Component(#[from] MissingComponent),
    #[error(transparent)]
    Render(#[from] RenderError),
    /// One of the payload's.
    #[error("template: {0}")]
    Template(#[from] BadTemplate),
    #[error(transparent)]
    Pki(#[from] PkiError),
    /// What is to be written into an object cannot be made text.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    #[error(transparent)]
    Time(#[from] time::error::Format),
    /// No connection, or none that can be trusted.
    #[error("{}", innermost(.0))]
    Http(reqwest::Error),
    #[error("answered {0}")]
    Answered(reqwest::StatusCode),
    /// All were asked. The source is why the last one gave no answer.
    #[error("no etcd member answers")]
    NoMember(#[source] Box<OperatorError>),
    /// A member did not answer in time.
    #[error(transparent)]
    Silent(#[from] Elapsed),
    /// etcd's members, or their masters, are not as an action needs them. They are looked at again.
    #[error("{0}")]
    Members(String),
    /// A change of the members that failed.
    #[error("{action}")]
    Action { action: String, source: Box<OperatorError> },
    /// A reconcile was dropped at its time limit.
    #[error("not done within {seconds}s")]
    Late { seconds: u64, source: Elapsed },
    /// Another process may lead at any moment.
    #[error("{0}")]
    LostLease(String),
    /// A signal cannot be listened for.
    #[error(transparent)]
    Signal(#[from] std::io::Error),
    /// Another task has got the same one, to report it.
    #[error(transparent)]
    Told(#[from] Arc<OperatorError>),
}

impl OperatorError {
    pub(crate) fn unreadable(object: String, why: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Unreadable { object, why: why.into() }
    }

    /// For `map_err`: `what` was to be done.
    pub(crate) fn api(what: String) -> impl FnOnce(kube::Error) -> Self {
        |why| Self::Api { what, why: Box::new(why) }
    }

    /// Nothing failed: somebody else has to do something first.
    pub fn waits(&self) -> bool {
        match self {
            Self::Missing(_) | Self::Waits(_) => true,
            Self::Told(error) => error.waits(),
            _ => false,
        }
    }

    /// With all its causes.
    pub fn in_full(&self) -> String {
        chain(self)
    }
}

/// The value of an environment variable.
pub(crate) fn variable(name: &str) -> Result<String> {
    std::env::var(name).map_err(|source| OperatorError::Unset { name: name.into(), source })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_object_is_waited_for_and_causes_are_told_once() {
        let missing = || OperatorError::Missing("Secret ns/a".into());
        assert!(missing().waits() && OperatorError::from(Arc::new(missing())).waits());
        let nobody = OperatorError::NoMember(Box::new(missing()));
        assert!(!nobody.waits(), "that no member answers is a failure, whatever the reason");
        assert_eq!(nobody.in_full(), "no etcd member answers: Secret ns/a is not there yet");
        assert_eq!(OperatorError::from(Arc::new(nobody)).to_string(), "no etcd member answers");
        let spent = OperatorError::Token { csr: "csr-1".into(), why: AdmissionError::Changed };
        assert_eq!(spent.in_full(), spent.to_string());
    }
}
