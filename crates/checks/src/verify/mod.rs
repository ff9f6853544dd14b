//! `seedling verify`: does the cluster work, seen from outside and from each of its nodes? The checks that the seeds do by hand.

mod facts;
mod gather;
mod judge;
mod matrix;
mod script;

pub use facts::{ApiFacts, Asked, Facts, NodeFacts, Said, Tried};
pub use gather::{Cluster, gather};
pub use judge::{Hands, judge};
pub use matrix::{BALANCER, Wanted, wanted};

use crate::Check;
use crate::check::check;

const MACHINES: &str = "Machines";
const API: &str = "API";
const MCS: &str = "Machine-config server";
const PODS: &str = "Static pods";
const ETCD: &str = "etcd";
const CLUSTER: &str = "Cluster";
const NODES: &str = "Nodes";
const CONNECTIONS: &str = "Connections";

pub(crate) const ENTERED: Check = check(
    MACHINES,
    "machine-entered",
    "is each machine on, and can a command be run there?",
    "what is not asked on the machine itself is only hearsay",
    "switch it on (seedling lab power NODE on), or see that ssh -o BatchMode=yes core@ADDRESS sudo -n true works; for a host key that ssh does not know yet: --ssh-option StrictHostKeyChecking=accept-new",
);
pub(crate) const API_READY: Check = check(
    API,
    "api-ready",
    "does /readyz on port 6443 say ok, through the load balancer and on each master?",
    "everything else asks the API; a master whose API server is not ready gets no requests from the balancer",
    "look at the API server's log on that master: crictl logs $(crictl ps -aq --name '^kube-apiserver$' | head -1)",
);
pub(crate) const MCS_HEALTH: Check = check(
    MCS,
    "mcs-health",
    "does the machine-config server answer /healthz over TLS on port 22623, through the load balancer and on each master?",
    "a machine that boots for the first time gets its configuration there",
    "kubectl get pods -n openshift-machine-config-operator, and check the balancer's port 22623",
);
pub(crate) const MCS_REFUSES: Check = check(
    MCS,
    "mcs-refuses-strangers",
    "is a request without a machine's token refused with 403?",
    "the configuration holds the credentials with which a machine joins the cluster",
    "a cluster that was made with --open, or by openshift-install, answers everybody: block port 22623 outside of the machines' network",
);
pub(crate) const STATIC_PODS: Check = check(
    PODS,
    "static-pods",
    "does the kubelet run each static pod, at the revision its operator says?",
    "etcd and the control plane are static pods; an old revision has old certificates and settings",
    "seedling lab journal NODE (or: seedling node journal, on the node) tells what the installer did; the operator's ClusterOperator says why it waits",
);
pub(crate) const ETCD_HEALTH: Check = check(
    ETCD,
    "etcd-health",
    "does each master's etcd member agree on a write and answer?",
    "without a majority of healthy members nothing can be written",
    "look at the member's log: crictl logs $(crictl ps -aq --name '^etcd$' | head -1)",
);
pub(crate) const ETCD_MEMBERS: Check = check(
    ETCD,
    "etcd-members",
    "is each master a voting member, and nobody else, the bootstrap machine least of all?",
    "a learner does not count for the majority; a member that is gone counts against it",
    "the etcd operator adds and removes members: kubectl get clusteroperator etcd -o yaml says what it waits for",
);
pub(crate) const ETCD_ONE: Check = check(
    ETCD,
    "etcd-one-cluster",
    "do all members name the same cluster id, the same term and the same leader?",
    "two clusters under one name lose writes",
    "stop and compare `etcdctl member list` on every master before anything else; docs/troubleshooting.md, A second cluster",
);
pub(crate) const MANIFESTS: Check = check(
    CLUSTER,
    "manifests-applied",
    "has the version operator applied every manifest of the release?",
    "what is not applied is not there: operators, roles, custom resources",
    "kubectl get clusterversion version -o yaml names the manifest it waits for",
);
pub(crate) const OPERATORS: Check = check(
    CLUSTER,
    "cluster-operators",
    "is each operator available, done and not degraded?",
    "each part of the cluster has an operator that says how it is",
    "read the condition's message; then the operator's log: kubectl logs -n openshift-OPERATOR-operator deploy/OPERATOR-operator",
);
pub(crate) const CSRS: Check = check(
    CLUSTER,
    "csrs-decided",
    "is no certificate signing request pending?",
    "a node whose request is pending cannot join, or cannot be asked for logs",
    "seedling csr says who asked and why nobody approved; seedling csr approve NAME approves by hand",
);
pub(crate) const NODE_READY: Check = check(
    NODES,
    "node-ready",
    "is each machine a node that says Ready, without pressure?",
    "pods run only on nodes that are Ready",
    "look at its kubelet: journalctl -u kubelet on the node, and kubectl describe node NODE",
);
pub(crate) const KUBELET: Check = check(
    NODES,
    "kubelet",
    "is the service kubelet active on each machine, and its /healthz ok?",
    "it runs the static pods, before there is an API and when the API is down",
    "journalctl -u kubelet on the node",
);
pub(crate) const CONNECTION: Check = check(
    CONNECTIONS,
    "connections",
    "can each machine reach the ports that it needs on every other one and on the load balancer?",
    "a firewall between two machines shows as a cluster that is slow, or never grows",
    "open the port between the two machines (ss -ltn on the other one shows whether anybody listens)",
);

/// In the order in which they are shown.
pub const CHECKS: &[Check] = &[
    ENTERED,
    API_READY,
    MCS_HEALTH,
    MCS_REFUSES,
    STATIC_PODS,
    ETCD_HEALTH,
    ETCD_MEMBERS,
    ETCD_ONE,
    MANIFESTS,
    OPERATORS,
    CSRS,
    NODE_READY,
    KUBELET,
    CONNECTION,
];

#[cfg(test)]
mod tests;
