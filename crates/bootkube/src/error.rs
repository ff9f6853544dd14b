//! Why bootkube, or a service beside it, could not continue.

use crate::identity::Refused;
use crate::quorum::NotAccepted;
use seedling_cluster::{ClusterError, chain, inventory::InventoryError};
use seedling_components::ClusterConfigError;
use seedling_components::machine_config::RenderError;
use seedling_pki::PkiError;
use seedling_steps::Unmet;
use seedling_types::release::MissingComponent;
use std::fmt::Display;
use std::io;
use std::path::Path;
use thiserror::Error;

pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A stage says what went wrong with which file or object; the plan adds the stage and its check. The text of each has all its causes.
#[derive(Debug, Error)]
pub enum Error {
    #[error("stage {stage}: {error}")]
    Stage { stage: &'static str, error: Box<Error> },
    #[error("check failed ({check}): {seen}")]
    Check { check: &'static str, seen: Box<Error> },
    /// What was found instead of what has to be, as a sentence.
    #[error("{0}")]
    Seen(String),
    /// What could not be done with which file or program.
    #[error("{what}: {error}")]
    System { what: String, error: io::Error },
    /// What was read is not what it should be.
    #[error("{file}: {error}")]
    Format { file: String, error: Box<dyn std::error::Error + Send + Sync> },
    #[error("another bootkube works on this node: systemctl stop bootkube.service first")]
    Running,
    #[error("cannot use the terminal: {0}")]
    Terminal(io::Error),
    #[error("cannot use the journal: {0}")]
    Journal(io::Error),
    #[error("this profile needs the inventory: create with --hosts hosts.yaml: {0}")]
    NoInventory(InventoryError),
    #[error("the release image was not unpacked: {0}")]
    NotUnpacked(Box<Error>),
    /// An operation on the API or etcd, which names the object.
    #[error("{}", chain(.0))]
    Cluster(ClusterError),
    /// A request to a registry or server, which names the URL.
    #[error("{}", chain(.0))]
    Http(reqwest::Error),
    #[error("no answer from {url}; check the load balancer: {}", chain(.error))]
    NoAnswer { url: String, error: reqwest::Error },
    #[error(transparent)]
    Inventory(#[from] InventoryError),
    #[error(transparent)]
    Config(#[from] ClusterConfigError),
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    #[error(transparent)]
    Missing(#[from] MissingComponent),
    #[error(transparent)]
    Pki(#[from] PkiError),
    #[error(transparent)]
    Render(#[from] RenderError),
    /// A wait, which has the stage's name in its own text.
    #[error(transparent)]
    Unmet(#[from] Unmet),
    /// This node founds one cluster, and this is not the one: trying again is of no use.
    #[error(transparent)]
    Refused(#[from] Refused),
    #[error(transparent)]
    NotAccepted(#[from] NotAccepted),
}

impl Error {
    /// With the name of the stage that it happened in.
    pub(crate) fn in_stage(self, stage: &'static str) -> Self {
        match self {
            Self::Unmet(unmet) => Self::Unmet(Unmet { stage: Some(stage), ..unmet }),
            error => Self::Stage { stage, error: Box::new(error) },
        }
    }

    /// Whether the node refused to found another cluster.
    pub fn is_refusal(&self) -> bool {
        match self {
            Self::Stage { error, .. } | Self::Check { seen: error, .. } => error.is_refusal(),
            error => matches!(error, Self::Refused(_)),
        }
    }
}

// All files are named by [`cannot`]; what is left is the journal.
seedling_steps::convert_errors!(Error: io::Error => Journal, ClusterError => Cluster, reqwest::Error => Http);

/// For `map_err`: "cannot read /opt/openshift/release.json: …".
pub(crate) fn cannot<E: Into<io::Error>>(verb: &str, what: impl AsRef<Path>) -> impl FnOnce(E) -> Error {
    move |error| Error::System {
        what: format!("cannot {verb} {}", what.as_ref().display()),
        error: error.into(),
    }
}

/// For `map_err`: what was read from this file is not as it should be.
pub(crate) fn in_file<E>(file: impl Display) -> impl FnOnce(E) -> Error
where
    E: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    move |error| Error::Format { file: file.to_string(), error: error.into() }
}

/// Unless it holds, the function ends with what was seen.
macro_rules! ensure {
    ($holds:expr, $($seen:tt)+) => {
        if !$holds {
            return Err($crate::Error::Seen(format!($($seen)+)));
        }
    };
}
pub(crate) use ensure;

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    /// The exit code, on which systemd does not start bootkube again, follows from it.
    #[test]
    fn a_refusal_in_a_stage_is_one() {
        let refused = Error::from(Refused::DataGone { cluster: "a".into() });
        assert!(refused.is_refusal() && refused.in_stage("wait-for-etcd").is_refusal());
        assert!(!Error::Seen("no leader".into()).in_stage("wait-for-etcd").is_refusal());
    }

    #[test]
    fn a_stage_is_named_once_and_causes_are_in_the_text() {
        let unmet = Unmet {
            stage: None,
            condition: "etcd".into(),
            node: None,
            last_seen: "no leader".into(),
            waited: Duration::from_secs(7),
            hint: "look".into(),
        };
        let said = Error::from(unmet).in_stage("wait-for-etcd").to_string();
        assert_eq!(said, "stage wait-for-etcd: etcd: no progress for 7s; last seen: no leader; next: look");
        let unread = cannot("read", "tls/root-ca.crt")(io::Error::from(io::ErrorKind::NotFound));
        let said = unread.in_stage("mco-bootstrap").to_string();
        assert_eq!(said, "stage mco-bootstrap: cannot read tls/root-ca.crt: entity not found");
    }
}
