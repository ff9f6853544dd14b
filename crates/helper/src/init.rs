//! `seedling helper init`: helper.yaml with a comment for every field, from what is known of the cluster and of this machine. Pure, but for the
//! questions to this machine at the end.

use ipnet::Ipv4Net;
use seedling_types::{ClusterDomain, Inventory};
use serde_json::Value;
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};

/// What is written down.
pub struct Wanted {
    pub domain: ClusterDomain,
    pub interface: String,
    pub address: Ipv4Addr,
    pub network: Ipv4Net,
    pub inventory: Inventory,
    pub assets: PathBuf,
    pub release: PathBuf,
    /// Of this machine, if it is on the machines' network.
    pub router: Option<Ipv4Addr>,
    pub forwarders: Vec<Ipv4Addr>,
    pub image: Option<PathBuf>,
}

/// An address of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Local {
    pub interface: String,
    pub address: Ipv4Addr,
    pub network: Ipv4Net,
}

/// The one on the machines' network, or of that interface.
pub fn choose<'a>(
    locals: &'a [Local],
    network: Option<Ipv4Net>,
    interface: Option<&str>,
    address: Option<Ipv4Addr>,
) -> Option<&'a Local> {
    locals.iter().find(|local| {
        interface.is_none_or(|name| name == local.interface)
            && address.is_none_or(|address| address == local.address)
            && network.is_none_or(|network| network.contains(&local.address))
            && !local.address.is_loopback()
    })
}

pub fn yaml(wanted: &Wanted) -> String {
    let Wanted { domain, interface, address, network, inventory, .. } = wanted;
    let list = |servers: &[Ipv4Addr]| servers.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let gateway = Ipv4Addr::from(u32::from(network.broadcast()) - 1);
    let router = match wanted.router {
        Some(router) => format!("router: {router}"),
        None => format!("# router: {gateway}"),
    };
    let forwarders = match wanted.forwarders.as_slice() {
        [] => format!("# forwarders: [{gateway}]"),
        servers => format!("forwarders: [{}]", list(servers)),
    };
    let hosts: String = inventory
        .hosts
        .iter()
        .map(|host| {
            format!(
                "  - {{name: {}, role: {}, mac: '{}', address: {}}}\n",
                host.name,
                host.role.as_str(),
                host.mac,
                host.address
            )
        })
        .collect();
    let mut balancers = inventory.load_balancers.clone();
    if !balancers.contains(&(*address).into()) {
        balancers.push((*address).into());
    }
    let boot = match &wanted.image {
        Some(image) => format!("boot:\n  imageDir: {}\n  installDevice: auto          # the first disk; `none` boots live and leaves the disks alone\n", image.display()),
        None => "# boot:\n#   imageDir: /var/lib/seedling/boot   # of `seedling image build` or `seedling helper images add`\n\
                 #   kind: seedling                     # or coreos\n\
                 #   installDevice: auto                # the first disk; `none` boots live and leaves the disks alone\n\
                 #   installDevices: {worker-0: /dev/nvme0n1}\n\
                 #   arguments: [console=ttyS1,115200]  # behind all others\n\
                 #   hosts: [worker-0]                  # only these boot over the network\n"
            .into(),
    };
    format!(
        "# The servers that the machines of {domain} boot from. Next: seedling helper check, then seedling helper install.\n\
         clusterDomain: {domain}\n\
         interface: {interface}              # the machines' network; DHCP answers here only\n\
         address: {address}       # ours on it: DNS, load balancer, HTTP, registry, TFTP\n\
         network: {network}\n\
         # The machines' way out; without it they are told that it is the helper.\n\
         {router}\n\
         # DNS servers for names that are not the cluster's; without any, such names are refused at once.\n\
         {forwarders}\n\
         # Clocks for the machines.\n\
         # ntpServers: [{gateway}]\n\
         # DHCP relays that are answered, for machines in other networks.\n\
         # relays: []\n\
         # Machines that are not listed below get an address here for ten minutes, and nothing to boot, so that `helper status` shows them.\n\
         # pool: {{from: {0}, to: {1}}}\n\
         # The load balancer also takes 80 and 443, to the workers, or to the masters if there are none.\n\
         ingress: true\n\
         # Names etcd-N and _etcd-server-ssl._tcp, as OpenShift before 4.4 wanted them.\n\
         # etcdSrv: true\n\
         # Servers that you have already; `seedling helper export` writes their configurations.\n\
         # without: [dhcp, dns, tftp, registry, loadBalancer]\n\
         inventory:                    # as in hosts.yaml\n  hosts:\n{hosts}  loadBalancers: [{2}]\n\
         ignitionDir: {3}   # of `seedling create ignition-configs`\n\
         releaseDir: {4}   # of `seedling release build` or `load`\n\
         events: /var/lib/seedling/helper/events.jsonl\n\
         readyFile: /run/seedling-helper/ready\n\
         # Who signed the certificates of API and machine-config servers, for health checks; without it they believe anybody.\n\
         # serverCa: /etc/seedling/servers.crt\n\
         # Machines with an empty disk boot over the network and install themselves.\n{boot}",
        Ipv4Addr::from(u32::from(network.broadcast()) - 20),
        Ipv4Addr::from(u32::from(network.broadcast()) - 11),
        balancers.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
        wanted.assets.display(),
        wanted.release.display(),
    )
}

