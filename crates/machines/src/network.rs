//! A lab's network: one namespace with the bridge, where the helper lives, and one namespace a node, joined by veth pairs.
//!
//! Nothing of it exists in the machine's own namespace: no address, no route, no rule.

use crate::run::{Result, run, run_with};
use std::net::IpAddr;
use std::path::{Path, PathBuf};

/// The bridge inside the lab's namespace; the helper serves DHCP on it.
pub const BRIDGE: &str = "br0";
/// The node's network card inside its namespace.
pub const CARD: &str = "eth0";
/// Fixed, because a bridge without one takes the lowest of its ports: nodes would resolve it again as others appear.
const BRIDGE_MAC: &str = "52:54:00:5e:ed:01";
/// The bridge's link-local address: machines learn from router advertisements that it is their way out.
const ROUTER: &str = "fe80::1/64";
/// The kernel's limit for interface names.
const IFNAME_MAX: usize = 15;

#[derive(Clone, Debug)]
pub struct Network {
    lab: String,
}

impl Network {
    pub fn of_lab(lab: &str) -> Self {
        Self { lab: lab.into() }
    }

    pub fn namespace(&self) -> String {
        format!("seedling-{}", self.lab)
    }

    pub fn node_namespace(&self, node: &str) -> String {
        format!("seedling-{}-{node}", self.lab)
    }

    /// The namespace and the bridge with the helper's addresses. Done again, it changes nothing.
    pub async fn ensure_bridge(&self, addresses: &[(IpAddr, u8)]) -> Result<()> {
        let namespace = self.namespace();
        ensure_namespace(&namespace).await?;
        let bridge = "type bridge stp_state 0 forward_delay 0 mcast_snooping 0";
        if !has_link(&namespace, BRIDGE).await {
            let batch = format!(
                "link set lo up\n\
                 link add {BRIDGE} address {BRIDGE_MAC} {bridge}\n"
            );
            run_with("ip", &["-n", &namespace, "-batch", "-"], &batch).await?;
        }
        // Nobody else can have them: the kernel need not ask around for seconds before they can be used.
        let mut batch = String::new();
        for (address, prefix) in addresses {
            match address {
                IpAddr::V4(_) => batch += &format!("address replace {address}/{prefix} dev {BRIDGE}\n"),
                IpAddr::V6(_) => {
                    batch += &format!(
                        "link set {BRIDGE} addrgenmode none\naddress replace {ROUTER} dev {BRIDGE} nodad\n"
                    );
                    batch += &format!("address replace {address}/{prefix} dev {BRIDGE} nodad\n");
                }
            }
        }
        batch += &format!("link set {BRIDGE} up\n");
        run_with("ip", &["-n", &namespace, "-batch", "-"], &batch).await.map(drop)
    }

    /// The node's namespace with its card plugged into the bridge.
    pub async fn ensure_node(&self, node: &str, mac: &str) -> Result<()> {
        let (bridge_side, node_side) = (self.namespace(), self.node_namespace(node));
        ensure_namespace(&node_side).await?;
        let port = port_name(node, mac);
        if !has_link(&node_side, CARD).await {
            let pair = format!(
                "link add name {port} netns {bridge_side} type veth \
                 peer name {CARD} address {mac} netns {node_side}\n"
            );
            run_with("ip", &["-batch", "-"], &pair).await?;
        }
        let plug = format!("link set {port} master {BRIDGE} up\n");
        run_with("ip", &["-n", &bridge_side, "-batch", "-"], &plug).await.map(drop)
    }

    /// A port of the bridge for a machine that brings its own card: QEMU opens it.
    pub async fn ensure_tap(&self, node: &str, mac: &str) -> Result<()> {
        let (namespace, port) = (self.namespace(), port_name(node, mac));
        if !has_link(&namespace, &port).await {
            run("ip", ["-n", &namespace, "tuntap", "add", "mode", "tap", "name", &port]).await?;
        }
        let plug = format!("link set {port} master {BRIDGE} up\n");
        run_with("ip", &["-n", &namespace, "-batch", "-"], &plug).await.map(drop)
    }

