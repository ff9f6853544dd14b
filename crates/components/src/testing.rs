//! A release for the tests of this crate.

use seedling_types::ReleaseInfo;
use seedling_types::release::Binary;

pub fn release() -> ReleaseInfo {
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
            "seedling",
        ]
        .map(binary)
        .into(),
        components: [].into(),
    }
}