/// By `ip -json -4 address`.
pub fn locals(json: &str) -> Vec<Local> {
    let all: Vec<Value> = serde_json::from_str(json).unwrap_or_default();
    let of = |link: &Value| -> Vec<Local> {
        let name = link["ifname"].as_str().unwrap_or_default().to_string();
        let addresses = link["addr_info"].as_array().cloned().unwrap_or_default();
        let local = |info: &Value| {
            let address: Ipv4Addr = info["local"].as_str()?.parse().ok()?;
            let prefix = u8::try_from(info["prefixlen"].as_u64()?).ok()?;
            Some(Local {
                interface: name.clone(),
                address,
                network: Ipv4Net::new(address, prefix).ok()?.trunc(),
            })
        };
        addresses.iter().filter_map(local).collect()
    };
    all.iter().flat_map(of).collect()
}

pub fn ask_locals() -> Vec<Local> {
    locals(&said_by_ip(&["-json", "-4", "address"]))
}

/// Interfaces and addresses of both families.
pub fn ask_addresses() -> Vec<(String, IpAddr)> {
    let all: Vec<Value> = serde_json::from_str(&said_by_ip(&["-json", "address"])).unwrap_or_default();
    let of = |link: &Value| -> Vec<(String, IpAddr)> {
        let name = link["ifname"].as_str().unwrap_or_default();
        let infos = link["addr_info"].as_array().into_iter().flatten();
        infos.filter_map(|info| Some((name.to_string(), info["local"].as_str()?.parse().ok()?))).collect()
    };
    all.iter().flat_map(of).collect()
}

/// This machine's way out.
pub fn ask_router() -> Option<Ipv4Addr> {
    let routes: Value =
        serde_json::from_str(&said_by_ip(&["-json", "-4", "route", "show", "default"])).ok()?;
    routes[0]["gateway"].as_str()?.parse().ok()
}

fn said_by_ip(arguments: &[&str]) -> String {
    let out = std::process::Command::new("ip").args(arguments).output();
    out.map(|out| String::from_utf8_lossy(&out.stdout).into_owned()).unwrap_or_default()
}

/// DNS servers of this machine that others can reach, too.
pub fn resolvers(resolv_conf: &str) -> Vec<Ipv4Addr> {
    let servers =
        resolv_conf.lines().filter_map(|line| line.trim().strip_prefix("nameserver")?.trim().parse().ok());
    servers.filter(|server: &Ipv4Addr| !server.is_loopback()).collect()
}

