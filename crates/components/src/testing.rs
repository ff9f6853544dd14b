//! A release for the tests of this crate.

use seedling_types::ReleaseInfo;
use seedling_types::release::Binary;

pub(crate) fn release() -> ReleaseInfo {
    let image = |name: &str| {
        let digest = format!("{:064x}", name.len());
        (name.to_string(), format!("registry.seedling.internal/seedling/{name}@sha256:{digest}"))
    };
    let binary = |name: &str| (name.to_string(), Binary { sha512: format!("{:0128x}", name.len()), size: 1 });
    ReleaseInfo {
        version: "0.1.0".into(),
        kubernetes_version: "1.36.4".into(),
        release_image: image("release").1,
        images: ["seedling", "pause", "etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"]
            .map(image)
            .into(),
        binaries: [
            "kubelet",
            "kubectl",
            "crictl",
            "containerd",
            "containerd-shim-runc-v2",
            "ctr",
            "runc",
            "seedling",
        ]
        .map(binary)
        .into(),
        components: [].into(),
    }
}

pub(crate) const INSTALL_CONFIG: &str = "apiVersion: v1
baseDomain: alchemy.com
compute:
- name: worker
  replicas: 0
controlPlane: {name: master, replicas: 3}
metadata: {name: ocp4}
networking:
  clusterNetwork:
  - {cidr: 10.128.0.0/14, hostPrefix: 23}
  networkType: OVNKubernetes
  serviceNetwork: [172.30.0.0/16]
platform: {none: {}}
";

#[expect(clippy::unwrap_used, reason = "tests")]
pub(crate) fn cluster_config() -> crate::ClusterConfig {
    crate::ClusterConfig::from_install_config(INSTALL_CONFIG).unwrap()
}
