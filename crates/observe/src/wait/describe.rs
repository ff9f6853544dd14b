//! What `lab up` and `wait-for` wait for, by name: the milestones of a growing cluster.

use super::milestone::Milestone;
use seedling_steps::{Awaited, conditions};

impl Milestone {
    /// Its description; one for all counts.
    pub const fn awaited(self) -> &'static Awaited {
        match self {
            Milestone::ApiUp => &API_UP,
            Milestone::MastersJoined(_) => &MASTERS_JOINED,
            Milestone::EtcdOnMasters => &ETCD_CARRIED,
            Milestone::BootstrapComplete => &BOOTSTRAP_COMPLETE,
            Milestone::BootstrapMemberRemoved => &MEMBER_REMOVED,
            Milestone::Initialized => &INITIALIZED,
            Milestone::WorkersReady(_) => &WORKERS_READY,
        }
    }
}

conditions! {
    pub CONDITIONS;

    API_UP = "api-up", "the API to answer": {
        what: "lab up and wait-for: the API answers through the load balancer.",
        why: "Everything later is asked of it.",
        check: "kubectl version",
        fails: &[
            "the bootstrap node has not come so far: seedling lab journal --node bootstrap, or seedling stage list on it",
        ],
        see: &["stage.cb-bootstrap", "port.6443", "component.load-balancer"],
    }
    MASTERS_JOINED = "masters-joined", "all masters to join": {
        what: "lab up: every master has a Node.",
        why: "A Node is there when the machine fetched its config, asked for a certificate and got it.",
        check: "kubectl get nodes; seedling csr",
        fails: &[
            "a machine stays in its first boot (seedling lab status says where), or its request is not approved",
        ],
        see: &["component.kubelet-join", "component.approve-csr", "port.22623"],
    }
    ETCD_CARRIED = "etcd-carried", "all masters to carry etcd": {
        what: "lab up: the etcd operator reports EtcdRunningInCluster.",
        why: "From then on the cluster does not depend on the bootstrap node's member.",
        check: "kubectl get etcd cluster -o yaml",
        fails: &["a member stays a learner: 2380 between masters and bootstrap, slow disks"],
        see: &["component.etcd-operator", "condition.etcd-on-masters"],
    }
    BOOTSTRAP_COMPLETE = "bootstrap-complete", "bootstrapping to complete": {
        what: "lab up and wait-for bootstrap-complete: ConfigMap kube-system/bootstrap says complete.",
        why: "The bootstrap node has handed over; it may be switched off when its etcd member is gone.",
        check: "kubectl -n kube-system get configmap bootstrap -o yaml",
        fails: &["bootkube or progress.service still waits: their conditions say for what"],
        see: &["component.progress", "command.wait-for bootstrap-complete"],
    }
    MEMBER_REMOVED = "bootstrap-member-removed", "the bootstrap etcd member to be removed": {
        what: "lab up and wait-for bootstrap-complete: etcd's members are the masters only.",
        why: "A machine that is switched off while it is a member costs etcd one of its majority.",
        check: "etcdctl member list -w table",
        fails: &[
            "the etcd operator waits until bootstrapping is complete and all masters' members are healthy",
        ],
        see: &["component.etcd-operator"],
    }
    INITIALIZED = "initialized", "all operators to have finished": {
        what: "lab up and wait-for install-complete: ClusterVersion is Available.",
        why: "Every operator has reported that it is Available at the release's version.",
        check: "kubectl get clusterversion,clusteroperators",
        fails: &["one operator is not Available: its message says why"],
        see: &["component.cluster-version-operator", "command.wait-for install-complete"],
    }
    WORKERS_READY = "workers-ready", "all workers to be Ready": {
        what: "lab up: every worker is a Node that is Ready.",
        why: "Workers join when the masters' machine-config servers answer.",
        check: "kubectl get nodes; seedling csr",
        fails: &[
            "as of masters; and a worker needs the masters' machine-config server, 22623 through the load balancer",
        ],
        see: &["component.machine-config-operator", "command.wait-for node"],
    }
}
