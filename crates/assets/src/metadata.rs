//! Asset "Metadata": for those who take a cluster away again.

use crate::config::InstallConfig;
use crate::graph::{Asset, Id};
use crate::identity::Identity;
use crate::store::one;
use crate::{identity, install_config, shape};
use serde_json::{Value, json};

pub(crate) const ID: Id = "cluster.Metadata";

pub(crate) fn asset() -> Asset {
    Asset::new(ID, "Metadata", &[identity::CLUSTER_ID, install_config::ID], |p, _| {
        Ok(one("metadata.json", &metadata(p.config()?, &Identity::of(p)?).to_string()))
    })
}

fn metadata(config: &InstallConfig, identity: &Identity) -> Value {
    let mut metadata = json!({
        "clusterName": config.name, "clusterID": identity.cluster_id, "infraID": identity.infra_id,
    });
    if let Some(baremetal) = shape::baremetal(config) {
        metadata["baremetal"] = json!({
            "libvirtURI": baremetal.libvirt_uri,
            "bootstrapProvisioningIP": baremetal.bootstrap_provisioning_ip,
            "provisioningHostIP": baremetal.cluster_provisioning_ip,
        });
    }
    metadata["featureSet"] = config.merged.feature_set.clone().into();
    let gates = |on: bool| -> Vec<_> {
        config.feature_gates.iter().filter(|(_, o)| **o == on).map(|(name, _)| name).collect()
    };
    metadata["customFeatureSet"] = match config.feature_gates.is_empty() {
        true => Value::Null,
        false => json!({ "enabled": gates(true), "disabled": gates(false) }),
    };
    metadata
}
