//! What a node carries: its software, containerd and the kubelet, as Ignition fragments.
//!
//! In: the cluster domain, the release, the networks of Services and pods. Out: the same three fragments (`base`, `container_runtime`,
//! `kubelet`) for the bootstrap node's own config and for the MachineConfigs `00-`, `01-…-container-runtime`, `01-…-kubelet`; and `outside`, a
//! fourth, of what the install-config says about registries and proxies.

mod firewall;
mod kubelet;
mod outside;

pub use kubelet::config as kubelet_config;
pub use outside::{MIRRORS_HEADER, MirrorsFile, outside};

use ipnet::IpNet;
use seedling_ignition::{Config, File, Storage, Systemd, Unit};
use seedling_types::names::REGISTRY;
use seedling_types::release::MissingComponent;
use seedling_types::{ClusterDomain, ReleaseInfo, Role, paths, ports};

pub struct NodeParams<'a> {
    pub domain: &'a ClusterDomain,
    pub release: &'a ReleaseInfo,
    /// The first is of the cluster's main family; where it has another, so has every node.
    pub service_networks: Vec<IpNet>,
    /// Where pods have their addresses.
    pub pod_networks: Vec<IpNet>,
}

/// The bootstrap node: a standalone kubelet that runs static pods and knows no API server.
pub fn bootstrap(p: &NodeParams) -> Result<Config, MissingComponent> {
    Ok(base(p)?.merge(container_runtime(p)?).merge(kubelet(p, Role::Bootstrap)?))
}

/// A node that joins the cluster; the machine-config server adds its bootstrap kubeconfig and CA.
pub fn joined(p: &NodeParams, role: Role) -> Result<Config, MissingComponent> {
    Ok(base(p)?.merge(container_runtime(p)?).merge(kubelet(p, role)?))
}

/// What people and host-network pods need on any node.
pub fn base(p: &NodeParams) -> Result<Config, MissingComponent> {
    let api =
        format!("KUBERNETES_SERVICE_HOST={}\nKUBERNETES_SERVICE_PORT={}\n", p.domain.api_int(), ports::API);
    let mut files = software(p, &["seedling", "kubectl"])?;
    files.push(File::inline("/etc/kubernetes/apiserver-url.env", 0o644, api));
    files.push(File::inline(firewall::RULES, 0o644, firewall::rules(&p.pod_networks)));
    let helper = format!("http://{}:{}/", p.domain.helper(), ports::HELPER_HTTP);
    let v6 = p.pod_networks.iter().any(|network| network.addr().is_ipv6());
    let v4 = !v6 || p.pod_networks.iter().any(|network| network.addr().is_ipv4());
    let units = vec![
        Unit::new(firewall::UNIT, true, firewall::unit()),
        Unit::new(firewall::HELPER_UNIT, true, firewall::helper_unit(&p.domain.helper(), v4, v6)),
        Unit::new("seedling-first-boot.service", true, first_boot(&helper)),
    ];
    Ok(config(files, units))
}

fn first_boot(helper: &str) -> String {
    format!(
        r#"[Unit]
Description=Look whether the disk and the clock will do
Wants=network-online.target
After=network-online.target
ConditionPathExists=!/var/log/openshift/first-boot.json

[Service]
Type=oneshot
StandardOutput=journal+console
ExecStart=/usr/local/bin/seedling first-boot --helper {helper}

[Install]
WantedBy=multi-user.target
"#
    )
}

pub fn container_runtime(p: &NodeParams) -> Result<Config, MissingComponent> {
    let mut files = software(p, &["containerd", "containerd-shim-runc-v2", "ctr", "crictl", "runc"])?;
    files.extend([
        File::inline("/etc/containerd/config.toml", 0o644, containerd_config(p.release.image("pause")?)),
        File::inline(
            format!("/etc/containerd/certs.d/{REGISTRY}/hosts.toml"),
            0o644,
            registry_hosts(p.domain),
        ),
        File::inline("/etc/crictl.yaml", 0o644, include_str!("files/crictl.yaml")),
    ]);
    Ok(config(files, vec![Unit::new("containerd.service", true, include_str!("files/containerd.service"))]))
}

pub fn kubelet(p: &NodeParams, role: Role) -> Result<Config, MissingComponent> {
    let mut files = software(p, &["kubelet"])?;
    files.push(File::inline(paths::KUBELET_CONFIG, 0o644, kubelet::config(&p.service_networks, role)));
    let mut units = vec![Unit::new("kubelet.service", true, kubelet::unit(role, &p.service_networks))];
    if role != Role::Bootstrap {
        units.push(Unit::new("kubelet-recover.service", true, include_str!("files/kubelet-recover.service")));
    }
    Ok(config(files, units))
}

