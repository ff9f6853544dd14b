//! The node's CNI config, from the range that flannel got for it.
//!
//! Written only after flannel's routes and masquerade rules are in place, so a pod that starts has a network that works.

use ipnet::Ipv4Net;
use seedling_components::network::{CNI_CONFIG, SUBNET_FILE, cni_config};
use std::path::Path;
use std::time::Duration;

const UNTIL_THERE: Duration = Duration::from_millis(100);
/// A node that was deleted and joined again has another range.
const AGAIN: Duration = Duration::from_secs(5);

/// Keeps the config in step with the subnet file; `written` is called after each write.
pub(crate) async fn keep(written: impl Fn(Ipv4Net, u32)) {
    let mut current = None;
    loop {
        let subnet = std::fs::read_to_string(SUBNET_FILE).ok().and_then(|text| parse(&text));
        if let Some((subnet, mtu)) = subnet
            && current != Some((subnet, mtu))
        {
            let content = format!("{:#}\n", cni_config(subnet, mtu));
            match seedling_steps::write_atomic(Path::new(CNI_CONFIG), content, 0o644) {
                Ok(()) => {
                    tracing::info!("{CNI_CONFIG}: {subnet}, mtu {mtu}");
                    current = Some((subnet, mtu));
                    written(subnet, mtu);
                }
                Err(e) => tracing::warn!("writing {CNI_CONFIG}: {e}"),
            }
        }
        tokio::time::sleep(if current.is_some() { AGAIN } else { UNTIL_THERE }).await;
    }
}

/// flannel's `FLANNEL_SUBNET` and `FLANNEL_MTU`.
fn parse(text: &str) -> Option<(Ipv4Net, u32)> {
    let value = |key: &str| text.lines().find_map(|l| l.trim().strip_prefix(key)?.strip_prefix('='));
    Some((value("FLANNEL_SUBNET")?.parse().ok()?, value("FLANNEL_MTU")?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    #[test]
    fn reads_flannels_file() {
        let text = "FLANNEL_NETWORK=10.128.0.0/14\nFLANNEL_SUBNET=10.128.2.1/23\nFLANNEL_MTU=1500\nFLANNEL_IPMASQ=true\n";
        let (subnet, mtu) = super::parse(text).unwrap_or_default();
        assert_eq!((subnet.to_string().as_str(), mtu), ("10.128.2.1/23", 1500));
        assert_eq!(super::parse("FLANNEL_SUBNET=10.128.2.1/23\n"), None);
    }
}
