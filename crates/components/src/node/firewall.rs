//! No pod reaches the machine-config server, whichever way: at this node's address, at another's, or through a load balancer.
//!
//! A table of our own, which neither kube-proxy nor the pod network touches. What the host itself sends is not filtered: it passes
//! neither hook with a pod's address.

use ipnet::Ipv4Net;
use seedling_types::ports;

pub const UNIT: &str = "machine-config-firewall.service";
pub const RULES: &str = "/etc/kubernetes/machine-config-firewall.nft";

/// The filter hooks see the address after a Service's was replaced, so a Service in front of the server does not help either. A
/// node forwards nobody's connection to these ports; to itself it refuses pods. Refused at once: a drop would look like a fault.
pub fn rules(pod_networks: &[Ipv4Net]) -> String {
    let pods = pod_networks.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let refused = format!("tcp dport {{ {}, {} }} reject with tcp reset", ports::MCS, ports::MCS_LOOPBACK);
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
    ip saddr {{ {pods} }} {refused}
  }}
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
    use std::net::Ipv4Addr;
    use std::process::{Command, Stdio};

    /// `unshare` gives nft a network of its own to check against.
    #[test]
    fn the_real_nft_takes_the_rules_twice() {
        let networks = [
            Ipv4Net::new_assert(Ipv4Addr::new(10, 128, 0, 0), 14),
            Ipv4Net::new_assert(Ipv4Addr::new(10, 8, 0, 0), 16),
        ];
        let script = format!(
            "for n in 1 2; do nft -f - <<'END' || exit 1\n{}END\ndone; nft list table inet seedling_machine_config",
            rules(&networks)
        );
        let run = Command::new("unshare").args(["--net", "sh", "-c", &script]).stdin(Stdio::null()).output();
        let run = run.unwrap_or_else(|e| panic!("unshare: {e}"));
        let said = String::from_utf8_lossy(&run.stdout).into_owned() + &String::from_utf8_lossy(&run.stderr);
        assert!(run.status.success(), "{said}");
        assert_eq!(said.matches("22623").count(), 2, "{said}");
    }
}