/// With systemd-resolved the real ones are elsewhere.
pub fn ask_resolvers() -> Vec<Ipv4Addr> {
    let read = |path: &str| resolvers(&std::fs::read_to_string(Path::new(path)).unwrap_or_default());
    let resolved = read("/run/systemd/resolve/resolv.conf");
    if resolved.is_empty() { read("/etc/resolv.conf") } else { resolved }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use crate::testing::config;
    use seedling_types::HelperConfig;

    fn wanted(image: Option<&str>) -> Wanted {
        let config = config();
        let here = config.v4().unwrap();
        Wanted {
            domain: config.cluster_domain,
            interface: "eth1".into(),
            address: here.address,
            network: here.network,
            inventory: config.inventory,
            assets: "/var/lib/seedling/assets".into(),
            release: "/var/cache/seedling/release".into(),
            router: image.map(|_| [192, 168, 100, 254].into()),
            forwarders: image.map(|_| [10, 0, 0, 53].into()).into_iter().collect(),
            image: image.map(PathBuf::from),
        }
    }

    #[test]
    fn what_is_written_can_be_read_with_and_without_its_comments() {
        for image in [None, Some("/b")] {
            let text = yaml(&wanted(image));
            let read: HelperConfig = serde_saphyr::from_str(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
            assert_eq!(read.inventory.load_balancers, [read.address]);
            assert_eq!((read.boot.is_some(), read.router.is_some()), (image.is_some(), image.is_some()));
            // Every field that is commented out is a true one.
            let is_field = |line: &str| {
                line.strip_prefix("# ").is_some_and(|rest| {
                    rest.split(':').next().is_some_and(|w| w.chars().all(|c| c.is_ascii_alphabetic()))
                        && rest.contains(": ")
                })
            };
            for line in text.lines().filter(|line| is_field(line)) {
                let more = format!("{text}{}\n", &line[2..]);
                assert!(serde_saphyr::from_str::<HelperConfig>(&more).is_ok(), "{line}");
            }
        }
        let boot = yaml(&wanted(None));
        let section: String = boot
            .lines()
            .skip_while(|l| *l != "# boot:")
            .map(|l| format!("{}\n", l[1..].strip_prefix(' ').unwrap_or(&l[1..])))
            .collect();
        let with_boot = format!("{}{section}", boot.split("# boot:").next().unwrap());
        assert!(serde_saphyr::from_str::<HelperConfig>(&with_boot).unwrap().boot.is_some(), "{with_boot}");
    }

    #[test]
    fn the_address_on_the_machines_network_is_ours() {
        let json = r#"[{"ifname":"lo","addr_info":[{"family":"inet","local":"127.0.0.1","prefixlen":8}]},
            {"ifname":"eth0","addr_info":[{"family":"inet","local":"10.0.0.5","prefixlen":24}]},
            {"ifname":"eth1","addr_info":[{"family":"inet","local":"192.168.100.1","prefixlen":24}]}]"#;
        let found = locals(json);
        assert_eq!(found.len(), 3);
        let of = |network: Option<&str>, interface, address: Option<[u8; 4]>| {
            let network = network.map(|n| n.parse().unwrap());
            choose(&found, network, interface, address.map(Ipv4Addr::from)).map(|l| l.interface.as_str())
        };
        assert_eq!(of(Some("192.168.100.0/24"), None, None), Some("eth1"));
        assert_eq!(of(None, Some("eth0"), None), Some("eth0"));
        assert_eq!(of(None, None, Some([192, 168, 100, 1])), Some("eth1"));
        assert_eq!(of(Some("172.16.0.0/12"), None, None), None);
        assert_eq!(locals("nonsense"), []);
        assert_eq!(
            resolvers("search x\nnameserver 127.0.0.53\nnameserver 10.0.0.2\n"),
            [Ipv4Addr::new(10, 0, 0, 2)]
        );
    }
}
