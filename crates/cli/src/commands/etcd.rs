//! `seedling etcd`: on a master of a grown cluster, as root.

use super::lab::Output;
use anyhow::Result;
use clap::{Args, Subcommand};
use seedling_cluster::etcd::Space;
use seedling_node::etcd::restore::{self, Here};
use seedling_node::etcd::{self, Freed};
use seedling_types::ports;
use serde_json::json;
use std::io::{BufRead as _, IsTerminal as _, Write as _};
use std::path::PathBuf;

#[derive(Subcommand)]
pub(crate) enum EtcdCommand {
    /// On a master: back up etcd's data and this master's static pods into a new directory
    ///
    /// The directory is named after the time and etcd's revision, and only root can read it. It is verified after writing and appears
    /// complete or not at all. It contains the cluster's keys, so whoever has it can read all Secrets. Keep a copy outside the cluster.
    Backup(BackupArgs),
    /// On one master: continue alone when the other masters are lost for good, or restore a backup
    ///
    /// Says what may be lost and asks before it starts. This master becomes the only member of a new etcd cluster; its old data is moved
    /// aside, never deleted. The command refuses to run while another master's etcd runs. If it is killed, run it again and it
    /// continues. It needs no API server. The other masters join again when they come back, with new or old disks, while this one is on.
    Restore(RestoreArgs),
    /// On a master: make room in an etcd that is full, so that it takes writes again
    ///
    /// Use it when requests fail with "database space exceeded". Old versions of keys are forgotten, and each member's database is written
    /// anew without them, one member after the other, the leader last; a member answers nobody meanwhile. No key is lost. The
    /// command needs no API server. If it is killed, run it again.
    FreeSpace {
        #[command(flatten)]
        output: Output,
    },
}

#[derive(Args)]
pub(crate) struct BackupArgs {
    /// The directory in which the backup's own directory is created
    #[arg(default_value = "/var/lib/etcd-backup")]
    dir: PathBuf,
    #[command(flatten)]
    output: Output,
}

#[derive(Args)]
pub(crate) struct RestoreArgs {
    /// Restore this backup: a directory made by `backup`, or the snapshot in it [default: keep this member's own data]
    #[arg(long, value_name = "FILE")]
    snapshot: Option<PathBuf>,
    /// Do not ask for confirmation
    #[arg(long)]
    yes: bool,
}

pub(crate) async fn run(command: EtcdCommand) -> Result<()> {
    anyhow::ensure!(nix::unistd::geteuid().is_root(), "only root may: sudo seedling etcd …, on a master");
    match command {
        EtcdCommand::Backup(args) => backup(&args).await,
        EtcdCommand::Restore(args) => restore(&args).await,
        EtcdCommand::FreeSpace { output } => free_space(&output).await,
    }
}

async fn backup(args: &BackupArgs) -> Result<()> {
    let (path, made) = restore::backup(&Here::read()?, &args.dir).await?;
    let mut object = serde_json::to_value(&made)?;
    object["path"] = json!(path);
    // Larger than the numbers of JSON's readers.
    object["cluster"] = json!(format!("{:x}", made.cluster));
    object["givenUp"] = made.given_up.iter().map(|id| format!("{id:x}")).collect();
    args.output.print(&object, || {
        println!("{}: revision {}, {} KiB", path.display(), made.revision, made.size.div_ceil(1024));
    });
    Ok(())
}

async fn restore(args: &RestoreArgs) -> Result<()> {
    let agreed = |question: &str| {
        eprintln!("{question}");
        anyhow::Ok(args.yes || asked()?)
    };
    if restore::restore(args.snapshot.as_deref(), agreed, &|text| eprintln!("{text}")).await? {
        println!(
            "etcd leads on this master; its API server follows. Now let the other masters come back: kubectl get nodes, clusteroperators"
        );
    } else {
        println!("nothing was done");
    }
    Ok(())
}

async fn free_space(output: &Output) -> Result<()> {
    let endpoint = format!("https://localhost:{}", ports::ETCD_CLIENT);
    let freed = etcd::free_space(&endpoint, &Here::read()?.tls()?, &|text| eprintln!("{text}")).await?;
    let space = |space: &Space| json!({"file": space.file, "used": space.used, "quota": space.quota});
    let member = |f: &Freed| json!({"name": f.name, "before": space(&f.before), "after": space(&f.after)});
    output.print(&freed.iter().map(member).collect(), || println!("etcd takes writes"));
    Ok(())
}

fn asked() -> Result<bool> {
    anyhow::ensure!(std::io::stdin().is_terminal(), "there is no terminal to ask on; confirm with --yes");
    eprint!("Go on? Type yes: ");
    std::io::stderr().flush()?;
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line)?;
    Ok(line.trim() == "yes")
}
