//! What each row of the table is for, in words, and the row as a description.

use super::page::{bundle_facts, leaf_facts, signer_facts};
use super::{Bundle, Leaf, Pod, Signer, TABLE};
use seedling_types::description::{Description, Kind, Text};

/// By name: the stem of its file, else its Secret or ConfigMap. A test finds rows without a purpose.
#[rustfmt::skip] // A row is a line.
const PURPOSE: &[(&str, &str, &[&str])] = &[
    ("root-ca", "Signs the machine-config server's certificate; every machine's pointer config has it, so that a machine trusts the server it gets its config from.", &["component.machine-config-server", "port.22623"]),
    ("admin-kubeconfig-signer", "Signs administrators: API servers trust whom it signed. Its key is nowhere in the cluster.", &["cert.admin-kubeconfig-client"]),
    ("kubelet-bootstrap-kubeconfig-signer", "Signs the identity with which a joining kubelet may ask for its own certificate, and nothing more.", &["cert.kubelet-client"]),
    ("kube-apiserver-localhost-signer", "Signs API servers' certificates for localhost.", &["cert.kube-apiserver-localhost-server"]),
    ("kube-apiserver-service-network-signer", "Signs API servers' certificates for the address of the Service kubernetes, which pods use.", &["cert.kube-apiserver-service-network-server"]),
    ("kube-apiserver-lb-signer", "Signs API servers' certificates for api and api-int: the CA in every kubeconfig.", &["cert.kube-apiserver-lb-server", "port.6443"]),
    ("kube-control-plane-signer", "Signs controller managers and schedulers as clients of the API.", &["component.kube-controller-manager", "component.kube-scheduler"]),
    ("kube-apiserver-to-kubelet-signer", "Signs API servers as clients of kubelets, in the installer's first year; kubelet-client-signer has the same key and lives longer.", &["cert.kubelet-client-signer", "port.10250"]),
    ("aggregator-signer", "Signs API servers as clients of servers behind the API.", &["cert.aggregator-client"]),
    ("kubelet-signer", "The installer's signer of kubelets' certificates. It lives a day, so bootkube makes csr-signer.", &["cert.csr-signer", "stage.config-bootstrap"]),
    ("aggregator-ca", "An older signer of the API's proxy, kept as upstream's installer makes it; nothing uses it.", &["cert.apiserver-proxy"]),
    ("admin-kubeconfig-client", "The administrator in auth/kubeconfig: system:admin, who may do everything.", &["cert.admin-kubeconfig-signer"]),
    ("bootstrap-admin-client", "The administrator on the bootstrap node, in auth/kubeconfig-loopback. It ends after a day, like the node.", &["component.bootkube"]),
    ("kubelet-client", "Who asks: as the installer's file, a joining kubelet that may only request a certificate; as the operators' Secret, an API server that asks kubelets for logs.", &["component.kubelet-join", "port.10250"]),
    ("kube-control-plane-kube-controller-manager-client", "The temporary kube-controller-manager as a client of the API.", &["stage.kube-controller-manager-bootstrap"]),
    ("kube-control-plane-kube-scheduler-client", "The temporary kube-scheduler as a client of the API.", &["stage.kube-scheduler-bootstrap"]),
    ("kube-apiserver-to-kubelet-client", "The temporary API server as a client of kubelets.", &["stage.kube-apiserver-bootstrap"]),
    ("kube-apiserver-localhost-server", "The temporary API server, asked as localhost.", &["stage.kube-apiserver-bootstrap", "port.6443"]),
    ("kube-apiserver-service-network-server", "The temporary API server, asked at the Service's address.", &["stage.kube-apiserver-bootstrap"]),
    ("kube-apiserver-lb-server", "The temporary API server, asked as api.CLUSTER.", &["stage.kube-apiserver-bootstrap", "component.load-balancer"]),
    ("kube-apiserver-internal-lb-server", "The temporary API server, asked as api-int.CLUSTER.", &["stage.kube-apiserver-bootstrap", "component.load-balancer"]),
    ("apiserver-proxy", "An older client of servers behind the API, kept as upstream's installer makes it; nothing uses it.", &["cert.aggregator-client"]),
    ("aggregator-client", "An API server as a client of the servers behind it: first the installer's, then the operators'.", &["cert.aggregator-signer"]),
    ("machine-config-server", "The machine-config server, on bootstrap and on masters.", &["component.machine-config-server", "port.22623"]),
    ("journal-gatewayd", "Lets an administrator read the bootstrap node's journal over HTTPS.", &["cert.root-ca"]),
    ("csr-signer", "Signs kubelets' certificates, as clients and as servers.", &["component.kube-controller-manager", "command.csr", "stage.config-bootstrap"]),
    ("kubelet-client-signer", "Signs API servers as clients of kubelets, with the key of the installer's kube-apiserver-to-kubelet-signer: a file on every node trusts it.", &["file./etc/kubernetes/kubelet-ca.crt"]),
    ("etcd-signer", "Signs everything of etcd: members and clients. etcd trusts nobody else.", &["component.etcd", "stage.etcd-bootstrap"]),
    ("etcd-client", "API servers and the etcd operator as clients of etcd.", &["port.2379"]),
    ("etcd-all-certs", "Two pairs for each member: one it shows its peers, one it shows its clients. All are on every master, so that a master can be replaced.", &["port.2379", "port.2380", "stage.etcd-bootstrap"]),
    ("localhost-serving-cert-certkey", "Masters' API servers, asked as localhost.", &["component.kube-apiserver-operator"]),
    ("service-network-serving-certkey", "Masters' API servers, asked at the Service's address.", &["component.kube-apiserver-operator"]),
    ("external-loadbalancer-serving-certkey", "Masters' API servers, asked as api.CLUSTER.", &["component.kube-apiserver-operator", "port.6443"]),
    ("internal-loadbalancer-serving-certkey", "Masters' API servers, asked as api-int.CLUSTER: by kubelets and operators.", &["component.kube-apiserver-operator", "port.6443"]),
    ("kube-controller-manager-client-cert-key", "Masters' controller managers as clients of the API.", &["component.kube-controller-manager"]),
    ("kube-scheduler-client-cert-key", "Masters' schedulers as clients of the API.", &["component.kube-scheduler"]),
    ("admin-kubeconfig-ca-bundle", "Whom API servers believe to be an administrator.", &["cert.admin-kubeconfig-signer"]),
    ("aggregator-ca-bundle", "Whom the temporary API server believes to be an API server's proxy.", &["cert.aggregator-signer"]),
    ("kube-apiserver-complete-client-ca-bundle", "Whose clients the API trusts, as far as the installer knows; bootkube adds csr-signer.", &["cert.client-ca-bundle"]),
    ("kube-apiserver-complete-server-ca-bundle", "Whom clients believe to be an API server: in every pod, and in kubeconfigs.", &["component.kube-controller-manager"]),
    ("kube-apiserver-lb-ca-bundle", "Whom clients outside believe to be api.CLUSTER.", &["cert.kube-apiserver-lb-signer"]),
    ("kube-apiserver-localhost-ca-bundle", "Whom clients on the node believe to be localhost's API server.", &["cert.kube-apiserver-localhost-signer"]),
    ("kube-apiserver-service-network-ca-bundle", "Whom pods believe to be the API's Service.", &["cert.kube-apiserver-service-network-signer"]),
    ("kube-apiserver-to-kubelet-ca-bundle", "Whom kubelets believe to be an API server, in the installer's words.", &["cert.kubelet-client-signer"]),
    ("kube-control-plane-ca-bundle", "Whom the control plane's programs trust.", &["cert.kube-control-plane-signer"]),
    ("kubelet-bootstrap-kubeconfig-ca-bundle", "Whom the API believes to be a joining kubelet.", &["cert.kubelet-bootstrap-kubeconfig-signer"]),
    ("kubelet-client-ca-bundle", "Whom the API believes to be a kubelet, in the installer's words.", &["cert.client-ca-bundle"]),
    ("kubelet-serving-ca-bundle", "Whom the API believes to be a kubelet's server, in the installer's words.", &["cert.kubelet-serving-ca-all"]),
    ("client-ca-bundle", "Whose clients the API trusts: administrators, kubelets, the control plane.", &["component.kube-apiserver", "stage.config-bootstrap"]),
    ("kubelet-serving-ca-all", "Whom API servers believe to be a kubelet's server; also what the controllers' operator passes on.", &["port.10250", "stage.config-bootstrap"]),
    ("etcd-ca-bundle", "Whom etcd's members and clients believe.", &["component.etcd", "cert.etcd-signer"]),
    ("kube-apiserver-aggregator-client-ca", "Whom servers behind the API believe to be an API server.", &["cert.aggregator-signer"]),
];

