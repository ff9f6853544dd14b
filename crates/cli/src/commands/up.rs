//! `seedling lab up`: release → assets → machines → a cluster that works, with a line for each thing that happened.

use super::hardware::HardwareArgs;
use super::lab::{Name, say};
use super::log::NoProgress;
use super::release::ensure_release;
use anyhow::{Context, Result, ensure};
use clap::Args;
use seedling_assets::{Level, Target, lab_kubeconfig};
use seedling_lab::probe::{RATE, beside, write_report};
use seedling_lab::{BringUp, Kinds, Lab, LabSpec, Labs, Machines, Pace, Stack, inventory_of, with_workers};
use seedling_steps::write_atomic;
use seedling_types::helper::HelperServer;
use seedling_types::inventory::MOST_MASTERS;
use seedling_types::template::{render, table};
use seedling_types::{ClusterDomain, Inventory, Role};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// The lab's cluster, for those who bring no install-config of their own.
const INSTALL_CONFIG: &str = include_str!("up/install-config.yaml");

/// Two segments of etcd's log are 128 MiB, made before there is anything in them.
const ETCD_DISK_LEAST: i64 = 192;
/// The release's images, unpacked, and what containers write.
const CONTAINERD_DISK_LEAST: i64 = 3072;
const LOG_DISK_LEAST: i64 = 16;

/// `seedling lab up`
#[derive(Args, Clone, Debug)]
pub(crate) struct UpArgs {
    #[command(flatten)]
    lab: Name,
    /// Number of control-plane machines: 1, 3, 4 or 5 [default: 3, or those the lab has]
    #[arg(long, value_parser = masters)]
    masters: Option<u8>,
    /// Number of workers; without any, pods run on the masters [default: 0, or those the lab has]
    #[arg(long, value_parser = clap::value_parser!(u8).range(..=100))]
    workers: Option<u8>,
    /// Which addresses machines, pods and Services have: `dual` is both, IPv4 first [default: ipv4, or what the lab has]
    #[arg(long, value_name = "STACK", value_parser = stack)]
    stack: Option<Stack>,
    /// A list of machines (hosts.yaml) to use instead of the default ones; their addresses say which families there are
    #[arg(long, value_name = "FILE", conflicts_with_all = ["masters", "workers", "stack"])]
    hosts: Option<PathBuf>,
    /// What machines are: `container`, `qemu`, or by role or name, as in `master=container,worker=qemu` [default: container, or what the
    /// lab's are]
    #[arg(long, value_name = "KINDS")]
    machines: Option<Machines>,
    #[command(flatten)]
    hardware: HardwareArgs,
    /// Put the release's images on every container machine before it boots; with false, machines pull them
    #[arg(long, default_value_t = true, action = clap::ArgAction::Set, num_args = 0..=1, default_missing_value = "true")]
    seed_images: bool,
    /// The asset directory to boot from [default: a new one in the lab's own directory]
    #[arg(long, value_name = "DIR")]
    assets: Option<PathBuf>,
    /// The release to install [default: the one in the cache]
    #[arg(long, value_name = "DIR")]
    release: Option<PathBuf>,
    /// A manifest to create with the cluster, e.g. of ConfigMap openshift-config/certificates; may be repeated
    #[arg(long, value_name = "FILE", conflicts_with = "assets")]
    manifest: Vec<PathBuf>,
    /// Port on 127.0.0.1 for the cluster's API; 0 picks a free one
    #[arg(long, default_value_t = 0)]
    api_port: u16,
    /// Give etcd a disk of its own of this many MiB on every machine; `chaos --fault fill-disk` needs it
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u32).range(ETCD_DISK_LEAST..))]
    etcd_disk: Option<u32>,
    /// Give etcd a disk that can be made to fail on every machine; `chaos --fault fsync-errors` and `torn-wal` need it
    #[arg(long, conflicts_with = "etcd_disk")]
    bad_etcd_disk: bool,
    /// Give containerd (images and containers) a disk of its own of this many MiB
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u32).range(CONTAINERD_DISK_LEAST..))]
    containerd_disk: Option<u32>,
    /// Give pods' logs (/var/log/pods) a disk of their own of this many MiB
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u32).range(LOG_DISK_LEAST..))]
    log_disk: Option<u32>,
    /// Leave these of the helper's servers to others, and start those in the lab's network before the machines boot
    ///
    /// For instance dnsmasq and HAProxy with what `helper export` makes of the lab's helper.yaml.
    #[arg(long, value_name = "SERVERS", value_delimiter = ',')]
    without: Vec<Server>,
    /// Let the machine-config server answer every client, as OpenShift's does
    #[arg(long, conflicts_with = "assets")]
    open: bool,
    #[command(flatten)]
    no_progress: NoProgress,
    /// Make everything, and leave the machines off: `lab up` without it switches them on
    #[arg(long)]
    prepare: bool,
    /// Make the assets as if it were so many hours ago
    #[arg(
        long,
        hide = true,
        value_name = "HOURS",
        default_value_t = 0,
        allow_hyphen_values = true,
        conflicts_with = "assets"
    )]
    made_hours_ago: i64,
    /// Go through bootkube stage by stage: see what each does and why, let it run, and see what came of it
    #[arg(long)]
    step: bool,
    /// Stop bootkube after this stage; machines stay on, and `lab up` goes on later
    #[arg(long, value_name = "STAGE", value_parser = super::stage::stages(), conflicts_with_all = ["step", "probe"])]
    until: Option<String>,
    /// Run `seedling probe` meanwhile and write probe.json into the lab's directory; a lost write makes the command fail
    #[arg(long)]
    probe: bool,
}

