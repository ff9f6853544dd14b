//! The installer pod, which writes one revision's files on one master, and its rights. The program in it is `seedling-node`'s.

use super::{Desired, Names};
use k8s_openapi::api::core::v1::SecurityContext;
use seedling_api::{PolicyRule, Role, named_in};
use seedling_components::pod::{
    Container, Pod, container, critical, env_of_pod, host_path, journal_mount, journal_volume, metadata,
    mount, on_host,
};
use seedling_types::release::MissingComponent;
use seedling_types::{ReleaseInfo, paths};
use std::collections::BTreeSet;

pub(super) fn pod(
    names: &Names,
    release: &ReleaseInfo,
    desired: &Desired,
    node: &str,
    (revision, retry): (i64, i64),
    kept: &BTreeSet<i64>,
) -> Result<Pod, MissingComponent> {
    let name = match retry {
        0 => format!("installer-{revision}-{node}"),
        _ => format!("installer-{revision}-retry-{retry}-{node}"),
    };
    let list = |maps: Vec<&String>| maps.into_iter().cloned().collect::<Vec<_>>().join(",");
    let kept = kept.iter().map(i64::to_string).collect::<Vec<_>>().join(",");
    let command = [
        "/usr/bin/seedling".to_string(),
        "installer".into(),
        format!("--namespace={}", names.namespace),
        format!("--pod={}", names.pod_configmap),
        format!("--revision={revision}"),
        format!("--configmaps={}", list(desired.configmaps.keys().collect())),
        format!("--secrets={}", list(desired.secrets.keys().collect())),
        format!("--keep={kept}"),
    ];
    let mounts = vec![mount("kubernetes", paths::ETC_KUBERNETES, false), journal_mount()];
    let root = SecurityContext { privileged: Some(true), run_as_user: Some(0), ..SecurityContext::default() };
    let installer = Container {
        env: Some(vec![env_of_pod("NODE_NAME", "spec.nodeName"), env_of_pod("NODE_IP", "status.hostIP")]),
        security_context: Some(root),
        ..container("installer", release.image("seedling")?, command.into(), mounts)
    };
    let labels = [("app", "installer"), ("revision", &revision.to_string()), ("retry", &retry.to_string())];
    let volumes = vec![host_path("kubernetes", paths::ETC_KUBERNETES, "Directory"), journal_volume()];
    let mut pod = critical(on_host(metadata(names.namespace, &name, &labels), 5, vec![installer], volumes));
    if let Some(spec) = &mut pod.spec {
        spec.node_name = Some(node.into());
        spec.dns_policy = Some("Default".into());
        spec.restart_policy = Some("Never".into());
        spec.service_account_name = Some("installer-sa".into());
    }
    Ok(pod)
}

/// What installers may read: the files of these revisions, and nothing else. Applied before the pod is made; RBAC knows no names by
/// their beginning, so a revision's are written out.
pub(super) fn role(names: &Names, desired: &Desired, revisions: &BTreeSet<i64>) -> Role {
    let copies = |bases: Vec<&str>| -> Vec<String> {
        revisions.iter().flat_map(|r| bases.iter().map(move |base| format!("{base}-{r}"))).collect()
    };
    let maps = desired.configmaps.keys().map(String::as_str).chain([names.pod_configmap]).collect();
    let secrets = desired.secrets.keys().map(String::as_str).collect();
    let read = |resource: &str, copies: Vec<String>| PolicyRule {
        api_groups: Some(vec![String::new()]),
        resources: Some(vec![resource.into()]),
        resource_names: Some(copies),
        verbs: vec!["get".into()],
        ..PolicyRule::default()
    };
    Role {
        metadata: named_in(names.namespace, "installer"),
        rules: Some(vec![read("configmaps", copies(maps)), read("secrets", copies(secrets))]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_installer_may_read_its_revision_and_nothing_else() {
        let names = Names {
            operator: "etcd",
            namespace: "ns",
            operator_namespace: "op",
            pod: "etcd",
            pod_configmap: "etcd-pod",
        };
        let desired = Desired {
            configmaps: [("etcd-ca-bundle".to_string(), Default::default())].into(),
            secrets: [("etcd-all-certs".to_string(), Default::default())].into(),
            pod: Pod::default(),
        };
        let role = role(&names, &desired, &[7, 8].into());
        let role = json!(role);
        let rule =
            |i: usize| (role["rules"][i]["resources"].clone(), role["rules"][i]["resourceNames"].clone());
        let maps = json!(["etcd-ca-bundle-7", "etcd-pod-7", "etcd-ca-bundle-8", "etcd-pod-8"]);
        assert_eq!(rule(0), (json!(["configmaps"]), maps));
        assert_eq!(rule(1), (json!(["secrets"]), json!(["etcd-all-certs-7", "etcd-all-certs-8"])));
        assert!((0..2).all(|i| role["rules"][i]["verbs"] == json!(["get"])));
        assert!(role["rules"][2].is_null());
    }
}
