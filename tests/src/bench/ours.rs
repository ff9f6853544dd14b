//! Seedling, as a user has it: `seedling lab up`.

use super::observe::Cluster;
use super::{Field, SWITCH_ON};
use anyhow::{Context, Result, bail};
use seedling_cluster::etcd::EtcdTls;
use seedling_machines::Machine;
use seedling_types::paths::STATIC_POD_RESOURCES;
use std::fs::{self, File};
use std::io::Write;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Instant;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStderr, Command};

/// Of the service network of a lab without an install-config of its own.
const SERVICE: Ipv4Addr = Ipv4Addr::new(172, 30, 0, 1);
const DNS: Ipv4Addr = Ipv4Addr::new(172, 30, 0, 10);

/// The rest of a `lab up` whose machines are on.
pub(super) struct Growth {
    child: Child,
    output: Lines<BufReader<ChildStderr>>,
    log: File,
}

pub(super) async fn switch_on(field: &Field, lab: &str) -> Result<(Cluster, Growth)> {
    let log = File::create(field.logs.join(format!("{lab}.log")))?;
    let mut child = Command::new(&field.seedling)
        .args(["lab", "up", "--masters", "3", "--name", lab])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .with_context(|| field.seedling.display().to_string())?;
    let stderr = child.stderr.take().context("lab up has no stderr")?;
    let mut growth = Growth { child, output: BufReader::new(stderr).lines(), log };
    growth.said(SWITCH_ON).await?;
    let clock = Instant::now();
    // Only now have all machines their network: one that is switched on gets a new card.
    growth.said("machines switched on").await?;
    let lab = field.labs.open(lab)?;
    let admin_kubeconfig = lab.record.spec.assets.join("auth/kubeconfig");
    Ok((Cluster { lab, clock, service: SERVICE, dns: DNS, admin_kubeconfig, etcd_tls }, growth))
}

impl Growth {
    pub(super) async fn ended(mut self) -> Result<()> {
        while self.line().await?.is_some() {}
        let status = self.child.wait().await?;
        if status.success() { Ok(()) } else { bail!("lab up ended with {status}") }
    }

    async fn said(&mut self, what: &str) -> Result<()> {
        while let Some(line) = self.line().await? {
            if line.ends_with(what) {
                return Ok(());
            }
        }
        bail!("lab up ended with {}", self.child.wait().await?)
    }

    async fn line(&mut self) -> Result<Option<String>> {
        let line = self.output.next_line().await?;
        if let Some(line) = &line {
            writeln!(self.log, "{line}")?;
        }
        Ok(line)
    }
}

/// From whichever revision the installer has put there.
fn etcd_tls(master: &Machine) -> Option<EtcdTls> {
    let entries = fs::read_dir(master.on_disk(STATIC_POD_RESOURCES)).ok()?;
    let revisions = entries.filter_map(|e| Some(e.ok()?.path()));
    let is_etcd = |p: &PathBuf| p.file_name().is_some_and(|n| n.to_string_lossy().starts_with("etcd-pod-"));
    let read = |dir: PathBuf| {
        let certs = dir.join("secrets/etcd-all-certs").join(format!("etcd-peer-{}", master.name));
        Some(EtcdTls {
            ca: fs::read_to_string(dir.join("configmaps/etcd-ca-bundle/ca-bundle.crt")).ok()?,
            cert: fs::read_to_string(certs.with_extension("crt")).ok()?,
            key: fs::read_to_string(certs.with_extension("key")).ok()?,
        })
    };
    revisions.filter(is_etcd).find_map(read)
}
