//! kubeadm's highly available cluster with stacked etcd, as its documentation brings it up: `init` on the first master, a pod
//! network, `join --control-plane` on the others. What it needs to know beforehand it knows: nobody types anything here.

mod certificates;
mod files;
mod flannel;
pub(super) mod store;
mod tuned;

use super::observe::Cluster;
use super::{Field, SWITCH_ON};
use anyhow::{Context, Result, bail};
use files::{DNS, INIT_CONFIG, SERVICE, Secrets};
use seedling_cluster::etcd::EtcdTls;
use seedling_lab::{Lab, LabSpec, Options, Pace, default_inventory};
use seedling_machines::Machine;
use seedling_steps::{Awaited, Condition, Probe, wait_for};
use seedling_types::{ClusterDomain, Role};
use sha2::{Digest, Sha256};
use std::fs::{self, File};
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::OnceLock;
use std::time::{Duration, Instant};
use tokio::io::AsyncWriteExt;
use tuned::Tuned;

static CONFIGURED: Awaited = Awaited::in_test("MACHINE to have its configuration");
const NO_PROGRESS: Duration = Duration::from_secs(300);
const LOOK: Duration = Duration::from_millis(50);

/// Machines that are on; kubeadm has not run yet.
pub(super) struct Growth {
    lab: Lab,
    secrets: Secrets,
    tuned: bool,
    log: PathBuf,
}

pub(super) async fn switch_on(field: &Field, name: &str, tuned: bool) -> Result<(Cluster, Growth)> {
    let domain = ClusterDomain("kubeadm.seedling.lab".into());
    let mut inventory = default_inventory(3);
    inventory.hosts.retain(|h| h.role == Role::Master);
    let assets = field.labs.assets_dir(name);
    let secrets = Secrets::new();
    let settings = if tuned { Some(Tuned::new(&domain, field)?) } else { None };
    files::write(&assets, &inventory, &domain, field, &secrets, settings.as_ref())?;

    let mut spec = LabSpec::new(name, domain, inventory, assets, field.release_dir.clone())?;
    spec.seed_store = Some(field.kubeadm_store.dir().into());
    let options = Options { helper_program: field.seedling.clone(), switch_on: true, pace: Pace::Free };
    let clock = OnceLock::new();
    let progress = |said: &str| {
        if said == SWITCH_ON {
            clock.get_or_init(Instant::now);
        }
    };
    let lab = seedling_lab::up(&field.labs, spec, &options, &progress).await?;
    let clock = clock.into_inner().context("the machines were on already")?;

    let first = lab.machines().into_iter().next().context("no machines")?;
    let cluster = Cluster {
        lab: lab.clone(),
        clock,
        service: SERVICE,
        dns: DNS,
        admin_kubeconfig: first.on_disk("/etc/kubernetes/admin.conf"),
        etcd_tls,
    };
    let log = field.logs.join(format!("{name}.log"));
    File::create(&log)?; // not the last benchmark's
    Ok((cluster, Growth { lab, secrets, tuned, log }))
}

impl Growth {
    pub(super) async fn grow(self, parallel: bool) -> Result<()> {
        let machines = self.lab.machines();
        let (first, others) = machines.split_first().context("no machines")?;
        // Tuned, every master has its certificates already.
        let upload = if self.tuned { "" } else { "--upload-certs --skip-certificate-key-print" };
        let init = format!("kubeadm init --config {INIT_CONFIG} {upload} --skip-token-print {FLAGS}");
        self.on(first, &init, "").await?;
        let apply = format!("kubectl --kubeconfig /etc/kubernetes/admin.conf apply -f {}", flannel::PATH);
        self.on(first, &apply, "").await?;

        let hash = ca_hash(&fs::read_to_string(first.on_disk("/etc/kubernetes/pki/ca.crt"))?)?;
        let join = async |machine: &Machine| {
            let config =
                files::join_config(machine, &self.lab.record.spec, &self.secrets, &hash, self.tuned)?;
            // By stdin: the config holds the token.
            let join =
                format!("umask 077; cat >/root/join.yaml; kubeadm join --config /root/join.yaml {FLAGS}");
            self.on(machine, &join, &config).await
        };
        if parallel {
            futures::future::try_join_all(others.iter().map(join)).await?;
        } else {
            for machine in others {
                join(machine).await?;
            }
        }
        Ok(())
    }

    /// Runs it on the machine as soon as that has booted.
    async fn on(&self, machine: &Machine, script: &str, input: &str) -> Result<()> {
        let hint = format!("read {}", machine.console_log().display());
        let condition = Condition::new(&CONFIGURED, NO_PROGRESS, hint).with("MACHINE", &machine.name);
        wait_for(&condition, LOOK, async || match machine.first_boot_done() {
            true => Probe::Met(()),
            false => Probe::Unmet("Ignition is not through".into()),
        })
        .await?;
        let script = format!("until systemctl -q is-active containerd; do sleep 0.1; done; {script}");
        let log = File::options().create(true).append(true).open(&self.log)?;
        let mut child = machine
            .exec(&["sh".into(), "-c".into(), script.clone()], false)
            .stdin(Stdio::piped())
            .stdout(log.try_clone()?)
            .stderr(log)
            .kill_on_drop(true)
            .spawn()
            .context("runc")?;
        if let Some(mut stdin) = child.stdin.take() {
            stdin.write_all(input.as_bytes()).await?;
        }
        let status = child.wait().await?;
        if status.success() { Ok(()) } else { bail!("{}: `{script}` ended with {status}", machine.name) }
    }
}

/// Nodes in containers fail checks that mean nothing there: kernel config, swap, bridge settings.
const FLAGS: &str = "--ignore-preflight-errors=all -v=1";

/// What `join` trusts: the hash of the CA's public key.
fn ca_hash(pem: &str) -> Result<String> {
    let (_, pem) = x509_parser::pem::parse_x509_pem(pem.as_bytes()).context("ca.crt")?;
    let key = pem.parse_x509().context("ca.crt")?.tbs_certificate.subject_pki.raw.to_vec();
    Ok(format!("sha256:{}", files::hex(&Sha256::digest(key))))
}

fn etcd_tls(master: &Machine) -> Option<EtcdTls> {
    let read =
        |name: &str| fs::read_to_string(master.on_disk(&format!("/etc/kubernetes/pki/etcd/{name}"))).ok();
    Some(EtcdTls { ca: read("ca.crt")?, cert: read("peer.crt")?, key: read("peer.key")? })
}
