//! `seedling lab journal` and `seedling node journal`: what was done on nodes, step by step.

use super::lab::{Name, Output};
use anyhow::{Result, ensure};
use clap::Args;
use seedling_lab::Labs;
use seedling_observe::journal::{NodeJournal, table};
use seedling_steps::Journal;
use seedling_steps::journal::{Line, fold};
use seedling_types::paths;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// An emulated machine that is busy needs so long to let somebody in.
const SSH_WITHIN: Duration = Duration::from_secs(60);

#[derive(Args)]
pub(crate) struct LabJournalArgs {
    #[command(flatten)]
    lab: Name,
    /// The machine [default: all]
    node: Option<String>,
    #[command(flatten)]
    output: Output,
}

#[derive(Args)]
pub(crate) struct NodeJournalArgs {
    /// The root of the node's files, for a disk that is mounted elsewhere
    #[arg(long, default_value = "/", value_name = "DIR")]
    root: PathBuf,
    #[command(flatten)]
    output: Output,
}

/// Machines that are off, too: it is read from their disks, or is what was last seen of a QEMU machine.
pub(crate) async fn of_lab(args: LabJournalArgs) -> Result<()> {
    let lab = Labs::from_env().open(&args.lab.name)?;
    lab.fetch_journals(SSH_WITHIN).await;
    let nodes = match args.node {
        Some(node) => vec![lab.host(&node)?.name.clone()],
        None => lab.record.spec.inventory.hosts.iter().map(|h| h.name.clone()).collect(),
    };
    show(nodes.into_iter().map(|node| (lab.journal(&node), node)).collect(), &args.output)
}

pub(crate) fn of_node(args: NodeJournalArgs) -> Result<()> {
    let lines = Journal::of(&args.root, "").read()?;
    let name = std::fs::read_to_string(args.root.join("etc/hostname")).unwrap_or_default();
    ensure!(!lines.is_empty(), "{} is empty", at(&args.root).display());
    show(vec![(lines, name.trim().into())], &args.output)
}

fn at(root: &Path) -> PathBuf {
    root.join(paths::JOURNAL.trim_start_matches('/'))
}

fn show(journals: Vec<(Vec<Line>, String)>, output: &Output) -> Result<()> {
    let journals: Vec<_> =
        journals.into_iter().map(|(lines, node)| NodeJournal { node, state: fold(&lines) }).collect();
    let text = || print!("{}", table(&journals, seedling_lab::probe::now()));
    output.print(&serde_json::to_value(&journals)?, text);
    Ok(())
}