/// What others can do in the helper's place. Not HTTP, which gives each config to its machine, and not the registry.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Server {
    Dhcp,
    Dns,
    Tftp,
    LoadBalancer,
}

impl From<Server> for HelperServer {
    fn from(server: Server) -> Self {
        match server {
            Server::Dhcp => Self::Dhcp,
            Server::Dns => Self::Dns,
            Server::Tftp => Self::Tftp,
            Server::LoadBalancer => Self::LoadBalancer,
        }
    }
}

pub(crate) async fn run(args: UpArgs) -> Result<()> {
    // The name becomes part of paths: nothing is touched before it is a name.
    seedling_lab::check_name(&args.lab.name)?;
    if args.step {
        super::step::ensure_somebody_to_ask()?;
    }
    args.no_progress.configure();
    args.hardware.check()?;
    let labs = Labs::from_env();
    let kinds = kinds(&labs, &args)?;
    let release = ensure_release(args.release.clone()).await?;
    let seed_store = match args.seed_images {
        true => {
            let (release, cache) = (release.clone(), labs.cache.clone());
            Some(tokio::task::spawn_blocking(move || seedling_release::seed_store(&release, &cache)).await??)
        }
        false => None,
    };
    let stack = Stack::of(&inventory(&labs, &args)?)?;
    ensure!(
        stack == Stack::Ipv4 || kinds.is_empty(),
        "QEMU machines boot by IPv4 only: leave --stack {} or --machines out",
        stack.as_str()
    );
    let (assets, inventory, domain) = make_assets(&labs, &args, &release)?;
    let started = Instant::now();
    let spec = spec(&args, domain.clone(), inventory, kinds, (assets, release), seed_store)?;
    let lab = up_machines(&args, spec).await?;
    let kubeconfig = write_kubeconfig(&lab, &domain)?;
    if args.prepare {
        return Ok(());
    }
    if let Some(stage) = &args.until {
        return super::step::until(&lab, stage).await;
    }
    if args.step && !super::step::lab(&lab).await? {
        return Ok(());
    }
    let client = seedling_cluster::connect(Some(&kubeconfig)).await?;
    let mut bring_up = BringUp::begin(lab, started, client, &say)?;
    let (grown, probed) = match args.probe {
        true => {
            let (grown, log) = beside(&kubeconfig, RATE, bring_up.grow()).await;
            // What was probed up to a failure helps to find it.
            (grown, Some(write_report(log, &bring_up.lab, &say)))
        }
        false => (bring_up.grow().await, None),
    };
    if grown.is_err() {
        tell_cause(&bring_up.lab).await;
    }
    grown?;
    bring_up.finish()?;
    if let Some(report) = probed.transpose()? {
        ensure!(report.kept_everything(), "the prober misses what it wrote: {}", report.summary());
    }
    println!("export KUBECONFIG={}", kubeconfig.display());
    Ok(())
}

/// What the logs say of a bring-up that failed; nothing, if no rule knows it.
async fn tell_cause(lab: &Lab) {
    let Ok(bundle) = seedling_lab::gather::gather(lab, &|_| ()).await else { return };
    if let Some(cause) = seedling_diagnose::diagnose(&bundle).first() {
        say(&cause.sentence());
        say(&format!("evidence: seedling analyze --name {}", lab.name()));
    }
}

