//! `seedling timeline`: where the time of a lab's bring-up went.

use super::lab::Name;
use anyhow::{Result, ensure};
use clap::{Args, ValueEnum};
use seedling_lab::Labs;
use seedling_observe::timeline::{Input, svg, terminal, timeline};
use seedling_steps::journal::fold;

#[derive(Args)]
pub(crate) struct TimelineArgs {
    #[command(flatten)]
    lab: Name,
    /// Output format
    #[arg(short, long, value_enum, default_value_t = Form::Terminal)]
    output: Form,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Form {
    Terminal,
    Svg,
    Json,
}

pub(crate) fn run(args: TimelineArgs) -> Result<()> {
    let lab = Labs::from_env().open(&args.lab.name)?;
    let bring_up = lab.bring_up();
    ensure!(!bring_up.milestones.is_empty(), "{} has no milestones yet", lab.bring_up_file().display());
    let nodes = lab.record.spec.inventory.hosts.iter().map(|h| &h.name);
    let journals = nodes.map(|node| (node.clone(), fold(&lab.journal(node)))).collect();
    let timeline = timeline(&Input {
        started: bring_up.started_unix_millis,
        milestones: &bring_up.milestones,
        journals: &journals,
        events: &seedling_lab::read_events(&lab.helper_events()),
        inventory: &lab.record.spec.inventory,
    });
    match args.output {
        Form::Terminal => print!("{}", terminal(&timeline)),
        Form::Svg => print!("{}", svg(&timeline)),
        Form::Json => println!("{}", serde_json::to_string_pretty(&timeline)?),
    }
    Ok(())
}
