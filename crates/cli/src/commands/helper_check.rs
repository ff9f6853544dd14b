//! `seedling helper check`: what is wrong with the helper here, before it is started and while it runs.

use super::helper::config_here;
use super::lab::{Name, Output};
use anyhow::Result;
use clap::Args;
use seedling_checks::helper::{self, Facts, Front, Needed, Running};
use seedling_checks::preflight::{self, Query, Resolved, Wanted};
use seedling_checks::{Choice, Report};
use seedling_helper::{boot, init, load};
use seedling_types::admission::digest_of;
use seedling_types::helper::HelperServer;
use seedling_types::{HelperConfig, Role, ports};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// As preflight's.
const FAILED: u8 = 9;
const OURS: &[&str] = &["seedling"];
const WITHIN: Duration = Duration::from_secs(2);

#[derive(Args)]
pub(crate) struct CheckArgs {
    /// The helper's configuration [default: /etc/seedling/helper.yaml, else the lab's]
    #[arg(long)]
    config: Option<PathBuf>,
    #[command(flatten)]
    lab: Name,
    /// Make this check, and do not count what it finds (may be repeated)
    #[arg(long, value_name = "CHECK")]
    ignore: Vec<String>,
    /// Make only this check (may be repeated)
    #[arg(long, value_name = "CHECK")]
    only: Vec<String>,
    #[command(flatten)]
    output: Output,
}

pub(crate) async fn run(args: CheckArgs) -> Result<ExitCode> {
    let choice = Choice { only: args.only.clone(), ignore: args.ignore.clone() };
    if let Err(unknown) = choice.check(helper::CHECKS) {
        eprintln!("error: {unknown}");
        return Ok(ExitCode::from(super::WRONG_USAGE));
    }
    let path = config_here(args.config.clone(), &args.lab)?;
    let config = load(&path)?;
    let running = running(&path, &config).await;
    let others = neighbourhood(&config, running.is_some()).await;
    let (elsewhere, fronts) = elsewhere(&config).await;
    let facts =
        Facts { locals: init::ask_addresses(), files: files(&config), elsewhere, fronts, running, config };
    let mut findings = helper::judge(&facts);
    findings.extend(preflight::judge(&others));
    // Together what is about the same.
    let subjects: Vec<_> = findings.iter().map(|finding| finding.check.subject).collect();
    findings.sort_by_key(|finding| subjects.iter().position(|subject| *subject == finding.check.subject));
    let report = Report::new(findings, &choice);
    args.output.print(&serde_json::to_value(&report)?, || print!("{}", report.table()));
    Ok(if report.ok { ExitCode::SUCCESS } else { ExitCode::from(FAILED) })
}

fn files(config: &HelperConfig) -> Vec<Needed> {
    let mut all = Vec::new();
    let mut need = |path: PathBuf, what: String, make| {
        all.push(Needed { there: path.exists(), path: path.display().to_string(), what, make });
    };
    let create = "seedling create ignition-configs --dir DIR makes it; ignitionDir must name DIR";
    for role in [Role::Bootstrap, Role::Master, Role::Worker] {
        for host in config.inventory.role(role) {
            let what = format!("Ignition config of {}", host.name);
            need(seedling_helper::doors::ignition_file(config, host), what, create);
        }
    }
    let build = "seedling release build, or seedling release load FILE; releaseDir must name its directory";
    need(config.release_dir.join("bin"), "node software of the release".into(), build);
    need(config.release_dir.join("oci"), "images of the release".into(), build);
    if let Some(ca) = &config.server_ca {
        need(ca.clone(), "certificate for health checks".into(), "correct serverCa, or leave it out");
    }
    if let Some(boot) = &config.boot {
        let image = "seedling image build, or seedling helper images add KERNEL INITRAMFS ROOTFS; imageDir must name its directory";
        for (name, what) in
            [("vmlinuz", "kernel"), ("initramfs.img", "initramfs"), (boot::rootfs(boot), "root file system")]
        {
            need(boot.image_dir.join(name), format!("{what} of the boot image"), image);
        }
        let loaders =
            "apt install ipxe (pxelinux and syslinux-common for pxelinux.0), then make the boot image again";
        for name in [boot.bios_loader.as_str(), boot::efi_loader(boot)] {
            need(boot.image_dir.join(name), format!("boot loader {name}"), loaders);
        }
    }
    all
}

