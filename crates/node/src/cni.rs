//! The node's CNI config, from the range that flannel got for it.
//!
//! Written only after flannel's routes and masquerade rules are in place, so a pod that starts has a network that works.

use ipnet::IpNet;
use seedling_components::network::{CNI_CONFIG, SUBNET_FILE, cni_config};
use std::path::Path;
use std::time::Duration;

const UNTIL_THERE: Duration = Duration::from_millis(100);
/// A node that was deleted and joined again has another range.
const AGAIN: Duration = Duration::from_secs(5);

/// Keeps the config in step with the subnet file; `written` is called after each write.
pub(crate) async fn keep(written: impl Fn(&[IpNet], u32)) {
    let mut current = None;
    loop {
        let subnet = std::fs::read_to_string(SUBNET_FILE).ok().and_then(|text| parse(&text));
        if let Some((subnets, mtu)) = subnet
            && current.as_ref() != Some(&(subnets.clone(), mtu))
        {
            let content = format!("{:#}\n", cni_config(&subnets, mtu));
            match seedling_steps::write_atomic(Path::new(CNI_CONFIG), content, 0o644) {
                Ok(()) => {
                    tracing::info!("{CNI_CONFIG}: {subnets:?}, mtu {mtu}");
                    written(&subnets, mtu);
                    current = Some((subnets, mtu));
                }
                Err(e) => tracing::warn!("writing {CNI_CONFIG}: {e}"),
            }
        }
        tokio::time::sleep(if current.is_some() { AGAIN } else { UNTIL_THERE }).await;
    }
}

/// flannel's `FLANNEL_SUBNET` and `FLANNEL_IPV6_SUBNET`, one or both, and `FLANNEL_MTU`.
fn parse(text: &str) -> Option<(Vec<IpNet>, u32)> {
    let value = |key: &str| text.lines().find_map(|l| l.trim().strip_prefix(key)?.strip_prefix('='));
    let subnets = ["FLANNEL_SUBNET", "FLANNEL_IPV6_SUBNET"].into_iter().filter_map(value);
    let subnets = subnets.map(|text| text.parse().ok()).collect::<Option<Vec<_>>>()?;
    Some((subnets, value("FLANNEL_MTU")?.parse().ok()?)).filter(|(subnets, _)| !subnets.is_empty())
}

#[cfg(test)]
mod tests {
    #[test]
    fn reads_flannels_file() {
        let four = "FLANNEL_NETWORK=10.128.0.0/14\nFLANNEL_SUBNET=10.128.2.1/23\n";
        let six = "FLANNEL_IPV6_NETWORK=fd01::/48\nFLANNEL_IPV6_SUBNET=fd01:0:0:2::1/64\n";
        let rest = "FLANNEL_MTU=1500\nFLANNEL_IPMASQ=true\n";
        let read = |text: String| {
            let (subnets, mtu) = super::parse(&text).unwrap_or_default();
            (subnets.iter().map(ToString::to_string).collect::<Vec<_>>(), mtu)
        };
        assert_eq!(read(format!("{four}{rest}")), (vec!["10.128.2.1/23".to_string()], 1500));
        assert_eq!(read(format!("{six}{rest}")), (vec!["fd01:0:0:2::1/64".to_string()], 1500));
        assert_eq!(read(format!("{four}{six}{rest}")).0.len(), 2);
        assert_eq!(super::parse(four), None);
        assert_eq!(super::parse(rest), None);
    }
}
