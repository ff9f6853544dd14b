//! `seedling node add` and `seedling node remove`: machines that are no lab's. The cluster, hosts.yaml and the helper follow; power is a
//! person's.

use super::csr::Cluster;
use super::lab::{Format, Output};
use super::log::NoProgress;
use super::membership;
use anyhow::{Context, Result, bail};
use clap::Args;
use seedling_api::{Meta, Node};
use seedling_cluster::{Resent, connect_without_retries, drain::drain, get};
use seedling_lab::{may_leave, reload_config, write_hosts};
use seedling_steps::write_atomic;
use seedling_types::admission::digest_of;
use seedling_types::{HelperConfig, Host, Inventory, Role, hosts_file};
use serde_json::json;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

#[derive(Args)]
pub(crate) struct AddArgs {
    /// The machine's name, which is also its node's
    name: String,
    /// The MAC address of the network card it boots from, e.g. 52:54:00:12:34:56
    #[arg(long)]
    mac: String,
    /// The address it gets by DHCP
    #[arg(long, value_name = "IPV4")]
    address: IpAddr,
    /// What it becomes; the control plane of a living cluster stays as it is
    #[arg(long, default_value = "worker", value_parser = ["worker"])]
    role: String,
    #[command(flatten)]
    files: FilesArgs,
    #[command(flatten)]
    output: Output,
}

#[derive(Args)]
pub(crate) struct RemoveArgs {
    /// The node's name
    name: String,
    /// Also lose pods that nobody would start elsewhere
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    files: FilesArgs,
    #[command(flatten)]
    no_progress: NoProgress,
}

/// What is kept up to date beside the cluster.
#[derive(Args)]
struct FilesArgs {
    #[command(flatten)]
    cluster: Cluster,
    /// The asset directory with hosts.yaml, which receives nodes/NAME.ign [default: the current directory]
    #[arg(long, value_name = "DIR", default_value = ".")]
    dir: PathBuf,
    /// The helper's configuration, helper.yaml; a helper that runs with it here takes it up at once
    #[arg(long, value_name = "FILE")]
    helper: Option<PathBuf>,
}

pub(super) async fn add(args: AddArgs) -> Result<()> {
    let AddArgs { name, mac, address, files, output, .. } = args;
    let host =
        Host { name, role: Role::Worker, mac: mac.to_ascii_lowercase(), address, second_address: None };
    // What is wrong with it by itself, before anybody is asked.
    changed(&Inventory::default(), &Wish::Add(&host))?;
    not_of_lab(&files, &host.name)?;
    let client = files.cluster.connect().await?;
    membership::must_be_grown(&client).await?;
    let pointer = membership::admit(&client, &host, &files.dir).await?;
    let helper = follow_up(&files, &Wish::Add(&host)).await?;
    match output.output {
        Format::Json => {
            let mut said = serde_json::to_value(&host)?;
            said["pointer"] = json!(pointer);
            println!("{}", serde_json::to_string_pretty(&said)?);
        }
        Format::Table => println!("{}", pointer.display()),
    }
    eprintln!("the cluster expects {} with MAC {} at {address}; {helper}", host.name, host.mac);
    eprintln!("switch it on, then: seedling wait-for node {}", host.name);
    Ok(())
}

pub(super) async fn remove(args: RemoveArgs) -> Result<()> {
    args.no_progress.configure();
    let (name, files) = (&args.name, &args.files);
    not_of_lab(files, name)?;
    let kubeconfig = files.cluster.kubeconfig()?;
    let client = files.cluster.connect().await?;
    match membership::known(&client, name).await {
        Ok(host) => may_leave(&host)?,
        // Of a run that was killed; a master is known to the inventory.
        Err(unknown) => match get::<Node>(&client, None, name).await? {
            Some(node) if node.label("node-role.kubernetes.io/master").is_none() => {}
            _ => return Err(unknown),
        },
    }
    drain(&connect_without_retries(&kubeconfig, &Resent::default()).await?, name, args.force).await?;
    membership::dismiss(&client, name).await?;
    let helper = follow_up(files, &Wish::Remove(name)).await?;
    eprintln!("the cluster knows {name} no more; {helper}");
    eprintln!(
        "switch it off, and erase its disk before it joins again: until it ends, its certificate is still good"
    );
    Ok(())
}

/// A lab has machines of its own, and switches them.
fn not_of_lab(files: &FilesArgs, name: &str) -> Result<()> {
    match files.cluster.lab_if_meant() {
        Some(lab) => bail!(
            "{lab:?} is a lab: seedling lab add {name} --name {lab}, or lab remove; with --kubeconfig another cluster is meant"
        ),
        None => Ok(()),
    }
}

