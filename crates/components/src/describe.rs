//! What runs on nodes, in words: the control plane's programs, the services of systemd, the network. Operators and the helper's servers
//! are described where they are.

use seedling_types::description::{Named, Text};

const T: Text = Text::EMPTY;

pub const COMPONENTS: &[Named] = &[
    Named {
        name: "etcd",
        text: Text {
            what: "The database of the cluster: one member on each control-plane node, at first only on the bootstrap node.",
            why: "Everything the API has been told is in it. A write counts when a majority of members has it on disk, so one of three may be lost.",
            reads: &[
                "/etc/kubernetes/static-pod-resources/etcd-member/* (bootstrap)",
                "/etc/kubernetes/static-pod-resources/etcd-pod-*/* (masters)",
            ],
            writes: &["/var/lib/etcd/*"],
            check: "crictl exec $(crictl ps -q --name '^etcd$') etcdctl endpoint health --cluster; … member list -w table",
            fails: &[
                "no leader: fewer than a majority of members are on and reach each other on 2380",
                "a slow disk: fdatasync above 10 ms lets leaders lose their elections; /var/log/openshift/first-boot.json",
                "a clock that is off by minutes: certificates are not valid yet, or no longer",
            ],
            upstream: "the same etcd, rendered by cluster-etcd-operator",
            see: &[
                "stage.etcd-bootstrap",
                "component.etcd-operator",
                "port.2379",
                "port.2380",
                "cert.etcd-all-certs",
                "file./var/lib/etcd",
            ],
        },
    },
    Named {
        name: "kube-apiserver",
        text: Text {
            what: "The Kubernetes API: first a temporary one on the bootstrap node, then one on each master.",
            why: "Nodes, operators and people meet only here.",
            reads: &[
                "etcd on localhost:2379",
                "/etc/kubernetes/bootstrap-secrets/* (bootstrap)",
                "/etc/kubernetes/static-pod-resources/kube-apiserver-pod-*/* (masters)",
            ],
            writes: &["etcd", "/var/log/kube-apiserver/*"],
            check: "curl -k https://localhost:6443/readyz?verbose",
            fails: &[
                "it gives up after 20 s without etcd: wait-for-etcd goes first",
                "`certificate has expired` on a cluster that was off for long: seedling certs recover",
            ],
            upstream: "the same kube-apiserver, rendered by cluster-kube-apiserver-operator",
            see: &[
                "stage.kube-apiserver-bootstrap",
                "component.kube-apiserver-operator",
                "port.6443",
                "component.etcd",
            ],
        },
    },
    Named {
        name: "kube-controller-manager",
        text: Text {
            what: "Kubernetes' controllers: they sign certificates, make service accounts, and turn Deployments and DaemonSets into pods.",
            why: "Objects are only wishes; these make them come true. All run, one leads.",
            reads: &["the API", "the csr-signer's key"],
            writes: &["the API"],
            check: "kubectl -n kube-system get lease kube-controller-manager: who leads, and since when",
            fails: &[
                "certificates are Approved and never Issued, Deployments have no pods: none leads; crictl logs of it",
            ],
            upstream: "the same, with the cluster-policy-controller beside it",
            see: &[
                "stage.kube-controller-manager-bootstrap",
                "component.kube-controller-manager-operator",
                "port.10257",
                "cert.csr-signer",
            ],
        },
    },
    Named {
        name: "kube-scheduler",
        text: Text {
            what: "Gives each pod a node.",
            why: "Operators are pods: without it not even they run.",
            reads: &["the API"],
            writes: &["the API: pods' nodes"],
            check: "kubectl -n kube-system get lease kube-scheduler",
            fails: &[
                "pods Pending with an event: no node fits (taints, resources); Pending without an event: no scheduler leads",
            ],
            upstream: "the same",
            see: &["stage.kube-scheduler-bootstrap", "component.kube-scheduler-operator", "port.10259"],
        },
    },
    Named {
        name: "machine-config-server",
        text: Text {
            what: "Hands joining machines their Ignition config, to each once, by its token.",
            why: "A master knows nothing but this server's address and CA. On bootstrap it serves from files, on masters from the API.",
            reads: &["/etc/mcs/bootstrap/*", "/etc/mcs/node-tokens.json", "/etc/ssl/mcs/tls.*"],
            writes: &["/var/log/machine-config-server/audit.log"],
            check: "curl -k https://localhost:22623/healthz; its audit.log has who asked",
            fails: &[
                "a machine's Ignition log says 403: its token is spent or unknown; seedling node reissue NAME",
                "no line of a machine in audit.log: it never reached the server; DNS of api-int, load balancer, firewall",
            ],
            upstream: "machine-config-server of the machine-config operator; it answers whoever reaches it",
            see: &[
                "stage.mco-bootstrap",
                "port.22623",
                "cert.machine-config-server",
                "component.machine-config-operator",
            ],
        },
    },
    Named {
        name: "kubelet",
        text: Text {
            what: "kubelet.service: runs pods on a node, static ones from files and others from the API.",
            why: "On the bootstrap node it knows no API at all: it only turns files into pods. That is how something starts from nothing.",
            reads: &[
                "/etc/kubernetes/manifests/*",
                "/etc/kubernetes/kubelet.conf",
                "/var/lib/kubelet/kubeconfig",
            ],
            writes: &["/var/lib/kubelet/*", "/var/log/pods/*"],
            check: "journalctl -u kubelet; kubectl get nodes",
            fails: &[
                "Node is NotReady: no CNI config yet (the network operator has not come so far), or the disk is full",
                "Unauthorized: its certificate has ended or belongs to another cluster; seedling csr",
            ],
            upstream: "the same kubelet, with CRI-O",
            see: &[
                "component.kubelet-join",
                "component.containerd",
                "port.10250",
                "file./etc/kubernetes/manifests",
            ],
        },
    },
    Named {
        name: "kubelet-join",
        text: Text {
            what: "What kubelet.service runs first on a joining node: it asks for the kubelet's certificate and waits until it is issued.",
            why: "A kubelet that starts without one asks with growing pauses; this asks at once and says what it waits for.",
            reads: &["/etc/kubernetes/kubeconfig"],
            writes: &["/var/lib/kubelet/kubeconfig", "/var/lib/kubelet/pki/*"],
            check: "seedling node journal on the node; seedling csr",
            fails: &[
                "the request stays Pending: the node is not in hosts.yaml, or its token was not its own; seedling csr says why",
            ],
            upstream: "the kubelet's own TLS bootstrap",
            see: &[
                "cert.kubelet-client",
                "cert.csr-signer",
                "component.approve-csr",
                "component.machine-approver",
            ],
        },
    },
    Named {
        name: "kubelet-recover",
        text: Text {
            what: "kubelet-recover.service: asks for a new certificate if the old one ended while the node was off.",
            why: "The kubelet renews its certificate only while that is valid.",
            reads: &["/var/lib/kubelet/pki/*"],
            writes: &["/var/lib/kubelet/pki/*"],
            check: "systemctl status kubelet-recover",
            fails: &["it waits for the API: recover a master first, with seedling certs recover"],
            upstream: "oc adm certificate approve, by hand",
            see: &["command.certs recover", "component.kubelet"],
        },
    },
    Named {
        name: "containerd",
        text: Text {
            what: "containerd.service: pulls images and runs containers for the kubelet.",
            why: "crictl shows what it runs, also when no API answers.",
            reads: &["/etc/containerd/*"],
            writes: &["/var/lib/containerd/*"],
            check: "crictl ps -a; crictl images",
            fails: &[
                "ErrImagePull: the helper's registry is not reached, or has no such digest; a full /var/lib/containerd",
            ],
            upstream: "CRI-O",
            see: &["component.kubelet", "component.registry", "port.5000"],
        },
    },
    Named {
        name: "registry-mirrors",
        text: Text {
            what: "registry-mirrors.service, on every node of a cluster with mirrors: finds an image's mirror for containerd.",
            why: "Mirror sets are of repositories, with any name on the mirror and its own credentials; containerd's hosts.toml has neither.",
            reads: &["/etc/containerd/registry-mirrors.json", "/var/lib/kubelet/config.json"],
            writes: &[],
            check: "journalctl -u registry-mirrors",
            fails: &["`nobody gives …`: its log and the pod's event name each mirror with what it said"],
            upstream: "a part of CRI-O",
            see: &["component.containerd", "port.22625"],
        },
    },
    Named {
        name: "update-ca-trust",
        text: Text {
            what: "update-ca-trust.service: adds the install-config's additionalTrustBundle to what the node trusts.",
            why: "A registry or a proxy with a private CA is refused by everything that does not know the CA.",
            reads: &["/etc/pki/ca-trust/source/anchors/*"],
            writes: &["/etc/ssl/certs/*"],
            check: "systemctl status update-ca-trust",
            fails: &["it has not run before containerd was started: systemctl restart containerd"],
            upstream: "coreos-update-ca-trust.service",
            see: &["component.containerd"],
        },
    },
    Named {
        name: "bootkube",
        text: Text {
            what: "bootkube.service, on the bootstrap node: works the stages of the plan from the first to the last.",
            why: "It grows the temporary control plane and hands it over. Killed anywhere, it continues where it was.",
            reads: &["/opt/openshift/*"],
            writes: &[
                "/etc/kubernetes/manifests/*",
                "/opt/openshift/*.done",
                "/var/log/openshift/journal.jsonl",
            ],
            check: "seedling stage list; journalctl -u bootkube.service",
            fails: &[
                "it stops at a stage: the last line says which condition was unmet, what was seen and what to run next",
            ],
            upstream: "bootkube.service with /usr/local/bin/bootkube.sh",
            see: &["stage.1", "command.bootkube", "command.stage verify", "seed.002.1"],
        },
    },
    Named {
        name: "release-image",
        text: Text {
            what: "release-image.service, on the bootstrap node: fetches the release's manifests from the registry, by digest.",
            why: "bootkube renders from them: custom resource definitions and the version operator's objects.",
            reads: &["/opt/openshift/release.json"],
            writes: &["/opt/openshift/release-manifests/*"],
            check: "ls /opt/openshift/release-manifests",
            fails: &["no answer from the registry: port 5000 of the helper"],
            upstream: "release-image.service, which pulls the image with podman",
            see: &["condition.release-image", "stage.api-bootstrap", "port.5000", "seed.003.2"],
        },
    },
    Named {
        name: "approve-csr",
        text: Text {
            what: "approve-csr.service, on the bootstrap node: approves the certificates of machines that are in hosts.yaml.",
            why: "Until a master runs the machine approver, somebody must; and not for whoever asks.",
            reads: &["/opt/openshift/hosts.yaml", "the API: requests"],
            writes: &["the API: approvals, nodes' labels, spent tokens"],
            check: "seedling csr",
            fails: &["a request that is not of the inventory stays Pending, with the reason in its log"],
            upstream: "approve-csr.sh, which approves everything",
            see: &["component.machine-approver", "component.kubelet-join"],
        },
    },
    Named {
        name: "progress",
        text: Text {
            what: "progress.service, on the bootstrap node: reports that bootstrapping is complete.",
            why: "Whoever waits (`wait-for bootstrap-complete`, the etcd operator) reads ConfigMap kube-system/bootstrap.",
            reads: &["/opt/openshift/.bootkube.done"],
            writes: &["ConfigMap kube-system/bootstrap"],
            check: "kubectl -n kube-system get configmap bootstrap -o yaml",
            fails: &["it waits until two masters' API servers have a revision"],
            upstream: "progress.service with report-progress.sh",
            see: &[
                "condition.bootkube-done",
                "condition.highly-available",
                "command.wait-for bootstrap-complete",
            ],
        },
    },
    Named {
        name: "first-boot",
        text: Text {
            what: "seedling-first-boot.service, on every node: measures the disk and compares the clock, once.",
            why: "A slow disk and a wrong clock are the most frequent causes of a bring-up that fails much later.",
            writes: &["/var/log/openshift/first-boot.json"],
            check: "cat /var/log/openshift/first-boot.json",
            fails: &["its findings are warnings: lab up prints them"],
            upstream: "nothing",
            see: &["component.etcd"],
            ..T
        },
    },
    Named {
        name: "machine-config-firewall",
        text: Text {
            what: "machine-config-firewall.service, on every node: no pod reaches the machine-config server.",
            why: "A config holds a key for joining the cluster.",
            reads: &["/etc/kubernetes/machine-config-firewall.nft"],
            check: "nft list table inet seedling_machine_config",
            fails: &[
                "nftables.service was reloaded and flushed everything: it is part of it and starts again",
            ],
            upstream: "OVN-Kubernetes' ACLs for 22623 and 22624",
            see: &["port.22623", "component.helper-firewall"],
            ..T
        },
    },
    Named {
        name: "helper-firewall",
        text: Text {
            what: "helper-firewall.service, on every node: no pod reaches the helper's files and images.",
            why: "From there a pod looks like its node, which may have what a pod may not.",
            check: "nft list set inet seedling_machine_config helper",
            fails: &["the helper's name does not resolve: the set stays empty"],
            upstream: "nothing",
            see: &["component.machine-config-firewall", "component.http"],
            ..T
        },
    },
    Named {
        name: "installer",
        text: Text {
            what: "An installer pod: writes the files of one revision of a static pod on one master, then its manifest.",
            why: "Operators run as pods and change files on a master through it, one master after the other.",
            reads: &["Secrets and ConfigMaps of the revision"],
            writes: &["/etc/kubernetes/static-pod-resources/*", "/etc/kubernetes/manifests/*"],
            check: "kubectl get pods -A | grep installer; seedling lab journal --node NODE",
            fails: &["it is not allowed to read a Secret yet: it waits, and says which"],
            upstream: "library-go's installer pods",
            see: &[
                "component.etcd-operator",
                "component.kube-apiserver-operator",
                "file./etc/kubernetes/static-pod-resources",
            ],
        },
    },
    Named {
        name: "flannel",
        text: Text {
            what: "The pod network: a subnet for each node, and routes to the others' (host-gw).",
            why: "Pods of different nodes reach each other without translation.",
            reads: &["the API: nodes' subnets"],
            writes: &["/run/flannel/subnet.env", "/etc/cni/net.d/*"],
            check: "ip route on a node: one route for each other node",
            fails: &["nodes in different networks: host-gw needs them on one"],
            upstream: "OVN-Kubernetes",
            see: &["component.network-operator", "component.network-check"],
        },
    },
    Named {
        name: "kube-proxy",
        text: Text {
            what: "Services: rules of nftables on each node that lead a Service's address to its pods.",
            why: "Pods find each other under addresses that stay.",
            reads: &["the API: Services and EndpointSlices"],
            writes: &["nftables"],
            check: "curl -i http://localhost:10256/healthz on the node",
            fails: &["a Service does not answer and its pods do: nft list table ip kube-proxy"],
            upstream: "OVN-Kubernetes",
            see: &["component.network-operator", "port.10256"],
        },
    },
    Named {
        name: "cluster-dns",
        text: Text {
            what: "CoreDNS on every node, behind one Service address.",
            why: "Pods find Services by name.",
            reads: &["the API: Services"],
            check: "nslookup kubernetes.default in a pod",
            fails: &[
                "names outside the cluster do not resolve: it asks the node's own DNS server, the helper",
            ],
            upstream: "the same, in openshift-dns",
            see: &["component.dns-operator", "port.53"],
            ..T
        },
    },
    Named {
        name: "network-check",
        text: Text {
            what: "Asks on every node whether Service addresses and cluster DNS answer, and writes the CNI config when the pod network is there.",
            why: "A network that is configured is not yet one that works; the operators report what nodes see.",
            reads: &["/run/flannel/subnet.env"],
            writes: &["/etc/cni/net.d/*"],
            check: "curl http://localhost:9101/readyz on a node",
            fails: &["it reports which of the two does not answer, and since when"],
            upstream: "openshift-network-diagnostics",
            see: &["port.9101", "component.network-operator"],
        },
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_component_is_explained() {
        for Named { name, text } in COMPONENTS {
            let empty = [text.what, text.why, text.check, text.upstream].iter().any(|t| t.is_empty());
            assert!(!empty && !text.fails.is_empty() && !text.see.is_empty(), "{name}");
        }
    }
}
