//! What makes a cluster this one and no other: its IDs and the first password.

use rand::seq::IndexedRandom;
use serde::{Deserialize, Serialize};

/// Kubernetes' alphabet for generated names: no vowels, nothing that looks alike.
const SAFE: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
const INFRA_NAME_LENGTH: usize = 21;
const BCRYPT_COST: u32 = 10;

#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Identity {
    #[serde(rename = "clusterID")]
    pub cluster_id: String,
    #[serde(rename = "infraID")]
    pub infra_id: String,
    pub kubeadmin_password: String,
    pub kubeadmin_hash: String,
}

impl Identity {
    pub fn new(cluster_name: &str) -> Result<Self, bcrypt::BcryptError> {
        let kubeadmin_password = password();
        Ok(Self {
            cluster_id: uuid::Uuid::new_v4().to_string(),
            infra_id: format!("{}-{}", infra_name(cluster_name), pick(SAFE, 5)),
            kubeadmin_hash: bcrypt::hash_with_result(&kubeadmin_password, BCRYPT_COST)?
                .format_for_version(bcrypt::Version::TwoA),
            kubeadmin_password,
        })
    }
}

/// Letters, digits and single dashes, short enough for cloud resource names.
pub fn infra_name(cluster_name: &str) -> String {
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
    fn an_identity_is_new_each_time_and_its_hash_fits() {
        let (a, b) = (Identity::new("ocp4").unwrap(), Identity::new("ocp4").unwrap());
        assert_ne!((&a.cluster_id, &a.infra_id), (&b.cluster_id, &b.infra_id));
        assert_eq!(a.kubeadmin_password.len(), 23);
        assert!([5, 11, 17].iter().all(|i| a.kubeadmin_password.as_bytes()[*i] == b'-'));
        assert!(a.kubeadmin_hash.starts_with("$2a$10$"));
        assert!(bcrypt::verify(&a.kubeadmin_password, &a.kubeadmin_hash).unwrap());
    }
}
