//! `seedling preflight`: will a cluster grow here? All problems at once.

use super::lab::Output;
use anyhow::{Context, Result};
use clap::Args;
use seedling_checks::preflight::{self, Age, Facts, Spec};
use seedling_checks::{Check, Choice, Report};
use seedling_lab::Labs;
use seedling_lab::preflight as lab;
use seedling_types::inventory::v4;
use seedling_types::{ClusterDomain, Inventory, ports};
use serde_json::Value;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Something is wrong here: see `--help` of the program.
const FAILED: u8 = 9;
/// What RHCOS and Fedora CoreOS understand since 2023.
const NEWEST_SPEC: u32 = 4;
const HELPER: &[&str] = &["seedling"];
const KUBELET: &[&str] = &["kubelet"];

#[derive(Args)]
pub(crate) struct PreflightArgs {
    /// The asset directory, or the install-config.yaml, of the cluster to be
    #[arg(long, value_name = "DIR|FILE")]
    dir: Option<PathBuf>,
    /// The machines [default: hosts.yaml in the asset directory]
    #[arg(long, value_name = "FILE")]
    hosts: Option<PathBuf>,
    /// The DNS server to ask [default: those of /etc/resolv.conf]
    #[arg(long, value_name = "ADDRESS")]
    dns: Option<IpAddr>,
    /// The helper: its clock and registry are asked, and it alone may offer addresses
    #[arg(long, value_name = "ADDRESS")]
    helper: Option<IpAddr>,
    /// This machine is to run the helper: its ports must be free
    #[arg(long)]
    helper_here: bool,
    /// Ask on this interface for DHCP servers: one DHCPDISCOVER, heard by all who are on that network
    #[arg(long, value_name = "INTERFACE")]
    dhcp_interface: Option<String>,
    /// Measure how fast this directory's disk is for etcd
    #[arg(long, value_name = "DIR")]
    etcd_dir: Option<PathBuf>,
    /// The release whose image is pulled on trial [default: $SEEDLING_CACHE/release; on the bootstrap machine its own]
    #[arg(long, value_name = "DIR")]
    release: Option<PathBuf>,
    /// Pull this image on trial, NAME@sha256:DIGEST [default: the release's]
    #[arg(long, value_name = "IMAGE", conflicts_with = "release")]
    image: Option<String>,
    /// The newest Ignition specification that the machines understand, as the N of 3.N
    #[arg(long, value_name = "N", default_value_t = NEWEST_SPEC)]
    ignition_spec: u32,
    /// This is a machine of the cluster: look at its disk, memory, kernel, ports and name, too
    #[arg(long)]
    node: bool,
    /// This machine is to run a lab: look at what `lab up` needs, too
    #[arg(long)]
    lab: bool,
    /// Make this check, and do not count what it finds (may be repeated)
    #[arg(long, value_name = "CHECK")]
    ignore: Vec<String>,
    /// Make only this check (may be repeated)
    #[arg(long, value_name = "CHECK")]
    only: Vec<String>,
    #[command(flatten)]
    output: Output,
}

pub(crate) async fn run(args: PreflightArgs) -> Result<ExitCode> {
    let choice = Choice { only: args.only.clone(), ignore: args.ignore.clone() };
    let all: Vec<Check> = preflight::CHECKS.iter().chain(lab::CHECKS).copied().collect();
    if let Err(unknown) = choice.check(&all) {
        eprintln!("error: {unknown}");
        return Ok(ExitCode::from(super::WRONG_USAGE));
    }
    let facts = gather(&args).await?;
    let mut findings = preflight::judge(&facts);
    if args.lab {
        lab::load_modules();
        let labs = Labs::from_env();
        let image = seedling_machines::image::path(&labs.cache).exists();
        findings.extend(lab::findings(&lab::gather(&labs.state, image)));
    }
    if findings.is_empty() {
        eprintln!(
            "error: nothing was looked at: give --dir, --hosts, --helper, --etcd-dir, --node, --lab or another option; see --help"
        );
        return Ok(ExitCode::from(super::WRONG_USAGE));
    }
    let report = Report::new(findings, &choice);
    args.output.print(&serde_json::to_value(&report)?, || print!("{}", report.table()));
    Ok(if report.ok { ExitCode::SUCCESS } else { ExitCode::from(FAILED) })
}

