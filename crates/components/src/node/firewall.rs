//! No pod reaches the machine-config server, whichever way: at this node's address, at another's, or through a load balancer. Nor
//! the helper's files and images: from there it looks like its node, which may have what a pod may not.
//!
//! A table of our own, which neither kube-proxy nor the pod network touches. What the host itself sends is not filtered: it passes
//! neither hook with a pod's address.

use ipnet::IpNet;
use seedling_types::ports;

pub(super) const UNIT: &str = "machine-config-firewall.service";
pub(super) const RULES: &str = "/etc/kubernetes/machine-config-firewall.nft";
pub(super) const HELPER_UNIT: &str = "helper-firewall.service";
const TABLE: &str = "inet seedling_machine_config";

/// The filter hooks see the address after a Service's was replaced, so a Service in front of the server does not help either. A
/// node forwards nobody's connection to these ports; to itself it refuses pods. Refused at once: a drop would look like a fault.
pub(super) fn rules(pod_networks: &[IpNet]) -> String {
    let refused = format!("tcp dport {{ {}, {} }} reject with tcp reset", ports::MCS, ports::MCS_LOOPBACK);
    let from = |family: &str, v6: bool| {
        let of_family = pod_networks.iter().filter(|net| net.addr().is_ipv6() == v6).map(ToString::to_string);
        let pods = of_family.collect::<Vec<_>>().join(", ");
        if pods.is_empty() { String::new() } else { format!("    {family} saddr {{ {pods} }} {refused}\n") }
    };
    let pods = from("ip", false) + &from("ip6", true);
    let (http, registry) = (ports::HELPER_HTTP, ports::HELPER_REGISTRY);
    let (set6, rule6) = match pod_networks.iter().any(|network| network.addr().is_ipv6()) {
        true => (
            "  set helper6 {\n    type ipv6_addr;\n  }\n".to_string(),
            format!("    ip6 daddr @helper6 tcp dport {{ {http}, {registry} }} reject with tcp reset\n"),
        ),
        false => Default::default(),
    };
    format!(
        r#"# Declared and deleted first, so that loading it again replaces it, in one step.
table {TABLE}
delete table {TABLE}
table {TABLE} {{
  set helper {{
    type ipv4_addr;
  }}
{set6}  chain forward {{
    type filter hook forward priority filter; policy accept;
    {refused}
    ip daddr @helper tcp dport {{ {http}, {registry} }} reject with tcp reset
{rule6}  }}
  chain input {{
    type filter hook input priority filter; policy accept;
{pods}  }}
}}
"#
    )
}

/// Before the first pod runs. nftables.service flushes everything, so it goes first where somebody uses it.
pub(super) fn unit() -> String {
    format!(
        r#"[Unit]
Description=Keep pods away from the machine-config server
After=nftables.service
Before=kubelet.service containerd.service
PartOf=nftables.service

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/usr/sbin/nft -f {RULES}

[Install]
WantedBy=multi-user.target
"#
    )
}