const SIGNER_FAILS: &[&str] = &[
    "a client that trusts another certificate of the same name says `certificate signed by unknown authority`: it has the CA of an older install",
];
const LEAF_FAILS: &[&str] = &[
    "expired: `seedling certs list` shows the end; `seedling certs renew` while the cluster works, `seedling certs recover` when it does not",
    "`certificate is valid for X, not Y`: it is asked by a name or address that it does not have",
];
const CHECK: &str = "seedling certs list (a running cluster), seedling certs check DIR (assets); openssl x509 -noout -text -in FILE";

/// Every pair and every bundle; rows with one name are one description.
pub fn describe() -> Vec<Description> {
    let mut all: Vec<Description> = Vec::new();
    for part in &TABLE {
        let signers = part.signers.iter().map(|row| of_signer(row, part.made_by));
        let leaves = part.leaves.iter().map(|row| of_leaf(row, part.made_by));
        let bundles = part.bundles.iter().map(|row| of_bundle(row, part.made_by));
        for found in signers.chain(leaves).chain(bundles) {
            match all.iter_mut().find(|d| d.name == found.name) {
                Some(first) => first.facts.extend(found.facts),
                None => all.push(found),
            }
        }
    }
    all
}

fn of_signer(row: &Signer, made_by: &str) -> Description {
    let described = new(
        row.file,
        "so that each kind of peer is trusted by its own signer, and can be replaced alone",
        SIGNER_FAILS,
    );
    used_by(with(described, signer_facts(row, made_by)), row.mounted_by)
}