async fn gather(args: &PreflightArgs) -> Result<Facts> {
    let now = time::OffsetDateTime::now_utc().unix_timestamp();
    let mut facts = Facts { now, ..Facts::default() };
    let dir = args
        .dir
        .as_deref()
        .map(|dir| if dir.is_dir() { dir } else { dir.parent().unwrap_or(Path::new(".")) });
    let inventory = inventory(args, dir, &mut facts)?;
    let domain = domain(args)?;
    if let Some(domain) = &domain {
        names(args, domain, inventory.as_ref(), dir, &mut facts).await?;
    }
    if let Some(inventory) = &inventory {
        facts.neighbours = preflight::neighbours(inventory).await;
    }
    if let Some(dir) = dir {
        assets(dir, args.ignition_spec, &mut facts);
    }
    if let Some(interface) = &args.dhcp_interface {
        facts.dhcp = Some(preflight::offers(interface, args.helper.and_then(v4)).await);
    }
    let helper = match (args.helper, &domain) {
        (Some(IpAddr::V6(address)), _) => Some(format!("[{address}]")),
        (Some(address), _) => Some(address.to_string()),
        (None, Some(domain)) if args.node => Some(domain.helper()),
        _ => None,
    };
    if let Some(helper) = &helper {
        facts.clock =
            Some(preflight::clock(&format!("http://{helper}:{}/healthz", ports::HELPER_HTTP)).await);
        if let Some(image) = release_image(args) {
            let registry = format!("http://{helper}:{}", ports::HELPER_REGISTRY);
            facts.pull = Some(preflight::trial_pull(&image, &registry).await);
        }
    }
    if args.helper_here {
        let at = args.helper.unwrap_or(Ipv4Addr::UNSPECIFIED.into());
        let udp = [(ports::DNS, "DNS"), (ports::DHCP_SERVER, "DHCP")];
        facts.ports.extend(udp.map(|(port, what)| preflight::in_use(at, port, "UDP", what, HELPER)));
        let tcp = [
            (ports::DNS, "DNS"),
            (ports::HELPER_HTTP, "the helper's HTTP server"),
            (ports::HELPER_REGISTRY, "the registry"),
            (ports::API, "the load balancer"),
            (ports::MCS, "the load balancer"),
        ];
        facts.ports.extend(tcp.map(|(port, what)| preflight::in_use(at, port, "TCP", what, HELPER)));
    }
    let etcd_dir = args.etcd_dir.clone().or(args.node.then(|| seedling_types::paths::ETCD_DATA.into()));
    if let Some(dir) = etcd_dir {
        facts.disk =
            Some(tokio::task::spawn_blocking(move || preflight::machine::measure_etcd_disk(&dir)).await?);
    }
    if args.node {
        facts.machine = Some(preflight::machine::look());
        let tcp: [(u16, &'static str, &'static [&'static str]); 7] = [
            (ports::KUBELET, "the kubelet", KUBELET),
            (ports::API, "the API server", &["kube-apiserver"]),
            (ports::MCS, "the machine-config server", HELPER),
            (ports::ETCD_CLIENT, "etcd", &["etcd"]),
            (ports::ETCD_PEER, "etcd", &["etcd"]),
            (
                ports::KUBE_CONTROLLER_MANAGER,
                "the controller manager",
                &["kube-controller", "kube-controller-manager"],
            ),
            (ports::KUBE_SCHEDULER, "the scheduler", &["kube-scheduler"]),
        ];
        let any = IpAddr::from(Ipv4Addr::UNSPECIFIED);
        facts.ports.extend(tcp.map(|(port, what, ours)| preflight::in_use(any, port, "TCP", what, ours)));
    }
    Ok(facts)
}

/// hosts.yaml with all its errors as facts; a file that cannot be read is an error of the command.
fn inventory(args: &PreflightArgs, dir: Option<&Path>, facts: &mut Facts) -> Result<Option<Inventory>> {
    let beside = dir.map(|dir| dir.join("hosts.yaml")).filter(|path| path.exists());
    let Some(path) = args.hosts.clone().or(beside) else { return Ok(None) };
    let yaml = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    Ok(match Inventory::parse(&yaml) {
        Ok(inventory) => {
            facts.inventory = Some(Ok(inventory.hosts.len()));
            Some(inventory)
        }
        Err(errors) => {
            let told = |e: &seedling_types::InventoryError| match &e.hint {
                Some(hint) => format!("{e} ({hint})"),
                None => e.to_string(),
            };
            facts.inventory = Some(Err(errors.iter().map(told).collect()));
            None
        }
    })
}

/// Of the install-config, else of the kubeconfig that was made of it, else of this node.
fn domain(args: &PreflightArgs) -> Result<Option<ClusterDomain>> {
    let Some(dir) = &args.dir else {
        let env = std::fs::read_to_string("/etc/kubernetes/apiserver-url.env").unwrap_or_default();
        return Ok(domain_of_node(&env).filter(|_| args.node).map(|domain| ClusterDomain(domain.into())));
    };
    let config = if dir.is_dir() { dir.join("install-config.yaml") } else { dir.clone() };
    if config.exists() {
        let text = std::fs::read_to_string(&config).with_context(|| config.display().to_string())?;
        let value: Value = serde_saphyr::from_str(&text).with_context(|| config.display().to_string())?;
        let name = value["metadata"]["name"].as_str();
        let (Some(name), Some(base)) = (name, value["baseDomain"].as_str()) else {
            anyhow::bail!("{}: metadata.name and baseDomain are needed", config.display());
        };
        return Ok(Some(ClusterDomain::new(name, base)));
    }
    let kubeconfig = dir.join("auth/kubeconfig");
    let text = std::fs::read_to_string(&kubeconfig)
        .with_context(|| format!("{} has neither install-config.yaml nor auth/kubeconfig", dir.display()))?;
    let value: Value = serde_saphyr::from_str(&text).with_context(|| kubeconfig.display().to_string())?;
    let server = value["clusters"][0]["cluster"]["server"].as_str().unwrap_or_default();
    let host = server.trim_start_matches("https://").split(':').next().unwrap_or_default();
    Ok(host.strip_prefix("api.").map(|domain| ClusterDomain(domain.into())))
}

/// `KUBERNETES_SERVICE_HOST=api-int.…`, in quotes or not.
fn domain_of_node(env: &str) -> Option<&str> {
    env.split(['\'', '"', '=', '\n']).find_map(|word| word.strip_prefix("api-int."))
}

async fn names(
    args: &PreflightArgs,
    domain: &ClusterDomain,
    inventory: Option<&Inventory>,
    dir: Option<&Path>,
    facts: &mut Facts,
) -> Result<()> {
    let servers = match args.dns {
        Some(address) => vec![SocketAddr::from((address, ports::DNS))],
        None => preflight::system_servers(&std::fs::read_to_string("/etc/resolv.conf").unwrap_or_default()),
    };
    let unused = format!("preflight-{:08x}", std::process::id() ^ facts.now as u32);
    facts.names = preflight::ask_all(preflight::questions(domain, inventory, &unused), &servers).await;
    let api_int = domain.api_int();
    let found = facts.names.iter().find(|resolved| resolved.name == api_int);
    let address = found.and_then(|found| found.answer.as_ref().ok()?.first()?.parse().ok());
    for port in [ports::API, ports::MCS] {
        let authorities = dir.and_then(|dir| authorities(dir, port));
        facts.balancer.push(preflight::answers(&api_int, address, port, authorities.as_deref()).await);
    }
    Ok(())
}

/// Who may sign what answers on that port, as PEM, by the asset directory; unknown before `create`.
fn authorities(dir: &Path, port: u16) -> Option<String> {
    let encoded = match port {
        ports::MCS => {
            let pointer: Value = serde_json::from_slice(&std::fs::read(dir.join("master.ign")).ok()?).ok()?;
            let source = &pointer["ignition"]["security"]["tls"]["certificateAuthorities"][0]["source"];
            source.as_str()?.split_once("base64,")?.1.to_string()
        }
        _ => {
            let text = std::fs::read_to_string(dir.join("auth/kubeconfig")).ok()?;
            let kubeconfig: Value = serde_saphyr::from_str(&text).ok()?;
            kubeconfig["clusters"][0]["cluster"]["certificate-authority-data"].as_str()?.to_string()
        }
    };
    String::from_utf8(preflight::decoded(&encoded)?).ok()
}

fn assets(dir: &Path, newest: u32, facts: &mut Facts) {
    let made = dir.join(".openshift_install_state.json").exists() || dir.join("bootstrap.ign").exists();
    if made {
        let ages = seedling_assets::certificates(dir).map_err(|e| e.to_string()).map(|found| {
            let age = |listed: seedling_assets::Listed| Age {
                place: listed.place,
                from: listed.certificate.not_before.unix_timestamp(),
                until: listed.certificate.not_after.unix_timestamp(),
            };
            found.into_iter().map(age).collect()
        });
        facts.certificates = Some((dir.display().to_string(), ages));
    }
    let files = ["bootstrap.ign", "master.ign", "worker.ign"].map(|name| dir.join(name));
    for path in files.into_iter().filter(|path| path.exists()) {
        let read = std::fs::read(&path).map_err(|e| e.to_string());
        let version = read.and_then(|bytes| {
            let config: Value = serde_json::from_slice(&bytes).map_err(|e| e.to_string())?;
            config["ignition"]["version"].as_str().map(str::to_string).ok_or("it has no version".to_string())
        });
        facts.ignition.push(Spec { file: path.display().to_string(), version, newest });
    }
}

fn release_image(args: &PreflightArgs) -> Option<String> {
    let cached = || seedling_release::default_cache().join("release");
    let dir = match (&args.release, args.node) {
        (Some(dir), _) => dir.clone(),
        (None, true) => seedling_types::paths::OPT_OPENSHIFT.into(),
        (None, false) => cached(),
    };
    let of_release = || seedling_release::load(&dir).ok().map(|release| release.release_image);
    args.image.clone().or_else(of_release)
}

#[cfg(test)]
mod tests {
    use super::domain_of_node;

    #[test]
    fn a_node_knows_its_domain() {
        for env in [
            "KUBERNETES_SERVICE_HOST=api-int.c.example.com\nKUBERNETES_SERVICE_PORT=6443\n",
            "A='api-int.c.example.com'\n",
        ] {
            assert_eq!(domain_of_node(env), Some("c.example.com"));
        }
        assert_eq!(domain_of_node(""), None);
    }
}