enum Wish<'a> {
    Add(&'a Host),
    Remove(&'a str),
}

/// Pure.
fn changed(before: &Inventory, wish: &Wish) -> Result<Inventory> {
    match wish {
        Wish::Add(host) => before.with((*host).clone()).map_err(|errors| {
            let said = errors
                .iter()
                .map(|e| format!("{e}{}", e.hint.as_ref().map(|h| format!(" ({h})")).unwrap_or_default()));
            anyhow::anyhow!(said.collect::<Vec<_>>().join("\n"))
        }),
        Wish::Remove(name) => Ok(before.without(name)),
    }
}

/// hosts.yaml, if there is one, and the helper. Says what became of it.
async fn follow_up(files: &FilesArgs, wish: &Wish<'_>) -> Result<String> {
    let hosts = files.dir.join("hosts.yaml");
    if let Ok(text) = std::fs::read_to_string(&hosts) {
        let before = Inventory::parse(&text).map_err(|e| anyhow::anyhow!("{}: {}", hosts.display(), e[0]))?;
        write_hosts(&hosts, &changed(&before, wish)?)?;
    }
    if let Wish::Remove(name) = wish {
        let _ = std::fs::remove_file(files.dir.join(seedling_assets::node_file(name)));
    }
    let Some(path) = &files.helper else {
        return Ok("tell your DHCP and DNS servers, or name the helper's config with --helper".into());
    };
    let config = seedling_helper::load(path)?;
    let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
    let text = edited(&text, &config, wish)?;
    write_atomic(path, &text, 0o644).with_context(|| path.display().to_string())?;
    Ok(match reload(path, &config.ready_file, &text).await? {
        true => "the helper gives it its address and its config".into(),
        false => format!("no helper runs here with {}", path.display()),
    })
}

/// By SIGHUP; it finds the process by the config it was started with.
async fn reload(path: &Path, ready: &Path, text: &str) -> Result<bool> {
    Ok(reload_config(path, ready, &digest_of(text.as_bytes()), Path::new("the helper's log")).await?)
}

/// What people wrote in it stays, unless it can only be written anew. Pure.
fn edited(text: &str, config: &HelperConfig, wish: &Wish) -> Result<String> {
    let wanted = HelperConfig { inventory: changed(&config.inventory, wish)?, ..config.clone() };
    let text = match wish {
        _ if wanted == *config => Some(text.to_string()),
        Wish::Add(host) => hosts_file::add(text, host),
        Wish::Remove(name) => hosts_file::remove(text, name),
    };
    let same = |text: &String| serde_saphyr::from_str::<HelperConfig>(text).is_ok_and(|read| read == wanted);
    match text.filter(same) {
        Some(text) => Ok(text),
        None => Ok(serde_saphyr::to_string(&wanted)?),
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    const HELPER: &str = "# ours\nclusterDomain: ocp4.example.com\ninterface: eth0\naddress: 10.0.0.9\nnetwork: 10.0.0.0/24\ninventory:\n  hosts:\n  \
        # rack 1\n  - {name: master-0, role: master, mac: '52:54:00:00:00:01', address: 10.0.0.1}\nignitionDir: /i\nreleaseDir: /r\nevents: /e\nreadyFile: /f\n";

    fn worker(mac: &str) -> Host {
        Host {
            name: "worker-0".into(),
            role: Role::Worker,
            mac: mac.into(),
            address: [10, 0, 0, 2].into(),
            second_address: None,
        }
    }

    #[test]
    fn helper_yaml_follows_and_keeps_its_comments() {
        let read = |text: &str| serde_saphyr::from_str::<HelperConfig>(text).unwrap();
        let host = worker("52:54:00:00:00:02");
        let more = edited(HELPER, &read(HELPER), &Wish::Add(&host)).unwrap();
        assert_eq!(read(&more).inventory.by_name("worker-0"), Some(&host));
        assert!(more.starts_with("# ours\n") && more.contains("# rack 1\n"), "{more}");
        assert_eq!(edited(&more, &read(&more), &Wish::Add(&host)).unwrap(), more, "twice is once");
        assert_eq!(edited(&more, &read(&more), &Wish::Remove("worker-0")).unwrap(), HELPER);
        let inline =
            HELPER.replace("hosts:\n  # rack 1\n  - {", "hosts: [{").replace("10.0.0.1}\n", "10.0.0.1}]\n");
        let more = edited(&inline, &read(&inline), &Wish::Add(&host)).unwrap();
        assert_eq!(read(&more).inventory.by_name("worker-0"), Some(&host), "written anew");
    }

    #[test]
    fn a_wrong_machine_is_refused_before_anybody_is_asked() {
        let said = changed(&Inventory::default(), &Wish::Add(&worker("52:54"))).unwrap_err().to_string();
        assert!(said.contains("not a MAC address") && said.contains("write it like"), "{said}");
    }
}
