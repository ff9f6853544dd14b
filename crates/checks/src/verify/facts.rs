//! What was seen of a cluster, before anybody judges it. Can be written down and read again.

use seedling_api::operator::StaticPodStatus;
use seedling_api::{CertificateSigningRequest, ClusterOperator, ClusterVersion, Node};
use seedling_types::{Host, Role};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// An answer, or why there is none.
pub type Asked<T> = Result<T, String>;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Facts {
    pub api: ApiFacts,
    pub nodes: Vec<NodeFacts>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ApiFacts {
    pub readyz: Asked<String>,
    pub version: Asked<ClusterVersion>,
    pub operators: Asked<Vec<ClusterOperator>>,
    pub nodes: Asked<Vec<Node>>,
    pub csrs: Asked<Vec<CertificateSigningRequest>>,
    /// By the name of the static pod's container.
    pub static_pods: BTreeMap<String, Asked<StaticPodStatus>>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NodeFacts {
    pub host: Host,
    pub said: Asked<BTreeMap<String, Said>>,
    pub tried: Vec<Tried>,
}

/// What a command printed, and its exit code.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Said {
    pub text: String,
    pub code: i32,
}

/// A connection that was tried from a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tried {
    pub to: String,
    pub address: String,
    pub port: u16,
    /// `open`, or what the system said.
    pub seen: String,
}

impl Tried {
    pub fn is_open(&self) -> bool {
        self.seen == "open"
    }
}

impl NodeFacts {
    /// What the command of this name said, or why it is not known.
    pub fn said(&self, name: &str) -> Asked<&Said> {
        let said = self.said.as_ref().map_err(Clone::clone)?;
        said.get(name).ok_or_else(|| format!("{} was not asked", name))
    }

    /// The bootstrap machine has done its work: nothing is expected of it any more.
    pub fn has_left(&self) -> bool {
        self.host.role == Role::Bootstrap && self.said("bootkube").is_ok_and(|said| said.code == 0)
    }
}
