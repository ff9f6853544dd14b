//! The one table of paths on a node, each with its description.

use crate::description::{Description, Kind, Text};

/// Whether a declared path means this one: `*` is any part of it.
pub fn matches_pattern(declared: &str, path: &str) -> bool {
    let Some((start, rest)) = declared.split_once('*') else { return path == declared };
    let (middle, end) = rest.rsplit_once('*').unwrap_or(("", rest));
    let inside = path.strip_prefix(start).and_then(|path| path.strip_suffix(end));
    inside.is_some_and(|inside| inside.contains(middle))
}

pub struct Path {
    pub path: &'static str,
    pub text: Text,
}

impl Path {
    pub fn describe(&self) -> Description {
        Description::new(Kind::File, self.path.trim_start_matches("unix://"), &self.text)
    }
}

/// A path without a description cannot be written down.
macro_rules! paths {
    ($($constant:ident = $path:literal: $text:tt)+) => {
        $(pub const $constant: &str = $path;)+
        pub const TABLE: &[Path] = &[$(paths!(@row $path, $text)),+];
    };
    (@row $path:literal, {$($field:ident: $value:expr),+ $(,)?}) => {
        Path { path: $path, text: Text { $($field: $value,)+ ..Text::EMPTY } }
    };
}

paths! {
    OPT_OPENSHIFT = "/opt/openshift": {
        what: "bootkube's working directory on the bootstrap node.",
        why: "bootstrap.ign fills it with all a cluster starts from: manifests, keys, kubeconfigs, the inventory and the release.",
        check: "ls /opt/openshift: one .done file for each stage that has ended",
        fails: &["files of another cluster: bootkube refuses to run, and says which"],
        upstream: "the same",
        see: &["component.bootkube", "command.stage list"],
    }
    STEP = "/opt/openshift/step": {
        what: "Step mode: as long as this directory is there, bootkube runs only the stages named in its file `allowed`, one a line.",
        why: "So that a person can be shown each stage before it runs, from a terminal on the node or outside, and nothing is lost if either is killed.",
        check: "cat /opt/openshift/step/allowed; seedling stage list says where bootkube is",
        fails: &["left behind by a driver that was killed: bootkube waits for you; remove the directory and it goes on"],
        upstream: "nothing: bootkube.sh runs from the first stage to the last",
        see: &["command.bootkube", "command.lab up", "condition.leave-to-run"],
    }
    ETC_KUBERNETES = "/etc/kubernetes": {
        what: "Everything of Kubernetes on a node: static pods, their files, the kubelet's config.",
        why: "The kubelet reads it without asking any API, so that a control plane can start from nothing.",
        upstream: "the same",
        see: &["component.kubelet"],
    }
    STATIC_PODS = "/etc/kubernetes/manifests": {
        what: "The directory the kubelet starts static pods from.",
        why: "A static pod needs no API server: etcd and the API server themselves are started this way. Removing a file stops its pod.",
        check: "crictl pods; on a master four files: etcd, kube-apiserver, kube-controller-manager, kube-scheduler",
        fails: &[
            "a file is here and its pod is not: journalctl -u kubelet says why, mostly the image or a missing host path",
            "a pod that never goes away: its file is still here",
        ],
        upstream: "the same",
        see: &["stage.cb-bootstrap", "stage.etcd-bootstrap", "component.installer"],
    }
    STATIC_POD_RESOURCES = "/etc/kubernetes/static-pod-resources": {
        what: "What static pods mount: on a master one directory a revision, with the certificates and configs of that revision.",
        why: "A new revision is complete on the disk before its pod is started, and the old one is still there to go back to.",
        check: "ls /etc/kubernetes/static-pod-resources; `kubectl get kubeapiserver cluster -o yaml` has the revisions of nodes",
        upstream: "the same",
        see: &["component.installer"],
    }
    BOOTSTRAP_SECRETS = "/etc/kubernetes/bootstrap-secrets": {
        what: "Keys and certificates that the temporary control plane mounts: a copy of /opt/openshift/tls.",
        why: "Beside the pods that use it, and removed with them: no key of the temporary control plane outlives the handoff.",
        check: "it is there from cb-bootstrap's start to its teardown, and nowhere else",
        upstream: "the same",
        see: &["stage.cb-bootstrap"],
    }
    LOCALHOST_KUBECONFIG = "/etc/kubernetes/kubeconfigs/localhost.kubeconfig": {
        what: "Kubeconfig of the API server on the same node, for people.",
        why: "It works when the load balancer or DNS does not.",
        check: "kubectl --kubeconfig=/etc/kubernetes/kubeconfigs/localhost.kubeconfig get nodes",
        upstream: "node-kubeconfigs in static-pod-resources",
    }
    KUBELET_BOOTSTRAP_KUBECONFIG = "/etc/kubernetes/kubeconfig": {
        what: "The bootstrap kubeconfig that the machine-config server hands to a kubelet.",
        why: "It may do one thing: ask for a certificate of its own.",
        check: "`seedling csr` shows the request",
        fails: &["it ends after a day: a machine that comes later needs `seedling node reissue --bootstrap-kubeconfig`"],
        upstream: "the same",
        see: &["cert.kubelet-client", "component.kubelet-join"],
    }
    KUBELET_KUBECONFIG = "/var/lib/kubelet/kubeconfig": {
        what: "The kubelet's own kubeconfig, with the certificate it asked for.",
        why: "Each node acts under its own name, system:node:NAME, and may touch only what is its own.",
        upstream: "the same",
        see: &["component.kubelet-join", "cert.csr-signer"],
    }
    KUBELET_PKI = "/var/lib/kubelet/pki": {
        what: "The kubelet's certificates, as client and as server; it renews them itself.",
        why: "A node that is off for long comes back with an expired one: kubelet-recover asks for another.",
        check: "openssl x509 -noout -enddate -in /var/lib/kubelet/pki/kubelet-client-current.pem",
        upstream: "the same",
        see: &["component.kubelet-recover"],
    }
    KUBELET_CONFIG = "/etc/kubernetes/kubelet.conf": {
        what: "The kubelet's configuration.",
        why: "A file, not flags: the machine-config operator can render it.",
        upstream: "the same",
        see: &["component.kubelet"],
    }
    KUBELET_DROP_INS = "/etc/kubernetes/kubelet.conf.d": {
        what: "What a machine has to add to the kubelet's configuration, in files named *.conf.",
        why: "A lab's machine, a container, needs settings that a real one does not.",
        upstream: "KubeletConfig objects",
        see: &["file./etc/kubernetes/kubelet.conf"],
    }
    KUBELET_CA = "/etc/kubernetes/kubelet-ca.crt": {
        what: "Whom the kubelet believes to be an API server that asks for logs or a shell.",
        why: "Nobody else may run commands in the node's pods.",
        upstream: "the same",
        see: &["cert.kubelet-client-signer", "port.10250"],
    }
    ETCD_DATA = "/var/lib/etcd": {
        what: "etcd's data, and beside it cluster.json: which cluster was founded here.",
        why: "All that the API has ever been told is here. A disk with another cluster's data is refused, not overwritten.",
        check: "cat /var/lib/etcd/cluster.json; etcdctl endpoint status in etcd's container",
        fails: &[
            "a slow disk: etcd holds elections under load; /var/log/openshift/first-boot.json has the measured fdatasync",
            "no room: etcd takes no writes; `seedling etcd free-space`",
        ],
        upstream: "the same, without cluster.json",
        see: &["component.etcd", "stage.wait-for-etcd", "command.etcd backup"],
    }
    JOURNAL = "/var/log/openshift/journal.jsonl": {
        what: "What was begun on this node, what came of it and when, a JSON line each.",
        why: "A bootkube that was killed continues from it; status, timeline and the service records are made of it.",
        check: "seedling node journal, or from outside seedling lab journal",
        upstream: "nothing; only the service records made of it",
        see: &["command.lab journal", "command.timeline"],
    }
    SERVICE_RECORDS = "/var/log/openshift": {
        what: "Service records, one JSON array a service, and the journal they are made of.",
        why: "`openshift-install analyze` reads them from a bundle and names the stage that failed.",
        check: "cat /var/log/openshift/bootkube.json",
        upstream: "the same format",
        see: &["file./var/log/openshift/journal.jsonl"],
    }
    API_LOGS = "/var/log/kube-apiserver": {
        what: "The API servers' audit logs: who changed what.",
        why: "After a failure, the one place that tells which program wrote an object.",
        upstream: "the same",
        see: &["component.kube-apiserver"],
    }
    NODE_BIN = "/usr/local/bin": {
        what: "Node software that Ignition fetches: kubelet, crictl, kubectl, containerd, seedling.",
        why: "Each with its checksum from the release, so a wrong byte never runs.",
        upstream: "part of the operating system's image",
        see: &["port.8080"],
    }
    NODE_SEEDLING = "/usr/local/bin/seedling": {
        what: "The node's own seedling.",
        why: "It runs the services, and in a static pod's container it waits for what the program there needs, and becomes that program.",
        upstream: "bootkube.sh and a dozen scripts beside it",
        see: &["component.bootkube", "command.stage verify"],
    }
    MCS_BOOTSTRAP = "/etc/mcs/bootstrap": {
        what: "Pools and rendered MachineConfigs that the bootstrap machine-config server serves.",
        why: "There is no API yet to ask for them.",
        check: "ls /etc/mcs/bootstrap/machine-pools",
        upstream: "the same",
        see: &["stage.mco-bootstrap", "component.machine-config-server"],
    }
    MCS_NODE_TOKENS = "/etc/mcs/node-tokens.json": {
        what: "The machines that the bootstrap machine-config server answers: digests of their tokens, and which are spent.",
        why: "A config holds a key for joining; only a machine of the inventory gets it, once.",
        upstream: "nothing: it answers whoever reaches it",
        see: &["port.22623", "command.node reissue"],
    }
    MCS_AUDIT_LOG = "/var/log/machine-config-server/audit.log": {
        what: "Who asked for a config, from where, and whether it was given, a JSON line each.",
        why: "A machine that does not come is seen here: it never asked, or it was refused.",
        upstream: "the server's log",
        see: &["component.machine-config-server"],
    }
    MCS_TLS = "/etc/ssl/mcs": {
        what: "The machine-config server's certificate and key on the bootstrap node.",
        why: "Every machine's pointer config trusts the CA that signed it.",
        upstream: "the same",
        see: &["cert.machine-config-server", "cert.root-ca"],
    }
    KUBELET_PULL_SECRET = "/var/lib/kubelet/config.json": {
        what: "The pull secret, as docker's config.json.",
        why: "The kubelet hands its credentials to containerd with each pull, and registry-mirrors shows them to mirrors.",
        check: "jq '.auths | keys' /var/lib/kubelet/config.json",
        fails: &["401 or `pull access denied`: it has no entry for the registry; pullSecret of the install-config"],
        upstream: "the same",
        see: &["component.registry-mirrors"],
    }
    REGISTRY_MIRRORS = "/etc/containerd/registry-mirrors.json": {
        what: "Which repositories have mirrors, where, and whether their source may be asked.",
        why: "Made of the cluster's ImageDigestMirrorSets; registry-mirrors.service works by it.",
        check: "cat /etc/containers/registries.conf has the same for people",
        upstream: "/etc/containers/registries.conf",
        see: &["component.registry-mirrors", "port.22625"],
    }
    USER_CA_BUNDLE = "/etc/pki/ca-trust/source/anchors/openshift-config-user-ca-bundle.crt": {
        what: "The install-config's additionalTrustBundle.",
        why: "update-ca-trust.service makes everything on the node trust it, before containerd starts.",
        check: "systemctl status update-ca-trust",
        fails: &["x509: certificate signed by unknown authority: the registry's or the proxy's CA is not in it"],
        upstream: "the same",
        see: &["component.update-ca-trust"],
    }
    PROXY_ENV = "/etc/mco/proxy.env": {
        what: "HTTP_PROXY, HTTPS_PROXY and NO_PROXY for the services that go out.",
        why: "A node behind a proxy has no other way out; what is the cluster's own is in NO_PROXY.",
        check: "systemctl show containerd -p EnvironmentFiles",
        fails: &["proxyconnect tcp: the proxy does not answer; an address in noProxy is asked directly"],
        upstream: "the same",
        see: &["component.containerd"],
    }
    CONTAINERD_SOCKET = "unix:///run/containerd/containerd.sock": {
        what: "Where containerd listens for the kubelet and crictl.",
        why: "crictl shows what runs when no API does.",
        check: "crictl info",
        upstream: "/var/run/crio/crio.sock",
        see: &["component.containerd"],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_path_says_what_it_is_and_why() {
        for row in TABLE {
            assert!(!row.text.what.is_empty() && !row.text.why.is_empty(), "{}", row.path);
        }
    }
}
