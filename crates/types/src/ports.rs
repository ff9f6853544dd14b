//! The one table of ports, each with its description.

use crate::description::{Description, Kind, Text};

pub struct Port {
    pub number: u16,
    /// For people: `explain port.mcs`.
    pub name: &'static str,
    pub protocol: &'static str,
    /// Who listens.
    pub server: &'static str,
    pub clients: &'static str,
    pub text: Text,
}

impl Port {
    pub fn describe(&self) -> Description {
        let described = Description::new(Kind::Port, self.number.to_string(), &self.text).also(self.name);
        described.fact("protocol", self.protocol).fact("listens", self.server).fact("asked by", self.clients)
    }
}

/// A port without a description cannot be written down.
macro_rules! ports {
    ($($constant:ident = $number:literal, $name:literal, $protocol:literal, $server:literal <- $clients:literal: $text:tt)+) => {
        $(pub const $constant: u16 = $number;)+
        pub const TABLE: &[Port] = &[$(ports!(@row $number, $name, $protocol, $server, $clients, $text)),+];
    };
    (@row $number:literal, $name:literal, $protocol:literal, $server:literal, $clients:literal, {$($field:ident: $value:expr),+ $(,)?}) => {
        Port {
            number: $number, name: $name, protocol: $protocol, server: $server, clients: $clients,
            text: Text { $($field: $value,)+ ..Text::EMPTY },
        }
    };
}

