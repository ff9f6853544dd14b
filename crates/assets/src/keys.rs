//! Key pairs without a certificate.

use crate::Result;
use crate::given::Given;
use crate::graph::{Asset, Found, Id};
use crate::store::Files;
use seedling_pki::{KeyPair, keypair_of, ssh_keypair};

pub(crate) const SERVICE_ACCOUNT: Id = "tls.ServiceAccountKeyPair";
pub(crate) const BOUND_SERVICE_ACCOUNT: Id = "tls.BoundSASigningKey";
pub(crate) const BOOTSTRAP_SSH: Id = "tls.BootstrapSSHKeyPair";
const BOUND: &str = "tls/bound-service-account-signing-key";

pub(crate) fn assets() -> Vec<Asset> {
    vec![
        Asset::new(SERVICE_ACCOUNT, "Key Pair (service-account.pub)", &[], |p, _| {
            Ok(files("tls/service-account", p.run().service_account()?))
        }),
        // Only where the user brings one; otherwise it is made on the bootstrap node.
        Asset::new(BOUND_SERVICE_ACCOUNT, "User-provided Service Account Signing key", &[], |_, _| {
            Ok(Files::new())
        })
        .loaded(|given, _| bound(given)),
        Asset::new(BOOTSTRAP_SSH, "Bootstrap SSH Key Pair", &[], |_, _| {
            Ok(files("tls/bootstrap-ssh", ssh_keypair()?))
        }),
    ]
}

fn files(path: &str, pair: KeyPair) -> Files {
    [(format!("{path}.key"), pair.key), (format!("{path}.pub"), pair.public)].into()
}

fn bound(given: &Given) -> Result<Option<Found>> {
    let path = format!("{BOUND}.key");
    let Some(key) = given.store.read(&path)? else { return Ok(None) };
    let public = keypair_of(&key)?.public;
    let files = files(BOUND, KeyPair { key, public });
    Ok(Some(Found { files, consumed: vec![path], insisted: true }))
}