/// The helper is known by its name; a unit of its own, so that a name that is not known yet takes nothing else away. Tried until it is.
///
/// `v4`, `v6`: the families that pods have.
pub(super) fn helper_unit(helper: &str, v4: bool, v6: bool) -> String {
    let add = |set: &str| format!("ExecStart=/usr/sbin/nft add element {TABLE} {set} {{ {helper} }}\n");
    let add =
        if v4 { add("helper") } else { String::new() } + &if v6 { add("helper6") } else { String::new() };
    format!(
        r#"[Unit]
Description=Keep pods away from the helper
Requires={UNIT}
After={UNIT}
PartOf={UNIT}
StartLimitIntervalSec=0

[Service]
Type=oneshot
RemainAfterExit=yes
{add}Restart=on-failure
RestartSec=2

[Install]
WantedBy=multi-user.target
"#
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, Ipv6Addr};
    use std::process::{Command, Stdio};

    /// `unshare` gives nft a network of its own to check against.
    #[test]
    fn the_real_nft_takes_the_rules_twice() {
        let networks = [
            IpNet::new_assert(Ipv4Addr::new(10, 128, 0, 0).into(), 14),
            IpNet::new_assert(Ipv4Addr::new(10, 8, 0, 0).into(), 16),
            IpNet::new_assert(Ipv6Addr::new(0xfd01, 0, 0, 0, 0, 0, 0, 0).into(), 48),
        ];
        let script = format!(
            "for n in 1 2; do nft -f - <<'END' || exit 1\n{}END\ndone; nft list table inet seedling_machine_config",
            rules(&networks)
        );
        let run = Command::new("unshare").args(["--net", "sh", "-c", &script]).stdin(Stdio::null()).output();
        let run = run.unwrap_or_else(|e| panic!("unshare: {e}"));
        let said = String::from_utf8_lossy(&run.stdout).into_owned() + &String::from_utf8_lossy(&run.stderr);
        assert!(run.status.success(), "{said}");
        assert_eq!(said.matches("22623").count(), 3, "{said}");
    }
    /// A pod behind a node, and the helper beside it: the pod's packets are forwarded, the node's are its own.
    #[test]
    fn a_pod_does_not_reach_the_helper_and_its_node_does() {
        let pods = [IpNet::new_assert(Ipv4Addr::new(10, 128, 0, 0).into(), 14)];
        let unit = helper_unit("192.168.100.1", true, false);
        let add = unit.lines().find_map(|line| line.strip_prefix("ExecStart=/usr/sbin/")).unwrap_or_default();
        let script = format!(
            r#"
set -e
ip link set lo up
pod=$(mktemp -u /run/netns/fw-pod-XXXXXX); helper=$(mktemp -u /run/netns/fw-helper-XXXXXX)
pod=${{pod##*/}}; helper=${{helper##*/}}
trap 'ip netns pids $helper | xargs -r kill; ip netns del $pod; ip netns del $helper' EXIT
ip netns add $pod; ip netns add $helper
ip link add p0 type veth peer name eth0 netns $pod; ip link add h0 type veth peer name eth0 netns $helper
ip addr add 10.128.0.1/24 dev p0; ip link set p0 up
ip addr add 192.168.100.11/24 dev h0; ip link set h0 up
ip -n $pod addr add 10.128.0.2/24 dev eth0; ip -n $pod link set eth0 up; ip -n $pod route add default via 10.128.0.1
ip -n $helper addr add 192.168.100.1/24 dev eth0; ip -n $helper link set eth0 up; ip -n $helper link set lo up
ip -n $helper route add default via 192.168.100.11
echo 1 > /proc/sys/net/ipv4/ip_forward
nft -f - <<'END'
{rules}END
{add}
for port in 8080 5000 6443; do ip netns exec $helper busybox nc -ll -p $port -e /bin/echo hello & done
ask() {{ # ask NAMESPACE PORT
  $1 busybox timeout 2 busybox nc -w 1 192.168.100.1 $2 </dev/null || true
}}
until [ "$(ask "" 6443)" = hello ]; do :; done
until [ "$(ask "" 8080)" = hello ] && [ "$(ask "" 5000)" = hello ]; do :; done
for port in 8080 5000 6443; do echo "pod $port: $(ask "ip netns exec $pod" $port)"; done
"#,
            rules = rules(&pods)
        );
        let run = Command::new("timeout")
            .args(["60", "unshare", "--net", "sh", "-c", &script])
            .stdin(Stdio::null())
            .output();
        let run = run.unwrap_or_else(|e| panic!("unshare: {e}"));
        let said = String::from_utf8_lossy(&run.stdout).into_owned() + &String::from_utf8_lossy(&run.stderr);
        assert!(run.status.success(), "{said}");
        assert!(said.contains("pod 8080: \n") && said.contains("pod 5000: \n"), "{said}");
        assert!(said.contains("pod 6443: hello\n"), "{said}");
    }
}