ports! {
    API = 6443, "api", "TCP, TLS", "kube-apiserver on every control-plane node; the load balancer" <- "kubelets, operators, people": {
        what: "The Kubernetes API.",
        why: "Everything in a cluster is told and asked through it: by api.CLUSTER from outside and api-int.CLUSTER from nodes.",
        check: "curl -k https://localhost:6443/readyz (ok); for the load balancer the same with its address",
        fails: &[
            "connection refused on the bootstrap node: kube-apiserver has not started; crictl logs of it says why, mostly etcd",
            "refused only through the load balancer: it has no healthy server; `seedling lab logs` shows its decisions",
            "x509: the name was not in the certificate, or the client trusts another CA: explain cert.kube-apiserver-lb-server",
        ],
        upstream: "the same; behind HAProxy, a cloud load balancer or keepalived",
        see: &["component.kube-apiserver", "component.load-balancer", "stage.kube-apiserver-bootstrap"],
    }
    MCS = 22623, "machine-config", "TCP, TLS", "machine-config server on the bootstrap node, later on masters; the load balancer" <- "machines in their first boot": {
        what: "The machine-config server, where a machine that joins fetches its Ignition config.",
        why: "A master's own Ignition file is only a pointer with this server's address and CA; all else comes from here.",
        check: "curl -k https://localhost:22623/healthz (200, empty)",
        fails: &[
            "connection refused until mco-bootstrap has run: machines in their first boot wait and ask again",
            "403: the token in the machine's pointer config is unknown or spent; `seedling node reissue NAME`",
        ],
        upstream: "the same; it answers whoever reaches it, ours only machines with a token",
        see: &["component.machine-config-server", "stage.mco-bootstrap", "cert.machine-config-server", "port.22624"],
    }
    MCS_LOOPBACK = 22624, "machine-config-loopback", "TCP", "machine-config server, on loopback only" <- "a person or a program on the node itself": {
        what: "The machine-config server without TLS.",
        why: "For an install of a single node, which reads its own config, and to look at what machines get.",
        check: "curl -i http://localhost:22624/healthz on the bootstrap node",
        fails: &["connection refused from another machine: it listens on loopback only"],
        upstream: "listens on all addresses",
        see: &["port.22623"],
    }
    ETCD_CLIENT = 2379, "etcd-clients", "TCP, TLS", "etcd on every control-plane node" <- "kube-apiserver, the etcd operator, etcdctl": {
        what: "etcd for its clients.",
        why: "API servers keep everything in etcd; each asks the member on its own node.",
        check: "etcdctl endpoint health in etcd's container",
        fails: &[
            "context deadline exceeded: the member has no leader; are two of three members on and reachable on 2380?",
            "bad certificate: the client's certificate is not signed by etcd-signer",
        ],
        upstream: "the same",
        see: &["component.etcd", "cert.etcd-client", "port.2380"],
    }
    ETCD_PEER = 2380, "etcd-peers", "TCP, TLS", "etcd on every control-plane node" <- "the other members": {
        what: "etcd for its members.",
        why: "Members agree on every write: a write counts when a majority has it on disk.",
        check: "etcdctl endpoint status --cluster in etcd's container: one leader, equal raft indexes",
        fails: &["a firewall between the masters, or between masters and bootstrap: the member stays a learner and etcd-join waits"],
        upstream: "the same",
        see: &["component.etcd", "cert.etcd-all-certs", "port.2379"],
    }
    ETCD_METRICS = 2381, "etcd-metrics", "TCP", "etcd, on loopback only" <- "the kubelet's probes": {
        what: "etcd's health and metrics without TLS.",
        why: "The kubelet's probes have no client certificate.",
        check: "curl http://localhost:2381/health on the node",
        fails: &["{\"health\":\"false\"}: the member has no leader, or its database is full"],
        upstream: "9978 to 9980, with TLS",
        see: &["component.etcd"],
    }
    KUBELET = 10250, "kubelet", "TCP, TLS", "kubelet on every node" <- "kube-apiserver": {
        what: "The kubelet.",
        why: "kubectl logs, exec and port-forward go through the API server to the kubelet.",
        check: "kubectl logs of any pod of the node",
        fails: &["x509 or `tls: internal error` in kubectl logs: the kubelet's serving certificate waits for approval; `seedling csr`"],
        upstream: "the same",
        see: &["component.kubelet", "cert.csr-signer"],
    }
    KUBE_CONTROLLER_MANAGER = 10257, "kube-controller-manager", "TCP, TLS", "kube-controller-manager on control-plane nodes" <- "the kubelet's probes": {
        what: "kube-controller-manager's health and metrics.",
        why: "The kubelet restarts one that hangs.",
        check: "curl -k https://localhost:10257/healthz (ok)",
        fails: &["refused on two of three masters is a fault; only the lease decides who works, all three answer"],
        upstream: "the same",
        see: &["component.kube-controller-manager"],
    }
    KUBE_SCHEDULER = 10259, "kube-scheduler", "TCP, TLS", "kube-scheduler on control-plane nodes" <- "the kubelet's probes": {
        what: "kube-scheduler's health and metrics.",
        why: "The kubelet restarts one that hangs.",
        check: "curl -k https://localhost:10259/healthz (ok)",
        fails: &["refused: its kubeconfig or certificate is not there yet; crictl logs of the container"],
        upstream: "the same",
        see: &["component.kube-scheduler"],
    }
    KUBE_PROXY_HEALTHZ = 10256, "kube-proxy", "TCP", "kube-proxy on every node" <- "the kubelet's probes, load balancers in front of nodes": {
        what: "kube-proxy's health.",
        why: "It answers once the node's Service rules are written.",
        check: "curl -i http://localhost:10256/healthz (200)",
        fails: &["503: the rules are older than what the API says; crictl logs of kube-proxy"],
        upstream: "OVN-Kubernetes takes its place",
        see: &["component.kube-proxy"],
    }
    NETWORK_CHECK = 9101, "network-check", "TCP", "network-check on every node" <- "the network and DNS operators": {
        what: "Whether Service addresses and cluster DNS answer on this node.",
        why: "A pod network that is configured is not yet one that works; the operators report what the nodes see.",
        check: "curl http://localhost:9101/ on the node: JSON with what works and what does not",
        fails: &["service not ok: kube-proxy has no rules yet; dns not ok: no DNS pod is ready on the node"],
        upstream: "openshift-network-diagnostics",
        see: &["component.network-check", "component.network-operator"],
    }
    HELPER_HTTP = 8080, "helper-http", "TCP", "helper" <- "machines in their first boot": {
        what: "The helper's files: Ignition configs and node software.",
        why: "A machine gets its Ignition config once, from its own address, and its programs with their checksums.",
        check: "curl -I http://HELPER:8080/bin/kubelet (200)",
        fails: &[
            "403 for an Ignition config: the machine has had it; `seedling helper open MACHINE` lets it ask again",
            "verification failed in the machine's Ignition log: a file is not the release's",
        ],
        upstream: "the web server that an administrator sets up for a bare-metal install",
        see: &["component.http", "command.helper open"],
    }
    HELPER_REGISTRY = 5000, "helper-registry", "TCP", "helper" <- "containerd and release-image.service on every node": {
        what: "The helper's registry with the release's images.",
        why: "A lab has no way out; every image comes from here, by digest, so a wrong byte never runs.",
        check: "curl http://HELPER:5000/v2/ (200)",
        fails: &["404 for a digest: the helper serves another release than the one the assets name"],
        upstream: "quay.io, or a mirror registry",
        see: &["component.registry", "component.release-image"],
    }
    REGISTRY_MIRRORS = 22625, "registry-mirrors", "TCP, on 127.0.0.1", "registry-mirrors.service on every node of a cluster with mirrors" <- "containerd and release-image.service on the same node": {
        what: "Images of registries that have mirrors.",
        why: "containerd's own mirrors are of whole registries and have no credentials; this maps repositories, and uses the node's pull secret.",
        check: "journalctl -u registry-mirrors: a line for each image, with the mirror that had it",
        fails: &[
            "403 with `nobody gives …`: each mirror is named with what it said, e.g. 401 or an unknown certificate authority",
            "403 with `name the image by digest`: mirrors are for digests, and the policy forbids to ask the source",
        ],
        upstream: "nothing: CRI-O maps names itself, by /etc/containers/registries.conf",
        see: &["component.registry-mirrors", "component.containerd", "file./etc/containerd/registry-mirrors.json"],
    }
    SSH = 22, "ssh", "TCP", "sshd on every node" <- "people, `verify`, `gather` and `preflight` of machines elsewhere": {
        what: "ssh to a node, as user core with the install-config's sshKey.",
        why: "A node that has not joined, or whose kubelet is broken, cannot be asked through the API; core may use sudo.",
        check: "ssh core@NODE sudo systemctl is-system-running",
        fails: &[
            "Permission denied (publickey): the install-config had no sshKey, or another; there are no passwords",
            "connection refused: the machine is still in its first boot; its console says how far",
        ],
        upstream: "the same",
        see: &["component.kubelet"],
    }
    DNS = 53, "dns", "UDP and TCP", "helper; CoreDNS at the cluster's DNS address" <- "nodes, pods": {
        what: "DNS.",
        why: "Nodes find api, api-int and each other by name; pods find Services.",
        check: "dig @HELPER api-int.CLUSTER on a node; nslookup kubernetes.default in a pod",
        fails: &[
            "api-int does not resolve: masters never ask for their config; resolve-api-int-url records it",
            "a wildcard *.CLUSTER also answers for api: connections go to the wrong machine",
        ],
        upstream: "the site's DNS server; CoreDNS in the cluster",
        see: &["component.dns", "component.cluster-dns", "stage.resolve-api-int-url"],
    }
    DHCP_SERVER = 67, "dhcp", "UDP", "helper" <- "machines": {
        what: "DHCP.",
        why: "A machine is known by its MAC address; DHCP gives it its address, name, DNS server and the URL of its Ignition config.",
        check: "`seedling lab logs`: DHCPDISCOVER and DHCPACK of each MAC",
        fails: &["no answer: the MAC is not in hosts.yaml; another DHCP server on the network answers first"],
        upstream: "the site's DHCP server",
        see: &["component.dhcp", "port.68"],
    }
    DHCP6_SERVER = 547, "dhcpv6", "UDP", "helper, if it has an IPv6 address" <- "machines": {
        what: "DHCPv6.",
        why: "In a cluster with IPv6 a machine has its IPv6 address and DNS server from here; the helper's router advertisements say so.",
        check: "`seedling lab logs`: SOLICIT and ADVERTISE of each MAC; ip -6 address and ip -6 route on the machine",
        fails: &[
            "no answer: the MAC is not in hosts.yaml, or its DUID has none and its link-local address is not made from it",
            "an address, and no way out: no router advertisement comes; the machine's accept_ra must be 2 where it forwards",
        ],
        upstream: "the site's DHCP server and router",
        see: &["component.dhcp", "port.67"],
    }
    TFTP = 69, "tftp", "UDP", "helper, if it has a boot image" <- "firmware of machines that boot over the network": {
        what: "TFTP: the boot loader that firmware can fetch.",
        why: "A network card's ROM speaks nothing better. It fetches iPXE here, which fetches the rest by HTTP.",
        check: "seedling helper status: which files each machine fetched",
        fails: &[
            "no answer: the machine is not in the inventory, or a firewall drops the answers, which come from another port",
            "PXE-E23 or file not found: the boot image has no undionly.kpxe or ipxe.efi; apt install ipxe, then build it again",
        ],
        upstream: "tftpd or dnsmasq, set up by hand",
        see: &["component.network-boot", "port.67", "port.8080"],
    }
    HTTP = 80, "http", "TCP", "the load balancer, with `ingress: true`" <- "people who use applications": {
        what: "The way to applications, without TLS.",
        why: "*.apps.CLUSTER leads to the helper, and it to the nodes that carry the routers.",
        check: "curl -I http://anything.apps.CLUSTER",
        fails: &["connections are closed: no worker listens on port 80, since nothing runs there that routes"],
        upstream: "the same, behind HAProxy",
        see: &["component.load-balancer", "port.443"],
    }
    HTTPS = 443, "https", "TCP, TLS", "the load balancer, with `ingress: true`" <- "people who use applications": {
        what: "The way to applications, with their own TLS.",
        why: "The bytes are relayed as they are: certificates belong to the routers.",
        check: "curl -kI https://anything.apps.CLUSTER",
        fails: &["connections are closed: no worker listens on port 443, since nothing runs there that routes"],
        upstream: "the same, behind HAProxy",
        see: &["component.load-balancer", "port.80"],
    }
    DHCP_CLIENT = 68, "dhcp-client", "UDP", "machines" <- "the helper's DHCP server": {
        what: "Where a machine hears the DHCP server's answer.",
        why: "It has no address yet, so the answer is sent to this port of everybody.",
        check: "`seedling lab status`: the machine has an address",
        fails: &["a firewall on the machine's switch that drops broadcasts"],
        upstream: "the same",
        see: &["port.67"],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_port_is_explained() {
        for port in TABLE {
            let text = &port.text;
            let empty = [text.what, text.why, text.check, text.upstream].iter().any(|t| t.is_empty());
            assert!(!empty && !text.fails.is_empty() && !text.see.is_empty(), "{}", port.number);
        }
    }
}