fn of_leaf(row: &Leaf, made_by: &str) -> Description {
    let name = if row.file.is_empty() { row.owned.secret } else { row.file };
    let described = new(
        name,
        "nobody in a cluster is believed by its address: every peer shows a certificate",
        LEAF_FAILS,
    );
    used_by(with(described, leaf_facts(row, made_by)), row.mounted_by)
}

fn of_bundle(row: &Bundle, made_by: &str) -> Description {
    let name = if row.file.is_empty() { row.configmap } else { row.file };
    let described = new(
        name,
        "a new signer is trusted everywhere before it signs: bundles hold the old and the new",
        SIGNER_FAILS,
    );
    with(described, bundle_facts(row, made_by))
}

fn new(name: &'static str, why: &'static str, fails: &'static [&'static str]) -> Description {
    let purpose = PURPOSE.iter().find(|(known, ..)| *known == name);
    let (what, see) = purpose.map_or(("", &[][..]), |(_, what, see)| (what, see));
    let upstream = "the same name, subject and life; see docs/differences.md for what differs";
    Description::new(Kind::Cert, name, &Text { what, why, check: CHECK, fails, upstream, see, ..Text::EMPTY })
}

fn with(described: Description, facts: Vec<(&'static str, String)>) -> Description {
    facts.into_iter().fold(described, |described, (name, value)| described.fact(name, value.replace('`', "")))
}

fn used_by(described: Description, pods: &[Pod]) -> Description {
    described.fact("mounted by", pods.iter().map(|pod| pod.name()).collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_has_a_purpose_and_every_purpose_a_row() {
        let all = describe();
        for cert in &all {
            assert!(!cert.what.is_empty() && !cert.see.is_empty(), "{} has no row in PURPOSE", cert.name);
        }
        for (name, ..) in PURPOSE {
            assert!(all.iter().any(|cert| cert.name == *name), "the table has no {name}");
        }
    }
}