    /// Of a lab that has none any more, nothing is left to be removed.
    pub async fn remove_tap(&self, node: &str, mac: &str) -> Result<()> {
        let (namespace, port) = (self.namespace(), port_name(node, mac));
        match namespace_path(&namespace).exists() && has_link(&namespace, &port).await {
            true => run("ip", ["-n", &namespace, "link", "delete", &port]).await.map(drop),
            false => Ok(()),
        }
    }

    /// Pulls the node's cable, or puts it back.
    pub async fn plug(&self, node: &str, mac: &str, plugged: bool) -> Result<()> {
        let state = if plugged { "up" } else { "down" };
        run("ip", ["-n", &self.namespace(), "link", "set", &port_name(node, mac), state]).await.map(drop)
    }

    /// Loads nftables rules where a machine is, or the helper (`None`): nowhere but in that namespace.
    pub async fn load_rules(&self, node: Option<&str>, rules: &str) -> Result<()> {
        let namespace = node.map_or_else(|| self.namespace(), |node| self.node_namespace(node));
        let enter = format!("--net={}", namespace_path(&namespace).display());
        run_with("nsenter", &[&enter, "nft", "-f", "-"], rules).await.map(drop)
    }

    /// A new namespace in place of the old: a machine that boots has forgotten its routes, bridges and firewall.
    pub async fn renew_node(&self, node: &str, mac: &str) -> Result<()> {
        let bridge_side = self.namespace();
        let port = port_name(node, mac);
        // A deleted namespace takes its end of the cable along only some time later; unplugging takes both at once.
        if has_link(&bridge_side, &port).await {
            run_with("ip", &["-n", &bridge_side, "-batch", "-"], &format!("link delete {port}\n")).await?;
        }
        self.remove_node(node).await?;
        self.ensure_node(node, mac).await
    }

    pub async fn remove_node(&self, node: &str) -> Result<()> {
        remove_namespace(&self.node_namespace(node)).await
    }

    pub async fn remove_bridge(&self) -> Result<()> {
        remove_namespace(&self.namespace()).await
    }
}

pub fn namespace_path(namespace: &str) -> PathBuf {
    Path::new("/run/netns").join(namespace)
}

/// Readable where the kernel's limit allows it, else unique by the MAC address.
pub(crate) fn port_name(node: &str, mac: &str) -> String {
    match format!("v-{node}") {
        name if name.len() <= IFNAME_MAX => name,
        _ => format!("v{}", mac.replace(':', "")),
    }
}

async fn ensure_namespace(namespace: &str) -> Result<()> {
    if namespace_path(namespace).exists() {
        // `ip netns add` that was killed half way leaves a plain file that is no namespace.
        if run("ip", ["-n", namespace, "link", "show", "lo"]).await.is_ok() {
            return Ok(());
        }
        remove_namespace(namespace).await?;
    }
    run("ip", ["netns", "add", namespace]).await.map(drop)
}

async fn has_link(namespace: &str, link: &str) -> bool {
    run("ip", ["-n", namespace, "link", "show", "dev", link]).await.is_ok()
}

async fn remove_namespace(namespace: &str) -> Result<()> {
    if !namespace_path(namespace).exists() {
        return Ok(());
    }
    match run("ip", ["netns", "delete", namespace]).await {
        // An `ip netns add` whose `up` was killed takes its file back when it fails in this moment.
        Err(_) if !namespace_path(namespace).exists() => Ok(()),
        deleted => deleted.map(drop),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn port_names_fit_the_kernel() {
        let mac = "52:54:00:00:00:0b";
        assert_eq!(port_name("master-0", mac), "v-master-0");
        let long = port_name("a-rather-long-host-name", mac);
        assert_eq!(long, "v52540000000b");
        assert!(long.len() <= IFNAME_MAX);
    }
}
