//! No pod reaches the machine-config server, whichever way: at this node's address, at another's, or through a load balancer.
//!
//! A table of our own, which neither kube-proxy nor the pod network touches. What the host itself sends is not filtered: it passes
//! neither hook with a pod's address.

use ipnet::IpNet;
use seedling_types::ports;

pub const UNIT: &str = "machine-config-firewall.service";
pub const RULES: &str = "/etc/kubernetes/machine-config-firewall.nft";

/// The filter hooks see the address after a Service's was replaced, so a Service in front of the server does not help either. A
/// node forwards nobody's connection to these ports; to itself it refuses pods. Refused at once: a drop would look like a fault.
pub fn rules(pod_networks: &[IpNet]) -> String {
    let refused = format!("tcp dport {{ {}, {} }} reject with tcp reset", ports::MCS, ports::MCS_LOOPBACK);
    let from = |family: &str, v6: bool| {
        let of_family = pod_networks.iter().filter(|net| net.addr().is_ipv6() == v6).map(ToString::to_string);
        let pods = of_family.collect::<Vec<_>>().join(", ");
        if pods.is_empty() { String::new() } else { format!("    {family} saddr {{ {pods} }} {refused}\n") }
    };
    let pods = from("ip", false) + &from("ip6", true);
    format!(
        r#"# Declared and deleted first, so that loading it again replaces it, in one step.
table inet seedling_machine_config
delete table inet seedling_machine_config
table inet seedling_machine_config {{
  chain forward {{
    type filter hook forward priority filter; policy accept;
    {refused}
  }}
  chain input {{
    type filter hook input priority filter; policy accept;
{pods}  }}
}}
"#
    )
}

/// Before the first pod runs. nftables.service flushes everything, so it goes first where somebody uses it.
pub fn unit() -> String {
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
}
