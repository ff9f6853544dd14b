//! Stage 5: the version operator's own objects, and its temporary pod.

use super::{parsed, release_manifests, written};
use crate::error::{ensure, in_file};
use crate::{Context, Outcome, Result};
use seedling_components::pod::{Container, container, env, host_path, metadata, mount, on_host, words};
use seedling_steps::Stage;
use seedling_types::names::NS_CVO;
use seedling_types::paths;
use seedling_types::release::fill_release_image;
use serde_json::Value;

const POD: &str = "bootstrap-cluster-version-operator";

pub(crate) const STAGE: Stage = Stage {
    name: "cvo-bootstrap",
    done: Some("cvo-bootstrap"),
    what: "Renders the version operator: its namespace and objects, and the static pod that runs it on this node.",
    why: "the version operator works the whole payload, so it must run before there is a master to run it",
    reads: &[
        "release-manifests/0000_00_cluster-version-operator_*",
        "auth/kubeconfig-loopback",
        "release.json",
    ],
    writes: &[
        "manifests/0000_00_cluster-version-operator_*",
        "bootstrap-manifests/bootstrap-pod.yaml",
        "/etc/kubernetes/kubeconfig",
    ],
    check: "its files are written, and the pod's manifest names the release image",
    fails: &["`names another image`: the release in the registry is not the one the assets were made for"],
    upstream: "podman run … $RELEASE_IMAGE render --output-dir=/assets/cvo-bootstrap --release-image=$RELEASE_IMAGE",
    see: &["component.cluster-version-operator", "seed.003.6", "stage.cvo-overrides"],
};

pub(crate) async fn run(c: &Context) -> Result<Outcome> {
    for name in release_manifests(c)? {
        if name.starts_with("0000_00_cluster-version-operator_") {
            let file = format!("release-manifests/{name}");
            let mut object: Value = serde_saphyr::from_str(&c.read(&file)?).map_err(in_file(&file))?;
            fill_release_image(&mut object, &c.release.release_image).map_err(in_file(&file))?;
            c.manifest(&name, &object)?;
        }
    }
    let kubeconfig = c.read("auth/kubeconfig-loopback")?;
    c.write(&c.path(paths::KUBELET_BOOTSTRAP_KUBECONFIG), kubeconfig, 0o600)?;
    let config_flag = format!("--kubeconfig={}", paths::KUBELET_BOOTSTRAP_KUBECONFIG);
    let command = words(&["/usr/bin/seedling", "operator", "cluster-version", &config_flag]);
    let mounts = vec![mount("kubeconfig", paths::KUBELET_BOOTSTRAP_KUBECONFIG, true)];
    let operator = Container {
        env: Some(vec![env("RELEASE_IMAGE", &c.release.release_image), env("POD_NAME", POD)]),
        ..container("cluster-version-operator", &c.release.release_image, command, mounts)
    };
    let volumes = vec![host_path("kubeconfig", paths::KUBELET_BOOTSTRAP_KUBECONFIG, "File")];
    let labels = [("k8s-app", "cluster-version-operator")];
    let pod = on_host(metadata(NS_CVO, POD, &labels), 10, vec![operator], volumes);
    c.bootstrap_pod("bootstrap-pod.yaml", &pod)?;
    Ok(Outcome::Done)
}

pub(crate) async fn check(c: &Context) -> Result<()> {
    written(c, &STAGE)?;
    let pod = parsed(&c.dir("bootstrap-manifests/bootstrap-pod.yaml"))?;
    let image = &pod["spec"]["containers"][0]["image"];
    ensure!(*image == c.release.release_image.as_str(), "the pod's image is {image}");
    Ok(())
}