fn stack(text: &str) -> Result<Stack, String> {
    let all = [Stack::Ipv4, Stack::Ipv6, Stack::Dual];
    all.into_iter().find(|stack| stack.as_str() == text).ok_or_else(|| "ipv4, ipv6 or dual".into())
}

/// Of the install-config: those of both families in each list, or of one; OpenShift's own defaults where it has any.
fn networks(stack: Stack) -> String {
    let both = |four: &str, six: &str| match stack {
        Stack::Ipv4 => four.to_string(),
        Stack::Ipv6 => six.to_string(),
        Stack::Dual => format!("{four}{six}"),
    };
    format!(
        "  clusterNetwork:\n{}  serviceNetwork:\n{}  machineNetwork:\n{}",
        both("  - cidr: 10.128.0.0/14\n    hostPrefix: 23\n", "  - cidr: fd01::/48\n    hostPrefix: 64\n"),
        both("  - 172.30.0.0/16\n", "  - fd02::/112\n"),
        both("  - cidr: 192.168.100.0/24\n", "  - cidr: fd5e:ed00:0:100::/64\n"),
    )
}

/// As many as OpenShift's control planes have. Two would have to be able to switch each other off.
pub(super) fn masters(text: &str) -> Result<u8, String> {
    match text.parse() {
        Ok(2) => Err("two masters need fencing credentials or an arbiter, which a lab does not have".into()),
        Ok(masters @ 1..=MOST_MASTERS) => Ok(masters),
        _ => Err("1, 3, 4 or 5".into()),
    }
}

/// The machines of `args`: those of its file, else those the lab has, or the default ones; behind the lab's own load balancer.
fn inventory(labs: &Labs, args: &UpArgs) -> Result<Inventory> {
    let Some(path) = &args.hosts else {
        return match (labs.open(&args.lab.name), args.masters, args.workers, args.stack) {
            (Ok(lab), None, None, None) => Ok(lab.record.spec.inventory),
            (_, masters, workers, stack) => {
                let inventory = inventory_of(stack.unwrap_or_default(), masters.unwrap_or(3));
                Ok(with_workers(inventory, workers.unwrap_or(0))?)
            }
        };
    };
    let yaml = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
    let mut inventory = Inventory::parse(&yaml).map_err(|errors| {
        let lines: Vec<_> = errors.iter().map(ToString::to_string).collect();
        anyhow::anyhow!("{}:\n{}", path.display(), lines.join("\n"))
    })?;
    if inventory.load_balancers.is_empty() {
        let (helper, second) = Stack::of(&inventory)?.helper();
        inventory.load_balancers.extend(std::iter::once(helper).chain(second));
    }
    Ok(inventory)
}

/// Those of `args`, or those that the lab has.
fn kinds(labs: &Labs, args: &UpArgs) -> Result<Kinds> {
    let kinds = match (&args.machines, labs.open(&args.lab.name)) {
        (Some(machines), _) => {
            let hardware = |role| args.hardware.of(role);
            machines
                .kinds(&inventory(labs, args)?, hardware)
                .map_err(|why| anyhow::anyhow!("--machines: {why}"))?
        }
        (None, Ok(lab)) => return Ok(lab.record.spec.kinds),
        (None, Err(_)) => Kinds::new(),
    };
    ensure!(
        !kinds.is_empty() || !args.hardware.given(),
        "--memory, --cpus, --disk, --firmware, --boot and --media are for QEMU machines: add --machines qemu, or worker=qemu"
    );
    Ok(kinds)
}

/// `assets` and `release` must be there already.
fn spec(
    args: &UpArgs,
    cluster_domain: ClusterDomain,
    inventory: Inventory,
    kinds: Kinds,
    (assets, release): (PathBuf, PathBuf),
    seed_store: Option<PathBuf>,
) -> Result<LabSpec> {
    let mut spec = LabSpec::new(&args.lab.name, cluster_domain, inventory, assets, release)?;
    spec.seed_store = seed_store.filter(|_| args.seed_images);
    spec.api_port = args.api_port;
    (spec.etcd_disk_mib, spec.bad_etcd_disk) = (args.etcd_disk, args.bad_etcd_disk);
    (spec.containerd_disk_mib, spec.log_disk_mib) = (args.containerd_disk, args.log_disk);
    spec.kinds = kinds;
    spec.without = args.without.iter().map(|&server| server.into()).collect();
    Ok(spec)
}

