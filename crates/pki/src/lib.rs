//! Keys and certificates of a cluster.
//!
//! In: a specification (name, organisations, usages, names, validity), a signer and the time. Out: PEM. No file, no clock
//! and no other randomness than keys and serial numbers; [`trust`] lists every key pair of a cluster.

mod certificate;
mod inspect;
mod key;
mod policy;
mod rejoin;
mod rsa;
pub mod trust;

pub use certificate::{
    CaSpec, CertKey, LAG, LeafSpec, Usage, blocks, bundle, holds, issue, life, new_backdated_ca, new_ca,
    node_request, not_after, renew_ca, validity, with_signers,
};
pub use inspect::{Certificate, certificates, check_signer};
pub use key::{KeyAlgorithm, KeyPair, keypair_of, new_key, random_key, rsa_keypair, ssh_keypair};
pub use policy::{Life, Policy, RENEW};
pub use rejoin::{issue_to_node, proven_node};

pub type Result<T, E = PkiError> = std::result::Result<T, E>;

#[derive(Debug, thiserror::Error)]
pub enum PkiError {
    #[error("cannot make or read a certificate: {0}")]
    Certificate(#[from] rcgen::Error),
    #[error("not a PEM certificate: {0}")]
    Pem(String),
    #[error("{0}")]
    Key(String),
    #[error("{0}")]
    Signer(String),
    #[error("at most two organizations fit into a certificate, {0:?} has {1}")]
    Organizations(String, usize),
}