fn config(files: Vec<File>, units: Vec<Unit>) -> Config {
    Config { storage: Storage { files }, systemd: Systemd { units }, ..Config::default() }
}

/// Fetched by Ignition from the helper and verified, so a wrong byte never runs.
fn software(p: &NodeParams, names: &[&str]) -> Result<Vec<File>, MissingComponent> {
    let fetched = |name: &&str| {
        let url = format!("http://{}:{}/bin/{name}", p.domain.helper(), ports::HELPER_HTTP);
        Ok(File::fetched(format!("{}/{name}", paths::NODE_BIN), 0o755, url, &p.release.binary(name)?.sha512))
    };
    names.iter().map(fetched).collect()
}

/// runc is ours: the one of Debian 12 knows no user namespaces in pods.
fn containerd_config(pause: &str) -> String {
    let runc = format!("{}/runc", paths::NODE_BIN);
    format!(
        r#"version = 3
# What only this machine needs.
imports = ["/etc/containerd/conf.d/*.toml"]

[plugins.'io.containerd.cri.v1.images'.pinned_images]
sandbox = "{pause}"

[plugins.'io.containerd.cri.v1.images'.registry]
config_path = "/etc/containerd/certs.d"

[plugins.'io.containerd.cri.v1.runtime']
# A node in a container may not lower the OOM score below its own.
restrict_oom_score_adj = true
# Every second by default, through every shim. The kubelet takes its figures from cAdvisor.
stats_collect_period = "30s"

[plugins.'io.containerd.cri.v1.runtime'.cni]
bin_dirs = ["/opt/cni/bin"]
conf_dir = "/etc/cni/net.d"
# No plugin is needed for lo.
use_internal_loopback = true

[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"

[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
BinaryName = "{runc}"
# The kubelet's cgroupDriver is cgroupfs too.
SystemdCgroup = false
"#
    )
}

fn registry_hosts(domain: &ClusterDomain) -> String {
    let url = format!("http://{}:{}", domain.helper(), ports::HELPER_REGISTRY);
    format!("server = \"{url}\"\n\n[host.\"{url}\"]\ncapabilities = [\"pull\", \"resolve\"]\n")
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use crate::testing::release;

    fn params<'a>(domain: &'a ClusterDomain, release: &'a ReleaseInfo) -> NodeParams<'a> {
        let net = |bytes: [u8; 4], prefix| vec![IpNet::new_assert(bytes.into(), prefix)];
        let (service_networks, pod_networks) = (net([172, 30, 0, 0], 16), net([10, 128, 0, 0], 14));
        NodeParams { domain, release, service_networks, pod_networks }
    }

    #[test]
    fn every_binary_is_fetched_and_verified() {
        let (domain, release) = (ClusterDomain("ocp4.example.com".into()), release());
        let p = params(&domain, &release);
        for config in
            [bootstrap(&p).unwrap(), joined(&p, Role::Master).unwrap(), joined(&p, Role::Worker).unwrap()]
        {
            let fetched: Vec<_> = config.storage.files.iter().filter(|f| f.mode == Some(0o755)).collect();
            assert_eq!(fetched.len(), 8);
            for file in fetched {
                let contents = file.contents.as_ref().unwrap();
                assert!(
                    contents.source.as_ref().unwrap().starts_with("http://helper.ocp4.example.com:8080/bin/")
                );
                assert!(contents.verification.as_ref().unwrap().hash.starts_with("sha512-"));
            }
            let units: Vec<_> = config.systemd.units.iter().map(|u| (u.name.as_str(), u.enabled)).collect();
            let mut names = vec![
                "machine-config-firewall.service",
                "helper-firewall.service",
                "seedling-first-boot.service",
                "containerd.service",
                "kubelet.service",
            ];
            if config != bootstrap(&p).unwrap() {
                names.push("kubelet-recover.service"); // the bootstrap node's kubelet has no certificate
            }
            for name in &names {
                let name = name.trim_start_matches("seedling-").trim_end_matches(".service");
                assert!(
                    crate::describe::COMPONENTS.iter().any(|c| c.name == name),
                    "{name} is not described"
                );
            }
            assert_eq!(units, names.into_iter().map(|name| (name, Some(true))).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_release_without_the_kubelet_is_refused() {
        let (domain, mut release) = (ClusterDomain("ocp4.example.com".into()), release());
        release.binaries.remove("kubelet");
        let p = params(&domain, &release);
        assert_eq!(joined(&p, Role::Master).unwrap_err().0, "kubelet");
    }
}
