//! What nodes wait for while they join, by name.

use seedling_steps::Awaited;
use seedling_types::description::Text;

pub const CONDITIONS: &[Awaited] =
    &[REQUEST_TAKEN, CERTIFICATE_ISSUED, ON_MEMBER_LIST, DATA_ARRIVES, IS_VOTER, LEAVE_TO_READ];

const T: Text = Text::EMPTY;

pub(crate) const REQUEST_TAKEN: Awaited = Awaited {
    name: "certificate-request-taken",
    sentence: "the API to take the request for this node's certificate",
    text: Text {
        what: "kubelet-join asks until the API takes the request.",
        why: "A node that boots before there is an API asks early, so that nobody waits for it.",
        check: "curl -k https://api-int.CLUSTER:6443/readyz on the node",
        fails: &[
            "api-int does not resolve, or the load balancer has no server; the bootstrap kubeconfig ended after a day",
        ],
        see: &["component.kubelet-join", "port.6443"],
        ..T
    },
};
pub(crate) const CERTIFICATE_ISSUED: Awaited = Awaited {
    name: "certificate-issued",
    sentence: "this node's certificate to be issued",
    text: Text {
        what: "kubelet-join waits until its request is approved and signed.",
        why: "The kubelet starts with its own name, and not before.",
        check: "seedling csr",
        fails: &[
            "not approved: the node is not in the inventory, or asks from another address",
            "approved and not issued: kube-controller-manager does not lead",
        ],
        see: &["component.approve-csr", "component.machine-approver", "cert.csr-signer"],
        ..T
    },
};
pub(crate) const ON_MEMBER_LIST: Awaited = Awaited {
    name: "on-member-list",
    sentence: "URL to be on etcd's member list, and its turn to start",
    text: Text {
        what: "etcd-join waits until the etcd operator has added this master as a member.",
        why: "Members are added one after the other; one that starts on its own would found a second cluster.",
        check: "etcdctl member list -w table in etcd's container of another node",
        fails: &["the etcd operator does not run, or another member's turn does not end"],
        see: &["component.etcd-operator", "component.etcd"],
        ..T
    },
};
pub(crate) const DATA_ARRIVES: Awaited = Awaited {
    name: "data-arrives",
    sentence: "the leader's data to arrive",
    text: Text {
        what: "etcd-join waits until this learner has what the leader has.",
        why: "A voter without data would count for a majority that has lost something.",
        check: "etcdctl endpoint status --cluster -w table",
        fails: &["2380 is not reachable, or the disk is slow"],
        see: &["component.etcd", "port.2380"],
        ..T
    },
};
pub(crate) const IS_VOTER: Awaited = Awaited {
    name: "is-voter",
    sentence: "the etcd member of this node to be a voter",
    text: Text {
        what: "etcd-wait, in front of a master's API server, waits until the member on this node votes.",
        why: "An API server on a learner cannot write.",
        check: "etcdctl member list -w table: IS LEARNER is false",
        fails: &["the etcd operator has not promoted it: it lags behind, or another member is unhealthy"],
        see: &["component.etcd-operator", "component.kube-apiserver"],
        ..T
    },
};
/// Of each Secret and ConfigMap of a revision.
pub(crate) const LEAVE_TO_READ: Awaited = Awaited {
    name: "leave-to-read",
    sentence: "leave to read KIND NAME",
    text: Text {
        what: "An installer pod waits until its role names the revision that it installs.",
        why: "It may read the Secrets of that revision only, and an API server may hear of the role later than the pod starts.",
        check: "kubectl -n NAMESPACE get role installer -o yaml",
        fails: &["the operator that made the revision was stopped before it wrote the role"],
        see: &["component.installer"],
        ..T
    },
};
