//! Why something that runs on a node could not continue.

use seedling_cluster::{ClusterError, chain, inventory::InventoryError, wal::BadLog};
use seedling_components::ClusterConfigError;
use seedling_operators::OperatorError;
use seedling_pki::PkiError;
use seedling_steps::{Unmet, if_there, write_atomic};
use seedling_types::paths;
use seedling_types::template::TemplateError;
use std::env::VarError;
use std::fmt::Display;
use std::io;
use std::path::Path;
use thiserror::Error;

pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What an error of a library below is kept as, where several of them mean the same.
type Cause = Box<dyn std::error::Error + Send + Sync>;

/// Each names the file, program or object that it is about. The text of each has all its causes.
#[derive(Debug, Error)]
pub enum Error {
    /// What was found instead of what has to be, as a sentence.
    #[error("{0}")]
    Seen(String),
    /// What could not be done with which file, port or program.
    #[error("{what}: {error}")]
    System { what: String, error: io::Error },
    /// What was read is not what it should be.
    #[error("{file}: {error}")]
    Format { file: String, error: Cause },
    #[error("cannot use the journal: {0}")]
    Journal(io::Error),
    /// A program ended without success.
    #[error("{program}: {complaint}")]
    Program { program: String, complaint: String },
    #[error("{name} is not set: {error}")]
    NotSet { name: &'static str, error: VarError },
    /// The disk has less left than is needed, and which.
    #[error("{0}")]
    NoRoom(io::Error),
    #[error("{kind} {namespace}/{name} is missing")]
    NoObject { kind: String, namespace: String, name: String },
    #[error("the request was {how}: {message}")]
    RequestRefused { how: String, message: String },
    #[error(
        "this node has no certificate that is valid now, and nothing to ask for one with. Where the cluster is administered: \
         `seedling node reissue {node} --bootstrap-kubeconfig FILE`; then copy FILE to {} on this node",
        paths::KUBELET_BOOTSTRAP_KUBECONFIG
    )]
    NoCertificate { node: String },
    #[error("this node is not a master of an installed cluster: {0}")]
    NoMaster(Box<Error>),
    /// Why a restore of etcd would do harm, or is not needed.
    #[error("{0}")]
    NoRestore(String),
    /// Nobody could be asked to confirm a restore.
    #[error("{}", chain(&**.0))]
    NotAsked(Cause),
    /// An operation on the API or etcd, which names the object.
    #[error("{}", chain(.0))]
    Cluster(ClusterError),
    /// A request to a server, which names the URL.
    #[error("{}", chain(.0))]
    Http(reqwest::Error),
    #[error(transparent)]
    Config(#[from] ClusterConfigError),
    #[error(transparent)]
    Inventory(#[from] InventoryError),
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    #[error(transparent)]
    Log(#[from] BadLog),
    /// What the operators would have done.
    #[error(transparent)]
    Operators(#[from] OperatorError),
    #[error(transparent)]
    Pki(#[from] PkiError),
    #[error(transparent)]
    Template(#[from] TemplateError),
    #[error(transparent)]
    Unmet(#[from] Unmet),
}

// All files are named by [`cannot`]; what is left is the journal.
seedling_steps::convert_errors!(Error: io::Error => Journal, ClusterError => Cluster, reqwest::Error => Http);

/// For `map_err`: "cannot read /etc/kubernetes/kubeconfig: …".
pub(crate) fn cannot<E: Into<io::Error>>(verb: &str, what: impl AsRef<Path>) -> impl FnOnce(E) -> Error {
    move |error| Error::System {
        what: format!("cannot {verb} {}", what.as_ref().display()),
        error: error.into(),
    }
}

/// For `map_err`: what was read from this file is not as it should be.
pub(crate) fn in_file<E: Into<Cause>>(file: impl Display) -> impl FnOnce(E) -> Error {
    move |error| Error::Format { file: file.to_string(), error: error.into() }
}

/// For root only, whole or not at all.
pub(crate) fn write(path: &Path, contents: impl AsRef<[u8]>) -> Result<()> {
    write_atomic(path, contents, 0o600).map_err(cannot("write", path))
}

pub(crate) fn read(path: &Path) -> Result<String> {
    std::fs::read_to_string(path).map_err(cannot("read", path))
}

/// See [`if_there`].
pub(crate) fn read_if_there(path: &Path) -> Result<Option<String>> {
    if_there(std::fs::read_to_string(path)).map_err(cannot("read", path))
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
