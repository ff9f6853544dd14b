//! The trust table: a row for each key pair in the life of a cluster, and one for each bundle of trusted signers.
//!
//! Rows are in a file by who makes the first certificate: the installer, bootkube or an operator. Made from them: the installer's `tls/`,
//! bootkube's files and Secrets, what operators renew, `seedling certs list` and docs/certificates.md. A field that does not apply to a
//! row is empty.

#[rustfmt::skip] // A row is a line.
pub mod bootkube;
mod describe;
#[rustfmt::skip]
pub mod installer;
mod make;
#[rustfmt::skip]
pub mod operators;
mod page;

pub use bootkube::{
    CLIENT_CA, CSR_CA, CSR_SIGNER, ETCD_CA, ETCD_CLIENT, ETCD_MEMBERS, ETCD_SIGNER, KUBELET_SERVING_CA,
    TO_KUBELET_SIGNER,
};
pub use describe::describe;
pub use installer::{AGGREGATOR_SIGNER, CONTROL_PLANE_SIGNER, SERVER_CA};
pub use make::Cluster;
pub use operators::{AGGREGATOR_CA, CONTROLLER_MANAGER_CLIENT, INTERNAL_API_SERVING, SCHEDULER_CLIENT};
pub use page::page;

use crate::Usage;
use time::Duration;

pub const DAY: Duration = Duration::days(1);
pub const YEAR: Duration = Duration::days(365);
pub const FIVE_YEARS: Duration = Duration::days(5 * 365);
pub const TEN_YEARS: Duration = Duration::days(3650);

/// A self-signed authority.
pub struct Signer {
    /// Its name in the installer's graph of assets, which is upstream's.
    pub asset: &'static str,
    /// Stem of its files under `tls/`.
    pub file: &'static str,
    /// Stem of the file with its key: another row's where the same key has two certificates.
    pub key_file: &'static str,
    pub cn: &'static str,
    pub ou: Option<&'static str>,
    /// How long the first certificate lives. The policy says it for the next ones.
    pub validity: Duration,
    pub start: Start,
    pub owned: Owned,
    /// Common name of its successors, to which the time is added.
    pub next_cn: &'static str,
    /// It may be replaced before there is any revision: nobody goes by it until then.
    pub from_the_start: bool,
    pub mounted_by: &'static [Pod],
}

/// How the first certificate of a signer says when it was made.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// It is valid from then on.
    Now,
    /// It is valid from [`crate::LAG`] before.
    Backdated,
    /// It is valid from then on, and its name ends with the time, as its successors' names do.
    Dated,
}

/// A certificate that a process of the cluster or a person shows.
pub struct Leaf {
    pub asset: &'static str,
    pub file: &'static str,
    pub cn: &'static str,
    pub organizations: &'static [&'static str],
    pub usages: &'static [Usage],
    pub names: Names,
    /// How long the first certificate lives.
    pub validity: Duration,
    pub signer: &'static Signer,
    pub append_parent: bool,
    pub key_usage: bool,
    pub owned: Owned,
    pub mounted_by: &'static [Pod],
}

/// Which names a leaf is valid for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Names {
    None,
    Localhost,
    ServiceNetwork,
    Api,
    ApiInt,
    /// api-int and, where the platform has them, its virtual addresses, each as an address and as a name.
    MachineConfigServer,
    /// Those of a member. The row stands for two pairs for each member of the inventory, one for its peers and one for its clients.
    EtcdMember,
}

/// The Secret in which a running cluster keeps a pair, and who renews it there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owned {
    pub namespace: &'static str,
    pub secret: &'static str,
    /// The ClusterOperator that renews it.
    pub operator: &'static str,
    pub renewal: Renewal,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Renewal {
    /// It lives as long as the policy's `leaf` says.
    Leaf,
    /// A leaf that lives as long as the policy's `signer` says: a cluster that was off for a year needs it to get its other certificates back.
    LongLeaf,
    /// The next one is trusted everywhere before it signs.
    Signer,
    /// Nobody renews it; the reason.
    Never(&'static str),
}

/// The static pods that mount pairs and bundles: on the bootstrap node files of `tls/`, on masters copies of Secrets and ConfigMaps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pod {
    Etcd,
    ApiServer,
    ControllerManager,
}

impl Pod {
    /// Of its ClusterOperator.
    pub fn name(self) -> &'static str {
        match self {
            Pod::Etcd => ETCD,
            Pod::ApiServer => KAS,
            Pod::ControllerManager => KCM,
        }
    }
}

