//! What nodes wait for while they join, while etcd is restored and while certificates are recovered, by name.

use seedling_steps::conditions;

conditions! {
    pub CONDITIONS;

    REQUEST_TAKEN = "certificate-request-taken", "the API to take the request for this node's certificate": {
        what: "kubelet-join asks until the API takes the request.",
        why: "A node that boots before there is an API asks early, so that nobody waits for it.",
        check: "curl -k https://api-int.CLUSTER:6443/readyz on the node",
        fails: &[
            "api-int does not resolve, or the load balancer has no server; the bootstrap kubeconfig ended after a day",
        ],
        see: &["component.kubelet-join", "port.6443"],
    }
    CERTIFICATE_ISSUED = "certificate-issued", "this node's certificate to be issued": {
        what: "kubelet-join waits until its request is approved and signed.",
        why: "The kubelet starts with its own name, and not before.",
        check: "seedling csr",
        fails: &[
            "not approved: the node is not in the inventory, or asks from another address",
            "approved and not issued: kube-controller-manager does not lead",
        ],
        see: &["component.approve-csr", "component.machine-approver", "cert.csr-signer"],
    }
    ON_MEMBER_LIST = "on-member-list", "URL to be on etcd's member list, and its turn to start": {
        what: "etcd-join waits until the etcd operator has added this master as a member.",
        why: "Members are added one after the other; one that starts on its own would found a second cluster.",
        check: "etcdctl member list -w table in etcd's container of another node",
        fails: &["the etcd operator does not run, or another member's turn does not end"],
        see: &["component.etcd-operator", "component.etcd"],
    }
    DATA_ARRIVES = "data-arrives", "the leader's data to arrive": {
        what: "etcd-join waits until this learner has what the leader has.",
        why: "A voter without data would count for a majority that has lost something.",
        check: "etcdctl endpoint status --cluster -w table",
        fails: &["2380 is not reachable, or the disk is slow"],
        see: &["component.etcd", "port.2380"],
    }
    IS_VOTER = "is-voter", "the etcd member of this node to be a voter": {
        what: "etcd-wait, in front of a master's API server, waits until the member on this node votes.",
        why: "An API server on a learner cannot write.",
        check: "etcdctl member list -w table: IS LEARNER is false",
        fails: &["the etcd operator has not promoted it: it lags behind, or another member is unhealthy"],
        see: &["component.etcd-operator", "component.kube-apiserver"],
    }
    // Of each Secret and ConfigMap of a revision.
    LEAVE_TO_READ = "leave-to-read", "leave to read KIND NAME": {
        what: "An installer pod waits until its role names the revision that it installs.",
        why: "It may read the Secrets of that revision only, and an API server may hear of the role later than the pod starts.",
        check: "kubectl -n NAMESPACE get role installer -o yaml",
        fails: &["the operator that made the revision was stopped before it wrote the role"],
        see: &["component.installer"],
    }
    MEMBER_REPLACED = "member-replaced", "member ID to be replaced, because it cannot read its data": {
        what: "etcd-join waits until the others have removed this master's member, whose data cannot be read.",
        why: "What was lost here is still with the others: a new member gets all of it from them.",
        check: "etcdctl member list -w table in etcd's container of another node",
        fails: &["the others have no majority: then nobody can remove it, and etcd is tried again with its data"],
        see: &["component.etcd", "component.etcd-operator", "file./var/lib/etcd"],
    }
    RESTORE_NOTICED = "restore-others-gone", "this member to notice that the others are gone": {
        what: "etcd restore gives this master's member the time of an election before it asks what the member knows.",
        why: "A member knows of a leader for a while after the leader is gone.",
        check: "etcdctl endpoint status -w table in etcd's container of this master",
        fails: &["it has a leader all the time: there is a majority, and nothing to restore"],
        see: &["command.etcd restore", "component.etcd"],
    }
    RESTORE_CARRIED_OUT = "restore-carried-out", "etcd's container to carry the restore out": {
        what: "etcd restore waits until etcd's container has carried out the order that lies beside the data.",
        why: "Only that container has the data, and nobody else may have it at the same time.",
        check: "seedling node journal",
        fails: &["the kubelet does not start etcd's pod; the disk has no room for the copy: the journal says which"],
        see: &["command.etcd restore", "component.etcd", "file./var/lib/etcd"],
    }
    RESTORE_ALONE = "restore-leads-alone", "etcd to lead alone": {
        what: "etcd's container, while it restores, waits until an etcd that only it can reach leads with the data.",
        why: "The data is made that of a cluster of one before anybody else sees it.",
        check: "crictl logs $(crictl ps -a -q --name '^etcd$' | head -n 1)",
        fails: &["the data is damaged: restore from a snapshot instead"],
        see: &["command.etcd restore", "condition.restore-carried-out"],
    }
    RESTORE_LEADS = "restore-leads", "etcd on this master to lead": {
        what: "etcd restore, at the end, waits until this master's etcd answers and has a leader: itself.",
        why: "The API server and the operators can do their work again from then on.",
        check: "etcdctl endpoint status -w table in etcd's container of this master",
        fails: &["its pod does not become ready: crictl logs says why"],
        see: &["command.etcd restore", "component.etcd"],
    }
    RECOVER_API = "recover-api-answers", "this master's API server to answer": {
        what: "certs recover waits for this master's API server, whose certificate may have expired.",
        why: "Certificates are kept in the API, and are replaced there first.",
        check: "crictl ps -a | grep -E 'etcd|kube-apiserver'",
        fails: &["etcd has no majority: switch two of three masters on"],
        see: &["command.certs recover", "component.kube-apiserver"],
    }
    RECOVER_SERVED = "recover-certificate-served", "this master's API server to serve with its new certificate": {
        what: "certs recover waits until this master's API server answers with a certificate that is good.",
        why: "The other nodes' kubelets trust no other.",
        check: "crictl logs $(crictl ps -q --name kube-apiserver) 2>&1 | tail",
        fails: &["the kubelet takes a minute to start the pod anew; after that its log says what it lacks"],
        see: &["command.certs recover", "component.kube-apiserver"],
    }
    RECOVER_PORT = "recover-port-free", "port PORT to be free": {
        what: "certs recover stops the machine-config server of this master until it can listen in its place.",
        why: "Nodes whose certificates have ended ask for new ones there: no other port is open to them.",
        check: "ss -ltnp sport = :22623",
        fails: &["another program listens on the port"],
        see: &["command.certs recover", "component.machine-config-server", "port.22623"],
    }
    RECOVER_NODES = "recover-nodes-ready", "the other nodes to be Ready": {
        what: "certs recover waits until every other node has got a certificate and reports to the API again.",
        why: "It answers them only as long as it runs.",
        check: "kubectl get nodes; on a node that is missing: journalctl -u kubelet-recover -u kubelet",
        fails: &["a machine is switched off; api-int does not lead to this master's port 22623"],
        see: &["command.certs recover", "component.kubelet-recover"],
    }
    ENDED_REPLACED = "ended-certificate-replaced", "a certificate in the place of the one that has ended while this node was off": {
        what: "kubelet-recover asks for a new certificate until somebody recovers the cluster.",
        why: "A node that was off for longer than its certificate lives cannot ask the API for another.",
        check: "journalctl -u kubelet-recover on the node",
        fails: &["nobody answers: run seedling certs recover on one master"],
        see: &["component.kubelet-recover", "command.certs recover", "port.22623"],
    }
    BOOTKUBE_ENDED = "bootkube-ended", "bootkube to be done": {
        what: "approve-csr approves certificates on the bootstrap node until bootkube has ended.",
        why: "From then on the masters' own approver does it.",
        check: "journalctl -n 50 -u bootkube.service",
        fails: &["bootkube has failed or waits: its own condition says more"],
        see: &["component.approve-csr", "component.machine-approver", "condition.bootkube-done"],
    }
}