/// What preflight knows how to ask: ports, other DHCP servers, who has the machines' addresses, and the release.
async fn neighbourhood(config: &HelperConfig, runs: bool) -> preflight::Facts {
    let now = time::OffsetDateTime::now_utc().unix_timestamp();
    let mut facts = preflight::Facts { now, ..preflight::Facts::default() };
    let has = |server| !config.without.contains(&server);
    let any = IpAddr::from(Ipv4Addr::UNSPECIFIED);
    let rows = [
        (has(HelperServer::Dns), ports::DNS, "UDP", "DNS", config.address),
        (has(HelperServer::Dns), ports::DNS, "TCP", "DNS", config.address),
        (has(HelperServer::Dhcp) && config.v4().is_some(), ports::DHCP_SERVER, "UDP", "DHCP", any),
        (config.boot.is_some() && has(HelperServer::Tftp), ports::TFTP, "UDP", "TFTP", config.address),
        (true, ports::HELPER_HTTP, "TCP", "the helper's HTTP server", config.address),
        (has(HelperServer::Registry), ports::HELPER_REGISTRY, "TCP", "the registry", config.address),
        (has(HelperServer::LoadBalancer), ports::API, "TCP", "the load balancer", config.address),
        (has(HelperServer::LoadBalancer), ports::MCS, "TCP", "the load balancer", config.address),
        (
            config.ingress && has(HelperServer::LoadBalancer),
            ports::HTTP,
            "TCP",
            "the load balancer",
            config.address,
        ),
        (
            config.ingress && has(HelperServer::LoadBalancer),
            ports::HTTPS,
            "TCP",
            "the load balancer",
            config.address,
        ),
    ];
    for (wanted, port, protocol, what, at) in rows {
        if wanted {
            facts.ports.push(preflight::in_use(at, port, protocol, what, OURS));
        }
    }
    if let (true, Some(here)) = (has(HelperServer::Dhcp), config.v4()) {
        facts.dhcp = Some(preflight::offers(&config.interface, Some(here.address)).await);
    }
    facts.neighbours = preflight::neighbours(&config.inventory).await;
    if runs
        && has(HelperServer::Registry)
        && let Ok(release) = seedling_release::load(&config.release_dir)
    {
        let registry = format!("http://{}", SocketAddr::new(config.address, ports::HELPER_REGISTRY));
        facts.pull = Some(preflight::trial_pull(&release.release_image, &registry).await);
    }
    facts
}

/// What this machine's DNS servers say of the cluster's names, and who is at other addresses that they name.
async fn elsewhere(config: &HelperConfig) -> (Vec<Resolved>, Vec<Front>) {
    let text = std::fs::read_to_string("/etc/resolv.conf").unwrap_or_default();
    let servers: Vec<_> = preflight::system_servers(&text)
        .into_iter()
        .filter(|s| config.addresses().all(|own| s.ip() != own))
        .collect();
    if servers.is_empty() {
        return (Vec::new(), Vec::new());
    }
    let domain = &config.cluster_domain;
    let own: Vec<_> = config.addresses().collect();
    let mut names = vec![(domain.api(), own.clone()), (domain.api_int(), own)];
    names.extend(
        config.inventory.hosts.iter().map(|host| (domain.host(&host.name), host.addresses().collect())),
    );
    let question = |(name, addresses)| Resolved {
        check: helper::CHECKS[3],
        name,
        query: Query::Address,
        wanted: Wanted::OneOf(addresses),
        server: String::new(),
        answer: Err("not asked".into()),
    };
    let asked = preflight::ask_all(names.into_iter().map(question).collect(), &servers).await;
    let balanced = asked.iter().filter(|a| a.name == domain.api() || a.name == domain.api_int());
    let others =
        balanced.flat_map(|a| a.answer.iter().flatten().map(|address| (a.name.clone(), address.clone())));
    let others = others.filter_map(|(name, address)| Some((name, address.parse::<IpAddr>().ok()?)));
    let mut fronts = Vec::new();
    for (name, address) in others.filter(|(_, address)| config.addresses().all(|own| own != *address)) {
        for port in [ports::API, ports::MCS] {
            let at = SocketAddr::from((address, port));
            let accepts =
                tokio::task::spawn_blocking(move || TcpStream::connect_timeout(&at, WITHIN).is_ok()).await;
            fronts.push(Front { name: name.clone(), address, port, accepts: accepts.unwrap_or(false) });
        }
    }
    (asked, fronts)
}

async fn running(path: &Path, config: &HelperConfig) -> Option<Running> {
    let ready = std::fs::read_to_string(&config.ready_file).ok()?;
    let mut lines = ready.lines();
    let pid: u32 = lines.next()?.parse().ok()?;
    if !Path::new(&format!("/proc/{pid}")).exists() {
        return None;
    }
    let digest = std::fs::read(path).map(|bytes| digest_of(&bytes)).unwrap_or_default();
    let up_to_date = lines.next() == Some(digest.as_str());
    let clock =
        preflight::clock(&format!("http://{}/healthz", SocketAddr::new(config.address, ports::HELPER_HTTP)))
            .await;
    let dns = match config.without.contains(&HelperServer::Dns) {
        true => None,
        false => {
            let question = Resolved {
                check: helper::CHECKS[5],
                name: config.cluster_domain.api_int(),
                query: Query::Address,
                wanted: Wanted::OneOf(vec![config.address]),
                server: String::new(),
                answer: Err("not asked".into()),
            };
            let server = SocketAddr::from((config.address, ports::DNS));
            preflight::ask_all(vec![question], &[server]).await.pop().map(|asked| asked.answer)
        }
    };
    Some(Running { pid, up_to_date, http: clock.ahead.map(drop), dns })
}
