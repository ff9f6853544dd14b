//! What pods of the control plane mount for TLS is in the trust table, and what the table says they mount they do.

use seedling_components::machine_config::server_objects;
use seedling_components::{ClusterConfig, Place, etcd, kube_apiserver, kube_controller_manager};
use seedling_pki::trust::{self, Owned, Pod};
use std::collections::BTreeSet;

const PODS: [Pod; 3] = [Pod::Etcd, Pod::ApiServer, Pod::ControllerManager];
const CONFIG: &str = "{baseDomain: a, metadata: {name: b}, controlPlane: {replicas: 3}, networking: \
    {clusterNetwork: [{cidr: 10.128.0.0/14, hostPrefix: 23}], serviceNetwork: [172.30.0.0/16]}}";

/// Certificates, keys and bundles that a pod's flags or config name, below its resources. Keys that sign tokens are not for TLS.
fn mounted(pod: Pod, place: Place) -> BTreeSet<String> {
    let config = ClusterConfig::from_install_config(CONFIG).unwrap();
    let text = match pod {
        Pod::Etcd => etcd::config("master-0", [192, 168, 100, 11].into(), &[], true, place).to_string(),
        Pod::ApiServer => kube_apiserver::args(&config, place, "NODE_IP", &[]).join("\n"),
        Pod::ControllerManager => {
            kube_controller_manager::args(&config, place, time::Duration::DAY).join("\n")
        }
    };
    let paths =
        text.split(['=', ',', '"', '\n']).filter_map(|word| word.strip_prefix("/etc/kubernetes/secrets/"));
    let for_tls =
        |path: &&str| (path.ends_with(".crt") || path.ends_with(".key")) && !path.contains("service-account");
    paths.filter(for_tls).map(String::from).collect()
}

/// Stems of the files and the Secret of each pair that the table says a pod mounts.
fn pairs(pod: Pod) -> Vec<([&'static str; 2], Owned)> {
    let signers = trust::signers().filter(|row| row.mounted_by.contains(&pod));
    let leaves = trust::leaves().filter(|row| row.mounted_by.contains(&pod));
    let signers = signers.map(|row| ([row.file, row.key_file], row.owned));
    signers.chain(leaves.map(|row| ([row.file, row.file], row.owned))).collect()
}

fn is_in_table(pod: Pod, place: Place, path: &str) -> bool {
    let (folder, file) = path.rsplit_once('/').unwrap_or(("", path));
    let stem = file.rsplit_once('.').map_or(file, |(stem, _)| stem);
    match place {
        Place::Master => {
            pairs(pod).iter().any(|(_, owned)| folder == format!("secrets/{}", owned.secret))
                || trust::bundles().any(|row| row.copies.iter().any(|copy| path == in_revision(pod, *copy)))
        }
        // etcd has a folder of its own, with upstream's names.
        Place::Bootstrap if pod == Pod::Etcd => {
            path == "ca.crt" || pairs(pod).iter().any(|(_, owned)| folder == owned.secret)
        }
        Place::Bootstrap => {
            pairs(pod).iter().any(|(stems, _)| stems.contains(&stem))
                || trust::bundles().any(|row| row.file == stem)
        }
    }
}

/// Where a pod finds its copy of a bundle; nowhere if it is another pod's.
fn in_revision(pod: Pod, (of, configmap): (Pod, &str)) -> String {
    if of == pod { format!("configmaps/{configmap}/ca-bundle.crt") } else { String::new() }
}

#[test]
fn all_that_is_mounted_is_in_the_table() {
    for pod in PODS {
        for place in [Place::Bootstrap, Place::Master] {
            let paths = mounted(pod, place);
            assert!(paths.len() >= 3, "{paths:?}");
            for path in paths {
                assert!(is_in_table(pod, place, &path), "{} at {place:?}: {path}", pod.name());
            }
        }
    }
    let server = server_objects("image", "https://api-int:6443").unwrap();
    let volumes = server[0]["spec"]["template"]["spec"]["volumes"].as_array().unwrap();
    let secrets: Vec<_> = volumes.iter().filter_map(|v| v["secret"]["secretName"].as_str()).collect();
    assert_eq!(secrets.len(), 1);
    assert!(secrets.iter().all(|name| trust::owned().any(|owned| owned.secret == *name)), "{secrets:?}");
}

#[test]
fn all_that_the_table_says_is_mounted() {
    for pod in PODS {
        let (bootstrap, master) = (mounted(pod, Place::Bootstrap), mounted(pod, Place::Master));
        for ([cert, key], owned) in pairs(pod) {
            for path in [format!("{cert}.crt"), format!("{key}.key")] {
                assert!(cert.is_empty() || bootstrap.contains(&path), "{} on bootstrap: {path}", pod.name());
            }
            let folder = format!("secrets/{}/", owned.secret);
            let found = master.iter().filter(|path| path.starts_with(&folder)).count();
            assert!(!owned.is_kept() || found >= 2, "{} on masters: {folder}", pod.name());
        }
        for copy in trust::bundles().flat_map(|row| row.copies).filter(|copy| copy.0 == pod) {
            let path = in_revision(pod, *copy);
            assert!(master.contains(&path), "{} on masters: {path}", pod.name());
        }
    }
}
