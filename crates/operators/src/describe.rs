//! The operators in words. A test compares them with the table.

use seedling_types::description::{Named, Text};

/// `operator` in the table is `operator-operator` here, unless upstream calls it otherwise.
pub const COMPONENTS: &[Named] = &[
    row(
        "cluster-version-operator",
        "Creates every object of the release, in order, and says when all operators have reached its version.",
        "One program knows what a release consists of; at first it runs as a static pod on the bootstrap node.",
        &["the release's manifests", "ClusterVersion version"],
        &["everything in the release", "ClusterVersion version, status"],
        "kubectl get clusterversion",
        &["it waits for an operator: kubectl get clusteroperators shows which is not Available, or Degraded"],
        &["stage.cvo-bootstrap", "stage.cvo-overrides", "condition.initialized"],
    ),
    row(
        "dns-operator",
        "Keeps CoreDNS on every node, and reports whether nodes get answers from it.",
        "Pods find Services by name.",
        &["Network cluster", "what network-check sees"],
        &["namespace openshift-dns", "ClusterOperator dns"],
        "kubectl get clusteroperator dns",
        &["not Available: no DNS pod answers yet; the message says on which node"],
        &["component.cluster-dns", "component.network-check"],
    ),
    row(
        "etcd-operator",
        "Grows etcd from the bootstrap member to the masters, renews its certificates, replaces lost members, and removes the bootstrap member at the end.",
        "Adding members one by one, each first as a learner, is what keeps etcd one cluster with a majority at every moment.",
        &["nodes", "Secret openshift-etcd/etcd-all-certs", "etcd's member list"],
        &[
            "etcd's members",
            "static pod etcd on masters, by revision",
            "ConfigMap openshift-etcd/etcd-endpoints",
            "ClusterOperator etcd",
        ],
        "kubectl get etcd cluster -o yaml; etcdctl member list -w table",
        &[
            "a learner is not promoted: it does not catch up; its disk or network is slow",
            "EtcdRunningInCluster is not True: the message names the member that is missing",
        ],
        &[
            "component.etcd",
            "stage.wait-for-ceo",
            "condition.etcd-on-masters",
            "condition.bootstrap-member-removed",
        ],
    ),
    row(
        "kube-apiserver-operator",
        "Installs the API server on masters, by revision, one after the other, and renews its certificates.",
        "A revision is complete before it starts, and an old one that worked is there to go back to.",
        &["Secrets and ConfigMaps of openshift-kube-apiserver"],
        &["static pod kube-apiserver on masters", "its certificates", "ClusterOperator kube-apiserver"],
        "kubectl get kubeapiserver cluster -o yaml: each node's currentRevision",
        &[
            "a revision does not become ready: crictl logs of the new pod on that master; the operator goes back by itself",
        ],
        &["component.kube-apiserver", "component.installer"],
    ),
    row(
        "kube-controller-manager-operator",
        "Installs kube-controller-manager on masters, and renews the signer of kubelets' certificates.",
        "The temporary one goes with the bootstrap node.",
        &["Secrets and ConfigMaps of openshift-kube-controller-manager"],
        &["static pod kube-controller-manager on masters", "ClusterOperator kube-controller-manager"],
        "kubectl get clusteroperator kube-controller-manager",
        &["it waits for its client certificate, which the API servers' operator makes"],
        &["component.kube-controller-manager", "cert.csr-signer"],
    ),
    row(
        "kube-scheduler-operator",
        "Installs kube-scheduler on masters.",
        "The temporary one goes with the bootstrap node.",
        &["Secrets and ConfigMaps of openshift-kube-scheduler"],
        &["static pod openshift-kube-scheduler on masters", "ClusterOperator kube-scheduler"],
        "kubectl get clusteroperator kube-scheduler",
        &["it waits for its client certificate, which the API servers' operator makes"],
        &["component.kube-scheduler"],
    ),
    row(
        "machine-approver",
        "Approves certificates of machines in the inventory, on masters, after approve-csr on the bootstrap node.",
        "Only a machine of the inventory, with its own token and address, becomes a node.",
        &["certificate signing requests", "ConfigMap openshift-config/cluster-inventory"],
        &["approvals", "spent tokens", "ClusterOperator machine-approver"],
        "seedling csr",
        &["refused: the reason is in `seedling csr`; `seedling csr approve NAME` after you have looked"],
        &["component.approve-csr", "command.csr approve"],
    ),
    row(
        "machine-config-operator",
        "Renders each pool's configuration from its MachineConfigs, and keeps the machine-config server on masters.",
        "Machines that join later get what the cluster says now, not what the installer said.",
        &["MachineConfigs", "MachineConfigPools", "Secret node-tokens"],
        &["rendered MachineConfigs", "DaemonSet machine-config-server", "ClusterOperator machine-config"],
        "kubectl get machineconfigpools",
        &["a pool is Degraded: its message names the MachineConfig that cannot be merged"],
        &["component.machine-config-server", "port.22623", "stage.mco-bootstrap"],
    ),
    row(
        "network-operator",
        "Keeps the pod network and Services on every node, and reports whether nodes reach them.",
        "Without it no node becomes Ready: the kubelet waits for a CNI config.",
        &["Network cluster", "what network-check sees"],
        &["namespace openshift-network", "Network cluster, status", "ClusterOperator network"],
        "kubectl get clusteroperator network; kubectl -n openshift-network get pods -o wide",
        &["not Available: the message names the nodes whose Service address does not answer"],
        &["component.flannel", "component.kube-proxy", "component.network-check"],
    ),
];

#[expect(clippy::too_many_arguments, reason = "a row")]
const fn row(
    name: &'static str,
    what: &'static str,
    why: &'static str,
    reads: &'static [&'static str],
    writes: &'static [&'static str],
    check: &'static str,
    fails: &'static [&'static str],
    see: &'static [&'static str],
) -> Named {
    let upstream = "the operator of the same name in the release payload";
    Named { name, text: Text { what, why, reads, writes, check, fails, upstream, see } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operator_is_described() {
        for operator in &crate::OPERATORS {
            let names = [operator.name.to_string(), format!("{}-operator", operator.name)];
            let described = COMPONENTS.iter().any(|c| names.iter().any(|name| name == c.name));
            assert!(described, "{} has no row in describe.rs", operator.name);
        }
        assert_eq!(COMPONENTS.len(), crate::OPERATORS.len());
    }
}
