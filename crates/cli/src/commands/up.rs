//! `seedling lab up`: release → assets → machines → a cluster that works, with a line for each thing that happened.

use super::lab::{UpArgs, inventory, up_machines};
use super::probe::{RATE, beside, write_report};
use super::release::ensure_release;
use anyhow::{Context, Result, bail, ensure};
use seedling_api::{ClusterVersion, Conditions, ConfigMap, Etcd, Files, Node};
use seedling_assets::{Level, Target, lab_kubeconfig};
use seedling_lab::probe::BringUp as Times;
use seedling_lab::{Lab, Labs, NodeStatus};
use seedling_observe::first_boot::{self, FirstBoot};
use seedling_steps::journal::fold;
use seedling_steps::{Condition, Probe, stage_seconds, wait_for, write_atomic};
use seedling_types::{ClusterDomain, Inventory, Role};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The lab's cluster, for those who bring no install-config of their own.
const INSTALL_CONFIG: &str = include_str!("up/install-config.yaml");
/// When nothing moves for this long the bring-up has failed; a slow machine still moves. Longer than the operators' patience with a
/// master that does not come.
const NO_PROGRESS: Duration = Duration::from_secs(600);
const POLL: Duration = Duration::from_millis(250);

struct BringUp {
    lab: Lab,
    started: Instant,
    times: Times,
    client: kube::Client,
}

pub async fn run(args: UpArgs) -> Result<()> {
    // The name becomes part of paths: nothing is touched before it is a name.
    seedling_lab::check_name(&args.lab.name)?;
    args.no_progress.configure();
    let labs = Labs::from_env();
    let release = ensure_release(args.release.clone()).await?;
    let seed_store = match args.seed_images {
        true => {
            let (release, cache) = (release.clone(), labs.cache.clone());
            Some(tokio::task::spawn_blocking(move || seedling_release::seed_store(&release, &cache)).await??)
        }
        false => None,
    };
    let (assets, inventory, domain) = make_assets(&labs, &args, &release)?;
    let started = Instant::now();
    let lab = up_machines(&args, domain.clone(), inventory, assets, release, seed_store).await?;
    let kubeconfig = write_kubeconfig(&lab, &domain)?;
    let client = seedling_cluster::connect(Some(&kubeconfig)).await?;
    let since = i64::try_from(started.elapsed().as_millis()).unwrap_or_default();
    let times = Times { started_unix_millis: seedling_lab::probe::now() - since, ..Times::default() };
    let mut bring_up = BringUp { lab, started, times, client };
    bring_up.reached("machines switched on")?;
    let (grown, probed) = match args.probe {
        true => {
            let (grown, log) = beside(&kubeconfig, RATE, bring_up.grow()).await;
            // What was probed up to a failure helps to find it.
            (grown, Some(log.map_err(Into::into).and_then(|log| write_report(&log, &bring_up.lab))))
        }
        false => (bring_up.grow().await, None),
    };
    grown?;
    bring_up.finish()?;
    if let Some(report) = probed.transpose()? {
        ensure!(report.kept_everything(), "the prober misses what it wrote: {}", report.summary());
    }
    println!("export KUBECONFIG={}", kubeconfig.display());
    Ok(())
}

