//! What makes a cluster this one and no other: its IDs and the first password.

use crate::graph::{Asset, Id, Parents};
use crate::store::{Files, one};
use crate::{Result, install_config};
use rand::seq::IndexedRandom;

pub(crate) const CLUSTER_ID: Id = "installconfig.ClusterID";
pub(crate) const PASSWORD: Id = "password.KubeadminPassword";
pub(crate) const PASSWORD_SECRET: Id = "openshift.KubeadminPasswordSecret";
pub(crate) const PASSWORD_FILE: &str = "auth/kubeadmin-password";

/// Kubernetes' alphabet for generated names: no vowels, nothing that looks alike.
const SAFE: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
const INFRA_NAME_LENGTH: usize = 21;
const BCRYPT_COST: u32 = 10;

pub(crate) fn assets() -> Vec<Asset> {
    vec![
        Asset::new(CLUSTER_ID, "Cluster ID", &[install_config::ID], |p, _| {
            Ok(Identity::new(&p.config()?.name).into_files())
        }),
        Asset::new(PASSWORD, "Kubeadmin Password", &[], |_, _| Ok(one(PASSWORD_FILE, &password()))),
        Asset::new(PASSWORD_SECRET, "Kubeadmin Password Secret", &[PASSWORD], |p, _| {
            Ok(one("hash", &hash(p.file(PASSWORD, PASSWORD_FILE)?)?))
        }),
    ]
}

pub(crate) struct Identity {
    pub cluster_id: String,
    pub infra_id: String,
}

impl Identity {
    fn new(cluster_name: &str) -> Self {
        Self {
            cluster_id: uuid::Uuid::new_v4().to_string(),
            infra_id: format!("{}-{}", infra_name(cluster_name), pick(SAFE, 5)),
        }
    }
    pub(crate) fn of(made: &Parents) -> Result<Self> {
        let part = |name| made.file(CLUSTER_ID, name).map(str::to_string);
        Ok(Self { cluster_id: part("clusterID")?, infra_id: part("infraID")? })
    }
    fn into_files(self) -> Files {
        [("clusterID".to_string(), self.cluster_id), ("infraID".to_string(), self.infra_id)].into()
    }
}

/// As the cluster keeps a password.
fn hash(password: &str) -> Result<String, bcrypt::BcryptError> {
    Ok(bcrypt::hash_with_result(password, BCRYPT_COST)?.format_for_version(bcrypt::Version::TwoA))
}

/// Letters, digits and single dashes, short enough for cloud resource names.
fn infra_name(cluster_name: &str) -> String {
    let mut name = String::new();
    for c in cluster_name.chars() {
        let c = if c.is_ascii_alphanumeric() { c } else { '-' };
        if !(c == '-' && name.ends_with('-')) {
            name.push(c);
        }
    }
    name.truncate(INFRA_NAME_LENGTH);
    name.trim_end_matches('-').to_string()
}

/// Four groups of five characters, without those that are mistaken for each other.
fn password() -> String {
    const LETTERS: &[u8] = b"abcdefghijkmnopqrstuvwxyzABCDEFGHIJKLMNPQRSTUVWXYZ23456789";
    [(); 4].map(|()| pick(LETTERS, 5)).join("-")
}

fn pick(alphabet: &[u8], length: usize) -> String {
    let mut rng = rand::rng();
    (0..length).filter_map(|_| alphabet.choose(&mut rng)).map(|b| char::from(*b)).collect()
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn infra_names() {
        assert_eq!(infra_name("ocp4"), "ocp4");
        assert_eq!(infra_name("a..b_c"), "a-b-c");
        assert_eq!(infra_name("my-very-long-cluster-name-with-dots"), "my-very-long-cluster");
    }

    #[test]
    fn an_identity_is_new_each_time() {
        let (a, b) = (Identity::new("ocp4"), Identity::new("ocp4"));
        assert_ne!((&a.cluster_id, &a.infra_id), (&b.cluster_id, &b.infra_id));
    }

    #[test]
    fn a_password_has_four_groups_and_its_hash_fits() {
        let password = password();
        assert_eq!(password.len(), 23);
        assert!([5, 11, 17].iter().all(|i| password.as_bytes()[*i] == b'-'));
        let hash = hash(&password).unwrap();
        assert!(hash.starts_with("$2a$10$"));
        assert!(bcrypt::verify(&password, &hash).unwrap());
    }
}