/// Signers that are trusted together: a file, a ConfigMap, or both.
pub struct Bundle {
    pub asset: &'static str,
    pub file: &'static str,
    pub signers: &'static [&'static Signer],
    pub namespace: &'static str,
    pub configmap: &'static str,
    /// Whose revisions have a copy, and the name of that ConfigMap.
    pub copies: &'static [(Pod, &'static str)],
}

/// The rows of one maker.
pub struct Part {
    pub made_by: &'static str,
    pub signers: &'static [Signer],
    pub leaves: &'static [Leaf],
    pub bundles: &'static [Bundle],
}

pub static TABLE: [Part; 3] = [installer::ROWS, bootkube::ROWS, operators::ROWS];

pub fn signers() -> impl Iterator<Item = &'static Signer> {
    TABLE.iter().flat_map(|part| part.signers)
}

pub fn leaves() -> impl Iterator<Item = &'static Leaf> {
    TABLE.iter().flat_map(|part| part.leaves)
}

pub fn bundles() -> impl Iterator<Item = &'static Bundle> {
    TABLE.iter().flat_map(|part| part.bundles)
}

/// Every pair that a running cluster keeps in a Secret.
pub fn owned() -> impl Iterator<Item = Owned> {
    let all = signers().map(|signer| signer.owned).chain(leaves().map(|leaf| leaf.owned));
    all.filter(Owned::is_kept)
}

/// The leaves that an operator renews.
pub fn renewed_by(operator: &str) -> impl Iterator<Item = &'static Leaf> {
    leaves().filter(move |leaf| leaf.owned.operator == operator)
}

impl Owned {
    /// In no Secret of a running cluster.
    pub const NOWHERE: Self = Self::never("", "", "");

    pub const fn never(namespace: &'static str, secret: &'static str, why: &'static str) -> Self {
        Self { namespace, secret, operator: "", renewal: Renewal::Never(why) }
    }

    pub const fn by(
        operator: &'static str,
        namespace: &'static str,
        secret: &'static str,
        renewal: Renewal,
    ) -> Self {
        Self { namespace, secret, operator, renewal }
    }

    pub fn is_kept(&self) -> bool {
        !self.secret.is_empty()
    }
}

impl Signer {
    /// The ConfigMaps of revisions that must have its next certificate before that signs.
    pub fn trusted_in(&self) -> impl Iterator<Item = (Pod, &'static str)> {
        let trusts = move |bundle: &&Bundle| bundle.signers.iter().any(|signer| signer.file == self.file);
        bundles().filter(trusts).flat_map(|bundle| bundle.copies.iter().copied())
    }
}

/// The operators that renew pairs.
const KAS: &str = "kube-apiserver";
const KCM: &str = "kube-controller-manager";
const ETCD: &str = "etcd";
const API_SERVER: &[Pod] = &[Pod::ApiServer];
const APISERVER: &str = "system:kube-apiserver";
const KUBE_MASTER: &[&str] = &["kube-master"];

const fn signer(asset: &'static str, file: &'static str, validity: Duration) -> Signer {
    Signer {
        asset,
        file,
        key_file: file,
        cn: file,
        ou: Some("openshift"),
        validity,
        start: Start::Now,
        owned: Owned::NOWHERE,
        next_cn: "",
        from_the_start: false,
        mounted_by: &[],
    }
}

const fn client(
    asset: &'static str,
    file: &'static str,
    cn: &'static str,
    organizations: &'static [&'static str],
    validity: Duration,
    signer: &'static Signer,
) -> Leaf {
    Leaf {
        asset,
        file,
        cn,
        organizations,
        usages: &[Usage::Client],
        names: Names::None,
        validity,
        signer,
        append_parent: false,
        key_usage: true,
        owned: Owned::NOWHERE,
        mounted_by: &[],
    }
}

/// kube-apiserver's: the installer's live one day, until the operator takes over.
const fn serving(asset: &'static str, file: &'static str, names: Names, signer: &'static Signer) -> Leaf {
    let leaf = client(asset, file, APISERVER, KUBE_MASTER, DAY, signer);
    Leaf { usages: &[Usage::Server], names, append_parent: true, mounted_by: API_SERVER, ..leaf }
}

const fn bundle(asset: &'static str, file: &'static str, signers: &'static [&'static Signer]) -> Bundle {
    Bundle { asset, file, signers, namespace: "", configmap: "", copies: &[] }
}