/// The last part of `lab up`: network, helper, machines switched on.
async fn up_machines(args: &UpArgs, spec: LabSpec) -> Result<Lab> {
    let pace = match (&args.until, args.step) {
        (Some(stage), _) => Pace::Only(seedling_bootkube::step::through(stage)),
        (None, true) => Pace::Ask,
        (None, false) => Pace::Free,
    };
    let options =
        seedling_lab::Options { switch_on: !args.prepare, pace, ..seedling_lab::Options::this_program()? };
    Ok(seedling_lab::up(&Labs::from_env(), spec, &options, &say).await?)
}

/// Made once for a lab: the same lab brought up again keeps its identity, a new lab never gets an old one.
fn make_assets(labs: &Labs, args: &UpArgs, release: &Path) -> Result<(PathBuf, Inventory, ClusterDomain)> {
    let inventory = inventory(labs, args)?;
    let dir = args.assets.clone().unwrap_or_else(|| labs.assets_dir(&args.lab.name));
    seedling_assets::recover(&dir)?;
    if !dir.join("bootstrap.ign").exists() {
        if args.assets.is_none() {
            let _ = std::fs::remove_dir_all(&dir);
            std::fs::create_dir_all(&dir)?;
            let count = |role| inventory.role(role).count().to_string();
            let (masters, workers) = (count(Role::Master), count(Role::Worker));
            let key = ssh_key(&seedling_lab::ssh_key(&labs.dir(&args.lab.name)))?;
            let networks = networks(Stack::of(&inventory)?);
            let values = [
                ("masters", masters.as_str()),
                ("workers", workers.as_str()),
                ("networks", networks.as_str()),
                ("sshKey", key.trim()),
            ];
            let config = render(INSTALL_CONFIG, table(&values))?;
            std::fs::write(dir.join("install-config.yaml"), config)?;
        }
        let hosts = dir.join("hosts.yaml");
        if !hosts.exists() {
            std::fs::write(&hosts, inventory.to_yaml())?;
        }
        let mut options = seedling_assets::Options {
            hosts: Some(hosts),
            release: release.into(),
            open: args.open,
            ..Default::default()
        };
        options.now -= time::Duration::hours(args.made_hours_ago);
        if !args.manifest.is_empty() {
            seedling_assets::create(Target::Manifests, &dir, &options)?;
        }
        for manifest in &args.manifest {
            let name =
                manifest.file_name().with_context(|| format!("{} is not a file", manifest.display()))?;
            let path = dir.join("openshift").join(name);
            std::fs::copy(manifest, path).with_context(|| manifest.display().to_string())?;
        }
        let outcome = seedling_assets::create(Target::IgnitionConfigs, &dir, &options)?;
        if args.assets.is_some() {
            let warnings = outcome.messages.iter().filter(|m| m.level == Level::Warning);
            warnings.for_each(|m| eprintln!("warning: {}", m.text));
        }
    }
    let kubeconfig = std::fs::read_to_string(dir.join("auth/kubeconfig"))?;
    let server = kubeconfig.lines().find_map(|l| l.trim().strip_prefix("server: https://api."));
    let domain =
        server.and_then(|s| s.strip_suffix(":6443")).context("auth/kubeconfig names no api server")?;
    Ok((dir, inventory, ClusterDomain(domain.into())))
}

/// Made once for a lab: with it `lab ssh` enters its machines. Returns the public half.
fn ssh_key(path: &Path) -> Result<String> {
    let public = path.with_extension("pub");
    if !public.exists() {
        let dir = path.parent().context("a key has a directory")?;
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
        let pair = seedling_pki::ssh_keypair()?;
        write_atomic(path, pair.key, 0o600)?;
        write_atomic(&public, pair.public + "\n", 0o644)?;
    }
    Ok(std::fs::read_to_string(&public)?)
}

fn write_kubeconfig(lab: &Lab, domain: &ClusterDomain) -> Result<PathBuf> {
    let api = lab.record.api.context("the lab has no forward to the API")?;
    let admin = std::fs::read_to_string(lab.record.spec.assets.join("auth/kubeconfig"))?;
    let path = lab.kubeconfig();
    write_atomic(&path, lab_kubeconfig(&admin, &format!("https://{api}"), &domain.api()), 0o600)?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_planes_have_upstreams_sizes() {
        let sizes: Vec<_> = (0..8).filter(|n: &u8| masters(&n.to_string()).is_ok()).collect();
        assert_eq!(sizes, [1, 3, 4, 5]);
        assert!(masters("2").is_err_and(|why| why.contains("fencing")));
        assert!(masters("three").is_err());
    }
}
