//! Certificates renewed, everything else kept: the cluster stays the same one.
//!
//! A signer keeps its key, so that what it signed before stays good; a leaf gets a new one. root-ca and the machine-config
//! server's certificate are in manifests that a user may have edited, and live for ten years: they are left as they are.

use crate::graph::Id;
use crate::store::Files;
use crate::{Result, bootstrap, certificates, expiry, kubeconfig};
use seedling_pki::trust::installer::{BUNDLES, LEAVES, SIGNERS};
use seedling_pki::validity;
use std::collections::BTreeMap;
use time::OffsetDateTime;

pub(crate) fn renew(state: &mut BTreeMap<String, Files>, now: OffsetDateTime) -> Result<()> {
    let lasting = [certificates::ROOT_CA, certificates::MACHINE_CONFIG_SERVER];
    for signer in SIGNERS.iter().filter(|s| !lasting.contains(&s.asset)) {
        let [cert, key] = ["crt", "key"].map(|end| format!("tls/{}.{end}", signer.file));
        let Some(files) = state.get_mut(&member(signer.asset)) else { continue };
        let (Some(old_cert), Some(old_key)) = (files.get(&cert), files.get(&key)) else { continue };
        let (from, until) = validity(old_cert)?;
        // Half of its life is enough to grow a cluster with.
        if until - now < (until - from) / 2 {
            let renewed = signer.renew(old_key, now)?;
            files.insert(cert, renewed.cert);
        }
    }
    let leaves = LEAVES.iter().map(|leaf| leaf.asset).filter(|id| !lasting.contains(id));
    let bundles = BUNDLES.iter().map(|bundle| bundle.asset);
    let made_of_them =
        kubeconfig::ROWS.iter().map(|row| row.id).chain([bootstrap::BOOTSTRAP, bootstrap::IN_PLACE]);
    for id in leaves.chain(bundles).chain(made_of_them) {
        state.remove(&member(id));
    }
    for (id, file) in lasting.into_iter().zip(["root-ca", "machine-config-server"]) {
        let files = state.get(&member(id)).and_then(|files| files.get(&format!("tls/{file}.crt")));
        files.map_or(Ok(()), |pem| expiry::still_good(file, pem, now))?;
    }
    Ok(())
}

fn member(id: Id) -> String {
    format!("*{id}")
}