/// Made once for a lab: the same lab brought up again keeps its identity, a new lab never gets an old one.
fn make_assets(labs: &Labs, args: &UpArgs, release: &Path) -> Result<(PathBuf, Inventory, ClusterDomain)> {
    let inventory = inventory(args)?;
    let dir = args.assets.clone().unwrap_or_else(|| labs.assets_dir(&args.lab.name));
    seedling_assets::recover(&dir)?;
    if !dir.join("bootstrap.ign").exists() {
        if args.assets.is_none() {
            let _ = std::fs::remove_dir_all(&dir);
            std::fs::create_dir_all(&dir)?;
            let config = INSTALL_CONFIG.replace("MASTERS", &inventory.masters().len().to_string());
            std::fs::write(dir.join("install-config.yaml"), config)?;
        }
        let hosts = dir.join("hosts.yaml");
        if !hosts.exists() {
            std::fs::write(&hosts, inventory.to_yaml())?;
        }
        let options = seedling_assets::Options {
            hosts: Some(hosts),
            release: release.into(),
            open: args.open,
            ..Default::default()
        };
        if !args.manifest.is_empty() {
            seedling_assets::create(Target::Manifests, &dir, &options)?;
        }
        for manifest in &args.manifest {
            let name = manifest.file_name().with_context(|| format!("{} is no file", manifest.display()))?;
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

fn write_kubeconfig(lab: &Lab, domain: &ClusterDomain) -> Result<PathBuf> {
    let api = lab.record.api.context("the lab has no forward to the API")?;
    let admin = std::fs::read_to_string(lab.record.spec.assets.join("auth/kubeconfig"))?;
    let path = lab.kubeconfig();
    write_atomic(&path, lab_kubeconfig(&admin, &format!("https://{api}"), &domain.api()), 0o600)?;
    Ok(path)
}

impl BringUp {
    fn reached(&mut self, milestone: &str) -> Result<()> {
        self.reached_and_say(milestone, milestone)
    }

    /// Written down at once, by the name that chaos and the timeline know; people read `says`.
    fn reached_and_say(&mut self, milestone: &str, says: &str) -> Result<()> {
        let seconds = self.started.elapsed().as_secs_f64();
        eprintln!("{seconds:7.1}s  {says}");
        self.times.milestones.push((milestone.into(), (seconds * 1000.0).round() / 1000.0));
        self.save()
    }

    fn save(&self) -> Result<()> {
        let json = serde_json::to_vec_pretty(&self.times)?;
        Ok(write_atomic(&self.lab.bring_up_file(), json, 0o644)?)
    }

    async fn grow(&mut self) -> Result<()> {
        self.wait("the API to answer", "the API answers", async |c| {
            Ok(c.apiserver_version().await.map(|v| v.git_version).ok())
        })
        .await?;
        let masters = self.lab.record.spec.inventory.masters().len();
        self.wait("all masters to join", "the masters have joined", async |c| joined(c, masters).await)
            .await?;
        self.tell_first_boots();
        self.wait("all masters to carry etcd", "etcd runs on the masters", async |c| {
            etcd_condition(c, "EtcdRunningInCluster").await
        })
        .await?;
        self.wait("bootstrapping to complete", "bootstrapping", async |c| bootstrap_complete(c).await)
            .await?;
        self.wait("the bootstrap etcd member to be removed", "etcd has left the bootstrap node", async |c| {
            etcd_condition(c, "EtcdBootstrapMemberRemoved").await
        })
        .await?;
        if let Some(bootstrap) = self.lab.record.spec.inventory.bootstrap() {
            self.lab.machine(&bootstrap.name)?.cut_off().await?;
            self.reached("bootstrap node switched off")?;
        }
        self.wait("all operators to have finished", "all operators have finished", async |c| {
            install_complete(c).await
        })
        .await
    }

    /// What the machines found out about themselves.
    fn tell_first_boots(&self) {
        for machine in self.lab.machines() {
            let report = std::fs::read(machine.on_disk(first_boot::REPORT)).ok();
            let report = report.and_then(|json| serde_json::from_slice::<FirstBoot>(&json).ok());
            for finding in report.into_iter().flat_map(|r| r.findings) {
                eprintln!("warning: {}: {finding}", machine.name);
            }
        }
    }

    /// `ask` says nothing (`None`) until it is so, and then what it saw. `says` is for people, when it is so.
    async fn wait(
        &mut self,
        what: &str,
        says: &str,
        ask: impl AsyncFn(&kube::Client) -> Result<Option<String>>,
    ) -> Result<()> {
        // The milestones tell; what the machines are at in between is in `lab status` and `lab journal`.
        let hint = format!("seedling lab journal --name {}", self.lab.record.spec.name);
        let condition = Condition::new(what, NO_PROGRESS, hint).quiet();
        let (client, lab) = (self.client.clone(), &self.lab);
        let mut at_work = AtWork::default();
        let met = wait_for(&condition, POLL, async || match ask(&client).await {
            Ok(Some(seen)) => Probe::Met(seen),
            Ok(None) => Probe::Unmet(at_work.look(lab)),
            Err(e) => Probe::Unmet(format!("{} ({e:#})", at_work.look(lab))),
        })
        .await;
        match met {
            Ok(seen) => self.reached_and_say(&format!("{what}: {seen}"), &format!("{says}: {seen}")),
            Err(unmet) => bail!("{unmet}\n{}", chains(&self.lab).await),
        }
    }

    fn finish(&mut self) -> Result<()> {
        self.times.stages = stage_seconds(&self.lab.bootkube_record());
        eprintln!("bootkube's stages:");
        for (stage, seconds) in &self.times.stages {
            eprintln!("{seconds:7.1}s  {stage}");
        }
        self.save()?;
        eprintln!(
            "{:7.1}s  the cluster is ready; times are in {}",
            self.started.elapsed().as_secs_f64(),
            self.lab.bring_up_file().display()
        );
        Ok(())
    }
}

/// What the machines are at, said anew only when one of them has come further: a step that is tried again and again does not count.
#[derive(Default)]
struct AtWork {
    progress: Vec<(usize, usize)>,
    says: String,
}

impl AtWork {
    fn look(&mut self, lab: &Lab) -> String {
        let hosts = &lab.record.spec.inventory.hosts;
        let states: Vec<_> = hosts.iter().map(|h| (&h.name, fold(&lab.journal(&h.name)))).collect();
        let progress: Vec<_> = states.iter().map(|(_, state)| state.progress()).collect();
        if self.progress != progress {
            let open = states.iter().flat_map(|(node, state)| {
                state.open().map(move |(who, step)| format!("{node}: {who} is at {}", step.name))
            });
            self.says = open.collect::<Vec<_>>().join(", ");
            self.progress = progress;
        }
        match self.says.is_empty() {
            true => "no machine has an open step in its journal".into(),
            false => self.says.clone(),
        }
    }
}

/// Where each machine's boot stands, for the message of a failed bring-up.
async fn chains(lab: &Lab) -> String {
    match seedling_lab::status(lab).await {
        Ok(status) => {
            let masters = status.nodes.iter().filter(|n| n.role != Role::Worker);
            let at = |n: &NodeStatus| n.open.iter().map(|o| format!("; {o}")).collect::<String>();
            masters.map(|n| format!("  {}: {}{}", n.name, n.says, at(n))).collect::<Vec<_>>().join("\n")
        }
        Err(e) => e.to_string(),
    }
}

async fn joined(client: &kube::Client, wanted: usize) -> Result<Option<String>> {
    let nodes = seedling_cluster::list::<Node>(client, None, "").await?;
    if nodes.len() >= wanted {
        return Ok(Some(format!("{} nodes", nodes.len())));
    }
    // The others go on without it, and say which one is missing.
    let missing = etcd_condition(client, "EtcdMembersDegraded").await?;
    Ok(missing.map(|missing| format!("{} of {wanted} nodes; {missing}", nodes.len())))
}

async fn etcd_condition(client: &kube::Client, kind: &str) -> Result<Option<String>> {
    let etcd = seedling_cluster::get::<Etcd>(client, None, "cluster").await?;
    Ok(etcd.and_then(|etcd| etcd.condition(kind)).filter(|c| c.is_true()).map(|c| c.message))
}

async fn bootstrap_complete(client: &kube::Client) -> Result<Option<String>> {
    let map = seedling_cluster::get::<ConfigMap>(client, Some("kube-system"), "bootstrap").await?;
    Ok(map.filter(|map| map.file("status") == Some("complete")).map(|_| "complete".into()))
}

pub async fn install_complete(client: &kube::Client) -> Result<Option<String>> {
    let Some(version) = seedling_cluster::get::<ClusterVersion>(client, None, "version").await? else {
        return Ok(None);
    };
    let is = |kind: &str, status: &str| version.condition(kind).is_some_and(|c| c.status == status);
    let message = version.condition("Progressing").map(|c| c.message).unwrap_or_default();
    match is("Available", "True") && is("Progressing", "False") && is("Failing", "False") {
        true => Ok(Some(message)),
        false => bail!("{message}"),
    }
}
